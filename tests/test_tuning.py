"""What a classifier finds out by itself, against what is known of the data."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_moons

from aucmax import KernelAUCClassifier, NystroemFeatures, load_model, save_model
from aucmax.features.fourier import FourierFeatures
from aucmax.features.kernels import BOTH, LANDMARK_KERNELS
from aucmax.features.metric import Damping, learn_metric, mean_outer
from aucmax.fitting.settings import Settings
from aucmax.metrics import roc_auc
from aucmax.tuning import resolve as resolve_module
from aucmax.tuning import trial_rows, tuner
from aucmax.tuning.effort import most_landmarks
from aucmax.tuning.trial_rows import (
    Sample,
    are_many,
    cost_scale,
    draw_sample,
    effective_rows,
    rows_within,
)
from aucmax.tuning.trials import MetricRound, TrialKernel
from aucmax.tuning.tuner import Limits
from tests.searches import kernel_search

NO_DAMPING = Damping(1.0, 0.0)

#: What leaves the metric alone to be found: each trial is one solve.
FIXED = {
    "C": 1.0,
    "gamma": "distance",
    "standardize": True,
    "landmarks": "class-kmeans",
    "kernel": "rbf",
}


def tune(sample, fixed, kernel=TrialKernel(), metric="diagonal", **limits):  # noqa: B008
    return tuner.tune(sample, fixed, kernel, metric, Limits(**limits))[:3]


def ring(n=600, d=12, seed=0):
    """The first two columns tell all, by the distance from the origin; the others are noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    away = np.hypot(X[:, 0], X[:, 1])
    return X, (away + 0.2 * rng.normal(size=n) > 1.5).astype(int)


def sample_of(X, y, seed=0):
    rows, folds = draw_sample(y, np.random.default_rng(seed), 10_000)
    own = y[rows]
    positives = [own == 1]
    return Sample({True: X[rows].astype(np.float32)}, own, np.ones(rows.size), positives, folds)


@pytest.mark.parametrize("kernel", LANDMARK_KERNELS)
def test_gradients_are_those_of_finite_differences(kernel):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    mapped = NystroemFeatures(30, kernel=kernel, landmarks="uniform", random_state=0).fit(X).map
    coef = rng.normal(size=(2, mapped.width))
    rows, step = rng.normal(size=(8, 3)), 1e-6
    for column, gradient in enumerate(mapped.gradients(rows, coef)):
        for f in range(3):
            moved = np.zeros(3)
            moved[f] = step
            up, down = (mapped.linear(rows + side * moved, coef.T)[:, column] for side in (1, -1))
            np.testing.assert_allclose(gradient[:, f], (up - down) / (2 * step), rtol=1e-5, atol=1e-5)


def test_gradients_of_fourier_features_are_those_of_finite_differences():
    rng = np.random.default_rng(0)
    mapped = FourierFeatures(20, random_state=0).fit(rng.normal(size=(40, 3))).map
    rows, coef, step = rng.normal(size=(8, 3)), rng.normal(size=(1, 20)), 1e-6
    (gradient,) = mapped.gradients(rows, coef)
    for f in range(3):
        moved = step * np.eye(3)[f]
        slope = (mapped.linear(rows + moved, coef.T) - mapped.linear(rows - moved, coef.T)) / (2 * step)
        np.testing.assert_allclose(gradient[:, f], slope[:, 0], rtol=1e-5, atol=1e-7)


def test_mean_outer_products_go_back_to_unstretched_rows():
    rng = np.random.default_rng(0)
    gradients, stretch, turn = (
        rng.normal(size=(50, 3)),
        np.array([1.0, 2.0, 3.0]),
        rng.normal(size=(3, 3)),
    )
    outer = mean_outer([gradients], "diagonal", stretch)
    np.testing.assert_allclose(outer, ((gradients * stretch) ** 2).mean(axis=0))
    outer = mean_outer([gradients, gradients], "full", turn)
    back = gradients @ turn.T
    np.testing.assert_allclose(outer, back.T @ back / 50)


def test_a_metric_keeps_the_size_of_squared_distances():
    metric = learn_metric(np.array([4.0, 1.0, 0.0]), Damping(0.7, 0.1))
    assert (metric**2).mean() == pytest.approx(1.0)
    assert metric[0] > metric[1] > metric[2] == pytest.approx(np.sqrt(0.1))


