"""Matplotlib displays of fitted models. Make each with its ``from_estimator``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aucmax.features.kernels import RADIAL
from aucmax.features.nystroem import NystroemFeatures
from aucmax.fitting.scaling import scale_rows
from aucmax.rows.interface import as_rows, dense
from aucmax.rows.validation import check_labels, check_rows
from aucmax.runtime.installing import extra_command
from aucmax.runtime.parameters import COUNT, OneOf, check_value, random_generator

__all__ = ["CVPathDisplay", "ConvergenceDisplay", "LandmarkCoverageDisplay"]

_COVERAGE_ROWS = 10_000  #: Distances of this many rows give a share to about one percent.


@dataclass(eq=False, repr=False)
class CVPathDisplay:
    """Cross-validated AUC against C, with a line for each gamma and a band for the folds.

    Parameters
    ----------
    Cs : array of shape (n_Cs,)
    scores : array of shape (n_folds, n_gammas, n_Cs)
        NaN where the path ended before this C.
    gammas : array of shape (n_gammas,), optional
        None if there is no kernel.
    C, gamma : float
        The chosen values; gamma is None if there is no kernel.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of matplotlib Line2D
        The mean over the folds for each gamma.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from aucmax import CVPathDisplay, KernelAUCClassifier, KernelAUCClassifierCV
    >>> X, y = make_moons(300, noise=0.3, random_state=0)
    >>> machine = KernelAUCClassifier(preset="paper", n_landmarks=50, random_state=0)
    >>> model = KernelAUCClassifierCV(machine, Cs=10).fit(X, y)
    >>> CVPathDisplay.from_estimator(model).ax_.get_xlabel()
    'C'
    """

    Cs: np.ndarray
    scores: np.ndarray
    gammas: np.ndarray | None = None
    _: KW_ONLY
    C: float
    gamma: float | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, band: str = "std") -> CVPathDisplay:
        """Plot the search of a fitted ``KernelAUCClassifierCV`` or ``LinearAUCClassifierCV``."""
        check_is_fitted(estimator, "scores_")
        scores, gammas = estimator.scores_, getattr(estimator, "gammas_", None)
        scores = scores if gammas is not None else scores[:, None]
        gamma = getattr(estimator, "gamma_", None)
        return cls(estimator.Cs_, scores, gammas, C=estimator.C_, gamma=gamma).plot(ax=ax, band=band)

    def plot(self, *, ax: Any = None, band: str = "std") -> CVPathDisplay:
        """Draw on ``ax`` or a new figure; a band shows the folds' standard deviation or "range"."""
        check_value("band", band, OneOf("std", "range"))
        ax = _new_axes(1)[0] if ax is None else ax
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
        label = f"chosen: C = {self.C:.3g}, AUC {best:.4f}"
        ax.plot(self.C, best, marker="*", markersize=13, color="black", linestyle="none", label=label)
        ax.set(xscale="log", xlabel="C", ylabel=f"AUC, mean of {len(self.scores)} folds")
        _add_grid_and_legend(ax)
        return self


