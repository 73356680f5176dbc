"""
Are there enough landmarks?
===========================

The kernel describes rows by their distances to landmarks. A region without a landmark nearby cannot
be described. ``LandmarkCoverageDisplay`` shows how far the rows of each class are from their
nearest landmark.
"""

# %%
# Data: positives in small pockets
# --------------------------------

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification

from aucmax import KernelAUCClassifier, LandmarkCoverageDisplay
from aucmax.metrics import roc_auc

X, y = make_classification(
    12_000,
    6,
    n_informative=6,
    n_redundant=0,
    n_clusters_per_class=8,
    weights=[0.97],
    class_sep=1.5,
    flip_y=0,
    random_state=1,
)
X_test, y_test, X, y = X[6000:], y[6000:], X[:6000], y[:6000]

# %%
# Landmarks over all rows, and within each class
# ----------------------------------------------
# The second line of each class shows the distances with half of the landmarks. If both lines
# agree, more landmarks will not help. Landmarks chosen within each class cover the rare one
# better.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for ax, landmarks in zip(axes, ("kmeans", "class-kmeans"), strict=True):
    model = KernelAUCClassifier(preset="paper", landmarks=landmarks, n_landmarks=200, random_state=0)
    model.fit(X, y)
    LandmarkCoverageDisplay.from_estimator(model, X, y, random_state=0, ax=ax)
    ax.set_title(f"{landmarks}: test AUC {roc_auc(y_test, model.decision_function(X_test)):.3f}")

# %%
# More of them
# ------------
# The AUC rises with the number of landmarks until they cover the rows. Time and memory rise with
# it.

counts = (25, 50, 100, 200, 400, 800)
aucs = []
for count in counts:
    model = KernelAUCClassifier(
        preset="paper", landmarks="class-kmeans", n_landmarks=count, random_state=0
    )
    aucs.append(roc_auc(y_test, model.fit(X, y).decision_function(X_test)))
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.plot(counts, aucs, marker="o")
ax.set(xscale="log", xlabel="landmarks", ylabel="test AUC")
ax.set_xticks(counts, [str(count) for count in counts])
ax.minorticks_off()
