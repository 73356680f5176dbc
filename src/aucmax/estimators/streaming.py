"""Classifiers that learn a row or a pair at a time, from memory or from a stream."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from aucmax.estimators.ranking import (
    LinearScores,
    RankingClassifier,
    check_linear,
    generator,
    plain_records,
)
from aucmax.features.scalers import refuse_extremes, warn_far
from aucmax.fitting.context import Context
from aucmax.metrics.cutoffs import balanced_threshold
from aucmax.rows.validation import all_or_nothing, check_classes, check_labels, check_rows, is_sparse
from aucmax.runtime.parameters import check_choice, check_flag, check_number, check_verbose, is_auto
from aucmax.runtime.progress import LiveLine, describe_epoch
from aucmax.solvers.epochs import LabelledRows, Trace, run_epochs
from aucmax.solvers.options import Hooks
from aucmax.solvers.stochastic import Learner, PairSGD, first_step, mean_square

__all__ = ["SGDAUCClassifier", "StreamingClassifier"]

#: The units of so few rows are poor, and steps taken in them would leave their mark. Until a stream has
#: brought so many, all of them are kept, and each call learns from them anew.
_EARLY_ROWS = 100

#: The largest of parameters that count rows or steps: compiled loops count in 64 bits, memory in fewer.
MOST = 2**31 - 1


class StreamingClassifier(LinearScores, RankingClassifier):
    """What stochastic and online classifiers share: epochs, a trace with early stopping, streams.

    A column (one for two classes, one per class for more) has its own learner. On a stream the
    standardisation follows the rows seen; learners are then told how the units have changed, so that
    what they have learnt keeps its meaning.
    """

    epochs: int
    standardize: bool
    trace: str | None
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    tol: float
    random_state: Any
    verbose: int
    dtype_: np.dtype[Any]
    early_rows_: list[tuple[Any, np.ndarray]] | None

    def _check_params(self) -> None:
        check_number("epochs", self.epochs, low=1, closed=True, integer=True)
        check_number("validation_fraction", self.validation_fraction, high=0.9)
        check_number("n_iter_no_change", self.n_iter_no_change, low=1, closed=True, integer=True)
        check_number("tol", self.tol, closed=True, high=1.0)
        check_flag("early_stopping", self.early_stopping)
        check_linear(self.standardize)
        if self.trace is not None:
            check_choice("trace", self.trace, ("train", "validation"))

    def _make_learner(self, X: Any, total: float) -> Learner:
        """A learner for rows such as ``X``, of which there are ``total`` by weight."""
        raise NotImplementedError

    # In memory

    def fit(self, X: Any, y: Any, *, X_val: Any = None, y_val: Any = None) -> Any:
        """Fit to rows ``X`` (n, d) and their classes ``y``; rows to trace may be given apart."""
        return self._fit(X, y, held_out=_held_out(X_val, y_val))

    def _fit_columns(
        self,
        X: Any,
        codes: np.ndarray,
        weight: np.ndarray,
        context: Context,
        held_out: tuple[Any, Any] | None = None,
        **_: Any,
    ) -> None:
        kept = context.checkpoint
        rng = np.random.default_rng(context.seed)
        X, codes, weight, trace = self._make_trace(X, codes, weight, held_out, rng)
        positives = self._positives(codes)
        self.rows_seen_, self.mean_square_ = X.shape[0], mean_square(X)
        learners = [self._make_learner(X, weight.sum()) for _ in positives]
        traced = "" if trace is None else "training " if trace.rows.X is X else "held-out "
        with LiveLine(partial(describe_epoch, epochs=self.epochs, traced=traced)) as line:
            coef, self.learners_, history = run_epochs(
                learners,
                LabelledRows(X, positives, weight),
                rng,
                self.epochs,
                trace=trace,
                state=kept.recall("epochs"),
                hooks=Hooks(line if self.verbose else None, kept.hook("epochs")),
            )
        self._set_thresholds(np.asarray(X @ coef), positives, weight)
        self._set_coef(coef)
        self.history_, self.n_iter_ = plain_records(history), len(history)
        # Where a stream would go on
        self.rng_, self.early_rows_, self.dtype_ = rng, None, X.dtype
        self.class_seen_ = np.ones(self.classes_.size, dtype=bool)

    def _more_data(self, held_out: tuple[Any, Any] | None = None, **_: Any) -> dict[str, Any]:
        if held_out is None:
            return {}
        X_val, y_val = held_out
        return {"X_val": (check_rows(self, X_val, reset=False),), "y_val": (np.asarray(y_val),)}

    def _make_trace(
        self,
        X: Any,
        codes: np.ndarray,
        weight: np.ndarray,
        held_out: tuple[Any, Any] | None,
        rng: np.random.Generator,
    ) -> tuple[Any, np.ndarray, np.ndarray, Trace | None]:
        """Rows to learn from, and those to follow the AUC on: the same, some held back, or given."""
        kind = self.trace or ("validation" if self.early_stopping or held_out else None)
        if kind is None:
            return X, codes, weight, None
        patience = self.n_iter_no_change if self.early_stopping else None

        def make(*rows: Any) -> Trace:
            return Trace(LabelledRows(*rows), patience, self.tol)

        if kind == "train":
            if held_out is not None:
                raise ValueError('X_val and y_val are not used with trace="train": leave one out.')
            return X, codes, weight, make(X, self._positives(codes), weight)
        if held_out is not None:
            X_val, y_val = held_out
            check_labels(y_val)
            X_val = self._scaled_like(check_rows(self, X_val, reset=False))
            known = self._codes(y_val, X_val.shape[0], "y_val")
            ones = np.ones(known.size)
            return X, codes, weight, make(X_val, self._check_both(known, "y_val"), ones)
        held = np.zeros(codes.size, dtype=bool)
        for code, count in enumerate(np.bincount(codes)):  # some of each class, and never all of it
            if count < 2:
                raise ValueError(
                    f"Class {self.classes_[code].item()!r} has a single row, so none can be held back: "
                    'use trace="train" or pass X_val and y_val.'
                )
            share = int(np.clip(round(self.validation_fraction * count), 1, count - 1))
            held[rng.choice(np.flatnonzero(codes == code), share, replace=False)] = True
        train, test = np.flatnonzero(~held), np.flatnonzero(held)
        trace = make(X[test], self._positives(codes[test]), weight[test])
        return X[train], codes[train], weight[train], trace

    def _check_both(self, codes: np.ndarray, where: str) -> list[np.ndarray]:
        positives = self._positives(codes)
        if not all(up.any() and not up.all() for up in positives):
            raise ValueError(f"AUC needs rows of every class in {where}; some class has none.")
        return positives

    # On a stream

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Any:
        """Learn from the next rows of a stream, each once.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n, d)
        y : array of shape (n,)
            A chunk may hold one class only.
        classes : array of all labels, optional
            Needed in the first call unless ``y`` holds at least two; later calls may leave it out.
        """
        self._check_params()
        check_verbose(self.verbose)
        if hasattr(self, "learners_"):
            return self._stream(X, y, classes, first=False)
        with all_or_nothing(self):
            return self._stream(X, y, classes, first=True)

    def _stream(self, X: Any, y: Any, classes: Any, first: bool) -> Any:
        check_labels(y)
        X, y = check_rows(self, X, y, reset=first)
        check_classes(y)
        if first:
            self.classes_ = self._first_classes(y, classes)
            self.scaler_, self.rng_ = None, generator(self.random_state)
            self.rows_seen_, self.mean_square_ = 0, 0.0
            self.early_rows_ = []
            self.class_seen_ = np.zeros(self.classes_.size, dtype=bool)
        elif classes is not None and not np.array_equal(_sorted_classes(classes), self.classes_):
            raise ValueError(
                f"classes={_sorted_classes(classes).tolist()} differ from those of earlier calls, "
                f"{self.classes_.tolist()}."
            )
        elif self.standardize != (self.scaler_ is not None):
            raise ValueError(
                f"standardize={self.standardize} was not so in earlier calls: what has been learnt is "
                "in other units. Start anew with fit."
            )
        codes = self._codes(y, X.shape[0], "y")
        X = X.astype(self.dtype_ if not first else X.dtype, copy=False)
        chunks = [*(self.early_rows_ or ()), (X, codes)]
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # found and named
                scaler = self._next_scaler(X)
                scaled = [(self._scaled_like(rows, scaler), labels) for rows, labels in chunks]
                squares = [mean_square(rows) for rows, _ in scaled]
        except FloatingPointError as error:
            raise ValueError(f"{error}: check for extreme values in X.") from None
        # All checks are behind us: from here on things change.
        self.dtype_ = X.dtype
        self.class_seen_[np.unique(codes)] = True
        self.rows_seen_ += X.shape[0]
        share = 1.0 if self.early_rows_ is not None else X.shape[0] / self.rows_seen_
        latest = np.average(squares, weights=[rows.shape[0] for rows, _ in scaled])
        self.mean_square_ += share * (latest - self.mean_square_)
        if self.early_rows_ is not None:
            columns = 1 if self.classes_.size == 2 else self.classes_.size
            self.learners_ = [self._make_learner(scaled[0][0], self.rows_seen_) for _ in range(columns)]
            self.early_rows_ = chunks if self.rows_seen_ < _EARLY_ROWS else None
        elif scaler is not None and self.scaler_ is not None:
            self._change_units(self.scaler_, scaler)
        self.scaler_ = scaler
        for rows, labels in scaled:
            for learner, positive in zip(self.learners_, self._positives(labels), strict=True):
                self._refresh(learner)
                learner.stream(rows, positive, self.rng_)
        self._cut_on_samples()
        return self

    def _first_classes(self, y: np.ndarray, classes: Any) -> np.ndarray:
        known = np.unique(y) if classes is None else _sorted_classes(classes)
        if known.size < 2:
            raise ValueError(
                f"The first call of partial_fit has one class only, {known.tolist()[0]!r}: pass all "
                "that will come, as classes=[...]."
            )
        return known

    def _codes(self, y: Any, n_rows: int, name: str) -> np.ndarray:
        y = np.asarray(y).ravel()
        if y.size != n_rows:
            raise ValueError(f"{name} has {y.size} entries for {n_rows} rows.")
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            advice = "" if name == "y_val" else " Pass all classes in the first call of partial_fit."
            raise ValueError(
                f"{name} has a new class, {unknown.tolist()[0]!r}; known are {self.classes_.tolist()}."
                + advice
            )
        return np.searchsorted(self.classes_, y)

    def _next_scaler(self, X: Any) -> StandardScaler | None:
        """The standardisation by all rows seen, these included; the present one stays as it is."""
        if not self.standardize:
            return None
        if self.scaler_ is None:
            scaler = StandardScaler(with_mean=not is_sparse(X)).set_output(transform="default")
        else:
            scaler = deepcopy(self.scaler_)
        if is_sparse(X) and scaler.with_mean:
            X = X.toarray()  # the first rows were dense, and so are the learners' units
        if is_sparse(X):
            warn_far(X)
        scaler.partial_fit(X)
        refuse_extremes(scaler, X)
        return scaler

    def _scaled_like(self, X: Any, scaler: StandardScaler | None = None) -> Any:
        """Standardised rows; sparse ones are made dense where earlier ones were."""
        scaler = scaler or self.scaler_
        if scaler is None:
            return X
        return scaler.transform(X.toarray() if is_sparse(X) and scaler.with_mean else X)

    def _change_units(self, old: StandardScaler, new: StandardScaler) -> None:
        ratio = old.scale_ / new.scale_
        shift = (old.mean_ - new.mean_) / new.scale_ if new.with_mean else np.zeros(ratio.size)
        for learner in self.learners_:
            learner.rescale(ratio, shift)

    def _refresh(self, learner: Learner) -> None:
        """Tell a learner, before it goes on, what has changed with the rows seen."""

    def _cut_on_samples(self) -> None:
        """Coefficients from the learners, and a threshold from the rows they have kept."""
        coef = np.column_stack([learner.coef for learner in self.learners_])
        if not np.isfinite(coef).all():
            raise ValueError("Steps overflow: check for extreme values in X, or standardize.")
        before = getattr(self, "intercept_", np.zeros(len(self.learners_)))
        self.intercept_ = np.zeros(len(self.learners_))
        unknown = []
        for c, learner in enumerate(self.learners_):
            pos, neg = learner.samples()
            if len(pos) and len(neg):
                up = np.arange(len(pos) + len(neg)) < len(pos)
                scores = np.concatenate([pos @ coef[:, c], neg @ coef[:, c]])
                self.intercept_[c] = -balanced_threshold(scores, up, np.ones(up.size))
            else:
                unknown.append(c)
        self._set_coef(coef)
        # Without rows of both classes at hand a threshold stays where it was, at first at 0.
        self.intercept_[unknown] = before[unknown]

    def _rivals(self, decision: np.ndarray) -> np.ndarray:
        return np.where(self.class_seen_, decision, -np.inf)  # a class that has not come cannot win


class SGDAUCClassifier(StreamingClassifier):
    """Linear classifier that ranks, learnt a random pair at a time: the paper's Algorithm 3.

    Each step draws one positive and one negative row. While the score of the first is not above that
    of the second by 1, the coefficients move along their difference by ``1 / (alpha (t + t0))``; they
    are shrunk every ``regularize_every`` steps and averaged every ``average_every``. This minimises ::

        alpha/2 ||w||^2 + mean over pairs of max(0, 1 - w.(x_i - x_j))

    On kernel features (``KernelAUCClassifier(solver="sgd")``, or after :class:`NystroemFeatures` in a
    pipeline) this is NSAUC of Khalid, Ray and Chitsaz (2018), and NSVMSGD2 with ``average=False``.

    Parameters
    ----------
    C : float, default=10.0
        Weight of the loss against the penalty, per average row: ``alpha = 1 / (C n)``. On a stream n
        is the number of rows seen so far.
    alpha : float, optional
        The paper's lambda; takes the place of ``C``.
    epochs : int, default=20
        An epoch is as many steps as there are rows.
    average : bool, default=True
        Whether the result is the average of the iterates, or the last one.
    t0 : float or "auto", default="auto"
        Steps that the schedule begins after, so that the first are not too long. "auto" makes the
        first step 1 over the mean squared norm of the rows, about 1 for kernel features.
    regularize_every, average_every : int, default=16
        Steps between two shrinkings (rskip in the paper) and two averagings (askip).
    average_power : float, default=0.0
        Weighs the q-th iterate as ``q**average_power`` in the average. 0 is the paper's plain mean;
        2 or 3 forgets the first epochs.
    buffer_size : int, default=1000
        Rows of each class that ``partial_fit`` keeps, a uniform sample of all seen, to pair new rows
        with. ``fit`` draws from all rows instead.
    standardize : bool, default=True
        Scale features to unit variance and, unless ``X`` is sparse, to zero mean; on a stream, by the
        rows seen so far.
    trace : {"train", "validation"} or None, default=None
        Rows whose AUC is put into ``history_`` after each epoch.
    early_stopping : bool, default=False
        Stop when the traced AUC has not risen by more than ``tol`` for ``n_iter_no_change`` epochs,
        and keep the best coefficients. Traces "validation" unless told otherwise.
    validation_fraction : float, default=0.1
        Share of the rows held back for it, unless ``fit`` is given ``X_val`` and ``y_val``.
    n_iter_no_change : int, default=3
    tol : float, default=1e-4
    checkpoint : path or None, default=None
        A file that keeps what ``fit`` has reached after each epoch, as in
        :class:`KernelAUCClassifier`: a fit that goes on from it ends at the same coefficients, to
        the bit. ``partial_fit`` does not use it.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 shows a live line: epoch, traced AUC, time left.

    Attributes
    ----------
    coef_ : array of shape (n_columns, n_features)
        In the units of ``X``: ``decision_function`` is ``X @ coef_.T + intercept_``.
    intercept_ : array of shape (n_columns,)
        Less the learnt threshold. On a stream it is found on the rows kept.
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
        self.C = C
        self.alpha = alpha
        self.epochs = epochs
        self.average = average
        self.t0 = t0
        self.regularize_every = regularize_every
        self.average_every = average_every
        self.average_power = average_power
        self.buffer_size = buffer_size
        self.standardize = standardize
        self.trace = trace
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

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
            A row is drawn as often, within its class, as its weight is large. A row of weight 0 is
            absent.
        X_val, y_val : arrays, optional
            Rows to follow the AUC on, instead of some of ``X``.
        """
        return self._fit(X, y, sample_weight, held_out=_held_out(X_val, y_val))

    def _check_params(self) -> None:
        super()._check_params()
        check_number("C", self.C)
        if self.alpha is not None:
            check_number("alpha", self.alpha)
        if not is_auto(self.t0):
            check_number("t0", self.t0, closed=True)
        check_flag("average", self.average)
        check_number(
            "regularize_every", self.regularize_every, low=1, closed=True, high=MOST, integer=True
        )
        check_number("average_every", self.average_every, low=1, closed=True, high=MOST, integer=True)
        check_number("average_power", self.average_power, closed=True)
        check_number("buffer_size", self.buffer_size, low=1, closed=True, high=MOST, integer=True)

    def _make_learner(self, X: Any, total: float) -> PairSGD:
        return PairSGD(
            X.shape[1],
            X.dtype,
            alpha=self._penalty(total),
            eta0=first_step(self.mean_square_),
            t0=None if is_auto(self.t0) else float(self.t0),
            every=(int(self.regularize_every), int(self.average_every) if self.average else 0),
            average_power=self.average_power,
            buffer_size=int(self.buffer_size),
        )

    def _penalty(self, total: float) -> float:
        return 1.0 / (self.C * total) if self.alpha is None else float(self.alpha)

    def _refresh(self, learner: Any) -> None:
        learner.alpha = self._penalty(self.rows_seen_)
        learner.eta0 = first_step(self.mean_square_)


def _sorted_classes(classes: Any) -> np.ndarray:
    check_labels(classes, "classes")
    return np.unique(np.asarray(classes))


def _held_out(X_val: Any, y_val: Any) -> tuple[Any, Any] | None:
    """Rows for a trace, if a user has given any."""
    if (X_val is None) != (y_val is None):
        raise ValueError("Pass X_val and y_val together, or neither.")
    return None if X_val is None else (X_val, y_val)
