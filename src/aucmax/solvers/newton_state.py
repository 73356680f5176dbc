"""What a Newton solve of k problems is given, and what changes while it runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np

from aucmax.operators import Operator
from aucmax.pairs import Floats, Indices, Mask, PairLoss, PairPoint
from aucmax.solvers.options import SavedState, Stopping
from aucmax.solvers.preconditioner import Preconditioner

#: Relative residual to which the Newton system is solved at first; 0.1 takes half as many passes again,
#: 0.5 twice as many steps.
FORCING = 0.3

#: Attributes of a state that are saved as they are.
_SAVED = (
    *("C", "coef", "step", "gap", "converged", "stalled", "doubtful", "forcing"),
    *("from_zero", "rows_read", "share_read", "stages_left"),
)


@dataclass(frozen=True)
class Record:
    """What one Newton step did; arrays hold one entry per problem."""

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
class Data:
    """What stays the same during a solve: the features, a loss per problem, and the options."""

    operator: Operator
    losses: Sequence[PairLoss]
    precondition: bool
    stopping: Stopping


@dataclass
class State:
    """Where k problems are and what is known of them; arrays hold one entry per problem."""

    coef: Floats  #: (r, k)
    rng: np.random.Generator
    from_zero: bool  #: whether no run has begun, and none of the problems was given a start
    preconditioners: list[Preconditioner]
    C: Floats
    step: Floats  #: length of the last step
    scores: Floats = field(init=False)  #: (n, k)
    points: list[PairPoint] = field(init=False)  #: the losses at these scores
    gap: Floats = field(init=False)  #: estimated relative distance to the minimum
    converged: Mask = field(init=False)
    stalled: Mask = field(init=False)  #: rounding allows no further progress
    doubtful: Mask = field(init=False)  #: only what conjugate gradients left may prevent convergence
    forcing: Floats = field(init=False)  #: relative residual to which the Newton system is solved
    history: list[Record] = field(init=False)
    previous: tuple[Floats, Floats] | None = None  #: coef and scores at which the last run began
    sample: tuple[Indices, Data] | None = None  #: the rows on which the first steps were taken
    stages_left: int | None = None  #: smaller values of C still to be solved for; None between runs
    rows_read: float = 0.0
    share_read: float = 1.0  #: share of the rows that the last Hessian products read
    began: float = field(default_factory=time.perf_counter)

    @classmethod
    def at(cls, data: Data, rng: np.random.Generator, start: Floats | None = None) -> State:
        """Begin at the coefficients ``start``, or at zero without a pass over the data."""
        operator, k = data.operator, len(data.losses)
        coef = np.zeros((operator.n_columns, k)) if start is None else start
        coef = np.array(coef, dtype=np.float64, order="F")
        builders = [Preconditioner() for _ in range(k)]
        state = cls(coef, rng, start is None, builders, np.zeros(k), np.zeros(k))
        if start is None:
            state.move_to(np.zeros((operator.n_rows, k), order="F"), data.losses)
        else:
            state.compute_scores(data)
        state.reopen(state.C)
        return state

    @property
    def passes(self) -> int:
        """Rows read since the start, in multiples of all rows."""
        return int(np.ceil(self.rows_read / len(self.scores)))

    def objective(self) -> Floats:
        """Return the objective of each problem at its coefficients."""
        values = np.array([point.value for point in self.points])
        penalty: Floats = 0.5 * np.einsum("rc,rc->c", self.coef, self.coef)
        total: Floats = penalty + self.C * values
        return total

    def compute_scores(self, data: Data) -> None:
        """Compute the scores from the coefficients, in one pass."""
        self.move_to(data.operator.scores(self.coef), data.losses)
        self.rows_read += data.operator.n_rows

    def move_to(self, scores: Floats, losses: Sequence[PairLoss]) -> None:
        """Evaluate the losses at new scores."""
        self.scores = np.asfortranarray(scores)
        self.points = [loss.at(self.scores[:, c]) for c, loss in enumerate(losses)]

    def reopen(self, C: Floats) -> None:
        """Set the weights ``C`` and drop what holds for other weights only."""
        self.C, self.history, k = C, [], C.size
        self.gap, self.forcing = np.full(k, np.inf), np.full(k, FORCING)
        self.converged, self.stalled, self.doubtful = np.zeros((3, k), dtype=bool)
        for preconditioner in self.preconditioners:
            preconditioner.factor = None

    def save(self) -> SavedState:
        """Return all that a solve of the same problems needs to continue from here.

        Scores are left out, as one pass computes them, and so are the preconditioners' matrices.
        """
        return {
            **deepcopy({name: getattr(self, name) for name in _SAVED}),
            "previous": None if self.previous is None else self.previous[0],
            "preconditioners": [each.counts() for each in self.preconditioners],
            "preconditioned": [each.curvature is not None for each in self.preconditioners],
            "history": [dict(vars(record)) for record in self.history],
            "rng": self.rng.bit_generator.state,
            "seconds": time.perf_counter() - self.began,
        }

    def restore(self, data: Data, saved: SavedState) -> None:
        """Take over what :meth:`save` returned, in one pass; preconditioners are left to be rebuilt."""
        for name in _SAVED:
            value = saved[name]
            setattr(self, name, np.array(value, order="F") if np.ndim(value) else value)
        self.preconditioners = [Preconditioner(**each) for each in saved["preconditioners"]]
        self.history = [Record(**record) for record in saved["history"]]
        self.rng.bit_generator.state = saved["rng"]
        self.began, k = time.perf_counter() - saved["seconds"], len(data.losses)
        before = self.coef if saved["previous"] is None else saved["previous"]
        scores = data.operator.scores(np.column_stack([self.coef, before]))
        self.rows_read += data.operator.n_rows
        self.move_to(scores[:, :k], data.losses)
        self.previous = None if saved["previous"] is None else (before, scores[:, k:])
