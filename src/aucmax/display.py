"""Pictures of fitted models."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

__all__ = ["CVPathDisplay"]


class CVPathDisplay:
    """Cross-validated AUC against C: a line for each gamma, with a band of the folds.

    Make it by :meth:`from_estimator`.

    Parameters
    ----------
    Cs : array of shape (n_Cs,)
    scores : array of shape (n_folds, n_gammas, n_Cs)
        NaN where the walk along C did not come.
    gammas : array of shape (n_gammas,), or None where there is no kernel
    C, gamma : float
        The chosen ones; gamma is None where there is no kernel.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        The mean of the folds, one per gamma.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import make_moons
    >>> from aucmax import CVPathDisplay, KernelAUCClassifierCV
    >>> X, y = make_moons(300, noise=0.3, random_state=0)
    >>> model = KernelAUCClassifierCV(10, n_landmarks=50, random_state=0).fit(X, y)
    >>> CVPathDisplay.from_estimator(model).ax_.get_xlabel()
    'C'
    """

    def __init__(
        self,
        Cs: np.ndarray,
        scores: np.ndarray,
        gammas: np.ndarray | None = None,
        *,
        C: float,
        gamma: float | None = None,
    ) -> None:
        self.Cs = Cs
        self.scores = scores
        self.gammas = gammas
        self.C = C
        self.gamma = gamma

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, band: str = "std") -> CVPathDisplay:
        """Plot the search of a fitted ``KernelAUCClassifierCV`` or ``LinearAUCClassifierCV``."""
        check_is_fitted(estimator, "scores_")
        scores, gammas = estimator.scores_, getattr(estimator, "gammas_", None)
        display = cls(
            estimator.Cs_,
            scores if gammas is not None else scores[:, None],
            gammas,
            C=estimator.C_,
            gamma=getattr(estimator, "gamma_", None),
        )
        return display.plot(ax=ax, band=band)

    def plot(self, *, ax: Any = None, band: str = "std") -> CVPathDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure's otherwise.
        band : {"std", "range"}, default="std"
            What of the folds to shade about their mean: one standard deviation, or lowest to highest.
        """
        if band not in ("std", "range"):
            raise ValueError(f"band must be 'std' or 'range'; got {band!r}.")
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError('Plots need matplotlib: pip install "aucmax[plot]".') from None
        if ax is None:
            _, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
        self.ax_, self.figure_, self.lines_ = ax, ax.figure, []
        means = self.scores.mean(axis=0)
        for g, mean in enumerate(means):
            seen = ~np.isnan(mean)
            folds, Cs = self.scores[:, g, seen], self.Cs[seen]
            low, high = mean[seen] - folds.std(axis=0), mean[seen] + folds.std(axis=0)
            if band == "range":
                low, high = folds.min(axis=0), folds.max(axis=0)
            label = None if self.gammas is None else f"gamma = {self.gammas[g]:.3g}"
            (line,) = ax.plot(Cs, mean[seen], marker="o", markersize=3, label=label)
            ax.fill_between(Cs, low, high, alpha=0.15, color=line.get_color(), linewidth=0)
            self.lines_.append(line)
        chosen = 0 if self.gammas is None else int(np.argmin(np.abs(self.gammas - self.gamma)))
        best = means[chosen, int(np.argmin(np.abs(self.Cs - self.C)))]
        ax.plot(
            [self.C],
            [best],
            marker="*",
            markersize=13,
            color="black",
            linestyle="none",
            label=f"chosen: C = {self.C:.3g}, AUC {best:.4f}",
        )
        ax.set(xscale="log", xlabel="C", ylabel=f"AUC, mean of {len(self.scores)} folds")
        ax.grid(alpha=0.3)
        ax.legend(frameon=False, fontsize="small")
        return self
