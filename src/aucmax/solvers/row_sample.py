"""Some rows of a large problem, to start on: the first steps only find out which pairs stay active."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aucmax.operators import FeatureOperator, Operator
from aucmax.pairs import Indices, PairLoss

#: Rows per column of the sample (or a sixteenth of all), and how many times more rows there must be.
_ROWS_PER_COLUMN = 30
GAIN = 8


@dataclass(frozen=True)
class Sample:
    """Some rows of a problem, with their features and losses that stand for all of them."""

    rows: Indices
    operator: Operator
    losses: Sequence[PairLoss]


def draw_sample(
    operator: Operator, losses: Sequence[PairLoss], rng: np.random.Generator
) -> Sample | None:
    """Rows of both classes of every column, if there are many times more rows than that takes."""
    n_rows = operator.n_rows
    size = min(max(_ROWS_PER_COLUMN * operator.n_columns, n_rows // 16), operator.room)
    share = np.zeros(n_rows)
    for loss in losses:
        for members in (loss.pos, loss.neg):
            share[members] = np.maximum(share[members], min(1.0, size / 2 / members.size))
    if share.sum() * GAIN > n_rows:
        return None
    rows = np.flatnonzero(rng.random(n_rows) < share)
    sampled = [loss.sample(rows, share[rows]) for loss in losses]
    if not all(loss.pos.size and loss.neg.size for loss in sampled):
        return None
    return Sample(rows, FeatureOperator(operator.rows(rows)), sampled)
