"""Runs what is missing, one method on one split at a time, and compares each with the first method."""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import average_precision_score

from aucmax.metrics import compare_roc_auc, roc_auc
from aucmax.paper.data import DataMissingError, Split
from aucmax.runtime.machine import peak_gib
from benchmarks.contest import data, methods, summary
from benchmarks.contest.boosting import THREADS, Budget
from benchmarks.harness import alone, timed

#: Of a search where positives are rare: there are fewer rows, and 180 draws.
RARE_SECONDS = 20.0
COLUMNS = ("data", "regime", "seed", "method", "status", "auc", "fit_seconds", "peak_gib")
PUBLISHED = Path(__file__).parents[2] / "docs" / "benchmarks" / "contest.jsonl"
#: Read by the processes to come. Threads that wait actively for each other, as is the default, take ten
#: times as long over small trees when anything else runs on the machine.
SETTINGS = {
    "OMP_NUM_THREADS": str(THREADS),
    "OPENBLAS_NUM_THREADS": str(THREADS),
    "MKL_NUM_THREADS": str(THREADS),
    "NUMBA_NUM_THREADS": str(THREADS),
    "OMP_WAIT_POLICY": "PASSIVE",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("contest").add_argument
    own = Budget()
    usual = f"{own.seconds:g}, or {RARE_SECONDS:g} of rare positives"
    add("--methods", nargs="*", metavar="NAME", help="instead of all that take part by default")
    add("--regimes", nargs="*", metavar="NAME", help="full, rare, or shares such as 1%% and 0.3%%")
    add("--first-seed", type=int, default=0, metavar="N", help="leave out the seeds before")
    add("--configurations", type=int, default=own.configurations, help="of one search, at most")
    add("--seconds", type=float, help=f"of one search, before the last fit, instead of {usual}")
    add("--limit", type=float, default=1800.0, help="seconds for fitting and predicting")
    add("--retry", action="store_true", help="run again what failed or took too long")
    add("--since", default="", metavar="TIME", help="run again what is older, as 2026-01-31T12:00:00")
    add("--scores", action="store_true", help="fit again, without its search, what has no scores here")
    add("--show", action="store_true", help="run nothing; the summary of all rows at hand")
    add("--publish", action="store_true", help="run nothing; write the last rows to docs/benchmarks")


class Place(NamedTuple):
    """Where methods meet."""

    data: str
    regime: str
    seed: int
    split: Split

    def name(self) -> str:
        return file_name(self.data, self.regime, self.seed)


# --- what there is to do


def run(options: Any) -> Iterator[dict[str, Any]]:
    scores = options.out / "contest-scores"
    scores.mkdir(parents=True, exist_ok=True)
    chosen = entrants(options.methods)
    os.environ.update(SETTINGS)
    for place in places(options):
        rows = known(options.out)
        if options.scores:
            score_again(place, chosen, rows, scores)
            continue
        names = [name for name in chosen if wanted(name, place, options)]
        missing = [name for name in names if not settled(rows.get(key(place, name)), options)]
        if not missing:
            continue
        np.save(scores / f"{place.name()}.npy", place.split.y_test.astype(np.uint8))
        with TemporaryDirectory() as folder:
            for part in ("X_train", "y_train", "X_test", "y_test"):
                np.save(Path(folder) / f"{part}.npy", getattr(place.split, part))
            for name in missing:
                yield one(place, name, Path(folder), options, scores)
    yield from compared(options.out)


def entrants(names: list[str] | None) -> list[str]:
    """The methods asked for, without those whose package is missing."""
    unknown = set(names or ()) - set(methods.METHODS)
    if unknown:
        raise SystemExit(f"no method {sorted(unknown)[0]!r}; there are {', '.join(methods.METHODS)}")
    found = []
    for name, method in methods.METHODS.items():
        if names and name not in names:
            continue
        if method.version():
            found.append(name)
        else:
            print(f"{name} is left out: {method.package} is not installed", file=sys.stderr)
    return found


def places(options: Any) -> Iterator[Place]:
    """All splits, one seed after the other, so that what is there at any time is even."""
    regimes = chosen_regimes(options.regimes)
    names = list(options.data or data.DATA)
    unknown = set(names) - set(data.DATA)
    if unknown:
        raise SystemExit(f"no data set {sorted(unknown)[0]!r}; there are {', '.join(data.DATA)}")
    rare = [name for name in names if name in data.RARE]
    draws: dict[str, int] = {}
    for seed in range(options.first_seed, options.seeds or data.draws(0)):
        for name in names if data.FULL in regimes else ():
            if name in draws and seed >= draws[name]:
                continue
            split = at_hand(name, seed, options)
            if split:
                split = data.whole(split, seed)
                draws[name] = options.seeds or data.draws(len(split.y_train))
                if seed < draws[name]:
                    yield Place(name, data.FULL, seed, split)
    for seed in range(options.first_seed, options.seeds or data.RARE_DRAWS):
        for name in rare if regimes - {data.FULL} else ():
            split = at_hand(name, seed, options)
            for regime, thin in data.thinned(split, seed) if split else ():
                if regime in regimes:
                    yield Place(name, regime, seed, thin)


def chosen_regimes(names: list[str] | None) -> set[str]:
    known = {name.replace(" ", ""): {name} for name in (data.FULL, *data.LEVELS)}
    known["rare"] = set(data.LEVELS)
    chosen: set[str] = set()
    for name in names or known:
        if name.replace(" ", "") not in known:
            raise SystemExit(f"no regime {name!r}; there are {', '.join(known)}")
        chosen |= known[name.replace(" ", "")]
    return chosen


def at_hand(name: str, seed: int, options: Any) -> Split | None:
    """Of data sets asked for by name none may be missing."""
    try:
        return data.read(name, seed)
    except DataMissingError as missing:
        if options.data:
            raise
        print(f"{name} is left out: {missing}", file=sys.stderr)
        return None


def wanted(name: str, place: Place, options: Any) -> bool:
    """A method asked for by name takes part in all regimes, but not beyond its number of rows."""
    rare = place.regime != data.FULL and not options.methods
    return methods.due(methods.METHODS[name], len(place.split.y_train), rare)


def settled(row: dict[str, Any] | None, options: Any) -> bool:
    if row is None or row["finished"] < options.since:
        return False
    return row["status"] == "ok" or not options.retry


# --- one method on one split


def one(place: Place, name: str, folder: Path, options: Any, scores: Path) -> dict[str, Any]:
    """The row of a method, whatever becomes of it."""
    split = place.split
    (folder / "clock").unlink(missing_ok=True)
    target = scores / f"{file_name(*key(place, name))}.npy"
    row = {
        "data": place.data,
        "regime": place.regime,
        "seed": place.seed,
        "method": name,
        "status": "ok",
        "rows": len(split.y_train),
        "positives": int(split.y_train.sum()),
        "features": split.X_train.shape[1],
        "test_rows": len(split.y_test),
        "package": methods.METHODS[name].version(),
        "threads": THREADS,
    }
    seconds = RARE_SECONDS if place.regime != data.FULL else Budget().seconds
    budget = Budget(options.configurations, options.seconds or seconds)
    try:
        row |= alone(entry, name, place.seed, folder, target, budget, options.limit)
    except BrokenProcessPool:
        if took_too_long(folder, options.limit):
            row |= {"status": "over time", "reason": f"more than {options.limit:g} seconds"}
        else:
            row |= {"status": "failed", "reason": "its process ended, perhaps for want of memory"}
    row["finished"] = time.strftime("%Y-%m-%dT%H:%M:%S")
    rows = known(options.out) | {key(place, name): row}
    return row | comparison(row, rows, scores)


def entry(
    name: str, seed: int, folder: Path, target: Path, budget: Budget, limit: float
) -> dict[str, Any]:
    """Fit and score by one method, in this process, which ends if that takes longer than ``limit``."""
    X, y, X_test, y_test = (
        np.load(folder / f"{part}.npy") for part in ("X_train", "y_train", "X_test", "y_test")
    )
    make = methods.METHODS[name].make
    try:
        warm_up(make, budget)
        model = make(seed, X.shape, budget)
        with stopwatch(folder, limit):
            before = time.process_time()
            fit_seconds, _ = timed(lambda: model.fit(X, y))
            cpu_seconds = time.process_time() - before
            predict_seconds, scores = timed(lambda: model.decision_function(X_test))
        scores = np.asarray(scores, dtype=np.float32)
        if scores.shape != y_test.shape or not np.isfinite(scores).all():
            raise ValueError("test scores are not one finite number a row")
    except Exception as error:
        return {"status": "failed", "reason": f"{type(error).__name__}: {error}"[:500]}
    np.save(target, scores)
    return {
        "auc": roc_auc(y_test, scores),
        "average_precision": float(average_precision_score(y_test, scores)),
        "fit_seconds": fit_seconds,
        "cpu_seconds": cpu_seconds,
        "predict_seconds": predict_seconds,
        "peak_gib": own_peak_gib(),
        **getattr(model, "report_", {}),
    }


def score_again(
    place: Place, names: list[str], rows: dict[summary.Key, dict[str, Any]], scores: Path
) -> None:
    """Test scores of rows from another machine, or from long ago, where the paired test wants them.

    Kept only if their AUC is that of the row: then the model is the same.
    """
    first = next(iter(methods.METHODS))
    own = {name: rows[key(place, name)] for name in methods.METHODS if key(place, name) in rows}
    good = {name: row for name, row in own.items() if row["status"] == "ok"}
    if first not in good:
        return
    wanted = [
        name
        for name, row in good.items()
        if name != first
        and not ("against" in row and summary.same_duel(row["against"], row, good[first]))
    ]
    for name in [first, *wanted] if wanted else ():
        target = scores / f"{file_name(*key(place, name))}.npy"
        if name not in names or target.exists():
            continue
        np.save(scores / f"{place.name()}.npy", place.split.y_test.astype(np.uint8))
        try:
            told = alone(fit_again, place, name, good[name], target)
        except BrokenProcessPool:
            told = "its process ended"
        print(f"{place.data}, {place.regime}, seed {place.seed}, {name}: {told}", file=sys.stderr)


def fit_again(place: Place, name: str, row: dict[str, Any], target: Path) -> str:
    """In this process: a method without its search, and what came of it."""
    split = place.split
    model = methods.METHODS[name].make(place.seed, split.X_train.shape, Budget())
    try:
        if "chosen" in row:
            model.fit_chosen(split.X_train, split.y_train, row["chosen"], row["trees"])
        else:
            model.fit(split.X_train, split.y_train)
        scores = np.asarray(model.decision_function(split.X_test), dtype=np.float32)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:500]
    apart = roc_auc(split.y_test, scores) - row["auc"]
    if abs(apart) > 1e-9:
        return f"another model, its AUC differs by {apart:.1e}"
    np.save(target, scores)
    return "the same model"


