import re
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from aucmax import KernelAUCClassifier, LinearAUCClassifier, NystroemFeatures
from aucmax.fitting import newton_fit
from aucmax.metrics import roc_auc
from aucmax.metrics.cutoffs import balanced_threshold
from aucmax.pairs import PairLoss
from tests import oracle

BOTH = [KernelAUCClassifier(preset="paper", random_state=0), LinearAUCClassifier()]
both = pytest.mark.parametrize("model", BOTH, ids=["kernel", "linear"])


def moons(n=300, seed=0):
    X, y = make_moons(n, noise=0.25, random_state=seed)
    keep = np.flatnonzero((y == 0) | (np.arange(n) % 4 == 0))  # an imbalanced pair
    return X[keep], y[keep]


@parametrize_with_checks(
    [
        *BOTH,
        KernelAUCClassifier(preset="paper", feature_map="fourier", n_landmarks=50, random_state=0),
        KernelAUCClassifier(
            preset="paper", landmarks="class-kmeans", kernel="laplacian", random_state=0
        ),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([KernelAUCClassifier()])
def test_scikit_learn_contract_of_the_default(estimator, check):
    check(estimator)


# What is learnt


def test_a_nonlinear_boundary_is_ranked():
    X, y = make_circles(600, noise=0.1, factor=0.6, random_state=0)
    train, test = slice(0, 400), slice(400, None)
    kernel = KernelAUCClassifier(preset="paper", random_state=0).fit(X[train], y[train])
    linear = LinearAUCClassifier().fit(X[train], y[train])
    assert roc_auc(y[test], kernel.decision_function(X[test])) > 0.98
    assert roc_auc(y[test], linear.decision_function(X[test])) < 0.65


def test_n_landmarks_on_n_rows_is_the_exact_kernel_machine():
    """The minimum over the reproducing kernel space itself: coefficients on all rows, K known."""
    X, y = moons(120)
    X = StandardScaler().fit_transform(X)
    model = KernelAUCClassifier(3.0, preset="paper", gamma=1.5, standardize=False, tol=1e-9).fit(X, y)
    K = rbf_kernel(X, gamma=1.5)
    values, vectors = np.linalg.eigh(K)
    keep = values > 1e-10
    root = vectors[:, keep] * np.sqrt(values[keep])  # K = root root'
    best, w = oracle.best_objective(root, y == 1, 3.0)
    assert model.objective_ == pytest.approx(best, rel=1e-4)
    exact = root @ w
    ours = model.decision_function(X) - model.intercept_[0]
    np.testing.assert_allclose(ours - ours.mean(), exact - exact.mean(), atol=2e-3)


def test_the_reported_objective_is_that_of_the_scores():
    X, y = moons()
    model = LinearAUCClassifier(2.0, standardize=False).fit(X, y)
    w = model.coef_[0]
    value = 0.5 * w @ w + 2.0 * PairLoss(y == 1).at(X @ w).value
    assert model.objective_ == pytest.approx(value, rel=1e-10)
    assert model.objective_ == pytest.approx(oracle.best_objective(X, y == 1, 2.0)[0], rel=1e-4)


def test_one_cost_carries_across_sizes():
    X, y = moons()
    once = LinearAUCClassifier(tol=1e-9).fit(X, y)
    thrice = LinearAUCClassifier(1 / 3, tol=1e-9).fit(np.tile(X, (3, 1)), np.tile(y, 3))
    np.testing.assert_allclose(once.coef_, thrice.coef_, rtol=1e-5)


def test_linear_coefficients_are_in_the_units_of_the_data():
    X, y = load_breast_cancer(return_X_y=True)
    model = LinearAUCClassifier().fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_[0])


def test_more_classes_are_ranked_one_against_the_rest_over_one_map():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = KernelAUCClassifier(preset="paper", random_state=0, tol=1e-8).fit(X, names)
    decision = model.decision_function(X)
    assert decision.shape == (150, 3)
    assert list(model.classes_) == ["setosa", "versicolor", "virginica"]
    assert model.score(X, names) > 0.95
    for column, name in enumerate(model.classes_):
        alone = KernelAUCClassifier(preset="paper", random_state=0, tol=1e-8).fit(X, names == name)
        np.testing.assert_allclose(decision[:, column], alone.decision_function(X), atol=1e-3)
    assert len(model.objective_) == 3


@pytest.mark.parametrize("labels", [(0, 1), (-1, 1), ("no", "yes"), (False, True), (2.0, 7.0)])
def test_any_two_labels(labels):
    X, y = moons()
    model = KernelAUCClassifier(preset="paper", random_state=0).fit(X, np.array(labels)[y])
    assert list(model.classes_) == list(labels)
    assert set(model.predict(X)) == set(labels)
    plain = KernelAUCClassifier(preset="paper", random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))


