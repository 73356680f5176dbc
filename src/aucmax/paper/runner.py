"""Run cells one after another and store their rows.

Each cell has a process of its own, so that its peak memory is its own and a time limit can stop it.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from aucmax.paper.data import Dataset
from aucmax.paper.protocol import CAP, Cell, Settings, paper_rows, run_cell
from aucmax.paper.published import SCOPES, SMALL_DATASETS
from aucmax.paper.store import Row, Store, needs_timing, timed_again

#: The longest folder path, in bytes, that leaves room for a socket's name: macOS allows 104 for both.
_LONGEST_FOLDER = 70
#: Seconds between two looks at a running cell.
_TICK = 0.5
#: Seeds for small and for large data sets.
_SEEDS_SMALL, _SEEDS_LARGE = 5, 3
#: Rough milliseconds per row, by method, used until cells have been timed.
_COSTS = {
    "": 0.005, "Linear RankSVM": 0.1, "RFAUC": 2.5, "NBAUC": 1.0, "NSAUC": 0.5, "NSVMSGD2": 0.4,
    "NOAM": 1.5, "NSOLAM": 5.0, "RBF-RankSVM (subsample)": 4.0, "RBF-RankSVM": 20.0,
}  # fmt: skip
_CURVE_COST = 2.0


@dataclass
class Progress:
    """The cells of a run, and which of them are done, running and left."""

    cells: list[Cell]
    settings: Settings
    store: Store
    time_limit: float
    running: Cell | None = None
    since: float = 0.0
    failed: list[Cell] = field(default_factory=list)  #: in this run; the next run tries them again

    def row(self, cell: Cell) -> Row | None:
        return self.store.get(cell.key(self.settings))

    def waiting(self) -> list[Cell]:
        """Return the cells to run: those without a result, then those to be timed again.

        Cells of a kind that exceeded the time limit before are left out.
        """
        rows = {cell: self.row(cell) or {"status": "", "time_limit": 0.0} for cell in self.cells}
        stopped = {cell for cell, row in rows.items() if row["status"] == "stopped"}
        too_long = {_kind(cell) for cell in stopped if rows[cell]["time_limit"] >= self.time_limit}
        left = [cell for cell in rows if rows[cell]["status"] != "done" and cell not in self.failed]
        disturbed = [cell for cell, row in rows.items() if _done(row) and needs_timing(row)]
        again = [] if self.settings.quick else disturbed
        return [cell for cell in left if _kind(cell) not in too_long] + again

    def seconds_left(self) -> float:
        """Estimate the time left from cells of the same kind, or from rough costs scaled to others."""
        ended = [(cell, row) for cell in self.cells if (row := self.row(cell)) and "seconds" in row]
        taken = {_kind(cell): float(row["seconds"]) for cell, row in ended}
        guessed = sum(_guess(cell, self.settings) for cell, _ in ended)
        pace = sum(float(row["seconds"]) for _, row in ended) / guessed if guessed else 1.0
        left = 0.0
        for cell in self.waiting():
            expected = taken.get(_kind(cell), pace * _guess(cell, self.settings))
            already = time.monotonic() - self.since if cell == self.running else 0.0
            left += max(min(expected, self.time_limit) - already, 0.0)
        return left


def _kind(cell: Cell) -> Cell:
    return replace(cell, seed=0, substitute=False)


def _guess(cell: Cell, settings: Settings) -> float:
    most = settings.cap if cell.rows == "cap" else settings.all_rows or 10**9
    cost = _CURVE_COST if cell.curve else _COSTS.get(cell.method, 1.0)
    return 1.0 + cost * 1e-3 * min(paper_rows(cell.data) or most, most)


def plan(
    experiments: Iterable[str],
    data: Iterable[str],
    methods: Iterable[str] | None = None,
    seeds: int | None = None,
    substitutes: Collection[str] = (),
) -> list[Cell]:
    """Return the cells of the experiments, each once, by seed, so that all tables fill evenly."""
    wanted = None if methods is None else {"", *methods}
    cells: dict[Cell, None] = {}
    for experiment, name in itertools.product(experiments, data):
        for method in SCOPES[experiment].methods:
            if wanted is None or method in wanted:
                cells |= dict.fromkeys(_cells(experiment, name, method, seeds, name in substitutes))
    return sorted(cells, key=lambda cell: (cell.seed, cell.curve))


def _cells(
    experiment: str, data: str, method: str, seeds: int | None, substitute: bool
) -> Iterator[Cell]:
    """Yield a cell for each seed; tables of large data sets leave the small ones out."""
    small, curve = data in SMALL_DATASETS, experiment == "epochs"
    if small and experiment in ("stochastic", "epochs"):
        return
    if experiment == "data":
        seeds = 1
    rows = "cap" if experiment == "batch" and paper_rows(data) > CAP else "all"
    for seed in range(seeds or (_SEEDS_SMALL if small else _SEEDS_LARGE)):
        yield Cell(data, method, seed, rows, curve, substitute)


def run_cells(
    progress: Progress,
    datasets: Mapping[str, Dataset],
    data_dir: str | None = None,
    show: Callable[[Progress], None] = lambda _: None,
) -> None:
    """Run the waiting cells, and store each row as soon as its cell ends."""
    samples = progress.store.folder / ".samples"  # for the cells of a quick run
    shutil.rmtree(samples, ignore_errors=True)  # a killed run may have left them
    samples.mkdir()
    try:
        while waiting := progress.waiting():
            cell = waiting[0]
            progress.running, progress.since = cell, time.monotonic()
            show(progress)
            before = _done(progress.row(cell))
            row = _run_apart(progress, datasets[cell.data], data_dir, samples, show)
            row = row if before is None else timed_again(before, row)
            progress.running = None
            try:
                progress.store.append(row)
            except ValueError as error:  # a number that JSON does not have
                row = _without(progress, cell, "failed", str(error))
                progress.store.append(row)
            if row["status"] == "failed":
                progress.failed.append(cell)
            show(progress)
    finally:
        shutil.rmtree(samples, ignore_errors=True)


def _run_apart(
    progress: Progress,
    dataset: Dataset,
    data_dir: str | None,
    samples: Path,
    show: Callable[[Progress], None],
) -> Row:
    """Run the current cell in a process of its own, and return its row or why there is none."""
    cell, limit = progress.running, progress.time_limit
    assert cell is not None
    before = _done(progress.row(cell))
    plain = progress.row(replace(cell, curve=False)) if cell.curve else None
    known = (before or plain or {}).get("params")  # a curve reuses what the cell without one chose
    context = _context()
    ours, theirs = context.Pipe(duplex=False)
    arguments = (cell, dataset, progress.settings, data_dir, known, samples)
    process = context.Process(target=_work, args=(theirs, *arguments), daemon=True)
    process.start()
    theirs.close()
    try:
        while not wait([ours], timeout=_TICK):
            if time.monotonic() - progress.since > limit:
                return _without(progress, cell, "stopped", f"over the limit of {limit:g} s")
            show(progress)
        outcome = ours.recv()
    except (EOFError, OSError):
        process.join()
        reason = f"its process ended with code {process.exitcode}, perhaps for lack of memory"
        return _without(progress, cell, "failed", reason)
    finally:
        process.kill()
        process.join()
        ours.close()
    if isinstance(outcome, str):
        return _without(progress, cell, "failed", outcome)
    return {**outcome, "time_limit": limit}


def _done(row: Row | None) -> Row | None:
    return row if row is not None and row["status"] == "done" else None


def _without(progress: Progress, cell: Cell, status: str, reason: str) -> Row:
    """Return the row of a cell without a result."""
    outcome = {"status": status, "reason": reason, "note": "", "time_limit": progress.time_limit}
    return cell.identity(progress.settings) | outcome


def _context() -> Any:
    """Return a fork server that has imported this module, or "spawn" where there can be none."""
    # The server listens on a socket in the folder of temporary files.
    too_long = len(os.fsencode(tempfile.gettempdir())) > _LONGEST_FOLDER
    if too_long or "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["aucmax.paper.runner"])
    from multiprocessing import forkserver, resource_tracker

    # The server ignores Ctrl-C only after its imports; before that, it would show a traceback. So it
    # starts with the signal blocked, and this process handles a Ctrl-C when the block ends. The tracker
    # unblocks the signal when it starts, so it starts first.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return context


def _work(connection: Connection, *arguments: Any) -> None:
    """Send the row of :func:`run_cell` from the cell's process, or a sentence on what went wrong."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (the live table owns the terminal)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            row = run_cell(*arguments)
        row["warnings"] = sorted({str(warning.message) for warning in caught})
        connection.send(row)
    except Exception as error:
        connection.send(f"{type(error).__name__}: {error}")


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
