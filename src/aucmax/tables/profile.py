"""Decide from a column's values what to do with it, and describe that in a sentence."""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from aucmax.reading import text as cells
from aucmax.reading.frames import RowError, TableError, shown
from aucmax.tables.columns import Column, to_float

_ID_SHARE = 0.9  #: A text column with at least this share of different values identifies rows.
_ID_NAME = re.compile(r"(^|[^a-zA-Z])(id|ID|Id)$|[a-z](ID|Id)$")  #: Names of identifiers.
_FEW_ROWS = 20  #: In fewer rows, unique values do not make a column an identifier.
_NAMED_LEVELS = 100  #: This many pooled levels are stored by name, the most frequent first.
_MEDIAN_ROWS = 50_000  #: The median of this many rows is exact enough.
_MOSTLY = 0.95  #: A text column with at least this share of numbers has mistakes in it.
#: How numbers in text are written, by style.
_WRITTEN = {
    "thousands": ' with "," between thousands',
    "comma": ' with "," before decimals',
    "dots and comma": ' with "." between thousands and "," before decimals',
}


def profile_columns(
    frame: pl.DataFrame, *, rare_level: int | str = "auto", max_levels: int = 50
) -> list[Column]:
    """Decide what to do with each column; return a dict for each, as in ``TableModel.columns_``."""
    fewest = max(10, -(-frame.height // 1000)) if rare_level == "auto" else int(rare_level)
    return [_dropped(series) | _profile(series, fewest, max_levels) for series in frame]


def _dropped(series: pl.Series) -> Column:
    column: Column = {"name": series.name, "type": str(series.dtype), "kind": "dropped", "missing": 0}
    return column | {"treatment": "", "features": [], "levels": [], "pooled": []}


def _profile(series: pl.Series, fewest: int, max_levels: int) -> Column:
    """Return what differs from a dropped column, as all functions below do."""
    dtype = series.dtype
    if dtype.is_temporal():
        raise _date_error(series.name, f"of type {dtype}")
    if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
        raise TableError(
            f"Column {series.name!r} is of type {dtype}, neither numbers nor categories. Make columns "
            "of its parts, or leave it out with drop."
        )
    if dtype == pl.Boolean or dtype.is_numeric():
        return _profile_number(series, "boolean" if dtype == pl.Boolean else "number")
    return _profile_text(cells.clean_text(series), fewest, max_levels)


def _profile_number(series: pl.Series, kind: str, **more: str) -> Column:
    name, values = series.name, to_float(series, series.name)
    missing = values.null_count()
    if reason := _reason_to_drop(series, values):
        return {"missing": missing, "treatment": reason, **more}
    # If no value is missing, only new tables need the median, and a part of the rows gives it.
    step = 1 if missing else max(1, len(values) // _MEDIAN_ROWS)
    median = _number((values if step == 1 else values.gather_every(step)).median())
    treatment = "used as is" if kind == "number" else "1 for true, 0 for false"
    if "written" in more:
        treatment = f"text read as numbers{_WRITTEN.get(more['written'], '')}; {treatment}"
    if missing:
        count = _count(missing, "missing value")
        treatment += f"; {count} replaced by the median, {median:g}, and marked by a second feature"
    names = [name, f"{name} is missing"] if missing else [name]
    column = {"kind": kind, "missing": missing, "treatment": treatment, "features": names, **more}
    return column | {"median": median}


def _reason_to_drop(series: pl.Series, values: pl.Series) -> str | None:
    rows, missing = len(values), values.null_count()
    if missing == rows:
        return "dropped: every value is missing"
    low, high = _number(values.min()), _number(values.max())
    if low == high and not missing:
        return f"dropped: every value is {low:g}"
    if missing or rows < _FEW_ROWS or not series.dtype.is_integer():
        return None
    # A row number takes all integers from low to high, or rises with gaps for deleted rows.
    span = high - low + 1
    is_row_number = span == rows or (span <= 2 * rows and series.is_sorted())
    if not (is_row_number or _ID_NAME.search(series.name)) or series.n_unique() < rows:
        return None
    if is_row_number:
        return (
            f"dropped as a row number: its values run from {low:.0f} to {high:.0f} without repetition; "
            "write it with decimals to keep it"
        )
    return "dropped as an identifier: all values are unique, and its name ends in id; rename to keep it"


def _profile_text(text: pl.Series, fewest: int, max_levels: int) -> Column:
    counts = text.value_counts(sort=True, name="rows").drop_nulls()
    levels, present = counts[text.name], int(counts["rows"].sum() or 0)
    missing = len(text) - present
    if not present:
        return {"missing": missing, "treatment": "dropped: every value is missing"}
    if cells.is_boolean(levels):
        return _profile_number(cells.as_boolean(text).alias(text.name), "boolean")
    if (number := _profile_written(text, counts, max_levels)) is not None:
        return number
    dates = cells.dates_among(levels)
    if 2 * len(dates) > len(levels):  # the other levels may mark unknown dates
        raise _date_error(text.name, f"(for example {shown(dates[0])})")
    if len(levels) >= _ID_SHARE * present and present >= _FEW_ROWS:
        reason = (
            f"dropped as an identifier: {len(levels):,} of {present:,} values are different (for "
            f"example {shown(levels[0])}); derive a feature from it if it is informative"
        )
        return {"missing": missing, "treatment": reason}
    counts = counts.sort("rows", text.name, descending=[True, False])
    return {"missing": missing} | _profile_levels(counts, missing, fewest, max_levels)


def _profile_written(text: pl.Series, counts: pl.DataFrame, max_levels: int) -> Column | None:
    """Profile a column of numbers that are written as text; None if it holds something else."""
    name = text.name
    counts = counts.filter(cells.without_marks(counts[name]).is_not_null())
    if not counts.height:
        return None
    style = cells.number_style(counts[name])
    is_number = cells.as_number(counts[name], style).is_not_null()
    share = _number(counts["rows"].filter(is_number).sum()) / _number(counts["rows"].sum())
    values = cells.without_marks(text)
    numbers = cells.as_number(values, style).alias(name)
    if share == 1.0:
        return _profile_number(numbers, "number", written=style)
    if share < _MOSTLY or counts.height <= max_levels:
        return None
    row = int((values.is_not_null() & numbers.is_null()).arg_max() or 0)
    raise RowError(
        f"Column {name!r} holds numbers, except for some values, the first {shown(text[row])} in row "
        f"{RowError.ROW}. Correct them, leave them empty, or leave the column out with drop.",
        row,
    )


def _profile_levels(counts: pl.DataFrame, missing: int, fewest: int, max_levels: int) -> Column:
    """Decide which levels of a category get a feature, and pool the rest."""
    name, everything = counts.columns[0], counts.to_series(0).to_list()
    if len(everything) == 1 and not missing:
        return {"treatment": f"dropped: every value is {shown(everything[0])}"}
    missing_level = missing >= fewest
    room = max_levels - missing_level
    levels = counts.filter(pl.col("rows") >= fewest)[name].to_list()
    if len(levels) > room or len(levels) < len(everything):
        levels = levels[: room - 1]
    if not levels:
        values = f"none of its {len(everything):,} different values has {fewest} rows"
        return {"treatment": f"dropped: {values}, the fewest that a level needs"}
    names = [f"{name} = {level}" for level in levels]
    pooled = everything[len(levels) :]
    treatment, shared = f"one-hot, {_count(len(levels), 'level')}", []
    if pooled:
        shared.append(_count(len(pooled), "rare level"))
    if missing_level:
        names.append(f"{name} is missing")
        treatment += f" and a feature for {_count(missing, 'missing value')}"
    elif missing:
        shared.append(_count(missing, "missing value"))
    if shared:
        names.append(f"{name} is rare")
        treatment += f"; one more feature for {' and '.join(shared)}, and for levels unseen in training"
    column = {"kind": "category", "treatment": treatment, "features": names, "levels": levels}
    return column | {"pooled": pooled[:_NAMED_LEVELS], "pooled_count": len(pooled)}


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _number(value: Any) -> float:
    return float(value) if value is not None else 0.0


def _date_error(name: str, which: str) -> TableError:
    return TableError(
        f"Column {name!r} holds dates or times {which}. Raw dates do not generalise to new rows: make "
        "numbers of them (such as an age in days, the month or the hour), or leave it out with drop."
    )