def test_a_single_positive_works():
    X, _ = moons()
    y = np.zeros(len(X), dtype=int)
    y[3] = 1
    model = KernelAUCClassifier(preset="paper", gamma="distance", random_state=0).fit(X, y)
    assert roc_auc(y, model.decision_function(X)) == 1.0
    assert model.predict(X)[3] == 1


@both
def test_duplicate_and_constant_columns_are_no_trouble(model):
    X, y = moons()
    wide = np.column_stack([X, X[:, 0], np.full(len(X), 7.0), np.zeros(len(X))])
    fitted = clone(model).fit(wide, y)
    assert np.isfinite(fitted.decision_function(wide)).all()
    assert roc_auc(y, fitted.decision_function(wide)) > 0.85


# The threshold


def test_the_threshold_has_the_best_sensitivity_and_specificity():
    rng = np.random.default_rng(0)
    scores, positive = np.round(rng.normal(size=60), 1), rng.random(60) < 0.2
    scores[positive] += 0.7
    weight = rng.integers(1, 4, 60).astype(float)

    def balance(cut):
        above = scores > cut
        sensitivity = weight[above & positive].sum() / weight[positive].sum()
        return sensitivity + weight[~above & ~positive].sum() / weight[~positive].sum()

    chosen = balanced_threshold(scores, positive, weight)
    tried = np.unique(scores)
    assert balance(chosen) == pytest.approx(max(balance(c) for c in (tried[1:] + tried[:-1]) / 2))
    assert chosen not in scores
    assert balanced_threshold(np.zeros(3), np.array([True, False, False]), np.ones(3)) == 0.0


def test_predict_finds_a_rare_class():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = (rng.random(3000) < 0.02).astype(int)
    X[y == 1] += 2.0
    model = KernelAUCClassifier(preset="paper", n_landmarks=100, random_state=0).fit(X, y)
    found = model.predict(X)
    assert found[y == 1].mean() > 0.8
    assert found[y == 0].mean() < 0.2


# Weights


@both
def test_a_row_twice_is_weight_two_and_weight_zero_is_absence(model):
    X, y = moons(150)
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    repeated = np.repeat(np.arange(len(X)), weight)
    tight = clone(model).set_params(tol=1e-9)
    weighted = clone(tight).fit(X, y, sample_weight=weight)
    plain = clone(tight).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(
        weighted.decision_function(X), plain.decision_function(X), rtol=1e-4, atol=1e-4
    )


def test_weights_reach_sampled_landmarks_in_effect():
    """Fewer landmarks than rows: k-means differs in its draws, so the ranking is compared."""
    X, y = moons(900)
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    repeated = np.repeat(np.arange(len(X)), weight)
    model = KernelAUCClassifier(preset="paper", n_landmarks=60, random_state=0)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    plain = clone(model).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weighted.feature_map_.gamma_, plain.feature_map_.gamma_)
    np.testing.assert_allclose(weighted.scaler_.mean_, plain.scaler_.mean_)
    a, b = weighted.decision_function(X), plain.decision_function(X)
    assert np.corrcoef(a, b)[0, 1] > 0.999
    absent = clone(model).fit(X[weight > 0], y[weight > 0], sample_weight=weight[weight > 0])
    np.testing.assert_array_equal(weighted.decision_function(X), absent.decision_function(X))