def test_a_full_metric_turns_with_the_rows():
    rng = np.random.default_rng(0)
    root, turn = rng.normal(size=(4, 4)), np.linalg.qr(rng.normal(size=(4, 4)))[0]
    outer = root @ root.T
    metric, turned = (learn_metric(each, Damping(0.7, 0.1)) for each in (outer, turn @ outer @ turn.T))
    np.testing.assert_allclose(turned, turn @ metric @ turn.T, atol=1e-10)
    # Of a diagonal one it is the diagonal metric.
    diagonal = learn_metric(np.diag([3.0, 1.0, 2.0]), NO_DAMPING)
    np.testing.assert_allclose(np.diag(diagonal), learn_metric(np.array([3.0, 1.0, 2.0]), NO_DAMPING))


def test_no_gradient_gives_no_metric():
    assert learn_metric(np.zeros(3), NO_DAMPING) is None
    assert learn_metric(np.full(3, np.nan), NO_DAMPING) is None


@pytest.mark.parametrize("kind", ["learned", "full"])
def test_a_learnt_metric_finds_the_columns_that_tell(kind):
    X, y = ring()
    X_test, y_test = ring(2000, seed=1)
    plain = KernelAUCClassifier(metric=None, **FIXED, random_state=0).fit(X, y)
    model = KernelAUCClassifier(metric=kind, **FIXED, random_state=0).fit(X, y)
    before, after = (roc_auc(y_test, each.decision_function(X_test)) for each in (plain, model))
    assert after > before + 0.02
    steep = model.metric_ if model.metric_.ndim == 1 else np.diag(model.metric_)
    assert steep[:2].min() > 1.5 * steep[2:].max()
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert set(np.argsort(-model.feature_importances_)[:2]) == {0, 1}
    kept = [trial["kept"] for trial in model.trials_ if trial["what"].startswith("metric")]
    assert any(kept)
    assert plain.metric_ is None
    assert not any(trial["what"].startswith("metric") for trial in plain.trials_)


def test_a_metric_that_hurts_is_not_kept(monkeypatch):
    X, y = ring(400)

    def noise_alone(outer, damping):
        return np.where(np.arange(12) < 2, 0.01, 1.0)

    monkeypatch.setattr(tuner, "learn_metric", noise_alone)
    model = KernelAUCClassifier(**FIXED, random_state=0).fit(X, y)
    plain = KernelAUCClassifier(metric=None, **FIXED, random_state=0).fit(X, y)
    assert model.metric_ is None
    assert not any(trial["kept"] for trial in model.trials_ if "metric" in trial["what"])
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))


@pytest.mark.slow
def test_columns_that_all_tell_the_same_keep_the_plain_distance_or_lose_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 6))
    y = ((X**2).sum(axis=1) + rng.normal(size=1500) > 6).astype(int)
    model = KernelAUCClassifier(random_state=0).fit(X[:500], y[:500])
    plain = KernelAUCClassifier(metric=None, random_state=0).fit(X[:500], y[:500])
    ours, before = (roc_auc(y[500:], each.decision_function(X[500:])) for each in (model, plain))
    assert ours > before - 0.01


def test_units_and_order_of_columns_do_not_matter():
    X, y = ring(300)
    model = KernelAUCClassifier(**FIXED, random_state=0)
    scores = clone(model).fit(X, y).decision_function(X)
    units = 2.0 ** np.arange(-6, 6)
    other = clone(model).fit(X * units, y).decision_function(X * units)
    np.testing.assert_allclose(other, scores, atol=1e-6)
    order = np.random.default_rng(0).permutation(12)
    other = clone(model).fit(X[:, order], y)
    np.testing.assert_allclose(other.decision_function(X[:, order]), scores, atol=0.02)
    assert set(order[np.argsort(-other.feature_importances_)[:2]]) == {0, 1}


