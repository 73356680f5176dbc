"""Tables as text: values between commas, semicolons, tabs or bars, the first line naming the columns.

A file is read in pieces that end with a line, each parsed by polars, so one larger than memory works.
What polars refuses is looked at again, slowly, for the line and the reason.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import polars as pl

from aucmax.reading.byte_streams import TableFile, check_line, is_packed, read_all, unpacked
from aucmax.reading.frames import RowError, TableError, check_duplicates, shown
from aucmax.reading.text import MISSING_MARKS, as_number, clean_text, without_marks

__all__ = ["line_of_row", "read_text", "text_batches", "text_names"]

#: Bytes parsed at a time, and rows that column types are first told from.
PIECE = 2**24
_TYPE_ROWS = 10_000

_MARKS = {b"PAR1": "a Parquet file", b"ARROW1": "an Arrow file", b"PK\x03\x04": "a zip or Excel file"}


@dataclass(frozen=True)
class Header:
    """The names of a text table's columns, as they are written and as we call them."""

    path: Path
    written: list[str]
    names: list[str]
    separator: str
    first_line: int  # of the rows, from 1
    noted: bool  # whether a line such as "sep=;", for Excel, comes before it

    def chosen(self, columns: Sequence[str] | None) -> list[int]:
        """Places of some columns, in the file's order; names it does not have are passed over."""
        wanted = set(self.names if columns is None else columns)
        return [i for i, name in enumerate(self.names) if name in wanted]


def read_text(
    file: TableFile, columns: Sequence[str] | None, schema: Mapping[str, Any]
) -> pl.DataFrame:
    """A whole text table; types that are not given are told from all values."""
    with unpacked(file.path) as stream:
        header, rest = _read_header(file, stream)
        source: Any = file.path
        if packed := is_packed(file.path) or header.noted:
            source = b"".join([_line(header.written, header), rest, read_all(stream, file.path)])
    # All columns are read, also where few are wanted: only so a row of too many values shows.
    options: dict[str, Any] = {
        "separator": header.separator,
        "null_values": list(MISSING_MARKS),
        "schema_overrides": {
            written: schema[name]
            for written, name in zip(header.written, header.names, strict=True)
            if name in schema
        },
    }
    if not packed:
        options["glob"] = False  # a name with brackets or stars in it is one file's
    try:
        try:
            frame = pl.read_csv(source, infer_schema_length=_TYPE_ROWS, **options)
        except pl.exceptions.ComputeError:  # most often a value unlike the first ones
            frame = pl.read_csv(source, infer_schema_length=None, **options)
    except pl.exceptions.PolarsError as error:
        _find_fault(file)
        if not schema:
            _find_fault(file, strict=True)
            with unpacked(file.path) as stream:
                hint = _odd_quote(stream)
            raise TableError(f"{file.path} cannot be read: {_first_line(error)}{hint}.") from None
        return pl.concat(list(text_batches(file, columns, schema)))  # which cleans values first
    if len(header.names) > 1 and (blank := _blank_lines_at_end(source)):
        frame = frame[:-blank]
    if not frame.height:
        raise _no_rows(file.path)
    if frame[:, -1].null_count():
        _find_fault(file)
    frame.columns = header.names
    return frame[:, header.chosen(columns)]


def text_batches(
    file: TableFile, columns: Sequence[str] | None, schema: Mapping[str, Any]
) -> Iterator[pl.DataFrame]:
    """Parts of a text table as they come.

    Without a schema types are told from the first part; with one, columns it does not name are text.
    """
    with unpacked(file.path) as stream:
        header, rest = _read_header(file, stream)
        chosen = header.chosen(columns)
        types = {name: schema.get(name, pl.String) for name in header.names}
        first_row, first_line, told = 0, header.first_line, bool(schema)
        for piece in _pieces(file.path, stream, rest, header):
            if not told:
                types |= _told_types(piece, header)
                told = True
            frame = _parse(piece, header, types, first_row, first_line)
            yield frame[:, chosen]
            first_row, first_line = first_row + frame.height, first_line + piece.count(b"\n")
        if not first_row:
            raise _no_rows(file.path)


def text_names(file: TableFile) -> list[str]:
    """Names of a text table's columns."""
    with unpacked(file.path) as stream:
        return _read_header(file, stream)[0].names


