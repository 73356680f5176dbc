"""SGDAUCClassifier, OAMClassifier, SOLAMClassifier, and solver="sgd"."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from aucmax import (
    KernelAUCClassifier,
    LinearAUCClassifier,
    NystroemFeatures,
    OAMClassifier,
    SGDAUCClassifier,
    SOLAMClassifier,
)
from aucmax.features.landmark_map import LandmarkMap
from aucmax.fitting.scaling import rounded
from aucmax.metrics import roc_auc
from aucmax.solvers import stochastic as stochastic_module
from aucmax.solvers.epochs import Trace

ALL = [
    SGDAUCClassifier(random_state=0),
    OAMClassifier(random_state=0),
    SOLAMClassifier(zeta=0.1, random_state=0),
]
every = pytest.mark.parametrize("model", ALL, ids=["sgd", "oam", "solam"])


def _weighs(model):
    return isinstance(model, SGDAUCClassifier | KernelAUCClassifier)


#: A row drawn twice as often and the same row twice meet other random numbers; the property itself is
#: tested below, within what the noise of the draws allows.
DRAWN = {
    "check_sample_weight_equivalence_on_dense_data": "rows are drawn at random",
    "check_sample_weight_equivalence_on_sparse_data": "rows are drawn at random",
}


@parametrize_with_checks(
    [
        *ALL,
        SGDAUCClassifier(average=False, random_state=0),
        KernelAUCClassifier(preset="paper", solver="sgd"),
    ],
    expected_failed_checks=lambda model: {} if not _weighs(model) else DRAWN,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def cancer(seed=0):
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order], y[order]


def chunks(X, y, size=50):
    return [(X[i : i + size], y[i : i + size]) for i in range(0, len(y), size)]


# What is learnt


@every
def test_it_ranks(model):
    X, y = cancer()
    train, test = slice(0, 400), slice(400, None)
    model = clone(model).fit(X[train], y[train])
    assert roc_auc(y[test], model.decision_function(X[test])) > 0.98
    assert model.score(X[test], y[test]) > 0.85


def test_sgd_comes_to_the_minimum_of_its_own_objective():
    """Against L-BFGS on a smoothed hinge over explicit pairs."""
    from scipy.optimize import minimize

    X, y = cancer()
    X = StandardScaler().fit_transform(X[:150])
    y = y[:150]
    alpha = 0.01
    differences = (X[y == 1][:, None] - X[y == 0]).reshape(-1, X.shape[1])

    def objective(w, soft=1e-3):
        slack = 1.0 - differences @ w
        root = np.sqrt(slack**2 + soft**2)
        share = 0.5 * (1 + slack / root) / len(slack)
        return 0.5 * alpha * w @ w + 0.5 * (slack + root).mean(), alpha * w - differences.T @ share

    best = minimize(objective, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B").fun
    model = SGDAUCClassifier(alpha=alpha, epochs=400, standardize=False, random_state=0).fit(X, y)
    ours, _ = objective(model.coef_[0])
    assert best - 1e-3 <= ours <= best * 1.02 + 1e-4


def test_the_average_is_nearer_to_the_minimum_than_the_last_iterate():
    X, y = make_moons(800, noise=0.3, random_state=0)
    X = NystroemFeatures(100, gamma=1.0, random_state=0).fit_transform(X)
    exact = LinearAUCClassifier(10.0, standardize=False).fit(X, y).decision_function(X)
    gaps = {True: 0.0, False: 0.0}
    for average in gaps:
        for seed in range(5):
            model = SGDAUCClassifier(average=average, standardize=False, random_state=seed).fit(X, y)
            gaps[average] += 1 - np.corrcoef(exact, model.decision_function(X))[0, 1]
    assert gaps[True] < gaps[False]


def test_kernel_sgd_is_close_to_kernel_newton():
    X, y = make_moons(1000, noise=0.3, random_state=0)
    aucs = {}
    for solver in ("newton", "sgd"):
        model = KernelAUCClassifier(preset="paper", solver=solver, n_landmarks=100, random_state=0)
        model.fit(X[:700], y[:700])
        aucs[solver] = roc_auc(y[700:], model.decision_function(X[700:]))
    assert aucs["sgd"] == pytest.approx(aucs["newton"], abs=0.005)
    assert len(model.history_) == model.n_iter_ == 20
    assert not hasattr(model, "converged_")


def test_kernel_sgd_is_the_pipeline_of_its_parts(monkeypatch):
    # The order of content is that of the features there, and of the rows here.
    monkeypatch.setattr("aucmax.fitting.open_fit.content_order", lambda X, *_: np.arange(X.shape[0]))
    X, y = make_moons(400, noise=0.3, random_state=0)
    whole = KernelAUCClassifier(
        5.0, preset="paper", solver="sgd", n_landmarks=50, random_state=0, max_iter=4
    ).fit(X, y)
    scaled = rounded(StandardScaler().fit(X)).transform(X)
    parts = make_pipeline(
        NystroemFeatures(50, landmarks="centroids", gamma="paper", random_state=0),
        SGDAUCClassifier(5.0, epochs=4, standardize=False, random_state=0),
    ).fit(scaled, y)
    np.testing.assert_allclose(whole.decision_function(X), parts.decision_function(scaled), atol=1e-6)


def test_kernel_sgd_never_holds_block_and_projection(monkeypatch):
    def refuse(self, X):
        raise AssertionError("the kernel block was made whole")

    monkeypatch.setattr(LandmarkMap, "kernel_block", refuse)
    X, y = make_moons(400, noise=0.3, random_state=0)
    KernelAUCClassifier(preset="paper", solver="sgd", n_landmarks=50, random_state=0).fit(X, y)


@every
def test_more_classes_one_against_the_rest(model):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = clone(model).fit(X, names)
    assert model.decision_function(X).shape == (150, 3)
    assert model.score(X, names) > 0.75


@every
def test_same_seed_same_result(model):
    X, y = cancer()
    a, b = clone(model).fit(X, y), clone(model).fit(X, y)
    np.testing.assert_array_equal(a.coef_, b.coef_)
    other = clone(model).set_params(random_state=1).fit(X, y)
    assert np.any(a.coef_ != other.coef_)


@every
def test_sparse_rows_are_as_dense_ones(model, monkeypatch):
    monkeypatch.setattr(stochastic_module, "_DENSE_ENTRIES", 2**11)  # several pieces
    X, y = cancer()
    X = np.where(np.median(X, axis=0) < X, X, 0.0) / X.std(axis=0)
    model = clone(model).set_params(standardize=False)
    dense = clone(model).fit(X, y)
    loose = clone(model).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(dense.coef_, loose.coef_, rtol=1e-6, atol=1e-8)


@every
def test_coefficients_are_in_the_units_of_the_data(model):
    X, y = cancer()
    model = clone(model).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_[0])


def test_a_weight_is_how_often_a_row_is_drawn():
    X, y = cancer()
    weight = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    weighted = SGDAUCClassifier(1.0, epochs=200, random_state=0).fit(X, y, weight)
    repeated = np.repeat(np.arange(len(y)), weight.astype(int))
    twice = SGDAUCClassifier(1.0, epochs=200, random_state=1).fit(X[repeated], y[repeated])
    a, b = weighted.decision_function(X), twice.decision_function(X)
    assert np.corrcoef(a, b)[0, 1] > 0.999
    other = SGDAUCClassifier(1.0, epochs=200, random_state=1).fit(X, y).decision_function(X)
    assert np.corrcoef(a, other)[0, 1] < np.corrcoef(a, b)[0, 1]


def test_alpha_takes_the_place_of_c():
    X, y = cancer()
    a = SGDAUCClassifier(2.0, random_state=0).fit(X, y)
    b = SGDAUCClassifier(alpha=1 / (2.0 * len(y)), random_state=0).fit(X, y)
    np.testing.assert_array_equal(a.coef_, b.coef_)


def test_a_search_over_a_pipeline():
    X, y = make_moons(200, noise=0.3, random_state=0)
    parts = make_pipeline(NystroemFeatures(20, random_state=0), SGDAUCClassifier(random_state=0))
    search = GridSearchCV(parts, {"sgdaucclassifier__C": [0.1, 10.0]}, scoring="roc_auc", cv=2)
    assert search.fit(X, y).best_score_ > 0.9


# Traces


@every
@pytest.mark.parametrize("trace", ["train", "validation"])
def test_a_trace_has_one_auc_per_epoch(model, trace):
    X, y = cancer()
    model = clone(model).set_params(trace=trace, epochs=4).fit(X, y)
    assert [record["epoch"] for record in model.history_] == [1, 2, 3, 4]
    assert all(0.8 < record["auc"] <= 1 for record in model.history_)
    if trace == "train":
        assert model.history_[-1]["auc"] == pytest.approx(roc_auc(y, model.decision_function(X)))


def test_the_trace_may_be_on_other_rows():
    X, y = cancer()
    model = SGDAUCClassifier(epochs=3, random_state=0)
    model.fit(X[:400], y[:400], X_val=X[400:], y_val=y[400:])
    plain = SGDAUCClassifier(epochs=3, random_state=0).fit(X[:400], y[:400])
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    expected = roc_auc(y[400:], model.decision_function(X[400:]))
    assert model.history_[-1]["auc"] == pytest.approx(expected)
    with pytest.raises(ValueError, match="X_val and y_val together"):
        model.fit(X, y, X_val=X)
    with pytest.raises(ValueError, match="new class, 7"):
        model.fit(X, y, X_val=X, y_val=np.full(len(y), 7))
    with pytest.raises(ValueError, match='not used with trace="train"'):
        clone(model).set_params(trace="train").fit(X, y, X_val=X, y_val=y)
    loose = clone(model).fit(X[:400], y[:400], X_val=sparse.csr_matrix(X[400:]), y_val=y[400:])
    assert loose.history_[-1]["auc"] == pytest.approx(expected)
    with pytest.raises(ValueError, match="y_val has no row of some class"):
        model.fit(X, y, X_val=X, y_val=np.ones(len(y), dtype=int))


def test_early_stopping_keeps_the_best():
    X, y = cancer()
    model = SGDAUCClassifier(epochs=50, early_stopping=True, trace="train", random_state=0, tol=0.0)
    model.fit(X, y)
    aucs = [record["auc"] for record in model.history_]
    assert model.n_iter_ == len(aucs) < 50
    assert max(aucs) == pytest.approx(roc_auc(y, model.decision_function(X)))
    assert aucs[-4] == max(aucs)  # three epochs without a rise


def test_progress_is_shown(capsys):
    X, y = cancer()
    SGDAUCClassifier(epochs=2, trace="train", verbose=1, random_state=0).fit(X, y)
    shown = capsys.readouterr().err
    assert re.search(r"epoch 2 of 2, training AUC 0\.\d+, .* 0 s left", shown)


# Streams


@every
def test_a_stream_is_learnt_in_chunks(model):
    X, y = cancer()
    model = clone(model)
    for rows, labels in chunks(X[:450], y[:450]):
        model.partial_fit(rows, labels, classes=[0, 1])
    assert model.rows_seen_ == 450
    assert roc_auc(y[450:], model.decision_function(X[450:])) > 0.97
    assert model.score(X[450:], y[450:]) > 0.85


@every
def test_chunks_of_one_class_are_no_error(model):
    X, y = cancer()
    model = clone(model)
    order = np.argsort(y[:400], kind="stable")  # all negatives first
    for rows, labels in chunks(X[:400][order], y[:400][order], 20):
        model.partial_fit(rows, labels, classes=[0, 1])
    assert roc_auc(y[400:], model.decision_function(X[400:])) > 0.9


@every
@pytest.mark.parametrize("label", [0, 1])
def test_before_the_other_class_has_come_scores_are_zeros(model, label):
    X, y = cancer()
    model = clone(model).partial_fit(X[y == label][:30], y[y == label][:30], classes=[0, 1])
    np.testing.assert_array_equal(model.decision_function(X), 0.0)
    assert set(model.predict(X)) == {0}


@every
def test_the_first_call_may_find_the_classes_itself(model):
    X, y = cancer()
    model = clone(model).partial_fit(X[:50], y[:50])
    assert list(model.classes_) == [0, 1]
    with pytest.raises(ValueError, match=r"pass all classes of the stream as classes="):
        clone(model).partial_fit(X[:50], np.ones(50))


@every
def test_a_stream_refuses_what_does_not_fit(model):
    X, y = cancer()
    model = clone(model).partial_fit(X[:150], y[:150])
    before = model.decision_function(X)
    assert before.any()
    with pytest.raises(ValueError, match="new class, 5"):
        model.partial_fit(X[:3], [0, 1, 5])
    with pytest.raises(ValueError, match="differ from those of earlier calls"):
        model.partial_fit(X[:3], [0, 1, 1], classes=[0, 1, 2])
    with pytest.raises(ValueError, match="29 features"):
        model.partial_fit(X[:3, 1:], [0, 1, 1])
    with pytest.raises(ValueError, match="contains NaN in column 2"):
        model.partial_fit(np.where(np.arange(30) == 2, np.nan, X[:3]), [0, 1, 1])
    with pytest.raises(ValueError, match="row 1 has no label"):
        model.partial_fit(X[:3], [0.0, np.nan, 1.0])
    np.testing.assert_array_equal(model.decision_function(X), before)  # nothing of it was learnt
    with pytest.raises(ValueError, match="Start again with fit"):
        clone_with(model, standardize=False).partial_fit(X[:3], [0, 1, 1])
    assert model.rows_seen_ == 150
    model.partial_fit(X[150:200], y[150:200])


def clone_with(model, **parameters):
    return pickle.loads(pickle.dumps(model)).set_params(**parameters)


@every
@pytest.mark.parametrize(
    ("size", "rows", "columns"),
    [
        pytest.param(1, 200, 5, marks=pytest.mark.slow),
        (3, 200, 5),
        *(pytest.param(size, 1000, 30, marks=pytest.mark.slow) for size in (1, 2, 3)),
    ],
)
def test_tiny_chunks_do_no_lasting_harm(model, size, rows, columns):
    """The first rows alone know neither the units nor the length of steps."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows + 1000, columns))
    y = X[:, :3].sum(axis=1) + rng.normal(size=len(X)) > 1.5
    model, large = clone(model), clone(model)
    for part, labels in chunks(X[:rows], y[:rows], size):
        model.partial_fit(part, labels, classes=[False, True])
    for part, labels in chunks(X[:rows], y[:rows], 100):
        large.partial_fit(part, labels, classes=[False, True])
    aucs = [roc_auc(y[rows:], m.decision_function(X[rows:])) for m in (model, large)]
    assert aucs[0] > aucs[1] - 0.03


