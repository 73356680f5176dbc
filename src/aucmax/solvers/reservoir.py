"""A bounded sample of the rows of a stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.pairs import Floats, Indices
from aucmax.rows.validation import is_sparse

Array = npt.NDArray[Any]


class Reservoir:
    """A uniform random sample, of at most ``size`` rows, of all rows seen."""

    def __init__(self, size: int, n_columns: int, dtype: npt.DTypeLike) -> None:
        self.size, self.seen = size, 0
        self.space = np.zeros((0, n_columns), dtype)  # grows to `size` rows as they come

    @property
    def rows(self) -> Array:
        return self.space[: self.seen]

    def reserve(self) -> None:
        """Take all the space at once, for a loop that fills it."""
        self._grow(self.size)

    def add(self, X: Any, rows: Indices, rng: np.random.Generator) -> None:
        slots = reservoir_slots(self.seen, rows.size, self.size, rng)
        self.seen += rows.size
        self._grow(min(self.seen, self.size))
        # Of several rows for one slot the last stays, as if they had come one by one.
        slots, first = np.unique(slots[::-1], return_index=True)
        kept = rows[::-1][first]
        self.space[slots[slots >= 0]] = dense_rows(X, kept[slots >= 0], self.space.dtype)

    def _grow(self, rows: int) -> None:
        if rows > len(self.space):
            larger = np.zeros((min(self.size, max(rows, 2 * len(self.space))), self.space.shape[1]))
            larger[: len(self.space)] = self.space
            self.space = larger.astype(self.space.dtype)

    def rescale(self, ratio: Floats, shift: Floats) -> None:
        self.rows[:] = self.rows * ratio + shift


def reservoir_slots(seen: int, count: int, size: int, rng: np.random.Generator) -> Indices:
    """Where in a reservoir each of ``count`` rows goes after ``seen`` others; -1 is nowhere.

    The m-th row is kept with probability ``size / m``, in the place of a random one.
    """
    rank = seen + np.arange(count)
    slots = (rng.random(count) * (rank + 1)).astype(np.intp)
    return np.where(rank < size, rank, np.where(slots < size, slots, -1))


def dense_rows(X: Any, rows: Indices, dtype: npt.DTypeLike) -> Array:
    """Some rows, dense and contiguous, from rows of either kind."""
    chosen = X[rows]
    if is_sparse(chosen):
        chosen = chosen.toarray()
    return np.ascontiguousarray(chosen, dtype=dtype)
