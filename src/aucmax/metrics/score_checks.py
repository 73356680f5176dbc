"""Check the classes, scores and weights of rows before they are measured."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from aucmax.pairs import Floats, Mask
from aucmax.rows.validation import as_floats, check_weight, refuse_odd


def check_scores(
    positive: Any,
    scores: Any,
    sample_weight: Any = None,
    *,
    both_classes: bool = True,
    name: str = "scores",
) -> tuple[Mask, Floats, Floats]:
    """Return which rows are positive, their scores and weights, without the rows of weight 0."""
    positive, scores = check_positive(positive), check_values(name, scores)
    if scores.size != positive.size:
        raise ValueError(
            f"positive and {name} must have one entry per row; got {positive.size} and {scores.size}."
        )
    if not scores.size:
        raise ValueError(f"{name} has no rows; at least one is needed.")
    weight = check_weight(sample_weight, scores.size)
    if not weight.all():
        positive, scores, weight = (each[weight > 0] for each in (positive, scores, weight))
    if both_classes and (positive.all() or not positive.any()):
        only = "positive" if positive.any() else "negative"
        raise ValueError(
            f"Rows of both classes are needed; all {positive.size} (of non-zero weight) are {only}."
        )
    return positive, scores, weight


def check_positive(positive: Any) -> Mask:
    """Return true or false for each row; refuse labels."""
    refuse_odd("positive", positive)
    try:
        flags = np.asarray(positive)
    except ValueError as error:  # lists of different lengths
        raise ValueError(f"positive must hold true or false for each row: {error}") from None
    if flags.ndim != 1:
        raise ValueError(f"positive must be one-dimensional; its shape is {flags.shape}.")
    for row, flag in enumerate([] if flags.dtype == bool else flags.tolist()):
        if not isinstance(flag, Real | Decimal) or flag not in (0, 1):
            raise ValueError(
                f"positive must be true or false for each row; row {row} has {flag!r}. For labels y "
                "write y == label."
            )
    return flags.astype(bool, copy=False)


def check_values(name: str, values: Any) -> Floats:
    """Return finite numbers, one for each row, as float64."""
    numbers: Floats = as_floats(name, values)
    if numbers.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional; its shape is {numbers.shape}.")
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        raise ValueError(
            f"{name} must be finite; row {bad[0]} has {numbers[bad[0]]} ({bad.size} such rows). "
            "Leave these rows out."
        )
    return numbers