def test_a_class_that_has_not_come_is_not_predicted():
    X, y = load_iris(return_X_y=True)
    seen = y < 2
    model = SGDAUCClassifier(random_state=0).partial_fit(X[seen], y[seen], classes=[0, 1, 2])
    assert set(model.predict(X)) <= {0, 1}


def test_a_column_too_large_for_float32_is_refused_before_anything_changes():
    X, y = cancer()
    model = SGDAUCClassifier(standardize=False, random_state=0)
    model.partial_fit(X[:200].astype(np.float32) / 1000, y[:200])
    before = model.decision_function(X)
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="extreme values"):
        model.partial_fit(X[200:300] * 1e39, y[200:300])
    np.testing.assert_array_equal(model.decision_function(X), before)
    model.partial_fit(X[200:300] / 1000, y[200:300])


def test_after_early_stopping_a_stream_goes_on_from_the_best():
    X, y = cancer()
    model = OAMClassifier(1.0, epochs=30, early_stopping=True, trace="train", random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.coef_[0], model.learners_[0].coef / model.scaler_.scale_)


@pytest.mark.parametrize(("fraction", "held"), [(0.1, 1), (0.9, 3)])
def test_a_rare_class_is_held_back_in_part(fraction, held, monkeypatch):
    X, y = cancer()
    y = np.isin(np.arange(len(y)), [3, 70, 200, 400])
    followed = []

    def trace(rows, **options):
        followed.append(rows.positives)
        return Trace(rows, **options)

    monkeypatch.setattr("aucmax.fitting.stream_fit.Trace", trace)
    SGDAUCClassifier(early_stopping=True, validation_fraction=fraction, random_state=0).fit(X, y)
    ((positive,),) = followed
    assert positive.sum() == held
    assert positive.size == held + round(fraction * (len(y) - 4))


