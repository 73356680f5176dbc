"""The Hessian on a sample of rows at the current active set, factored, to speed conjugate gradients.

The Newton system of one problem is ``(I + C F'HF) d = -g``. Replacing the n rows by a few thousand that
carry most of the curvature gives a matrix close to it, whose Cholesky factor turns hundreds of products
into a handful. Where there are many features, only the first are factored, and the others are scaled by
the diagonal: kernel features come in falling order of their eigenvalues.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from aucmax.operators.interface import FLOPS_PER_BYTE, Operator
from aucmax.pairs import Array, Floats, Indices, PairLoss, PairPoint
from aucmax.solvers.options import ROWS_PER_FEATURE

#: The limit on the entries of sampled rows.
MAX_ENTRIES = 2**27

#: Above MAX_FACTORED only the leading features are factored, as the cost grows with their cube. On
#: covtype (80,000 rows, 4000 landmarks, C = 4, one core) factoring all takes 120 passes and 75 s, 1000
#: takes 184 and 46 s, 500 takes 230 and 47 s, and none 360 and 61 s.
MAX_FACTORED = 3000
LEADING_FEATURES = 1000

#: Above this many features no preconditioner is built: they do not come from a kernel, so the first are
#: no better than others.
MOST_FEATURES = 20_000

#: Ridges, as shares of the trace, to add to the diagonal of a matrix that rounding has made indefinite.
_RIDGES = 10.0 ** np.arange(-14, 1, 2)

#: Rows on which the diagonal of the other features is measured, and the limit on their entries.
_DIAGONAL_ROWS = 2000
_DIAGONAL_ENTRIES = 2**24

#: Features whose curvature is below the penalty's, which is 1, are not factored either: on covtype
#: (80,000 rows, 1600 landmarks, C = 1.25) this takes 61 instead of 59 passes, and 5.0 instead of 8.9 s
#: for three factors. With a limit of 3 it is 87 passes and 3.4 s. A sample of rows measures it.
_NEGLIGIBLE = 1.0
_CURVATURE_ROWS = 500


@dataclass(frozen=True)
class Factor:
    """An approximate inverse of ``I + C F'HF``: a Cholesky factor, and a diagonal for the rest."""

    cholesky: Floats
    diagonal: Floats

    def __call__(self, vector: Floats) -> Floats:
        first = len(self.cholesky)
        # Two triangular solves of one vector: six times faster than LAPACK's for matrices.
        half = linalg.blas.dtrsv(self.cholesky, vector[:first], lower=1)
        out: Floats = linalg.blas.dtrsv(self.cholesky, half, lower=1, trans=1)
        return out if len(vector) == first else np.append(out, vector[first:] / self.diagonal)


