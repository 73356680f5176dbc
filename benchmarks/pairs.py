"""The pair kernel alone: its time grows with the rows, not with the pairs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from aucmax.pairs import PairLoss
from benchmarks.harness import median_time


def run(options: Any) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(0)
    for n in (10_000, 100_000, 464_809, 1_000_000):
        positive = rng.random(n) < 0.0863  # covtype's share
        scores = rng.normal(size=n) + 1.5 * positive
        loss = PairLoss(positive)
        point = loss.at(scores)
        yield {
            "rows": n,
            "pairs": float(positive.sum()) * float((~positive).sum()),
            "value_gradient_ms": 1e3 * median_time(lambda: loss.at(scores)),
            "hessian_product_ms": 1e3 * median_time(lambda: point.hessian_product(scores)),
            "seed": 0,
        }