def _read_header(file: TableFile, stream: IO[bytes]) -> tuple[Header, bytes]:
    """The first line, and what was read beyond it."""
    head = stream.read(2**16)
    if not head.strip():
        raise TableError(f"{file.path} is empty; it should have a line of column names, then rows.")
    for mark, what in _MARKS.items():
        if head.startswith(mark):
            raise TableError(f"{file.path} is {what} and not text; give it the ending of its format.")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _not_utf8(file.path, "it is UTF-16", "utf-16")
    head = head.removeprefix(b"\xef\xbb\xbf")
    blank = head[: len(head) - len(head.lstrip(b"\r\n"))].count(b"\n")
    head = head.lstrip(b"\r\n")
    if noted := re.match(rb'"?sep=([,;|\t])"?\r?\n', head):
        head, blank = head[noted.end() :], blank + 1
    end = _line_end(head)
    while end < 0 and (more := stream.read(2**20)):
        head += more
        end = _line_end(head)
    line, rest = (head, b"") if end < 0 else (head[:end], head[end + 1 :])
    try:
        text = line.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise _not_utf8(file.path, f"line 1 has the byte 0x{line[error.start]:02x}") from None
    if noted:
        separator = noted[1].decode()
    else:
        separator = "\t" if file.ending in (".tsv", ".tab") else max(",;\t|", key=text.count)
    try:
        written = next(csv.reader(io.StringIO(text), delimiter=separator), [""])
    except csv.Error as error:
        raise TableError(
            f"{file.path}: the line of column names cannot be read ({error}); it may have a quote "
            '(") that is not closed, or line ends of an old Mac.'
        ) from None
    names = [name.strip() or f"column {i + 1}" for i, name in enumerate(written)]
    check_duplicates(names, str(file.path))
    if all(_is_number(name) for name in names):
        raise TableError(
            f"{file.path} begins with a row of numbers ({text[:40]}); its first line should name the "
            "columns."
        )
    first_line = 2 + blank + text.count("\n")
    return Header(file.path, written, names, separator, first_line, bool(noted)), rest


def _line(names: Sequence[str], header: Header) -> bytes:
    line = io.StringIO()
    csv.writer(line, delimiter=header.separator, lineterminator="\n").writerow(names)
    return line.getvalue().encode()


def _blank_lines_at_end(source: bytes | Path) -> int:
    """Polars takes each for a row of missing values."""
    if isinstance(source, bytes):
        tail = source[-4096:]
    else:
        with open(source, "rb") as file:
            file.seek(max(0, source.stat().st_size - 4096))
            tail = file.read()
    return max(0, tail[len(tail.rstrip(b"\r\n")) :].count(b"\n") - 1)


def _line_end(text: bytes) -> int:
    """Where the first line ends that is not within quotes, or -1."""
    end = text.find(b"\n")
    while end >= 0 and text.count(b'"', 0, end) % 2:
        end = text.find(b"\n", end + 1)
    return end


def _pieces(path: Path, stream: IO[bytes], rest: bytes, header: Header) -> Iterator[bytes]:
    """What is left of a stream, cut where lines end that are not within quotes.

    Blank lines at its end are left out, unless they may be the missing values of a single column.
    """
    lines = header.first_line
    while more := stream.read(PIECE):
        rest += more
        end = rest.rfind(b"\n")
        if rest.count(b'"', 0, end + 1) % 2 and len(rest) < 4 * PIECE:  # else a quote is no quote
            end = rest.rfind(b"\n", 0, rest.rfind(b'"', 0, end))
        if end > 0:
            yield rest[: end + 1]
            lines += rest.count(b"\n", 0, end + 1)
            rest = rest[end + 1 :]
        check_line(path, lines, len(rest))
    rest = rest if len(header.names) == 1 else rest.rstrip(b"\r\n")
    if rest:
        yield rest


def _told_types(piece: bytes, header: Header) -> dict[str, Any]:
    try:
        frame = pl.read_csv(
            _line(header.names, header) + piece,
            separator=header.separator,
            null_values=list(MISSING_MARKS),
            infer_schema_length=None,
        )
    except pl.exceptions.PolarsError:
        return {}  # said when it is parsed
    return dict(frame.schema)


def _parse(
    piece: bytes,
    header: Header,
    types: Mapping[str, Any],
    first_row: int,
    first_line: int,
) -> pl.DataFrame:
    """One piece with the types given; what is wrong in it is named with its line or row."""
    marks = list(MISSING_MARKS)
    named = _line(header.names, header) + piece  # polars counts the values of the first line

    def read(types: Mapping[str, Any], **more: Any) -> pl.DataFrame:
        return pl.read_csv(
            named,
            separator=header.separator,
            schema=dict(types),
            **more,
        )

    frame = None
    try:
        # Looking for marks at every value takes a third more time, and among numbers they show.
        frame = read(types)
        text = pl.col(pl.String)
        frame = frame.with_columns(pl.when(~text.is_in(marks)).then(text).name.keep())
    except pl.exceptions.PolarsError:
        with suppress(pl.exceptions.PolarsError):
            frame = read(types, null_values=marks)
    if frame is None:
        _check_lines(piece, header, first_row, first_line)
        try:
            frame = read(dict.fromkeys(types, pl.String), null_values=marks)
        except pl.exceptions.PolarsError as error:
            _check_lines(piece, header, first_row, first_line, strict=True)
            hint = _odd_quote(piece.split(b"\n"), first_line)
            raise TableError(f"{header.path} cannot be read: {_first_line(error)}{hint}.") from None
        try:
            return frame.with_columns([_converted(series, types[series.name]) for series in frame])
        except RowError as error:
            line = first_line + _row_lines(piece, header.separator)[error.row]
            raise error.moved(first_row + error.row).in_file(str(header.path), line) from None
    if frame[:, -1].null_count():
        _check_lines(piece, header, first_row, first_line)
    return frame


