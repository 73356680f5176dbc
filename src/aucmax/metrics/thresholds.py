"""Choose a threshold on scores for a stated aim, and measure what it does.

A row is called positive when its score is at or above the threshold. All cuts between distinct scores
are compared, and those that call every row or no row positive. The threshold lies midway between the
two scores that it separates.

Aims, as text and as :class:`Aim`:

==================  ====================================================================================
``youden``          the largest recall minus false-positive rate; the default
``cost=5``          the least cost, where a missed positive costs as much as 5 false alarms
``cost=500:20``     the least cost, where a missed positive costs 500 and a false alarm 20
``cost=row:20``     the least cost, where each row has a cost of missing it, and a false alarm costs 20
``precision=0.8``   the most recall at a precision of at least 0.8
``recall=0.9``      the most precision at a recall of at least 0.9
``fpr=0.05``        the most recall at a false-positive rate of at most 0.05
``top=100``         at most 100 of the rows that the threshold is chosen on
``top=5%``          at most this share of the rows; this form carries over to other tables
==================  ====================================================================================

Among equally good cuts, the one that calls fewer rows positive wins; for ``recall``, among equally
precise cuts, the one with more recall. Rows count by weight; a row of weight 0 is absent.

Rates have Clopper and Pearson's (1934) exact intervals, and the intervals of counts follow from them.
With weights they use the effective number of rows (Kish). The intervals ignore that the cut was chosen
on the same rows; :func:`measure_threshold` on other rows is free of that bias.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any

import numpy as np

from aucmax.metrics.costs import miss_costs
from aucmax.metrics.cutoffs import sweep
from aucmax.metrics.intervals import check_confidence, effective_rows, share_interval
from aucmax.metrics.score_checks import check_scores
from aucmax.pairs import Floats
from aucmax.runtime.parameters import LARGEST, Number, check_value

__all__ = ["Aim", "Threshold", "choose_threshold", "measure_threshold"]

_FORMS = "youden, cost=5, cost=500:20, precision=0.8, recall=0.9, fpr=0.05, top=100 or top=5%"

_KINDS = ("cost", "precision", "recall", "fpr", "top", "share")
_ROUNDING = 1e-12  # of sums of weights: an aim that is missed by no more than this is met


@dataclass(frozen=True)
class Aim:
    """What a threshold is chosen for.

    >>> Aim.parse("top=5%")
    Aim(kind='share', value=0.05, alarm=1.0)
    >>> str(Aim("precision", 0.8))
    'precision=0.8'
    >>> str(Aim("cost", 500.0, alarm=20.0))
    'cost=500:20'
    """

    kind: str = "youden"  #: as in the text, but "share" for a top in percent
    value: float | None = None  #: None for "youden", and for a cost of missing that each row has
    alarm: float = 1.0  #: the cost of a false alarm

    @property
    def by_row(self) -> bool:
        """Return whether each row has its own cost of missing it."""
        return self.kind == "cost" and self.value is None

    def __post_init__(self) -> None:
        check_value("the cost of a false alarm", self.alarm, Number(0.0, math.inf))
        if self.alarm != 1.0 and self.kind != "cost":
            raise ValueError(f"only the aim cost takes a cost of a false alarm; got {self.kind}.")
        if self.by_row:
            return
        if self.kind in _KINDS:
            high = math.inf if self.kind in ("cost", "top") else 1.0
            check_value(f"the aim {self.kind}", self.value, Number(0.0, high, self.kind == "fpr"))
        elif self.kind != "youden":
            raise ValueError(f"{self.kind!r} is not an aim of a threshold; use {_FORMS}.")
        elif self.value is not None:
            raise ValueError(f"the aim youden takes no value; got {self.value!r}.")

    @classmethod
    def parse(cls, text: str) -> Aim:
        """Return the aim that a text such as ``"recall=0.9"`` or ``"recall=90%"`` names."""
        if not isinstance(text, str):
            raise TypeError(f"aim must be text such as {_FORMS}; got {text!r}.")
        kind, equals, number = (part.strip().lower() for part in text.partition("="))
        if kind == "youden" and not equals:
            return cls()
        if kind not in _KINDS or kind == "share":
            raise ValueError(f"{text!r} is not an aim of a threshold; use {_FORMS}.")
        percent = number.endswith("%")
        if kind == "cost" and "%" in number:
            raise ValueError(f"the aim {text!r} takes costs, not a percentage: cost=5 or cost=500:20.")
        number, colon, alarm = number.partition(":") if kind == "cost" else (number, "", "")
        try:
            if colon:
                return cls(kind, None if number.strip() == "row" else float(number), float(alarm))
            value = float(number.removesuffix("%"))
        except ValueError as error:
            if "could not convert" not in str(error):
                raise
            raise ValueError(f"the aim {text!r} needs a number after {kind}=; use {_FORMS}.") from None
        kind = "share" if kind == "top" and percent else kind
        return cls(kind, value / 100.0 if percent else value)

    def __str__(self) -> str:
        if self.by_row:
            return f"cost=row:{self.alarm:.12g}"
        if self.value is None:
            return self.kind
        if self.alarm != 1.0:
            return f"cost={self.value:.12g}:{self.alarm:.12g}"
        share = self.kind == "share"
        return f"top={100 * self.value:.12g}%" if share else f"{self.kind}={self.value:.12g}"


@dataclass(frozen=True)
class Threshold:
    """A threshold on scores with its confusion matrix; made by :func:`choose_threshold`."""

    threshold: float  #: a row is positive when its score is at or above it
    aim: str
    tp: float  #: true and false positives, false and true negatives, by weight
    fp: float
    fn: float
    tn: float
    precision: float  #: NaN if no row is called positive; other rates are NaN if their class has no row
    precision_low: float
    precision_high: float
    recall: float
    recall_low: float
    recall_high: float
    fpr: float
    fpr_low: float
    fpr_high: float
    confidence: float  #: the level of the exact intervals

    def count_intervals(self) -> dict[str, tuple[float, float]]:
        """Return bounds of each count in a population with as many positives and negatives as here."""
        pos, neg = self.tp + self.fn, self.fp + self.tn
        return {
            "tp": (pos * self.recall_low, pos * self.recall_high),
            "fp": (neg * self.fpr_low, neg * self.fpr_high),
            "fn": (pos * (1.0 - self.recall_high), pos * (1.0 - self.recall_low)),
            "tn": (neg * (1.0 - self.fpr_high), neg * (1.0 - self.fpr_low)),
        }

    def cost(self, miss: float, alarm: float = 1.0) -> float:
        """Return the cost of all mistakes, from that of a missed positive and of a false alarm."""
        return alarm * self.fp + miss * self.fn

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes and the intervals of the counts for JSON, with None for NaN."""
        out = {name: None if value != value else value for name, value in asdict(self).items()}
        for name, (low, high) in self.count_intervals().items():
            out |= {f"{name}_low": low, f"{name}_high": high}
        return out


