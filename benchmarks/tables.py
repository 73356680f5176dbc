"""A CSV of 500,000 rows, 54 columns: what training spends beside the solve, rows a second of predict.

The rows are covtype's, written to a file first. ``train`` is the command in a process of its own, with
a time budget so that a short solve cannot hide behind a long one's time: outside is all but
``KernelAUCClassifierCV.fit`` (standardise, map, solve), as it reports it, and so includes the start of
Python, imports, reading, preparing columns, calibration and the model file. ``predict`` runs the
command on as many rows again, four times and twelve times as many, for rows a second and the peak of
memory, which is not to grow with the rows (scores are kept for their ranks: 8 bytes each).
scikit-learn's StandardScaler + Nystroem + LogisticRegression, with as many landmarks, then predicts
the rows of the same file in batches of the same size, read by polars too.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aucmax.paper.data import load_dataset
from benchmarks.harness import timed, touch_memory

ROWS = 500_000
BUDGET = 60.0  #: seconds of search
BATCH = 100_000

#: A command that tells its time and peak of memory when it ends.
_MEASURED = """
import resource, sys, time
began = time.perf_counter()
from aucmax.cli import main
try:
    main()
except SystemExit as end:
    if end.code:
        raise
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
peak /= 2**30 if sys.platform == "darwin" else 2**20
print(f"\\nMEASURED {time.perf_counter() - began} {peak}", file=sys.stderr)
"""


def run(options: Any) -> Iterator[dict[str, Any]]:
    split = load_dataset("covtype")
    X, y = (
        np.vstack([split.X_train, split.X_test])[:ROWS],
        np.append(split.y_train, split.y_test)[:ROWS],
    )
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        table = pl.DataFrame(X, schema=[f"x{i}" for i in range(X.shape[1])])
        table.with_columns(pl.Series("y", np.where(y == 1, "yes", "no"))).write_csv(place / "train.csv")
        touch_memory(8.0)
        yield train(place, options.landmarks)
        table = table.with_row_index("id")
        theirs = rival(X, y, options.landmarks)
        for times in (1, 4, 12):
            file = place / f"new-{times}.csv"
            pl.concat([table] * times).write_csv(file)
            yield predict(place, file, times * ROWS)
            if times == 1:
                yield {**rival_predict(theirs, file), "rows": ROWS}


def command(*arguments: Any) -> tuple[str, float, float]:
    """What a command prints, the seconds it takes with Python's start, and its peak in GiB."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *map(str, arguments)], capture_output=True, text=True
    )
    seconds = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout, seconds, float(done.stderr.rsplit("MEASURED", 1)[1].split()[1])


def train(place: Path, landmarks: int) -> dict[str, Any]:
    told, seconds, peak = command(
        "train", place / "train.csv", "--target", "y", "-o", place / "model.aucmax", "--landmarks",
        landmarks, "--gammas", 1, "--time-budget", BUDGET, "--json",
    )  # fmt: skip
    about = json.loads(told)
    return {
        "kind": "train",
        "rows": about["rows"],
        "seconds": seconds,
        "inside": about["search_seconds"],
        "outside_share": 1.0 - about["search_seconds"] / seconds,
        "auc": about["auc"],
        "peak_gib": peak,
    }


def predict(place: Path, file: Path, rows: int) -> dict[str, Any]:
    out = place / "scores.csv"
    _, seconds, peak = command(
        "predict", place / "model.aucmax", file, "--id", "id", "-o", out, "--rows", BATCH
    )
    return {
        "kind": "predict",
        "rows": rows,
        "seconds": seconds,
        "rows_per_second": rows / seconds,
        "peak_gib": peak,
    }


def rival(X: np.ndarray, y: np.ndarray, landmarks: int) -> Any:
    few = np.random.default_rng(0).permutation(len(y))[:20_000]
    return make_pipeline(
        StandardScaler(),
        Nystroem(gamma=1.0 / X.shape[1], n_components=landmarks, random_state=0),
        LogisticRegression(max_iter=1000),
    ).fit(X[few], y[few])


def rival_predict(model: Any, file: Path) -> dict[str, Any]:
    """The same rows, read and scored in the same batches; from float32, as ours are."""

    def work() -> int:
        frame = pl.read_csv(file)
        parts = []
        for batch in frame.iter_slices(BATCH):
            X = batch.drop("id").to_numpy().astype(np.float32)
            parts.append(model.decision_function(X))
        out = pl.DataFrame({"id": frame["id"], "score": np.concatenate(parts)})
        out.write_csv(file.with_name("theirs.csv"))
        return len(out)

    seconds, rows = timed(work)
    return {"kind": "scikit-learn predict", "seconds": seconds, "rows_per_second": rows / seconds}
