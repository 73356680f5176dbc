"""Reading one data file: unpacked, parsed to float32, and held against what was published.

A file that is cut off, damaged or another file than it should be is refused in one sentence, with the
line where that is known.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from aucmax.paper.data.registry import DataFile, Dataset
from aucmax.runtime.memory import format_bytes

SUFFIXES = ("", ".gz", ".bz2", ".xz", ".Z")
_CELLS = "box"


class WrongFileError(ValueError):
    """A data file does not hold what it should."""


def read_rows(path: Path, dataset: Dataset, file: DataFile) -> tuple[np.ndarray, np.ndarray]:
    """Features (float32, C order) and the place of each row's label in ``dataset.classes``."""
    text = _unpacked(path, dataset, file)
    # A site may answer with a page of its own in place of the file.
    if text[:1024].lstrip()[:1] == b"<":
        raise WrongFileError(f"{path} holds a web page instead of {file.name}; {_remedy(dataset)}.")
    if not text:
        raise WrongFileError(f"{path} is empty; {_remedy(dataset)}.")
    lines = text.count(b"\n") + 1
    if lines > 2 * file.rows:  # the rest would take memory only to be refused
        raise WrongFileError(
            f"{path} has {lines:,} lines where {file.name} has {file.rows:,} rows; {_remedy(dataset)}."
        )
    parse = {"libsvm": _parse_libsvm, "cells": _parse_cells}.get(dataset.format, _parse_numbers)
    try:
        X, codes = parse(text, dataset)
    except _UnreadableError:
        raise WrongFileError(f"{path}: {_first_bad_line(text, dataset)}; {_remedy(dataset)}.") from None
    unknown = np.flatnonzero(codes < 0)
    if unknown.size:
        line = int(unknown[0]) + 1
        label = _label_of(text.split(b"\n", line)[line - 1].decode(errors="replace"), dataset)
        raise WrongFileError(
            f"{path}: line {line} has the label {label!r}, but {dataset.name} knows only "
            f"{', '.join(dataset.classes)}; {_remedy(dataset)}."
        )
    _check_counts(path, dataset, file, codes)
    return X, codes


def _check_counts(path: Path, dataset: Dataset, file: DataFile, codes: np.ndarray) -> None:
    if codes.size != file.rows:
        raise WrongFileError(
            f"{path} has {codes.size:,} rows where {file.name} has {file.rows:,}; {_remedy(dataset)}."
        )
    counts = np.bincount(codes, minlength=len(dataset.classes))
    for label, expected, count in zip(dataset.classes, file.counts, counts, strict=False):
        if expected != count:
            raise WrongFileError(
                f"{path} has {count:,} rows of class {label} where {file.name} has {expected:,}; "
                f"{_remedy(dataset)}."
            )


def _remedy(dataset: Dataset) -> str:
    return f"delete it and run aucmax datasets fetch {dataset.name}"


# --- unpacking


#: Characters that a number takes in any of the files, with what stands around it; more is refused.
_MOST_CHARACTERS = 48


def _unpacked(path: Path, dataset: Dataset, file: DataFile) -> bytes:
    """The text of a file, however it is packed: its first bytes tell, not its name."""
    limit = 2**16 + 2 * file.rows * (dataset.features + 1) * _MOST_CHARACTERS
    with path.open("rb") as raw:
        magic = raw.read(6)
        raw.seek(0)
        unpack = next(
            (how for start, how in _UNPACK.items() if magic.startswith(start)), lambda bare: bare
        )
        try:
            text: bytes = unpack(raw).read(limit + 1)
        except (EOFError, OSError, ValueError, lzma.LZMAError, zlib.error) as error:
            reason = str(error).rstrip(".") or type(error).__name__
            raise WrongFileError(
                f"{path} is cut off or damaged ({reason}); {_remedy(dataset)}."
            ) from None
    if len(text) > limit:
        raise WrongFileError(
            f"{path} holds more than {format_bytes(limit)}, and {file.name} does not; "
            f"{_remedy(dataset)}."
        )
    return text.rstrip()


