"""Rows beyond memory: ten million within 4 GB, time by number of rows, and what recomputing costs.

``fit`` rows come from a mapped file made on the spot (28 columns, nonlinear, 1 % positive), 1000
landmarks, each in a process of its own under a given ``max_memory``; test AUC is on 500,000 further
rows. At 500,000 rows the fit in memory stands beside the one that keeps no kernel value. ``pass`` rows
time a product each way by number of rows, of the same kind, and give a log-log slope. ``--data pass``,
``fit`` or ``recompute`` runs one kind alone.

``recompute`` is on random rows of covtype's shape (54 columns, 1600 landmarks): a pass that makes
kernel values anew against one that reads them from memory, and against its matrix product and its
exponentials alone, each by the same calls over the same cached blocks and threads.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from aucmax import KernelAUCClassifier, NystroemFeatures
from aucmax.metrics import roc_auc
from aucmax.operators.blocks import BlockOperator
from aucmax.operators.in_memory import KernelOperator
from aucmax.runtime import compiled
from aucmax.runtime.machine import peak_gib
from aucmax.runtime.threads import Scratch, cache_rows, over_blocks
from benchmarks.harness import alone, median_time, timed, touch_memory

COLUMNS = (
    "kind",
    "rows",
    "max_memory",
    "place",
    "seconds",
    "passes",
    "seconds_a_pass",
    "test_auc",
    "peak_gib",
    "ratio_to_memory",
    "ratio_to_parts",
    "slope",
)
FEATURES, LANDMARKS, POSITIVE = 28, 1000, 0.01
BLOCK = 100_000
SIZES = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
TEST_ROWS = 500_000


def run(options: Any) -> Iterator[dict[str, Any]]:
    wanted = options.data or ("recompute", "pass", "fit")
    touch_memory(8.0)
    for _ in range(3 if "recompute" in wanted else 0):
        yield alone(recompute)
    with tempfile.TemporaryDirectory(prefix="aucmax-large-") as folder:
        path = Path(folder)
        threshold = make(path / "test", TEST_ROWS, first=10_000, threshold=None)
        make(path / "train", SIZES[-1], first=0, threshold=threshold)
        if "pass" in wanted:
            passes = [alone(one_pass, path, rows) for rows in SIZES]
            yield from passes
            seconds = [row["seconds_a_pass"] for row in passes]
            slope = np.polyfit(np.log(SIZES), np.log(seconds), 1)[0]
            yield {"kind": "slope", "rows": SIZES[-1], "slope": float(slope)}
        if "fit" in wanted:
            for rows, limit in ((TEST_ROWS, None), (TEST_ROWS, "1GB"), (SIZES[-1], "4GB")):
                yield alone(fit, path, rows, limit)


def make(path: Path, rows: int, first: int, threshold: float | None) -> float:
    """Write rows and labels; without a threshold, it is set so that 1 % are positive."""
    heights = np.empty(rows, dtype=np.float32)
    with path.with_suffix(".x").open("wb") as file:
        for number, start in enumerate(range(0, rows, BLOCK)):
            rng = np.random.default_rng([first, number])
            X = rng.standard_normal((min(BLOCK, rows - start), FEATURES), dtype=np.float32)
            X.tofile(file)
            noise = rng.standard_normal(len(X), dtype=np.float32)
            heights[start : start + len(X)] = height(X) + 0.5 * noise
    if threshold is None:
        threshold = float(np.quantile(heights, 1 - POSITIVE))
    (heights > threshold).astype(np.int8).tofile(path.with_suffix(".y"))
    return threshold


def height(X: np.ndarray) -> np.ndarray:
    """What makes a row positive: no linear score can tell."""
    out: np.ndarray = (
        np.sin(2.0 * X[:, 0]) * X[:, 1]
        + X[:, 2] * X[:, 3]
        - X[:, 4] ** 2
        + np.abs(X[:, 5])
        + 0.5 * X[:, 6]
    )
    return out


def read(path: Path, rows: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    y = np.fromfile(path.with_suffix(".y"), np.int8)[:rows]
    return np.memmap(path.with_suffix(".x"), np.float32, "r", shape=(len(y), FEATURES)), y


def fit(folder: Path, rows: int, limit: str | None) -> dict[str, Any]:
    X, y = read(folder / "train", rows)
    model = KernelAUCClassifier(preset="paper", n_landmarks=LANDMARKS, max_memory=limit, random_state=0)
    seconds, _ = timed(lambda: model.fit(X, y))
    peak = peak_gib()
    X_test, y_test = read(folder / "test")
    last = model.history_[-1]
    return {
        "kind": "fit",
        "rows": rows,
        "positives": int(y.sum()),
        "max_memory": limit,
        "place": model.place_,
        "seconds": seconds,
        "passes": last["passes"],
        "seconds_a_pass": last["seconds"] / last["passes"],
        "steps": model.n_iter_,
        "converged": model.converged_,
        "train_auc": last["auc"],
        "test_auc": roc_auc(y_test, model.decision_function(X_test)),
        "peak_gib": peak,
    }


def one_pass(folder: Path, rows: int) -> dict[str, Any]:
    X, _ = read(folder / "train", rows)
    features = NystroemFeatures(LANDMARKS, landmarks="uniform", random_state=0)
    made = features.fit(np.array(X[:50_000])).map
    operator = BlockOperator(X, made.width, made.projection, made.filler(X.dtype))
    coef, gradient = np.ones((made.rank, 1)), np.ones((rows, 1))
    repeats = 1 if rows > 1_000_000 else 9
    taken = [
        median_time(work, repeats)
        for work in (lambda: operator.scores(coef), lambda: operator.pullback(gradient))
    ]
    return {
        "kind": "pass",
        "rows": rows,
        "place": "recomputed",
        "seconds_a_pass": sum(taken) / 2,
        "peak_gib": peak_gib(),
    }


def recompute(rows: int = 100_000, columns: int = 54, landmarks: int = 1600) -> dict[str, Any]:
    X = np.random.default_rng(0).standard_normal((rows, columns), dtype=np.float32)
    made = NystroemFeatures(landmarks, landmarks="uniform", random_state=0).fit(X).map
    anew = BlockOperator(X, made.width, made.projection, made.filler(X.dtype))
    held = KernelOperator(made.kernel_block(X), made.projection)
    coef, gradient = np.ones((made.rank, 1)), np.ones((rows, 1))
    taken = {
        name: [
            median_time(lambda: operator.scores(coef), 3),
            median_time(lambda: operator.pullback(gradient), 3),
        ]
        for name, operator in (("anew", anew), ("held", held))
    }
    right = np.ones((columns + 2, landmarks), dtype=np.float32)
    wide, scratch, step = np.ones((rows, columns + 2), np.float32), Scratch(), cache_rows(landmarks * 4)
    values = np.full((step, landmarks), -0.5, dtype=np.float32)

    def product(part: slice) -> None:
        np.matmul(wide[part], right, out=scratch.array((part.stop - part.start, landmarks), np.float32))

    def exponential(part: slice) -> None:
        shape = (part.stop - part.start, landmarks)
        compiled.run("exponential", values[: shape[0]], scratch.array(shape, np.float32))

    parts = [median_time(lambda: over_blocks(w, rows, 0, step), 3) for w in (product, exponential)]
    return {
        "kind": "recompute",
        "rows": rows,
        "columns": columns,
        "landmarks": landmarks,
        "seconds_a_pass": sum(taken["anew"]) / 2,
        "scores": taken["anew"][0],
        "pullback": taken["anew"][1],
        "in_memory": sum(taken["held"]) / 2,
        "product": parts[0],
        "exponential": parts[1],
        "gflops": 2e-9 * rows * (columns + 2) * landmarks / parts[0],
        "exponentials_a_second": rows * landmarks / parts[1],
        "ratio_to_memory": sum(taken["anew"]) / sum(taken["held"]),
        "ratio_to_parts": sum(taken["anew"]) / 2 / sum(parts),
    }
