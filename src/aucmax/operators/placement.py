"""Where a fit keeps its kernel values, by the memory there is and by what a pass costs in each place.

=========== ======================================================== =================================
place       what is kept                                             a pass
=========== ======================================================== =================================
memory      the kernel block (n, v)                                  reads it
projected   the features (n, r), if the map keeps few of v           reads them
disk        the kernel block, in a temporary file                    reads the file
recomputed  nothing                                                  computes the values in cache
=========== ======================================================== =================================

Disk and recomputing are compared by measurement: a few thousand rows of the fit's own width, and a
small file. Memory for the solver's own vectors is set aside first.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.features.landmark_map import FeatureMap
from aucmax.operators.blocks import BlockOperator
from aucmax.operators.in_memory import FeatureOperator, KernelOperator
from aucmax.operators.interface import FLOPS_PER_BYTE, Operator
from aucmax.operators.speeds import SPEED_BYTES, disk_speed, memory_speed
from aucmax.rows.interface import Rows
from aucmax.rows.stored import FileRows, RowWriter
from aucmax.runtime.memory import Budget, format_bytes

Array = npt.NDArray[Any]

#: The number of passes a fit is expected to need, in which a place that is slow to fill has to pay.
EXPECTED_PASSES = 100

#: Bytes that the solver holds per row and problem: scores, directions, two or three points of the pair
#: loss with their order. (With 4 million rows: 193 for one problem, 145 for each of four.)
STATE_BYTES = 250


@dataclass(frozen=True)
class Sizes:
    """The sizes of a fit: rows, kernel values and features of a row, bytes of each value, problems.

    ``held`` are the bytes of rows, landmarks and anything else that is neither values nor solver.
    """

    n_rows: int
    width: int
    rank: int
    itemsize: int = 4
    n_problems: int = 1
    held: int = 0

    @property
    def values(self) -> int:
        """Bytes of all kernel values."""
        return self.n_rows * self.width * self.itemsize

    @property
    def features(self) -> int:
        """Bytes of all features."""
        return self.n_rows * self.rank * self.itemsize

    @property
    def held_values(self) -> dict[str, int]:
        """Bytes of what each place in memory keeps."""
        return {"memory": self.values, "projected": self.features}

    @property
    def least(self) -> int:
        """Bytes needed even if no kernel value is kept."""
        return self.held + solver_bytes(self.n_rows, self.rank, self.n_problems)

    def fitting(self, left: float, project: bool) -> list[str]:
        """Return the places in memory with room for kernel values, the better one first."""
        sizes = self.held_values
        wanted = "projected" if project or pays_to_project(self.width, self.rank) else "memory"
        names = sorted(sizes, key=lambda name: name != wanted)
        return [name for name in names if sizes[name] <= left]


@dataclass(frozen=True)
class Place:
    """A place for kernel values: the memory it takes, and an estimate of its seconds."""

    name: str
    memory: int
    setup: float = 0.0
    per_pass: float = 0.0

    def total(self, passes: int) -> float:
        """Return the estimated seconds of a whole fit."""
        return self.setup + passes * self.per_pass


@dataclass(frozen=True)
class Plan:
    """Where a fit will keep kernel values, and how long it will take.

    ``place`` is where kernel values are kept and ``rivals`` are the other places with room for them;
    ``room`` rows may be copied to memory in addition. ``passes`` are expected; ``tuning`` is the
    estimated time of trials before the fit, in seconds. At most ``machines`` are fitted one after the
    other; sizes are those of the largest.
    """

    sizes: Sizes
    budget: int
    place: Place
    rivals: tuple[Place, ...] = ()
    room: int = 0
    passes: int = EXPECTED_PASSES
    tuning: float = 0.0
    machines: int = 1

    @property
    def seconds(self) -> float:
        """The estimated time of the whole fit."""
        return self.tuning + self.machines * self.place.total(self.passes)

    @property
    def cost(self) -> float:
        """The time of a pass, relative to one over values in memory."""
        return self.place.per_pass * memory_speed() / self.sizes.values

    def __str__(self) -> str:
        where = {
            "memory": "are kept in memory",
            "projected": "are projected, and the features kept in memory",
            "disk": "are kept in a temporary file",
            "recomputed": "are computed again in every pass",
        }
        sizes, passes = self.sizes, self.place.total(self.passes)
        lines = [
            f"{sizes.n_rows:,} rows x {sizes.width:,} kernel values: {format_bytes(sizes.values)} "
            f"that {where[self.place.name]}; {format_bytes(sizes.least)} for rows and solver, "
            f"{format_bytes(self.budget)} may be used.",
            f"A pass takes about {_duration(self.place.per_pass)}, and setting up with {self.passes:,} "
            f"passes about {_duration(passes)}.",
        ]
        if self.machines > 1:
            lines.append(f"Up to {self.machines} machines are fitted and blended.")
        if self.tuning:
            lines.append(
                f"Tuning before that takes about {_duration(self.tuning)}; the whole fit about "
                f"{_duration(self.seconds)}."
            )
        lines += [f"({rival.name}: {_duration(rival.total(self.passes))}.)" for rival in self.rivals]
        return " ".join(lines)


def plan_fit(
    sizes: Sizes,
    budget: Budget,
    row_seconds: Callable[[], float],
    *,
    passes: int = EXPECTED_PASSES,
    project: bool = False,
    measure: bool = False,
) -> Plan:
    """Choose a place for kernel values among those with room.

    In memory the choice follows from the sizes alone, so that it is the same in every run; between disk
    and recomputing it is the one that takes less time by measurement.

    Parameters
    ----------
    sizes : Sizes
    budget : Budget
    row_seconds : callable
        Measures the time to compute the kernel values of one row; called if it decides.
    passes : int
        The number of passes expected.
    project : bool
        Whether features are wanted in memory wherever they fit.
    measure : bool
        Whether to measure even if memory holds everything, to show how long it will take.
    """
    left, names = budget.total - sizes.least, sizes.fitting(budget.total - sizes.least, project)

    def made(place: Place, *rivals: Place) -> Plan:
        # Half of what is left: a restriction and a sample may be held together.
        room = max(0, left - place.memory) // (2 * sizes.width * sizes.itemsize)
        return Plan(sizes, budget.total, place, rivals, room, passes)

    inside = sizes.held_values
    if names and not measure:
        return made(Place(names[0], inside[names[0]]))
    what = f"A fit on {sizes.n_rows:,} rows x {sizes.width:,} kernel values, even with none kept,"
    budget.require(what, sizes.least, "Use fewer landmarks or rows")
    read, make = memory_speed(), sizes.n_rows * row_seconds()
    multiply = 2.0 * sizes.values * sizes.rank / sizes.itemsize / (FLOPS_PER_BYTE * read)
    setup = {name: make + multiply * (name == "projected") for name in names}
    timed = [Place(name, inside[name], setup[name], inside[name] / read) for name in names]
    if timed:  # what is measured here is shown, and decides nothing
        return made(*timed)
    places, disk = [Place("recomputed", 0, 0.0, make)], disk_speed()
    if sizes.values <= 0.9 * disk.free:
        places.append(Place("disk", 0, make + sizes.values / disk.write, sizes.values / disk.read))
    return made(*sorted(places, key=lambda place: place.total(passes)))


def pays_to_project(width: int, rank: int, passes: float = EXPECTED_PASSES) -> bool:
    """Return whether multiplying ``E P`` out once is cheaper than folding P in every pass.

    Per row, the product costs ``2 v r`` flops; each later pass then reads ``r`` numbers in place of
    ``v`` and so saves ``4 (v - r)`` bytes. FLOPS_PER_BYTE converts one into the other.

    >>> pays_to_project(1600, 145)  # few eigenvalues survive: skin
    True
    >>> pays_to_project(1600, 1500)
    False
    """
    return 2.0 * width * rank < passes * 4.0 * (width - rank) * FLOPS_PER_BYTE


def solver_bytes(n_rows: int, rank: int, n_problems: int) -> int:
    """Return the bytes that a solve holds in addition to kernel values.

    These are its vectors, a chunk of sampled rows and its products while a preconditioner is built, and
    two matrices for each problem.
    """
    vectors = n_rows * STATE_BYTES * n_problems
    return vectors + 8 * min(n_rows, 4096) * rank + (24 + 16 * n_problems) * rank**2


def hold_operator(
    block: Any,
    feature_map: FeatureMap,
    place: str,
    raw: Array | None = None,
    room: int = 0,
    cost: float = 10.0,
) -> Operator:
    """Return rows under a map as a solver sees them, with kernel values in this process."""
    projection = feature_map.projection
    if place == "memory" and projection is not None:
        return KernelOperator(feature_map.kernel_block(block, raw), projection)
    if place != "recomputed":
        return FeatureOperator(feature_map.features(block, raw))
    return BlockOperator(
        block, feature_map.width, projection, feature_map.filler(block.dtype), room, cost
    )


@contextmanager
def open_operator(
    rows: Rows, feature_map: FeatureMap, plan: Plan, raw: Array | None = None
) -> Iterator[Operator]:
    """Open rows under a map with kernel values placed by the plan; a file is removed afterwards."""
    if plan.place.name != "disk":
        cost = plan.cost if plan.place.name == "recomputed" else 1.0
        yield hold_operator(rows, feature_map, plan.place.name, raw, plan.room, cost)
        return
    with _spilled(rows, feature_map.kernel_block, feature_map.width) as values:
        yield BlockOperator(
            values, feature_map.width, feature_map.projection, None, plan.room, plan.cost
        )


@contextmanager
def open_features(
    rows: Rows, feature_map: FeatureMap, budget: Budget, raw: Array | None = None
) -> Iterator[tuple[Array, str]]:
    """Open all features, for epochs in random order; yield them and their place, memory or disk."""
    size = rows.shape[0] * feature_map.rank * rows.dtype.itemsize
    if size <= budget.total - rows.nbytes:
        yield feature_map.features(rows, raw), "projected"
        return
    with _spilled(rows, feature_map.features, feature_map.width) as features:
        mapped = features.mapped()
        yield np.asarray(mapped), "disk"
        del mapped


@contextmanager
def _spilled(rows: Rows, make: Callable[[Any], Array], width: int) -> Iterator[FileRows]:
    """Write what ``make`` returns for each block of rows to a temporary file."""
    size = int(max(1, SPEED_BYTES // (width * rows.dtype.itemsize)))
    with tempfile.TemporaryDirectory(prefix="aucmax-") as folder:
        with RowWriter(Path(folder) / "values", rows.dtype) as writer:
            for _, block in rows.blocks(size):
                writer.write(make(block))
        yield writer.rows()


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.3g} min" if seconds >= 120 else f"{seconds:.2g} s"
