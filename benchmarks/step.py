"""One step of Algorithm 3 in 1600 float32 dimensions: compiled, in NumPy, and the memory it moves.

The floor is a compiled loop that reads the same two random rows from memory and reads and writes w,
which stays in the first-level cache, and does nothing else. The step reads the rows a second time when
its pair is active, from the cache; ``active`` says how often.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from aucmax.runtime import compiled
from aucmax.runtime.compiled import twins
from benchmarks.harness import timed

DIMENSIONS = 1600
STEPS = 200_000


def floor(X: np.ndarray, pos: np.ndarray, neg: np.ndarray, w: np.ndarray) -> float:
    total = 0.0
    for s in range(pos.size):
        i, j = pos[s], neg[s]
        part = w[0]
        for k in range(w.size):
            part += X[i, k] + X[j, k]
        for k in range(w.size):
            w[k] = -w[k]
        total += part
    return total


def run(options: Any) -> Iterator[dict[str, Any]]:
    import numba

    read = numba.njit(fastmath={"reassoc", "contract"}, error_model="numpy")(floor)
    rng = np.random.default_rng(0)
    for rows in (2_000, 465_000):  # 13 MB and 3 GB
        X = np.empty((rows, DIMENSIONS), dtype=np.float32)
        for start in range(0, rows, 10_000):
            part = X[start : start + 10_000]
            part[:] = rng.standard_normal(part.shape, dtype=np.float32) * 0.025
        X[: rows // 10] += 0.0008
        pos = rng.integers(rows // 10, size=STEPS)
        neg = rng.integers(rows // 10, rows, size=STEPS)
        read(X, pos[:10], neg[:10], np.ones(DIMENSIONS, np.float32))
        for turn in range(5):
            bound, _ = timed(lambda: read(X, pos, neg, np.ones(DIMENSIONS, np.float32)))
            fast, result = timed(lambda: steps(_run, X, pos, neg))
            slow, _ = timed(lambda: steps(twins.pair_sgd, X, pos[: STEPS // 10], neg[: STEPS // 10]))
            yield {
                "megabytes": X.nbytes / 1e6,
                "turn": turn,
                "floor_us": bound / STEPS * 1e6,
                "compiled_us": fast / STEPS * 1e6,
                "numpy_us": slow / (STEPS // 10) * 1e6,
                "over_floor": fast / bound,
                "faster_than_numpy": 10 * slow / fast,
                "active": result[2] / STEPS,
                "gb_per_s": 2 * 4 * DIMENSIONS * STEPS / fast / 1e9,
            }


def _run(*arguments: Any) -> tuple[int, int, int]:
    return compiled.run("pair_sgd", *arguments)


def steps(loop: Any, X: np.ndarray, pos: np.ndarray, neg: np.ndarray) -> tuple[int, int, int]:
    w, mean = np.zeros(DIMENSIONS, np.float32), np.zeros(DIMENSIONS)
    if loop is _run:  # outside the clock it would be, but for the first call
        loop(X, pos[:1], neg[:1], w.copy(), mean.copy(), 0, 0, (1e-7, 1e7, 16, 16, 0.0))
    return loop(X, pos, neg, w, mean, 0, 0, (1e-7, 1e7, 16, 16, 0.0))
