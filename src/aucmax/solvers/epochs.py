"""Epochs of learners that lie beside each other as columns, with a trace of AUC and early stopping."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from aucmax.operators import FeatureOperator
from aucmax.pairs import Floats, ordered_share

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


class Learner(Protocol):
    """What a streaming classifier needs of a learner; see :mod:`aucmax.solvers.stochastic`."""

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
    learning: float  #: of these, in the learners


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
    began, learning = time.perf_counter(), 0.0
    history: list[EpochRecord] = []
    best, best_auc, best_epoch, best_learners = None, -np.inf, 0, learners
    for epoch in range(1, epochs + 1):
        resumed = time.perf_counter()
        for learner, positive in zip(learners, positives, strict=True):
            learner.epoch(X, positive, weight, rng)
        learning += time.perf_counter() - resumed
        coef = np.column_stack([learner.coef for learner in learners])
        if not np.isfinite(coef).all():
            raise FloatingPointError("features are so large that steps overflow")
        auc = None if trace is None else trace.auc(coef)
        history.append(EpochRecord(epoch, auc, time.perf_counter() - began, learning))
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
