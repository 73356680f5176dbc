"""An operator over kernel values that are read from disk or recomputed, a block in cache at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.features.projection import Projection
from aucmax.operators.in_memory import FeatureOperator, KernelOperator
from aucmax.operators.interface import ALL, Operator
from aucmax.pairs import Floats, Indices
from aucmax.rows.interface import Fill, fill_matrix
from aucmax.runtime import compiled
from aucmax.runtime.threads import Scratch, cache_rows, over_blocks

Array = npt.NDArray[Any]

#: Sums over at most this many rows are kept apart and added in order, so that the result does not
#: depend on which thread was first. Fewer rows are cut into this many parts, so that threads end
#: together.
_SUM_ROWS = 2**15
_PARTS = 64


class BlockOperator:
    """``F = E P``, where blocks of ``E`` exist only while they are in use.

    Parameters
    ----------
    X : rows (n, d)
        What blocks are made from: data, or the kernel values themselves on disk.
    width : int
        ``v``, the number of kernel values of a row.
    projection : Projection, optional
        None if the kernel values are the features.
    fill : callable, optional
        Puts the kernel values of rows (m, d) into an array (m, v). None if ``X`` holds these values.
    room : int
        The number of rows whose kernel values may be copied to memory.
    cost : float
        The time of a pass, relative to one over the same values in memory.
    """

    def __init__(
        self,
        X: Any,
        width: int,
        projection: Projection | None = None,
        fill: Fill | None = None,
        room: int = 0,
        cost: float = 10.0,
    ) -> None:
        self._X, self._fill, self._projection = X, fill, projection
        self._dtype, self.room = X.dtype, room
        self.n_rows, self._width = X.shape[0], width
        self.n_features = width if projection is None else projection.shape[1]
        self.nbytes = int(cost * self.n_rows * self._width * self._dtype.itemsize)
        self._scratch = Scratch()
        self._block_rows = cache_rows(width * self._dtype.itemsize)
        part = min(_SUM_ROWS, -(-self.n_rows // _PARTS))
        self._sum_rows = -(-part // self._block_rows) * self._block_rows

    def scores(self, coef: Floats) -> Floats:
        over_values = coef if self._projection is None else self._projection.fold(coef)
        right = np.ascontiguousarray(over_values.T, dtype=np.float64)
        out: Floats = np.empty((len(right), self.n_rows))

        def work(rows: slice) -> None:
            for part, block in self._blocks(rows):
                compiled.run("thin_scores", block, right, out[:, part], 0, len(block))

        over_blocks(work, self.n_rows, 0, self._sum_rows)
        return out.T

    def pullback(self, gradient: Floats) -> Floats:
        left = np.ascontiguousarray(gradient.T, dtype=np.float64)
        sums = np.zeros((-(-self.n_rows // self._sum_rows), len(left), self._width))

        def work(rows: slice) -> None:
            total = sums[rows.start // self._sum_rows]
            for part, block in self._blocks(rows):
                compiled.run("thin_pullback", block, left[:, part], total, 0, len(block))

        over_blocks(work, self.n_rows, 0, self._sum_rows)
        out: Floats = sums.sum(axis=0).T
        return out if self._projection is None else self._projection.unfold(out)

    def rows(self, index: Indices, features: slice = ALL) -> Array:
        values = self._values(index)
        if self._projection is None:
            return values[:, features]
        return self._projection.features(values, features)

    def restricted(self, index: Indices) -> Operator | None:
        if index.size > self.room:
            return None
        values = self._values(index)
        if self._projection is None:
            return FeatureOperator(values)
        return KernelOperator(values, self._projection)

    def _blocks(self, rows: slice) -> Iterator[tuple[slice, Array]]:
        """Yield blocks of kernel values that fit the cache; each is valid until the next."""
        for start in range(rows.start, rows.stop, self._block_rows):
            part = slice(start, min(start + self._block_rows, rows.stop))
            X = self._X[part]
            if self._fill is None:
                yield part, X
            else:
                yield part, self._fill(X, self._scratch.array((len(X), self._width), self._dtype))

    def _values(self, index: Indices) -> Array:
        """Return the kernel values of some rows."""
        X: Array = self._X[index]
        return X if self._fill is None else fill_matrix(self._fill, X, self._width, self._dtype)
