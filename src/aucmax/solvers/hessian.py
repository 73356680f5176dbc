"""Products with the Hessian of several columns, on the rows that count."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aucmax.operators import Operator
from aucmax.pairs import Floats, Indices, PairPoint

#: Share of the rows up to which those with an active partner are copied out: memory, and one product
#: as dear as on all rows; more are cheaper.
_FEW_ACTIVE = 0.25


class Hessian:
    """``F'HF`` of several columns, on the rows that count in any of them if those are few."""

    def __init__(self, operator: Operator, points: Sequence[PairPoint]) -> None:
        self._points, self._operator, self._all = points, operator, operator.n_rows
        active = np.any([point.curvature() > 0 for point in points], axis=0)
        self.rows: Indices | None = None
        if active.sum() <= _FEW_ACTIVE * active.size:
            rows = np.flatnonzero(active)
            few = operator.restricted(rows)
            if few is not None:
                self.rows, self._operator = rows, few
        self.n_rows = self._operator.n_rows

    def __call__(self, vectors: Floats, columns: Indices) -> tuple[Floats, Floats]:
        """The vectors' scores on :attr:`rows` (None is all), and the products."""
        along = self._operator.scores(vectors)
        curved = [self._product(self._points[c], along[:, i]) for i, c in enumerate(columns.tolist())]
        return along, self._operator.pullback(np.array(curved).T)

    def _product(self, point: PairPoint, scores: Floats) -> Floats:
        if self.rows is None:
            return point.hessian_product(scores)
        everywhere = np.zeros(self._all)
        everywhere[self.rows] = scores
        return point.hessian_product(everywhere)[self.rows]
