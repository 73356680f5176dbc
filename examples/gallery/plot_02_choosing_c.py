"""
Choosing C on one path
======================

``C`` weighs the loss against the penalty. ``KernelAUCClassifierCV`` tries many values by
cross-validation. It solves all folds together, and each value of ``C`` starts from the solution of
the one before, so the whole search takes about as long as a few single fits.
"""

# %%
# One fit, and a search
# ---------------------

import time

from sklearn.datasets import make_moons

from aucmax import CVPathDisplay, KernelAUCClassifier, KernelAUCClassifierCV

X, y = make_moons(4000, noise=0.35, random_state=0)
machine = KernelAUCClassifier(preset="paper", n_landmarks=300, random_state=0)
machine.fit(X[:500], y[:500])  # loops are compiled on the first fit

began = time.perf_counter()
machine.fit(X, y)
one_fit = time.perf_counter() - began

began = time.perf_counter()
search = KernelAUCClassifierCV(machine, Cs=20, gammas=3, cv=3).fit(X, y)
seconds = time.perf_counter() - began
tried = len(search.cv_results_["params"])
print(f"{tried} settings by 3 folds: as long as {seconds / one_fit:.0f} fits, not {3 * tried}.")

# %%
# The path
# --------
# The plot has a line for each gamma, with a band for the folds. A path ends early when the AUC has
# fallen for several values of ``C``.

display = CVPathDisplay.from_estimator(search)
print(f"C = {search.C_:.3g}, gamma = {search.gamma_:.3g}, held-out AUC {search.best_score_:.4f}")

# %%
# A simpler model within the noise
# --------------------------------
# ``select="1se"`` takes the smallest ``C`` whose AUC is within one standard error of the best.

simple = KernelAUCClassifierCV(machine, Cs=20, gammas=3, cv=3, select="1se").fit(X, y)
print(f"C = {simple.C_:.3g} instead of {search.C_:.3g}")
