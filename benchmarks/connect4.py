"""connect-4, where NBAUC with the paper's settings stays below the paper: what was tried to see why.

Each variant chooses C (and gamma, where it may) by 3-fold cross-validation as always. The features are
0 and 1: standardising makes a rare one weigh as much as a common one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.preprocessing import StandardScaler

from aucmax import KernelAUCClassifier, KernelAUCClassifierCV
from aucmax.metrics import roc_auc
from aucmax.paper.data import load_dataset
from benchmarks.harness import timed

#: Name, whether features are standardised, landmarks, multiples of gamma.
VARIANTS: tuple[tuple[str, bool, str, tuple[float, ...]], ...] = (
    ("the paper's settings, our landmarks", True, "kmeans", (1.0,)),
    ("k-means centres as landmarks", True, "centres", (1.0,)),
    ("landmarks of each class", True, "class-kmeans", (1.0,)),
    ("gamma chosen, too", True, "kmeans", (0.25, 0.5, 1.0, 2.0)),
    ("features as they are", False, "kmeans", (1.0,)),
    ("features as they are, k-means centres", False, "centres", (1.0,)),
    ("features as they are, gamma chosen", False, "kmeans", (0.25, 0.5, 1.0, 2.0)),
)


def run(options: Any) -> Iterator[dict[str, Any]]:
    for seed in range(options.seeds or 3):
        split = load_dataset("connect-4", seed=seed)
        scaler = StandardScaler().fit(split.X_train)
        for name, standardised, landmarks, gammas in VARIANTS:
            X, X_test = split.X_train, split.X_test
            if standardised:
                X, X_test = scaler.transform(X), scaler.transform(X_test)
            chosen: Any = landmarks
            if landmarks == "centres":
                chosen = centres(X, options.landmarks, seed)
            machine = KernelAUCClassifier(
                preset="paper",
                n_landmarks=options.landmarks,
                landmarks=chosen,
                standardize=False,
                random_state=seed,
            )
            model = KernelAUCClassifierCV(machine, gammas=gammas)
            seconds, _ = timed(lambda: model.fit(X, split.y_train))
            yield {
                "variant": name,
                "seed": seed,
                "C": model.C_,
                "gamma_factor": float(gammas[int(np.argmin(np.abs(model.gammas_ - model.gamma_)))]),
                "cv_auc": model.best_score_,
                "test_auc": float(roc_auc(split.y_test, model.decision_function(X_test))),
                "seconds": seconds,
            }


def centres(X: np.ndarray, count: int, seed: int) -> np.ndarray:
    few = np.random.default_rng(seed).permutation(len(X))[: 25 * count]
    means = MiniBatchKMeans(count, random_state=seed, n_init=1, batch_size=4096, max_iter=30)
    return np.asarray(means.fit(X[few]).cluster_centers_)