class Curvature:
    """``F'HF`` on sampled rows at one point of one problem, to be factored for any C.

    If ``all_rows``, it holds every row with an active partner, so that no sample can do better.
    """

    def __init__(
        self,
        operator: Operator,
        loss: PairLoss,
        point: PairPoint,
        scores: Floats,
        rng: np.random.Generator,
        C: float,
        rows_per_feature: int = ROWS_PER_FEATURE,
    ) -> None:
        self._operator, self.n_factored = operator, _decisive(operator, point.curvature(), C, rng)
        size = sample_size(self.n_factored, rows_per_feature)
        self._rows, share = _draw(loss, point.curvature(), size, rng)
        self.n_rows, self.all_rows = self._rows.size, bool((share == 1.0).all())
        self._point = loss.sample(self._rows, share).at(scores[self._rows])
        self._gram = self._point.hessian_gram(self._first_features)
        self._diagonal, self._is_float64 = self._measure_diagonal(rng), False
        self._factor_at: tuple[float, Factor] | None = None  # with its C

    def _first_features(self, index: Indices) -> Array:
        return self._operator.rows(self._rows[index], slice(self.n_factored))

    def _measure_diagonal(self, rng: np.random.Generator) -> Floats:
        """Return the diagonal of ``F'HF``, without pairs of rows, for the features not factored."""
        n_others = self._operator.n_features - self.n_factored
        if n_others <= 0 or not self.n_rows:
            return np.zeros(0)
        some = rng.permutation(self.n_rows)[: min(_DIAGONAL_ROWS, 1 + _DIAGONAL_ENTRIES // n_others)]
        others = slice(self.n_factored, self._operator.n_features)
        values = self._operator.rows(self._rows[some], others).astype(np.float64)
        out: Floats = self._point.curvature()[some] @ values**2 * (self.n_rows / some.size)
        return out

    def factor(self, C: float) -> Factor:
        """Return the approximate inverse at C, reusing the last one if C has not changed."""
        if self._factor_at is None or self._factor_at[0] != C:
            self._factor_at = None  # two at a time would take twice the memory
            self._factor_at = C, Factor(self._cholesky(C), 1.0 + C * self._diagonal)
        return self._factor_at[1]

    def _cholesky(self, C: float) -> Floats:
        try:
            return _factor(self._gram, C)
        except linalg.LinAlgError:
            if not self._is_float64:  # float32 has rounded too much for a large C: once more in float64
                take, self._is_float64 = self._first_features, True
                self._gram = self._point.hessian_gram(lambda i: take(i).astype(np.float64))
            return _factor_with_ridge(self._gram, C)


def patience(operator: Operator, built: Curvature | None = None, share: float = 1.0) -> float:
    """Return the number of CG products below which rebuilding the preconditioner does not pay.

    Another one is expected to cost as much as the one that was ``built``.

    Building one from m sampled rows costs about ``2 m r^2`` flops, or as much as some number of
    products that each read a ``share`` of the rows. The higher this price, the later one is built. On
    ijcnn1 (C = 20, a price of 50) this returns 5: 76 passes and 3.9 s. With 3 it would be 72 passes and
    4.9 s, with 8 115 and 3.5 s; passes matter more than seconds there, since they grow with the rows.
    """
    if built is None:
        first = leading(operator.n_features)
        sampled = min(sample_size(first), operator.n_rows)
    else:
        first, sampled = built.n_factored, built.n_rows
    flops = 2.0 * sampled * operator.n_features * first
    return 3.0 + 0.05 * flops / FLOPS_PER_BYTE / (2 * share * operator.nbytes)


def _decisive(operator: Operator, curvature: Floats, C: float, rng: np.random.Generator) -> int:
    """Return the number of features up to the last whose curvature at C matters, at least one.

    Above MAX_FACTORED features, it is at most LEADING_FEATURES.
    """
    most, active = leading(operator.n_features), np.flatnonzero(curvature)
    if active.size <= _CURVATURE_ROWS:
        return most
    some = np.sort(rng.choice(active, _CURVATURE_ROWS, replace=False))
    values = operator.rows(some, slice(most)).astype(np.float64)
    diagonal = C * (active.size / some.size) * (curvature[some] @ values**2)
    return int(np.flatnonzero(diagonal > _NEGLIGIBLE).max(initial=0)) + 1


def leading(n_features: int) -> int:
    """Return the number of features that are factored."""
    return n_features if n_features <= MAX_FACTORED else min(n_features, LEADING_FEATURES)


def sample_size(n_features: int, rows_per_feature: int = ROWS_PER_FEATURE) -> int:
    """Return the number of rows that a preconditioner samples."""
    first = leading(n_features)
    return int(min(rows_per_feature * first, MAX_ENTRIES / first))


def _draw(
    loss: PairLoss, curvature: Floats, size: int, rng: np.random.Generator
) -> tuple[Indices, Floats]:
    """Draw rows with an active partner, half of them from each class, and return their probabilities.

    These are proportional to the root of a row's curvature: 166 passes on ijcnn1 against 200 for a
    uniform draw. With the curvature itself it was no better, and a fifth worse on covtype.
    """
    rows, shares = [], []
    for members in (loss.pos, loss.neg):
        active = members[curvature[members] > 0]
        weight, share = np.sqrt(curvature[active]), np.ones(active.size)
        if active.size > size // 2:
            share = np.minimum(1.0, weight * (size // 2 / weight.sum()))
        taken = rng.random(active.size) < share
        rows.append(active[taken])
        shares.append(share[taken])
    return np.concatenate(rows), np.concatenate(shares)


def _factor(gram: Floats, C: float, ridge: float = 0.0) -> Floats:
    matrix = C * gram
    matrix.flat[:: len(matrix) + 1] += 1.0 + ridge
    # The transpose, which is the same matrix, has the memory layout that LAPACK needs.
    out: Floats = linalg.cholesky(matrix.T, lower=True, overwrite_a=True, check_finite=False)
    return out


def _factor_with_ridge(gram: Floats, C: float) -> Floats:
    """Factor a matrix that rounding may have made indefinite, with the smallest ridge that helps.

    If none up to the trace itself does, the diagonal alone is the preconditioner.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # reported below
        diagonal = 1.0 + C * np.maximum(np.diag(gram), 0.0)
    size = float(diagonal.sum())
    if not np.isfinite(size):
        raise FloatingPointError("features, weights or C are so large that products overflow")
    for ridge in (0.0, *(size * _RIDGES).tolist()):
        try:
            return _factor(gram, C, ridge)
        except linalg.LinAlgError:
            continue
    out: Floats = np.asfortranarray(np.diag(np.sqrt(diagonal)))
    return out
