"""What the commands on models share: where words go, and models from files."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Table

from aucmax.persistence.model_file import load_model
from aucmax.runtime.json_values import json_ready
from aucmax.runtime.output_files import FULL, find_target
from aucmax.tables import TableModel


def told() -> Console:
    """Progress and remarks go to standard error; results alone to standard output."""
    return Console(stderr=True, markup=False, highlight=False, soft_wrap=True)


def print_json(results: Any) -> None:
    """Results for machines; what is not a number there is null."""
    print(json.dumps(json_ready(results), allow_nan=False))


def print_table(header: Sequence[str], lines: Iterable[Sequence[str]], left: int = 1) -> None:
    """Results for people; the first ``left`` columns are text."""
    table = Table(show_edge=False, pad_edge=False, box=None)
    for number, name in enumerate(header):
        table.add_column(name, justify="left" if number < left else "right", overflow="fold")
    for line in lines:
        table.add_row(*map(str, line))
    Console(markup=False, highlight=False).print(table)


#: Columns of a table that are listed for people; a model file has all.
_MOST_COLUMNS = 200


def print_columns(columns: Sequence[dict[str, Any]], *keys: str) -> None:
    """What was done to each column of a table, of many to the first of them."""
    titles = {"name": "column", "treatment": "what was done"}
    print_table(
        [titles.get(key, key) for key in keys],
        ([str(column.get(key, "")) for key in keys] for column in columns[:_MOST_COLUMNS]),
        left=len(keys),
    )
    if len(columns) > _MOST_COLUMNS:
        left = f"{len(columns) - _MOST_COLUMNS:,} more columns"
        told().print(f"{left} are not listed here: aucmax info MODEL --json has all.")


def table_model(path: Path) -> TableModel:
    """The model in a file, if it takes tables."""
    model = load_model(path)
    if not isinstance(model, TableModel):
        raise ValueError(
            f"{path} holds a {type(model).__name__}, which takes arrays in Python (aucmax.load_model); "
            "this command needs a model of tables, as aucmax train writes it."
        )
    return model


def check_output(path: Path, *inputs: Path | None, force: bool) -> None:
    """Refuse, before the work, an output that cannot be written, is an input, or exists unforced."""
    target = find_target(path)
    if target is None:  # a device or a pipe
        if not os.access(path, os.W_OK):
            raise PermissionError(f"{path} may not be written to: name another output.")
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent} to save {path.name} in.")
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(
            f"the folder {target.parent} may not be written to: save {path.name} elsewhere."
        )
    for each in inputs:
        if each is not None and each.exists() and path.exists() and path.samefile(each):
            raise ValueError(f"{path} would be overwritten, and is what is read: name another output.")
    if target.exists() and not force:
        raise FileExistsError(f"{path} exists: add --force to replace it, or name another output.")


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Name the file that there was no room for, whoever was writing it.

    polars says so in errors of several types, with the system's number in their text.
    """
    try:
        yield
    except (OSError, pl.exceptions.PolarsError) as error:
        found = re.search(r"\(os error (\d+)\)", str(error))
        number = int(found[1]) if found else getattr(error, "errno", None)
        if number not in FULL:
            raise
        raise OSError(
            f"cannot write {path}: {os.strerror(number)}; free some space, or write it elsewhere."
        ) from None


def aim_words(aim: str) -> str:
    """An aim for people who have not heard of Youden."""
    return "most recall less false-positive rate" if aim == "youden" else aim


def interval(value: float | None, low: float | None, high: float | None, digits: int = 4) -> str:
    """A number with its interval, where there is one.

    >>> interval(0.91234, 0.9, 0.92)
    '0.9123 (0.9000 to 0.9200)'
    """
    if value is None or math.isnan(value):
        return "–"
    text = f"{value:.{digits}f}"
    return text if low is None or high is None else f"{text} ({low:.{digits}f} to {high:.{digits}f})"
