"""
Did the solver converge?
========================

The loss is convex, so there is one minimum, and the solver can estimate how far it is from it.
"""
# %%
# Fit a model
# -----------

from sklearn.datasets import make_moons

from aucmax import ConvergenceDisplay, KernelAUCClassifier

X, y = make_moons(3000, noise=0.3, random_state=0)
model = KernelAUCClassifier(preset="paper", n_landmarks=200, random_state=0).fit(X, y)

# %%
# Plot
# ----
display = ConvergenceDisplay.from_estimator(model)
