"""Truncated Newton for the exact kernel machine, in the kernel's own inner product.

With coefficients b over all rows and scores ``s = K b`` the objective is ``1/2 b'Kb + C L(Kb)``. In the
inner product ``<a, b> = a'Kb`` its gradient is ``b + C L'(s)`` and its Hessian ``I + C L''(s) K``: no
inverse and no square of K appears, and a step of conjugate gradients costs one product with K. At the
minimum ``b = -C L'(s)``, so a row in no active pair has coefficient 0.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from aucmax.pairs import Floats, PairLoss, PairPoint
from aucmax.solvers.line_search import line_search, refuse_overflow, refuse_underflow
from aucmax.solvers.options import DEFAULT_STOPPING, Stopping

_FORCING = 0.1
_MAX_PRODUCTS = 2000


@dataclass(frozen=True)
class KernelRecord:
    """The progress of a solve after a product with K; objective, gap and AUC are of the last step."""

    iteration: int
    products: int  #: with K, since the start
    objective: float
    gap: float  #: estimated relative distance to the minimum
    auc: float
    seconds: float


@dataclass
class KernelState:
    """Where a solve is; at its end ``coef`` (n,) is the minimiser."""

    coef: Floats
    scores: Floats
    point: PairPoint  #: the loss at these scores
    objective: float
    gap: float = np.inf  #: estimated relative distance to the minimum
    converged: bool = False
    forcing: float = _FORCING  #: relative residual to which the Newton system is solved
    iteration: int = 0
    products: int = 0
    history: list[KernelRecord] = field(default_factory=list)  #: one per Newton step
    began: float = field(default_factory=time.perf_counter)

    def record(self) -> KernelRecord:
        reached = (self.objective, self.gap, self.point.auc(), time.perf_counter() - self.began)
        return KernelRecord(self.iteration, self.products, *reached)


@dataclass(frozen=True)
class _Data:
    product: Callable[[Floats], Floats]
    C: float
    stopping: Stopping
    on_record: Callable[[KernelRecord], None] | None


def minimize_kernel(
    product: Callable[[Floats], Floats],
    loss: PairLoss,
    C: float,
    *,
    stopping: Stopping = DEFAULT_STOPPING,
    on_record: Callable[[KernelRecord], None] | None = None,
) -> KernelState:
    """Minimise ``1/2 b'Kb + C L(Kb)``, where ``product`` returns ``K @ vector``.

    ``on_record`` is called after each product with K.
    """
    coef, scores, tol = np.zeros(loss.n_rows), np.zeros(loss.n_rows), stopping.tol
    point = loss.at(scores)
    data, state = (
        _Data(product, C, stopping, on_record),
        KernelState(coef, scores, point, C * point.value),
    )
    while not (state.converged or state.iteration >= stopping.max_iter or stopping.deadline.over()):
        state.iteration += 1
        # 1) Gradient
        gradient = coef + C * state.point.gradient
        refuse_underflow(gradient)
        # 2) Newton direction and its scores
        direction, moved, left = _newton_direction(data, state, gradient)
        slope = float(gradient @ moved)
        refuse_overflow(np.array([slope]))
        # 3) Line search in score space
        inner = (float(coef @ state.scores), float(coef @ moved), float(direction @ moved))
        search = (loss, state.point, state.scores, moved, inner, C, slope)
        found = line_search(*search) if slope < 0 else None
        # 4) Record the step
        decrement = -0.5 * slope / state.objective
        state.gap = min(1.0, decrement + 0.5 * max(left, 0.0) / state.objective)
        state.converged = state.gap <= tol
        if found is None:  # rounding allows no progress
            break
        length, state.scores, state.point = found
        coef += length * direction
        state.objective = 0.5 * float(coef @ state.scores) + C * state.point.value
        if decrement <= tol < state.gap:  # only the residual prevents convergence
            state.forcing *= 0.1
        state.history.append(state.record())
    state.scores = product(coef)
    state.objective = 0.5 * float(coef @ state.scores) + C * loss.at(state.scores).value
    return state


def _newton_direction(
    data: _Data, state: KernelState, gradient: Floats
) -> tuple[Floats, Floats, float]:
    """Solve the Newton system by conjugate gradients in the kernel's inner product.

    Returns the direction, its scores, and the squared norm of the residual.
    """
    residual = -gradient
    image = data.product(residual)  # K residual
    state.products += 1
    direction, moved = np.zeros_like(gradient), np.zeros_like(gradient)
    along, along_image = residual.copy(), image.copy()
    size = first = float(residual @ image)
    refuse_overflow(np.array([first]))
    for _ in range(_MAX_PRODUCTS):
        if size <= max(0.0, state.forcing**2 * first) or data.stopping.deadline.over():
            break
        curved = along + data.C * state.point.hessian_product(along_image)
        curvature = float(along_image @ curved)
        if curvature <= 0:  # by rounding: of equal rows the residual's image is zero
            break
        step = size / curvature
        direction += step * along
        moved += step * along_image
        residual -= step * curved
        image = data.product(residual)
        state.products += 1
        if data.on_record is not None:
            data.on_record(state.record())
        before, size = size, float(residual @ image)
        along = residual + size / before * along
        along_image = image + size / before * along_image
    return direction, moved, size
