"""Probabilities from scores, with the ranking kept.

Both calibrators are strictly rising, so that rows stay in the order of their scores and AUC is
unchanged. A probability is a float64 in (0, 1), whose steps near 1 are 1e-16 wide, so no calibrator can
part *any* two scores: the plain sigmoid gives exactly 1 to all scores beyond 37. Ours keep the steps
for where scores are: beyond 16 (a probability within 1e-7 of 0 or 1, finer than any data can support)
the sigmoid goes on as a hyperbola. Scores of a model, with seven or more digits, keep their order; what
may become equal is a pair closer than about 1e-15 of the scores' spread in the middle and 1e-6 at 50.
To rank, use the scores.

Calibrators are fitted to scores of rows that the model has not seen: those held out in
cross-validation, or of a part of the data kept back. Both fit Platt's smoothed targets,
``(n + 1) / (n + 2)`` for n positives and ``1 / (n + 2)`` for n negatives, and not 1 and 0: a few rows
in perfect order are no proof of certainty. With weights n is the effective number of rows (Kish), so
that the unit of the weights does not matter. A row of weight 0 is absent.

References
----------
J. C. Platt. Probabilistic outputs for support vector machines and comparisons to regularized likelihood
methods. In Advances in Large Margin Classifiers, MIT Press, 1999.

H.-T. Lin, C.-J. Lin and R. C. Weng. A note on Platt's probabilistic outputs for support vector
machines. Machine Learning 68, 2007.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.base import BaseEstimator
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from aucmax.metrics.scored_rows import check_scored, check_values, effective_rows
from aucmax.runtime.parameters import check_choice, warn_user

__all__ = ["IsotonicCalibrator", "SigmoidCalibrator", "make_calibrator"]

#: Beyond so many logits the sigmoid goes on as a hyperbola.
_FAR = 16.0

#: The smallest slope, in logits per spread of the scores: flat, and still rising in float64.
_LEAST_SLOPE = 1e-4

#: The smallest spread, by the range of the scores.
_LEAST_SPREAD = 1e-9

#: Scores beyond these have slopes or differences that overflow.
_LEAST_SIZE, _LARGEST_SIZE = 2.0**-1000, 2.0**1000

#: Neighbouring isotonic steps closer than so many logits are one: rounding must not make a step.
_SAME = 1e-4

#: By which part of its height, or of the way to the next if that is nearer, an isotonic step tilts.
_TILT = 0.01


class SigmoidCalibrator(BaseEstimator):
    """Platt's sigmoid: the probability is ``1 / (1 + exp(-(slope * score + intercept)))``.

    Two numbers, so a few dozen positive rows are enough. The slope is always positive.

    Attributes
    ----------
    slope_, intercept_ : float
        Beyond 16 logits to either side, where the sigmoid is within 1.2e-7 of its limit, it goes on
        as a hyperbola of the same value and slope, so that far scores keep their order.

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax.metrics.calibration import SigmoidCalibrator
    >>> scores = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    >>> calibrator = SigmoidCalibrator().fit(scores, [False, False, True, False, True])
    >>> calibrator.predict(scores).round(2)
    array([0.21, 0.3 , 0.41, 0.53, 0.65])
    """

    slope_: float
    intercept_: float

    def fit(self, scores: Any, positive: Any, sample_weight: Any = None) -> SigmoidCalibrator:
        """Fit to the scores (n,) of rows of which some are positive (n,)."""
        positive, scores, weight = check_scored(positive, scores, sample_weight)
        scores, target, weight = _as_shares(scores, _smoothed_targets(positive, weight), weight)
        centre, spread = _centre_and_spread(scores, weight)
        slope, offset = _fit_line((scores - centre) / spread, target, weight)
        if slope < _LEAST_SLOPE:
            if slope < -_LEAST_SLOPE:
                warn_user(
                    "These scores rank worse than chance: a higher score goes with fewer positives, "
                    "so all probabilities are near the share of positives. Check which label is the "
                    "positive one, and whether the model has anything to learn from."
                )
            slope, offset = _LEAST_SLOPE, float(logit(weight @ target))
        self.slope_ = slope / spread
        self.intercept_ = offset - self.slope_ * centre
        return self

    def predict(self, scores: Any) -> np.ndarray:
        """Probability of the positive class for each score."""
        check_is_fitted(self)
        with np.errstate(over="ignore"):  # an infinite logit is a probability of 0 or 1
            logits = self.slope_ * check_values("scores", scores) + self.intercept_
        size = np.abs(logits)
        near = np.minimum(size, _FAR)
        rest = expit(-near) / (1.0 + expit(near) * (size - near))
        return np.where(logits < 0.0, rest, 1.0 - rest)


class IsotonicCalibrator(BaseEstimator):
    """Isotonic regression made strictly rising: any monotone shape, for a thousand positives or more.

    Isotonic regression is a staircase, flat over most scores, which would make ties of them. Here each
    step is tilted: it rises by about 1 % of its height to either side of where it would be flat.

    Attributes
    ----------
    scores_, probabilities_ : arrays of shape (n_knots,)
        Where each step begins and ends, and the probability there; both rise, linear in between.
    spread_ : float
        The mean deviation of the scores. At t spreads below the first knot the probability is
        ``probabilities_[0] * (1 - 0.01 * t / (1 + t))``; above the last, its distance from 1 shrinks
        in the same way.

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax.metrics.calibration import IsotonicCalibrator
    >>> scores = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    >>> calibrator = IsotonicCalibrator().fit(scores, [False, False, True, False, True])
    >>> calibrator.predict(scores).round(4)
    array([0.1984, 0.2016, 0.4725, 0.4775, 0.75  ])
    """

    # Lines between the centres of steps (Oron and Flournoy 2017) were tried: where the classes part
    # well the two outer steps are wide, and the line over both raised the log loss tenfold and more.

    scores_: np.ndarray
    probabilities_: np.ndarray
    spread_: float

    def fit(self, scores: Any, positive: Any, sample_weight: Any = None) -> IsotonicCalibrator:
        """Fit to the scores (n,) of rows of which some are positive (n,)."""
        positive, scores, weight = check_scored(positive, scores, sample_weight)
        scores, target, weight = _as_shares(scores, _smoothed_targets(positive, weight), weight)
        self.spread_ = _centre_and_spread(scores, weight)[1]
        each, row = np.unique(scores, return_inverse=True)
        mass = np.bincount(row, weight)
        stairs = isotonic_regression(np.bincount(row, weight * target) / mass, sample_weight=mass)
        first = np.flatnonzero(np.diff(logit(stairs), prepend=-np.inf) > _SAME)
        last = np.append(first[1:], each.size) - 1
        step = np.add.reduceat(mass * stairs, first) / np.add.reduceat(mass, first)
        # A step of one score is one knot, at its own height; others begin and end a little off it.
        wide = last > first
        height, rise = step * (1.0 - step), np.diff(step, prepend=0.0, append=1.0)
        begin = step - _TILT * wide * np.minimum(height, rise[:-1])
        end = step + _TILT * wide * np.minimum(height, rise[1:])
        knots = np.column_stack([np.ones_like(wide), wide]).ravel()
        self.scores_ = np.column_stack([each[first], each[last]]).ravel()[knots]
        self.probabilities_ = np.column_stack([begin, end]).ravel()[knots]
        return self

    def predict(self, scores: Any) -> np.ndarray:
        """Probability of the positive class for each score."""
        check_is_fitted(self)
        scores = check_values("scores", scores)
        first, last = self.probabilities_[0], self.probabilities_[-1]
        with np.errstate(over="ignore"):  # an infinite distance is the end of the tail
            below = _saturate((self.scores_[0] - scores) / self.spread_)
            above = _saturate((scores - self.scores_[-1]) / self.spread_)
        between = np.interp(scores, self.scores_, self.probabilities_)
        return between + _TILT * ((1.0 - last) * above - first * below)


def make_calibrator(method: str) -> SigmoidCalibrator | IsotonicCalibrator:
    """An unfitted calibrator by its name: "sigmoid" or "isotonic".

    >>> make_calibrator("sigmoid")
    SigmoidCalibrator()
    """
    check_choice("calibration", method, ("sigmoid", "isotonic"))
    return SigmoidCalibrator() if method == "sigmoid" else IsotonicCalibrator()


def _smoothed_targets(positive: np.ndarray, weight: np.ndarray) -> np.ndarray:
    n_pos, n_neg = effective_rows(weight[positive]), effective_rows(weight[~positive])
    return np.where(positive, (n_pos + 1.0) / (n_pos + 2.0), 1.0 / (n_neg + 2.0))


def _as_shares(
    scores: np.ndarray, target: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same with weights that add up to 1, without rows whose share vanishes."""
    share = weight / weight.sum()
    kept = share > 0.0
    return scores[kept], target[kept], share[kept]


