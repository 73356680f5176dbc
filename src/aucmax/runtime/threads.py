"""Work over blocks of rows, one thread per core, each with a single-threaded BLAS."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from functools import cache
from threading import Barrier, BrokenBarrierError, RLock, get_ident, local
from typing import Any, TypeVar, cast
from weakref import ref

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

#: Bytes of a block: about a core's share of the cache. With less, the calls themselves take long.
_BLOCK_BYTES = 2**22

T = TypeVar("T")
Work = Callable[[slice], None]


def over_blocks(
    work: Work, n_rows: int, row_bytes: int, block_rows: int | None = None, group: int = 16
) -> None:
    """Call ``work`` on consecutive slices of the rows, over threads.

    All but the last have ``block_rows`` rows, or as many as fit into cache (a multiple of ``group``).
    """
    step = block_rows or cache_rows(row_bytes, group)
    blocks = [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
    workers = min(thread_count(), len(blocks))

    def alone(rows: slice) -> None:
        with one_blas_thread():
            work(rows)

    with one_blas_thread():  # threads of BLAS would split a block at points that depend on its size
        if workers <= 1:
            for block in blocks:
                work(block)
            return
        with ThreadPoolExecutor(workers) as pool:
            try:
                # Each in a copy of the caller's context, which holds numpy's error state.
                contexts = [copy_context() for _ in blocks]
                list(pool.map(lambda context, rows: context.run(alone, rows), contexts, blocks))
            except BaseException:
                pool.shutdown(cancel_futures=True)  # Ctrl-C: do not finish the queue first
                raise


def cache_rows(row_bytes: int, group: int = 16) -> int:
    """Return how many rows of this size fit into cache together, a multiple of ``group``."""
    return max(1, _BLOCK_BYTES // max(1, row_bytes * group)) * group


def ahead(values: Iterable[T]) -> Iterator[T]:
    """Yield the same values, each made by another thread while the one before is in use."""
    iterator, end = iter(values), object()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, iterator, end)
        while (value := coming.result()) is not end:
            coming = pool.submit(next, iterator, end)
            yield cast(T, value)


class Scratch(local):
    """An array for each thread to write over, as the pages of a new one cost more than filling it."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, dtype=np.uint8)

    def __reduce__(self) -> tuple[type[Scratch], tuple[()]]:
        return type(self), ()  # the contents are not worth sending

    def array(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return an array with any contents, valid until the thread asks for the next."""
        needed = math.prod(shape) * np.dtype(dtype).itemsize
        if self._bytes.size < needed:
            self._bytes = np.empty(needed, dtype=np.uint8)
        out: npt.NDArray[Any] = self._bytes[:needed].view(dtype).reshape(shape)
        return out


def start_threads() -> None:
    """Call BLAS from all worker threads at once, so that each has its buffer."""
    count, block = thread_count(), np.ones((256, 256))
    meeting = Barrier(count)

    def multiply(_: slice) -> None:
        with suppress(BrokenBarrierError):
            meeting.wait(1.0)
        block @ block

    over_blocks(multiply, count, 1, block_rows=1)
    block @ block  # by BLAS's own threads
    from scipy.linalg.blas import dgemm

    dgemm(1.0, block, block)  # SciPy has a BLAS of its own


@cache  # finding the libraries takes milliseconds
def _blas() -> list[Any]:
    return [each for each in ThreadpoolController().lib_controllers if each.user_api == "blas"]


def _limits(own: bool) -> list[tuple[Any, int]]:
    """Return BLAS libraries and their limits: those with one per thread (OpenMP's), or one for all."""
    layers = [(library, getattr(library, "threading_layer", "")) for library in _blas()]
    return [(library, library.num_threads) for library, layer in layers if (layer == "openmp") == own]


def _limit(library: Any, number: int) -> None:
    """Set the limit of a library, from any thread that holds the lock of the guards."""
    # threadpoolctl would let only one thread set a limit for all.
    free = getattr(library, "clear_controlling_thread", lambda force: None)
    free(force=True)
    library.set_num_threads(number)
    free(force=True)


class _Shared:
    """The guards that are in force in this process, and the limits of BLAS before the first.

    Most BLAS libraries have one limit for the whole process, so guards of all threads share it: the
    first to enter stores what it finds, the last to leave restores it. Every step may be interrupted
    and repeated: ``found`` is stored before a limit is set, and dropped after all are restored.
    """

    def __init__(self) -> None:
        self.lock = RLock()  # garbage collection may end a guard while this thread holds the lock
        self.holders: dict[int, int] = {}  # the thread of each guard, by the guard's id
        self.found: list[tuple[Any, int]] | None = None

    def enter(self, guard: int) -> None:
        with self.lock:
            self.holders[guard] = get_ident()
            if self.found is None:
                self.found = _limits(own=False)
                for library, _ in self.found:
                    _limit(library, 1)

    def leave(self, guard: int) -> None:
        with self.lock:
            self.holders.pop(guard, None)
            self.restore()

    def restore(self) -> None:
        if self.found is not None and not self.holders:
            for library, number in self.found:
                _limit(library, number)
            self.found = None

    def after_fork(self) -> None:
        """Drop the guards of threads that a child process lacks: all but the one that forked."""
        self.lock = RLock()
        self.holders = {key: ident for key, ident in self.holders.items() if ident == get_ident()}
        self.restore()


_shared = _Shared()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shared.after_fork)

#: The innermost guard around this thread's work, or around the work that started it.
_around: ContextVar[ref[one_blas_thread] | None] = ContextVar("_around", default=None)


class one_blas_thread:  # noqa: N801  (used as a function)
    """A context in which BLAS, and work over blocks, use only the calling thread, one of several.

    A thread started inside enters a context of its own if it is to use one thread only. CPython may
    raise KeyboardInterrupt before the first line of ``__exit__``; BLAS is then restored when the
    exception, and with it the last reference to the guard, is gone.
    """

    active = False

    def __init__(self) -> None:
        self._outer = _around.get()
        self._own = _limits(own=True)

    def __enter__(self) -> None:
        try:
            self.active = True
            _around.set(ref(self))
            _shared.enter(id(self))
            for library, _ in self._own:
                library.set_num_threads(1)
        except BaseException:
            self._leave()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            self._leave()
        except BaseException:
            self._leave()  # Ctrl-C while leaving
            raise

    def __del__(self) -> None:
        if self.active:
            _shared.leave(id(self))

    def _leave(self) -> None:
        _around.set(self._outer)
        for library, number in self._own:
            library.set_num_threads(number)
        _shared.leave(id(self))
        self.active = False


def side_by_side(work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Do some work for each item, in threads if there are several.

    BLAS has one thread: in small work, its threads wait for each other most of the time, and all the
    more where other programs run. Overflow is for the work to check.
    """

    def alone(item: Any) -> Any:
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            return work(item)

    if len(items) == 1:
        return [alone(items[0])]
    with one_blas_thread(), ThreadPoolExecutor(cpu_count()) as pool:
        return list(pool.map(alone, items))


def thread_count() -> int:
    """Return how many threads to spread work over: the cores, or fewer where BLAS is limited to fewer.

    joblib's worker processes, and code that runs its own threads, limit BLAS; following that keeps
    their number and ours from multiplying. Inside :class:`one_blas_thread` it is 1; a guard of another
    thread does not count.
    """
    around = _around.get()
    guard = None if around is None else around()
    if guard is not None and guard.active:
        return 1
    with _shared.lock:
        limits = _limits(own=True) + (_shared.found or _limits(own=False))
    return min([cpu_count(), *(number for _, number in limits)])


def cpu_count() -> int:
    """Return the number of cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every platform
        return os.cpu_count() or 1
