"""The paper's experiments, cut into cells: one method on one data set with one seed.

A cell chooses the hyper-parameters by 3-fold cross-validation over the paper's grids, then fits once
more at the chosen ones, with the clock running, and scores the test rows. Two experiments may share
a cell. What departs from the paper's protocol in one cell is said in the ``note`` of its row, what
does so in all of them in ``DEPARTURES``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from aucmax.estimators.search import KernelAUCClassifierCV, LinearAUCClassifierCV
from aucmax.metrics import roc_auc, roc_auc_interval
from aucmax.paper.data import Dataset, Split, load_dataset
from aucmax.paper.methods import LANDMARKS, METHODS
from aucmax.paper.published import (
    BATCH_METHODS,
    EPOCH_METHODS,
    EPOCHS,
    LARGE_DATASETS,
    STOCHASTIC_METHODS,
    TABLE1,
)
from aucmax.paper.store import Row, key_of
from aucmax.runtime.machine import machine, peak_gib, versions
from aucmax.runtime.output_files import replacing
from aucmax.runtime.threads import one_blas_thread

#: How every run differs from the paper's.
DEPARTURES = (
    "The walk along C (NBAUC, RFAUC, Linear RankSVM, both RBF-RankSVMs) ends when the AUC has fallen "
    "three values in a row.",
    "The folds of a search share standardisation and landmarks, which see no labels.",
    "RBF-RankSVM is tuned on a few thousand rows, each of them a landmark: its 66 settings by 3 folds "
    "would take days on all rows.",
    "NOAM, NSOLAM and NSVMSGD2 are tuned on some of the rows where there are many.",
    "Figure 1 takes the hyper-parameters of Table 4, and is one run looked at on the way.",
    *(f"{name}: {method.left_open}" for name, method in METHODS.items()),
)

#: Training rows of Tables 2 and 3.
CAP = 80_000

METHODS_OF = {"batch": BATCH_METHODS, "stochastic": STOCHASTIC_METHODS, "epochs": EPOCH_METHODS}

#: What each table and the figure are made from.
EXPERIMENTS = {
    "table1": ("data",),
    "table2": ("batch",),
    "table3": ("batch",),
    "table4": ("stochastic",),
    "figure1": ("epochs",),
    "all": ("data", "batch", "stochastic", "epochs"),
}

#: Seeds for data sets that take seconds, and for the large ones.
SMALL = ("spambase", "usps", "magic04", "protein")
SEEDS_SMALL, SEEDS_LARGE = 5, 3


@dataclass(frozen=True)
class Settings:
    """Sizes of a reproduction; the defaults are the paper's, where it gives them."""

    landmarks: int = LANDMARKS
    cap: int = CAP
    all_rows: int | None = None  #: bound of what the paper trains on all rows
    test_rows: int | None = None
    tune_rows: int = 20_000  #: for the methods that learn row by row
    kernel_tune_rows: int = 2_500  #: for the exact kernel machine
    epochs: tuple[int, ...] = EPOCHS
    quick: bool = False


QUICK = Settings(100, 2_000, 4_000, 10_000, 1_000, 400, (1, 2, 3, 4, 5, 10, 20), True)


@dataclass(frozen=True)
class Cell:
    """One result to obtain.

    ``rows`` is "cap" or "all"; ``curve`` asks for AUC by epochs; ``substitute`` says that the paper's
    files are not at hand and others stand in.
    """

    data: str
    method: str
    seed: int
    rows: str = "all"
    curve: bool = False
    substitute: bool = False

    def identity(self, settings: Settings) -> Row:
        """What tells its row from others."""
        return {
            "data": self.data,
            "method": self.method,
            "seed": self.seed,
            "rows_asked": self.rows,
            "curve": self.curve,
            "substitute": self.substitute,
            "landmarks": settings.landmarks,
            "quick": settings.quick,
        }

    def key(self, settings: Settings) -> tuple[Any, ...]:
        return key_of(self.identity(settings))

    @property
    def title(self) -> str:
        what = f"{self.method or 'shape'} on {self.data}"
        return f"{what}{' by epochs' if self.curve else ''}, seed {self.seed}"


