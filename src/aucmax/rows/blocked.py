"""Rows that need not be in memory: some of them, when asked for."""

from __future__ import annotations

import errno
import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from aucmax.runtime.memory import format_bytes

if TYPE_CHECKING:
    from sklearn.preprocessing import StandardScaler

Array = npt.NDArray[Any]

#: Rows that are read at a time where all of them are.
_READ_ROWS = 65_536


class Rows(Protocol):
    """What an array is to those who only ever take some of its rows."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    def __getitem__(self, index: Any, /) -> Any: ...


class FileRows:
    """Rows of numbers in a file, one after another.

    A slice is read, not mapped: mapped pages would count as memory of this process.
    """

    def __init__(
        self, path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike, offset: int = 0
    ) -> None:
        self.path, self.shape, self.dtype = path, shape, np.dtype(dtype)
        self._offset = offset

    def __getitem__(self, index: Any) -> Array:
        if not isinstance(index, slice):
            return np.array(self.mapped()[index])
        start, stop, step = index.indices(self.shape[0])
        width = self.shape[1]
        if step != 1 or stop <= start:
            return np.array(self.mapped()[index])
        offset = self._offset + start * width * self.dtype.itemsize
        out = np.fromfile(self.path, self.dtype, (stop - start) * width, offset=offset)
        return out.reshape(-1, width)

    def mapped(self) -> Array:
        """All of them, to be read by the system where they are touched."""
        return np.memmap(self.path, self.dtype, "r", self._offset, self.shape)


class MappedRows:
    """Rows of a mapped array, copied from the mapping: the file may hold something else by now.

    Pages of a shared mapping are given back to the system after each reading, so that they do not
    count as memory of this process. Those of a private one (mode "c") may have been changed: they stay.
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
            self._give_back(min(first, last), max(first, last))
        return out

    @property
    def nbytes(self) -> int:
        """Memory that the rows keep."""
        return 0 if self._mapping is not None else int(self._rows.nbytes)

    def _give_back(self, first: int, last: int) -> None:
        """Let go of the pages between two rows; they are read again where that is needed."""
        assert self._mapping is not None
        row, page = self._rows.strides[0], mmap.PAGESIZE
        begin = (self._start + first * row) // page * page
        end = min(self._start + last * row, len(self._mapping))
        if end > begin:
            self._mapping.madvise(mmap.MADV_DONTNEED, begin, end - begin)


def _shared_mapping(X: np.memmap[Any, Any]) -> mmap.mmap | None:
    """The mapping below contiguous rows whose pages hold what the file does; None if there is none."""
    base: Any = X
    while isinstance(base, np.ndarray):
        base = base.base
    shared = X.flags.c_contiguous and X.mode != "c" and hasattr(mmap, "MADV_DONTNEED")
    return base if shared and isinstance(base, mmap.mmap) else None


class RowWriter:
    """Writes blocks of rows to a file, to be read as :class:`FileRows` when it is closed."""

    def __init__(self, path: Path, dtype: npt.DTypeLike) -> None:
        self.path, self.dtype = path, np.dtype(dtype)
        self._file: IO[bytes] = path.open("wb")
        self._shape = (0, 0)

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    @property
    def width(self) -> int:
        """Columns written so far; 0 before the first block."""
        return self._shape[1]

    def write(self, block: Array) -> None:
        try:
            self._file.write(np.ascontiguousarray(block, dtype=self.dtype).data)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise OSError(
                errno.ENOSPC,
                f"The disk of {self.path.parent}, where a fit keeps what does not fit into memory, "
                f"is full after {format_bytes(self._file.tell())}. Free some, or set TMPDIR to a "
                "folder on a larger one",
            ) from None
        self._shape = (self._shape[0] + len(block), block.shape[1])

    def rows(self) -> FileRows:
        """What was written."""
        return FileRows(self.path, self._shape, self.dtype)


