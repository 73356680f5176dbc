"""Fit linear scores a row or a pair at a time: by epochs over rows in memory, or from a stream.

Each ranking has its own learner. On a stream the standardisation follows the rows seen, and the
learners are rescaled with it, so that what they have learnt keeps its meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import StandardScaler

from aucmax.features.extremes import refuse_extremes, warn_far
from aucmax.fitting.attributes import intercepts, plain_record
from aucmax.fitting.context import Context
from aucmax.fitting.machines import LinearMachine
from aucmax.fitting.problem import Problem, positives_of
from aucmax.fitting.scaling import Scaling, scaled
from aucmax.metrics.cutoffs import balanced_threshold
from aucmax.rows.interface import ArrayRows, Block, is_sparse, new_standard_scaler
from aucmax.runtime.progress import LiveLine, describe_epoch
from aucmax.solvers.epochs import LabelledRows, Trace, run_epochs
from aucmax.solvers.options import Hooks
from aucmax.solvers.stochastic import Learner, mean_square

Array = npt.NDArray[Any]

#: The units of a few rows are poor, and steps taken in them would leave their mark. Until a stream has
#: brought this many rows, all are held, and each call learns from all of them again.
_EARLY_ROWS = 100


def _ignore(learner: Any, total: float, square: float) -> None:
    """Leave a learner as it is."""


@dataclass(frozen=True)
class LearnerKind:
    """How learners are made and follow a stream.

    ``make`` takes the number of features, the dtype, the weight of all rows and their mean squared
    norm; ``refresh`` takes a learner and the current values of the last two.
    """

    make: Callable[[int, Any, float, float], Learner]
    refresh: Callable[[Any, float, float], None] = _ignore


@dataclass(frozen=True)
class Tracing:
    """On which rows the AUC is followed and when to stop, as in :class:`SGDAUCClassifier`.

    ``held_out`` are rows, checked but not scaled, with their classes as codes.
    """

    trace: str | None
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    tol: float
    held_out: tuple[Block, Array] | None = None


@dataclass(frozen=True)
class Stream:
    """Where a stream stands: learners, generator, scaler, and what is known of the rows seen."""

    classes: Array
    scaler: StandardScaler | None
    learners: list[Learner]
    rng: np.random.Generator
    rows_seen: int = 0
    mean_square: float = 0.0
    class_seen: Array = field(default_factory=lambda: np.zeros(0, dtype=bool))
    early_rows: list[tuple[Block, Array]] | None = None
    dtype: Any = None


def fit_epochs(
    problem: Problem,
    standardize: bool,
    kind: LearnerKind,
    epochs: int,
    tracing: Tracing,
    context: Context,
) -> tuple[LinearMachine, Stream, dict[str, Any]]:
    """Run epochs over rows in memory; return the machine, the stream to go on, and attributes."""
    scaler, rows = scaled(problem, Scaling(standardize, names=problem.names), context)
    rng, checkpoint = np.random.default_rng(context.seed), context.checkpoint
    problem, trace = _split_trace(replace(problem, rows=rows), scaler, tracing, rng)
    X, square = problem.rows[:], mean_square(problem.rows[:])
    total = float(problem.weight.sum())
    learners = [kind.make(X.shape[1], X.dtype, total, square) for _ in problem.positives]
    traced = "" if trace is None else "training " if tracing.trace == "train" else "held-out "
    with LiveLine(partial(describe_epoch, epochs=epochs, traced=traced)) as line:
        coef, best, history = run_epochs(
            learners,
            LabelledRows(X, problem.positives, problem.weight),
            rng,
            epochs,
            trace=trace,
            hooks=Hooks(line if context.verbose else None, checkpoint.hook("epochs")),
            state=checkpoint.recall("epochs"),
        )
    intercept = intercepts(np.asarray(X @ coef), problem, context.name)
    machine = LinearMachine.of_scaled(coef, intercept, scaler)
    seen = np.ones(problem.classes.size, dtype=bool)
    stream = Stream(problem.classes, scaler, list(best), rng, X.shape[0], square, seen, None, X.dtype)
    about = {"history_": [plain_record(record) for record in history], "n_iter_": len(history)}
    return machine, stream, about


def _split_trace(
    problem: Problem, scaler: Any, tracing: Tracing, rng: np.random.Generator
) -> tuple[Problem, Trace | None]:
    """Return the problem to learn from, and the rows to trace the AUC on: passed, held out or all."""
    validation = tracing.held_out
    kind = tracing.trace or ("validation" if tracing.early_stopping or validation else None)
    if kind is None:
        return problem, None
    patience = tracing.n_iter_no_change if tracing.early_stopping else None
    make = partial(Trace, patience=patience, tol=tracing.tol)
    if kind == "train":
        if validation is not None:
            raise ValueError(
                'X_val and y_val are not used with trace="train": leave them out, or use '
                'trace="validation".'
            )
        return problem, make(LabelledRows(problem.rows[:], problem.positives, problem.weight))
    if validation is not None:
        block, codes = validation
        positives = positives_of(codes, problem.classes.size)
        if not all(up.any() and not up.all() for up in positives):
            raise ValueError(
                "y_val has no row of some class, and AUC needs rows of every class: pass more rows."
            )
        rows = LabelledRows(_scaled(block, scaler), positives, np.ones(codes.size))
        return problem, make(rows)
    held = np.zeros(problem.codes.size, dtype=bool)
    for code, count in enumerate(np.bincount(problem.codes)):  # some of each class, and never all of it
        if count < 2:
            raise ValueError(
                f"Class {problem.classes[code].item()!r} has a single row, so none can be held out: "
                'use trace="train" or pass X_val and y_val.'
            )
        share = int(np.clip(round(tracing.validation_fraction * count), 1, count - 1))
        held[rng.choice(np.flatnonzero(problem.codes == code), share, replace=False)] = True
    train, test = _part(problem, ~held), _part(problem, held)
    return train, make(LabelledRows(test.rows[:], test.positives, test.weight))


def _part(problem: Problem, mask: Array) -> Problem:
    rows, codes, weight = problem.rows.take(np.flatnonzero(mask)), problem.codes[mask], problem.weight
    return replace(problem, rows=rows, codes=codes, weight=weight[mask])


def stream_rows(
    stream: Stream, X: Block, codes: Array, standardize: bool, kind: LearnerKind
) -> tuple[Stream, LinearMachine]:
    """Learn from the next rows of a stream; the learners and the generator of ``stream`` change."""
    early = stream.early_rows
    X = X if stream.dtype is None else X.astype(stream.dtype, copy=False)
    chunks = [*(early or ()), (X, codes)]
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # checked
            scaler = _next_scaler(stream.scaler, X) if standardize else None
            scaled = [(_scaled(rows, scaler), labels) for rows, labels in chunks]
            squares = [mean_square(rows) for rows, _ in scaled]
    except FloatingPointError as error:
        raise ValueError(f"X cannot be learnt from: {error}. Check it for extreme values.") from None
    # All checks are done: from here on learners change.
    seen, rows_seen = stream.class_seen.copy(), stream.rows_seen + X.shape[0]
    seen[np.unique(codes)] = True
    latest = np.average(squares, weights=[rows.shape[0] for rows, _ in scaled])
    share = 1.0 if early is not None else X.shape[0] / rows_seen
    square = stream.mean_square + share * (latest - stream.mean_square)
    learners = stream.learners
    if early is not None:
        count = len(positives_of(codes, stream.classes.size))
        width, dtype = scaled[0][0].shape[1], scaled[0][0].dtype
        learners = [kind.make(width, dtype, rows_seen, square) for _ in range(count)]
        early = chunks if rows_seen < _EARLY_ROWS else None
    elif scaler is not None and stream.scaler is not None:
        _change_units(learners, stream.scaler, scaler)
    for rows, labels in scaled:
        for learner, positive in zip(learners, positives_of(labels, stream.classes.size), strict=True):
            kind.refresh(learner, rows_seen, square)
            learner.stream(rows, positive, stream.rng)
    after = Stream(
        stream.classes, scaler, learners, stream.rng, rows_seen, square, seen, early, X.dtype
    )
    return after, _cut_on_samples(after)


def _next_scaler(before: StandardScaler | None, X: Block) -> StandardScaler:
    """Return the standardisation by all rows seen, these included."""
    scaler = new_standard_scaler(not is_sparse(X)) if before is None else deepcopy(before)
    if is_sparse(X) and scaler.with_mean:
        X = X.toarray()  # the first rows were dense, and so are the learners' units
    if is_sparse(X):
        warn_far(ArrayRows(X))
    scaler.partial_fit(X)
    refuse_extremes(scaler, X)
    return scaler


def _scaled(X: Block, scaler: StandardScaler | None) -> Block:
    """Return standardised rows; sparse ones are made dense if earlier rows were."""
    if scaler is None:
        return X
    return scaler.transform(X.toarray() if is_sparse(X) and scaler.with_mean else X)


def _change_units(learners: list[Learner], old: StandardScaler, new: StandardScaler) -> None:
    ratio = old.scale_ / new.scale_
    shift = (old.mean_ - new.mean_) / new.scale_ if new.with_mean else np.zeros(ratio.size)
    for learner in learners:
        learner.rescale(ratio, shift)


def _cut_on_samples(stream: Stream) -> LinearMachine:
    """Return the learners' coefficients with a threshold from the rows they have sampled.

    The threshold of a ranking without sampled rows of both classes is NaN: it stays as it was.
    """
    coef = np.column_stack([learner.coef for learner in stream.learners])
    if not np.isfinite(coef).all():
        raise ValueError("Steps overflow: check X for extreme values, or use standardize=True.")
    intercept = np.full(len(stream.learners), np.nan)
    for c, learner in enumerate(stream.learners):
        pos, neg = learner.samples()
        if len(pos) and len(neg):
            up = np.arange(len(pos) + len(neg)) < len(pos)
            scores = np.concatenate([pos @ coef[:, c], neg @ coef[:, c]])
            intercept[c] = -balanced_threshold(scores, up, np.ones(up.size))
    return LinearMachine.of_scaled(coef, intercept, stream.scaler)