def cells_of(
    experiment: str,
    data: Sequence[str],
    seeds: int | None = None,
    substitutes: Collection[str] = (),
) -> Iterator[Cell]:
    """The cells of one experiment, first seeds first, so that every table fills evenly."""
    if experiment == "data":
        yield from (Cell(name, "", 0, substitute=name in substitutes) for name in data)
        return
    names = data if experiment == "batch" else [name for name in data if _is_large(name)]
    for seed in range(seeds or max(SEEDS_SMALL, SEEDS_LARGE)):
        for name in names:
            few = SEEDS_SMALL if name in SMALL else SEEDS_LARGE
            if experiment == "epochs":
                few = 1
            for method in METHODS_OF[experiment]:
                # The exact machine takes long on many rows: once.
                wanted = 1 if method == "RBF-RankSVM" and name not in SMALL else few
                if seed < (seeds or wanted):
                    capped = experiment == "batch" and paper_rows(name) > CAP
                    rows, curve = "cap" if capped else "all", experiment == "epochs"
                    yield Cell(name, method, seed, rows, curve, name in substitutes)


def _is_large(name: str) -> bool:
    return name in LARGE_DATASETS or name not in TABLE1


def paper_rows(name: str) -> int:
    return int(TABLE1[name]["n_train"]) if name in TABLE1 else 0


def run_cell(
    cell: Cell,
    dataset: Dataset,
    settings: Settings,
    data_dir: str | None = None,
    known: dict[str, Any] | None = None,
    samples: Path | None = None,
) -> Row:
    """Obtain the row of a cell.

    ``known`` are hyper-parameters that an earlier cell has chosen, ``samples`` a folder where cells of
    a quick run leave their small samples to the next: reading large files again would take most of it.
    """
    split = _read(cell, dataset, settings, data_dir, samples)
    if bool(split.substitute) != cell.substitute:
        raise ValueError(f"the files of {cell.data} have changed since the run began: start it again")
    row: Row = {
        **cell.identity(settings),
        "status": "done",
        "reason": "",
        "note": split.substitute,
    }
    if not cell.method:
        y = np.concatenate([split.y_train, split.y_test])
        return row | {
            "n_train": len(split.y_train),
            "n_test": len(split.y_test),
            "n_features": split.X_train.shape[1],
            "ratio": float((y == 0).sum() / (y == 1).sum()),
        }
    run = _curve if cell.curve else _RUNS[cell.method]
    _warm_up(cell.method)
    began = time.perf_counter()
    result, notes = run(cell, split, settings, known)
    seconds = time.perf_counter() - began
    return {
        **row,
        **result,
        "note": "; ".join([*filter(None, (split.substitute,)), *notes]),
        "rows": len(split.y_train),
        "test_rows": len(split.y_test),
        "seconds": seconds,
        "peak_gib": peak_gib(),
        "versions": versions(),
        "machine": machine(),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%S"),
    }


def _read(
    cell: Cell, dataset: Dataset, settings: Settings, data_dir: str | None, samples: Path | None
) -> Split:
    """The rows that a cell learns from and is tested on; all where only their shape is asked."""
    if not cell.method:
        return load_dataset(dataset, seed=cell.seed, data_dir=data_dir)
    if samples is None or not settings.quick:
        return _cut(load_dataset(dataset, seed=cell.seed, data_dir=data_dir), cell, settings)
    path = samples / f"{cell.data}-{cell.seed}-{cell.rows}.npz"
    if path.exists():
        with np.load(path) as file:
            parts = {name: file[name] for name in file.files}
        return Split(**{name: part if part.ndim else part.item() for name, part in parts.items()})
    split = _cut(load_dataset(dataset, seed=cell.seed, data_dir=data_dir), cell, settings)
    with replacing(path) as out:
        np.savez(out, **vars(split))
    return split


def _cut(split: Split, cell: Cell, settings: Settings) -> Split:
    bound = settings.cap if cell.rows == "cap" else settings.all_rows
    if bound is not None:
        split = split.head(bound, seed=cell.seed)
    if settings.test_rows is not None and len(split.y_test) > settings.test_rows:
        keep = np.random.default_rng(cell.seed).permutation(len(split.y_test))[: settings.test_rows]
        split = replace(split, X_test=split.X_test[keep], y_test=split.y_test[keep])
    return split


def _warm_up(method: str) -> None:
    """Load compiled loops and start threads outside the clock."""
    X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)  # as data sets are read
    METHODS[method].make(0, 5).fit(X, np.arange(40) % 2)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def _scored(split: Split, scores: np.ndarray) -> Row:
    interval = roc_auc_interval(split.y_test, scores)
    return {"auc": interval.auc, "auc_low": interval.low, "auc_high": interval.high}


Result = tuple[Row, list[str]]


