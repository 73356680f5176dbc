"""
Rare positives against boosted trees
====================================

This example draws fewer and fewer positives from the same data, and compares how well aucmax and
boosted trees rank held-out rows. Boosted trees choose splits by the rows on either side, and a few
dozen positives support few such choices.

The data set is magic04 if its file is in the folder ``AUCMAX_DATA``; otherwise it is synthetic.
"""

# %%
# Data
# ----

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier

from aucmax import KernelAUCClassifier
from aucmax.metrics import roc_auc, roc_auc_interval
from aucmax.paper.data import DataMissingError, load_dataset

try:
    split = load_dataset("magic04", download=False)
    X, y, name = split.X_train, split.y_train == 1, "magic04"
except (DataMissingError, OSError):
    X, y = make_classification(
        16_000, 10, n_informative=6, n_clusters_per_class=4, weights=[0.65], flip_y=0.1, random_state=0
    )
    y, name = y == 1, "a made table"

rng = np.random.default_rng(0)
order = rng.permutation(y.size)
X, y = X[order], y[order]
X_test, y_test = X[:6000], y[:6000]
negatives = 6000 + np.flatnonzero(~y[6000:])[:2000]
positives = 6000 + np.flatnonzero(y[6000:])

# %%
# Fit to fewer and fewer positives
# --------------------------------
# Each number of positives is drawn twice. Some settings are fixed, so that the example runs quickly.

settings = {"n_landmarks": 200, "landmarks": "class-kmeans", "standardize": True, "effort": 0.3}

counts, draws = (20, 60, 200), 2
found = {"aucmax": [], "boosted trees": []}
for count in counts:
    aucs = {method: [] for method in found}
    for draw in range(draws):
        some = np.random.default_rng(draw).choice(positives, count, replace=False)
        rows = np.concatenate([negatives, some])
        kernel = KernelAUCClassifier(**settings, random_state=draw).fit(X[rows], y[rows])
        trees = HistGradientBoostingClassifier(random_state=draw).fit(X[rows], y[rows])
        aucs["aucmax"].append(roc_auc(y_test, kernel.decision_function(X_test)))
        aucs["boosted trees"].append(roc_auc(y_test, trees.predict_proba(X_test)[:, 1]))
    for method, values in aucs.items():
        found[method].append(values)

# %%
# Result
# ------
# Points are single draws, and lines are their means. With so few positives, chance in the draw
# matters about as much as the method. The contest of this site has ten draws of each of six data
# sets, with all settings tuned.

figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
for method, marker in (("aucmax", "o"), ("boosted trees", "s")):
    values = np.array(found[method])
    (line,) = axes.plot(counts, values.mean(axis=1), marker=marker, label=method)
    axes.plot(counts, values, marker, color=line.get_color(), alpha=0.35, ms=5)
axes.set(
    xscale="log", xlabel="positives among 2,000 rows", ylabel="test AUC", title=f"Few positives: {name}"
)
axes.set_xticks(counts, [str(count) for count in counts])
axes.minorticks_off()
axes.legend()
for method, values in found.items():
    print(f"{method:15s}" + "".join(f"  {np.mean(each):.3f}" for each in values))

# %%
# An interval shows how precise one of these AUCs is. It covers chance in the test rows, but not in
# the draw of the training rows.

interval = roc_auc_interval(y_test, kernel.decision_function(X_test))
print(f"{interval.auc:.3f}, 95 % between {interval.low:.3f} and {interval.high:.3f}")