def test_a_fitted_model_carries_no_rows():
    X, y = cancer()
    for model in (SGDAUCClassifier(random_state=0), SOLAMClassifier(zeta=0.1, random_state=0)):
        assert len(pickle.dumps(model.fit(X, y))) < 20_000


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e300])
def test_weights_of_any_size(scale):
    X, y = cancer()
    weight = np.full(len(y), scale)
    model = SGDAUCClassifier(epochs=2, trace="train", random_state=0).fit(X, y, weight)
    assert 0.9 < model.history_[-1]["auc"] <= 1


def test_a_stream_of_frames_keeps_its_column_names():
    X, y = cancer()
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(30)])
    model = SGDAUCClassifier(random_state=0).partial_fit(frame[:100], y[:100])
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[:100][frame.columns[::-1]], y[:100])


@every
def test_a_stream_in_other_units_is_the_same_stream(model):
    """Standardisation follows the rows seen, and what was learnt in older units keeps its meaning."""
    X, y = cancer()
    scale = 10.0 ** np.random.default_rng(0).uniform(-3, 3, 30)
    a, b = clone(model), clone(model)
    for rows, labels in chunks(X, y):
        a.partial_fit(rows, labels, classes=[0, 1])
        b.partial_fit(rows * scale + 5.0, labels, classes=[0, 1])
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X * scale + 5.0), atol=1e-4)