def _converted(text: pl.Series, kind: Any) -> pl.Series:
    """Text as another type; the first value that cannot be converted is refused."""
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
            "expected; mend it or leave it empty.",
            row,
        )
    return values


# --- what is wrong with a file


def _find_fault(file: TableFile, *, strict: bool = False) -> None:
    """Raise for the first line that is no UTF-8 or has too few or too many values, if there is one."""
    with unpacked(file.path) as stream:
        header, rest = _read_header(file, stream)
        row, line = 0, header.first_line
        for piece in _pieces(file.path, stream, rest, header):
            row += _check_lines(piece, header, row, line, strict=strict)
            line += piece.count(b"\n")


def line_of_row(file: TableFile, row: int) -> int | None:
    """The line, from 1, on which a row, counted from 0, begins; None where there is no such row."""
    with unpacked(file.path) as stream:
        header, rest = _read_header(file, stream)
        first_line = header.first_line
        for piece in _pieces(file.path, stream, rest, header):
            lines = _row_lines(piece, header.separator)
            if row < len(lines):
                return first_line + int(lines[row])
            row, first_line = row - len(lines), first_line + piece.count(b"\n")
    return None


def _row_lines(piece: bytes, separator: str) -> Sequence[int]:
    """The line that each row of a piece begins on, from 0."""
    if b'"' not in piece:
        return range(piece.count(b"\n") + (not piece.endswith(b"\n")))
    reader = csv.reader(io.StringIO(piece.decode(errors="replace"), newline=""), delimiter=separator)
    begins, before = [], 0
    for _ in reader:
        begins.append(before)
        before = reader.line_num
    return begins


def _odd_quote(lines: Iterable[bytes], first_line: int = 1) -> str:
    """Where a quote may be meant as a part of the text, as inches are."""
    for number, line in enumerate(lines, first_line):
        if line.count(b'"') % 2:
            return (
                f'; if the quote (") in line {number} is a part of its value, double it and put '
                "the value in quotes"
            )
    return ""


def _check_lines(
    piece: bytes, header: Header, first_row: int, first_line: int, *, strict: bool = False
) -> int:
    """Refuse the first row with too few or too many values; how many rows there are.

    If ``strict``, text after a closing quote is refused, too.
    """
    width = len(header.names)
    separator = header.separator.encode()
    if b'"' not in piece and piece.isascii():  # the usual case, without a parse
        commas = {line.count(separator) for line in piece.split(b"\n") if line not in (b"", b"\r")}
        if commas <= {width - 1}:
            return len(_row_lines(piece, header.separator))
    try:
        text = piece.decode()
    except UnicodeDecodeError as error:
        line = first_line + piece.count(b"\n", 0, error.start)
        raise _not_utf8(header.path, f"line {line} has the byte 0x{piece[error.start]:02x}") from None
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=header.separator, strict=strict)
    before, row = 0, first_row
    while True:
        line = first_line + before
        try:
            fields = next(reader, None)
        except csv.Error as error:
            raise TableError(
                f'{header.path}: line {line} cannot be read ({error}); it may have a quote (") that is '
                "not closed or not doubled, or line ends of an old Mac."
            ) from None
        if fields is None:
            return row - first_row
        if fields and len(fields) != width:
            raise _wrong_width(header, row, line, len(fields), reader.line_num - before)
        before, row = reader.line_num, row + 1


def _wrong_width(header: Header, row: int, line: int, found: int, lines: int) -> RowError:
    width = len(header.names)
    values = "1 value" if found == 1 else f"{found} values"
    sentence = (
        f"Row {RowError.ROW} has {values} where the header has {width} columns; mend the line (a "
        "value that holds the separator needs quotes around it)."
    )
    if lines > 1:
        sentence = (
            f'A quote (") in row {RowError.ROW} is not closed within its line, and leaves '
            f"{values} where the header has {width}; close it or double it."
        )
    return RowError(sentence, row).in_file(str(header.path), line)


def _not_utf8(path: Path, where: str, encoding: str = "latin-1") -> TableError:
    return TableError(
        f"{path} is not UTF-8 text: {where}; save it as UTF-8, for example by "
        f"iconv -f {encoding} -t utf-8 {path.name} > new.csv."
    )


def _no_rows(path: Path) -> TableError:
    return TableError(f"{path} has a header and no rows.")


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0].rstrip(".")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
