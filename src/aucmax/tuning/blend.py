"""A blend: other machines beside the one that tuning found, and the weights of their scores.

Machines that differ in what they see of the rows err on different pairs, and the mean of their scores
ranks better than each of them. So the others differ in scaling, metric or kernel, and each is tuned by
itself. Weights are those that rank held-out rows best by the pair loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from aucmax.fitting.settings import Settings
from aucmax.pairs import PairLoss, ordered_share
from aucmax.rows.interface import is_sparse
from aucmax.tuning.trial_rows import Sample

Array = npt.NDArray[Any]

#: The most machines of a blend.
MOST_MACHINES = 4

#: The weight of the pair loss against the squared weights, which make machines that are alike share.
_C = 1.0

#: A machine with less than this share of the weights is left out.
_LEAST_SHARE = 0.05


class Variant(NamedTuple):
    """How another machine differs from the one that tuning found: in scaling, metric or kernel."""

    what: str
    standardize: Any
    kernel: str | None  #: None is open
    metric: bool  #: whether it may have one


def machines_within(effort: float) -> int:
    """Return the number of machines, by the effort.

    >>> machines_within(1.0), machines_within(2.0), machines_within(10.0)
    (1, 2, 4)
    """
    return int(np.clip(effort, 1, MOST_MACHINES))


def variants(found: Settings, asked: Settings, sample: Sample) -> list[Variant]:
    """Return the machines worth adding to one that was found, among what ``asked`` leaves open."""
    own, out = found.standardize, []
    other = True if own == "quantile" else "quantile"
    if asked.standardize is None and other in sample.rows:
        what = "columns standardised" if other is True else "columns by rank"
        out.append(Variant(what, other, asked.kernel, True))
    if found.metric is not None:
        out.append(Variant("no metric", own, asked.kernel, False))
    # It would make CSR rows dense, and a gamma that is given is the rbf's.
    if asked.kernel is None and asked.gamma is None and not is_sparse(sample.rows[own]):
        out.append(Variant("the laplacian", own, "laplacian", False))
    return out


def blend_weights(held: Sequence[Sequence[Array]], sample: Sample) -> tuple[Array, float]:
    """Return non-negative weights of machines, which add up to 1, and the AUC of the weighted scores.

    ``held`` are each machine's scores (m, k) of each fold's held-out rows. Each choice of machines is
    weighted by the pair loss, and what ranks held-out rows best is returned: of equals the first, and
    machines alone come before blends.
    """
    folds = [test for _, test in sample.folds]
    scores = [np.stack(parts, axis=-1).astype(np.float64) for parts in zip(*held, strict=True)]
    scores = [part - part.mean(axis=0) for part in scores]  # pairs do not fix the level
    spread = np.sqrt(np.mean([(part**2).mean(axis=(0, 1)) for part in scores], axis=0))
    best, highest = np.zeros(len(held)), -1.0
    for size in range(1, len(held) + 1):
        for kept in map(list, combinations(np.flatnonzero(spread > 0).tolist(), size)):
            own = np.ones(1)
            if size > 1:
                own = _minimum([part[..., kept] / spread[kept] for part in scores], folds, sample)
            if (own < _LEAST_SHARE * own.sum()).any():
                continue  # the same without these machines comes before
            weights = np.zeros(len(held))
            weights[kept] = own / spread[kept]
            weights /= weights.sum()
            auc = _auc(scores, weights, folds, sample)
            if auc > highest:
                best, highest = weights, auc
    if not best.any():  # all scores are constant
        best[0] = 1.0
    return best, highest


def _minimum(scores: Sequence[Array], folds: Sequence[Array], sample: Sample) -> Array:
    """Minimise ``1/2 ||w||^2 + C L(w)`` for ``w >= 0``.

    L is the pair loss of the folds' scores (m, k, machines), added up over the classes and divided by
    their number.
    """
    terms = [
        (PairLoss(up[test], sample.weight[test]), part[:, ranking])
        for part, test in zip(scores, folds, strict=True)
        for ranking, up in enumerate(sample.positives)
    ]
    cost = _C / len(sample.positives)

    def objective(weights: Array) -> tuple[float, Array]:
        value, slope = 0.5 * float(weights @ weights), weights.copy()
        for loss, part in terms:
            point = loss.at(part @ weights)
            value += cost * float(point.value)
            slope += cost * (part.T @ point.gradient)
        return value, slope

    count = scores[0].shape[-1]
    how: dict[str, Any] = {"jac": True, "method": "L-BFGS-B", "bounds": [(0.0, None)] * count}
    found = minimize(objective, np.full(count, 1.0 / count), **how, options={"ftol": 1e-13})
    return np.asarray(found.x)


def _auc(scores: Sequence[Array], weights: Array, folds: Sequence[Array], sample: Sample) -> float:
    """Return the mean AUC of weighted scores over folds and classes."""
    own = []
    for part, test in zip(scores, folds, strict=True):
        u = sample.weight[test]
        for ranking, up in enumerate(sample.positives):
            s, positive = part[:, ranking] @ weights, up[test]
            own.append(ordered_share(s[positive], s[~positive], u[positive], u[~positive]))
    return float(np.mean(own))
