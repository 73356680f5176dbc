"""What a report shows of a table: a summary of each column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from aucmax.report.words import cell, count, percent


def column_rows(columns: Sequence[dict[str, Any]], frame: pl.DataFrame | None) -> list[dict[str, str]]:
    """Describe each column of the training table, with its values in ``frame`` if there is one."""
    lines = []
    for column in columns:
        here = None if frame is None or column["name"] not in frame.columns else frame[column["name"]]
        missing = column["missing"] if here is None else _count_missing(here)
        line = {key: column[key] for key in ("name", "kind", "treatment")}
        line |= {"missing": count(missing) if missing else "–", "summary": _summary(column, here)}
        lines.append(line)
    return lines


def missing_cells(columns: Sequence[dict[str, Any]], frame: pl.DataFrame) -> tuple[int, int]:
    """Count the missing values, and all values (at least 1), of the columns in use."""
    names = [c["name"] for c in columns if c["kind"] != "dropped" and c["name"] in frame.columns]
    return sum(_count_missing(frame[name]) for name in names), max(1, len(names) * frame.height)


def _count_missing(series: pl.Series) -> int:
    return series.null_count() + (int(series.is_nan().sum() or 0) if series.dtype.is_float() else 0)


def _summary(column: dict[str, Any], series: pl.Series | None) -> str:
    if series is None:
        return f"{count(len(column['levels']))} levels" if column["levels"] else ""
    series = (series.fill_nan(None) if series.dtype.is_float() else series).drop_nulls()
    if not len(series):
        return "no values"
    if series.dtype == pl.Boolean:
        return f"{percent(float(series.mean() or 0.0))} true"  # type: ignore[arg-type]
    if series.dtype.is_numeric() and column["kind"] != "category":
        low, middle, high = (cell(float(v)) for v in (series.min(), series.median(), series.max()))  # type: ignore[arg-type]
        return f"median {middle}, from {low} to {high}"
    if series.dtype.is_nested() or series.dtype in (pl.Object, pl.Binary):
        return str(series.dtype)
    counts = series.cast(pl.String).alias("value").value_counts(name="rows")
    if counts.height == len(series) > 1:
        return f"{count(counts.height)} different, each once"
    first = counts.sort("rows", "value", descending=[True, False])
    share = percent(first["rows"][0] / len(series), 0)
    return f"{count(counts.height)} different; most frequent: {cell(first['value'][0], 40)} ({share})"