def test_a_full_metric_does_not_see_a_turn_of_the_rows():
    X, y = ring(300, d=5)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    model = KernelAUCClassifier(metric="full", **{**FIXED, "standardize": False}, random_state=0)
    scores, turned = (clone(model).fit(rows, y).decision_function(rows) for rows in (X, X @ turn))
    # Landmarks and folds are drawn by the content of rows, which a turn changes.
    assert spearmanr(turned, scores).statistic > 0.95


def test_the_papers_settings_are_one_argument_away():
    X, y = ring(300)
    ours = KernelAUCClassifier(preset="paper", random_state=0).fit(X, y)
    named = KernelAUCClassifier(
        10.0,
        gamma="paper",
        n_landmarks=300,
        landmarks="centroids",
        metric=None,
        standardize=True,
        random_state=0,
    ).fit(X, y)
    np.testing.assert_array_equal(ours.decision_function(X), named.decision_function(X))
    assert ours.trials_ == named.trials_ == []
    assert ours.settings_ == {
        "C": 10.0,
        "gamma": "paper",
        "n_landmarks": 1600,
        "landmarks": "centroids",
        "standardize": True,
        "kernel": "rbf",
    }


def test_landmarks_that_are_given_are_as_many_as_they_are():
    X, y = ring(300)
    given = {"C": 1.0, "gamma": 0.1, "standardize": True, "random_state": 0}
    model = KernelAUCClassifier(landmarks=X[:10], **given).fit(X, y)
    assert model.trials_ == []
    assert model.settings_["n_landmarks"] == len(model.feature_map_.landmarks_) == 10


def test_a_laplacian_kernel_is_tuned_as_well():
    X, y = ring(400)
    model = KernelAUCClassifier(kernel="laplacian", n_landmarks=100, random_state=0).fit(X, y)
    assert model.trials_
    X_test, y_test = ring(1000, seed=1)
    assert roc_auc(y_test, model.decision_function(X_test)) > 0.9
    assert set(np.argsort(-model.feature_importances_)[:2]) == {0, 1}


