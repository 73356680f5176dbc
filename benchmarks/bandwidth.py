"""One pass over a kernel block of covtype's shape against only reading its bytes.

Reading is a threaded maximum over the block: one load per number, nothing stored. ``scores`` and
``pullback`` each read the block once, so a pair of them is compared with reading it twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from aucmax.features.projection import Projection
from aucmax.operators.in_memory import KernelOperator
from aucmax.pairs import PairLoss
from aucmax.runtime.threads import cpu_count
from benchmarks.harness import median_time

ROWS = 464_809


def run(options: Any) -> Iterator[dict[str, Any]]:
    v = options.landmarks
    rng = np.random.default_rng(0)
    block = np.empty((ROWS, v), dtype=np.float32)
    for start in range(0, ROWS, 8192):
        block[start : start + 8192] = rng.random((min(8192, ROWS - start), v), dtype=np.float32)
    operator = KernelOperator(block, Projection([np.eye(v)]))
    parts = np.array_split(block, cpu_count())
    positive = rng.random(ROWS) < 0.0863
    loss, flat = PairLoss(positive), rng.normal(size=ROWS)
    with ThreadPoolExecutor(len(parts)) as pool:
        for repeat in range(3):
            read = median_time(lambda: list(pool.map(np.max, parts)))
            pairs = median_time(lambda: loss.at(flat))
            for k in (1, 4):
                coef, gradient = rng.normal(size=(v, k)), rng.normal(size=(ROWS, k))
                scores = median_time(lambda: operator.scores(coef))
                pullback = median_time(lambda: operator.pullback(gradient))
                yield {
                    "repeat": repeat,
                    "columns": k,
                    "read_ms": 1e3 * read,
                    "read_GB_s": block.nbytes / read / 1e9,
                    "scores_ms": 1e3 * scores,
                    "pullback_ms": 1e3 * pullback,
                    "both_over_two_reads": (scores + pullback) / (2 * read),
                    "pairs_over_one_pass": 2 * pairs / (scores + pullback),
                    "seed": 0,
                }
