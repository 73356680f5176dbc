"""Test AUC on the paper's data: C from a small grid on a validation split, then a fit on all rows.

A fifth of the training rows validates. ``covtype-80k`` trains on 80,000 random rows as the paper's
batch experiments do; ``covtype`` on all, with C chosen on 80,000 of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from aucmax import KernelAUCClassifier
from aucmax.metrics import roc_auc, roc_auc_interval
from aucmax.paper.data import load_dataset
from aucmax.runtime.machine import peak_gib
from benchmarks.harness import timed

GRID = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
SEEDS = {"spambase": 5, "magic04": 5, "connect-4": 3}
DATA = ("spambase", "usps", "magic04", "ijcnn1", "connect-4", "skin", "covtype-80k", "covtype")


def run(options: Any) -> Iterator[dict[str, Any]]:
    for name in options.data or DATA:
        aucs = []
        for seed in range(options.seeds or SEEDS.get(name, 1)):
            row = one(name, seed, options.landmarks)
            aucs.append(row["test_auc"])
            yield {**row, "mean_so_far": float(np.mean(aucs))}


def one(name: str, seed: int, landmarks: int) -> dict[str, Any]:
    split = load_dataset(name.removesuffix("-80k"), seed=seed)
    small = split.head(80_000, seed)
    split = small if name.endswith("-80k") else split
    fit_X, val_X, fit_y, val_y = train_test_split(
        small.X_train, small.y_train, test_size=0.2, random_state=seed, stratify=small.y_train
    )

    def fit(C: float, X: np.ndarray, y: np.ndarray) -> KernelAUCClassifier:
        model = KernelAUCClassifier(C, preset="paper", n_landmarks=landmarks, random_state=seed)
        return model.fit(X, y)

    scores = {C: roc_auc(val_y, fit(C, fit_X, fit_y).decision_function(val_X)) for C in GRID}
    best = max(scores, key=lambda C: scores[C])
    seconds, model = timed(lambda: fit(best, split.X_train, split.y_train))
    interval = roc_auc_interval(split.y_test, model.decision_function(split.X_test))
    return {
        "data": name,
        "seed": seed,
        "rows": len(split.y_train),
        "landmarks": landmarks,
        "C": best,
        "validation": {f"{C:g}": round(auc, 5) for C, auc in scores.items()},
        "test_auc": interval.auc,
        "low": interval.low,
        "high": interval.high,
        "fit_seconds": seconds,
        "rank": model.feature_map_.rank_,
        "passes": model.history_[-1]["passes"],
        "peak_gib": peak_gib(),
    }
