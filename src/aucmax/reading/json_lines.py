"""Tables with one JSON object on each line, whose keys are the columns."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from aucmax.reading.byte_streams import TableFile, line_pieces, unpacked
from aucmax.reading.frames import RowError, TableError, reason_of
from aucmax.reading.text import MISSING_MARKS


def read(file: TableFile, schema: Mapping[str, Any]) -> pl.DataFrame:
    """Read a whole file; columns are in the order in which their keys first occur."""
    parts = [frame for _, frame in _parsed(file)]
    return _with_types(pl.concat(parts, how="diagonal_relaxed"), schema)


def batches(file: TableFile, schema: Mapping[str, Any]) -> Iterator[pl.DataFrame]:
    """Read a file in parts, all with the columns and types of ``schema`` or of the first part."""
    columns, types, first_row = names(file), dict(schema), 0
    for _, frame in _parsed(file):
        absent = [pl.lit(None).alias(name) for name in columns if name not in frame.columns]
        frame = frame.with_columns(absent).select(columns)
        types = types or dict(frame.schema)
        try:
            yield _with_types(frame, {name: types.get(name, pl.String) for name in columns})
        except RowError as error:  # its row counts within the part
            raise error.moved(first_row + error.row) from None
        first_row += frame.height


def names(file: TableFile) -> list[str]:
    """Return the keys of the first rows."""
    _, frame = next(_parsed(file))
    return frame.columns


def line_of_row(file: TableFile, row: int) -> int | None:
    """Return the line, from 1, of a row, from 0; None if there is no such row."""
    for first_line, text in _pieces(file):
        for number, line in enumerate(text.split(b"\n"), first_line):
            if line.strip():
                if row == 0:
                    return number
                row -= 1
    return None


def _pieces(file: TableFile) -> Iterator[tuple[int, bytes]]:
    """Yield the first line's number and the text of each piece of whole lines."""
    with unpacked(file.path) as stream:
        for text, line in line_pieces(stream, file.path):
            yield line, text.removeprefix(b"\xef\xbb\xbf")


def _parsed(file: TableFile) -> Iterator[tuple[int, pl.DataFrame]]:
    found = False
    for line, text in _pieces(file):
        if not text.strip():
            continue
        try:
            frame = pl.read_ndjson(io.BytesIO(text), infer_schema_length=None)
        except pl.exceptions.PolarsError as error:
            raise _fault(file, line, text, error) from None
        found = found or frame.height > 0
        yield line, frame
    if not found:
        raise TableError(f"{file.path} is empty; it should have a JSON object on each line.")


def _fault(file: TableFile, first_line: int, text: bytes, error: Exception) -> TableError:
    """Name the first line that is no JSON object."""
    row = -1
    for number, line in enumerate(text.split(b"\n"), first_line):
        if not line.strip():
            continue
        row += 1
        try:
            value = json.loads(line)
        except ValueError as reason:
            what = f"is no JSON ({reason_of(reason)})"
        else:
            if isinstance(value, dict):
                continue
            what = f"is a JSON {type(value).__name__}, not an object with the columns as keys"
        return TableError(f"{file.path}: line {number} {what}; each line must be one JSON object.")
    return TableError(f"{file.path} cannot be read: {reason_of(error)}.")


def _with_types(frame: pl.DataFrame, schema: Mapping[str, Any]) -> pl.DataFrame:
    """Cast columns; text that marks a missing value becomes null."""
    text = [name for name, kind in frame.schema.items() if kind == pl.String]
    marked = pl.col(text).str.strip_chars().is_in(list(MISSING_MARKS))
    frame = frame.with_columns(pl.when(~marked).then(pl.col(text)).name.keep()) if text else frame
    wanted = {name: kind for name, kind in schema.items() if name in frame.columns}
    for name, kind in wanted.items():
        series = frame[name]
        cast = series.cast(kind, strict=False)
        bad = series.is_not_null() & cast.is_null()
        if bad.any():
            row = int(bad.arg_max() or 0)
            raise RowError(
                f"Column {name!r} holds {series[row]!r} in row {RowError.ROW}, where a number was "
                "expected; correct it or leave it empty.",
                row,
            )
        frame = frame.with_columns(cast)
    return frame
