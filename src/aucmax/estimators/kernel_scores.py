"""Shared by all kernel classifiers: parameters checked and tuned, the map built, rows scored."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from aucmax.estimators.ranking import FLOAT64_BYTES
from aucmax.features.fourier import FOURIER_KERNELS, FourierFeatures
from aucmax.features.kernels import BOTH, LANDMARK_KERNELS, RADIAL
from aucmax.features.landmarks import STRATEGIES
from aucmax.features.nystroem import AUTO_LANDMARKS, NystroemFeatures
from aucmax.features.scalers import MetricScaler
from aucmax.fitting.context import Context
from aucmax.fitting.scaling import Scaling, fit_scaler, scale_rows
from aucmax.operators import Operator
from aucmax.operators.placement import (
    EXPECTED_PASSES,
    TRIAL_ROWS,
    Plan,
    budget_bytes,
    open_operator,
    plan_fit,
    rate_of_rows,
    spilled_features,
)
from aucmax.rows.blocked import held_bytes
from aucmax.rows.content_order import content_order
from aucmax.rows.validation import is_elsewhere, is_remote, is_sparse
from aucmax.runtime.deadline import Deadline, OutOfTimeError
from aucmax.runtime.memory import check_fits, parse_bytes
from aucmax.runtime.parameters import (
    check_choice,
    check_gamma,
    check_number,
    is_auto,
    is_flag,
    warn_user,
)
from aucmax.tuning import (
    MOST_TRIED,
    WIDE_ROWS,
    Kernel,
    Round,
    Sample,
    Settings,
    as_rounds,
    draw_sample,
    first_landmarks,
    learn_rounds,
    mean_outer,
    most_landmarks,
    plain_rounds,
    rows_within,
    sample_rows,
    too_few,
    tune,
    tuning_seconds,
)

#: What "auto" stands for where nothing is tried: in the paper, where it is not wanted, and where rows
#: are too few.
PAPER = Settings(10.0, "distance", 1600, "kmeans", True, "rbf")
PLAIN = replace(PAPER, n_landmarks=AUTO_LANDMARKS)
UNTRIED = replace(PLAIN, landmarks="class-kmeans")

#: Kernels whose width can be tried out.
_TRIED_KERNELS = ("auto", *RADIAL)

#: Columns whose deviations are within this factor may be in one unit, as pixels or indicators are.
_ALIKE = 100.0

#: Rows of each class at which it is measured how well landmarks cover it.
_COVERED_ROWS = 500

#: Seconds of a time budget that allow for an effort of 1: half of them for trials, half for the fit.
_SECONDS_OF_EFFORT = 120.0
_TUNING_SHARE = 0.5

#: The fewest landmarks that a short time budget leaves.
_LEAST_LANDMARKS = 50

#: Below this effort little is tried.
_BRIEF = 0.5

#: A full metric is a matrix of columns by columns.
_MOST_COLUMNS_FULL = 2000


def _scalings(X: Any) -> list[Any]:
    """What is worth trying on rows: as they are only if their columns are of one kind."""
    if is_sparse(X):
        return [True]
    spread = X.std(axis=0)
    spread = spread[spread > 0]
    alike = spread.size > 1 and spread.max() <= _ALIKE * spread.min()
    alike = alike and _fits_float32(X)
    return [True, "quantile", False] if alike else [True, "quantile"]


def _fits_float32(X: Any) -> bool:
    """Whether squares of distances between rows neither overflow nor vanish in float32."""
    size = float(np.abs(X).max()) if not is_sparse(X) else float(np.abs(X.data).max(initial=0.0))
    return size == 0.0 or 2.0**-50 < size < 2.0**50


def _dense_columns(X: Any) -> int:
    """Columns whose values are all held; of CSR rows only few are."""
    return 0 if is_sparse(X) else int(X.shape[1])


def gradient_shares(gradients: Sequence[np.ndarray], points: np.ndarray, scaler: Any) -> np.ndarray:
    """Each column's share of the mean squared gradient of the score, per standard deviation.

    ``gradients`` are those at ``points``, which ``scaler`` made of rows.
    """
    metric = scaler.metric if isinstance(scaler, MetricScaler) else None
    steep = mean_outer(gradients, "diagonal", metric)
    if (scaler.scaler if isinstance(scaler, MetricScaler) else scaler) is None:
        rows = points if scaler is None else scaler.inverse_transform(points)
        steep = steep * rows.var(axis=0)
    return steep / steep.sum() if steep.any() else steep


def _affordable(n_rows: int, deadline: Deadline, seconds_per_value: float) -> int:
    """The most landmarks whose fit ends in time on this machine as busy as it is.

    A fit to all rows takes about as long for a kernel value as a search over C and gamma in the trials
    does; half of the time is left for what goes wrong.
    """
    if not seconds_per_value:
        return AUTO_LANDMARKS
    count = 0.5 * deadline.left() / (seconds_per_value * n_rows)
    return int(max(_LEAST_LANDMARKS, min(count, MOST_TRIED)))


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
    time_budget: float | None
    random_state: Any
    verbose: int
    feature_map_: NystroemFeatures | FourierFeatures
    dual_coef_: np.ndarray

    _takes_dask = True

    def _check_map(self) -> None:
        check_choice("feature_map", self.feature_map, ("nystroem", "fourier"))
        check_choice("kernel", self.kernel, ("auto", *LANDMARK_KERNELS))
        check_number("degree", self.degree, low=1, closed=True, high=1000, integer=True)
        check_number("coef0", self.coef0, closed=True)
        if self.feature_map == "fourier" and self.kernel not in ("auto", *FOURIER_KERNELS):
            raise ValueError(
                f'feature_map="fourier" knows the kernels {FOURIER_KERNELS}; got kernel='
                f'{self.kernel!r}. Use feature_map="nystroem" for it.'
            )
        if not is_auto(self.n_landmarks):
            check_number("n_landmarks", self.n_landmarks, low=1, closed=True, integer=True)
        if not is_auto(self.gamma):
            check_gamma(self.gamma)
        if self.max_memory is not None:
            parse_bytes(self.max_memory)
        strategies = (*STRATEGIES, "auto")
        if isinstance(self.landmarks, str):
            check_choice("landmarks", self.landmarks, strategies)
        elif not _is_table(self.landmarks):
            raise ValueError(
                f"landmarks must be one of {strategies} or a dense array of shape (v, d); "
                f"got {self.landmarks!r}."
            )
        check_number("effort", self.effort)
        for name, known in (("preset", ("paper",)), ("metric", ("auto", "learned", "full"))):
            if getattr(self, name) is not None:
                check_choice(name, getattr(self, name), known)
        if not is_flag(self.standardize):
            check_choice("standardize", self.standardize, ("auto", "quantile"))
        if self.metric in ("learned", "full"):
            self._check_metric(self.metric)

    def _check_metric(self, metric: str) -> None:
        for name, wanted in (("feature_map", ("nystroem",)), ("kernel", RADIAL)):
            if getattr(self, name) not in ("auto", *wanted):
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
        names = ("C", "gamma", "n_landmarks", "landmarks", "standardize", "kernel")
        given: Any = {name: getattr(self, name, "auto") for name in names}
        if self.feature_map == "nystroem" and not isinstance(self.landmarks, str):
            given["n_landmarks"] = len(self.landmarks)
        return Settings(**{name: None if is_auto(value) else value for name, value in given.items()})

    def _settle(
        self, X: Any, codes: np.ndarray, weight: np.ndarray, context: Context
    ) -> dict[str, Any]:
        """Tune what is left at "auto": ``settings_``, ``metric_``, and ``trials_`` if any were made.

        The rounds by which the metric was learnt are returned, for folds that learn their own.
        """
        found, self.trials_, rounds = context.checkpoint.once(
            "settings", lambda: self._find_settings(X, codes, weight, context)
        )
        self.settings_ = {name: value for name, value in found.items() if name != "metric"}
        self.metric_ = found["metric"]
        return {"rounds": as_rounds(rounds)}

    def _find_settings(
        self, X: Any, codes: np.ndarray, weight: np.ndarray, context: Context
    ) -> tuple[dict[str, Any], list[dict[str, Any]], list[list[float]]]:
        """As plain data: the settings, what was tried, and the rounds of the metric."""
        asked, metric = self._asked(), self._metric_kind(X)
        if not self._can_try() or not self._leaves_open(asked, metric):
            return vars(asked.filled(PLAIN if self.preset is None else PAPER)), [], []
        why = too_few(codes, self._room(X), _dense_columns(X))
        if why is not None:
            self._report_untried(why, context)
            return vars(asked.filled(UNTRIED)), [], []
        seed, effort = context.seed, self._effort()
        sample = self._trial_sample(X, codes, weight, seed)
        wide = rows_within(codes, self._room(X), _dense_columns(X), WIDE_ROWS)
        many = len(sample.folds) == 1 and wide >= 2 * len(sample.codes)
        most = most_landmarks(X.shape[0], X.shape[1], effort)
        try:
            settings, trials, rounds = tune(
                sample,
                asked,
                self._trial_kernel(),
                metric=metric,
                seed=seed,
                most_landmarks=most,
                most_with_second=self._most_with_second(X),
                first_landmarks=first_landmarks(effort),
                brief=effort < _BRIEF,
                widen=partial(self._wide_sample, X, codes, weight, seed) if many else None,
                say=context.say,
                deadline=context.deadline.part(_TUNING_SHARE),
                affordable=partial(_affordable, X.shape[0], context.deadline)
                if context.deadline.limited
                else None,
            )
        except OutOfTimeError:
            warn_user(
                f'time_budget={self.time_budget:g} s leaves no time to tune what is "auto": the '
                "settings for very few rows are used. Allow more time, or set C and gamma."
            )
            few = replace(UNTRIED, n_landmarks=_LEAST_LANDMARKS)
            return vars(asked.filled(few)), [], []
        return vars(settings), trials, plain_rounds(rounds)

    def _effort(self) -> float:
        """The effort asked for, or what the time budget allows if that is less."""
        if self.time_budget is None:
            return self.effort
        return min(self.effort, self.time_budget / _SECONDS_OF_EFFORT)

    def _learn_again(
        self, X: Any, codes: np.ndarray, weight: np.ndarray, rounds: Sequence[Round], seed: int
    ) -> np.ndarray | None:
        """The metric of these rows, learnt with the settings found, by as many rounds."""
        # The rounds are the rbf's, whatever came beside it.
        settings = replace(Settings(**self.settings_), kernel=self._trial_kernel().name)
        kind = self._metric_kind(X)
        sample = self._trial_sample(X, codes, weight, seed, [settings.standardize])
        return learn_rounds(sample, settings, rounds, str(kind), self._trial_kernel(), seed)

    def _trial_kernel(self) -> Kernel:
        given = not is_auto(self.gamma)
        rule = self.gamma if given else "distance"
        name = "rbf" if is_auto(self.kernel) else self.kernel
        return Kernel(name, rule, given, self.degree, self.coef0)

    def _trial_sample(
        self,
        X: Any,
        codes: np.ndarray,
        weight: np.ndarray,
        seed: int,
        scalings: list[Any] | None = None,
        most_rows: int | None = None,
    ) -> Sample:
        most_rows = sample_rows(self._effort()) if most_rows is None else most_rows
        most = rows_within(codes, self._room(X), _dense_columns(X), most_rows)
        # Rows in memory are in the order of their content already.
        order = content_order(X, codes, weight) if is_elsewhere(X) else np.arange(codes.size)
        drawn, folds = draw_sample(codes[order], np.random.default_rng(seed), most)
        rows = order[drawn]
        part, own, u = X[rows], codes[rows], weight[rows]
        if scalings is None:
            scalings = [self.standardize]
            if is_auto(self.standardize):  # landmarks that are given are in standardised units
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
        """Bytes for trials on this machine: half of what is free, or of what rows leave of a limit."""
        if is_remote(X) or self.max_memory is None:
            return 0.5 * budget_bytes(None)
        return max(0.0, 0.5 * (budget_bytes(self.max_memory) - held_bytes(X)))

    def _trial_rows(self, X: Any, weight: np.ndarray, standardize: Any) -> Any:
        scaling = replace(self._scaling(), standardize=standardize, metric=None)
        scaler = fit_scaler(X, weight, scaling)
        return scale_rows(scaler, X).astype(np.float32, copy=False)

    def _most_with_second(self, X: Any) -> int:
        """Landmarks that a second kernel may have: none of CSR rows, which it would have to fill up.

        What they take is to be half of the room for trials, so that it is the kernel values which may
        have to go elsewhere.
        """
        if is_sparse(X) or getattr(X, "is_sparse", False):
            return 0
        most, room = (
            most_landmarks(X.shape[0], X.shape[1], self._effort(), second_kernel=True),
            self._room(X),
        )
        while most and self._landmark_bytes(2 * most, X.shape[1]) > 0.5 * room:
            most = max(0, most - 100)
        return most

    def _may_take_both(self, X: Any) -> bool:
        """Whether a fit that is yet to come will try a second kernel, as far as rows can tell."""
        if hasattr(self, "settings_") or not is_auto(self.kernel) or not self._can_try():
            return False
        metric = self._metric_kind(X)
        tried = metric != "full" and self._leaves_open(self._asked(), metric)
        return tried and self._count(X.shape[0]) <= self._most_with_second(X)

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

    def _report_untried(self, why: str, context: Context) -> None:
        text = f'Nothing is tried out for "auto", and no metric learnt: {why}.'
        if self.metric in ("learned", "full"):
            warn_user(text)
        else:
            context.say(text)

    def _scaling(self) -> Scaling:
        plain: Scaling = super()._scaling()  # type: ignore[misc]
        metric = getattr(self, "metric_", None)  # not known while it is being learnt
        return replace(plain, standardize=self._settled()["standardize"], metric=metric)

    def _settled(self) -> dict[str, Any]:
        """The settings found, or before a fit what they are at most likely to be."""
        if hasattr(self, "settings_"):  # of an older model without the kernel, which was given then
            return {"kernel": self._trial_kernel().name, **self.settings_}
        return vars(self._asked().filled(UNTRIED if self.preset is None else PAPER))

    def _make_map(self, n_rows: int | None = None) -> NystroemFeatures | FourierFeatures:
        """The unfitted map for this many rows."""
        settled = self._settled()
        count = int(settled["n_landmarks"])
        if self.feature_map == "fourier":
            made: Any = FourierFeatures(
                count, kernel=settled["kernel"], gamma=settled["gamma"], random_state=self.random_state
            )
        else:
            if is_auto(self.n_landmarks) and n_rows is not None:
                count = min(count, n_rows)  # more than that is worth a warning if they were asked for
            made = NystroemFeatures(
                count,
                landmarks=settled["landmarks"],
                kernel=settled["kernel"],
                gamma=settled["gamma"],
                degree=self.degree,
                coef0=self.coef0,
                random_state=self.random_state,
                verbose=self.verbose,
            )
        return made.set_output(transform="default")

    def _block_rows(self, X: Any) -> Any:
        """Rows in the dtype of kernel values; refused if not even the landmarks fit."""
        n_rows, width, count = X.shape[0], self._width(X.shape[0]), self._count(X.shape[0])
        if n_rows * width * 8 > FLOAT64_BYTES:
            as_it_is = getattr(self, "scaler_", self) is None  # before a fit it is not known
            if as_it_is and not is_elsewhere(X) and not _fits_float32(X):
                raise ValueError(
                    "X is left as it is, and its entries are so large or small that squared distances "
                    "overflow or vanish in float32, in which kernel values of so many rows are held. "
                    "Use standardize=True, or divide X by a power of ten."
                )
            X = X.astype(np.float32, copy=False)
        # They are dense, whatever the rows are, which counts where there are very many columns.
        what = f"{count:,} landmarks of {X.shape[1]:,} columns"
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

        A map with landmarks at random stands for the one to come, with two kernels where the fit will
        try a second one.
        """
        X = self._block_rows(X)
        made = self._make_map().set_params(random_state=0)
        if self._may_take_both(X):
            made.set_params(kernel=BOTH)
        if self.feature_map == "nystroem" and isinstance(self.landmarks, str):
            made.set_params(landmarks="uniform")
        mapped = made.fit(X[: max(TRIAL_ROWS, 2 * self._width(X.shape[0]))])
        plan = self._plan(X, mapped, self._columns_together(), False, measure=True)
        return replace(plan, tuning=self._tuning_seconds(X))

    def _tuning_seconds(self, X: Any) -> float:
        """About how long trials will take, if there are any, within half of a time budget."""
        if not self._can_try() or not self._leaves_open(self._asked(), self._metric_kind(X)):
            return 0.0
        effort = self._effort()
        seconds = tuning_seconds(X.shape[0], X.shape[1], effort, effort < _BRIEF)
        limit = np.inf if self.time_budget is None else _TUNING_SHARE * self.time_budget
        return min(seconds, limit)

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

    def _count(self, n_rows: int) -> int:
        """Landmarks, or Fourier features."""
        settled = self._settled()
        if self.feature_map == "fourier":
            return int(settled["n_landmarks"])
        given = settled["landmarks"]
        return min(int(settled["n_landmarks"]), n_rows) if isinstance(given, str) else len(given)

    def _width(self, n_rows: int) -> int:
        """Kernel values of a row."""
        return self._count(n_rows) * (2 if self._settled()["kernel"] == BOTH else 1)

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
        ``aucmax.inspection.importance`` for other rows, and for errors.
        """
        if not isinstance(getattr(self, "feature_map_", None), NystroemFeatures):
            raise AttributeError(
                f"{type(self).__name__} has feature_importances_ once it is fitted, with landmarks; "
                'with feature_map="fourier" use aucmax.inspection.importance.mean_squared_gradient.'
            )
        points = self.feature_map_.landmarks_.astype(np.float64)
        gradients = self.feature_map_.gradients(points, self.dual_coef_)
        return gradient_shares(gradients, points, self.scaler_)

    def _scores(self, X: Any) -> np.ndarray:
        X = self._scaled(X).astype(self.feature_map_.dtype, copy=False)  # type: ignore[attr-defined]
        return self.feature_map_.linear(X, self.dual_coef_.T)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a model; version 0.1 named the weights over landmarks ``coef_``."""
        state = {("dual_coef_" if name == "coef_" else name): value for name, value in state.items()}
        super().__setstate__(state)  # type: ignore[misc]


def _is_table(values: Any) -> bool:
    """Whether an array can be made of values that has rows and columns."""
    try:
        return np.ndim(values) == 2
    except ValueError:  # rows of different lengths
        return False
