import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aucmax.pairs import PairLoss, ordered_share
from tests import oracle


def problem(seed, n=40, share=0.3, ties=False, weights=True):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < share
    positive[:2] = [True, False]
    scores = rng.normal(size=n) + positive
    if ties:  # a coarse grid: equal scores and margins of exactly 1
        scores = np.round(scores * 2) / 2
    weight = rng.integers(0, 4, n).astype(float) if weights else None
    if weights:
        weight[:2] = 1.0
    return scores, positive, weight


CASES = [(seed, ties, weights) for seed in range(4) for ties in (0, 1) for weights in (0, 1)]


@pytest.mark.parametrize(("seed", "ties", "weights"), CASES)
def test_value_gradient_and_hessian_are_those_of_the_double_loop(seed, ties, weights):
    scores, positive, weight = problem(seed, ties=ties, weights=weights)
    value, gradient, hessian = oracle.pair_loss(scores, positive, weight)
    point = PairLoss(positive, weight).at(scores)
    np.testing.assert_allclose(point.value, value, rtol=1e-12)
    np.testing.assert_allclose(point.gradient, gradient, atol=1e-12)
    direction = np.random.default_rng(9).normal(size=scores.size)
    np.testing.assert_allclose(point.hessian_product(direction), hessian @ direction, atol=1e-12)
    np.testing.assert_allclose(point.hessian_product(np.eye(scores.size)), hessian, atol=1e-12)
    np.testing.assert_allclose(point.curvature(), np.diag(hessian), atol=1e-12)


