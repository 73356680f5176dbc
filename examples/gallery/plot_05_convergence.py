"""
Did the solver converge?
========================

The loss is convex, so it has one minimum, and the solver estimates how far it is from it. A fit
that ends early warns. ``ConvergenceDisplay`` shows the way.
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
# ``solver="sgd"`` takes random pairs. It has no distance to the minimum; the AUC of training rows
# is traced by epoch.

from aucmax import SGDAUCClassifier  # noqa: E402

stream = SGDAUCClassifier(trace="train", random_state=0).fit(X, y)
display = ConvergenceDisplay.from_estimator(stream)

# %%
# A search
# --------
# For a search, the plot has one point for each value of ``C``. Those that did not come within
# ``tol`` would be marked.

machine = KernelAUCClassifier(preset="paper", n_landmarks=100, random_state=0)
search = KernelAUCClassifierCV(machine, Cs=12).fit(X, y)
display = ConvergenceDisplay.from_estimator(search)