def test_sample_weight_is_routed():
    X, y = moons()
    with sklearn.config_context(enable_metadata_routing=True):
        model = KernelAUCClassifier(preset="paper", random_state=0).set_fit_request(sample_weight=True)
        weight = np.random.default_rng(0).random(len(X))
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, model).fit(X, y, sample_weight=weight)
        direct = KernelAUCClassifier(preset="paper", random_state=0).fit(
            StandardScaler().fit_transform(X), y, sample_weight=weight
        )
    np.testing.assert_allclose(
        pipeline.decision_function(X), direct.decision_function(StandardScaler().fit_transform(X))
    )


# Containers and dtypes


@both
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(model, library):
    X, y = moons()
    X = np.column_stack([X, X[:, 0] ** 2])
    names = ["length", "width", "square"]
    if library == "pandas":
        frame, target = pd.DataFrame(X, columns=names), pd.Series(y)
    else:
        frame, target = pl.DataFrame(X, schema=names), pl.Series(y)
    fitted = clone(model).fit(frame, target)
    assert list(fitted.feature_names_in_) == names
    plain = clone(model).fit(X, y)
    np.testing.assert_array_equal(fitted.decision_function(frame), plain.decision_function(X))


@both
def test_csr_is_not_densified_and_agrees(model, monkeypatch):
    X, y = moons()
    X = np.where(np.abs(X) > 0.3, X, 0.0)
    csr = sparse.csr_matrix(X)
    tight = clone(model).set_params(tol=1e-8)
    fitted = clone(tight).fit(csr, y)
    assert not fitted.scaler_.with_mean
    scaled = StandardScaler(with_mean=False).fit(X)
    dense = clone(tight).set_params(standardize=False).fit(scaled.transform(X), y)
    np.testing.assert_allclose(
        fitted.decision_function(csr), dense.decision_function(scaled.transform(X)), atol=1e-3
    )


@both
def test_odd_sparse_input(model):
    X, y = moons()
    with pytest.warns(UserWarning, match="gives all training rows the same score"):
        empty = clone(model).fit(sparse.csr_matrix(X.shape), y).decision_function(X)
    assert len(np.unique(empty)) == 1
    long = sparse.csr_array(X)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    small = clone(model)
    if "n_landmarks" in small.get_params():
        small.set_params(n_landmarks=10)
    a, b = (clone(small).fit(S, y).decision_function(X) for S in (long, sparse.csr_matrix(X)))
    np.testing.assert_allclose(a, b)


@both
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_global_output_setting_is_no_trouble(model, library):
    X, y = moons()
    plain = clone(model).fit(X, y).decision_function(X)
    with sklearn.config_context(transform_output=library):
        np.testing.assert_array_equal(clone(model).fit(X, y).decision_function(X), plain)


def test_wide_csr_stays_small():
    """A matrix that would take 800 MB dense is fitted in a quarter of that at most."""
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(0, 100_000, (1000, 25)), axis=1)
    values = rng.normal(size=columns.size)
    rows = np.arange(0, columns.size + 1, 25)
    X = sparse.csr_matrix((values, columns.ravel(), rows), shape=(1000, 100_000))
    y = (rng.random(1000) < 0.3).astype(int)
    linear = LinearAUCClassifier(0.001, tol=1e-2)
    kernel = KernelAUCClassifier(preset="paper", n_landmarks=5, landmarks="uniform", random_state=0)
    for model in (linear, kernel):
        tracemalloc.start()
        model.fit(X, y).decision_function(X)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 0.25 * 8 * X.shape[0] * X.shape[1]


