"""How good a ranking is, and how true its probabilities are, on rows with known classes.

Conventions: a tie counts one half in AUC. Rows count by their weights, and a row of weight 0 is absent.
The "top 1 %" is 1 % of the rows (of their weight) by score: where equal scores, or a single row, lie
across that cut, they count in part, which is the mean over all orders of the tied rows. So no number
depends on the order of the rows.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score

from aucmax.metrics.auc import check_confidence, roc_auc, roc_auc_interval
from aucmax.metrics.scored_rows import check_scored, check_values, effective_rows, share_interval

__all__ = ["CalibrationBin", "Evaluation", "PartialAUC", "TopShare", "evaluate"]

#: False-positive rates up to which partial AUC is given.
_MAX_FPRS = (0.05, 0.1)

#: Shares of the rows, from the highest score, of which lift is given.
_TOP_SHARES = (0.01, 0.05, 0.1)

#: Shares of the rows, by rising probability, between which calibration is looked at: tenths, and the
#: last one divided, where a rare class is.
_BIN_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


@dataclass(frozen=True)
class PartialAUC:
    """Area under the ROC curve up to a false-positive rate.

    ``area`` is at most ``max_fpr``; ``standardized`` is McClish's (1989): 0.5 for chance, 1 at best.
    """

    max_fpr: float
    area: float
    standardized: float


@dataclass(frozen=True)
class TopShare:
    """What is among the rows of highest score.

    ``rows`` is their weight, or number. ``captured`` is the share of all positives that is there,
    ``precision`` the share of positives among these rows, and ``lift`` the ratio of that to the share
    among all rows.
    """

    share: float
    rows: float
    captured: float
    precision: float
    lift: float


@dataclass(frozen=True)
class CalibrationBin:
    """Rows of similar probability (from ``low`` to ``high``), and how many of them are positive.

    ``observed`` has Clopper and Pearson's exact interval, by the effective number of rows.
    """

    low: float
    high: float
    rows: int
    mean_probability: float
    observed: float
    observed_low: float
    observed_high: float


@dataclass(frozen=True)
class Evaluation:
    """All that :func:`evaluate` finds.

    Attributes
    ----------
    rows, positives : int
        How many there are of non-zero weight.
    positive_share : float
        By weight.
    auc : float
    auc_low, auc_high, auc_standard_error : float or None
        DeLong's. None with unequal weights, for which it has no formula.
    confidence : float
        Of all intervals.
    partial_auc : tuple of PartialAUC
        At false-positive rates of up to 0.05 and 0.1.
    average_precision : float
    top : tuple of TopShare
        The highest 1, 5 and 10 %.
    brier, brier_skill, log_loss : float or None
        Of the probabilities; None where there are none. The skill is by which part the Brier score is
        below that of always saying the share of positives: 1 at best, 0 or less is useless.
    calibration : tuple of CalibrationBin, or None
        By tenths of the rows, the last divided at 5 and 1 % from the top; equal probabilities are kept
        together.
    """

    rows: int
    positives: int
    positive_share: float
    auc: float
    auc_low: float | None
    auc_high: float | None
    auc_standard_error: float | None
    confidence: float
    partial_auc: tuple[PartialAUC, ...]
    average_precision: float
    top: tuple[TopShare, ...]
    brier: float | None
    brier_skill: float | None
    log_loss: float | None
    calibration: tuple[CalibrationBin, ...] | None

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and dicts, for JSON; what does not apply is None."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }


def evaluate(
    positive: Any,
    scores: Any,
    probability: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> Evaluation:
    """Measure scores, and probabilities if there are any, of rows with known classes.

    Parameters
    ----------
    positive : bool array of shape (n,)
        Which rows are positive; both classes are needed.
    scores : array of shape (n,)
    probability : array of shape (n,), optional
        Of the positive class. Without it, nothing is said of Brier, log loss and calibration.
    sample_weight : array of shape (n,), optional
    confidence : float, default=0.95
        Of the intervals.

    Examples
    --------
    >>> from aucmax.metrics.evaluation import evaluate
    >>> positive = [True, False, True, False, False]
    >>> found = evaluate(positive, [4, 3, 2, 1, 0], probability=[0.9, 0.6, 0.5, 0.2, 0.1])
    >>> round(found.auc, 3), round(found.average_precision, 3), round(found.brier, 3)
    (0.833, 0.833, 0.134)
    >>> found.to_dict()["top"][2]
    {'share': 0.1, 'rows': 0.5, 'captured': 0.25, 'precision': 1.0, 'lift': 2.5}
    """
    check_confidence(confidence)
    if probability is not None:
        probability = _check_probability(probability, positive, sample_weight)
    positive, scores, weight = check_scored(positive, scores, sample_weight)
    weights = weight if np.ptp(weight) else None
    low: float | None
    high: float | None
    error: float | None
    if weights is None:
        auc, low, high, error = roc_auc_interval(positive, scores, confidence=confidence)
    else:
        auc, low, high, error = roc_auc(positive, scores, sample_weight=weights), None, None, None
    base = float(weight[positive].sum() / weight.sum())
    brier = skill = loss = bins = None
    if probability is not None:
        brier = float(brier_score_loss(positive, probability, sample_weight=weights))
        chance = base * float(weight[~positive].sum() / weight.sum())
        skill = 1.0 - brier / chance
        loss = float(log_loss(positive, probability, sample_weight=weights))
        bins = _calibration(positive, probability, weight, confidence)
    return Evaluation(
        rows=positive.size,
        positives=int(positive.sum()),
        positive_share=base,
        auc=auc,
        auc_low=low,
        auc_high=high,
        auc_standard_error=error,
        confidence=float(confidence),
        partial_auc=tuple(_partial_auc(positive, scores, weights, limit) for limit in _MAX_FPRS),
        average_precision=float(average_precision_score(positive, scores, sample_weight=weights)),
        top=_top(positive, scores, weight),
        brier=brier,
        brier_skill=skill,
        log_loss=loss,
        calibration=bins,
    )


def _check_probability(probability: Any, positive: Any, sample_weight: Any) -> np.ndarray:
    """As float64, of the rows of non-zero weight."""
    probability = check_values("probability", probability)
    bad = np.flatnonzero((probability < 0.0) | (probability > 1.0))
    if bad.size:
        raise ValueError(
            f"probability must lie between 0 and 1; row {bad[0]} has {probability[bad[0]]:g}. For the "
            "output of predict_proba take its second column."
        )
    return check_scored(positive, probability, sample_weight, name="probability")[1]


def _partial_auc(
    positive: np.ndarray, scores: np.ndarray, weight: np.ndarray | None, limit: float
) -> PartialAUC:
    standardized = float(roc_auc_score(positive, scores, max_fpr=limit, sample_weight=weight))
    # Scikit-learn gives McClish's form only: undo 0.5 (1 + (area - chance) / (limit - chance)).
    chance = 0.5 * limit * limit
    area = chance + (2.0 * standardized - 1.0) * (limit - chance)
    return PartialAUC(limit, area, standardized)


def _top(positive: np.ndarray, scores: np.ndarray, weight: np.ndarray) -> tuple[TopShare, ...]:
    _, row = np.unique(-scores, return_inverse=True)
    mass = np.append(0.0, np.cumsum(np.bincount(row, weight)))
    hits = np.append(0.0, np.cumsum(np.bincount(row, weight * positive)))
    found = []
    for share in _TOP_SHARES:
        # On a line through the ends of ties: each of the tied rows counts in part.
        captured = float(np.interp(share * mass[-1], mass, hits) / hits[-1])
        lift = captured / share
        precision = lift * float(hits[-1] / mass[-1])
        found.append(TopShare(share, float(share * mass[-1]), captured, precision, lift))
    return tuple(found)


def _calibration(
    positive: np.ndarray, probability: np.ndarray, weight: np.ndarray, confidence: float
) -> tuple[CalibrationBin, ...]:
    _, row = np.unique(probability, return_inverse=True)
    mass = np.bincount(row, weight)
    middle = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    group = np.searchsorted(_BIN_SHARES, middle, side="right")[row]
    found = []
    for index in np.unique(group):
        rows = group == index
        u, p = weight[rows], probability[rows]
        observed = float(u @ positive[rows] / u.sum())
        low, high = share_interval(observed, effective_rows(u), confidence)
        mean = float(u @ p / u.sum())
        found.append(
            CalibrationBin(float(p.min()), float(p.max()), int(rows.sum()), mean, observed, low, high)
        )
    return tuple(found)
