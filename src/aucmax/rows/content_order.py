"""Order rows by their content, not by their position.

Everything drawn at random (rows to tune on, landmarks, pairs) is drawn by position. Rows are put into
this order first, so that the same rows give the same draws in whichever order they came, and a fit of
rows in memory is the same to the last bit.

A row is ordered by two keys, 64-bit hashes of its numbers as float64. Float32 and float64, dense and
CSR rows with the same values have the same keys, and a part of the rows has the same order as within
all.

1. The first key is a sum over the values, in whichever columns they are. So the order of columns does
   not matter where values differ between columns, as measurements do.
2. The second key depends on the position of a column. It separates rows that have equal first keys, as
   rows of indicators often do.

Rows with equal keys are ordered by class and weight; a fit cannot distinguish what is still equal then.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.rows.interface import Block, Rows, is_sparse

Keys = npt.NDArray[np.uint64]

#: Odd constants with well spread bits: the golden ratio's, and those of splitmix64.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def content_order(
    rows: Rows, codes: npt.NDArray[Any] | None = None, weight: npt.NDArray[Any] | None = None
) -> npt.NDArray[np.intp]:
    """Return the positions of the rows in the order of their numbers, class and weight.

    >>> from aucmax.rows.interface import ArrayRows
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> first, again = content_order(ArrayRows(X)), content_order(ArrayRows(X[::-1]))
    >>> bool((X[first] == X[::-1][again]).all())
    True
    """
    ties = [part for part in (weight, codes) if part is not None]
    first, second = row_keys(rows)
    return np.lexsort((*ties, second, first))


def row_keys(rows: Rows) -> tuple[Keys, Keys]:
    """Return the two keys of each row."""
    first, second = zip(*rows.map(_keys), strict=True)
    return np.concatenate(first), np.concatenate(second)


def _keys(block: Block) -> tuple[Keys, Keys]:
    factors = _mixed(np.arange(1, block.shape[1] + 1, dtype=np.uint64) * _GOLDEN) | np.uint64(1)
    if is_sparse(block):
        terms = _mixed(_bits(block.data))
        first, second = _row_sums(terms, block), _row_sums(terms * factors[block.indices], block)
    else:
        terms = _mixed(_bits(block))
        first = terms.sum(axis=1, dtype=np.uint64)
        second = (terms * factors).sum(axis=1, dtype=np.uint64)
    return _mixed(first), _mixed(second)


def _row_sums(terms: Keys, block: Block) -> Keys:
    ends = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
    out: Keys = ends[block.indptr[1:]] - ends[block.indptr[:-1]]
    return out


def _bits(values: Any) -> Keys:
    numbers: npt.NDArray[np.float64] = np.ascontiguousarray(values, dtype=np.float64) + 0.0  # no -0.0
    return numbers.view(np.uint64)


def _mixed(bits: Keys) -> Keys:
    """Mix by the steps of splitmix64, after which every bit depends on every other; 0 stays 0."""
    bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    return bits ^ (bits >> np.uint64(31))