def choose_threshold(
    positive: Any,
    scores: Any,
    aim: Aim | str | None = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
    *,
    miss_cost: Any = None,
) -> Threshold:
    """Return the best threshold for an aim among all cuts of these rows by score.

    A ValueError names the best there is if no cut meets the aim.

    Parameters
    ----------
    positive : bool array of shape (n,)
        Which rows are positive; both classes are needed.
    scores : array of shape (n,)
        Scores, or probabilities, of rows that the model was not fitted to.
    aim : Aim or str, optional
        One of :mod:`aucmax.metrics.thresholds`, such as ``"recall=0.9"``; ``"youden"`` by default.
    sample_weight : array of shape (n,), optional
    confidence : float, default=0.95
        The level of the intervals.
    miss_cost : array of shape (n,), optional
        What it costs to miss each row, for aims such as ``"cost=row:20"``.

    Examples
    --------
    >>> from aucmax.metrics.thresholds import choose_threshold
    >>> positive = [False, False, True, False, True, True]
    >>> chosen = choose_threshold(positive, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], "recall=0.6")
    >>> chosen.threshold, chosen.tp, chosen.fp, chosen.fn, chosen.tn
    (0.45, 2.0, 0.0, 1.0, 3.0)
    >>> round(chosen.recall, 2), round(chosen.recall_low, 2), round(chosen.recall_high, 2)
    (0.67, 0.09, 0.99)
    """
    if aim is None or isinstance(aim, str):
        aim = Aim() if aim is None else Aim.parse(aim)
    if not isinstance(aim, Aim):
        raise TypeError(f"aim must be an Aim or text such as {_FORMS}; got {aim!r}.")
    if aim.by_row != (miss_cost is not None):
        raise ValueError(
            f"the aim {aim} needs miss_cost, the cost of missing each row."
            if aim.by_row
            else f"miss_cost is for the aim cost=row:20, and the aim is {aim}."
        )
    costs = miss_costs(miss_cost, np.size(scores), sample_weight) if aim.by_row else None
    positive, scores, weight = check_scores(positive, scores, sample_weight)
    cuts = sweep(positive, scores, weight)
    if costs is None:
        best = _best_cut(aim, cuts.tp, cuts.fp)
    else:
        saved = cuts.totals(weight * costs, positive)
        best = int(np.argmin(aim.alarm * cuts.fp + (saved[-1] - saved)))
    threshold = float(cuts.thresholds()[best])
    return measure_threshold(positive, scores, threshold, weight, confidence, aim=str(aim))


