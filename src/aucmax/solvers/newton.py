"""Truncated Newton for all-pairs losses, k problems in lockstep.

Each problem c minimises ::

    f_c(w) = 1/2 ||w||^2 + C_c L_c(F w)

over the same features F, of which the solver knows only an operator. The problems share each pass over
the data, so that k products cost little more than one; a plain fit is k = 1.

The parts, each with the measurements behind it: :mod:`~aucmax.solvers.newton_steps` takes the steps and
decides when to stop, :mod:`~aucmax.solvers.conjugate_gradients` solves for their directions on the rows
that :mod:`~aucmax.solvers.hessian` selects, :mod:`~aucmax.solvers.line_search` finds their lengths, and
:mod:`~aucmax.solvers.starts` and :mod:`~aucmax.solvers.stages` make the first steps cheap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aucmax.operators import Operator
from aucmax.pairs import Floats, Mask, PairLoss
from aucmax.solvers.newton_state import Data, Record, State
from aucmax.solvers.newton_steps import build_preconditioner
from aucmax.solvers.options import DEFAULT_STOPPING, NO_HOOKS, Hooks, SavedState, Stopping
from aucmax.solvers.preconditioner import MOST_COLUMNS
from aucmax.solvers.stages import solve_in_stages

__all__ = ["Newton", "Record", "Solution", "minimize"]


@dataclass(frozen=True)
class Solution:
    """The minimisers ``coef`` (r, k) and how they were reached."""

    coef: Floats
    scores: Floats
    objective: Floats
    gap: Floats
    converged: Mask
    n_iter: int
    passes: int
    history: list[Record]


class Newton:
    """A solve that can continue: when C changes, the problems start from where they are.

    The parameters are those of :func:`minimize`; ``seed`` is for the rows that preconditioners sample,
    on which the minimisers do not depend.
    """

    def __init__(
        self,
        operator: Operator,
        losses: Sequence[PairLoss],
        *,
        stopping: Stopping = DEFAULT_STOPPING,
        start: Floats | None = None,
        precondition: bool = True,
        seed: int = 0,
    ) -> None:
        precondition = precondition and operator.n_columns <= MOST_COLUMNS
        self.data = Data(operator, losses, precondition, stopping)
        self._state = State.at(self.data, np.random.default_rng(seed), start)

    def run(self, C: Floats, hooks: Hooks = NO_HOOKS) -> list[Record]:
        """Minimise at weights ``C`` (k,) and return a record per step.

        A run starts where the problems are; after :meth:`resume` it continues the run that was saved.
        """
        solve_in_stages(self.data, self._state, C, hooks)
        return self._state.history

    def state(self) -> SavedState:
        """Return what a solve of the same problems needs to continue, as plain data and arrays."""
        return self._state.save()

    def resume(self, saved: SavedState) -> None:
        """Continue a solve of the same problems from what :meth:`state` returned."""
        self._state.restore(self.data, saved)
        for c in np.flatnonzero(saved["preconditioned"]).tolist():
            build_preconditioner(self.data, self._state, c)

    def solution(self) -> Solution:
        """Return the minimisers; scores, which steps have only updated, are computed once more."""
        now = self._state
        now.compute_scores(self.data)
        reached = (now.coef, now.scores, now.objective(), now.gap, now.converged)
        return Solution(*reached, len(now.history), now.passes, now.history)

    def objective(self) -> Floats:
        """Return the objective of each problem at its coefficients."""
        return self._state.objective()

    @property
    def coef(self) -> Floats:
        """Coefficients (r, k)."""
        return self._state.coef

    @property
    def scores(self) -> Floats:
        """Scores (n, k)."""
        return self._state.scores

    @property
    def gap(self) -> Floats:
        """Estimated relative distance of each problem to its minimum."""
        return self._state.gap

    @property
    def converged(self) -> Mask:
        """Whether each problem has converged."""
        return self._state.converged

    @property
    def passes(self) -> int:
        """Passes over the data since the start."""
        return self._state.passes


def minimize(
    operator: Operator,
    losses: Sequence[PairLoss],
    C: Floats,
    *,
    stopping: Stopping = DEFAULT_STOPPING,
    start: Floats | None = None,
    precondition: bool = True,
    state: SavedState | None = None,
    hooks: Hooks = NO_HOOKS,
) -> Solution:
    """Minimise ``1/2 ||w||^2 + C L(F w)`` for each problem.

    Parameters
    ----------
    operator : Operator
        The features, n rows and r columns.
    losses : k pair losses over the n rows
    C : array of shape (k,)
    stopping : Stopping
    start : array of shape (r, k), optional
        Coefficients to start from; zeros by default.
    precondition : bool
        False leaves the preconditioner out, for comparison. Above 20,000 columns none is built.
    state : dict, optional
        The state of an earlier solve of the same problems, to continue from.
    hooks : Hooks
        Called with the :class:`Record` of each step and with :meth:`Newton.state` after it.
    """
    newton = Newton(operator, losses, stopping=stopping, start=start, precondition=precondition)
    if state is not None:
        newton.resume(state)
    newton.run(C, hooks)
    return newton.solution()
