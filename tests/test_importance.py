"""Which columns matter: gradients against finite differences, permutation against a plain loop."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.tree import DecisionTreeClassifier

from aucmax import (
    KernelAUCClassifier,
    KernelRankSVM,
    LinearAUCClassifier,
    SGDAUCClassifier,
)
from aucmax.inspection.importance import Importance, mean_squared_gradient, permutation_importance
from aucmax.metrics import roc_auc
from tests.searches import kernel_search


def rows(n=150, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.array([1.0, 10.0, 0.1, 3.0])[:d] + 5.0
    signal = np.sin(2.0 * (X[:, 0] - 5.0)) + 0.1 * (X[:, 1] - 5.0) ** 2 / 10.0
    return X, (signal + 0.2 * rng.normal(size=n) > 0.5).astype(int)


def by_differences(model, X, unit, step=1e-5):
    """The slow twin: two scorings per column."""
    squares = []
    for f in range(X.shape[1]):
        shift = np.zeros(X.shape[1])
        shift[f] = step * unit[f]
        up, down = (np.asarray(model.decision_function(X + s * shift)) for s in (1, -1))
        slope = (up - down) / (2.0 * step)
        squares.append((slope**2).mean())
    return np.array(squares)


MODELS = {
    "rbf": KernelAUCClassifier(preset="paper", n_landmarks=40, random_state=0),
    "laplacian": KernelAUCClassifier(
        preset="paper", n_landmarks=40, kernel="laplacian", random_state=0
    ),
    "two kernels": KernelAUCClassifier(
        preset="paper", n_landmarks=40, kernel="rbf+laplacian", random_state=0
    ),
    "polynomial": KernelAUCClassifier(
        preset="paper", n_landmarks=40, kernel="polynomial", random_state=0
    ),
    "linear kernel": KernelAUCClassifier(
        preset="paper", n_landmarks=40, kernel="linear", random_state=0
    ),
    "fourier": KernelAUCClassifier(
        preset="paper", n_landmarks=40, feature_map="fourier", random_state=0
    ),
    "fourier laplacian": KernelAUCClassifier(
        preset="paper", n_landmarks=40, feature_map="fourier", kernel="laplacian", random_state=0
    ),
    "searched": kernel_search(3, gammas=3, n_landmarks=40, random_state=0),
    "not standardised": KernelAUCClassifier(
        preset="paper", n_landmarks=40, standardize=False, random_state=0
    ),
    "exact": KernelRankSVM(),
    "linear": LinearAUCClassifier(),
    "linear, not standardised": LinearAUCClassifier(standardize=False, tol=1e-2),
    "stochastic": SGDAUCClassifier(random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_gradient_is_that_of_finite_differences(name):
    X, y = rows()
    model = MODELS[name].fit(X, y)
    at = X[::3] + 1e-3  # off the laplacian's kinks, which lie at landmarks
    unit = np.std(at, axis=0) if model.scaler_ is None else model.scaler_.scale_
    found = mean_squared_gradient(model, at)
    np.testing.assert_allclose(found.value, by_differences(model, at, unit), rtol=2e-4, atol=1e-12)
    assert found.names == ["0", "1", "2", "3"]
    assert found.share.sum() == pytest.approx(1.0)


def test_of_several_classes_it_is_the_mean_over_their_scores():
    X, y = rows()
    y = y + 2 * (X[:, 3] > 7)
    model = KernelAUCClassifier(preset="paper", n_landmarks=30, random_state=0).fit(X, y)
    expected = by_differences(model, X[:20] + 1e-3, model.scaler_.scale_)
    np.testing.assert_allclose(mean_squared_gradient(model, X[:20] + 1e-3).value, expected, rtol=1e-4)


def test_weights_count_rows_and_blocks_do_not_matter():
    X, y = rows(3000)
    model = KernelAUCClassifier(preset="paper", n_landmarks=300, random_state=0).fit(X, y)
    whole = mean_squared_gradient(model, X)
    halves = [mean_squared_gradient(model, part).value for part in (X[:1500], X[1500:])]
    np.testing.assert_allclose(whole.value, np.mean(halves, axis=0))
    weight = np.repeat([1.0, 0.0], 1500)
    np.testing.assert_allclose(mean_squared_gradient(model, X, sample_weight=weight).value, halves[0])
    again = [mean_squared_gradient(model, X[i::10]).value for i in range(10)]
    spread = np.std(again, axis=0, ddof=1) / np.sqrt(10)
    assert (whole.standard_error < 3.0 * spread).all()
    assert (whole.standard_error > spread / 3.0).all()


def test_sparse_rows_and_frames_give_what_arrays_do():
    X, y = rows()
    X = np.where(np.abs(X) < 2, 0.0, X)
    model = KernelAUCClassifier(preset="paper", n_landmarks=30, random_state=0).fit(
        sparse.csr_array(X), y
    )
    found = mean_squared_gradient(model, sparse.csr_array(X))
    np.testing.assert_allclose(found.value, mean_squared_gradient(model, X).value)
    frame = pl.DataFrame(X, schema=["a", "b", "c", "d"])
    model = KernelAUCClassifier(preset="paper", n_landmarks=30, random_state=0).fit(frame, y)
    assert mean_squared_gradient(model, frame).names == ["a", "b", "c", "d"]


def test_permutation_is_a_plain_loop_over_columns():
    X, y = rows(400)
    model = KernelAUCClassifier(preset="paper", n_landmarks=60, random_state=0).fit(X[:200], y[:200])
    test, truth = X[200:], y[200:]
    found = permutation_importance(model, test, truth, n_repeats=20, random_state=0)
    base, rng = roc_auc(truth, model.decision_function(test)), np.random.default_rng(1)
    for f in range(4):
        losses = []
        for _ in range(20):
            shuffled = test.copy()
            shuffled[:, f] = rng.permutation(shuffled[:, f])
            losses.append(base - roc_auc(truth, model.decision_function(shuffled)))
        error = np.hypot(found.standard_error[f], np.std(losses, ddof=1) / np.sqrt(20))
        assert abs(found.value[f] - np.mean(losses)) < 4.0 * error + 1e-9


def test_permutation_takes_weights_and_refuses_what_it_cannot_do():
    X, y = rows(200)
    model = KernelAUCClassifier(preset="paper", n_landmarks=40, random_state=0).fit(X, y)
    weight = np.where(np.arange(200) < 100, 1.0, 0.0)
    weighted = permutation_importance(model, X, y, n_repeats=1, sample_weight=weight, random_state=0)
    assert np.isfinite(weighted.value).all()
    assert np.isnan(weighted.standard_error).all()
    with pytest.raises(ValueError, match="n_repeats must be a whole number of at least 1"):
        permutation_importance(model, X, y, n_repeats=0)
    three = LinearAUCClassifier().fit(X, np.arange(200) % 3)
    with pytest.raises(ValueError, match="two classes; the model has 3"):
        permutation_importance(three, X, np.arange(200) % 3)
    with pytest.raises(ValueError, match="X must be dense"):
        permutation_importance(model, sparse.csr_array(X), y)


def test_a_model_without_a_known_gradient_is_named():
    X, y = rows()
    with pytest.raises(ValueError, match="no gradient for DecisionTreeClassifier"):
        mean_squared_gradient(DecisionTreeClassifier().fit(X, y), X)


def test_a_column_that_does_harm_has_no_share():
    importance = Importance(["a", "b"], np.array([0.2, -0.1]), np.zeros(2))
    assert importance.share.tolist() == [1.0, 0.0]
    assert importance.order.tolist() == [0, 1]
    assert Importance(["a"], np.array([-0.1]), np.zeros(1)).share.tolist() == [0.0]
