"""Odd ways to hand in valid data, and arguments whose mistakes must be named."""

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from aucmax import (
    KernelAUCClassifier,
    KernelRankSVM,
    LinearAUCClassifier,
    NystroemFeatures,
    SGDAUCClassifier,
    to_onnx,
)
from aucmax.importance import permutation_importance

RNG = np.random.default_rng(0)
X = np.where(RNG.random((60, 3)) < 0.4, 0.0, RNG.normal(size=(60, 3)))
Y = (X[:, 0] + 0.3 * RNG.normal(size=60) > 0.2).astype(int)
KERNEL = KernelAUCClassifier(preset="paper", C=1.0, n_landmarks=10, random_state=0)


def in_halves(X):
    """CSR in which each entry is there twice, at half its value."""
    whole = sparse.csr_array(X)
    parts = (np.repeat(0.5 * whole.data, 2), np.repeat(whole.indices, 2), 2 * whole.indptr)
    return sparse.csr_array(parts, shape=X.shape)


@pytest.mark.parametrize(
    "model",
    [SGDAUCClassifier(random_state=0), LinearAUCClassifier(), KERNEL, KernelRankSVM()],
    ids=lambda model: type(model).__name__,
)
def test_entries_of_a_sparse_matrix_that_come_twice_are_added(model):
    given = in_halves(X)
    kept = given.data.copy()
    scores = model.fit(given, Y).decision_function(given)
    expected = model.fit(sparse.csr_array(X), Y).decision_function(sparse.csr_array(X))
    np.testing.assert_allclose(scores, expected, atol=1e-9)
    np.testing.assert_array_equal(given.data, kept)


def test_a_lazy_frame_is_named():
    lazy = pl.DataFrame(X, schema=["a", "b", "c"]).lazy()
    for model in (KERNEL, LinearAUCClassifier(), NystroemFeatures(5)):
        with pytest.raises(TypeError, match=r"X is a polars LazyFrame.*collect"):
            model.fit(lazy, Y)
    with pytest.raises(TypeError, match=r"X is a polars LazyFrame.*collect"):
        LinearAUCClassifier().fit(X, Y).decision_function(lazy)


@pytest.mark.parametrize("path", [0, 1.5, b"file", {}, np.array([1.0])])
def test_a_checkpoint_that_is_no_path_is_named(path):
    with pytest.raises(TypeError, match="checkpoint must be the path of a file or None; got "):
        LinearAUCClassifier(checkpoint=path).fit(X, Y)


@pytest.mark.parametrize("model", [KERNEL, KernelRankSVM()], ids=lambda model: type(model).__name__)
def test_sparse_rows_for_a_model_of_centred_ones_are_refused_by_name(model):
    fitted = model.fit(X, Y)
    with pytest.raises(ValueError, match=r"X is sparse, and the model was fitted to dense rows"):
        fitted.decision_function(sparse.csr_array(X))


@pytest.mark.parametrize("landmarks", [np.array([]), 1.5, None, [[1.0, 2.0], [3.0]], [["a", "b", "c"]]])
def test_landmarks_that_are_no_table_are_named(landmarks):
    for model in (NystroemFeatures(landmarks=landmarks), KERNEL.__class__(landmarks=landmarks)):
        with pytest.raises((TypeError, ValueError), match="landmarks"):
            model.fit(X, Y)


def test_permutation_importance_needs_rows():
    with pytest.raises(ValueError, match="X must give rows"):
        permutation_importance(KERNEL.fit(X, Y), None, Y)


def test_scores_that_are_nothing_but_rounding_do_not_keep_a_graph_from_being_made():
    pytest.importorskip("onnxruntime")
    rows = np.full((55, 1), -0.3)
    model = KernelRankSVM(kernel="polynomial", C=1.0, tol=1e-9).fit(rows, np.arange(55) % 4 == 0)
    assert to_onnx(model, X=rows, input_type="float64").graph.output[0].name == "score"


def test_rows_that_a_graph_cannot_be_compared_on_are_named():
    pytest.importorskip("onnxruntime")
    model = LinearAUCClassifier().fit(X, Y)
    for rows in (np.full((4, 3), "text"), [[1.0], [2.0, 3.0]], pl.DataFrame({"a": [[1.0]]})):
        with pytest.raises((TypeError, ValueError), match=r"\bX\b"):
            to_onnx(model, X=rows)
