"""How fast this machine computes kernel values, reads memory and reads its disk, by measurement."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.features.projection import Projection
from aucmax.operators.in_memory import KernelOperator
from aucmax.rows.interface import Fill, fill_matrix

#: Rows and bytes that speeds are measured on.
SPEED_ROWS = 4096
SPEED_BYTES = 2**26


def row_seconds(fill: Fill, block: npt.NDArray[Any], width: int) -> float:
    """Return the seconds that kernel values of one row take, over all threads."""
    return _fastest(lambda: fill_matrix(fill, block, width, block.dtype)) / int(block.shape[0])


@cache
def memory_speed() -> float:
    """Return the bytes per second that products with values in memory read."""
    block = np.zeros((SPEED_BYTES // 4096, 1024), dtype=np.float32)
    block[:] = 1.0  # pages that were never written to are all one
    operator, coef = KernelOperator(block, Projection([np.eye(1024, 1)])), np.ones((1, 1))
    return block.nbytes / _fastest(lambda: operator.scores(coef))


@dataclass(frozen=True)
class DiskSpeed:
    """The disk of the folder for temporary files: bytes per second, and bytes free."""

    write: float
    read: float
    free: int


@cache
def disk_speed() -> DiskSpeed:
    """Measure a small file, which the system is asked to drop from its cache before it is read."""
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    block = np.ones(min(SPEED_BYTES, free // 4) // 4, dtype=np.float32)
    with tempfile.TemporaryDirectory(prefix="aucmax-") as inside:
        path = Path(inside) / "trial"
        began = time.perf_counter()
        with path.open("wb") as file:
            block.tofile(file)
            file.flush()
            os.fsync(file.fileno())
            written = time.perf_counter() - began
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        began = time.perf_counter()
        np.fromfile(path, np.float32)
        read = time.perf_counter() - began
    return DiskSpeed(block.nbytes / written, block.nbytes / read, free)


def _fastest(work: Callable[[], object], times: int = 3) -> float:
    """Return the seconds of the fastest run, which nothing else disturbed."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return max(min(taken), 1e-9)
