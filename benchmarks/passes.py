"""Passes over the data that Newton needs to one objective, with and without preconditioner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from aucmax.features.nystroem import NystroemFeatures
from aucmax.operators import map_operator
from aucmax.pairs import PairLoss
from aucmax.solvers.newton import minimize
from benchmarks.datasets import load
from benchmarks.harness import timed


def run(options: Any) -> Iterator[dict[str, Any]]:
    for name in options.data or ["ijcnn1"]:
        split = load(name).head(80_000)
        X = StandardScaler().fit_transform(split.X_train)
        features = NystroemFeatures(options.landmarks, random_state=0).fit(X)
        operator = map_operator(X, features)
        loss = PairLoss(split.y_train == 1)
        for C in (1.0, 20.0, 100.0):
            best, reached = np.inf, {}
            for preconditioned in (True, False):
                seconds, solution = timed(
                    lambda: minimize(
                        operator,
                        [loss],
                        np.array([C]),
                        tol=1e-5,
                        precondition=preconditioned,
                    )
                )
                reached[preconditioned] = (seconds, solution)
                best = min(best, float(solution.objective[0]))
            # Both are asked for the first step at which they are within 1e-4 of the better end.
            counts = {}
            for preconditioned, (seconds, solution) in reached.items():
                step = next(
                    (r for r in solution.history if r.objective[0] <= best * (1 + 1e-4)),
                    solution.history[-1],
                )
                counts[preconditioned] = step.passes
                yield {
                    "data": name,
                    "C": C,
                    "preconditioned": preconditioned,
                    "passes": step.passes,
                    "newton_steps": step.iteration,
                    "seconds": step.seconds,
                    "objective": float(step.objective[0]),
                    "share_of_plain": counts[True] / step.passes,
                    "total_seconds": seconds,
                    "landmarks": options.landmarks,
                    "seed": 0,
                }