def warm_up(make: methods.Make, budget: Budget) -> None:
    """Threads, imports and compiling, outside the clock."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5)).astype(np.float32)
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    model = make(0, X.shape, Budget(min(1, budget.configurations), budget.seconds))
    model.fit(X, y).decision_function(X)


class stopwatch:  # noqa: N801
    """Ends the process after ``limit`` seconds, even where it is deep inside a library."""

    def __init__(self, folder: Path, limit: float) -> None:
        self.folder, self.limit = folder, limit

    def __enter__(self) -> None:
        (self.folder / "clock").write_text(str(time.time()))
        self.nowhere = open(os.devnull, "w")
        faulthandler.dump_traceback_later(self.limit, exit=True, file=self.nowhere)

    def __exit__(self, *_: Any) -> None:
        faulthandler.cancel_dump_traceback_later()
        self.nowhere.close()


def took_too_long(folder: Path, limit: float) -> bool:
    clock = folder / "clock"
    return clock.exists() and time.time() - float(clock.read_text()) >= limit


def own_peak_gib() -> float | None:
    """Without that of the process which started this one: what ``getrusage`` says begins with it."""
    try:
        told = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    except OSError:
        told = None
    return int(told[1]) / 2**20 if told else peak_gib()


# --- rows and scores at hand


def key(place: Place, method: str) -> summary.Key:
    return place.data, place.regime, place.seed, method


def known(folder: Path) -> dict[summary.Key, dict[str, Any]]:
    """The last row of each method on each split, of those published and those in ``folder``."""
    rows = []
    for path in (PUBLISHED, folder / "contest.jsonl"):
        if path.exists():
            rows += [json.loads(line) for line in path.read_text().splitlines()]
    return summary.latest(rows)


def file_name(*parts: Any) -> str:
    return "--".join(re.sub(r"[^\w.]+", "-", str(part)).strip("-") for part in parts)


def compared(folder: Path) -> Iterator[dict[str, Any]]:
    """Rows once more whose comparison was missing or was with older scores, where they can be had."""
    rows = known(folder)
    for row in rows.values():
        found = comparison(row, rows, folder / "contest-scores")
        if found:
            yield row | found


def comparison(
    row: dict[str, Any], rows: dict[summary.Key, dict[str, Any]], scores: Path
) -> dict[str, Any]:
    """DeLong's paired test against the first method, unless it is in the row or scores are missing."""
    place = row["data"], row["regime"], row["seed"]
    first = next(iter(methods.METHODS))
    other = rows.get((*place, first))
    if row["method"] == first or row["status"] != "ok" or other is None or other["status"] != "ok":
        return {}
    if "against" in row and summary.same_duel(row["against"], row, other):
        return {}
    paths = [
        scores / f"{file_name(*parts)}.npy"
        for parts in (place, (*place, row["method"]), (*place, first))
    ]
    if not all(path.exists() for path in paths):
        return {}
    labels, mine, its = (np.load(path) for path in paths)
    found = compare_roc_auc(labels, mine, its)
    if abs(found.auc_a - row["auc"]) > 1e-9 or abs(found.auc_b - other["auc"]) > 1e-9:
        return {}  # the scores are of another run
    return {
        "against": {
            "method": first,
            "difference": found.difference,
            "low": found.low,
            "high": found.high,
            "p": found.p_value,
        }
    }


# --- what is shown


def show(options: Any) -> str:
    """The summary of all rows at hand; with ``--publish`` they go to docs/benchmarks."""
    rows = known(options.out)
    if options.publish:
        order = {name: number for number, name in enumerate((*data.DATA, data.FULL, *data.LEVELS))}
        lines = [
            json.dumps(rows[one])
            for one in sorted(rows, key=lambda k: (order.get(k[1], 0), order.get(k[0], 0), k[2], k[3]))
        ]
        PUBLISHED.write_text("".join(f"{line}\n" for line in lines))
    return summary.markdown(list(rows.values()))
