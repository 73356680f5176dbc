"""An order of rows that follows from what they hold, not from where they stand.

Whatever is drawn at random (rows to tune on, landmarks, pairs) is drawn by position. With the rows in
this order first, the same rows give the same draws whichever way they came, and a fit of rows in memory
is the same to the last bit.

A row is ordered by two keys, 64-bit hashes of its numbers as float64. Float32 and float64, dense and
CSR rows with the same values have the same keys, and some of the rows alone come in the same order as
among all.

1. The first is a sum over the values, whichever columns they are in: so the order of columns does not
   matter where values differ from column to column, as those of measurements do.
2. The second knows the position of a column. It tells rows apart that the first takes for one, as it
   does with indicators.

Rows with equal keys are ordered by class and weight; what is equal then is one and the same row for a
fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from aucmax.rows.blocked import BlockedRows
from aucmax.rows.validation import is_sparse
from aucmax.runtime.threads import over_blocks

Keys = npt.NDArray[np.uint64]
T = TypeVar("T")

#: Rows whose keys are made at a time.
_BLOCK_ROWS = 8192

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
    first, second = row_keys(X)
    return np.lexsort((*ties, second, first))


def row_keys(X: Any) -> tuple[Keys, Keys]:
    """The two keys of each row: of an array, a CSR matrix, or rows that are read or held elsewhere."""
    first, second = zip(*_mapped(X, _keys), strict=True)
    return np.concatenate(first), np.concatenate(second)


def _mapped(X: Any, function: Callable[[Any], T]) -> Sequence[T]:
    """What a function gives for the parts of rows, in order."""
    if hasattr(X, "map_parts"):  # held by other processes
        found: Sequence[T] = X.map_parts(function)
        return found
    if is_sparse(X) or not X.shape[0]:
        return [function(X)]
    if isinstance(X, BlockedRows):
        return [function(X[rows]) for rows in X.slices()]
    out: list[Any] = [None] * -(-X.shape[0] // _BLOCK_ROWS)

    def work(rows: slice) -> None:
        out[rows.start // _BLOCK_ROWS] = function(X[rows])

    over_blocks(work, X.shape[0], 0, _BLOCK_ROWS)
    return out


def _keys(rows: Any) -> tuple[Keys, Keys]:
    places = np.arange(1, rows.shape[1] + 1, dtype=np.uint64)
    factors = _mixed(places * _GOLDEN) | np.uint64(1)
    if is_sparse(rows):
        terms = _mixed(_numbers(rows.data).view(np.uint64))
        first, second = _row_sums(terms, rows), _row_sums(terms * factors[rows.indices], rows)
    else:
        terms = _mixed(_numbers(rows).view(np.uint64))
        first, second = (
            terms.sum(axis=1, dtype=np.uint64),
            (terms * factors).sum(axis=1, dtype=np.uint64),
        )
    return _mixed(first), _mixed(second)


def _row_sums(terms: Keys, rows: Any) -> Keys:
    ends = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
    out: Keys = ends[rows.indptr[1:]] - ends[rows.indptr[:-1]]
    return out


def _numbers(values: Any) -> npt.NDArray[np.float64]:
    out: npt.NDArray[np.float64] = np.ascontiguousarray(values, dtype=np.float64) + 0.0  # no -0.0
    return out


def _mixed(bits: Keys) -> Keys:
    """The steps of splitmix64: every bit has a part in every other; 0 stays 0."""
    bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    return bits ^ (bits >> np.uint64(31))
