"""The connection to a Dask cluster: a client, its results, and errors about the cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, wait
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any

from aucmax.runtime.installing import extra_command
from aucmax.runtime.memory import NoMemoryError

#: A fit ends after this many seconds without a running worker. A nanny restarts a worker sooner; Dask
#: itself would wait forever.
NO_WORKERS = 60.0

#: Seconds between two checks of the workers while a fit waits for results.
_CHECK_EVERY = 1.0


def connect(address: str | None = None, timeout: float = 10.0, **local: Any) -> Any:
    """Return a Dask client of the scheduler at ``address``, or of a new cluster on this machine.

    It becomes the default client, which every fit uses; ``with client.as_current():`` chooses another.

    Parameters
    ----------
    address : str, optional
        Such as ``"tcp://host:8786"``. None starts a ``LocalCluster`` with a worker for each core.
    timeout : float
        Seconds to wait for the scheduler.
    **local
        Options of the ``LocalCluster``.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import make_moons
    >>> from aucmax import KernelAUCClassifier
    >>> from aucmax.distributed import connect
    >>> X, y = make_moons(400, noise=0.3, random_state=0)
    >>> with connect(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     rows = da.from_array(X, chunks=(100, 2))
    ...     model = KernelAUCClassifier(preset="paper", n_landmarks=50, random_state=0).fit(rows, y)
    ...     scores = model.decision_function(rows)  # lazy
    ...     scores.compute().shape
    (400,)
    """
    distributed = library()
    if address is None:
        cores = {} if "n_workers" in local else {"threads_per_worker": 1}
        return distributed.Client(**{**cores, **local})  # closes its cluster with it
    try:
        return distributed.Client(address, timeout=timeout)
    except (OSError, ValueError) as error:  # a timeout is an OSError
        raise OSError(
            f"No Dask scheduler answers at {address!r} within {timeout:g} s ({error}): check the "
            "address, and that `dask scheduler` runs there."
        ) from None


def library() -> Any:
    """Import ``distributed``, an optional dependency."""
    try:
        import distributed
    except ImportError:
        raise ImportError(
            f"Dask collections need dask and distributed. Install them: {extra_command('dask')}"
        ) from None
    return distributed


def default_client() -> Any:
    """Return the client in use; refuse to go on without one."""
    try:
        return library().get_client()
    except ValueError:
        raise ValueError(
            "X is a Dask collection and there is no Dask client to compute it with: make one first, "
            "for example by aucmax.distributed.connect(), or pass X.compute()."
        ) from None


def gathered(client: Any, futures: Any) -> Any:
    """Bring results here; an error describes in a sentence what happened to the cluster."""
    distributed = library()
    results: Future[Any] = Future()

    def gather() -> None:
        try:
            results.set_result(client.gather(futures))
        except BaseException as error:
            results.set_exception(error)

    Thread(target=gather, daemon=True, name="aucmax-gather").start()
    try:
        _watch(client, results)
        return results.result()
    except distributed.KilledWorker as error:
        raise NoMemoryError(
            f"Dask gave up task {error.task!r}, since each worker that began it died, as they do when "
            "out of memory: use smaller partitions, fewer landmarks (n_landmarks), or larger workers."
        ) from None
    except (CancelledError, distributed.comm.CommClosedError, TimeoutError, RuntimeError) as error:
        if client.status == "closed":
            raise _closed() from None
        if isinstance(error, RuntimeError):  # a task's own, or Dask's
            raise
        raise OSError(
            f"The Dask scheduler at {_address(client)} was lost during the fit "
            f"({type(error).__name__}): check that it runs, connect again and repeat the fit."
        ) from None
    finally:
        if not results.done():  # after Ctrl-C or an error, nobody waits for them any more
            with suppress(Exception):
                client.cancel(futures)


def _watch(client: Any, results: Future[Any]) -> None:
    """Return when the results are here; raise an error after too long without a worker."""
    since = time.monotonic()
    while not wait([results], timeout=_CHECK_EVERY).done:
        workers = client.scheduler_info()["workers"].values()
        if any(worker["status"] == "running" for worker in workers):
            since = time.monotonic()
        elif time.monotonic() - since > NO_WORKERS:
            raise _no_workers(client, len(workers))


def _no_workers(client: Any, paused: int) -> Exception:
    if paused:
        return NoMemoryError(
            f"All Dask workers ({paused}) have been paused for {NO_WORKERS:g} s, as they are when out "
            "of memory: use smaller partitions, fewer landmarks (n_landmarks), or larger workers."
        )
    address = _address(client)
    return OSError(
        f"The Dask scheduler at {address} has had no worker for {NO_WORKERS:g} s, and the fit needs at "
        f"least one: start workers (dask worker {address}) and fit again."
    )


def _address(client: Any) -> str:
    return str(client.scheduler.address) if client.scheduler else "?"


def _closed() -> OSError:
    return OSError("The Dask client was closed during the fit: make another one and fit again.")


@contextmanager
def sending() -> Iterator[None]:
    """Silence Dask's warning about large tasks while sending some: they carry one number per row."""
    import dask

    closed = getattr(library().client, "ClosedClientError", ())  # not in older versions
    try:
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            yield
    except closed:
        raise _closed() from None
