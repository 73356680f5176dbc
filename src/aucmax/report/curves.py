"""The numbers behind a report's curves: cuts of the ranking, with exact counts at each.

A cut calls the rows at or above a threshold positive. Of many distinct scores at most
:data:`MOST_CUTS` cuts are kept, spread evenly over the positives, over the negatives and, by ratio,
over the number of rows called positive, so that no curve loses its shape and rare positives keep
theirs. Counts at the cuts that are kept are exact: only their number is less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from aucmax.metrics.cutoffs import sweep
from aucmax.metrics.scored_rows import check_scored, effective_rows, share_interval

MOST_CUTS = 1000

#: Draws of the ROC curve for its band, and points of the band.
DRAWS = 1000
_BAND_POINTS = 201


@dataclass(frozen=True)
class Cuts:
    """Cuts from the highest threshold, where no row is positive, to the lowest, where all are."""

    threshold: np.ndarray
    tp: np.ndarray  #: weight of positives at or above
    fp: np.ndarray
    positives: float  #: weight of all
    negatives: float
    start: int  #: the cut to begin with: the model's own threshold
    recall_rows: float  #: positives, as rows of equal weight
    fpr_rows: float
    called_rows: np.ndarray  #: rows called positive at each cut, as rows of equal weight
    distinct: int  #: all cuts there are

    @property
    def recall(self) -> np.ndarray:
        return np.minimum(1.0, self.tp / self.positives)

    @property
    def fpr(self) -> np.ndarray:
        return np.minimum(1.0, self.fp / self.negatives)

    @property
    def called(self) -> np.ndarray:
        """Share of all rows that are called positive."""
        return (self.tp + self.fp) / (self.positives + self.negatives)

    @property
    def precision(self) -> np.ndarray:
        """NaN where no row is called positive."""
        total = self.tp + self.fp
        return np.divide(self.tp, total, out=np.full(total.size, np.nan), where=total > 0)

    @property
    def base_rate(self) -> float:
        return self.positives / (self.positives + self.negatives)

    def intervals(self, confidence: float = 0.95) -> dict[str, list[tuple[float, float]]]:
        """Exact bounds (Clopper and Pearson's) of precision, recall and false-positive rate."""
        return {
            "precision": [
                share_interval(0.0 if math.isnan(share) else share, rows, confidence)
                for share, rows in zip(self.precision, self.called_rows, strict=True)
            ],
            "recall": [share_interval(share, self.recall_rows, confidence) for share in self.recall],
            "fpr": [share_interval(share, self.fpr_rows, confidence) for share in self.fpr],
        }


def make_cuts(
    positive: Any,
    scores: Any,
    sample_weight: Any = None,
    *,
    threshold: float | None = None,
    most: int = MOST_CUTS,
) -> Cuts:
    """Cuts of scored rows, one of them at ``threshold`` (or, without one, where recall less
    false-positive rate is largest)."""
    positive, scores, weight = check_scored(positive, scores, sample_weight)
    cuts = sweep(positive, scores, weight)
    tp, fp, distinct, cut = cuts.tp, cuts.fp, cuts.distinct, cuts.thresholds()
    squared = cuts.totals(weight**2, positive) + cuts.totals(weight**2, ~positive)
    if threshold is None:
        at = int(np.argmax(tp / tp[-1] - fp / fp[-1]))
    else:
        at = int(np.searchsorted(-distinct, -threshold, "right"))  # scores at or above it
    keep = _thin(tp, fp, most, at)
    start = int(np.searchsorted(keep, at))
    kept = cut[keep]
    if threshold is not None:
        kept[start] = threshold
    squares = squared[keep]
    called = (tp + fp)[keep]
    return Cuts(
        kept,
        tp[keep],
        fp[keep],
        float(tp[-1]),
        float(fp[-1]),
        start,
        effective_rows(weight[positive]),
        effective_rows(weight[~positive]),
        np.divide(called**2, squares, out=np.zeros_like(called), where=squares > 0),
        tp.size,
    )


def _thin(tp: np.ndarray, fp: np.ndarray, most: int, at: int) -> np.ndarray:
    """Indices of the cuts to keep: the ends, ``at`` and others evenly."""
    if tp.size <= most:
        return np.arange(tp.size)
    each = (most - 3) // 3
    called = tp + fp
    targets = (
        (tp, np.linspace(0.0, tp[-1], each)),
        (fp, np.linspace(0.0, fp[-1], each)),
        (called, np.geomspace(called[1], called[-1], each)),
    )
    found = [np.searchsorted(counts, wanted) for counts, wanted in targets]
    return np.unique(np.clip(np.concatenate([*found, [0, at, tp.size - 1]]), 0, tp.size - 1))


@dataclass(frozen=True)
class Band:
    """Bounds of the true-positive rate at given false-positive rates."""

    fpr: np.ndarray
    low: np.ndarray
    high: np.ndarray


def roc_band(cuts: Cuts, confidence: float = 0.95, seed: int = 0) -> Band:
    """A pointwise band of the ROC curve: at each false-positive rate, bounds for the true-positive one.

    Both classes are drawn anew: the shares of a class between neighbouring cuts are Dirichlet about
    the counts, half a row beyond either end. At a single threshold that is Jeffreys' interval of a
    share, so the band does not vanish where few positives are all ranked first, as that of a plain
    bootstrap would; over all cuts it is a draw of the whole curve.
    """
    rng = np.random.default_rng(seed)

    def draw(counts: np.ndarray, total: float, rows: float) -> np.ndarray:
        shape = np.concatenate([[0.5], np.diff(counts) * (rows / total), [0.5]])
        # A gamma variable of shape 0 is 0: cuts between which this class has no row.
        steps = rng.standard_gamma(shape, size=(DRAWS, shape.size))
        reached = np.cumsum(steps, axis=1)
        return reached / reached[:, -1:]

    true = draw(cuts.tp, cuts.positives, cuts.recall_rows)
    false = draw(cuts.fp, cuts.negatives, cuts.fpr_rows)
    grid = np.linspace(0.0, 1.0, _BAND_POINTS) ** 2  # finer at the left, where it is read
    curves = np.array([np.interp(grid, f, t) for f, t in zip(false, true, strict=True)])
    tail = 0.5 * (1.0 - confidence)
    low, high = np.quantile(curves, [tail, 1.0 - tail], axis=0)
    return Band(grid, low, high)


@dataclass(frozen=True)
class Histogram:
    """Share of each class's rows in bins of the score; rows beyond the ends are in the end bins."""

    edges: np.ndarray
    positive: np.ndarray
    negative: np.ndarray


def score_histogram(
    positive: np.ndarray, scores: np.ndarray, weight: np.ndarray, bins: int | None = None
) -> Histogram:
    """Bins over all but the outermost thousandth of either class; by the smaller one, 15 to 50."""
    if bins is None:
        bins = int(np.clip(2.0 * np.cbrt(min(positive.sum(), (~positive).sum())), 15, 50))
    ends = np.concatenate([np.quantile(scores[of], [0.001, 0.999]) for of in (positive, ~positive)])
    low, high = float(ends.min()), float(ends.max())
    if high <= low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, bins + 1)
    shares = []
    for of in (positive, ~positive):
        inside = np.clip(scores[of], low, high)
        counts = np.histogram(inside, bins=edges, weights=weight[of])[0]
        shares.append(counts / weight[of].sum())
    return Histogram(edges, *shares)
