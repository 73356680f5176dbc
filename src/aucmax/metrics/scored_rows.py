"""Rows that have a score each: their checks, and how sure a share of them is."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np

from aucmax.rows.validation import as_floats, check_weight, refuse_odd


def check_scored(
    positive: Any,
    scores: Any,
    sample_weight: Any = None,
    *,
    both_classes: bool = True,
    name: str = "scores",
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which rows are positive (bool), scores and weights (float64), rows of weight 0 left out."""
    positive, scores = check_positive(positive), check_values(name, scores)
    if scores.size != positive.size:
        raise ValueError(
            f"positive and {name} must have one entry per row; they have {positive.size} and "
            f"{scores.size}."
        )
    if not scores.size:
        raise ValueError(f"{name} has no rows; at least one is needed.")
    weight = check_weight(sample_weight, scores.size)
    keep = weight > 0
    if not keep.all():
        positive, scores, weight = positive[keep], scores[keep], weight[keep]
    if both_classes and (positive.all() or not positive.any()):
        only = "positive" if positive.any() else "negative"
        raise ValueError(
            f"Rows of both classes are needed; all {positive.size} (of non-zero weight) are {only}."
        )
    return positive, scores, weight


def check_positive(positive: Any) -> np.ndarray:
    """True or false for each row."""
    refuse_odd("positive", positive)
    try:
        flags = np.asarray(positive)
    except ValueError as error:  # lists of different lengths
        raise ValueError(f"positive must hold true or false for each row: {error}") from None
    if flags.ndim != 1:
        raise ValueError(f"positive must be one-dimensional; its shape is {flags.shape}.")
    if flags.dtype == bool:
        return flags
    for row, flag in enumerate(flags.tolist()):
        if not isinstance(flag, Number) or flag not in (0, 1):
            raise ValueError(
                f"positive must say true or false for each row; row {row} has {flag!r}. For labels y "
                "write y == label."
            )
    return flags.astype(bool)


def check_values(name: str, values: Any) -> np.ndarray:
    """Finite numbers, one for each row, as float64."""
    values = as_floats(name, values)
    if values.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional; its shape is {values.shape}.")
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise ValueError(
            f"{name} must be finite; row {bad[0]} has {values[bad[0]]} ({bad.size} such rows). "
            "Leave these rows out."
        )
    return values


def effective_rows(weight: np.ndarray) -> float:
    """How many rows of equal weight are worth as much as these (Kish 1965); n where all are equal.

    It does not depend on the unit of the weights: survey weights in the thousands are not taken for
    thousands of rows.
    """
    if not weight.size:
        return 0.0
    share = weight / weight.max()
    return float(share.sum() ** 2 / (share @ share))


def share_interval(share: float, rows: float, confidence: float) -> tuple[float, float]:
    """Clopper and Pearson's (1934) exact bounds of a share of so many (effective) rows.

    They hold the truth at least as often as they say. Of no rows nothing is known: 0 to 1.

    >>> low, high = share_interval(0.9, 20, 0.95)
    >>> round(low, 3), round(high, 3)
    (0.683, 0.988)
    """
    if not rows:
        return 0.0, 1.0
    from scipy.special import betaincinv

    tail = 0.5 * (1.0 - confidence)
    hits = min(max(share, 0.0), 1.0) * rows
    low = float(betaincinv(hits, rows - hits + 1.0, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1.0, rows - hits, 1.0 - tail)) if hits < rows else 1.0
    return low, high
