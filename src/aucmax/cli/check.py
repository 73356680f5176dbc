"""Run ``aucmax check``, and print what ``aucmax train`` prints before it trains."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aucmax.cli.remarks import say
from aucmax.cli.table_inputs import name_of, table_files
from aucmax.reading.opened import OpenedTable, open_table, text_columns

if TYPE_CHECKING:
    from aucmax.tables.check_result import TableCheck


def run_check(
    tables: Sequence[Path],
    target: str,
    *,
    encoding: str | None,
    sheet: str | None,
    as_json: bool,
    named: dict[str, str | None],
    **params: Any,
) -> None:
    """Check a table and print what was found; the exit code is 2 if there are problems."""
    with table_files(tables, encoding=encoding, sheet=sheet) as files:
        opened = _read_while_importing(files, params)
        from aucmax.cli import inputs_outputs as io
        from aucmax.tables.check import add_estimate, check_opened

        found, fit = check_opened(opened, {"target": target, **named}, **params)
        if not as_json:
            print_check(found)
        found = found if fit is None else add_estimate(found, fit)
    if as_json:
        io.print_json(found.to_dict())
    else:
        if found.seconds is not None:
            say(time_sentence(found.seconds))
        for each in found.problems:
            say(f"Problem: {each}")
        if not found.problems:
            say("There are no problems: this table can be trained on.")
    if found.problems:
        raise SystemExit(2)


def open_tables(files: Sequence[Path], params: dict[str, Any]) -> OpenedTable:
    """Read a file, or several as one table; ``params`` may name columns that are read as text."""
    return open_table(files[0] if len(files) == 1 else list(files), as_text=text_columns(params))


def _read_while_importing(files: Sequence[Path], params: dict[str, Any]) -> OpenedTable:
    """Read tables while scikit-learn, which the next step needs, is imported."""
    with ThreadPoolExecutor(1) as reader:
        reading = reader.submit(open_tables, files, params)
        import_module("aucmax.tables.check")
        return reading.result()


def first_line(opened: OpenedTable, tables: Sequence[Path], target: str) -> str:
    """Return what is known of a table as soon as it is read."""
    frame = opened.frame
    words = f"{name_of(tables)}: {frame.height:,} rows, {frame.width:,} columns"
    if target in frame.columns:
        counts = frame[target].value_counts(sort=True)
        if counts.height <= 3:
            shares = [f"{label!r} {rows:,} times" for label, rows in counts.iter_rows()]
            words += f"; {target!r} is {', '.join(shares)}"
    return f"{words}."


def print_check(found: TableCheck) -> None:
    """Print rows, columns and warnings."""
    from aucmax.cli import inputs_outputs as io

    say(found.summary)
    if found.rows_without_label:
        say(f"{found.rows_without_label:,} rows without a label are left out.")
    if found.columns:
        keys = ("name", "kind", "missing", "levels", "example", "treatment")
        io.print_columns(found.columns, *keys)
    for each in found.warnings:
        say(f"Warning: {each}")


def time_sentence(seconds: float) -> str:
    """Return how long training will take.

    >>> time_sentence(90)
    'Training will take about 90 s on this machine.'
    """
    if seconds < 1.5:
        return "Training will take about a second on this machine."
    text = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    return f"Training will take about {text} on this machine."
