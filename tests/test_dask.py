import os
import signal
import socket
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler

from aucmax import KernelAUCClassifier, LinearAUCClassifier, NystroemFeatures

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

from aucmax.distributed import DaskOperator, DaskRows, connect, traffic_bytes  # noqa: E402
from tests.searches import kernel_search  # noqa: E402


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def problem():
    X, y = make_classification(1500, 6, n_informative=4, weights=[0.8], random_state=0)
    return X * [1, 10, 0.1, 1, 5, 1] + [0, 100, 0, 3, 0, 0], y


def small(**given):
    return KernelAUCClassifier(
        preset="paper", **{"n_landmarks": 40, "tol": 1e-9, "random_state": 0, **given}
    )


def as_rows(client, X, chunk=400):
    return DaskRows.checked(client, small(), da.from_array(X, chunks=(chunk, 2)))


def assert_same(found, expected, X):
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=1e-9)
    np.testing.assert_allclose(
        found.dual_coef_, expected.dual_coef_, atol=1e-3 * np.abs(expected.dual_coef_).max()
    )
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("how", ["array", "unknown chunks", "frame"])
def test_a_fit_on_dask_is_that_in_memory(client, problem, how):
    X, y = problem
    rows, labels = da.from_array(X, chunks=(400, 4)), da.from_array(y, chunks=333)
    if how != "array":
        frame = dd.from_pandas(pd.DataFrame(X, columns=[*"abcdef"]), npartitions=5)
        rows, labels = frame, dd.from_pandas(pd.Series(y), npartitions=3)
        if how == "unknown chunks":
            rows = frame.to_dask_array()
    if how == "frame":
        X = pd.DataFrame(X, columns=[*"abcdef"])
    found, expected = small().fit(rows, labels), small().fit(X, y)
    assert_same(found, expected, X)
    assert found.n_features_in_ == 6
    assert found.place_ == expected.place_ == "memory"
    assert hasattr(found, "feature_names_in_") == (how == "frame")


@pytest.mark.parametrize(
    "given",
    [
        {"feature_map": "fourier"},
        {"gamma": "scale", "landmarks": "class-kmeans"},
        {"gamma": 1e-4},  # few features: projected
        {"standardize": False, "gamma": 1e-3, "landmarks": "uniform"},
        {"max_memory": 150_000},  # kernel values are recomputed
    ],
)
def test_maps_and_places_lead_to_the_same_model(client, problem, given):
    X, y = problem
    found = small(**given).fit(da.from_array(X, chunks=(400, 6)), y)
    expected = small(**{**given, "max_memory": None}).fit(X, y)
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=1e-8)
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X), atol=1e-3)
    if "max_memory" in given:
        assert found.place_ == "recomputed"
    elif given.get("gamma") == 1e-4:
        assert found.place_ == "projected"


def test_weights_and_several_classes_work_as_in_memory(client, problem):
    X, y = problem
    labels = np.where(X[:, 0] > 1, "two", np.where(y, "one", "none"))
    weight = np.random.default_rng(0).integers(0, 3, y.size).astype(float)
    weight[:400] = 0.0  # a whole partition is absent
    found = small().fit(
        da.from_array(X, chunks=(400, 6)), da.from_array(labels, chunks=500), da.from_array(weight)
    )
    assert_same(found, small().fit(X, labels, weight), X)


def test_sparse_partitions_stay_sparse(client, problem):
    X, y = problem
    thin = np.where(np.abs(X) > 1, X, 0.0)
    rows = da.from_array(thin, chunks=(400, 6)).map_blocks(sparse.csr_matrix)
    assert_same(small().fit(rows, y), small().fit(sparse.csr_matrix(thin), y), thin)


