"""Conjugate gradients for the Newton directions of several problems at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aucmax.pairs import Floats, Mask
from aucmax.runtime.deadline import Deadline
from aucmax.solvers.hessian import Hessian
from aucmax.solvers.preconditioner import Factor

__all__ = ["MAX_PRODUCTS", "ROUNDED_PRODUCTS", "Direction", "System", "solve_system"]

#: The limit on Hessian products in one solve.
MAX_PRODUCTS = 500

#: Without rounding, as many products as there are unknowns solve a system. After five times as many and
#: this, rounding keeps the residual up, and further products would change nothing.
ROUNDED_PRODUCTS = 20

#: The smallest relative residual that is asked for.
_CLOSEST = 0.05


@dataclass(frozen=True)
class System:
    """The Newton systems ``(I + C F'HF) d = -gradient`` of m problems.

    ``near`` is the decrease that is still worth a step: near the minimum a system is solved closely
    enough for this step to be the last. It is None where there will be no preconditioner, because the
    residual alone does not show how near the minimum is.
    """

    hessian: Hessian  #: the products ``F'HF v``
    gradient: Floats  #: (r, m)
    C: Floats  #: (m,)
    factors: Sequence[Factor | None]  #: m preconditioners, or None where there is none
    forcing: Floats  #: (m,), the relative residual at which a problem is solved
    near: Floats | None  #: (m,)
    limit: int  #: on the products of a problem without a preconditioner


@dataclass(frozen=True)
class Direction:
    """Newton directions and what is known of them.

    ``left`` is what is left of the system: the residual in the preconditioner's norm, or the decrease
    that further products would bring if that is more.
    """

    coef: Floats  #: (r, m)
    scores: Floats  #: (n, m), ``F coef`` on the Hessian's rows, gathered without a further pass
    left: Floats  #: (m,)
    solved: Mask  #: (m,), whether the residual asked for was reached
    products: npt.NDArray[np.intp]  #: (m,)


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
    limits = np.array([MAX_PRODUCTS if factor else system.limit for factor in system.factors])
    limits = np.minimum(limits, ROUNDED_PRODUCTS + 5 * r)
    wanted, solved, products = _wanted(system, first), first <= 0, np.zeros(m, dtype=np.intp)
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
            solved[i] = size_now <= wanted[i] ** 2 * first[i]
            conjugate[:, i] *= size_now / size[i]
            conjugate[:, i] += smoothed[:, j]
            size[i] = size_now
        open_ = open_[~solved[open_] & (products[open_] < limits[open_])]
        if deadline.over():
            break
    return Direction(coef, scores, np.maximum(size, tail), solved, products)


def _wanted(system: System, first: Floats) -> Floats:
    """Return the relative residual to reach, for residuals of squared norm ``first`` at the start."""
    if system.near is None:
        return system.forcing
    closest = np.maximum(np.sqrt(system.near / np.maximum(first, 1e-300)), _CLOSEST)
    out: Floats = np.minimum(system.forcing, closest)
    return out


def _precondition(factors: Sequence[Factor | None], vectors: Floats) -> Floats:
    """Apply each problem's preconditioner to its vector."""
    out: Floats = np.array(vectors, order="F")
    for i, factor in enumerate(factors):
        if factor is not None:
            out[:, i] = factor(out[:, i])
    return out
