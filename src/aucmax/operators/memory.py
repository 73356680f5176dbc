"""Features, or kernel values, held in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax import _compiled
from aucmax._checks import is_sparse
from aucmax._threads import over_blocks
from aucmax.operators.protocol import Operator
from aucmax.pairs import Floats, Indices

Array = npt.NDArray[Any]

#: Float32 sums stay short: partial products over this many rows are added in float64.
_SUM_ROWS = 4096

#: A matrix of so many bytes times two to so many columns goes through compiled loops, where they beat
#: BLAS. Four columns take 1.4 (scores) and 1.4 (pullback) of the time of one, against 3.1 and 1.5 by
#: BLAS; two take 1.0 and 1.0 against 2.8 and 1.9 (300,000 x 1600 float32, two cores).
_THIN_SCORES = 12
_THIN_PULLBACK = 6
_THIN_BYTES = 2**25
_WIDE_COLUMNS = 1


class FeatureOperator:
    """Features held as they are: a dense array or a CSR matrix of shape (n, r)."""

    def __init__(self, features: Any) -> None:
        self._features = features
        self.n_rows, self.n_columns = features.shape
        self._sparse = is_sparse(features)
        parts = (features.data, features.indices, features.indptr) if self._sparse else (features,)
        self.nbytes = sum(part.nbytes for part in parts)
        self.room = self.n_rows

    def scores(self, coef: Floats) -> Floats:
        return _columns_product(self._features, coef)

    def pullback(self, gradient: Floats) -> Floats:
        return _rows_product(self._features, gradient)

    def rows(self, index: Indices) -> Array:
        chosen: Array = self._features[index]
        return chosen.toarray() if self._sparse else chosen  # type: ignore[attr-defined]

    def restricted(self, index: Indices) -> Operator:
        return FeatureOperator(self._features[index])


class KernelOperator:
    """A kernel block ``E = k(X, U)`` with its projection ``P`` folded: ``F = E P`` is never formed.

    ``F W = E (P W)`` and ``F' G = P' (E' G)``: two thin products instead of one of n v r flops.
    """

    def __init__(self, block: Array, projection: Floats) -> None:
        self._block, self._projection = block, projection
        self.n_rows, self.n_columns = block.shape[0], projection.shape[1]
        self.nbytes = block.nbytes
        self.room = self.n_rows

    def scores(self, coef: Floats) -> Floats:
        return _columns_product(self._block, self._projection @ coef, _wide(coef.shape[1]))

    def pullback(self, gradient: Floats) -> Floats:
        wide = _wide(gradient.shape[1])
        out: Floats = self._projection.T @ _rows_product(self._block, gradient, wide)
        return out

    def rows(self, index: Indices) -> Array:
        chosen: Array = self._block[index]
        features: Array = chosen @ self._projection.astype(chosen.dtype)
        return features

    def restricted(self, index: Indices) -> Operator:
        return KernelOperator(self._block[index], self._projection)


def _wide(n_columns: int) -> bool:
    """Whether products with a folded block sum in float64.

    Coefficients over landmarks are large and cancel, the more the larger C: on covtype (80,000 rows,
    C = 1600) float32 sums leave an objective that is off by up to 3e-4. One column takes no longer so,
    the block being read all the same; four would take 1.4 times as long.
    """
    return n_columns <= _WIDE_COLUMNS


def _columns_product(matrix: Any, coef: Floats, wide: bool = False) -> Floats:
    if _is_thin(matrix, coef.shape[1], _THIN_SCORES, wide):
        right = np.ascontiguousarray(coef.T, dtype=np.float64 if wide else matrix.dtype)
        narrow = np.empty((coef.shape[1], len(matrix)), right.dtype)

        def work(rows: slice) -> None:
            _compiled.run("thin_scores", matrix, right, narrow, rows.start, rows.stop)

        over_blocks(work, len(matrix), 0, _SUM_ROWS)
        out: Floats = narrow.astype(np.float64, copy=False).T
        return out
    coef = coef.astype(matrix.dtype)
    if coef.shape[1] == 1:  # a vector product runs at memory speed, a thin matrix product does not
        product: Array = (matrix @ coef[:, 0])[:, None]
    else:
        product = matrix @ coef
    return product.astype(np.float64, order="F")


def _rows_product(matrix: Any, gradient: Floats, wide: bool = False) -> Floats:
    thin = _is_thin(matrix, gradient.shape[1], _THIN_PULLBACK, wide)
    dtype = np.float64 if thin and wide else matrix.dtype
    narrow = np.ascontiguousarray(gradient.T.astype(dtype))
    n_blocks = -(-matrix.shape[0] // _SUM_ROWS)
    parts = np.zeros((n_blocks, len(narrow), matrix.shape[1]), dtype=dtype)

    def work(rows: slice) -> None:
        part = parts[rows.start // _SUM_ROWS]
        if thin:
            _compiled.run("thin_pullback", matrix, narrow, part, rows.start, rows.stop)
        else:
            # A vector product runs at memory speed, a thin matrix product does not.
            left = narrow[0, rows] if len(narrow) == 1 else narrow[:, rows]
            part[...] = left @ matrix[rows]

    over_blocks(work, matrix.shape[0], 0, _SUM_ROWS)
    out: Floats = parts.sum(axis=0, dtype=np.float64).T
    return out


def _is_thin(matrix: Any, n_columns: int, most: int, wide: bool) -> bool:
    """Whether compiled loops multiply faster than BLAS, and enough so that compiling them pays."""
    if is_sparse(matrix) or not (1 if wide else 2) <= n_columns <= most:
        return False
    return bool(matrix.nbytes >= _THIN_BYTES and matrix.flags.c_contiguous)
