"""Classifiers that learn a row or a pair at a time, from memory or from a stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import StandardScaler

from aucmax.estimators.ranking import RankingClassifier
from aucmax.fitting.context import draw_seed
from aucmax.fitting.machines import LinearMachine
from aucmax.fitting.open_fit import open_fit
from aucmax.fitting.stream_fit import LearnerKind, Stream, Tracing, fit_epochs, stream_rows
from aucmax.rows.validation import all_or_nothing, check_classes, check_labels, check_rows
from aucmax.runtime.parameters import (
    AUTO,
    COUNT,
    FLAG,
    NONE,
    PATH,
    RANDOM_STATE,
    VERBOSE,
    Kind,
    Number,
    OneOf,
    check_parameters,
    declare,
    is_auto,
)
from aucmax.solvers.stochastic import PairSGD, first_step

__all__ = ["SHARED", "STEPS", "SGDAUCClassifier", "StreamingClassifier"]

Array = npt.NDArray[Any]

#: What parameters that count rows or steps may be; the bound keeps compiled loops from overflowing.
STEPS = Number(low=1, closed=True, high=2**31 - 1, integer=True)

#: What the parameters that all classifiers of this module share may be.
SHARED: dict[str, Kind | tuple[Kind, ...]] = {
    "epochs": COUNT,
    "standardize": FLAG,
    "trace": OneOf("train", "validation", None),
    "early_stopping": FLAG,
    "validation_fraction": Number(high=0.9),
    "n_iter_no_change": COUNT,
    "tol": Number(closed=True, high=1.0),
    "random_state": RANDOM_STATE,
    "verbose": VERBOSE,
}


class StreamingClassifier(RankingClassifier):
    """A linear classifier by epochs over rows in memory, or by ``partial_fit`` from a stream.

    A subclass has the parameters of ``SHARED`` and defines its learners in :meth:`_learner_kind`.
    """

    coef_: Array
    scaler_: StandardScaler | None
    learners_: list[Any]

    def __init__(
        self,
        epochs: int,
        standardize: bool,
        trace: str | None,
        early_stopping: bool,
        validation_fraction: float,
        n_iter_no_change: int,
        tol: float,
        random_state: Any,
    ) -> None:
        self.epochs = epochs
        self.standardize = standardize
        self.trace = trace
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.random_state = random_state

    def _learner_kind(self) -> LearnerKind:
        """Return how learners are made and follow a stream."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any, *, X_val: Any = None, y_val: Any = None) -> Any:
        """Fit to rows ``X`` (n, d) and their classes ``y``; trace the AUC on ``X_val``, if passed."""
        return self._fit(X, y, None, X_val, y_val)

    def _fit(self, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any) -> Any:
        if (X_val is None) != (y_val is None):
            missing = "X_val" if X_val is None else "y_val"
            raise ValueError(f"{missing} is missing: pass X_val and y_val together, or neither.")
        data = {} if X_val is None else {"X_val": (X_val,), "y_val": (np.asarray(y_val),)}
        with open_fit(self, X, y, sample_weight, data=data) as (problem, context):
            held_out = None
            if X_val is not None:
                check_labels(y_val)
                rows = check_rows(self, X_val, reset=False)
                held_out = rows, _codes(y_val, problem.classes, rows.shape[0], "y_val")
            tracing = Tracing(
                self.trace,
                self.early_stopping,
                self.validation_fraction,
                self.n_iter_no_change,
                self.tol,
                held_out,
            )
            machine, stream, about = fit_epochs(
                problem, self.standardize, self._learner_kind(), self.epochs, tracing, context
            )
            self._keep(machine, **_attributes(stream), **about)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Any:
        """Learn once from each of the next rows of a stream.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n, d)
        y : array of shape (n,)
            A chunk may hold one class only.
        classes : array of all labels, optional
            Needed in the first call unless ``y`` holds at least two; later calls may leave it out.
        """
        check_parameters(self)
        if hasattr(self, "learners_"):
            return self._stream(X, y, classes, first=False)
        with all_or_nothing(self):
            return self._stream(X, y, classes, first=True)

    def _stream(self, X: Any, y: Any, classes: Any, first: bool) -> Any:
        check_labels(y)
        X, y = check_rows(self, X, y, reset=first)
        check_classes(y)
        if first:
            known = _first_classes(y, classes)
            rng, seen = np.random.default_rng(draw_seed(self.random_state)), np.zeros(known.size, bool)
            stream = Stream(known, None, [], rng, class_seen=seen, early_rows=[])
        else:
            stream = self._stream_so_far(classes)
        codes = _codes(y, stream.classes, X.shape[0], "y")
        stream, machine = stream_rows(stream, X, codes, self.standardize, self._learner_kind())
        # Without sampled rows of both classes a threshold stays where it was, at first at 0.
        before = getattr(self, "intercept_", np.zeros(machine.intercept.size))
        intercept = np.where(np.isnan(machine.intercept), before, machine.intercept)
        self._keep(LinearMachine(machine.coef, intercept), **_attributes(stream))
        return self

    def _stream_so_far(self, classes: Any) -> Stream:
        """Return the state of the stream; refuse other classes or another scaling than before."""
        if classes is not None and not np.array_equal(_sorted_classes(classes), self.classes_):
            raise ValueError(
                f"classes={_sorted_classes(classes).tolist()} differ from those of earlier calls, "
                f"{self.classes_.tolist()}. Leave classes out, or start again with fit."
            )
        if self.standardize != (self.scaler_ is not None):
            raise ValueError(
                f"standardize={self.standardize} differs from earlier calls, so what was learnt is in "
                "other units. Start again with fit."
            )
        return Stream(**{name: getattr(self, f"{name}_") for name in Stream.__dataclass_fields__})

    @property
    def machine_(self) -> LinearMachine:
        return LinearMachine(self.coef_, self.intercept_)