def test_units_that_change_do_not_change_the_scores():
    """Rescaling a learner moves coefficients and buffers together."""
    X, y = cancer()
    ratio, shift = np.linspace(0.5, 2.0, 30), np.linspace(-1, 1, 30)
    for learner in (
        stochastic_module.PairSGD(30, np.float64, alpha=1e-3, buffer_size=20),
        stochastic_module.OAM(30, np.float64, C=0.1, buffer_size=20),
        stochastic_module.SOLAM(30, np.float64, zeta=0.01, radius=10.0, buffer_size=20),
    ):
        Z = StandardScaler().fit_transform(X)
        learner.stream(Z, y == 1, np.random.default_rng(0))
        pos, neg = learner.samples()
        before = pos @ learner.coef - (neg @ learner.coef).mean()
        learner.rescale(ratio, shift)
        pos, neg = learner.samples()
        np.testing.assert_allclose(pos @ learner.coef - (neg @ learner.coef).mean(), before)


@every
def test_a_stream_goes_on_after_fit_and_after_pickling(model):
    X, y = cancer()
    model = clone(model).fit(X[:300], y[:300])
    copy = pickle.loads(pickle.dumps(model))
    for each in (model, copy):
        each.partial_fit(X[300:400], y[300:400])
    np.testing.assert_array_equal(model.coef_, copy.coef_)
    assert model.rows_seen_ == 400
    model.fit(X[:100], y[:100])
    assert model.rows_seen_ == 100