def _by_path(cell: Cell, split: Split, settings: Settings, known: dict[str, Any] | None) -> Result:
    """Methods whose grid is walked inside one solve: the batch machines, and NSAUC."""
    model = METHODS[cell.method].make(cell.seed, settings.landmarks)
    chosen, searching = _walked(cell, model, split, known)
    model.set_params(**chosen)
    fitting, _ = _timed(lambda: model.fit(split.X_train, split.y_train))
    learning = min(float(model.history_[-1]["seconds"]), fitting)
    return {
        **_scored(split, model.decision_function(split.X_test)),
        "params": chosen,
        "search_seconds": searching,
        "embedding_seconds": fitting - learning,
        "learning_seconds": learning,
        "n_iter": int(model.n_iter_),
    }, _unconverged(cell, model)


def _unconverged(cell: Cell, model: Any) -> list[str]:
    if np.all(getattr(model, "converged_", True)):
        return []
    return [f"{cell.method}: ended at the limit of its iterations, short of its tolerance"]


def _walked(
    cell: Cell, model: Any, split: Split, known: dict[str, Any] | None
) -> tuple[dict[str, Any], float]:
    """The best of a method's grid, walked inside one solve, and the time that took."""
    if known is not None:
        return known, 0.0
    grid = METHODS[cell.method].grid(split.y_train)
    search = _search_like(model, grid, cell.seed)
    searching, _ = _timed(lambda: search.fit(split.X_train, split.y_train))
    return {name: float(getattr(search, f"{name}_")) for name in grid}, searching


def _search_like(model: Any, grid: dict[str, list[float]], seed: int) -> Any:
    """The search that walks C of such a model over the grid."""
    if not hasattr(model, "feature_map"):
        return LinearAUCClassifierCV(grid["C"])
    # A grid of lambda falls where C rises.
    search = KernelAUCClassifierCV(sorted(grid["C"]), random_state=seed, n_jobs=-1)
    search.set_params(
        **{name: getattr(model, name) for name in ("n_landmarks", "feature_map", "solver")}
    )
    if "gamma" in grid:
        search.set_params(gamma=1.0, gammas=sorted(grid["gamma"]))
    return search


def _by_kernel(cell: Cell, split: Split, settings: Settings, known: dict[str, Any] | None) -> Result:
    """The exact kernel machine, tuned on some of its rows."""
    method = METHODS[cell.method]
    scaler = StandardScaler().fit(split.X_train)
    X = scaler.transform(split.X_train)
    model = method.make(cell.seed)
    learnt = round(model.subsample * len(X))
    chosen, searching, notes = known, 0.0, []
    if chosen is None:
        few = _sample(len(X), min(settings.kernel_tune_rows, learnt), cell.seed)
        grid = method.grid(split.y_train)
        search = KernelAUCClassifierCV(
            grid["C"],
            gamma=1.0,
            gammas=grid["gamma"],
            landmarks=np.unique(X[few], axis=0),
            standardize=False,
            random_state=cell.seed,
        )
        searching, _ = _timed(lambda: search.fit(X[few], split.y_train[few]))
        chosen = {"C": float(search.C_), "gamma": float(search.gamma_)}
    if learnt > settings.kernel_tune_rows:
        notes = [f"{cell.method}: C and gamma chosen on {settings.kernel_tune_rows:,} rows"]
    model.set_params(standardize=False, **chosen)
    fitting, _ = _timed(lambda: model.fit(X, split.y_train))
    notes += _unconverged(cell, model)
    return {
        **_scored(split, model.decision_function(scaler.transform(split.X_test))),
        "params": chosen,
        "search_seconds": searching,
        "embedding_seconds": 0.0,
        "learning_seconds": fitting,
        "n_iter": int(model.n_iter_),
    }, notes


def _by_rows(cell: Cell, split: Split, settings: Settings, known: dict[str, Any] | None) -> Result:
    """Methods that learn row by row on features made once."""
    method = METHODS[cell.method]
    pipeline = method.make(cell.seed, settings.landmarks)
    embedding, features = _timed(lambda: pipeline[:-1].fit_transform(split.X_train))
    chosen, searching, notes = _tuned(cell, pipeline[-1], features, split, settings, known)
    learner = clone(pipeline[-1]).set_params(**chosen)
    learner.fit(features, split.y_train)
    return {
        **_scored(split, learner.decision_function(pipeline[:-1].transform(split.X_test))),
        "params": chosen,
        "search_seconds": searching,
        "embedding_seconds": embedding,
        "learning_seconds": float(learner.history_[-1]["learning"]),
        "n_iter": int(learner.n_iter_),
    }, notes


