"""Learners that see a pair or a row at a time: the paper's Algorithm 3, and the two it is compared to.

All three keep the same shape. ``epoch`` goes once over rows that lie in memory, in random order;
``stream`` takes rows as they come, once; ``coef`` is what has been learnt so far. Rows are dense or CSR
(made dense a piece at a time). A learner never asks for more than its buffers beside the rows, and its
loops return every few milliseconds, so that Ctrl-C is heard.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from aucmax._checks import is_sparse
from aucmax.operators import FeatureOperator
from aucmax.pairs import Floats, Indices, ordered_share
from aucmax.solvers import _compiled

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

#: Most steps of one call into a loop, and most entries of CSR rows that are dense at a time.
_STEPS = 2**15
_DENSE_ENTRIES = 2**23


class Learner(Protocol):
    """What a streaming classifier needs of a learner; see the module's text."""

    @property
    def coef(self) -> Floats: ...

    def epoch(self, X: Any, positive: Mask, weight: Floats, rng: np.random.Generator) -> None: ...

    def stream(self, X: Any, positive: Mask, rng: np.random.Generator) -> None: ...

    def samples(self) -> tuple[Array, Array]: ...

    def rescale(self, ratio: Floats, shift: Floats) -> None: ...


@dataclass(frozen=True)
class EpochRecord:
    """What had been reached after an epoch."""

    epoch: int
    auc: Floats | None  #: of each column on the traced rows, if any are
    seconds: float  #: since the start, tracing included

    def plain(self) -> dict[str, Any]:
        """As JSON and data frames take it."""
        auc = None if self.auc is None else self.auc.tolist()
        if auc is not None and len(auc) == 1:
            auc = auc[0]
        return {"epoch": self.epoch, "auc": auc, "seconds": self.seconds}


@dataclass(frozen=True)
class Trace:
    """Rows on which the AUC of each column is followed, and when to stop for it.

    With ``patience`` the run ends when the mean AUC has not risen by more than ``tol`` for so many
    epochs, and gives back the best it had.
    """

    X: Any
    positives: Sequence[Mask]
    weight: Floats
    patience: int | None = None
    tol: float = 1e-4

    def auc(self, coef: Floats) -> Floats:
        scores = FeatureOperator(self.X).scores(coef)
        return np.array(
            [
                ordered_share(s[up], s[~up], self.weight[up], self.weight[~up])
                for s, up in zip(scores.T, self.positives, strict=True)
            ]
        )


def run_epochs(
    learners: Sequence[Learner],
    X: Any,
    positives: Sequence[Mask],
    weight: Floats,
    rng: np.random.Generator,
    epochs: int,
    trace: Trace | None = None,
    on_record: Callable[[EpochRecord], None] | None = None,
) -> tuple[Floats, Sequence[Learner], list[EpochRecord]]:
    """Train one learner per column.

    Returns the coefficients (r, k), the learners as they were when these were reached, and a record
    per epoch.
    """
    began = time.perf_counter()
    history: list[EpochRecord] = []
    best, best_auc, best_epoch, best_learners = None, -np.inf, 0, learners
    for epoch in range(1, epochs + 1):
        for learner, positive in zip(learners, positives, strict=True):
            learner.epoch(X, positive, weight, rng)
        coef = np.column_stack([learner.coef for learner in learners])
        if not np.isfinite(coef).all():
            raise FloatingPointError("features are so large that steps overflow")
        auc = None if trace is None else trace.auc(coef)
        history.append(EpochRecord(epoch, auc, time.perf_counter() - began))
        if on_record is not None:
            on_record(history[-1])
        if trace is None or trace.patience is None or auc is None:
            best = coef
            continue
        if best is None or auc.mean() > best_auc + trace.tol:
            best, best_auc, best_epoch = coef, float(auc.mean()), epoch
            best_learners = deepcopy(list(learners))
        elif epoch - best_epoch >= trace.patience:
            break
    assert best is not None
    return best, best_learners, history


