"""Tables as text: a line of column names, then rows, separated by commas, semicolons, tabs or bars.

A file is read in pieces of whole lines, so it may be larger than memory. Polars parses them. What it
refuses is read again by Python's csv module, slowly, to find the line and the reason.
"""

from __future__ import annotations

import csv
import io
import mmap
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import polars as pl

from aucmax.reading.byte_streams import TableFile, is_packed, join_pieces, line_pieces, unpacked
from aucmax.reading.frames import RowError, TableError, check_duplicates, reason_of, shown
from aucmax.reading.numerals import are_codes, as_number
from aucmax.reading.text import MISSING_MARKS, clean_text, without_marks
from aucmax.runtime.scalars import is_number

#: Rows from which column types are inferred at first.
_FIRST_ROWS = 10_000

#: Bytes besides the separator that a value may follow.
_BEFORE_ZERO = (b"\n", b'"', b" ")

_MAGIC = {b"PAR1": "a Parquet file", b"ARROW1": "an Arrow file", b"PK\x03\x04": "a zip or Excel file"}
_MAGIC |= dict.fromkeys((b"\xff\xfe", b"\xfe\xff"), "UTF-16 text")


@dataclass(frozen=True)
class Header:
    """The column names of a text table, and how its rows are written."""

    path: Path
    names: list[str]
    separator: str
    first_line: int  # of the rows, from 1
    has_note: bool  # whether a line such as "sep=;", for Excel, precedes the names

    def named(self, text: bytes) -> bytes:
        """Put a line of column names before some rows: polars counts the values of the first line."""
        line = io.StringIO()
        csv.writer(line, delimiter=self.separator, lineterminator="\n").writerow(self.names)
        return line.getvalue().encode() + text

    def parse(self, source: Path | bytes, **options: Any) -> pl.DataFrame:
        """Parse a file, or text with a line of column names."""
        marks = list(MISSING_MARKS)
        # Without glob=False, polars would take brackets and stars in a file's name for a pattern.
        return pl.read_csv(source, separator=self.separator, null_values=marks, glob=False, **options)


@dataclass(frozen=True)
class Piece:
    """Some rows of a text table, with the number of their first line."""

    header: Header
    text: bytes
    first_line: int


def read(file: TableFile, schema: Mapping[str, Any]) -> pl.DataFrame:
    """Read a whole table; infer the types of columns that ``schema`` lacks from all their values."""
    with unpacked(file.path) as stream:
        header = _read_header(file, stream)[0]
    source: Path | bytes = file.path
    if header.has_note or is_packed(file.path):
        source = header.named(join_pieces((piece.text for piece in _pieces(file)), file.path))
    types = {name: schema[name] for name in header.names if name in schema}
    options: dict[str, Any] = {"new_columns": header.names, "schema_overrides": types}
    try:
        try:
            frame = header.parse(source, infer_schema_length=_FIRST_ROWS, **options)
        except pl.exceptions.ComputeError:  # most often a value unlike the first ones
            frame = header.parse(source, infer_schema_length=None, **options)
    except pl.exceptions.PolarsError:
        # Read in pieces, which cleans values first, or names the fault and its line.
        return pl.concat(list(batches(file, schema or dict.fromkeys(header.names, pl.String))))
    frame = _with_leading_zeros(frame, header, source, types)
    if source is file.path and len(header.names) > 1:
        frame = frame.head(max(0, frame.height - _blank_lines_at_end(file.path)))
    if not frame.height:
        raise TableError(f"{file.path} has a header and no rows.")
    if frame[:, -1].null_count():  # polars fills up short rows
        row = 0
        for piece in _pieces(file):
            row += _check_rows(piece, row)
    return frame


def batches(file: TableFile, schema: Mapping[str, Any]) -> Iterator[pl.DataFrame]:
    """Read a table in parts.

    Without a schema, types are inferred from the first part; with one, columns it lacks are text.
    """
    types, first_row = dict(schema), 0
    for piece in _pieces(file):
        if not types:
            types = dict.fromkeys(piece.header.names, pl.String)
            with suppress(pl.exceptions.PolarsError):  # parsing it as text finds the fault
                source = piece.header.named(piece.text)
                found = piece.header.parse(source, infer_schema_length=None)
                types = dict(_with_leading_zeros(found, piece.header, source, {}).schema)
        frame = _parse(piece, types, first_row)
        yield frame
        first_row += frame.height
    if not first_row:
        raise TableError(f"{file.path} has a header and no rows.")


def names(file: TableFile) -> list[str]:
    """Return the column names of a text table."""
    with unpacked(file.path) as stream:
        return _read_header(file, stream)[0].names


