"""TableModel among scikit-learn's own tools, whichever label sorts first."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import RocCurveDisplay, get_scorer, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
)
from sklearn.utils.estimator_checks import parametrize_with_checks

from aucmax.persistence.model_file import load_model, read_manifest, save_model
from aucmax.persistence.onnx_export import to_onnx
from aucmax.tables import TableError, TableModel
from aucmax.tables.evaluation_rows import evaluation_rows
from tests.searches import fit_table, table_model

FAST = {"preset": "paper", "n_landmarks": 30, "Cs": [1.0]}

#: The rarer label and the other one; the rarer sorts first in some and last in the others.
LABELS = {
    "int, rare last": (1, 0),
    "int, rare first": (1, 2),
    "text, rare last": ("yes", "no"),
    "text, rare first": ("died", "lived"),
    "bool, rare last": (True, False),
    "float, rare first": (-1.0, 1.0),
}
labelled = pytest.mark.parametrize(("rare", "other"), LABELS.values(), ids=LABELS)


def rows(n: int = 150) -> tuple[pd.DataFrame, np.ndarray]:
    """Two columns that tell a quarter of the rows from the others quite well."""
    rng = np.random.default_rng(0)
    rare = np.arange(n) % 4 == 0
    shift = 1.2 * rare[:, None]
    return pd.DataFrame(rng.normal(size=(n, 2)) + shift, columns=["a", "b"]), rare


def named(rare: np.ndarray, first: object, second: object) -> np.ndarray:
    return np.array([second, first])[rare.astype(int)]


# Which class a number speaks of


@labelled
def test_every_output_follows_the_sorted_classes(rare, other):
    X, up = rows()
    y = named(up, rare, other)
    model = table_model(**FAST).fit(X, y)
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    assert model.positive_label_ == rare
    decision, probability = model.decision_function(X), model.predict_proba(X)
    last = y == model.classes_[1]
    assert roc_auc_score(last, decision) > 0.8
    assert roc_auc_score(last, probability[:, 1]) > 0.8
    np.testing.assert_array_equal(model.predict(X), model.classes_[(decision > 0).astype(int)])
    assert model.score(X, y) > 0.7
    scores = model.scores(X)
    assert roc_auc_score(up, scores) > 0.8
    np.testing.assert_array_equal(model.predict(X) == rare, scores >= model.threshold_.threshold)
    np.testing.assert_array_equal(
        model.probabilities(X), probability[:, int(model.classes_[1] == rare)]
    )


@labelled
def test_scikit_learns_scorers_and_wrappers_rank_the_right_way(rare, other):
    X, up = rows()
    y = named(up, rare, other)
    model = table_model(**FAST)
    assert cross_val_score(model, X, y, scoring="roc_auc", cv=2).min() > 0.75
    fitted = model.fit(X, y)
    assert get_scorer("roc_auc")(fitted, X, y) > 0.8
    assert get_scorer("neg_log_loss")(fitted, X, y) > -0.6
    probability = cross_val_predict(model, X, y, cv=2, method="predict_proba")
    assert roc_auc_score(y == fitted.classes_[1], probability[:, 1]) > 0.75


@pytest.mark.parametrize(("rare", "other"), [("yes", "no"), ("died", "lived")])
def test_ensembles_searches_and_calibration_take_it(rare, other):
    X, up = rows()
    y = named(up, rare, other)
    model = table_model(**FAST)
    voted = VotingClassifier([("a", model), ("b", LogisticRegression())], voting="soft").fit(X, y)
    assert voted.score(X, y) > 0.75
    found = GridSearchCV(model, {"estimator__Cs": [[1e-6], [1.0]]}, scoring="roc_auc", cv=2).fit(X, y)
    assert found.best_score_ > 0.75
    calibrated = CalibratedClassifierCV(model, ensemble=False, cv=2).fit(X, y)
    assert roc_auc_score(up, calibrated.predict_proba(X)[:, int(calibrated.classes_[1] == rare)]) > 0.8
    tuned = TunedThresholdClassifierCV(model, scoring="balanced_accuracy", cv=2).fit(X, y)
    assert tuned.score(X, y) > 0.7


@pytest.mark.parametrize(("rare", "other"), [(1, 0), (0, 1), (1, 2)])
def test_a_roc_curve_is_drawn_the_right_way_up(rare, other):
    X, up = rows()
    y = named(up, rare, other)
    drawn = RocCurveDisplay.from_estimator(table_model(**FAST).fit(X, y), X, y)
    assert drawn.roc_auc > 0.8


def test_cancer_with_the_rarer_label_0_is_ranked():
    X, y = load_breast_cancer(as_frame=True, return_X_y=True)
    model = table_model(preset="paper", n_landmarks=50)
    assert cross_val_score(model, X, y, scoring="roc_auc", cv=3).min() > 0.97


def test_the_positive_label_may_be_named_and_the_classes_stay_sorted():
    X, up = rows()
    y = named(up, "b", "a")
    model = table_model(positive="a", **FAST).fit(X, y)
    assert model.classes_.tolist() == ["a", "b"]
    assert model.positive_label_ == "a"
    assert roc_auc_score(~up, model.scores(X)) > 0.8
    assert cross_val_score(table_model(positive="a", **FAST), X, y, scoring="roc_auc").min() > 0.7


# Scikit-learn's own checks

EXPECTED_FAILURES = {
    "check_classifiers_train": (
        "predict cuts at threshold_, which is chosen for the aim, and not at a probability of 0.5"
    ),
    "check_sample_weight_equivalence_on_dense_data": (
        "the calibrator counts effective rows, so a weight of 2 is no second row to it"
    ),
}
contract = pytest.mark.filterwarnings("ignore:These scores rank worse than chance")  # labels by chance


@contract
@parametrize_with_checks(
    [table_model(preset="paper", Cs=[1.0])], expected_failed_checks=lambda _: EXPECTED_FAILURES
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@contract
@pytest.mark.slow
@parametrize_with_checks([TableModel()], expected_failed_checks=lambda _: EXPECTED_FAILURES)
def test_scikit_learn_contract_of_the_default(estimator, check):
    check(estimator)


# Arrays, lists and frames


def test_arrays_and_lists_are_taken_by_position():
    X, up = rows()
    frame = table_model(**FAST).fit(X, up)
    array = table_model(**FAST).fit(X.to_numpy(), up)
    assert [column["name"] for column in array.columns_] == ["x0", "x1"]
    assert not hasattr(array, "feature_names_in_")
    np.testing.assert_array_equal(array.scores(X.to_numpy().tolist()), frame.scores(X))
    assert (frame.n_features_in_, array.n_features_in_) == (2, 2)
    assert frame.feature_names_in_.tolist() == ["a", "b"]
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        np.testing.assert_array_equal(frame.scores(X.to_numpy()), frame.scores(X))
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        np.testing.assert_array_equal(array.scores(X), frame.scores(X))
    named = pl.DataFrame({"x1": X["b"].to_numpy(), "x0": X["a"].to_numpy(), "more": up})
    np.testing.assert_array_equal(array.scores(named), frame.scores(X))
    with pytest.raises(ValueError, match="X has 3 features, but TableModel is expecting 2 features"):
        array.predict(np.zeros((4, 3)))


def test_an_array_of_text_and_numbers_is_a_table():
    X, up = rows()
    town = np.where(up, "Bath", "Hull")
    mixed = np.column_stack([X["a"].astype(object), np.where(np.arange(150) % 9 == 0, None, town)])
    model = table_model(**FAST).fit(mixed, up)
    assert [column["kind"] for column in model.columns_] == ["number", "category"]
    assert roc_auc_score(up, model.scores(mixed)) > 0.9


def test_splits_that_name_rows_mean_rows_of_the_whole_table():
    X, up = rows()
    y = np.where(np.arange(150) % 10 == 1, None, np.where(up, "yes", "no"))
    fold = np.arange(150) % 3
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]
    whole = table_model(cv=splits, **FAST).fit(X, y)
    known = y != None  # noqa: E711
    place = np.cumsum(known) - 1
    kept = [tuple(place[part[known[part]]] for part in split) for split in splits]
    same = table_model(cv=kept, **FAST).fit(X[known], y[known])
    np.testing.assert_array_equal(whole.held_out_["score"], same.held_out_["score"])


def test_a_class_without_weight_is_named():
    X, up = rows()
    with pytest.raises(TableError, match="No row of True has a weight above 0: one class is left"):
        table_model(**FAST).fit(X, up, sample_weight=(~up).astype(float))


# Where scores go: tables, reports and files speak of the positive label


def test_scored_rows_and_files_speak_of_the_positive_label(tmp_path):
    X, up = rows()
    table = pl.DataFrame({"a": X["a"].to_numpy(), "b": X["b"].to_numpy()})
    table = table.with_columns(state=pl.Series(named(up, "died", "lived")))
    model = fit_table(table, "state", **FAST)
    assert model.classes_.tolist() == ["died", "lived"]
    other = table.with_columns(pl.col("a") + 0.01)  # not the training table, which has held-out scores
    scored = evaluation_rows(model, other)
    np.testing.assert_array_equal(scored.positive, up)
    np.testing.assert_array_equal(scored.score, model.scores(other))
    np.testing.assert_array_equal(scored.probability, model.probabilities(other))
    assert roc_auc_score(scored.positive, scored.score) > 0.8
    path = save_model(model, tmp_path / "m.aucmax")
    manifest = read_manifest(path)
    assert manifest["classes"] == ["died", "lived"]
    assert manifest["training"]["positive"] == "died"
    for copy in (load_model(path), pickle.loads(pickle.dumps(model))):
        assert copy.positive_label_ == "died"
        np.testing.assert_array_equal(copy.predict(table), model.predict(table))


def test_a_pickle_of_version_0_1_is_converted():
    X, up = rows()
    model = table_model(**FAST).fit(X, named(up, "died", "lived"))
    state = {**vars(model), "classes_": np.array(["lived", "died"])}
    state |= {"columns_": model.columns_, "preprocessor_": model.preprocessor_}
    state |= {"feature_names_": model.feature_names_}
    for name in ("table_features_", "other_labels_"):
        del state[name]
    for name in ("positive_label_", "n_features_in_", "feature_names_in_"):
        del state[name]
    old = TableModel.__new__(TableModel)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        old.__setstate__(state)
    assert old.classes_.tolist() == ["died", "lived"]
    assert old.positive_label_ == "died"
    np.testing.assert_array_equal(old.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(old.predict(X), model.predict(X))


def test_a_graph_is_compared_on_tables_with_columns_that_the_model_does_not_use():
    pytest.importorskip("onnxruntime")
    X, up = rows()
    wide = X.assign(constant=1, more=0.5)
    model = table_model(**FAST).fit(wide.drop(columns="more"), up)
    assert model.n_features_in_ == 3
    for given in (None, wide, wide[["b", "a"]]):
        graph = to_onnx(model, X=given)
        assert [each.name for each in graph.graph.input] == ["a", "b"]
