"""Dask workers killed, starved, slowed and sent away, a scheduler lost, and the client's own loss.

Promised: a fit on a cluster ends with the model of the fit in memory, or with an error that names what
was lost, within the limit; and it leaves the estimator unfitted and no process behind.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from reliability.cluster_processes import Cluster
from reliability.harness import Case, Violation

#: Cases of a full run.
FULL = 50

#: Seconds after which no process of the cluster may be left.
GONE = 45.0

#: Seconds that a fit waits for workers when there are none; shorter than its default.
NO_WORKERS = 8.0


@dataclass(frozen=True)
class Fault:
    """What befalls a cluster; ``survived`` says that the fit must end with the right model."""

    name: str
    strike: Callable[[Cluster, np.random.Generator], None]
    survived: bool
    nanny: bool = True
    memory: str = "0"  #: without limit


def _kill_one(cluster: Cluster, rng: np.random.Generator) -> None:
    os.kill(cluster.workers[rng.integers(len(cluster.workers))], signal.SIGKILL)


def _kill_all(cluster: Cluster, rng: np.random.Generator) -> None:
    for pid in cluster.workers:
        os.kill(pid, signal.SIGKILL)


def _kill_scheduler(cluster: Cluster, rng: np.random.Generator) -> None:
    os.kill(cluster.scheduler, signal.SIGKILL)


def _stop_a_while(cluster: Cluster, rng: np.random.Generator) -> None:
    pid = cluster.workers[rng.integers(len(cluster.workers))]
    os.kill(pid, signal.SIGSTOP)
    time.sleep(rng.uniform(0.5, 3.0))
    os.kill(pid, signal.SIGCONT)


def _retire_one(cluster: Cluster, rng: np.random.Generator) -> None:
    workers = sorted(cluster.client.scheduler_info()["workers"])
    with contextlib.suppress(Exception):  # the fit may have ended, and the client with it
        cluster.other.retire_workers([workers[rng.integers(len(workers))]])


def _close_client(cluster: Cluster, rng: np.random.Generator) -> None:
    cluster.client.close(timeout=1)


def _nothing(cluster: Cluster, rng: np.random.Generator) -> None:
    return


FAULTS = (
    Fault("a worker killed, which its nanny restarts", _kill_one, survived=True),
    Fault("a worker killed for good", _kill_one, survived=True, nanny=False),
    Fault("all workers killed, which nannies restart", _kill_all, survived=True),
    Fault("all workers killed for good", _kill_all, survived=False, nanny=False),
    Fault("the scheduler killed", _kill_scheduler, survived=False),
    Fault("a worker stopped for a while", _stop_a_while, survived=True),
    Fault("a worker sent away", _retire_one, survived=True, nanny=False),
    Fault("the client closed by another thread", _close_client, survived=False),
    Fault("workers short of memory", _nothing, survived=False, memory="140MB"),
    Fault("workers short of memory, and one killed", _kill_one, survived=False, memory="180MB"),
)


def case(number: int, seed: int) -> Case:
    """The faults in turn, at drawn moments of a fit that is measured first."""
    rng = np.random.default_rng([seed, number])
    fault = FAULTS[number % len(FAULTS)]
    moment, search = float(rng.uniform()), bool(rng.random() < 0.25)
    name = f"{fault.name}, at {moment:.2f} of a {'search' if search else 'fit'}"
    return Case(name, lambda: run(fault, moment, search, rng), limit=180.0)


@functools.cache
def problem() -> tuple[Any, Any]:
    from sklearn.datasets import make_classification

    found: tuple[Any, Any] = make_classification(
        4000, 6, n_informative=4, weights=[0.8], random_state=0
    )
    return found


def _model(search: bool) -> Any:
    from aucmax import KernelAUCClassifier, KernelAUCClassifierCV

    given = {"n_landmarks": 60, "landmarks": "uniform", "gamma": 0.2, "tol": 1e-8, "random_state": 0}
    if search:
        return KernelAUCClassifierCV(KernelAUCClassifier(preset="paper", **given), Cs=[0.1, 10.0])
    return KernelAUCClassifier(30.0, preset="paper", **given)


@functools.cache
def _expected(search: bool) -> Any:
    X, y = problem()
    return _model(search).fit(X, y).decision_function(X)


def run(fault: Fault, moment: float, search: bool, rng: np.random.Generator) -> str:
    """Fit without and then with the fault, compare the two models, and look for leftover processes."""
    with Cluster(nanny=fault.nanny, memory=fault.memory) as cluster:
        starved = fault.memory != "0"
        seconds = 3.0
        if not starved:
            _fit(search)  # makes connections and loads compiled loops
            began = time.monotonic()
            _fit(search)
            seconds = time.monotonic() - began
        struck = threading.Timer(moment * seconds, fault.strike, (cluster, rng))
        struck.start()
        with _short_patience():
            word = _outcome(fault, search)
        struck.join()
        if left := cluster.shut_down(GONE) if cluster.still_there else []:
            raise Violation(f"Processes of the cluster outlived it by {GONE:g} s: {left}")
    return f"{fault.name}: {word}"


def _fit(search: bool) -> Any:
    import dask.array as da

    X, y = problem()
    return _model(search).fit(da.from_array(X, chunks=(500, 6)), y)


def _outcome(fault: Fault, search: bool) -> str:
    import dask.array as da

    X, y = problem()
    model = _model(search)
    try:
        model.fit(da.from_array(X, chunks=(500, 6)), y)
    except (OSError, MemoryError, ValueError) as error:
        if fault.survived:
            raise Violation(f"The fit did not survive it: {error!r}") from error
        if not any(word in str(error) for word in ("Dask", "worker", "memory")):
            raise Violation(f"The error does not name what was lost: {error!r}") from error
        if learnt := [name for name in vars(model) if name.endswith("_")]:
            raise Violation(f"After the error the estimator has {learnt}.") from error
        return type(error).__name__
    found = model.decision_function(X)
    apart = float(np.abs(found - _expected(search)).max() / np.abs(found).max())
    if apart > 1e-4:
        raise Violation(f"Scores differ by {apart:.2g} of the largest from those of the fit in memory.")
    return "the right model"


@contextlib.contextmanager
def _short_patience() -> Iterator[None]:
    from aucmax.distributed import client

    before = getattr(client, "NO_WORKERS", None)
    client.NO_WORKERS = NO_WORKERS
    try:
        yield
    finally:
        client.NO_WORKERS = before
