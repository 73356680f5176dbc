"""Run ``aucmax paper``: the paper's experiments, and write its tables and figure next to ours."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.live import Live
from rich.table import Table

from aucmax.paper.data import DATASETS, dataset_status
from aucmax.paper.figure import need_matplotlib
from aucmax.paper.protocol import EXPERIMENTS, METHODS_OF, QUICK, Cell, Settings
from aucmax.paper.runner import Progress, plan, run_cells
from aucmax.paper.store import Row, Store
from aucmax.paper.write_results import write_report
from aucmax.runtime.spelling import known_name


class Chosen(NamedTuple):
    """The experiments to run."""

    what: str
    data: list[str]
    methods: list[str] | None
    settings: Settings


def choose(
    what: str, data: Sequence[str], methods: Sequence[str], landmarks: int | None, quick: bool
) -> Chosen:
    """Check names of a table or figure, data sets and methods; by default all are chosen."""
    every = dict.fromkeys(method for group in METHODS_OF.values() for method in group)
    settings = QUICK if quick else Settings()
    return Chosen(
        known_name("table or figure", what, EXPERIMENTS),
        [known_name("data set", name, DATASETS) for name in data] or list(DATASETS),
        [known_name("method", name, every) for name in methods] or None,
        settings if landmarks is None else replace(settings, landmarks=landmarks),
    )


def run_paper(
    chosen: Chosen,
    out: Path,
    data_dir: Path | None,
    seeds: int | None,
    time_limit: float,
    run: bool,
    as_json: bool,
) -> None:
    """Run the missing cells; then write and print the tables."""
    what, settings = chosen.what, chosen.settings
    remarks = Console(stderr=True, markup=False, highlight=False, soft_wrap=True)
    folder = None if data_dir is None else str(data_dir)
    states = {status.name: status.state for status in dataset_status(folder)}
    absent = [name for name, state in states.items() if state == "missing"]
    for name in chosen.data:
        if name in absent:
            remarks.print(f"{name}: its data are missing; get them with: aucmax datasets fetch {name}")
    present = [name for name in chosen.data if name not in absent]
    substitutes = [name for name, state in states.items() if state == "substitute"]
    seeds = seeds or (1 if settings.quick else None)
    cells = plan(EXPERIMENTS[what], present, chosen.methods, seeds, substitutes)
    if what in ("figure1", "all"):
        need_matplotlib()
    store = Store(out)
    progress = Progress(cells, settings, store, time_limit)
    with store.open():
        if run:
            _run_cells(progress, folder, remarks)
        rows = [row for row in store.rows if _belongs(row, settings)]
        known = {row["data"] for row in rows}
        missing = [_no_data(name, settings) for name in absent if name not in known]
        tables = write_report([*rows, *missing], out, what)
    if as_json:
        print(json.dumps({**_outcomes(progress), "rows": rows}))
    else:
        for table in tables:
            Console().print(table.rich())
    remarks.print(f"Rows, tables and figure are in {out}.")
    if progress.failed:
        remarks.print(f"{len(progress.failed)} of {len(cells)} cells failed; run again to retry them:")
        for cell in progress.failed:
            remarks.print(f"  {cell.title}: {(progress.row(cell) or {}).get('reason')}")
        raise SystemExit(1)


def _run_cells(progress: Progress, folder: str | None, remarks: Console) -> None:
    try:
        with _shown(remarks, progress) as update:
            run_cells(progress, DATASETS, folder, update)
    except KeyboardInterrupt:
        done, out = len(progress.cells) - len(progress.waiting()), progress.store.folder
        remarks.print(
            f"Stopped: {done} of {len(progress.cells)} cells are in {out}; run again to continue."
        )
        raise SystemExit(130) from None


def _outcomes(progress: Progress) -> dict[str, Any]:
    """Return the folder and files of results, and how many cells have which status."""
    counts = Counter(
        "left" if row is None else row["status"] for row in map(progress.row, progress.cells)
    )
    folder = progress.store.folder
    return {
        "folder": str(folder),
        "files": [str(path) for path in sorted(folder.iterdir()) if not path.name.startswith(".")],
        "cells": {status: counts[status] for status in ("done", "failed", "stopped", "left")},
    }


def _no_data(name: str, settings: Settings) -> Row:
    missing = {"status": "failed", "reason": "the data files are missing", "note": ""}
    return {**Cell(name, "", 0).identity(settings), **missing}


def _belongs(row: Row, settings: Settings) -> bool:
    same_map = not row["method"] or row["landmarks"] == settings.landmarks
    return bool(row["quick"] == settings.quick and same_map)


@contextmanager
def _shown(console: Console, progress: Progress) -> Iterator[Callable[[Progress], None]]:
    """Show the state of a run: as a table on a terminal, else as a line per cell."""
    if not console.is_terminal:
        yield _Lines(console)
        return
    began = time.monotonic()
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def update(progress: Progress) -> None:
            live.update(board(progress, time.monotonic() - began), refresh=True)

        update(progress)
        yield update


class _Lines:
    """Print a line for each cell that has ended."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._cell: Cell | None = None

    def __call__(self, progress: Progress) -> None:
        if progress.running is None and self._cell is not None:
            row, left = progress.row(self._cell), progress.waiting()
            assert row is not None
            done = f"{len(progress.cells) - len(left)}/{len(progress.cells)}"
            ahead = f"about {_duration(progress.seconds_left())} left" if left else "done"
            self._console.print(f"[{done}] {self._cell.title}: {_outcome(row)}; {ahead}")
        self._cell = progress.running


def _outcome(row: Row) -> str:
    if row["status"] != "done":
        return f"{row['status']}: {row['reason']}"
    if not row["method"]:
        return f"{row['n_train']:,} + {row['n_test']:,} rows × {row['n_features']}"
    return f"AUC {100 * row['auc']:.2f}, {row['seconds']:.1f} s"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def board(progress: Progress, elapsed: float) -> Table:
    """Return the state of a run as a table of data sets by methods."""
    columns = list(dict.fromkeys((cell.method, cell.curve) for cell in progress.cells if cell.method))
    left = progress.waiting()
    done = f"{len(progress.cells) - len(left)} of {len(progress.cells)} cells"
    ahead = f", about {_duration(progress.seconds_left())} left" if left else ""
    table = Table(caption=f"{done}, {_duration(elapsed)} elapsed{ahead}")
    table.add_column("data")
    for method, curve in columns:
        table.add_column(f"{method}\nby epochs" if curve else method, justify="right")
    for name in dict.fromkeys(cell.data for cell in progress.cells):
        own = [cell for cell in progress.cells if cell.data == name]
        parts = [[cell for cell in own if (cell.method, cell.curve) == each] for each in columns]
        table.add_row(name, *(_entry(cells, progress) for cells in parts))
    return table


def _entry(cells: list[Cell], progress: Progress) -> str:
    if not cells:
        return ""
    if progress.running in cells:
        return f"… {_duration(time.monotonic() - progress.since)}"
    rows = [row for cell in cells if (row := progress.row(cell))]
    aucs = [row["auc"] for row in rows if row["status"] == "done"]
    if not aucs:
        return "–" if rows else "·"
    mean = f"{100 * sum(aucs) / len(aucs):.2f}"
    return mean if len(aucs) == len(cells) else f"{mean} ({len(aucs)}/{len(cells)})"
