"""Read tables from files: CSV, TSV, JSON lines, Parquet, Arrow, LIBSVM and Excel, also compressed.

Text is UTF-8 unless an encoding is named, and its first line names the columns and shows the
separator. "", "?", "NA", "null" and similar text (``aucmax.reading.text.MISSING_MARKS``) are missing
values.

Errors name a row by its position in the table, from 0, not counting the header. For a text file they
add the line, from 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import polars as pl

from aucmax.reading import columnar, delimited, excel, json_lines, libsvm
from aucmax.reading.byte_streams import TableFile, file_hash, find_table
from aucmax.reading.encodings import as_utf8
from aucmax.reading.frames import RowError, TableError, check_names
from aucmax.runtime.parameters import COUNT, check_value

__all__ = ["column_names", "file_hash", "located", "read_table", "table_batches"]


def read_table(
    path: str | Path,
    columns: Sequence[str] | None = None,
    *,
    schema: Mapping[str, Any] | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> pl.DataFrame:
    """Read a table.

    Parameters
    ----------
    path : path
        A file whose name ends in .csv, .tsv, .txt, .jsonl, .parquet, .arrow, .feather, .libsvm, .xlsx
        or a few other endings, perhaps followed by .gz, .bz2, .xz or .zst.
    columns : sequence of str, optional
        Columns to read, in this order; all by default. A LIBSVM file has "target", "f1", "f2" and
        so on.
    schema : dict from name to polars type, optional
        Types of columns in a text file; inferred from their values by default.
    encoding : str, optional
        Of a text file that is not UTF-8, such as "latin-1" or "utf-16".
    sheet : str, optional
        The sheet of an Excel file, which may be left out if there is only one.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from aucmax.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "people.csv")
    ...     _ = path.write_text("name;age\\nAda;36\\nGrace;?\\n")
    ...     read_table(path).to_dicts()
    [{'name': 'Ada', 'age': 36}, {'name': 'Grace', 'age': None}]
    """
    file = find_table(path)
    if encoding is not None:
        with as_utf8(path, encoding) as copy:
            return read_table(copy, columns, schema=schema)
    _refuse_sheet(file, sheet)
    if file.format == "excel":
        frame = excel.read(file, sheet)
        check_names(frame.columns, columns or (), "is needed", f"{file.path}")
        return _select(frame, columns)
    _check_columns(file, columns)
    if file.format in ("text", "json"):
        reader = delimited.read if file.format == "text" else json_lines.read
        return _select(reader(file, schema or {}), columns)
    read = libsvm.read if file.format == "libsvm" else columnar.read
    return _select(read(file, columns), columns)


def table_batches(
    path: str | Path,
    rows: int = 100_000,
    columns: Sequence[str] | None = None,
    *,
    schema: Mapping[str, Any] | None = None,
) -> Iterator[pl.DataFrame]:
    """Read a table in parts of ``rows`` rows, in memory that does not grow with the file.

    Every part has the same types. For a text file they come from ``schema``, and columns it lacks are
    text; without a schema they are inferred from the first 16 MB. A .zst file is unpacked in memory
    unless Python 3.14 or the package ``zstandard`` reads it in parts.

    Parameters
    ----------
    path, columns, schema
        As in :func:`read_table`.
    rows : int, default=100_000

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from aucmax.tables import table_batches
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "numbers.csv")
    ...     _ = path.write_text("a,b\\n1,2\\n3,4\\n5,6\\n")
    ...     [part["b"].to_list() for part in table_batches(path, rows=2)]
    [[2, 4], [6]]
    """
    check_value("rows", rows, COUNT)
    file = find_table(path)
    _check_columns(file, columns)
    if file.format == "text":
        parts = delimited.batches(file, schema or {})
    elif file.format == "json":
        parts = json_lines.batches(file, schema or {})
    elif file.format == "libsvm":
        parts = libsvm.batches(file, columns)
    elif file.format == "excel":
        parts = iter([excel.read(file)])
    else:
        parts = columnar.batches(file, rows, columns)
    yield from _even(parts, rows, columns)


@contextmanager
def located(table: Any) -> Iterator[None]:
    """Add the line to errors that name a row, if ``table`` is the path of a text file."""
    try:
        yield
    except RowError as error:
        if error.where or not isinstance(table, str | Path):
            raise
        file, line = find_table(table), None
        lines = {"text": delimited, "libsvm": libsvm, "json": json_lines}.get(file.format)
        with suppress(TableError):
            line = lines.line_of_row(file, error.row) if lines else None
        if line is None:
            raise
        raise error.in_file(str(file.path), line) from None


def column_names(path: str | Path) -> list[str]:
    """Return the names of a table's columns; only a LIBSVM file is read for that."""
    file = find_table(path)
    return _READERS[file.format].names(file)


#: The module that reads each format.
_READERS: dict[str, Any] = {
    "text": delimited,
    "json": json_lines,
    "libsvm": libsvm,
    "parquet": columnar,
    "arrow": columnar,
    "excel": excel,
}


def _refuse_sheet(file: TableFile, sheet: str | None) -> None:
    if sheet is not None and file.format != "excel":
        raise TableError(f"{file.path} is no Excel file, so it has no sheet {sheet!r}.")


def _even(
    parts: Iterable[pl.DataFrame], rows: int, columns: Sequence[str] | None
) -> Iterator[pl.DataFrame]:
    """Yield some columns in parts of equal size; the last may be smaller."""
    rest: list[pl.DataFrame] = []
    for part in parts:
        whole = pl.concat([*rest, _select(part, columns)])
        end = whole.height - whole.height % rows
        yield from whole[:end].iter_slices(rows)
        rest = [whole[end:]]
    yield from (part for part in rest if part.height)


def _check_columns(file: TableFile, columns: Sequence[str] | None) -> None:
    """Refuse columns that a file lacks, before it is read."""
    any_feature = file.format == "libsvm" and all(libsvm.is_feature(name) for name in columns or ())
    if columns is not None and not any_feature:
        check_names(column_names(file.path), columns, "is needed", f"{file.path}")


def _select(frame: pl.DataFrame, columns: Sequence[str] | None) -> pl.DataFrame:
    return frame if columns is None else frame.select(list(dict.fromkeys(columns)))