def _attributes(stream: Stream) -> dict[str, Any]:
    """Return the state of a stream as learnt attributes."""
    return {f"{name}_": value for name, value in vars(stream).items()}


def _sorted_classes(classes: Any) -> Array:
    check_labels(classes, "classes")
    return np.unique(np.asarray(classes))


def _first_classes(y: Array, classes: Any) -> Array:
    known = np.unique(y) if classes is None else _sorted_classes(classes)
    if known.size < 2:
        raise ValueError(
            f"The first call of partial_fit has one class only, {known.tolist()[0]!r}: pass all "
            "classes of the stream as classes=[...]."
        )
    return known


def _codes(y: Any, classes: Array, n_rows: int, name: str) -> Array:
    """Return labels as indices into the classes; refuse new ones."""
    y = np.asarray(y).ravel()
    if y.size != n_rows:
        raise ValueError(f"{name} has {y.size} entries for {n_rows} rows: pass one for each row.")
    unknown = np.setdiff1d(y, classes)
    if unknown.size:
        advice = "" if name == "y_val" else " Pass all classes in the first call of partial_fit."
        raise ValueError(
            f"{name} has a new class, {unknown.tolist()[0]!r}; known are {classes.tolist()}.{advice}"
        )
    return np.searchsorted(classes, y)


