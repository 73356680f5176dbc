"""Compute every cut of rows in two by score, for thresholds, curves and ``predict``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aucmax.pairs import Floats, Indices, Mask

__all__ = ["Cutoffs", "balanced_threshold", "sweep"]

_EQUAL_SHARES = 1e-9  # shares of rows closer than this are equal: the order of summation changes them
_ROUNDED_SCORES = 1e-9  # scores of identical rows may differ by this share of the largest score


@dataclass(frozen=True)
class Cutoffs:
    """All cuts of n rows by score: cut i has the i highest of m distinct scores above it."""

    distinct: Floats  #: the m distinct scores, falling
    last: Indices  #: positions in ``by_score`` of the last row with each distinct score
    by_score: Indices  #: the n rows by falling score
    tp: Floats  #: weight of positive rows above each of the m + 1 cuts
    fp: Floats  #: weight of negative rows above each cut

    def thresholds(self) -> Floats:
        """Return the score of each cut: midway between its two neighbours, or beyond the ends."""
        above, below = self.distinct[:-1], self.distinct[1:]
        middle = 0.5 * above + 0.5 * below
        middle = np.where((below < middle) & (middle <= above), middle, above)  # neighbouring floats
        return np.concatenate([np.nextafter(self.distinct[:1], np.inf), middle, self.distinct[-1:]])

    def totals(self, values: Floats, chosen: Mask) -> Floats:
        """Return the sum of another value of the chosen rows above each cut."""
        return _totals(values[self.by_score], chosen[self.by_score], self.last)


def sweep(positive: Mask, scores: Floats, weight: Floats, equal: float = 0.0) -> Cutoffs:
    """Sort the rows by score once, and sum their weights above every cut.

    Neighbouring scores that differ by ``equal`` or less count as one.

    >>> cuts = sweep(np.array([True, False, True]), np.array([3.0, 2.0, 1.0]), np.ones(3))
    >>> cuts.tp.tolist(), cuts.fp.tolist(), cuts.thresholds()[1:].tolist()
    ([0.0, 1.0, 1.0, 2.0], [0.0, 0.0, 1.0, 1.0], [2.5, 1.5, 1.0])
    """
    by_score = np.argsort(-scores, kind="stable")
    down, up, u = scores[by_score], positive[by_score], weight[by_score]
    last = np.append(np.flatnonzero(down[1:] < down[:-1] - equal), down.size - 1)
    return Cutoffs(down[last], last, by_score, _totals(u, up, last), _totals(u, ~up, last))


def balanced_threshold(scores: Floats, positive: Mask, weight: Floats) -> float:
    """Return the threshold with the largest sensitivity + specificity, midway between two scores.

    The highest of equally good cuts wins. Scores that differ only by rounding stay on one side.

    >>> balanced_threshold(np.array([0.0, 1.0, 2.0]), np.array([False, False, True]), np.ones(3))
    1.5
    """
    cuts = sweep(positive, scores, weight, _ROUNDED_SCORES * float(np.abs(scores).max()))
    if cuts.distinct.size == 1:
        return float(cuts.distinct[0])
    inner = slice(1, -1)  # both sides have rows
    gain = (cuts.tp / cuts.tp[-1] - cuts.fp / cuts.fp[-1])[inner]
    best = int(np.argmax(gain >= gain.max() - _EQUAL_SHARES))
    return float(cuts.thresholds()[inner][best])


def _totals(values: Floats, chosen: Mask, last: Indices) -> Floats:
    out: Floats = np.append(0.0, np.cumsum(np.where(chosen, values, 0.0))[last])
    return out
