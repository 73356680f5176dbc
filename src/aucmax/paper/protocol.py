"""The paper's experiments as cells: one method on one data set with one seed.

A cell tunes the method by 3-fold cross-validation over the paper's grid, fits it once more with the
chosen hyper-parameters and times that fit, then computes the AUC on the test rows. The ``note`` of a
row is how its cell departs from the paper's protocol; ``DEPARTURES`` are those of all cells.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from aucmax.estimators.rank_svm import KernelRankSVM
from aucmax.metrics import roc_auc_interval
from aucmax.paper import published
from aucmax.paper.data import Dataset, Split, load_dataset
from aucmax.paper.grid_searches import sample_rows, search_each, search_exact, search_path
from aucmax.paper.methods import METHODS, Grid
from aucmax.paper.published import LANDMARKS
from aucmax.paper.store import KEY, Row, protocol_of
from aucmax.runtime.machine import Company, machine, peak_gib, versions
from aucmax.runtime.output_files import replacing

#: How every run departs from the paper's protocol.
DEPARTURES = (
    "The path of C (NBAUC, RFAUC, Linear RankSVM, both RBF-RankSVMs) ends when the AUC has been below "
    "its best for three values in a row, and the search of gamma of both RBF-RankSVMs when it has been "
    "so for two. Values on a path are solved to 1e-3 of the minimum.",
    "Folds are drawn at random, and share standardisation and landmarks, which use no labels.",
    "RBF-RankSVM is tuned on at most 4,000 rows: all rows would take days. Its subsample is tuned on "
    "the rows that it learns from.",
    "C is converted from the paper's unit, and lambda to C, with the counts of all training rows. In a "
    "fold, which has two thirds of them, both are 1.5 times the paper's: C, because pairs are fewer by "
    "4/9 and rows by 2/3, and NSAUC's lambda, because it is 1/(C n).",
    "Figure 1 uses the hyper-parameters of Table 4, and is one run that is tested at each epoch count. "
    "NSVMSGD2 is the last iterate of NSAUC's run: with the same lambda, rows and pairs. NSVMSGD2 tuned "
    "by itself is shown as well.",
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
    tune_rows: int | None = None  #: for methods tuned on features computed once; None is all
    kernel_tune_rows: int = 4_000  #: for the exact kernel machine
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
        values = (*astuple(self), settings.landmarks, settings.quick, protocol_of(self.method))
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


def _at_edge(method: str, chosen: Mapping[str, Any], grid: Grid) -> list[str]:
    """Return a note for each hyper-parameter that is at an end of its grid."""
    notes = []
    for name, values in grid.items():
        short = name.split("__")[-1]
        if len(values) > 1 and chosen[short] in (min(values), max(values)):
            end = "lowest" if chosen[short] == min(values) else "highest"
            notes.append(f"{method}: {short} is the {end} of its grid")
    return notes


Fitted = tuple[Any, Any, Row, list[str]]  # the model, its test rows, fields of the row, and notes


def _run_whole(cell: Cell, split: Split, settings: Settings, chosen: dict[str, Any] | None) -> Fitted:
    """Run a method that is one estimator, tuned along a path of C: the batch machines, and NSAUC."""
    model: Any = METHODS[cell.method].make(cell.seed, settings.landmarks)
    exact, notes, searching = isinstance(model, KernelRankSVM), [], 0.0
    grid = METHODS[cell.method].grid(split.y_train)
    search = partial(search_path, METHODS[cell.method], split, grid, cell.seed, settings.landmarks)
    if exact:
        split = _for_exact(split, model, cell.seed)
        n_rows, most = len(split.y_train), settings.kernel_tune_rows
        if model.subsample < 1.0 and not settings.quick:
            most = n_rows
        model.set_params(standardize=False, subsample=1.0)
        search = partial(search_exact, split, grid, most, cell.seed)
        if n_rows > most:
            notes.append(f"{cell.method}: C and gamma chosen on {most:,} rows")
    if chosen is None:
        searching, chosen = _timed(search)
        notes += _at_edge(cell.method, chosen, grid)
    model.set_params(**chosen)
    company = Company()
    fitting, _ = _timed(lambda: model.fit(split.X_train, split.y_train))
    others = company.share()
    learning = fitting if exact else min(float(model.history_[-1]["seconds"]), fitting)
    if not np.all(getattr(model, "converged_", True)):
        notes.append(f"{cell.method}: ended at the limit of its iterations, short of its tolerance")
    result = {"params": chosen, "search_seconds": searching, "company": others}
    seconds = {"embedding_seconds": fitting - learning, "learning_seconds": learning}
    return model, split.X_test, result | seconds, notes


def _for_exact(split: Split, model: KernelRankSVM, seed: int) -> Split:
    """Return the rows that an exact kernel machine learns from and is tested on, standardised."""
    scaler = StandardScaler().fit(split.X_train)
    X, y, X_test = scaler.transform(split.X_train), split.y_train, scaler.transform(split.X_test)
    if model.subsample < 1.0:
        X, _, y, _ = train_test_split(X, y, train_size=model.subsample, stratify=y, random_state=seed)
    return replace(split, X_train=X, y_train=y, X_test=X_test)


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
        grid = METHODS["NSAUC"].grid(split.y_train)
        search = partial(search_path, METHODS["NSAUC"], split, grid, cell.seed, settings.landmarks)
    else:
        few = sample_rows(n_rows, settings.tune_rows, cell.seed)
        grid = method.grid(split.y_train)
        search = partial(search_each, learner, grid, features[few], split.y_train[few])
        if settings.tune_rows is not None and n_rows > settings.tune_rows:
            notes = [f"{cell.method}: tuned on {settings.tune_rows:,} rows"]
    if chosen is None:
        searching, chosen = _timed(search)
        notes += _at_edge(cell.method, chosen, grid)
    X_test, watched = embed.transform(split.X_test), {}
    if cell.curve:
        learner.set_params(epochs=max(settings.epochs))
        watched = {"X_val": X_test, "y_val": split.y_test}
    company = Company()
    learner.set_params(**chosen).fit(features, split.y_train, **watched)
    result = {"params": chosen, "search_seconds": searching, "embedding_seconds": embedding}
    result |= {"company": company.share(), "learning_seconds": learner.history_[-1]["learning"]}
    if cell.curve:
        names = {"epochs": "epoch", "auc": "auc", "seconds": "learning", "last_auc": "last_auc"}
        history = [learner.history_[epoch - 1] for epoch in settings.epochs]
        result["curve_points"] = [{k: record[v] for k, v in names.items()} for record in history]
    return learner, X_test, result, notes
