"""The paper's experiments as cells: one method on one data set with one seed.

A cell tunes the method by 3-fold cross-validation over the paper's grid, fits it once more with the
chosen hyper-parameters and times that fit, then computes the AUC on the test rows. The ``note`` of a
row is how its cell departs from the paper's protocol; ``DEPARTURES`` are those of all cells.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from aucmax.estimators.rank_svm import KernelRankSVM
from aucmax.metrics import roc_auc, roc_auc_interval
from aucmax.paper import published
from aucmax.paper.data import Dataset, Split, load_dataset
from aucmax.paper.methods import METHODS, Grid
from aucmax.paper.published import LANDMARKS
from aucmax.paper.store import KEY, Row
from aucmax.runtime.machine import machine, peak_gib, versions
from aucmax.runtime.output_files import replacing
from aucmax.runtime.threads import one_blas_thread

#: How every run departs from the paper's protocol.
DEPARTURES = (
    "The path of C (NBAUC, RFAUC, Linear RankSVM, both RBF-RankSVMs) ends when the AUC has fallen for "
    "three values in a row.",
    "The folds of a search share standardisation and landmarks, which use no labels.",
    "RBF-RankSVM is tuned on a few thousand rows, each a landmark: all rows would take days.",
    "NOAM, NSOLAM and NSVMSGD2 are tuned on a sample of the rows of large data sets.",
    "Figure 1 uses the hyper-parameters of Table 4, and is one run that is tested at each epoch count.",
    *(f"{name}: {method.left_open}" for name, method in METHODS.items()),
)

#: The most training rows of Tables 2 and 3.
CAP = 80_000

#: The methods of each experiment.
METHODS_OF = {name: scope.methods for name, scope in published.SCOPES.items() if name != "data"}

#: The experiments that each table and the figure need.
EXPERIMENTS = {
    "table1": ("data",), "table2": ("batch",), "table3": ("batch",), "table4": ("stochastic",),
    "figure1": ("epochs",), "all": tuple(published.SCOPES),
}  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """Sizes of a run; the defaults are the paper's, where it gives them."""

    landmarks: int = LANDMARKS
    cap: int = CAP
    all_rows: int | None = None  #: the most training rows where the paper uses all
    test_rows: int | None = None
    tune_rows: int = 20_000  #: for methods tuned on features computed once
    kernel_tune_rows: int = 2_500  #: for the exact kernel machine
    epochs: tuple[int, ...] = published.EPOCHS
    quick: bool = False


QUICK = Settings(100, 2_000, 4_000, 10_000, 1_000, 400, published.EPOCHS[:7], True)


@dataclass(frozen=True)
class Cell:
    """One result to compute.

    ``rows`` is "cap" or "all". ``curve`` asks for the AUC by epochs. ``substitute`` means that other
    files replace the paper's, which are missing. A cell without a method is the shape of a data set.
    """

    data: str
    method: str
    seed: int
    rows: str = "all"
    curve: bool = False
    substitute: bool = False

    def identity(self, settings: Settings) -> Row:
        """Return the fields that identify the cell's row."""
        values = (*astuple(self), settings.landmarks, settings.quick)
        return dict(zip(KEY, values, strict=True))

    def key(self, settings: Settings) -> tuple[Any, ...]:
        return tuple(self.identity(settings).values())

    @property
    def title(self) -> str:
        by_epochs = " by epochs" if self.curve else ""
        return f"{self.method or 'shape'} on {self.data}{by_epochs}, seed {self.seed}"


def paper_rows(data: str) -> int:
    """Return the number of training rows in the paper, or 0 for a data set that it does not have."""
    return int(published.TABLE1.get(data, {}).get("n_train") or 0)


def tabulated(row: Row) -> list[Row]:
    """Return a copy of the row for each experiment that it belongs to."""
    if not row["method"]:
        return [row | {"experiment": "data"}]
    if row["curve"]:
        return [row | {"experiment": "epochs", "curve": row.get("curve_points", [])}]
    data, all_rows = row["data"], row["rows_asked"] == "all"
    experiments = []
    if not (all_rows and paper_rows(data) > CAP):
        experiments.append("batch")
    if all_rows and data not in published.SMALL_DATASETS:
        experiments.append("stochastic")
    shown = [experiment for experiment in experiments if row["method"] in METHODS_OF[experiment]]
    return [row | {"experiment": experiment, "curve": []} for experiment in shown]


