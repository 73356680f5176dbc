"""Columns of dates: the numbers that are made of a date, and what is stored about them.

A date becomes the days since the first date of the training table, the year, the month (1 to 12) and
the weekday (1 for Monday), and the hour if some date of the training table has a time other than
midnight. The first tells how time passes, the others how it repeats.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import polars as pl

from aucmax.reading.dates import DIGITS, STYLES, as_dates, date_style, without_zone
from aucmax.reading.frames import RowError, TableError, shown
from aucmax.reading.text import clean_text, without_marks

Column = dict[str, Any]

_PARTS = ("days", "year", "month", "weekday", "hour")


def profile_dates(series: pl.Series, *, digits: bool = False) -> Column:
    """Profile a column of dates, of a type of polars or written as text; refuse other values.

    ``digits`` says whether eight digits may be a date.
    """
    name, style = series.name, "%Y-%m-%d"
    if not series.dtype.is_temporal():
        levels = without_marks(clean_text(series)).drop_nulls().unique()
        style = date_style(levels, digits=digits) if len(levels) else style
    dates = read_dates(series, {"name": name, "written": style})
    missing, first = dates.null_count(), dates.min()
    if not isinstance(first, datetime):
        return {"missing": missing, "treatment": "dropped: every value is missing"}
    if first == dates.max() and not missing:
        return {"missing": missing, "treatment": f"dropped: every value is {first:%Y-%m-%d}"}
    timed = bool((dates.dt.truncate("1d") != dates).any())
    parts = list(_PARTS if timed else _PARTS[:-1])
    column: Column = {
        "kind": "date",
        "missing": missing,
        "written": style,
        "origin": first.isoformat(),
        "parts": parts,
        "features": part_names(name, parts),
    }
    values = date_parts(dates, column)
    column["medians"] = [float(np.nanmedian(part)) for part in values]
    *most, last = ["days since the first date", *parts[1:]]
    how = "" if series.dtype.is_temporal() else f"text read as {(STYLES | DIGITS)[style]}; "
    treatment = f"{how}{', '.join(most)} and {last}; the first date is {first:%Y-%m-%d}"
    if missing:
        count = f"{missing:,} missing {'value' if missing == 1 else 'values'}"
        treatment += f"; {count} replaced by medians and marked by one more feature"
        column["features"] = [*column["features"], f"{name} is missing"]
    return column | {"treatment": treatment}


def part_names(name: str, parts: list[str]) -> list[str]:
    """Return the names of the numbers that are made of a column of dates."""
    return [f"{name}: {part}" for part in parts]


def read_dates(series: pl.Series, column: Column, first_row: int = 0) -> pl.Series:
    """Convert a column to Datetime as its profile says; refuse the first value that is no date."""
    name, dtype = column["name"], series.dtype
    if dtype in (pl.Date, pl.Datetime):
        return without_zone(series)
    if dtype == pl.Null:
        return series.cast(pl.Datetime("ms"))
    if dtype.is_float() or dtype.is_temporal() or dtype == pl.Boolean:
        raise TableError(
            f"Column {name!r} is of type {dtype}, but should hold dates; convert it to dates, or to "
            "text such as 2024-12-31."
        )
    text = without_marks(clean_text(series))
    dates = as_dates(text, column["written"])
    bad = text.is_not_null() & dates.is_null()
    if bad.any():
        row = int(bad.arg_max() or 0)
        expected = (STYLES | DIGITS).get(column["written"], column["written"])
        raise RowError(
            f"Column {name!r} is read as dates ({expected}), but holds {shown(text[row])} in row "
            f"{RowError.ROW}. Correct such values, leave them empty, or leave the column out with "
            "drop.",
            first_row + row,
        )
    return dates


def date_parts(dates: pl.Series, column: Column) -> list[np.ndarray]:
    """Return the numbers of a column of dates as float32, with NaN for a missing date."""
    origin = datetime.fromisoformat(column["origin"])
    make = {
        "days": lambda: (dates - origin).dt.total_milliseconds() / 86_400_000,
        "year": dates.dt.year,
        "month": dates.dt.month,
        "weekday": dates.dt.weekday,
        "hour": dates.dt.hour,
    }
    return [_floats(make[part]()) for part in column["parts"]]


def _floats(values: pl.Series) -> np.ndarray:
    return values.cast(pl.Float32).fill_null(float("nan")).to_numpy()
