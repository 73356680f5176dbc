"""The numbers behind a report's curves and its slider: exact counts at cuts of the ranking.

A cut labels the rows at or above a threshold positive. If there are more than :data:`MOST_CUTS` cuts, a
selection is used. It is spread evenly over the positives, over the negatives and, by ratio, over the
number of rows labelled positive, so that each curve keeps its shape even if positives are rare.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from aucmax.metrics.cutoffs import sweep
from aucmax.metrics.intervals import effective_rows, share_interval
from aucmax.metrics.score_checks import check_scores
from aucmax.metrics.thresholds import Aim

MOST_CUTS = 1000
DRAWS = 1000  #: ROC curves drawn at random for the band.
_BAND_POINTS = 201


@dataclass(frozen=True)
class Cuts:
    """Cuts from the highest threshold, with no row positive, to the lowest, with all rows positive."""

    threshold: np.ndarray
    tp: np.ndarray  #: weight of positives at or above the threshold
    fp: np.ndarray
    positives: float  #: weight of all positives
    negatives: float
    start: int  #: index of the cut at the model's own threshold
    recall_rows: float  #: effective number of positives
    fpr_rows: float
    called_rows: np.ndarray  #: effective number of rows labelled positive at each cut
    distinct: int  #: number of cuts before the selection

    @property
    def recall(self) -> np.ndarray:
        return np.minimum(1.0, self.tp / self.positives)

    @property
    def fpr(self) -> np.ndarray:
        return np.minimum(1.0, self.fp / self.negatives)

    @property
    def called(self) -> np.ndarray:
        """Return the share of all rows that is labelled positive."""
        return (self.tp + self.fp) / (self.positives + self.negatives)

    @property
    def precision(self) -> np.ndarray:
        """Return the share of positives among the rows labelled positive; NaN if there are none."""
        total = self.tp + self.fp
        return np.divide(self.tp, total, out=np.full(total.size, np.nan), where=total > 0)

    @property
    def base_rate(self) -> float:
        return self.positives / (self.positives + self.negatives)

    def intervals(self, confidence: float = 0.95) -> dict[str, list[tuple[float, float]]]:
        """Return exact (Clopper-Pearson) bounds of precision, recall and false-positive rate."""
        rates = {
            "precision": (np.nan_to_num(self.precision), self.called_rows),
            "recall": (self.recall, np.full(self.tp.size, self.recall_rows)),
            "fpr": (self.fpr, np.full(self.tp.size, self.fpr_rows)),
        }
        return {
            name: [share_interval(share, n, confidence) for share, n in zip(shares, rows, strict=True)]
            for name, (shares, rows) in rates.items()
        }


def make_cuts(
    positive: Any,
    scores: Any,
    weight: Any = None,
    *,
    threshold: float | None = None,
    most: int = MOST_CUTS,
) -> Cuts:
    """Return cuts of rows, one of them at ``threshold`` (by default that of the Youden index)."""
    positive, scores, weight = check_scores(positive, scores, weight)
    cuts = sweep(positive, scores, weight)
    tp, fp = cuts.tp, cuts.fp
    if threshold is None:
        at = int(np.argmax(tp / tp[-1] - fp / fp[-1]))
    else:
        at = int(np.searchsorted(-cuts.distinct, -threshold, "right"))  # scores at or above it
    chosen = _select(tp, fp, most, at)
    start, thresholds = int(np.searchsorted(chosen, at)), cuts.thresholds()[chosen]
    if threshold is not None:
        thresholds[start] = threshold
    squares = cuts.totals(weight**2, positive) + cuts.totals(weight**2, ~positive)
    squares, called = squares[chosen], (tp + fp)[chosen]
    called_rows = np.divide(called**2, squares, out=np.zeros_like(called), where=squares > 0)
    totals, n = (float(tp[-1]), float(fp[-1])), tp.size
    class_rows = (effective_rows(weight[positive]), effective_rows(weight[~positive]))
    return Cuts(thresholds, tp[chosen], fp[chosen], *totals, start, *class_rows, called_rows, n)


def _select(tp: np.ndarray, fp: np.ndarray, most: int, at: int) -> np.ndarray:
    """Return the indices of at most ``most`` cuts: both ends, ``at``, and others evenly spread."""
    if tp.size <= most:
        return np.arange(tp.size)
    each, called = (most - 3) // 3, tp + fp
    targets = (
        (tp, np.linspace(0.0, tp[-1], each)),
        (fp, np.linspace(0.0, fp[-1], each)),
        (called, np.geomspace(called[1], called[-1], each)),
    )
    found = [np.searchsorted(counts, wanted) for counts, wanted in targets]
    return np.unique(np.clip(np.concatenate([*found, [0, at, tp.size - 1]]), 0, tp.size - 1))


def slider_stops(model: Any, cuts: Cuts) -> dict[str, Any]:
    """Return the cuts for the page's script, by rising threshold."""
    aim = Aim.parse(model.threshold_.aim) if model.threshold_.aim.startswith("cost=") else Aim()
    # The cost of a missed positive is that of the model's aim, or makes the default aim the cheapest.
    ratio = aim.value / aim.alarm if aim.value else float(f"{cuts.negatives / cuts.positives:.2g}")
    whole = bool((np.mod(cuts.tp, 1) == 0).all() and (np.mod(cuts.fp, 1) == 0).all())
    spread = float(cuts.threshold[0] - cuts.threshold[-1])
    bounds = {
        name: [[round(low, 5), round(high, 5)] for low, high in reversed(pairs)]
        for name, pairs in cuts.intervals().items()
    }
    thresholds = cuts.threshold[::-1]
    return {
        "threshold": thresholds.tolist(),
        "probability": [float(f"{p:.5g}") for p in model.calibrator_.predict(thresholds)],
        "tp": _plain(cuts.tp[::-1], whole),
        "fp": _plain(cuts.fp[::-1], whole),
        "positives": _plain([cuts.positives], whole)[0],
        "negatives": _plain([cuts.negatives], whole)[0],
        **bounds,
        "start": thresholds.size - 1 - cuts.start,
        "ratio": ratio,
        "alarm": aim.alarm,
        "digits": 0 if whole else 1,
        "places": int(np.clip(3 - math.floor(math.log10(spread)), 0, 8)) if spread > 0 else 3,
    }


