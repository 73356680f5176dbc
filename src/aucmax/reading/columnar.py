"""Parquet and Arrow files, read by polars."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import polars as pl

from aucmax.reading.byte_streams import PIECE, TableFile, check_memory, is_packed, join_pieces, unpacked
from aucmax.reading.frames import TableError, reason_of, same_names

#: What polars raises for damaged files; a panic is not an Exception.
_BROKEN = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)


def read(file: TableFile, columns: Sequence[str] | None) -> pl.DataFrame:
    """Read a whole file, if it fits into memory."""
    with _naming_damage(file):
        scan, rows = _scan(file, columns)
        schema = scan.collect_schema()
        # Of null text, polars counts no bytes; each takes 16, and long text takes more.
        text = 16 * sum(kind in (pl.String, pl.Binary) for kind in schema.dtypes())
        sample = pl.DataFrame(schema=schema).clear(1024)
        check_memory(
            rows * (text + int(sample.estimated_size()) // 1024),
            f"{file.path} declares {rows:,} rows of {len(schema)} columns, at least",
            "read some of its columns, or read it in parts (table_batches)",
        )
        return scan.collect()


def batches(file: TableFile, rows: int, columns: Sequence[str] | None) -> Iterator[pl.DataFrame]:
    """Read a file in parts of ``rows`` rows."""
    with _naming_damage(file):
        scan, count = _scan(file, columns)
    for start in range(0, count, rows):
        with _naming_damage(file):
            part = scan.slice(start, rows).collect()
        yield part


def names(file: TableFile) -> list[str]:
    """Return the names of a file's columns."""
    with _naming_damage(file):
        return _open(file).collect_schema().names()


def _scan(file: TableFile, columns: Sequence[str] | None) -> tuple[pl.LazyFrame, int]:
    """Return some columns of a file, unread, and its number of rows."""
    scan = _open(file)
    if columns is not None:
        scan = scan.select(list(dict.fromkeys(columns)))
    rows = int(scan.select(pl.len()).collect().item())
    if not rows:
        raise TableError(f"{file.path} has columns and no rows.")
    return scan, rows


def _open(file: TableFile) -> pl.LazyFrame:
    """Open a file without reading it; a packed file is unpacked in memory."""
    source: Any = file.path
    with unpacked(file.path) as stream:
        start = stream.read(6)
        if not start:
            raise TableError(f"{file.path} is empty.")
        if is_packed(file.path):
            pieces = chain([start], iter(lambda: stream.read(PIECE), b""))
            source = io.BytesIO(join_pieces(pieces, file.path))
    if file.format == "parquet":
        return pl.scan_parquet(source, glob=False)
    # Arrow's format for streams has no mark at its start.
    return pl.scan_ipc(source) if start == b"ARROW1" else pl.read_ipc_stream(source).lazy()


@contextmanager
def _naming_damage(file: TableFile) -> Iterator[None]:
    """Turn polars' errors about a damaged file into one sentence that names the file."""
    try:
        yield
    except pl.exceptions.DuplicateError as error:
        raise same_names(str(file.path), error) from None
    except _BROKEN as error:
        what = f"{file.path} is not a valid {file.format.capitalize()} file"
        raise TableError(f"{what} ({reason_of(error)}); download or save it again.") from None