def line_of_row(file: TableFile, row: int) -> int | None:
    """Return the line, from 1, on which a row, from 0, begins; None if there is no such row."""
    for piece in _pieces(file):
        lines = _row_lines(piece)
        if row < len(lines):
            return piece.first_line + lines[row]
        row -= len(lines)
    return None


# --- the header, and pieces of rows


def _read_header(file: TableFile, stream: IO[bytes]) -> tuple[Header, bytes]:
    """Read the line of column names; return it with what was read beyond it."""
    head = stream.read(2**16)
    if not head.strip():
        raise TableError(f"{file.path} is empty; it should have a line of column names, then rows.")
    if what := next((what for magic, what in _MAGIC.items() if head.startswith(magic)), None):
        raise TableError(
            f"{file.path} is {what}, not UTF-8 text; save it as that, or give it its own ending."
        )
    head = head.removeprefix(b"\xef\xbb\xbf")
    blank = head[: len(head) - len(head.lstrip(b"\r\n"))].count(b"\n")
    head = head.lstrip(b"\r\n")
    if note := re.match(rb'"?sep=([,;|\t])"?\r?\n', head):
        head, blank = head[note.end() :], blank + 1
    while (end := _line_end(head)) < 0 and (more := stream.read(2**20)):
        head += more
    line, rest = (head, b"") if end < 0 else (head[:end], head[end + 1 :])
    try:
        text = line.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise _not_utf8(file.path, 1, line[error.start]) from None
    usual = "\t" if file.ending in (".tsv", ".tab") else max(",;\t|", key=text.count)
    separator = note[1].decode() if note else usual
    try:
        written = next(csv.reader(io.StringIO(text), delimiter=separator), [""])
    except csv.Error as error:
        raise TableError(
            f"{file.path}: the line of column names cannot be read ({error}); it may have a quote "
            '(") that is not closed, or line ends of an old Mac.'
        ) from None
    names = [name.strip() or f"column {i + 1}" for i, name in enumerate(written)]
    check_duplicates(names, str(file.path))
    if all(is_number(name) for name in names):
        raise TableError(
            f"{file.path} begins with a row of numbers ({text[:40]}); its first line should name the "
            "columns."
        )
    return Header(file.path, names, separator, 2 + blank + text.count("\n"), bool(note)), rest


def _line_end(text: bytes) -> int:
    """Return the end of the first line, which is not within quotes, or -1."""
    end = text.find(b"\n")
    while end >= 0 and text.count(b'"', 0, end) % 2:
        end = text.find(b"\n", end + 1)
    return end


def _pieces(file: TableFile) -> Iterator[Piece]:
    """Cut the rows of a file into pieces of whole lines."""
    with unpacked(file.path) as stream:
        header, rest = _read_header(file, stream)
        for text, line in line_pieces(stream, file.path, rest, header.first_line):
            if len(header.names) == 1 or text.strip(b"\r\n"):  # a blank line may be a missing value
                yield Piece(header, text, line)


def _blank_lines_at_end(path: Path) -> int:
    """Count the blank lines that end a file; polars takes each for a row of missing values."""
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        tail = file.read()
    return max(0, tail[len(tail.rstrip(b"\r\n")) :].count(b"\n") - 1)


# --- values


def _with_leading_zeros(
    frame: pl.DataFrame, header: Header, source: Path | bytes, types: Mapping[str, Any]
) -> pl.DataFrame:
    """Keep columns of digits as text if one of their values has a leading zero, as "00037" does.

    Polars reads such codes as integers and loses the zeros. A search of the raw bytes, which is quick,
    finds most files to have none; only otherwise are the integer columns parsed again, as text.
    """
    whole = [name for name in frame.columns if frame[name].dtype.is_integer() and name not in types]
    if not whole or not _has_leading_zero(source, header.separator):
        return frame
    numbers = [header.names.index(name) for name in whole]
    text = header.parse(source, columns=numbers, infer_schema_length=0)  # all as text
    text.columns = whole
    codes = [series for series in text if are_codes(series.str.strip_chars())]
    return frame.with_columns(codes) if codes else frame


