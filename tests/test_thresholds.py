import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import confusion_matrix

from aucmax.metrics.cutoffs import balanced_threshold
from aucmax.metrics.thresholds import Aim, choose_threshold, measure_threshold

AIMS = [
    "youden",
    "cost=0.3",
    "cost=5",
    "precision=0.5",
    "recall=0.7",
    "fpr=0",
    "fpr=0.3",
    "top=4",
    "top=40%",
]


def sample(seed, n=300, decimals=1):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.2
    return positive, np.round(rng.normal(size=n) + positive, decimals)


def all_cuts(positive, scores, weight):
    """Every way to cut the rows by score, from none positive to all: (called, tp, fp)."""
    for cut in [np.inf, *sorted(set(scores), reverse=True)]:
        called = scores >= cut
        yield called, weight[called & positive].sum(), weight[called & ~positive].sum()


def best_by_loop(positive, scores, weight, aim):
    """The rows that the best cut calls positive, or None, one cut after another."""
    pos, neg = weight[positive].sum(), weight[~positive].sum()
    best, best_worth = None, None
    for called, tp, fp in all_cuts(positive, scores, weight):
        precision = tp / (tp + fp) if tp + fp else 0.0
        worth = {  # the first of equals stays, but for the second entry of recall's
            "youden": (tp * neg - fp * pos,),
            "cost": (-(fp + (aim.value or 0) * (pos - tp)),),
            "precision": (tp,) if precision >= (aim.value or 0) else None,
            "recall": (precision, tp) if tp / pos >= (aim.value or 0) else None,
            "fpr": (tp,) if fp / neg <= (aim.value or 0) else None,
            "top": (tp + fp,) if called.any() and tp + fp <= (aim.value or 0) else None,
            "share": (tp + fp,) if called.any() and tp + fp <= (aim.value or 0) * (pos + neg) else None,
        }[aim.kind]
        if worth is not None and (best_worth is None or worth > best_worth):
            best, best_worth = called, worth
    return best


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 6), st.sampled_from([1, 2, 4])), max_size=14),
    st.sampled_from(AIMS),
)
def test_the_choice_is_that_of_a_loop_over_all_cuts(rows, text):
    rows = [(True, 3, 1), (False, 2, 1), *rows]
    positive, scores, weight = (np.array(column) for column in zip(*rows, strict=True))
    expected = best_by_loop(positive, scores, weight, Aim.parse(text))
    if expected is None:
        with pytest.raises(ValueError, match=r"No threshold reaches|leaves room"):
            choose_threshold(positive, scores, text, weight)
        return
    chosen = choose_threshold(positive, scores, text, weight)
    assert ((scores >= chosen.threshold) == expected).all()
    assert chosen.tp == weight[expected & positive].sum()
    assert chosen.tn == weight[~expected & ~positive].sum()


@pytest.mark.parametrize("text", AIMS)
def test_counts_and_rates_are_those_of_the_rows(text):
    positive, scores = sample(0)
    chosen = choose_threshold(positive, scores, text)
    (tn, fp), (fn, tp) = confusion_matrix(positive, scores >= chosen.threshold)
    assert (chosen.tn, chosen.fp, chosen.fn, chosen.tp) == (tn, fp, fn, tp)
    assert chosen.recall == tp / (tp + fn)
    assert chosen.fpr == fp / (fp + tn)
    assert math.isnan(chosen.precision) if tp + fp == 0 else chosen.precision == tp / (tp + fp)
    assert chosen.aim == text


def test_intervals_are_clopper_and_pearsons():
    positive, scores = sample(1)
    chosen = choose_threshold(positive, scores, "recall=0.8", confidence=0.9)
    tp, fp, fn, tn = (int(x) for x in (chosen.tp, chosen.fp, chosen.fn, chosen.tn))
    for name, hits, total in [
        ("precision", tp, tp + fp),
        ("recall", tp, tp + fn),
        ("fpr", fp, fp + tn),
    ]:
        exact = binomtest(hits, total).proportion_ci(0.9, method="exact")
        assert getattr(chosen, f"{name}_low") == pytest.approx(exact.low, abs=1e-12)
        assert getattr(chosen, f"{name}_high") == pytest.approx(exact.high, abs=1e-12)
    counts = chosen.count_intervals()
    assert counts["tp"] == ((tp + fn) * chosen.recall_low, (tp + fn) * chosen.recall_high)
    for name, (low, high) in counts.items():
        assert low <= getattr(chosen, name) <= high


