"""Learners that see a pair or a row at a time: the paper's Algorithm 3, OAM and SOLAM.

``epoch`` goes once over rows in memory, in random order; ``stream`` takes rows as they come, once. Rows
are dense or CSR (made dense a piece at a time). Loops return every few milliseconds, so that Ctrl-C
takes effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.pairs import Array, Floats, Indices, Mask
from aucmax.rows.interface import is_sparse
from aucmax.runtime import compiled
from aucmax.solvers.reservoir import Reservoir, dense_rows, reservoir_slots

#: The limits on steps in one call into a loop, and on entries of CSR rows that are dense at a time.
_STEPS = 2**15
_DENSE_ENTRIES = 2**23

#: Rows that OAM and SOLAM copy into their random order at a time, so few that the copies are still in
#: cache when they are learnt from. With 32 times as many, an epoch of SOLAM took two to three times as
#: long.
CACHED_ROWS = 1024

#: The default numbers of steps from one regularisation, and from one average, to the next.
_EVERY = (16, 16)


class _Stateful:
    """A learner whose attributes are its state."""

    @property
    def last_iterate(self) -> Floats | None:
        """The coefficients after the last step, if ``coef`` is an average of many; else None."""
        return None

    def state(self) -> dict[str, Any]:
        """Return a copy of the state, as plain data and arrays."""
        own = deepcopy(vars(self)).items()
        return {name: vars(value) if isinstance(value, Reservoir) else value for name, value in own}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from the state of a learner of the same parameters."""
        for name, value in deepcopy(state).items():
            here = getattr(self, name)
            if isinstance(here, Reservoir):
                vars(here).update(value)
            else:
                setattr(self, name, value)


class _Sampling(_Stateful):
    """A learner that samples the rows of each class: to learn from, or for a threshold alone."""

    def __init__(self, n_features: int, dtype: npt.DTypeLike, buffer_size: int) -> None:
        self.w = np.zeros(n_features, dtype)
        self.pos, self.neg = (Reservoir(buffer_size, n_features, dtype) for _ in range(2))

    def samples(self) -> tuple[Array, Array]:
        return self.pos.rows, self.neg.rows

    def rescale(self, ratio: Floats, shift: Floats) -> None:
        """Keep the meaning of what has been learnt when rows will come as ``x ratio + shift``."""
        self.w /= ratio.astype(self.w.dtype)
        for buffer in (self.pos, self.neg):
            buffer.rescale(ratio, shift)

    def _sample(self, X: Any, positive: Mask, rng: np.random.Generator) -> None:
        self.pos.add(X, np.flatnonzero(positive), rng)
        self.neg.add(X, np.flatnonzero(~positive), rng)


class PairSGD(_Sampling):
    """Algorithm 3: a random positive and a random negative a step, hinge loss, averaged.

    Step t moves along an active pair's difference by ``1 / (alpha (t + t0))``. ``t0`` is a number, or
    None for ``1 / (alpha eta0)``, which makes the first step ``eta0``.
    """

    def __init__(
        self,
        n_features: int,
        dtype: npt.DTypeLike,
        *,
        alpha: float,
        eta0: float = 1.0,
        t0: float | None = None,
        every: tuple[int, int] = _EVERY,
        average_power: float = 0.0,
        buffer_size: int = 0,
    ) -> None:
        super().__init__(n_features, dtype, buffer_size)
        self.mean: Floats = np.zeros(n_features)
        self.steps = self.averaged = self.active = 0
        self.alpha, self._t0, self.eta0 = alpha, t0, eta0
        self._every = (*every, float(average_power))

    @property
    def coef(self) -> Floats:
        return (self.mean if self.averaged else self.w).astype(np.float64)

    @property
    def last_iterate(self) -> Floats | None:
        return self.w.astype(np.float64) if self.averaged else None

    @property
    def t0(self) -> float:
        return float(_schedule_start(self.alpha, self.eta0)) if self._t0 is None else self._t0

    def epoch(self, X: Any, positive: Mask, weight: Floats, rng: np.random.Generator) -> None:
        """Take as many steps as there are rows; a row's chance within its class is its weight."""
        for pairs in _random_pairs(X.shape[0], _STEPS, (positive, ~positive), weight, rng):
            self._run(X, *pairs)

    def stream(self, X: Any, positive: Mask, rng: np.random.Generator) -> None:
        """Take a step for each row, against one of the other class from a sample of all seen so far."""
        self._sample(X, positive, rng)
        pos, neg = self.samples()
        if not len(pos) or not len(neg):
            return
        for rows, table in dense_pieces(X, rng.permutation(X.shape[0]), self.w.dtype):
            up, here = positive[rows], np.arange(rows.size)
            from_pos = rows.size + rng.integers(len(pos), size=rows.size)
            from_neg = rows.size + len(pos) + rng.integers(len(neg), size=rows.size)
            pairs = np.where(up, here, from_pos), np.where(up, from_neg, here)
            self._run(np.vstack([table, pos, neg]), *pairs)

    def rescale(self, ratio: Floats, shift: Floats) -> None:
        super().rescale(ratio, shift)
        self.mean /= ratio

    def _run(self, X: Any, pos: Indices, neg: Indices) -> None:
        """Take steps over pairs of rows of X, made dense in pieces if they are sparse."""
        sparse, schedule = is_sparse(X), (float(self.alpha), float(self.t0), *self._every)
        piece = _DENSE_ENTRIES // (2 * X.shape[1]) if sparse else pos.size
        for steps in _pieces(pos.size, piece):
            i, j, table = pos[steps], neg[steps], X
            if sparse:
                table = dense_rows(X, np.concatenate([i, j]), self.w.dtype)
                i, j = np.arange(i.size), np.arange(i.size, 2 * i.size)
            done = self.steps, self.averaged
            self.steps, self.averaged, active = compiled.run(
                "pair_sgd", table, i, j, self.w, self.mean, *done, schedule
            )
            self.active += active


