import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression

from aucmax.metrics import roc_auc
from aucmax.metrics.calibration import IsotonicCalibrator, SigmoidCalibrator, make_calibrator

BOTH = pytest.mark.parametrize("make", [SigmoidCalibrator, IsotonicCalibrator])


def sample(seed, n=2000, share=0.1, gap=1.5):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < share
    return rng.normal(size=n) + gap * positive, positive


def test_the_sigmoid_is_platts_minimum_by_another_optimiser():
    scores, positive = sample(0)
    n_pos, n_neg = positive.sum(), (~positive).sum()
    target = np.where(positive, (n_pos + 1) / (n_pos + 2), 1 / (n_neg + 2))

    def loss(line):
        p = expit(line[0] * scores + line[1])
        return -(target * np.log(p) + (1 - target) * np.log(1 - p)).sum()

    options = {"xatol": 1e-8, "fatol": 1e-10}
    found = minimize(loss, [1.0, 0.0], method="Nelder-Mead", options=options)
    calibrator = SigmoidCalibrator().fit(scores, positive)
    assert [calibrator.slope_, calibrator.intercept_] == pytest.approx(found.x, abs=1e-5)
    assert calibrator.predict(scores) == pytest.approx(
        expit(found.x[0] * scores + found.x[1]), abs=1e-6
    )


def test_the_sigmoid_finds_the_truth_in_many_rows():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=100_000)
    calibrator = SigmoidCalibrator().fit(scores, rng.random(scores.size) < expit(2 * scores - 3))
    assert calibrator.slope_ == pytest.approx(2.0, abs=0.05)
    assert calibrator.intercept_ == pytest.approx(-3.0, abs=0.05)


def test_isotonic_follows_scikit_learns_staircase():
    scores, positive = sample(2, n=20_000)
    stairs = IsotonicRegression(out_of_bounds="clip").fit(scores, positive)
    p, flat = IsotonicCalibrator().fit(scores, positive).predict(scores), stairs.predict(scores)
    # Off by the tilt, one part in a hundred, and the smoothing of the targets.
    assert (np.abs(p - flat) <= 0.01 * flat * (1 - flat) + 1.2 / positive.sum()).all()
    assert p.mean() == pytest.approx(positive.mean(), abs=1e-3)


@pytest.mark.parametrize("gap", [0.5, 3.0, 12.0])
@BOTH
def test_the_mean_probability_is_the_share_of_positives(make, gap):
    scores, positive = sample(3, n=5000, gap=gap)
    mean = make().fit(scores, positive).predict(scores).mean()
    assert mean == pytest.approx(positive.mean(), abs=1e-3)


@pytest.mark.filterwarnings("ignore:These scores rank worse")
@pytest.mark.parametrize("spread", [1e-30, 1e-3, 1.0, 50.0, 1e30])
@pytest.mark.parametrize("gap", [0.0, 1.0, 8.0])
@BOTH
def test_auc_is_unchanged_to_the_bit(make, gap, spread):
    scores, positive = sample(4, gap=gap)
    scores = np.round(scores, 2) * spread if gap == 1.0 else scores * spread  # once with ties
    p = make().fit(scores, positive).predict(scores)
    assert roc_auc(positive, p) == roc_auc(positive, scores)
    assert (np.argsort(p, kind="stable") == np.argsort(scores, kind="stable")).all()
    assert ((p > 0) & (p < 1)).all()


@BOTH
def test_scores_of_plus_and_minus_fifty_logits_keep_their_order(make):
    rng = np.random.default_rng(5)
    scores = rng.uniform(-50, 50, size=4000)
    positive = rng.random(scores.size) < expit(scores)
    new = np.linspace(-60, 60, 100_001)
    calibrator = make().fit(scores, positive)
    assert roc_auc(positive, calibrator.predict(scores)) == roc_auc(positive, scores)
    assert (np.diff(calibrator.predict(new)) > 0).all()


