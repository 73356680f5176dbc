"""Warnings about a training table: what makes its AUC wrong, or too good to be true.

Costly checks take at most :data:`SAMPLE_ROWS` rows of each class. The AUC of a column does not depend
on the share of the classes, so a sample of each class measures it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

import numpy as np
import polars as pl

from aucmax.reading.dates import dates_among
from aucmax.reading.text import clean_text
from aucmax.tables.columns import Column, normal_frame, normal_name, used
from aucmax.tables.row_hashes import FEW_TWINS, twins_by_chance

SAMPLE_ROWS = 20_000  #: Rows of each class from which the AUC of single columns is measured.
_LEAKS = 0.98  #: A single column with this AUC or more most likely holds the answer.
_FEW = 30  #: With fewer rows of a class, the AUC is hardly known.
_USUAL_AUC = 0.8  #: The AUC for which the width of an interval is shown.
_FINE = 1 / 20  #: Share of different values that makes it unlikely that rows are equal by chance.
_FEW_CONTRADICT = 0.01  #: A smaller share of rows may be equal to others by chance.
_TIME_NAME = re.compile(
    r"(^|[^a-zA-Z])(time|date|datetime|timestamp|day|month|year)s?($|[^a-zA-Z])", re.I
)


@dataclass(frozen=True)
class Finding:
    """A problem or a warning, in a sentence, with the option of ``aucmax train`` that mends it."""

    kind: str
    sentence: str
    column: str | None = None
    option: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.sentence} Use {self.option}" if self.option else self.sentence


def option_for(name: str, column: str) -> str:
    """Return an option with the name of a column, as a shell takes it.

    >>> option_for("drop", "order date")
    "--drop 'order date'"
    """
    return f"--{name} {shlex.quote(column)}"


def warn_about_table(
    frame: pl.DataFrame,
    positive: np.ndarray,
    columns: Sequence[Column],
    target: str,
    levels: Mapping[str, int],
) -> list[Finding]:
    """Return the warnings about the rows in use: leaks, contradictory rows and few positives.

    ``levels`` has the number of different values of each column.
    """
    named = repr(target) if target else "the target"
    found = _few_rows(positive)
    found += _leaks(frame, positive, columns, named)
    return found + _contradictions(frame, positive, columns, levels)


# --- how well the AUC can be known


def _few_rows(positive: np.ndarray) -> list[Finding]:
    ups = int(positive.sum())
    downs = positive.size - ups
    fewer = min(ups, downs)
    if fewer >= _FEW:
        return []
    low, high = auc_interval(_USUAL_AUC, ups, downs)
    which = "positive" if ups <= downs else "negative"
    return [
        Finding(
            "few rows",
            f"Only {fewer} rows are {which}. If the AUC is {_USUAL_AUC:.2f}, its 95 % interval "
            f"goes from {low:.2f} to {high:.2f}: small differences between models mean nothing. "
            f"With 100 {which} rows it would be {_width(100, max(ups, downs)):.2f} wide.",
        )
    ]


def auc_interval(auc: float, positives: int, negatives: int) -> tuple[float, float]:
    """Return the 95 % interval to expect of an AUC (Hanley and McNeil, 1982, equation 1).

    >>> [round(end, 2) for end in auc_interval(0.8, 10, 1000)]
    [0.63, 0.97]
    """
    both_up, both_down = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    variance = auc * (1 - auc) + (positives - 1) * (both_up - auc**2)
    variance += (negatives - 1) * (both_down - auc**2)
    half = 1.96 * sqrt(variance / (positives * negatives))
    return max(0.0, auc - half), min(1.0, auc + half)


def _width(fewer: int, more: int) -> float:
    low, high = auc_interval(_USUAL_AUC, fewer, max(fewer, more))
    return high - low


# --- columns that hold the answer


def _leaks(
    frame: pl.DataFrame, positive: np.ndarray, columns: Sequence[Column], target: str
) -> list[Finding]:
    rows = sample_of_classes(positive)
    up = positive[rows]
    if not up.any() or up.all():
        return []
    some = frame if rows.size == frame.height else frame[rows]
    sampled = "" if rows.size == frame.height else f" on a sample of {rows.size:,} rows"
    found = []
    for column in used(columns):
        name = column["name"]
        codes = _codes(normal_frame(some, [column])[normal_name(column)], column)
        auc = _best_auc(codes, up, is_level=column["kind"] == "category")
        if auc < _LEAKS:
            continue
        drop = option_for("drop", name)
        if auc == 1.0 and np.unique(codes).size == 2:
            sentence = (
                f"Column {name!r} is a copy of {target}: each of its two values goes with one "
                f"label{sampled}."
            )
            found.append(Finding("copy of the target", sentence, name, drop))
        else:
            sentence = (
                f"Column {name!r} alone ranks the rows with an AUC of {auc:.3f}{sampled}. Such a "
                "column usually holds the answer, or something recorded after it. If it is not "
                "known when the model is used, leave it out."
            )
            found.append(Finding("leakage", sentence, name, drop))
    return found


def sample_of_classes(positive: np.ndarray) -> np.ndarray:
    """Return the numbers of all rows, or of evenly spaced rows of each class if there are many."""
    parts = []
    for rows in (np.flatnonzero(positive), np.flatnonzero(~positive)):
        step = -(-rows.size // SAMPLE_ROWS)
        parts.append(rows[:: max(1, step)])
    return np.sort(np.concatenate(parts))


def _codes(values: pl.Series, column: Column) -> np.ndarray:
    """Return numbers as they are, and a number for each level of a category, with rare ones as one."""
    if column["kind"] != "category":
        return values.to_numpy()
    numbers = {level: i + 1 for i, level in enumerate(column["levels"])}
    return values.replace_strict(numbers, default=0, return_dtype=pl.Int64).to_numpy()


def _best_auc(values: np.ndarray, positive: np.ndarray, *, is_level: bool) -> float:
    """Return the AUC by a column alone, in the better direction, with missing values at either end."""
    if is_level:  # the best order of levels is that by the share of positives
        ups = np.bincount(values, weights=positive)
        shares = ups / np.maximum(np.bincount(values), 1)
        return _auc(shares[values], positive)
    missing = np.isnan(values)
    if not missing.any():
        auc = _auc(values, positive)
        return max(auc, 1 - auc)
    both = [_auc(np.where(missing, end, values), positive) for end in (-np.inf, np.inf)]
    return max(max(auc, 1 - auc) for auc in both)


def _auc(values: np.ndarray, positive: np.ndarray) -> float:
    order = np.argsort(values)
    ordered, up = values[order], positive[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    ups = np.add.reduceat(up.astype(np.float64), starts)
    downs = np.diff(np.r_[starts, values.size]) - ups
    below = np.cumsum(downs) - downs
    return float((ups * (below + downs / 2)).sum() / (ups.sum() * downs.sum()))


# --- equal rows with different labels


def _contradictions(
    frame: pl.DataFrame, positive: np.ndarray, columns: Sequence[Column], levels: Mapping[str, int]
) -> list[Finding]:
    names = [column["name"] for column in used(columns)]
    if not any(levels[each["name"]] > _FINE * frame.height for each in used(columns, ["number"])):
        return []
    if twins_by_chance(frame.select(names)) > FEW_TWINS:
        return []
    rows = pl.DataFrame({"row": frame.select(names).hash_rows(), "up": positive})
    both = rows.group_by("row").agg(pl.len(), pl.col("up").sum())
    both = both.filter((pl.col("up") > 0) & (pl.col("up") < pl.col("len")))
    count = int(both["len"].sum())
    if count <= _FEW_CONTRADICT * positive.size:
        return []
    return [
        Finding(
            "contradictory rows",
            f"{count:,} rows equal another row in every column but have the other label. Check how the "
            "labels were made; if rows were joined or copied, keep one of each.",
        )
    ]


# --- identifiers that identify nothing


def warn_about_identifiers(
    frame: pl.DataFrame, levels: Mapping[str, int], named: Sequence[str], group: str | None
) -> list[Finding]:
    """Suggest to hold rows out together if a column that is named as an identifier repeats."""
    found = []
    for name in named:
        known = frame.height - frame[name].null_count() if name in frame.columns else 0
        if name == group or levels.get(name, known) == known:
            continue
        found.append(
            Finding(
                "repeated identifier",
                f"Column {name!r} is named as an identifier, but its {known:,} values are only "
                f"{levels[name]:,} different ones. If rows of one value belong together, as those of a "
                "customer do, hold them out together; otherwise the AUC is too high.",
                name,
                option_for("group", name),
            )
        )
    return found


# --- rows over time


def warn_about_time(frame: pl.DataFrame, ignored: Sequence[str]) -> list[Finding]:
    """Suggest a split by time if a column holds times, because the rows are split at random."""
    for series in frame:
        splits = not series.null_count() and series.name not in ignored
        if splits and is_time(series) and series.n_unique() > 1:
            return [
                Finding(
                    "time column",
                    f"Column {series.name!r} holds times, but rows are held out at random, so the AUC "
                    "is that for rows of the same period. To measure it on later rows, split by time.",
                    series.name,
                    option_for("time", series.name),
                )
            ]
    return []


def is_time(series: pl.Series) -> bool:
    """Return whether a column holds dates or times: by its type, its text, or its name and values."""
    if series.dtype.is_temporal():
        return series.dtype != pl.Duration
    if series.dtype == pl.String:
        text = clean_text(series.head(200)).drop_nulls()
        return len(text) > 0 and 2 * len(dates_among(text)) > len(text)
    if not series.dtype.is_integer() or not _TIME_NAME.search(series.name):
        return False
    low, high = series.min(), series.max()
    years = isinstance(low, int) and isinstance(high, int) and 1900 <= low < high <= 2100
    seconds = isinstance(low, int) and low > 10**8  # since 1970, or a date such as 20240131
    return years or seconds
