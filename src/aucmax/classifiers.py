"""Classifiers that rank: the exact minimiser of the all-pairs AUC loss behind scikit-learn's API."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from aucmax._base import (
    FLOAT64_BYTES,
    LinearScores,
    WeightedClassifier,
    check_linear,
    draw_seed,
    plain,
    plain_records,
    scale_rows,
)
from aucmax._checks import check_choice, check_gamma, check_number, is_remote, is_sparse, warn_user
from aucmax._memory import check_fits, parse_bytes
from aucmax._progress import LiveLine, describe_epoch, describe_step
from aucmax._scaling import MetricScaler
from aucmax.features.fourier import FOURIER_KERNELS, FourierFeatures
from aucmax.features.kernels import KERNELS
from aucmax.features.landmarks import STRATEGIES
from aucmax.features.nystroem import AUTO_LANDMARKS, NystroemFeatures
from aucmax.operators import BlockOperator, FeatureOperator, Operator
from aucmax.pairs import PairLoss
from aucmax.plan import (
    EXPECTED_PASSES,
    TRIAL_ROWS,
    Plan,
    budget_bytes,
    open_operator,
    plan_fit,
    rate_of_rows,
    spilled_features,
)
from aucmax.rows import BlockedRows, held_bytes
from aucmax.solvers.epochs import run_epochs
from aucmax.solvers.newton import Solution, minimize
from aucmax.solvers.stochastic import PairSGD, first_step, mean_square
from aucmax.tuning import (
    SAMPLE_ROWS,
    WIDE_ROWS,
    Kernel,
    Sample,
    Settings,
    as_rounds,
    draw_sample,
    learn_rounds,
    mean_outer,
    most_landmarks,
    plain_rounds,
    too_few,
    tune,
)

__all__ = ["KernelAUCClassifier", "LinearAUCClassifier"]

#: What ``max_iter="auto"`` stands for: Newton steps, epochs.
MAX_STEPS = 100
EPOCHS = 20


class _NewtonClassifier(WeightedClassifier):
    """Classifiers whose columns truncated Newton solves together."""

    C: Any
    tol: float
    max_iter: int | str
    verbose: int
    _takes_blocks = True

    def _check_params(self) -> None:
        check_number("tol", self.tol, high=1.0)
        if self.max_iter != "auto":
            check_number("max_iter", self.max_iter, low=1, closed=True, integer=True)

    def _cost(self) -> float:
        """C, once it is settled."""
        return float(self.C)

    def _solve(self, operator: Operator, codes: np.ndarray, weight: np.ndarray) -> Solution:
        positives = self._positives(codes)
        losses = [PairLoss(positive, weight) for positive in positives]
        max_iter = MAX_STEPS if self.max_iter == "auto" else int(self.max_iter)
        with LiveLine(partial(describe_step, tol=self.tol)) as line:
            solution = minimize(
                operator,
                losses,
                np.full(len(losses), self._cost()),
                tol=self.tol,
                max_iter=max_iter,
                on_record=line if self.verbose else None,
                state=self._kept.recall("newton"),
                on_state=self._kept.hook("newton"),
            )
        self._set_thresholds(solution.scores, positives, weight)
        self.objective_ = plain(solution.objective)
        self.n_iter_ = solution.n_iter
        self.converged_ = bool(solution.converged.all())
        self.history_ = plain_records(solution.history)
        if not self.converged_:
            self._warn_early(solution, max_iter)
        return solution

    def _warn_early(self, solution: Solution, max_iter: int) -> None:
        worst = int(np.where(solution.converged, -np.inf, solution.gap).argmax())
        done = f"after {solution.n_iter} Newton steps about {solution.gap[worst]:.1e} (relative) from"
        if solution.n_iter >= max_iter:
            advice = f"raise max_iter={max_iter} or tol={self.tol:g}"
        else:
            advice = (
                f"rounding allows no further progress, so raise tol={self.tol:g} or lower "
                f"C={self._cost():g}"
            )
        warn_user(f"{type(self).__name__} stopped {done} the optimum: {advice}.", ConvergenceWarning)


def _scalings(X: Any) -> list[Any]:
    """What is worth trying on rows: as they are only if their columns are of one kind."""
    if is_sparse(X):
        return [True]
    spread = X.std(axis=0)
    spread = spread[spread > 0]
    alike = spread.size > 1 and spread.max() <= _ALIKE * spread.min()
    return [True, "quantile", False] if alike else [True, "quantile"]


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def linear_operator(X: Any) -> Operator:
    """Rows as features."""
    return BlockOperator(X, X.shape[1], cost=2.0) if isinstance(X, BlockedRows) else FeatureOperator(X)


#: What "auto" stands for where nothing is tried: in the paper, where it is not wanted, and where rows
#: are too few.
PAPER = Settings(10.0, "distance", 1600, "kmeans", True)
PLAIN = replace(PAPER, n_landmarks=AUTO_LANDMARKS)
UNTRIED = replace(PLAIN, landmarks="class-kmeans")

#: Kernels whose width can be tried out.
_TRIED_KERNELS = ("rbf", "laplacian")

#: Columns whose deviations are within this factor may be in one unit, as pixels or indicators are.
_ALIKE = 100.0

#: Rows of each class at which it is measured how well landmarks cover it.
_COVERED_ROWS = 500

#: A full metric is a matrix of columns by columns.
_MOST_COLUMNS_FULL = 2000


class KernelScores:
    """Scores over a kernel map: its parameters checked and settled, the map made, rows in its dtype."""

    kernel: str
    gamma: str | float
    degree: int
    coef0: float
    n_landmarks: int | str
    landmarks: Any
    metric: str | None
    preset: str | None
    effort: float
    standardize: Any
    scaler_: Any
    classes_: np.ndarray
    feature_map: str
    max_memory: int | str | None
    random_state: Any
    verbose: int
    feature_map_: NystroemFeatures | FourierFeatures
    coef_: np.ndarray

    _takes_dask = True

    def _check_map(self) -> None:
        check_choice("feature_map", self.feature_map, ("nystroem", "fourier"))
        check_choice("kernel", self.kernel, KERNELS)
        if self.feature_map == "fourier" and self.kernel not in FOURIER_KERNELS:
            raise ValueError(
                f'feature_map="fourier" knows the kernels {FOURIER_KERNELS}; got kernel='
                f'{self.kernel!r}. Use feature_map="nystroem" for it.'
            )
        if self.n_landmarks != "auto":
            check_number("n_landmarks", self.n_landmarks, low=1, closed=True, integer=True)
        if not _is_auto(self.gamma):
            check_gamma(self.gamma)
        if self.max_memory is not None:
            parse_bytes(self.max_memory)
        strategies = (*STRATEGIES, "auto")
        if isinstance(self.landmarks, str):
            check_choice("landmarks", self.landmarks, strategies)
        elif np.ndim(self.landmarks) != 2:
            raise ValueError(
                f"landmarks must be one of {strategies} or a dense array of shape (v, d); "
                f"got {self.landmarks!r}."
            )
        check_number("effort", self.effort)
        for name, known in (("preset", ("paper",)), ("metric", ("auto", "learned", "full"))):
            if getattr(self, name) is not None:
                check_choice(name, getattr(self, name), known)
        if self.standardize not in (True, False):
            check_choice("standardize", self.standardize, ("auto", "quantile"))
        if self.metric in ("learned", "full"):
            self._check_metric(self.metric)

    def _check_metric(self, metric: str) -> None:
        for name, wanted in (("feature_map", ("nystroem",)), ("kernel", _TRIED_KERNELS)):
            if getattr(self, name) not in wanted:
                raise ValueError(
                    f"metric={metric!r} is learnt for {name}={' or '.join(map(repr, wanted))}; got "
                    f"{name}={getattr(self, name)!r}. Leave metric None."
                )
        if not isinstance(self.landmarks, str):
            raise ValueError(
                f"metric={metric!r} moves the landmarks, so they cannot be given: use "
                'landmarks="auto", or leave metric None.'
            )

    def _asked(self) -> Settings:
        """What the parameters settle."""
        names = ("C", "gamma", "n_landmarks", "landmarks", "standardize")
        given: Any = {name: getattr(self, name, "auto") for name in names}
        return Settings(**{name: None if _is_auto(value) else value for name, value in given.items()})

    def _settle(self, X: Any, codes: np.ndarray, weight: np.ndarray) -> None:
        """Find out what is left open: ``settings_`` and ``metric_``, ``trials_`` if any were made."""
        found, self.trials_, self._rounds = self._kept.once(  # type: ignore[attr-defined]
            "settings", lambda: self._find_settings(X, codes, weight)
        )
        self.settings_ = {name: value for name, value in found.items() if name != "metric"}
        self.metric_ = found["metric"]

    def _find_settings(
        self, X: Any, codes: np.ndarray, weight: np.ndarray
    ) -> tuple[dict[str, Any], list[dict[str, Any]], list[list[float]]]:
        """As plain data: the settings, what was tried, and the rounds of the metric."""
        asked, metric = self._asked(), self._metric_kind(X)
        if not self._can_try() or not self._leaves_open(asked, metric):
            return vars(asked.filled(PLAIN if self.preset is None else PAPER)), [], []
        why = too_few(codes, self._room(X))
        if why is not None:
            self._tell_untried(why)
            return vars(asked.filled(UNTRIED)), [], []
        seed = draw_seed(self.random_state)
        sample = self._trial_sample(X, codes, weight, seed)
        many = len(sample.folds) == 1 and codes.size >= 2 * len(sample.codes)
        settings, trials, rounds = tune(
            sample,
            asked,
            self._trial_kernel(),
            metric=metric,
            seed=seed,
            most_landmarks=most_landmarks(X.shape[0], X.shape[1], self.effort),
            widen=partial(self._wide_sample, X, codes, weight, seed) if many else None,
            say=self._say,
        )
        return vars(settings), trials, plain_rounds(rounds)

    def _learn_again(self, X: Any, codes: np.ndarray, weight: np.ndarray) -> np.ndarray | None:
        """The metric that rows would have with what was found, by as many rounds."""
        settings = Settings(**self.settings_)
        seed, kind = draw_seed(self.random_state), self._metric_kind(X)
        sample = self._trial_sample(X, codes, weight, seed, [settings.standardize])
        rounds = as_rounds(self._rounds)
        return learn_rounds(sample, settings, rounds, str(kind), self._trial_kernel(), seed)

    def _trial_kernel(self) -> Kernel:
        given = not _is_auto(self.gamma)
        rule = self.gamma if given else "distance"
        return Kernel(self.kernel, rule, given, self.degree, self.coef0)

    def _trial_sample(
        self,
        X: Any,
        codes: np.ndarray,
        weight: np.ndarray,
        seed: int,
        scalings: list[Any] | None = None,
        most_rows: int = SAMPLE_ROWS,
    ) -> Sample:
        rows, folds = draw_sample(codes, np.random.default_rng(seed), self._room(X), most_rows)
        part, own, u = X[rows], codes[rows], weight[rows]
        if scalings is None:
            scalings = [self.standardize]
            if _is_auto(self.standardize):  # landmarks that are given are in standardised units
                scalings = _scalings(part) if isinstance(self.landmarks, str) else [True]
        # Rows of the sample stand for all of their class.
        stand_for = u * (np.bincount(codes, weight) / np.bincount(own, u))[own]
        scaled = {each: self._trial_rows(part, stand_for, each) for each in scalings}
        positives = self._positives(own)  # type: ignore[attr-defined]
        return Sample(scaled, own, u, positives, folds, self._room(X))

    def _wide_sample(
        self, X: Any, codes: np.ndarray, weight: np.ndarray, seed: int, standardize: Any
    ) -> Sample:
        return self._trial_sample(X, codes, weight, seed, [standardize], WIDE_ROWS)

    def _room(self, X: Any) -> float:
        """Bytes for trials: half of what rows leave."""
        return max(0.0, 0.5 * (budget_bytes(self.max_memory) - (0 if is_remote(X) else held_bytes(X))))

    def _trial_rows(self, X: Any, weight: np.ndarray, standardize: Any) -> Any:
        scaler = self._fit_scaler(X, weight, standardize)
        return scale_rows(scaler, X).astype(np.float32, copy=False)

    def _leaves_open(self, asked: Settings, metric: str | None) -> bool:
        return metric is not None or not asked.complete

    def _can_try(self) -> bool:
        """Whether trials are wanted, and known for this kind of machine."""
        return (
            self.preset is None
            and self.solver == "newton"  # type: ignore[attr-defined]
            and self.feature_map == "nystroem"
            and self.kernel in _TRIED_KERNELS
        )

    def _metric_kind(self, X: Any) -> str | None:
        if self.metric == "full":
            if is_remote(X) or X.shape[1] > _MOST_COLUMNS_FULL or getattr(X, "format", "") == "csr":
                raise ValueError(
                    f'metric="full" is for dense rows of up to {_MOST_COLUMNS_FULL} columns on this '
                    'machine: use metric="learned", which stretches columns.'
                )
            return "full"
        if self.metric is None or self.preset is not None or not isinstance(self.landmarks, str):
            return None
        return "diagonal"

    def _tell_untried(self, why: str) -> None:
        text = f'Nothing is tried out for "auto", and no metric learnt: {why}.'
        if self.metric in ("learned", "full"):
            warn_user(text)
        else:
            self._say(text)

    def _say(self, text: str) -> None:
        if self.verbose:
            print(text, file=sys.stderr)

    def _scaling(self) -> Any:
        return self._settled()["standardize"]

    def _settled(self) -> dict[str, Any]:
        """The settings found, or before a fit what they are at most likely to be."""
        if hasattr(self, "settings_"):
            return self.settings_
        return vars(self._asked().filled(UNTRIED if self.preset is None else PAPER))

    def _new_scaler(self, X: Any, standardize: Any = None) -> Any:
        scaler = super()._new_scaler(X, standardize)  # type: ignore[misc]
        if standardize is not None or self.metric_ is None:
            return scaler
        return MetricScaler(scaler if self._scaling() else None, None)

    def _fit_scaler(self, X: Any, weight: np.ndarray, standardize: Any = None) -> Any:
        if standardize is not None or self.metric_ is None:
            return super()._fit_scaler(X, weight, standardize)  # type: ignore[misc]
        plain = super()._fit_scaler(X, weight, self._scaling())  # type: ignore[misc]
        return MetricScaler(plain, self.metric_)

    def _make_map(self, n_rows: int | None = None) -> NystroemFeatures | FourierFeatures:
        """The map, unfitted, for so many rows."""
        settled = self._settled()
        count = int(settled["n_landmarks"])
        if self.feature_map == "fourier":
            made: Any = FourierFeatures(
                count, kernel=self.kernel, gamma=settled["gamma"], random_state=self.random_state
            )
        else:
            if self.n_landmarks == "auto" and n_rows is not None:
                count = min(count, n_rows)  # more than that is worth a warning if they were asked for
            made = NystroemFeatures(
                count,
                landmarks=settled["landmarks"],
                kernel=self.kernel,
                gamma=settled["gamma"],
                degree=self.degree,
                coef0=self.coef0,
                random_state=self.random_state,
                verbose=self.verbose,
            )
        return made.set_output(transform="default")

    def _block_rows(self, X: Any) -> Any:
        """Rows in the dtype of kernel values; refused if not even the landmarks fit."""
        n_rows, width = X.shape[0], self._width(X.shape[0])
        if n_rows * width * 8 > FLOAT64_BYTES:
            X = X.astype(np.float32, copy=False)
        # They are dense, whatever the rows are, which counts where there are very many columns.
        what = f"{width:,} landmarks of {X.shape[1]:,} columns"
        check_fits(what, self._landmark_bytes(width, X.shape[1]), self.max_memory)
        return X

    def _landmark_bytes(self, n_landmarks: int, n_features: int) -> int:
        """Landmarks with their copies in float64, and matrices between them."""
        between = 0 if self.feature_map == "fourier" else n_landmarks
        return 24 * n_landmarks * (n_features + between)

    @contextmanager
    def _operator(
        self,
        X: Any,
        mapped: NystroemFeatures | FourierFeatures,
        n_columns: int,
        raw: np.ndarray | None = None,
        project: bool = False,
    ) -> Iterator[Operator]:
        """Rows under a fitted map, as a solver sees them: where the memory allowed has room."""
        if is_remote(X):
            operator, self.place_ = X.operator(mapped, n_columns, self.max_memory, project)
            yield operator
            return
        plan = self._plan(X, mapped, n_columns, project, measure=bool(self.verbose))
        self.place_ = plan.place.name
        if self.verbose:
            print(plan, file=sys.stderr)
        with open_operator(X, mapped, plan, raw) as operator:
            yield operator

    def _plan(self, X: Any, mapped: Any, n_columns: int, project: bool, measure: bool) -> Plan:
        return plan_fit(
            X.shape[0],
            mapped.width,
            lambda: rate_of_rows(mapped.filler(X.dtype), X[:TRIAL_ROWS], mapped.width),
            rank=mapped.rank,
            itemsize=X.dtype.itemsize,
            n_columns=n_columns,
            held=held_bytes(X) + self._landmark_bytes(mapped.width, X.shape[1]),
            max_memory=self.max_memory,
            project=project,
            measure=measure,
            passes=self._expected_passes(),
        )

    def plan(self, X: Any) -> Plan:
        """What a fit to these rows would keep where, and how long it would take, without the fit.

        A map with landmarks at random stands for the one to come.
        """
        X = self._block_rows(X)
        made = self._make_map().set_params(random_state=0)
        if self.feature_map == "nystroem" and isinstance(self.landmarks, str):
            made.set_params(landmarks="uniform")
        mapped = made.fit(X[: max(TRIAL_ROWS, 2 * self._width(X.shape[0]))])
        return self._plan(X, mapped, self._columns_together(), False, measure=True)

    def _columns_together(self) -> int:
        """Columns that are solved together, of two classes."""
        return 1

    def _expected_passes(self) -> int:
        return EXPECTED_PASSES

    @contextmanager
    def _features(
        self, X: Any, mapped: NystroemFeatures | FourierFeatures, raw: np.ndarray | None = None
    ) -> Iterator[np.ndarray]:
        """Features of all rows, for epochs that jump about in them: in memory, or in a mapped file."""
        left = budget_bytes(self.max_memory) - held_bytes(X)
        if X.shape[0] * mapped.rank * X.dtype.itemsize <= left:
            self.place_ = "projected"
            yield mapped.features(X, raw)
        else:
            self.place_ = "disk"
            with spilled_features(X, mapped) as features:
                yield features

    def _width(self, n_rows: int) -> int:
        settled = self._settled()
        if self.feature_map == "fourier":
            return int(settled["n_landmarks"])
        if isinstance(settled["landmarks"], str):
            return min(int(settled["n_landmarks"]), n_rows)
        return len(settled["landmarks"])

    def _measure_coverage(self, X: Any, codes: np.ndarray) -> None:
        """How well the landmarks cover each class, at some of its rows."""
        if not isinstance(self.feature_map_, NystroemFeatures):
            return
        found = []
        for code in range(self.classes_.size):
            rows = np.flatnonzero(codes == code)
            some = rows[:: -(-rows.size // _COVERED_ROWS)]
            found.append(float(self.feature_map_.coverage(X[some]).mean()))
        self.coverage_ = np.array(found)

    @property
    def feature_importances_(self) -> np.ndarray:
        """How steeply the score changes with each column: shares of the mean squared gradient.

        At the landmarks, which are training rows, by one standard deviation of a column each; see
        ``aucmax.importance`` for other rows, and for errors.
        """
        if not isinstance(getattr(self, "feature_map_", None), NystroemFeatures):
            raise AttributeError(
                f"{type(self).__name__} has feature_importances_ once it is fitted, with landmarks."
            )
        points = self.feature_map_.landmarks_.astype(np.float64)
        steep = mean_outer(self.feature_map_.gradients(points, self.coef_), "diagonal", self.metric_)
        if not self._scaling():
            rows = points if self.scaler_ is None else self.scaler_.inverse_transform(points)
            steep = steep * rows.var(axis=0)
        return steep / steep.sum() if steep.any() else steep

    def _scores(self, X: Any) -> np.ndarray:
        X = self._scaled(X).astype(self.feature_map_.dtype, copy=False)  # type: ignore[attr-defined]
        return self.feature_map_.linear(X, self.coef_.T)


class KernelAUCClassifier(KernelScores, _NewtonClassifier):
    """Nonlinear classifier that minimises the exact AUC loss over all positive-negative pairs.

    Rows are standardised and mapped to kernel features ``phi``; the solver finds the minimiser of ::

        1/2 ||w||^2 + C n/(n_pos n_neg) sum_{i in +, j in -} max(0, 1 - w.(phi_i - phi_j))^2

    in time that does not depend on the number of pairs. With ``n_landmarks=1600`` this is NBAUC of
    Khalid, Ray and Chitsaz (2018); with ``feature_map="fourier"`` it is their RFAUC.

    Parameters
    ----------
    C : float or "auto", default="auto"
        Weight of the loss against the penalty, per average row, so that one value carries across
        data sizes. The best was 1 to 130 on the paper's data.
    preset : {"paper"} or None, default=None
        What "auto" stands for. None tries things out on a sample of the rows, part of them held out
        (see Notes). "paper" takes the settings of Khalid, Ray and Chitsaz: 1600 landmarks by k-means,
        the distance rule, standardised columns, no metric; and C=10, which they search for.
    effort : float, default=1.0
        How much work may come out for "auto": 1 is landmarks for about a minute on two cores, 4 for
        four. It is reckoned, not timed: the same data gives the same model on any machine.
    kernel : {"rbf", "laplacian", "polynomial", "linear"}, default="rbf"
        Things are tried out for the first two; with the others "auto" is as in the paper, but for
        1000 landmarks.
    gamma : {"auto", "distance", "scale"} or float, default="auto"
        Bandwidth of the kernel on the standardised rows; see :class:`NystroemFeatures`.
    degree, coef0 : int, float, default=3, 1.0
        Of the polynomial kernel.
    n_landmarks : int or "auto", default="auto"
        Landmarks (or Fourier features). "auto" is 1000, or more where that ranks held-out rows better;
        or every row if there are fewer.
    landmarks : {"auto", "kmeans", "class-kmeans", "root-kmeans", "uniform"} or array, default="auto"
        How they are chosen; an array is in units of standardised rows. "auto" is "class-kmeans" unless
        another is better.
    metric : {"auto", "learned", "full"} or None, default="auto"
        Whether columns are stretched by how steeply the learnt score changes with them, and the
        machine fitted anew, for up to three rounds; each is kept only if it ranks held-out rows better
        beyond noise. "auto" and "learned" stretch columns ("learned" warns where it cannot), "full"
        stretches in any direction, None does not.
    feature_map : {"nystroem", "fourier"}, default="nystroem"
        With "fourier" "auto" is as with other kernels.
    solver : {"newton", "sgd"}, default="newton"
        "newton" finds the minimum. "sgd" is the paper's Algorithm 3 with its hinge loss, as in
        :class:`SGDAUCClassifier` with its defaults: less exact, and faster where rows are many and C
        is large. It projects the features, block by block; "auto" is as with other kernels.
    standardize : {"auto", "quantile"} or bool, default="auto"
        True scales columns to unit variance and, unless ``X`` is sparse, to zero mean; "quantile"
        brings them to normal scores by rank, which helps where they have long tails; False leaves them
        as they are, which may help where they are all of one kind. "auto" is the best of the three.
    tol : float, default=1e-4
        Relative distance to the minimum, estimated by the Newton decrement, at which to stop.
    max_iter : int or "auto", default="auto"
        Most Newton steps, or epochs of "sgd". "auto" is 100 steps, or 20 epochs.
    max_memory : int, str or None, default=None
        Memory that a fit may use, in bytes or as "4GB"; None is four fifths of what is free. Kernel
        values that do not fit are made anew in every pass or kept on disk, whichever is faster by
        measurement; the minimum is the same. Of Dask collections it bounds what all workers hold.
    checkpoint : path or None, default=None
        A file that keeps what the fit has reached, written after each Newton step or epoch, though
        for no more than a twentieth of the time. A fit of the same data and parameters goes on from
        it; one of others refuses it. It is removed when the fit is done.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 shows a live line: objective, estimated distance to the optimum, training AUC.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Sorted; of two, the second is the positive one.
    settings_ : dict
        What was used for C, gamma, n_landmarks, landmarks and standardize.
    metric_ : array of shape (d,) or (d, d), or None
        What standardised columns, or rows, are multiplied with; part of ``scaler_``.
    trials_ : list of dict
        What was tried: the AUC on held-out rows, with which C and multiple of the distance rule, and
        whether it was kept.
    feature_importances_ : array of shape (d,)
    coverage_ : array of shape (n_classes,)
        How well the landmarks cover each class: the mean share of ``k(x, x)`` that features keep, of
        which 1 is all. A class far below the other wants ``landmarks="class-kmeans"`` or more of them;
        :class:`LandmarkCoverageDisplay` shows distances.
    feature_map_ : NystroemFeatures or FourierFeatures
    scaler_ : StandardScaler, or one of this package's, or None
    coef_ : array of shape (n_columns, n_landmarks)
        Weights over landmarks (or Fourier features); one column for two classes, else one per class.
    intercept_ : array of shape (n_columns,)
        Less the learnt threshold.
    place_ : {"memory", "projected", "disk", "recomputed"}
        Where kernel values were kept: all of them, or features made of them, in memory; in a temporary
        file; or nowhere, made anew in every pass. Of Dask collections, on the workers.
    objective_ : float, or one per class
        With "newton".
    history_ : list of dict
        One per Newton step: objective, gap, auc, step, products, passes, seconds and so on; or one
        per epoch.
    n_iter_ : int
    converged_ : bool
        With "newton".

    Notes
    -----
    Kernel values are held in float32 (n x n_landmarks x 4 bytes) unless the problem is small and the
    data float64. ``score`` is accuracy, as in all of scikit-learn; to search or validate by ranking
    pass ``scoring="roc_auc"``.

    What is left at "auto" is tried out on up to 20,000 rows, of which a third is held out, or each
    third in its turn where a class is small; C, gamma and the number of landmarks once more on up to
    80,000 rows where there are many. :mod:`aucmax.tuning` tells what, in which order, and when it is
    kept. With fewer than 100 rows, or 10 of a class, nothing is: C is 10, gamma the distance
    rule, with landmarks of each class.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from aucmax import KernelAUCClassifier
    >>> from aucmax.metrics import roc_auc
    >>> X, y = make_circles(400, noise=0.1, factor=0.6, random_state=0)
    >>> model = KernelAUCClassifier(random_state=0).fit(X, y)
    >>> roc_auc(y, model.decision_function(X)) > 0.99
    True
    """

    def __init__(
        self,
        C: float | str = "auto",
        *,
        preset: str | None = None,
        effort: float = 1.0,
        kernel: str = "rbf",
        gamma: str | float = "auto",
        degree: int = 3,
        coef0: float = 1.0,
        n_landmarks: int | str = "auto",
        landmarks: Any = "auto",
        metric: str | None = "auto",
        feature_map: str = "nystroem",
        solver: str = "newton",
        standardize: bool | str = "auto",
        tol: float = 1e-4,
        max_iter: int | str = "auto",
        max_memory: int | str | None = None,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.preset = preset
        self.effort = effort
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.metric = metric
        self.feature_map = feature_map
        self.solver = solver
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.max_memory = max_memory
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def _check_params(self) -> None:
        super()._check_params()
        if not _is_auto(self.C):
            check_number("C", self.C)
        check_choice("solver", self.solver, ("newton", "sgd"))
        self._check_map()

    def _fit_columns(self, X: Any, codes: np.ndarray, weight: np.ndarray, **_: Any) -> None:
        X = self._block_rows(X)
        self.feature_map_ = self._kept.fitted(
            "map",
            lambda: self._make_map(X.shape[0]).fit(X, codes, sample_weight=weight),
            self._make_map,
        )
        self._measure_coverage(X, codes)
        if self.verbose and hasattr(self, "coverage_"):
            shares = zip(self.coverage_, self.classes_.tolist(), strict=True)
            told = ", ".join(f"{share:.2f} of {label!r}" for share, label in shares)
            self._say(f"The landmarks keep {told}")
        if self.solver == "sgd":
            with self._features(X, self.feature_map_) as features:
                coef = self._descend(features, codes, weight)
        else:
            n_columns = len(self._positives(codes))
            with self._operator(X, self.feature_map_, n_columns) as operator:
                coef = self._solve(operator, codes, weight).coef
        self.coef_ = self.feature_map_.fold(coef).T

    def _cost(self) -> float:
        return float(self.settings_["C"])

    def _descend(self, features: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
        positives = self._positives(codes)
        make = partial(
            PairSGD,
            features.shape[1],
            features.dtype,
            alpha=1.0 / (self._cost() * weight.sum()),
            eta0=first_step(mean_square(features)),
        )
        seed = self._kept.once("seed", lambda: draw_seed(self.random_state))
        epochs = EPOCHS if self.max_iter == "auto" else int(self.max_iter)
        with LiveLine(partial(describe_epoch, epochs=epochs)) as line:
            coef, _, history = run_epochs(
                [make() for _ in positives],
                features,
                positives,
                weight,
                np.random.default_rng(seed),
                epochs,
                on_record=line if self.verbose else None,
                state=self._kept.recall("epochs"),
                on_state=self._kept.hook("epochs"),
            )
        self._set_thresholds(FeatureOperator(features).scores(coef), positives, weight)
        self.history_, self.n_iter_ = plain_records(history), len(history)
        return coef


class LinearAUCClassifier(LinearScores, _NewtonClassifier):
    """Linear classifier that minimises the exact AUC loss: a ranking head for any features.

    The objective is that of :class:`KernelAUCClassifier` on the (standardised) features themselves;
    in the paper this is Linear RankSVM.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the penalty, per average row.
    standardize : bool, default=True
        Scale features to unit variance and, unless ``X`` is sparse, to zero mean.
    tol, max_iter, checkpoint, verbose
        As in :class:`KernelAUCClassifier`.

    Attributes
    ----------
    coef_ : array of shape (n_columns, n_features)
        In the units of ``X``: ``decision_function`` is ``X @ coef_.T + intercept_``.
    intercept_ : array of shape (n_columns,)
    classes_, scaler_, objective_, history_, n_iter_, converged_
        As in :class:`KernelAUCClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucmax import LinearAUCClassifier
    >>> from aucmax.metrics import roc_auc
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearAUCClassifier().fit(X, y)
    >>> roc_auc(y, model.decision_function(X)) > 0.995
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        standardize: bool = True,
        tol: float = 1e-4,
        max_iter: int = 100,
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.checkpoint = checkpoint
        self.verbose = verbose

    def _check_params(self) -> None:
        super()._check_params()
        check_number("C", self.C)
        check_linear(self.standardize)

    def _fit_columns(self, X: Any, codes: np.ndarray, weight: np.ndarray, **_: Any) -> None:
        self._set_coef(self._solve(linear_operator(X), codes, weight).coef)
