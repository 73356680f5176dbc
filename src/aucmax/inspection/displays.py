"""Pictures of fitted models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aucmax.features.kernels import RADIAL
from aucmax.features.nystroem import NystroemFeatures
from aucmax.rows.validation import check_labels, check_rows, is_sparse
from aucmax.runtime.parameters import check_number, random_generator

__all__ = ["CVPathDisplay", "ConvergenceDisplay", "LandmarkCoverageDisplay"]

#: Rows whose distances to landmarks are taken: a share is then known to about one percent.
_COVERAGE_ROWS = 10_000


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
        (ax,) = _axes(1) if ax is None else (ax,)
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


class ConvergenceDisplay:
    """How a fit came to its end: distance to the minimum above, AUC below.

    The distance is the solver's own estimate, relative to the objective, at the start of a step: where
    the last one starts, it is still above ``tol``. The AUC shows whether the ranking still gained. Of a
    search, it is shown where the last step at each C started. Make it by :meth:`from_estimator`.

    Parameters
    ----------
    steps : array of shape (n,)
        Newton steps or epochs done, or, of a search, the values of C in the order of the walk.
    gap : array of shape (n, n_columns) or None
        Estimated relative distance to the minimum.
    auc : array of shape (n, n_columns) or None
    unit : {"Newton step", "epoch", "C"}
    tol : float, optional
        Where the solver may stop.
    converged : bool array of shape (n, n_columns), optional
        Of a search: which values of C came within ``tol``. Others are marked.
    labels : list of str, optional
        Of the columns, where there are several.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        One for each of gap and auc that is there.
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import make_moons
    >>> from aucmax import KernelAUCClassifier
    >>> from aucmax.inspection.displays import ConvergenceDisplay
    >>> X, y = make_moons(300, noise=0.3, random_state=0)
    >>> model = KernelAUCClassifier(n_landmarks=50, random_state=0).fit(X, y)
    >>> [ax.get_ylabel() for ax in ConvergenceDisplay.from_estimator(model).axes_]
    ['distance to the minimum', 'training AUC']
    """

    def __init__(
        self,
        steps: np.ndarray,
        gap: np.ndarray | None,
        auc: np.ndarray | None,
        *,
        unit: str,
        tol: float | None = None,
        converged: np.ndarray | None = None,
        labels: list[str] | None = None,
    ) -> None:
        self.steps = steps
        self.gap = gap
        self.auc = auc
        self.unit = unit
        self.tol = tol
        self.converged = converged
        self.labels = labels

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        panels: Sequence[str] = ("gap", "auc"),
        axes: Sequence[Any] | None = None,
    ) -> ConvergenceDisplay:
        """Plot the history of a fitted classifier, or the walk along C of a search.

        ``panels`` are those to show of the ones that are there.
        """
        check_is_fitted(estimator)
        name, tol = type(estimator).__name__, getattr(estimator, "tol", None)
        if hasattr(estimator, "path_"):
            gammas = list(dict.fromkeys(record.get("gamma") for record in estimator.path_))
            Cs = np.asarray(estimator.Cs_)
            keys = ("gap", "auc", "converged")
            gap, auc, well = (_by_gamma(estimator.path_, Cs, gammas, key) for key in keys)
            made = cls(
                Cs,
                gap,
                auc,
                unit="C",
                tol=tol,
                converged=None if well is None else well != 0.0,
                labels=None if len(gammas) < 2 else [f"gamma = {gamma:.3g}" for gamma in gammas],
            )
        elif getattr(estimator, "history_", None):
            records = estimator.history_
            newton = "iteration" in records[0]
            steps = np.array([record["iteration" if newton else "epoch"] for record in records])
            gap, auc = (_column(records, key) for key in ("gap", "auc"))
            made = cls(
                steps, gap, auc, unit="Newton step" if newton else "epoch", tol=tol if newton else None
            )
        else:
            raise ValueError(f"{name} keeps no history of its fit, so there is no convergence to show.")
        made.gap, made.auc = (
            values if key in panels else None for key, values in (("gap", made.gap), ("auc", made.auc))
        )
        if made.gap is None and made.auc is None:
            raise ValueError(
                f"This {name} did not follow {' or '.join(panels)} while it was fitted: there is no "
                'convergence to show. Use solver="newton", or SGDAUCClassifier with rows to follow.'
            )
        return made.plot(axes=axes)

    def plot(self, *, axes: Sequence[Any] | None = None) -> ConvergenceDisplay:
        """Draw.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, optional
            One for each of gap and auc that is there; a new figure's otherwise.
        """
        shown = [
            (key, values)
            for key, values in (("gap", self.gap), ("auc", self.auc))
            if values is not None
        ]
        if axes is None:
            axes = _axes(len(shown))
        if len(axes) != len(shown):
            raise ValueError(f"axes must hold {len(shown)}, one for each panel; it holds {len(axes)}.")
        self.axes_, self.figure_, self.lines_ = list(axes), axes[0].figure, []
        for (key, values), ax in zip(shown, axes, strict=True):
            # A gap is estimated at the start of a step, the AUC belongs to its end.
            steps = self.steps - 1 if key == "gap" and self.unit == "Newton step" else self.steps
            for column, line in enumerate(values.T):
                seen = np.isfinite(line)
                label = self.labels[column] if self.labels else None
                self.lines_ += ax.plot(steps[seen], line[seen], marker="o", markersize=3, label=label)
            if key == "gap" and self.unit == "C":
                # The last step at each C leads from here to within tol, where it converged.
                ax.set(yscale="log", ylabel="distance before the last step")
                rough = ~self.converged & np.isfinite(values) if self.converged is not None else []
                if np.any(rough):
                    at, which = np.nonzero(rough)
                    ax.plot(steps[at], values[at, which], "kx", markersize=8, label="not converged")
            elif key == "gap":
                ax.set(yscale="log", ylabel="distance to the minimum")
                if self.tol is not None:
                    ax.axhline(self.tol, color="grey", linestyle=":", label=f"tol = {self.tol:g}")
            else:
                ax.set(ylabel="cross-validated AUC" if self.unit == "C" else "training AUC")
            if self.unit == "C":
                ax.set_xscale("log")
            elif len(steps) < 12:
                ax.set_xticks(steps)
            ax.grid(alpha=0.3)
            if ax.get_legend_handles_labels()[1]:
                ax.legend(frameon=False, fontsize="small")
        noun = {"Newton step": "Newton steps done", "epoch": "epochs done", "C": "C"}[self.unit]
        axes[-1].set_xlabel(noun)
        return self


class LandmarkCoverageDisplay:
    """How near rows are to their nearest landmark, as a cumulative share, class by class.

    Distances are in bandwidths, ``1/sqrt(gamma)`` for the rbf kernel, alone or with another, and
    ``1/gamma`` for the laplacian, so that they can be read as they are: at 1 the kernel has fallen to
    37 %, at 2 to 2 % (14 % of a laplacian), where no landmark tells the model anything of the row. A
    second line shows the same with a random half of the landmarks: where it lies far below, rows are
    still gaining from each landmark, and more of them may help; where both agree, more will not. A
    class whose line lies lower is less well covered; ``landmarks="class-kmeans"`` gives each class the
    same number.

    Make it by :meth:`from_estimator`.

    Parameters
    ----------
    distances : array of shape (n,)
        To the nearest landmark, in bandwidths.
    half : array of shape (n,)
        To the nearest of a random half of the landmarks.
    classes : array of shape (n,), optional
        A line for each.
    n_landmarks : int
    kernel : {"rbf", "laplacian", "rbf+laplacian"}

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        For each class, with all landmarks and with half of them.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import make_moons
    >>> from aucmax import KernelAUCClassifier
    >>> from aucmax.inspection.displays import LandmarkCoverageDisplay
    >>> X, y = make_moons(300, noise=0.3, random_state=0)
    >>> model = KernelAUCClassifier(n_landmarks=50, random_state=0).fit(X, y)
    >>> display = LandmarkCoverageDisplay.from_estimator(model, X, y, random_state=0)
    >>> bool((display.distances <= display.half).all())
    True
    """

    def __init__(
        self,
        distances: np.ndarray,
        half: np.ndarray,
        classes: np.ndarray | None = None,
        *,
        n_landmarks: int,
        kernel: str = "rbf",
    ) -> None:
        self.distances = distances
        self.half = half
        self.classes = classes
        self.n_landmarks = n_landmarks
        self.kernel = kernel

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        max_rows: int = _COVERAGE_ROWS,
        random_state: Any = 0,
        ax: Any = None,
    ) -> LandmarkCoverageDisplay:
        """Plot for the rows ``X`` and, to tell classes apart, their labels ``y``.

        Of more than ``max_rows`` rows as many are drawn at random.
        """
        check_is_fitted(estimator)
        check_number("max_rows", max_rows, low=1, closed=True, integer=True)
        made = getattr(estimator, "feature_map_", None)
        if not isinstance(made, NystroemFeatures) or made.kernel not in RADIAL:
            raise ValueError(
                "Landmark coverage is for models with landmarks and a bandwidth: "
                'feature_map="nystroem" and kernel="rbf", "laplacian" or both.'
            )
        X = check_rows(estimator, X, reset=False)
        if y is not None:
            check_labels(y)
        classes = None if y is None else np.asarray(y)
        if classes is not None and classes.shape != (X.shape[0],):
            raise ValueError(f"y has shape {classes.shape} for {X.shape[0]} rows of X.")
        random = random_generator(random_state)
        drawn = np.arange(X.shape[0])
        if X.shape[0] > max_rows:
            drawn = np.sort(random.choice(X.shape[0], max_rows, replace=False))
            X, classes = X[drawn], None if classes is None else classes[drawn]
        with np.errstate(over="ignore", invalid="ignore"):  # found and named
            rows = estimator._scaled(X)
        finite = np.isfinite((rows.toarray() if is_sparse(rows) else rows).sum(axis=1))
        if not finite.all():
            raise ValueError(f"row {drawn[finite.argmin()]} of X is too extreme for this model.")
        some = random.permutation(len(made.landmarks_))[: -(-len(made.landmarks_) // 2)]
        display = cls(
            _nearest(rows, made.landmarks_, made),
            _nearest(rows, made.landmarks_[some], made),
            classes,
            n_landmarks=len(made.landmarks_),
            kernel=made.kernel,
        )
        return display.plot(ax=ax)

    def plot(self, *, ax: Any = None) -> LandmarkCoverageDisplay:
        """Draw, on ``ax`` or on a new figure's."""
        (ax,) = _axes(1) if ax is None else (ax,)
        self.ax_, self.figure_, self.lines_ = ax, ax.figure, []
        groups: list[Any] = [None] if self.classes is None else list(np.unique(self.classes))
        for group in groups:
            mask = slice(None) if group is None else self.classes == group
            name = "rows" if group is None else f"{group}"
            line = ax.ecdf(self.distances[mask], label=f"{name}, {self.n_landmarks:,} landmarks")
            half = ax.ecdf(
                self.half[mask], color=line.get_color(), ls="--", label=f"{name}, half of them"
            )
            self.lines_ += [line, half]
        ax.set(
            xlabel="distance to the nearest landmark, in bandwidths",
            ylabel="share of rows within it",
            xlim=(0.0, None),
            ylim=(0.0, 1.01),
        )
        ax.grid(alpha=0.3)
        ax.legend(frameon=False, fontsize="small", loc="lower right")
        return self


