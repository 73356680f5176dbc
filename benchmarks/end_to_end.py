"""covtype, all training rows, end to end: standardise, map, fit; all models in one process.

scikit-learn's pipeline is StandardScaler, Nystroem with as many landmarks and the same bandwidth, and
LogisticRegression with ``max_iter`` high enough to converge. All get float32 rows. C means another
thing in the two losses, so each runs at a small and a large one, aucmax at its default as well. aucmax
goes first, so that the peak of resident memory read after it is its own (and the data's). Before the
clock starts, memory has been handed out once to another process and threads are warm, so that the
order does not matter to the times.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aucmax import KernelAUCClassifier
from aucmax.metrics import compare_roc_auc, roc_auc
from aucmax.paper.data import Split, load_dataset
from aucmax.runtime.machine import peak_gib
from benchmarks.harness import timed, touch_memory

ROUNDS = (
    (("aucmax", 1.0), ("aucmax", 10.0), ("theirs", 1.0)),
    (
        ("aucmax", 1.0),
        ("aucmax", 10.0),
        ("theirs", 1.0),
        ("aucmax", 100.0),
        ("theirs", 100.0),
    ),
)


def run(options: Any) -> Iterator[dict[str, Any]]:
    for name in options.data or ["covtype"]:
        split = load_dataset(name)
        # Warm up memory, threads, BLAS and imports outside the clock.
        touch_memory(8.0)
        KernelAUCClassifier(preset="paper", n_landmarks=100).fit(
            split.X_train[:5000], split.y_train[:5000]
        )
        scores: dict[tuple[str, float], np.ndarray] = {}
        for number, contenders in enumerate(ROUNDS):
            for kind, C in contenders:
                row, scores[kind, C] = one(kind, C, split, options.landmarks)
                if kind == "theirs":
                    ours = scores["aucmax", C]
                    row["p_value"] = compare_roc_auc(split.y_test, ours, scores[kind, C]).p_value
                yield {"round": number, "data": name, "rows": len(split.y_train), **row}


def one(kind: str, C: float, split: Split, landmarks: int) -> tuple[dict[str, Any], np.ndarray]:
    if kind == "aucmax":
        label = f"aucmax C={C:g}"
        model = KernelAUCClassifier(C, preset="paper", n_landmarks=landmarks, random_state=0)
    else:
        label = f"scikit-learn Nystroem + LogisticRegression C={C:g}"
        model = make_pipeline(
            StandardScaler(),
            Nystroem(gamma=1.0 / split.X_train.shape[1], n_components=landmarks, random_state=0),
            LogisticRegression(C=C, max_iter=20_000),
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        seconds, _ = timed(lambda: model.fit(split.X_train, split.y_train))
    scores = model.decision_function(split.X_test)
    return {
        "model": label,
        "landmarks": landmarks,
        "seconds": seconds,
        "test_auc": roc_auc(split.y_test, scores),
        "iterations": model.n_iter_ if kind == "aucmax" else int(model[-1].n_iter_[0]),
        "passes": model.history_[-1]["passes"] if kind == "aucmax" else None,
        "converged": not caught,
        "peak_gib": peak_gib(),
        "seed": 0,
    }, scores
