"""The Hessian on a sample of rows at the current active set, factored, to speed conjugate gradients.

The Newton system of one column is ``(I + C F'HF) d = -g``. Replacing the n rows by a few thousand that
carry most of the curvature gives a matrix close to it, whose Cholesky factor turns hundreds of
products into a handful.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from aucmax.operators import FLOPS_PER_BYTE, Operator
from aucmax.pairs import Floats, Indices, PairLoss, PairPoint

#: Sampled rows per column of the features, within a limit on their entries. On covtype (465k rows,
#: C = 100) 5, 10, 20 and 40 took 551, 382, 256 and 203 passes, and 73, 64, 62 and 92 s.
ROWS_PER_COLUMN = 10
MAX_ENTRIES = 2**26

#: Above so many columns the factor and its rows cost too much memory, and none is built.
MAX_COLUMNS = 4000


class Preconditioner:
    """Approximate inverse of ``I + C F'HF`` at one point of one column."""

    def __init__(
        self,
        operator: Operator,
        loss: PairLoss,
        point: PairPoint,
        scores: Floats,
        C: float,
        rng: np.random.Generator,
    ) -> None:
        rows, share = _draw(loss, point.curvature(), _sample_size(operator), rng)
        features = operator.rows(rows)
        sampled = loss.sample(rows, share).at(scores[rows])
        try:
            self._factor = _factor(sampled.hessian_gram(features), C)
        except linalg.LinAlgError:  # float32 rounding at a large C: once more in full
            self._factor = _factor_with_ridge(sampled.hessian_gram(features.astype(np.float64)), C)

    def __call__(self, vector: Floats) -> Floats:
        out: Floats = linalg.cho_solve((self._factor, True), vector, check_finite=False)
        return out


def patience(operator: Operator) -> float:
    """CG products after which a new preconditioner is worth its price.

    Building one costs about ``4 m r^2`` flops for m sampled rows, the price of so many products. Up
    to 50 (ijcnn1 and larger data) it is renewed after more than three products: on ijcnn1 at C = 20 a
    third fewer passes than a quarter of the price would give (82 against 125), but 4.3 s instead of
    3.2. Passes are preferred there since they are what grows with the rows. Above, waiting is clearly
    faster: at 160 (spambase) it halves the time.
    """
    r = operator.n_columns
    flops = 4.0 * min(_sample_size(operator), operator.n_rows) * r**2
    price = flops / FLOPS_PER_BYTE / (2 * operator.nbytes)
    return 2.0 + max(1.0, 0.4 * (price - 50.0))


def _sample_size(operator: Operator) -> int:
    return int(min(ROWS_PER_COLUMN * operator.n_columns, MAX_ENTRIES / operator.n_columns))


def _draw(
    loss: PairLoss, curvature: Floats, size: int, rng: np.random.Generator
) -> tuple[Indices, Floats]:
    """Rows with an active partner, half of them of each class, and the chance each had.

    The chance is as the root of the row's curvature: 166 against 200 passes on ijcnn1 for a uniform
    draw; as the curvature itself it was no better, and on covtype a fifth worse. A class with few
    active rows gives them all.
    """
    rows, shares = [], []
    for members in (loss.pos, loss.neg):
        active = members[curvature[members] > 0]
        weight = np.sqrt(curvature[active])
        share = np.ones(active.size)
        if active.size > size // 2:
            share = np.minimum(1.0, weight * (size // 2 / weight.sum()))
        taken = rng.random(active.size) < share
        rows.append(active[taken])
        shares.append(share[taken])
    return np.concatenate(rows), np.concatenate(shares)


def _factor(gram: Floats, C: float, ridge: float = 0.0) -> Floats:
    matrix = C * gram
    matrix[np.diag_indices_from(matrix)] += 1.0 + ridge
    out: Floats = linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
    return out


def _factor_with_ridge(gram: Floats, C: float) -> Floats:
    """At an extreme C even float64 rounding makes the matrix indefinite: what helps least is added."""
    ridge = 0.0
    while True:
        try:
            return _factor(gram, C, ridge)
        except linalg.LinAlgError:
            ridge = 100.0 * ridge or 1e-14 * C * float(np.trace(gram))
