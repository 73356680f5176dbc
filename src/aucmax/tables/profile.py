"""Decide from a column's values what to do with it, and describe that in a sentence.

What the user says about a column comes first (``tables/column_options.py``). Otherwise:

- Dates and times of day are recognised by their type, or by how they are written.
- Text that can be read as numbers is numbers (``reading/numerals.py``), unless the column is of a
  categorical type, or some value has a leading zero: "00037" is a code.
- Whole numbers that are all different identify rows (see ``_reason_to_drop``), and so does text of
  which nine in ten values are different.
- Other text is categories. Levels with few rows are pooled, and so are the rarest levels beyond
  ``max_levels`` features; if a target is known, one more feature then holds the mean of the label at
  each level (``tables/target_encoding.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from aucmax.reading import numerals
from aucmax.reading import text as cells
from aucmax.reading.dates import as_quantity, dates_among
from aucmax.reading.frames import RowError, TableError, shown
from aucmax.tables.columns import Column, level_text, to_float
from aucmax.tables.date_columns import profile_dates

_ID_SHARE = 0.9  #: A text column with at least this share of different values identifies rows.
_FEW_ROWS = 20  #: In fewer rows, unique values do not make a column an identifier.
_MISSING_IDS = 0.1  #: With a larger share of missing values, a column of numbers identifies no rows.
_NAMED_LEVELS = 100  #: This many pooled levels are stored by name, the most frequent first.
_MEDIAN_ROWS = 50_000  #: The median of this many rows is exact enough.
_MOSTLY = 0.95  #: A text column with at least this share of numbers has mistakes in it.
_KEEP = "to keep it, name it with the option number"


@dataclass(frozen=True)
class _Rules:
    """How levels become features: the fewest rows of one, the most features, and whether to encode."""

    fewest: int
    max_levels: int
    encode: bool


def profile_columns(
    frame: pl.DataFrame,
    kinds: Mapping[str, str] | None = None,
    *,
    rare_level: int | str = "auto",
    max_levels: int = 50,
    encode: bool = False,
) -> list[Column]:
    """Decide what to do with each column; return a dict for each, as in ``TableFeatures.columns_``.

    ``kinds`` has what the user says about columns: "category", "number", "date" or "id". ``encode``
    says whether there is a label whose mean can be a feature.
    """
    fewest = max(10, -(-frame.height // 1000)) if rare_level == "auto" else int(rare_level)
    rules, said = _Rules(fewest, max_levels, encode), kinds or {}
    return [_dropped(series) | _profile(series, said.get(series.name), rules) for series in frame]


def _dropped(series: pl.Series) -> Column:
    column: Column = {"name": series.name, "type": str(series.dtype), "kind": "dropped", "missing": 0}
    return column | {"treatment": "", "features": [], "levels": [], "pooled": []}


def _profile(series: pl.Series, said: str | None, rules: _Rules) -> Column:
    """Return what differs from a dropped column, as all functions below do."""
    dtype = series.dtype
    if said == "id":
        missing = series.null_count()
        return {"missing": missing, "treatment": "dropped as an identifier, which the option id names"}
    if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
        raise TableError(
            f"Column {series.name!r} is of type {dtype}, neither numbers nor categories. Make columns "
            "of its parts, or leave it out with drop."
        )
    if said == "category":
        return _profile_category(level_text(series), rules)
    if said == "date" or (dtype in (pl.Date, pl.Datetime) and said is None):
        return profile_dates(series, digits=said == "date")
    if dtype in (pl.Date, pl.Datetime):
        raise TableError(f"Column {series.name!r} is named by number, but holds dates.")
    if dtype.is_temporal():
        unit = "duration in days" if dtype == pl.Duration else "time of day in hours"
        return _profile_number(as_quantity(series), "number", said, how=f"{unit}; ")
    if dtype == pl.Boolean or dtype.is_numeric():
        return _profile_number(series, "boolean" if dtype == pl.Boolean else "number", said)
    return _profile_text(cells.clean_text(series), said, rules, dtype != pl.String)


def _profile_number(
    series: pl.Series, kind: str, said: str | None, *, how: str = "", **more: str
) -> Column:
    name, values = series.name, to_float(series, series.name)
    missing = values.null_count()
    if reason := _reason_to_drop(series, values, said):
        return {"missing": missing, "treatment": reason, **more}
    # If no value is missing, only new tables need the median, and a part of the rows gives it.
    step = 1 if missing else max(1, len(values) // _MEDIAN_ROWS)
    median = _number((values if step == 1 else values.gather_every(step)).median())
    treatment = how + ("used as is" if kind == "number" else "1 for true, 0 for false")
    if missing:
        count = _count(missing, "missing value")
        treatment += f"; {count} replaced by the median, {median:g}, and marked by a second feature"
    names = [name, f"{name} is missing"] if missing else [name]
    column = {"kind": kind, "missing": missing, "treatment": treatment, "features": names, **more}
    return column | {"median": median}


def _reason_to_drop(series: pl.Series, values: pl.Series, said: str | None) -> str | None:
    """Return why a column of numbers is dropped: it is empty, constant, or identifies rows.

    Whole numbers of an integer type that are all different, in 20 rows or more, identify rows: account
    and phone numbers, with or without gaps, whatever their name, of which one in ten may be missing. A
    quantity, such as an income, repeats in a table of some length. In a short one it may be unique by
    chance, and the sentence says how to keep it. Numbers with decimals, and with negative values,
    identify nothing.
    """
    rows, missing = len(values), values.null_count()
    if missing == rows:
        return "dropped: every value is missing"
    low, high = _number(values.min()), _number(values.max())
    if low == high and not missing:
        return f"dropped: every value is {low:g}"
    whole = series.dtype.is_integer() and said != "number"
    present = rows - missing
    few = present < _FEW_ROWS or missing > _MISSING_IDS * rows
    if not whole or low < 0 or few or series.n_unique() < present + (missing > 0):
        return None
    # A row number takes all integers from low to high, or rises with gaps for deleted rows.
    span = high - low + 1
    if not missing and (span == rows or (span <= 2 * rows and series.is_sorted())):
        return (
            f"dropped as a row number: its values run from {low:.0f} to {high:.0f} without repetition; "
            f"{_KEEP}"
        )
    return f"dropped as an identifier: all values are unique whole numbers; {_KEEP}"


def _profile_text(text: pl.Series, said: str | None, rules: _Rules, categorical: bool) -> Column:
    """Profile a column of text; ``categorical`` says whether its type is one of categories."""
    counts = text.value_counts(sort=True, name="rows").drop_nulls()
    levels = counts[text.name]
    missing = len(text) - int(counts["rows"].sum() or 0)
    if not counts.height:
        return {"missing": missing, "treatment": "dropped: every value is missing"}
    if said == "number":
        nothing = {"missing": len(text), "treatment": "dropped: every value is missing"}
        return _profile_written(text, counts, rules, said) or nothing
    if cells.is_boolean(levels):
        return _profile_number(cells.as_boolean(text).alias(text.name), "boolean", said)
    if not categorical:
        if (number := _profile_written(text, counts, rules, said)) is not None:
            return number
        if 2 * len(dates_among(levels)) > len(levels):
            return profile_dates(text)
    return _profile_category(text, rules, may_identify=True)


def _profile_written(
    text: pl.Series, counts: pl.DataFrame, rules: _Rules, said: str | None
) -> Column | None:
    """Profile a column of numbers that are written as text; None if it holds something else."""
    name, wanted = text.name, said == "number"
    counts = counts.filter(cells.without_marks(counts[name]).is_not_null())
    levels = counts[name]
    codes = numerals.are_codes(levels) or levels.str.starts_with("(").all()
    if not counts.height or (codes and not wanted):
        return None
    style = numerals.number_style(levels)
    is_number = numerals.as_number(levels, style).is_not_null()
    share = _number(counts["rows"].filter(is_number).sum()) / _number(counts["rows"].sum())
    values = cells.without_marks(text)
    numbers = numerals.as_number(values, style).alias(name)
    if share == 1.0:
        if numerals.are_whole(levels):
            numbers = numbers.cast(pl.Int64)  # they may identify rows, as integers do
        how = f"text read as numbers{numerals.describe_style(style)}; "
        return _profile_number(numbers, "number", said, how=how, written=style)
    if not wanted and (share < _MOSTLY or counts.height <= rules.max_levels):
        return None
    row = int((values.is_not_null() & numbers.is_null()).arg_max() or 0)
    raise RowError(
        f"Column {name!r} is read as numbers, but holds {shown(text[row])} in row {RowError.ROW}. "
        "Correct such values, leave them empty, or leave the column out with drop.",
        row,
    )


def _profile_category(text: pl.Series, rules: _Rules, *, may_identify: bool = False) -> Column:
    """Profile a column of categories; ``may_identify`` allows to drop it as an identifier."""
    counts = text.value_counts(name="rows").drop_nulls()
    present = int(counts["rows"].sum() or 0)
    missing = len(text) - present
    if not present:
        return {"missing": missing, "treatment": "dropped: every value is missing"}
    counts = counts.sort("rows", text.name, descending=[True, False])
    if may_identify and counts.height >= _ID_SHARE * present and present >= _FEW_ROWS:
        reason = (
            f"dropped as an identifier: {counts.height:,} of {present:,} values are different (for "
            f"example {shown(counts[text.name][0])}); derive a feature from it if it is informative"
        )
        return {"missing": missing, "treatment": reason}
    return {"missing": missing} | _profile_levels(counts, missing, rules)


def _profile_levels(counts: pl.DataFrame, missing: int, rules: _Rules) -> Column:
    """Decide which levels of a category get a feature, pool the rest, and encode very many."""
    name, everything = counts.columns[0], counts.to_series(0).to_list()
    if len(everything) == 1 and not missing:
        return {"treatment": f"dropped: every value is {shown(everything[0])}"}
    encoded = rules.encode and len(everything) > rules.max_levels
    missing_level = missing >= rules.fewest
    room = rules.max_levels - missing_level
    levels = counts.filter(pl.col("rows") >= rules.fewest)[name].to_list()
    if len(levels) > room or len(levels) < len(everything):
        levels = levels[: room - 1]
    if not levels and not encoded:
        values = f"none of its {len(everything):,} different values has {rules.fewest} rows"
        return {"treatment": f"dropped: {values}, the fewest that a level needs"}
    names, pooled = [f"{name} = {level}" for level in levels], everything[len(levels) :]
    column: Column = {"kind": "category", "levels": levels}
    column |= {"pooled": pooled[:_NAMED_LEVELS], "pooled_count": len(pooled)}
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
    if encoded:
        column["encoded"] = f"{name} (mean of the label)"
        mean = f"the smoothed mean of the label at each of {len(everything):,} levels"
        if levels:
            treatment += f"; one more for {mean}"
        else:  # every level is rare, so that one-hot features would all be alike
            names, treatment = [], mean
        names.append(column["encoded"])
    return column | {"treatment": treatment, "features": names}


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _number(value: Any) -> float:
    return float(value) if value is not None else 0.0
