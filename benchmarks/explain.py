"""How long it takes to explain 1,000 rows, by kernel, and how far sums of contributions are off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from aucmax import KernelAUCClassifier, KernelAUCClassifierCV, TableModel
from benchmarks.harness import median_time

COLUMNS = ("kernel", "landmarks", "columns", "features", "seconds", "error", "score_range")
_ROWS, _TRAIN, _NUMBERS, _CATEGORIES = 1000, 8000, 16, 4


def _table(rows: int) -> tuple[pl.DataFrame, np.ndarray]:
    """Sixteen numbers and four categories of six levels; some of each decide."""
    rng = np.random.default_rng(0)
    table = {f"n{i}": rng.normal(size=rows) for i in range(_NUMBERS)}
    levels = {f"c{i}": rng.integers(0, 6, rows) for i in range(_CATEGORIES)}
    signal = np.sin(table["n0"] * table["n1"]) + table["n2"] ** 2 + (levels["c0"] == 2)
    text = {name: [f"level {value}" for value in values] for name, values in levels.items()}
    return pl.DataFrame(table | text), signal + rng.normal(size=rows) > 2.5


def run(options: Any) -> Iterator[dict[str, Any]]:
    table, positive = _table(_TRAIN)
    for kernel in ("rbf", "laplacian", "rbf+laplacian"):
        machine = KernelAUCClassifier(
            preset="paper", kernel=kernel, n_landmarks=options.landmarks, random_state=0
        )
        model = TableModel(KernelAUCClassifierCV(machine, Cs=[1.0]), cv=2).fit(table, positive)
        rows = table[:_ROWS]
        seconds = median_time(lambda: model.explain(rows), repeats=5)
        found = model.explain(rows)
        yield {
            "kernel": kernel,
            "landmarks": len(model.model_.feature_map_.landmarks_),
            "columns": len(found.names),
            "features": len(model.feature_names_),
            "rows": _ROWS,
            "seconds": seconds,
            "error": found.error,
            "score_range": float(np.ptp(found.scores)),
        }