def test_a_stream_of_sparse_rows():
    X, y = cancer()
    X = sparse.csr_matrix(np.where(np.median(X, axis=0) < X, X, 0.0))
    model = SGDAUCClassifier(random_state=0)
    for rows, labels in chunks(X, y):
        model.partial_fit(rows, labels, classes=[0, 1])
    assert roc_auc(y, model.decision_function(X)) > 0.95


# Bad input


BAD_PARAMETERS = [
    (SGDAUCClassifier, {"C": 0}, "C must be a number above 0; got 0"),
    (SGDAUCClassifier, {"alpha": -1.0}, "alpha must be None or a number above 0"),
    (SGDAUCClassifier, {"t0": -1}, "t0 must be 'auto' or a number of at least 0"),
    (SGDAUCClassifier, {"t0": "soon"}, "t0 must be"),
    (SGDAUCClassifier, {"regularize_every": 0}, "regularize_every must be a whole number"),
    (SGDAUCClassifier, {"average_every": 1.5}, "average_every must be a whole number"),
    (SGDAUCClassifier, {"average_power": -1}, "average_power must be"),
    (SGDAUCClassifier, {"buffer_size": 0}, "buffer_size must be"),
    (SGDAUCClassifier, {"epochs": 0}, "epochs must be a whole number of at least 1"),
    (SGDAUCClassifier, {"trace": "test"}, "trace must be one of 'train', 'validation'"),
    (SGDAUCClassifier, {"validation_fraction": 1.5}, "validation_fraction must be"),
    (SGDAUCClassifier, {"n_iter_no_change": 0}, "n_iter_no_change must be"),
    (OAMClassifier, {"C": np.nan}, "C must be"),
    (OAMClassifier, {"buffer_size": -3}, "buffer_size must be"),
    (OAMClassifier, {"epochs": "many"}, "epochs must be"),
    (SOLAMClassifier, {"zeta": 0.0}, "zeta must be"),
    (SOLAMClassifier, {"radius": -1.0}, "radius must be"),
    (KernelAUCClassifier, {"solver": "adam"}, "solver must be one of 'newton', 'sgd'"),
    (KernelAUCClassifier, {"solver": "sgd", "max_iter": 0}, "max_iter must be"),
]