class BlockedRows:
    """Rows that were checked when they were first read, standardised and narrowed when they are used.

    Parameters
    ----------
    rows : Rows
    mean, scale : arrays of shape (d,), optional
    dtype : of what is given
    keep : array of int, optional
        Which rows there are; all of them by default.
    scalers : sequence of fitted transformers
        What rows go through after that, one after the other.
    """

    def __init__(
        self,
        rows: Rows,
        mean: Array | None = None,
        scale: Array | None = None,
        dtype: npt.DTypeLike = np.float64,
        keep: npt.NDArray[np.intp] | None = None,
        scalers: tuple[Any, ...] = (),
    ) -> None:
        self.rows, self.dtype, self._mean, self._scale = rows, np.dtype(dtype), mean, scale
        self._keep, self._scalers = keep, scalers
        count = rows.shape[0] if keep is None else keep.size
        self.shape: tuple[int, ...] = (count, width_after(scalers, rows.shape[1]))

    def __getitem__(self, index: Any) -> Array:
        out: Array = np.asarray(self.rows[index if self._keep is None else self._keep[index]])
        if self._mean is not None:
            out = out - self._mean
        if self._scale is not None:
            out = out / self._scale
        if self._scalers and not len(out):  # of which scalers would complain
            return np.empty((0, self.shape[1]), self.dtype)
        for scaler in self._scalers:
            out = scaler.transform(out)
        return out.astype(self.dtype, copy=False)

    def astype(self, dtype: npt.DTypeLike, copy: bool = True) -> BlockedRows:
        """The same rows, given in another dtype."""
        return BlockedRows(self.rows, self._mean, self._scale, dtype, self._keep, self._scalers)

    def scaler(self, weight: Array) -> StandardScaler:
        """As scikit-learn fits it, from one reading."""
        from sklearn.preprocessing import StandardScaler

        scaler, equal, share = StandardScaler(), not np.ptp(weight), weight / weight.max()
        for part in self.slices():
            own = None if equal else share[part]
            scaler.partial_fit(self[part].astype(np.float64), sample_weight=own)
        return scaler

    def moments(self, weight: Array) -> tuple[Array, Array]:
        """Weighted mean and variance of every column."""
        scaler = self.scaler(weight)
        return scaler.mean_, scaler.var_

    def scaled_by(self, scaler: Any) -> BlockedRows:
        """The same rows, through a fitted scaler as well when they are read."""
        from sklearn.preprocessing import StandardScaler

        plain = self._mean is None and self._scale is None and not self._scalers
        if plain and isinstance(scaler, StandardScaler):
            mean = scaler.mean_ if scaler.with_mean else None  # not if it was fitted to sparse rows
            return BlockedRows(self.rows, mean, scaler.scale_, self.dtype, self._keep)
        scalers = (*self._scalers, scaler)
        return BlockedRows(self.rows, self._mean, self._scale, self.dtype, self._keep, scalers)

    def slices(self) -> Iterator[slice]:
        """Parts of the rows that are read at a time."""
        for start in range(0, self.shape[0], _READ_ROWS):
            yield slice(start, start + _READ_ROWS)

    def taken(self, keep: npt.NDArray[np.intp]) -> BlockedRows:
        """Some of the rows, unread."""
        own = keep if self._keep is None else self._keep[keep]
        return BlockedRows(self.rows, self._mean, self._scale, self.dtype, own, self._scalers)


def width_after(scalers: tuple[Any, ...], width: int) -> int:
    """Columns that rows have after some scalers: as many as before, unless one says otherwise."""
    for scaler in scalers:
        width = getattr(scaler, "n_features_out_", width)
    return width


def blocks_of(rows: Rows, size: int) -> Iterator[Array]:
    """Rows in order, so many at a time."""
    for start in range(0, rows.shape[0], size):
        yield rows[start : start + size]


def held_bytes(rows: Any) -> int:
    """Memory that rows take: none for those in a file."""
    if isinstance(rows, BlockedRows):
        return held_bytes(rows.rows)
    if isinstance(rows, FileRows):
        return 0
    if sparse.issparse(rows):
        return sum(int(getattr(rows, part).nbytes) for part in ("data", "indices", "indptr"))
    return int(rows.nbytes)
