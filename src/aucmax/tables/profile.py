"""Decide from a column's values what to do with it, and describe that in a sentence."""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from aucmax.reading import text as cells
from aucmax.reading.frames import RowError, TableError, shown
from aucmax.tables.columns import Column, to_float

__all__ = ["profile_columns"]

#: A text column with at least this share of different values identifies rows.
_ID_SHARE = 0.9
#: With fewer rows than this, unique values do not make a column an identifier.
_FEW_ROWS = 20
#: The number of pooled levels that are stored by name, the most frequent first.
_NAMED_LEVELS = 100
#: Names that mark a column as an identifier.
_ID_NAME = re.compile(r"(^|[^a-zA-Z])(id|ID|Id)$|[a-z](ID|Id)$")
#: The median of this many rows is exact enough.
_MEDIAN_ROWS = 50_000
#: A text column with at least this share of numbers is a number column with mistakes in it.
_MOSTLY = 0.95
#: How numbers in text are written, by style.
_WRITTEN = {
    "thousands": ' with "," between thousands',
    "comma": ' with "," before decimals',
    "dots and comma": ' with "." between thousands and "," before decimals',
}


def profile_columns(
    frame: pl.DataFrame, *, rare_level: int | str = "auto", max_levels: int = 50
) -> list[Column]:
    """Decide what to do with each column; return a dict for each, as :class:`TableModel` documents."""
    fewest = max(10, -(-frame.height // 1000)) if rare_level == "auto" else int(rare_level)
    return [_profile(series, fewest, max_levels) for series in frame]


def _profile(series: pl.Series, fewest: int, max_levels: int) -> Column:
    name, dtype = series.name, series.dtype
    column: Column = {
        "name": name,
        "type": str(dtype),
        "kind": "dropped",
        "missing": series.null_count(),
        "treatment": "",
        "features": [],
        "levels": [],
        "pooled": [],
    }
    if dtype.is_temporal():
        raise _date_error(name, f"of type {dtype}")
    if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
        raise TableError(
            f"Column {name!r} is of type {dtype}, neither numbers nor categories. Make columns of its "
            "parts, or leave it out with drop."
        )
    if dtype == pl.Boolean or dtype.is_numeric():
        return _profile_number(column, series, "boolean" if dtype == pl.Boolean else "number")
    return _profile_text(column, cells.clean_text(series), fewest, max_levels)


def _profile_number(column: Column, series: pl.Series, kind: str) -> Column:
    name = column["name"]
    values = to_float(series, name)
    missing = values.null_count()
    column = {**column, "missing": missing}
    if missing == len(values):
        return _dropped(column, "dropped: every value is missing")
    low, high = _number(values.min()), _number(values.max())
    if low == high and not missing:
        return _dropped(column, f"dropped: every value is {low:g}")
    if _is_row_number(series, low, high):
        return _dropped(
            column,
            f"dropped as a row number: its values run from {low:.0f} to {high:.0f} without repetition; "
            "write it with decimals to keep it",
        )
    if series.dtype.is_integer() and _ID_NAME.search(name) and _all_differ(series):
        return _dropped(
            column,
            "dropped as an identifier: all values are unique, and its name says id; rename to keep it",
        )
    # If no value is missing, only new tables need the median, and a part of the rows gives it.
    step = 1 if missing else max(1, len(values) // _MEDIAN_ROWS)
    median = _number((values if step == 1 else values.gather_every(step)).median())
    treatment = "used as is" if kind == "number" else "1 for true, 0 for false"
    if missing:
        treatment += (
            f"; {_count(missing, 'missing value')} replaced by the median, {median:g}, and marked by a "
            "second feature"
        )
    names = [name, f"{name} is missing"] if missing else [name]
    return {**column, "kind": kind, "median": median, "features": names, "treatment": treatment}


def _is_row_number(series: pl.Series, low: float, high: float) -> bool:
    """Whether integers run from low to high in any order, or rise with gaps for deleted rows."""
    rows = len(series)
    if not series.dtype.is_integer() or high - low + 1 > 2 * rows or not _all_differ(series):
        return False
    return high - low + 1 == rows or series.is_sorted()


def _all_differ(series: pl.Series) -> bool:
    return len(series) >= _FEW_ROWS and not series.null_count() and series.n_unique() == len(series)


def _profile_text(column: Column, text: pl.Series, fewest: int, max_levels: int) -> Column:
    name = column["name"]
    counts = text.value_counts(sort=True, name="rows").drop_nulls()
    levels, present = counts[name], int(counts["rows"].sum() or 0)
    column = {**column, "missing": len(text) - present}
    if not present:
        return _dropped(column, "dropped: every value is missing")
    if cells.is_boolean(levels):
        return _profile_number(column, cells.as_boolean(text), "boolean")
    if (number := _profile_written(column, text, counts, max_levels)) is not None:
        return number
    dates = cells.dates_among(levels)
    if 2 * len(dates) > len(levels):  # the other levels may mark unknown dates
        raise _date_error(name, f"(for example {shown(dates[0])})")
    if len(levels) >= _ID_SHARE * present and present >= _FEW_ROWS:
        return _dropped(
            column,
            f"dropped as an identifier: {len(levels):,} of {present:,} values are different (for "
            f"example {shown(levels[0])}); derive a feature from it if it is informative",
        )
    counts = counts.sort("rows", name, descending=[True, False])
    return _profile_levels(column, counts, fewest, max_levels)


def _profile_written(
    column: Column, text: pl.Series, counts: pl.DataFrame, max_levels: int
) -> Column | None:
    """Profile a column of numbers that are written as text; None if it holds something else."""
    name = column["name"]
    counts = counts.filter(cells.without_marks(counts[name]).is_not_null())
    if not counts.height:
        return None
    style = cells.number_style(counts[name])
    is_number = cells.as_number(counts[name], style).is_not_null()
    share = _number(counts["rows"].filter(is_number).sum()) / _number(counts["rows"].sum())
    values = cells.without_marks(text)
    numbers = cells.as_number(values, style).alias(name)
    if share == 1.0:
        profile = _profile_number({**column, "written": style}, numbers, "number")
        if profile["kind"] == "number":
            profile["treatment"] = (
                f"text read as numbers{_WRITTEN.get(style, '')}; {profile['treatment']}"
            )
        return profile
    if share >= _MOSTLY and counts.height > max_levels:
        row = int((values.is_not_null() & numbers.is_null()).arg_max() or 0)
        raise RowError(
            f"Column {name!r} holds numbers, except for some values, the first {shown(text[row])} in "
            f"row {RowError.ROW}. Correct them, leave them empty, or leave the column out with drop.",
            row,
        )
    return None


def _profile_levels(column: Column, counts: pl.DataFrame, fewest: int, max_levels: int) -> Column:
    """Decide which levels of a category get a feature, and pool the rest."""
    name, missing = column["name"], column["missing"]
    everything = counts[name].to_list()
    if len(everything) == 1 and not missing:
        return _dropped(column, f"dropped: every value is {shown(everything[0])}")
    missing_level = missing >= fewest
    room = max_levels - missing_level
    levels = counts.filter(pl.col("rows") >= fewest)[name].to_list()
    if len(levels) > room or len(levels) < len(everything):
        levels = levels[: room - 1]
    if not levels:
        return _dropped(
            column,
            f"dropped: none of its {len(everything):,} different values has {fewest} rows, the fewest "
            "that a level needs",
        )
    pooled = everything[len(levels) :]
    names = [f"{name} = {level}" for level in levels]
    treatment = f"one-hot, {_count(len(levels), 'level')}"
    shared = (
        [f"{len(pooled):,} rare levels" if len(pooled) > 1 else f"the rare level {shown(pooled[0])}"]
        if pooled
        else []
    )
    if missing_level:
        names.append(f"{name} is missing")
        treatment += f" and a feature for {_count(missing, 'missing value')}"
    elif missing:
        shared.append(_count(missing, "missing value"))
    if shared:
        names.append(f"{name} is rare")
        treatment += f"; one more feature for {' and '.join(shared)}, and for levels unseen in training"
    return {
        **column,
        "kind": "category",
        "levels": levels,
        "pooled": pooled[:_NAMED_LEVELS],
        "pooled_count": len(pooled),
        "features": names,
        "treatment": treatment,
    }


def _dropped(column: Column, why: str) -> Column:
    return {**column, "kind": "dropped", "features": [], "treatment": why}


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _number(value: Any) -> float:
    return float(value) if value is not None else 0.0


def _date_error(name: str, which: str) -> TableError:
    return TableError(
        f"Column {name!r} holds dates or times {which}. Raw dates do not generalise to new rows: make "
        "numbers of them (such as an age in days, the month or the hour), or leave it out with drop."
    )
