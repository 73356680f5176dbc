"""Drift: how the columns of a table differ from those of the training table.

The model keeps, for each column in use, the share of missing values and the distribution: of a number
its deciles with the share of rows up to each, of a category the shares of its levels. A table is
compared through at most :data:`SAMPLE_ROWS` evenly spaced rows.

Dates are left out, because later rows have later dates. Another column has drifted if its distance
from the training table is above :data:`DISTANCE` plus what chance explains in so many rows. The
distance of a number is the largest difference of the shares of rows up to a decile; that of a category
is the sum of the shares that would have to move to other levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

import numpy as np
import polars as pl

from aucmax.reading.frames import shown
from aucmax.tables.columns import RARE, Column, used

SAMPLE_ROWS = 20_000  #: Rows of a table that are compared.
DISTANCE = 0.1  #: Smaller distances are no drift.
_CHANCE = 1.63  #: Times the standard error: 1 in 100 columns is farther away by chance (Kolmogorov).
_COMPARED = ("number", "boolean", "category")  #: Kinds of columns.
_LEVELS = 50  #: Levels whose shares are kept.
_DECILES = np.linspace(0.0, 1.0, 11)

Reference = dict[str, Any]  #: What is kept of the training table: its rows, and a dict per column.


@dataclass(frozen=True)
class Drift:
    """A column that differs from the training table, the distance, and a sentence on it."""

    column: str
    distance: float
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for JSON."""
        return asdict(self)


def describe_rows(frame: pl.DataFrame, columns: Sequence[Column]) -> Reference:
    """Return what drift is measured against: a few numbers on each column of a normal frame."""
    kept = {}
    for column in used(columns, _COMPARED):
        series = frame[column["name"]]
        is_category = column["kind"] == "category"
        kept[column["name"]] = _level_shares(series, column) if is_category else _deciles(series)
    return {"rows": frame.height, "columns": kept}


def _level_shares(series: pl.Series, column: Column) -> dict[str, Any]:
    known = ["", *column["levels"][:_LEVELS]]
    level = pl.when(pl.col("level").is_in(known)).then(pl.col("level")).otherwise(pl.lit(RARE))
    counts = series.alias("level").to_frame().select(level).to_series().value_counts(name="rows")
    shares = {level: rows / max(1, len(series)) for level, rows in counts.iter_rows()}
    return {"shares": dict(sorted(shares.items(), key=lambda each: -each[1]))}


def _deciles(series: pl.Series) -> dict[str, Any]:
    values = series.to_numpy()
    known = values[~np.isnan(values)]
    missing = 1.0 - known.size / max(1, values.size)
    if not known.size:
        return {"missing": missing, "edges": [], "up_to": []}
    edges = np.unique(np.quantile(known, _DECILES, method="inverted_cdf").astype(np.float64))
    return {"missing": missing, "edges": edges.tolist(), "up_to": _up_to(known, edges).tolist()}


def _up_to(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the share of values that are at most each edge."""
    return np.searchsorted(np.sort(values), edges, side="right") / values.size


class RowSample:
    """An evenly spaced sample of the rows of a table that comes in batches, in constant memory."""

    def __init__(self) -> None:
        self._parts: list[pl.DataFrame] = []
        self._step = 1  # every step-th row is kept
        self._next = 0  # the next row, from the start of the next batch

    def add(self, frame: pl.DataFrame) -> None:
        """Take rows from the next batch."""
        part = frame[self._next :: self._step] if self._next < frame.height else frame.clear()
        self._next = (self._next - frame.height) % self._step
        if part.height:
            self._parts.append(part)
        while sum(each.height for each in self._parts) > SAMPLE_ROWS:
            self._thin()

    def _thin(self) -> None:
        whole = pl.concat(self._parts)
        # The next row must continue the even spacing after every second row is left out.
        if whole.height % 2:
            self._next += self._step
        self._parts, self._step = [whole.gather_every(2)], 2 * self._step

    @property
    def frame(self) -> pl.DataFrame | None:
        """Return the rows, or None if there were none."""
        return pl.concat(self._parts) if self._parts else None


def find_drift(frame: pl.DataFrame, columns: Sequence[Column], reference: Reference) -> list[Drift]:
    """Return the columns of a frame in normal form that differ from training, the farthest first."""
    chance = _CHANCE * sqrt(1 / max(1, frame.height) + 1 / max(1, reference["rows"]))
    found = []
    for column in used(columns, _COMPARED):
        kept = reference["columns"].get(column["name"])
        if kept is None:
            continue
        series = frame[column["name"]]
        compare = _compare_levels if "shares" in kept else _compare_numbers
        distance, sentence = compare(series, column, kept)
        levels = len(kept.get("shares", ())) or 1
        # Chance moves rows between many levels more often than between two.
        noise = chance * max(1.0, sqrt(levels / 6))
        if distance > DISTANCE + noise:
            found.append(Drift(column["name"], round(distance, 4), sentence))
    return sorted(found, key=lambda each: -each.distance)


def _compare_levels(series: pl.Series, column: Column, kept: dict[str, Any]) -> tuple[float, str]:
    before, now = kept["shares"], _level_shares(series, column)["shares"]
    moves = {level: now.get(level, 0.0) - before.get(level, 0.0) for level in {*before, *now}}
    distance = sum(abs(move) for move in moves.values()) / 2
    most = max(moves, key=lambda level: abs(moves[level]))
    named = {"": "no value", RARE: "a rare or new level"}.get(most, shown(most))
    return distance, (
        f"Column {column['name']!r}: {named} is in {now.get(most, 0.0):.0%} of the rows here, and in "
        f"{before.get(most, 0.0):.0%} in training."
    )


def _compare_numbers(series: pl.Series, column: Column, kept: dict[str, Any]) -> tuple[float, str]:
    name, values = column["name"], series.to_numpy()
    known = values[~np.isnan(values)]
    missing = 1.0 - known.size / max(1, values.size)
    more_missing = abs(missing - kept["missing"])
    edges, before = np.array(kept["edges"]), np.array(kept["up_to"])
    moved = float(np.abs(_up_to(known, edges) - before).max()) if known.size and edges.size else 0.0
    if more_missing >= moved:
        return more_missing, (
            f"Column {name!r} has no value in {missing:.0%} of the rows here, and in "
            f"{kept['missing']:.0%} in training."
        )
    if column["kind"] == "boolean":
        share = float(known.mean())
        return moved, (
            f"Column {name!r} is true in {share:.0%} of the rows here, and in {1 - before[0]:.0%} in "
            "training."
        )
    median, usual = float(np.median(known)), float(edges[np.searchsorted(before, 0.5)])
    spread = f"its median is {median:.6g} here and {usual:.6g} in training"
    if median != usual:
        direction = "higher" if median > usual else "lower"
        return moved, f"Column {name!r} is {abs(median - usual):.6g} {direction}: {spread}."
    low, high = np.quantile(known, [0.1, 0.9])
    first, last = edges[np.searchsorted(before, [0.1, 0.9])]
    return moved, (
        f"Column {name!r} is distributed differently: four fifths of its values lie between {low:.6g} "
        f"and {high:.6g} here, and between {first:.6g} and {last:.6g} in training."
    )
