"""Fit where Dask workers hold the rows: on this machine, or on a cluster whose scheduler is named.

python examples/dask_cluster.py
python examples/dask_cluster.py tcp://scheduler:8786 --rows 50000000
"""

from __future__ import annotations

import argparse

import dask.array as da
import numpy as np

from aucmax import KernelAUCClassifier
from aucmax.distributed import connect
from aucmax.metrics import roc_auc

COLUMNS = 10


def make_rows(count: int, chunk: int, seed: int) -> tuple[da.Array, da.Array]:
    """Rows made on the workers; those far from the centre in the first three columns are positive."""
    X = da.random.default_rng(seed).normal(size=(count, COLUMNS), chunks=(chunk, -1)).astype(np.float32)
    noise = da.random.default_rng(seed + 1).normal(size=count, chunks=chunk)
    return X, (X[:, :3] ** 2).sum(axis=1) + noise > 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "scheduler", nargs="?", help="its address; without it a cluster on this machine"
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--chunk", type=int, default=25_000, help="rows in a partition")
    parser.add_argument("--landmarks", type=int, default=200)
    options = parser.parse_args()
    with connect(options.scheduler) as client:
        print(f"{len(client.nthreads())} workers at {client.scheduler.address}")
        X, y = make_rows(options.rows, options.chunk, seed=0)
        model = KernelAUCClassifier(preset="paper", n_landmarks=options.landmarks, random_state=0).fit(
            X, y
        )
        print(f"{model.n_iter_} Newton steps, {model.history_[-1]['passes']} passes over the rows")
        X_test, y_test = make_rows(options.rows // 4, options.chunk, seed=2)
        scores = model.decision_function(X_test)  # computed when asked for
        print(f"AUC on rows not seen: {roc_auc(y_test.compute(), scores.compute()):.4f}")


if __name__ == "__main__":
    main()
