"""Blends: several machines in one fit, and the weights of their scores."""

from __future__ import annotations

import pickle

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification

from aucmax import (
    KernelAUCClassifier,
    KernelAUCClassifierCV,
    LinearAUCClassifier,
    explain,
    load_model,
    save_model,
    to_onnx,
)
from aucmax.cli import main
from aucmax.fitting import kernel_fit
from aucmax.fitting.context import Context
from aucmax.fitting.machines import Blend
from aucmax.metrics import roc_auc
from aucmax.rows.interface import as_rows
from aucmax.runtime.deadline import Deadline
from aucmax.tuning import blend
from aucmax.tuning.blend import blend_weights
from aucmax.tuning.trial_rows import Sample


def table(n=260, classes=2, seed=1):
    X, y = make_classification(
        n, 6, n_informative=4, n_redundant=0, n_classes=classes, flip_y=0.1, random_state=seed
    )
    return np.exp(X / 2), y


def sample_of(y, folds=2, weight=None):
    """Return a sample of labels alone, with these rows held out in turn."""
    codes, numbers = np.asarray(y), np.arange(len(y))
    splits = [(numbers[numbers % folds != k], numbers[numbers % folds == k]) for k in range(folds)]
    weight = np.ones(len(codes)) if weight is None else weight
    count = codes.max() + 1
    positives = [codes == c for c in ([1] if count == 2 else range(count))]
    return Sample({}, codes, weight, positives, splits)


def held_by(scores, sample):
    scores = scores if scores.ndim > 1 else scores[:, None]
    return [scores[test] for _, test in sample.folds]