@pytest.mark.parametrize("apart", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_search_on_dask_finds_what_it_finds_in_memory(client, problem, apart):
    X, y = problem
    search = kernel_search(
        [0.1, 10.0],
        gammas=[0.5, 1.0],
        n_landmarks=40,
        landmarks="uniform",  # of two rows equally near to a centre, rounding chooses
        tol=1e-8,
        map_per_fold=apart,
        random_state=0,
    )
    found = clone(search).fit(da.from_array(X, chunks=(400, 6)), da.from_array(y, chunks=400))
    expected = clone(search).fit(X, y)
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-4)
    assert (found.C_, found.gamma_) == (expected.C_, pytest.approx(expected.gamma_))
    np.testing.assert_allclose(found.held_out_scores_, expected.held_out_scores_, atol=1e-3)


def test_predictions_are_lazy(client, problem):
    X, y = problem
    rows, frame = da.from_array(X, chunks=(400, 2)), dd.from_pandas(pd.DataFrame(X), npartitions=3)
    for labels in (y, np.where(X[:, 0] > 1, 2, y)):
        model = small(tol=1e-4).fit(X, labels)
        for method in ("decision_function", "predict"):
            expected = getattr(model, method)(X)
            for given in (rows, frame):
                lazy = getattr(model, method)(given)
                assert isinstance(lazy, da.Array)
                assert lazy.dtype == expected.dtype
                np.testing.assert_allclose(lazy.compute(), expected, atol=1e-12)


def test_partitions_of_one_class_or_no_row_are_fine(client, problem):
    X, y = problem
    order = np.argsort(y, kind="stable")
    frame = dd.from_pandas(pd.DataFrame(X[order]), npartitions=6)
    empty = dd.concat([frame, frame.partitions[[0]][frame.partitions[[0]][0] > 1e9]])
    model = small(tol=1e-4).fit(empty, y[order])
    np.testing.assert_allclose(
        model.objective_, small(tol=1e-4).fit(X[order], y[order]).objective_, rtol=1e-4
    )
    assert model.decision_function(empty).compute().shape == y.shape


def test_the_standardisation_is_that_of_all_rows_together(client, problem):
    X, _ = problem
    X = np.column_stack([X, np.full(len(X), 0.1), 1e9 + X[:, 0]])
    rows = as_rows(client, X)
    for weight in (np.ones(len(X)), np.arange(1.0, len(X) + 1)):
        with np.errstate(invalid="ignore"):  # a variance below zero, by rounding
            expected = StandardScaler().fit(X, sample_weight=weight / weight.max())
        found = rows.standard_scaler(weight)
        for name in ("mean_", "scale_"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-8)


def test_the_operator_multiplies_as_one_in_memory(client, problem):
    X, _ = problem
    rows, rng = as_rows(client, X, chunk=100), np.random.default_rng(0)
    np.testing.assert_array_equal(rows[[700, 3, 3, 1499]], X[[700, 3, 3, 1499]])
    np.testing.assert_array_equal(rows[350:720], X[350:720])
    mapped = NystroemFeatures(30, gamma=1e-3, random_state=0).fit(X)
    features = mapped.transform(X)
    for limit in (None, 100_000):
        operator, _ = rows.operator(mapped.map, max_memory=limit)
        W, G = rng.normal(size=(mapped.rank_, 3)), rng.normal(size=(len(X), 3))
        np.testing.assert_allclose(operator.scores(W), features @ W, rtol=1e-9, atol=1e-7)
        np.testing.assert_allclose(operator.pullback(G), features.T @ G, rtol=1e-9, atol=1e-7)
        index = rng.integers(0, len(X), 50)
        np.testing.assert_allclose(operator.rows(index), features[index], atol=1e-7)
        few = operator.restricted(np.arange(90, 210, 2))
        if few is not None:
            np.testing.assert_allclose(few.scores(W), features[90:210:2] @ W, atol=1e-7)


