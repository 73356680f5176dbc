"""Turn scores into probabilities without changing the ranking.

Both calibrators rise strictly, so AUC does not change. They cannot separate *any* two scores, because a
float64 has steps of 1e-16 near 1: the plain sigmoid returns exactly 1 beyond 37 logits. Here the
sigmoid continues as a hyperbola beyond 16 logits, within 1e-7 of 0 or 1, which is finer than any data
supports. Scores with seven or more digits keep their order. To rank, use the scores.

Fit a calibrator to scores of held-out rows. Both calibrators fit Platt's smoothed targets (1999; Lin,
Lin and Weng 2007), ``(n + 1) / (n + 2)`` for n positives and ``1 / (n + 2)`` for n negatives, because a
few rows in perfect order do not prove certainty. With weights, n is the effective number of rows
(Kish), so the unit of the weights does not matter. A row of weight 0 is absent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.base import BaseEstimator
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from aucmax.metrics.intervals import effective_rows
from aucmax.metrics.score_checks import check_scores, check_values
from aucmax.pairs import Floats
from aucmax.runtime.parameters import OneOf, check_value, warn_user

__all__ = ["IsotonicCalibrator", "SigmoidCalibrator", "make_calibrator"]

SIGMOID_END = 16.0  #: the sigmoid continues as a hyperbola beyond this many logits
TILT = 0.01  #: an isotonic step tilts by this part of its height or of the distance to the next step
_LEAST_SLOPE = 1e-4  # in logits per spread of the scores: flat, but still rising in float64
_LEAST_SPREAD = 1e-9  # as a part of the range of the scores
_LEAST_SIZE, _LARGEST_SIZE = 2.0**-1000, 2.0**1000  # beyond, slopes or differences of scores overflow
_SAME = 1e-4  # isotonic steps closer than this many logits are joined: rounding must not make a step


class SigmoidCalibrator(BaseEstimator):
    """Platt's sigmoid: the probability is ``1 / (1 + exp(-(slope * score + intercept)))``.

    It has two parameters, so a few dozen positive rows are enough. The slope is always positive. Beyond
    16 logits the sigmoid continues as a hyperbola of the same value and slope.

    Examples
    --------
    >>> from aucmax.metrics.calibration import SigmoidCalibrator
    >>> scores = [-2.0, -1.0, 0.0, 1.0, 2.0]
    >>> SigmoidCalibrator().fit(scores, [False, False, True, False, True]).predict(scores).round(2)
    array([0.21, 0.3 , 0.41, 0.53, 0.65])
    """

    slope_: float
    intercept_: float

    def fit(self, scores: Any, positive: Any, sample_weight: Any = None) -> SigmoidCalibrator:
        """Fit to scores (n,) and to which rows are positive (n,)."""
        scores, target, share = _targets(scores, positive, sample_weight)
        centre, spread = _centre_and_spread(scores, share)
        slope, offset = _fit_line((scores - centre) / spread, target, share)
        if slope < -_LEAST_SLOPE:
            warn_user(
                "These scores rank worse than chance: positives score lower than negatives. All "
                "probabilities are close to the share of positives. Check which label is positive, and "
                "whether the features are informative."
            )
        if slope < _LEAST_SLOPE:
            slope, offset = _LEAST_SLOPE, float(logit(share @ target))
        self.slope_ = slope / spread
        self.intercept_ = offset - self.slope_ * centre
        return self

    def predict(self, scores: Any) -> Floats:
        """Return the probability of the positive class for each score."""
        check_is_fitted(self)
        with np.errstate(over="ignore"):  # an infinite logit is a probability of 0 or 1
            logits: Floats = self.slope_ * check_values("scores", scores) + self.intercept_
        size = np.abs(logits)
        near = np.minimum(size, SIGMOID_END)
        rest: Floats = expit(-near) / (1.0 + expit(near) * (size - near))
        return np.where(logits < 0.0, rest, 1.0 - rest)


class IsotonicCalibrator(BaseEstimator):
    """Isotonic regression made strictly rising: any monotone shape, for 1,000 positives or more.

    Isotonic regression is a staircase, flat over most scores, so it makes ties. Here each step tilts:
    it rises by about 1 % of its height on either side of its level.

    Attributes
    ----------
    scores_, probabilities_ : arrays of shape (n_knots,)
        The ends of the steps and the probabilities there; both rise, and are linear in between.
    spread_ : float
        The mean deviation of the scores. At t spreads below the first knot the probability is
        ``probabilities_[0] * (1 - 0.01 * t / (1 + t))``; above the last knot its distance from 1
        shrinks in the same way.

    Examples
    --------
    >>> from aucmax.metrics.calibration import IsotonicCalibrator
    >>> scores = [-2.0, -1.0, 0.0, 1.0, 2.0]
    >>> IsotonicCalibrator().fit(scores, [False, False, True, False, True]).predict(scores).round(4)
    array([0.1984, 0.2016, 0.4725, 0.4775, 0.75  ])
    """

    # Lines between the centres of steps (Oron and Flournoy 2017) were tried: where the classes separate
    # well the two outer steps are wide, and the line over both raised the log loss tenfold and more.

    scores_: Floats
    probabilities_: Floats
    spread_: float

    def fit(self, scores: Any, positive: Any, sample_weight: Any = None) -> IsotonicCalibrator:
        """Fit to scores (n,) and to which rows are positive (n,)."""
        scores, target, share = _targets(scores, positive, sample_weight)
        self.spread_ = _centre_and_spread(scores, share)[1]
        each, row = np.unique(scores, return_inverse=True)
        mass = np.bincount(row, share)
        stairs = isotonic_regression(np.bincount(row, share * target) / mass, sample_weight=mass)
        first = np.flatnonzero(np.diff(logit(stairs), prepend=-np.inf) > _SAME)
        last = np.append(first[1:], each.size) - 1
        step = np.add.reduceat(mass * stairs, first) / np.add.reduceat(mass, first)
        # A step with one score is one knot at its own height. Wider steps begin below it and end above.
        wide = last > first
        height, rise = step * (1.0 - step), np.diff(step, prepend=0.0, append=1.0)
        begin = step - TILT * wide * np.minimum(height, rise[:-1])
        end = step + TILT * wide * np.minimum(height, rise[1:])
        knots = np.column_stack([np.ones_like(wide), wide]).ravel()
        self.scores_ = np.column_stack([each[first], each[last]]).ravel()[knots]
        self.probabilities_ = np.column_stack([begin, end]).ravel()[knots]
        return self

    def predict(self, scores: Any) -> Floats:
        """Return the probability of the positive class for each score."""
        check_is_fitted(self)
        values = check_values("scores", scores)
        first, last = float(self.probabilities_[0]), float(self.probabilities_[-1])
        with np.errstate(over="ignore"):  # an infinite distance is the end of the tail
            beyond = (
                (self.scores_[0] - values) / self.spread_,
                (values - self.scores_[-1]) / self.spread_,
            )
        below, above = (1.0 - 1.0 / (1.0 + np.maximum(steps, 0.0)) for steps in beyond)
        between: Floats = np.interp(values, self.scores_, self.probabilities_)
        found: Floats = between + TILT * ((1.0 - last) * above - first * below)
        return found


def make_calibrator(method: str) -> SigmoidCalibrator | IsotonicCalibrator:
    """Return an unfitted calibrator by name: "sigmoid" or "isotonic"."""
    check_value("calibration", method, OneOf("sigmoid", "isotonic"))
    return SigmoidCalibrator() if method == "sigmoid" else IsotonicCalibrator()


def _targets(scores: Any, positive: Any, sample_weight: Any) -> tuple[Floats, Floats, Floats]:
    """Return scores, smoothed targets and weights that sum to 1, without rows whose share vanishes."""
    positive, scores, weight = check_scores(positive, scores, sample_weight)
    n_pos, n_neg = effective_rows(weight[positive]), effective_rows(weight[~positive])
    target = np.where(positive, (n_pos + 1.0) / (n_pos + 2.0), 1.0 / (n_neg + 2.0))
    share = weight / weight.sum()
    present = share > 0.0
    return scores[present], target[present], share[present]


def _centre_and_spread(scores: Floats, weight: Floats) -> tuple[float, float]:
    """Return the mean and the mean absolute deviation (1 if all scores are equal).

    A standard deviation would overflow on extreme scores.
    """
    low, high = float(scores.min()), float(scores.max())
    if low == high:
        return low, 1.0
    size = max(abs(low), abs(high))
    if not _LEAST_SIZE < size < _LARGEST_SIZE:
        raise ValueError(
            f"scores are too {'small' if size < 1.0 else 'large'} to be calibrated: the largest in "
            f"absolute value is {size:.3g}. Divide all scores by it."
        )
    centre = float(weight @ scores)
    spread = float(weight @ np.abs(scores - centre))
    return centre, max(spread, _LEAST_SPREAD * (high - low))  # one row may have all the weight


def _fit_line(x: Floats, target: Floats, weight: Floats) -> tuple[float, float]:
    """Return slope and intercept of the logits that minimise the cross-entropy."""

    def loss(line: Floats) -> float:
        z = line[0] * x + line[1]
        return float(weight @ (np.logaddexp(0.0, z) - target * z))

    def gradient(line: Floats) -> Floats:
        pull = weight * (expit(line[0] * x + line[1]) - target)
        return np.array([pull @ x, pull.sum()])

    def hessian(line: Floats) -> Floats:
        p = expit(line[0] * x + line[1])
        curve = weight * p * (1.0 - p)
        cross = curve @ x
        return np.array([[curve @ (x * x), cross], [cross, curve.sum()]])

    start = np.array([0.0, float(logit(weight @ target))])
    options: Any = {"gtol": 1e-9, "initial_trust_radius": 10.0, "max_trust_radius": 1e9}
    found = minimize(loss, start, jac=gradient, hess=hessian, method="trust-exact", options=options)
    return float(found.x[0]), float(found.x[1])