class PairSGDGrid(_Stateful):
    """Algorithm 3 at several values of alpha over the same random pairs, read once for all of them.

    At each value it learns what :class:`PairSGD` would by default from the rows of non-zero weight.
    """

    def __init__(self, n_features: int, dtype: npt.DTypeLike, *, alpha: Floats, eta0: float) -> None:
        self._w = np.zeros((alpha.size, n_features), dtype)
        self._mean: Floats = np.zeros((alpha.size, n_features))
        self._alpha, self._t0 = alpha, _schedule_start(alpha, eta0)
        self._steps = self._averaged = 0

    @property
    def coef(self) -> Floats:
        """Coefficients (r, m)."""
        return (self._mean if self._averaged else self._w.astype(np.float64)).T

    def epoch(self, X: Array, positive: Mask, weight: Floats, rng: np.random.Generator) -> None:
        """Take as many steps as there are rows of non-zero weight."""
        present, schedule = weight > 0, (self._alpha, self._t0, *_EVERY, 0.0)
        classes, total = (positive & present, ~positive & present), int(present.sum())
        for pairs in _random_pairs(total, _STEPS // self._alpha.size, classes, weight, rng):
            done = self._steps, self._averaged
            self._steps, self._averaged = compiled.run(
                "pair_sgd_grid", X, *pairs, self._w, self._mean, *done, schedule
            )
        if not np.isfinite(self._w).all():
            raise FloatingPointError("features are so large that steps overflow")


class OAM(_Sampling):
    """Online AUC maximisation, the sequential variant (Zhao, Hoi, Jin and Yang, 2011).

    A new row takes a passive-aggressive step against each row of the other class in a buffer, filled by
    reservoir sampling. A step is at most ``C/2`` times the number of rows per row of the buffer.
    """

    def __init__(self, n_features: int, dtype: npt.DTypeLike, *, C: float, buffer_size: int) -> None:
        super().__init__(n_features, dtype, buffer_size)
        self._C = C

    @property
    def coef(self) -> Floats:
        return self.w.astype(np.float64)

    def epoch(self, X: Any, positive: Mask, weight: Floats, rng: np.random.Generator) -> None:
        self._run(X, rng.permutation(X.shape[0]), positive, rng)

    def stream(self, X: Any, positive: Mask, rng: np.random.Generator) -> None:
        self._run(X, np.arange(X.shape[0]), positive, rng)

    def _run(self, X: Any, sequence: Indices, positive: Mask, rng: np.random.Generator) -> None:
        buffers = (self.pos, self.neg)
        for buffer in buffers:
            buffer.grow(buffer.size)
        for rows, table in dense_pieces(X, sequence, self.w.dtype, CACHED_ROWS):
            up, slots = positive[rows], np.empty(rows.size, dtype=np.intp)
            for members, buffer in zip((up, ~up), buffers, strict=True):
                slots[members] = reservoir_slots(buffer.seen, int(members.sum()), buffer.size, rng)
            spaces, seen = (self.pos.space, self.neg.space), (self.pos.seen, self.neg.seen)
            self.pos.seen, self.neg.seen = compiled.run(
                "oam", table, up, slots, self.w, spaces, seen, float(self._C)
            )


class SOLAM(_Sampling):
    """Stochastic online AUC maximisation (Ying, Wen and Lyu, 2016).

    The squared loss over all pairs becomes a saddle point in (w, a, b) and alpha, so that a single row
    gives a step: ``zeta / sqrt(t)``, then projections to ``||w|| <= radius`` and to the bounds on the
    scalars that follow from it. The share of positives and the largest norm of a row are estimated on
    the way.
    """

    def __init__(
        self, n_features: int, dtype: npt.DTypeLike, *, zeta: float, radius: float, buffer_size: int
    ) -> None:
        super().__init__(n_features, dtype, buffer_size)
        self.mean: Floats = np.zeros(n_features)
        self.scalars: Floats = np.zeros(4)  # a, b, alpha, share of positives
        self.steps, self._total, self._kappa = 0, 0.0, 0.0
        self._zeta, self._radius = zeta, radius

    @property
    def coef(self) -> Floats:
        # Before both classes have been seen, w has only followed one of them.
        return self.mean.copy() if 0.0 < self.scalars[3] < 1.0 else np.zeros(self.mean.size)

    def epoch(self, X: Any, positive: Mask, weight: Floats, rng: np.random.Generator) -> None:
        self._run(X, rng.permutation(X.shape[0]), positive)

    def stream(self, X: Any, positive: Mask, rng: np.random.Generator) -> None:
        self._sample(X, positive, rng)
        self._run(X, np.arange(X.shape[0]), positive)

    def rescale(self, ratio: Floats, shift: Floats) -> None:
        super().rescale(ratio, shift)
        self.mean /= ratio
        self.scalars[:2] += self.w @ shift  # a and b are mean scores

    def _run(self, X: Any, sequence: Indices, positive: Mask) -> None:
        for rows, table in dense_pieces(X, sequence, self.w.dtype, CACHED_ROWS):
            norms = np.einsum("nd,nd->n", table, table)
            self._kappa = max(self._kappa, float(np.sqrt(norms.max())))
            sizes = (float(self._zeta), float(self._radius), self._kappa)
            learnt = (self.w, self.mean, self.scalars, self.steps, self._total)
            self.steps, self._total = compiled.run("solam", table, positive[rows], *learnt, sizes)


Learner = PairSGD | OAM | SOLAM


def mean_square(X: Any) -> float:
    """Return the mean of ``||x||^2`` over rows."""
    if is_sparse(X):
        with np.errstate(over="ignore", invalid="ignore"):
            return finite_mean(np.einsum("i,i->", X.data, X.data), X.shape[0])
    return finite_mean(row_squares(X))


def row_squares(X: Array) -> Array:
    """Return ``||x||^2`` of dense rows."""
    with np.errstate(over="ignore", invalid="ignore"):  # `finite_mean` refuses them
        squares: Array = np.einsum("nd,nd->n", X, X)
    return squares


def finite_mean(squares: Array, n_rows: int | None = None) -> float:
    """Return the mean of squared norms; raise an error if they overflow, as no step can be taken."""
    total = float(np.sum(squares, dtype=np.float64))
    if not np.isfinite(total):
        raise FloatingPointError("features are so large that their squares overflow")
    return total / float(np.size(squares) if n_rows is None else n_rows)


def first_step(square: float) -> float:
    """Return the longest step that does not overshoot rows of this mean squared norm."""
    return 1.0 / square if square > 0 else 1.0


def _schedule_start(alpha: Any, eta0: float) -> Any:
    """Return the number of steps after which the schedule begins, for a first step of ``eta0``."""
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        start = 1.0 / np.asarray(alpha * eta0)
    if not ((start > 0.0) & np.isfinite(start)).all():
        raise ValueError(
            f"alpha={np.min(alpha):.3g} (1 / (C n) by default) is too small or too large for rows with "
            f"a first step of {eta0:.3g}: choose another alpha or C, or divide sample_weight, whose "
            "sum is n, by its mean."
        )
    return start


def _random_pairs(
    total: int, most: int, classes: Sequence[Mask], weight: Floats, rng: np.random.Generator
) -> Iterator[list[Indices]]:
    """Yield rows of the two classes to pair, ``most`` at a time, drawn with their weights."""
    draws = [_drawer(np.flatnonzero(members), weight, rng) for members in classes]
    for steps in _pieces(total, most):
        yield [draw(steps.stop - steps.start) for draw in draws]


def _drawer(rows: Indices, weight: Floats, rng: np.random.Generator) -> Callable[[int], Indices]:
    """Return a function that draws rows with probabilities proportional to their weights."""
    own = weight[rows]
    if np.ptp(own) == 0:
        return lambda count: rows[rng.integers(rows.size, size=count)]
    edges = np.cumsum(own)

    def draw(count: int) -> Indices:
        where = np.searchsorted(edges, rng.random(count) * edges[-1], side="right")
        drawn: Indices = rows[np.minimum(where, rows.size - 1)]
        return drawn

    return draw


def dense_pieces(
    X: Any, sequence: Indices, dtype: npt.DTypeLike, most: int = _DENSE_ENTRIES
) -> Iterator[tuple[Indices, Array]]:
    """Yield rows in this sequence, as dense pieces that fit into the cache or nearly so."""
    for part in _pieces(sequence.size, min(most, _DENSE_ENTRIES // X.shape[1])):
        yield sequence[part], dense_rows(X, sequence[part], dtype)


def _pieces(total: int, size: int) -> Iterator[slice]:
    size = max(1, size)
    return (slice(start, min(start + size, total)) for start in range(0, total, size))
