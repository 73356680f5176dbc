"""Searches of the paper's grids by 3-fold cross-validation.

Folds are drawn at random: the rows of some files are in the order of a time series, and folds of
consecutive rows would test on another stretch of it than the one learnt from.

Which of these tunes a method depends on what its settings can share: a path of C on kernel features, a
path of C for the exact kernel machine, a block of rows for all settings of SOLAM, or nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, StratifiedKFold

from aucmax.estimators.online import SOLAMClassifier
from aucmax.features.kernels import KernelSpec
from aucmax.fitting.rank_svm_path import held_out_aucs
from aucmax.metrics import roc_auc
from aucmax.paper.data import Split
from aucmax.runtime.memory import Budget
from aucmax.runtime.threads import one_blas_thread, thread_count
from aucmax.solvers.solam_grid import SOLAMGrid

if TYPE_CHECKING:
    from aucmax.paper.methods import Grid, Method

#: A path of C, and a search of gamma, ends after this many values in a row whose AUC is below the best.
#: The kernel machine's slowest solves are those at a gamma far too large.
_C_PATIENCE, _GAMMA_PATIENCE = 3, 2

Params = dict[str, float]
Labelled = tuple[np.ndarray, np.ndarray]  # rows and their labels


def _folds(seed: int) -> StratifiedKFold:
    return StratifiedKFold(3, shuffle=True, random_state=seed)


def _stagnates(values: list[float], patience: int) -> bool:
    """Whether at least ``patience`` values have come after the best one."""
    return len(values) - 1 - int(np.argmax(values)) >= patience


def sample_rows(n_rows: int, most: int | None, seed: int) -> np.ndarray | slice:
    """Return the numbers of at most ``most`` rows, drawn at random."""
    if most is None or n_rows <= most:
        return slice(None)
    return np.sort(np.random.default_rng(seed).permutation(n_rows)[:most])


def search_path(method: Method, split: Split, grid: Grid, seed: int, landmarks: int) -> Params:
    """Return the best of a method's grid, along a path of C on all training rows."""
    search: Any = method.make_search(grid, seed, landmarks).set_params(cv=_folds(seed))
    search.fit(split.X_train, split.y_train)
    return {name: float(getattr(search, f"{name}_")) for name in grid}


def search_exact(split: Split, grid: Grid, most: int, seed: int) -> Params:
    """Return the best gamma and C of the exact kernel machine on at most ``most`` rows.

    For each gamma, in rising order, the paths of C of the three folds go on together until the mean AUC
    has been below its best for three values; gamma rises until its best AUC has been so for two.
    """
    few, room = sample_rows(len(split.y_train), most, seed), Budget.of(None).total / 3
    X, y = np.ascontiguousarray(split.X_train[few], dtype=np.float32), split.y_train[few]
    folds, up, Cs = list(_folds(seed).split(X, y)), y == 1, np.sort(grid["C"])
    best: list[float] = []
    found: list[Params] = []
    for gamma in sorted(grid["gamma"]):
        spec = KernelSpec("rbf", gamma)
        paths = [
            held_out_aucs((X[i], up[i]), (X[j], up[j]), spec, Cs, room=room, seed=seed)
            for i, j in folds
        ]
        means: list[float] = []
        for aucs in zip(*paths, strict=True):
            means.append(float(np.mean(aucs)))
            if _stagnates(means, _C_PATIENCE):
                break
        best.append(max(means))
        found.append({"gamma": float(gamma), "C": float(Cs[int(np.argmax(means))])})
        if _stagnates(best, _GAMMA_PATIENCE):
            break
    return found[int(np.argmax(best))]


def search_each(learner: Any, grid: Grid, X: np.ndarray, y: np.ndarray) -> Params:
    """Return the best setting of the grid for a learner on features; each is fitted on 3 folds."""
    candidates = list(ParameterGrid({name.split("__")[-1]: values for name, values in grid.items()}))
    folds = list(_folds(learner.random_state).split(X, y))
    aucs = _solam_aucs if isinstance(learner, SOLAMClassifier) else _separate_aucs
    with one_blas_thread():
        mean = np.mean(aucs(learner, candidates, folds, X, y), axis=0)
    return dict(candidates[int(mean.argmax())])


def _separate_aucs(
    learner: Any, candidates: list[Params], folds: list[Any], X: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """Return the held-out AUCs (folds, candidates), each from a fit of its own."""

    def score(params: Params, train: np.ndarray, test: np.ndarray) -> float:
        try:
            with one_blas_thread():
                model = clone(learner).set_params(**params).fit(X[train], y[train])
                return float(roc_auc(y[test], model.decision_function(X[test])))
        except (ValueError, FloatingPointError):
            return -np.inf  # its steps overflow

    work = [delayed(score)(params, *fold) for fold in folds for params in candidates]
    scores = Parallel(n_jobs=-1, prefer="threads")(work)
    return np.reshape(scores, (len(folds), len(candidates)))


def _solam_aucs(
    learner: SOLAMClassifier, candidates: list[Params], folds: list[Any], X: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """Return the held-out AUCs (folds, candidates); all settings of a fold share its blocks of rows."""
    sizes = np.array([(params["zeta"], params["radius"]) for params in candidates])

    def score(some: np.ndarray, train: Labelled, test: Labelled) -> Any:
        zeta, radius = some.T
        grid = SOLAMGrid(X.shape[1], X.dtype, zeta=zeta, radius=radius)
        rng = np.random.default_rng(learner.random_state)
        with one_blas_thread(), np.errstate(all="ignore"):
            for _ in range(learner.epochs):
                grid.epoch(train[0], train[1], rng)
            scores = test[0] @ grid.coef.astype(X.dtype)
        finite = np.isfinite(scores).all(axis=0)  # steps of the others overflow
        return [
            roc_auc(test[1], own) if good else -np.inf
            for own, good in zip(scores.T, finite, strict=True)
        ]

    found = []
    for i, j in folds:
        train, test = (X[i], y[i] == 1), (X[j], y[j])
        shares = np.array_split(sizes, thread_count())
        work = [delayed(score)(some, train, test) for some in shares if len(some)]
        found.append(np.concatenate(Parallel(n_jobs=-1, prefer="threads")(work)))
    return np.array(found)
