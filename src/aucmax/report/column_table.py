"""What a report shows of a table: its columns in short, and the rows that are most wrongly ranked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from aucmax.report.words import cell, count, fixed, percent
from aucmax.tables.evaluation_rows import EvaluationRows

#: Rows in each list of mistakes, and columns of them.
_MISTAKES = 8
_MISTAKE_COLUMNS = 10


def column_rows(columns: Sequence[dict[str, Any]], frame: pl.DataFrame | None) -> list[dict[str, str]]:
    """A line for each column of the training table."""
    lines = []
    for column in columns:
        here = None if frame is None or column["name"] not in frame.columns else frame[column["name"]]
        missing = column["missing"] if here is None else _holes(here)
        lines.append(
            {
                "name": column["name"],
                "kind": column["kind"],
                "missing": count(missing) if missing else "–",
                "summary": _summary(column, here),
                "treatment": _capital(column["treatment"]),
            }
        )
    return lines


def missing_cells(columns: Sequence[dict[str, Any]], frame: pl.DataFrame) -> tuple[int, int]:
    """How many values of the columns in use are missing, of how many."""
    used = [c["name"] for c in columns if c["kind"] != "dropped" and c["name"] in frame.columns]
    return sum(_holes(frame[name]) for name in used), len(used) * frame.height


def _holes(series: pl.Series) -> int:
    nan = int(series.is_nan().sum() or 0) if series.dtype.is_float() else 0
    return series.null_count() + nan


def _summary(column: dict[str, Any], series: pl.Series | None) -> str:
    if series is None:
        return f"{count(len(column['levels']))} levels" if column["levels"] else ""
    series = (series.fill_nan(None) if series.dtype.is_float() else series).drop_nulls()
    if not len(series):
        return "none"
    if series.dtype == pl.Boolean:
        return f"true in {percent(float(series.mean() or 0.0))}"  # type: ignore[arg-type]
    if series.dtype.is_numeric() and column["kind"] != "category":
        low, middle, high = (cell(float(v)) for v in (series.min(), series.median(), series.max()))  # type: ignore[arg-type]
        return f"median {middle}, from {low} to {high}"
    if series.dtype.is_nested() or series.dtype in (pl.Object, pl.Binary):
        return str(series.dtype)
    counts = series.cast(pl.String).alias("value").value_counts(name="rows")
    first = counts.sort("rows", "value", descending=[True, False])
    often = f"{cell(first['value'][0], 40)} ({percent(first['rows'][0] / len(series), 0)})"
    return f"{count(counts.height)} different, most often {often}"


def confident_mistakes(
    rows: EvaluationRows, order: Sequence[str], positive: str, negative: str
) -> list[dict[str, Any]]:
    """Negatives of the highest scores and positives of the lowest, with the columns that matter."""
    if rows.frame is None or rows.number is None:
        return []
    names = [name for name in order if name in rows.frame.columns][:_MISTAKE_COLUMNS]
    kinds = {name: "number" if rows.frame[name].dtype.is_numeric() else "word" for name in names}
    groups = []
    for heading, of, sign in (
        (f"Rows of {negative} with the highest scores", ~rows.positive, -1.0),
        (f"Rows of {positive} with the lowest scores", rows.positive, 1.0),
    ):
        places = np.flatnonzero(of)
        worst = places[np.argsort(sign * rows.score[places], kind="stable")[:_MISTAKES]]
        table = rows.frame[worst].select(names)
        groups.append(
            {
                "heading": heading,
                "columns": [{"name": name, "kind": kinds[name]} for name in names],
                "rows": [
                    {
                        "number": int(rows.number[place]),
                        "score": fixed(float(rows.score[place]), 3),
                        "probability": percent(float(rows.probability[place])),
                        "cells": [
                            {"text": cell(value), "kind": kinds[name]}
                            for name, value in zip(names, values, strict=True)
                        ],
                    }
                    for place, values in zip(worst, table.iter_rows(), strict=True)
                ],
            }
        )
    return groups


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