@pytest.mark.parametrize(("kind", "parameters", "message"), BAD_PARAMETERS)
def test_parameters_out_of_range(kind, parameters, message):
    X, y = cancer()
    for method in ("fit", "partial_fit"):
        if hasattr(kind, method):
            with pytest.raises(ValueError, match=re.escape(message)):
                getattr(kind(**parameters), method)(X, y)


@every
def test_bad_rows(model):
    X, y = cancer()
    model = clone(model)
    for bad_X, bad_y, message in [
        (X, np.zeros(len(y)), "one class"),
        (np.where(np.arange(30) == 3, np.inf, X), y, "infinity in column 3"),
        (np.full(X.shape, "a"), y, "text in column 0"),
        (X, y[:-1], "inconsistent"),
        (X[:0], y[:0], "0 sample"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(bad_X, bad_y)
        assert not hasattr(model, "classes_")


def test_a_single_positive_works_and_cannot_be_held_back():
    X, y = cancer()
    y = np.arange(len(y)) == 3
    for model in ALL:
        assert np.isfinite(clone(model).fit(X, y).decision_function(X)).all()
    with pytest.raises(ValueError, match="has a single row"):
        SGDAUCClassifier(early_stopping=True).fit(X, y)


@every
def test_extreme_values_are_named(model):
    X, y = cancer()
    with pytest.raises(ValueError, match="standardize"):
        clone(model).set_params(standardize=False).fit(X * 1e200, y)
    with pytest.raises(ValueError, match="X, column 0, is too large to be standardised"):
        clone(model).partial_fit(X * 1e200, y)


@every
def test_ctrl_c_leaves_it_unfitted(model, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    X, y = cancer()
    model = clone(model)
    with monkeypatch.context() as patch:
        patch.setattr(stochastic_module.compiled, "run", interrupt)
        with pytest.raises(KeyboardInterrupt, match="left unfitted"):
            model.fit(X, y)
    assert not hasattr(model, "classes_")
    model.fit(X, y)
