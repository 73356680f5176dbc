"""Truncated Newton for all-pairs losses, k problems in lockstep.

Each problem c minimises ``f_c(w) = 1/2 ||w||^2 + C_c L_c(F w)`` over the same features F, which the
solver knows only as an operator. The problems share each pass over the data, so that k products cost
little more than one; a plain fit is k = 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aucmax.operators.interface import Operator
from aucmax.pairs import Floats, Mask, PairLoss
from aucmax.solvers.newton_state import Data, Record, State
from aucmax.solvers.newton_steps import build_preconditioner, iterate
from aucmax.solvers.options import DEFAULT_STOPPING, NO_HOOKS, Hooks, SavedState, Stopping
from aucmax.solvers.preconditioner import MOST_FEATURES
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

    The parameters are those of :func:`minimize`. With ``patience`` above 1, preconditioners are built
    after that many times more products, which pays for few rows. The ``seed`` determines which rows
    preconditioners sample; the minimisers do not depend on it.
    """

    def __init__(
        self,
        operator: Operator,
        losses: Sequence[PairLoss],
        *,
        stopping: Stopping = DEFAULT_STOPPING,
        precondition: bool = True,
        patience: float = 1.0,
        seed: int = 0,
    ) -> None:
        precondition = precondition and operator.n_features <= MOST_FEATURES
        self.data = Data(operator, losses, precondition, stopping, patience)
        self._state = State.at_zero(self.data, np.random.default_rng(seed))

    def run(self, C: Floats, hooks: Hooks = NO_HOOKS) -> Solution:
        """Minimise at weights ``C`` (k,) from where the problems are, or continue a saved run.

        The next run changes the arrays of the solution. Its scores were updated step by step;
        :meth:`solution` computes them from the coefficients.
        """
        solve_in_stages(self.data, self._state, C, hooks, iterate)
        return _solution(self._state)

    def solution(self) -> Solution:
        """Return where the problems are, with scores computed in one more pass."""
        self._state.compute_scores(self.data)
        return _solution(self._state)

    def state(self) -> SavedState:
        """Return what a solve of the same problems needs to continue, as plain data and arrays."""
        return self._state.save()

    def resume(self, saved: SavedState) -> None:
        """Continue a solve of the same problems from what :meth:`state` returned."""
        self._state.restore(self.data, saved)
        for c in np.flatnonzero(saved["preconditioned"]).tolist():
            build_preconditioner(self.data, self._state, c)


def minimize(
    operator: Operator,
    losses: Sequence[PairLoss],
    C: Floats,
    *,
    stopping: Stopping = DEFAULT_STOPPING,
    precondition: bool = True,
    state: SavedState | None = None,
    hooks: Hooks = NO_HOOKS,
) -> Solution:
    """Minimise ``1/2 ||w||^2 + C L(F w)`` for k problems with weights ``C`` (k,).

    The operator has n rows and r features; each of the k losses is over the n rows. The
    solve begins at zero, or continues from the ``state`` of an earlier solve of the same problems.
    ``precondition=False`` leaves the preconditioner out, for comparison; above 20,000 features none is
    built. The ``hooks`` are called with the :class:`Record` of each step and with :meth:`Newton.state`
    after it.
    """
    newton = Newton(operator, losses, stopping=stopping, precondition=precondition)
    if state is not None:
        newton.resume(state)
    newton.run(C, hooks)
    return newton.solution()


def _solution(at: State) -> Solution:
    reached = (at.coef, at.scores, at.objective(), at.gap, at.converged)
    return Solution(*reached, len(at.history), at.passes, at.history)
