"""Extreme and odd numbers are either handled correctly or refused with the argument's name."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from aucmax import (
    FourierFeatures,
    KernelAUCClassifier,
    KernelRankSVM,
    LinearAUCClassifier,
    NystroemFeatures,
    OAMClassifier,
    SGDAUCClassifier,
    SOLAMClassifier,
)
from aucmax.features.scalers import QuantileScaler
from aucmax.metrics import compare_roc_auc, roc_auc, roc_auc_interval
from aucmax.metrics.calibration import IsotonicCalibrator, SigmoidCalibrator
from aucmax.metrics.evaluation import evaluate
from aucmax.metrics.thresholds import Aim, choose_threshold, measure_threshold
from reliability.flat_parameters import set_flat
from tests.searches import kernel_search, linear_search

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
y = (X[:, 0] + 0.3 * RNG.normal(size=60) > 0).astype(int)
SCORES = X[:, 0]

PAPER = {"preset": "paper", "random_state": 0}
MODELS = {
    "linear": LinearAUCClassifier(),
    "linear search": linear_search(3, tol=1e-4),
    "kernel": KernelAUCClassifier(**PAPER),
    "kernel search": kernel_search(2, **PAPER),
    "fourier": KernelAUCClassifier(**PAPER, feature_map="fourier", n_landmarks=50),
    "kernel sgd": KernelAUCClassifier(**PAPER, solver="sgd"),
    "sgd": SGDAUCClassifier(random_state=0),
    "oam": OAMClassifier(random_state=0),
    "solam": SOLAMClassifier(random_state=0),
    "rank svm": KernelRankSVM(),
}
FEW = ["linear", "kernel", "sgd"]


def masked(values, *where):
    out = np.ma.array(values.copy())
    out[where] = np.ma.masked
    return out


def fitted_auc(model, X, **more):
    return roc_auc(y, model.fit(X, y, **more).decision_function(X))


# Magnitudes


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e300])
@pytest.mark.parametrize("name", MODELS)
def test_standardised_columns_may_have_any_magnitude(name, size):
    assert fitted_auc(MODELS[name], X * size) == pytest.approx(fitted_auc(MODELS[name], X), abs=0.02)


@pytest.mark.parametrize("as_rows", [sparse.csr_matrix, lambda rows: rows.astype(np.float64)])
def test_only_one_column_may_be_extreme(as_rows):
    rows = as_rows(X * np.array([1e-300, 1.0]))
    assert fitted_auc(LinearAUCClassifier(), rows) > 0.98
    assert fitted_auc(KernelAUCClassifier(**PAPER), rows) > 0.98


def test_weights_count_where_a_column_is_extreme():
    weight = RNG.integers(0, 4, 60)
    model = LinearAUCClassifier().fit(X * 1e200, y, sample_weight=weight)
    rows = np.repeat(np.arange(60), weight)
    again = LinearAUCClassifier().fit(X[rows], y[rows])
    np.testing.assert_allclose(model.coef_ * 1e200, again.coef_, rtol=1e-3)


def test_a_column_far_from_zero_is_not_taken_for_constant():
    far = np.column_stack([1e9 + 1e-4 * X[:, 0], X[:, 1]])
    model = LinearAUCClassifier().fit(far, y)
    assert model.scaler_.scale_[0] == pytest.approx(1e-4 * X[:, 0].std(), rel=1e-2)


@pytest.mark.parametrize("offset", [0.0, 0.1, 1e9 + 0.1, 1e15 + 0.1, 1e-300])
def test_a_constant_column_changes_nothing(offset):
    rows = np.column_stack([X, np.full(60, offset)])
    model = LinearAUCClassifier().fit(rows, y)
    assert model.scaler_.scale_[2] == 1.0
    np.testing.assert_allclose(
        model.coef_[0], [*LinearAUCClassifier().fit(X, y).coef_[0], 0.0], atol=1e-6
    )


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_ranks_do_not_depend_on_the_magnitude(size):
    found = QuantileScaler().fit_transform(X * size)
    np.testing.assert_allclose(found, QuantileScaler().fit_transform(X), atol=1e-7)


@pytest.mark.parametrize(
    ("size", "message"), [(1e-310, "column 0, is too small"), (1e305, "column 0, is too large")]
)
def test_what_no_coefficient_can_undo_is_refused(size, message):
    with pytest.raises(ValueError, match=rf"X, {message} to be standardised: its largest entry is"):
        LinearAUCClassifier().fit(X * size, y)
    with pytest.raises(ValueError, match=r"X, column 'a', is too"):
        LinearAUCClassifier().fit(pd.DataFrame(X * size, columns=["a", "b"]), y)


def test_a_stream_refuses_what_it_cannot_standardise():
    for size in (1e-300, 1e300):
        with pytest.raises(ValueError, match=r"X, column 0, is too .* to be standardised"):
            SGDAUCClassifier(random_state=0).partial_fit(X * size, y)
    model = SGDAUCClassifier(random_state=0).fit(X * 1e-300, y)
    with pytest.raises(ValueError, match="column 0, is too small"):
        model.partial_fit(X * 1e-300, y)


@pytest.mark.parametrize("name", [*MODELS])
@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_rows_left_as_they_are_may_not_vanish_or_overflow(name, size):
    with pytest.raises(ValueError, match="X"):
        set_flat(MODELS[name], standardize=False).fit(X * size, y)
    set_flat(MODELS[name], standardize=True)


def test_small_rows_left_as_they_are_still_rank():
    for size in (1e-100, 1e-30, 1e30):
        assert fitted_auc(LinearAUCClassifier(standardize=False), X * size) > 0.98


def test_products_that_overflow_are_not_taken_for_the_end():
    with pytest.raises(ValueError, match="products overflow"):
        LinearAUCClassifier(standardize=False).fit(X * 1e100, y)


@pytest.mark.parametrize("gamma", ["distance", "scale"])
@pytest.mark.parametrize("map_", [NystroemFeatures, FourierFeatures])
def test_maps_refuse_rows_whose_distances_overflow_or_vanish(map_, gamma):
    for size in (1e-300, 1e300):
        with pytest.raises(ValueError, match=f"gamma='{gamma}' cannot be found: .*X"):
            map_(gamma=gamma).fit(X * size)


def test_fourier_features_are_never_nan():
    model = FourierFeatures(5, gamma=1.0, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"features of row 3 of X are not finite \(1 such"):
        model.transform(np.where(np.arange(60)[:, None] == 3, 1e308, X))


def test_csr_rows_far_from_zero_keep_their_distances():
    far, near = sparse.csr_matrix(X + 1e9), X + 1e9
    model = NystroemFeatures(10, random_state=0, gamma=0.5).fit(near)
    np.testing.assert_allclose(model.transform(far), model.transform(near), atol=1e-6)
    assert fitted_auc(KernelRankSVM(), far) > 0.98


def test_a_model_that_learns_nothing_warns():
    with pytest.warns(UserWarning, match="gives all training rows the same score"):
        KernelRankSVM(gamma=1e-300).fit(X, y)


def test_a_c_whose_products_vanish_is_refused():
    for model in (LinearAUCClassifier(C=1e-300), KernelRankSVM(C=1e-300)):
        with pytest.raises(
            ValueError, match="C, features or weights are so small that products vanish"
        ):
            model.fit(X, y)


# Kinds of arrays


@pytest.mark.parametrize("name", FEW)
def test_masked_entries_are_refused_by_place(name):
    model = MODELS[name]
    with pytest.raises(ValueError, match=r"X is a masked array.*row 3, column 1 \(1 in all\).*filled"):
        model.fit(masked(X, 3, 1), y)
    with pytest.raises(ValueError, match=r"y is a masked array.*row 5"):
        model.fit(X, masked(y, 5))
    with pytest.raises(ValueError, match=r"sample_weight is a masked array.*row 7"):
        model.fit(X, y, sample_weight=masked(np.ones(60), 7))
    with pytest.raises(ValueError, match="X is a masked array"):
        model.fit(X, y).decision_function(masked(X, 3, 1))
    whole = model.fit(np.ma.array(X), np.ma.array(y), sample_weight=np.ma.array(np.ones(60)))
    np.testing.assert_array_equal(whole.predict(X), model.fit(X, y).predict(X))


def test_masked_blocks_are_refused():
    with pytest.raises(ValueError, match=r"X of block 1 is a masked array.*row 3, column 1"):
        LinearAUCClassifier().fit(iter([(X, y), (masked(X, 3, 1), y)]), None)
    with pytest.raises(ValueError, match="weight of block 0 is a masked array"):
        LinearAUCClassifier().fit(iter([(X, y, masked(np.ones(60), 3))]), None)
    model = LinearAUCClassifier().fit(X, y)
    with pytest.raises(ValueError, match="X is a masked array"):
        model.decision_function(iter([masked(X, 3, 1)]))


def test_blocks_may_have_any_magnitude():
    model = LinearAUCClassifier().fit(
        iter([(1e-300 * X[:30], y[:30]), (1e-300 * X[30:], y[30:])]), None
    )
    np.testing.assert_allclose(1e-300 * model.coef_, LinearAUCClassifier().fit(X, y).coef_, rtol=1e-3)


def test_masked_scores_and_landmarks_are_refused():
    for measure in (roc_auc, roc_auc_interval, choose_threshold, evaluate):
        with pytest.raises(ValueError, match=r"scores? is a masked array.*row 3"):
            measure(y, masked(SCORES, 3))
        with pytest.raises(ValueError, match=r"(y_true|positive) is a masked array.*row 3"):
            measure(masked(y, 3), SCORES)
    with pytest.raises(ValueError, match="score_b is a masked array"):
        compare_roc_auc(y, SCORES, masked(SCORES, 3))
    with pytest.raises(ValueError, match="landmarks is a masked array"):
        NystroemFeatures(landmarks=masked(X[:5], 1, 1)).fit(X)


ODD = {
    "complex": (X + 1j, "X holds complex numbers"),
    "complex CSR": (sparse.csr_matrix(X + 1j), "X holds complex numbers"),
    "structured": (np.zeros(60, dtype=[("a", float), ("b", float)]), "X holds structured entries"),
    "durations": ((1000 * X).astype("timedelta64[s]"), "X holds durations: .*TableModel"),
    "dates": ((1000 * X).astype("datetime64[s]"), "X holds dates: .*TableModel"),
    "durations in a frame": (
        pd.DataFrame({"a": SCORES, "b": pd.to_timedelta(np.arange(60), unit="s")}),
        "X, column 'b', holds durations",
    ),
    "dates alone in a frame": (
        pd.DataFrame({"a": pd.to_datetime(np.arange(60), unit="s")}),
        "X, column 'a', holds dates",
    ),
    "durations in polars": (
        pl.DataFrame({"a": SCORES, "b": (1000 * SCORES).astype("timedelta64[ms]")}),
        "X, column 'b', holds durations",
    ),
    "huge integers": (
        np.array([[1, 10**400]] * 60, dtype=object),
        r"beyond 1.8e308 in column 1 \(row 0",
    ),
    "longdouble": (X.astype(np.longdouble) * np.longdouble("1e400"), "infinity in column 0.*1.8e308"),
    "bytes": (np.array([[b"a", b"b"]] * 60), "X has text in column 0"),
    "ragged": ([[1.0, 2.0], [3.0]] * 30, "X must be a table of numbers"),
    "three dimensions": (X[:, :, None], "X must be a table of numbers"),
    "a number": (3.0, "X must be a table of numbers"),
    "no row": (X[:0], "X must be a table of numbers.*0 sample"),
    "no column": (X[:, :0], "X must be a table of numbers.*0 feature"),
    "too few": (X[:50], "X and y must have the same number of rows"),
}


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("name", ODD)
def test_odd_rows_are_refused_by_name(name):
    if name == "longdouble" and np.finfo(np.longdouble).max == np.finfo(np.float64).max:
        pytest.skip("longdouble is float64 here")
    rows, message = ODD[name]
    with pytest.raises((ValueError, TypeError), match=f"(?s){message}"):
        LinearAUCClassifier().fit(rows, y)


LAYOUTS = {
    "float16": X.astype(np.float16),
    "big-endian": X.astype(">f8"),
    "Fortran order": np.asfortranarray(X),
    "negative strides": X[::-1][::-1],
    "objects": X.astype(object),
    "longdouble": X.astype(np.longdouble),
    "nullable": pd.DataFrame(X).astype("Float64"),
    "arrow": pd.DataFrame(X).astype("float64[pyarrow]"),
    "polars": pl.DataFrame(X),
    "lists": X.tolist(),
    "COO": sparse.coo_matrix(X - X.min(axis=0)),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_do_not_matter(name):
    rows = LAYOUTS[name]
    found = LinearAUCClassifier().fit(rows, y).coef_
    np.testing.assert_allclose(found, LinearAUCClassifier().fit(X, y).coef_, rtol=0.05)


def test_read_only_rows_are_taken():
    rows = X.copy()
    rows.setflags(write=False)
    assert fitted_auc(LinearAUCClassifier(), rows) > 0.98


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.where(X > 2, np.nan, X), "NaN in column 1"),
        (
            pd.DataFrame({"a": pd.array([None, *range(59)], dtype="Int64"), "b": SCORES}),
            "NaN in column 'a'",
        ),
        (pd.DataFrame({"a": ["u", "v"] * 30, "b": SCORES}), "text in column 'a'"),
        (pd.DataFrame({"a": pd.Categorical(["u", "v"] * 30), "b": SCORES}), "text in column 'a'"),
    ],
)
@pytest.mark.parametrize("name", FEW)
def test_missing_values_text_and_categories_lead_to_the_table_model(name, rows, message):
    with pytest.raises(ValueError, match=rf"{message} \(row \d+.*TableModel"):
        MODELS[name].fit(rows, y)


# Labels


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, "a"] * 30, r"mixes text and other labels: row 1 has 'a', row 0 has 1"),
        (np.array([1, "a"] * 30, dtype=object), r"mixes text and other labels"),
        ([True, "x"] * 30, r"mixes text and other labels"),
        ([None, *["a", "b"] * 29, "a"], r"contains NaN: row 0 has no label"),
        (y + 1j, "holds complex numbers"),
        (np.zeros(60, dtype=[("a", float)]), "holds structured entries"),
    ],
)
def test_odd_labels_are_refused_by_name(labels, message):
    with pytest.raises(ValueError, match=rf"y.*{message}"):
        LinearAUCClassifier().fit(X, labels)
    with pytest.raises(ValueError, match=rf"y.*{message}"):
        SGDAUCClassifier().partial_fit(X, labels)
    with pytest.raises(ValueError, match=rf"classes.*{message}"):
        SGDAUCClassifier().partial_fit(X, y, classes=labels)
    with pytest.raises(ValueError, match=rf"y_true.*{message}"):
        roc_auc(labels, SCORES)


@pytest.mark.parametrize("labels", [y.astype(object), SCORES, np.array([b"a", b"b"])[y]])
def test_what_are_no_classes_says_what_classes_are(labels):
    with pytest.raises(
        (TypeError, ValueError), match="y must hold classes: whole numbers, text or bool"
    ):
        LinearAUCClassifier().fit(X, labels)


# Weights


def heavy(value):
    return np.r_[value, np.ones(59)]


@pytest.mark.parametrize(
    "name", ["linear", "linear search", "kernel", "kernel search", "sgd", "rank svm"]
)
@pytest.mark.parametrize(
    "weight", [heavy(1e30), heavy(1e-300), np.where(y == 1, 1e30, 1.0)], ids=["huge", "tiny", "class"]
)
def test_uneven_weights_give_finite_scores_or_are_named(name, weight):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such a fit may be far from its optimum
        try:
            scores = MODELS[name].fit(X, y, sample_weight=weight).decision_function(X)
        except ValueError as error:  # where products overflow depends on rounding
            refusal, scores = str(error), np.zeros(1)
        else:
            refusal = ""
    assert not refusal or ("sample_weight" in refusal and weight.max() == 1e30)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (heavy(1.0) + 1j, "holds complex numbers"),
        (np.full(60, 1e-320), "is too small: its largest entry, of row 0, is 1e-320"),
        (np.full(60, 1e308), "is too large: its largest entry, of row 0"),
        ([10**400] + [1] * 59, "must hold one number per row"),
        (np.ones(60, "timedelta64[s]"), "holds durations"),
        (["a"] * 60, "must hold one number per row"),
    ],
)
def test_odd_weights_are_refused_by_name(weight, message):
    with pytest.raises(ValueError, match=f"sample_weight {message}"):
        LinearAUCClassifier().fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match=f"sample_weight {message}"):
        roc_auc(y, SCORES, sample_weight=weight)
    with pytest.raises(ValueError, match=f"sample_weight {message}"):
        evaluate(y, SCORES, sample_weight=weight)


def test_weights_that_leave_no_grid_of_c_are_named():
    with pytest.raises(
        ValueError, match=r"Cs=3 gives values from .* since sample_weight sums to 6e\+151"
    ):
        linear_search(3).fit(X, y, sample_weight=np.full(60, 1e150))


def test_rows_are_numbered_as_the_caller_does_whatever_their_weight():
    weight = np.ones(60)
    weight[:10] = 0.0
    hole = X.copy()
    hole[20, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN in column 1 \(row 20"):
        LinearAUCClassifier().fit(hole, y, sample_weight=weight)
    labels = y.astype(float)
    labels[20] = np.nan
    with pytest.raises(ValueError, match="row 20 has no label"):
        LinearAUCClassifier().fit(X, labels, sample_weight=weight)
    probability = np.full(60, 0.5)
    probability[20] = 2.0
    with pytest.raises(ValueError, match="row 20 has 2"):
        evaluate(y, SCORES, probability, weight)


def test_rows_of_blocks_are_numbered_through():
    model = KernelAUCClassifier(**PAPER, kernel="polynomial").fit(X, y)
    far = X.copy()
    far[41] = 1e200
    with pytest.raises(ValueError, match=r"score of row 41 \(from 0\) is not finite \(1 such"):
        model.decision_function(iter([far[:40], far[40:]]))


# Measures of scores


@pytest.mark.parametrize(
    "weight", [np.full(60, 1e300), heavy(1e300), 10.0 ** np.linspace(-300, 300, 60)]
)
def test_measures_stand_huge_weights(weight):
    probability = 1.0 / (1.0 + np.exp(-SCORES))
    assert 0.0 <= roc_auc(y, SCORES, sample_weight=weight) <= 1.0
    for aim in ("youden", "cost=5", "recall=0.9", "top=50%"):
        assert np.isfinite(choose_threshold(y, SCORES, aim, weight).threshold)
    assert np.isfinite(evaluate(y, SCORES, probability, weight).brier_skill)
    for calibrator in (SigmoidCalibrator(), IsotonicCalibrator()):
        assert np.isfinite(calibrator.fit(SCORES, y, weight).predict(SCORES)).all()


@pytest.mark.parametrize("aim", ["youden", "cost=5"])
def test_thresholds_do_not_depend_on_the_unit_of_weights(aim):
    expected = choose_threshold(y, SCORES, aim).threshold
    for unit in (2.0**-900, 2.0**900):
        assert choose_threshold(y, SCORES, aim, np.full(60, unit)).threshold == expected


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_measures_do_not_depend_on_the_unit_of_scores(size):
    assert roc_auc(y, size * SCORES) == roc_auc(y, SCORES)
    assert choose_threshold(y, size * SCORES).tp == choose_threshold(y, SCORES).tp
    for kind in (SigmoidCalibrator, IsotonicCalibrator):
        expected = kind().fit(SCORES, y).predict(SCORES)
        np.testing.assert_allclose(
            kind().fit(size * SCORES, y).predict(size * SCORES), expected, rtol=1e-6
        )


@pytest.mark.parametrize("size", [1e-322, 1.7e308 / np.abs(SCORES).max()])
def test_scores_that_cannot_be_calibrated_are_named(size):
    for calibrator in (SigmoidCalibrator(), IsotonicCalibrator()):
        with pytest.raises(ValueError, match=r"scores are too (small|large) to be calibrated"):
            calibrator.fit(size * SCORES, y)


def test_arguments_of_measures_are_named():
    for value in (0, 1, np.nan, "a", None, [0.5]):
        for measure in (roc_auc_interval, choose_threshold, evaluate):
            with pytest.raises(ValueError, match="confidence must be a number between 0 and 1"):
                measure(y, SCORES, confidence=value)
    for value in (np.nan, "a", None, [0.5], 10**400):
        with pytest.raises(ValueError, match="threshold must be a number"):
            measure_threshold(y, SCORES, value)
    with pytest.raises(TypeError, match="aim must be an Aim or text such as youden"):
        choose_threshold(y, SCORES, 0.5)
    with pytest.raises(ValueError, match="the aim cost must be a number"):
        Aim("cost", 10**400)
    with pytest.raises(ValueError, match="row 1 has <NA>"):
        choose_threshold(np.array([1, pd.NA], dtype=object), [0.0, 1.0])


# Parameters


@pytest.mark.parametrize("value", [np.array([1.0, 2.0]), 10**400, 1j, object(), {}])
def test_parameters_are_refused_by_name(value):
    for name, model in [
        ("C", LinearAUCClassifier()),
        ("max_iter", LinearAUCClassifier()),
        ("standardize", LinearAUCClassifier()),
        ("refit", linear_search()),
        ("cv", linear_search()),
        ("n_landmarks", KernelAUCClassifier()),
        ("landmarks", NystroemFeatures()),
        ("standardize", KernelAUCClassifier()),
        ("random_state", KernelAUCClassifier(preset="paper")),
        ("map_per_fold", kernel_search()),
        ("average", SGDAUCClassifier()),
        ("early_stopping", OAMClassifier()),
        ("t0", SGDAUCClassifier()),
        ("random_state", SGDAUCClassifier()),
    ]:
        with pytest.raises(ValueError, match=name):
            model.set_params(**{name: value}).fit(X, y)


def test_an_alpha_without_a_schedule_is_named():
    for model in (SGDAUCClassifier(alpha=1e-308), SGDAUCClassifier(C=1e308)):
        with pytest.raises(
            ValueError, match=r"alpha=.* is too small or too large .* choose another alpha or C"
        ):
            model.fit(X, y)
        with pytest.raises(ValueError, match="alpha"):
            model.partial_fit(X, y)
    with pytest.raises(ValueError, match="alpha"):
        KernelAUCClassifier(C=1e308, **PAPER, solver="sgd").fit(X, y)