def unpack_lzw(packed: bytes, limit: int | None = None) -> bytes:
    """What the Unix command ``compress`` packed into a .Z file (LZW, 9 to 16 bits a code).

    It ends after ``limit`` bytes, or a little later.
    """
    if len(packed) < 3 or packed[:2] != b"\x1f\x9d":
        raise ValueError("not a .Z file")
    widest, may_clear = packed[2] & 0x1F, bool(packed[2] & 0x80)
    if not 10 <= widest <= 16:  # programs disagree on files of 9 bits throughout
        raise ValueError(f"codes of {widest} bits")
    first_free = 257 if may_clear else 256
    literals = [bytes([i]) for i in range(256)]
    table = literals + [b""] * (first_free - 256)
    out: list[bytes] = []
    bits, previous = 9, b""
    position = group = 8 * 3  # in bits; codes of one width come in groups of eight
    end = 8 * len(packed)
    size = 0
    while position + bits <= end and (limit is None or size < limit):
        at = position >> 3
        code = int.from_bytes(packed[at : at + 3], "little") >> (position & 7) & ((1 << bits) - 1)
        position += bits
        if code == 256 and may_clear:
            position = group + -(-(position - group) // (8 * bits)) * 8 * bits
            table, bits, previous, group = [*literals, b""], 9, b"", position
            continue
        if code < len(table):
            entry = table[code]
        elif code == len(table) and previous:
            entry = previous + previous[:1]
        else:
            raise ValueError(f"code {code} comes before it is defined")
        out.append(entry)
        size += len(entry)
        if previous and len(table) < 1 << widest:
            table.append(previous + entry[:1])
        previous = entry
        if len(table) == 1 << bits and bits < widest:
            position = group + -(-(position - group) // (8 * bits)) * 8 * bits
            bits, group = bits + 1, position
    return b"".join(out)


@dataclass(frozen=True)
class _LzwFile:
    """A .Z file, to be read at once."""

    raw: IO[bytes]

    def read(self, size: int) -> bytes:
        return unpack_lzw(self.raw.read(), size)


_UNPACK: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"\x1f\x9d": _LzwFile,
}


# --- parsing


class _UnreadableError(Exception):
    """Some line is not of the format; which one is found afterwards."""


def _parse_libsvm(text: bytes, dataset: Dataset) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_svmlight_file

    try:
        rows, labels = load_svmlight_file(
            io.BytesIO(text), n_features=dataset.features, zero_based=False
        )
    except (ValueError, OverflowError):
        raise _UnreadableError from None
    X = rows.toarray().astype(np.float32)
    if not np.isfinite(X).all():
        raise _UnreadableError
    codes = np.full(labels.size, -1)
    for code, label in enumerate(dataset.classes):
        codes[labels == float(label)] = code
    return X, codes


def _parse_numbers(text: bytes, dataset: Dataset) -> tuple[np.ndarray, np.ndarray]:
    import polars as pl

    table = _table(text, dataset, dataset.features, pl.Float64)
    X = table[:, :-1].cast(pl.Float32).to_numpy(order="c")
    if not np.isfinite(X).all():
        raise _UnreadableError
    return X, _codes(table, dataset)


def _parse_cells(text: bytes, dataset: Dataset) -> tuple[np.ndarray, np.ndarray]:
    import polars as pl

    n_cells = dataset.features // len(_CELLS)
    table = _table(text, dataset, n_cells, pl.String)
    X = np.empty((table.height, dataset.features), dtype=np.float32)
    for cell in range(n_cells):
        for state, letter in enumerate(_CELLS):
            X[:, len(_CELLS) * cell + state] = (table[:, cell] == letter).to_numpy()
    if not (X.sum(axis=1) == n_cells).all():
        raise _UnreadableError
    return X, _codes(table, dataset)


def _table(text: bytes, dataset: Dataset, n_columns: int, kind: Any) -> Any:
    """The columns of a CSV file, the label (text) last."""
    import polars as pl

    schema = {f"x{i}": kind for i in range(n_columns)} | {"label": pl.String}
    try:
        table = pl.read_csv(
            text, has_header=False, separator=_separator(dataset), schema=schema, quote_char=None
        )
    except pl.exceptions.PolarsError:
        raise _UnreadableError from None
    if sum(table.null_count().row(0)):
        raise _UnreadableError
    return table


def _codes(table: Any, dataset: Dataset) -> np.ndarray:
    import polars as pl

    labels = table["label"].str.strip_chars().cast(pl.Enum(dataset.classes), strict=False)
    return labels.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()


def _separator(dataset: Dataset) -> str:
    return "\t" if dataset.format == "tsv" else ","


def _label_of(line: str, dataset: Dataset) -> str:
    if dataset.format == "libsvm":
        return (line.split() or [""])[0]
    return line.split(_separator(dataset))[-1].strip()


def _first_bad_line(text: bytes, dataset: Dataset) -> str:
    """The first line that is not of the format, and why, in words."""
    for number, line in enumerate(text.decode(errors="replace").split("\n"), start=1):
        try:
            _check_line(line.strip(), dataset)
        except ValueError as error:
            return f"line {number} cannot be read ({error})"
    return "its content cannot be read"


def _check_line(line: str, dataset: Dataset) -> None:
    if dataset.format == "libsvm":
        label, *pairs = line.split("#", 1)[0].split() or [""]
        _number(label)
        for pair in pairs:
            index, _, value = pair.partition(":")
            if not (index.isdigit() and 1 <= int(index) <= dataset.features):
                raise ValueError(f"{pair!r} is no feature from 1 to {dataset.features}")
            _number(value)
        return
    *values, _ = line.split(_separator(dataset))
    expected = dataset.features // (len(_CELLS) if dataset.format == "cells" else 1)
    if len(values) != expected:
        raise ValueError(f"{len(values) + 1} fields instead of {expected + 1}")
    for value in values:
        if dataset.format == "cells":
            if value not in tuple(_CELLS):
                raise ValueError(f"{value!r} is none of {', '.join(_CELLS)}")
        else:
            _number(value)


def _number(field: str) -> None:
    try:
        finite = np.isfinite(float(field))
    except ValueError:
        finite = False
    if not finite:
        raise ValueError(f"{field!r} is no number")
