"""Runs what is missing, one method on one split at a time."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from aucmax.metrics import roc_auc
from aucmax.runtime.machine import Company
from benchmarks.harness import alone, stored_rows, timed
from benchmarks.mixed_tables import methods, sources, summary

COLUMNS = ("data", "seed", "method", "status", "auc", "fit_seconds", "company")
PUBLISHED = Path(__file__).parents[2] / "docs" / "benchmarks"
MANY_ROWS = 5_000  # a table with more rows is split three times instead of five
#: Read by the processes to come. Threads that wait actively for each other, as is the default, slow
#: each other down when anything else runs on the machine.
SETTINGS = {
    "OMP_NUM_THREADS": str(methods.THREADS),
    "OPENBLAS_NUM_THREADS": str(methods.THREADS),
    "MKL_NUM_THREADS": str(methods.THREADS),
    "NUMBA_NUM_THREADS": str(methods.THREADS),
    "OMP_WAIT_POLICY": "PASSIVE",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("mixed_tables").add_argument
    add("--methods", nargs="*", metavar="NAME", help=f"instead of {', '.join(methods.METHODS)}")
    add("--show", action="store_true", help="run nothing; the summary of all rows at hand")
    add("--publish", action="store_true", help="run nothing; write the last rows to docs/benchmarks")


def run(options: Any) -> Iterator[dict[str, Any]]:
    """Fit each method to each split that has no good row yet, one seed after the other."""
    chosen = _known(options.methods, methods.METHODS, "method")
    names = _known(options.data, sources.SOURCES, "table")
    for method in list(chosen):
        if methods.METHODS[method].version() is None:
            print(f"{method} is left out: its package is not installed", file=sys.stderr)
            chosen.remove(method)
    os.environ.update(SETTINGS)
    rows = {name: len(sources.read(name).y) for name in names}
    for seed in range(options.seeds or splits(0)):
        for name in names:
            if seed >= (options.seeds or splits(rows[name])):
                continue
            done = summary.latest(at_hand(options.out))
            for method in chosen:
                row = done.get((name, seed, method))
                if row is None or row["status"] != "ok":
                    yield one(name, seed, method)


def splits(rows: int) -> int:
    """Return the number of splits of a table."""
    return 3 if rows > MANY_ROWS else 5


def one(name: str, seed: int, method: str) -> dict[str, Any]:
    """Return the row of a method on a split, whatever becomes of it."""
    try:
        found = alone(entry, name, seed, method)
    except BrokenProcessPool:
        found = {"status": "failed", "reason": "its process ended, perhaps for want of memory"}
    return {
        "data": name,
        "held_back": name in sources.HELD_BACK,
        "seed": seed,
        "method": method,
        "package": methods.METHODS[method].version(),
        "source": f"{sources.PACKAGE} {version(sources.PACKAGE)}",
        "threads": methods.THREADS,
        **found,
        "finished": time.strftime("%Y-%m-%dT%H:%M:%S"),
    }


def entry(name: str, seed: int, method: str) -> dict[str, Any]:
    """Fit and score in this process."""
    table = sources.read(name)
    X_train, X_test, y_train, y_test = split(table, seed)
    make = methods.METHODS[method].make
    row = {
        "rows": len(table.y),
        "positives": int(table.y.sum()),
        "columns": table.X.shape[1],
        "categories": len(table.categories),
        "columns_with_missing": table.columns_with_missing,
        "train_rows": len(y_train),
        "test_rows": len(y_test),
    }
    try:
        warm_up(make)
        model = make(seed, table.categories)
        company = Company()
        fit_seconds, _ = timed(lambda: model.fit(X_train, y_train))
        others = company.share()
        predict_seconds, scores = timed(lambda: model.scores(X_test))
        auc = roc_auc(y_test, np.asarray(scores, dtype=np.float64))
    except Exception as error:
        return {"status": "failed", **row, "reason": f"{type(error).__name__}: {error}"[:500]}
    return {
        "status": "ok",
        **row,
        "auc": auc,
        "fit_seconds": fit_seconds,
        "predict_seconds": predict_seconds,
        "company": others,
    }


def split(table: sources.Table, seed: int) -> list[Any]:
    """Return X and y of a stratified split: 70 % to fit to, 30 % held out."""
    X_train, X_test, y_train, y_test = train_test_split(
        table.X, table.y, test_size=0.3, random_state=seed, stratify=table.y
    )
    return [X_train.reset_index(drop=True), X_test.reset_index(drop=True), y_train, y_test]


def warm_up(make: Any) -> None:
    """Load, compile and start threads outside the clock."""
    rng = np.random.default_rng(0)
    number = rng.normal(size=400)
    y = (number + rng.normal(size=400) > 0).astype(int)
    number[::7] = np.nan
    level = rng.choice(["a", "b", "c"], size=400).astype(object)
    level[::11] = None
    X = pd.DataFrame({"number": number, "level": pd.Series(level, dtype=object)})
    make(0, ["level"]).fit(X, y).scores(X)


def at_hand(folder: Path) -> list[dict[str, Any]]:
    """Return the rows in docs/benchmarks and those in the folder of results."""
    folders = dict.fromkeys((PUBLISHED.resolve(), Path(folder).resolve()))
    return [row for each in folders for row in stored_rows("mixed_tables", each)]


def show(options: Any) -> str:
    """Return the summary of all rows at hand; with ``--publish`` they go to docs/benchmarks."""
    last = summary.latest(at_hand(options.out))
    if options.publish:
        lines = [json.dumps(last[key]) for key in sorted(last)]
        (PUBLISHED / "mixed_tables.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return summary.markdown(list(last.values()))


def _known(asked: list[str] | None, there: Any, kind: str) -> list[str]:
    unknown = set(asked or ()) - set(there)
    if unknown:
        raise SystemExit(f"no {kind} {sorted(unknown)[0]!r}; there are {', '.join(there)}")
    return list(asked or there)
