"""What is done to each column of a table: told from its values, and said in a sentence."""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from aucmax.reading.frames import RowError, TableError, shown
from aucmax.reading.text import (
    as_boolean,
    as_number,
    clean_text,
    dates_among,
    is_boolean,
    number_style,
    without_marks,
)
from aucmax.tables.columns import Column, to_float

__all__ = ["study_columns"]

#: Text of which so large a share of values differ is a name for the row, not a property of it.
_ID_SHARE = 0.9
#: Fewer rows than this tell nothing of what a column is for.
_FEW_ROWS = 20
#: Pooled levels that are remembered by name, the most frequent first.
_NAMED_LEVELS = 100
#: Names of columns that say they name rows.
_ID_NAME = re.compile(r"(^|[^a-zA-Z])(id|ID|Id)$|[a-z](ID|Id)$")
#: Rows that are enough for a median.
_MEDIAN_ROWS = 50_000
#: Text that is nearly always a number is a number column with a mistake in it.
_MOSTLY = 0.95


def study_columns(
    frame: pl.DataFrame, *, rare_level: int | str = "auto", max_levels: int = 50
) -> list[Column]:
    """Decide what to do with each column; a plain dict for each, as :class:`TableModel` documents."""
    fewest = max(10, -(-frame.height // 1000)) if rare_level == "auto" else int(rare_level)
    return [_study(series, fewest, max_levels) for series in frame]


def _study(series: pl.Series, fewest: int, max_levels: int) -> Column:
    column: Column = {
        "name": series.name,
        "type": str(series.dtype),
        "kind": "dropped",
        "missing": series.null_count(),
        "treatment": "",
        "features": [],
        "levels": [],
        "pooled": [],
    }
    kind = series.dtype
    if kind.is_temporal():
        raise _dates(series.name, f"of type {kind}")
    if kind.is_nested() or kind in (pl.Binary, pl.Object):
        raise TableError(
            f"Column {series.name!r} is of type {kind}, which has no place in a table of numbers and "
            "categories; make columns of its parts, or leave it out by drop."
        )
    if kind == pl.Null:
        return _dropped(column, "dropped: every value is missing")
    if kind == pl.Boolean or kind.is_numeric():
        return _study_number(column, series, "boolean" if kind == pl.Boolean else "number")
    return _study_text(column, clean_text(series), fewest, max_levels)


def _study_number(column: Column, series: pl.Series, kind: str) -> Column:
    name = column["name"]
    values = to_float(series, name)
    column["missing"] = values.null_count()
    if column["missing"] == len(values):
        return _dropped(column, "dropped: every value is missing")
    low, high = _number(values.min()), _number(values.max())
    if low == high and not column["missing"]:
        return _dropped(column, f"dropped: every value is {low:g}")
    if _is_running_number(series, low, high):
        return _dropped(
            column,
            f"dropped as a row number: its values run from {low:.0f} to {high:.0f}, each at most once; "
            "write it with decimals to keep it",
        )
    if series.dtype.is_integer() and _ID_NAME.search(name) and _all_differ(series):
        return _dropped(
            column,
            "dropped as an identifier: all values are unique, and its name says so; give it another "
            "name to keep it",
        )
    column["kind"] = kind
    # Without holes the median is for tables to come: a part of the rows tells it well enough.
    step = 1 if column["missing"] else max(1, len(values) // _MEDIAN_ROWS)
    part = values if step == 1 else values.gather_every(step)
    column["median"] = _number(part.median())
    column["features"] = [name]
    kept = "as it is" if kind == "number" else "1 for true, 0 for false"
    if column["missing"]:
        column["features"].append(f"{name} is missing")
        kept += (
            f"; {_rows(column['missing'])} without a value take the median, {column['median']:g}, and "
            "a second feature marks them"
        )
    column["treatment"] = kept
    return column


def _is_running_number(series: pl.Series, low: float, high: float) -> bool:
    """Whether whole numbers run from low to high in any order, or rise with gaps for rows gone."""
    rows = len(series)
    if not series.dtype.is_integer() or high - low + 1 > 2 * rows or not _all_differ(series):
        return False
    return high - low + 1 == rows or series.is_sorted()


def _all_differ(series: pl.Series) -> bool:
    return len(series) >= _FEW_ROWS and not series.null_count() and series.n_unique() == len(series)


def _study_text(column: Column, text: pl.Series, fewest: int, max_levels: int) -> Column:
    name = column["name"]
    counts = text.value_counts(sort=True, name="rows").drop_nulls()
    levels, rows = counts[name], counts["rows"]
    present = int(rows.sum() or 0)
    column["missing"] = len(text) - present
    if not present:
        return _dropped(column, "dropped: every value is missing")
    if is_boolean(levels):
        return _study_number(column, as_boolean(text), "boolean")
    if (known := _study_written(column, text, counts, max_levels)) is not None:
        return known
    dates = dates_among(levels)
    if 2 * len(dates) > len(levels):  # others may stand for an unknown one
        raise _dates(name, f"(for example {shown(dates[0])})")
    if len(levels) >= _ID_SHARE * present and present >= _FEW_ROWS:
        return _dropped(
            column,
            f"dropped as an identifier: {len(levels):,} of {present:,} values are different (for "
            f"example {shown(levels[0])}); derive a feature from it if it is informative",
        )
    return _study_levels(
        column, counts.sort("rows", name, descending=[True, False]), fewest, max_levels
    )


def _study_written(
    column: Column, text: pl.Series, counts: pl.DataFrame, max_levels: int
) -> Column | None:
    """A column of numbers that came as text, or None if it is something else."""
    name = column["name"]
    counts = counts.filter(without_marks(counts[name]).is_not_null())
    if not counts.height:
        return None
    style = number_style(counts[name])
    is_number = as_number(counts[name], style).is_not_null()
    share = _number(counts["rows"].filter(is_number).sum()) / _number(counts["rows"].sum())
    values = without_marks(text)
    if share == 1.0:
        known = _study_number(
            {**column, "written": style}, as_number(values, style).alias(name), "number"
        )
        if known["kind"] == "number":
            how = {
                "thousands": ' with "," between thousands',
                "comma": ' with "," before decimals',
                "dots and comma": ' with "." between thousands and "," before decimals',
            }
            known["treatment"] = f"text read as numbers{how.get(style, '')}; {known['treatment']}"
        return known
    if share >= _MOSTLY and counts.height > max_levels:
        row = int((values.is_not_null() & as_number(values, style).is_null()).arg_max() or 0)
        raise RowError(
            f"Column {name!r} holds numbers, except for some values, the first {shown(text[row])} in "
            f"row {RowError.ROW}; mend them, leave them empty, or leave the column out by drop.",
            row,
        )
    return None


def _study_levels(column: Column, counts: pl.DataFrame, fewest: int, max_levels: int) -> Column:
    """Which levels of a category are kept, and what the rest becomes."""
    name, missing = column["name"], column["missing"]
    everything = counts[name].to_list()
    kept = counts.filter(pl.col("rows") >= fewest)[name].to_list()
    if len(everything) == 1 and not missing:
        return _dropped(column, f"dropped: every value is {shown(everything[0])}")
    own = missing >= fewest  # missing values are a level of their own
    places = max_levels - own
    if len(kept) > places or len(kept) < len(everything):
        kept = kept[: places - 1]
    if not kept:
        return _dropped(
            column,
            f"dropped: of its {len(everything):,} different values none has {fewest} rows, the fewest "
            "a level needs",
        )
    pooled = everything[len(kept) :]
    column["kind"] = "category"
    column["levels"], column["pooled"] = kept, pooled[:_NAMED_LEVELS]
    column["pooled_count"] = len(pooled)
    column["features"] = [f"{name} = {level}" for level in kept]
    said = f"a feature for each of {len(kept)} levels"
    if own:
        column["features"].append(f"{name} is missing")
        said += f" and for the {_rows(missing)} without a value"
    if pooled or (missing and not own):
        column["features"].append(f"{name} is rare")
        sharing = []
        if pooled:
            sharing.append(
                f"{len(pooled):,} rare levels"
                if len(pooled) > 1
                else f"the rare level {shown(pooled[0])}"
            )
        if missing and not own:
            sharing.append(f"{_rows(missing)} without a value")
        goes = "goes" if len(pooled) + (0 if own else missing) == 1 else "go"
        said += f"; {' and '.join(sharing)} {goes} into one with levels unseen so far"
    column["treatment"] = said
    return column


def _dropped(column: Column, why: str) -> Column:
    return {**column, "kind": "dropped", "features": [], "treatment": why}


def _rows(count: int) -> str:
    return f"{count:,} row" if count == 1 else f"{count:,} rows"


def _number(value: Any) -> float:
    return float(value) if value is not None else 0.0


def _dates(name: str, which: str) -> TableError:
    return TableError(
        f"Column {name!r} holds dates or times {which}, and raw dates do not generalise to new rows; "
        "turn it into numbers (such as an age in days, the month or the hour), or leave it out by drop."
    )
