"""covtype, all training rows, end to end: standardise, map, fit; the same process for both.

scikit-learn's pipeline is StandardScaler, Nystroem with as many landmarks and the same bandwidth, and
LogisticRegression with ``max_iter`` high enough to converge. Both get float32 rows. aucmax runs first,
so that the peak of resident memory read after it is its own (and the data's).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aucmax import KernelAUCClassifier
from aucmax.metrics import compare_roc_auc, roc_auc
from benchmarks.datasets import load
from benchmarks.harness import peak_gib, timed


def run(options: Any) -> Iterator[dict[str, Any]]:
    for name in options.data or ["covtype"]:
        split = load(name)
        # Warm up threads, BLAS and imports outside the clock.
        KernelAUCClassifier(n_landmarks=100).fit(split.X_train[:5000], split.y_train[:5000])
        ours = KernelAUCClassifier(
            100.0, n_landmarks=options.landmarks, random_state=0, max_memory="20GB"
        )
        seconds, _ = timed(lambda: ours.fit(split.X_train, split.y_train))
        our_scores = ours.decision_function(split.X_test)
        yield {
            "data": name,
            "model": "aucmax C=100",
            "rows": len(split.y_train),
            "landmarks": options.landmarks,
            "seconds": seconds,
            "times_aucmax": 1.0,
            "test_auc": roc_auc(split.y_test, our_scores),
            "iterations": ours.n_iter_,
            "passes": ours.history_[-1]["passes"],
            "converged": ours.converged_,
            "peak_gib": peak_gib(),
            "seed": 0,
        }
        for C in (1.0, 100.0):
            theirs = make_pipeline(
                StandardScaler(),
                Nystroem(
                    gamma=ours.feature_map_.gamma_, n_components=options.landmarks, random_state=0
                ),
                LogisticRegression(C=C, max_iter=20_000),
            )
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", ConvergenceWarning)
                their_seconds, _ = timed(lambda: theirs.fit(split.X_train, split.y_train))
            scores = theirs.decision_function(split.X_test)
            test = compare_roc_auc(split.y_test, our_scores, scores)
            yield {
                "data": name,
                "model": f"scikit-learn Nystroem + LogisticRegression C={C:g}",
                "rows": len(split.y_train),
                "landmarks": options.landmarks,
                "seconds": their_seconds,
                "times_aucmax": their_seconds / seconds,
                "test_auc": test.auc_b,
                "p_value": test.p_value,
                "iterations": int(theirs[-1].n_iter_[0]),
                "converged": not caught,
                "peak_gib": peak_gib(),
                "seed": 0,
            }
