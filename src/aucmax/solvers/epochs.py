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
from aucmax.runtime.deadline import NEVER, Deadline

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
State = dict[str, Any]


class Learner(Protocol):
    """What a streaming classifier needs of a learner; see :mod:`aucmax.solvers.stochastic`."""

    @property
    def coef(self) -> Floats: ...

    def epoch(self, X: Any, positive: Mask, weight: Floats, rng: np.random.Generator) -> None: ...

    def stream(self, X: Any, positive: Mask, rng: np.random.Generator) -> None: ...

    def samples(self) -> tuple[Array, Array]: ...

    def rescale(self, ratio: Floats, shift: Floats) -> None: ...

    def state(self) -> State: ...

    def resume(self, state: State) -> None: ...


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
    state: State | None = None,
    on_state: Callable[[State], None] | None = None,
    deadline: Deadline = NEVER,
) -> tuple[Floats, Sequence[Learner], list[EpochRecord]]:
    """Train one learner per column.

    Returns the coefficients (r, k), the learners as they were when these were reached, and a record
    per epoch. ``on_state`` is called after each epoch with all that it takes to go on to the same
    result, to the bit, if it is passed as ``state``. No epoch but the first begins after ``deadline``.
    """
    began, learning = time.perf_counter(), 0.0
    history: list[EpochRecord] = []
    best, best_auc, best_epoch, best_learners = None, -np.inf, 0, learners
    if state is not None:
        history = [EpochRecord(**record) for record in state["history"]]
        began, learning = began - history[-1].seconds, history[-1].learning
        best, best_auc, best_epoch = state["best"], state["best_auc"], state["best_epoch"]
        if state["best_learners"] is not None:
            best_learners = deepcopy(list(learners))
            _resume(best_learners, state["best_learners"])
        _resume(learners, state["learners"])
        rng.bit_generator.state = state["rng"]
    for epoch in range(len(history) + 1, epochs + 1):
        if _is_over(trace, epoch - 1 - best_epoch) or (history and deadline.over()):
            break
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
        elif best is None or auc.mean() > best_auc + trace.tol:
            best, best_auc, best_epoch = coef, float(auc.mean()), epoch
            best_learners = deepcopy(list(learners))
        if on_state is not None:
            apart = best_learners is not learners
            on_state(
                {
                    "learners": [learner.state() for learner in learners],
                    "best_learners": [each.state() for each in best_learners] if apart else None,
                    "best": best,
                    "best_auc": best_auc,
                    "best_epoch": best_epoch,
                    "rng": rng.bit_generator.state,
                    "history": [dict(vars(record)) for record in history],
                }
            )
    assert best is not None
    return best, best_learners, history


def _is_over(trace: Trace | None, since_best: int) -> bool:
    return trace is not None and trace.patience is not None and since_best >= trace.patience


def _resume(learners: Sequence[Learner], states: Sequence[State]) -> None:
    for learner, state in zip(learners, states, strict=True):
        learner.resume(state)
