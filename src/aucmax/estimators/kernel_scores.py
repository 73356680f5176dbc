"""Shared by all kernel classifiers: parameters checked and tuned, the map built, rows scored."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from aucmax.estimators.ranking import FLOAT64_BYTES
from aucmax.features.fourier import FOURIER_KERNELS, FourierFeatures
from aucmax.features.kernels import BOTH, LANDMARK_KERNELS, RADIAL
from aucmax.features.landmarks import STRATEGIES
from aucmax.features.nystroem import NystroemFeatures
from aucmax.features.scalers import MetricScaler
from aucmax.fitting.context import Context
from aucmax.fitting.scaling import Scaling
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
from aucmax.rows.validation import is_elsewhere, is_remote
from aucmax.runtime.memory import check_fits, parse_bytes
from aucmax.runtime.parameters import (
    check_choice,
    check_gamma,
    check_number,
    is_auto,
    is_flag,
)
from aucmax.tuning import Kernel, Settings, mean_outer
from aucmax.tuning.resolve import (
    PAPER,
    UNTRIED,
    Asked,
    fits_float32,
    landmark_bytes,
    most_with_second_kernel,
    resolve,
    seconds_of_tuning,
)

#: Rows of each class at which it is measured how well landmarks cover it.
_COVERED_ROWS = 500


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

    #: Settings that are a reason to tune, if they are left at "auto"; a kernel on its own is none.
    _needed: tuple[str, ...] = ("C", "gamma", "n_landmarks", "landmarks", "standardize")

    def _asked(self) -> Asked:
        """What the parameters ask for, with None for what is left at "auto"."""
        names = ("C", "gamma", "n_landmarks", "landmarks", "standardize", "kernel")
        given: Any = {name: getattr(self, name, "auto") for name in names}
        if self.feature_map == "nystroem" and not isinstance(self.landmarks, str):
            given["n_landmarks"] = len(self.landmarks)
        fixed = not is_auto(self.gamma)
        name = "rbf" if is_auto(self.kernel) else self.kernel
        rule = self.gamma if fixed else "distance"
        return Asked(
            Settings(**{name: None if is_auto(value) else value for name, value in given.items()}),
            Kernel(name, rule, fixed, self.degree, self.coef0),
            self.preset is None
            and self.solver == "newton"  # type: ignore[attr-defined]
            and self.feature_map == "nystroem"
            and self.kernel in ("auto", *RADIAL),
            self._needed,
            super()._scaling(),  # type: ignore[misc]
            self.metric,
            self.preset,
            self.effort,
            self.time_budget,
            self.max_memory,
        )

    def _settle(
        self, X: Any, codes: np.ndarray, weight: np.ndarray, context: Context
    ) -> dict[str, Any]:
        """Tune what is left at "auto": ``settings_``, ``metric_``, and ``trials_`` if any were made."""
        resolved = resolve(X, codes, weight, self._asked(), context)
        found = dict(vars(resolved.settings))
        self.metric_, self.trials_ = found.pop("metric"), resolved.trials
        self.settings_ = found
        return {"resolved": resolved}

    def _may_take_both(self, X: Any) -> bool:
        """Whether a fit that is yet to come will try a second kernel, as far as rows can tell."""
        asked = self._asked()
        if hasattr(self, "settings_") or not is_auto(self.kernel) or asked.metric == "full":
            return False
        return asked.to_be_tuned(X) and self._count(X.shape[0]) <= most_with_second_kernel(X, asked)

    def _scaling(self) -> Scaling:
        plain: Scaling = super()._scaling()  # type: ignore[misc]
        metric = getattr(self, "metric_", None)  # not known while it is being learnt
        return replace(plain, standardize=self._settled()["standardize"], metric=metric)

    def _settled(self) -> dict[str, Any]:
        """The settings found, or before a fit what they are at most likely to be."""
        if hasattr(self, "settings_"):  # of an older model without the kernel, which was given then
            return {"kernel": self._asked().kernel.name, **self.settings_}
        return vars(self._asked().settings.filled(UNTRIED if self.preset is None else PAPER))

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
            if as_it_is and not is_elsewhere(X) and not fits_float32(X):
                raise ValueError(
                    "X is left as it is, and its entries are so large or small that squared distances "
                    "overflow or vanish in float32, in which kernel values of this many rows are held. "
                    "Use standardize=True, or divide X by a power of ten."
                )
            X = X.astype(np.float32, copy=False)
        # They are dense, whatever the rows are, which counts where there are very many columns.
        what = f"{count:,} landmarks of {X.shape[1]:,} columns"
        check_fits(what, self._landmark_bytes(width, X.shape[1]), self.max_memory)
        return X

    def _landmark_bytes(self, n_landmarks: int, n_features: int) -> int:
        between = 0 if self.feature_map == "fourier" else n_landmarks
        return landmark_bytes(n_landmarks, n_features, between)

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
        return replace(plan, tuning=seconds_of_tuning(X, self._asked()))

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
