"""Choosing C and gamma inside the solve, against GridSearchCV and against cold solves."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from aucmax import (
    CVPathDisplay,
    KernelAUCClassifier,
    LinearAUCClassifier,
)
from aucmax.features.landmark_map import LandmarkMap
from aucmax.fitting import kernel_search as search_module
from aucmax.fitting.c_path import CPath, choose, has_fallen
from aucmax.fitting.context import draw_seed
from aucmax.fitting.grids import gamma_factors
from aucmax.metrics import roc_auc
from aucmax.operators.in_memory import FeatureOperator
from aucmax.pairs import PairLoss
from aucmax.runtime.deadline import Deadline
from aucmax.runtime.progress import GridLine
from aucmax.runtime.threads import one_blas_thread, over_blocks, thread_count
from aucmax.solvers.newton import Newton, minimize
from aucmax.solvers.options import Stopping
from aucmax.solvers.stochastic import PairSGD, PairSGDGrid
from tests.searches import kernel_search, linear_search

mpl.use("Agg")


def moons(n=400, seed=0):
    X, y = make_moons(n, noise=0.35, random_state=seed)
    keep = np.flatnonzero((y == 0) | (np.arange(n) % 3 == 0))  # an imbalanced pair
    X = X[keep]
    return (X - X.mean(axis=0)) / X.std(axis=0), y[keep]


def generator(seed):
    return np.random.default_rng(draw_seed(seed))


def given_map(X, **parameters):
    """Parameters with which nothing is made from the rows of a fold: landmarks and scale are given."""
    return {"landmarks": X[:60], "gamma": 1.0, "standardize": False, "tol": 1e-6, **parameters}


@parametrize_with_checks(
    [
        kernel_search(3, preset="paper", random_state=0),
        linear_search(3),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        kernel_search(3, random_state=0),
        kernel_search(2, gammas=2, map_per_fold=True, random_state=0),
    ]
)
def test_scikit_learn_contract_of_the_default_and_of_a_map_per_fold(estimator, check):
    check(estimator)


# The same answers as the slow way


def by_params(results):
    return {
        tuple(sorted(params.items())): [results[f"split{i}_test_score"][at] for i in range(3)]
        for at, params in enumerate(results["params"])
    }


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "rbf+laplacian", "polynomial"])
def test_scores_are_those_of_a_grid_search(kernel):
    X, y = moons()
    grid = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.5, 1.0, 2.0]}
    model = kernel_search(
        grid["C"], gammas=grid["gamma"], patience=None, kernel=kernel, degree=2, **given_map(X)
    ).fit(X, y)
    slow = GridSearchCV(
        KernelAUCClassifier(preset="paper", kernel=kernel, degree=2, **given_map(X)),
        grid,
        scoring="roc_auc",
        cv=3,
    ).fit(X, y)
    ours, theirs = by_params(model.cv_results_), by_params(slow.cv_results_)
    assert ours.keys() == theirs.keys()
    # The laplacian's width beside the rbf is by the rule: there of each fold's rows, here of all.
    near = 5e-3 if kernel == "rbf+laplacian" else 2e-4
    for params, scores in theirs.items():
        np.testing.assert_allclose(ours[params], scores, atol=near)
    assert model.best_score_ == pytest.approx(slow.best_score_, abs=near)
    assert set(model.cv_results_) == set(slow.cv_results_)
    alone = KernelAUCClassifier(
        model.C_, preset="paper", **given_map(X, gamma=model.gamma_, kernel=kernel, degree=2)
    )
    alone.fit(X, y)
    assert model.objective_ == pytest.approx(alone.objective_, rel=1e-5)
    ours, theirs = model.decision_function(X), alone.decision_function(X)
    np.testing.assert_allclose(ours - ours.mean(), theirs - theirs.mean(), atol=0.02)


def test_a_linear_search_is_a_grid_search_and_cross_val_score_agrees():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    Cs = [1e-3, 1e-2, 0.1, 1.0, 10.0]
    model = linear_search(Cs, patience=None, standardize=False, tol=1e-7).fit(X, y)
    plain = LinearAUCClassifier(standardize=False, tol=1e-7)
    slow = GridSearchCV(plain, {"C": Cs}, scoring="roc_auc", cv=3).fit(X, y)
    np.testing.assert_allclose(model.scores_mean_, slow.cv_results_["mean_test_score"], atol=2e-4)
    assert slow.best_params_["C"] == model.C_
    again = cross_val_score(clone(plain).set_params(C=model.C_), X, y, scoring="roc_auc", cv=3)
    np.testing.assert_allclose(model.scores_[:, model.Cs_ == model.C_][:, 0], again, atol=2e-4)
    best = slow.best_estimator_.coef_
    np.testing.assert_allclose(model.coef_, best, atol=1e-3 * np.abs(best).max())


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_the_stochastic_grid_is_a_grid_search_to_the_last_digit(n_jobs):
    X, y = moons()
    shared = given_map(X, solver="sgd", random_state=3, max_iter=4)
    Cs = [1.0, 30.0, 1000.0]
    model = kernel_search(Cs, n_jobs=n_jobs, **shared).fit(X, y)
    slow = GridSearchCV(
        KernelAUCClassifier(preset="paper", **shared), {"C": Cs}, scoring="roc_auc", cv=3
    ).fit(X, y)
    np.testing.assert_allclose(model.scores_mean_[0], slow.cv_results_["mean_test_score"], rtol=1e-12)
    assert slow.best_params_["C"] == model.C_
    np.testing.assert_allclose(
        model.decision_function(X), slow.best_estimator_.decision_function(X), atol=1e-9
    )
    assert {record["epochs"] for record in model.path_} == {4}


def test_lambdas_that_share_their_pairs_learn_as_each_alone():
    X, y = moons()
    alphas = np.array([1e-4, 1e-3, 1e-2])
    grid = PairSGDGrid(X.shape[1], X.dtype, alpha=alphas, eta0=0.5)
    rng = generator(0)
    for _ in range(3):
        grid.epoch(X, y == 1, np.ones(len(y)), rng)
    for column, alpha in enumerate(alphas):
        alone, rng = PairSGD(X.shape[1], X.dtype, alpha=alpha, eta0=0.5), generator(0)
        for _ in range(3):
            alone.epoch(X, y == 1, np.ones(len(y)), rng)
        np.testing.assert_allclose(grid.coef[:, column], alone.coef, rtol=1e-9)


def test_a_map_per_fold_is_a_grid_search_over_the_whole_fit():
    X, y = moons()
    X = X * [3.0, 0.1] + [5.0, -2.0]
    shared = {"n_landmarks": 40, "landmarks": "uniform", "random_state": 0, "tol": 1e-6}
    shared["gamma"] = "distance"
    Cs = [0.1, 1.0, 10.0]
    model = kernel_search(Cs, map_per_fold=True, patience=None, **shared).fit(X, y)
    slow = GridSearchCV(
        KernelAUCClassifier(preset="paper", **shared), {"C": Cs}, scoring="roc_auc", cv=3
    ).fit(X, y)
    np.testing.assert_allclose(model.scores_mean_[0], slow.cv_results_["mean_test_score"], atol=2e-4)
    ours, theirs = model.decision_function(X), slow.best_estimator_.decision_function(X)
    assert slow.best_params_["C"] == model.C_
    np.testing.assert_allclose(ours - ours.mean(), theirs - theirs.mean(), atol=0.02)
    shared_map = kernel_search(Cs, patience=None, **shared).fit(X, y)
    assert np.abs(shared_map.scores_ - model.scores_).max() > 0


@pytest.mark.parametrize("solver", ["newton", "sgd"])
def test_a_map_per_fold_with_several_gammas(solver):
    X, y = moons()
    model = kernel_search(
        3, gammas=3, map_per_fold=True, solver=solver, n_landmarks=30, max_iter=20, random_state=0
    ).fit(X, y)
    assert model.scores_.shape == (3, 3, 3)
    assert roc_auc(y, model.decision_function(X)) > 0.9


def test_solutions_along_a_path_are_those_of_cold_solves():
    rng = np.random.default_rng(0)
    F = rng.normal(size=(500, 30))
    positive = F[:, 0] + rng.normal(size=500) > 1.0
    fold = (np.arange(500) % 3 > 0).astype(float)
    losses = [PairLoss(positive), PairLoss(positive, fold)]
    newton = Newton(FeatureOperator(F), losses, stopping=Stopping(tol=1e-9))
    for C in 2.0 ** np.arange(-6, 11):
        found = newton.run(np.full(2, C))
        assert found.converged.all()
        cold = minimize(FeatureOperator(F), losses, np.full(2, C), stopping=Stopping(tol=1e-9))
        np.testing.assert_allclose(found.objective, cold.objective, rtol=1e-7)
        np.testing.assert_allclose(found.scores, F @ found.coef, atol=1e-8)


def test_a_path_takes_fewer_passes_than_cold_solves():
    rng = np.random.default_rng(0)
    F = rng.normal(size=(2000, 60)) * np.geomspace(1, 0.01, 60)
    losses = [PairLoss(F[:, 0] + F[:, 1] ** 2 + rng.normal(size=2000) > 2.0)]
    newton, cold = Newton(FeatureOperator(F), losses), 0
    for C in 2.0 ** np.arange(-5, 8):
        found = newton.run(np.array([C]))
        cold += minimize(FeatureOperator(F), losses, np.array([C])).passes
    assert found.passes < 0.5 * cold


def test_gammas_from_held_and_from_recomputed_distances_are_the_same():
    X, y = moons()
    held = kernel_search(4, gammas=[0.25, 1, 3], n_landmarks=50, random_state=0).fit(X, y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_module, "_two_blocks_fit", lambda *_: False)
        recomputed = clone(held).fit(X, y)
    np.testing.assert_allclose(held.scores_, recomputed.scores_, atol=1e-6)
    assert held.gamma_ == recomputed.gamma_


def test_a_budget_of_one_block_still_searches_gammas():
    X, y = moons()
    block = len(X) * 50 * 8
    beside = 600_000  # rows, landmarks and what the solver holds
    model = kernel_search(
        3, gammas=2, n_landmarks=50, max_memory=beside + int(1.5 * block), random_state=0
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LandmarkMap, "raw_block", lambda *_: pytest.fail("two blocks are held"))
        model.fit(X, y)
    with pytest.raises(MemoryError, match="max_memory"):
        model.set_params(estimator__max_memory=block // 2).fit(X, y)


@pytest.mark.parametrize("feature_map", ["nystroem", "fourier"])
def test_several_gammas_end_with_the_map_of_the_chosen_one(feature_map):
    X, y = moons()
    model = kernel_search(
        5, gammas=[0.5, 4.0], n_landmarks=60, feature_map=feature_map, random_state=0
    ).fit(X, y)
    assert model.gamma_ == model.feature_map_.gamma_
    assert model.gamma_ in model.gammas_
    np.testing.assert_allclose(model.gammas_, np.array([0.5, 4.0]) / 2.0)
    alone = KernelAUCClassifier(
        model.C_,
        preset="paper",
        gamma=model.gamma_,
        n_landmarks=60,
        feature_map=feature_map,
        random_state=0,
    ).fit(X, y)
    ours, theirs = model.decision_function(X), alone.decision_function(X)
    assert np.corrcoef(ours, theirs)[0, 1] > 0.9999


# The grid, the C path and the choice


def test_the_default_grid_is_the_papers_in_our_units():
    X, y = moons()
    model = linear_search(patience=1).fit(X, y)
    unit = y.sum() * (1 - y).sum() / len(y)
    np.testing.assert_allclose(model.Cs_, 2.0 ** np.arange(-15, 11) * unit)
    few = linear_search(3).fit(X, y)
    np.testing.assert_allclose(few.Cs_, np.array([2.0**-15, 2.0**-2.5, 2.0**10]) * unit)
    stochastic = kernel_search(solver="sgd", n_landmarks=20, max_iter=1, random_state=0)
    stochastic.fit(X, y)
    np.testing.assert_allclose(stochastic.Cs_, 1 / (np.array([1e-7, 1e-8, 1e-9, 1e-10]) * len(y)))
    assert gamma_factors(3).tolist() == [0.5, 1.0, 2.0]
    assert gamma_factors(2).tolist() == [0.5, 1.0]


def test_the_path_ends_when_the_auc_has_fallen_so_many_times_in_a_row():
    X, y = moons()
    full = kernel_search(20, patience=None, n_landmarks=100, random_state=0).fit(X, y)
    assert not np.isnan(full.scores_).any()
    early = clone(full).set_params(patience=2).fit(X, y)
    reached = int((~np.isnan(early.scores_mean_[0])).sum())
    falls = np.diff(full.scores_mean_[0]) < 0
    first = next(i for i in range(1, 20) if falls[i - 1 : i + 1].all())
    assert reached == first + 2 < 20
    assert len(early.path_) == len(early.cv_results_["params"]) == reached
    np.testing.assert_allclose(early.scores_[:, 0, :reached], full.scores_[:, 0, :reached], atol=1e-6)
    assert early.C_ == full.C_


def test_has_fallen():
    assert not has_fallen(np.array([0.9, 0.8, 0.7]), 3)
    assert has_fallen(np.array([0.9, 0.8, 0.7, 0.6]), 3)
    assert not has_fallen(np.array([0.9, 0.8, 0.8, 0.6]), 3)  # a tie is no fall
    assert not has_fallen(np.arange(9, 0, -1.0), None)


def test_ties_go_to_the_smaller_c_and_one_standard_error_further_down():
    scores = np.zeros((3, 2, 4))
    scores[:, 0] = [[0.5, 0.8, 0.9, 0.9], [0.5, 0.9, 0.9, 0.9], [0.5, 0.9, 0.96, 0.96]]
    scores[:, 1] = [[0.5, 0.6, 0.9, np.nan], [0.5, 0.6, 0.9, np.nan], [0.5, 0.6, 0.96, np.nan]]
    assert choose(scores, "best") == (0, 2)
    # The best has a mean of 0.92 and a standard error of 0.02; 0.867 is not within, 0.91 would be.
    assert choose(scores, "1se") == (0, 2)
    scores[:, 0, 1] += 0.05
    assert choose(scores, "1se") == (0, 1)


def test_one_standard_error_takes_a_smaller_c():
    X, y = load_breast_cancer(return_X_y=True)
    best = linear_search(patience=None).fit(X, y)
    simple = linear_search(patience=None, select="1se").fit(X, y)
    assert simple.C_ < best.C_
    error = best.scores_[:, best.best_index_].std(ddof=1) / np.sqrt(3)
    assert simple.best_score_ >= best.best_score_ - error


def test_results_are_as_existing_tools_read_them():
    X, y = moons()
    model = kernel_search(6, gammas=2, n_landmarks=40, random_state=0).fit(X, y)
    table = pd.DataFrame(model.cv_results_)
    best = table.loc[model.best_index_]
    assert best["rank_test_score"] == 1
    assert best["mean_test_score"] == model.best_score_
    assert best["params"] == model.best_params_ == {"gamma": model.gamma_, "C": model.C_}
    assert (best["param_C"], best["param_gamma"]) == (model.C_, model.gamma_)
    splits = table[[f"split{i}_test_score" for i in range(3)]]
    np.testing.assert_allclose(splits.mean(axis=1), table["mean_test_score"])
    np.testing.assert_allclose(model.scores_mean_, model.scores_.mean(axis=0))
    assert model.scores_std_.shape == (2, 6)
    record = model.path_[-1]
    assert record["seconds"] > 0
    assert record["passes"] > 0
    assert record["converged"]
    assert table["mean_fit_time"].sum() * 3 == pytest.approx(sum(r["seconds"] for r in model.path_))


def test_without_refit_the_folds_are_averaged():
    X, y = moons()
    cv = StratifiedKFold(3)
    model = kernel_search([1.0], refit=False, cv=cv, **given_map(X, tol=1e-8)).fit(X, y)
    mean = 0.0
    for train, _ in cv.split(X, y):
        fold = KernelAUCClassifier(1.0, preset="paper", **given_map(X, tol=1e-8)).fit(
            X[train], y[train]
        )
        mean = mean + (fold.decision_function(X) - fold.intercept_) / 3
    ours = model.decision_function(X) - model.intercept_
    np.testing.assert_allclose(ours, mean, atol=1e-3)
    assert not hasattr(model, "objective_")


def test_more_than_two_classes_share_one_c():
    X, y = load_iris(return_X_y=True)
    shared = {"n_landmarks": 40, "landmarks": "kmeans", "gamma": "distance", "random_state": 0}
    model = kernel_search(5, **shared).fit(X, y)
    assert model.decision_function(X).shape == (150, 3)
    assert model.score(X, y) > 0.9
    assert len(model.objective_) == 3
    alone = KernelAUCClassifier(model.C_, preset="paper", **shared).fit(X, y)
    assert alone.objective_ == pytest.approx(model.objective_, rel=1e-3)


@pytest.mark.parametrize("map_per_fold", [False, True])
def test_held_out_scores_are_those_of_models_that_did_not_see_the_rows(map_per_fold):
    X, y = moons()
    folds = list(StratifiedKFold(3).split(X, y))
    model = kernel_search(
        [1.0, 10.0], cv=folds, map_per_fold=map_per_fold, **given_map(X), random_state=0
    ).fit(X, y)
    whole = model.decision_function(X)
    for train, test in folds:
        alone = KernelAUCClassifier(model.C_, preset="paper", **given_map(X)).fit(X[train], y[train])
        scores = alone.decision_function(X)
        expected = scores[test] + (whole[train] - scores[train]).mean()
        np.testing.assert_allclose(model.held_out_scores_[test], expected, atol=2e-3)
        assert roc_auc(y[test], model.held_out_scores_[test]) == pytest.approx(
            roc_auc(y[test], scores[test]), abs=1e-3
        )


def test_held_out_scores_have_gaps_where_no_fold_tests_and_means_where_several_do():
    X, y = moons()
    rows = np.arange(len(y))
    once, twice, never = rows % 4 == 0, rows % 4 == 1, rows % 4 > 1
    folds = [(rows[never | twice], rows[once]), (rows[never | once], rows[twice])]
    folds.append((rows[never], rows[twice]))
    weight = np.ones(len(y))
    weight[:3] = 0.0  # absent
    model = linear_search([1.0], cv=folds, tol=1e-8).fit(X, y, sample_weight=weight)
    given = np.isfinite(model.held_out_scores_)
    np.testing.assert_array_equal(given, (once | twice) & (weight > 0))
    alone = [
        LinearAUCClassifier(1.0, standardize=False, tol=1e-8).fit(
            model.scaler_.transform(X)[train], y[train], sample_weight=weight[train]
        )
        for train, _ in folds[1:]
    ]
    Z, whole, row = model.scaler_.transform(X), model.decision_function(X), 5
    level = [np.average(whole[train], weights=weight[train]) for train, _ in folds[1:]]
    expected = [
        model_.decision_function(Z[[row]])[0]
        - np.average(model_.decision_function(Z[train]), weights=weight[train])
        + mean
        for model_, (train, _), mean in zip(alone, folds[1:], level, strict=True)
    ]
    assert model.held_out_scores_[row] == pytest.approx(np.mean(expected), abs=1e-3)


def test_held_out_scores_of_several_classes_and_of_the_stochastic_solver():
    X, y = load_iris(return_X_y=True)
    model = kernel_search(2, n_landmarks=40, random_state=0).fit(X, y)
    assert model.held_out_scores_.shape == (150, 3)
    right = model.classes_[model.held_out_scores_.argmax(axis=1)] == y
    assert right.mean() > 0.85
    X, y = moons()
    model = kernel_search(gammas=2, solver="sgd", n_landmarks=40, random_state=0).fit(X, y)
    assert roc_auc(y, model.held_out_scores_) == pytest.approx(model.best_score_, abs=0.02)


def test_a_time_budget_ends_the_path_at_a_value(monkeypatch):
    X, y, add = *moons(), CPath.add
    model = kernel_search(5, gammas=3, n_landmarks=40, patience=None, random_state=0)
    hour = clone(model).set_params(estimator__time_budget=3600.0).fit(X, y)
    np.testing.assert_array_equal(hour.scores_, model.fit(X, y).scores_)
    seen = []
    monkeypatch.setattr(Deadline, "over", lambda self: self.limited and len(seen) >= 2)
    monkeypatch.setattr(
        CPath, "add", lambda self, *a, **more: (seen.append(1), add(self, *a, **more))[1]
    )
    short = clone(model).set_params(estimator__time_budget=3600.0).fit(X, y)
    assert (
        [(record["gamma"], record["C"]) for record in short.path_]
        == [
            (short.gammas_[1], C)  # the distance rule's own gamma comes first
            for C in short.Cs_[:2]
        ]
    )
    assert np.isfinite(short.scores_[:, 1, :2]).all()
    assert np.isfinite(short.decision_function(X)).all()


def test_weights_count_in_fit_and_score():
    X, y = moons()
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, len(y)).astype(float)
    test_of = rng.integers(0, 3, len(y))
    model = linear_search([0.1, 1.0], cv=PredefinedSplit(test_of), tol=1e-8)
    model.fit(X, y, sample_weight=weight)
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    again = clone(model).set_params(cv=PredefinedSplit(test_of[rows])).fit(X[rows], y[rows])
    np.testing.assert_allclose(model.scores_, again.scores_, atol=1e-6)
    np.testing.assert_allclose(model.coef_, again.coef_, rtol=1e-3)


def test_sparse_rows_and_frames():
    X, y = moons()
    dense = linear_search(4, standardize=False).fit(X, y)
    csr = linear_search(4, standardize=False).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(dense.scores_, csr.scores_, atol=1e-6)
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = kernel_search(3, random_state=0).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert kernel_search(3, random_state=0).fit(sparse.csr_array(X), y)


# Folds


def test_any_splitter_will_do():
    X, y = moons()
    for cv in (ShuffleSplit(2, test_size=0.3, random_state=0), StratifiedKFold(4, shuffle=True)):
        assert len(linear_search(3, cv=cv).fit(X, y).scores_) == cv.get_n_splits()
    half = np.arange(len(y)) % 2 == 0
    pairs = [(half, ~half), (np.flatnonzero(~half), np.flatnonzero(half))]  # masks and indices
    model = linear_search(3, cv=pairs).fit(X, y)
    assert model.n_splits_ == 2
    # A row that comes twice in a training part weighs twice.
    twice = linear_search(
        [0.1, 10.0], cv=[(np.repeat(np.flatnonzero(half), 2), ~half)], standardize=False, tol=1e-8
    ).fit(X, y)
    once = clone(twice).set_params(cv=[(half, ~half)]).fit(X, y, sample_weight=1.0 + half)
    np.testing.assert_allclose(twice.scores_, once.scores_, atol=1e-9)


def test_groups_reach_the_splitter():
    X, y = moons()
    groups = np.arange(len(y)) // 7 % 5
    model = linear_search(3, cv=GroupKFold(5)).fit(X, y, groups=groups)
    slow = GridSearchCV(
        LinearAUCClassifier(), {"C": list(model.Cs_)}, cv=GroupKFold(5), scoring="roc_auc"
    ).fit(X, y, groups=groups)
    np.testing.assert_allclose(model.scores_mean_, slow.cv_results_["mean_test_score"], atol=5e-3)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = linear_search(3, cv=GroupKFold(5)).fit(X, y, groups=groups)
        piped = make_pipeline(StandardScaler(), linear_search(3, cv=GroupKFold(5)))
        piped.fit(X, y, groups=groups)
    np.testing.assert_allclose(routed.scores_, model.scores_)
    np.testing.assert_allclose(piped[-1].scores_, model.scores_, atol=1e-3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"Cs": []}, "Cs must be a list of at least one number"),
        ({"Cs": [1.0, 0.5]}, "Cs must rise.*entry 0 is 1 and the next 0.5"),
        ({"Cs": [1.0, 1.0]}, "Cs must rise"),
        ({"Cs": [0.0, 1.0]}, "Cs must be positive.*entry 0 is 0"),
        ({"Cs": [1.0, np.nan]}, "entry 1 is nan"),
        ({"Cs": 0}, "Cs must be .*a whole number of at least 1"),
        ({"Cs": "many"}, "Cs must be 'auto'"),
        ({"Cs": ["a"]}, "Cs must hold numbers"),
        ({"patience": 0}, "patience"),
        ({"time_budget": 0.0}, "time_budget"),
        ({"select": "worst"}, "select must be one of 'best', '1se'"),
        ({"tol": 0.0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"cv": []}, "yields no fold"),
        ({"cv": 1}, "n_splits=1"),
        ({"select": "1se", "cv": [(np.arange(100), np.arange(100, 200))]}, "at least two folds"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    X, y = moons()
    with pytest.raises(ValueError, match=message):
        linear_search(**{"Cs": 3, **parameters}).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"gammas": [2.0, 1.0]}, "gammas must rise"),
        ({"gammas": 0}, "gammas must be .*a whole number"),
        ({"gammas": [-1.0]}, "gammas must be positive"),
        ({"gammas": 3, "kernel": "linear"}, "gammas has no meaning"),
        ({"map_per_fold": True, "refit": False}, "one of the two"),
        ({"map_per_fold": True, "time_budget": 9.0}, "one of the two"),
        ({"solver": "lbfgs"}, "solver"),
        ({"kernel": "sigmoid"}, "kernel"),
    ],
)
def test_bad_parameters_of_the_kernel_are_named(parameters, message):
    X, y = moons()
    with pytest.raises(ValueError, match=message):
        kernel_search(3, n_landmarks=20, **parameters).fit(X, y)


def test_a_fold_without_a_class_is_named():
    X, y = moons()
    y = np.array(["no", "yes"])[y]
    pos, neg = np.flatnonzero(y == "yes"), np.flatnonzero(y == "no")
    good = (np.arange(0, len(y), 2), np.arange(1, len(y), 2))
    with pytest.raises(ValueError, match=r"Fold 1 of 2 .* class 'yes' .* in its test part"):
        linear_search(3, cv=[good, (good[0], neg[:9])]).fit(X, y)
    with pytest.raises(ValueError, match=r"Fold 0 of 1 .* class 'no' .* in its training part"):
        linear_search(3, cv=[(pos, good[1])]).fit(X, y)
    weight = np.where((y == "yes") & (np.arange(len(y)) % 2 == 1), 0.0, 1.0)
    with pytest.raises(ValueError, match=r"Fold 0 of 1 .* class 'yes' .* in its test part"):
        linear_search(3, cv=[good]).fit(X, y, sample_weight=weight)


def test_groups_and_arguments_that_do_not_fit_are_refused():
    X, y = moons()
    with pytest.raises(ValueError, match=f"groups has 5 entries for {len(y)} rows"):
        linear_search(3, cv=GroupKFold(2)).fit(X, y, groups=np.arange(5))
    with pytest.raises(TypeError, match="unexpected argument 'group'"):
        linear_search(3).fit(X, y, group=np.arange(len(y)))


def test_values_that_did_not_converge_are_told_of():
    X, y = moons()
    with pytest.warns(ConvergenceWarning, match=r"of 3 values of C had not converged"):
        model = linear_search([1.0, 10.0, 100.0], max_iter=1, tol=1e-12).fit(X, y)
    assert not all(record["converged"] for record in model.path_)


@pytest.mark.parametrize("solver", ["newton", "sgd"])
def test_interruption_leaves_nothing_half_fitted(solver, monkeypatch):
    X, y = moons()
    model = kernel_search(3, n_landmarks=20, solver=solver, random_state=0).fit(X, y)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(GridLine, "value", interrupt)
    with pytest.raises(KeyboardInterrupt, match="left unfitted"):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert not any(name.endswith("_") for name in vars(model))


# Progress, threads, picture


def test_a_bar_tells_how_far_and_how_long(capsys):
    X, y = moons()
    model = kernel_search(5, n_landmarks=30, patience=None, random_state=0, verbose=1).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert "5 of 5 values" in lines[-1]
    assert f"best AUC {model.best_score_:.5f} at C={model.C_:.3g}" in lines[-1]
    assert "passes" in lines[-1]
    assert "s left" in lines[-1]
    kernel_search(2, n_landmarks=30, solver="sgd", max_iter=5, verbose=1).fit(X, y)
    assert "epochs" in capsys.readouterr().err


def test_time_left_is_reckoned_by_passes(monkeypatch):
    line = GridLine(False, 10)
    assert line.seconds_left() is None
    monkeypatch.setattr(line, "elapsed", lambda: 8.0)
    line.value({"auc": 0.9, "C": 1.0, "passes": 10})
    line.value({"auc": 0.8, "C": 2.0, "passes": 30})
    # 40 passes in 8 s; eight values of 20 passes each are to come.
    assert line.seconds_left() == pytest.approx(32.0)
    line.step(4)
    assert line.seconds_left() == pytest.approx((160 - 4) * 8.0 / 44)
    line.skip(8)
    assert line.seconds_left() == 0.0


def test_threads_do_not_multiply():
    seen = []
    with one_blas_thread():
        assert thread_count() == 1
        over_blocks(lambda rows: seen.append(thread_count()), 100, 0, 10)
    assert seen == [1] * 10


def test_the_path_is_drawn():
    X, y = moons()
    model = kernel_search(8, gammas=2, n_landmarks=30, random_state=0).fit(X, y)
    display = CVPathDisplay.from_estimator(model)
    assert len(display.lines_) == 2
    assert display.ax_.get_xscale() == "log"
    means = model.scores_mean_[0]
    np.testing.assert_allclose(display.lines_[0].get_ydata(), means[~np.isnan(means)])
    assert f"C = {model.C_:.3g}" in display.ax_.get_legend().get_texts()[-1].get_text()
    same = CVPathDisplay.from_estimator(linear_search(4).fit(X, y), ax=display.ax_, band="range")
    assert same.figure_ is display.figure_
    with pytest.raises(ValueError, match="band"):
        display.plot(band="all")
    with pytest.raises(NotFittedError):
        CVPathDisplay.from_estimator(linear_search())
