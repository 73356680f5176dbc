"""Epochs of stochastic learners, one per problem, with a trace of the AUC and early stopping."""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from aucmax.operators.in_memory import FeatureOperator
from aucmax.pairs import Floats, Mask, ordered_share
from aucmax.runtime.deadline import NEVER, Deadline
from aucmax.solvers.options import NO_HOOKS, Hooks, SavedState
from aucmax.solvers.stochastic import Learner


@dataclass(frozen=True)
class EpochRecord:
    """What had been reached after an epoch."""

    epoch: int
    auc: Floats | None  #: of each problem on the traced rows, if there are any
    seconds: float  #: since the start, tracing included
    learning: float  #: of these, in the learners
    last_auc: Floats | None = None  #: as ``auc``, of the last iterates, where ``auc`` is of averages


@dataclass(frozen=True)
class LabelledRows:
    """Rows of any kind, which of them are positive in each problem, and their weights."""

    X: Any
    positives: Sequence[Mask]
    weight: Floats


@dataclass(frozen=True)
class Trace:
    """Rows on which the AUC of each problem is followed, and when to stop for it.

    With ``patience``, a run ends when the mean AUC has not risen by more than ``tol`` for that many
    epochs, and returns the best coefficients.
    """

    rows: LabelledRows
    patience: int | None = None
    tol: float = 1e-4

    def auc(self, coef: Floats) -> Floats:
        scores, u = FeatureOperator(self.rows.X).scores(coef), self.rows.weight
        pairs = zip(scores.T, self.rows.positives, strict=True)
        return np.array([ordered_share(s[up], s[~up], u[up], u[~up]) for s, up in pairs])


@dataclass
class _State:
    """The best epoch so far, with the learners as they were then, and all records."""

    history: list[EpochRecord]
    learners: Sequence[Learner]
    coef: Floats | None = None
    auc: float = -np.inf
    epoch: int = 0


def run_epochs(
    learners: Sequence[Learner],
    rows: LabelledRows,
    rng: np.random.Generator,
    epochs: int,
    *,
    trace: Trace | None = None,
    hooks: Hooks = NO_HOOKS,
    state: SavedState | None = None,
    deadline: Deadline = NEVER,
) -> tuple[Floats, Sequence[Learner], list[EpochRecord]]:
    """Train one learner per problem.

    Returns the coefficients (r, k), the learners as they were when these were reached, and a record
    per epoch. With the ``state`` that the ``hooks`` of an interrupted run received, the result is that
    of the whole run, to the bit. No epoch but the first begins after the ``deadline``.
    """
    best = _State([], learners) if state is None else _restore(state, learners, rng)
    history, patience = best.history, None if trace is None else trace.patience
    spent, learning = (history[-1].seconds, history[-1].learning) if history else (0.0, 0.0)
    began = time.perf_counter() - spent
    for epoch in range(len(history) + 1, epochs + 1):
        if patience is not None and epoch - 1 - best.epoch >= patience:
            break
        if history and deadline.over():
            break
        resumed = time.perf_counter()
        for learner, positive in zip(learners, rows.positives, strict=True):
            learner.epoch(rows.X, positive, rows.weight, rng)
        learning += time.perf_counter() - resumed
        coef = np.column_stack([learner.coef for learner in learners])
        if not np.isfinite(coef).all():
            raise FloatingPointError("features are so large that steps overflow")
        auc = None if trace is None else trace.auc(coef)
        last_auc = None if trace is None else _last_auc(trace, learners)
        history.append(EpochRecord(epoch, auc, time.perf_counter() - began, learning, last_auc))
        if hooks.on_record is not None:
            hooks.on_record(history[-1])
        if trace is None or auc is None or patience is None:
            best.coef = coef
        elif best.coef is None or auc.mean() > best.auc + trace.tol:
            best = _State(history, deepcopy(list(learners)), coef, float(auc.mean()), epoch)
        if hooks.on_state is not None:
            hooks.on_state(_save(best, learners, rng))
    assert best.coef is not None
    return best.coef, best.learners, history


def _last_auc(trace: Trace, learners: Sequence[Learner]) -> Floats | None:
    iterates = [learner.last_iterate for learner in learners]
    found = [iterate for iterate in iterates if iterate is not None]
    return trace.auc(np.column_stack(found)) if len(found) == len(iterates) else None


def _save(best: _State, learners: Sequence[Learner], rng: np.random.Generator) -> SavedState:
    apart = best.learners is not learners
    return {
        "learners": [learner.state() for learner in learners],
        "best_learners": [learner.state() for learner in best.learners] if apart else None,
        "best": [best.coef, best.auc, best.epoch],
        "rng": rng.bit_generator.state,
        "history": [dict(vars(record)) for record in best.history],
    }


def _restore(saved: SavedState, learners: Sequence[Learner], rng: np.random.Generator) -> _State:
    best = learners if saved["best_learners"] is None else deepcopy(list(learners))
    for group, states in ((best, saved["best_learners"] or ()), (learners, saved["learners"])):
        for learner, state in zip(group, states, strict=False):
            learner.resume(state)
    rng.bit_generator.state = saved["rng"]
    history = [EpochRecord(**record) for record in saved["history"]]
    return _State(history, best, *saved["best"])
