"""Checks of rows that have a score each, and confidence intervals of shares of such rows."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from aucmax.rows.validation import as_floats, check_weight, refuse_odd

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


def check_scored(
    positive: Any,
    scores: Any,
    sample_weight: Any = None,
    *,
    both_classes: bool = True,
    name: str = "scores",
) -> tuple[Flags, Floats, Floats]:
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


def check_positive(positive: Any) -> Flags:
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


def effective_rows(weight: Floats) -> float:
    """Return how many rows of equal weight would be as informative (Kish 1965); n if all are equal.

    The unit of the weights does not matter: a survey weight of 1000 does not count as 1000 rows.
    """
    if not weight.size:
        return 0.0
    share = weight / weight.max()
    return float(share.sum() ** 2 / (share @ share))


def share_interval(share: float, rows: float, confidence: float) -> tuple[float, float]:
    """Return Clopper and Pearson's (1934) exact bounds of a share of ``rows`` (effective) rows.

    They cover the true share at least as often as ``confidence``. For no rows they are 0 and 1.

    >>> low, high = share_interval(0.9, 20, 0.95)
    >>> round(low, 3), round(high, 3)
    (0.683, 0.988)
    """
    if not rows:
        return 0.0, 1.0
    tail = 0.5 * (1.0 - confidence)
    hits = min(max(share, 0.0), 1.0) * rows
    low = float(betaincinv(hits, rows - hits + 1.0, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1.0, rows - hits, 1.0 - tail)) if hits < rows else 1.0
    return low, high
