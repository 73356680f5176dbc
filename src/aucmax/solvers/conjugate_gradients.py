"""Conjugate gradients for the Newton directions of several problems at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aucmax.pairs import Floats
from aucmax.runtime.deadline import Deadline
from aucmax.solvers.hessian import Hessian
from aucmax.solvers.preconditioner import Factor

__all__ = ["MAX_PRODUCTS", "ROUNDED_PRODUCTS", "Direction", "System", "solve_system"]

#: Hessian products in one solve, at most.
MAX_PRODUCTS = 500

#: Products that a system of few unknowns is given beyond a multiple of their number.
ROUNDED_PRODUCTS = 20

#: The closest solve, as a relative residual.
_CLOSEST = 0.05


@dataclass(frozen=True)
class System:
    """The Newton systems ``(I + C F'HF) d = -gradient`` of m problems.

    Parameters
    ----------
    hessian : Hessian
        The products ``F'HF v`` of all m problems.
    gradient : array of shape (r, m)
    C : array of shape (m,)
    factors : m preconditioners, or None where there is none
    forcing : array of shape (m,)
        The relative residual at which a problem is solved.
    near : array of shape (m,), optional
        The decrease that is still worth a step. Near the minimum a system is solved closely enough for
        this step to be the last. Without a preconditioner the residual does not say how near that is,
        so it is given only where there will be one.
    limit : int
        Products of a problem without a preconditioner, at most.
    """

    hessian: Hessian
    gradient: Floats
    C: Floats
    factors: Sequence[Factor | None]
    forcing: Floats
    near: Floats | None
    limit: int


@dataclass(frozen=True)
class Direction:
    """Newton directions and what is known of them.

    Parameters
    ----------
    coef : array of shape (r, m)
    scores : array of shape (n, m)
        ``F coef`` on the Hessian's rows, gathered on the way without a further pass.
    left : array of shape (m,)
        What is left of the system: the residual in the preconditioner's norm, or the decrease that
        further products would bring, whichever is more.
    solved : bool array of shape (m,)
        Whether the wanted residual was reached.
    products : int array of shape (m,)
    """

    coef: Floats
    scores: Floats
    left: Floats
    solved: npt.NDArray[np.bool_]
    products: npt.NDArray[np.intp]


def solve_system(system: System, deadline: Deadline) -> Direction:
    """Solve all systems together; a problem leaves when its residual is small enough."""
    hessian, (r, m) = system.hessian, system.gradient.shape
    coef: Floats = np.zeros((r, m), order="F")
    scores: Floats = np.zeros((hessian.n_rows, m), order="F")
    residual: Floats = np.asfortranarray(-system.gradient)
    conjugate = _precondition(system.factors, residual)
    first: Floats = np.einsum("rc,rc->c", residual, conjugate)
    size = first.copy()
    gain, tail = np.full(m, np.inf), np.zeros(m)
    forcing, limits = _forcing(system, first), _limits(system)
    solved, products = first <= 0, np.zeros(m, dtype=np.intp)
    open_ = np.flatnonzero(~solved)
    while open_.size:
        along, curved = hessian(conjugate[:, open_], open_)
        product = conjugate[:, open_] + system.C[open_] * curved
        products[open_] += 1
        for j, i in enumerate(open_.tolist()):
            step = size[i] / (conjugate[:, i] @ product[:, j])
            ratio, gain[i] = min(step * size[i] / gain[i], 0.9), step * size[i]
            tail[i] = gain[i] * ratio / (1.0 - ratio)
            coef[:, i] += step * conjugate[:, i]
            scores[:, i] += step * along[:, j]
            residual[:, i] -= step * product[:, j]
        smoothed = _precondition([system.factors[i] for i in open_.tolist()], residual[:, open_])
        for j, i in enumerate(open_.tolist()):
            size_now = residual[:, i] @ smoothed[:, j]
            solved[i] = size_now <= forcing[i] ** 2 * first[i]
            conjugate[:, i] *= size_now / size[i]
            conjugate[:, i] += smoothed[:, j]
            size[i] = size_now
        open_ = open_[~solved[open_] & (products[open_] < limits[open_])]
        if deadline.over():
            break
    return Direction(coef, scores, np.maximum(size, tail), solved, products)


def _forcing(system: System, first: Floats) -> Floats:
    if system.near is None:
        return system.forcing
    closest = np.maximum(np.sqrt(system.near / np.maximum(first, 1e-300)), _CLOSEST)
    out: Floats = np.minimum(system.forcing, closest)
    return out


def _limits(system: System) -> npt.NDArray[np.intp]:
    limits = np.array([MAX_PRODUCTS if factor else system.limit for factor in system.factors])
    # Without rounding, as many products as there are unknowns solve the system. Where several times as
    # many have not, rounding keeps the residual up, and more of them would change nothing.
    out: npt.NDArray[np.intp] = np.minimum(limits, ROUNDED_PRODUCTS + 5 * len(system.gradient))
    return out


def _precondition(factors: Sequence[Factor | None], vectors: Floats) -> Floats:
    """Each vector by its own factor."""
    out: Floats = np.array(vectors, order="F")
    for i, factor in enumerate(factors):
        if factor is not None:
            out[:, i] = factor(out[:, i])
    return out