def steps(n, seed=0):
    """Each of six columns tells a little, by the side of a threshold it is on."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    return X, ((X > 0.3).sum(axis=1) + 0.5 * rng.normal(size=n) > 2.5).astype(int)


def has_second_kernel(model):
    """What came of the second kernel: kept, not kept or not tried."""
    found = [
        trial["kept"] for trial in model.trials_ if trial["what"] == "a second kernel, the laplacian"
    ]
    assert (model.settings_["kernel"] == BOTH) == any(found)
    assert model.feature_map_.kernel == model.settings_["kernel"]
    return found[0] if found else None


@pytest.mark.slow
def test_a_second_kernel_helps_where_columns_have_steps():
    X, y = steps(600)
    X_test, y_test = steps(4000, seed=1)
    both = KernelAUCClassifier(random_state=0).fit(X, y)
    one = KernelAUCClassifier(kernel="rbf", random_state=0).fit(X, y)
    assert has_second_kernel(both)
    assert has_second_kernel(one) is None
    before, after = (roc_auc(y_test, each.decision_function(X_test)) for each in (one, both))
    assert after > before + 0.002
    assert both.dual_coef_.shape == (1, 2 * len(both.feature_map_.landmarks_))


def test_a_second_kernel_that_hurts_is_not_kept():
    X, y = ring(400)
    model = KernelAUCClassifier(random_state=0).fit(X, y)
    plain = KernelAUCClassifier(kernel="rbf", random_state=0).fit(X, y)
    assert has_second_kernel(model) is False
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))


def test_where_a_second_kernel_is_not_tried():
    X, y = steps(300)
    assert has_second_kernel(KernelAUCClassifier(1.0, metric="full", random_state=0).fit(X, y)) is None
    csr = sparse.csr_array(X)
    assert has_second_kernel(KernelAUCClassifier(1.0, metric=None, random_state=0).fit(csr, y)) is None
    far = X + 10.0 * y[:, None]
    assert has_second_kernel(KernelAUCClassifier(1.0, metric=None, random_state=0).fit(far, y)) is None
    sample = sample_of(*steps(300))
    for most, tried in ((999, False), (1000, True)):
        _, records, _ = tune(sample, Settings(C=1.0), metric=None, most_with_second=most)
        assert any("laplacian" in each["what"] for each in records) == tried


def test_two_kernels_take_more_of_the_effort_than_one():
    for rows, columns in ((80_000, 54), (50_000, 22), (5_000_000, 10)):
        both = most_landmarks(rows, columns, 1.0, second_kernel=True)
        assert both <= most_landmarks(rows, columns, 1.0)
        assert both <= most_landmarks(rows, columns, 4.0, second_kernel=True)
    assert most_landmarks(80_000, 54, 1.0, second_kernel=True) > 1000
    assert most_landmarks(80_000, 54, 4.0, second_kernel=True) > 3000
    assert most_landmarks(5_000_000, 10, 1.0, second_kernel=True) == 0


def test_each_fold_learns_its_metric_as_the_whole_did(monkeypatch):
    X, y = steps(600)
    X = np.column_stack([X, np.random.default_rng(1).normal(size=(600, 6))])  # noise
    seen = []
    learn = resolve_module.repeat_rounds

    def learning(sample, settings, *rest):
        seen.append(settings.kernel)
        return learn(sample, settings, *rest)

    monkeypatch.setattr(resolve_module, "repeat_rounds", learning)
    given = {"Cs": [1.0], "n_landmarks": 100, "random_state": 0}
    model = kernel_search(metric="learned", kernel="auto", **given).fit(X, y)
    assert has_second_kernel(model)
    assert seen == ["rbf"] * 3


@pytest.mark.slow
def test_more_rows_bring_no_more_landmarks_than_two_kernels_may_have():
    X, y = steps(3000)
    asked = []

    def widen(standardize):
        asked.append(standardize)
        return sample_of(X, y)

    limits = {"most_landmarks": 2000, "most_with_second": 1000}
    settings, *_ = tune(
        sample_of(X, y), Settings(C=1.0), TrialKernel(fixed=True), metric=None, widen=widen, **limits
    )
    assert asked
    assert settings.kernel == BOTH
    assert settings.n_landmarks <= 1000


def test_a_plan_reckons_with_a_second_kernel():
    X, _ = steps(300)
    model = KernelAUCClassifier(n_landmarks=50, random_state=0)
    assert model.plan(X).sizes.width == 100
    assert clone(model).set_params(kernel="rbf").plan(X).sizes.width == 50


def test_what_is_given_stays():
    X, y = ring(300)
    given = {"C": 3.0, "gamma": 0.1, "n_landmarks": 40, "landmarks": "uniform", "kernel": "rbf"}
    given["standardize"] = "quantile"
    model = KernelAUCClassifier(**given, random_state=0).fit(X, y)
    assert model.settings_ == given
    assert model.feature_map_.gamma_ == 0.1
    assert all(trial["C"] == 3.0 and trial["gamma"] == 1.0 for trial in model.trials_)


def test_the_same_seed_gives_the_same_model():
    X, y = ring(300)
    first, second = (KernelAUCClassifier(1.0, random_state=3).fit(X, y) for _ in range(2))
    assert first.trials_ == second.trials_
    np.testing.assert_array_equal(first.decision_function(X), second.decision_function(X))


@pytest.mark.slow
def test_long_tails_are_brought_to_ranks():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(1500, 3))
    y = (Z[:, 0] * Z[:, 1] + 0.3 * rng.normal(size=1500) > 0).astype(int)
    X = np.exp(3.0 * Z)
    model = KernelAUCClassifier(metric=None, random_state=0).fit(X[:500], y[:500])
    assert model.settings_["standardize"] == "quantile"
    plain = KernelAUCClassifier(metric=None, standardize=True, random_state=0).fit(X[:500], y[:500])
    ours, before = (roc_auc(y[500:], each.decision_function(X[500:])) for each in (model, plain))
    assert ours > before + 0.05


def test_more_landmarks_where_they_pay():
    X = np.random.default_rng(0).uniform(size=(6000, 2)).astype(np.float32)
    fixed = Settings(C=16.0, gamma=500.0, landmarks="kmeans", standardize=True, kernel="rbf")
    narrow = TrialKernel(gamma=500.0, fixed=True)
    squares = (np.floor(24 * X).sum(axis=1) % 2).astype(int)  # every square needs its landmarks
    halves = (X[:, 0] > 0.5).astype(int)
    for y, count in ((squares, 2000), (halves, 1000)):
        many = sample_of(X, y)
        settings, trials, _ = tune(many, fixed, narrow, metric=None, widen=lambda _, made=many: made)
        assert settings.n_landmarks == count
        assert trials[-1]["what"].endswith("landmarks")


def board(n, seed=0):
    """A chessboard: the more rows there are, the narrower the kernel that learns its squares."""
    X = np.random.default_rng(seed).uniform(size=(n, 2)).astype(np.float32)
    return X, (np.floor(6 * X).sum(axis=1) % 2).astype(int)


@pytest.mark.slow
def test_more_rows_are_asked_once_more():
    X, y = board(8000)
    fixed = Settings(standardize=True, landmarks="kmeans")
    few, many, asked = sample_of(X[:1200], y[:1200]), sample_of(X, y), []

    def widen(scaling):
        asked.append(scaling)
        return many

    before, trials, _ = tune(few, fixed, metric=None)
    after, more, _ = tune(few, fixed, metric=None, widen=widen)
    assert asked == [[True]]
    shared = [trial for trial in trials if "paper" not in trial["what"]]
    assert more[: len(shared)] == shared
    first = more[len(shared)]
    assert first["what"] == "on 8,000 rows"
    assert first["auc"] > shared[-1]["auc"]
    assert after.gamma >= before.gamma
    # Whether twice the landmarks pay is a matter of rounding here; the test above decides it.
    assert after.n_landmarks >= before.n_landmarks
    # As many landmarks as given stay, and a metric that helped.
    rings, kinds = ring(8000, d=4)
    few, many = sample_of(rings[:1500], kinds[:1500]), sample_of(rings, kinds)
    given = replace(fixed, n_landmarks=300)
    settings, tried, rounds = tune(few, given, widen=widen)
    assert tried[-1]["what"] == "on 8,000 rows"
    assert settings.n_landmarks == 300
    assert rounds
    assert settings.metric[:2].min() > settings.metric[2:].max()


@pytest.mark.parametrize("given", [False, True])
def test_more_rows_are_asked_for_unless_all_is_given(given):
    X, y = board(1500)
    few, many, asked = sample_of(X[:300], y[:300]), sample_of(X, y), []

    def widen(scaling):
        asked.append(scaling)
        return many

    kernel = TrialKernel(gamma=50.0, fixed=True)
    fixed = Settings(4.0 if given else None, 50.0, 50, "kmeans", True, kernel="rbf")
    _, trials, _ = tune(few, fixed, kernel, metric=None, widen=widen)
    assert asked == ([] if given else [[True]])
    assert ("on 1,500 rows" in [trial["what"] for trial in trials]) is not given


@pytest.mark.slow
def test_many_rows_are_tried_on_again_and_few_are_not(monkeypatch):
    X, y = board(7000)
    model = KernelAUCClassifier(metric=None, standardize=True, landmarks="class-kmeans", random_state=0)
    assert any(t["what"] == "on 7,000 rows" for t in clone(model).fit(X, y).trials_)
    assert not any(t["what"].startswith("on") for t in clone(model).fit(X[:5500], y[:5500]).trials_)
    monkeypatch.setattr(trial_rows, "_MOST_WIDE_ROWS", 5500)  # as where memory is short
    assert not any(t["what"].startswith("on") for t in clone(model).fit(X, y).trials_)


def test_a_sample_takes_the_rarer_class_whole():
    y = np.zeros(100_000, dtype=int)
    y[:300] = 1
    rows, folds = draw_sample(y, np.random.default_rng(0))
    assert rows.size == trial_rows.SAMPLE_ROWS
    assert y[rows].sum() == 300
    assert len(folds) == 3
    held_out = np.concatenate([test for _, test in folds])
    np.testing.assert_array_equal(np.sort(held_out), np.arange(rows.size))
    assert len(draw_sample(y, np.random.default_rng(0), one_part=True)[1]) == 3
    y[:50_000] = 1
    rows, folds = draw_sample(y, np.random.default_rng(0), 10_000, one_part=True)
    assert y[rows].sum() == rows.size / 2 == 5000
    assert len(folds) == 1
    assert not are_many(y[:50_100], 4000, 10_000)  # a hundred of the smaller class
    assert are_many(y, 4000, 10_000)
    assert not are_many(y, 9000, 10_000)


def test_landmarks_are_drawn_in_the_shares_of_a_strategy():
    y = np.arange(1000) % 10 == 0
    sample = replace(sample_of(np.zeros((1000, 1)), y.astype(int)), seed=1)
    for strategy, share in (("class-kmeans", 50), ("root-kmeans", 25), ("kmeans", 10), ("uniform", 10)):
        drawn = sample.landmarks(100, strategy)
        assert (np.unique(drawn).size, sample.codes[drawn].sum()) == (100, share)
    np.testing.assert_array_equal(sample.landmarks(1000, "kmeans"), np.arange(1000))


def test_the_weight_of_the_loss_follows_the_effective_rows():
    whole = np.arange(9000) < 150
    part = np.flatnonzero(np.arange(9000) < 4000)
    scale = cost_scale([whole[part]], np.ones(4000), [whole], np.ones(9000))
    effective = [effective_rows(each, np.ones(each.size)) for each in (whole[part], whole)]
    assert scale * 4000 / 9000 == pytest.approx((effective[0] / effective[1]) ** 1.5)
    same_shares = np.arange(9000) % 60 == 0
    other = cost_scale([same_shares[part]], np.ones(4000), [same_shares], np.ones(9000))
    assert other == pytest.approx((4000 / 9000) ** 0.5, rel=0.02)


def test_of_a_small_class_little_is_tried_and_its_rows_weigh_as_ever():
    X, y = ring(500)
    rare = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:30]])
    sample, balanced = sample_of(X[rare], y[rare]), sample_of(X, y)
    assert sample.few
    assert not balanced.few
    shares = [np.mean(each.codes) for each in (sample, balanced)]
    shares = [share * (1 - share) for share in shares]
    assert sample.first_cost / balanced.first_cost == pytest.approx(shares[0] / shares[1])
    _, records, rounds = tune(sample, Settings())
    tried = [record["what"] for record in records]
    assert tried == [
        "as it is",
        "metric, round 1, power 0.7",
        "a second kernel, the laplacian",
        "the paper's settings",
    ]
    assert len(rounds) <= 1


@pytest.mark.slow
def test_a_last_round_comes_from_the_machine_with_more_landmarks():
    X, y = ring(6000)
    fixed = Settings(C=4.0, standardize=True, landmarks="class-kmeans", n_landmarks=800, kernel="rbf")
    _, records, rounds = tune(sample_of(X, y), fixed)
    assert records[-1]["what"].startswith("metric, last round")
    assert records[-2]["what"] == "as many landmarks as given"
    assert [each.n_landmarks for each in rounds[:-1]] == [400] * (len(rounds) - 1)
    assert rounds[-1].n_landmarks == (800 if records[-1]["kept"] else 400)
    assert [MetricRound.of_plain(each.plain()) for each in rounds] == rounds


def test_few_rows_try_nothing_and_say_so(capsys):
    X, y = ring(99)
    model = KernelAUCClassifier(random_state=0, verbose=1).fit(X, y)
    assert model.trials_ == []
    assert model.settings_["C"] == 10.0
    assert "There are no trials" in capsys.readouterr().err
    with pytest.warns(UserWarning, match="there are 99 rows, and 100 are needed"):
        KernelAUCClassifier(metric="learned", random_state=0).fit(X, y)


def test_little_memory_tries_little_or_nothing():
    y = np.arange(50_000) % 2
    assert rows_within(y, 120e6, 0, 20_000) == 6250
    assert rows_within(y, 120e6, 3600, 20_000) == 1315
    assert rows_within(y, 1e12, 3600, 20_000) == 20_000
    rare = np.r_[np.zeros(5000, dtype=int), np.ones(50, dtype=int)]  # five folds instead of three
    assert rows_within(rare, 120e6, 0, 20_000) == 3750
    X, y = ring(300)
    with pytest.warns(
        UserWarning,
        match="7.* MB of memory are left for trials, and 32.* MB are needed; raise max_memory",
    ):
        KernelAUCClassifier(metric="learned", max_memory="16MB", random_state=0).fit(X, y)


@pytest.mark.slow
def test_rows_in_a_file_find_what_rows_in_memory_do(tmp_path):
    X, y = ring(300)
    mapped = np.memmap(tmp_path / "rows", np.float64, "w+", shape=X.shape)
    mapped[:] = X
    model = KernelAUCClassifier(1.0, random_state=0)
    held, blocks = clone(model).fit(X, y), clone(model).fit(mapped, y)
    assert blocks.settings_["standardize"] == held.settings_["standardize"]
    np.testing.assert_allclose(blocks.metric_, held.metric_, rtol=1e-6)
    np.testing.assert_allclose(blocks.decision_function(X), held.decision_function(X), atol=1e-3)


def test_a_tiny_class_tries_nothing():
    X, y = ring(300)
    few = np.r_[np.flatnonzero(y == 0)[:200], np.flatnonzero(y == 1)[:5]]
    with pytest.warns(UserWarning, match="the smallest class has 5 rows, and 10 are needed"):
        model = KernelAUCClassifier(metric="learned", random_state=0).fit(X[few], y[few])
    assert model.metric_ is None


@pytest.mark.parametrize(
    "X",
    [
        np.ones((200, 3)),
        np.random.default_rng(0).normal(size=(200, 1)),
        np.random.default_rng(0).normal(size=(120, 300)),
        np.repeat(np.random.default_rng(0).normal(size=(200, 2)), 4, axis=1),
    ],
    ids=["a constant score", "one column", "more columns than rows", "collinear columns"],
)
@pytest.mark.parametrize("metric", ["learned", "full"])
def test_odd_rows_are_fitted_without_a_warning(X, metric):
    y = (np.arange(len(X)) % 3 == 0).astype(int)
    y = np.where(np.arange(len(X)) % 7 == 0, y, (X[:, 0] > 0).astype(int)) if np.ptp(X) else y
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if not np.ptp(X):
            warnings.filterwarnings(
                "ignore", "KernelAUCClassifier gives all training rows the same score"
            )
        model = KernelAUCClassifier(1.0, metric=metric, random_state=0).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


def test_a_minority_smaller_than_its_share_of_landmarks():
    X, y = ring(600, d=4)
    rare = np.sort(np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:25]])
    model = KernelAUCClassifier(kernel="rbf", random_state=0).fit(X[rare], y[rare])
    X_test, y_test = ring(2000, d=4, seed=1)
    assert roc_auc(y_test, model.decision_function(X_test)) > 0.8


@pytest.mark.slow
def test_sparse_rows_several_classes_and_weights():
    X, y = load_breast_cancer(return_X_y=True)
    kinds = np.where(y == 0, 0, 1 + (X[:, 0] > np.median(X[y == 1, 0])))
    model = KernelAUCClassifier(1.0, random_state=0).fit(sparse.csr_array(X), kinds)
    assert model.settings_["standardize"] is True
    assert model.decision_function(sparse.csr_array(X)).shape == (569, 3)
    weight = np.where(np.arange(569) < 400, 1.0, 0.0)
    weighted, fewer = (
        KernelAUCClassifier(1.0, random_state=0).fit(X, y, sample_weight=weight),
        KernelAUCClassifier(1.0, random_state=0).fit(X[:400], y[:400]),
    )
    np.testing.assert_array_equal(weighted.decision_function(X), fewer.decision_function(X))


def test_a_tuned_model_is_saved_and_told_apart(tmp_path):
    X, y = ring(300)
    model = KernelAUCClassifier(random_state=0).fit(X, y)
    save_model(model, tmp_path / "model.aucmax")
    back = load_model(tmp_path / "model.aucmax")
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(back.feature_importances_, model.feature_importances_)
    assert back.settings_ == model.settings_
    assert back.trials_ == model.trials_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"metric": "learnd"}, "metric must be one of"),
        ({"preset": "papr"}, "preset must be one of"),
        ({"standardize": "ranks"}, "standardize must be one of"),
        ({"effort": 0}, "effort must be"),
        ({"metric": "learned", "feature_map": "fourier"}, "feature_map='nystroem'"),
        ({"metric": "full", "kernel": "linear"}, "kernel='rbf' or 'laplacian'"),
        ({"metric": "learned", "landmarks": np.ones((3, 12))}, "landmarks cannot be an array"),
    ],
)
def test_bad_parameters_are_refused_with_a_sentence(parameters, message):
    X, y = ring(120)
    with pytest.raises(ValueError, match=message):
        KernelAUCClassifier(**parameters).fit(X, y)


def test_a_full_metric_of_sparse_rows_is_refused():
    X, y = ring(120)
    with pytest.raises(ValueError, match='metric="full" is for dense rows'):
        KernelAUCClassifier(metric="full").fit(sparse.csr_array(X), y)


def test_moons_lose_nothing():
    X, y = make_moons(1300, noise=0.2, random_state=0)
    model = KernelAUCClassifier(random_state=0).fit(X[:300], y[:300])
    assert roc_auc(y[300:], model.decision_function(X[300:])) > 0.985


@pytest.mark.slow
def test_a_search_learns_a_metric_for_each_fold_by_itself(monkeypatch):
    X, y = ring(500)
    X_test, y_test = ring(2000, seed=1)
    seen = []
    learn = resolve_module.relearn_metric

    def learning(problem, asked, resolved, context, fold):
        seen.append(int((fold.weight > 0).sum()))
        return learn(problem, asked, resolved, context, fold)

    monkeypatch.setattr("aucmax.estimators.search.relearn_metric", learning)
    given = {"Cs": [0.1, 1.0], "gammas": [1.0, 2.0], "n_landmarks": 200, "random_state": 0}
    model = kernel_search(metric="learned", **given).fit(X, y)
    assert seen == [333, 333, 334]
    plain = kernel_search(map_per_fold=True, **given).fit(X, y)
    before, after = (roc_auc(y_test, each.decision_function(X_test)) for each in (plain, model))
    assert after > before + 0.02
    # What folds that had no part of a row say of it is no better than what is true.
    assert roc_auc(y, model.held_out_scores_) < after + 0.02
    assert roc_auc(y, model.held_out_scores_) > roc_auc(y, plain.held_out_scores_)
    left = set(vars(model)) - set(model.get_params())
    assert [name for name in left if not name.endswith("_")] == []
    seen.clear()
    kernel_search(metric="learned", map_per_fold=False, **given).fit(X, y)
    assert seen == []


def test_a_search_without_a_metric_tries_nothing():
    X, y = ring(300)
    model = kernel_search(2, random_state=0).fit(X, y)
    assert model.trials_ == []
    assert model.settings_["landmarks"] == "kmeans"
    tried = kernel_search(gamma="auto", landmarks="auto", standardize="auto", random_state=0)
    tried.fit(X, y)
    assert tried.trials_
    assert tried.metric_ is None
    np.testing.assert_allclose(tried.Cs_[2], tried.settings_["C"])


@pytest.mark.slow
def test_coverage_tells_which_class_the_landmarks_miss():
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(2000, 3)), 8.0 + rng.normal(size=(40, 3))]
    y = np.r_[np.zeros(2000, dtype=int), np.ones(40, dtype=int)]
    given = {
        "preset": "paper",
        "n_landmarks": 30,
        "gamma": 2.0,
        "standardize": False,
        "random_state": 0,
    }
    missed = KernelAUCClassifier(landmarks=X[:30], **given).fit(X, y).coverage_
    covered = KernelAUCClassifier(landmarks="class-kmeans", **given).fit(X, y).coverage_
    assert missed[1] < 0.01 < missed[0]
    assert covered[1] > 0.3
    every = KernelAUCClassifier(landmarks=X, **given).fit(X, y).coverage_
    np.testing.assert_allclose(every, 1.0, atol=1e-3)


@pytest.mark.parametrize("kernel", LANDMARK_KERNELS)
def test_a_landmark_is_wholly_covered(kernel):
    X = np.random.default_rng(0).normal(size=(60, 4))
    mapped = NystroemFeatures(landmarks=X[:10], kernel=kernel).fit(X)
    np.testing.assert_allclose(mapped.map.coverage(X[:10]), 1.0, atol=1e-4)
    assert (mapped.map.coverage(X) <= 1.0).all()
