"""Tables from files: CSV, TSV, Parquet, Arrow and LIBSVM, bare or compressed.

Text is UTF-8 with a line of column names first; what stands between values is told from that line. "",
"?", "NA", "null" and their like (``aucmax.reading.text.MISSING_MARKS``) are missing values.

Errors name a row by its position among the rows of the table, from 0; the header is no row. Of a text
file they add the line, from 1.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from aucmax.reading.byte_streams import TableFile, file_hash, find_table, is_packed, read_all, unpacked
from aucmax.reading.delimited import line_of_row, read_text, text_batches, text_names
from aucmax.reading.frames import RowError, TableError, check_names, same_names
from aucmax.reading.libsvm import (
    is_feature,
    libsvm_batches,
    libsvm_names,
    line_of_libsvm_row,
    read_libsvm,
)
from aucmax.runtime import memory
from aucmax.runtime.parameters import check_number

#: What polars raises for files that make no sense; a panic is no Exception.
_BROKEN = (pl.exceptions.PolarsError, pl.exceptions.PanicException)

#: Bytes of a value in memory, where they are not 8 (numbers, dates) or 16 (text, at least).
_WIDTHS: dict[Any, int] = {
    pl.Boolean: 0,
    pl.Int8: 1,
    pl.UInt8: 1,
    pl.Int16: 2,
    pl.UInt16: 2,
    pl.Int32: 4,
    pl.UInt32: 4,
    pl.Float32: 4,
    pl.Date: 4,
    pl.Categorical: 4,
    pl.Null: 0,
}

__all__ = ["column_names", "file_hash", "located", "read_table", "table_batches"]


def read_table(
    path: str | Path, columns: Sequence[str] | None = None, *, schema: Mapping[str, Any] | None = None
) -> pl.DataFrame:
    """Read a table.

    Parameters
    ----------
    path : path
        A file whose name ends in .csv, .tsv, .txt, .parquet, .arrow, .feather or .libsvm (or a few
        others), perhaps with .gz, .bz2, .xz or .zst after it.
    columns : sequence of str, optional
        Columns to read, in this order; all by default. A LIBSVM file has "target", "f1", "f2" and
        so on.
    schema : dict from name to polars type, optional
        Types of columns in a text file; told from their values by default.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from aucmax.tables import read_table
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "people.csv"
    >>> _ = path.write_text("name;age\\nAda;36\\nGrace;?\\n")
    >>> read_table(path).to_dicts()
    [{'name': 'Ada', 'age': 36}, {'name': 'Grace', 'age': None}]
    >>> folder.cleanup()
    """
    file = find_table(path)
    _check_columns(file, columns)
    if file.format == "text":
        frame = read_text(file, columns, schema or {})
    elif file.format == "libsvm":
        frame = read_libsvm(file, columns)
    else:
        scan = _scan(file)
        scan = scan if columns is None else scan.select(list(dict.fromkeys(columns)))
        _check_size(file, scan)
        frame = _collected(file, scan)
        if not frame.height:
            raise TableError(f"{file.path} has columns and no rows.")
    return _in_order(frame, columns)


def table_batches(
    path: str | Path,
    rows: int = 100_000,
    columns: Sequence[str] | None = None,
    *,
    schema: Mapping[str, Any] | None = None,
) -> Iterator[pl.DataFrame]:
    """Read a table in parts of so many rows, in memory that does not grow with the file.

    Every part has the same types. In a text file they are those of ``schema``, and text for columns it
    does not name; without a schema they are told from the first 16 MB.
    A .zst file needs Python 3.14 or the package ``zstandard`` to be read in parts; without, it is
    unpacked in memory.

    Parameters
    ----------
    path, columns, schema
        As in :func:`read_table`.
    rows : int, default=100_000

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from aucmax.tables import table_batches
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "numbers.csv"
    >>> _ = path.write_text("a,b\\n1,2\\n3,4\\n5,6\\n")
    >>> [part["b"].to_list() for part in table_batches(path, rows=2)]
    [[2, 4], [6]]
    >>> folder.cleanup()
    """
    check_number("rows", rows, low=1, closed=True, integer=True)
    file = find_table(path)
    _check_columns(file, columns)
    if file.format == "text":
        parts: Iterable[pl.DataFrame] = text_batches(file, columns, schema or {})
    elif file.format == "libsvm":
        parts = libsvm_batches(file, columns)
    else:
        parts = _slices(file, rows, columns)
    for part in _even(parts, rows):
        yield _in_order(part, columns)


@contextmanager
def located(table: Any) -> Iterator[None]:
    """Add its line to an error that names a row of a text file; ``table`` may be no file at all."""
    try:
        yield
    except RowError as error:
        if error.where or not isinstance(table, str | Path):
            raise
        file = find_table(table)
        find = {"text": line_of_row, "libsvm": line_of_libsvm_row}.get(file.format)
        line = None if find is None else find(file, error.row)
        if line is None:
            raise
        raise error.in_file(str(file.path), line) from None


def column_names(path: str | Path) -> list[str]:
    """Names of a table's columns, without reading its rows (but for LIBSVM files)."""
    file = find_table(path)
    if file.format == "text":
        return text_names(file)
    if file.format == "libsvm":
        return libsvm_names(file)
    try:
        return _scan(file).collect_schema().names()
    except (*_BROKEN, OSError) as error:
        raise _damaged(file, error) from None