def test_the_sigmoid_goes_on_where_it_would_be_one():
    new = np.linspace(-50, 50, 100_001)
    steep = SigmoidCalibrator()
    steep.slope_, steep.intercept_ = 1.0, 0.0
    assert (np.diff(steep.predict(new)) > 0).all()
    assert steep.predict(new) == pytest.approx(expit(new), abs=1.2e-7)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.integers(-20, 20), st.integers(0, 3)), max_size=15),
    st.sampled_from([SigmoidCalibrator, IsotonicCalibrator]),
)
@pytest.mark.filterwarnings("ignore:These scores rank worse")
def test_any_few_rows_give_rising_probabilities(rows, make):
    rows = [(True, 1, 1), (False, 2, 1), *rows]
    positive, scores, weight = (np.array(column) for column in zip(*rows, strict=True))
    p = make().fit(scores, positive, weight).predict(np.linspace(-30, 30, 1001))
    assert (np.diff(p) > 0).all()
    assert p.min() > 0
    assert p.max() < 1


@BOTH
def test_extreme_scores_give_probabilities(make):
    scores, positive = sample(6)
    calibrator = make().fit(scores, positive)
    p = calibrator.predict([-1e308, -1e10, 0.0, 1e10, 1e308])
    assert (np.diff(p) >= 0).all()
    assert ((p >= 0) & (p <= 1)).all()
    p = make().fit(np.append(scores, 1e12), np.append(positive, True)).predict(scores)
    assert np.isfinite(p).all()


@BOTH
def test_constant_scores_give_the_share_of_positives(make):
    positive = np.arange(1000) < 50
    p = make().fit(np.full(1000, 7.0), positive).predict([7.0])
    assert p == pytest.approx(0.05, abs=0.002)


def test_scores_worse_than_chance_warn_and_still_rise():
    scores, positive = sample(7)
    with pytest.warns(UserWarning, match="rank worse than chance"):
        calibrator = SigmoidCalibrator().fit(-scores, positive)
    p = calibrator.predict(-scores)
    assert roc_auc(positive, p) == roc_auc(positive, -scores)
    assert p == pytest.approx(positive.mean(), abs=2e-3)


@BOTH
def test_weights_have_no_unit_and_zero_is_absent(make):
    scores, positive = sample(8)
    weight = np.random.default_rng(9).integers(0, 4, size=scores.size)
    new = np.linspace(-3, 5, 50)
    p = make().fit(scores, positive, weight).predict(new)
    assert make().fit(scores, positive, 1e-6 * weight).predict(new) == pytest.approx(p, rel=1e-6)
    some = weight > 0
    assert (make().fit(scores[some], positive[some], weight[some]).predict(new) == p).all()
    # A weight of 2 is a row twice, up to the smoothing, which knows how many rows there are.
    twice = np.repeat(np.arange(scores.size), weight)
    assert make().fit(scores[twice], positive[twice]).predict(new) == pytest.approx(
        p, rel=0.03, abs=1e-3
    )


@BOTH
def test_the_order_of_rows_does_not_matter(make):
    scores, positive = sample(10)
    a = make().fit(scores, positive).predict(scores)
    b = make().fit(scores[::-1], positive[::-1]).predict(scores)
    assert a == pytest.approx(b, rel=1e-9)


@BOTH
def test_calibrators_can_be_cloned_and_pickled(make):
    scores, positive = sample(11)
    calibrator = clone(make()).fit(scores, positive)
    again = pickle.loads(pickle.dumps(calibrator))
    assert (again.predict(scores) == calibrator.predict(scores)).all()


def test_names_make_calibrators():
    assert isinstance(make_calibrator("isotonic"), IsotonicCalibrator)
    with pytest.raises(
        ValueError, match="calibration must be one of 'sigmoid', 'isotonic'; got 'platt'"
    ):
        make_calibrator("platt")


@pytest.mark.parametrize(
    ("scores", "positive", "message"),
    [
        ([1.0, np.nan], [True, False], "scores must be finite; row 1 has nan"),
        ([1.0, 2.0], [True, True], "both classes are needed; all 2 .* are positive"),
        ([1.0, 2.0], ["yes", "no"], "row 0 has 'yes'. For labels y write y == label"),
        ([1.0, 2.0, 3.0], [True, False], "got 2 and 3"),
        ([], [], "no rows"),
        ([[1.0]], [True], r"one-dimensional; its shape is \(1, 1\)"),
        (["a", "b"], [True, False], "one number per row"),
    ],
)
@BOTH
def test_bad_input_is_named(make, scores, positive, message):
    with pytest.raises(ValueError, match=message):
        make().fit(scores, positive)
