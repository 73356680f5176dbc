import json
from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    log_loss,
    roc_auc_score,
    roc_curve,
)

from aucmax.metrics import roc_auc_interval
from aucmax.metrics.evaluation import evaluate


def sample(seed, n=1000, decimals=2):
    rng = np.random.default_rng(seed)
    probability = rng.beta(0.5, 4.0, size=n)
    positive = rng.random(n) < probability
    return positive, np.round(probability, decimals), rng.integers(0, 4, size=n)


@pytest.mark.parametrize("weighted", [False, True])
def test_numbers_are_scikit_learns(weighted):
    positive, p, weight = sample(0)
    weight = weight if weighted else None
    found = evaluate(positive, p, p, weight)
    assert found.auc == pytest.approx(roc_auc_score(positive, p, sample_weight=weight), abs=1e-12)
    for partial, limit in zip(found.partial_auc, (0.05, 0.1), strict=True):
        assert partial.max_fpr == limit
        expected = roc_auc_score(positive, p, max_fpr=limit, sample_weight=weight)
        assert partial.standardized == pytest.approx(expected, abs=1e-12)
    expected = average_precision_score(positive, p, sample_weight=weight)
    assert found.average_precision == pytest.approx(expected, abs=1e-12)
    assert found.brier == pytest.approx(brier_score_loss(positive, p, sample_weight=weight), abs=1e-12)
    assert found.log_loss == pytest.approx(log_loss(positive, p, sample_weight=weight), abs=1e-12)


def test_partial_area_is_that_under_the_curve():
    positive, p, _ = sample(1)
    fpr, tpr, _ = roc_curve(positive, p, drop_intermediate=False)
    for partial in evaluate(positive, p).partial_auc:
        grid = np.linspace(0, partial.max_fpr, 200_001)
        area = np.trapezoid(np.interp(grid, fpr, tpr), grid)
        assert partial.area == pytest.approx(area, abs=1e-6)


def test_the_interval_is_delongs_and_absent_with_weights():
    positive, p, weight = sample(2)
    found, interval = (
        evaluate(positive, p, confidence=0.9),
        roc_auc_interval(positive, p, confidence=0.9),
    )
    assert (found.auc_low, found.auc_high) == (interval.low, interval.high)
    assert evaluate(positive, p, sample_weight=np.full(p.size, 3.0)).auc_low == pytest.approx(
        roc_auc_interval(positive, p).low
    )
    weighted = evaluate(positive, p, sample_weight=weight).to_dict()
    assert weighted["auc_low"] is None
    assert weighted["auc_high"] is None


def test_lift_by_hand():
    # 100 rows, 10 positive: the highest row, two of the next four, one of the next five.
    positive = np.zeros(100, dtype=bool)
    positive[[0, 2, 3, 7, 20, 30, 40, 50, 60, 70]] = True
    one, five, ten = evaluate(positive, -np.arange(100.0)).top
    assert (one.rows, one.captured, one.precision, one.lift) == pytest.approx((1, 0.1, 1.0, 10.0))
    assert (five.rows, five.captured, five.precision, five.lift) == pytest.approx((5, 0.3, 0.6, 6.0))
    assert (ten.rows, ten.captured, ten.precision, ten.lift) == pytest.approx((10, 0.4, 0.4, 4.0))


def test_ties_at_the_cut_count_by_the_mean_over_their_orders():
    rng = np.random.default_rng(3)
    positive = rng.random(100) < 0.3
    scores = np.repeat([3.0, 2.0, 1.0], [2, 9, 89])  # the top five end among nine equal rows
    hits = []
    for _ in range(4000):
        order = np.lexsort((rng.random(100), -scores))
        hits.append(positive[order][:5].sum() / positive.sum())
    assert evaluate(positive, scores).top[1].captured == pytest.approx(np.mean(hits), abs=0.002)


def test_the_order_of_rows_does_not_matter():
    positive, p, weight = sample(4, decimals=1)
    mixed = np.random.default_rng(0).permutation(p.size)
    a = evaluate(positive, p, p, weight)
    b = evaluate(positive[mixed], p[mixed], p[mixed], weight[mixed])
    assert a.top == b.top
    assert a.average_precision == pytest.approx(b.average_precision, abs=1e-12)


def test_a_weight_of_two_is_a_row_twice_and_of_zero_none():
    positive, p, weight = sample(5)
    twice = np.repeat(np.arange(p.size), weight)
    a, b = evaluate(positive, p, p, weight), evaluate(positive[twice], p[twice], p[twice])
    for name in ("positive_share", "auc", "average_precision", "brier", "brier_skill", "log_loss"):
        assert getattr(a, name) == pytest.approx(getattr(b, name), abs=1e-12)
    for one, other in zip(a.top, b.top, strict=True):
        assert one.captured == pytest.approx(other.captured, abs=1e-12)
        assert one.rows == pytest.approx(other.rows)
    assert a.rows == (weight > 0).sum()


def test_calibration_bins_hold_each_row_once_and_the_truth_mostly():
    positive, p, _ = sample(6, n=20_000, decimals=8)
    bins = evaluate(positive, p, p).calibration
    assert len(bins) == 12
    assert sum(each.rows for each in bins) == p.size
    assert [each.rows for each in bins[-3:]] == [1000, 800, 200]
    assert all(low.high < high.low for low, high in pairwise(bins))
    for each in bins:
        rows = (p >= each.low) & (p <= each.high)
        assert each.observed == pytest.approx(positive[rows].mean())
        assert each.mean_probability == pytest.approx(p[rows].mean())
    inside = [each.observed_low <= each.mean_probability <= each.observed_high for each in bins]
    assert sum(inside) >= 10


def test_equal_probabilities_share_a_bin():
    positive, p, _ = sample(7, decimals=1)
    bins = evaluate(positive, p, p).calibration
    assert sum(each.rows for each in bins) == p.size
    assert len(evaluate(positive, p, np.full(p.size, 0.3)).calibration) == 1


def test_the_share_of_positives_as_probability_has_no_skill():
    positive, p, _ = sample(8)
    assert evaluate(positive, p, np.full(p.size, positive.mean())).brier_skill == pytest.approx(
        0, abs=1e-12
    )


def test_certain_probabilities_and_absent_ones_are_json():
    positive = np.arange(20) < 5
    sure = evaluate(positive, positive, positive.astype(float)).to_dict()
    assert sure["brier"] == 0.0
    none = evaluate(positive, np.arange(20)).to_dict()
    assert none["brier"] is none["log_loss"] is none["calibration"] is None
    assert json.loads(json.dumps([sure, none], allow_nan=False)) == [sure, none]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([True, True], [1, 2]), "both classes"),
        (([True, False], [1, np.inf]), "scores must be finite; row 1 has inf"),
        (([True, False], [1, 2], [0.5, 1.5]), "probability must lie between 0 and 1; row 1 has 1.5"),
        (([True, False], [1, 2], [[0.5, 0.5], [0.5, 0.5]]), "probability must be one-dimensional"),
        (([True, False], [1, 2], [0.5]), "positive and probability must have one entry per row"),
        (([True, False], [1, 2], None, [1, -1]), "sample_weight must be finite and not negative"),
        (([True, False], [1, 2], None, None, 95), "confidence must be a number"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        evaluate(*arguments)
