"""The exact kernel machine against the landmark machine with all rows, and an independent optimiser."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from aucmax import KernelAUCClassifier, KernelRankSVM, LinearAUCClassifier, NystroemFeatures
from aucmax.features.kernels import KernelSpec
from aucmax.fitting import checkpoint, rank_svm_fit
from aucmax.metrics import roc_auc
from aucmax.operators import kernel_tiles
from aucmax.operators.kernel_tiles import KernelTiles
from aucmax.pairs import PairLoss
from aucmax.runtime.deadline import Deadline
from aucmax.solvers.kernel_newton import minimize_kernel
from aucmax.solvers.newton import minimize
from aucmax.solvers.options import Hooks, Stopping
from tests import oracle


@parametrize_with_checks([KernelRankSVM(), KernelRankSVM(kernel="polynomial", gamma=0.1)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


class Dense:
    """A kernel matrix as the solver sees it."""

    def __init__(self, K):
        self.K = K

    def product(self, vector):
        return self.K @ vector

    def restricted(self, rows):
        return Dense(self.K[np.ix_(rows, rows)])


def moons(n=200, seed=0):
    X, y = make_moons(n, noise=0.25, random_state=seed)
    keep = np.flatnonzero((y == 0) | (np.arange(n) % 3 == 0))
    return StandardScaler().fit_transform(X[keep]), y[keep]


@pytest.mark.parametrize("C", [0.1, 3.0, 300.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_independent_optimiser_finds_no_lower_value(C, weighted):
    X, y = moons(120)
    weight = np.random.default_rng(0).uniform(0.1, 3.0, len(y)) if weighted else None
    K = rbf_kernel(X, gamma=1.5)
    values, vectors = np.linalg.eigh(K)
    keep = values > 1e-10
    root = vectors[:, keep] * np.sqrt(values[keep])
    best, w = oracle.best_objective(root, y == 1, C, weight)
    solution = minimize_kernel(Dense(K), PairLoss(y == 1, weight), C, stopping=Stopping(tol=1e-9))
    assert solution.converged
    assert solution.objective <= best * (1 + 1e-6)
    np.testing.assert_allclose(solution.scores, root @ w, atol=2e-3 * np.abs(root @ w).max())


def test_at_the_minimum_coefficients_are_the_gradient():
    X, y = moons()
    K, loss = rbf_kernel(X, gamma=1.5), PairLoss(y == 1)
    solution = minimize_kernel(Dense(K), loss, 5.0, stopping=Stopping(tol=1e-12))
    expected = -5.0 * loss.at(solution.scores).gradient
    np.testing.assert_allclose(solution.coef, expected, atol=1e-3 * np.abs(expected).max())


def test_a_solve_ends_at_its_deadline_with_what_it_has():
    X, y = moons()
    K, loss = rbf_kernel(X, gamma=1.5), PairLoss(y == 1)
    cut = minimize_kernel(Dense(K), loss, 5.0, stopping=Stopping(deadline=Deadline(0.0)))
    assert not cut.converged
    assert not cut.history
    assert cut.objective == 5.0 * loss.at(np.zeros(len(y))).value


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "polynomial", "linear"])
def test_it_is_the_landmark_machine_with_every_row_a_landmark(kernel):
    X, y = moons()
    parameters = {"C": 5.0, "kernel": kernel, "gamma": 0.7, "standardize": False, "tol": 1e-6}
    exact = KernelRankSVM(**parameters).fit(X, y)
    mapped = KernelAUCClassifier(preset="paper", landmarks=X, **parameters).fit(X, y)
    assert exact.objective_ == pytest.approx(mapped.objective_, rel=1e-3)
    a, b = exact.decision_function(X), mapped.decision_function(X)
    np.testing.assert_allclose(a - a.mean(), b - b.mean(), atol=0.02 * b.std())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_wide_kernel_keeps_the_features_that_its_minimum_needs(dtype):
    X, y = make_classification(
        500, 6, n_informative=6, n_redundant=0, n_clusters_per_class=4, weights=[0.8], random_state=0
    )
    X = StandardScaler().fit_transform(X).astype(dtype)
    exact = KernelRankSVM(C=100.0, gamma=0.02, standardize=False, tol=1e-6).fit(X, y)

    def excess(**parameters):
        F = NystroemFeatures(landmarks=X, gamma=0.02, **parameters).fit_transform(X)
        mapped = LinearAUCClassifier(C=100.0, standardize=False, tol=1e-6).fit(F, y)
        return mapped.objective_ / exact.objective_ - 1.0

    assert abs(excess()) < 5e-4
    assert excess(cut=1e-6) > 5e-3  # this has half of the features


def test_the_reported_objective_is_that_of_the_coefficients():
    X, y = moons()
    model = KernelRankSVM(2.0, gamma=1.0, standardize=False).fit(X, y)
    K = rbf_kernel(model.support_rows_, gamma=1.0)
    beta = model.dual_coef_[0]
    scores = model.decision_function(X) - model.intercept_[0]
    value = 0.5 * beta @ K @ beta + 2.0 * PairLoss(y == 1).at(scores).value
    assert model.objective_ == pytest.approx(value, rel=1e-6)


def test_recomputed_blocks_give_what_the_held_matrix_gives(monkeypatch):
    X, y = moons(600)
    held = KernelRankSVM(random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match=r"takes .*B, and .*computed again .* s each"):
        recomputed = KernelRankSVM(max_memory="150kB").fit(X, y)
    assert recomputed.objective_ == pytest.approx(held.objective_, rel=1e-6)
    np.testing.assert_allclose(
        recomputed.decision_function(X),
        held.decision_function(X),
        atol=1e-3 * np.abs(held.dual_coef_).max(),
    )


def test_what_it_costs_is_said_before_it_starts_and_it_can_be_interrupted(monkeypatch, capsys):
    X, y = moons(600)
    model = KernelRankSVM(max_memory="150kB")

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(rank_svm_fit, "minimize_kernel", interrupt)
    with (
        pytest.warns(UserWarning, match="subsample"),
        pytest.raises(KeyboardInterrupt, match="left unfitted"),
    ):
        model.fit(X, y)
    assert not hasattr(model, "classes_")


def test_progress_is_shown_unasked_when_products_are_slow(capsys):
    X, y = moons()
    with pytest.warns(UserWarning, match="computed again"):
        KernelRankSVM(max_memory="150kB").fit(X, y)
    assert re.search(r"product \d+: objective", capsys.readouterr().err)
    KernelRankSVM().fit(X, y)
    assert capsys.readouterr().err == ""


def test_a_subsample_keeps_the_share_of_each_class():
    X, y = moons(900)
    model = KernelRankSVM(subsample=0.2, random_state=0).fit(X, y)
    assert len(model.support_rows_) <= round(0.2 * len(y)) + 1
    assert roc_auc(y, model.decision_function(X)) > 0.95
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(model.dual_coef_, again.dual_coef_)
    rare = np.arange(len(y)) == 7
    KernelRankSVM(subsample=0.01, random_state=0).fit(X, rare)  # one of the rare class stays


def test_more_classes():
    X, y = load_iris(return_X_y=True)
    model = KernelRankSVM().fit(X, y)
    assert model.decision_function(X).shape == (150, 3)
    assert model.score(X, y) > 0.95
    assert len(model.objective_) == 3


def test_sparse_rows():
    X, y = moons()
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    dense = KernelRankSVM(standardize=False, gamma=1.0).fit(X, y)
    loose = KernelRankSVM(standardize=False, gamma=1.0).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(
        dense.decision_function(X), loose.decision_function(sparse.csr_matrix(X)), atol=1e-6
    )


def test_constant_rows_score_zero_and_sparse_ones_keep_to_the_budget():
    y = np.arange(20) % 2
    for kernel in ("rbf", "laplacian"):
        model = KernelRankSVM(kernel=kernel)
        with pytest.warns(UserWarning, match="gives all training rows the same score"):
            model.fit(np.ones((20, 3)), y)
        assert np.ptp(model.decision_function(np.ones((4, 3)))) == 0
    wide = sparse.random(20, 10_000, density=0.01, format="csr", random_state=0)
    with pytest.raises(MemoryError, match="made dense, needs 8 MB"):
        KernelRankSVM(max_memory="1MB").fit(wide, y)


def test_a_fit_that_stops_early_says_so():
    X, y = moons()
    with pytest.warns(ConvergenceWarning, match="after 1 Newton steps about .* raise max_iter=1"):
        model = KernelRankSVM(100.0, max_iter=1).fit(X, y)
    assert not model.converged_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": -1}, "C must be"),
        ({"kernel": "cosine"}, "kernel must be one of"),
        ({"gamma": 0}, "gamma must be"),
        ({"subsample": 0}, "subsample must be a number above 0 and at most 1"),
        ({"subsample": 1.1}, "subsample must be"),
        ({"tol": 0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"max_memory": "lots"}, "max_memory must be"),
        ({"degree": 0}, "degree must be"),
    ],
)
def test_parameters_out_of_range(parameters, message):
    X, y = moons()
    with pytest.raises(ValueError, match=message):
        KernelRankSVM(**parameters).fit(X, y)


def blobs(n=700):
    X, y = make_moons(n, noise=0.2, random_state=1)
    keep = np.flatnonzero((y == 0) | (np.arange(n) % 3 == 0))
    return X[keep], y[keep] == 1


@pytest.mark.parametrize("room", [1e9, 3e5, 0.0], ids=["held", "some held", "none held"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tiles_are_the_kernel_matrix(room, dtype, monkeypatch):
    monkeypatch.setattr(kernel_tiles, "TILE_ROWS", 100)
    X = blobs()[0].astype(dtype)
    K = rbf_kernel(X.astype(np.float64), gamma=2.0)
    tiles = KernelTiles(X, KernelSpec("rbf", 2.0), room)
    assert tiles.share_held == 1.0 if room == 1e9 else tiles.share_held < 1.0
    vector = np.random.default_rng(0).normal(size=len(X))
    atol = 1e-10 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(tiles.product(vector), K @ vector, atol=atol)
    some = np.arange(3, len(X), 2)
    expected = K[np.ix_(some, some)] @ vector[some]
    np.testing.assert_allclose(tiles.restricted(some).product(vector[some]), expected, atol=atol)


@pytest.mark.parametrize("restrict", [False, True])
@pytest.mark.parametrize("C", [1.0, 200.0])
def test_landmarks_and_fewer_rows_lead_to_the_same_minimum_in_fewer_products(restrict, C):
    X, positive = blobs()
    spec, loss, tight = KernelSpec("rbf", 2.0), PairLoss(positive), Stopping(tol=1e-8)
    kernel = KernelTiles(X, spec, 1e9)
    plain = minimize_kernel(kernel, loss, C, stopping=tight, restrict=False)
    rows = np.arange(0, len(X), 3)
    landmarks = rank_svm_fit.landmark_features(X, rows, spec)
    start = landmarks.as_rows(minimize(landmarks.operator, [loss], np.array([C])).coef[:, 0])
    found = minimize_kernel(
        kernel, loss, C, start=start, landmarks=landmarks, restrict=restrict, stopping=tight
    )
    assert found.converged
    assert found.objective == pytest.approx(plain.objective, rel=1e-7)
    assert found.products < plain.products
    if restrict and C == 200.0:  # some rows have no active partner, and no coefficient
        idle = found.point.curvature() == 0
        assert 0.2 < idle.mean() < 1.0
        assert np.abs(found.coef[idle]).max() < 1e-3 * np.abs(found.coef).max()


def test_a_start_worse_than_zero_is_not_taken():
    X, positive = blobs(200)
    kernel, loss = KernelTiles(X, KernelSpec("rbf", 2.0), 1e9), PairLoss(positive)
    far = minimize_kernel(kernel, loss, 1.0, start=np.where(positive, -1e3, 1e3))
    near = minimize_kernel(kernel, loss, 1.0)
    assert far.objective == pytest.approx(near.objective, rel=1e-4)
    assert far.history[0].objective <= loss.at(np.zeros(len(X))).value


def test_many_rows_use_landmarks_and_reach_the_same_objective(monkeypatch):
    X, y = blobs()
    few = KernelRankSVM(20.0, gamma=2.0, random_state=0).fit(X, y)
    monkeypatch.setattr(rank_svm_fit, "FEW_ROWS", 100)
    monkeypatch.setattr(rank_svm_fit, "_ROWS_PER_LANDMARK", 3)
    many = KernelRankSVM(20.0, gamma=2.0, random_state=0).fit(X, y)
    assert many.objective_ == pytest.approx(few.objective_, rel=1e-4)
    assert many.history_[-1]["products"] < few.history_[-1]["products"]


def test_where_landmarks_rank_poorly_a_path_of_c_reaches_the_same_objective(monkeypatch):
    X, y = blobs()
    few = KernelRankSVM(2000.0, gamma=2.0, random_state=0).fit(X, y)
    seen, solve = [], rank_svm_fit.minimize_kernel

    def watched(kernel, loss, C, **options):
        seen.append((C, options["landmarks"]))
        return solve(kernel, loss, C, **options)

    monkeypatch.setattr(rank_svm_fit, "minimize_kernel", watched)
    monkeypatch.setattr(rank_svm_fit, "FEW_ROWS", 100)
    monkeypatch.setattr(rank_svm_fit, "_SPANNED_AUC", 1.1)
    many = KernelRankSVM(2000.0, gamma=2.0, random_state=0).fit(X, y)
    assert many.objective_ == pytest.approx(few.objective_, rel=1e-4)
    assert [C for C, _ in seen] == [2000.0 / 8**k for k in (4, 3, 2, 1, 0)]
    assert all(landmarks is None for _, landmarks in seen)


def test_rows_left_out_may_not_leave_much_to_make_up_for():
    """Coefficients far from zero where no pair is active: the whole system is solved instead."""
    X, positive = blobs()
    kernel, loss = KernelTiles(X, KernelSpec("rbf", 2.0), 1e9), PairLoss(positive)
    least = minimize_kernel(kernel, loss, 50.0, restrict=False)
    start = least.coef + 3.0 * (least.coef == 0)
    for restrict in (False, True):
        found = minimize_kernel(kernel, loss, 50.0, start=start, restrict=restrict)
        assert found.objective == pytest.approx(least.objective, rel=2e-4)


def test_less_memory_than_two_blocks_is_refused():
    X, y = blobs()
    with pytest.raises(
        MemoryError, match=r"two blocks .* needs 65.5 kB, and 50 kB is the limit set by max_memory"
    ):
        KernelRankSVM(max_memory="50kB").fit(X, y)


def test_an_interrupted_fit_resumes_from_its_checkpoint(monkeypatch, tmp_path):
    X, y = blobs()
    model = KernelRankSVM(200.0, gamma=2.0, tol=1e-8, checkpoint=tmp_path / "fit", random_state=0)
    whole = clone(model).set_params(checkpoint=None).fit(X, y)
    solve = rank_svm_fit.minimize_kernel
    monkeypatch.setattr(checkpoint, "SHARE", np.inf)  # written after every step

    def interrupted(*arguments, hooks, **options):
        steps = []

        def on_state(state):
            hooks.on_state(state)
            steps.append(state)
            if len(steps) == 3:
                raise KeyboardInterrupt

        return solve(*arguments, hooks=Hooks(None, on_state), **options)

    monkeypatch.setattr(rank_svm_fit, "minimize_kernel", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert (tmp_path / "fit").exists()
    monkeypatch.setattr(rank_svm_fit, "minimize_kernel", solve)
    model.fit(X, y)
    assert model.objective_ == pytest.approx(whole.objective_, rel=1e-7)
    assert model.history_[0]["objective"] < whole.history_[2]["objective"]  # not from the start
    assert not (tmp_path / "fit").exists()
