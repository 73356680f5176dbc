"""Solve all problems of a fit by truncated Newton, and report what came of it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from aucmax.fitting.attributes import plain, plain_record
from aucmax.fitting.context import Context, check_begun
from aucmax.fitting.problem import Problem
from aucmax.operators.interface import Operator
from aucmax.runtime.parameters import warn_user
from aucmax.runtime.progress import ClosingGap, LiveLine, describe_step
from aucmax.solvers.newton import Record, Solution, minimize
from aucmax.solvers.options import Hooks, Stopping


def solve_newton(
    operator: Operator,
    problem: Problem,
    C: float,
    tol: float,
    max_iter: int,
    context: Context,
) -> tuple[Solution, dict[str, Any]]:
    """Solve all problems at C; return the solution and the learnt attributes that describe it."""
    losses, checkpoint, closing = problem.losses(), context.checkpoint, ClosingGap(tol)

    def show(record: Record) -> None:
        gap, auc = float(record.gap.max()), float(record.auc.min())
        left = closing.left(gap, record.seconds)
        context.status.show(f"solving: step {record.iteration}, training AUC {auc:.4f}", left)

    with LiveLine(partial(describe_step, tol=tol)) as line:
        solution = minimize(
            operator,
            losses,
            np.full(len(losses), C),
            stopping=Stopping(tol, max_iter, context.deadline),
            state=checkpoint.recall("newton"),
            hooks=Hooks(line if context.verbose else show, checkpoint.hook("newton")),
        )
    check_begun(solution.n_iter, context.deadline)
    if not solution.converged.all():
        _warn_early(solution, C, tol, max_iter, context)
    return solution, {
        "objective_": plain(solution.objective),
        "n_iter_": solution.n_iter,
        "converged_": bool(solution.converged.all()),
        "history_": [plain_record(record) for record in solution.history],
    }


def _warn_early(solution: Solution, C: float, tol: float, max_iter: int, context: Context) -> None:
    worst = int(np.where(solution.converged, -np.inf, solution.gap).argmax())
    if context.deadline.over():
        advice = f"time_budget={context.deadline.seconds:g} s was over, so allow more time"
    elif solution.n_iter >= max_iter:
        advice = f"raise max_iter={max_iter} or tol={tol:g}"
    else:
        advice = f"rounding allows no further progress, so raise tol={tol:g} or lower C={C:g}"
    warn_user(
        f"{context.name} stopped after {solution.n_iter} Newton steps about {solution.gap[worst]:.1e} "
        f"(relative) from the optimum: {advice}.",
        ConvergenceWarning,
    )