def _has_leading_zero(source: Path | bytes, separator: str) -> bool:
    # One pattern for each byte before the zero: a literal first byte doubles the speed.
    patterns = [re.compile(re.escape(byte) + b"0[0-9]") for byte in (separator.encode(), *_BEFORE_ZERO)]
    if isinstance(source, bytes):
        return any(pattern.search(source) for pattern in patterns)
    with open(source, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        return any(pattern.search(mapped) for pattern in patterns)


def _parse(piece: Piece, types: Mapping[str, Any], first_row: int) -> pl.DataFrame:
    """Parse a piece with these types, and text for other columns; name the row and line of a fault."""
    header = piece.header
    source = header.named(piece.text)
    schema = {name: types.get(name, pl.String) for name in header.names}
    try:
        frame = header.parse(source, schema=schema)
        if frame[:, -1].null_count():  # polars fills up short rows
            _check_rows(piece, first_row)
        return frame
    except pl.exceptions.PolarsError:
        _check_rows(piece, first_row)
    try:
        frame = header.parse(source, schema=dict.fromkeys(schema, pl.String))
    except pl.exceptions.PolarsError as error:
        _check_rows(piece, first_row, strict=True)
        raise _unreadable(piece, error) from None
    try:
        return frame.with_columns([_converted(series, schema[series.name]) for series in frame])
    except RowError as error:
        line = piece.first_line + _row_lines(piece)[error.row]
        raise error.moved(first_row + error.row).in_file(str(header.path), line) from None


def _converted(text: pl.Series, kind: Any) -> pl.Series:
    """Convert text to another type; refuse the first value that cannot be converted."""
    if kind == pl.String:
        return text
    clean = clean_text(text)
    if kind == pl.Boolean:
        values = clean.str.to_lowercase().replace_strict(
            {"true": True, "false": False}, default=None, return_dtype=pl.Boolean
        )
    else:
        clean = without_marks(clean)
        values = as_number(clean, "plain").cast(kind, strict=False)
    bad = clean.is_not_null() & values.is_null()
    if bad.any():
        row = int(bad.arg_max() or 0)
        what = "true or false" if kind == pl.Boolean else "a number"
        raise RowError(
            f"Column {text.name!r} holds {shown(text[row])} in row {RowError.ROW}, where {what} was "
            "expected; correct it or leave it empty.",
            row,
        )
    return values


# --- faults


def _check_rows(piece: Piece, first_row: int, *, strict: bool = False) -> int:
    """Refuse the first row with too few or too many values; return the number of rows.

    If ``strict``, text after a closing quote is refused as well.
    """
    width, separator = len(piece.header.names), piece.header.separator.encode()
    if b'"' not in piece.text and piece.text.isascii():  # the usual case, without parsing
        lines = (line for line in piece.text.split(b"\n") if line not in (b"", b"\r"))
        if {line.count(separator) for line in lines} <= {width - 1}:
            return len(_row_lines(piece))
    row = first_row
    for line, n_lines, values in _csv_rows(piece, strict=strict):
        if values and len(values) != width:
            found = "1 value" if len(values) == 1 else f"{len(values)} values"
            sentence = (
                f"Row {RowError.ROW} has {found} where the header has {width} columns; correct the "
                "line (a value that holds the separator needs quotes around it)."
            )
            if n_lines > 1:
                sentence = (
                    f'A quote (") in row {RowError.ROW} is not closed within its line, and leaves '
                    f"{found} where the header has {width}; close it or double it."
                )
            raise RowError(sentence, row).in_file(str(piece.header.path), piece.first_line + line)
        row += 1
    return row - first_row


def _row_lines(piece: Piece) -> Sequence[int]:
    """Return the line on which each row of a piece begins, counted from its first line."""
    if b'"' not in piece.text:
        return range(piece.text.count(b"\n") + (not piece.text.endswith(b"\n")))
    return [line for line, _, _ in _csv_rows(piece)]


def _csv_rows(piece: Piece, *, strict: bool = False) -> Iterator[tuple[int, int, list[str]]]:
    """Yield the first line of each row, from 0, its number of lines and its values."""
    path = piece.header.path
    try:
        text = io.StringIO(piece.text.decode(), newline="")
    except UnicodeDecodeError as error:
        line = piece.first_line + piece.text.count(b"\n", 0, error.start)
        raise _not_utf8(path, line, piece.text[error.start]) from None
    reader = csv.reader(text, delimiter=piece.header.separator, strict=strict)
    line = 0
    try:
        for values in reader:
            yield line, reader.line_num - line, values
            line = reader.line_num
    except csv.Error as error:
        raise TableError(
            f"{path}: line {piece.first_line + line} cannot be read ({error}); it may have a quote "
            '(") that is not closed or not doubled, or line ends of an old Mac.'
        ) from None


def _unreadable(piece: Piece, error: Exception) -> TableError:
    """Describe what only polars refuses, with the line of a quote that may be part of a value."""
    lines = enumerate(piece.text.split(b"\n"), piece.first_line)
    odd = next((number for number, line in lines if line.count(b'"') % 2), None)
    hint = f'; if the quote (") in line {odd} is part of its value, double it and quote the value'
    return TableError(f"{piece.header.path} cannot be read: {reason_of(error)}{hint if odd else ''}.")


def _not_utf8(path: Path, line: int, byte: int) -> TableError:
    return TableError(
        f"{path} is not UTF-8 text: line {line} has the byte 0x{byte:02x}; name its encoding, for "
        "example with --encoding latin-1, or save it as UTF-8."
    )
