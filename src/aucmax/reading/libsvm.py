"""LIBSVM files: a label and the features that are not zero, ``1 3:0.5 7:1``; read by scikit-learn."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from sklearn.datasets import load_svmlight_file

from aucmax.reading.byte_streams import TableFile, unpacked, whole_lines
from aucmax.reading.frames import RowError, TableError
from aucmax.runtime import memory

__all__ = [
    "TARGET",
    "is_feature",
    "libsvm_batches",
    "libsvm_names",
    "line_of_libsvm_row",
    "read_libsvm",
]

#: The name of the labels' column; features are f1, f2 and so on.
TARGET = "target"

# Possessive, so that a long number in a line that does not match is not tried in every length.
_NUMBER = rb"[+-]?+(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?+\d++)?+"
_LINE = re.compile(
    rb"\s*+" + _NUMBER + rb"(?:\s++qid:\d++)?+(?:\s++[1-9]\d*+:" + _NUMBER + rb")*+\s*+(?:#.*+)?+\s*+"
)
_WHOLE = re.compile(rb"\s*([+-]?\d+(\s|$)|$|#)")
#: The last feature of a line, before any remark.
_LAST = re.compile(rb"^[^#]*\s(\d+):")

#: Digits of the largest feature that a 64-bit index can be.
_MOST_DIGITS = 18

#: Memory that a column takes whatever its rows: its name, and polars' records.
_COLUMN_BYTES = 2000


def read_libsvm(file: TableFile, columns: Sequence[str] | None) -> pl.DataFrame:
    """A whole file, dense: features not written are 0."""
    return pl.concat(list(libsvm_batches(file, columns)))


def libsvm_batches(file: TableFile, columns: Sequence[str] | None) -> Iterator[pl.DataFrame]:
    """Parts of a file as they come. Features asked for and never written are 0 throughout."""
    size = _size(file)
    if columns is None:
        names = _names(file, size)
    else:
        names = [name for name in dict.fromkeys(columns) if is_feature(name)]
    places = np.array(sorted(int(name[1:]) for name in names if name != TARGET), dtype=np.int64)
    with unpacked(file.path) as stream:
        first_row, first_line = 0, 1
        for piece in whole_lines(stream, file.path):
            try:
                X, y = load_svmlight_file(
                    io.BytesIO(b"".join(piece)),
                    n_features=size.width,
                    zero_based=False,
                    dtype=np.float32,
                )
            except (ValueError, OverflowError) as error:
                raise _explained(file, piece, first_row, first_line, error) from None
            dense = _chosen(X, places)
            made = {f"f{place}": dense[:, i] for i, place in enumerate(places.tolist())}
            made[TARGET] = y.astype(np.int64) if size.whole else y
            yield pl.DataFrame({name: made[name] for name in names})
            first_row, first_line = first_row + len(y), first_line + len(piece)


def _chosen(X: Any, places: np.ndarray) -> np.ndarray:
    """Some features (counted from 1, rising) of sparse rows, with their zeros."""
    out = np.zeros((X.shape[0], places.size), dtype=X.dtype, order="F")
    if places.size:
        at = np.searchsorted(places, X.indices + 1)
        at[at == places.size] = 0
        hit = places[at] == X.indices + 1
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        out[rows[hit], at[hit]] = X.data[hit]
    return out


def is_feature(name: str) -> bool:
    """Whether a LIBSVM file may have a column of this name."""
    return name == TARGET or bool(re.fullmatch(r"f[1-9]\d*", name))


def libsvm_names(file: TableFile) -> list[str]:
    """The target, and features as far as any is written."""
    return _names(file, _size(file))


@dataclass(frozen=True)
class Size:
    """The largest feature of a file and its line, the number of lines, and if all labels are whole."""

    width: int
    line: int
    lines: int
    whole: bool


def _names(file: TableFile, size: Size) -> list[str]:
    """The names of all columns, if all columns with their zeros fit into memory."""
    needed, free = size.width * (4 * size.lines + _COLUMN_BYTES), memory.available_bytes()
    if free is not None and needed > free:
        raise _too_wide(
            file,
            size.line,
            f"{size.width:,}",
            f"so many columns and {size.lines:,} rows, written out with their zeros, need "
            f"{memory.format_bytes(needed)}, and {memory.format_bytes(free)} is free",
        )
    return [TARGET, *(f"f{i + 1}" for i in range(size.width))]


def _too_wide(file: TableFile, line: int, feature: str, why: str) -> TableError:
    return TableError(
        f"{file.path}: line {line} has the feature {feature}; {why}. Correct the line if it is a "
        "mistake, or read the file by sklearn.datasets.load_svmlight_file and fit to its sparse matrix."
    )


def _size(file: TableFile) -> Size:
    width, at, lines, whole = 0, 0, 0, True
    with unpacked(file.path) as stream:
        for piece in whole_lines(stream, file.path):
            # features are written in rising order: the last of a line is its largest
            for number, line in enumerate(piece, start=lines + 1):
                last = _LAST.search(line)
                if last is None:
                    continue
                if len(last[1]) > _MOST_DIGITS:
                    digits = f"{last[1][:3].decode()}... of {len(last[1]):,} digits"
                    raise _too_wide(file, number, digits, "so many columns are beyond any memory")
                if int(last[1]) > width:
                    width, at = int(last[1]), number
            lines += len(piece)
            whole = whole and all(_WHOLE.match(line) for line in piece)
    if not lines:
        raise TableError(f"{file.path} is empty; it should have a line for each row.")
    if not width:
        raise TableError(f"{file.path} has no features; a line should look like: 1 3:0.5 7:1")
    return Size(width, at, lines, whole)


def line_of_libsvm_row(file: TableFile, row: int) -> int | None:
    """The line, from 1, of a row, counted from 0; blank lines and comments are no rows."""
    with unpacked(file.path) as stream:
        for number, line in enumerate(stream, 1):
            if _is_row(line):
                row -= 1
            if row < 0:
                return number
    return None


def _is_row(line: bytes) -> bool:
    return bool(line.split(b"#", 1)[0].strip())


def _explained(
    file: TableFile, piece: list[bytes], first_row: int, first_line: int, error: Exception
) -> TableError:
    row = first_row
    for i, line in enumerate(piece):
        if _is_row(line) and not _LINE.fullmatch(line):
            shown = line.decode(errors="replace").strip()[:60]
            return RowError(
                f"Row {RowError.ROW} is not as LIBSVM writes it ({shown!r}); a line is a label, then "
                "place:value with places rising from 1.",
                row,
            ).in_file(str(file.path), first_line + i)
        row += _is_row(line)
    return TableError(f"{file.path} cannot be read near line {first_line}: {error}.")
