"""Passes over the data that Newton needs to one objective, with and without preconditioner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from aucmax.features.nystroem import NystroemFeatures
from aucmax.operators.in_memory import KernelOperator
from aucmax.pairs import PairLoss
from aucmax.paper.data import load_dataset
from aucmax.solvers.newton import Record, minimize
from aucmax.solvers.options import Stopping
from benchmarks.harness import timed


def run(options: Any) -> Iterator[dict[str, Any]]:
    for name in options.data or ["ijcnn1"]:
        split = load_dataset(name).head(80_000)
        X = StandardScaler().fit_transform(split.X_train)
        features = NystroemFeatures(options.landmarks, random_state=0).fit(X).map
        operator = KernelOperator(features.kernel_block(X), features.projection)
        loss = PairLoss(split.y_train == 1)
        for C in (1.0, 20.0):
            best, reached = np.inf, {}
            for preconditioned in (True, False):
                seconds, solution = timed(
                    lambda: minimize(
                        operator,
                        [loss],
                        np.array([C]),
                        stopping=Stopping(tol=2e-6, max_iter=30),
                        precondition=preconditioned,
                    )
                )
                reached[preconditioned] = (seconds, solution)
                best = min(best, float(solution.objective[0]))
            # Passes to the first step that is so close to the better end of the two.
            for preconditioned, (seconds, solution) in reached.items():
                for closeness in (1e-3, 1e-4, 2e-5):
                    plain = first_within(reached[False][1].history, best, closeness)
                    step = first_within(solution.history, best, closeness)
                    yield {
                        "data": name,
                        "C": C,
                        "preconditioned": preconditioned,
                        "within": closeness,
                        "passes": step.passes,
                        "share_of_plain": step.passes / plain.passes,
                        "newton_steps": step.iteration,
                        "seconds": step.seconds,
                        "total_seconds": seconds,
                        "landmarks": options.landmarks,
                        "seed": 0,
                    }


def first_within(history: list[Record], best: float, closeness: float) -> Record:
    """The first step so close to the best objective; the last one if there is none."""
    return next((r for r in history if r.objective[0] <= best * (1 + closeness)), history[-1])
