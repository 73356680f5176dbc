"""The projection from kernel values to features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.runtime.threads import one_blas_thread

Array = npt.NDArray[Any]


class Projection:
    """The matrix ``P`` (v, r) from kernel values to features; only blocks that are not zero are held.

    Each kernel has its own kernel values and its own features.

    Parameters
    ----------
    blocks : float64 arrays, of shapes (v_i, r_i) that add up to (v, r)
    columns : for each block, in rising order, which of the r features are its own; one after the other
        if not given
    """

    def __init__(self, blocks: Sequence[Array], columns: Sequence[Array] | None = None) -> None:
        if columns is None:
            bounds = np.cumsum([block.shape[1] for block in blocks])
            columns = np.split(np.arange(bounds[-1]), bounds[:-1])
        self.blocks, self.columns = blocks, columns

    @property
    def shape(self) -> tuple[int, int]:
        sizes = [block.shape for block in self.blocks]
        return sum(values for values, _ in sizes), sum(features for _, features in sizes)

    @property
    def nbytes(self) -> int:
        return sum(block.nbytes for block in self.blocks)

    def fold(self, coef: Array) -> Array:
        """``P @ coef``: what scores kernel values as ``coef`` (r, k) scores features.

        By one thread, as :meth:`unfold`: those of BLAS stay awake for tens of milliseconds afterwards,
        and keep the threads of the pass that follows from their cores (100,000 rows x 1000 landmarks:
        0.19 s instead of 0.13).
        """
        with one_blas_thread():
            return np.concatenate([block @ coef[columns] for _, block, columns in self._parts()])

    def unfold(self, sums: Array) -> Array:
        """``P.T @ sums``, of sums (v, k) over kernel values."""
        out = np.empty((self.shape[1], sums.shape[1]))
        with one_blas_thread():
            for values, block, columns in self._parts():
                out[columns] = block.T @ sums[values]
        return out

    def features(self, values: Array, columns: slice) -> Array:
        """``values @ P[:, columns]`` in the dtype of the values (n, v)."""
        if len(self.blocks) == 1:
            return np.asarray(values @ self.blocks[0][:, columns].astype(values.dtype, copy=False))
        first, last, _ = columns.indices(self.shape[1])
        out = np.empty((len(values), max(0, last - first)), dtype=values.dtype)
        for part, block, places in self._parts():
            low, high = np.searchsorted(places, [first, last])
            right = block[:, low:high].astype(values.dtype, copy=False)
            out[:, places[low:high] - first] = values[:, part] @ right
        return out

    def astype(self, dtype: npt.DTypeLike) -> Projection:
        """For many blocks of values of this dtype."""
        return Projection([block.astype(dtype) for block in self.blocks], self.columns)

    def dense(self) -> Array:
        """``P`` itself: the one block, or a copy with zeros in it."""
        if len(self.blocks) == 1:
            return self.blocks[0]
        out = np.zeros(self.shape)
        for values, block, columns in self._parts():
            out[values, columns] = block
        return out

    def _parts(self) -> Iterator[tuple[slice, Array, Array]]:
        first = 0
        for block, columns in zip(self.blocks, self.columns, strict=True):
            yield slice(first, first + len(block)), block, columns
            first += len(block)