def run_cell(
    cell: Cell,
    dataset: Dataset,
    settings: Settings,
    data_dir: str | None = None,
    known: dict[str, Any] | None = None,
    samples: Path | None = None,
) -> Row:
    """Compute the row of a cell.

    ``known`` are hyper-parameters that an earlier cell chose. ``samples`` is a folder where cells of a
    quick run share their small samples: reading the large files again would take most of the time.
    """
    split = _read(cell, dataset, settings, data_dir, samples)
    if bool(split.substitute) != cell.substitute:
        raise ValueError(f"the files of {cell.data} have changed since the run began: start it again")
    row: Row = cell.identity(settings) | {"status": "done", "reason": "", "note": split.substitute}
    if not cell.method:
        y = np.concatenate([split.y_train, split.y_test])
        return row | {
            "n_train": len(split.y_train),
            "n_test": len(split.y_test),
            "n_features": split.X_train.shape[1],
            "ratio": float((y == 0).sum() / (y == 1).sum()),
        }
    run = _run_on_features if cell.curve or METHODS[cell.method].search is None else _run_whole
    _warm_up(cell.method)
    began = time.perf_counter()
    model, X_test, result, notes = run(cell, split, settings, known)
    interval = roc_auc_interval(split.y_test, model.decision_function(X_test))
    return row | {
        "auc": interval.auc,
        "auc_low": interval.low,
        "auc_high": interval.high,
        **result,
        "n_iter": int(model.n_iter_),
        "note": "; ".join(filter(None, [split.substitute, *notes])),
        "rows": len(split.y_train),
        "test_rows": len(split.y_test),
        "seconds": time.perf_counter() - began,
        "peak_gib": peak_gib(),
        "versions": versions(),
        "machine": machine(),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%S"),
    }


def _read(
    cell: Cell, dataset: Dataset, settings: Settings, data_dir: str | None, samples: Path | None
) -> Split:
    """Read the training and test rows of a cell; a cell without a method gets all rows."""
    path = samples / f"{cell.data}-{cell.seed}-{cell.rows}.npz" if samples and settings.quick else None
    if path is not None and cell.method and path.exists():
        with np.load(path) as file:
            parts = {name: file[name] for name in file.files}
        return Split(**{name: part if part.ndim else part.item() for name, part in parts.items()})
    split = load_dataset(dataset, seed=cell.seed, data_dir=data_dir)
    if not cell.method:
        return split
    most = settings.cap if cell.rows == "cap" else settings.all_rows
    if most is not None:
        split = split.head(most, seed=cell.seed)
    if settings.test_rows is not None and len(split.y_test) > settings.test_rows:
        keep = np.random.default_rng(cell.seed).permutation(len(split.y_test))[: settings.test_rows]
        split = replace(split, X_test=split.X_test[keep], y_test=split.y_test[keep])
    if path is not None:
        with replacing(path) as out:
            np.savez(out, **vars(split))
    return split


def _warm_up(method: str) -> None:
    """Load compiled loops and start threads before anything is timed."""
    X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)  # the dtype of the data sets
    METHODS[method].make(0, 5).fit(X, np.arange(40) % 2)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def _sample(n_rows: int, most: int, seed: int) -> np.ndarray | slice:
    if n_rows <= most:
        return slice(None)
    return np.sort(np.random.default_rng(seed).permutation(n_rows)[:most])


Fitted = tuple[Any, Any, Row, list[str]]  # the model, its test rows, fields of the row, and notes


def _run_whole(cell: Cell, split: Split, settings: Settings, chosen: dict[str, Any] | None) -> Fitted:
    """Run a method that is one estimator, tuned along a path of C: the batch machines, and NSAUC."""
    model: Any = METHODS[cell.method].make(cell.seed, settings.landmarks)
    exact = isinstance(model, KernelRankSVM)
    tune_rows, notes = len(split.y_train), []
    if exact:
        scaler = StandardScaler().fit(split.X_train)
        X_train, X_test = (scaler.transform(X) for X in (split.X_train, split.X_test))
        split = replace(split, X_train=X_train, X_test=X_test)
        model.set_params(standardize=False)
        tune_rows = round(model.subsample * tune_rows)
        if tune_rows > settings.kernel_tune_rows:
            tune_rows = settings.kernel_tune_rows
            notes = [f"{cell.method}: C and gamma chosen on {tune_rows:,} rows"]
    searching = 0.0
    if chosen is None:
        searching, chosen = _timed(lambda: _search_path(cell, split, settings, tune_rows, exact))
    model.set_params(**chosen)
    fitting, _ = _timed(lambda: model.fit(split.X_train, split.y_train))
    learning = fitting if exact else min(float(model.history_[-1]["seconds"]), fitting)
    if not np.all(getattr(model, "converged_", True)):
        notes.append(f"{cell.method}: ended at the limit of its iterations, short of its tolerance")
    seconds = {"embedding_seconds": fitting - learning, "learning_seconds": learning}
    return model, split.X_test, {"params": chosen, "search_seconds": searching, **seconds}, notes


