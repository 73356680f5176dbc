"""Truncated Newton for all-pairs losses, k columns in lockstep.

Each column c minimises ::

    f_c(w) = 1/2 ||w||^2 + C_c L_c(F w)

over the same features F, known by an operator alone. Columns share each pass over the data, so that
k products cost little more than one; a plain fit is k = 1.

Seven decisions, each measured on the paper's data (ijcnn1 and covtype, 1600 landmarks):

* The line search is near-exact and may go beyond 1. Pairs leave the active set along a step, so the
  curvature at its start is too large and steps of 1.3 to 4 are usual early on; this saves a quarter of
  the Newton steps. It happens in score space, where a trial costs a sort and no pass.
* The Newton system is solved to 0.3 in the preconditioned residual; 0.1 takes half as many passes
  again, 0.5 twice as many steps.
* Where at most a quarter of the rows have an active partner the system is solved on a copy of those
  alone, since the Hessian is zero in all others. The paper's grid on ijcnn1, in whose upper half they
  are 2 to 27 %, takes 455 instead of 1628 passes, 57 instead of 77 s.
* The first steps run without preconditioner: far from the optimum it does not pay, and with a small C
  it never does. It is built when conjugate gradients need it, and renewed when they have become slower
  than they were with it at first.
* With many rows the first steps are taken on a sample of them: 85 passes instead of 175 on covtype
  (464,809 rows, C = 10).
* A solve from zero at a large C goes through smaller ones, loosely, which start each other well: on
  ijcnn1 355 passes instead of 707 at C = 1.4e5, 593 instead of over 4000 at 2.2e6; below 1000 it
  makes no difference.
* The stopping rule is the Newton decrement relative to the objective: an estimate of the relative
  distance to the minimum, the same at every C and scale. It counts what conjugate gradients left
  over, ``1/2 r'M^(-1)r`` in the preconditioner's norm; without one M is the identity and, the Hessian
  being at least that, the count is an upper bound. Where that bound alone keeps a column from ending,
  the system is solved more closely, or a first preconditioner built. The step that the decrement was
  measured on is still taken; and if the objective then fell as foretold, what is left is known and
  may end the solve (``_gap_after``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aucmax.operators import Operator
from aucmax.pairs import Floats, Indices, PairLoss
from aucmax.runtime.deadline import NEVER, Deadline
from aucmax.solvers.conjugate_gradients import MAX_PRODUCTS, Direction, System, solve_system
from aucmax.solvers.hessian import Hessian
from aucmax.solvers.line_search import line_search, refuse_underflow
from aucmax.solvers.preconditioner import (
    MOST_COLUMNS,
    ROWS_PER_COLUMN,
    Curvature,
    Factor,
    patience,
)
from aucmax.solvers.row_sample import Sample, draw_sample

#: Relative residual at which conjugate gradients stop, unless a column needs more.
_FORCING = 0.3

#: How far below the truth the estimate of the distance may come out: on covtype up to 2.6 times.
_CAUTION = 3.0

#: Share of the tolerance that the estimate after a step has to meet.
_AFTER = 0.1

#: Products without preconditioner before one is built.
_PLAIN_PRODUCTS = 7

#: Products beyond which a new preconditioner is a poor one, of too few rows.
_SLOW_PRODUCTS = 12

#: How close to its minimum what only leads to a start is followed, in how many steps.
_ROUGH_TOL = 3e-3
_ROUGH_STEPS = 30

#: A solve from zero at a C above the first of these goes through smaller ones, by this factor apart.
_LARGE_C = 1e3
_STRIDE = 4.0
_MOST_STAGES = 20

#: What a solve takes up from another, beside what is named in :meth:`Newton.state`.
_ARRAYS = (
    "C",
    "coef",
    "converged",
    "gap",
    "_doubtful",
    "_forcing",
    "_products",
    "_stalled",
    "_step",
    "_when_new",
)
_NUMBERS = ("_begin_anew", "_rows_read", "_running", "_share", "_stage")

State = dict[str, Any]


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


class Newton:
    """A solve that can go on: when C changes, columns start from where they are.

    Columns that have converged are left there until the next :meth:`run`.

    Parameters
    ----------
    operator : Operator
        The features, n rows and r columns.
    losses : k pair losses over the n rows
    start : array of shape (r, k), optional
        Where to begin; zeros by default.
    tol, precondition, seed, deadline
        As in :func:`minimize`.
    """

    def __init__(
        self,
        operator: Operator,
        losses: Sequence[PairLoss],
        *,
        start: Floats | None = None,
        tol: float = 1e-4,
        precondition: bool = True,
        seed: int = 0,
        deadline: Deadline = NEVER,
    ) -> None:
        k, self._deadline = len(losses), deadline
        self.operator, self.losses, self.tol = operator, losses, tol
        self._precondition = precondition and operator.n_columns <= MOST_COLUMNS
        self._rng, self._began = np.random.default_rng(seed), time.perf_counter()
        self._rows_read = 0.0
        if start is None:
            self.coef: Floats = np.zeros((operator.n_columns, k), order="F")
            self.scores: Floats = np.zeros((operator.n_rows, k), order="F")
        else:
            self.coef = np.array(start, dtype=np.float64, order="F")
            self.scores = operator.scores(self.coef)
            self._count(1)
        self._move_to(self.scores)
        self.C: Floats = np.zeros(k)
        self._begin_anew = start is None
        self._sample: Sample | None = None
        self._before: tuple[Floats, Floats] | None = None  # where the last run began
        self._curvatures: list[Curvature | None] = [None] * k
        self._factors: list[Factor | None] = [None] * k
        self._products = np.zeros(k, dtype=np.intp)
        self._when_new = np.zeros(k, dtype=np.intp)  # products the preconditioner took at first
        self._rows_per_column = [ROWS_PER_COLUMN] * k
        self._step: Floats = np.zeros(k)
        self._share = 1.0  # of the rows, read by the last products
        self._running, self._stage = False, 0  # of the smaller C on the way, how many are left
        self._history: list[Record] = []
        self._reopen()

    def _reopen(self) -> None:
        k = len(self.losses)
        self.gap: Floats = np.full(k, np.inf)
        self.converged = np.zeros(k, dtype=bool)
        self._forcing: Floats = np.full(k, _FORCING)
        self._doubtful = np.zeros(k, dtype=bool)
        self._stalled = np.zeros(k, dtype=bool)

    @property
    def passes(self) -> int:
        """Rows read since the start, by how many there are."""
        return int(np.ceil(self._rows_read / self.operator.n_rows))

    def _count(self, passes: float, n_rows: int | None = None) -> None:
        self._rows_read += passes * (self.operator.n_rows if n_rows is None else n_rows)

    def _move_to(self, scores: Floats) -> None:
        self.scores = np.asfortranarray(scores)
        self._points = [loss.at(self.scores[:, c]) for c, loss in enumerate(self.losses)]

    def objective(self) -> Floats:
        """Of each column, where it is."""
        values = np.array([point.value for point in self._points])
        penalty: Floats = 0.5 * np.einsum("rc,rc->c", self.coef, self.coef)
        total: Floats = penalty + self.C * values
        return total

    def run(
        self,
        C: Floats,
        max_iter: int = 100,
        on_record: Callable[[Record], None] | None = None,
        on_state: Callable[[State], None] | None = None,
    ) -> list[Record]:
        """Minimise at weights ``C`` (k,), from where the columns are.

        ``on_state`` is called with :meth:`state` after each step. A run that :meth:`resume` has taken
        up goes on after the last one.
        """
        tol = self.tol
        if not self._running:
            # A large C is come to from zero by way of smaller ones, followed loosely.
            stages = np.ceil((np.log(C.max()) - np.log(_LARGE_C)) / np.log(_STRIDE))
            self._stage = int(np.clip(stages, 0, _MOST_STAGES)) if self._begin_anew else 0
            self._begin_at(C / _STRIDE**self._stage)
        self._running = True
        while self._stage:
            self.tol = max(tol, _ROUGH_TOL)
            self._iterate(min(max_iter, _ROUGH_STEPS), None, on_state)
            if self._deadline.over():
                break
            self.tol, self._stage = tol, self._stage - 1
            self._begin_at(C / _STRIDE**self._stage)
        if self._stage:  # time was over on the way to a large C: what is there is for a smaller one
            self.tol, self._stage, self.C = tol, 0, C
        else:
            self._iterate(max_iter, on_record, on_state)
        self._running = False
        return self._history

    def state(self) -> State:
        """All that a solve of the same problem needs to go on from here, as plain data and arrays.

        Scores are left out, being one pass away, and so are preconditioners: they are built anew.
        """
        arrays = {name: getattr(self, name).copy() for name in _ARRAYS}
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        return {
            **arrays,
            **numbers,
            "before": None if self._before is None else self._before[0],
            "preconditioned": [curvature is not None for curvature in self._curvatures],
            "rows_per_column": list(self._rows_per_column),
            "history": [dict(vars(record)) for record in self._history],
            "rng": self._rng.bit_generator.state,
            "seconds": time.perf_counter() - self._began,
        }

    def resume(self, state: State) -> None:
        """Take up a solve of the same problem where :meth:`state` was told."""
        for name in _ARRAYS:
            setattr(self, name, state[name].copy(order="F"))
        for name in _NUMBERS:
            setattr(self, name, state[name])
        self._rows_per_column = list(state["rows_per_column"])
        self._rng.bit_generator.state = state["rng"]
        self._history = [Record(**record) for record in state["history"]]
        self._began, k = time.perf_counter() - state["seconds"], len(self.losses)
        before = self.coef if state["before"] is None else state["before"]
        scores = self.operator.scores(np.column_stack([self.coef, before]))
        self._count(1)
        self._move_to(scores[:, :k])
        self._before = None if state["before"] is None else (before, scores[:, k:])
        for c in np.flatnonzero(state["preconditioned"]).tolist():
            self._curvatures[c] = self._measure(c)

    def _begin_at(self, C: Floats) -> None:
        """Set new weights, and go where they are likely to lead."""
        self.C, self._history = C, []
        self._reopen()
        self._factors = [None] * len(self.losses)  # made for the new C where needed
        here = self.coef.copy(), self.scores.copy()
        if not self._begin_anew:
            self._follow_path()
        elif self._precondition:
            self._sample = draw_sample(self.operator, self.losses, self._rng)
            if self._sample is not None:
                self._start_on_sample(self._sample)
        self._before, self._begin_anew = here, False

    def solution(self, history: list[Record]) -> Solution:
        """Where the columns are; scores were moved along, and are computed from there once more."""
        self._move_to(self.operator.scores(self.coef))
        self._count(1)
        return Solution(
            self.coef,
            self.scores,
            self.objective(),
            self.gap,
            self.converged,
            len(history),
            self.passes,
            history,
        )

    def _follow_path(self) -> None:
        """Go on in the direction of the last change of C, as far as that helps; it takes no pass."""
        if self._before is None:
            return
        coef, scores = self._before
        for c, loss in enumerate(self.losses):
            direction, moved = self.coef[:, c] - coef[:, c], self.scores[:, c] - scores[:, c]
            slope = float(self.coef[:, c] @ direction + self.C[c] * (self._points[c].gradient @ moved))
            if slope < 0:
                self._advance(loss, c, direction, moved, slope)
        self._stalled[:] = False

    def _iterate(
        self,
        max_iter: int,
        on_record: Callable[[Record], None] | None,
        on_state: Callable[[State], None] | None,
    ) -> None:
        operator, C, tol = self.operator, self.C, self.tol
        limit = patience(operator)
        plain_limit = int(max(limit, _PLAIN_PRODUCTS)) if self._precondition else MAX_PRODUCTS
        while len(self._history) < max_iter:
            live = np.flatnonzero(~(self.converged | self._stalled))
            if not live.size or self._deadline.over():
                break
            # 1) Gradient
            pulled = operator.pullback(_stack([self._points[c].gradient for c in live]))
            gradient = self.coef[:, live] + C[live] * pulled
            self._count(1)
            _refuse_overflow(gradient)
            refuse_underflow(gradient)
            # 2) Preconditioners, where conjugate gradients have become slow
            built = self._renew(live, limit) if self._precondition else 0
            # 3) Newton direction, and its scores
            found = self._newton_direction(gradient, live, plain_limit)
            direction, moved, left = found.coef, found.scores, found.left
            new = live[self._when_new[live] == 0]
            self._when_new[new] = self._products[new]
            slope = np.einsum("rc,rc->c", gradient, direction)
            _refuse_overflow(np.append(slope, left))
            # 4) Line search in score space
            before = self.objective()[live]
            for i, c in enumerate(live.tolist()):
                self._advance(self.losses[c], c, direction[:, i], moved[:, i], slope[i])
            # 5) Record, and let go of the columns that have converged
            objective = self.objective()
            seen = -0.5 * slope / before
            self.gap[live] = np.minimum(1.0, _CAUTION * (seen + 0.5 * left / before))
            after = _gap_after(before, objective[live], slope, left, self._step[live])
            self.converged[live] = found.solved & ((self.gap[live] <= tol) | (after <= _AFTER * tol))
            self._doubtful[live] = ~self.converged[live] & (seen <= tol)
            for c in np.flatnonzero(self._doubtful).tolist():
                if not self._precondition or self._curvatures[c] is not None:
                    self._forcing[c] *= 0.1
            record = Record(
                len(self._history) + 1,
                objective,
                self.gap.copy(),
                np.array([point.auc() for point in self._points]),
                self._step.copy(),
                int(self._products[live].max()),
                self.passes,
                built,
                time.perf_counter() - self._began,
            )
            self._history.append(record)
            if on_record is not None:
                on_record(record)
            if on_state is not None:
                on_state(self.state())

    def _renew(self, live: Indices, limit: float) -> int:
        """Build preconditioners for the columns that need a new one; the number built.

        One that was slow from the start is followed by one of twice as many rows, if there are more.
        """
        built = 0
        for c in live.tolist():
            curvature, worth = self._curvatures[c], limit
            usual, grow = max(limit, _PLAIN_PRODUCTS) - 1, False
            if curvature is not None:
                worth = patience(self.operator, curvature.n_rows, self._share)
                usual = max(worth, self._when_new[c])
                grow = self._when_new[c] > max(worth, _SLOW_PRODUCTS) and not curvature.all_rows
            slow = self._products[c] > (worth if grow else usual)
            if slow or (self._doubtful[c] and curvature is None):
                self._rows_per_column[c] *= 2 if grow else 1
                self._curvatures[c], self._factors[c] = self._measure(c), None
                self._when_new[c] = 0
                built += 1
        return built

    def _factor(self, column: int) -> Factor | None:
        curvature = self._curvatures[column]
        if self._factors[column] is None and curvature is not None:
            self._factors[column] = curvature.factor(float(self.C[column]))
        return self._factors[column]

    def _measure(self, column: int) -> Curvature:
        loss, scores, sample = self.losses[column], self.scores[:, column], self._sample
        operator, point, per_column = self.operator, self._points[column], self._rows_per_column[column]
        if sample is not None:
            # Its features are at hand already; those of more rows would cost more than they save.
            operator, loss, scores = sample.operator, sample.losses[column], scores[sample.rows]
            point = loss.at(scores)
        return Curvature(operator, loss, point, scores, self._rng, per_column)

    def _start_on_sample(self, sample: Sample) -> None:
        """Begin the full problem where a sample of its rows ends.

        The first steps only find out which pairs stay active, and a sample whose rows are weighed up
        to stand for all tells that as well. Its last preconditioner serves the full problem, too.
        """
        few = Newton(sample.operator, sample.losses, tol=_ROUGH_TOL, deadline=self._deadline)
        few._begin_anew, few._rng = False, self._rng
        few.run(self.C, _ROUGH_STEPS)
        self.coef, self._curvatures = few.coef, few._curvatures
        self._move_to(self.operator.scores(self.coef))
        self._count(1)
        self._count(few.passes, sample.rows.size)

    def _newton_direction(self, gradient: Floats, live: Indices, plain_limit: int) -> Direction:
        """The directions of the live problems, with their scores on all rows."""
        hessian = Hessian(self.operator, [self._points[c] for c in live.tolist()])
        near = _AFTER * self.tol * self.objective()[live] if self._precondition else None
        factors = [self._factor(c) for c in live.tolist()]
        system = System(
            hessian, gradient, self.C[live], factors, self._forcing[live], near, plain_limit
        )
        found = solve_system(system, self._deadline)
        tried = found.products > 0
        self._products[live[tried]] = found.products[tried]
        self._count(2 * int(found.products.max(initial=0)), hessian.n_rows)
        self._share = max(1, hessian.n_rows) / self.operator.n_rows
        if hessian.rows is None:
            return found
        self._count(1, hessian.n_rows)  # to copy them
        self._count(1)
        return replace(found, scores=self.operator.scores(found.coef))

    def _advance(
        self, loss: PairLoss, column: int, direction: Floats, moved: Floats, slope: float
    ) -> None:
        """Move one column along its direction, or mark it as stalled: rounding allows no progress."""
        coef, scores, C = self.coef[:, column], self.scores[:, column], float(self.C[column])
        penalty = (float(coef @ coef), float(coef @ direction), float(direction @ direction))
        found = line_search(loss, self._points[column], scores, moved, penalty, C, slope)
        if found is None:
            self._step[column], self._stalled[column] = 0.0, True
            return
        self._step[column], self.scores[:, column], self._points[column] = found
        coef += self._step[column] * direction


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
    state: State | None = None,
    on_state: Callable[[State], None] | None = None,
    deadline: Deadline = NEVER,
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
        A column has converged when it is by estimate at most ``tol`` times its objective above the
        minimum.
    max_iter : int
        Newton steps.
    precondition : bool
        False leaves the preconditioner out, for comparison. Above 20,000 columns none is built.
    on_record : callable, optional
        Called with the :class:`Record` of each step.
    seed : int
        For the rows the preconditioner samples; the minimiser does not depend on it.
    state : dict, optional
        Of an earlier solve of the same problem, to go on from there.
    on_state : callable, optional
        Called with the state after each step; see :meth:`Newton.state`.
    deadline : Deadline
        When to stop: after the product at hand, with what has been reached.
    """
    newton = Newton(
        operator, losses, start=start, tol=tol, precondition=precondition, seed=seed, deadline=deadline
    )
    if state is not None:
        newton.resume(state)
    return newton.solution(newton.run(C, max_iter, on_record, on_state))


def _gap_after(before: Floats, after: Floats, slope: Floats, left: Floats, step: Floats) -> Floats:
    """Estimated relative distance to the minimum after steps along directions of conjugate gradients.

    On a quadratic with the curvature at the start, a step t lowers the objective by
    ``-slope (t - t^2 / 2)`` and leaves ``-slope (1 - t)^2 / 2`` and what conjugate gradients left. How
    far the objective came out from that tells how far the curvature has changed on the way, which is
    counted in full.
    """
    expected = -slope * (step - 0.5 * step**2)
    surprise = np.abs((before - after) - expected)
    out: Floats = (-0.5 * slope * (1.0 - step) ** 2 + 0.5 * left + surprise) / before
    return out


def _refuse_overflow(values: Floats) -> None:
    if not np.isfinite(values).all():
        raise FloatingPointError("features or weights are so large that products overflow")


def _stack(columns: Sequence[Floats]) -> Floats:
    """Columns side by side, each contiguous."""
    return np.array(columns).T
