"""Memory: how much is free, how much a fit may use, and errors when it runs out."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from typing import Any

#: The share of free memory that a fit uses unless max_memory sets a limit.
FREE_SHARE = 0.8

#: Address space that work takes in addition to its arrays (measured with OpenBLAS on Linux). Libraries
#: loaded on demand and compiled loops take 100 to 250 MB once; a thread takes 92 MB once for an arena
#: of the allocator and a buffer of BLAS, and 8 MB for its stack each time it is started.
_LIBRARY_SPACE, _THREAD_SPACE, _STACK_SPACE = 250 * 10**6, 100 * 10**6, 10 * 10**6

#: What this process has already reserved: "libraries".
_reserved: set[str] = set()

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def parse_bytes(value: int | float | str) -> int:
    """Return the bytes that a number or text such as ``"4GB"`` or ``"500 MiB"`` stands for.

    >>> parse_bytes("1.5GB")
    1500000000
    >>> parse_bytes("2MiB")
    2097152
    """
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+\.?\d*)\s*([KMGT]?)(i?)B?\s*", value, flags=re.IGNORECASE)
        if match:
            unit = match[2].upper()
            step = 2 ** (10 * " KMGT".index(unit or " ")) if match[3] else _UNITS[unit]
            return int(float(match[1]) * step)
    elif isinstance(value, Real) and not isinstance(value, bool) and 0 < value < float("inf"):
        return int(value)
    raise ValueError(f'max_memory must be a number of bytes, or text such as "4GB"; got {value!r}.')


def format_bytes(number: int) -> str:
    """Return bytes as people read them.

    >>> format_bytes(2_974_777_600)
    '2.97 GB'
    >>> format_bytes(999_600)
    '1 MB'
    """
    unit = next((u for u in ("T", "G", "M", "K") if number >= 0.9995 * _UNITS[u]), "")
    return f"{number / _UNITS[unit]:.3g} {unit.replace('K', 'k')}B"


class NoMemoryError(MemoryError):
    """Raised when memory runs out, or would; its text is a whole sentence."""


def available_bytes() -> int | None:
    """Return the memory that is free now, or what the process's own limit leaves; None if unknown."""
    free, space = _free_memory(), free_address_space()
    if space is None:
        return free
    space = max(0, space - working_space())
    return space if free is None else min(free, space)


def free_address_space() -> int | None:
    """Return what the process's limit on addresses (``ulimit -v``) leaves; None without a limit."""
    if sys.platform == "win32":
        return None
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None
    return max(0, limit - used)


def working_space() -> int:
    """Return the address space to leave for libraries and threads.

    BLAS ends the process, or never returns, if there is none for its buffers.
    """
    from aucmax.runtime.threads import thread_count  # with numpy, which takes long to import

    if "libraries" in _reserved:
        return _LIBRARY_SPACE // 4 + thread_count() * _STACK_SPACE
    return _LIBRARY_SPACE + thread_count() * _THREAD_SPACE


def check_address_space(what: str, needed: int) -> None:
    """Refuse work if the process's limit on addresses leaves too little for it."""
    space = free_address_space()
    if space is not None and space < needed:
        raise NoMemoryError(
            f"{what} needs about {format_bytes(needed)} of address space for libraries and threads, "
            f"and the limit of this process leaves {format_bytes(space)}. Raise the limit (ulimit -v)."
        )


def _take_libraries(what: str) -> None:
    """Load what a fit needs and start its threads before arrays take the address space."""
    from aucmax.runtime.threads import start_threads

    check_address_space(what, working_space())
    if "libraries" in _reserved:
        return
    try:
        importlib.import_module("numba")
        start_threads()
    except Exception as error:
        raise NoMemoryError(
            f"{what} could not load its libraries ({error}), and the limit of this process leaves "
            f"{format_bytes(free_address_space() or 0)} of address space. Raise the limit (ulimit -v)."
        ) from error
    _reserved.add("libraries")


@contextmanager
def guarded_memory(what: str, model: Any, X: Any) -> Iterator[None]:
    """Refuse work without room for its threads; if memory runs out, name the work in the error."""
    try:
        if free_address_space() is not None:
            _take_libraries(what)
        yield
    except NoMemoryError:
        raise
    except (MemoryError, RuntimeError, ImportError) as error:
        if not is_memory_error(error):
            raise
        raise NoMemoryError(_ran_out(what, model, X, error)) from error


def is_memory_error(error: BaseException) -> bool:
    """Return whether an error means that the system had no memory left."""
    if isinstance(error, RuntimeError):
        return "can't start new thread" in str(error)
    if isinstance(error, ImportError):
        return "failed to map" in str(error) or "allocate memory" in str(error)
    return isinstance(error, MemoryError)


def named_memory_error(error: BaseException) -> NoMemoryError:
    """Return the error of a command that ran out of memory as a sentence."""
    if isinstance(error, NoMemoryError):
        return error
    return NoMemoryError(_ran_out("The command", None, None, error))


def _ran_out(what: str, model: Any, X: Any, error: BaseException) -> str:
    shape: tuple[int, ...] = getattr(X, "shape", ())
    rows = f" of {shape[0]:,} rows x {shape[1]:,} columns" if len(shape) == 2 else ""
    advice = ["use fewer rows at a time"]
    if hasattr(model, "n_landmarks"):
        advice.insert(0, "use fewer landmarks (n_landmarks)")
    if hasattr(model, "max_memory"):
        free = available_bytes()
        below = f", below the {format_bytes(free)} that is free" if free else ""
        advice.insert(0, f"set max_memory to what it may use{below}")
    if free_address_space() is not None:
        advice.append("raise the process's limit (ulimit -v)")
    listed = ", ".join(advice[:-1]) + f" or {advice[-1]}" if advice[1:] else advice[0]
    return f"{what}{rows} ran out of memory: there was none for {_wanted(error)}. Try this: {listed}."


def _wanted(error: BaseException) -> str:
    """Return what could not be allocated, as far as the error names it."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is None or dtype is None:
        return "a new thread" if isinstance(error, RuntimeError) else "what was needed next"
    size = " x ".join(f"{each:,}" for each in shape)
    number = dtype.itemsize
    for each in shape:
        number *= int(each)
    return f"an array of {size} {dtype} ({format_bytes(number)})"


def _free_memory() -> int | None:
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


@dataclass(frozen=True)
class Budget:
    """The memory that a fit may use: ``max_memory``, or four fifths of what is free when it begins.

    Rows, landmarks, the solver's vectors and kernel values all count against it.

    >>> Budget.of("4GB").total
    4000000000
    """

    total: int
    set_by_user: bool

    @classmethod
    def of(cls, max_memory: int | str | None = None) -> Budget:
        """Return the budget for a value of ``max_memory``; None allows a share of the free memory."""
        if max_memory is not None:
            return cls(parse_bytes(max_memory), True)
        free = available_bytes()
        return cls(2**62 if free is None else int(FREE_SHARE * free), False)

    def require(self, what: str, needed: int, advice: str) -> None:
        """Refuse work, before it starts, that needs more memory than the budget."""
        if needed > self.total:
            free = "may be used of what is free"
            limit = "is the limit set by max_memory" if self.set_by_user else free
            raise NoMemoryError(
                f"{what} needs {format_bytes(needed)}, and {format_bytes(self.total)} {limit}. {advice}"
                f"{', or raise max_memory' if self.set_by_user else ''}."
            )