def _search_path(
    cell: Cell, split: Split, settings: Settings, rows: int, exact: bool = False
) -> dict[str, float]:
    """Return the best of a method's grid on a sample of the rows; ``exact`` makes each a landmark."""
    method = METHODS[cell.method]
    grid = method.grid(split.y_train)
    search: Any = method.make_search(grid, cell.seed, settings.landmarks)
    few = _sample(len(split.y_train), rows, cell.seed)
    X, y = split.X_train[few], split.y_train[few]
    if exact:
        search.set_params(estimator__landmarks=np.unique(X, axis=0))
    search.fit(X, y)
    return {name: float(getattr(search, f"{name}_")) for name in grid}


def _run_on_features(
    cell: Cell, split: Split, settings: Settings, chosen: dict[str, Any] | None
) -> Fitted:
    """Run a method that learns row by row on features computed once.

    A curve is one fit of the most epochs, which computes the AUC of the test rows after each.
    """
    # KernelAUCClassifier, which is NSAUC elsewhere, has no such AUCs. Its learner averages NSVMSGD2.
    averaged = cell.method == "NSAUC"
    method = METHODS["NSVMSGD2" if averaged else cell.method]
    pipeline: Any = method.make(cell.seed, settings.landmarks)
    embed, learner = pipeline[:-1], pipeline[-1]
    embedding, features = _timed(lambda: embed.fit_transform(split.X_train))
    searching, notes, n_rows = 0.0, [], len(features)
    if averaged:
        learner.set_params(average=True)
        search = partial(_search_path, cell, split, settings, n_rows)
    else:
        few = _sample(n_rows, settings.tune_rows, cell.seed)
        grid = method.grid(split.y_train)
        search = partial(_search_each, learner, grid, features[few], split.y_train[few])
        if n_rows > settings.tune_rows:
            notes = [f"{cell.method}: tuned on {settings.tune_rows:,} rows"]
    if chosen is None:
        searching, chosen = _timed(search)
    X_test, watched = embed.transform(split.X_test), {}
    if cell.curve:
        learner.set_params(epochs=max(settings.epochs))
        watched = {"X_val": X_test, "y_val": split.y_test}
    learner.set_params(**chosen).fit(features, split.y_train, **watched)
    result = {"params": chosen, "search_seconds": searching, "embedding_seconds": embedding}
    result["learning_seconds"] = float(learner.history_[-1]["learning"])
    if cell.curve:
        names = {"epochs": "epoch", "auc": "auc", "seconds": "learning"}
        history = [learner.history_[epoch - 1] for epoch in settings.epochs]
        result["curve_points"] = [{k: record[v] for k, v in names.items()} for record in history]
    return learner, X_test, result, notes


def _search_each(learner: Any, grid: Grid, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Fit each setting of the grid on 3 folds, and return the best."""

    def score(params: dict[str, float], train: np.ndarray, test: np.ndarray) -> float:
        try:
            with one_blas_thread():
                model = clone(learner).set_params(**params).fit(X[train], y[train])
                return float(roc_auc(y[test], model.decision_function(X[test])))
        except (ValueError, FloatingPointError):
            return -np.inf  # its steps overflow

    candidates = list(ParameterGrid({name.split("__")[-1]: values for name, values in grid.items()}))
    folds = list(StratifiedKFold(3).split(X, y))
    work = [delayed(score)(params, *fold) for params in candidates for fold in folds]
    with one_blas_thread():
        scores = Parallel(n_jobs=-1, prefer="threads")(work)
    best = int(np.reshape(scores, (len(candidates), len(folds))).mean(axis=1).argmax())
    return dict(candidates[best])
