"""The squared-hinge loss over all positive-negative pairs, as a function of scores.

Conventions that hold everywhere:

* Labels split the rows into positives ``i`` and negatives ``j`` with non-negative weights ``u``. A row
  of weight 0 is absent; a row of weight 2 counts as two rows.
* The loss at scores ``s`` is of the size of ``N``, a cost per row::

      L(s) = c * sum_{i in +, j in -} u_i u_j max(0, 1 - (s_i - s_j))**2
      c    = N / (N_pos N_neg),   N = sum(u),  N_pos, N_neg the same over one class

* A pair at margin exactly 1 is inactive: it adds nothing to value, gradient or curvature.
* In the share of pairs in order (the AUC), a tie counts one half.

No pair is ever formed. With negatives sorted downwards, the active negatives of a positive (``s_j > s_i
- 1``) come first; with positives sorted upwards, so do the active positives of a negative. Running sums
over the two give every quantity: O(n log n) for the sort, once per point, and O(n) for each Hessian
product. Sums run from the active end and in float64, so a small active set is never the difference of
two large numbers (only ``hessian_gram``, which makes preconditioners, sums in the dtype of its
features).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

#: Rows of features that are held, and multiplied in their own dtype, at a time.
_CHUNK_ROWS = 4096


class PairLoss:
    """Squared hinge over all pairs of n rows; the mask ``positive`` (n,) marks the positive ones.

    ``scale`` is the factor ``c`` of the loss; by default that of these rows and weights. A sample that
    represents more rows has the factor of all of them.

    >>> import numpy as np
    >>> from aucmax.pairs import PairLoss
    >>> point = PairLoss(np.array([True, False, False])).at(np.array([0.5, 0.0, -1.0]))
    >>> point.value, point.gradient  # the value is 3 / (1 * 2) * (1 - 0.5)**2
    (0.375, array([-1.5,  1.5,  0. ]))
    """

    def __init__(
        self, positive: Mask, weight: npt.ArrayLike | None = None, scale: float | None = None
    ) -> None:
        self.positive = np.asarray(positive, dtype=bool)
        self.n_rows = self.positive.size
        weight = np.ones(self.n_rows) if weight is None else weight
        self.weight: Floats = np.asarray(weight, dtype=np.float64)
        present = self.weight > 0
        self.pos = np.flatnonzero(self.positive & present)
        self.neg = np.flatnonzero(~self.positive & present)
        if scale is None:
            n_pos, n_neg = self.weight[self.pos].sum(), self.weight[self.neg].sum()
            if not n_pos or not n_neg:
                missing = "negative" if n_pos else "positive"
                raise ValueError(f"No {missing} row of non-zero weight: there is no pair to rank.")
            scale = float(1.0 / n_pos + 1.0 / n_neg)  # = N / (N_pos N_neg)
        self.scale = scale

    def at(self, scores: Array) -> PairPoint:
        """Return value, gradient and curvature at scores of shape (n,)."""
        return PairPoint(self, np.asarray(scores, dtype=np.float64))

    def sample(self, rows: Indices, share: Floats) -> PairLoss:
        """Return the loss on rows drawn with probability ``share``, weighted to represent all rows."""
        return PairLoss(self.positive[rows], self.weight[rows] / share, self.scale)


class PairPoint:
    """A pair loss at one vector of scores, made by :meth:`PairLoss.at`.

    It has a ``value`` and a ``gradient`` (n,) with respect to the scores, zero on absent rows.
    """

    def __init__(self, loss: PairLoss, scores: Floats) -> None:
        self._n_rows, self._scale = loss.n_rows, loss.scale
        up, down = np.argsort(scores[loss.pos]), np.argsort(-scores[loss.neg])
        self._pos, self._neg = loss.pos[up], loss.neg[down]
        self._s_pos, self._s_neg = scores[self._pos], scores[self._neg]
        self._u_pos, self._u_neg = loss.weight[self._pos], loss.weight[self._neg]
        # The number of active partners of each row: they come first in the sorted other class.
        above = np.searchsorted(self._s_neg[::-1], self._s_pos - 1.0, side="right")
        self._near_pos: Indices = self._s_neg.size - above
        # The other side is counted from this one, not searched for. This is cheaper, and rounding
        # cannot make a pair active for only one of its rows.
        self._near_neg = self._partners_of_negatives(self._near_pos)
        self._mass_pos = _running_sum(self._u_neg)[self._near_pos]
        self._mass_neg = _running_sum(self._u_pos)[self._near_neg]
        self.gradient: Floats = np.zeros(self._n_rows)
        self.value = self._value_and_gradient()

    def _partners_of_negatives(self, near_pos: Indices) -> Indices:
        """Count the active positives of each negative, from the active negatives of each positive."""
        reach = np.bincount(near_pos, minlength=self._s_neg.size + 1)
        return self._s_pos.size - np.cumsum(reach[:-1])

    def _value_and_gradient(self) -> float:
        if not self._s_pos.size or not self._s_neg.size:
            return 0.0
        # The loss does not change when all scores shift together; centring keeps the sums small.
        centre = 0.5 * (self._s_pos.mean() + self._s_neg.mean())
        s_pos, s_neg = self._s_pos - centre, self._s_neg - centre
        # Each row's slack summed over its active partners, by their weights.
        slack_pos = (1.0 - s_pos) * self._mass_pos + _running_sum(self._u_neg * s_neg)[self._near_pos]
        slack_neg = (1.0 + s_neg) * self._mass_neg - _running_sum(self._u_pos * s_pos)[self._near_neg]
        g_pos = (-2.0 * self._scale) * self._u_pos * slack_pos
        g_neg = (2.0 * self._scale) * self._u_neg * slack_neg
        self.gradient[self._pos], self.gradient[self._neg] = g_pos, g_neg
        # sum m**2 = sum m (1 - s_i + s_j): the value follows from the gradient, no square is formed.
        return float(0.5 * (g_pos @ s_pos + g_neg @ s_neg - g_pos.sum()))

    def hessian_product(self, direction: Array) -> Floats:
        """Return the Hessian times one direction (n,), or times many at once (n, m)."""
        direction = np.asarray(direction, dtype=np.float64)
        if direction.ndim > 1:
            return np.column_stack([self.hessian_product(each) for each in direction.T])
        out, factor = np.zeros(self._n_rows), 2.0 * self._scale
        v_pos, v_neg = direction[self._pos], direction[self._neg]
        pull_pos = _running_sum(self._u_neg * v_neg)[self._near_pos]
        pull_neg = _running_sum(self._u_pos * v_pos)[self._near_neg]
        out[self._pos] = factor * self._u_pos * (self._mass_pos * v_pos - pull_pos)
        out[self._neg] = factor * self._u_neg * (self._mass_neg * v_neg - pull_neg)
        return out

    def curvature(self) -> Floats:
        """Return the diagonal of the Hessian (n,), positive exactly on rows with an active partner."""
        out = np.zeros(self._n_rows)
        out[self._pos] = 2.0 * self._scale * self._u_pos * self._mass_pos
        out[self._neg] = 2.0 * self._scale * self._u_neg * self._mass_neg
        return out

    def hessian_gram(self, features: Array | Callable[[Indices], Array], levels: int = 512) -> Floats:
        """Return ``features.T @ Hessian @ features``, multiplied in the dtype of the features (n, r).

        Features are an array, or a function that returns some of its rows; only a chunk is ever held.
        The Hessian, a diagonal minus the active pairs, is exact with up to ``levels`` negatives. With
        more, each positive's number of active negatives is rounded down to one of that many levels,
        which makes the active set slightly smaller. Positives of one level then share one sum over
        negatives, which halves the work.
        """
        take = features if callable(features) else features.__getitem__
        n_neg = self._s_neg.size
        stride = max(1, -(-n_neg // levels))
        near_pos = self._near_pos // stride * stride
        near_neg = self._partners_of_negatives(near_pos)
        mass_pos = self._u_pos * _running_sum(self._u_neg)[near_pos]
        mass_neg = self._u_neg * _running_sum(self._u_pos)[near_neg]
        # Positives are sorted by falling `near_pos`, so those of one level are adjacent.
        level, pos_level = np.unique(-near_pos, return_inverse=True)
        neg_level = np.arange(n_neg) // stride
        gram, pos_sums = _squares_and_sums(take, self._pos, mass_pos, self._u_pos, pos_level)
        other, neg_sums = _squares_and_sums(take, self._neg, mass_neg, self._u_neg, neg_level)
        gram += other
        near = -level // stride
        cross = pos_sums[near > 0].T @ np.cumsum(neg_sums, axis=0)[near[near > 0] - 1]
        gram -= cross
        gram -= cross.T
        gram *= 2.0 * self._scale
        return gram

    def auc(self) -> float:
        """Return the share of the pairs in order, a tie counting one half."""
        return _share_of_sorted(self._s_pos, self._s_neg[::-1], self._u_pos, self._u_neg[::-1])


def ordered_share(
    pos: Floats, neg: Floats, pos_weight: Floats | None = None, neg_weight: Floats | None = None
) -> float:
    """Return the share of pairs with the positive score above the negative; a tie counts one half.

    The weight of a pair is the product of the weights of its rows.
    """
    u_pos = np.ones(pos.size) if pos_weight is None else pos_weight
    u_neg = np.ones(neg.size) if neg_weight is None else neg_weight
    up, down = np.argsort(pos), np.argsort(neg)
    return _share_of_sorted(pos[up], neg[down], u_pos[up], u_neg[down])


def _share_of_sorted(pos: Floats, neg: Floats, u_pos: Floats, u_neg: Floats) -> float:
    below = _running_sum(u_neg)
    # Sorted queries read `neg` once from start to end.
    wins = below[np.searchsorted(neg, pos, "left")] + below[np.searchsorted(neg, pos, "right")]
    # In two steps, because the product of the two sums could overflow or vanish.
    share = float((u_pos / u_pos.sum()) @ (wins / below[-1]) / 2.0)
    return min(1.0, share)  # rounding must not exceed it


def _running_sum(values: Array) -> Array:
    """Return the sums of the first 0, 1, ..., m entries along the first axis."""
    out = np.empty((values.shape[0] + 1, *values.shape[1:]), dtype=values.dtype)
    out[0] = 0
    np.cumsum(values, axis=0, out=out[1:])
    return out


def _squares_and_sums(
    take: Callable[[Indices], Array], rows: Indices, mass: Floats, weight: Floats, group: Indices
) -> tuple[Floats, Floats]:
    """Return ``F' diag(mass) F`` over some rows, and their weighted sums within adjacent groups."""
    width = take(rows[:1]).shape[1]
    squares: Floats = np.zeros((width, width))
    sums: Floats = np.zeros((int(group[-1]) + 1 if group.size else 0, width))
    root = np.sqrt(mass)
    for start in range(0, rows.size, _CHUNK_ROWS):
        part = slice(start, start + _CHUNK_ROWS)
        chunk, ids = take(rows[part]), group[part]
        first = np.flatnonzero(np.diff(ids, prepend=-1))
        factor = weight[part].astype(chunk.dtype)[:, None]
        sums[ids[first]] += np.add.reduceat(factor * chunk, first, axis=0)
        chunk *= root[part].astype(chunk.dtype)[:, None]
        squares += chunk.T @ chunk
    return squares, sums
