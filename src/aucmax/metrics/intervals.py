"""Confidence intervals of shares of rows, which may have weights."""

from __future__ import annotations

from numbers import Real

from scipy.special import betaincinv

from aucmax.pairs import Floats


def check_confidence(confidence: float) -> None:
    """Refuse a confidence level that is not a number between 0 and 1."""
    if not (isinstance(confidence, Real) and 0.0 < confidence < 1.0):
        raise ValueError(f"confidence must be a number between 0 and 1; got {confidence!r}.")


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
