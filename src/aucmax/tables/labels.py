"""The target of a table: two labels, one of which is positive.

Of 0 and 1, or False and True, the positive label is 1 or True, as in all of scikit-learn. Otherwise it
is the rarer one, unless the user names another. A target with three or more labels needs the positive
one to be named; all others then count as one label, "not" the positive one.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    others: tuple[Any, ...] = ()  # the labels that count as negative, if there are three or more


def why_positive(positive: Any, negative: Any, *, named: bool) -> str:
    """Return why a label is the positive one, to print it in parentheses.

    >>> why_positive(1, 0, named=False), why_positive("yes", "no", named=False)
    ('1, not 0', 'the rarer label')
    """
    if named:
        return "as requested"
    if not isinstance(positive, str) and (positive, negative) == (1, 0):
        return f"{positive!r}, not {negative!r}"
    return "the rarer label"


def two_labels(y: Any, positive: Any, name: str) -> Labels:
    """Split a target by its labels; ``positive`` is the one that the user names as positive, or None.

    >>> labels = two_labels(["no", "yes", "no", None], None, "bought")
    >>> labels.positive_label, labels.positive.tolist(), labels.known.tolist()
    ('yes', [False, True, False, False], [True, True, True, False])
    """
    target = f"The target {name!r}" if name else "The target y"
    series = label_series(y, name)
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
    if len(labels) > 2 and wanted is None:
        what, example = "has", shown(labels[int(np.argmin(rows))])
        if series.dtype.is_float() and (series % 1 != 0).any():
            what, example = "is continuous, with", f"above {np.median(series.drop_nulls()):g}"
        raise TableError(
            f"{target} {what} {len(labels):,} different values ({quoted(labels, 5)}). Only binary "
            f"classification is supported; make two labels of it, for example whether it is {example}, "
            "or name one with positive to rank it against the rest."
        )
    up = wanted
    if up is None:
        up = 1 if labels == [0, 1] else int(rows[1] <= rows[0])
    is_positive = (series == labels[up]).fill_null(False).to_numpy()
    known = series.is_not_null().to_numpy()
    if len(labels) > 2:
        others = tuple(label for i, label in enumerate(labels) if i != up)
        one, rest = str(labels[up]), f"not {labels[up]}"
        return Labels(is_positive, known, np.sort(np.array([one, rest])), one, rest, others)
    return Labels(is_positive, known, np.sort(np.array(labels)), labels[up], labels[1 - up])


def known_labels(
    y: Any, negative: Any, positive: Any, name: str, others: Sequence[Any] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows have the positive label, and which have one at all; refuse unknown labels.

    ``others`` are the labels that count as negative, if the training table had three or more.
    """
    series = label_series(y, name)
    is_positive = {}
    for label in series.drop_nulls().unique().to_list():
        index = _find([negative, positive, *others], label)
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


def label_series(y: Any, name: str) -> pl.Series:
    """Return a target of any kind as a series with one label per row."""
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
    values = [_as_float(label) for label in labels]
    number = _as_float(wanted)
    return values.index(number) if number is not None and number in values else None


def _as_float(label: Any) -> float | None:
    try:
        return float(label)
    except (TypeError, ValueError):
        return None
