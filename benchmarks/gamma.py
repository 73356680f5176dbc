"""Which reading of the paper's bandwidth fits its results: 1/b, 1/(2b) or 1/(4b).

The paper sets the bandwidth of the rbf kernel to b, "the average squared distance to the mean", and
does not say how b enters. Each reading runs with the paper's protocol otherwise: standardised columns,
1600 k-means centres, C (or lambda) by 3-fold cross-validation over its grid. NBAUC has at most
80,000 rows, as in Table 2; NSAUC has all, as in Table 4. Rows that are there already are not run again.
Features of eigenvalues up to ``cut`` times the largest are dropped: rows with 1e-6 are of an earlier
version of the map.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aucmax import KernelAUCClassifier, KernelAUCClassifierCV, NystroemFeatures
from aucmax.metrics import roc_auc
from aucmax.paper.data import load_dataset
from aucmax.paper.published import TABLE2, TABLE4_AUC
from benchmarks.harness import stored_rows, timed

COLUMNS = ("method", "data", "seed", "factor", "cut", "test_auc", "paper", "seconds")
#: Data sets with a fixed split first: there, seeds change the landmarks alone.
DATA = ("usps", "ijcnn1", "connect-4", "spambase", "magic04", "protein", "skin", "cod-rna", "covtype")
FACTORS = (1.0, 0.5, 0.25)
SEEDS = 3


def run(options: Any) -> Iterator[dict[str, Any]]:
    names = ("method", "data", "seed", "factor", "cut")
    cut = NystroemFeatures().cut
    done = {tuple(row[name] for name in names) for row in stored_rows("gamma", options.out)}
    for data in options.data or DATA:
        for seed in range(options.seeds or SEEDS):
            whole = load_dataset(data, seed=seed)
            for method in ("NBAUC", "NSAUC"):
                published = (TABLE2 if method == "NBAUC" else TABLE4_AUC).get(data, {}).get(method)
                if published is None:
                    continue
                split = whole.head(80_000, seed=seed) if method == "NBAUC" else whole
                for factor in FACTORS:
                    key = (method, data, seed, factor, cut)
                    if key not in done:
                        row = one(method, split, seed, factor, options.landmarks)
                        yield dict(zip(names, key, strict=True)) | row | {"paper": published}


def one(method: str, split: Any, seed: int, factor: float, landmarks: int) -> dict[str, Any]:
    machine = KernelAUCClassifier(
        preset="paper",
        landmarks="centroids",
        gamma="distance",
        n_landmarks=landmarks,
        solver="newton" if method == "NBAUC" else "sgd",
        random_state=seed,
    )
    search = KernelAUCClassifierCV(machine, gammas=[factor], n_jobs=-1)
    seconds, _ = timed(lambda: search.fit(split.X_train, split.y_train))
    scores = search.decision_function(split.X_test)
    return {
        "test_auc": 100.0 * roc_auc(split.y_test, scores),
        "C": search.C_,
        "gamma": search.gamma_,
        "held_out_auc": 100.0 * search.best_score_,
        "rows": len(split.y_train),
        "seconds": seconds,
    }
