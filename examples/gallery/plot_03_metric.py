"""
A learnt metric, and which columns matter
=========================================

A kernel measures distances, and a column of noise disturbs all of them. ``KernelAUCClassifier``
learns which columns change the score, stretches these, and fits again. Only two of the twenty columns
below decide the label.
"""

# %%
# Fit with and without a metric
# -----------------------------

import matplotlib.pyplot as plt
import numpy as np

from aucmax import KernelAUCClassifier
from aucmax.inspection.importance import mean_squared_gradient, permutation_importance
from aucmax.metrics import compare_roc_auc

rng = np.random.default_rng(0)
X = rng.normal(size=(5000, 20))
y = np.hypot(X[:, 3], X[:, 11]) + 0.3 * rng.normal(size=5000) > 2
train, test = slice(0, 1000), slice(1000, None)

settings = {"n_landmarks": 200, "landmarks": "class-kmeans", "kernel": "rbf", "standardize": True}
settings |= {"C": 10.0, "random_state": 0}  # only gamma and the metric are tuned
learnt = KernelAUCClassifier(**settings).fit(X[train], y[train])
plain = KernelAUCClassifier(metric=None, **settings).fit(X[train], y[train])
found = compare_roc_auc(y[test], learnt.decision_function(X[test]), plain.decision_function(X[test]))
print(f"with a metric {found.auc_a:.3f}, without {found.auc_b:.3f}, p = {found.p_value:.1g}")

# %%
# Importances
# -----------
# ``feature_importances_`` measure how steeply the score changes with each column, as shares that add
# up to one.

figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True, layout="constrained")
for ax, model, title in zip(axes, (plain, learnt), ("without a metric", "with a metric"), strict=True):
    ax.bar(range(20), model.feature_importances_)
    ax.set(xlabel="column", title=title)
    ax.set_xticks([3, 11])
axes[0].set_ylabel("importance")

# %%
# Two kinds of importance
# -----------------------
# The gradient shows which columns the model uses. Shuffling a column shows what the ranking would
# lose without it.

gradient = mean_squared_gradient(learnt, X[test])
shuffled = permutation_importance(learnt, X[test], y[test], random_state=0)
for name, each in (("gradient", gradient), ("shuffled", shuffled)):
    print(name, [each.names[i] for i in each.order[:3]])
