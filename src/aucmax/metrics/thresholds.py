"""A threshold on scores for a stated aim, and what to expect of it.

A row is called positive when its score is at or above the threshold. Every cut that rows can be divided
by is looked at: one between each two neighbouring distinct scores (equal scores are never parted), one
at the lowest score (all positive) and one above the highest (none). The threshold is put midway between
the two scores that it parts.

Aims, as text and as :class:`Aim`:

==================  ====================================================================================
``youden``          recall less false-positive rate as large as can be; the default
``cost=5``          least cost, a missed positive costing as much as 5 false alarms
``precision=0.8``   precision of at least 0.8, and of such cuts the most recall
``recall=0.9``      recall of at least 0.9, and of such cuts the most precision
``fpr=0.05``        false-positive rate of at most 0.05, and of such cuts the most recall
``top=100``         at most so many rows positive, of those that the threshold is chosen on
``top=5%``          at most this share of the rows positive: the form that carries over to other tables
==================  ====================================================================================

Of equally good cuts the one with fewer rows called positive is taken, but for ``recall``, where of
equally precise ones that with more recall is. Rows count by their weights; a row of weight 0 is absent.

The counts are those of the rows given, and so what a population of the same size and mix would show.
Rates have Clopper and Pearson's (1934) exact intervals, those of counts follow from them; with weights
they use the effective number of rows (Kish). An interval does not know that the cut was chosen on the
same rows: :func:`measure_threshold` on other rows is free of that, and the two are close when there are
many more rows of each class than matter to the choice.
"""

from __future__ import annotations

import math
import sys
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any

import numpy as np

from aucmax.metrics.auc import check_confidence
from aucmax.metrics.cutoffs import sweep
from aucmax.metrics.scored_rows import check_scored, effective_rows, share_interval
from aucmax.runtime.parameters import check_number

__all__ = ["Aim", "Threshold", "choose_threshold", "measure_threshold"]

_FORMS = "youden, cost=5, precision=0.8, recall=0.9, fpr=0.05, top=100 or top=5%"

#: The largest number that float64 holds.
_LARGEST = sys.float_info.max

#: Sums of weights are rounded: an aim is met up to this.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Aim:
    """What a threshold is chosen for.

    Parameters
    ----------
    kind : {"youden", "cost", "precision", "recall", "fpr", "top", "share"}
        "top" counts rows, "share" is a share of them: ``top=100`` and ``top=5%`` as text.
    value : float, optional
        None for "youden".

    Examples
    --------
    >>> from aucmax.metrics.thresholds import Aim
    >>> Aim.parse("top=5%")
    Aim(kind='share', value=0.05)
    >>> str(Aim("precision", 0.8))
    'precision=0.8'
    """

    kind: str = "youden"
    value: float | None = None

    def __post_init__(self) -> None:
        if self.kind == "youden" and self.value is None:
            return
        if self.kind == "youden":
            raise ValueError(f"the aim youden takes no value; got {self.value!r}.")
        if self.kind in ("cost", "top"):
            check_number(f"the aim {self.kind}", self.value)
        elif self.kind in ("precision", "recall", "share"):
            check_number(f"the aim {self.kind}", self.value, high=1.0)
        elif self.kind == "fpr":
            check_number(f"the aim {self.kind}", self.value, closed=True, high=1.0)
        else:
            raise ValueError(f"{self.kind!r} is no aim of a threshold; say {_FORMS}.")

    @classmethod
    def parse(cls, text: str) -> Aim:
        """The aim that a text such as ``"recall=0.9"`` or ``"recall=90%"`` names."""
        if not isinstance(text, str):
            raise TypeError(f"aim must be text such as {_FORMS}; got {text!r}.")
        kind, _, number = (part.strip().lower() for part in text.partition("="))
        if kind == "youden" and "=" not in text:
            return cls()
        if kind not in ("cost", "precision", "recall", "fpr", "top"):
            raise ValueError(f"{text!r} is no aim of a threshold; say {_FORMS}.")
        percent = number.endswith("%")
        try:
            value = float(number.removesuffix("%"))
        except ValueError:
            raise ValueError(f"the aim {text!r} needs a number after {kind}=; say {_FORMS}.") from None
        if kind == "cost" and percent:
            raise ValueError(f"the aim {text!r} takes a ratio of costs, not a percentage: cost=5.")
        kind = "share" if kind == "top" and percent else kind
        return cls(kind, value / 100.0 if percent else value)

    def __str__(self) -> str:
        if self.value is None:
            return self.kind
        share = self.kind == "share"
        return f"top={100 * self.value:.12g}%" if share else f"{self.kind}={self.value:.12g}"


