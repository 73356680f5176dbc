"""Truncated Newton for the exact kernel machine, in the kernel's own inner product.

With coefficients b over all rows and scores ``s = K b`` the objective is ``1/2 b'Kb + C L(Kb)``. In the
inner product ``<a, b> = a'Kb`` its gradient is ``b + C L'(s)`` and its Hessian ``I + C L''(s) K``: no
inverse and no square of K appears, and a step of conjugate gradients costs one product with K. At the
minimum ``b = -C L'(s)``, so that a row in no active pair has coefficient 0.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from aucmax.pairs import Floats, PairLoss
from aucmax.solvers.line_search import line_search, refuse_underflow

_FORCING = 0.1
_MAX_PRODUCTS = 2000


@dataclass(frozen=True)
class KernelRecord:
    """Where a solve stands, after each product with K."""

    iteration: int
    products: int  #: with K, since the start
    objective: float  #: at the last Newton step
    gap: float  #: estimated relative distance to the minimum, at the last Newton step
    auc: float
    seconds: float


@dataclass(frozen=True)
class KernelSolution:
    """The minimiser ``coef`` (n,) and how it was reached."""

    coef: Floats
    scores: Floats
    objective: float
    gap: float
    converged: bool
    history: list[KernelRecord]  #: one per Newton step


def minimize_kernel(
    product: Callable[[Floats], Floats],
    loss: PairLoss,
    C: float,
    *,
    tol: float = 1e-4,
    max_iter: int = 100,
    on_record: Callable[[KernelRecord], None] | None = None,
) -> KernelSolution:
    """Minimise ``1/2 b'Kb + C L(Kb)``; K is known by ``product`` alone.

    Parameters
    ----------
    product : callable
        ``K @ vector`` for the n x n kernel matrix of the training rows.
    loss : PairLoss
    C : float
    tol, max_iter
        As in :func:`aucmax.solvers.newton.minimize`.
    on_record : callable, optional
        Called after each product, with where the solve stands.
    """
    began, products = time.perf_counter(), 0
    coef: Floats = np.zeros(loss.n_rows)
    scores: Floats = np.zeros(loss.n_rows)
    point = loss.at(scores)
    objective, gap, forcing = C * point.value, np.inf, _FORCING
    converged, history = False, []
    iteration = 0

    def count() -> KernelRecord:
        nonlocal products
        products += 1
        seconds = time.perf_counter() - began
        return KernelRecord(iteration, products, objective, gap, point.auc(), seconds)

    while not converged and iteration < max_iter:
        iteration += 1
        # 1) Gradient, and what it moves
        gradient = coef + C * point.gradient
        refuse_underflow(gradient)
        residual = -gradient
        image = product(residual)  # K residual
        record = count()
        # 2) Newton direction by conjugate gradients in the kernel's inner product
        direction, moved = np.zeros_like(coef), np.zeros_like(coef)
        along, along_image = residual.copy(), image.copy()
        size = first = float(residual @ image)
        for _ in range(_MAX_PRODUCTS):
            if size <= forcing**2 * first or size <= 0:
                break
            curved = along + C * point.hessian_product(along_image)
            curvature = float(along_image @ curved)
            if curvature <= 0:  # by rounding: of equal rows the residual's image is zero
                break
            step = size / curvature
            direction += step * along
            moved += step * along_image
            residual -= step * curved
            image = product(residual)
            record = count()
            if on_record is not None:
                on_record(record)
            before, size = size, float(residual @ image)
            along = residual + size / before * along
            along_image = image + size / before * along_image
        slope = float(gradient @ moved)
        if not np.isfinite([slope, first]).all():
            raise FloatingPointError("features or weights are so large that products overflow")
        # 3) Line search in score space
        penalty = (float(coef @ scores), float(coef @ moved), float(direction @ moved))
        found = line_search(loss, point, scores, moved, penalty, C, slope) if slope < 0 else None
        seen, left = -0.5 * slope / objective, 0.5 * max(size, 0.0) / objective
        gap = min(1.0, seen + left)
        if found is None:  # rounding allows no progress
            converged = gap <= tol
            break
        length, scores, point = found
        coef += length * direction
        objective = 0.5 * float(coef @ scores) + C * point.value
        converged = gap <= tol
        if seen <= tol < gap:  # only what conjugate gradients left keeps this from ending
            forcing *= 0.1
        history.append(KernelRecord(iteration, products, objective, gap, point.auc(), record.seconds))
    scores = product(coef)
    objective = 0.5 * float(coef @ scores) + C * loss.at(scores).value
    return KernelSolution(coef, scores, objective, gap, converged, history)
