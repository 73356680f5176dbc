"""Single-threaded Dask workers against as many threads of one process: two on two cores.

Both fit the same rows to the same tolerance, one after the other, twice; a small fit before the clock
starts warms up imports and workers. ``ratio`` is Dask's time by that in process, ``apart`` the largest
difference of test scores by their spread, beyond the two ends within ``tol``. Workers hold the rows
before the clock starts. In a last fit one of the workers is killed after a third of the time; ``apart``
is then from the fit before. With OMP_NUM_THREADS=1 it is one worker against one thread.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from threading import Timer
from typing import Any

import numpy as np

from aucmax import KernelAUCClassifier
from aucmax.distributed import connect, driver_bytes, traffic_bytes
from aucmax.metrics import roc_auc
from aucmax.paper.data import load_dataset
from aucmax.runtime.machine import peak_gib
from aucmax.runtime.threads import thread_count
from benchmarks.harness import timed, touch_memory

COLUMNS = ("data", "rows", "round", "model", "seconds", "passes", "test_auc", "ratio", "apart")
PARTITIONS = 8


def run(options: Any) -> Iterator[dict[str, Any]]:
    for name in options.data or ["covtype"]:
        split = load_dataset(name)
        workers = thread_count()
        with connect(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as client:
            yield from compare(name, split, options.landmarks, client)


def compare(name: str, split: Any, landmarks: int, client: Any) -> Iterator[dict[str, Any]]:
    import dask
    import dask.array as da

    n_rows = len(split.y_train)
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
        rows = da.from_array(split.X_train, chunks=(-(-n_rows // PARTITIONS), -1)).persist()
    touch_memory(8.0)
    for X in (split.X_train[:5000], rows[:5000]):
        KernelAUCClassifier(preset="paper", n_landmarks=100).fit(X, split.y_train[:5000])
    for number in range(2):
        seconds, scores = {}, {}
        for kind, X in (("in process", split.X_train), ("dask", rows)):
            model = KernelAUCClassifier(preset="paper", n_landmarks=landmarks, random_state=0)
            seconds[kind], _ = timed(lambda: model.fit(X, split.y_train))
            scores[kind] = model.decision_function(split.X_test)
            row = {
                "data": name,
                "rows": n_rows,
                "landmarks": landmarks,
                "round": number,
                "model": kind,
                "seconds": seconds[kind],
                "passes": model.history_[-1]["passes"],
                "test_auc": roc_auc(split.y_test, scores[kind]),
                "place": model.place_,
                "workers": thread_count(),
                "seed": 0,
            }
            if kind == "dask":
                apart = np.abs(scores["dask"] - scores["in process"]).max()
                rank = model.feature_map_.rank
                row |= {
                    "ratio": seconds["dask"] / seconds["in process"],
                    "apart": float(apart / scores["in process"].std()),
                    "driver_gb": driver_bytes(n_rows, rank, 1) / 1e9,
                    "traffic_mb": traffic_bytes(n_rows, rank, 1, thread_count()) / 1e6,
                    "peak_gib": peak_gib(),
                }
            yield row
    victim = next(iter(client.run(os.getpid).values()))
    deadly = Timer(seconds["dask"] / 3, os.kill, (victim, signal.SIGKILL))
    model = KernelAUCClassifier(preset="paper", n_landmarks=landmarks, random_state=0)
    deadly.start()
    taken, _ = timed(lambda: model.fit(rows, split.y_train))
    if victim in client.run(os.getpid).values():
        raise RuntimeError("The fit was over before its worker was killed.")
    ends = model.decision_function(split.X_test)
    yield {
        "data": name,
        "rows": n_rows,
        "landmarks": landmarks,
        "round": 2,
        "model": "dask, a worker killed",
        "seconds": taken,
        "passes": model.history_[-1]["passes"],
        "test_auc": roc_auc(split.y_test, ends),
        "apart": float(np.abs(ends - scores["dask"]).max() / scores["dask"].std()),
    }
