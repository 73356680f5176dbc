import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from aucmax.metrics import compare_roc_auc, roc_auc, roc_auc_interval
from tests import oracle


def sample(seed, n=200, gap=1.0, decimals=None):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.2).astype(int)
    scores = rng.normal(size=n) + gap * y
    return y, scores if decimals is None else np.round(scores, decimals)


def slow_delong(y, scores):
    """DeLong's structural components by the double loop."""
    pos, neg = scores[y == 1], scores[y == 0]
    wins = (pos[:, None] > neg[None]) + 0.5 * (pos[:, None] == neg[None])
    return wins.mean(), wins.mean(axis=1), wins.mean(axis=0)


@pytest.mark.parametrize("decimals", [None, 1])
def test_roc_auc_is_the_share_of_pairs_in_order(decimals):
    y, scores = sample(0, decimals=decimals)
    weight = np.random.default_rng(1).random(y.size)
    assert roc_auc(y, scores) == pytest.approx(oracle.auc(y == 1, scores), abs=1e-14)
    assert roc_auc(y, scores) == pytest.approx(roc_auc_score(y, scores), abs=1e-14)
    weighted = roc_auc(y, scores, sample_weight=weight)
    assert weighted == pytest.approx(oracle.auc(y == 1, scores, weight), abs=1e-14)
    assert weighted == pytest.approx(roc_auc_score(y, scores, sample_weight=weight), abs=1e-12)


def test_labels_may_be_anything_and_the_positive_one_named():
    assert roc_auc(["no", "yes"], [0, 1]) == 1.0
    assert roc_auc(["no", "yes"], [0, 1], pos_label="no") == 0.0
    assert roc_auc([True, False], [0, 1]) == 0.0


@pytest.mark.parametrize("decimals", [None, 1])
def test_standard_error_is_delongs(decimals):
    y, scores = sample(2, decimals=decimals)
    auc, by_pos, by_neg = slow_delong(y, scores)
    variance = by_pos.var(ddof=1) / by_pos.size + by_neg.var(ddof=1) / by_neg.size
    interval = roc_auc_interval(y, scores)
    assert interval.auc == pytest.approx(auc, abs=1e-14)
    assert interval.standard_error == pytest.approx(np.sqrt(variance), rel=1e-10)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=12), st.floats(0.5, 0.999))
def test_intervals_hold_the_estimate_and_stay_within_bounds(rows, confidence):
    y = np.array([1, 0] + [int(r[0]) for r in rows])
    scores = np.array([3.0, 2.0] + [r[1] for r in rows])
    interval = roc_auc_interval(y, scores, confidence=confidence)
    assert 0.0 <= interval.low <= interval.auc <= interval.high <= 1.0


def test_a_perfect_score_on_few_rows_is_not_certain():
    few = roc_auc_interval([0, 0, 0, 1, 1], [1, 2, 3, 4, 5])
    many = roc_auc_interval([0] * 500 + [1] * 500, np.arange(1000))
    assert few.auc == many.auc == few.high == 1.0
    assert few.low < 0.5 < 0.99 < many.low


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    from scipy.stats import norm

    truth = norm.cdf(1.0 / np.sqrt(2.0))
    intervals = [roc_auc_interval(*sample(seed)) for seed in range(400)]
    covered = np.mean([i.low <= truth <= i.high for i in intervals])
    assert 0.92 <= covered <= 0.98


def test_comparison_is_paired():
    y, a = sample(3, n=2000)
    rng = np.random.default_rng(0)
    b = a + 0.3 * rng.normal(size=a.size)
    auc_a, pos_a, neg_a = slow_delong(y, a)
    auc_b, pos_b, neg_b = slow_delong(y, b)
    difference = auc_a - auc_b
    pos, neg = pos_a - pos_b, neg_a - neg_b
    error = np.sqrt(pos.var(ddof=1) / pos.size + neg.var(ddof=1) / neg.size)
    result = compare_roc_auc(y, a, b)
    assert result.difference == pytest.approx(difference, abs=1e-12)
    assert (result.high - result.low) / 2 == pytest.approx(1.959964 * error, rel=1e-5)
    from scipy.stats import norm

    assert result.p_value == pytest.approx(2 * norm.sf(abs(difference) / error), rel=1e-8)


def test_comparing_a_score_with_itself():
    y, a = sample(4)
    result = compare_roc_auc(y, a, 2 * a + 1)
    assert result.difference == 0.0
    assert result.p_value == 1.0


def test_p_values_of_equal_models_are_uniform():
    p_values = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        y = (rng.random(200) < 0.3).astype(int)
        p_values.append(compare_roc_auc(y, y + rng.normal(size=200), y + rng.normal(size=200)).p_value)
    assert 0.02 <= np.mean(np.array(p_values) < 0.05) <= 0.09


@pytest.mark.parametrize(
    ("y", "scores", "message"),
    [
        ([1, 1], [0, 1], "needs both classes"),
        ([0, 1, 2], [0, 1, 2], "two classes"),
        ([0, 1], [0, 1, 2], "of one length"),
        ([0, 1], [0, np.nan], "NaN at row 1"),
        ([], [], "needs both classes"),
    ],
)
def test_bad_input_is_named(y, scores, message):
    with pytest.raises(ValueError, match=message):
        roc_auc(y, scores)


def test_bad_weights_labels_and_confidence():
    with pytest.raises(ValueError, match="not negative"):
        roc_auc([0, 1], [0, 1], sample_weight=[1, -1])
    with pytest.raises(ValueError, match="all sample_weight"):
        roc_auc([0, 1], [0, 1], sample_weight=[1, 0])
    with pytest.raises(ValueError, match="shape"):
        roc_auc([0, 1], [0, 1], sample_weight=[1])
    with pytest.raises(ValueError, match="pos_label='x'"):
        roc_auc([0, 1], [0, 1], pos_label="x")
    with pytest.raises(ValueError, match="confidence"):
        roc_auc_interval([0, 1], [0, 1], confidence=95)


def test_one_row_of_a_class_claims_little():
    y = np.r_[1, np.zeros(10_000, dtype=int)]
    scores = np.r_[1.5, 2.0, np.zeros(9999)]
    interval = roc_auc_interval(y, scores)
    assert interval.low < 0.99
    assert roc_auc_interval([0, 1], [0, 0]).low < 0.2
    result = compare_roc_auc([0, 1], [0, 1], [1, 0])
    assert (result.low, result.high, result.p_value) == (-1.0, 1.0, 1.0)


def test_a_certain_looking_difference_of_few_rows_is_a_sign_test():
    result = compare_roc_auc([0, 0, 0, 1, 1, 1], [1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1])
    assert result.difference == 1.0
    assert result.p_value == 0.25
