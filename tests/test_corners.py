"""Odd ways to hand in valid data, and arguments whose mistakes must be named."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone

from aucmax import (
    FourierFeatures,
    KernelAUCClassifier,
    KernelRankSVM,
    LandmarkCoverageDisplay,
    LinearAUCClassifier,
    NystroemFeatures,
    OAMClassifier,
    SGDAUCClassifier,
    to_onnx,
)
from aucmax.features.landmarks import _distinct
from aucmax.inspection.importance import mean_squared_gradient, permutation_importance
from aucmax.metrics import roc_auc, roc_auc_interval
from aucmax.metrics.cutoffs import balanced_threshold
from aucmax.metrics.evaluation import evaluate
from aucmax.metrics.thresholds import Aim
from tests.searches import fit_table, kernel_search, linear_search, table_model

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
    with pytest.raises(ValueError, match="checkpoint must be None or the path of a file; got "):
        LinearAUCClassifier(checkpoint=path).fit(X, Y)


@pytest.mark.parametrize("model", [KERNEL, KernelRankSVM()], ids=lambda model: type(model).__name__)
def test_sparse_rows_for_a_model_of_centred_ones_are_refused_by_name(model):
    fitted = model.fit(X, Y)
    with pytest.raises(ValueError, match=r"X is sparse, but the model was fitted to dense rows"):
        fitted.decision_function(sparse.csr_array(X))


@pytest.mark.parametrize("landmarks", [np.array([]), 1.5, None, [[1.0, 2.0], [3.0]], [["a", "b", "c"]]])
def test_landmarks_that_are_no_table_are_named(landmarks):
    for model in (NystroemFeatures(landmarks=landmarks), KERNEL.__class__(landmarks=landmarks)):
        with pytest.raises((TypeError, ValueError), match="landmarks"):
            model.fit(X, Y)


def test_permutation_importance_needs_rows():
    with pytest.raises(ValueError, match="X must hold rows"):
        permutation_importance(KERNEL.fit(X, Y), None, Y)


def test_scores_that_are_nothing_but_rounding_do_not_keep_a_graph_from_being_made():
    pytest.importorskip("onnxruntime")
    rows = np.full((55, 1), -0.3)
    model = KernelRankSVM(kernel="polynomial", C=1.0, tol=1e-9)
    with warnings.catch_warnings():  # whether scores are rounding or zero depends on the processor
        warnings.simplefilter("ignore")
        model.fit(rows, np.arange(55) % 4 == 0)
    assert to_onnx(model, X=rows, input_type="float64").graph.output[0].name == "score"


def test_rows_that_a_graph_cannot_be_compared_on_are_named():
    pytest.importorskip("onnxruntime")
    model = LinearAUCClassifier().fit(X, Y)
    for rows in (np.full((4, 3), "text"), [[1.0], [2.0, 3.0]], pl.DataFrame({"a": [[1.0]]})):
        with pytest.raises((TypeError, ValueError), match=r"\bX\b"):
            to_onnx(model, X=rows)


@pytest.mark.parametrize("pos_label", [[0, 1], np.array([]), np.array([1])])
def test_a_positive_label_that_is_none_is_named(pos_label):
    for measure in (roc_auc, roc_auc_interval):
        with pytest.raises(ValueError, match="pos_label must be one label of y_true; got"):
            measure(Y, X[:, 0], pos_label=pos_label)


RAGGED = [[label] * (1 + row % 2) for row, label in enumerate(Y.tolist())]


@pytest.mark.parametrize(
    "model", [KERNEL, LinearAUCClassifier(), NystroemFeatures(5, landmarks="class-kmeans")]
)
def test_labels_that_are_lists_are_named(model):
    with pytest.raises(ValueError, match=r"\by must hold one label per row"):
        model.fit(X, RAGGED)


def test_lists_in_place_of_flags_are_named():
    with pytest.raises(ValueError, match="positive must hold true or false for each row"):
        evaluate(RAGGED, X[:, 0])


def test_labels_of_a_transformer_are_checked_where_they_are_used():
    labels = np.where(Y == 1, "a", "b").astype(object)
    labels[3] = None
    with pytest.raises(ValueError, match="row 3 has no label"):
        NystroemFeatures(5, landmarks="class-kmeans").fit(X, labels)
    with pytest.raises(ValueError, match="row 3 has no label"):
        LandmarkCoverageDisplay.from_estimator(KERNEL.fit(X, Y), X, labels)


@pytest.mark.parametrize("text", [1.5, None, ["youden"], 1j])
def test_an_aim_is_parsed_from_text_alone(text):
    with pytest.raises(TypeError, match="aim must be text such as"):
        Aim.parse(text)


def test_importances_of_sparse_rows_and_of_extreme_ones_are_named():
    fitted = KERNEL.fit(X, Y)
    with pytest.raises(ValueError, match="X is sparse, but the model was fitted to dense rows"):
        mean_squared_gradient(fitted, sparse.csr_array(X))
    extreme = X.copy()
    extreme[5] = 1.7e308
    with pytest.raises(ValueError, match=r"The gradient at row \d+ of X is not finite"):
        mean_squared_gradient(fitted, extreme)


@pytest.mark.parametrize(
    "rows",
    [
        np.ma.MaskedArray(X, mask=X > 1),
        X + 1j,
        sparse.csr_array(X + 1j),
        sparse.csr_array((60, 10**9)),
        np.ones((4, 2)),
    ],
    ids=["masked", "complex", "complex sparse", "wide", "narrow"],
)
def test_a_graph_is_compared_on_rows_that_the_model_takes(rows):
    pytest.importorskip("onnxruntime")
    with pytest.raises(ValueError, match=r"\bX\b"):
        to_onnx(LinearAUCClassifier().fit(X, Y), X=rows)


@pytest.mark.parametrize("C", [5e-324, 1e300])
def test_the_smallest_and_the_largest_cost_are_refused_by_name(C):
    with pytest.raises(ValueError, match=r"\bC\b"):
        LinearAUCClassifier(C=C).fit(X, Y)


@pytest.mark.parametrize(
    "model", [LinearAUCClassifier(), KERNEL, SGDAUCClassifier(), NystroemFeatures(5)]
)
@pytest.mark.parametrize("verbose", [np.array([]), np.ones((2, 2)), "loud", -1])
def test_a_verbosity_that_is_no_number_is_named(model, verbose):
    with pytest.raises(ValueError, match="verbose must be "):
        clone(model).set_params(verbose=verbose).fit(X, Y)


def test_distinct_rows_of_many_columns():
    rows = np.zeros((6, 5000))
    rows[[1, 4], 4999] = 2.0
    rows[2] = -0.0
    rows[3, 0] = -1.0
    found = _distinct(rows)
    assert sorted(map(tuple, found[:, [0, 4999]].tolist())) == [(-1.0, 0.0), (0.0, 0.0), (0.0, 2.0)]
    np.testing.assert_array_equal(found, _distinct(rows[::-1]))


def test_a_frame_of_arrow_with_nulls_is_refused_by_name():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"a": [None, *X[1:, 0].tolist()], "b": X[:, 1], "c": X[:, 2]})
    with pytest.raises((TypeError, ValueError), match=r"\bX\b"):
        LinearAUCClassifier().fit(table, Y)


def test_weights_that_are_too_large_for_the_stochastic_solver_are_named():
    weight = np.ones(60)
    weight[7] = 1e300
    with pytest.raises(ValueError, match="sample_weight"):
        SGDAUCClassifier(random_state=0).fit(X, Y, weight)


def test_weights_that_leave_a_fold_without_a_class_are_named():
    weight = (np.arange(60) == Y.argmax()) + (np.arange(60) < 20) * (Y == 0) + 0.0
    with pytest.raises(ValueError, match="of non-zero weight"):
        linear_search(cv=2).fit(X, Y, weight)


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
def test_landmarks_are_found_far_from_zero(kind):
    rows = np.round(8 * np.random.default_rng(0).normal(size=(80, 2))) / 8
    near = NystroemFeatures(10, random_state=0).fit(rows)
    far = NystroemFeatures(10, random_state=0).fit(kind(rows + 2.0**30))
    assert len(far.landmarks_) == len(near.landmarks_) == 10


def test_features_that_overflow_are_refused_by_name():
    model = NystroemFeatures(5, kernel="polynomial", random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"features of row 2 of X are not finite"):
        model.transform(np.where(np.arange(60)[:, None] == 2, 1e200, X))


def test_too_many_values_are_refused_by_name():
    with pytest.raises(ValueError, match="Cs must be"):
        linear_search(Cs=10**30).fit(X, Y)
    with pytest.raises((MemoryError, ValueError), match="n_components"):
        FourierFeatures(10**15).fit(X)


def test_labels_of_an_importance_or_a_picture_are_named():
    fitted, labels = KERNEL.fit(X, Y), [None, *Y[1:].tolist()]
    with pytest.raises(ValueError, match=r"\by\b"):
        permutation_importance(fitted, X, labels)
    for wrong in (np.stack([Y, Y], 1), Y[:-1]):
        with pytest.raises(ValueError, match=r"\by has shape"):
            permutation_importance(fitted, X, wrong)
        with pytest.raises(ValueError, match=r"\by has shape"):
            LandmarkCoverageDisplay.from_estimator(fitted, X, wrong)
    with pytest.raises(ValueError, match="random_state"):
        LandmarkCoverageDisplay.from_estimator(fitted, X, Y, random_state=-1)


TABLE = {"preset": "paper", "Cs": [1.0, 10.0], "cv": 2, "n_landmarks": 10}


@pytest.mark.parametrize("drop", [1.5, True, np.array([1.0]), np.array(2), [None], len])
def test_columns_to_drop_are_names(drop):
    with pytest.raises(ValueError, match="drop must be a list of column names; got"):
        table_model(drop=drop, **TABLE).fit(X, Y)


@pytest.mark.parametrize("y", [1, "y", {"y": 1}, None, RAGGED])
def test_labels_of_a_table_are_one_per_row(y):
    with pytest.raises((TypeError, ValueError), match=r"\by must hold one label per row|\by\b.*None"):
        table_model(**TABLE).fit(X, y)


@pytest.mark.parametrize(
    "rows",
    [pd.Series(X[:, 0]), sparse.csr_array(X + 1j), X + 1j, [*X[:-1].tolist(), [1.0]], np.asmatrix(X)],
    ids=["series", "complex CSR", "complex", "ragged", "matrix"],
)
def test_rows_of_a_table_that_are_none_are_named(rows):
    with pytest.raises((TypeError, ValueError), match=r"\bX\b|A table is"):
        table_model(**TABLE).fit(rows, Y)


def test_labels_that_are_objects_are_told_apart_by_their_text():
    labels = pl.Series("label", [("no", 1)[label] for label in Y], dtype=pl.Object)
    frame = pl.DataFrame(X, schema=["a", "b", "c"]).with_columns(labels)
    assert sorted(fit_table(frame, "label", **TABLE).classes_.tolist()) == ["1", "no"]


def test_numbers_beyond_64_bits_make_a_column_while_float64_holds_them():
    wide = pd.DataFrame({"a": [int(8 * v) * 10**30 for v in X[:, 0]], "b": X[:, 1], "c": X[:, 2]})
    assert np.isfinite(table_model(**TABLE).fit(wide, Y).decision_function(wide)).all()
    with pytest.raises(ValueError, match="Column 'a' of X has a number beyond"):
        table_model(**TABLE).fit(wide.assign(a=pd.Series([10**400] * 60, dtype=object)), Y)


def test_other_refusals_name_their_argument():
    with pytest.raises(ValueError, match="rare_level must be"):
        table_model(rare_level=np.array([])).fit(X, Y)
    with pytest.raises(ValueError, match="The target y is of type Binary"):
        table_model(**TABLE).fit(X, np.where(Y == 1, b"yes", b"no"))
    with pytest.raises(ValueError, match="X holds dates"):
        to_onnx(LinearAUCClassifier().fit(X, Y), X=X.astype("M8[D]"))
    with pytest.raises(ValueError, match="gammas must be"):
        kernel_search(gammas=10**30).fit(X, Y)
    with pytest.raises(ValueError, match="y_true"):
        roc_auc(None, X[:, 0])


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (KernelAUCClassifier(feature_map="fourier", degree=len), "degree"),
        (KernelAUCClassifier(feature_map="fourier", coef0="one"), "coef0"),
        (NystroemFeatures(5, kernel="polynomial", coef0=1e300), "coef0"),
        (SGDAUCClassifier(buffer_size=10**30), "buffer_size"),
        (OAMClassifier(buffer_size=10**30), "buffer_size"),
        (SGDAUCClassifier(regularize_every=10**30), "regularize_every"),
        (SGDAUCClassifier(average_every=10**30), "average_every"),
    ],
)
def test_parameters_beyond_their_bounds_are_named(model, name):
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        model.fit(X, Y)


def test_rows_whose_differences_overflow_are_refused_by_name():
    rows = X.copy()
    rows[:, 0] = np.where(X[:, 0] > 0, 1.0, -1.0) * np.finfo(float).max
    with pytest.raises(ValueError, match=r"\bX\b"):
        NystroemFeatures(5, kernel="linear", landmarks="class-kmeans", random_state=0).fit(rows, Y)


def test_a_picture_of_rows_that_overflow_is_refused_by_name():
    rows = X.copy()
    rows[4, 1] = np.finfo(float).max
    fitted = clone(KERNEL).set_params(standardize=True).fit(X / 100, Y)
    with pytest.raises(ValueError, match="row 4 of X is too extreme"):
        LandmarkCoverageDisplay.from_estimator(fitted, rows, Y)


def test_a_positive_label_that_is_an_array_is_named():
    with pytest.raises(TypeError, match="positive must be one label"):
        table_model(positive=np.array([])).fit(np.zeros((4, 1)), [0, 1, 0, 1])


def test_an_interval_of_hardly_any_confidence_holds_its_auc():
    found = roc_auc_interval([0, 1, 0, 1, 1], [0.1, 0.9, 0.4, 0.3, 0.8], confidence=1e-300)
    assert found.low <= found.auc <= found.high


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame], ids=["array", "frame"])
def test_a_table_of_long_doubles_is_one_of_numbers(make):
    model = table_model(preset="paper", n_landmarks=10, Cs=[1.0], cv=2, random_state=0).fit(X, Y)
    named = table_model(preset="paper", n_landmarks=10, Cs=[1.0], cv=2, random_state=0)
    named.fit(make(X.astype(np.longdouble)), Y)
    long_ones = X.astype(np.longdouble)
    np.testing.assert_array_equal(model.decision_function(long_ones), model.decision_function(X))
    np.testing.assert_array_equal(
        named.decision_function(make(long_ones)), named.decision_function(make(X))
    )


@pytest.mark.parametrize(
    "model",
    [
        table_model(preset="paper", Cs=[1.0, 10.0], cv=2, n_landmarks=10),
        kernel_search(preset="paper", Cs=[0.1, 10.0], cv=2, n_landmarks=10, kernel="polynomial"),
        LinearAUCClassifier(),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("size", [1e20, 1e300])
def test_one_weight_beyond_all_others_is_named(model, size):
    weight = np.ones(len(Y))
    weight[7] = size
    with pytest.raises(ValueError, match=r"sample_weight is too large in row 7: with 1e\+(20|300)"):
        model.fit(X, Y, sample_weight=weight)


@pytest.mark.parametrize(
    "model",
    [
        LinearAUCClassifier(C=0.01),
        linear_search([0.1, 1.0], cv=2),
        SGDAUCClassifier(random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sparse_rows_far_from_zero_are_warned_of(model):
    with pytest.warns(UserWarning, match=r"X, column 0, lies far from zero: .* Pass X.toarray\(\)"):
        model.fit(sparse.csr_array(X + 1e9), Y)


def test_rows_far_from_zero_that_stay_there_are_warned_of():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1] + 1e9})
    with pytest.warns(UserWarning, match=r"X, column 'b', lies far from zero: .* standardize=True"):
        LinearAUCClassifier(standardize=False).fit(frame, Y)


def test_of_equally_good_thresholds_the_highest_is_taken_in_any_order_of_rows():
    rng = np.random.default_rng(0)
    scores = np.arange(10.0)
    positive = np.array([0, 0, 1, 0, 1, 0, 0, 1, 0, 1], dtype=bool)
    weight = np.full(10, 0.1)
    found = set()
    for _ in range(50):
        order = rng.permutation(10)
        noise = 1.0 + 1e-15 * rng.normal(size=10)
        found.add(balanced_threshold(scores[order], positive[order], (weight * noise)[order]))
    assert len(found) == 1


def test_a_threshold_does_not_part_scores_that_differ_by_rounding():
    positive = np.array([True, True, False, False])
    for noise in (0.0, 1e-16, -1e-16):
        scores = np.array([2.0, 0.1 + noise, 0.1, -1.0])
        assert balanced_threshold(scores, positive, np.ones(4)) == pytest.approx(1.05)


@pytest.mark.parametrize("model", [KERNEL, KernelRankSVM(), NystroemFeatures(5)])
def test_a_degree_whose_powers_overflow_is_named(model):
    with pytest.raises(ValueError, match=r"degree must be a whole number .* at most 1000; got 10{30}"):
        clone(model).set_params(kernel="polynomial", degree=10**30).fit(X, Y)


@pytest.mark.parametrize("seed", [3, 65, 73])
@pytest.mark.filterwarnings("ignore")
def test_two_distinct_rows_end_a_kernel_solve(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(40, 90))
    two = (rng.normal(size=(n, 3)) * 10 ** rng.uniform(-3, 3))[:2][rng.integers(2, size=n)]
    y = (rng.random(n) < 0.4).astype(int)
    y[:2] = [0, 1]
    model = KernelRankSVM(kernel="polynomial", C=1.0, tol=1e-7).fit(two, y)
    assert np.isfinite(model.decision_function(two)).all()
