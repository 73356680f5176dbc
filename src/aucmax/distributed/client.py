"""The way to a Dask cluster: a client, results brought here, and what went wrong there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aucmax._memory import NoMemoryError


def connect(address: str | None = None, timeout: float = 10.0, **local: Any) -> Any:
    """A Dask client: of the scheduler at ``address``, or of a new cluster on this machine.

    It becomes the default one, which every fit uses; ``with client.as_current():`` chooses another.

    Parameters
    ----------
    address : str, optional
        As ``"tcp://host:8786"``. None starts a ``LocalCluster``, a worker for each core.
    timeout : float
        Seconds to wait for a scheduler to answer.
    **local
        For the ``LocalCluster``.

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
    try:
        import distributed
    except ImportError:
        raise ImportError(
            'Dask collections need dask and distributed: pip install "aucmax[dask]".'
        ) from None
    return distributed


def default_client() -> Any:
    try:
        return library().get_client()
    except ValueError:
        raise ValueError(
            "X is a Dask collection and there is no Dask client to compute it with: make one first, "
            "for example by aucmax.distributed.connect(), or pass X.compute()."
        ) from None


def gathered(client: Any, futures: Any) -> Any:
    """Results, brought here; what befell the cluster is told in a sentence."""
    from concurrent.futures import CancelledError

    distributed = library()

    try:
        return client.gather(futures)
    except distributed.KilledWorker as error:
        raise NoMemoryError(
            f"Dask gave up task {error.task!r}, since each worker that began it died, as they do when "
            "out of memory: use smaller partitions, fewer landmarks (n_landmarks), or larger workers."
        ) from None
    except (CancelledError, distributed.comm.CommClosedError, TimeoutError) as error:
        raise OSError(
            f"The Dask scheduler at {client.scheduler.address if client.scheduler else '?'} was lost "
            f"during the fit ({type(error).__name__}): check that it runs, connect anew and fit again."
        ) from None


@contextmanager
def large_tasks() -> Iterator[None]:
    """Tasks carry vectors of a number a row, on purpose: no warning that they are large."""
    import dask

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
        yield
