"""One line on the terminal that says what a command is at; elsewhere nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from itertools import count
from pathlib import Path

import numpy as np
import polars as pl
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from aucmax.reading.byte_streams import find_table, is_packed
from aucmax.tables import TableModel

#: Bytes looked at in each of so many places, to reckon the lines of a file.
_SAMPLE, _PLACES = 2**16, 16

#: How often a report shuffles a column.
_SHUFFLES = 5


class Line:
    """The part of the work at hand by name; of rows also their count, pace and the time left."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self.live = not bar.disable

    def part(self, name: str, total: int | None = None, *, of_rows: bool = False) -> None:
        """A part begins, with so many things to do if that is known."""
        for task in self._bar.task_ids:
            self._bar.remove_task(task)
        self._bar.add_task(name, total=total, of_rows=of_rows)

    def rename(self, name: str) -> None:
        """The part goes on under another name."""
        self._bar.update(self._bar.task_ids[0], description=name, refresh=True)

    def done(self, more: int) -> None:
        """So many more of its things are done."""
        task = self._bar.tasks[0]
        if task.total is not None and task.completed + more > task.total:
            task.total = None  # it was reckoned too low
        self._bar.advance(task.id, more)

    def say(self, sentence: str) -> None:
        """A remark, which stays above the line."""
        self._bar.console.print(sentence, markup=False, highlight=False, soft_wrap=True)


class _Pace(ProgressColumn):
    def render(self, task: Task) -> Text:
        """Rows done, rows a second, and the time left at that pace."""
        if not task.fields["of_rows"] or not task.completed or not task.elapsed:
            return Text("")
        pace = task.completed / task.elapsed
        words = f"{task.completed:,.0f} rows, {pace:,.0f} a second"
        if task.total is not None:
            words += f", about {(task.total - task.completed) / pace:,.0f} s left"
        return Text(words)


@contextmanager
def shown(*, quiet: bool = False) -> Iterator[Line]:
    """A line while the work lasts."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(30),
        TimeElapsedColumn(),
        _Pace(),
    )
    with Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        disable=quiet or not sys.stderr.isatty(),
    ) as bar:
        yield Line(bar)


def rows_expected(path: Path) -> int | None:
    """About how many rows a table has, where that is known without reading it.

    Parquet files say it. The lines of a text are reckoned from samples of it; where values have line
    ends in them that is too many.
    """
    file = find_table(path)
    if is_packed(path):
        return None
    if file.format == "parquet":
        with suppress(pl.exceptions.PolarsError):  # reading it tells what is wrong
            return int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
    if file.format in ("text", "libsvm"):
        return _lines(path)
    return None


def _lines(path: Path) -> int | None:
    size = path.stat().st_size
    ends = seen = 0
    with path.open("rb") as file:
        for place in np.linspace(0, max(0, size - _SAMPLE), min(_PLACES, 1 + size // _SAMPLE)):
            file.seek(int(place))
            sample = file.read(_SAMPLE)
            ends, seen = ends + sample.count(b"\n"), seen + len(sample)
    return round(size * ends / seen) if ends else None


def watched(model: TableModel, line: Line, *, permutation: bool = False) -> TableModel:
    """The same model, which says on the line when it scores a table, and which shuffled column.

    A report is one call of the library; how far it is can be told by what it asks of the model.
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
        if number == 0:  # the rows as they are
            line.part("permutation importance", 1 + last)
        else:
            column = 1 + (number - 1) // _SHUFFLES
            line.rename(f"permutation importance {column} of {columns}")
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