@dataclass(frozen=True)
class Threshold:
    """A threshold on scores with its confusion matrix; made by :func:`choose_threshold`.

    Attributes
    ----------
    threshold : float
        A row is positive when its score is at or above it.
    aim : str
    tp, fp, fn, tn : float
        True and false positives, false and true negatives, by weight.
    precision, recall, fpr : float
        NaN where there is no row to speak of (precision when none is called positive).
    precision_low, precision_high, recall_low, recall_high, fpr_low, fpr_high : float
        Exact intervals at the level ``confidence``.
    """

    threshold: float
    aim: str
    tp: float
    fp: float
    fn: float
    tn: float
    precision: float
    precision_low: float
    precision_high: float
    recall: float
    recall_low: float
    recall_high: float
    fpr: float
    fpr_low: float
    fpr_high: float
    confidence: float

    def count_intervals(self) -> dict[str, tuple[float, float]]:
        """Low and high of each count in a population of as many positives and negatives as here."""
        pos, neg = self.tp + self.fn, self.fp + self.tn
        return {
            "tp": (pos * self.recall_low, pos * self.recall_high),
            "fp": (neg * self.fpr_low, neg * self.fpr_high),
            "fn": (pos * (1.0 - self.recall_high), pos * (1.0 - self.recall_low)),
            "tn": (neg * (1.0 - self.fpr_high), neg * (1.0 - self.fpr_low)),
        }

    def cost(self, ratio: float) -> float:
        """What the mistakes cost in false alarms, a missed positive costing ``ratio`` of them."""
        return self.fp + ratio * self.fn

    def to_dict(self) -> dict[str, Any]:
        """All attributes and the intervals of the counts, for JSON: NaN is None."""
        out = {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in asdict(self).items()
        }
        for name, (low, high) in self.count_intervals().items():
            out |= {f"{name}_low": low, f"{name}_high": high}
        return out


