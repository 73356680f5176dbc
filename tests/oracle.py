"""The specification, slow and obvious: explicit pairs."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize


def pair_loss(scores, positive, weight=None):
    """Value, gradient and Hessian of the all-pairs squared hinge, by a double loop."""
    n = len(scores)
    u = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    pos = [i for i in range(n) if positive[i] and u[i] > 0]
    neg = [j for j in range(n) if not positive[j] and u[j] > 0]
    total_pos, total_neg = sum(u[i] for i in pos), sum(u[j] for j in neg)
    c = (total_pos + total_neg) / (total_pos * total_neg)
    value, gradient, hessian = 0.0, np.zeros(n), np.zeros((n, n))
    for i in pos:
        for j in neg:
            slack = 1.0 - (scores[i] - scores[j])
            if slack > 0:
                k = c * u[i] * u[j]
                value += k * slack**2
                gradient[i] -= 2 * k * slack
                gradient[j] += 2 * k * slack
                hessian[i, i] += 2 * k
                hessian[j, j] += 2 * k
                hessian[i, j] -= 2 * k
                hessian[j, i] -= 2 * k
    return value, gradient, hessian


def auc(positive, scores, weight=None):
    """Share of pairs in order, ties one half, by a double loop."""
    u = np.ones(len(scores)) if weight is None else weight
    won = total = 0.0
    for i in np.flatnonzero(positive):
        for j in np.flatnonzero(~np.asarray(positive)):
            total += u[i] * u[j]
            won += u[i] * u[j] * ((scores[i] > scores[j]) + 0.5 * (scores[i] == scores[j]))
    return won / total


def best_objective(features, positive, C, weight=None, start=None):
    """Minimum of 1/2 ||w||^2 + C L(F w) by scipy's L-BFGS over explicit pair differences."""
    positive = np.asarray(positive)
    u = np.ones(len(positive)) if weight is None else np.asarray(weight, dtype=float)
    pos, neg = np.flatnonzero(positive & (u > 0)), np.flatnonzero(~positive & (u > 0))
    i, j = np.repeat(pos, len(neg)), np.tile(neg, len(pos))
    c = (u[pos].sum() + u[neg].sum()) / (u[pos].sum() * u[neg].sum())
    differences, k = features[i] - features[j], C * c * u[i] * u[j]

    def objective(w):
        slack = np.maximum(0.0, 1.0 - differences @ w)
        return 0.5 * w @ w + k @ slack**2, w - 2 * differences.T @ (k * slack)

    found = minimize(
        objective,
        np.zeros(features.shape[1]) if start is None else start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 50},
    )
    return found.fun, found.x
