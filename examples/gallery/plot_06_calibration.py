"""
Scores, probabilities and rarity
================================

A ranking model returns scores. A calibrator turns them into probabilities and keeps their order, so
the AUC stays the same. The calibrator is fitted to rows that the model has not seen.
"""

# %%
# A model, and rows held out for the calibrator
# ---------------------------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification

from aucmax import KernelAUCClassifier
from aucmax.metrics import roc_auc
from aucmax.metrics.calibration import IsotonicCalibrator, SigmoidCalibrator
from aucmax.metrics.evaluation import evaluate

X, y = make_classification(
    30_000, 10, n_informative=6, n_clusters_per_class=4, weights=[0.93], flip_y=0.02, random_state=0
)
fit, held_out, test = slice(0, 6000), slice(6000, 22_000), slice(22_000, None)
model = KernelAUCClassifier(preset="paper", n_landmarks=300, random_state=0).fit(X[fit], y[fit])
scores, test_scores = model.decision_function(X[held_out]), model.decision_function(X[test])

# %%
# Two calibrators
# ---------------
# The sigmoid calibrator has two parameters and suits any number of rows. The isotonic calibrator fits
# any increasing function and needs about a thousand positives.

calibrators = {
    "sigmoid": SigmoidCalibrator().fit(scores, y[held_out] == 1),
    "isotonic": IsotonicCalibrator().fit(scores, y[held_out] == 1),
}
figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
axes[0].hist(
    [test_scores[y[test] == 0], test_scores[y[test] == 1]],
    bins=40,
    density=True,
    label=["negative", "positive"],
)
axes[0].set(xlabel="score", ylabel="share of the class", title="Scores have no scale")
axes[0].legend()
axes[1].plot([0, 1], [0, 1], ":", color="grey")
for name, calibrator in calibrators.items():
    probability = calibrator.predict(test_scores)
    found = evaluate(y[test] == 1, test_scores, probability=probability)
    predicted = [each.mean_probability for each in found.calibration]
    axes[1].plot(predicted, [each.observed for each in found.calibration], marker="o", label=name)
    print(f"{name:9s} AUC {roc_auc(y[test], probability):.4f}, Brier skill {found.brier_skill:.2f}")
axes[1].set(xlabel="mean probability", ylabel="share of positives", title="Probabilities do")
axes[1].legend()
print(f"scores    AUC {roc_auc(y[test], test_scores):.4f}")

# %%
# Probabilities add up
# --------------------
# The sum of the probabilities is the number of positives to expect. The number of rows with a
# probability above 0.5 is not.

probability = calibrators["sigmoid"].predict(test_scores)
found, high = np.sum(y[test] == 1), np.sum(probability > 0.5)
print(f"expected {probability.sum():.0f}, found {found}, above 0.5: {high}")
