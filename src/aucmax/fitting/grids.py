"""The values of C and gamma that a search goes over.

The paper's grids of C and of its stochastic lambda are here, because searches use them by default. Its
other grids, which only the reproduction needs, are in ``paper/methods.py``.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.fitting.problem import Problem
from aucmax.runtime.parameters import AUTO, GRID, NONE, Number

Array = npt.NDArray[Any]

#: The paper's values of C, for ``1/2 ||w||^2 + C sum over pairs``, and of its stochastic lambda.
PAPER_C = 2.0 ** np.arange(-15, 11)
PAPER_LAMBDA = 10.0 ** np.arange(-10, -6)

#: What the parameters of a search may be.
CS = (AUTO, Number(low=1, closed=True, high=10_000, integer=True), GRID)
GAMMAS = (NONE, Number(low=1, closed=True, high=1000, integer=True), GRID)

#: Values of C searched around the one that tuning found, each four times the one before.
VALUES_AROUND = 5

#: Beyond these, products with weights overflow or vanish.
_C_BOUNDS = (1e-100, 1e100)


def paper_unit(problem: Problem) -> float:
    """Return ``n_pos n_neg / n``, the unit of the paper's C in ours, averaged over classes."""
    weight = problem.weight
    sides = [(weight[up].sum(), weight[~up].sum()) for up in problem.positives]
    pos, neg = (np.array(side) for side in zip(*sides, strict=True))
    return float(np.mean(1.0 / (1.0 / pos + 1.0 / neg)))


def c_grid(Cs: Any, problem: Problem, solver: str = "newton") -> Array:
    """Return the values of C, rising: those given, or the paper's range in our units."""
    if not isinstance(Cs, str | Integral):
        return np.asarray(Cs, dtype=np.float64)
    if solver == "newton":
        values = PAPER_C * paper_unit(problem)
    else:
        values = 1.0 / (PAPER_LAMBDA[::-1] * problem.weight.sum())
    low, high = float(values[0]), float(values[-1])
    if not (_C_BOUNDS[0] < low and high < _C_BOUNDS[1]):
        raise ValueError(
            f"Cs={Cs!r} gives values from {low:.3g} to {high:.3g}, since sample_weight sums to "
            f"{problem.weight.sum():.3g}. Divide the weights by their mean, or give Cs as a list."
        )
    return np.geomspace(low, high, values.size if isinstance(Cs, str) else int(Cs))


def c_around(C: float, count: int = VALUES_AROUND) -> Array:
    """Return values of C around one, each four times the one before."""
    return C * 4.0 ** (np.arange(count) - count // 2)


def gamma_factors(gammas: Any) -> Array:
    """Return the multiples of gamma to search over; ``m`` stands for m of them around 1.

    >>> gamma_factors(3).tolist(), gamma_factors(None).tolist()
    ([0.5, 1.0, 2.0], [1.0])
    """
    if gammas is None:
        return np.ones(1)
    if isinstance(gammas, Integral):
        return 2.0 ** (np.arange(int(gammas)) - int(gammas) // 2)
    return np.asarray(gammas, dtype=np.float64)
