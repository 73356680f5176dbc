"""
Did the solver converge?
========================

The loss is convex, so it has one minimum, and the solver estimates its distance to this minimum. A
fit that ends too early warns. ``ConvergenceDisplay`` plots the distance after each step.
"""

# %%
# An exact solver
# ---------------
# Newton's method takes a few steps. The distance to the minimum falls below ``tol``, and the
# training AUC settles long before.

from sklearn.datasets import make_moons

from aucmax import ConvergenceDisplay, KernelAUCClassifier, KernelAUCClassifierCV

X, y = make_moons(4000, noise=0.3, random_state=0)
model = KernelAUCClassifier(preset="paper", n_landmarks=300, tol=1e-6, random_state=0).fit(X, y)
display = ConvergenceDisplay.from_estimator(model)

# %%
# A stochastic solver
# -------------------
# ``SGDAUCClassifier`` takes a step for one random pair at a time. It does not estimate the distance
# to the minimum; with ``trace="train"``, it records the AUC of the training rows after each epoch.

from aucmax import SGDAUCClassifier  # noqa: E402

stream = SGDAUCClassifier(trace="train", random_state=0).fit(X, y)
display = ConvergenceDisplay.from_estimator(stream)

# %%
# A search
# --------
# For a search, the plot has one point for each value of ``C``. Values for which the solver did not
# come within ``tol`` would be marked.

machine = KernelAUCClassifier(preset="paper", n_landmarks=100, random_state=0)
search = KernelAUCClassifierCV(machine, Cs=12).fit(X, y)
display = ConvergenceDisplay.from_estimator(search)
