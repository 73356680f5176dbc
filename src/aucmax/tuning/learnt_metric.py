"""The learnt metric: from gradients of the score to what rows are multiplied with.

It is the mean outer product of the score's gradient (the average gradient outer product of recursive
feature machines), or its diagonal, damped by a power and by a share of the identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.rows.validation import is_sparse

Array = npt.NDArray[Any]
Rows = Any


@dataclass(frozen=True)
class Damping:
    """How a mean outer product of gradients becomes a metric: to a power, with some identity."""

    power: float
    identity: float


@dataclass(frozen=True)
class Round:
    """A round of the metric that was kept: how damped, and the machine it was learnt from."""

    damping: Damping
    C: float
    gamma: float  # a multiple of the rule
    n_landmarks: int


#: Weakest first: the stronger has to be better beyond noise. Where rows are few, one between the two.
DAMPINGS = (Damping(0.5, 0.1), Damping(1.0, 0.02))
FEW_DAMPINGS = (Damping(0.7, 0.1),)


def mean_outer(gradients: Sequence[Array], kind: str, metric: Array | None) -> Array:
    """Mean outer product (d, d) of gradients, or its diagonal (d,), in the units of unstretched rows.

    ``gradients`` are by rows under ``metric``; of several classes it is their mean.
    """
    total: Any = 0.0
    for each in gradients:
        own = unstretched(np.asarray(each, dtype=np.float64), metric)
        total = total + ((own**2).mean(axis=0) if kind == "diagonal" else own.T @ own / len(own))
    return np.asarray(total / len(gradients))


def learn_metric(outer: Array, damping: Damping) -> Array | None:
    """What rows are multiplied with, from a mean outer product of gradients or its diagonal.

    The root of ``(1 - identity) M^power / mean + identity``, so that squared distances keep their size
    on average. None if there is no gradient.

    >>> import numpy as np
    >>> learn_metric(np.array([4.0, 0.0]), Damping(1.0, 0.0))
    array([1.41421356, 0.        ])
    """
    values, vectors = (outer, None) if outer.ndim == 1 else np.linalg.eigh(outer)
    largest = values.max()
    if not np.isfinite(largest) or largest <= 0:
        return None
    values = np.maximum(values / largest, 0.0) ** damping.power
    root = np.sqrt((1.0 - damping.identity) * values / values.mean() + damping.identity)
    return root if vectors is None else (vectors * root) @ vectors.T


def stretched(rows: Rows, metric: Array | None) -> Rows:
    """Rows times a metric (d,) or (d, d), in their own dtype; CSR rows stay so."""
    if metric is None:
        return rows
    metric = metric.astype(rows.dtype)
    if metric.ndim == 2:
        return rows @ metric
    return rows.multiply(metric).tocsr() if is_sparse(rows) else rows * metric


def unstretched(gradients: Array, metric: Array | None) -> Array:
    """Gradients by stretched rows as those by the rows themselves."""
    if metric is None:
        return gradients
    return gradients * metric if metric.ndim == 1 else gradients @ metric.T


def plain_rounds(rounds: Sequence[Round]) -> list[list[float]]:
    """As plain data, which a checkpoint holds."""
    return [
        [each.damping.power, each.damping.identity, each.C, each.gamma, each.n_landmarks]
        for each in rounds
    ]


def as_rounds(plain: Sequence[Sequence[float]]) -> list[Round]:
    """From plain data."""
    return [
        Round(Damping(power, identity), C, gamma, int(count))
        for power, identity, C, gamma, count in plain
    ]
