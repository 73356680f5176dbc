"""Where a fit keeps its kernel values, by the memory there is and by what a pass costs in each place.

=========== ======================================================== =================================
place       what is kept                                             a pass
=========== ======================================================== =================================
memory      the kernel block (n, v)                                  reads it
projected   the features (n, r), where the map keeps few of v        reads them
disk        the kernel block, in a temporary file                    reads the file
recomputed  nothing                                                  makes the values anew, in cache
=========== ======================================================== =================================

What a row costs is measured when a choice is to be made: a few thousand rows of the fit's own width,
and a small file. Memory for the solver's own vectors is set aside first.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax._memory import available_bytes, format_bytes, parse_bytes
from aucmax._threads import over_blocks
from aucmax.operators import FLOPS_PER_BYTE, KernelOperator
from aucmax.pairs import Floats

Array = npt.NDArray[Any]

#: Passes that a fit is expected to need: what a place that is dear to fill has to earn itself back in.
EXPECTED_PASSES = 100

#: Bytes a row that the solver holds beside, for each column: scores, directions, two or three points of
#: the pair loss with their order (measured: ``python -m benchmarks memory``).
STATE_BYTES = 250

#: Of free memory, what a fit takes if it is not told.
SAFE_SHARE = 0.8

#: Rows and bytes that speeds are measured on.
_TRIAL_ROWS = 4096
_TRIAL_BYTES = 2**26


@dataclass(frozen=True)
class Place:
    """A place for kernel values: what it takes, and what a pass costs there (seconds)."""

    name: str
    memory: int
    disk: int
    setup: float
    per_pass: float

    @property
    def total(self) -> float:
        return self.setup + EXPECTED_PASSES * self.per_pass


@dataclass(frozen=True)
class Plan:
    """What a fit is going to do.

    ``place`` is where kernel values are kept, ``room`` the rows of them that may be copied beside,
    ``places`` all that were weighed, ``budget`` the bytes that may be used.
    """

    n_rows: int
    n_landmarks: int
    budget: int
    state: int
    place: Place
    places: tuple[Place, ...]
    room: int

    def __str__(self) -> str:
        values = self.places[0].memory
        kept = {
            "memory": "kept in memory",
            "projected": "projected, and the features kept in memory",
            "disk": f"kept on disk ({format_bytes(self.place.disk)})",
            "recomputed": "made anew in every pass",
        }[self.place.name]
        seconds = self.place.total
        return (
            f"{self.n_rows:,} rows x {self.n_landmarks:,} landmarks: kernel values take "
            f"{format_bytes(values)}, {format_bytes(self.budget)} may be used. They are {kept}: "
            f"{format_bytes(self.place.memory)}, and {format_bytes(self.state)} for the solver. "
            f"A pass takes about {self.place.per_pass:.2g} s; {EXPECTED_PASSES} passes, which is usual, "
            f"about {seconds:.0f} s."
        )


def budget_bytes(max_memory: int | str | None) -> int:
    """Bytes that may be used: those told, or a safe share of what is free."""
    if max_memory is not None:
        return parse_bytes(max_memory)
    free = available_bytes()
    return 2**62 if free is None else int(SAFE_SHARE * free)


def plan_fit(
    n_rows: int,
    n_landmarks: int,
    row_seconds: Callable[[], float],
    *,
    rank: int | None = None,
    itemsize: int = 4,
    n_columns: int = 1,
    held: int = 0,
    max_memory: int | str | None = None,
    can_spill: bool = True,
) -> Plan:
    """Choose the place whose ``EXPECTED_PASSES`` passes take least, among those with room.

    Parameters
    ----------
    n_rows, n_landmarks : int
    row_seconds : callable
        Gives the time that the kernel values of one row take to make.
    rank : int, optional
        Features that the map keeps; as many as landmarks if it is not known yet.
    itemsize, n_columns : int
        Bytes of a kernel value; columns solved together.
    held : int
        Bytes that the rows themselves, landmarks and so on take.
    max_memory : int, str or None
    can_spill : bool
        False where values on disk are of no use.
    """
    rank = n_landmarks if rank is None else rank
    budget = budget_bytes(max_memory)
    state = n_rows * STATE_BYTES * n_columns + preconditioner_bytes(rank, n_columns)
    values = n_rows * n_landmarks * itemsize
    features = n_rows * rank * itemsize
    read = memory_speed()
    make = n_rows * row_seconds()
    project = 2.0 * n_rows * n_landmarks * rank / (FLOPS_PER_BYTE * read)
    places = [
        Place("memory", values, 0, make, values / read),
        Place("projected", features, 0, make + project, features / read),
        Place("recomputed", 0, 0, 0.0, make),
    ]
    left = budget - state - held
    if can_spill and min(values, features) > left:
        disk = disk_speed()
        if values <= 0.9 * disk.free:
            setup = make + values / disk.write
            # What memory is left over holds part of the file.
            places.append(Place("disk", 0, values, setup, values / disk.read))
    fitting = [place for place in places if place.memory <= left]
    if left < 0 or not fitting:
        raise MemoryError(
            f"A fit on {n_rows:,} rows x {n_landmarks:,} landmarks needs {format_bytes(state + held)} "
            f"even if no kernel value is kept, and {format_bytes(budget)} "
            f"{'is free' if max_memory is None else 'is the limit set by max_memory'}. Use fewer "
            f"landmarks or rows{'.' if max_memory is None else ', or raise max_memory.'}"
        )
    place = min(fitting, key=lambda place: place.total)
    room = (left - place.memory) // (2 * n_landmarks * itemsize)
    return Plan(n_rows, n_landmarks, budget, state + held, place, tuple(places), int(max(0, room)))


def preconditioner_bytes(rank: int, n_columns: int) -> int:
    """Sampled rows while a preconditioner is made, and the matrices kept of it for each column."""
    return 20 * rank * min(rank, 4096) * 4 // 5 + 24 * rank**2 * n_columns


def rate_of_rows(fill: Callable[[Array, Array], Array], rows: Array, width: int) -> float:
    """Seconds that kernel values of one row take, over all threads."""
    out = np.empty((len(rows), width), dtype=rows.dtype)

    def work(part: slice) -> None:
        fill(rows[part], out[part])

    def once() -> None:
        over_blocks(work, len(rows), (width + rows.shape[1]) * rows.itemsize)

    return _fastest(once) / len(rows)


@cache
def memory_speed() -> float:
    """Bytes a second that products with values in memory read."""
    block = np.zeros((_TRIAL_BYTES // 4096, 1024), dtype=np.float32)
    block[:] = 1.0  # pages that were never written to are all one
    operator, coef = KernelOperator(block, np.eye(1024, 1)), np.ones((1, 1))
    return block.nbytes / _fastest(lambda: operator.scores(coef))


@dataclass(frozen=True)
class DiskSpeed:
    """Of the folder for temporary files: bytes a second, and bytes free."""

    write: float
    read: float
    free: int


@cache
def disk_speed() -> DiskSpeed:
    """Measured on a small file that the system is told to forget before it is read back."""
    import shutil

    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    block = np.ones(min(_TRIAL_BYTES, free // 4) // 4, dtype=np.float32)
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
    """Seconds of the fastest run: what the work takes where nothing else disturbs it."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return max(min(taken), 1e-9)
