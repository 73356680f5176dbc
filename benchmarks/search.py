"""The paper's grid of 26 values by 3 folds inside one solve, against one fit and against 79 of them.

Each model runs in a process of its own, so that its peak of resident memory is its own. ``early`` stops
when the mean AUC has fallen three values in a row, ``full`` walks the whole grid; both are set against
``fit``, one ``KernelAUCClassifier`` at the C they chose, with its own landmarks and map. From the full
walk comes also the test AUC of every C on the grid, to see what the choice has cost. On covtype, where
a walk takes a quarter of an hour, ``early`` is that walk up to where it would have stopped.

``naive`` fits some of the values on each fold by itself, with the landmarks given, and compares AUCs
with those of a search that walks all values up to the last of them; the time of 79 fits is 79 times
the mean.
``apart`` makes scaler and map anew in each fold, to see how much sharing them matters. On usps and
connect-4 only the full walk runs, for the choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from aucmax import KernelAUCClassifier, KernelAUCClassifierCV, NystroemFeatures
from aucmax.fitting import kernel_search as search_module
from aucmax.metrics import roc_auc
from aucmax.paper.data import Split, load_dataset
from aucmax.runtime.machine import peak_gib
from benchmarks.harness import alone, timed, touch_memory

DATA = ("ijcnn1", "covtype-80k", "covtype")
CHOICE = ("usps", "connect-4")
APART = ("spambase", "magic04", "usps", "ijcnn1")
#: Which of the 26 values the naive search takes: cold fits at the largest are very slow.
NAIVE = {"ijcnn1": slice(0, 26, 3), "covtype-80k": slice(1, 26, 6), "covtype": slice(3, 12, 4)}


def fit_recorded(model: KernelAUCClassifierCV, X: Any, y: Any) -> np.ndarray:
    """Fit a search, and return the coefficients (r, n_Cs) of all C on all rows."""
    solve, found = search_module.search_kernel, []

    def recorded(*arguments: Any) -> Any:
        found.append(solve(*arguments))
        return found[-1]

    search_module.search_kernel = recorded
    try:
        model.fit(X, y)
    finally:
        search_module.search_kernel = solve
    (path,) = found[0][1]
    return np.column_stack([coef[:, 0] for coef in path.coef])


def paper(landmarks: int, **params: Any) -> KernelAUCClassifier:
    return KernelAUCClassifier(preset="paper", n_landmarks=landmarks, random_state=0, **params)


def run(options: Any) -> Iterator[dict[str, Any]]:
    for name in options.data or dict.fromkeys((*APART, *CHOICE, *DATA)):
        if name in CHOICE:
            yield alone(search, name, options.landmarks, None)
        if name in DATA:
            yield from cost(name, options.landmarks)
            yield alone(naive, name, options.landmarks)
        if name in APART:
            yield alone(apart, name, options.landmarks)


def cost(name: str, landmarks: int) -> Iterator[dict[str, Any]]:
    touch_memory(8.0)
    full = alone(search, name, landmarks, None)
    early = until_stop(full, 3) if name == "covtype" else alone(search, name, landmarks, 3)
    fits = [alone(fit, name, landmarks, early["C"]) for _ in range(1 if name == "covtype" else 2)]
    yield from fits
    for row in (early, full):
        yield {
            **row,
            "times_one_fit": [row["seconds"] / each["seconds"] for each in fits],
            "memory_of_one_fit": row["peak_gib"] / min(each["peak_gib"] for each in fits),
        }


def until_stop(full: dict[str, Any], patience: int) -> dict[str, Any]:
    """A whole walk as far as it would have gone with ``patience``, and what it would have chosen."""
    means = full["mean_scores"]
    falls = np.diff(means) < 0
    ends = [i + 1 for i in range(patience - 1, len(falls)) if falls[i - patience + 1 : i + 1].all()]
    values = ends[0] + 1 if ends else len(means)
    saved = sum(full["seconds_by_value"][values:])
    best = int(np.argmax(means[:values]))
    return {
        **full,
        "kind": "early",
        "measured": "from the whole walk",
        "C": full["Cs"][best],
        "values": values,
        "seconds": full["seconds"] - saved,
        "cv_auc": means[best],
        "test_auc": full["test_scores"][best],
        "mean_scores": means[:values],
        "test_scores": full["test_scores"][:values],
        "seconds_by_value": full["seconds_by_value"][:values],
    }


def read(name: str) -> Split:
    split = load_dataset(name.removesuffix("-80k"))
    split = split.head(80_000) if name.endswith("-80k") else split
    # Warm up threads, BLAS and imports outside the clock.
    KernelAUCClassifier(preset="paper", n_landmarks=100).fit(split.X_train[:5000], split.y_train[:5000])
    KernelAUCClassifierCV(paper(1000), Cs=[1.0]).fit(split.X_train[:9000], split.y_train[:9000])
    return split


def fit(name: str, landmarks: int, C: float) -> dict[str, Any]:
    split = read(name)
    model = paper(landmarks, C=C)
    seconds, _ = timed(lambda: model.fit(split.X_train, split.y_train))
    return {
        "data": name,
        "kind": "fit",
        "C": C,
        "seconds": seconds,
        "passes": model.history_[-1]["passes"],
        "test_auc": roc_auc(split.y_test, model.decision_function(split.X_test)),
        "peak_gib": peak_gib(),
    }


def search(name: str, landmarks: int, patience: int | None) -> dict[str, Any]:
    split = read(name)
    model = KernelAUCClassifierCV(paper(landmarks), patience=patience)
    seconds, coefs = timed(lambda: fit_recorded(model, split.X_train, split.y_train))
    peak = peak_gib()
    rows, fitted = model.scaler_.transform(split.X_test).astype(np.float32), model.feature_map_.map
    scores = fitted.linear(rows, fitted.fold(coefs))
    test = [roc_auc(split.y_test, column) for column in scores.T]
    return {
        "data": name,
        "kind": "full" if patience is None else "early",
        "C": model.C_,
        "Cs": [record["C"] for record in model.path_],
        "values": len(model.path_),
        "seconds": seconds,
        "passes": sum(record["passes"] for record in model.path_),
        "converged": all(record["converged"] for record in model.path_),
        "cv_auc": model.best_score_,
        "test_auc": roc_auc(split.y_test, model.decision_function(split.X_test)),
        "best_test_auc": max(test),
        "peak_gib": peak,
        "mean_scores": [record["auc"] for record in model.path_],
        "test_scores": test,
        "seconds_by_value": [record["seconds"] for record in model.path_],
    }


def naive(name: str, landmarks: int) -> dict[str, Any]:
    split = read(name)
    X, y = StandardScaler().fit_transform(split.X_train), split.y_train
    made = NystroemFeatures(landmarks, random_state=0).fit(X)
    given = {"landmarks": made.landmarks_, "gamma": made.gamma_, "standardize": False}
    unit = y.sum() * (1 - y).sum() / len(y)
    grid = 2.0 ** np.arange(-15, 11)[: NAIVE[name].stop] * unit
    machine = KernelAUCClassifier(preset="paper", **given)
    together, model = timed(lambda: KernelAUCClassifierCV(machine, Cs=grid, patience=None).fit(X, y))
    Cs, walked = grid[NAIVE[name]], model.scores_[:, 0, NAIVE[name]]
    scores, seconds = np.zeros_like(walked), []
    for number, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
        for i, C in enumerate(Cs):
            taken, one = timed(
                lambda: KernelAUCClassifier(C, preset="paper", **given).fit(X[train], y[train])
            )
            scores[number, i] = roc_auc(y[test], one.decision_function(X[test]))
            seconds.append(taken)
    return {
        "data": name,
        "kind": "naive",
        "values": len(Cs),
        "Cs": Cs.tolist(),
        "fits": len(seconds),
        "seconds": sum(seconds),
        "seconds_of_79": 79 * float(np.mean(seconds)),
        "seconds_together": together,
        "largest_difference": float(np.abs(scores - walked).max()),
        "difference_of_means": float(np.abs((scores - walked).mean(axis=0)).max()),
        "differences": np.abs(scores - walked).max(axis=0).tolist(),
    }


def apart(name: str, landmarks: int) -> dict[str, Any]:
    split = read(name)
    out: dict[str, Any] = {"data": name, "kind": "apart"}
    for kind in ("kmeans", "class-kmeans"):
        found = {}
        for map_per_fold in (False, True):
            machine = paper(landmarks, landmarks=kind)
            model = KernelAUCClassifierCV(machine, map_per_fold=map_per_fold)
            seconds, _ = timed(lambda: model.fit(split.X_train, split.y_train))
            found[map_per_fold] = (model, seconds)
        shared, own = found[False][0], found[True][0]
        difference = shared.scores_mean_[0] - own.scores_mean_[0]
        out |= {
            f"{kind} C shared": shared.C_,
            f"{kind} C apart": own.C_,
            f"{kind} best shared": shared.best_score_,
            f"{kind} best apart": own.best_score_,
            f"{kind} difference at C shared": float(difference[shared.Cs_ == shared.C_][0]),
            f"{kind} seconds": [found[False][1], found[True][1]],
            f"{kind} test": [
                roc_auc(split.y_test, model.decision_function(split.X_test)) for model in (shared, own)
            ],
        }
    return out
