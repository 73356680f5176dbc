"""Newton steps for k problems that share each pass over the data.

Far from the minimum a preconditioner does not pay, and with a small C it never does. So the first steps
run without one; it is built when conjugate gradients need it, and rebuilt when they have become slower
than they were with it at first.

The stopping rule is the Newton decrement relative to the objective, an estimate of the relative
distance to the minimum that means the same at every C and scale. It includes what conjugate gradients
left over, ``1/2 r'M^(-1)r`` in the norm of the preconditioner M. Without one, M is the identity and
this part is an upper bound, because the Hessian is at least the identity. Where only that bound
prevents convergence, the system is solved more closely, or a first preconditioner is built. The step on
which the decrement was measured is still taken. If the objective then falls as predicted, the distance
that is left is known too, and may end the solve (:func:`_gap_after`).
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from aucmax.pairs import Floats, Indices
from aucmax.solvers.conjugate_gradients import MAX_PRODUCTS, Direction, Hessian, solve_system
from aucmax.solvers.line_search import advance, refuse_overflow, refuse_underflow
from aucmax.solvers.newton_state import Data, Record, State
from aucmax.solvers.options import NO_HOOKS, Hooks
from aucmax.solvers.preconditioner import Curvature, patience

#: The estimated distance may be too small by about this factor: on covtype it was by up to 2.6.
_CAUTION = 3.0

#: Share of the tolerance that the estimate after a step has to meet.
_AFTER = 0.1

#: The fewest products in one solve after which a problem gets its first preconditioner.
_PLAIN_PRODUCTS = 7

#: Above this many products a new preconditioner is a poor one: it has too few rows.
_SLOW_PRODUCTS = 12


def iterate(data: Data, state: State, hooks: Hooks = NO_HOOKS) -> None:
    """Take Newton steps until all problems have converged or stalled, or until a limit is reached."""
    stopping = data.stopping
    while len(state.history) < stopping.max_iter:
        live = np.flatnonzero(~(state.converged | state.stalled))
        if not live.size or stopping.deadline.over():
            break
        before = state.objective()[live]
        # 1) Gradient
        pulled = data.operator.pullback(np.array([state.points[c].gradient for c in live]).T)
        gradient = state.coef[:, live] + state.C[live] * pulled
        state.rows_read += data.operator.n_rows
        refuse_overflow(gradient)
        refuse_underflow(gradient)
        # 2) Preconditioners, where conjugate gradients have become slow
        built = rebuild_slow(data, state, live) if data.precondition else 0
        # 3) Newton direction and its scores
        found = _newton_direction(data, state, live, gradient, before)
        slope = np.einsum("rc,rc->c", gradient, found.coef)
        refuse_overflow(np.append(slope, found.left))
        # 4) Line search in score space
        for i, c in enumerate(live.tolist()):
            advance(data, state, c, found.coef[:, i], found.scores[:, i], slope[i])
        # 5) Record the step, and mark the problems that have converged
        objective = _check_convergence(data, state, live, found, slope, before)
        auc = np.array([point.auc() for point in state.points])
        products = max(state.preconditioners[c].products for c in live)
        seconds, arrays = time.perf_counter() - state.began, (state.gap.copy(), auc, state.step.copy())
        done = len(state.history) + 1, objective, *arrays, products, state.passes, built, seconds
        state.history.append(Record(*done))
        if hooks.on_record is not None:
            hooks.on_record(state.history[-1])
        if hooks.on_state is not None:
            hooks.on_state(state.save())


def rebuild_slow(data: Data, state: State, live: Indices) -> int:
    """Build preconditioners for the problems that need a new one, and return how many.

    One that was slow from the start is replaced by one of twice as many rows, if there are more.
    """
    built = 0
    for c in live.tolist():
        own, grow = state.preconditioners[c], False
        if own.curvature is None:
            slow = own.products > _first_patience(data) - 1 or state.doubtful[c]
        else:
            worth = patience(data.operator, own.curvature, state.share_read) * data.patience
            grow = own.first_products > max(worth, _SLOW_PRODUCTS) and not own.curvature.all_rows
            slow = own.products > (worth if grow else max(worth, own.first_products))
        if slow:
            own.rows_per_feature *= 2 if grow else 1
            build_preconditioner(data, state, c)
            own.first_products = 0
            built += 1
    return built


def _first_patience(data: Data) -> float:
    """Return the products in one solve after which a problem gets its first preconditioner."""
    return data.patience * max(patience(data.operator), _PLAIN_PRODUCTS)


def build_preconditioner(data: Data, state: State, problem: int) -> None:
    """Build the preconditioner of one problem at its scores."""
    own, scores, point = state.preconditioners[problem], state.scores[:, problem], state.points[problem]
    if state.sample is not None:
        # Its features are in memory already; those of more rows would cost more than they save.
        rows, data = state.sample
        scores = scores[rows]
        point = data.losses[problem].at(scores)
    loss, per_feature = data.losses[problem], own.rows_per_feature
    own.curvature = Curvature(
        data.operator, loss, point, scores, state.rng, float(state.C[problem]), per_feature
    )


def _newton_direction(
    data: Data, state: State, live: Indices, gradient: Floats, objective: Floats
) -> Direction:
    """Return the directions of the live problems, with their scores on all rows."""
    operator, C, own = data.operator, state.C[live], [state.preconditioners[c] for c in live]
    hessian, near, limit = Hessian(operator, [state.points[c] for c in live]), None, MAX_PRODUCTS
    if data.precondition:
        near = _AFTER * data.stopping.tol * objective
        limit = int(_first_patience(data))
    pairs = zip(own, C.tolist(), strict=True)
    factors = [None if each.curvature is None else each.curvature.factor(c) for each, c in pairs]
    when = state.forcing[live], near, limit, data.stopping.deadline
    found = solve_system(hessian, gradient, C, factors, *when)
    for each, products in zip(own, found.products.tolist(), strict=True):
        each.products = products or each.products
        each.first_products = each.first_products or each.products
    state.rows_read += 2 * max(found.products.tolist()) * hessian.n_rows
    state.share_read = max(1, hessian.n_rows) / operator.n_rows
    if hessian.rows is None:
        return found
    state.rows_read += hessian.n_rows + operator.n_rows  # to copy them, and for the scores on all rows
    return replace(found, scores=operator.scores(found.coef))


def _check_convergence(
    data: Data, state: State, live: Indices, found: Direction, slope: Floats, before: Floats
) -> Floats:
    """Estimate how far the live problems are from their minima, and return all objectives."""
    tol, objective, decrement = data.stopping.tol, state.objective(), -0.5 * slope / before
    gap = np.minimum(1.0, _CAUTION * (decrement + 0.5 * found.left / before))
    # On a quadratic with the curvature at the start, a step t lowers the objective by -slope (t - t^2 /
    # 2) and leaves -slope (1 - t)^2 / 2 and what conjugate gradients left. Any difference from that
    # shows how far the curvature has changed on the way, and counts in full.
    step = state.step[live]
    error = np.abs((before - objective[live]) + slope * (step - 0.5 * step**2))
    after = (-0.5 * slope * (1.0 - step) ** 2 + 0.5 * found.left + error) / before
    converged = found.solved & ((gap <= tol) | (after <= _AFTER * tol))
    state.gap[live], state.converged[live] = gap, converged
    state.doubtful[live] = ~converged & (decrement <= tol)
    for c in np.flatnonzero(state.doubtful).tolist():
        if not data.precondition or state.preconditioners[c].curvature is not None:
            state.forcing[c] *= 0.1
    return objective