@both
def test_float32_and_float64_agree(model):
    X, y = moons()
    tight = clone(model).set_params(tol=1e-6)
    a = clone(tight).fit(X, y).decision_function(X)
    b = clone(tight).fit(X.astype(np.float32), y).decision_function(X.astype(np.float32))
    np.testing.assert_allclose(a, b, atol=5e-3 * np.abs(a).max())


def test_large_blocks_are_float32(monkeypatch):
    X, y = moons()
    small = KernelAUCClassifier(preset="paper", random_state=0).fit(X, y)
    monkeypatch.setattr("aucmax.fitting.kernel_fit.FLOAT64_BYTES", 100)
    large = KernelAUCClassifier(preset="paper", random_state=0).fit(X, y)
    assert small.feature_map_.landmarks_.dtype == np.float64
    assert large.feature_map_.landmarks_.dtype == np.float32
    a, b = small.decision_function(X), large.decision_function(X)
    np.testing.assert_allclose(a, b, atol=5e-3 * np.abs(a).max())


@both
def test_row_order_does_not_matter(model):
    X, y = moons()
    order = np.random.default_rng(1).permutation(len(X))
    tight = clone(model).set_params(tol=1e-9)
    a = clone(tight).fit(X, y).decision_function(X)
    b = clone(tight).fit(X[order], y[order]).decision_function(X)
    np.testing.assert_allclose(a, b, atol=1e-3)


# Everyday use


def test_search_and_validation_in_a_pipeline():
    X, y = moons()
    pipeline = make_pipeline(StandardScaler(), KernelAUCClassifier(preset="paper", random_state=0))
    grid = {"kernelaucclassifier__C": [0.1, 10.0]}
    search = GridSearchCV(pipeline, grid, scoring="roc_auc", cv=3).fit(X, y)
    assert search.best_score_ > 0.95
    assert cross_val_score(LinearAUCClassifier(), X, y, scoring="roc_auc", cv=3).mean() > 0.85


def test_any_features_with_the_linear_head():
    X, y = moons()
    head = make_pipeline(
        NystroemFeatures(50, gamma=1.0, random_state=0), LinearAUCClassifier(10.0, standardize=False)
    )
    assert roc_auc(y, head.fit(X, y).decision_function(X)) > 0.97


@both
def test_parameters_are_left_as_given(model):
    X, y = moons()
    model = clone(model)
    before = dict(model.get_params())
    model.fit(X, y)
    assert model.get_params() == before


def test_history_has_a_record_per_step():
    X, y = moons()
    model = KernelAUCClassifier(preset="paper", random_state=0).fit(X, y)
    assert model.converged_
    assert len(model.history_) == model.n_iter_
    frame = pd.DataFrame(model.history_)
    assert frame["objective"].is_monotonic_decreasing
    assert frame["gap"].iloc[-1] <= 10 * model.tol  # before the last step, and cautious
    assert {"auc", "passes", "seconds", "products", "step"} <= set(frame.columns)


def test_stopping_early_warns_with_the_numbers():
    X, y = moons()
    message = r"after 1 Newton steps about \d.* raise max_iter=1"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model = KernelAUCClassifier(1000.0, preset="paper", max_iter=1, random_state=0).fit(X, y)
    assert caught[0].filename == __file__
    assert not model.converged_


def test_a_tolerance_below_rounding_warns_instead_of_looping():
    X, y = moons()
    model = KernelAUCClassifier(1000.0, preset="paper", tol=1e-300, max_iter=10_000, random_state=0)
    with pytest.warns(ConvergenceWarning, match="rounding allows no further progress"):
        model.fit(X.astype(np.float32), y)
    assert model.n_iter_ < 1000


def test_verbose_shows_objective_distance_and_auc(capsys):
    X, y = moons()
    KernelAUCClassifier(preset="paper", random_state=0, verbose=1).fit(X, y)
    err = capsys.readouterr().err
    assert re.search(
        r"Newton step 1: objective [\d.]+, about .* from the optimum .*training AUC 0\.", err
    )
    KernelAUCClassifier(preset="paper", random_state=0).fit(X, y)
    assert capsys.readouterr().err == ""


