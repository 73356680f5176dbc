"""Operators over features, or kernel values, in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.features.projection import Projection
from aucmax.operators.interface import ALL, Operator
from aucmax.pairs import Floats, Indices
from aucmax.rows.interface import block_bytes, dense, is_sparse
from aucmax.runtime import compiled
from aucmax.runtime.threads import over_blocks

Array = npt.NDArray[Any]

#: Float32 sums stay short: partial products over this many rows are added in float64.
_SUM_ROWS = 4096

#: A matrix of at least this many bytes times up to this many vectors goes through compiled loops, which
#: read float32 and sum in float64. Coefficients over landmarks are large and cancel, the more the
#: larger C is: with float32 sums, fits on covtype (80,000 rows, C = 1600) stall with an objective that
#: is off by 1e-4, and AUCs of folds at the largest C are off by 3e-4. 200,000 x 1600 values times one
#: vector take 43 ms (BLAS in float32: 38), times four 82 (BLAS: three times as long as one); back, 48
#: and 100.
_THIN_SCORES = 12
_THIN_PULLBACK = 6
_THIN_BYTES = 2**25


class FeatureOperator:
    """Features in memory: a dense array or a CSR matrix of shape (n, r)."""

    def __init__(self, features: Any) -> None:
        self._features = features
        self.n_rows, self.n_features = features.shape
        self.nbytes, self.room = block_bytes(features), self.n_rows

    def scores(self, coef: Floats) -> Floats:
        return _product(self._features, coef)

    def pullback(self, gradient: Floats) -> Floats:
        return _transposed_product(self._features, gradient)

    def rows(self, index: Indices, features: slice = ALL) -> Array:
        return dense(self._features[index][:, features])

    def restricted(self, index: Indices) -> Operator:
        return FeatureOperator(self._features[index])


class KernelOperator:
    """A kernel block ``E = k(X, U)`` with its projection ``P`` folded: ``F = E P`` is never formed.

    ``F W = E (P W)`` and ``F' G = P' (E' G)``: two thin products instead of one of n v r flops.
    """

    def __init__(self, block: Array, projection: Projection) -> None:
        self._block, self._projection = block, projection
        self.n_rows, self.n_features = block.shape[0], projection.shape[1]
        self.nbytes, self.room = block.nbytes, self.n_rows

    def scores(self, coef: Floats) -> Floats:
        return _product(self._block, self._projection.fold(coef))

    def pullback(self, gradient: Floats) -> Floats:
        return self._projection.unfold(_transposed_product(self._block, gradient))

    def rows(self, index: Indices, features: slice = ALL) -> Array:
        return self._projection.features(self._block[index], features)

    def restricted(self, index: Indices) -> Operator:
        return KernelOperator(self._block[index], self._projection)


def _product(matrix: Any, coef: Floats) -> Floats:
    """Return ``matrix @ coef``."""
    if _is_thin(matrix, coef.shape[1], _THIN_SCORES):
        right, out = np.ascontiguousarray(coef.T), np.empty((coef.shape[1], len(matrix)))

        def work(rows: slice) -> None:
            compiled.run("thin_scores", matrix, right, out, rows.start, rows.stop)

        over_blocks(work, len(matrix), 0, _SUM_ROWS)
        return out.T
    coef = coef.astype(matrix.dtype)
    if coef.shape[1] == 1:  # a vector product runs at memory speed, a thin matrix product does not
        product: Array = (matrix @ coef[:, 0])[:, None]
    else:
        product = matrix @ coef
    return product.astype(np.float64, order="F")


def _transposed_product(matrix: Any, gradient: Floats) -> Floats:
    """Return ``matrix.T @ gradient``."""
    thin = _is_thin(matrix, gradient.shape[1], _THIN_PULLBACK)
    dtype = np.float64 if thin else matrix.dtype
    narrow = np.ascontiguousarray(gradient.T, dtype=dtype)
    n_blocks = -(-matrix.shape[0] // _SUM_ROWS)
    parts = np.zeros((n_blocks, len(narrow), matrix.shape[1]), dtype=dtype)

    def work(rows: slice) -> None:
        part = parts[rows.start // _SUM_ROWS]
        if thin:
            compiled.run("thin_pullback", matrix, narrow, part, rows.start, rows.stop)
        else:
            # A vector product runs at memory speed, a thin matrix product does not.
            left = narrow[0, rows] if len(narrow) == 1 else narrow[:, rows]
            part[...] = left @ matrix[rows]

    over_blocks(work, matrix.shape[0], 0, _SUM_ROWS)
    out: Floats = parts.sum(axis=0, dtype=np.float64).T
    return out


def _is_thin(matrix: Any, n_vectors: int, most: int) -> bool:
    """Return whether to multiply by compiled loops, which sum in float64."""
    if is_sparse(matrix) or n_vectors > most:
        return False
    return bool(matrix.nbytes >= _THIN_BYTES and matrix.flags.c_contiguous)
