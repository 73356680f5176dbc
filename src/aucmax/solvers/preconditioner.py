"""The Hessian on a sample of rows at the current active set, factored, to speed conjugate gradients.

The Newton system of one column is ``(I + C F'HF) d = -g``. Replacing the n rows by a few thousand that
carry most of the curvature gives a matrix close to it, whose Cholesky factor turns hundreds of
products into a handful.

Of many columns only the first are factored, and the others go by the diagonal. Kernel features come in
falling order of their eigenvalues, so that the first carry most of the curvature.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg

from aucmax.operators import FLOPS_PER_BYTE, Operator
from aucmax.pairs import Floats, Indices, PairLoss, PairPoint

#: Sampled rows per column of the features, within a limit on their entries. On covtype (465k rows,
#: C = 100) 10, 16 and 24 took 285, 310 and 190 passes, and 42, 46 and 33 s (means of two).
ROWS_PER_COLUMN = 20
MAX_ENTRIES = 2**27

#: Above this many columns only the first of them are factored: the price of all grows as their cube. On
#: covtype (80,000 rows, 4000 landmarks, C = 4, one core) a factor of all takes 120 passes and 75 s, of
#: 1500 170 and 50 s, of 1000 184 and 46 s, of 500 230 and 47 s, and none 360 and 61 s. With 5600
#: landmarks at C = 44 it is much the same: 1000 take 474 passes and 86 s, 2000 358 and 91 to 99 s.
MAX_COLUMNS = 3000
LEADING_COLUMNS = 1000

#: Above this many none is built: they are not kernel features, so the first are no better than others.
MOST_COLUMNS = 20_000

#: What is added to the diagonal of a matrix that rounding has made indefinite, by its trace.
_RIDGES = 10.0 ** np.arange(-14, 1, 2)

#: Rows that the diagonal of the others is measured on, within a limit on their entries.
_DIAGONAL_ROWS = 2000
_DIAGONAL_ENTRIES = 2**24


class Factor:
    """Approximate inverse of ``I + C F'HF``: by a Cholesky factor, and a diagonal for what is left."""

    def __init__(self, cholesky: Floats, diagonal: Floats) -> None:
        self._cholesky, self._diagonal = cholesky, diagonal

    def __call__(self, vector: Floats) -> Floats:
        first = len(self._cholesky)
        # Two triangular solves of one vector: six times faster than LAPACK's for matrices.
        half = linalg.blas.dtrsv(self._cholesky, vector[:first], lower=1)
        out: Floats = linalg.blas.dtrsv(self._cholesky, half, lower=1, trans=1)
        return out if len(vector) == first else np.append(out, vector[first:] / self._diagonal)


class Curvature:
    """``F'HF`` on sampled rows at one point of one column, to be factored for any C.

    ``all_rows`` tells whether every row with an active partner is in it: no sample can do better.
    """

    def __init__(
        self,
        operator: Operator,
        loss: PairLoss,
        point: PairPoint,
        scores: Floats,
        rng: np.random.Generator,
        rows_per_column: int = ROWS_PER_COLUMN,
    ) -> None:
        self._operator, first = operator, leading(operator.n_columns)
        size = sample_size(operator.n_columns, rows_per_column)
        self._rows, share = _draw(loss, point.curvature(), size, rng)
        self.n_rows, self.all_rows = self._rows.size, bool((share == 1.0).all())
        self._point = loss.sample(self._rows, share).at(scores[self._rows])
        self._leading, self._others = slice(first), slice(first, operator.n_columns)
        self._gram = self._point.hessian_gram(self._first_columns)
        self._diagonal = self._measure_diagonal(rng)
        self._exact = False

    def _first_columns(self, index: Indices) -> npt.NDArray[Any]:
        return self._operator.rows(self._rows[index], self._leading)

    def _measure_diagonal(self, rng: np.random.Generator) -> Floats:
        """Of the columns that are not factored, by the Hessian's diagonal alone."""
        if self._others.start >= self._others.stop or not self.n_rows:
            return np.zeros(0)
        curved = self._point.curvature()
        most = min(_DIAGONAL_ROWS, 1 + _DIAGONAL_ENTRIES // (self._others.stop - self._others.start))
        some = rng.permutation(self.n_rows)[:most]
        values = self._operator.rows(self._rows[some], self._others).astype(np.float64)
        out: Floats = curved[some] @ values**2 * (self.n_rows / some.size)
        return out

    def factor(self, C: float) -> Factor:
        """The approximate inverse at C."""
        return Factor(self._cholesky(C), 1.0 + C * self._diagonal)

    def _cholesky(self, C: float) -> Floats:
        try:
            return _factor(self._gram, C)
        except linalg.LinAlgError:
            if not self._exact:  # float32 rounding at a large C: once more in full
                take = self._first_columns
                self._gram = self._point.hessian_gram(lambda i: take(i).astype(np.float64))
                self._exact = True
            return _factor_with_ridge(self._gram, C)


def patience(operator: Operator, n_rows: int | None = None, share: float = 1.0) -> float:
    """Below this many CG products, rebuilding the preconditioner does not pay.

    Building one costs about ``2 m r^2`` flops for m sampled rows; in products, each of which reads a
    ``share`` of the rows, that is its price. The dearer, the later: on ijcnn1 (C = 20, a price of 50)
    it is renewed after more than five products, 76 passes and 3.9 s; three would take 72 passes and
    4.9 s, eight 115 and 3.5 s. Passes count for more than their time there, since they are what grows
    with the rows.
    """
    r = operator.n_columns
    sampled = min(sample_size(r), operator.n_rows) if n_rows is None else n_rows
    flops = 2.0 * sampled * r * leading(r)
    return 3.0 + 0.05 * flops / FLOPS_PER_BYTE / (2 * share * operator.nbytes)


def leading(n_columns: int) -> int:
    """Columns that are factored."""
    return n_columns if n_columns <= MAX_COLUMNS else min(n_columns, LEADING_COLUMNS)


def sample_size(n_columns: int, rows_per_column: int = ROWS_PER_COLUMN) -> int:
    """Rows to be sampled."""
    first = leading(n_columns)
    return int(min(rows_per_column * first, MAX_ENTRIES / first))


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
    matrix.flat[:: len(matrix) + 1] += 1.0 + ridge
    # Its transpose, the same matrix, lies in memory as LAPACK wants it.
    out: Floats = linalg.cholesky(matrix.T, lower=True, overwrite_a=True, check_finite=False)
    return out


def _factor_with_ridge(gram: Floats, C: float) -> Floats:
    """At an extreme C even float64 rounding makes the matrix indefinite: what helps least is added.

    Where nothing up to the trace itself does, the diagonal alone is the preconditioner.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # found and named
        diagonal = 1.0 + C * np.maximum(np.diag(gram), 0.0)
    size = float(diagonal.sum())
    if not np.isfinite(size):
        raise FloatingPointError("features, weights or C are so large that products overflow")
    for ridge in (0.0, *(size * _RIDGES).tolist()):
        try:
            return _factor(gram, C, ridge)
        except linalg.LinAlgError:
            continue
    out: Floats = np.asfortranarray(np.diag(np.sqrt(diagonal)))
    return out
