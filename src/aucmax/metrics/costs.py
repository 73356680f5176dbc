"""What the mistakes of a threshold cost, in any unit such as money.

A missed positive costs ``miss``, the same for all rows or a number for each, and a false alarm costs
``alarm``. Right decisions cost nothing. Rows count by weight.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from aucmax.metrics.intervals import check_confidence, effective_rows
from aucmax.metrics.score_checks import check_scores, check_values
from aucmax.pairs import Floats
from aucmax.rows.validation import check_weight
from aucmax.runtime.parameters import Number, check_value

__all__ = ["ExpectedCost", "expected_cost"]


@dataclass(frozen=True)
class ExpectedCost:
    """The cost of the mistakes of a threshold on some rows; made by :func:`expected_cost`."""

    missed: float  #: the cost of the missed positives
    alarms: float  #: the cost of the false alarms
    total: float
    per_row: float  #: with a normal interval from the spread of the costs of rows
    per_row_low: float
    per_row_high: float
    if_none: float  #: the total if no row were called positive
    if_all: float  #: the total if every row were
    confidence: float

    def to_dict(self) -> dict[str, float]:
        """Return all attributes, for JSON."""
        return asdict(self)


def expected_cost(
    positive: Any,
    scores: Any,
    threshold: float,
    *,
    miss: Any,
    alarm: float = 1.0,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> ExpectedCost:
    """Return what the mistakes of a threshold cost on rows with known classes.

    Parameters
    ----------
    positive : bool array of shape (n,)
    scores : array of shape (n,)
    threshold : float
        A row is called positive when its score is at or above it.
    miss : float or array of shape (n,)
        What it costs to miss a positive row; entries of negative rows have no effect.
    alarm : float, default=1
        What a false alarm costs.
    sample_weight : array of shape (n,), optional
    confidence : float, default=0.95

    Examples
    --------
    >>> from aucmax.metrics.costs import expected_cost
    >>> found = expected_cost([True, True, False, False], [4, 1, 3, 2], 2.5, miss=500, alarm=20)
    >>> found.missed, found.alarms, found.per_row, found.if_none, found.if_all
    (500.0, 20.0, 130.0, 1000.0, 40.0)
    """
    check_confidence(confidence)
    check_value("alarm", alarm, Number(0.0, math.inf, closed=True))
    costs = miss_costs(miss, np.shape(scores)[0] if np.ndim(scores) == 1 else 0, sample_weight)
    positive, scores, weight = check_scores(positive, scores, sample_weight, both_classes=False)
    called = scores >= threshold
    missed = np.where(positive & ~called, costs, 0.0)
    alarms = np.where(~positive & called, float(alarm), 0.0)
    each = missed + alarms
    mean = float(weight @ each / weight.sum())
    spread = float(weight @ (each - mean) ** 2 / weight.sum())
    half = float(ndtri(0.5 + 0.5 * confidence)) * math.sqrt(
        spread / max(1.0, effective_rows(weight) - 1)
    )
    return ExpectedCost(
        missed=float(weight @ missed),
        alarms=float(weight @ alarms),
        total=float(weight @ each),
        per_row=mean,
        per_row_low=max(0.0, mean - half),
        per_row_high=mean + half,
        if_none=float(weight @ np.where(positive, costs, 0.0)),
        if_all=float(alarm * weight[~positive].sum()),
        confidence=float(confidence),
    )


def miss_costs(miss: Any, rows: int, sample_weight: Any = None) -> Floats:
    """Return the cost of missing each row of non-zero weight; refuse what is below 0."""
    if np.ndim(miss) == 0:
        check_value("miss", miss, Number(0.0, math.inf, closed=True))
        miss = np.full(rows, float(miss))
    costs = check_values("the cost of missing a row", miss)
    if costs.size != rows:
        raise ValueError(f"there must be a cost for each of the {rows} rows; got {costs.size}.")
    if (costs < 0).any():
        row = int((costs < 0).argmax())
        raise ValueError(f"the cost of missing a row must be at least 0; row {row} has {costs[row]:g}.")
    out: Floats = costs if sample_weight is None else costs[check_weight(sample_weight, rows) > 0]
    return out
