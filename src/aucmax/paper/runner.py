"""Runs cells one after another, each in a process of its own, and keeps what has ended.

A process of its own makes the peak of memory the cell's, gives its memory back, and can be stopped
when its time is over. It ends when the run that started it does.
"""

from __future__ import annotations

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
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from aucmax.paper.data import Dataset
from aucmax.paper.protocol import Cell, Settings, cells_of, paper_rows, run_cell
from aucmax.paper.store import Row, Store

#: Bytes in the path of a folder that leave room for a socket's name: macOS has 104 for both.
_LONGEST_FOLDER = 70

#: Seconds between two looks at a running cell.
_TICK = 0.5

#: Rough cost of a method in milliseconds a row, before any has been measured.
_COSTS = {
    "": 0.005,
    "Linear RankSVM": 0.1,
    "RFAUC": 2.5,
    "NBAUC": 1.0,
    "NSAUC": 0.5,
    "NSVMSGD2": 0.4,
    "NOAM": 0.7,
    "NSOLAM": 1.5,
    "RBF-RankSVM (subsample)": 2.0,
    "RBF-RankSVM": 10.0,
}
_CURVE_COST = 2.0


@dataclass
class Progress:
    """What a run has done and what is left of it."""

    cells: list[Cell]
    settings: Settings
    store: Store
    time_limit: float
    running: Cell | None = None
    since: float = 0.0
    failed: list[Cell] = field(default_factory=list)  #: in this run; the next one tries them again

    def row(self, cell: Cell) -> Row | None:
        return self.store.get(cell.key(self.settings))

    def waiting(self) -> list[Cell]:
        """Cells to be run: not done, and of no kind that took longer than the limit with any seed."""
        rows = [(cell, self.row(cell)) for cell in self.cells]
        long = {
            _kind(cell)
            for cell, row in rows
            if row and row["status"] == "stopped" and row["time_limit"] >= self.time_limit
        }
        return [
            cell
            for cell, row in rows
            if _kind(cell) not in long
            and cell not in self.failed
            and not (row and row["status"] == "done")
        ]

    def seconds_left(self) -> float:
        """By what like cells took, and a rough cost of methods scaled to what those seen took."""
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


def _kind(cell: Cell) -> tuple[Any, ...]:
    return cell.data, cell.method, cell.rows, cell.curve


def _guess(cell: Cell, settings: Settings) -> float:
    bound = settings.cap if cell.rows == "cap" else settings.all_rows or 10**9
    cost = _CURVE_COST if cell.curve else _COSTS.get(cell.method, 1.0)
    return 1.0 + cost * 1e-3 * min(paper_rows(cell.data) or bound, bound)


def plan(
    experiments: Iterable[str],
    data: Iterable[str],
    methods: Iterable[str] | None = None,
    seeds: int | None = None,
    substitutes: Collection[str] = (),
) -> list[Cell]:
    """The cells of experiments, each once, first seeds first."""
    names, wanted = list(data), None if methods is None else set(methods)
    cells = dict.fromkeys(
        cell for each in experiments for cell in cells_of(each, names, seeds, substitutes)
    )
    chosen = [cell for cell in cells if wanted is None or not cell.method or cell.method in wanted]
    return sorted(chosen, key=lambda cell: (cell.seed, cell.curve))


def run_cells(
    progress: Progress,
    datasets: Mapping[str, Dataset],
    data_dir: str | None = None,
    tell: Callable[[Progress], None] = lambda _: None,
) -> None:
    """Run what is waiting; a row is on disk as soon as its cell has ended."""
    with _samples(progress.store.folder) as samples:
        while waiting := progress.waiting():
            cell = waiting[0]
            progress.running, progress.since = cell, time.monotonic()
            tell(progress)
            row = _run_apart(progress, datasets[cell.data], data_dir, samples, tell)
            progress.running = None
            try:
                progress.store.append(row)
            except ValueError as error:  # a number that JSON does not have
                row = _without(cell, progress.settings, progress.time_limit, "failed", str(error))
                progress.store.append(row)
            if row["status"] == "failed":
                progress.failed.append(cell)
            tell(progress)


@contextmanager
def _samples(results: Path) -> Iterator[Path]:
    """A folder for samples of data, without those that a run killed before has left.

    It lies in the folder of results, which one run at a time holds.
    """
    folder = results / ".samples"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run_apart(
    progress: Progress,
    dataset: Dataset,
    data_dir: str | None,
    samples: Path,
    tell: Callable[[Progress], None],
) -> Row:
    cell, settings, limit = progress.running, progress.settings, progress.time_limit
    assert cell is not None
    context = _context()
    ours, theirs = context.Pipe(duplex=False)
    arguments = (theirs, cell, dataset, settings, data_dir, _known(progress, cell), samples)
    process = context.Process(target=_work, args=arguments, daemon=True)
    process.start()
    theirs.close()
    try:
        while not wait([ours], timeout=_TICK):
            if time.monotonic() - progress.since > limit:
                return _without(cell, settings, limit, "stopped", f"over the limit of {limit:g} s")
            tell(progress)
        outcome = ours.recv()
    except (EOFError, OSError):
        process.join()
        reason = f"its process ended with code {process.exitcode}, perhaps for lack of memory"
        return _without(cell, settings, limit, "failed", reason)
    finally:
        process.kill()
        process.join()
        ours.close()
    if isinstance(outcome, str):
        return _without(cell, settings, limit, "failed", outcome)
    return {**outcome, "time_limit": limit}


def _context() -> Any:
    """Processes forked from a server that has the imports behind it, where there is such a thing.

    The server listens on a socket in the folder of temporary files, and the path of a socket has at
    most about a hundred characters.
    """
    if (
        "forkserver" not in multiprocessing.get_all_start_methods()
        or len(os.fsencode(tempfile.gettempdir())) > _LONGEST_FOLDER
    ):
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["aucmax.paper.runner"])
    from multiprocessing import forkserver, resource_tracker

    # The server ignores Ctrl-C only after its imports, and would show a traceback before. It inherits
    # the blocked signal; here, one that comes meanwhile is handled when the block ends. The tracker
    # unblocks the signal when it starts, so it comes first.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return context


def _known(progress: Progress, cell: Cell) -> dict[str, Any] | None:
    """What the cell without a curve has chosen already, for the one with."""
    if not cell.curve:
        return None
    row = progress.row(replace(cell, curve=False))
    return None if row is None else row.get("params")


def _without(cell: Cell, settings: Settings, limit: float, status: str, reason: str) -> Row:
    """The row of a cell that gave no result."""
    outcome = {"status": status, "reason": reason, "note": "", "time_limit": limit}
    return {**cell.identity(settings), **outcome}


def _work(
    connection: Connection,
    cell: Cell,
    dataset: Dataset,
    settings: Settings,
    data_dir: str | None,
    known: dict[str, Any] | None,
    samples: Path,
) -> None:
    """In the cell's process: send its row, or a sentence on what went wrong."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (the terminal is the live table's)
    _end_with_parent()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            row = run_cell(cell, dataset, settings, data_dir, known, samples)
        row["warnings"] = sorted({str(warning.message) for warning in caught})
        connection.send(row)
    except Exception as error:
        connection.send(f"{type(error).__name__}: {error}")


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:

        def watch() -> None:
            wait([parent.sentinel])
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()