def _plain(values: Any, whole: bool) -> list[float]:
    return [int(value) if whole else round(float(value), 6) for value in values]


@dataclass(frozen=True)
class Band:
    """Bounds of the true-positive rate at some false-positive rates."""

    fpr: np.ndarray
    low: np.ndarray
    high: np.ndarray


def roc_band(cuts: Cuts, confidence: float = 0.95, seed: int = 0) -> Band:
    """Return a pointwise band of the ROC curve.

    The shares of each class between neighbouring cuts are drawn from a Dirichlet distribution around
    the counts, with half a row beyond either end. At a single threshold this gives Jeffreys' interval
    of a share. So the band keeps its width where few positives are all ranked first, where that of a
    plain bootstrap would vanish.
    """
    rng = np.random.default_rng(seed)

    def draw(counts: np.ndarray, total: float, rows: float) -> np.ndarray:
        shape = np.concatenate([[0.5], np.diff(counts) * (rows / total), [0.5]])
        # A gamma variable of shape 0 is 0, as it should be between cuts without a row of this class.
        reached = np.cumsum(rng.standard_gamma(shape, size=(DRAWS, shape.size)), axis=1)
        return reached / reached[:, -1:]

    true = draw(cuts.tp, cuts.positives, cuts.recall_rows)
    false = draw(cuts.fp, cuts.negatives, cuts.fpr_rows)
    grid = np.linspace(0.0, 1.0, _BAND_POINTS) ** 2  # finer on the left, which matters most
    curves = np.array([np.interp(grid, f, t) for f, t in zip(false, true, strict=True)])
    tail = 0.5 * (1.0 - confidence)
    return Band(grid, *np.quantile(curves, [tail, 1.0 - tail], axis=0))


@dataclass(frozen=True)
class Histogram:
    """The share of each class's rows in bins of the score; rows beyond the ends are in the end bins."""

    edges: np.ndarray
    positive: np.ndarray
    negative: np.ndarray


def score_histogram(positive: np.ndarray, scores: np.ndarray, weight: np.ndarray) -> Histogram:
    """Bin all but the outermost thousandth of each class, in 15 to 50 bins by the smaller class."""
    classes = (positive, ~positive)
    bins = int(np.clip(2.0 * np.cbrt(min(rows.sum() for rows in classes)), 15, 50))
    ends = np.concatenate([np.quantile(scores[rows], [0.001, 0.999]) for rows in classes])
    low, high = float(ends.min()), float(ends.max())
    if high <= low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, bins + 1)
    inside = np.clip(scores, low, high)
    counts = [np.histogram(inside[rows], edges, weights=weight[rows])[0] for rows in classes]
    return Histogram(
        edges, *(count / weight[rows].sum() for count, rows in zip(counts, classes, strict=True))
    )
