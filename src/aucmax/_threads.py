"""Work over blocks of rows, one thread per core, each with a single-threaded BLAS."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from threading import local
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

#: Of a block: less, and calls for each take long; a core's share of the cache is about as large.
_BLOCK_BYTES = 2**22

T = TypeVar("T")


def over_blocks(
    work: Callable[[slice], None],
    n_rows: int,
    row_bytes: int,
    block_rows: int | None = None,
    group: int = 16,
) -> None:
    """Call ``work`` on consecutive slices of the rows, over threads. Slices do not overlap.

    Unless ``block_rows`` says how many rows they have, it is a multiple of ``group`` but for the last.
    """
    step = block_rows or cache_rows(row_bytes, group)
    blocks = [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
    workers = min(thread_count(), len(blocks))
    if workers <= 1:
        # Threads of BLAS's own would cut a block in places that depend on its size.
        with one_blas_thread():
            for block in blocks:
                work(block)
        return
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        try:
            # Each in a copy of the caller's context, which holds numpy's error state.
            contexts = [copy_context() for _ in blocks]
            list(pool.map(lambda context, rows: context.run(work, rows), contexts, blocks))
        except BaseException:
            pool.shutdown(cancel_futures=True)  # Ctrl-C: do not finish the queue first
            raise


def cache_rows(row_bytes: int, group: int = 16) -> int:
    """Rows of so many bytes that stay in cache together, a multiple of ``group``."""
    return max(1, _BLOCK_BYTES // max(1, row_bytes * group)) * group


def ahead(values: Iterable[T]) -> Iterator[T]:
    """The same values, each made by another thread while the one before is in use."""
    iterator, end = iter(values), object()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, iterator, end)
        while (value := coming.result()) is not end:
            coming = pool.submit(next, iterator, end)
            yield cast(T, value)


class Scratch(local):
    """An array for each thread, to be written over: new ones would cost more than what is put there.

    The system hands out large arrays page by page, each at its first use.
    """

    def __init__(self) -> None:
        self._bytes = np.empty(0, dtype=np.uint8)

    def __reduce__(self) -> tuple[type[Scratch], tuple[()]]:
        return type(self), ()  # what stands in it is not worth sending

    def array(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """With whatever stands in it; valid until the thread asks for the next."""
        needed = math.prod(shape) * np.dtype(dtype).itemsize
        if self._bytes.size < needed:
            self._bytes = np.empty(needed, dtype=np.uint8)
        out: npt.NDArray[Any] = self._bytes[:needed].view(dtype).reshape(shape)
        return out


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS libraries of this process; finding them takes milliseconds, so it is done once."""
    return ThreadpoolController()


def one_blas_thread() -> Any:
    """A context in which BLAS, and work over blocks, keep to the calling thread: it has company."""
    return _libraries().limit(limits=1, user_api="blas")


def thread_count() -> int:
    """Threads to spread over: the cores, or what BLAS has been limited to where that is less.

    joblib's worker processes, and code that runs its own threads, limit BLAS; following that keeps
    their number and ours from multiplying.
    """
    blas = [
        library.num_threads for library in _libraries().lib_controllers if library.user_api == "blas"
    ]
    return min([cpu_count(), *blas])


def cpu_count() -> int:
    """Cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every platform
        return os.cpu_count() or 1