def choose_threshold(
    positive: Any,
    scores: Any,
    aim: Aim | str | None = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> Threshold:
    """The best threshold for an aim, exactly: of all ways to cut these rows by score.

    Parameters
    ----------
    positive : bool array of shape (n,)
        Which rows are positive; both classes are needed.
    scores : array of shape (n,)
        Scores, or probabilities, of rows that the model was not fitted to.
    aim : Aim or str, optional
        ``"youden"`` (the default), ``"cost=5"``, ``"precision=0.8"``, ``"recall=0.9"``,
        ``"fpr=0.05"``, ``"top=100"`` or ``"top=5%"``; see :mod:`aucmax.metrics.thresholds`.
    sample_weight : array of shape (n,), optional
    confidence : float, default=0.95
        Of the intervals.

    Raises
    ------
    ValueError
        Where no cut meets the aim; it names the best that can be had.

    Examples
    --------
    >>> from aucmax.metrics.thresholds import choose_threshold
    >>> positive = [False, False, True, False, True, True]
    >>> scores = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    >>> chosen = choose_threshold(positive, scores, "recall=0.6")
    >>> chosen.threshold, chosen.tp, chosen.fp, chosen.fn, chosen.tn
    (0.45, 2.0, 0.0, 1.0, 3.0)
    >>> round(chosen.recall, 2), round(chosen.recall_low, 2), round(chosen.recall_high, 2)
    (0.67, 0.09, 0.99)
    """
    if aim is None:
        aim = Aim()
    elif isinstance(aim, str):
        aim = Aim.parse(aim)
    elif not isinstance(aim, Aim):
        raise TypeError(f"aim must be an Aim or text such as {_FORMS}; got {aim!r}.")
    positive, scores, weight = check_scored(positive, scores, sample_weight)
    cuts = sweep(positive, scores, weight)
    threshold = float(cuts.thresholds()[_best_cut(aim, cuts.tp, cuts.fp)])
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
    """Confusion matrix, rates and intervals of a given threshold on any rows.

    Examples
    --------
    >>> from aucmax.metrics.thresholds import measure_threshold
    >>> found = measure_threshold([False, True, False, True], [0.1, 0.2, 0.3, 0.4], 0.3)
    >>> found.tp, found.fp, found.fn, found.tn
    (1.0, 1.0, 1.0, 1.0)
    """
    check_confidence(confidence)
    if not isinstance(threshold, Real) or not (
        abs(threshold) <= _LARGEST or abs(threshold) == math.inf
    ):
        raise ValueError(f"threshold must be a number; got {threshold!r}.")
    positive, scores, weight = check_scored(positive, scores, sample_weight, both_classes=False)
    called = scores >= threshold
    counts = {
        "tp": float(weight[called & positive].sum()),
        "fp": float(weight[called & ~positive].sum()),
        "fn": float(weight[~called & positive].sum()),
        "tn": float(weight[~called & ~positive].sum()),
    }
    rates: dict[str, float] = {}
    for name, hits, of in (
        ("precision", counts["tp"], called),
        ("recall", counts["tp"], positive),
        ("fpr", counts["fp"], ~positive),
    ):
        total = float(weight[of].sum())
        share = min(1.0, hits / total) if total else math.nan
        low, high = share_interval(share, effective_rows(weight[of]), confidence)
        rates |= {name: share, f"{name}_low": low, f"{name}_high": high}
    return Threshold(float(threshold), aim, **counts, **rates, confidence=float(confidence))


def _best_cut(aim: Aim, tp: np.ndarray, fp: np.ndarray) -> int:
    """Which cut serves the aim best; both counts rise from none to all."""
    value = math.nan if aim.value is None else float(aim.value)
    if aim.kind in ("youden", "cost"):  # of which only ratios matter: products must not overflow
        exponent = -int(np.frexp(max(tp[-1], fp[-1]))[1])
        tp, fp = np.ldexp(tp, exponent), np.ldexp(fp, exponent)
    n_pos, n_neg = tp[-1], fp[-1]
    called = tp + fp
    precision = np.divide(tp, called, out=np.zeros_like(tp), where=called > 0)
    if aim.kind == "youden":
        return int(np.argmax(tp * n_neg - fp * n_pos))  # whole numbers: no rounding
    if aim.kind == "cost":
        return int(np.argmin(fp + value * (n_pos - tp)))
    if aim.kind == "precision":
        fits = precision >= value - _ROUNDING
        if not fits.any():
            best = int(np.argmax(precision))
            raise ValueError(
                f"No threshold reaches a precision of {value:g} on these rows; the best is "
                f"{precision[best]:.4g}, at a recall of {tp[best] / n_pos:.4g}. Aim for less, or for "
                "recall or cost."
            )
        return int(np.argmax(np.where(fits, tp, -1.0)))
    if aim.kind == "recall":
        fits = tp >= (value - _ROUNDING) * n_pos
        return int(np.flatnonzero(fits & (precision == precision[fits].max()))[-1])
    if aim.kind == "fpr":
        return int(np.argmax(np.where(fp <= (value + _ROUNDING) * n_neg, tp, -1.0)))
    room = value if aim.kind == "top" else value * called[-1]
    cut = int(np.searchsorted(called, room + _ROUNDING * called[-1], side="right")) - 1
    if cut == 0:
        raise ValueError(
            f"The aim {aim} leaves room for {room:.4g} of these {called[-1]:.12g} rows, but "
            f"{called[1]:.12g} share the highest score, which no threshold can part; aim for at least "
            f"top={math.ceil(called[1])}."
        )
    return cut