def _centre_and_spread(scores: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Mean and mean absolute deviation: squares of extreme scores overflow. 1 for equal scores."""
    low, high = float(scores.min()), float(scores.max())
    if low == high:
        return low, 1.0
    size = max(abs(low), abs(high))
    if not _LEAST_SIZE < size < _LARGEST_SIZE:
        raise ValueError(
            f"scores are too {'small' if size < 1.0 else 'large'} to be calibrated: the largest is "
            f"{size:.3g} in size. Divide all of them by it."
        )
    centre = float(weight @ scores)
    spread = float(weight @ np.abs(scores - centre))
    return centre, max(spread, _LEAST_SPREAD * (high - low))  # one row may have all the weight


def _fit_line(x: np.ndarray, target: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Slope and intercept of the logits with the least cross-entropy, by Newton in a trust region."""

    def loss(line: np.ndarray) -> float:
        z = line[0] * x + line[1]
        return float(weight @ (np.logaddexp(0.0, z) - target * z))

    def gradient(line: np.ndarray) -> np.ndarray:
        pull = weight * (expit(line[0] * x + line[1]) - target)
        return np.array([pull @ x, pull.sum()])

    def hessian(line: np.ndarray) -> np.ndarray:
        p = expit(line[0] * x + line[1])
        curve = weight * p * (1.0 - p)
        cross = curve @ x
        return np.array([[curve @ (x * x), cross], [cross, curve.sum()]])

    start = np.array([0.0, float(logit(weight @ target))])
    found = minimize(
        loss,
        start,
        jac=gradient,
        hess=hessian,
        method="trust-exact",
        options={"gtol": 1e-9, "initial_trust_radius": 10.0, "max_trust_radius": 1e9},
    )
    return float(found.x[0]), float(found.x[1])


def _saturate(distance: np.ndarray) -> np.ndarray:
    """0 up to a distance of 0, then rising to 1."""
    return 1.0 - 1.0 / (1.0 + np.maximum(distance, 0.0))
