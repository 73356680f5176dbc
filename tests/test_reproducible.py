"""What is promised of a fit of the same rows: in another order, by other threads, watched or not."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from aucmax import (
    KernelAUCClassifier,
    KernelRankSVM,
    LinearAUCClassifier,
    NystroemFeatures,
    OAMClassifier,
    SGDAUCClassifier,
    SOLAMClassifier,
)
from aucmax.features.landmarks import lloyd
from aucmax.rows import content_order as module
from aucmax.rows.interface import as_rows
from tests.searches import kernel_search, linear_search


def content_order(X, *more):
    return module.content_order(as_rows(X), *more)


def row_keys(X):
    return module.row_keys(as_rows(X))


@pytest.fixture(scope="module")
def problem():
    return make_classification(300, 6, n_informative=4, weights=[0.8], flip_y=0.05, random_state=3)


MODELS = {
    "auto": KernelAUCClassifier(effort=0.3, random_state=0),
    "paper": KernelAUCClassifier(preset="paper", n_landmarks=50, random_state=0),
    "class-kmeans": KernelAUCClassifier(
        preset="paper", n_landmarks=50, landmarks="class-kmeans", random_state=0
    ),
    "uniform": KernelAUCClassifier(preset="paper", n_landmarks=50, landmarks="uniform", random_state=0),
    "kernel sgd": KernelAUCClassifier(
        preset="paper", n_landmarks=50, solver="sgd", max_iter=2, random_state=0
    ),
    "linear": LinearAUCClassifier(),
    "sgd": SGDAUCClassifier(epochs=2, random_state=0),
    "oam": OAMClassifier(random_state=0),
    "solam": SOLAMClassifier(zeta=0.05, epochs=2, random_state=0),
    "rank svm": KernelRankSVM(subsample=0.5, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_order_of_rows_in_memory_does_not_matter_to_the_last_bit(problem, name):
    X, y = problem
    order = np.random.default_rng(0).permutation(len(y))
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    weighted = {} if name in ("sgd", "oam", "solam") else {"sample_weight": weight}
    shuffled = {key: value[order] for key, value in weighted.items()}
    scores = clone(MODELS[name]).fit(X, y, **weighted).decision_function(X)
    again = clone(MODELS[name]).fit(X[order], y[order], **shuffled).decision_function(X)
    np.testing.assert_array_equal(scores, again)


@pytest.mark.parametrize(
    "model",
    [kernel_search([0.1, 1.0], n_landmarks=40, random_state=0), linear_search()],
    ids=["kernel", "linear"],
)
def test_a_search_over_the_same_folds_does_not_depend_on_the_order_either(problem, model):
    X, y = problem
    order = np.random.default_rng(0).permutation(len(y))
    place = np.argsort(order)
    folds = list(StratifiedKFold(3).split(X, y))
    moved = [(place[train], place[test]) for train, test in folds]
    first = clone(model).set_params(cv=folds).fit(X, y)
    second = clone(model).set_params(cv=moved).fit(X[order], y[order])
    np.testing.assert_array_equal(first.scores_, second.scores_)
    np.testing.assert_array_equal(first.decision_function(X), second.decision_function(X))
    np.testing.assert_array_equal(first.held_out_scores_[order], second.held_out_scores_)


def test_landmarks_of_the_transformer_do_not_depend_on_the_order(problem):
    X, y = problem
    order = np.random.default_rng(0).permutation(len(y))
    make = NystroemFeatures(40, landmarks="class-kmeans", random_state=0)
    first, second = clone(make).fit(X, y), clone(make).fit(X[order], y[order])
    np.testing.assert_array_equal(first.landmarks_, second.landmarks_)


@pytest.mark.parametrize("name", ["auto", "paper", "linear", "kernel sgd"])
def test_the_number_of_threads_changes_rounding_only(problem, name):
    X, y = problem
    many = clone(MODELS[name]).fit(X, y)
    with threadpool_limits(1):
        one = clone(MODELS[name]).fit(X, y)
    assert getattr(one, "settings_", None) is None or _plain(one) == _plain(many)
    scores = many.decision_function(X)
    np.testing.assert_allclose(one.decision_function(X), scores, atol=1e-6 * np.ptp(scores))


def _plain(model):
    return {name: value for name, value in model.settings_.items() if name != "gamma"}


def test_what_is_shown_does_not_change_what_is_computed(problem, capsys):
    X, y = problem
    for name in ("auto", "paper", "kernel sgd", "linear"):
        scores = [
            clone(MODELS[name]).set_params(verbose=verbose).fit(X, y).decision_function(X)
            for verbose in (0, 1)
        ]
        np.testing.assert_array_equal(*scores)
    assert capsys.readouterr().err


def test_keys_are_those_of_the_values_whatever_holds_them():
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, (500, 7)).astype(np.float32)
    X[0] = -0.0
    keys = row_keys(X)
    np.testing.assert_array_equal(row_keys(X.astype(np.float64)), keys)
    np.testing.assert_array_equal(row_keys(np.asfortranarray(X)), keys)
    explicit = sparse.csr_matrix(X)
    explicit.data[:5] = 0.0
    np.testing.assert_array_equal(row_keys(explicit), row_keys(explicit.toarray()))
    for made in (np.unique(X, axis=0), np.eye(300)):
        assert np.unique(np.stack(row_keys(made)), axis=1).shape[1] == len(made)


def test_the_order_does_not_depend_on_columns_of_measurements_nor_on_other_rows():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(200, 3)), rng.integers(0, 5, (200, 2))])
    order, columns = content_order(X), rng.permutation(5)
    np.testing.assert_array_equal(content_order(X[:, columns]), order)
    some = np.sort(rng.permutation(200)[:90])
    np.testing.assert_array_equal(some[content_order(X[some])], order[np.isin(order, some)])


def test_columns_that_are_alike_do_not_make_the_order_of_rows_matter():
    X = np.eye(40)  # all columns have one entry
    rows = np.random.default_rng(0).permutation(40)
    np.testing.assert_array_equal(X[content_order(X)], X[rows][content_order(X[rows])])


def test_rows_that_differ_in_class_or_weight_alone_have_a_place_each():
    X, codes = np.zeros((4, 2)), np.array([1, 0, 1, 0])
    weight = np.array([2.0, 1.0, 1.0, 2.0])
    assert content_order(X, codes, weight).tolist() == [1, 3, 2, 0]


@pytest.mark.parametrize("kind", [np.array, sparse.csr_matrix], ids=["dense", "csr"])
def test_centres_are_those_of_scikit_learn_from_the_same_start(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6)) * (rng.random((2000, 6)) < 0.5) + 1e4 * (kind is np.array)
    weight, start = rng.random(2000), X[:30]
    expected = KMeans(30, init=start, n_init=1, max_iter=10, algorithm="lloyd", tol=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected.fit(kind(X), sample_weight=weight)
    np.testing.assert_allclose(lloyd(kind(X), start, weight), expected.cluster_centers_, atol=1e-9)


def test_a_centre_that_no_row_is_nearest_to_stays():
    X, start = np.array([[0.0], [1.0]]), np.array([[0.0], [1.0], [50.0]])
    assert lloyd(X, start, np.ones(2)).tolist() == [[0.0], [1.0], [50.0]]
