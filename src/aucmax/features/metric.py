"""The learnt metric: what rows are multiplied by, from the gradients of the score.

It is the mean outer product of the score's gradient (the average gradient outer product of recursive
feature machines), or its diagonal, damped by a power and by a share of the identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.rows.interface import Block, is_sparse

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Damping:
    """How a mean outer product of gradients becomes a metric: its power, and the identity's share."""

    power: float
    identity: float


def mean_outer(gradients: Sequence[Array], kind: str, metric: Array | None) -> Array:
    """Return the mean outer product (d, d) of gradients, or its diagonal (d,), averaged over classes.

    ``gradients`` are with respect to rows multiplied by ``metric``; the result is in the units of the
    rows before that.
    """
    total: Any = 0.0
    for each in gradients:
        own = unstretch(np.asarray(each, dtype=np.float64), metric)
        total = total + ((own**2).mean(axis=0) if kind == "diagonal" else own.T @ own / len(own))
    return np.asarray(total / len(gradients))


def learn_metric(outer: Array, damping: Damping) -> Array | None:
    """Return what rows are multiplied by, from a mean outer product of gradients or its diagonal.

    It is the root of ``(1 - identity) M^power / mean + identity``, so that squared distances keep their
    size on average. Return None if there is no gradient.

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
    return np.asarray(root if vectors is None else (vectors * root) @ vectors.T)


def stretch(block: Block, metric: Array | None) -> Block:
    """Return rows times a metric, one factor per column (d,) or a matrix (d, k), in their own dtype."""
    if metric is None:
        return block
    if block.shape[1] != metric.shape[0]:
        raise ValueError(
            f"The metric is for {metric.shape[0]} columns, and the rows have {block.shape[1]}: pass "
            "rows with the columns of the fit."
        )
    factor = metric.astype(block.dtype, copy=False)
    if not is_sparse(block):
        return block * factor if factor.ndim == 1 else block @ factor
    if factor.ndim > 1:
        raise ValueError(
            "A metric that is a matrix would make sparse rows dense. Use one factor per column, or "
            "pass X.toarray()."
        )
    block = block.tocsr()
    parts = (block.data * factor[block.indices], block.indices, block.indptr)
    return type(block)(parts, shape=block.shape)


def unstretch(gradients: Array, metric: Array | None) -> Array:
    """Convert gradients with respect to stretched rows to those with respect to the rows."""
    if metric is None:
        return gradients
    return gradients * metric if metric.ndim == 1 else gradients @ metric.T
