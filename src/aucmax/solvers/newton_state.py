"""The constant data of a Newton solve of k problems, and the state that changes while it runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from aucmax.operators.interface import Operator
from aucmax.pairs import Floats, Indices, Mask, PairLoss, PairPoint
from aucmax.solvers.options import ROWS_PER_FEATURE, SavedState, Stopping

if TYPE_CHECKING:
    from aucmax.solvers.preconditioner import Curvature

#: Relative residual to which the Newton system is solved at first. With 0.1 a solve takes half as many
#: passes again, with 0.5 twice as many steps.
FORCING = 0.3

#: Attributes of a state that are saved as they are.
_SAVED = "C coef step gap converged stalled doubtful forcing rows_read share_read stages_left"


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


@dataclass
class Preconditioner:
    """The preconditioner of one problem, if one has been built, and the products it takes."""

    rows_per_feature: int = ROWS_PER_FEATURE
    products: int = 0  #: in the last Newton system
    first_products: int = 0  #: in the first Newton system since it was built
    curvature: Curvature | None = None


@dataclass(frozen=True)
class Data:
    """What stays the same during a solve: the features, a loss per problem, and the options."""

    operator: Operator
    losses: Sequence[PairLoss]
    precondition: bool
    stopping: Stopping
    patience: float = 1.0  #: how many times longer to wait before a preconditioner is built


@dataclass
class State:
    """Where k problems are and what is known of them; arrays hold one entry per problem."""

    coef: Floats  #: (r, k)
    step: Floats  #: length of the last step
    preconditioners: list[Preconditioner]
    rng: np.random.Generator
    scores: Floats = field(init=False)  #: (n, k)
    points: list[PairPoint] = field(init=False)  #: the losses at these scores
    C: Floats = field(init=False)
    gap: Floats = field(init=False)  #: estimated relative distance to the minimum
    converged: Mask = field(init=False)
    stalled: Mask = field(init=False)  #: rounding allows no further progress
    doubtful: Mask = field(init=False)  #: only the residual of conjugate gradients prevents convergence
    forcing: Floats = field(init=False)  #: relative residual to which the Newton system is solved
    history: list[Record] = field(init=False)
    previous: tuple[Floats, Floats] | None = None  #: coef and scores where the last run began, if any
    sample: tuple[Indices, Data] | None = None  #: the rows on which the first steps were taken
    stages_left: int | None = None  #: smaller values of C still to be solved for; None between runs
    rows_read: float = 0.0
    share_read: float = 1.0  #: share of the rows that the last Hessian products read
    began: float = field(default_factory=time.perf_counter)

    @classmethod
    def at_zero(cls, data: Data, rng: np.random.Generator) -> State:
        """Begin with coefficients of zero."""
        n, r, k = data.operator.n_rows, data.operator.n_features, len(data.losses)
        preconditioners = [Preconditioner() for _ in range(k)]
        state = cls(np.zeros((r, k), order="F"), np.zeros(k), preconditioners, rng)
        state.move_to(np.zeros((n, k), order="F"), data)
        state.reopen(np.zeros(k))
        return state

    @property
    def passes(self) -> int:
        """Rows read since the start, in multiples of all rows."""
        return int(np.ceil(self.rows_read / len(self.scores)))

    def objective(self) -> Floats:
        """Return the objective of each problem."""
        values = np.array([point.value for point in self.points])
        penalty: Floats = 0.5 * np.einsum("rc,rc->c", self.coef, self.coef)
        total: Floats = penalty + self.C * values
        return total

    def compute_scores(self, data: Data) -> None:
        """Compute the scores from the coefficients, in one pass."""
        self.move_to(data.operator.scores(self.coef), data)
        self.rows_read += data.operator.n_rows

    def move_to(self, scores: Floats, data: Data) -> None:
        """Evaluate the losses at new scores."""
        self.scores = np.asfortranarray(scores)
        self.points = [loss.at(self.scores[:, c]) for c, loss in enumerate(data.losses)]

    def reopen(self, C: Floats) -> None:
        """Set the weights ``C`` and drop what holds for other weights only."""
        self.C, self.history, k = C, [], C.size
        self.gap, self.forcing = np.full(k, np.inf), np.full(k, FORCING)
        self.converged, self.stalled, self.doubtful = np.zeros((3, k), dtype=bool)

    def save(self) -> SavedState:
        """Return what a solve of the same problems needs to continue from here.

        Scores are left out, as one pass computes them, and so are the preconditioners' matrices.
        """
        own = self.preconditioners
        return {
            **deepcopy({name: getattr(self, name) for name in _SAVED.split()}),
            "previous": None if self.previous is None else self.previous[0],
            "preconditioned": [each.curvature is not None for each in own],
            "counts": [[each.rows_per_feature, each.products, each.first_products] for each in own],
            "history": [dict(vars(record)) for record in self.history],
            "rng": self.rng.bit_generator.state,
            "seconds": time.perf_counter() - self.began,
        }

    def restore(self, data: Data, saved: SavedState) -> None:
        """Take over what :meth:`save` returned, in one pass; preconditioners are left to be rebuilt."""
        for name in _SAVED.split():
            value = saved[name]
            setattr(self, name, np.array(value, order="F") if np.ndim(value) else value)
        self.preconditioners = [Preconditioner(*counts) for counts in saved["counts"]]
        self.history = [Record(**record) for record in saved["history"]]
        self.rng.bit_generator.state = saved["rng"]
        self.began, k = time.perf_counter() - saved["seconds"], len(data.losses)
        before = self.coef if saved["previous"] is None else saved["previous"]
        scores = data.operator.scores(np.column_stack([self.coef, before]))
        self.rows_read += data.operator.n_rows
        self.move_to(scores[:, :k], data)
        self.previous = None if saved["previous"] is None else (before, scores[:, k:])
