"""The kernel matrix of rows with themselves, as square tiles.

The matrix is symmetric, so only tiles on and above the diagonal are made, and each serves two products:
half the memory, and half the time where tiles are computed again. Tiles that fit into memory are held;
the rest are computed again in every product.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.features.kernels import KernelSpec, LandmarkKernel
from aucmax.pairs import Floats, Indices
from aucmax.runtime import compiled
from aucmax.runtime.threads import Scratch, over_blocks, thread_count

Array = npt.NDArray[Any]
Tile = tuple[int, int]  # the numbers of its block of rows and its block of columns

#: Rows of a tile. In float32 a tile has 4 MB, so that its second product finds it in cache. Where
#: memory is short, tiles are smaller, down to the second number.
TILE_ROWS, _LEAST_ROWS = 1024, 64

#: Sums are made in this many parts, whatever the number of threads, so that rounding is the same.
_PARTS = 16


def least_bytes(n_rows: int, dtype: npt.DTypeLike) -> int:
    """Return the least memory for a matrix of ``n_rows`` rows: that of two of the smallest tiles."""
    return 2 * min(n_rows, _LEAST_ROWS) ** 2 * np.dtype(dtype).itemsize


def _tile_rows(itemsize: int, room: float) -> int:
    """Return the rows of a tile of which there is room for four."""
    size = TILE_ROWS
    while size > _LEAST_ROWS and 4 * size**2 * itemsize > room:
        size //= 2
    return size


class KernelTiles:
    """``k(X, X)`` for rows ``X`` (n, d); at most ``room`` bytes of it are held.

    ``share_held`` is the share of the tiles that are held.
    """

    def __init__(self, X: Array, spec: KernelSpec, room: float) -> None:
        self.n_rows, self._X, self._spec = len(X), X, spec
        size = _tile_rows(X.dtype.itemsize, room)
        starts = range(0, self.n_rows, size)
        self._blocks = [slice(start, min(start + size, self.n_rows)) for start in starts]
        self._kernels = [LandmarkKernel(X[block], spec, X.dtype) for block in self._blocks]
        self._tiles = [(i, j) for j in range(len(self._blocks)) for i in range(j + 1)]
        self._scratch = Scratch()
        self._held: dict[Tile, Array] = {}
        tile = min(size, self.n_rows) ** 2 * X.dtype.itemsize
        count = max(0, int(room // tile) - thread_count())  # one for each thread to work in
        self._hold(self._tiles[:count])
        self.share_held = len(self._held) / len(self._tiles)
        self._room_left = room - sum(tile.nbytes for tile in self._held.values())

    def _hold(self, tiles: list[Tile]) -> None:
        held: list[Array] = [np.empty(0)] * len(tiles)

        def work(part: slice) -> None:
            for number in range(part.start, part.stop):
                tile = tiles[number]
                held[number] = self._fill(tile, np.empty(self._shape(tile), self._X.dtype))

        over_blocks(work, len(tiles), 1, block_rows=1)
        self._held = dict(zip(tiles, held, strict=True))

    def _shape(self, tile: Tile) -> tuple[int, int]:
        rows, columns = (self._blocks[number] for number in tile)
        return rows.stop - rows.start, columns.stop - columns.start

    def _fill(self, tile: Tile, out: Array) -> Array:
        return self._kernels[tile[1]](self._X[self._blocks[tile[0]]], out)

    def _tile(self, tile: Tile) -> Array:
        if tile in self._held:
            return self._held[tile]
        return self._fill(tile, self._scratch.array(self._shape(tile), self._X.dtype))

    def product(self, vector: Floats) -> Floats:
        """Return ``K @ vector`` (n,), summed in float64."""
        step = -(-len(self._tiles) // _PARTS)
        sums = np.zeros((-(-len(self._tiles) // step), self.n_rows))

        def work(part: slice) -> None:
            own = sums[part.start // step]
            for tile in self._tiles[part]:
                self._add_products(tile, vector, own)

        over_blocks(work, len(self._tiles), 1, block_rows=step)
        out: Floats = sums.sum(axis=0)
        return out

    def restricted(self, rows: Indices) -> KernelTiles:
        """Return the tiles of some of the rows; they are computed, and held as far as room is left."""
        return KernelTiles(self._X[rows], self._spec, self._room_left)

    def _add_products(self, tile: Tile, vector: Floats, sums: Floats) -> None:
        """Add the products of a tile, and those of its mirror image if it is off the diagonal."""
        values = self._tile(tile)
        rows, columns = (self._blocks[number] for number in tile)
        mirrored = vector[rows] if tile[0] != tile[1] else np.zeros(len(values))
        compiled.run("both_products", values, vector[columns], mirrored, sums[rows], sums[columns])
