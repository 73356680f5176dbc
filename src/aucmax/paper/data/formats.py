"""Read one file of a data set: unpack it, parse it to float32, and verify it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from aucmax.paper.data.registry import DataFile, Dataset
from aucmax.reading.byte_streams import DamagedFileError, unpacked
from aucmax.reading.libsvm import BadLineError, parse_text
from aucmax.reading.text import is_number
from aucmax.runtime.memory import format_bytes

_CELLS = "box"

#: Characters that a number takes at most in any of the files, with its separator.
_MOST_CHARACTERS = 48


class WrongFileError(ValueError):
    """A file is not as published; ``args`` are its path, the reason and the name of the data set."""

    def __str__(self) -> str:
        path, reason, name = self.args
        return f"{path} is not as published: {reason}; delete it and run aucmax datasets fetch {name}."


class _FaultError(Exception):
    """The reason why a file is not as published."""


def read_rows(path: Path, dataset: Dataset, file: DataFile) -> tuple[np.ndarray, np.ndarray]:
    """Return the features (float32, C order) and the class of each row, as an index of its label."""
    try:
        text = _read_text(path, dataset, file)
        X, codes = (_parse_libsvm if dataset.format == "libsvm" else _parse_table)(text, dataset)
        _check_rows(text, X, codes, dataset)
        if codes.size != file.rows:
            raise _FaultError(f"it has {codes.size:,} rows where {file.name} has {file.rows:,}")
        counts = np.bincount(codes, minlength=len(dataset.classes))
        for label, rows, count in zip(dataset.classes, file.counts, counts, strict=False):
            if rows != count:
                fault = f"it has {count:,} rows of class {label} where {file.name} has {rows:,}"
                raise _FaultError(fault)
    except DamagedFileError as error:
        reason = f"it is cut off or damaged ({error.args[1]})"
        raise WrongFileError(path, reason, dataset.name) from None
    except _FaultError as fault:
        raise WrongFileError(path, str(fault), dataset.name) from None
    return X, codes


def _read_text(path: Path, dataset: Dataset, file: DataFile) -> bytes:
    """Unpack a file; refuse what cannot be the published file before it takes memory."""
    limit = 2**16 + 2 * file.rows * (dataset.features + 1) * _MOST_CHARACTERS
    with unpacked(path) as stream:
        text = stream.read(limit + 1)
    if len(text) > limit:
        raise _FaultError(f"it holds more than {format_bytes(limit)}, and {file.name} does not")
    text = text.rstrip()
    if not text:
        raise _FaultError("it is empty")
    if text[:1024].lstrip()[:1] == b"<":  # some sites answer with a page in place of a file
        raise _FaultError(f"it is a web page instead of {file.name}")
    lines = text.count(b"\n") + 1
    if lines > 2 * file.rows:
        raise _FaultError(f"it has {lines:,} lines where {file.name} has {file.rows:,} rows")
    return text


def _parse_libsvm(text: bytes, dataset: Dataset) -> tuple[np.ndarray, np.ndarray]:
    try:
        rows, labels = parse_text(text, dataset.features)
    except BadLineError as error:
        at, line = error.args
        raise _FaultError(
            f"line {at + 1} is not a label and features from 1 to {dataset.features} ({line})"
        ) from None
    matches = labels[:, None] == np.array(dataset.classes, dtype=np.float64)
    return rows.toarray(), np.where(matches.any(axis=1), matches.argmax(axis=1), -1)


def _parse_table(text: bytes, dataset: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Parse values with the label last: numbers, or cells of which each becomes three columns."""
    cells = dataset.format == "cells"
    width = dataset.features // len(_CELLS) if cells else dataset.features
    schema = {f"x{i}": pl.String if cells else pl.Float64 for i in range(width)} | {"label": pl.String}
    options: dict[str, Any] = {"has_header": False, "quote_char": None, "schema": schema}
    try:
        table = pl.read_csv(text, separator=_separator(dataset), **options)
    except pl.exceptions.PolarsError:
        raise _first_bad_line(text, dataset, width) from None
    if sum(table.null_count().row(0)):
        raise _first_bad_line(text, dataset, width)
    labels = table["label"].str.strip_chars().cast(pl.Enum(dataset.classes), strict=False)
    values = table.drop("label")
    if cells:
        values = values.select(
            pl.col(name).eq(letter).alias(name + letter) for name in values.columns for letter in _CELLS
        )
    X = values.cast(pl.Float32).to_numpy(order="c")
    return X, labels.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()


def _first_bad_line(text: bytes, dataset: Dataset, width: int) -> _FaultError:
    for number, line in enumerate(text.decode(errors="replace").split("\n"), start=1):
        *values, _ = line.split(_separator(dataset))
        if len(values) != width:
            return _FaultError(f"line {number} has {len(values) + 1} fields instead of {width + 1}")
        bad = [value for value in values if not is_number(value)]
        if bad and dataset.format != "cells":
            return _FaultError(f"line {number} has {bad[0]!r}, which is no number")
    return _FaultError("its content cannot be read")


def _separator(dataset: Dataset) -> str:
    return "\t" if dataset.format == "tsv" else ","


def _check_rows(text: bytes, X: np.ndarray, codes: np.ndarray, dataset: Dataset) -> None:
    """Refuse the first row whose values or label are not of this data set."""
    good, what = np.isfinite(X).all(axis=1), "a value that is not a finite number"
    if dataset.format == "cells":
        good = X.sum(axis=1) == dataset.features // len(_CELLS)
        what = f"a value other than {', '.join(_CELLS)}"
    if not good.all():
        raise _FaultError(f"line {int(good.argmin()) + 1} has {what}")
    if (codes < 0).any():
        row = int((codes < 0).argmax())
        line = text.split(b"\n", row + 1)[row].decode(errors="replace").strip()
        label = line.split()[0] if dataset.format == "libsvm" else line.split(_separator(dataset))[-1]
        known = ", ".join(dataset.classes)
        raise _FaultError(
            f"line {row + 1} has the label {label!r}, but {dataset.name} knows only {known}"
        )
