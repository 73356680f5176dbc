"""Newton systems of several problems, solved at once by conjugate gradients on the rows that count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from aucmax.operators.interface import Operator
from aucmax.pairs import Floats, Indices, Mask, PairPoint
from aucmax.runtime.deadline import Deadline

if TYPE_CHECKING:
    from aucmax.solvers.preconditioner import Factor

#: The limit on Hessian products in one solve.
MAX_PRODUCTS = 500

#: Without rounding, as many products as there are unknowns solve a system. After five times as many and
#: this, rounding keeps the residual up, and further products would change nothing.
ROUNDED_PRODUCTS = 20

#: The smallest relative residual that is asked for.
_CLOSEST = 0.05

#: Up to this share of all rows, those with an active partner are copied, and the system is solved on
#: the copy, because the Hessian is zero elsewhere. The copy takes as long as one product on all rows.
#: The paper's grid on ijcnn1, where 2 to 27 % of the rows are active at large C, takes 455 instead of
#: 1628 passes, and 57 instead of 77 s.
_FEW_ACTIVE = 0.25


class Hessian:
    """``F'HF`` of several problems, on the rows that are active in any of them if those are few."""

    def __init__(self, operator: Operator, points: Sequence[PairPoint]) -> None:
        self._points, self._operator, self._all = points, operator, operator.n_rows
        active = np.any([point.curvature() > 0 for point in points], axis=0)
        self.rows: Indices | None = None  #: the rows that are read; None means all
        if active.sum() <= _FEW_ACTIVE * active.size:
            rows = np.flatnonzero(active)
            few = operator.restricted(rows)
            if few is not None:
                self.rows, self._operator = rows, few
        self.n_rows = self._operator.n_rows

    def __call__(self, vectors: Floats, problems: Indices) -> tuple[Floats, Floats]:
        """Return the scores of one vector per problem on :attr:`rows`, and the products."""
        along = self._operator.scores(vectors)
        curved = [self._product(self._points[c], along[:, i]) for i, c in enumerate(problems.tolist())]
        return along, self._operator.pullback(np.array(curved).T)

    def _product(self, point: PairPoint, scores: Floats) -> Floats:
        if self.rows is None:
            return point.hessian_product(scores)
        everywhere = np.zeros(self._all)
        everywhere[self.rows] = scores
        return point.hessian_product(everywhere)[self.rows]


@dataclass(frozen=True)
class Direction:
    """The Newton directions of m problems and what is known of them."""

    coef: Floats  #: (r, m)
    scores: Floats  #: (n, m), ``F coef`` on the Hessian's rows, gathered without a further pass
    left: Floats  #: squared residual in the preconditioner's norm, or expected decrease if that is more
    solved: Mask  #: whether the residual asked for was reached
    products: Indices  #: how many were made


def solve_system(
    hessian: Hessian,
    gradient: Floats,
    C: Floats,
    factors: Sequence[Factor | None],
    forcing: Floats,
    near: Floats | None,
    limit: int,
    deadline: Deadline,
) -> Direction:
    """Solve ``(I + C F'HF) d = -gradient`` for m problems, each until its residual is small enough.

    A residual is small enough at ``forcing`` times the first, or less where the minimum is near: the
    last step is to leave no decrease above ``near``. Without a preconditioner the residual does not
    show how near the minimum is, so ``near`` is None where none will be built. ``factors`` are the
    preconditioners; ``limit`` is the number of products for a problem without one.
    """
    r, m = gradient.shape
    coef: Floats = np.zeros((r, m), order="F")
    scores: Floats = np.zeros((hessian.n_rows, m), order="F")
    residual: Floats = np.asfortranarray(-gradient)
    conjugate = _precondition(factors, residual)
    first: Floats = np.einsum("rc,rc->c", residual, conjugate)
    if near is not None:
        closest = np.maximum(np.sqrt(near / np.maximum(first, 1e-300)), _CLOSEST)
        forcing = np.minimum(forcing, closest)
    limits = np.array([MAX_PRODUCTS if factor else limit for factor in factors])
    limits = np.minimum(limits, ROUNDED_PRODUCTS + 5 * r)
    size, gain, tail = first.copy(), np.full(m, np.inf), np.zeros(m)
    solved, products = first <= 0, np.zeros(m, dtype=np.intp)
    open_ = np.flatnonzero(~solved)
    while open_.size:
        along, curved = hessian(conjugate[:, open_], open_)
        product = conjugate[:, open_] + C[open_] * curved
        products[open_] += 1
        for j, i in enumerate(open_.tolist()):
            step = size[i] / (conjugate[:, i] @ product[:, j])
            ratio, gain[i] = min(step * size[i] / gain[i], 0.9), step * size[i]
            tail[i] = gain[i] * ratio / (1.0 - ratio)
            coef[:, i] += step * conjugate[:, i]
            scores[:, i] += step * along[:, j]
            residual[:, i] -= step * product[:, j]
        smoothed = _precondition([factors[i] for i in open_.tolist()], residual[:, open_])
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


def _precondition(factors: Sequence[Factor | None], vectors: Floats) -> Floats:
    """Apply each problem's preconditioner to its vector."""
    out: Floats = np.array(vectors, order="F")
    for i, factor in enumerate(factors):
        if factor is not None:
            out[:, i] = factor(out[:, i])
    return out
