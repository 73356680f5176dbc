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
    indices : int arrays of shapes (r_i,), optional
        Which of the r features each block makes, in rising order. By default they follow one another.
    """

    def __init__(self, blocks: Sequence[Array], indices: Sequence[Array] | None = None) -> None:
        if indices is None:
            bounds = np.cumsum([block.shape[1] for block in blocks])
            indices = np.split(np.arange(bounds[-1]), bounds[:-1])
        self.blocks, self.indices = blocks, indices

    @property
    def shape(self) -> tuple[int, int]:
        sizes = [block.shape for block in self.blocks]
        return sum(values for values, _ in sizes), sum(features for _, features in sizes)

    @property
    def nbytes(self) -> int:
        return sum(block.nbytes for block in self.blocks)

    def fold(self, coef: Array) -> Array:
        """Return ``P @ coef``: what scores kernel values as ``coef`` (r, k) scores features.

        This uses one thread, as :meth:`unfold` does: those of BLAS stay awake for tens of milliseconds
        afterwards and take cores from the threads of the pass that follows (100,000 rows x 1000
        landmarks: 0.19 s instead of 0.13).
        """
        with one_blas_thread():
            return np.concatenate([block @ coef[indices] for _, block, indices in self._parts()])

    def unfold(self, sums: Array) -> Array:
        """Return ``P.T @ sums``, for sums (v, k) over kernel values."""
        out = np.empty((self.shape[1], sums.shape[1]))
        with one_blas_thread():
            for part, block, indices in self._parts():
                out[indices] = block.T @ sums[part]
        return out

    def features(self, values: Array, wanted: slice) -> Array:
        """Return ``values @ P[:, wanted]`` in the dtype of the values (n, v)."""
        if len(self.blocks) == 1:
            return np.asarray(values @ self.blocks[0][:, wanted].astype(values.dtype, copy=False))
        first, last, _ = wanted.indices(self.shape[1])
        out = np.empty((len(values), max(0, last - first)), dtype=values.dtype)
        for part, block, indices in self._parts():
            low, high = np.searchsorted(indices, [first, last])
            right = block[:, low:high].astype(values.dtype, copy=False)
            out[:, indices[low:high] - first] = values[:, part] @ right
        return out

    def astype(self, dtype: npt.DTypeLike) -> Projection:
        """Return a copy in this dtype, which multiplies values of this dtype unconverted."""
        return Projection([block.astype(dtype) for block in self.blocks], self.indices)

    def dense(self) -> Array:
        """Return ``P`` itself: the one block, or a copy with zeros in it."""
        if len(self.blocks) == 1:
            return self.blocks[0]
        out = np.zeros(self.shape)
        for part, block, indices in self._parts():
            out[part, indices] = block
        return out

    def _parts(self) -> Iterator[tuple[slice, Array, Array]]:
        """Yield each block with its kernel values and the indices of its features."""
        first = 0
        for block, indices in zip(self.blocks, self.indices, strict=True):
            yield slice(first, first + len(block)), block, indices
            first += len(block)
