"""AUC, its uncertainty, and paired comparison of two scores on the same rows.

AUC is the share of positive-negative pairs in order, a tie counting one half. Intervals and tests are
DeLong's (DeLong, DeLong and Clarke-Pearson 1988) by the midrank method of Sun and Xu (2014):
O(n log n), no resampling.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from aucmax.pairs import Floats, ordered_share
from aucmax.rows.validation import as_floats, check_labels, check_weight

__all__ = ["AUCComparison", "AUCInterval", "compare_roc_auc", "roc_auc", "roc_auc_interval"]


class AUCInterval(NamedTuple):
    """An AUC with its confidence interval and DeLong standard error."""

    auc: float
    low: float
    high: float
    standard_error: float


class AUCComparison(NamedTuple):
    """AUC of a, of b, a less b, its interval, and the two-sided p-value of no difference."""

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
    """Area under the ROC curve by sorting; ties count one half.

    Parameters
    ----------
    y_true : array of shape (n,)
        Two labels; the larger is the positive one unless ``pos_label`` names another.
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
        raise ValueError("AUC needs both classes: all sample_weight lies on one of them.")
    # Only ratios within a class matter; sums of the weights themselves could overflow or vanish.
    return ordered_share(scores[positive], scores[~positive], u_pos / u_pos.max(), u_neg / u_neg.max())


def roc_auc_interval(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    confidence: float = 0.95,
    pos_label: Any = None,
) -> AUCInterval:
    """AUC with DeLong's confidence interval, which never leaves [0, 1].

    The interval is symmetric on the logit scale, where the estimate is nearer to normal when it is
    close to 1. Little data is not taken for certainty: from a class with a single row, whose spread
    cannot be seen, the variance is its upper bound ``auc (1 - auc) / n`` for n rows in the smaller
    class; and at an AUC of exactly 0 or 1, where DeLong's variance vanishes, the open end is the exact
    binomial bound for the smaller class (all of its n rows in order).

    Examples
    --------
    >>> interval = roc_auc_interval([0, 0, 0, 1, 1], [0.1, 0.4, 0.2, 0.35, 0.8])
    >>> round(interval.auc, 3), round(interval.low, 2), round(interval.high, 2)
    (0.833, 0.15, 0.99)
    """
    check_confidence(confidence)
    positive, scores = _split(y_true, y_score, pos_label)
    auc, by_pos, by_neg = _components(positive, scores)
    smaller = min(by_pos.size, by_neg.size)
    bound = auc * (1.0 - auc) / smaller
    error = float(np.sqrt(bound if smaller < 2 else _variance(by_pos) + _variance(by_neg)))
    if auc in (0.0, 1.0):
        reach = float((0.5 * (1.0 - confidence)) ** (1.0 / smaller))
        low, high = (reach, 1.0) if auc == 1.0 else (0.0, 1.0 - reach)
        return AUCInterval(auc, low, high, error)
    centre = np.log(auc / (1.0 - auc))
    half = _quantile(confidence) * error / (auc * (1.0 - auc))
    low, high = (float(_logistic(centre + side * half)) for side in (-1, 1))
    return AUCInterval(auc, min(low, auc), max(high, auc), error)  # rounding must not part them


def compare_roc_auc(
    y_true: npt.ArrayLike,
    score_a: npt.ArrayLike,
    score_b: npt.ArrayLike,
    *,
    confidence: float = 0.95,
    pos_label: Any = None,
) -> AUCComparison:
    """Paired DeLong test of two scores of the same rows.

    Where the variance of the difference cannot be seen, little is claimed: from a class with a single
    row the interval is [-1, 1] and p is 1; where each row of a class moved by the same amount, p is
    that of a sign test over the smaller class.

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
    auc_a, pos_a, neg_a = _components(positive, a)
    auc_b, pos_b, neg_b = _components(positive, b)
    difference = auc_a - auc_b
    pos, neg = pos_a - pos_b, neg_a - neg_b
    smaller = min(pos.size, neg.size)
    if smaller < 2:
        return AUCComparison(auc_a, auc_b, difference, -1.0, 1.0, 1.0)
    error = float(np.sqrt(_variance(pos) + _variance(neg)))
    if error == 0.0:
        p_value = 2.0 ** (1 - smaller) if difference else 1.0
        return AUCComparison(auc_a, auc_b, difference, difference, difference, p_value)
    from scipy.special import erfc

    half = _quantile(confidence) * error
    p_value = float(erfc(abs(difference) / error / np.sqrt(2.0)))
    low, high = max(-1.0, difference - half), min(1.0, difference + half)
    return AUCComparison(auc_a, auc_b, difference, low, high, p_value)


def _components(positive: npt.NDArray[np.bool_], scores: Floats) -> tuple[float, Floats, Floats]:
    """AUC and each row's share of it: for a positive, of negatives below; for a negative, above."""
    pos, neg = scores[positive], scores[~positive]
    by_pos = _share_below(np.sort(neg), pos)
    by_neg = 1.0 - _share_below(np.sort(pos), neg)
    return float(by_pos.mean()), by_pos, by_neg


def _share_below(ascending: Floats, values: Floats) -> Floats:
    lower = np.searchsorted(ascending, values, "left") + np.searchsorted(ascending, values, "right")
    return lower / (2.0 * ascending.size)


def _variance(shares: Floats) -> float:
    """Of their mean."""
    return float(shares.var(ddof=1)) / shares.size


def _logistic(value: float) -> float:
    from scipy.special import expit

    return float(expit(value))


def _quantile(confidence: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + 0.5 * confidence))


def check_confidence(confidence: float) -> None:
    """Refuse a level that is no number between 0 and 1."""
    if not (isinstance(confidence, Real) and 0.0 < confidence < 1.0):
        raise ValueError(f"confidence must be a number between 0 and 1; got {confidence!r}.")


def _split(
    y_true: npt.ArrayLike, y_score: npt.ArrayLike, pos_label: Any, name: str = "y_score"
) -> tuple[npt.NDArray[np.bool_], Floats]:
    check_labels(y_true, "y_true")
    labels, scores = np.asarray(y_true), as_floats(name, y_score)
    if labels.ndim != 1 or scores.shape != labels.shape:
        raise ValueError(
            f"y_true and {name} must be one-dimensional and of one length; their shapes are "
            f"{labels.shape} and {scores.shape}."
        )
    if np.isnan(scores).any():
        raise ValueError(f"{name} has NaN at row {int(np.isnan(scores).argmax())}.")
    classes = np.unique(labels)
    if classes.size > 2:
        raise ValueError(f"AUC is for two classes; y_true has {classes.size}.")
    if pos_label is not None and np.ndim(pos_label):
        raise ValueError(f"pos_label must be one label of y_true; got {pos_label!r}.")
    if pos_label is None:
        if classes.size < 2:
            raise ValueError(f"AUC needs both classes; y_true has only {list(classes)}.")
        pos_label = classes[-1]
    positive = labels == pos_label
    if not positive.any() or positive.all():
        raise ValueError(
            f"AUC needs both classes; with pos_label={pos_label!r}, y_true has "
            f"{int(positive.sum())} positive of {positive.size} rows."
        )
    return positive, scores