def test_many_pieces_are_summed_on_workers(client, problem, monkeypatch):
    monkeypatch.setattr("aucmax.distributed.dask_operator.FAN_IN", 2)
    monkeypatch.setattr("aucmax.distributed.dask_rows._PIECE_SHARE", 1e-6)
    X, _ = problem
    mapped = NystroemFeatures(30, gamma=1e-3, random_state=0).fit(X)
    operator, _ = as_rows(client, X, chunk=100).operator(mapped.map)
    G = np.random.default_rng(0).normal(size=(len(X), 2))
    assert len(operator._pieces) > 8
    np.testing.assert_allclose(operator.pullback(G), mapped.transform(X).T @ G, rtol=1e-9, atol=1e-7)


@pytest.fixture
def processes():
    """Two workers in processes of their own."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Dask tells of the dead worker
def test_a_worker_lost_in_the_middle_of_a_fit_is_survived(processes, problem, monkeypatch):
    X, y = problem
    expected = small().fit(X, y)
    victim = next(iter(processes.run(os.getpid).values()))
    calls, pullback = [0], DaskOperator.pullback

    def deadly(self, gradient):
        calls[0] += 1
        if calls[0] == 5:
            os.kill(victim, signal.SIGKILL)
        return pullback(self, gradient)

    monkeypatch.setattr(DaskOperator, "pullback", deadly)
    found = small().fit(da.from_array(X, chunks=(250, 6)), y)
    assert calls[0] > 5
    assert victim not in processes.run(os.getpid).values()
    assert_same(found, expected, X)


@pytest.mark.slow
def test_traffic_is_as_foretold(processes):
    """Bytes that the system saw on the loopback, where each goes by way of the scheduler."""
    psutil = pytest.importorskip("psutil")
    X = np.random.default_rng(0).normal(size=(200_000, 2)).astype(np.float32)
    rows = DaskRows.checked(processes, small(), da.random.normal(size=X.shape, chunks=(50_000, 2)))
    mapped = NystroemFeatures(20, gamma=1.0, random_state=0).fit(X[:1000])
    operator, _ = rows.operator(mapped.map)
    W, G = np.ones((mapped.rank_, 4)), np.ones((len(X), 4))
    operator.scores(W), operator.pullback(G)  # makes the pieces
    for product, given in (("scores", W), ("pullback", G)):
        passes = []
        for _ in range(5):
            before = psutil.net_io_counters(pernic=True)["lo"].bytes_sent
            getattr(operator, product)(given)
            passes.append(psutil.net_io_counters(pernic=True)["lo"].bytes_sent - before)
        seen = min(passes)  # others may be using it, too
        told = traffic_bytes(len(X), mapped.rank_, 4, len(operator._pieces), product)
        assert 0.95 < seen / (2 * told) < 1.3, (product, seen, told)


def test_workers_without_a_limit_of_memory(problem):
    X, y = problem
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, memory_limit=0, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        found = small().fit(da.from_array(X, chunks=(400, 6)), y)
    assert found.place_ in ("memory", "projected")
    expected = small().fit(X, y).decision_function(X)
    np.testing.assert_allclose(found.decision_function(X), expected, atol=1e-4)


@pytest.mark.parametrize("paused", [False, True])
def test_a_cluster_where_no_worker_works_is_named(problem, monkeypatch, paused):
    X, y = problem
    monkeypatch.setattr("aucmax.distributed.client.NO_WORKERS", 0.2)
    monkeypatch.setattr("aucmax.distributed.client._CHECK_EVERY", 0.1)
    error, words = (
        (MemoryError, "been paused for 0.2 s") if paused else (OSError, "had no worker for 0.2 s")
    )

    def pause(dask_worker):
        dask_worker.status = distributed.Status.paused

    with (
        distributed.LocalCluster(  # without a limit of memory, which would let the worker go on
            n_workers=int(paused), processes=False, memory_limit=0, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(pause)
        model = small()
        with pytest.raises(error, match=words):
            model.fit(da.from_array(X, chunks=(400, 6)), y)
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("when", ["sending", "waiting"])
def test_a_client_that_was_closed_is_named(problem, monkeypatch, when):
    X, y = problem
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster:
        client = distributed.Client(cluster)
        scores, gather = DaskOperator.scores, distributed.Client.gather

        def closed_before_sending(self, coef):
            client.close()
            return scores(self, coef)

        def closed_while_waiting(self, futures):
            self.close()
            return gather(self, futures)

        if when == "sending":
            monkeypatch.setattr(DaskOperator, "scores", closed_before_sending)
        else:
            monkeypatch.setattr(distributed.Client, "gather", closed_while_waiting)
        model = small()
        closed = pytest.raises(OSError, match="The Dask client was closed during the fit")
        with client.as_current(), closed:
            model.fit(da.from_array(X, chunks=(400, 6)), y)
    assert not hasattr(model, "classes_")


def test_a_scheduler_that_does_not_answer_is_named():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(OSError, match=rf"No Dask scheduler answers at 'tcp://127.0.0.1:{port}'"):
        connect(f"tcp://127.0.0.1:{port}", timeout=1)


def test_a_fit_without_a_client_says_what_to_do(problem, monkeypatch):
    X, y = problem
    monkeypatch.setattr(distributed, "get_client", no_client)
    with pytest.raises(ValueError, match=r"no Dask client to compute it with: make one first"):
        small().fit(da.from_array(X), y)


def no_client():
    raise ValueError("No clients found")


def test_what_is_wrong_is_told_with_its_partition(client, problem):
    X, y = problem
    rows = da.from_array(X, chunks=(500, 6))
    holes = X.copy()
    holes[700, 3] = np.nan
    with pytest.raises(ValueError, match=r"Partition 1 of X: .*NaN in column 3 \(row 200"):
        small().fit(da.from_array(holes, chunks=(500, 6)), y)
    narrow = rows.map_blocks(lambda b: b[:, :5] if b[0, 0] == X[500, 0] else b, meta=np.empty((0, 0)))
    with pytest.raises(ValueError, match=r"Partition 1 of X has the shape \(500, 5\)"):
        small().fit(narrow, y)
    frame = dd.from_pandas(pd.DataFrame(X, columns=[*"abcdef"]), npartitions=2)
    other = frame.map_partitions(
        lambda p: p.rename(columns={"a": "z"}) if p.index[0] else p,
        meta=frame._meta,
        enforce_metadata=False,
    )
    with pytest.raises(ValueError, match=r"Partition 1 of X has the columns \['z', 'b'"):
        small().fit(other, y)
    with pytest.raises(ValueError, match=r"y has 1499 entries for 1500 rows"):
        small().fit(rows, y[1:])
    with pytest.raises(ValueError, match=r"LinearAUCClassifier does not fit Dask collections"):
        LinearAUCClassifier().fit(rows, y)
    with pytest.raises(ValueError, match=r'solver="sgd" reads rows in random order'):
        small(solver="sgd").fit(rows, y)
    with pytest.raises(ValueError, match=r"X has 4 columns, but KernelAUCClassifier was fitted on 6"):
        small(tol=1e-3).fit(X, y).predict(rows[:, :4])


def test_workers_that_run_out_of_memory_are_told_of_in_a_sentence(client, problem, monkeypatch):
    X, y = problem

    def die(*_):
        raise distributed.KilledWorker("block-1", SimpleNamespace(address="tcp://there"), 3)

    monkeypatch.setattr(distributed.Client, "gather", die)
    with pytest.raises(MemoryError, match=r"when out of memory: use smaller partitions"):
        small().fit(da.from_array(X, chunks=(500, 6)), y)
    model = small()
    monkeypatch.setattr(distributed.Client, "gather", lost)
    with pytest.raises(OSError, match=r"was lost during the fit"):
        model.fit(da.from_array(X, chunks=(500, 6)), y)
    assert not hasattr(model, "classes_")


def lost(*_):
    raise distributed.comm.CommClosedError("gone")
