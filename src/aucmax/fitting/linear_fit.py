"""Fit scores that are linear in the columns."""

from __future__ import annotations

from typing import Any

from aucmax.fitting.attributes import intercepts
from aucmax.fitting.context import Context
from aucmax.fitting.machines import LinearMachine
from aucmax.fitting.newton_fit import solve_newton
from aucmax.fitting.problem import Problem
from aucmax.fitting.scaling import Scaling, scaled
from aucmax.operators.blocks import BlockOperator
from aucmax.operators.in_memory import FeatureOperator
from aucmax.operators.interface import Operator
from aucmax.rows.interface import Rows


def linear_operator(rows: Rows) -> Operator:
    """Return rows as features."""
    if rows.in_memory:
        return FeatureOperator(rows[:])
    return BlockOperator(rows, rows.shape[1], cost=2.0)


def fit_linear(
    problem: Problem, C: float, standardize: bool, tol: float, max_iter: int, context: Context
) -> tuple[LinearMachine, dict[str, Any]]:
    """Return the linear machine of a problem, and the learnt attributes that describe the fit."""
    scaler, rows = scaled(problem, Scaling(standardize, names=problem.names), context)
    solution, about = solve_newton(linear_operator(rows), problem, C, tol, max_iter, context)
    intercept = intercepts(solution.scores, problem, context.name)
    machine = LinearMachine.of_scaled(solution.coef, intercept, scaler)
    return machine, {**about, "scaler_": scaler}
