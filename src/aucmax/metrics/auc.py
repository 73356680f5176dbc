"""AUC, its confidence interval, and a paired test of two scores of the same rows.

AUC is the share of positive-negative pairs in the right order; a tie counts one half. Variances are
DeLong's (DeLong, DeLong and Clarke-Pearson 1988), from sorted scores as in Sun and Xu (2014):
O(n log n), without resampling.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from aucmax.metrics.intervals import check_confidence
from aucmax.pairs import Floats, Mask, ordered_share
from aucmax.rows.validation import as_floats, check_labels, check_weight

__all__ = ["AUCComparison", "AUCInterval", "compare_roc_auc", "roc_auc", "roc_auc_interval"]

#: For each positive the share of negatives below it, for each negative the share of positives above it.
Placements = tuple[Floats, Floats]


class AUCInterval(NamedTuple):
    """An AUC with its confidence interval and DeLong standard error."""

    auc: float
    low: float
    high: float
    standard_error: float


class AUCComparison(NamedTuple):
    """The AUCs of a and b, their difference a - b with its interval, and the two-sided p-value."""

    auc_a: float
    auc_b: float
    difference: float
    low: float
    high: float
    p_value: float


def roc_auc(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Return the area under the ROC curve; ties count one half.

    Parameters
    ----------
    y_true : array of shape (n,)
        Two labels. The larger one is positive unless ``pos_label`` names another.
    y_score : array of shape (n,)
    sample_weight : array of shape (n,), optional
        A pair weighs the product of its rows' weights.
    pos_label : label, optional

    Examples
    --------
    >>> roc_auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    positive, scores = _split(y_true, y_score, pos_label)
    if sample_weight is None:
        return ordered_share(scores[positive], scores[~positive])
    weight = check_weight(sample_weight, scores.size)
    u_pos, u_neg = weight[positive], weight[~positive]
    if not u_pos.any() or not u_neg.any():
        raise ValueError("AUC needs both classes, but all sample_weight lies on one of them.")
    # Only ratios within a class matter; sums of the weights themselves could overflow or vanish.
    return ordered_share(scores[positive], scores[~positive], u_pos / u_pos.max(), u_neg / u_neg.max())


def roc_auc_interval(
    y_true: npt.ArrayLike, y_score: npt.ArrayLike, *, confidence: float = 0.95, pos_label: Any = None
) -> AUCInterval:
    """Return the AUC with DeLong's confidence interval, which stays within [0, 1].

    The interval is symmetric on the logit scale, where an estimate close to 1 is closer to normal.
    Where DeLong's formula fails on small samples, the interval is wide instead of empty. If a class has
    a single row, the variance is its upper bound ``auc (1 - auc) / n`` for n rows in the smaller class.
    If the AUC is exactly 0 or 1, the open end is the exact binomial bound for the smaller class.

    Examples
    --------
    >>> interval = roc_auc_interval([0, 0, 0, 1, 1], [0.1, 0.4, 0.2, 0.35, 0.8])
    >>> round(interval.auc, 3), round(interval.low, 2), round(interval.high, 2)
    (0.833, 0.15, 0.99)
    """
    check_confidence(confidence)
    positive, scores = _split(y_true, y_score, pos_label)
    placed = placements(scores[positive], scores[~positive])
    auc, smaller = float(placed[0].mean()), min(map(len, placed))
    variance = auc_variance(placed) if smaller > 1 else auc * (1.0 - auc) / smaller
    error = float(np.sqrt(variance))
    if auc in (0.0, 1.0):
        reach = float((0.5 * (1.0 - confidence)) ** (1.0 / smaller))
        low, high = (reach, 1.0) if auc == 1.0 else (0.0, 1.0 - reach)
        return AUCInterval(auc, low, high, error)
    half = float(special.ndtri(0.5 + 0.5 * confidence)) * error / (auc * (1.0 - auc))
    centre = np.log(auc / (1.0 - auc))
    low, high = (float(special.expit(end)) for end in (centre - half, centre + half))
    return AUCInterval(auc, min(low, auc), max(high, auc), error)  # rounding must not exclude the AUC


def compare_roc_auc(
    y_true: npt.ArrayLike,
    score_a: npt.ArrayLike,
    score_b: npt.ArrayLike,
    *,
    confidence: float = 0.95,
    pos_label: Any = None,
) -> AUCComparison:
    """Compare two scores of the same rows by DeLong's paired test.

    Where the variance of the difference cannot be estimated, the test claims little. If a class has a
    single row, the interval is [-1, 1] and p is 1. If all rows of a class moved by the same amount, p
    is that of a sign test over the smaller class.

    Examples
    --------
    >>> y = [0, 0, 0, 0, 1, 1, 1, 1]
    >>> a, b = [1, 2, 3, 5, 4, 6, 7, 8], [1, 6, 3, 5, 4, 2, 7, 8]
    >>> result = compare_roc_auc(y, a, b)
    >>> result.difference, round(result.p_value, 2)
    (0.25, 0.22)
    """
    check_confidence(confidence)
    positive, a = _split(y_true, score_a, pos_label, "score_a")
    _, b = _split(y_true, score_b, pos_label, "score_b")
    placed_a, placed_b = (placements(each[positive], each[~positive]) for each in (a, b))
    auc_a, auc_b = float(placed_a[0].mean()), float(placed_b[0].mean())
    difference, smaller = auc_a - auc_b, min(map(len, placed_a))
    if smaller < 2:
        return AUCComparison(auc_a, auc_b, difference, -1.0, 1.0, 1.0)
    error = float(np.sqrt(auc_variance(placed_a, placed_b)))
    if error == 0.0:
        p_value = 2.0 ** (1 - smaller) if difference else 1.0
        return AUCComparison(auc_a, auc_b, difference, difference, difference, p_value)
    half = float(special.ndtri(0.5 + 0.5 * confidence)) * error
    p_value = float(special.erfc(abs(difference) / error / np.sqrt(2.0)))
    low, high = max(-1.0, difference - half), min(1.0, difference + half)
    return AUCComparison(auc_a, auc_b, difference, low, high, p_value)


def placements(pos: Floats, neg: Floats) -> Placements:
    """Return each row's share of the other class ranked on its right side, from scores of the classes.

    The mean of either array is the AUC.

    >>> placements(np.array([0.35, 0.8]), np.array([0.1, 0.4, 0.8]))[0].tolist()
    [0.3333333333333333, 0.8333333333333334]
    """
    return _share_below(np.sort(neg), pos), 1.0 - _share_below(np.sort(pos), neg)


def auc_variance(placed: Placements, other: Placements | None = None) -> float:
    """Return DeLong's variance of an AUC, or of the difference of two AUCs of the same rows.

    A class with a single row adds nothing: its part of the variance cannot be estimated.
    """
    moved = placed if other is None else (placed[0] - other[0], placed[1] - other[1])
    return sum(float(each.var(ddof=1)) / each.size for each in moved if each.size > 1)


def _share_below(ascending: Floats, values: Floats) -> Floats:
    lower = np.searchsorted(ascending, values, "left") + np.searchsorted(ascending, values, "right")
    return lower / (2.0 * ascending.size)


def _split(
    y_true: npt.ArrayLike, y_score: npt.ArrayLike, pos_label: Any, name: str = "y_score"
) -> tuple[Mask, Floats]:
    """Return which rows are positive, and their scores; refuse what has no AUC."""
    check_labels(y_true, "y_true")
    labels, scores = np.asarray(y_true), as_floats(name, y_score)
    if labels.ndim != 1 or scores.shape != labels.shape:
        raise ValueError(
            f"y_true and {name} must be one-dimensional and of one length; their shapes are "
            f"{labels.shape} and {scores.shape}."
        )
    if np.isnan(scores).any():
        row = int(np.isnan(scores).argmax())
        raise ValueError(f"{name} has NaN at row {row}. Leave out rows without a score.")
    classes = np.unique(labels)
    if classes.size > 2:
        raise ValueError(
            f"AUC is for two classes; y_true has {classes.size}. Measure one class against the others "
            "with y_true == label."
        )
    if pos_label is not None and np.ndim(pos_label):
        raise ValueError(f"pos_label must be one label of y_true; got {pos_label!r}.")
    if pos_label is None and classes.size:
        pos_label = classes[-1]
    positive = labels == pos_label
    if positive.all() or not positive.any():
        raise ValueError(
            f"AUC needs both classes; {positive.sum()} of {positive.size} rows have {pos_label=}."
        )
    return positive, scores
