"""Rows in files, read a block at a time and scaled when they are read."""

from __future__ import annotations

import errno
import mmap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from aucmax.rows.interface import Array, new_standard_scaler, slices
from aucmax.runtime.memory import format_bytes

if TYPE_CHECKING:
    from sklearn.preprocessing import StandardScaler

T = TypeVar("T")

#: Rows that are read at a time when all of them are read.
_READ_ROWS = 65_536


class Storage(Protocol):
    """Numbers in a file, of which any rows can be read."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int: ...

    def __getitem__(self, index: Any, /) -> Array: ...


class FileRows:
    """Rows of numbers in a file, one after another.

    A slice is read, not mapped: mapped pages would count as memory of this process.
    """

    nbytes = 0

    def __init__(
        self, path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike, offset: int = 0
    ) -> None:
        self.path, self.shape, self.dtype = path, shape, np.dtype(dtype)
        self._offset = offset

    def __getitem__(self, index: Any) -> Array:
        start, stop, step = index.indices(self.shape[0]) if isinstance(index, slice) else (0, 0, 0)
        if step != 1 or stop <= start:
            return np.array(self.mapped()[index])
        width = self.shape[1]
        offset = self._offset + start * width * self.dtype.itemsize
        out = np.fromfile(self.path, self.dtype, (stop - start) * width, offset=offset)
        return out.reshape(-1, width)

    def mapped(self) -> Array:
        """Map the file to memory, to be read where it is touched."""
        return np.memmap(self.path, self.dtype, "r", self._offset, self.shape)


class MappedRows:
    """Rows of a mapped array. They are copied from the mapping: the file may have changed since.

    Pages of a shared mapping are returned to the system after each read, so that they do not count as
    memory of this process. Pages of a private mapping (mode "c") may have been changed: they stay.
    """

    def __init__(self, X: np.memmap[Any, Any]) -> None:
        plain = X.dtype in (np.float32, np.float64) and X.dtype.isnative
        self._rows, self.shape = X, X.shape
        self.dtype: np.dtype[Any] = X.dtype if plain else np.dtype(np.float64)
        self._mapping = _shared_mapping(X)
        if self._mapping is not None:
            start = np.frombuffer(self._mapping, dtype=np.uint8).ctypes.data
            self._start = X.ctypes.data - start

    def __getitem__(self, index: Any) -> Array:
        out = np.array(self._rows[index], dtype=self.dtype)
        if self._mapping is not None and isinstance(index, slice):
            first, last, _ = index.indices(self.shape[0])
            self._release(self._mapping, min(first, last), max(first, last))
        return out

    @property
    def nbytes(self) -> int:
        return 0 if self._mapping is not None else int(self._rows.nbytes)

    def _release(self, mapping: mmap.mmap, first: int, last: int) -> None:
        """Return the pages between two rows to the system."""
        row, page = self._rows.strides[0], mmap.PAGESIZE
        begin = (self._start + first * row) // page * page
        end = min(self._start + last * row, len(mapping))
        if end > begin:
            mapping.madvise(mmap.MADV_DONTNEED, begin, end - begin)


def _shared_mapping(X: np.memmap[Any, Any]) -> mmap.mmap | None:
    """Return the mapping of contiguous rows if its pages hold what the file holds, else None."""
    base: Any = X
    while isinstance(base, np.ndarray):
        base = base.base
    shared = X.flags.c_contiguous and X.mode != "c" and hasattr(mmap, "MADV_DONTNEED")
    return base if shared and isinstance(base, mmap.mmap) else None


class RowWriter:
    """Writes blocks of rows to a file, to be read as :class:`FileRows` once it is closed."""

    def __init__(self, path: Path, dtype: npt.DTypeLike) -> None:
        self.path, self.dtype, self._shape = path, np.dtype(dtype), (0, 0)
        self._file: IO[bytes] = path.open("wb")

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def width(self) -> int:
        """Return the number of columns written; 0 before the first block."""
        return self._shape[1]

    def write(self, block: Array) -> None:
        try:
            self._file.write(np.ascontiguousarray(block, dtype=self.dtype).data)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise OSError(
                errno.ENOSPC,
                f"The disk of {self.path.parent}, where a fit stores what does not fit into memory, "
                f"is full after {format_bytes(self._file.tell())}. Free some space, or set TMPDIR to "
                "a folder on a larger disk",
            ) from None
        self._shape = (self._shape[0] + len(block), block.shape[1])

    def rows(self) -> FileRows:
        """Return the rows written."""
        return FileRows(self.path, self._shape, self.dtype)


class StoredRows:
    """Rows in a file, checked when they were stored, scaled and cast when they are read.

    Parameters
    ----------
    storage : FileRows or MappedRows
    dtype : dtype of the blocks, optional
        That of the storage by default.
    index : array of int, optional
        The numbers of the rows to use; all by default.
    scalers : fitted transformers, applied one after the other
    """

    sparse, in_memory, remote = False, False, False

    def __init__(
        self,
        storage: Storage,
        dtype: npt.DTypeLike | None = None,
        index: npt.NDArray[np.intp] | None = None,
        scalers: tuple[Any, ...] = (),
    ) -> None:
        self.storage, self.dtype = storage, np.dtype(storage.dtype if dtype is None else dtype)
        self._index, self._scalers = index, scalers
        count = storage.shape[0] if index is None else index.size
        self.shape: tuple[int, int] = (count, width_after(scalers, storage.shape[1]))

    @property
    def nbytes(self) -> int:
        return self.storage.nbytes

    def __getitem__(self, index: Any) -> Array:
        out = np.asarray(self.storage[index if self._index is None else self._index[index]])
        if self._scalers and not len(out):  # scalers refuse empty arrays
            return np.empty((0, self.shape[1]), self.dtype)
        for scaler in self._scalers:
            out = _scaled_block(scaler, out)
        return out.astype(self.dtype, copy=False)

    def blocks(self, size: int | None = None) -> Iterator[tuple[slice, Array]]:
        for part in slices(self.shape[0], size or _READ_ROWS):
            yield part, self[part]

    def take(self, index: npt.NDArray[np.intp]) -> StoredRows:
        index = index if self._index is None else self._index[index]
        return StoredRows(self.storage, self.dtype, index, self._scalers)

    def astype(self, dtype: npt.DTypeLike) -> StoredRows:
        return StoredRows(self.storage, dtype, self._index, self._scalers)

    def scaled(self, scaler: Any) -> StoredRows:
        return StoredRows(self.storage, self.dtype, self._index, (*self._scalers, scaler))

    def standard_scaler(self, weight: Array) -> StandardScaler:
        scaler, equal, share = new_standard_scaler(), not np.ptp(weight), weight / weight.max()
        for part, block in self.blocks():
            scaler.partial_fit(block.astype(np.float64), sample_weight=None if equal else share[part])
        return scaler

    def map(self, function: Callable[[Array], T]) -> list[T]:
        return [function(block) for _, block in self.blocks()]


def _scaled_block(scaler: Any, block: Array) -> Array:
    """Transform a block. A StandardScaler is applied without its checks, which cost another pass."""
    if type(scaler).__name__ != "StandardScaler":
        return np.asarray(scaler.transform(block))
    centred = block - scaler.mean_ if scaler.with_mean else block
    out: Array = centred / scaler.scale_
    return out


def width_after(scalers: tuple[Any, ...], width: int) -> int:
    """Return the number of columns after some scalers."""
    for scaler in scalers:
        width = getattr(scaler, "n_features_out_", width)
    return width
