"""The target of a table: two labels, one of which is positive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from sklearn.utils.validation import column_or_1d

from aucmax.reading.frames import RowError, TableError, as_series, quoted, shown
from aucmax.reading.text import clean_text


@dataclass(frozen=True)
class Labels:
    """The two labels, and which rows are positive and which have a label at all."""

    positive: np.ndarray  # (n,) of bool; False where there is no label
    known: np.ndarray  # (n,) of bool
    classes: np.ndarray  # the two labels, sorted
    positive_label: Any
    negative_label: Any


def two_labels(y: Any, positive: Any, name: str) -> Labels:
    """Split a target by its two labels; the rarer one is positive unless another is named.

    >>> labels = two_labels(["no", "yes", "no", None], None, "bought")
    >>> labels.positive_label, labels.positive.tolist(), labels.known.tolist()
    ('yes', [False, True, False, False], [True, True, True, False])
    """
    target = f"The target {name!r}" if name else "The target y"
    series = _label_series(y, name)
    if series.null_count() == len(series):
        raise TableError(f"{target} is missing in every row; choose the column that holds the labels.")
    if series.dtype.is_temporal() or series.dtype.is_nested() or series.dtype == pl.Binary:
        raise TableError(
            f"{target} is of type {series.dtype}; it must hold two labels, such as yes and no."
        )
    counts = series.drop_nulls().value_counts(name="rows").sort(name)
    labels, rows = counts[name].to_list(), counts["rows"].to_list()
    wanted = None if positive is None else _find(labels, positive)
    if positive is not None and wanted is None:
        raise TableError(f"{target} has no label {positive!r} to be positive, only {quoted(labels)}.")
    if len(labels) == 1:
        raise TableError(
            f"{target} is {shown(labels[0])} in every row: one class, but a ranking needs two."
        )
    if len(labels) > 2:
        what, example = "has", shown(labels[int(np.argmin(rows))])
        if series.dtype.is_float() and (series % 1 != 0).any():
            what, example = "is continuous, with", f"above {np.median(series.drop_nulls()):g}"
        raise TableError(
            f"{target} {what} {len(labels):,} different values ({quoted(labels, 5)}). Only binary "
            f"classification is supported; make two labels of it, for example whether it is {example}."
        )
    up = int(rows[1] <= rows[0]) if wanted is None else wanted
    is_positive = (series == labels[up]).fill_null(False).to_numpy()
    known, classes = series.is_not_null().to_numpy(), np.sort(np.array(labels))
    return Labels(is_positive, known, classes, labels[up], labels[1 - up])


def known_labels(y: Any, negative: Any, positive: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows have the positive label, and which have one at all; refuse other labels."""
    series = _label_series(y, name)
    is_positive = {}
    for label in series.drop_nulls().unique().to_list():
        index = _find([negative, positive], label)
        if index is None:
            target = f"The target {name!r}" if name else "The target"
            raise RowError(
                f"{target} is {shown(label)} in row {RowError.ROW}; the labels of the model are "
                f"{negative!r} and {positive!r}.",
                int((series == label).fill_null(False).arg_max() or 0),
            )
        is_positive[label] = index == 1
    up = np.array([is_positive.get(label, False) for label in series.to_list()], dtype=bool)
    return up, series.is_not_null().to_numpy()


def _label_series(y: Any, name: str) -> pl.Series:
    if y is None:
        raise TableError(
            "TableModel requires y to be passed, but the target y is None; pass the label of each row."
        )
    if len(getattr(y, "shape", ())) == 2:
        y = column_or_1d(np.asarray(y), warn=True)
    try:
        single = isinstance(y, str | dict) or not np.asarray(y).ndim
    except ValueError as error:  # lists of different lengths
        raise ValueError(f"y must hold one label per row: {error}") from None
    if single:
        raise TypeError(f"y must hold one label per row; got {y!r}.")
    series = as_series(y, name)
    return clean_text(series) if series.dtype in (pl.String, pl.Categorical, pl.Enum) else series


def _find(labels: list[Any], wanted: Any) -> int | None:
    """Return the index of a label, which may be text: "1" for 1.0, "true" for True."""
    if not isinstance(wanted, str) and np.ndim(wanted):
        raise TypeError(f"positive must be one label; got {wanted!r}.")
    for i, label in enumerate(labels):
        if label == wanted or str(label).lower() == str(wanted).strip().lower():
            return i
    try:
        return [float(label) for label in labels].index(float(wanted))
    except (TypeError, ValueError):
        return None