class PairSGD:
    """Algorithm 3: a random positive and a random negative a step, hinge loss, averaged.

    Step t moves along an active pair's difference by ``1 / (alpha (t + t0))``. ``t0`` is a number, or
    None for ``1 / (alpha eta0)``, which makes the first step ``eta0``.
    """

    def __init__(
        self,
        n_columns: int,
        dtype: npt.DTypeLike,
        *,
        alpha: float,
        eta0: float = 1.0,
        t0: float | None = None,
        regularize_every: int = 16,
        average_every: int = 16,
        average_power: float = 0.0,
        buffer_size: int = 0,
    ) -> None:
        self.w = np.zeros(n_columns, dtype)
        self.mean: Floats = np.zeros(n_columns)
        self.steps = self.averaged = self.active = 0
        self.alpha, self._t0, self.eta0 = alpha, t0, eta0
        self._every = (regularize_every, average_every, float(average_power))
        self.pos, self.neg = (Reservoir(buffer_size, n_columns, dtype) for _ in range(2))

    @property
    def coef(self) -> Floats:
        return (self.mean if self.averaged else self.w).astype(np.float64)

    @property
    def t0(self) -> float:
        return 1.0 / (self.alpha * self.eta0) if self._t0 is None else self._t0

    def epoch(self, X: Any, positive: Mask, weight: Floats, rng: np.random.Generator) -> None:
        """As many steps as there are rows; a row is drawn within its class as its weight is."""
        draws = [_Draw(np.flatnonzero(members), weight, rng) for members in (positive, ~positive)]
        for steps in _pieces(X.shape[0], _STEPS):
            self._run(X, *(draw(steps.stop - steps.start) for draw in draws))

    def stream(self, X: Any, positive: Mask, rng: np.random.Generator) -> None:
        """A step for each row, against one of the other class from a sample of all seen so far."""
        self.keep(X, positive, rng)
        (pos, neg), n_rows = self.samples(), X.shape[0]
        if not len(pos) or not len(neg):
            return
        order = rng.permutation(n_rows)
        for part in _pieces(n_rows, max(1, _DENSE_ENTRIES // X.shape[1])):
            rows, up = order[part], positive[order[part]]
            here = np.arange(rows.size)
            from_pos = rows.size + rng.integers(len(pos), size=rows.size)
            from_neg = rows.size + len(pos) + rng.integers(len(neg), size=rows.size)
            table = np.vstack([_dense(X, rows, self.w.dtype), pos, neg])
            self._run(table, np.where(up, here, from_pos), np.where(up, from_neg, here))

    def keep(self, X: Any, positive: Mask, rng: np.random.Generator) -> None:
        """Take rows into the samples that later chunks of a stream are paired with."""
        self.pos.add(X, np.flatnonzero(positive), rng)
        self.neg.add(X, np.flatnonzero(~positive), rng)

    def samples(self) -> tuple[Array, Array]:
        return self.pos.rows, self.neg.rows

    def rescale(self, ratio: Floats, shift: Floats) -> None:
        for vector in (self.w, self.mean):
            vector /= ratio.astype(vector.dtype)
        for buffer in (self.pos, self.neg):
            buffer.rescale(ratio, shift)

    def _run(self, X: Any, pos: Indices, neg: Indices) -> None:
        """Steps over pairs of rows of X, made dense in pieces if they are not."""
        piece = pos.size
        if is_sparse(X):
            piece = max(1, _DENSE_ENTRIES // (2 * X.shape[1]))
        for steps in _pieces(pos.size, piece):
            i, j, table = pos[steps], neg[steps], X
            if is_sparse(X):
                table = _dense(X, np.concatenate([i, j]), self.w.dtype)
                i, j = np.arange(i.size), np.arange(i.size, 2 * i.size)
            self.steps, self.averaged, active = _compiled.run(
                "pair_sgd",
                table,
                i,
                j,
                self.w,
                self.mean,
                self.steps,
                self.averaged,
                float(self.alpha),
                float(self.t0),
                *self._every,
            )
            self.active += active


class OAM:
    """Online AUC maximisation, the sequential variant (Zhao, Hoi, Jin and Yang, 2011).

    A new row takes a passive-aggressive step against each row of the other class in a buffer that
    reservoir sampling keeps; a step is at most ``C/2``, times how many rows each buffered one stands
    for.
    """

    def __init__(self, n_columns: int, dtype: npt.DTypeLike, *, C: float, buffer_size: int) -> None:
        self.w = np.zeros(n_columns, dtype)
        self._C = C
        self.pos, self.neg = (Reservoir(buffer_size, n_columns, dtype) for _ in range(2))

    @property
    def coef(self) -> Floats:
        return self.w.astype(np.float64)

    def epoch(self, X: Any, positive: Mask, weight: Floats, rng: np.random.Generator) -> None:
        self._run(X, rng.permutation(X.shape[0]), positive, rng)

    def stream(self, X: Any, positive: Mask, rng: np.random.Generator) -> None:
        self._run(X, np.arange(X.shape[0]), positive, rng)

    def samples(self) -> tuple[Array, Array]:
        return self.pos.rows, self.neg.rows

    def rescale(self, ratio: Floats, shift: Floats) -> None:
        self.w /= ratio.astype(self.w.dtype)
        for buffer in (self.pos, self.neg):
            buffer.rescale(ratio, shift)

    def _run(self, X: Any, order: Indices, positive: Mask, rng: np.random.Generator) -> None:
        for buffer in (self.pos, self.neg):
            buffer.reserve()
        for rows, table in _ordered(X, order, self.w.dtype, _STEPS // 32):
            up = positive[rows]
            slots = np.empty(rows.size, dtype=np.intp)
            for members, buffer in ((up, self.pos), (~up, self.neg)):
                slots[members] = reservoir_slots(buffer.seen, int(members.sum()), buffer.size, rng)
            self.pos.seen, self.neg.seen = _compiled.run(
                "oam",
                table,
                up,
                slots,
                self.w,
                self.pos.space,
                self.neg.space,
                self.pos.seen,
                self.neg.seen,
                float(self._C),
            )


class SOLAM:
    """Stochastic online AUC maximisation (Ying, Wen and Lyu, 2016).

    The squared loss over all pairs as a saddle point in (w, a, b) and alpha, so that a row alone gives
    a step: ``zeta / sqrt(t)``, then projections to ``||w|| <= radius`` and the bounds that follow for
    the scalars. The share of positives is estimated on the way, and so is the largest norm of a row.
    """

    def __init__(
        self, n_columns: int, dtype: npt.DTypeLike, *, zeta: float, radius: float, buffer_size: int
    ) -> None:
        self.w = np.zeros(n_columns, dtype)
        self.mean: Floats = np.zeros(n_columns)
        self.scalars: Floats = np.zeros(4)  # a, b, alpha, share of positives
        self.steps, self._total, self._kappa = 0, 0.0, 0.0
        self._zeta, self._radius = zeta, radius
        self.pos, self.neg = (Reservoir(buffer_size, n_columns, dtype) for _ in range(2))

    @property
    def coef(self) -> Floats:
        # Before both classes have been seen, w has only followed one of them.
        return self.mean.copy() if 0.0 < self.scalars[3] < 1.0 else np.zeros(self.mean.size)

    def epoch(self, X: Any, positive: Mask, weight: Floats, rng: np.random.Generator) -> None:
        self._run(X, rng.permutation(X.shape[0]), positive)

    def stream(self, X: Any, positive: Mask, rng: np.random.Generator) -> None:
        self.keep(X, positive, rng)
        self._run(X, np.arange(X.shape[0]), positive)

    def keep(self, X: Any, positive: Mask, rng: np.random.Generator) -> None:
        """Take rows into the samples that a threshold is found on; the learning needs none."""
        self.pos.add(X, np.flatnonzero(positive), rng)
        self.neg.add(X, np.flatnonzero(~positive), rng)

    def samples(self) -> tuple[Array, Array]:
        return self.pos.rows, self.neg.rows

    def rescale(self, ratio: Floats, shift: Floats) -> None:
        for vector in (self.w, self.mean):
            vector /= ratio.astype(vector.dtype)
        self.scalars[:2] += self.w @ shift  # a and b are mean scores
        for buffer in (self.pos, self.neg):
            buffer.rescale(ratio, shift)

    def _run(self, X: Any, order: Indices, positive: Mask) -> None:
        for rows, table in _ordered(X, order, self.w.dtype, _STEPS):
            norms = np.einsum("nd,nd->n", table, table)
            self._kappa = max(self._kappa, float(np.sqrt(norms.max())))
            self.steps, self._total = _compiled.run(
                "solam",
                table,
                positive[rows],
                self.w,
                self.mean,
                self.scalars,
                self.steps,
                self._total,
                float(self._zeta),
                float(self._radius),
                self._kappa,
            )


def mean_square(X: Any) -> float:
    """Mean of ``||x||^2`` over rows; refuses rows whose squares overflow, since no step can be made."""
    values = X.data if is_sparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("i,i->", values, values) if values.ndim == 1 else _row_squares(values)
        total = float(np.sum(squares, dtype=np.float64))
    if not np.isfinite(total):
        raise FloatingPointError("features are so large that their squares overflow")
    return total / float(X.shape[0])


def _row_squares(X: Array) -> Array:
    squares: Array = np.einsum("nd,nd->n", X, X)
    return squares


def first_step(square: float) -> float:
    """The longest step that does not overshoot rows of this mean squared norm."""
    return 1.0 / square if square > 0 else 1.0


class Reservoir:
    """A uniform random sample, of at most ``size`` rows, of all rows seen."""

    def __init__(self, size: int, n_columns: int, dtype: npt.DTypeLike) -> None:
        self.size, self.seen = size, 0
        self.space = np.zeros((0, n_columns), dtype)  # grows to `size` rows as they come

    @property
    def rows(self) -> Array:
        return self.space[: self.seen]

    def reserve(self) -> None:
        """Take all the space at once, for a loop that fills it."""
        self._grow(self.size)

    def add(self, X: Any, rows: Indices, rng: np.random.Generator) -> None:
        slots = reservoir_slots(self.seen, rows.size, self.size, rng)
        self.seen += rows.size
        self._grow(min(self.seen, self.size))
        # Of several rows for one slot the last stays, as if they had come one by one.
        slots, first = np.unique(slots[::-1], return_index=True)
        kept = rows[::-1][first]
        self.space[slots[slots >= 0]] = _dense(X, kept[slots >= 0], self.space.dtype)

    def _grow(self, rows: int) -> None:
        if rows > len(self.space):
            larger = np.zeros((min(self.size, max(rows, 2 * len(self.space))), self.space.shape[1]))
            larger[: len(self.space)] = self.space
            self.space = larger.astype(self.space.dtype)

    def rescale(self, ratio: Floats, shift: Floats) -> None:
        self.rows[:] = self.rows * ratio + shift


def reservoir_slots(seen: int, count: int, size: int, rng: np.random.Generator) -> Indices:
    """Where in a reservoir each of ``count`` rows goes after ``seen`` others; -1 is nowhere.

    The m-th row is kept with probability ``size / m``, in the place of a random one.
    """
    rank = seen + np.arange(count)
    slots = (rng.random(count) * (rank + 1)).astype(np.intp)
    return np.where(rank < size, rank, np.where(slots < size, slots, -1))


class _Draw:
    """Random rows of one class, with chances as their weights."""

    def __init__(self, rows: Indices, weight: Floats, rng: np.random.Generator) -> None:
        self._rows, self._rng = rows, rng
        own = weight[rows]
        self._edges: Floats | None = None if np.ptp(own) == 0 else np.cumsum(own)

    def __call__(self, count: int) -> Indices:
        if self._edges is None:
            where = self._rng.integers(self._rows.size, size=count)
        else:
            at = self._rng.random(count) * self._edges[-1]
            where = np.minimum(np.searchsorted(self._edges, at, side="right"), self._rows.size - 1)
        drawn: Indices = self._rows[where]
        return drawn


def _ordered(
    X: Any, order: Indices, dtype: npt.DTypeLike, most: int
) -> Iterator[tuple[Indices, Array]]:
    """Rows in the given order, as dense pieces that stay in the cache or near it."""
    for part in _pieces(order.size, max(1, min(most, _DENSE_ENTRIES // X.shape[1]))):
        yield order[part], _dense(X, order[part], dtype)


def _pieces(total: int, size: int) -> Iterator[slice]:
    for start in range(0, total, max(1, size)):
        yield slice(start, min(start + size, total))


def _dense(X: Any, rows: Indices, dtype: npt.DTypeLike) -> Array:
    chosen = X[rows]
    if is_sparse(chosen):
        chosen = chosen.toarray()
    return np.ascontiguousarray(chosen, dtype=dtype)