def test_the_line_is_live_on_a_terminal():
    import io

    from aucmax.operators.in_memory import FeatureOperator
    from aucmax.runtime.progress import LiveLine, describe_step
    from aucmax.solvers.newton import minimize
    from aucmax.solvers.options import Hooks

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    X, y = moons()
    terminal = Terminal()
    with LiveLine(lambda record: describe_step(record, 1e-4), terminal) as line:
        minimize(FeatureOperator(X), [PairLoss(y == 1)] * 2, np.ones(2), hooks=Hooks(line))
    shown = terminal.getvalue()
    assert shown.endswith("\n")
    assert shown.count("\r") >= 2
    assert "[1 of 2]" in shown or "[2 of 2]" in shown


# Bad input


BAD_FITS = {
    "one class": (lambda X, y: (X, np.zeros(len(y))), "one class, 0.0"),
    "labels with NaN": (
        lambda X, y: (X, np.where(np.arange(len(y)) == 4, np.nan, y)),
        "row 4 has no label",
    ),
    "missing text labels": (
        lambda X, y: (X, np.where(np.arange(len(y)) == 4, None, np.array(["a", "b"])[y])),
        "row 4 has no label",
    ),
    "continuous labels": (lambda X, y: (X, y + 0.3 * X[:, 0]), "(?i)continuous"),
    "NaN feature": (
        lambda X, y: (
            np.where(np.arange(2) == 1, np.where(np.arange(len(y))[:, None] == 7, np.nan, X), X),
            y,
        ),
        r"contains NaN in column 1 \(row 7; 1 such",
    ),
    "infinite feature": (
        lambda X, y: (pd.DataFrame(np.where(X[3, 0] == X, np.inf, X), columns=["u", "v"]), y),
        r"contains infinity in column 'u' \(row 3",
    ),
    "NaN in CSR": (
        lambda X, y: (sparse.csr_matrix(np.where(X[3, 1] == X, np.nan, X)), y),
        r"NaN in column 1 \(row 3",
    ),
    "strings": (
        lambda X, y: (pd.DataFrame({"u": X[:, 0], "kind": ["red"] * len(y)}), y),
        r"text in column 'kind' \(row 0: 'red'\).*OneHotEncoder",
    ),
    "strings in polars": (
        lambda X, y: (pl.DataFrame({"u": X[:, 0], "kind": ["red"] * len(y)}), y),
        "text in column 'kind'",
    ),
    "strings in an array": (
        lambda X, y: (np.column_stack([X.astype(object), np.full(len(y), "red", dtype=object)]), y),
        "text in column 2",
    ),
    "text far down": (
        lambda X, y: (np.where(X[150, 1] == X, "?", X.astype(object)), y),
        r"text in column 1 \(row 150: '\?'\)",
    ),
    "text in a list": (lambda X, y: ([[1.0, "red"]] * len(y), y), "text in column 1"),
    "dates": (
        lambda X, y: (pd.DataFrame({"u": X[:, 0], "day": pd.Timestamp("2020-01-01")}), y),
        "column 'day', holds dates",
    ),
    "labels with NA": (
        lambda X, y: (X, pd.Series(np.where(np.arange(len(y)) == 4, pd.NA, y), dtype="Int64")),
        "row 4 has no label",
    ),
    "text labels with NA": (
        lambda X, y: (X, pd.Series(["a", "b", None] + ["a"] * (len(y) - 3), dtype="string")),
        "row 2 has no label",
    ),
    "a NaN in a list of text labels": (
        lambda X, y: (X, ["a", "b", float("nan")] + ["a"] * (len(y) - 3)),
        "row 2 has no label",
    ),
    "sparse labels": (lambda X, y: (X, sparse.csr_matrix(y)), "got a sparse matrix"),
    "overflow": (lambda X, y: (1e305 * X, y), "column 0, is too large to be standardised"),
    "mismatched lengths": (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
    "empty": (lambda X, y: (X[:0], y[:0]), "0 sample"),
    "no columns": (lambda X, y: (X[:, :0], y), r"0 feature\(s\)"),
    "one row": (lambda X, y: (X[:1], y[:1]), "one class|1 sample"),
    "one-dimensional": (lambda X, y: (X[:, 0], y), "2D array"),
}


@both
@pytest.mark.parametrize("case", BAD_FITS)
def test_bad_rows_are_refused_with_a_sentence(model, case):
    change, message = BAD_FITS[case]
    X, y = change(*moons())
    model = clone(model)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(moons()[0])


BAD_WEIGHTS = {
    "negative": (lambda w: np.where(np.arange(len(w)) == 2, -1.0, w), "row 2 has -1"),
    "NaN": (lambda w: np.where(np.arange(len(w)) == 2, np.nan, w), "row 2 has nan"),
    "all zero": (lambda w: 0 * w, "zero on every row"),
    "wrong length": (lambda w: w[:-1], r"must have shape"),
    "text": (lambda w: ["heavy"] * len(w), "one number per row"),
}


@both
@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_bad_weights_are_refused_with_a_sentence(model, case):
    X, y = moons()
    change, message = BAD_WEIGHTS[case]
    with pytest.raises(ValueError, match=message):
        clone(model).fit(X, y, sample_weight=change(np.ones(len(y))))


@both
def test_all_weight_on_one_class_is_refused(model):
    X, y = moons()
    with pytest.raises(ValueError, match="all of one class, 1"):
        clone(model).fit(X, y, sample_weight=(y == 1).astype(float))


BAD_PARAMS = [
    (KernelAUCClassifier(0.0, preset="paper"), "C must be .*a number above 0; got 0.0"),
    (KernelAUCClassifier(-1, preset="paper"), "C must be .*a number above 0; got -1"),
    (KernelAUCClassifier(np.inf, preset="paper"), "C must be"),
    (KernelAUCClassifier(np.nan, preset="paper"), "C must be"),
    (KernelAUCClassifier("large", preset="paper"), "C must be .*a number above 0; got 'large'"),
    (KernelAUCClassifier(True, preset="paper"), "C must be"),
    (KernelAUCClassifier(preset="paper", gamma=0.0), "gamma must be .*a number above 0"),
    (KernelAUCClassifier(preset="paper", gamma="widest"), "gamma must be .*one of"),
    (KernelAUCClassifier(preset="paper", tol=0.0), "tol must be a number above 0 and at most 1"),
    (KernelAUCClassifier(preset="paper", tol=2.0), "tol must be"),
    (
        KernelAUCClassifier(preset="paper", max_iter=0),
        "max_iter must be .*a whole number of at least 1",
    ),
    (KernelAUCClassifier(preset="paper", n_landmarks=-3), "n_landmarks must be"),
    (KernelAUCClassifier(preset="paper", feature_map="deep"), "feature_map must be one of"),
    (KernelAUCClassifier(preset="paper", solver="adam"), "solver must be one of 'newton'"),
    (
        KernelAUCClassifier(preset="paper", feature_map="fourier", kernel="linear"),
        'Use feature_map="nystroem"',
    ),
    (KernelAUCClassifier(preset="paper", max_memory="lots"), "max_memory must be .*bytes"),
    (KernelAUCClassifier(preset="paper", max_memory="1.2.3GB"), "max_memory must be .*bytes"),
    (KernelAUCClassifier(preset="paper", max_memory=[1]), "max_memory must be .*bytes"),
    (
        KernelAUCClassifier(preset="paper", landmarks=None),
        r"landmarks must be one of .* dense array.* got None",
    ),
    (KernelAUCClassifier(preset="paper", landmarks=5), "landmarks must be one of"),
    (KernelAUCClassifier(preset="paper", landmarks="grid"), "landmarks must be one of"),
    (KernelAUCClassifier(preset="paper", landmarks=np.full((3, 2), np.nan)), "landmarks contains NaN"),
    (LinearAUCClassifier(0), "C must be"),
]


@pytest.mark.parametrize(("model", "message"), BAD_PARAMS)
def test_bad_parameters_are_refused_with_a_sentence(model, message):
    X, y = moons()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_too_little_memory_is_said_before_the_work():
    X, y = moons()
    model = KernelAUCClassifier(preset="paper", max_memory="10 kB")
    with pytest.raises(MemoryError, match=r"191 landmarks of 2 columns needs 885 kB, and 10 kB is"):
        model.fit(X, y)


def test_memory_counts_fourier_features_and_dense_landmarks():
    X, y = moons()
    with pytest.raises(
        MemoryError, match=r"191 rows x 1,600 kernel values, even with none kept, needs"
    ):
        KernelAUCClassifier(
            preset="paper", feature_map="fourier", landmarks=X[:5], max_memory="500kB"
        ).fit(X, y)
    wide = sparse.csr_matrix((len(y), 100_000))
    with pytest.raises(MemoryError, match=r"needs 4\d\d MB"):
        KernelAUCClassifier(preset="paper", max_memory="100MB").fit(wide, y)


def test_extreme_values_are_named_not_turned_into_nan():
    X, y = moons()
    raw = KernelAUCClassifier(
        preset="paper", standardize=False, kernel="polynomial", degree=30, gamma=1e9
    )
    with pytest.raises(ValueError, match="overflow"):
        raw.fit(X, y)
    model = LinearAUCClassifier().fit(X, y)
    for size in (1e-200, 1e200):  # only C times the weights matters
        same = LinearAUCClassifier(1 / size).fit(X, y, sample_weight=np.full(len(y), size))
        np.testing.assert_allclose(same.coef_, model.coef_, rtol=1e-6)
    model = KernelAUCClassifier(preset="paper", kernel="polynomial").fit(X, y)
    far = np.tile(X, (20, 1))
    far[5] = 1e200
    with pytest.raises(ValueError, match=r"score of row 5 \(from 0\) is not finite \(1 such"):
        model.decision_function(far)


def test_an_enormous_cost_ends_with_a_model_or_a_warning():
    X, y = load_breast_cancer(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearAUCClassifier(1e15).fit(X, y)
    assert roc_auc(y, model.decision_function(X)) > 0.99


def test_more_landmarks_than_rows_works_and_says_so():
    X, y = moons(60)
    with pytest.warns(UserWarning, match="more than the") as caught:
        model = KernelAUCClassifier(preset="paper", n_landmarks=500).fit(X, y)
    assert caught[0].filename == __file__
    assert np.isfinite(model.decision_function(X)).all()


@both
def test_unfitted_use(model):
    with pytest.raises(NotFittedError):
        clone(model).predict(np.zeros((2, 2)))


@both
def test_other_columns_at_prediction(model):
    X, y = moons()
    fitted = clone(model).fit(X, y)
    with pytest.raises(ValueError, match=r"X has 1 features, but .* is expecting 2"):
        fitted.predict(X[:, :1])
    named = clone(model).fit(pd.DataFrame(X, columns=["a", "b"]), y)
    with pytest.raises(ValueError, match=r"(?s)Feature names unseen at fit time.*- c"):
        named.predict(pd.DataFrame(X, columns=["a", "c"]))
    with pytest.raises(ValueError, match="NaN in column 'b'"):
        named.predict(pd.DataFrame(np.where(X[0, 1] == X, np.nan, X), columns=["a", "b"]))


@both
def test_an_interrupted_fit_leaves_nothing_half_done(model, monkeypatch):
    X, y = moons()
    model = clone(model).fit(X, y)

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(newton_fit, "minimize", interrupt)
    with pytest.raises(KeyboardInterrupt, match="interrupted; the estimator is left unfitted"):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_a_clean_fit_warns_of_nothing():
    X, y = moons()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        KernelAUCClassifier(preset="paper", random_state=0).fit(X, y).predict(X)
    assert not caught
