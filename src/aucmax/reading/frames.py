"""Frames of any library as polars frames, and errors that name the column or the row."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from aucmax.runtime.scalars import is_missing
from aucmax.runtime.spelling import nearest


class TableError(ValueError):
    """A table, or something in it, cannot be used; the text names the fault and a remedy."""


class RowError(TableError):
    """A fault in one row, whose number replaces ``ROW`` in the sentence.

    Rows are counted from 0, as NumPy and pandas do, and a header is not a row. For a text file the
    message adds the line, counted from 1, as editors do.

    >>> str(RowError(f"row {RowError.ROW} is bad", 7))
    'row 7 (from 0) is bad'
    >>> str(RowError(f"row {RowError.ROW} is bad", 7).in_file("a.csv", 9))
    'row 7 (from 0; line 9 of a.csv) is bad'
    """

    ROW = "\0"

    def __init__(self, sentence: str, row: int = 0, where: str = "") -> None:
        super().__init__(sentence.replace(self.ROW, f"{row} (from 0{where})"))
        self.sentence, self.row, self.where = sentence, row, where

    def moved(self, row: int) -> RowError:
        """Return this error with another row number: the one in the whole table, not in a part."""
        return type(self)(self.sentence, int(row), self.where)

    def in_file(self, name: str, line: int) -> RowError:
        """Return this error with the line of a text file."""
        return type(self)(self.sentence, self.row, f"; line {line} of {name}")


@contextmanager
def renamed_in(copy: object, name: object) -> Iterator[None]:
    """Name a file in errors by another name than that of the temporary copy that was read."""
    try:
        yield
    except (ValueError, OSError) as error:
        if str(copy) not in str(error):
            raise
        error.args = tuple(
            str(arg).replace(str(copy), str(name)) if isinstance(arg, str | Path) else arg
            for arg in error.args
        )
        if isinstance(error, RowError):
            error.where = error.where.replace(str(copy), str(name))
        raise


def is_frame(X: Any) -> bool:
    """Return whether X is a table with named columns: polars, pandas or Arrow."""
    return (
        isinstance(X, pl.DataFrame | pl.LazyFrame)
        or (hasattr(X, "iloc") and hasattr(X, "columns"))
        or hasattr(X, "__arrow_c_stream__")
    )


def as_frame(X: Any) -> pl.DataFrame:
    """Convert a polars, pandas or Arrow table to a polars frame.

    >>> import pandas as pd
    >>> as_frame(pd.DataFrame({"a": [1.0, None]})).to_dict(as_series=False)
    {'a': [1.0, None]}
    """
    if isinstance(X, pl.DataFrame):
        return X
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        names = [str(name) for name in X.columns]
        check_duplicates(names, "The table")
        return pl.DataFrame({name: _column(X.iloc[:, i], name) for i, name in enumerate(names)})
    if is_frame(X):
        try:
            return X.collect() if isinstance(X, pl.LazyFrame) else pl.DataFrame(X)
        except pl.exceptions.DuplicateError as error:
            raise same_names("The table", error) from None
        except pl.exceptions.SchemaError:  # a single column without a name
            pass
    shape = f" of shape {X.shape}" if getattr(X, "shape", None) is not None else ""
    raise TableError(
        f"A table is a polars or pandas frame with named columns; got {type(X).__name__}{shape}. Use "
        "pl.DataFrame(X, schema=[...]) to name them, or TableModel().fit(X, y), which takes arrays."
    )


def _column(values: Any, name: str) -> pl.Series:
    """Convert a column of a pandas frame; a categorical one stays so, whatever its categories are."""
    series = as_series(values, name)
    if type(values.dtype).__name__ != "CategoricalDtype":
        return series
    return series.cast(pl.String).cast(pl.Categorical)


def as_series(values: Any, name: str) -> pl.Series:
    """Convert a column of any library to a polars series; NaN and NA become null."""
    kind = getattr(values, "dtype", None)
    if isinstance(values, pl.Series):
        objects = kind == pl.Object
        series = _from_objects(name, values.to_list()) if objects else values.alias(name)
    else:
        # Only NumPy's own types convert directly: pandas' text and nullable types would need pyarrow.
        plain = values if hasattr(values, "to_numpy") else np.asarray(values, dtype=kind or object)
        if isinstance(kind, np.dtype) and kind.kind in "biufmM":
            numbers = np.asarray(plain)
            if kind == np.longdouble:  # polars has no such type
                numbers = numbers.astype(np.float64)
            series = pl.Series(name, numbers)
        else:
            series = _from_objects(name, plain)
    if str(series.dtype).endswith("128"):  # NumPy has no such integers
        series = series.cast(pl.Float64)
    return series.fill_nan(None) if series.dtype.is_float() else series


def _from_objects(name: str, values: Any) -> pl.Series:
    """Convert Python objects to one type; to text if polars finds no common type."""
    cells = [None if is_missing(cell) else cell for cell in values]
    cells = [cell.item() if isinstance(cell, np.generic) else cell for cell in cells]
    with suppress(TypeError, pl.exceptions.PolarsError):
        try:
            series = pl.Series(name, cells)
        except OverflowError:
            series = _large_numbers(name, cells)
        if series.dtype != pl.Object:
            return series
    return pl.Series(name, [None if cell is None else str(cell) for cell in cells], pl.String)


def _large_numbers(name: str, cells: list[Any]) -> pl.Series:
    """Convert integers beyond polars' types to float64."""
    try:
        return pl.Series(name, [None if cell is None else float(cell) for cell in cells], pl.Float64)
    except OverflowError:
        raise TableError(
            f"Column {name!r} of X has a number beyond 1.8e308, the largest float64. Divide the "
            "column, or take its logarithm."
        ) from None