def measure_threshold(
    positive: Any,
    scores: Any,
    threshold: float,
    sample_weight: Any = None,
    confidence: float = 0.95,
    *,
    aim: str = "given",
) -> Threshold:
    """Return the confusion matrix, rates and intervals of a threshold on any rows.

    Examples
    --------
    >>> from aucmax.metrics.thresholds import measure_threshold
    >>> found = measure_threshold([False, True, False, True], [0.1, 0.2, 0.3, 0.4], 0.3)
    >>> found.tp, found.fp, found.fn, found.tn
    (1.0, 1.0, 1.0, 1.0)
    """
    check_confidence(confidence)
    if not isinstance(threshold, Real) or not (abs(threshold) <= LARGEST or abs(threshold) == math.inf):
        raise ValueError(f"threshold must be a number; got {threshold!r}.")
    positive, scores, weight = check_scores(positive, scores, sample_weight, both_classes=False)
    called = scores >= threshold
    sides = [(up, real) for up in (called, ~called) for real in (positive, ~positive)]
    tp, fp, fn, tn = (float(weight[up & real].sum()) for up, real in sides)
    found: dict[str, float] = {"tp": tp, "fp": fp, "fn": fn, "tn": tn}
    for name, hits, of in (("precision", tp, called), ("recall", tp, positive), ("fpr", fp, ~positive)):
        total = float(weight[of].sum())
        share = min(1.0, hits / total) if total else math.nan
        low, high = share_interval(share, effective_rows(weight[of]), confidence)
        found |= {name: share, f"{name}_low": low, f"{name}_high": high}
    return Threshold(float(threshold), aim, **found, confidence=float(confidence))


def _best_cut(aim: Aim, tp: Floats, fp: Floats) -> int:
    """Return which cut serves the aim best; both counts rise from none to all."""
    value = math.nan if aim.value is None else float(aim.value)
    if aim.kind in ("youden", "cost"):  # only ratios matter here, and products must not overflow
        exponent = -int(np.frexp(max(tp[-1], fp[-1]))[1])
        tp, fp = np.ldexp(tp, exponent), np.ldexp(fp, exponent)
    n_pos, n_neg, called = tp[-1], fp[-1], tp + fp
    precision = np.divide(tp, called, out=np.zeros_like(tp), where=called > 0)
    if aim.kind == "youden":
        return int(np.argmax(tp * n_neg - fp * n_pos))  # whole numbers: no rounding
    if aim.kind == "cost":
        return int(np.argmin(aim.alarm * fp + value * (n_pos - tp)))
    if aim.kind == "recall":
        fits = tp >= (value - _ROUNDING) * n_pos
        return int(np.flatnonzero(fits & (precision == precision[fits].max()))[-1])
    if aim.kind == "fpr":
        return int(np.argmax(np.where(fp <= (value + _ROUNDING) * n_neg, tp, -1.0)))
    if aim.kind == "precision":
        fits = precision >= value - _ROUNDING
        if fits.any():
            return int(np.argmax(np.where(fits, tp, -1.0)))
        best = int(np.argmax(precision))
        raise ValueError(
            f"No threshold reaches a precision of {value:g} on these rows; the best is "
            f"{precision[best]:.4g}, at a recall of {tp[best] / n_pos:.4g}. Aim for less, or for "
            "recall or cost."
        )
    room = value if aim.kind == "top" else value * called[-1]
    cut = int(np.searchsorted(called, room + _ROUNDING * called[-1], side="right")) - 1
    if cut == 0:
        raise ValueError(
            f"The aim {aim} leaves room for {room:.4g} of these {called[-1]:.12g} rows, but "
            f"{called[1]:.12g} share the highest score, which no threshold can separate; aim for at "
            f"least top={math.ceil(called[1])}."
        )
    return cut