@declare(
    C=Number(),
    alpha=(NONE, Number()),
    average=FLAG,
    t0=(AUTO, Number(closed=True)),
    regularize_every=STEPS,
    average_every=STEPS,
    average_power=Number(closed=True),
    buffer_size=STEPS,
    checkpoint=(NONE, PATH),
    **SHARED,
)
class SGDAUCClassifier(StreamingClassifier):
    """Linear classifier that ranks, learnt one random pair at a time: the paper's Algorithm 3.

    Each step draws one positive and one negative row. While the score of the first is not above that
    of the second by 1, the coefficients move along their difference by ``1 / (alpha (t + t0))``; they
    are shrunk every ``regularize_every`` steps and averaged every ``average_every``. This minimises ::

        alpha/2 ||w||^2 + mean over pairs of max(0, 1 - w.(x_i - x_j))

    On kernel features (``KernelAUCClassifier(solver="sgd")``, or after :class:`NystroemFeatures` in a
    pipeline) this is NSAUC of Khalid, Ray and Chitsaz (2018), and NSVMSGD2 with ``average=False``.

    Parameters
    ----------
    C
        Weight of the loss against the penalty, per average row: ``alpha = 1 / (C n)``. On a stream n
        is the number of rows seen so far.
    alpha
        The paper's lambda; replaces ``C``.
    epochs
        An epoch has as many steps as there are rows.
    average
        Whether the result is the average of the iterates, or the last one.
    t0
        The step number that the schedule begins after, so that the first steps are not too long. "auto"
        makes the first step 1 over the mean squared norm of the rows, about 1 for kernel features.
    regularize_every
        Steps between two shrinkings (rskip in the paper).
    average_every
        Steps between two averagings (askip in the paper).
    average_power
        Weighs the q-th iterate by ``q**average_power`` in the average. 0 is the paper's plain mean;
        2 or 3 forgets the first epochs.
    buffer_size
        Rows of each class that ``partial_fit`` keeps, a uniform sample of all seen, to pair new rows
        with. ``fit`` draws from all rows instead.
    standardize
        Scale columns to unit variance and, unless ``X`` is sparse, to zero mean; on a stream, by the
        rows seen so far.
    trace
        Rows whose AUC is added to ``history_`` after each epoch.
    early_stopping
        Stop when the traced AUC has not risen by more than ``tol`` for ``n_iter_no_change`` epochs,
        and keep the best coefficients. The AUC is that of "validation" unless ``trace`` is "train".
    validation_fraction
        Share of the rows held out to trace the AUC on, unless ``fit`` is given ``X_val`` and ``y_val``.
    n_iter_no_change
        See ``early_stopping``.
    tol
        See ``early_stopping``.
    checkpoint
        A file that keeps what ``fit`` has reached after each epoch, as in
        :class:`KernelAUCClassifier`: a fit that resumes from it ends at the same coefficients, to
        the bit. ``partial_fit`` does not use it.
    random_state
        Seed of the pairs.
    verbose
        1 shows a live line: epoch, traced AUC, time left.

    Attributes
    ----------
    coef_ : array of shape (k, n_features)
        In the units of ``X``: ``decision_function`` is ``X @ coef_.T + intercept_``. k is 1 for two
        classes, otherwise one per class.
    intercept_ : array of shape (k,)
        Minus the learnt threshold. On a stream it is found on the sampled rows.
    classes_ : array of shape (n_classes,)
    history_ : list of dict
        One per epoch of ``fit``: epoch, auc (None if not traced), seconds, and those spent learning.
    n_iter_ : int
        Epochs done by ``fit``.
    rows_seen_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucmax import SGDAUCClassifier
    >>> from aucmax.metrics import roc_auc
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SGDAUCClassifier(random_state=0).fit(X, y)
    >>> roc_auc(y, model.decision_function(X)) > 0.99
    True

    A stream, in chunks:

    >>> model = SGDAUCClassifier(random_state=0)
    >>> for start in range(0, len(y), 100):
    ...     rows = slice(start, start + 100)
    ...     model = model.partial_fit(X[rows], y[rows], classes=[0, 1])
    >>> roc_auc(y, model.decision_function(X)) > 0.98
    True
    """

    def __init__(
        self,
        C: float = 10.0,
        *,
        alpha: float | None = None,
        epochs: int = 20,
        average: bool = True,
        t0: float | str = "auto",
        regularize_every: int = 16,
        average_every: int = 16,
        average_power: float = 0.0,
        buffer_size: int = 1000,
        standardize: bool = True,
        trace: str | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 3,
        tol: float = 1e-4,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        stopping = (trace, early_stopping, validation_fraction, n_iter_no_change, tol)
        super().__init__(epochs, standardize, *stopping, random_state)
        self.verbose = verbose
        self.C = C
        self.alpha = alpha
        self.average = average
        self.t0 = t0
        self.regularize_every = regularize_every
        self.average_every = average_every
        self.average_power = average_power
        self.buffer_size = buffer_size
        self.checkpoint = checkpoint

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None
    ) -> Any:
        """Fit to rows ``X`` (n, d) and their classes ``y``.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n, d)
        y : array of shape (n,)
            Any two labels, or more: then each class is ranked against the rest.
        sample_weight : array of shape (n,), optional
            Rows are drawn within their class in proportion to their weights. A row of weight 0 is
            ignored.
        X_val, y_val : arrays, optional
            Rows to follow the AUC on, instead of some of ``X``.
        """
        return self._fit(X, y, sample_weight, X_val, y_val)

    def _learner_kind(self) -> LearnerKind:
        def penalty(total: float) -> float:
            return 1.0 / (self.C * total) if self.alpha is None else float(self.alpha)

        def make(n_features: int, dtype: Any, total: float, square: float) -> PairSGD:
            return PairSGD(
                n_features,
                dtype,
                alpha=penalty(total),
                eta0=first_step(square),
                t0=None if is_auto(self.t0) else float(self.t0),
                every=(int(self.regularize_every), int(self.average_every) if self.average else 0),
                average_power=self.average_power,
                buffer_size=int(self.buffer_size),
            )

        def refresh(learner: Any, total: float, square: float) -> None:
            learner.alpha, learner.eta0 = penalty(total), first_step(square)

        return LearnerKind(make, refresh)
