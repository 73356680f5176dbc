"""Where a fit keeps its kernel values, by the memory there is and by what a pass costs in each place.

=========== ======================================================== =================================
place       what is kept                                             a pass
=========== ======================================================== =================================
memory      the kernel block (n, v)                                  reads it
projected   the features (n, r), where the map keeps few of v        reads them
disk        the kernel block, in a temporary file                    reads the file
recomputed  nothing                                                  makes the values anew, in cache
=========== ======================================================== =================================

What a row costs is measured when disk and recomputing are to be compared: a few thousand rows of the
fit's own width, and a small file. Memory for the solver's own vectors is set aside first.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from aucmax.features.projection import Projection
from aucmax.operators import (
    FLOPS_PER_BYTE,
    BlockOperator,
    FeatureOperator,
    KernelOperator,
    Operator,
)
from aucmax.rows.blocked import FileRows, RowWriter, blocks_of
from aucmax.runtime.memory import NoMemoryError, available_bytes, format_bytes, parse_bytes
from aucmax.runtime.threads import over_blocks

Array = npt.NDArray[Any]

#: Passes that a fit is expected to need: what a place that is dear to fill has to earn itself back in.
EXPECTED_PASSES = 100

#: Bytes a row that the solver holds beside, for each column: scores, directions, two or three points of
#: the pair loss with their order. (Of 4 million rows it took 193 for one column, 145 for each of four.)
STATE_BYTES = 250

#: Of free memory, what a fit takes if it is not told.
SAFE_SHARE = 0.8

#: Rows and bytes that speeds are measured on.
TRIAL_ROWS = 4096
_TRIAL_BYTES = 2**26


class FeatureMap(Protocol):
    """A fitted map into features, as far as a plan needs it."""

    @property
    def width(self) -> int: ...

    @property
    def projection(self) -> Projection | None: ...

    def kernel_block(self, X: Any, raw: Array | None = None) -> Array: ...

    def features(self, X: Any, raw: Array | None = None) -> Array: ...

    def filler(self, dtype: npt.DTypeLike) -> Callable[[Any, Array], Array]: ...


@dataclass(frozen=True)
class Place:
    """A place for kernel values: the bytes it takes, and by estimate its seconds."""

    name: str
    memory: int
    disk: int = 0
    setup: float = 0.0
    per_pass: float = 0.0

    def total(self, passes: int) -> float:
        return self.setup + passes * self.per_pass


@dataclass(frozen=True)
class Plan:
    """What a fit is going to do.

    ``place`` is where kernel values are kept, ``rivals`` the other places with room for them; ``room``
    is how many rows of them may be copied to memory beside, ``held`` the bytes of all else, ``passes``
    how many are expected, ``tuning`` the seconds of trials before the fit.
    """

    n_rows: int
    n_landmarks: int
    budget: int
    held: int
    place: Place
    rivals: tuple[Place, ...]
    room: int
    itemsize: int
    passes: int
    tuning: float = 0.0

    @property
    def seconds(self) -> float:
        """Of the whole fit, by estimate."""
        return self.tuning + self.place.total(self.passes)

    @property
    def cost(self) -> float:
        """Of a pass, by that of one over values in memory."""
        return self.place.per_pass * memory_speed() / self._values

    @property
    def _values(self) -> int:
        return self.n_rows * self.n_landmarks * self.itemsize

    def __str__(self) -> str:
        kept = {
            "memory": "are kept in memory",
            "projected": "are projected, and the features kept in memory",
            "disk": "are kept in a temporary file",
            "recomputed": "are made anew in every pass",
        }
        lines = [
            f"{self.n_rows:,} rows x {self.n_landmarks:,} kernel values: {format_bytes(self._values)} "
            f"that {kept[self.place.name]}; {format_bytes(self.held)} for rows and solver, "
            f"{format_bytes(self.budget)} may be used.",
            f"A pass takes about {_seconds(self.place.per_pass)}, and {self.passes:,} of them with "
            f"what goes before {_seconds(self.place.total(self.passes))}.",
        ]
        if self.tuning:
            lines.append(
                f"Tuning before that takes about {_seconds(self.tuning)}; in all it is about "
                f"{_seconds(self.seconds)}."
            )
        for rival in self.rivals:
            lines.append(f"({rival.name}: {_seconds(rival.total(self.passes))}.)")
        return " ".join(lines)


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
    project: bool = False,
    measure: bool = False,
    passes: int = EXPECTED_PASSES,
) -> Plan:
    """Choose a place among those with room.

    In memory the choice follows from the sizes alone, so that it is the same in every run; between
    disk and recomputing it is the one whose passes take least, by measurement.

    Parameters
    ----------
    n_rows, n_landmarks : int
    row_seconds : callable
        Gives the time that the kernel values of one row take to make; asked if it decides.
    rank : int, optional
        Features that the map keeps; as many as landmarks if it is not known yet.
    itemsize, n_columns : int
        Bytes of a kernel value; columns solved together.
    held : int
        Bytes of the rows themselves, landmarks and so on.
    max_memory : int, str or None
    project : bool
        Whether features are wanted in memory wherever they fit.
    measure : bool
        Whether to measure even where memory holds everything: to show how long it will take.
    passes : int
        How many are expected.
    """
    rank = n_landmarks if rank is None else rank
    budget = budget_bytes(max_memory)
    held += solver_bytes(n_rows, rank, n_columns)
    left = budget - held
    values, features = n_rows * n_landmarks * itemsize, n_rows * rank * itemsize
    inside = [Place(name, size) for name, size in (("memory", values), ("projected", features))]
    fitting = [place for place in inside if place.memory <= left]

    def made(place: Place, rivals: tuple[Place, ...]) -> Plan:
        # Half of what is left: a restriction and a sample may be held together.
        room = max(0, left - place.memory) // (2 * n_landmarks * itemsize)
        return Plan(n_rows, n_landmarks, budget, held, place, rivals, room, itemsize, passes)

    wanted = "projected" if project or pays_to_project(n_landmarks, rank) else "memory"
    fitting.sort(key=lambda place: place.name != wanted)
    if fitting and not measure:
        return made(fitting[0], ())
    if left < 0:
        raise NoMemoryError(
            f"A fit on {n_rows:,} rows x {n_landmarks:,} kernel values needs {format_bytes(held)} even "
            f"if none is kept, and {format_bytes(budget)} "
            f"{'is free' if max_memory is None else 'is the limit set by max_memory'}. Use fewer "
            f"landmarks or rows{'.' if max_memory is None else ', or raise max_memory.'}"
        )
    read, make = memory_speed(), n_rows * row_seconds()
    multiply = 2.0 * values * rank / itemsize / (FLOPS_PER_BYTE * read)
    timed = {
        "memory": Place("memory", values, 0, make, values / read),
        "projected": Place("projected", features, 0, make + multiply, features / read),
    }
    if fitting:  # what is measured here is shown, and decides nothing
        return made(timed[fitting[0].name], tuple(timed[place.name] for place in fitting[1:]))
    places = [Place("recomputed", 0, 0, 0.0, make)]
    disk = disk_speed()
    if values <= 0.9 * disk.free:
        places.append(Place("disk", 0, values, make + values / disk.write, values / disk.read))
    place = min(places, key=lambda place: place.total(passes))
    return made(place, tuple(other for other in places if other is not place))


def pays_to_project(n_landmarks: int, rank: int, passes: float = EXPECTED_PASSES) -> bool:
    """Whether multiplying ``E P`` out once is cheaper than folding it in every pass.

    Per row, the product costs ``2 v r`` flops; each later pass then reads ``r`` numbers in place of
    ``v`` and so saves ``4 (v - r)`` bytes. Both are brought to one unit by FLOPS_PER_BYTE.

    >>> pays_to_project(1600, 145)  # few eigenvalues survive: skin
    True
    >>> pays_to_project(1600, 1500)
    False
    """
    return 2.0 * n_landmarks * rank < passes * 4.0 * (n_landmarks - rank) * FLOPS_PER_BYTE


@contextmanager
def open_operator(
    X: Any, feature_map: FeatureMap, plan: Plan, raw: Array | None = None
) -> Iterator[Operator]:
    """Rows under a map, with kernel values kept as planned; what is on disk is gone afterwards."""
    place, projection, width = plan.place.name, feature_map.projection, feature_map.width
    if place == "memory" and projection is not None:
        yield KernelOperator(feature_map.kernel_block(X, raw), projection)
    elif place in ("memory", "projected"):
        yield FeatureOperator(feature_map.features(X, raw))
    elif place == "recomputed":
        fill = feature_map.filler(X.dtype)
        yield BlockOperator(X, width, projection, fill, plan.room, plan.cost)
    else:
        with tempfile.TemporaryDirectory(prefix="aucmax-") as folder:
            values = _spilled(X, feature_map, Path(folder) / "kernel")
            yield BlockOperator(values, width, projection, None, plan.room, plan.cost)


@contextmanager
def spilled_features(X: Any, feature_map: FeatureMap) -> Iterator[Array]:
    """Features in a mapped temporary file."""
    with tempfile.TemporaryDirectory(prefix="aucmax-") as folder:
        with RowWriter(Path(folder) / "features", X.dtype) as writer:
            for block in blocks_of(X, _rows_at_once(feature_map, X)):
                writer.write(feature_map.features(block))
        mapped = writer.rows().mapped()
        yield np.asarray(mapped)
        del mapped


def _spilled(X: Any, feature_map: FeatureMap, path: Path) -> FileRows:
    with RowWriter(path, X.dtype) as writer:
        for block in blocks_of(X, _rows_at_once(feature_map, X)):
            writer.write(feature_map.kernel_block(block))
    return writer.rows()


def _rows_at_once(feature_map: FeatureMap, X: Any) -> int:
    return int(max(1, _TRIAL_BYTES // (feature_map.width * X.dtype.itemsize)))


def solver_bytes(n_rows: int, rank: int, n_columns: int) -> int:
    """What a solve holds beside kernel values.

    Its vectors; a chunk of sampled rows and its products while a preconditioner is made, and two
    matrices for each column.
    """
    vectors = n_rows * STATE_BYTES * n_columns
    return vectors + 8 * min(n_rows, 4096) * rank + (24 + 16 * n_columns) * rank**2


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
    operator, coef = KernelOperator(block, Projection([np.eye(1024, 1)])), np.ones((1, 1))
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


def _seconds(number: float) -> str:
    return f"{number / 60:.3g} min" if number >= 120 else f"{number:.2g} s"


def _fastest(work: Callable[[], object], times: int = 3) -> float:
    """Seconds of the fastest run: what the work takes where nothing else disturbs it."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return max(min(taken), 1e-9)