@dataclass(eq=False, repr=False)
class ConvergenceDisplay:
    """The convergence of a fit: the distance to the minimum above, and the AUC below.

    The distance is the solver's own estimate, relative to the objective, at the start of a step. At the
    start of the last step it is still above ``tol``. A search shows it for the last step at each C.

    Parameters
    ----------
    steps : array of shape (n,)
        Completed Newton steps or epochs; for a search, the values of C in the order of the path.
    gap : array of shape (n, n_lines) or None
        Estimated relative distance to the minimum.
    auc : array of shape (n, n_lines) or None
    unit : {"Newton step", "epoch", "C"}
    tol : float, optional
        The distance at which the solver stops.
    converged : bool array of shape (n, n_lines), optional
        For a search, whether each C came within ``tol``. Those that did not are marked.
    labels : list of str, optional
        The names of the lines, if there are several.

    Attributes
    ----------
    axes_, figure_ : list of matplotlib Axes (of gap and auc, if present), and Figure
    lines_ : list of matplotlib Line2D

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from aucmax import ConvergenceDisplay, KernelAUCClassifier
    >>> X, y = make_moons(300, noise=0.3, random_state=0)
    >>> model = KernelAUCClassifier(n_landmarks=50, random_state=0).fit(X, y)
    >>> [ax.get_ylabel() for ax in ConvergenceDisplay.from_estimator(model).axes_]
    ['distance to the minimum', 'training AUC']
    """

    steps: np.ndarray
    gap: np.ndarray | None
    auc: np.ndarray | None
    _: KW_ONLY
    unit: str
    tol: float | None = None
    converged: np.ndarray | None = None
    labels: list[str] | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, panels: Sequence[str] = ("gap", "auc"), axes: Any = None
    ) -> ConvergenceDisplay:
        """Plot those ``panels`` that a fitted classifier, or the C path of a search, has recorded."""
        check_is_fitted(estimator)
        held = getattr(estimator, "estimator", None) or estimator  # a search has none of its own
        name, tol = type(estimator).__name__, getattr(held, "tol", 1e-4)
        if hasattr(estimator, "path_"):
            gammas = list(dict.fromkeys(record.get("gamma") for record in estimator.path_))
            path, Cs = estimator.path_, np.asarray(estimator.Cs_)
            gap, auc, done = (_by_gamma(path, Cs, gammas, key) for key in ("gap", "auc", "converged"))
            labels = None if len(gammas) < 2 else [f"gamma = {gamma:.3g}" for gamma in gammas]
            converged = None if done is None else done != 0.0
            display = cls(Cs, gap, auc, unit="C", tol=tol, converged=converged, labels=labels)
        elif records := getattr(estimator, "history_", None):
            newton = "iteration" in records[0]
            steps = np.array([record["iteration" if newton else "epoch"] for record in records])
            unit, tol = ("Newton step", tol) if newton else ("epoch", None)
            display = cls(steps, _values(records, "gap"), _values(records, "auc"), unit=unit, tol=tol)
        else:
            raise ValueError(f"{name} keeps no history of its fit, so there is no convergence to show.")
        keys = ("gap", "auc")
        display.gap, display.auc = (getattr(display, key) if key in panels else None for key in keys)
        if display.gap is None and display.auc is None:
            raise ValueError(
                f"This {name} did not record {' or '.join(panels)} during its fit, so there is no "
                'convergence to show. Use solver="newton", or SGDAUCClassifier with validation rows.'
            )
        return display.plot(axes=axes)

    def plot(self, *, axes: Sequence[Any] | None = None) -> ConvergenceDisplay:
        """Draw on ``axes``, one each for gap and auc if present, or on a new figure."""
        shown = {"gap": self.gap, "auc": self.auc}
        present = {key: values for key, values in shown.items() if values is not None}
        axes = _new_axes(len(present)) if axes is None else axes
        if len(axes) != len(present):
            raise ValueError(f"axes must hold {len(present)}, one per panel; it holds {len(axes)}.")
        self.axes_, self.figure_, self.lines_ = list(axes), axes[0].figure, []
        for (key, values), ax in zip(present.items(), axes, strict=True):
            # A gap is estimated at the start of a step, and the AUC is measured at its end.
            steps = self.steps - 1 if key == "gap" and self.unit == "Newton step" else self.steps
            for i, line in enumerate(values.T):
                seen = np.isfinite(line)
                label = self.labels[i] if self.labels else None
                self.lines_ += ax.plot(steps[seen], line[seen], marker="o", markersize=3, label=label)
            if key == "gap":
                self._annotate_gap(ax, steps, values)
            else:
                ax.set(ylabel="cross-validated AUC" if self.unit == "C" else "training AUC")
            if self.unit == "C":
                ax.set_xscale("log")
            elif len(steps) < 12:
                ax.set_xticks(steps)
            _add_grid_and_legend(ax)
        axes[-1].set_xlabel("C" if self.unit == "C" else f"{self.unit}s done")
        return self

    def _annotate_gap(self, ax: Any, steps: np.ndarray, gap: np.ndarray) -> None:
        # If a C converged, its last step leads from this distance to within tol.
        what = "before the last step" if self.unit == "C" else "to the minimum"
        ax.set(yscale="log", ylabel=f"distance {what}")
        if self.unit != "C" and self.tol is not None:
            ax.axhline(self.tol, color="grey", linestyle=":", label=f"tol = {self.tol:g}")
        if self.converged is not None and (rough := np.isfinite(gap) & ~self.converged).any():
            at, line = np.nonzero(rough)
            ax.plot(steps[at], gap[at, line], "kx", markersize=8, label="not converged")