@pytest.fixture
def two():
    """Scores that err on different rows, with their sample."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    return sample_of(y), [y + rng.normal(size=400), 10.0 * (y + rng.normal(size=400))]


def mean_auc(scores, sample):
    parts = [roc_auc(sample.codes[test], scores[test]) for _, test in sample.folds]
    return np.mean(parts)


def test_weights_rank_better_than_each_part(two):
    sample, scores = two
    weights, auc = blend_weights([held_by(each, sample) for each in scores], sample)
    assert weights.sum() == pytest.approx(1.0)
    assert (weights > 0).all()
    assert weights[0] == pytest.approx(10.0 * weights[1], rel=0.3)  # as their scales ask for
    assert auc == pytest.approx(mean_auc(scores[0] * weights[0] + scores[1] * weights[1], sample))
    assert auc > max(mean_auc(each, sample) for each in scores) + 0.02


def test_one_machine_has_all_the_weight(two):
    sample, scores = two
    weights, auc = blend_weights([held_by(scores[0], sample)], sample)
    assert weights.tolist() == [1.0]
    assert auc == pytest.approx(mean_auc(scores[0], sample))


@pytest.mark.parametrize("useless", ["noise", "constant", "reversed"])
def test_a_useless_machine_has_no_weight(two, useless):
    sample, scores = two
    other = {
        "noise": np.random.default_rng(1).normal(size=400) * 1e-3,
        "constant": np.ones(400),
        "reversed": -scores[0],
    }[useless]
    weights, auc = blend_weights([held_by(each, sample) for each in (other, scores[0])], sample)
    assert auc >= mean_auc(scores[0], sample)
    assert weights[1] > 0.0
    if useless != "noise":  # which may rank a few rows better by chance
        assert weights[0] == 0.0


def test_constant_scores_leave_the_first_machine():
    sample = sample_of([0, 1] * 20)
    held = [held_by(np.ones(40), sample)] * 2
    assert blend_weights(held, sample)[0].tolist() == [1.0, 0.0]


def test_weights_minimise_the_linear_classifiers_loss(two):
    sample, scores = two
    X, y = np.column_stack([scores[0], scores[1] / 10]), sample.codes
    whole = [np.arange(len(y))]
    found = blend._minimum([X[:, None, :]], whole, sample)
    oracle = LinearAUCClassifier(C=1.0, standardize=False, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(found, oracle.coef_.ravel(), rtol=1e-3)


def test_weights_stay_above_zero():
    rng = np.random.default_rng(3)
    y = rng.integers(2, size=300)
    good, sample = y + rng.normal(size=300), sample_of(y)
    X = np.column_stack([good, good - 0.5 * y + rng.normal(size=300), -good])
    found = blend._minimum([X[:, None, :]], [np.arange(300)], sample)
    assert (found >= 0).all()
    assert found[2] == 0


def test_weights_of_several_classes_and_of_weighted_rows():
    rng = np.random.default_rng(4)
    y = rng.integers(3, size=300)
    weight = rng.integers(0, 3, size=300).astype(float)
    sample = sample_of(y, weight=weight)
    truth = np.eye(3)[y]
    parts = [held_by(truth + rng.normal(size=truth.shape), sample) for _ in range(3)]
    weights, auc = blend_weights(parts, sample)
    assert (weights > 0).all()
    assert auc > max(blend_weights([each], sample)[1] for each in parts)


@pytest.fixture(scope="module")
def fitted():
    X, y = table()
    model = KernelAUCClassifier(effort=3, n_landmarks=60, random_state=0).fit(X, y)
    assert model.parts_, "the table is chosen so that a blend is kept"
    return model, X, y


def test_scores_are_the_weighted_sum_of_the_machines(fitted):
    model, X, _ = fitted
    machines = [model.machine_.machines[0], *(part.machine_ for part in model.parts_)]
    assert isinstance(model.machine_, Blend)
    assert len(machines) == model.weights_.size
    expected = sum(
        weight * machine.scores(as_rows(X)).astype(float)
        for weight, machine in zip(model.weights_, machines, strict=True)
    )
    np.testing.assert_allclose(
        model.decision_function(X), expected[:, 0] + model.intercept_[0], rtol=1e-12
    )
    for part in model.parts_:
        assert part.decision_function(X).shape == (len(X),)
        assert set(part.predict(X)) <= set(model.classes_)


def test_the_blend_is_no_worse_than_its_parts_on_held_out_rows(fitted):
    model, *_ = fitted
    *before, last = model.trials_
    assert last["what"] == f"a blend of {len(model.weights_)} machines"
    assert last["kept"]
    kept = [trial["auc"] for trial in before if trial["kept"]]
    assert last["auc"] >= max(kept)


def test_machines_differ_in_what_was_left_open(fitted):
    model, *_ = fitted
    own = [model, *model.parts_]
    kinds = {
        (each.settings_["standardize"], each.settings_["kernel"], each.metric_ is None) for each in own
    }
    assert len(kinds) == len(own)


def test_nothing_to_blend_where_nothing_is_open():
    X, y = table()
    given = {"standardize": True, "kernel": "rbf", "metric": None}
    model = KernelAUCClassifier(effort=4, n_landmarks=40, random_state=0, **given).fit(X, y)
    assert model.parts_ == []
    assert model.weights_.tolist() == [1.0]


def test_an_effort_of_one_fits_one_machine():
    X, y = table()
    model = KernelAUCClassifier(n_landmarks=40, random_state=0).fit(X, y)
    assert model.parts_ == []
    assert not any("blend" in trial["what"] for trial in model.trials_)


def test_a_model_of_before_blends_scores(fitted):
    model, X, _ = fitted
    old = pickle.loads(pickle.dumps(model))
    del old.parts_, old.weights_
    assert old.decision_function(X).shape == (len(X),)


def test_a_clone_fits_the_same_blend(fitted):
    model, X, y = fitted
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_a_model_file_has_all_machines(fitted, tmp_path):
    model, X, _ = fitted
    loaded = load_model(save_model(model, tmp_path / "blend.aucmax"))
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


def test_a_graph_has_all_machines(fitted, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    model, X, _ = fitted
    path = tmp_path / "blend.onnx"
    to_onnx(model, path)  # compares scores
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (found,) = session.run(["score"], {"X": X.astype(np.float32)})
    scale = np.abs(model.decision_function(X)).max()
    np.testing.assert_allclose(found, model.decision_function(X), atol=1e-4 * scale)


def test_contributions_add_up(fitted):
    model, X, _ = fitted
    found = explain(model, X[:20])
    moved = found.scores - found.reference_score
    np.testing.assert_allclose(found.contributions.sum(axis=1), moved, atol=1e-8)


def test_importances_are_shares(fitted):
    from aucmax.inspection.importance import mean_squared_gradient

    model, X, _ = fitted
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert mean_squared_gradient(model, X).share.sum() == pytest.approx(1.0)


def test_several_classes():
    X, y = table(360, classes=3)
    model = KernelAUCClassifier(effort=2, n_landmarks=40, random_state=0).fit(X, y)
    assert model.decision_function(X).shape == (360, 3)
    assert model.intercept_.shape == (3,)
    search = KernelAUCClassifierCV(clone(model)).fit(X, y)
    assert search.held_out_scores_.shape == (360, 3)


def test_a_search_blends_held_out_scores(fitted):
    model, X, y = fitted
    search = KernelAUCClassifierCV(clone(model)).fit(X, y)
    np.testing.assert_array_equal(search.weights_, model.weights_)
    assert len(search.parts_) == len(model.parts_)
    held = search.held_out_scores_
    assert held.shape == (len(X),)
    assert np.isfinite(held).all()
    assert 0.7 < roc_auc(y, held) < roc_auc(y, search.decision_function(X))
    # On the scale of scores: shifted with the threshold.
    assert abs(held.mean() - search.decision_function(X).mean()) < 0.3 * held.std()


def test_an_interrupted_blend_goes_on(fitted, tmp_path, monkeypatch):
    model, X, y = fitted
    path = tmp_path / "blend.checkpoint"
    fit, begun = kernel_fit.fit_kernel, []

    def interrupted(*arguments):
        begun.append(arguments)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return fit(*arguments)

    monkeypatch.setattr(kernel_fit, "fit_kernel", interrupted)
    with pytest.raises(KeyboardInterrupt):
        clone(model).set_params(checkpoint=path).fit(X, y)
    assert path.exists()
    monkeypatch.setattr(kernel_fit, "fit_kernel", fit)
    resumed = clone(model).set_params(checkpoint=path).fit(X, y)
    np.testing.assert_array_equal(resumed.decision_function(X), model.decision_function(X))
    assert not path.exists()


def test_time_that_is_over_leaves_machines_out(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("aucmax.runtime.deadline.time.monotonic", lambda: clock[0])
    context, fits = Context(deadline=Deadline(10.0)), []

    def fit(problem, recipe, own):
        fits.append(recipe)
        clock[0] += 6.0
        return recipe

    monkeypatch.setattr(kernel_fit, "fit_kernel", fit)
    assert kernel_fit.fit_machines(None, ["a", "b", "c"], context) == ["a", "b"] == fits


def test_a_machine_without_a_first_step_is_left_out(monkeypatch):
    def fit(problem, recipe, own):
        if recipe == "b":
            raise TimeoutError
        return recipe

    monkeypatch.setattr(kernel_fit, "fit_kernel", fit)
    assert kernel_fit.fit_machines(None, ["a", "b"], Context()) == ["a"]


def test_parts_of_a_checkpoint_do_not_meet(tmp_path):
    from aucmax.fitting.checkpoint import Checkpoint

    path = tmp_path / "fit.checkpoint"
    whole = Checkpoint(path, {"C": "1"})
    part = whole.part("machine 2")
    whole.note("steps", 1)
    part.note("steps", 2)
    assert part.once("seed", lambda: 7) == 7
    assert part.on
    whole.write()
    again = Checkpoint(path, {"C": "1"})
    assert (again.recall("steps"), again.part("machine 2").recall("steps")) == (1, 2)
    assert again.part("machine 2").once("seed", lambda: 8) == 7
    assert again.part("machine 3").recall("steps") is None


def test_the_plan_counts_machines():
    X, _ = table()
    plan = KernelAUCClassifier(effort=4).plan(X)
    assert plan.machines == 4
    assert "Up to 4 machines are fitted and blended." in str(plan)
    assert KernelAUCClassifier(effort=4, preset="paper").plan(X).machines == 1


def test_train_says_how_many_machines_there_are(tmp_path, capsys, monkeypatch):
    X, y = table(seed=3)
    names = [f"c{i}" for i in range(X.shape[1])]
    frame = pl.DataFrame(X, schema=names).with_columns(pl.Series("label", y))
    frame.write_csv(tmp_path / "table.csv")
    model = tmp_path / "table.aucmax"
    options = ["--effort", "3", "--landmarks", "60", "-o", str(model)]
    command = ["aucmax", "train", str(tmp_path / "table.csv"), "--target", "label", *options]
    monkeypatch.setattr("sys.argv", command)
    main()
    out = capsys.readouterr().out
    loaded = load_model(model)
    assert loaded.model_.parts_, "the table is chosen so that a blend is kept"
    assert "machines blended" in out
    found = loaded.explain(frame.head(5))
    moved = found.scores - found.reference_score
    np.testing.assert_allclose(found.contributions.sum(axis=1), moved, atol=1e-4)  # float32
