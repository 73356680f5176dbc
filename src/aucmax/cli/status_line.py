"""One line on the terminal that shows what a command is doing; nothing where there is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from aucmax.reading.byte_streams import find_table, is_packed

if TYPE_CHECKING:
    from aucmax.tables.model import TableModel

_SAMPLES, _SAMPLE_BYTES = 16, 2**16  # from which the lines of a file are estimated
_SHUFFLES = 5  # of each column by a report


class Line:
    """The current part of the work; for rows also their count, pace and the time left."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self.live = not bar.disable

    def part(self, name: str, total: int | None = None, *, of_rows: bool = False) -> None:
        """Begin a part, with ``total`` steps if their number is known."""
        for task in self._bar.task_ids:
            self._bar.remove_task(task)
        self._bar.add_task(name, total=total, of_rows=of_rows)

    def rename(self, name: str) -> None:
        """Continue the part under another name."""
        self._bar.update(self._bar.task_ids[0], description=name, refresh=True)

    def done(self, more: int) -> None:
        """Count more steps of the part as done."""
        task = self._bar.tasks[0]
        if task.total is not None and task.completed + more > task.total:
            task.total = None  # the estimate was too low
        self._bar.advance(task.id, more)

    def say(self, sentence: str) -> None:
        """Print a remark above the line."""
        self._bar.console.print(sentence, markup=False, highlight=False, soft_wrap=True)


class _Pace(ProgressColumn):
    def render(self, task: Task) -> Text:
        """Return rows done, rows a second, and the time left at that pace."""
        if not task.fields["of_rows"] or not task.completed or not task.elapsed:
            return Text("")
        pace = task.completed / task.elapsed
        words = f"{task.completed:,.0f} rows, {pace:,.0f} a second"
        if task.total is not None:
            words += f", about {(task.total - task.completed) / pace:,.0f} s left"
        return Text(words)


@contextmanager
def status_line(*, quiet: bool = False) -> Iterator[Line]:
    """Show a line for the length of the block."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(30),
        TimeElapsedColumn(),
        _Pace(),
    )
    hidden = quiet or not sys.stderr.isatty()
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, redirect_stdout=False, disable=hidden
    ) as bar:
        yield Line(bar)


def rows_expected(path: Path) -> int | None:
    """Return about how many rows a table has, or None if only reading it would show.

    Parquet files hold the number. The lines of a text file are estimated from samples, which is too
    many where values contain line ends.
    """
    file = find_table(path)
    if is_packed(path):
        return None
    if file.format == "parquet":
        with suppress(pl.exceptions.PolarsError):  # the reader that follows reports what is wrong
            return int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
    if file.format not in ("text", "libsvm"):
        return None
    size, ends, seen = path.stat().st_size, 0, 0
    starts = np.linspace(0, max(0, size - _SAMPLE_BYTES), min(_SAMPLES, 1 + size // _SAMPLE_BYTES))
    with path.open("rb") as stream:
        for start in starts:
            stream.seek(int(start))
            sample = stream.read(_SAMPLE_BYTES)
            ends, seen = ends + sample.count(b"\n"), seen + len(sample)
    return round(size * ends / seen) if ends else None


def watched(model: TableModel, line: Line, *, permutation: bool = False) -> TableModel:
    """Return a copy of the model that shows on the line what it scores.

    A report is a single library call; its calls of the model show how far it is.
    """
    scorer, seen = copy(model.model_), copy(model)
    columns = sum(bool(column["features"]) for column in model.columns_)
    scorings = count()

    def score_table(table: pl.DataFrame) -> np.ndarray:
        line.part(f"scoring {table.height:,} rows")
        scores = model.scores(table)
        line.part("measuring")
        return scores

    def score_shuffled(features: np.ndarray) -> np.ndarray:
        number, last = next(scorings), columns * _SHUFFLES
        if number > last:  # explanations of rows, after all shuffles
            return np.asarray(model.model_.decision_function(features))
        if number == 0:  # the rows before any shuffle
            line.part("permutation importance", 1 + last)
        else:
            line.rename(f"permutation importance {1 + (number - 1) // _SHUFFLES} of {columns}")
        scores: np.ndarray = model.model_.decision_function(features)
        line.done(1)
        if number == last:
            line.part("drawing")
        return scores

    seen.__dict__["scores"] = score_table
    if permutation:
        scorer.__dict__["decision_function"] = score_shuffled
        seen.__dict__["model_"] = scorer
    return seen
