"""An order of rows that follows from what they hold, not from where they stand.

Whatever is drawn at random (rows to tune on, landmarks, pairs) is drawn by position. With the rows in
this order first, the same rows give the same draws whichever way they came, and a fit of rows in memory
is the same to the last bit.

The key of a row is a 64-bit hash of its numbers as float64, so that float32 and float64, dense and CSR
rows with the same values have the same keys. Rows with equal keys are ordered by class and weight; what
is equal then is one and the same row for a fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from aucmax._threads import over_blocks
from aucmax.rows import BlockedRows

Keys = npt.NDArray[np.uint64]

#: Odd constants with well spread bits: the golden ratio's, and those of splitmix64.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def content_order(
    X: Any, codes: npt.NDArray[Any] | None = None, weight: npt.NDArray[Any] | None = None
) -> npt.NDArray[np.intp]:
    """Positions of the rows in the order of what they hold: numbers, class, weight.

    >>> rows = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> first, again = content_order(rows), content_order(rows[::-1])
    >>> bool((rows[first] == rows[::-1][again]).all())
    True
    """
    ties = [part for part in (weight, codes) if part is not None]
    return np.lexsort((*ties, row_keys(X)))


def row_keys(X: Any) -> Keys:
    """A key for each row: of an array, a CSR matrix, or rows that are read or asked for elsewhere."""
    if hasattr(X, "row_keys"):  # held by other processes
        keys: Keys = X.row_keys()
        return keys
    if sparse.issparse(X):
        return _sparse_keys(X)
    out = np.empty(X.shape[0], dtype=np.uint64)

    def work(rows: slice) -> None:
        out[rows] = _dense_keys(X[rows])

    if isinstance(X, BlockedRows):
        for rows in X.slices():
            work(rows)
    else:
        over_blocks(work, X.shape[0], 32 * X.shape[1])
    return out


def _dense_keys(rows: npt.NDArray[Any]) -> Keys:
    numbers = np.ascontiguousarray(rows, dtype=np.float64) + 0.0  # -0.0 is 0.0
    factors = _factors(np.arange(rows.shape[1], dtype=np.uint64))
    return _mixed((_mixed(numbers.view(np.uint64)) * factors).sum(axis=1, dtype=np.uint64))


def _sparse_keys(X: Any) -> Keys:
    numbers = X.data.astype(np.float64) + 0.0
    terms = _mixed(numbers.view(np.uint64)) * _factors(X.indices.astype(np.uint64))
    ends = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
    return _mixed(ends[X.indptr[1:]] - ends[X.indptr[:-1]])


def _factors(columns: Keys) -> Keys:
    """An odd number for each column."""
    return _mixed((columns + np.uint64(1)) * _GOLDEN) | np.uint64(1)


def _mixed(bits: Keys) -> Keys:
    """The steps of splitmix64: every bit has a part in every other; 0 stays 0."""
    bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    return bits ^ (bits >> np.uint64(31))
