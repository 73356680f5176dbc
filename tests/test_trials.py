"""Trials against the slow, obvious ways to the same numbers."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from aucmax.features.kernels import BOTH
from aucmax.fitting.settings import Settings
from aucmax.tuning import climbing
from aucmax.tuning.trial_map import TrialMap
from aucmax.tuning.trial_rows import Sample, draw_sample
from aucmax.tuning.trials import Candidate, TrialKernel

KERNELS = ("rbf", "laplacian", BOTH)


def rows(n=120, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (np.hypot(X[:, 0], X[:, 1]) + 0.3 * rng.normal(size=n) > 1.2).astype(int)


def sample_of(X, y):
    index, folds = draw_sample(y, np.random.default_rng(0))
    own = y[index]
    return Sample({True: X[index]}, own, np.ones(index.size), [own == 1], folds)


def explicit_kernel(mapped, multiple, X, points):
    spec = mapped.spec(multiple)
    values = {
        "rbf": lambda part: rbf_kernel(X, points, gamma=part.gamma),
        "laplacian": lambda part: laplacian_kernel(X, points, gamma=part.gamma),
    }
    return np.mean([values[part.name](part) for part in spec.parts], axis=0)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("multiple", [0.5, 4.0])
def test_inner_products_of_features_are_the_kernel(kernel, multiple):
    X, _ = rows()
    mapped = TrialMap(X, X, np.ones(len(X)), kernel, "distance")
    features, _ = mapped.features(multiple)
    exact = explicit_kernel(mapped, multiple, X, X)
    # With every row as a landmark, what is added to the diagonal is all that differs.
    np.testing.assert_allclose(features @ features.T, exact, atol=1e-4)


@pytest.mark.parametrize("kernel", KERNELS)
def test_weights_over_landmarks_give_the_scores_of_features(kernel):
    X, _ = rows()
    points = X[:40]
    mapped = TrialMap(X, points, np.ones(len(X)), kernel, "distance")
    features, factors = mapped.features(2.0)
    coef = np.random.default_rng(0).normal(size=(features.shape[1], 2))
    folded = mapped.fold(coef, factors)
    spec = mapped.spec(2.0)
    explicit = {"rbf": rbf_kernel, "laplacian": laplacian_kernel}
    values = np.hstack([explicit[part.name](X, points, gamma=part.gamma) for part in spec.parts])
    np.testing.assert_allclose(values @ folded, features @ coef, atol=1e-8)
    some, step = np.arange(5), 1e-6
    for ranking, gradient in enumerate(mapped.gradients(2.0, folded, some)):
        for f in range(X.shape[1]):
            up, down = (
                np.hstack(
                    [
                        explicit[part.name](X[some] + side, points, gamma=part.gamma)
                        for part in spec.parts
                    ]
                )
                @ folded[:, ranking]
                for side in (step * np.eye(3)[f], -step * np.eye(3)[f])
            )
            expected = (up - down) / (2 * step)
            # A row that is a landmark lies on a kink of the laplacian, where both sides count equally.
            np.testing.assert_allclose(gradient[:, f], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kernel", KERNELS)
def test_folds_solved_together_equal_folds_solved_alone(kernel):
    X, y = rows(400)
    sample, metric = sample_of(X, y), np.array([1.2, 1.0, 0.5])
    settings = Settings(n_landmarks=60, standardize=True, kernel=kernel)
    shared, alone = (
        Candidate(sample, settings, metrics, TrialKernel())
        for metrics in ([metric] * 3, [metric.copy() for _ in range(3)])
    )
    for gamma, C in ((1.0, 0.5), (2.0, 8.0)):
        together, apart = shared.at(gamma, C), alone.at(gamma, C)
        assert together.auc == pytest.approx(apart.auc, abs=2e-3)  # trials stop at 3e-3
    outers = [
        each.mean_outers(together, "diagonal", np.random.default_rng(0)) for each in (shared, alone)
    ]
    np.testing.assert_allclose(*outers, rtol=1e-8)


def test_c_rises_or_falls_to_the_best():
    X, y = rows(400)
    settings = Settings(n_landmarks=60, standardize=True)
    candidate = Candidate(sample_of(X, y), settings, [None] * 3, TrialKernel())
    grid = [candidate.at(1.0, 4.0**k).auc for k in range(-6, 7)]
    for start in (4.0**-3, 4.0**3):
        found = climbing.best_c(candidate, 1.0, start, patience=8)
        assert found.auc == max(grid)
    fixed = Candidate(sample_of(X, y), replace(settings, C=0.3), [None] * 3, TrialKernel())
    assert climbing.climb(fixed, found).C == 0.3


def test_directions_of_gamma_tried_at_once_lead_where_one_after_the_other_does(monkeypatch):
    X, y = rows(400)
    settings = Settings(n_landmarks=60, standardize=True)

    def found():
        candidate = Candidate(sample_of(X, y), settings, [None] * 3, TrialKernel())
        return climbing.climb(candidate, climbing.from_rules(candidate))

    at_once = found()
    monkeypatch.setattr(climbing, "side_by_side", lambda work, items: [work(each) for each in items])
    in_turn = found()
    assert (at_once.C, at_once.gamma, at_once.auc) == (in_turn.C, in_turn.gamma, in_turn.auc)
