"""Values that users hand in by mistake or of necessity: what each is, and what must come of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Maker = Callable[[np.random.Generator, np.ndarray], "Hostile"]


@dataclass(frozen=True)
class Hostile:
    """A value in place of a plain array, and what is promised of it."""

    what: str
    value: Any
    twin: np.ndarray | None = None
    """A plain array that must give the same scores, if this value gives any."""
    tolerance: float = 1e-6
    """By how much scores may differ from those of the twin, relative to their spread."""
    must: str = "either"
    """ "scored", "refused" or "either"."""
    ranks_like: np.ndarray | None = None
    """A plain array whose ranking must not be lost without a warning."""


def pick(makers: dict[str, Maker], rng: np.random.Generator, plain: np.ndarray) -> Hostile:
    """One of the makers at random, applied to a copy of the plain array."""
    name = list(makers)[int(rng.integers(len(makers)))]
    return makers[name](rng, plain.copy())


_folders: list[tempfile.TemporaryDirectory[str]] = []


def scratch_file(name: str) -> Path:
    """A new path in a folder that lives as long as the next few: memmaps must outlive their case."""
    _folders.append(tempfile.TemporaryDirectory(prefix="reliability-", ignore_cleanup_errors=True))
    if len(_folders) > 4:
        _folders.pop(0).cleanup()
    return Path(_folders[-1].name) / name


def masked(values: np.ndarray, hidden: bool) -> np.ma.MaskedArray[Any, Any]:
    """A masked array, with its first entry hidden or none."""
    mask = np.zeros(values.shape, dtype=bool)
    mask.flat[0] = hidden
    return np.ma.MaskedArray(values, mask)


def unaligned(values: np.ndarray) -> np.ndarray:
    """The same values at an odd address."""
    buffer = np.empty(values.nbytes + 1, dtype=np.uint8)
    out = buffer[1:].view(values.dtype).reshape(values.shape)
    out[...] = values
    return out


def read_only(values: np.ndarray) -> np.ndarray:
    values.flags.writeable = False
    return values


def backwards(values: np.ndarray) -> np.ndarray:
    """The same values with negative strides."""
    return values[::-1].copy()[::-1]


def spread_out(values: np.ndarray) -> np.ndarray:
    """The same values as every second entry of a larger array."""
    return np.repeat(values, 2, axis=0)[::2]


def mapped(values: np.ndarray, mode: str) -> np.memmap[Any, Any]:
    """The same values in a file, mapped."""
    path = scratch_file("mapped.npy")
    np.save(path, values)
    return np.load(path, mmap_mode=mode)  # type: ignore[no-any-return, arg-type]


def mapped_and_changed(values: np.ndarray) -> np.memmap[Any, Any]:
    """A mapping that holds the values in memory, over a file that holds zeros."""
    out = mapped(np.zeros_like(values), "c")
    out[...] = values
    return out


def mapped_and_replaced(values: np.ndarray) -> np.memmap[Any, Any]:
    """A mapping whose file has been replaced by one of other values."""
    out = mapped(values, "r")
    path = Path(str(out.filename))
    np.save(path.with_name("other.npy"), np.zeros_like(values))
    path.with_name("other.npy").replace(path)
    return out


def mapped_after_header(values: np.ndarray) -> np.memmap[Any, Any]:
    """Raw values behind 128 bytes of something else, by columns."""
    path = scratch_file("raw.bin")
    path.write_bytes(b"\xff" * 128 + np.asfortranarray(values).tobytes(order="F"))
    return np.memmap(path, dtype=values.dtype, mode="r", offset=128, shape=values.shape, order="F")


class ArrayLike:
    """Nothing but a method that gives an array."""

    def __init__(self, values: np.ndarray) -> None:
        self._values = values
        self.shape = values.shape

    def __len__(self) -> int:
        return len(self._values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._values, dtype=dtype)
