"""
Thresholds and costs
====================

A threshold turns scores into decisions. Which one is right depends on what mistakes cost, or on how
many rows you can look at.
"""

# %%
# A model, and rows held out for the threshold
# --------------------------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification

from aucmax import KernelAUCClassifier
from aucmax.metrics.costs import expected_cost
from aucmax.metrics.thresholds import choose_threshold, measure_threshold

X, y = make_classification(
    12_000, 8, n_informative=6, n_clusters_per_class=3, weights=[0.95], flip_y=0.02, random_state=0
)
fit, held_out, test = slice(0, 4000), slice(4000, 8000), slice(8000, None)
model = KernelAUCClassifier(preset="paper", n_landmarks=300, random_state=0).fit(X[fit], y[fit])
scores, test_scores = model.decision_function(X[held_out]), model.decision_function(X[test])
positive, test_positive = y[held_out] == 1, y[test] == 1

# %%
# Aims
# ----
# ``choose_threshold`` finds the best of all possible thresholds for an aim, and
# ``measure_threshold`` measures it on other rows. Rates have exact intervals.

for aim in ("youden", "recall=0.9", "precision=0.8", "fpr=0.05", "top=5%", "cost=500:20"):
    chosen = choose_threshold(positive, scores, aim)
    new = measure_threshold(test_positive, test_scores, chosen.threshold)
    print(
        f"{aim:14s} recall {new.recall:.2f} ({new.recall_low:.2f} to {new.recall_high:.2f}), "
        f"precision {new.precision:.2f} ({new.precision_low:.2f} to {new.precision_high:.2f})"
    )

# %%
# What each threshold costs
# -------------------------
# A missed positive costs 500 and a false alarm 20.

cuts = np.quantile(scores, np.linspace(0.5, 0.999, 60))
costs = [expected_cost(test_positive, test_scores, cut, miss=500, alarm=20).total for cut in cuts]
chosen = choose_threshold(positive, scores, "cost=500:20")
cost = expected_cost(test_positive, test_scores, chosen.threshold, miss=500, alarm=20)

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.plot(cuts, costs, label="cost on test rows")
ax.axvline(chosen.threshold, color="C1", label="chosen on held-out rows")
ax.axhline(cost.if_none, color="grey", ls=":", label="no row labelled positive")
ax.set(xlabel="threshold", ylabel="cost", ylim=(0, None))
ax.legend()
print(f"{cost.total:,.0f} at the threshold, {cost.if_none:,.0f} without a model")