def _tuned(
    cell: Cell,
    learner: Any,
    features: np.ndarray,
    split: Split,
    settings: Settings,
    known: dict[str, Any] | None,
) -> tuple[dict[str, Any], float, list[str]]:
    """The best of a method's grid on features, by 3 folds of some rows."""
    notes = []
    if len(features) > settings.tune_rows:
        notes = [f"{cell.method}: tuned on {settings.tune_rows:,} rows"]
    if known is not None:
        return known, 0.0, notes
    grid = METHODS[cell.method].grid(split.y_train)
    settings_of = list(ParameterGrid({name.split("__")[-1]: grid[name] for name in grid}))
    few = _sample(len(features), settings.tune_rows, cell.seed)
    X, y = features[few], split.y_train[few]

    def score(params: dict[str, float], train: np.ndarray, test: np.ndarray) -> float:
        try:
            with one_blas_thread():
                model = clone(learner).set_params(**params).fit(X[train], y[train])
                return float(roc_auc(y[test], model.decision_function(X[test])))
        except (ValueError, FloatingPointError):
            return -np.inf  # steps that overflow are no choice

    folds = list(StratifiedKFold(3).split(X, y))
    work = [delayed(score)(params, *fold) for params in settings_of for fold in folds]
    with one_blas_thread():
        searching, scores = _timed(lambda: Parallel(n_jobs=-1, prefer="threads")(work))
    best = int(np.reshape(scores, (len(settings_of), len(folds))).mean(axis=1).argmax())
    return dict(settings_of[best]), searching, notes


def _curve(cell: Cell, split: Split, settings: Settings, known: dict[str, Any] | None) -> Result:
    """AUC on the test rows by the number of epochs: one run, looked at on the way."""
    like = "NSVMSGD2" if cell.method == "NSAUC" else cell.method
    pipeline = METHODS[like].make(cell.seed, settings.landmarks)
    embedding, features = _timed(lambda: pipeline[:-1].fit_transform(split.X_train))
    learner = clone(pipeline[-1])
    if cell.method == "NSAUC":
        # The learner of KernelAUCClassifier(solver="sgd"), which shows no test rows on the way.
        learner.set_params(average=True)
        model = METHODS["NSAUC"].make(cell.seed, settings.landmarks)
        chosen, searching = _walked(cell, model, split, known)
        notes: list[str] = []
    else:
        chosen, searching, notes = _tuned(cell, learner, features, split, settings, known)
    learner.set_params(**chosen, epochs=max(settings.epochs))
    tested = pipeline[:-1].transform(split.X_test)
    learner.fit(features, split.y_train, X_val=tested, y_val=split.y_test)
    history = [learner.history_[epoch - 1] for epoch in settings.epochs]
    curve = [
        {"epochs": record["epoch"], "auc": record["auc"], "seconds": record["learning"]}
        for record in history
    ]
    return {
        **_scored(split, learner.decision_function(tested)),
        "params": chosen,
        "search_seconds": searching,
        "embedding_seconds": embedding,
        "learning_seconds": curve[-1]["seconds"],
        "n_iter": int(learner.n_iter_),
        "curve_points": curve,
    }, notes


def _sample(n_rows: int, wanted: int, seed: int) -> np.ndarray:
    if n_rows <= wanted:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).permutation(n_rows)[:wanted])


_RUNS: dict[str, Callable[..., Result]] = {
    "RBF-RankSVM": _by_kernel,
    "RBF-RankSVM (subsample)": _by_kernel,
    "Linear RankSVM": _by_path,
    "RFAUC": _by_path,
    "NBAUC": _by_path,
    "NSAUC": _by_path,
    "NSVMSGD2": _by_rows,
    "NOAM": _by_rows,
    "NSOLAM": _by_rows,
}


def tabulated(row: Row) -> list[Row]:
    """A row as the experiments see it: once for each that it belongs to."""
    if not row["method"]:
        return [row | {"experiment": "data"}]
    if row["curve"]:
        return [row | {"experiment": "epochs", "curve": row.get("curve_points", [])}]
    everything = row["rows_asked"] == "all"
    out = []
    if row["method"] in BATCH_METHODS and not (everything and paper_rows(row["data"]) > CAP):
        out.append(row | {"experiment": "batch", "curve": []})
    if row["method"] in STOCHASTIC_METHODS and everything and _is_large(row["data"]):
        out.append(row | {"experiment": "stochastic", "curve": []})
    return out
