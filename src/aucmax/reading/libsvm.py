"""LIBSVM files: a label and the features that are not zero, ``1 3:0.5 7:1``; parsed by scikit-learn."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from aucmax.reading.byte_streams import TableFile, check_memory, line_pieces, unpacked
from aucmax.reading.frames import RowError, TableError, shown

#: The column of labels; features are f1, f2 and so on.
TARGET = "target"

_WHOLE = re.compile(rb"\s*([+-]?\d+(\s|$)|$|#)")
#: The last feature of a line, before any comment.
_LAST = re.compile(rb"^[^#]*\s(\d+):")

#: Digits of the largest feature that a 64-bit index can be.
_MOST_DIGITS = 18

_TOO_WIDE = (
    "correct the line if it is a mistake, or read the file by sklearn.datasets.load_svmlight_file and "
    "fit to its sparse matrix"
)

#: Memory that a column takes without any rows: its name, and polars' records.
_COLUMN_BYTES = 2000


class BadLineError(ValueError):
    """A line is not in the LIBSVM format; ``args`` are its position, from 0, and its text."""


def parse_text(text: bytes, width: int) -> tuple[Any, np.ndarray]:
    """Return the features of some lines as a CSR matrix of float32, and their labels."""
    try:
        return _load(text, width)
    except (ValueError, OverflowError):
        lines = io.BytesIO(text).readlines()
    good, bad = 0, len(lines)
    while bad - good > 1:  # lines before ``good`` can be read, and some line before ``bad`` cannot
        middle = (good + bad) // 2
        try:
            _load(b"".join(lines[good:middle]), width)
            good = middle
        except (ValueError, OverflowError):
            bad = middle
    raise BadLineError(good, shown(lines[good].decode(errors="replace").strip()))


def _load(text: bytes, width: int) -> tuple[Any, np.ndarray]:
    from sklearn.datasets import load_svmlight_file  # slow to load, and only these files need it

    file = io.BytesIO(text)
    X, y = load_svmlight_file(file, n_features=width, zero_based=False, dtype=np.float32)
    return X, y


def read(file: TableFile, columns: Sequence[str] | None) -> pl.DataFrame:
    """Read a whole file as a dense table: features that are not written are 0."""
    return pl.concat(list(batches(file, columns)))


def batches(file: TableFile, columns: Sequence[str] | None) -> Iterator[pl.DataFrame]:
    """Read a file in parts; features that are asked for and never written are 0."""
    width, whole_labels = _scan(file, all_columns=columns is None)
    chosen = _all_names(width) if columns is None else [each for each in columns if is_feature(each)]
    features = np.array(sorted({int(name[1:]) for name in chosen if name != TARGET}), dtype=np.int64)
    with unpacked(file.path) as stream:
        first_row = 0
        for piece, first_line in line_pieces(stream, file.path):
            try:
                X, y = parse_text(piece, width)
            except BadLineError as error:
                at, text = error.args
                lines = io.BytesIO(piece).readlines()
                raise RowError(
                    f"Row {RowError.ROW} is not in the LIBSVM format ({text}); a line is a label, then "
                    "index:value pairs whose indices rise from 1.",
                    first_row + sum(_is_row(line) for line in lines[:at]),
                ).in_file(str(file.path), first_line + at) from None
            dense = _dense(X, features)
            made = {f"f{feature}": dense[:, i] for i, feature in enumerate(features.tolist())}
            made[TARGET] = y.astype(np.int64) if whole_labels else y
            yield pl.DataFrame({name: made[name] for name in chosen})
            first_row += len(y)


def _dense(X: Any, features: np.ndarray) -> np.ndarray:
    """Return some features (from 1, rising) of sparse rows, with their zeros."""
    out = np.zeros((X.shape[0], features.size), dtype=X.dtype, order="F")
    if features.size:
        at = np.searchsorted(features, X.indices + 1)
        at[at == features.size] = 0
        hit = features[at] == X.indices + 1
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        out[rows[hit], at[hit]] = X.data[hit]
    return out


def is_feature(name: str) -> bool:
    """Return whether a LIBSVM file may have a column with this name."""
    return name == TARGET or bool(re.fullmatch(r"f[1-9]\d*", name))


def names(file: TableFile) -> list[str]:
    """Return the target and the features up to the last one that is written."""
    return _all_names(_scan(file, all_columns=True)[0])


def _all_names(width: int) -> list[str]:
    return [TARGET, *(f"f{i + 1}" for i in range(width))]


def _scan(file: TableFile, *, all_columns: bool) -> tuple[int, bool]:
    """Return the largest feature and whether all labels are integers.

    With ``all_columns``, check that all columns with their zeros fit into memory.
    """
    width, widest, number, whole = 0, 0, 0, True
    what = f"{file.path}: line {{}} has the feature"
    with unpacked(file.path) as stream:
        for piece, first_line in line_pieces(stream, file.path):
            # Features are written in rising order: the last of a line is its largest.
            for number, line in enumerate(io.BytesIO(piece), first_line):
                whole = whole and bool(_WHOLE.match(line))
                if (last := _LAST.search(line)) is None:
                    continue
                if len(last[1]) > _MOST_DIGITS:
                    digits = f"{last[1][:3].decode()}... of {len(last[1]):,} digits"
                    raise TableError(f"{what.format(number)} {digits}: {_TOO_WIDE}.")
                if int(last[1]) > width:
                    width, widest = int(last[1]), number
    if not number:
        raise TableError(f"{file.path} is empty; it should have a line for each row.")
    if not width:
        raise TableError(f"{file.path} has no features; a line should look like: 1 3:0.5 7:1")
    if all_columns:
        table = f"{width:,}; that many columns and {number:,} rows, with their zeros, need"
        needed = width * (4 * number + _COLUMN_BYTES)
        check_memory(needed, f"{what.format(widest)} {table}", _TOO_WIDE)
    return width, whole


def line_of_row(file: TableFile, row: int) -> int | None:
    """Return the line, from 1, of a row, from 0; blank lines and comments are not rows."""
    with unpacked(file.path) as stream:
        for number, line in enumerate(stream, 1):
            row -= _is_row(line)
            if row < 0:
                return number
    return None


def _is_row(line: bytes) -> bool:
    return bool(line.split(b"#", 1)[0].strip())
