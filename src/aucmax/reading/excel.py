"""Sheets of Excel workbooks, read by polars through the package fastexcel."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import polars as pl

from aucmax.reading.byte_streams import TableFile
from aucmax.reading.frames import TableError, check_duplicates, quoted, reason_of
from aucmax.runtime.installing import extra_command
from aucmax.runtime.spelling import nearest


def read(file: TableFile, sheet: str | None = None) -> pl.DataFrame:
    """Read a sheet; a workbook with one sheet that has rows needs no name."""
    book = _open(file)
    frame = _load(file, book, _choose(file, book, sheet))
    if not frame.height:
        raise TableError(f"{file.path} has a header and no rows.")
    return frame


def names(file: TableFile, sheet: str | None = None) -> list[str]:
    """Return the names of a sheet's columns."""
    return read(file, sheet).columns


def _open(file: TableFile) -> Any:
    try:
        fastexcel = import_module("fastexcel")
    except ImportError:
        raise ImportError(
            f"{file.path} is an Excel file, which needs fastexcel. Save it as .csv, or install "
            f"fastexcel: {extra_command('excel')}"
        ) from None
    if not file.path.stat().st_size:
        raise TableError(f"{file.path} is empty.")
    try:
        return fastexcel.read_excel(str(file.path))
    except fastexcel.FastExcelError as error:
        raise TableError(
            f"{file.path} is not a valid Excel file ({reason_of(error)}); save it again."
        ) from None


def _choose(file: TableFile, book: Any, sheet: str | None) -> str:
    present: list[str] = list(book.sheet_names)
    if sheet is not None:
        if sheet in present:
            return sheet
        near = nearest(sheet, present)
        hint = f" Did you mean {near!r}?" if near else f" It has {quoted(present)}."
        raise TableError(f"{file.path} has no sheet {sheet!r}.{hint}")
    if len(present) == 1:
        return present[0]
    raise TableError(
        f"{file.path} has {len(present)} sheets: {quoted(present)}. Name one with --sheet, or with "
        "sheet in Python."
    )


def _load(file: TableFile, book: Any, sheet: str) -> pl.DataFrame:
    try:
        frame: pl.DataFrame = book.load_sheet(sheet).to_polars()
    except Exception as error:  # fastexcel raises errors of several types
        raise TableError(f"{file.path}, sheet {sheet!r}, cannot be read: {reason_of(error)}.") from None
    check_duplicates(frame.columns, f"{file.path}, sheet {sheet!r}")
    return frame.rename({name: name.strip() for name in frame.columns})
