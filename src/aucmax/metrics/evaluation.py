"""Measures of a ranking, and of its probabilities, on rows with known classes.

Conventions: a tie counts one half in AUC. Rows count by weight; a row of weight 0 is absent. The "top 1
%" is the 1 % of the rows (of their weight) with the highest scores. Rows whose scores tie across that
cut count in part, which is the mean over all orders of the tied rows, so no measure depends on the
order of the rows.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score

from aucmax.metrics.auc import roc_auc, roc_auc_interval
from aucmax.metrics.cutoffs import sweep
from aucmax.metrics.intervals import check_confidence, effective_rows, share_interval
from aucmax.metrics.score_checks import check_scores, check_values
from aucmax.pairs import Floats, Mask

__all__ = ["CalibrationBin", "Evaluation", "PartialAUC", "TopShare", "evaluate"]

_MAX_FPRS = (0.05, 0.1)  # false-positive rates up to which partial AUC is measured
_TOP_SHARES = (0.01, 0.05, 0.1)  # shares of the rows, from the highest score down, with a lift

# Bounds of the calibration bins, as shares of the rows; the last tenth, with a rare class, is divided.
_BIN_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


@dataclass(frozen=True)
class PartialAUC:
    """Area under the ROC curve up to a false-positive rate."""

    max_fpr: float
    area: float  #: at most ``max_fpr``
    standardized: float  #: by McClish (1989): 0.5 for chance, 1 at best


@dataclass(frozen=True)
class TopShare:
    """The rows with the highest scores."""

    share: float
    rows: float  #: their weight; without weights their number
    captured: float  #: their share of all positives
    precision: float  #: the share of positives among them
    lift: float  #: the ratio of ``precision`` to the share of positives among all rows


@dataclass(frozen=True)
class CalibrationBin:
    """Rows of similar probability, and the share of them that is positive."""

    low: float  #: the lowest probability
    high: float
    rows: int
    mean_probability: float
    observed: float  #: the share of positives, with Clopper and Pearson's exact interval
    observed_low: float
    observed_high: float


@dataclass(frozen=True)
class Evaluation:
    """The measures that :func:`evaluate` returns."""

    rows: int  #: rows of non-zero weight
    positives: int
    positive_share: float  #: by weight
    auc: float
    auc_low: float | None  #: DeLong's interval; None with unequal weights, for which it has no formula
    auc_high: float | None
    auc_standard_error: float | None
    confidence: float  #: the level of all intervals
    partial_auc: tuple[PartialAUC, ...]  #: up to false-positive rates of 0.05 and 0.1
    average_precision: float
    top: tuple[TopShare, ...]  #: the highest 1, 5 and 10 %
    brier: float | None  #: this and all below are None without probabilities
    brier_skill: float | None  #: 1 is perfect; 0 is no better than predicting the share of positives
    log_loss: float | None
    calibration: tuple[CalibrationBin, ...] | None  #: by rising probability

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, lists and dicts for JSON; None where a measure does not apply."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}


def evaluate(
    positive: Any,
    scores: Any,
    probability: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> Evaluation:
    """Measure scores, and probabilities if there are any, on rows with known classes.

    Parameters
    ----------
    positive : bool array of shape (n,)
        Which rows are positive; both classes are needed.
    scores : array of shape (n,)
    probability : array of shape (n,), optional
        Probabilities of the positive class, for Brier score, log loss and calibration.
    sample_weight : array of shape (n,), optional
    confidence : float, default=0.95

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
    positive, scores, weight = check_scores(positive, scores, sample_weight)
    weights = weight if np.ptp(weight) else None
    auc: tuple[Any, ...] = (roc_auc(positive, scores, sample_weight=weights), None, None, None)
    if weights is None:
        auc = roc_auc_interval(positive, scores, confidence=confidence)
    base = float(weight[positive].sum() / weight.sum())
    return Evaluation(
        rows=positive.size,
        positives=int(positive.sum()),
        positive_share=base,
        **dict(zip(("auc", "auc_low", "auc_high", "auc_standard_error"), auc, strict=True)),
        confidence=float(confidence),
        partial_auc=tuple(_partial_auc(positive, scores, weights, limit) for limit in _MAX_FPRS),
        average_precision=float(average_precision_score(positive, scores, sample_weight=weights)),
        top=_top(positive, scores, weight),
        **_probability_measures(positive, probability, weight, confidence),
    )


def _check_probability(probability: Any, positive: Any, sample_weight: Any) -> Floats:
    """Return the probabilities of the rows of non-zero weight."""
    probability = check_values("probability", probability)
    bad = np.flatnonzero((probability < 0.0) | (probability > 1.0))
    if bad.size:
        raise ValueError(
            f"probability must lie between 0 and 1; row {bad[0]} has {probability[bad[0]]:g}. For the "
            "output of predict_proba take its second column."
        )
    return check_scores(positive, probability, sample_weight, name="probability")[1]


def _partial_auc(positive: Mask, scores: Floats, weight: Floats | None, limit: float) -> PartialAUC:
    standardized = float(roc_auc_score(positive, scores, max_fpr=limit, sample_weight=weight))
    # Scikit-learn returns only McClish's form: undo 0.5 (1 + (area - chance) / (limit - chance)).
    chance = 0.5 * limit * limit
    return PartialAUC(limit, chance + (2.0 * standardized - 1.0) * (limit - chance), standardized)


def _top(positive: Mask, scores: Floats, weight: Floats) -> tuple[TopShare, ...]:
    cuts = sweep(positive, scores, weight)
    mass, hits = cuts.tp + cuts.fp, cuts.tp
    found = []
    for share in _TOP_SHARES:
        # Linear between cuts: tied rows count in part.
        captured = float(np.interp(share * mass[-1], mass, hits) / hits[-1])
        lift = captured / share
        precision = min(1.0, lift * float(hits[-1] / mass[-1]))  # rounding may pass 1
        found.append(TopShare(share, float(share * mass[-1]), captured, precision, lift))
    return tuple(found)


def _probability_measures(
    positive: Mask, probability: Floats | None, weight: Floats, confidence: float
) -> dict[str, Any]:
    if probability is None:
        return dict.fromkeys(("brier", "brier_skill", "log_loss", "calibration"))
    weights = weight if np.ptp(weight) else None
    brier = float(brier_score_loss(positive, probability, sample_weight=weights))
    base, rest = (float(weight[of].sum() / weight.sum()) for of in (positive, ~positive))
    return {
        "brier": brier,
        "brier_skill": 1.0 - brier / (base * rest),
        "log_loss": float(log_loss(positive, probability, sample_weight=weights)),
        "calibration": _calibration(positive, probability, weight, confidence),
    }


def _calibration(
    positive: Mask, probability: Floats, weight: Floats, confidence: float
) -> tuple[CalibrationBin, ...]:
    _, row = np.unique(probability, return_inverse=True)
    mass = np.bincount(row, weight)
    middle = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    group = np.searchsorted(_BIN_SHARES, middle, side="right")[row]
    found = []
    for index in np.unique(group):
        rows = group == index
        u, p = weight[rows], probability[rows]
        observed, mean = (float(u @ of / u.sum()) for of in (positive[rows], p))
        interval = share_interval(observed, effective_rows(u), confidence)
        ends = float(p.min()), float(p.max())
        found.append(CalibrationBin(*ends, int(rows.sum()), mean, observed, *interval))
    return tuple(found)
