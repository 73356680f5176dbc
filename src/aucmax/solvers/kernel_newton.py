"""Truncated Newton for the exact kernel machine, in the kernel's own inner product.

With coefficients b over all rows and scores ``s = K b`` the objective is ``1/2 b'Kb + C L(Kb)``. In the
inner product ``<a, b> = a'Kb`` its gradient is ``b + C L'(s)`` and its Hessian ``I + C L''(s) K``: no
inverse and no square of K appears, and a step of conjugate gradients costs one product with K. At the
minimum ``b = -C L'(s)``, so a row in no active pair has coefficient 0.

Three things make it fast. The solve starts from the landmark machine, whose landmarks are rows. The
landmarks' features, a few columns for each row, precondition conjugate gradients (as in Falkon, Rudi et
al. 2017, which does it for the square loss). And where few rows have an active partner, Newton systems
leave out the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from aucmax.operators.interface import Operator
from aucmax.pairs import Floats, Indices, PairLoss, PairPoint
from aucmax.solvers.line_search import line_search, refuse_overflow, refuse_underflow
from aucmax.solvers.options import DEFAULT_STOPPING, NO_HOOKS, Hooks, Stopping
from aucmax.solvers.preconditioner import Curvature

_FORCING = 0.1

#: A Newton system is solved no closer than what convergence needs: the decrease left out is to be at
#: most half of this share of the tolerance.
_LEFT_OVER = 0.5
_MAX_PRODUCTS = 2000

#: A Newton system leaves out rows without an active partner if at most this share of the rows is left:
#: the smaller matrix is computed for it, and it takes about twice as many products.
_RESTRICTED_SHARE = 0.5

#: Rows without a partner go to zero at once, and the others have to make up for it. A system that
#: leaves rows out is solved only if its right-hand side has at most this many times the squared size
#: of the gradient. On connect-4 (54,045 rows, gamma 2^-6) it had 4e7 times that size, and one system
#: took more than a thousand products.
_MOST_TO_MAKE_UP = 100.0

#: The preconditioner is rebuilt when the Newton system before took more products than this, and given
#: up when it took more than the second number: then landmarks do not span the solution.
_REBUILT_AFTER, _GIVEN_UP_AFTER = 8, 60


class KernelMatrix(Protocol):
    """The kernel matrix as the solver sees it; :class:`KernelTiles` is one."""

    def product(self, vector: Floats) -> Floats:
        """Return ``K @ vector``."""

    def restricted(self, rows: Indices) -> KernelMatrix:
        """Return the kernel matrix of some of the rows."""


@dataclass(frozen=True)
class LandmarkFeatures:
    """Features of all rows over landmarks that are rows themselves.

    ``operator`` has the features ``F = K[:, rows] P``; ``fold`` multiplies by P. So the coefficients
    ``fold(v)`` at the landmarks have the scores ``F v``.
    """

    operator: Operator
    rows: Indices
    fold: Callable[[Floats], Floats]

    def restricted(self, rows: Indices) -> LandmarkFeatures:
        """Return the same for some of the rows, in rising order, with all landmarks among them."""
        operator = self.operator.restricted(rows)
        assert operator is not None
        return LandmarkFeatures(operator, np.searchsorted(rows, self.rows), self.fold)

    def as_rows(self, weights: Floats) -> Floats:
        """Return the coefficients (n,) over all rows that score as ``weights`` over features do."""
        coef: Floats = np.zeros(self.operator.n_rows)
        coef[self.rows] = self.fold(weights[:, None])[:, 0]
        return coef

    def scores(self, weights: Floats) -> Floats:
        return self.operator.scores(weights[:, None])[:, 0]

    def pullback(self, vector: Floats) -> Floats:
        return self.operator.pullback(vector[:, None])[:, 0]


@dataclass(frozen=True)
class KernelRecord:
    """The progress of a solve after a product with K; objective, gap and AUC are of the last step."""

    iteration: int
    products: int  #: with K, since the start
    objective: float
    gap: float  #: estimated relative distance to the minimum
    auc: float
    seconds: float


@dataclass(frozen=True)
class _Data:
    """What stays the same during a solve."""

    kernel: KernelMatrix
    loss: PairLoss
    C: float
    stopping: Stopping
    hooks: Hooks
    landmarks: LandmarkFeatures | None  #: for the preconditioner; None is none
    restrict: bool


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
    curvature: Curvature | None = None  #: of the landmarks' features, for the preconditioner
    preconditioned: bool = True  #: whether the landmarks still precondition
    history: list[KernelRecord] = field(default_factory=list)  #: one per Newton step
    began: float = field(default_factory=time.perf_counter)

    def record(self) -> KernelRecord:
        reached = (self.objective, self.gap, self.point.auc(), time.perf_counter() - self.began)
        return KernelRecord(self.iteration, self.products, *reached)


def minimize_kernel(
    kernel: KernelMatrix,
    loss: PairLoss,
    C: float,
    *,
    start: Floats | None = None,
    landmarks: LandmarkFeatures | None = None,
    restrict: bool = True,
    stopping: Stopping = DEFAULT_STOPPING,
    hooks: Hooks = NO_HOOKS,
) -> KernelState:
    """Minimise ``1/2 b'Kb + C L(Kb)``.

    Parameters
    ----------
    start : array of shape (n,), optional
        Coefficients to start from, if their objective is below that of zero.
    landmarks : LandmarkFeatures, optional
        What preconditions conjugate gradients.
    restrict : bool
        Whether Newton systems may leave out rows without an active partner.
    hooks : Hooks
        ``on_record`` is called after each product with K, ``on_state`` with the coefficients after
        each Newton step.
    """
    data = _Data(kernel, loss, C, stopping, hooks, landmarks, restrict)
    state, tol = _first_state(data, start), stopping.tol
    while not (state.converged or state.iteration >= stopping.max_iter or stopping.deadline.over()):
        state.iteration += 1
        # 1) Gradient
        gradient = state.coef + C * state.point.gradient
        refuse_underflow(gradient)
        # 2) Newton direction and its scores
        direction, moved, left = _newton_direction(data, state, gradient)
        slope = float(gradient @ moved)
        refuse_overflow(np.array([slope]))
        # 3) Line search in score space
        coef, scores = state.coef, state.scores
        inner = (float(coef @ scores), float(coef @ moved), float(direction @ moved))
        search = (loss, state.point, scores, moved, inner, C, slope)
        found = line_search(*search) if slope < 0 else None
        # 4) Record the step
        decrement = -0.5 * slope / state.objective
        state.gap = min(1.0, decrement + 0.5 * max(left, 0.0) / state.objective)
        state.converged = state.gap <= tol
        if found is None:  # rounding allows no progress
            break
        length, state.scores, state.point = found
        state.coef = coef + length * direction
        state.objective = 0.5 * float(state.coef @ state.scores) + C * state.point.value
        if decrement <= tol < state.gap:  # only the residual prevents convergence
            state.forcing *= 0.1
        state.history.append(state.record())
        if hooks.on_state is not None:
            hooks.on_state({"coef": state.coef})
    state.scores = kernel.product(state.coef)  # without the rounding of many steps
    state.objective = 0.5 * float(state.coef @ state.scores) + C * loss.at(state.scores).value
    return state


def _first_state(data: _Data, start: Floats | None) -> KernelState:
    """Start from zero, or from the given coefficients if they are better."""
    zero = np.zeros(data.loss.n_rows)
    point = data.loss.at(zero)
    state = KernelState(zero, zero, point, data.C * point.value)
    if start is None:
        return state
    scores = data.kernel.product(start)
    state.products, point = 1, data.loss.at(scores)
    objective = 0.5 * float(start @ scores) + data.C * point.value
    if objective < state.objective:
        state.coef, state.scores, state.point, state.objective = start, scores, point, objective
    return state


def _newton_direction(
    data: _Data, state: KernelState, gradient: Floats
) -> tuple[Floats, Floats, float]:
    """Solve the Newton system by conjugate gradients in the kernel's inner product.

    Returns the direction, its scores, and an estimate of twice the decrease that it leaves out.
    """
    inverse, rows = _inverse_over_features(data, state), _rows_that_matter(data, state)
    if rows is not None:
        found = _direction_over(rows, inverse, data, state, gradient)
        if found is not None and float(gradient @ found[1]) < 0:
            return found
    # From zero, conjugate gradients end at a direction of descent however early they end.
    system = _System(data.kernel, state.point, data.landmarks, inverse)
    direction, moved, left = _conjugate_gradients(data, state, system, -gradient)
    if data.landmarks is not None:  # without the rounding of features
        moved = _product(data, state, data.kernel, direction)
    return direction, moved, left


def _direction_over(
    rows: Indices,
    inverse: Callable[[Floats], Floats] | None,
    data: _Data,
    state: KernelState,
    gradient: Floats,
) -> tuple[Floats, Floats, float] | None:
    """Solve the Newton system for the given rows; all others, without a partner, go to zero at once.

    Return None if these rows would have too much to make up for.
    """
    direction = -state.coef
    direction[rows] = 0.0
    residual, own, size = -gradient[rows], gradient[rows], None
    if gone := bool(direction.any()):
        ahead = _product(data, state, data.kernel, direction)
        residual -= data.C * state.point.hessian_product(ahead)[rows]
        if residual @ residual > _MOST_TO_MAKE_UP * (gradient @ gradient):
            return None
    landmarks = data.landmarks and data.landmarks.restricted(rows)
    alone = data.loss.sample(rows, np.ones(rows.size)).at(state.scores[rows])
    system = _System(data.kernel.restricted(rows), alone, landmarks, inverse)
    if gone:
        # The squared size of the whole gradient, to which errors are relative: outside of the rows
        # the gradient is minus the direction.
        image = _product(data, state, system.kernel, own)
        size = float(direction @ ahead) - 2.0 * float(own @ ahead[rows]) + float(own @ image)
        if data.landmarks is not None and inverse is not None:
            pulled = data.landmarks.pullback(gradient)
            size -= float(pulled @ (pulled - inverse(pulled)))
    direction[rows], _, left = _conjugate_gradients(data, state, system, residual, size)
    return direction, _product(data, state, data.kernel, direction), left


def _rows_that_matter(data: _Data, state: KernelState) -> Indices | None:
    """Return the rows with an active partner, and landmarks; None if these are most of the rows."""
    active = state.point.curvature() > 0
    if data.landmarks is not None:
        active[data.landmarks.rows] = True
    if not data.restrict or active.mean() > _RESTRICTED_SHARE:
        return None
    return np.flatnonzero(active)


def _inverse_over_features(data: _Data, state: KernelState) -> Callable[[Floats], Floats] | None:
    """Return the approximate inverse of ``I + C F'HF`` for the landmarks' features F."""
    if data.landmarks is None or not state.preconditioned:
        return None
    if state.curvature is None:
        rng = np.random.default_rng(state.iteration)
        operator = data.landmarks.operator
        state.curvature = Curvature(operator, data.loss, state.point, state.scores, rng, data.C)
    return state.curvature.factor(data.C)


def _product(data: _Data, state: KernelState, kernel: KernelMatrix, vector: Floats) -> Floats:
    out = kernel.product(vector)
    state.products += 1
    if data.hooks.on_record is not None:
        data.hooks.on_record(state.record())
    return out


@dataclass(frozen=True)
class _System:
    """A Newton system ``(I + C H K) x = residual`` over some of the rows, or all."""

    kernel: KernelMatrix
    point: PairPoint
    landmarks: LandmarkFeatures | None
    inverse: Callable[[Floats], Floats] | None

    def precondition(self, residual: Floats, image: Floats) -> tuple[Floats, Floats]:
        """Return a better direction than the residual, and its image, from the residual's.

        In feature space this is the inverse of ``I + C F'HF`` within the span of the landmarks, and the
        identity elsewhere, so it is symmetric and positive in the kernel's inner product.
        """
        if self.landmarks is None or self.inverse is None:
            return residual, image
        pulled = self.landmarks.pullback(residual)
        change = pulled - self.inverse(pulled)
        return residual - self.landmarks.as_rows(change), image - self.landmarks.scores(change)


def _conjugate_gradients(
    data: _Data,
    state: KernelState,
    system: _System,
    residual: Floats,
    relative_to: float | None = None,
) -> tuple[Floats, Floats, float]:
    """Solve a system; return the solution, its image, and an estimate of the error left.

    ``relative_to`` is the squared size that the error is compared with, by default the residual's own.
    """
    image = _product(data, state, system.kernel, residual)
    along, along_image = system.precondition(residual, image)
    out, moved = np.zeros_like(residual), np.zeros_like(residual)
    size = first = float(residual @ along_image)
    refuse_overflow(np.array([first]))
    enough = state.forcing**2 * (first if relative_to is None else relative_to)
    enough = max(enough, _LEFT_OVER * data.stopping.tol * state.objective)
    begun = state.products
    while state.products < begun + _MAX_PRODUCTS:
        if size <= max(0.0, enough) or data.stopping.deadline.over():
            break
        curved = along + data.C * system.point.hessian_product(along_image)
        bend = float(along_image @ curved)
        if bend <= 0:  # by rounding: of equal rows the residual's image is zero
            break
        step = size / bend
        out += step * along
        moved += step * along_image
        residual = residual - step * curved
        image = _product(data, state, system.kernel, residual)
        better, better_image = system.precondition(residual, image)
        last, size = size, float(residual @ better_image)
        along = better + size / last * along
        along_image = better_image + size / last * along_image
    taken = state.products - begun
    if taken > _REBUILT_AFTER:
        state.curvature = None  # measured again at the next step
    state.preconditioned &= taken <= _GIVEN_UP_AFTER
    return out, moved, size
