"""LIBSVM files: a label and the features that are not zero, ``1 3:0.5 7:1``; read by scikit-learn."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from sklearn.datasets import load_svmlight_file

from aucmax._memory import check_fits
from aucmax.reading.files import TableFile, unpacked
from aucmax.reading.frames import RowError, TableError

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

_PIECE = 2**23
_NUMBER = rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_LINE = re.compile(rb"\s*" + _NUMBER + rb"(\s+qid:\d+)?(\s+[1-9]\d*:" + _NUMBER + rb")*\s*(#.*)?\s*")
_WHOLE = re.compile(rb"\s*([+-]?\d+(\s|$)|$|#)")
_PLACE = re.compile(rb"\s(\d+):")


def read_libsvm(file: TableFile, columns: Sequence[str] | None) -> pl.DataFrame:
    """A whole file, dense: features not written are 0."""
    return pl.concat(list(libsvm_batches(file, columns)))


def libsvm_batches(file: TableFile, columns: Sequence[str] | None) -> Iterator[pl.DataFrame]:
    """Parts of a file as they come. Features asked for and never written are 0 throughout."""
    width, lines, whole = _size(file)
    if columns is None:
        names = _names(width)
    else:
        names = [name for name in dict.fromkeys(columns) if is_feature(name)]
        width = max([width, *(int(name[1:]) for name in names if name != TARGET)])
    check_fits(f"{file.path}, written out with its zeros,", 4 * lines * len(names), None)
    with unpacked(file.path) as stream:
        first_row, first_line = 0, 1
        while piece := stream.readlines(_PIECE):
            try:
                X, y = load_svmlight_file(
                    io.BytesIO(b"".join(piece)), n_features=width, zero_based=False, dtype=np.float32
                )
            except (ValueError, OverflowError) as error:
                raise _explained(file, piece, first_row, first_line, error) from None
            labels = y.astype(np.int64) if whole else y
            X = X.tocsc()
            made = {
                name: labels if name == TARGET else X[:, [int(name[1:]) - 1]].toarray().ravel()
                for name in names
            }
            yield pl.DataFrame(made)
            first_row, first_line = first_row + len(y), first_line + len(piece)


def is_feature(name: str) -> bool:
    """Whether a LIBSVM file may have a column of this name."""
    return name == TARGET or bool(re.fullmatch(r"f[1-9]\d*", name))


def libsvm_names(file: TableFile) -> list[str]:
    """The target, and features as far as any is written."""
    return _names(_size(file)[0])


def _names(width: int) -> list[str]:
    return [TARGET, *(f"f{i + 1}" for i in range(width))]


def _size(file: TableFile) -> tuple[int, int, bool]:
    """The largest feature, the number of lines, and whether all labels are whole numbers."""
    width, lines, whole = 0, 0, True
    with unpacked(file.path) as stream:
        while piece := stream.readlines(_PIECE):
            lines += len(piece)
            # features are written in rising order: the last of a line is its largest
            last = [int(found[-1]) for line in piece if (found := _PLACE.findall(line))]
            width = max([width, *last])
            whole = whole and all(_WHOLE.match(line) for line in piece)
    if not lines:
        raise TableError(f"{file.path} is empty; it should have a line for each row.")
    if not width:
        raise TableError(f"{file.path} has no features; a line should look like: 1 3:0.5 7:1")
    return width, lines, whole


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