def _axes(count: int) -> Sequence[Any]:
    """Panels of a new figure, one above the other."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError('Plots need matplotlib: pip install "aucmax[plot]".') from None
    height = 4.2 if count == 1 else 2.6 * count
    _, axes = plt.subplots(
        count, figsize=(6.4, height), layout="constrained", sharex=True, squeeze=False
    )
    return list(axes[:, 0])


def _column(records: Sequence[dict[str, Any]], key: str) -> np.ndarray | None:
    """The records' values (n, n_columns); None where they have none."""
    if any(record.get(key) is None for record in records):
        return None
    values = np.asarray([record[key] for record in records], dtype=np.float64)
    return values.reshape(len(records), -1)


def _by_gamma(
    path: Sequence[dict[str, Any]], Cs: np.ndarray, gammas: Sequence[Any], key: str
) -> np.ndarray | None:
    """The path's values (n_Cs, n_gammas), NaN where it did not come; of several folds the worst gap."""
    found = [record for record in path if record.get(key) is not None]
    if not found:
        return None
    cells: dict[tuple[int, int], list[float]] = {}
    for record in found:
        at = int(np.abs(Cs - record["C"]).argmin()), gammas.index(record.get("gamma"))
        cells.setdefault(at, []).append(float(record[key]))
    values = np.full((len(Cs), len(gammas)), np.nan)
    for at, numbers in cells.items():
        values[at] = max(numbers) if key == "gap" else min(numbers)
        if key == "auc":
            values[at] = np.mean(numbers)
    return values


def _nearest(rows: Any, landmarks: np.ndarray, made: NystroemFeatures) -> np.ndarray:
    """Distance of each row to the nearest landmark, in bandwidths."""
    from sklearn.metrics import pairwise_distances_argmin_min

    squared = made.kernel != "laplacian"
    metric = "euclidean" if squared else "manhattan"
    rows = rows.toarray() if is_sparse(rows) else rows
    rows, landmarks = np.asarray(rows, dtype=np.float64), np.asarray(landmarks, dtype=np.float64)
    distance = pairwise_distances_argmin_min(rows, landmarks, metric=metric)[1]
    return distance * (np.sqrt(made.gamma_) if squared else made.gamma_)
