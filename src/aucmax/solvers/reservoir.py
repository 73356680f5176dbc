"""A bounded sample of the rows of a stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.pairs import Array, Floats, Indices
from aucmax.rows.interface import is_sparse


class Reservoir:
    """A uniform random sample, of at most ``size`` rows, of all rows seen."""

    def __init__(self, size: int, n_features: int, dtype: npt.DTypeLike) -> None:
        self.size, self.seen = size, 0
        self.space = np.zeros((0, n_features), dtype)  # grows to `size` rows as they come

    @property
    def rows(self) -> Array:
        """The sampled rows."""
        return self.space[: self.seen]

    def grow(self, n_rows: int) -> None:
        """Make space for at least ``n_rows`` rows."""
        if n_rows > len(self.space):
            more = min(self.size, max(n_rows, 2 * len(self.space))) - len(self.space)
            self.space = np.pad(self.space, ((0, more), (0, 0)))

    def add(self, X: Any, rows: Indices, rng: np.random.Generator) -> None:
        """Sample from the rows of X with these indices."""
        slots = reservoir_slots(self.seen, rows.size, self.size, rng)
        self.seen += rows.size
        self.grow(min(self.seen, self.size))
        # Where several rows get one slot, the last stays, as if they had come one by one.
        slots, last = np.unique(slots[::-1], return_index=True)
        chosen = rows[::-1][last[slots >= 0]]
        self.space[slots[slots >= 0]] = dense_rows(X, chosen, self.space.dtype)

    def rescale(self, ratio: Floats, shift: Floats) -> None:
        """Replace each sampled row x by ``x ratio + shift``."""
        self.rows[:] = self.rows * ratio + shift


def reservoir_slots(seen: int, count: int, size: int, rng: np.random.Generator) -> Indices:
    """Return the slot of each of ``count`` rows that come after ``seen`` others; -1 is none.

    The m-th row is sampled with probability ``size / m`` and replaces a random one.
    """
    rank = seen + np.arange(count)
    slots = (rng.random(count) * (rank + 1)).astype(np.intp)
    return np.where(rank < size, rank, np.where(slots < size, slots, -1))


def dense_rows(X: Any, rows: Indices, dtype: npt.DTypeLike) -> Array:
    """Return some rows of a dense or sparse X, dense and contiguous."""
    chosen = X[rows]
    return np.ascontiguousarray(chosen.toarray() if is_sparse(chosen) else chosen, dtype=dtype)