def test_the_unit_of_weights_does_not_narrow_intervals():
    positive, scores = sample(2)
    plain = choose_threshold(positive, scores, "recall=0.8")
    heavy = choose_threshold(positive, scores, "recall=0.8", np.full(scores.size, 1000.0))
    assert heavy.tp == 1000 * plain.tp
    assert heavy.recall_low == pytest.approx(plain.recall_low)
    uneven = np.where(np.arange(scores.size) % 10 == 0, 1000.0, 1.0)
    loose = measure_threshold(positive, scores, plain.threshold, uneven)
    assert loose.recall_high - loose.recall_low > plain.recall_high - plain.recall_low


def test_youdens_threshold_is_the_classifiers_own():
    for seed in range(5):
        positive, scores = sample(seed, decimals=3)
        own = balanced_threshold(scores, positive, np.ones(scores.size))
        assert choose_threshold(positive, scores).threshold == pytest.approx(own, abs=1e-12)


def test_neighbouring_floats_are_parted():
    low = 1.0
    high = np.nextafter(low, 2.0)
    chosen = choose_threshold([False, True], [low, high])
    assert (chosen.tp, chosen.fp) == (1, 0)
    chosen = choose_threshold([False, True], [-1.5e308, 1.5e308])
    assert (chosen.tp, chosen.fp) == (1, 0)


def test_an_unreachable_precision_names_the_best_there_is():
    positive = [False, True, False, True, False]
    with pytest.raises(ValueError, match=r"precision of 0.9 .* the best is 0.5, at a recall of 0.5"):
        choose_threshold(positive, [5, 4, 3, 2, 1], "precision=0.9")


def test_more_tied_rows_than_there_is_room_for_is_an_error():
    with pytest.raises(
        ValueError, match=r"top=2 leaves room for 2 of these 4 rows, but 3 share .* top=3"
    ):
        choose_threshold([True, False, True, False], [2, 2, 2, 1], "top=2")
    with pytest.raises(ValueError, match=r"top=1% leaves room for 0.04"):
        choose_threshold([True, False, True, False], [4, 3, 2, 1], "top=1%")


def test_calling_no_row_positive_can_be_the_best():
    chosen = choose_threshold([False, True, False], [3.0, 2.0, 1.0], "cost=0.5")
    assert (chosen.tp, chosen.fp) == (0, 0)
    assert chosen.cost(0.5) == 0.5
    assert chosen.to_dict()["precision"] is None
    assert (chosen.precision_low, chosen.precision_high) == (0.0, 1.0)
    json.dumps(chosen.to_dict(), allow_nan=False)


def test_a_given_threshold_is_measured_on_rows_of_one_class():
    found = measure_threshold([False, False], [0.0, 1.0], 0.5)
    assert (found.fp, found.tn, found.fpr) == (1, 1, 0.5)
    assert math.isnan(found.recall)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("youden", "youden", None),
        (" Cost = 5 ", "cost", 5.0),
        ("precision=80%", "precision", 0.8),
        ("fpr=0", "fpr", 0.0),
        ("top=1234567", "top", 1234567.0),
        ("top=0.5%", "share", 0.005),
    ],
)
def test_aims_are_read_and_written_as_text(text, kind, value):
    aim = Aim.parse(text)
    assert aim == Aim(kind, value)
    assert Aim.parse(str(aim)) == aim


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f1=0.5", "'f1=0.5' is not an aim of a threshold; use youden, cost=5, cost=500:20, "),
        ("", "is not an aim"),
        ("youden=1", "is not an aim"),
        ("recall", "needs a number after recall="),
        ("recall=high", "needs a number after recall="),
        ("recall=90", "recall must be a number above 0 and at most 1; got 90"),
        ("cost=-1", "cost must be a number above 0"),
        ("cost=5%", "not a percentage"),
        ("top=0", "top must be a number above 0"),
        ("fpr=nan", "fpr must be a number of at least 0"),
    ],
)
def test_bad_aims_are_refused_with_what_is_known(text, message):
    with pytest.raises(ValueError, match=message):
        Aim.parse(text)


def test_aims_made_in_python_are_checked_too():
    with pytest.raises(ValueError, match="'f1' is not an aim"):
        Aim("f1", 0.5)
    with pytest.raises(ValueError, match="youden takes no value"):
        Aim("youden", 0.5)
    with pytest.raises(ValueError, match="confidence must be a number"):
        choose_threshold([True, False], [1.0, 0.0], confidence=95)
