"""Inputs and outputs of commands: model files, output files, printed tables and JSON."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from rich.console import Console
from rich.table import Table

from aucmax.cli.remarks import check_output as check_output
from aucmax.cli.remarks import say as say
from aucmax.runtime.json_values import json_ready
from aucmax.runtime.output_files import FULL

if TYPE_CHECKING:
    from aucmax.tables.model import TableModel

_MOST_COLUMNS = 200  # of a table that are printed; a model file has all


def print_json(results: Any) -> None:
    """Print results as JSON, with null for what is not a finite number."""
    print(json.dumps(json_ready(results), allow_nan=False))


def print_table(header: Sequence[str], lines: Iterable[Sequence[str]], left: int = 1) -> None:
    """Print a table whose first ``left`` columns are text."""
    table = Table(show_edge=False, pad_edge=False, box=None)
    for number, name in enumerate(header):
        table.add_column(name, justify="left" if number < left else "right", overflow="fold")
    for line in lines:
        table.add_row(*map(str, line))
    Console(markup=False, highlight=False).print(table)


def print_columns(columns: Sequence[Mapping[str, Any]], *keys: str) -> None:
    """Print how each column of a table was prepared."""
    titles = {"name": "column", "treatment": "what was done"}
    lines = (
        ["" if column.get(key) is None else str(column[key]) for key in keys]
        for column in columns[:_MOST_COLUMNS]
    )
    print_table([titles.get(key, key) for key in keys], lines, left=len(keys))
    more = len(columns) - _MOST_COLUMNS
    if more > 0:
        say(f"{more:,} more columns are not shown; aucmax info MODEL --json lists all of them.")


def interval(values: Mapping[str, Any], name: str) -> str:
    """Return a number with its confidence interval, if there is one.

    >>> interval({"auc": 0.91234, "auc_low": 0.9, "auc_high": 0.92}, "auc")
    '0.9123 (0.9000 to 0.9200)'
    """
    value, low, high = (values.get(key) for key in (name, f"{name}_low", f"{name}_high"))
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.4f}" if low is None else f"{value:.4f} ({low:.4f} to {high:.4f})"


def aim_words(aim: str) -> str:
    """Return an aim in words that need no knowledge of statistics."""
    return "most recall minus false-positive rate" if aim == "youden" else aim


def table_model(path: Path) -> TableModel:
    """Load the model of a file; refuse one that does not take tables."""
    from aucmax.persistence.model_file import load_model
    from aucmax.tables.model import TableModel

    model = load_model(path)
    if not isinstance(model, TableModel):
        raise ValueError(
            f"{path} holds a {type(model).__name__}, which takes arrays in Python (aucmax.load_model); "
            "this command needs a model written by aucmax train."
        )
    return model


@contextmanager
def naming_full_disk(path: Path | str) -> Iterator[None]:
    """Name the output in the error when the disk is full.

    polars raises errors of several types then, with the system's error number in their text.
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
