"""Truncated Newton for all-pairs losses, k columns in lockstep.

Each column c minimises ::

    f_c(w) = 1/2 ||w||^2 + C_c L_c(F w)

over the same features F, known by an operator alone. Columns share each pass over the data, so that
k products cost little more than one; a plain fit is k = 1.

Five decisions, each measured on the paper's data (ijcnn1 and covtype, 1600 landmarks):

* The line search is near-exact and may go beyond 1. Pairs leave the active set along a step, so the
  curvature at its start is too large and steps of 1.3 to 4 are usual early on; this saves a quarter of
  the Newton steps. It happens in score space, where a trial costs a sort and no pass.
* The Newton system is solved to 0.3 in the preconditioned residual; 0.1 takes half as many passes
  again, 0.5 twice as many steps.
* The first steps run without preconditioner: far from the optimum it does not pay, and with a small C
  it never does. It is built when conjugate gradients need it, and renewed when they have become slower
  than they were with it at first.
* With many rows the first steps are taken on a sample of them: 85 passes instead of 175 on covtype
  (464,809 rows, C = 10).
* The stopping rule is the Newton decrement relative to the objective: an estimate of the relative
  distance to the minimum, the same at every C and scale. It counts what conjugate gradients left
  over, ``1/2 r'M^(-1)r`` in the preconditioner's norm; without one M is the identity and, the Hessian
  being at least that, the count is an upper bound. Where that bound alone keeps a column from ending,
  a preconditioner is built, or, if there is none, the system solved more closely. The step that the
  decrement was measured on is still taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from aucmax.operators import FeatureOperator, Operator
from aucmax.pairs import Floats, Indices, PairLoss
from aucmax.solvers.line_search import line_search
from aucmax.solvers.preconditioner import MAX_COLUMNS, Preconditioner, patience

#: Relative residual at which conjugate gradients stop, unless a column needs more.
_FORCING = 0.3

#: Products without preconditioner before one is built, and in any one step at all.
_PLAIN_PRODUCTS = 7
_MAX_PRODUCTS = 500

#: Rows per column of the sample that a large problem starts on (or a sixteenth of its rows), how close
#: to its minimum that is followed and in how many steps, and how many times more rows there must be.
_SAMPLE_ROWS = 30
_SAMPLE_TOL = 3e-3
_SAMPLE_GAIN = 8
_SAMPLE_STEPS = 30


@dataclass(frozen=True)
class Record:
    """What one Newton step did; arrays hold one entry per column."""

    iteration: int
    objective: Floats  #: after the step
    gap: Floats  #: estimated relative distance to the minimum before the step
    auc: Floats  #: share of training pairs in order, after the step
    step: Floats  #: length of the step, 1 being Newton's
    products: int  #: Hessian products, each two passes
    passes: int  #: passes over the data since the start
    preconditioners: int  #: how many were built in this step
    seconds: float  #: since the start


@dataclass(frozen=True)
class Solution:
    """The minimisers ``coef`` (r, k) and how they were reached."""

    coef: Floats
    scores: Floats
    objective: Floats
    gap: Floats
    converged: np.ndarray
    n_iter: int
    passes: int
    history: list[Record]


@dataclass(frozen=True)
class _Sample:
    """Some rows of a problem, with their features and losses that stand for all of them."""

    rows: Indices
    operator: Operator
    losses: Sequence[PairLoss]


@dataclass
class _Problem:
    """All that stays the same while a solve runs."""

    operator: Operator
    losses: Sequence[PairLoss]
    C: Floats
    tol: float
    precondition: bool
    rng: np.random.Generator
    began: float
    sample: _Sample | None = None


class _State:
    """All that changes. Columns that have converged are left where they are."""

    def __init__(self, operator: Operator, losses: Sequence[PairLoss], coef: Floats | None) -> None:
        k = len(losses)
        self.passes = 0
        if coef is None:
            self.coef: Floats = np.zeros((operator.n_columns, k), order="F")
            self.scores: Floats = np.zeros((operator.n_rows, k), order="F")
        else:
            self.coef = np.array(coef, dtype=np.float64, order="F")
            self.scores = operator.scores(self.coef)
            self.passes = 1
        self.move_to(self.scores, losses)
        self.preconditioners: list[Preconditioner | None] = [None] * k
        self.products = np.zeros(k, dtype=np.intp)
        self.when_new = np.zeros(k, dtype=np.intp)  # products the preconditioner took at first
        self.forcing: Floats = np.full(k, _FORCING)
        self.doubtful = np.zeros(k, dtype=bool)
        self.gap: Floats = np.full(k, np.inf)
        self.step: Floats = np.zeros(k)
        self.converged = np.zeros(k, dtype=bool)
        self.stalled = np.zeros(k, dtype=bool)

    def move_to(self, scores: Floats, losses: Sequence[PairLoss]) -> None:
        self.scores = np.asfortranarray(scores)
        self.points = [loss.at(self.scores[:, c]) for c, loss in enumerate(losses)]

    def objective(self, C: Floats) -> Floats:
        values = np.array([point.value for point in self.points])
        penalty: Floats = 0.5 * np.einsum("rc,rc->c", self.coef, self.coef)
        total: Floats = penalty + C * values
        return total


def minimize(
    operator: Operator,
    losses: Sequence[PairLoss],
    C: Floats,
    *,
    start: Floats | None = None,
    tol: float = 1e-4,
    max_iter: int = 100,
    precondition: bool = True,
    on_record: Callable[[Record], None] | None = None,
    seed: int = 0,
) -> Solution:
    """Minimise ``1/2 ||w||^2 + C L(F w)`` for each column.

    Parameters
    ----------
    operator : Operator
        The features, n rows and r columns.
    losses : k pair losses over the n rows
    C : array of shape (k,)
    start : array of shape (r, k), optional
        Where to begin; zeros by default.
    tol : float
        A column has converged when its Newton decrement is at most ``tol`` times its objective.
    max_iter : int
        Newton steps.
    precondition : bool
        False leaves the preconditioner out, for comparison. Above 4000 columns none is built.
    on_record : callable, optional
        Called with the :class:`Record` of each step.
    seed : int
        For the rows the preconditioner samples; the minimiser does not depend on it.
    """
    began, rng = time.perf_counter(), np.random.default_rng(seed)
    precondition = precondition and operator.n_columns <= MAX_COLUMNS
    state = _State(operator, losses, start)
    problem = _Problem(operator, losses, C, tol, precondition, rng, began)
    if start is None and precondition:
        problem.sample = _draw_sample(problem)
        if problem.sample is not None:
            _start_on_sample(problem, problem.sample, state)
    history = _iterate(problem, state, max_iter, on_record)
    return _finish(problem, state, history)


def _iterate(
    problem: _Problem,
    state: _State,
    max_iter: int,
    on_record: Callable[[Record], None] | None = None,
) -> list[Record]:
    operator, losses, C, tol = problem.operator, problem.losses, problem.C, problem.tol
    precondition = problem.precondition
    limit = patience(operator)
    history: list[Record] = []
    live = np.arange(len(losses))
    iteration = 0
    while live.size and iteration < max_iter:
        iteration += 1
        # 1) Gradient
        pulled = operator.pullback(_stack([state.points[c].gradient for c in live]))
        gradient = state.coef[:, live] + C[live] * pulled
        state.passes += 1
        _refuse_overflow(gradient)
        # 2) Preconditioners, where conjugate gradients have become slow
        built = 0
        for c in live.tolist() if precondition else ():
            if state.preconditioners[c]:
                usual = max(limit, state.when_new[c])
            else:
                usual = max(limit, _PLAIN_PRODUCTS) - 1
            if state.products[c] > usual or state.doubtful[c]:
                state.preconditioners[c] = _make_preconditioner(problem, state, c)
                state.when_new[c] = 0
                built += 1
        # 3) Newton direction, and its scores
        plain_limit = int(max(limit, _PLAIN_PRODUCTS)) if precondition else _MAX_PRODUCTS
        direction, moved, left, settled = _newton_direction(
            operator, state, C, gradient, live, plain_limit
        )
        new = live[state.when_new[live] == 0]
        state.when_new[new] = state.products[new]
        slope = np.einsum("rc,rc->c", gradient, direction)
        _refuse_overflow(slope)
        # 4) Line search in score space
        before = state.objective(C)
        for i, c in enumerate(live.tolist()):
            _advance(state, losses[c], c, direction[:, i], moved[:, i], C[c], slope[i])
        # 5) Record, and let go of the columns that have converged
        seen = -0.5 * slope / before[live]
        state.gap[live] = np.minimum(1.0, seen + 0.5 * left / before[live])
        state.converged[live] = settled & (state.gap[live] <= tol)
        state.doubtful[live] = ~state.converged[live] & (seen <= tol)
        if not precondition:
            state.forcing[state.doubtful] *= 0.1
        record = Record(
            iteration,
            state.objective(C),
            state.gap.copy(),
            np.array([point.auc() for point in state.points]),
            state.step.copy(),
            int(state.products[live].max()),
            state.passes,
            built,
            time.perf_counter() - problem.began,
        )
        history.append(record)
        if on_record is not None:
            on_record(record)
        live = live[~(state.converged | state.stalled)[live]]
    return history


def _make_preconditioner(problem: _Problem, state: _State, column: int) -> Preconditioner:
    loss, scores, C = problem.losses[column], state.scores[:, column], problem.C[column]
    sample = problem.sample
    if sample is None:
        point = state.points[column]
        return Preconditioner(problem.operator, loss, point, scores, C, problem.rng)
    # The sample's features are at hand already.
    loss, scores = sample.losses[column], scores[sample.rows]
    return Preconditioner(sample.operator, loss, loss.at(scores), scores, C, problem.rng)


def _draw_sample(problem: _Problem) -> _Sample | None:
    """Rows of both classes of every column, if there are many times more rows than that takes."""
    n_rows = problem.operator.n_rows
    size = max(_SAMPLE_ROWS * problem.operator.n_columns, n_rows // 16)
    share = np.zeros(n_rows)
    for loss in problem.losses:
        for members in (loss.pos, loss.neg):
            share[members] = np.maximum(share[members], min(1.0, size / 2 / members.size))
    if share.sum() * _SAMPLE_GAIN > n_rows:
        return None
    rows = np.flatnonzero(problem.rng.random(n_rows) < share)
    losses = [loss.sample(rows, share[rows]) for loss in problem.losses]
    if not all(loss.pos.size and loss.neg.size for loss in losses):
        return None
    return _Sample(rows, FeatureOperator(problem.operator.rows(rows)), losses)


def _start_on_sample(problem: _Problem, sample: _Sample, state: _State) -> None:
    """Begin the full problem where a sample of its rows ends.

    The first steps only find out which pairs stay active, and a sample whose rows are weighed up to
    stand for all tells that as well. Its last preconditioner serves the full problem, too.
    """
    few = _Problem(
        sample.operator, sample.losses, problem.C, _SAMPLE_TOL, True, problem.rng, problem.began
    )
    begun = _State(few.operator, few.losses, None)
    _iterate(few, begun, _SAMPLE_STEPS)
    state.coef, state.preconditioners = begun.coef, begun.preconditioners
    state.move_to(problem.operator.scores(state.coef), problem.losses)
    state.passes += 1 + int(np.ceil(begun.passes * sample.rows.size / problem.operator.n_rows))


def _finish(problem: _Problem, state: _State, history: list[Record]) -> Solution:
    # Scores were moved along with the coefficients; what is reported is computed from the latter.
    state.move_to(problem.operator.scores(state.coef), problem.losses)
    state.passes += 1
    return Solution(
        state.coef,
        state.scores,
        state.objective(problem.C),
        state.gap,
        state.converged,
        len(history),
        state.passes,
        history,
    )


def _newton_direction(
    operator: Operator,
    state: _State,
    C: Floats,
    gradient: Floats,
    columns: Indices,
    plain_limit: int,
) -> tuple[Floats, Floats, Floats, np.ndarray]:
    """Conjugate gradients on ``H d = -g``, a column leaving when its residual is small enough.

    Returns the directions (r, m); their scores (n, m), gathered on the way at no further pass; the
    size of the residuals left, in the preconditioner's norm; and which columns reached the wanted
    residual.
    """
    m = columns.size
    direction: Floats = np.zeros((operator.n_columns, m), order="F")
    moved: Floats = np.zeros((operator.n_rows, m), order="F")
    residual: Floats = np.asfortranarray(-gradient)
    conjugate: Floats = np.zeros_like(direction)
    size, first = np.zeros(m), np.zeros(m)
    for i, c in enumerate(columns):
        conjugate[:, i] = _precondition(state.preconditioners[c], residual[:, i])
        size[i] = first[i] = residual[:, i] @ conjugate[:, i]
    limits = np.array([_MAX_PRODUCTS if state.preconditioners[c] else plain_limit for c in columns])
    settled = first <= 0
    open_ = np.flatnonzero(~settled)
    count = 0
    while open_.size:
        count += 1
        along = operator.scores(conjugate[:, open_])
        curved = _stack(
            [state.points[columns[i]].hessian_product(along[:, j]) for j, i in enumerate(open_)]
        )
        product = conjugate[:, open_] + C[columns[open_]] * operator.pullback(curved)
        state.passes += 2
        for j, i in enumerate(open_.tolist()):
            step = size[i] / (conjugate[:, i] @ product[:, j])
            direction[:, i] += step * conjugate[:, i]
            moved[:, i] += step * along[:, j]
            residual[:, i] -= step * product[:, j]
            smoothed = _precondition(state.preconditioners[columns[i]], residual[:, i])
            size_now = residual[:, i] @ smoothed
            settled[i] = size_now <= state.forcing[columns[i]] ** 2 * first[i]
            conjugate[:, i] *= size_now / size[i]
            conjugate[:, i] += smoothed
            size[i] = size_now
            state.products[columns[i]] = count
        open_ = open_[~settled[open_] & (count < limits[open_])]
    return direction, moved, size, settled


def _precondition(preconditioner: Preconditioner | None, vector: Floats) -> Floats:
    return vector if preconditioner is None else preconditioner(vector)


def _advance(
    state: _State,
    loss: PairLoss,
    column: int,
    direction: Floats,
    moved: Floats,
    C: float,
    slope: float,
) -> None:
    """Move one column along its direction, or mark it as stalled: rounding allows no progress."""
    coef, scores = state.coef[:, column], state.scores[:, column]
    penalty = (float(coef @ coef), float(coef @ direction), float(direction @ direction))
    found = line_search(loss, state.points[column], scores, moved, penalty, C, slope)
    if found is None:
        state.step[column], state.stalled[column] = 0.0, True
        return
    state.step[column], state.scores[:, column], state.points[column] = found
    coef += state.step[column] * direction


def _refuse_overflow(values: Floats) -> None:
    if not np.isfinite(values).all():
        raise FloatingPointError("features or weights are so large that products overflow")


def _stack(columns: Sequence[Floats]) -> Floats:
    """Columns side by side, each contiguous."""
    return np.array(columns).T
