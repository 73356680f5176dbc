"""Kernel values that are not in memory: read from disk, or made anew, a block in cache at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax._threads import Scratch, cache_rows, over_blocks
from aucmax.operators.memory import KernelOperator
from aucmax.operators.protocol import Operator
from aucmax.pairs import Floats, Indices
from aucmax.rows import Rows

Array = npt.NDArray[Any]

#: Sums over so many rows are kept apart and added in float64, in order: the result does not depend on
#: which thread was first.
_SUM_ROWS = 2**15


class BlockOperator:
    """``F = E P`` of which blocks of ``E`` exist while they are in use, and no longer.

    Parameters
    ----------
    X : rows (n, d)
        What blocks are made from: data, or the kernel values themselves on disk.
    projection : array of shape (v, r)
    fill : callable, optional
        Puts the kernel values of rows (m, d) into an array (m, v). None: ``X`` is these values.
    room : int
        Rows whose kernel values may be copied to memory.
    cost : float
        Of a pass, by that of one over the same values in memory.
    """

    def __init__(
        self,
        X: Rows,
        projection: Floats,
        fill: Callable[[Any, Array], Array] | None = None,
        room: int = 0,
        cost: float = 10.0,
    ) -> None:
        self._X, self._fill, self._projection = X, fill, projection
        self._dtype, self.room = X.dtype, room
        self.n_rows, (self._width, self.n_columns) = X.shape[0], projection.shape
        self.nbytes = int(cost * self.n_rows * self._width * self._dtype.itemsize)
        self._scratch = Scratch()

    def scores(self, coef: Floats) -> Floats:
        folded = (self._projection @ coef).astype(self._dtype)
        out: Floats = np.empty((self.n_rows, coef.shape[1]), order="F")

        def work(rows: slice) -> None:
            for part, block in self._blocks(rows):
                out[part] = block @ folded

        over_blocks(work, self.n_rows, 0, _SUM_ROWS)
        return out

    def pullback(self, gradient: Floats) -> Floats:
        narrow = np.ascontiguousarray(gradient.T, dtype=self._dtype)
        sums = np.zeros((-(-self.n_rows // _SUM_ROWS), len(narrow), self._width))

        def work(rows: slice) -> None:
            total = sums[rows.start // _SUM_ROWS]
            for part, block in self._blocks(rows):
                total += narrow[:, part] @ block

        over_blocks(work, self.n_rows, 0, _SUM_ROWS)
        out: Floats = self._projection.T @ sums.sum(axis=0).T
        return out

    def rows(self, index: Indices) -> Array:
        features: Array = self._values(index) @ self._projection.astype(self._dtype)
        return features

    def restricted(self, index: Indices) -> Operator | None:
        if index.size > self.room:
            return None
        return KernelOperator(self._values(index), self._projection)

    def _blocks(self, rows: slice) -> Iterator[tuple[slice, Array]]:
        """Blocks of kernel values that fit the cache, each valid until the next."""
        step = cache_rows(self._width * self._dtype.itemsize)
        for start in range(rows.start, rows.stop, step):
            part = slice(start, min(start + step, rows.stop))
            X = self._X[part]
            if self._fill is None:
                yield part, X
            else:
                yield part, self._fill(X, self._scratch.array((len(X), self._width), self._dtype))

    def _values(self, index: Indices) -> Array:
        X = self._X[index]
        if self._fill is None:
            return X
        out, fill = np.empty((len(X), self._width), dtype=self._dtype), self._fill

        def work(rows: slice) -> None:
            fill(X[rows], out[rows])

        over_blocks(work, len(X), self._width * self._dtype.itemsize)
        return out
