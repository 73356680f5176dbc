"""
Comparing two models honestly
=============================

On any test set, two models have different AUCs. The paired test of DeLong shows whether the
difference is more than chance. It takes into account that both models scored the same rows. Two
separate intervals do not, and so miss many real differences.
"""

# %%
# Two models
# ----------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aucmax import KernelAUCClassifier
from aucmax.metrics import compare_roc_auc, roc_auc_interval

X, y = make_classification(
    24_000, 10, n_informative=6, n_clusters_per_class=2, class_sep=0.9, weights=[0.9], random_state=3
)
fit = slice(0, 4000)
kernel = KernelAUCClassifier(preset="paper", n_landmarks=300, random_state=0).fit(X[fit], y[fit])
linear = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[fit], y[fit])
a, b = kernel.decision_function(X[4000:]), linear.decision_function(X[4000:])
y_test = y[4000:]

# %%
# Few rows, many rows
# -------------------
# The difference is real, but few rows cannot show it.

for count in (500, 2000, 20_000):
    first, second = (roc_auc_interval(y_test[:count], s[:count]) for s in (a, b))
    test = compare_roc_auc(y_test[:count], a[:count], b[:count])
    apart = first.low > second.high or second.low > first.high
    print(
        f"{count:6,} rows: {first.auc:.3f} and {second.auc:.3f}, intervals apart: {apart}, "
        f"difference {test.difference:+.3f}, p = {test.p_value:.2g}"
    )

# %%
# Forty test sets of 500 rows
# ---------------------------
# Each line joins the two AUCs of one test set. They go up and down together, because rows that are
# easy for one model are easy for the other. The paired test looks at the difference alone.

figure, ax = plt.subplots(figsize=(5.6, 4), layout="constrained")
differences = []
for part in np.array_split(np.arange(y_test.size), 40):
    test = compare_roc_auc(y_test[part], a[part], b[part])
    ax.plot([0, 1], [test.auc_b, test.auc_a], color="C0" if test.p_value < 0.05 else "0.7", marker=".")
    differences.append(test.p_value < 0.05)
ax.set_xticks([0, 1], ["logistic regression", "aucmax"])
ax.set(ylabel="AUC", xlim=(-0.2, 1.2), title="Blue: the paired test sees a difference")
print(f"{sum(differences)} of 40 small test sets show the difference")

# %%
# Three rules
# -----------
# - Choose the test before you look: test the two models that you want to compare, not the best of ten.
# - Test on rows that neither model was fitted to or tuned on.
# - A small p-value says that the difference is real, not that it is large. Look at the difference.
