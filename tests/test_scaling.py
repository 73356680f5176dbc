"""Scalers by ranks and by a metric: against an obvious oracle, and through all that carries a model."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_moons
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

import aucmax.features.scalers as module
from aucmax import (
    KernelAUCClassifier,
    LinearAUCClassifier,
    SGDAUCClassifier,
    load_model,
    save_model,
)
from aucmax.features.scalers import MetricScaler, QuantileScaler
from aucmax.fitting import kernel_fit
from aucmax.fitting.checkpoint import Checkpoint
from aucmax.fitting.machines import LinearMachine
from aucmax.fitting.scaling import scale_rows
from aucmax.persistence.onnx_export import to_onnx
from aucmax.rows.stored import FileRows, StoredRows
from tests.searches import kernel_search

DIAGONAL = np.array([2.0, 0.5])
MATRIX = np.array([[1.0, 0.5, -1.0], [0.0, 2.0, 0.3]])


def scores_of(column, weight=None):
    """Normal scores of mid-ranks, standardised: one value after the other."""
    weight = np.ones(len(column)) if weight is None else np.asarray(weight)
    out = np.empty(len(column))
    for i, value in enumerate(column):
        below, own = weight[column < value].sum(), weight[column == value].sum()
        out[i] = ndtri(min(max((below + own / 2) / weight.sum(), 0.001), 0.999))
    out -= np.average(out, weights=weight)
    return out / np.sqrt(np.average(out**2, weights=weight))


def counts(rng, n):
    """Half of the values 0, the others of all sizes."""
    return np.where(rng.random(n) < 0.5, 0.0, rng.lognormal(size=n))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def problem():
    X, y = make_moons(300, noise=0.3, random_state=0)
    X = np.exp(X * [1.0, 2.0])
    X[::3, 1] = 0.0
    return X.astype(np.float32).astype(np.float64), y


def kernel(**given):
    return KernelAUCClassifier(
        preset="paper",
        **{"standardize": "quantile", "n_landmarks": 50, "C": 1.0, "random_state": 0, **given},
    )


def with_metric(model, metric):
    """The model with rows, and landmarks, times a metric."""
    model.scaler_ = MetricScaler(model.scaler_, metric)
    points = model.feature_map_.landmarks_
    model.feature_map_.landmarks_ = points * metric if metric.ndim == 1 else points @ metric
    return model


@parametrize_with_checks([QuantileScaler()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# Ranks


@pytest.mark.parametrize("weighted", [False, True])
def test_few_values_have_their_scores(weighted, rng):
    X = np.column_stack(
        [rng.normal(size=60), rng.integers(0, 4, 60), rng.exponential(size=60).round(1)]
    )
    weight = rng.random(60) if weighted else None
    found = QuantileScaler().fit(X, sample_weight=weight).transform(X)
    expected = np.column_stack([scores_of(column, weight) for column in X.T])
    np.testing.assert_allclose(found, expected, atol=2e-9)


def test_many_values_have_nearly_their_scores(rng):
    X = np.column_stack([rng.normal(size=2000), counts(rng, 2000), -counts(rng, 2000)])
    scaler = QuantileScaler().fit(X)
    found = scaler.transform(X)
    assert scaler.knots_.shape[0] <= 200
    assert scaler.knots_.shape == scaler.levels_.shape
    assert np.isin(scaler.knots_[:, 1], X[:, 1]).all()
    expected = np.column_stack([scores_of(column) for column in X.T])
    away = np.abs(found - expected)
    assert away.mean() < 0.01
    assert away[np.abs(expected) < 2].max() < 0.05
    np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=1e-8)
    np.testing.assert_allclose(found.std(axis=0), 1.0, atol=1e-8)


def test_a_heavy_value_is_one_knot_with_its_neighbours(rng):
    X = counts(rng, 5000)[:, None]
    scaler = QuantileScaler(20).fit(X)
    knots = np.unique(scaler.knots_)
    assert knots.size <= 20
    assert (scaler.knots_ == 0).sum() == 1
    assert knots[1] == X[X > 0].min()
    order = np.argsort(X[:, 0])
    least = [order[0], order[(X == 0).sum()]]  # 0, and the next
    np.testing.assert_allclose(scaler.transform(X[least])[:, 0], scores_of(X[:, 0])[least], atol=0.03)


def test_levels_rise_with_values(rng):
    X = np.column_stack([rng.standard_cauchy(3000), counts(rng, 3000), rng.poisson(1.0, 3000)])
    scaler = QuantileScaler(50).fit(X)
    assert (np.diff(scaler.knots_, axis=0) >= 0).all()
    assert (np.diff(scaler.levels_, axis=0) >= 0).all()
    order = np.sort(np.concatenate([X, X + 0.01]), axis=0)
    assert (np.diff(scaler.transform(order), axis=0) >= 0).all()


def test_a_constant_column_becomes_zero():
    X = np.column_stack([np.full(9, 7.0), np.arange(9)])
    scaler = QuantileScaler().fit(X)
    np.testing.assert_array_equal(scaler.transform(X + 3)[:, 0], 0.0)
    np.testing.assert_array_equal(scaler.inverse_transform(scaler.transform(X))[:, 0], 7.0)
    np.testing.assert_array_equal(QuantileScaler().fit(X[:, :1]).transform(X[:, :1]), 0.0)


def test_values_beyond_the_range_are_its_ends(rng):
    X = np.column_stack([rng.normal(size=500), rng.integers(0, 3, 500)])
    scaler = QuantileScaler().fit(X)
    ends = scaler.transform([X.min(axis=0), X.max(axis=0)])
    np.testing.assert_array_equal(scaler.transform([X.min(axis=0) - 9, X.max(axis=0) + 9]), ends)
    np.testing.assert_array_equal(ends, scaler.levels_[[0, -1]])


def test_values_close_together_or_far_apart_have_finite_levels():
    X = np.array([[0.0, -1.7e308], [5e-324, 0.0], [1e-310, 1.0], [1.0, 1.7e308]])
    assert np.isfinite(QuantileScaler().fit(X).transform(X)).all()


@pytest.mark.parametrize("n_knots", [7, 200])
def test_weights_are_repetitions(n_knots, rng):
    X = np.column_stack([rng.normal(size=300), counts(rng, 300)])
    times = rng.integers(0, 4, 300)
    weighted = QuantileScaler(n_knots).fit(X, sample_weight=times / 7)
    repeated = QuantileScaler(n_knots).fit(np.repeat(X, times, axis=0))
    np.testing.assert_array_equal(weighted.knots_, repeated.knots_)
    np.testing.assert_allclose(weighted.levels_, repeated.levels_, atol=2e-9)


def test_order_does_not_matter(rng):
    X, weight = np.column_stack([rng.normal(size=800), counts(rng, 800)]).round(2), rng.random(800)
    order = rng.permutation(800)
    one = QuantileScaler(40).fit(X, sample_weight=weight)
    other = QuantileScaler(40).fit(X[order], sample_weight=3 * weight[order])
    np.testing.assert_array_equal(one.knots_, other.knots_)
    np.testing.assert_allclose(one.levels_, other.levels_, atol=2e-9)


def test_float32_stays_and_gives_the_same(rng):
    X = np.column_stack([rng.normal(size=400), counts(rng, 400)]).astype(np.float32)
    one, other = QuantileScaler().fit(X), QuantileScaler().fit(X.astype(np.float64))
    np.testing.assert_array_equal(one.knots_, other.knots_)
    np.testing.assert_array_equal(one.levels_, other.levels_)
    assert one.transform(X).dtype == one.inverse_transform(X).dtype == np.float32
    assert one.transform(X.astype(int)).dtype == np.float64
    np.testing.assert_array_equal(one.transform(X), other.transform(X.astype(float)).astype(np.float32))


def test_inverse(rng):
    X = np.column_stack([rng.normal(size=900), counts(rng, 900)])
    scaler = QuantileScaler().fit(X)
    low, high = np.quantile(X, [0.01, 0.99], axis=0)
    inside = np.clip(X, low, high)
    np.testing.assert_allclose(scaler.inverse_transform(scaler.transform(inside)), inside, atol=1e-6)


def test_names_go_through():
    frame = pd.DataFrame({"a": [1.0, 2.0, 5.0], "b": [0.0, 0.0, 1.0]})
    out = QuantileScaler().set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == ["a", "b"]


def test_what_is_refused():
    X = np.eye(3)
    with pytest.raises(ValueError, match="standardize=True"):
        QuantileScaler().fit(sparse.csr_array(X))
    with pytest.raises(ValueError, match="standardize=True"):
        QuantileScaler().fit(X).transform(sparse.csr_array(X))
    with pytest.raises(ValueError, match="n_knots must be"):
        QuantileScaler(1).fit(X)
    with pytest.raises(ValueError, match="2 columns, but the scaler was fitted to 3"):
        QuantileScaler().fit(X).inverse_transform(X[:, :2])
    with pytest.raises(NotFittedError):
        QuantileScaler().inverse_transform(X)


def test_of_many_rows_every_kth_is_taken(monkeypatch, rng):
    X, weight = rng.normal(size=(1000, 2)), rng.integers(0, 3, 1000).astype(float)
    monkeypatch.setattr(module, "SAMPLE_ROWS", 400)
    present = np.flatnonzero(weight)
    assert 400 < present.size <= 800
    for given, expected in (
        ((X,), (X[::3],)),
        ((X, None, weight), (X[present[::2]], None, weight[present[::2]])),
    ):
        many, few = QuantileScaler().fit(*given), QuantileScaler().fit(*expected)
        np.testing.assert_array_equal(many.knots_, few.knots_)
        np.testing.assert_array_equal(many.levels_, few.levels_)


# A metric


@pytest.mark.parametrize("inner", [None, StandardScaler(), QuantileScaler()])
@pytest.mark.parametrize("metric", [DIAGONAL, MATRIX])
def test_a_metric_multiplies_scaled_rows(inner, metric, rng):
    X = rng.normal(size=(50, 2))
    rows = X if inner is None else inner.fit(X).transform(X)
    scaler = MetricScaler(inner, metric)
    check_is_fitted(scaler)
    assert scaler.fit() is scaler
    found = scaler.transform(X)
    np.testing.assert_allclose(found, rows * metric if metric.ndim == 1 else rows @ metric)
    assert (scaler.n_features_in_, scaler.n_features_out_) == (2, found.shape[1])
    assert scaler.transform(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(scaler.inverse_transform(found), X, atol=1e-6)


def test_a_metric_of_sparse_rows():
    X = sparse.random_array((20, 2), density=0.5, format="csr", rng=np.random.default_rng(0))
    inner = StandardScaler(with_mean=False).fit(X)
    scaler = MetricScaler(inner, DIAGONAL)
    found = scaler.transform(X)
    assert sparse.issparse(found)
    np.testing.assert_allclose(found.toarray(), inner.transform(X).toarray() * DIAGONAL)
    np.testing.assert_allclose(scaler.inverse_transform(found).toarray(), X.toarray())
    with pytest.raises(ValueError, match="sparse rows dense"):
        MetricScaler(inner, MATRIX).transform(X)
    with pytest.raises(ValueError, match="is for 2 columns, and the rows have 3"):
        MetricScaler(None, DIAGONAL).transform(np.eye(3))


def test_a_column_of_factor_0_comes_back_as_its_mean(rng):
    X = rng.normal(size=(50, 2)) + 5
    scaler = MetricScaler(StandardScaler().fit(X), np.array([1.0, 0.0]))
    back = scaler.inverse_transform(scaler.transform(X))
    np.testing.assert_allclose(back, np.column_stack([X[:, 0], np.full(50, X[:, 1].mean())]))


# Rows elsewhere


@pytest.fixture
def stored(tmp_path, problem):
    X, _ = problem
    X.tofile(tmp_path / "rows")
    return StoredRows(FileRows(tmp_path / "rows", X.shape, X.dtype))


def test_rows_in_a_file_are_those_in_memory(stored, problem, monkeypatch, rng):
    X, _ = problem
    weight = rng.integers(0, 3, len(X)).astype(float)
    for rows in (len(X), 100):
        monkeypatch.setattr(module, "SAMPLE_ROWS", rows)
        for own in (None, weight):
            here = QuantileScaler().fit(X, sample_weight=own)
            there = QuantileScaler().fit(stored, sample_weight=own)
            np.testing.assert_array_equal(there.knots_, here.knots_)
            np.testing.assert_array_equal(there.levels_, here.levels_)
    keep = np.arange(5, 300, 7)
    for scaler in (here, MetricScaler(here, DIAGONAL), MetricScaler(StandardScaler().fit(X), MATRIX)):
        expected, scaled = scaler.transform(X), scale_rows(scaler, stored)
        assert scaled.shape == expected.shape
        np.testing.assert_allclose(scaled[10:50], expected[10:50], rtol=1e-12)
        np.testing.assert_allclose(scaled.take(keep)[:], expected[keep], rtol=1e-12)
        assert scaled.astype(np.float32)[:5].dtype == np.float32
        assert scaled[:0].shape == (0, expected.shape[1])
    twice = stored.scaled(StandardScaler().fit(X)).scaled(MetricScaler(None, MATRIX))
    np.testing.assert_allclose(twice[:], expected, atol=1e-12)


def test_a_fit_to_a_file_is_that_in_memory(tmp_path, problem):
    X, y = problem
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=y)
    frame.to_csv(tmp_path / "table.csv", index=False)
    found = kernel().fit(tmp_path / "table.csv", "y")
    expected = kernel().fit(frame[["a", "b"]], y)
    np.testing.assert_allclose(found.scaler_.levels_, expected.scaler_.levels_, atol=2e-9)
    np.testing.assert_allclose(
        found.decision_function(frame[["a", "b"]]),
        expected.decision_function(frame[["a", "b"]]),
        atol=1e-4,
    )


def test_rows_on_workers_are_those_here(problem):
    distributed, da = pytest.importorskip("distributed"), pytest.importorskip("dask.array")
    X, y = problem
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        found = kernel().fit(da.from_array(X, chunks=(70, 2)), y)
        from aucmax.distributed import DaskRows

        rows = DaskRows.checked(client, kernel(), da.from_array(X, chunks=(70, 2)))
        scaler = MetricScaler(found.scaler_, MATRIX)
        scaled = rows.scaled(scaler)
        assert scaled.shape == (300, 3)
        np.testing.assert_allclose(scaled[5:200], scaler.transform(X)[5:200])
        assert scaled.astype(np.float32).take(np.arange(9))[:].shape == (9, 3)
    expected = kernel().fit(X, y)
    np.testing.assert_array_equal(found.scaler_.knots_, expected.scaler_.knots_)
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X), atol=1e-4)


# Classifiers, and what carries them


def test_monotone_changes_of_columns_change_nothing(problem):
    X, y = problem
    model = kernel(standardize="quantile").fit(X, y)
    other = kernel(standardize="quantile").fit(X**3, y)
    # Equal at the knots, which are quantiles, but for the rows between them in mean and variance.
    np.testing.assert_allclose(model.scaler_.levels_, other.scaler_.levels_, atol=0.05)
    assert np.corrcoef(model.decision_function(X), other.decision_function(X**3))[0, 1] > 0.99


def test_each_fold_has_its_own_map(problem):
    X, y = problem
    search = kernel_search(
        standardize="quantile", map_per_fold=True, Cs=2, n_landmarks=20, random_state=0
    )
    assert isinstance(search.fit(X, y).scaler_, QuantileScaler)


@pytest.mark.parametrize("model", [LinearAUCClassifier(), SGDAUCClassifier()])
def test_linear_classifiers_take_no_ranks(model, problem):
    with pytest.raises(ValueError, match="standardize"):
        clone(model).set_params(standardize="quantile").fit(*problem)


def test_linear_scores_need_a_linear_scaler():
    with pytest.raises(TypeError, match="need a StandardScaler"):
        LinearMachine.of_scaled(np.ones((2, 1)), np.zeros(1), MetricScaler(None, DIAGONAL))


def test_a_checkpoint_restores_scalers(tmp_path, problem):
    X, _ = problem
    ranks = QuantileScaler().set_output(transform="default").fit(X)
    made = {
        "ranks": (ranks, QuantileScaler),
        "metric": (MetricScaler(ranks, MATRIX), lambda: MetricScaler(QuantileScaler(), None)),
        "bare": (MetricScaler(None, DIAGONAL), lambda: MetricScaler(None, None)),
    }
    first = Checkpoint(tmp_path / "fit.npz")
    for name, (scaler, blank) in made.items():
        assert first.fitted(name, lambda scaler=scaler: scaler, blank) is scaler
    first.write()
    again = Checkpoint(tmp_path / "fit.npz")
    for name, (scaler, blank) in made.items():
        found = again.fitted(name, lambda: pytest.fail("it was there"), blank)
        assert type(found) is type(scaler)
        np.testing.assert_array_equal(found.transform(X), scaler.transform(X))


class StoppedError(Exception):
    """Stands for a signal."""


def test_a_stopped_fit_goes_on_with_its_map(tmp_path, problem, monkeypatch):
    model = kernel(checkpoint=tmp_path / "fit.npz")
    with monkeypatch.context() as patch:
        patch.setattr(kernel_fit, "_solve_newton", lambda *_: (_ for _ in ()).throw(StoppedError))
        patch.setattr(Checkpoint, "close", lambda self: self.write())
        with pytest.raises(StoppedError):
            model.fit(*problem)
    monkeypatch.setattr(QuantileScaler, "fit", lambda *_, **__: pytest.fail("it was there"))
    assert model.fit(*problem).scaler_.knots_.shape[1] == 2


def assert_graph_scores_like(model, X):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    graph = to_onnx(model, X=X, input_type="float64")
    session = runtime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(["score"], {"X": X})
    expected = model.decision_function(X)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("kind", ["ranks", "diagonal", "matrix"])
def test_files_and_graphs_score_alike(kind, problem, tmp_path):
    X, y = problem
    model = kernel().fit(X, y)
    if kind != "ranks":
        with_metric(model, DIAGONAL if kind == "diagonal" else MATRIX)
    expected = model.decision_function(X)
    loaded = load_model(save_model(model, tmp_path / "one.aucmax"))
    assert type(loaded.scaler_) is type(model.scaler_)
    np.testing.assert_array_equal(loaded.decision_function(X), expected)
    assert_graph_scores_like(model, np.concatenate([X, X[:5] + 1000, X[:5] - 1000]))


def test_a_graph_of_constant_columns():
    X, y = np.ones((20, 2)), np.arange(20) % 2
    model = kernel(n_landmarks=1, landmarks=np.zeros((1, 2)), gamma=1.0)
    with pytest.warns(UserWarning, match="gives all training rows the same score"):
        model.fit(X, y)
    assert_graph_scores_like(model, X + 1)


def test_a_graph_of_a_table(problem):
    X, y = problem
    table = ColumnTransformer([("b", SimpleImputer(), [1]), ("a", "passthrough", [0])])
    model = make_pipeline(table, kernel()).fit(X, y)
    assert_graph_scores_like(model, X)
    with_metric(model[-1], DIAGONAL)
    assert_graph_scores_like(model, X)
    ranked = make_pipeline(QuantileScaler(), kernel(standardize=False)).fit(X, y)
    assert_graph_scores_like(ranked, X)
    to_onnx(ranked)  # without rows, the graph is compared on rows that are made up