@pytest.mark.parametrize("weights", [False, True])
def test_hessian_gram_is_the_explicit_product(weights):
    scores, positive, weight = problem(3, n=60, weights=weights)
    features = np.random.default_rng(0).normal(size=(60, 7))
    _, _, hessian = oracle.pair_loss(scores, positive, weight)
    point = PairLoss(positive, weight).at(scores)
    expected = features.T @ hessian @ features
    np.testing.assert_allclose(point.hessian_gram(features), expected, rtol=1e-10, atol=1e-10)
    narrow = point.hessian_gram(features.astype(np.float32))
    np.testing.assert_allclose(narrow, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


def test_derivatives_by_finite_differences():
    scores, positive, weight = problem(5)
    loss, h = PairLoss(positive, weight), 1e-6
    point = loss.at(scores)
    direction = np.random.default_rng(1).normal(size=scores.size)
    up, down = loss.at(scores + h * direction), loss.at(scores - h * direction)
    np.testing.assert_allclose((up.value - down.value) / (2 * h), point.gradient @ direction, rtol=1e-6)
    slope = (up.gradient - down.gradient) / (2 * h)
    np.testing.assert_allclose(slope, point.hessian_product(direction), atol=1e-5)


def test_a_pair_at_margin_one_is_inactive():
    point = PairLoss(np.array([True, False])).at(np.array([1.0, 0.0]))
    assert point.value == 0.0
    assert not point.gradient.any()
    assert not point.curvature().any()


def test_one_positive_among_many():
    scores, _, _ = problem(2, n=500, weights=False)
    positive = np.zeros(500, dtype=bool)
    positive[17] = True
    value, gradient, _ = oracle.pair_loss(scores, positive)
    point = PairLoss(positive).at(scores)
    np.testing.assert_allclose(point.value, value, rtol=1e-12)
    np.testing.assert_allclose(point.gradient, gradient, atol=1e-12)


def test_weight_two_is_the_row_twice_and_weight_zero_its_absence():
    scores, positive, weight = problem(7)
    rows = np.repeat(np.arange(scores.size), weight.astype(int))
    weighted, repeated = (
        PairLoss(positive, weight).at(scores),
        PairLoss(positive[rows]).at(scores[rows]),
    )
    np.testing.assert_allclose(weighted.value, repeated.value, rtol=1e-12)
    folded = np.bincount(rows, repeated.gradient, minlength=scores.size)
    np.testing.assert_allclose(weighted.gradient, folded, atol=1e-12)


def test_shifting_all_scores_far_away_changes_nothing():
    scores, positive, weight = problem(1)
    loss = PairLoss(positive, weight)
    np.testing.assert_allclose(loss.at(scores + 1e6).value, loss.at(scores).value, rtol=1e-8)


def test_a_sample_of_all_rows_is_the_loss_itself():
    scores, positive, weight = problem(4)
    loss = PairLoss(positive, weight)
    sampled = loss.sample(np.arange(scores.size), np.ones(scores.size))
    assert sampled.at(scores).value == loss.at(scores).value


def test_no_pair_is_an_error():
    with pytest.raises(ValueError, match="No negative row"):
        PairLoss(np.array([True, False]), [1.0, 0.0])
    with pytest.raises(ValueError, match="No positive row"):
        PairLoss(np.array([False, False]))


rows = st.lists(
    st.tuples(st.booleans(), st.integers(-6, 6), st.integers(0, 3)), min_size=2, max_size=14
)


@settings(max_examples=150, deadline=None)
@given(rows)
def test_any_small_problem_agrees_with_the_double_loop(rows):
    positive = np.array([True, False] + [r[0] for r in rows])
    scores = np.array([0.0, 0.0] + [r[1] / 3 for r in rows])
    weight = np.array([1.0, 1.0] + [r[2] for r in rows], dtype=float)
    value, gradient, _ = oracle.pair_loss(scores, positive, weight)
    point = PairLoss(positive, weight).at(scores)
    np.testing.assert_allclose(point.value, value, atol=1e-9)
    # On this grid a margin of 1 can round to either side of the kink: the gradient is continuous
    # there, the curvature is not and is compared on its symmetry alone.
    np.testing.assert_allclose(point.gradient, gradient, atol=1e-9)
    product = point.hessian_product(np.eye(scores.size))
    np.testing.assert_array_equal(product, product.T)
    expected = oracle.auc(positive[weight > 0], scores[weight > 0], weight[weight > 0])
    np.testing.assert_allclose(point.auc(), expected, atol=1e-12)


def test_ordered_share_counts_ties_one_half():
    assert ordered_share(np.array([1.0]), np.array([1.0, 0.0])) == 0.75
    assert (
        ordered_share(np.array([1.0]), np.array([1.0, 0.0]), np.ones(1), np.array([3.0, 1.0])) == 0.625
    )


def test_hessian_gram_by_levels_is_that_of_a_smaller_active_set():
    rng = np.random.default_rng(0)
    positive = rng.random(80) < 0.4
    weight = rng.uniform(0.5, 2.0, 80)
    scores, F = rng.normal(size=80), rng.normal(size=(80, 6))
    loss = PairLoss(positive, weight)
    point = loss.at(scores)
    negatives = np.flatnonzero(~positive)[np.argsort(-scores[~positive])]
    stride = -(-negatives.size // 5)
    expected = np.zeros((6, 6))
    for i in np.flatnonzero(positive):
        active = int((scores[negatives] > scores[i] - 1).sum())
        for j in negatives[: active // stride * stride]:
            difference = F[i] - F[j]
            expected += 2 * loss.scale * weight[i] * weight[j] * np.outer(difference, difference)
    rounded = point.hessian_gram(F, levels=5)
    np.testing.assert_allclose(rounded, expected, rtol=1e-9, atol=1e-9)
    left_out = point.hessian_gram(F) - rounded
    assert np.linalg.eigvalsh(left_out).min() > -1e-9  # pairs were left out, none was added
    fine = point.hessian_gram(F, levels=negatives.size - 1)
    assert np.abs(fine - point.hessian_gram(F)).max() < 0.2 * np.abs(expected).max()


def test_rounding_never_brings_a_share_above_one():
    for n in range(1, 200):
        assert ordered_share(np.ones(n), np.zeros(3)) == pytest.approx(1.0)
        assert ordered_share(np.ones(n), np.zeros(3)) <= 1.0