@dataclass(eq=False, repr=False)
class LandmarkCoverageDisplay:
    """The distance of rows to their nearest landmark, as a cumulative share for each class.

    Distances are in bandwidths: ``1/sqrt(gamma)`` for the rbf kernel, alone or with another, and
    ``1/gamma`` for the laplacian. At a distance of 1 the kernel has fallen to 37 %, at 2 to 2 % (14 %
    for a laplacian). A second line shows the distances to a random half of the landmarks. If it lies
    far below, more landmarks may help; if both lines agree, they will not. A class with a lower line is
    covered less well; ``landmarks="class-kmeans"`` gives each class the same number of landmarks.

    Parameters
    ----------
    distances : array of shape (n,)
        To the nearest landmark, in bandwidths.
    half : array of shape (n,)
        To the nearest of a random half of the landmarks.
    classes : array of shape (n,), optional
        Each class has a line of its own.
    n_landmarks : int
    kernel : str

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of matplotlib Line2D
        For each class, with all landmarks and with half of them.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from aucmax import KernelAUCClassifier, LandmarkCoverageDisplay
    >>> X, y = make_moons(300, noise=0.3, random_state=0)
    >>> model = KernelAUCClassifier(n_landmarks=50, random_state=0).fit(X, y)
    >>> display = LandmarkCoverageDisplay.from_estimator(model, X, y, random_state=0)
    >>> bool((display.distances <= display.half).all())
    True
    """

    distances: np.ndarray
    half: np.ndarray
    classes: np.ndarray | None = None
    _: KW_ONLY
    n_landmarks: int
    kernel: str = "rbf"

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
        """Plot the coverage of the rows ``X``, or of ``max_rows`` of them, by the classes ``y``."""
        check_is_fitted(estimator)
        check_value("max_rows", max_rows, COUNT)
        feature_map = getattr(estimator, "feature_map_", None)
        if not isinstance(feature_map, NystroemFeatures) or feature_map.kernel not in RADIAL:
            raise ValueError(
                "Landmark coverage is for models with landmarks and a bandwidth: "
                f'feature_map="nystroem" and kernel={" or ".join(map(repr, RADIAL))}.'
            )
        X = check_rows(estimator, X, reset=False)
        if y is not None:
            check_labels(y)
        classes = None if y is None else np.asarray(y)
        if classes is not None and classes.shape != (X.shape[0],):
            raise ValueError(
                f"y has shape {classes.shape} for {X.shape[0]} rows of X: pass one label each."
            )
        random, drawn = random_generator(random_state), np.arange(X.shape[0])
        if X.shape[0] > max_rows:
            drawn = np.sort(random.choice(X.shape[0], max_rows, replace=False))
            X, classes = X[drawn], None if classes is None else classes[drawn]
        with np.errstate(over="ignore", invalid="ignore"):  # checked below
            rows = scale_rows(estimator.scaler_, as_rows(X))[:]
        rows = dense(rows).astype(np.float64)
        finite = np.isfinite(rows.sum(axis=1))
        if not finite.all():
            raise ValueError(
                f"row {drawn[finite.argmin()]} of X is too extreme for this model: leave it out."
            )
        landmarks, count = feature_map.landmarks_, len(feature_map.landmarks_)
        some = random.permutation(count)[: -(-count // 2)]
        every, half = (_nearest(rows, each, feature_map) for each in (landmarks, landmarks[some]))
        return cls(every, half, classes, n_landmarks=count, kernel=feature_map.kernel).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> LandmarkCoverageDisplay:
        """Draw on ``ax``, or on a new figure."""
        ax = _new_axes(1)[0] if ax is None else ax
        self.ax_, self.figure_, self.lines_ = ax, ax.figure, []
        groups: list[Any] = [None] if self.classes is None else list(np.unique(self.classes))
        for group in groups:
            mask = slice(None) if group is None else self.classes == group
            name = "rows" if group is None else f"{group}"
            line = ax.ecdf(self.distances[mask], label=f"{name}, {self.n_landmarks:,} landmarks")
            colour, label = line.get_color(), f"{name}, half of them"
            self.lines_ += [line, ax.ecdf(self.half[mask], color=colour, ls="--", label=label)]
        ax.set(
            xlabel="distance to the nearest landmark, in bandwidths", ylabel="share of rows within it"
        )
        ax.set(xlim=(0.0, None), ylim=(0.0, 1.01))
        _add_grid_and_legend(ax, loc="lower right")
        return self


def _new_axes(count: int) -> Sequence[Any]:
    """Make a figure of panels, one above the other."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError(f"Plots need matplotlib. Install it: {extra_command('plot')}") from None
    size = (6.4, 4.2 if count == 1 else 2.6 * count)
    return list(
        plt.subplots(count, figsize=size, layout="constrained", sharex=True, squeeze=False)[1][:, 0]
    )


def _add_grid_and_legend(ax: Any, **position: Any) -> None:
    ax.grid(alpha=0.3)
    if ax.get_legend_handles_labels()[1]:
        ax.legend(frameon=False, fontsize="small", **position)


def _values(records: Sequence[dict[str, Any]], key: str) -> np.ndarray | None:
    """Return the records' values (n, n_lines); None if a record lacks them."""
    if any(record.get(key) is None for record in records):
        return None
    return np.asarray([record[key] for record in records], dtype=np.float64).reshape(len(records), -1)


def _by_gamma(
    path: Sequence[dict[str, Any]], Cs: np.ndarray, gammas: Sequence[Any], key: str
) -> np.ndarray | None:
    """Return the path's values (n_Cs, n_gammas), NaN where it ended, and the worst gap of the folds."""
    cells: dict[tuple[int, int], list[float]] = {}
    for record in path:
        if record.get(key) is not None:
            at = int(np.abs(Cs - record["C"]).argmin()), gammas.index(record.get("gamma"))
            cells.setdefault(at, []).append(float(record[key]))
    combine: Any = {"gap": np.max, "auc": np.mean, "converged": np.min}[key]
    values = np.full((len(Cs), len(gammas)), np.nan)
    for at, numbers in cells.items():
        values[at] = combine(numbers)
    return values if cells else None


def _nearest(rows: np.ndarray, landmarks: np.ndarray, feature_map: NystroemFeatures) -> np.ndarray:
    """Return the distance of each row to the nearest landmark, in bandwidths."""
    from sklearn.metrics import pairwise_distances_argmin_min

    is_rbf = feature_map.kernel != "laplacian"
    metric, unit = (
        ("euclidean", np.sqrt(feature_map.gamma_)) if is_rbf else ("manhattan", feature_map.gamma_)
    )
    return pairwise_distances_argmin_min(rows, landmarks.astype(np.float64), metric=metric)[1] * unit