def _even(parts: Iterable[pl.DataFrame], rows: int) -> Iterator[pl.DataFrame]:
    """The same rows in parts of one size, but for the last."""
    waiting: list[pl.DataFrame] = []
    count = 0
    for part in parts:
        waiting.append(part)
        count += part.height
        if count < rows:
            continue
        whole = pl.concat(waiting)
        for start in range(0, count - rows + 1, rows):
            yield whole[start : start + rows]
        waiting, count = [whole[count - count % rows :]], count % rows
    if count:
        yield pl.concat(waiting)


def _check_columns(file: TableFile, columns: Sequence[str] | None) -> None:
    """Refuse columns that a file does not have, before it is read."""
    if columns is None or (file.format == "libsvm" and all(is_feature(name) for name in columns)):
        return
    check_names(column_names(file.path), columns, "is needed", f"{file.path}")


def _in_order(frame: pl.DataFrame, columns: Sequence[str] | None) -> pl.DataFrame:
    return frame if columns is None else frame.select(list(dict.fromkeys(columns)))


def _slices(file: TableFile, rows: int, columns: Sequence[str] | None) -> Iterator[pl.DataFrame]:
    scan = _scan(file)
    scan = scan if columns is None else scan.select(list(dict.fromkeys(columns)))
    count = int(_collected(file, scan.select(pl.len())).item())
    if not count:
        raise TableError(f"{file.path} has columns and no rows.")
    for start in range(0, count, rows):
        yield _collected(file, scan.slice(start, rows))


def _collected(file: TableFile, scan: pl.LazyFrame) -> pl.DataFrame:
    try:
        return scan.collect()
    except _BROKEN as error:
        raise _damaged(file, error) from None


def _check_size(file: TableFile, scan: pl.LazyFrame) -> None:
    """Refuse rows that, as the file declares them, do not fit into memory."""
    rows = int(_collected(file, scan.select(pl.len())).item())
    schema = _schema(file, scan)
    widths = [
        _WIDTHS.get(kind, 8 if kind.is_numeric() or kind.is_temporal() else 16) for kind in schema
    ]
    needed, free = rows * sum(widths), memory.available_bytes()
    if free is not None and needed > free:
        raise TableError(
            f"{file.path} declares {rows:,} rows of {len(widths)} columns, at least "
            f"{memory.format_bytes(needed)}, and {memory.format_bytes(free)} of memory is free: read "
            "some of its columns, or read it in parts (table_batches)."
        )


def _schema(file: TableFile, scan: pl.LazyFrame) -> list[pl.DataType]:
    try:
        return scan.collect_schema().dtypes()
    except (*_BROKEN, OSError) as error:
        raise _damaged(file, error) from None


def _damaged(file: TableFile, error: BaseException) -> TableError:
    if isinstance(error, pl.exceptions.DuplicateError):
        return same_names(str(file.path), error)
    kind = "Parquet" if file.format == "parquet" else "Arrow"
    reason = str(error).strip().split("\n", 1)[0].rstrip(".")
    return TableError(f"{file.path} is no {kind} file, or a damaged one ({reason}); get it anew.")


def _scan(file: TableFile) -> pl.LazyFrame:
    """A Parquet or Arrow file, unread; a packed one is unpacked in memory."""
    source: Any = file.path
    if is_packed(file.path):
        with unpacked(file.path) as stream:
            source = io.BytesIO(read_all(stream, file.path))
    elif not file.path.stat().st_size:
        raise TableError(f"{file.path} is empty.")
    if file.format == "parquet":
        return (
            pl.scan_parquet(source) if source is not file.path else pl.scan_parquet(source, glob=False)
        )
    if not _is_stream(source):
        return pl.scan_ipc(source)
    try:
        return pl.read_ipc_stream(source).lazy()
    except (*_BROKEN, OSError) as error:
        raise _damaged(file, error) from None


def _is_stream(source: Any) -> bool:
    """Whether an Arrow file is of the form for streams, which has no mark at its start."""
    if isinstance(source, io.BytesIO):
        return source.getbuffer()[:6] != b"ARROW1"
    with open(source, "rb") as file:
        return file.read(6) != b"ARROW1"
