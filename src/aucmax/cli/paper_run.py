"""``aucmax paper``: runs the paper's experiments and writes its tables and figure beside ours."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

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


def run_paper(
    what: str,
    *,
    out: Path | None,
    data_dir: Path | None,
    data: Sequence[str],
    methods: Sequence[str],
    seeds: int | None,
    time_limit: float,
    landmarks: int | None,
    quick: bool,
    run: bool,
    as_json: bool,
) -> None:
    """Run the missing cells of a table, the figure or all; then write and show what there is."""
    what = known_name("table or figure", what, EXPERIMENTS)
    names = [known_name("data set", name, DATASETS) for name in data] or list(DATASETS)
    every = {method: None for group in METHODS_OF.values() for method in group}
    wanted = [known_name("method", name, every) for name in methods] or None
    settings = QUICK if quick else Settings()
    if landmarks is not None:
        settings = replace(settings, landmarks=landmarks)
    told = Console(stderr=True, markup=False, highlight=False, soft_wrap=True)
    out = out or Path("paper-results-quick" if quick else "paper-results")
    folder = None if data_dir is None else str(data_dir)
    states = {status.name: status.state for status in dataset_status(folder)}
    absent = [name for name, state in states.items() if state == "missing"]
    substitutes = [name for name, state in states.items() if state == "substitute"]
    for name in names:
        if name in absent:
            told.print(f"{name}: no data here; get it with: aucmax datasets fetch {name}")
    present = [name for name in names if name not in absent]
    cells = plan(EXPERIMENTS[what], present, wanted, seeds or (1 if quick else None), substitutes)
    if what in ("figure1", "all"):
        need_matplotlib()
    store = Store(out)
    failed: list[Cell] = []
    with store.open():
        if run:
            progress = Progress(cells, settings, store, time_limit, failed=failed)
            try:
                with _board(told, progress) as board:
                    run_cells(progress, DATASETS, folder, board)
            except KeyboardInterrupt:
                done = len(cells) - len(progress.waiting())
                told.print(
                    f"Stopped: {done} of {len(cells)} cells are in {out}; run it again to go on."
                )
                raise SystemExit(130) from None
        rows = [row for row in store.rows if _belongs(row, settings)]
        known = {row["data"] for row in rows}
        missing = [_no_data(name, settings) for name in absent if name not in known]
        shown = write_report([*rows, *missing], out, what)
    if as_json:
        print(json.dumps({**_outcomes(cells, settings, store), "rows": rows}))
    else:
        for table in shown:
            Console().print(table.rich())
    told.print(f"Rows, tables and figure are in {out}.")
    if failed:
        told.print(f"{len(failed)} of {len(cells)} cells failed; run it again to try them again:")
        for cell in failed:
            told.print(f"  {cell.title}: {(store.get(cell.key(settings)) or {}).get('reason')}")
        raise SystemExit(1)


def _outcomes(cells: Sequence[Cell], settings: Settings, store: Store) -> dict[str, Any]:
    """Where the results are, and how many of the cells asked for have which."""
    found = [store.get(cell.key(settings)) for cell in cells]
    counts = Counter("left" if row is None else row["status"] for row in found)
    files = sorted(path for path in store.folder.iterdir() if not path.name.startswith("."))
    return {
        "folder": str(store.folder),
        "files": [str(path) for path in files],
        "cells": {status: counts[status] for status in ("done", "failed", "stopped", "left")},
    }


def _no_data(name: str, settings: Settings) -> Row:
    missing = {"status": "failed", "reason": "the data files are not at hand", "note": ""}
    return {**Cell(name, "", 0).identity(settings), **missing}


def _belongs(row: Row, settings: Settings) -> bool:
    return row["quick"] == settings.quick and (
        not row["method"] or row["landmarks"] == settings.landmarks
    )


def _board(console: Console, progress: Progress) -> Any:
    return _LiveBoard(console, progress) if console.is_terminal else _Lines(console)


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _outcome(row: Row) -> str:
    if row["status"] != "done":
        return f"{row['status']}: {row['reason']}"
    if not row["method"]:
        return f"{row['n_train']:,} + {row['n_test']:,} rows × {row['n_features']}"
    return f"AUC {100 * row['auc']:.2f}, {row['seconds']:.1f} s"


class _Lines:
    """Where there is no terminal: a line for each cell that has ended."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._cell: Cell | None = None

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, progress: Progress) -> None:
        if progress.running is None and self._cell is not None:
            row, left = progress.row(self._cell), progress.waiting()
            assert row is not None
            done = f"{len(progress.cells) - len(left)}/{len(progress.cells)}"
            ahead = f"about {_duration(progress.seconds_left())} left" if left else "done"
            self._console.print(f"[{done}] {self._cell.title}: {_outcome(row)}; {ahead}")
        self._cell = progress.running


class _LiveBoard:
    """On a terminal: data sets by methods, what runs, what is done, time left."""

    def __init__(self, console: Console, progress: Progress) -> None:
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._began, self._progress = time.monotonic(), progress

    def __enter__(self) -> _LiveBoard:
        self._live.__enter__()
        self(self._progress)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def __call__(self, progress: Progress) -> None:
        self._live.update(board(progress, time.monotonic() - self._began), refresh=True)


def board(progress: Progress, elapsed: float) -> Table:
    """The state of a run as a table."""
    columns = list(dict.fromkeys((cell.method, cell.curve) for cell in progress.cells if cell.method))
    left = progress.waiting()
    done = f"{len(progress.cells) - len(left)} of {len(progress.cells)} cells"
    ahead = f", about {_duration(progress.seconds_left())} left" if left else ""
    table = Table(caption=f"{done}, {_duration(elapsed)} gone{ahead}")
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
