"""The rows of a fit behind one protocol: arrays and CSR matrices in memory, files, Dask workers.

A *block* is some rows as numbers, a dense array or a CSR matrix. Rows hand out blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy import sparse

from aucmax.runtime.threads import over_blocks

if TYPE_CHECKING:
    from sklearn.preprocessing import StandardScaler

Array = npt.NDArray[Any]
Block = Any  #: a dense array or a CSR matrix; both index, multiply and cast alike
Fill = Callable[[Any, Array], Array]  #: computes something from a block, into an array
T = TypeVar("T")

#: Rows of an array that :meth:`ArrayRows.map` hands out at a time.
_MAP_ROWS = 8192


@runtime_checkable
class Rows(Protocol):
    """The rows of a fit, wherever they are.

    Blocks are CSR matrices if ``sparse``. This process holds the rows if ``in_memory``, other processes
    do if ``remote``, and a file does otherwise. ``nbytes`` is the memory of this process they take.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    sparse: bool
    in_memory: bool
    remote: bool

    @property
    def nbytes(self) -> int: ...

    def __getitem__(self, index: Any, /) -> Block:
        """Return a block, by a slice or an array of row numbers."""

    def blocks(self, size: int | None = None) -> Iterator[tuple[slice, Block]]:
        """Read all rows, one block of at most ``size`` rows after the other."""

    def take(self, index: npt.NDArray[np.intp]) -> Rows:
        """Return some of the rows without reading them."""

    def astype(self, dtype: npt.DTypeLike) -> Rows:
        """Return the same rows in another dtype."""

    def scaled(self, scaler: Any) -> Rows:
        """Return the rows as a fitted scaler transforms them."""

    def standard_scaler(self, weight: Array) -> StandardScaler:
        """Fit scikit-learn's StandardScaler with these row weights."""

    def map(self, function: Callable[[Block], T]) -> list[T]:
        """Apply a function to all blocks, where the rows are, and return its results in order."""


class ArrayRows:
    """Rows in memory: a dense array or a CSR matrix."""

    in_memory, remote = True, False

    def __init__(self, values: Block) -> None:
        self.values, self.sparse = values, is_sparse(values)
        self.shape: tuple[int, int] = values.shape
        self.dtype: np.dtype[Any] = values.dtype

    @property
    def nbytes(self) -> int:
        return block_bytes(self.values)

    def __getitem__(self, index: Any) -> Block:
        return self.values[index]

    def blocks(self, size: int | None = None) -> Iterator[tuple[slice, Block]]:
        for part in slices(self.shape[0], size or self.shape[0]):
            yield part, self.values[part]

    def take(self, index: npt.NDArray[np.intp]) -> ArrayRows:
        return ArrayRows(self.values[index])

    def astype(self, dtype: npt.DTypeLike) -> ArrayRows:
        return ArrayRows(self.values.astype(dtype, copy=False))

    def scaled(self, scaler: Any) -> ArrayRows:
        if self.sparse and getattr(getattr(scaler, "scaler", scaler), "with_mean", False):
            raise ValueError(
                "X is sparse, but the model was fitted to dense rows, which it centres. Pass "
                "X.toarray(), or fit the model to sparse rows."
            )
        return ArrayRows(scaler.transform(self.values))

    def standard_scaler(self, weight: Array) -> StandardScaler:
        # Centring would make a CSR matrix dense. Only ratios of weights matter; tiny or huge ones
        # would underflow or overflow. Equal weights are left out: weighting takes twice the time.
        share = weight / weight.max() if np.ptp(weight) else None
        return new_standard_scaler(not self.sparse).fit(self.values, sample_weight=share)

    def map(self, function: Callable[[Block], T]) -> list[T]:
        if self.sparse or not self.shape[0]:
            return [function(self.values)]
        out: list[Any] = [None] * -(-self.shape[0] // _MAP_ROWS)

        def work(part: slice) -> None:
            out[part.start // _MAP_ROWS] = function(self.values[part])

        over_blocks(work, self.shape[0], 0, _MAP_ROWS)
        return out


def fill_matrix(fill: Fill, X: Any, width: int, dtype: npt.DTypeLike) -> Array:
    """Return the matrix (n, width) that ``fill`` computes from rows, block by block over threads."""
    out = np.empty((X.shape[0], width), dtype=dtype)

    def work(rows: slice) -> None:
        fill(X[rows], out[rows])

    over_blocks(work, X.shape[0], (width + X.shape[1]) * out.itemsize)
    return out


def slices(n_rows: int, size: int) -> Iterator[slice]:
    """Cut rows into slices of at most ``size``."""
    for start in range(0, n_rows, max(1, size)):
        yield slice(start, min(start + size, n_rows))


def as_rows(X: Any) -> Rows:
    """Wrap a checked array or CSR matrix; rows of another kind are returned as they are."""
    return ArrayRows(X) if isinstance(X, np.ndarray) or is_sparse(X) else X


def new_standard_scaler(with_mean: bool = True) -> StandardScaler:
    """Return an unfitted StandardScaler that gives arrays, whatever scikit-learn is configured to."""
    from sklearn.preprocessing import StandardScaler

    return StandardScaler(with_mean=with_mean).set_output(transform="default")


def is_sparse(block: Block) -> bool:
    """Return whether a block, or an input before it is checked, is a sparse matrix."""
    return bool(sparse.issparse(block))


def dense(block: Block) -> Array:
    """Return a block as a dense array."""
    return block.toarray() if is_sparse(block) else np.asarray(block)


def values_of(block: Block) -> Array:
    """Return the numbers a block stores: all of a dense one, the non-zero ones of a CSR matrix."""
    return np.asarray(block.data if is_sparse(block) else block)


def squared_norms(block: Block) -> Array:
    """Return the squared norm of each row."""
    return np.asarray(
        (block.multiply(block) if is_sparse(block) else block * block).sum(axis=1)
    ).ravel()


def block_bytes(block: Block) -> int:
    """Return the memory that a block takes."""
    parts = (block.data, block.indices, block.indptr) if is_sparse(block) else (block,)
    return sum(int(part.nbytes) for part in parts)