def check_duplicates(names: Iterable[str], where: str) -> None:
    """Refuse two columns with the same name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        more = f" (and {quoted(twice[1:])})" if len(twice) > 1 else ""
        raise TableError(
            f"{where} has more than one column named {twice[0]!r}{more}; rename all but one."
        )


def same_names(where: str, error: Exception) -> TableError:
    """Turn polars' error about two columns with the same name into one sentence."""
    return TableError(f"{where} has columns of one name ({reason_of(error)}); rename all but one.")


def reason_of(error: BaseException) -> str:
    """Return the first line of an error's text, or its type if it has none."""
    return str(error).strip().split("\n", 1)[0].rstrip(".") or type(error).__name__


def check_names(
    present: Sequence[str], wanted: Iterable[str], what: str, where: str = "The table"
) -> None:
    """Refuse a table that lacks one of these columns, and suggest the nearest name it has."""
    known = set(present)
    absent = [name for name in wanted if name not in known]
    if not absent:
        return
    guess = nearest(absent[0], present)
    hint = f" Did you mean {guess!r}?" if guess is not None else f" It has {quoted(present)}."
    if len(absent) > 1:
        what = re.sub(r"^is\b", "are", what)
    named = f"column {absent[0]!r}" if len(absent) == 1 else f"columns {quoted(absent, 20)}"
    raise TableError(f"{where} has no {named}, which {what}.{hint}")


def frame_hash(frame: pl.DataFrame) -> str:
    """Return the sha256 of a frame's names, types and values; its chunks make no difference."""
    digest = hashlib.sha256()
    for series in frame:
        digest.update(f"{series.name}\0{series.dtype}\0{len(series)}\0".encode())
        if not (series.dtype.is_numeric() or series.dtype == pl.Boolean):
            series = series.cast(pl.String, strict=False).fill_null("\0").str.join("\0\0")
            digest.update(str(series[0]).encode())
            continue
        if series.null_count():
            digest.update(np.packbits(series.is_null().to_numpy()).tobytes())
            series = series.fill_null(False if series.dtype == pl.Boolean else 0)
        digest.update(np.ascontiguousarray(series.to_numpy()).data)
    return digest.hexdigest()


def quoted(names: Iterable[Any], most: int = 8) -> str:
    """List some names for a sentence.

    >>> quoted(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(shown(name) for name in names[:most]) + more


def shown(value: Any, most: int = 60) -> str:
    """Quote a value for a sentence, and cut long text.

    >>> shown("a" * 100, most=5)
    "'aaaaa…'"
    """
    cut = isinstance(value, str) and len(value) > most
    return repr(f"{value[:most]}…" if cut else value)


def row_weights(series: pl.Series) -> np.ndarray:
    """Return a column of weights as float64, all finite and at least 0."""
    values = series.cast(pl.Float64, strict=False)
    bad = values.is_null() | values.is_nan() | values.is_infinite() | (values < 0)
    if bad.any():
        row = int(bad.arg_max() or 0)
        raise RowError(
            f"The weight {series.name!r} is {series[row]!r} in row {RowError.ROW}; weights must be "
            "numbers of at least 0.",
            row,
        )
    return values.to_numpy()
