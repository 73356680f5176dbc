"""Models of whole tables."""

import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import NotFittedError
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import cross_val_score

from aucmax.metrics import roc_auc, roc_auc_interval
from aucmax.reading.read import file_hash
from aucmax.tables import TableError, TableModel, table_batches
from aucmax.tables.columns import normal_frame
from tests.searches import fit_table, table_model

FAST = {"preset": "paper", "n_landmarks": 40, "Cs": [0.1, 1.0, 10.0]}


def people(rows: int = 600, seed: int = 0) -> pl.DataFrame:
    """A small adult-like table: numbers, categories, holes, an id and a running number."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, rows)
    job = rng.choice(["clerk", "cook", "smith", "king"], rows, p=[0.4, 0.4, 0.19, 0.01])
    hours = rng.normal(40, 8, rows).round(1)
    odds = (age > 45).astype(float) + (job == "smith") + (hours > 45) + rng.normal(0, 0.4, rows)
    table = pl.DataFrame(
        {
            "id": [f"P{i:06d}" for i in rng.permutation(rows)],
            "": range(rows),
            "age": age,
            "job": job,
            "hours": hours,
            "married": rng.random(rows) < 0.5,
            "gain": [f"{value:,}" for value in rng.integers(0, 90_000, rows)],
            "rich": np.where(odds > 1.7, ">50K", "<=50K"),
        }
    )
    holes = pl.Series(rng.random(rows) < 0.1)
    return table.with_columns(
        pl.when(holes).then(None).otherwise(pl.col(name)).alias(name) for name in ("job", "hours")
    )


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    return people()


@pytest.fixture(scope="module")
def model(table) -> TableModel:
    return fit_table(table, "rich", **FAST)


def test_a_mixed_table_needs_no_option_but_its_target(model, table):
    assert model.classes_.tolist() == ["<=50K", ">50K"]
    kinds = {column["name"]: column["kind"] for column in model.columns_}
    assert kinds == {
        "id": "dropped",
        "": "dropped",
        "age": "number",
        "job": "category",
        "hours": "number",
        "married": "boolean",
        "gain": "number",
    }
    assert model.training_["auc"] > 0.9
    new = people(400, seed=1)
    found = roc_auc_interval(new["rich"] == ">50K", model.decision_function(new))
    assert found.low < model.training_["auc"] < found.high
    many = people(4000, seed=2)  # the best threshold for them has 0.82
    assert balanced_accuracy_score(many["rich"].to_numpy(), model.predict(many)) > 0.78


def test_what_was_learnt_hangs_together(model, table):
    rows = model.features(table)
    assert rows.shape == (600, len(model.feature_names_))
    np.testing.assert_array_equal(
        rows, model.preprocessor_.transform(normal_frame(table, model.columns_))
    )
    made = [name for column in model.columns_ for name in column["features"]]
    assert sorted(made) == sorted(model.feature_names_)
    held = model.held_out_
    assert held["positive"].tolist() == (table["rich"] == ">50K").to_list()
    found = roc_auc_interval(held["positive"], held["score"])
    said = model.training_
    assert (said["auc"], said["auc_low"], said["auc_high"]) == found[:3]
    assert (said["rows"], said["positives"], said["target"]) == (600, held["positive"].sum(), "rich")
    assert (said["positive"], said["negative"]) == (">50K", "<=50K")
    assert json.loads(json.dumps([model.columns_, said])) == [model.columns_, said]


def test_probabilities_rank_as_scores_and_decisions_follow_the_threshold(model, table):
    scores, up = model.scores(table), model.predict_proba(table)
    np.testing.assert_array_equal(
        np.argsort(scores, kind="stable"), np.argsort(up[:, 1], kind="stable")
    )
    np.testing.assert_allclose(up.sum(axis=1), 1.0)
    expected = np.where(scores >= model.threshold_.threshold, ">50K", "<=50K")
    np.testing.assert_array_equal(model.predict(table), expected)
    np.testing.assert_array_equal(model.probabilities(table), up[:, 1])


def test_files_pandas_and_polars_give_the_same_model(model, table, tmp_path):
    path = tmp_path / "people.csv"
    table.write_csv(path)
    by_file = fit_table(path, "rich", **FAST)
    frame = pd.DataFrame(table.to_dict(as_series=False))  # to_pandas would need pyarrow
    by_pandas = fit_table(frame, "rich", **FAST)
    scores = model.decision_function(table)
    np.testing.assert_array_equal(by_file.decision_function(table), scores)
    np.testing.assert_array_equal(by_pandas.decision_function(frame), scores)
    assert by_file.training_["data_hash"] == file_hash(path)
    assert by_pandas.training_["data_hash"] == model.training_["data_hash"]


def test_batches_of_a_file_score_as_the_whole_table(model, table, tmp_path):
    path = tmp_path / "people.csv"
    table.write_csv(path)
    schema = model.reading_schema
    parts = table_batches(path, rows=130, columns=list(schema), schema=schema)
    scores = np.concatenate([model.decision_function(part) for part in parts])
    np.testing.assert_allclose(scores, model.decision_function(table), rtol=0, atol=1e-5)


def test_a_file_with_blanks_around_its_values_is_the_same_table(model, table, tmp_path):
    path = tmp_path / "people.csv"
    text = table.drop("gain", "").write_csv()
    path.write_text(text.replace(",", ", ").replace(", ,", ", ?,"))
    spaced = fit_table(path, "rich", **FAST)
    plain = fit_table(table.drop("gain", ""), "rich", **FAST)
    assert spaced.feature_names_ == plain.feature_names_
    schema = spaced.reading_schema
    (part,) = table_batches(path, columns=list(schema), schema=schema)
    np.testing.assert_array_equal(spaced.decision_function(part), plain.decision_function(table))


def test_libsvm_files_are_tables_too(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)).round(2)
    y = np.where(X[:, 0] + X[:, 2] > 0.7, 1, -1)
    dump_svmlight_file(X, y, str(tmp_path / "train.libsvm"), zero_based=False)
    found = fit_table(tmp_path / "train.libsvm", "target", **FAST)
    assert found.classes_.tolist() == [-1, 1]
    assert [column["name"] for column in found.columns_] == ["f1", "f2", "f3"]
    (tmp_path / "new.libsvm").write_text("0 1:2.5\n0 2:1\n")
    (part,) = table_batches(tmp_path / "new.libsvm", columns=list(found.reading_schema))
    assert part.to_dict(as_series=False) == {"f1": [2.5, 0], "f2": [0, 1], "f3": [0, 0]}
    assert found.predict(part).tolist() == [1, -1]


def test_new_tables_may_have_other_columns_and_levels(model, table):
    new = table.select(
        pl.lit("pirate").alias("job"),
        "hours",
        "gain",
        "age",
        pl.lit(None).alias("married"),
        pl.lit(1).alias("z"),
    )
    assert np.isfinite(model.decision_function(new)).all()
    with pytest.raises(TableError, match=r"no column 'age', which the model was trained on"):
        model.predict(table.drop("age"))


def test_clone_params_and_pickle(model, table):
    again = clone(model)
    assert again.get_params()["estimator__estimator__n_landmarks"] == 40
    with pytest.raises(NotFittedError):
        again.predict(table)
    again.set_params(estimator__estimator__n_landmarks=30).fit(table.drop("rich"), table["rich"])
    assert again.model_.dual_coef_.shape[1] <= 30
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(table), model.predict_proba(table))


# --- the target


def numbers(rows: int = 90) -> pl.DataFrame:
    """Columns from which the place of a row modulo 3 can be told."""
    noise, place = np.random.default_rng(3).normal(0, 0.3, (2, rows)), np.arange(rows) % 3
    return pl.DataFrame({"x": noise[0] + (place == 0), "z": noise[1] + (place == 1)})


@pytest.mark.parametrize(
    ("labels", "asked", "negative", "positive"),
    [
        ([True, False, False], None, False, True),
        ([1, 0, 1], None, 0, 1),
        ([1.0, 0.0, 1.0], None, 0.0, 1.0),
        ([True, False, True], None, False, True),
        ([2, 1, 2], None, 2, 1),
        ([1.0, 2.0, 2.0], "2", 1.0, 2.0),
        (["a ", "b", "b"], None, "b", "a"),
        (["a", "b", "b"], "B", "a", "b"),
        ([True, False, False], "false", True, False),
        (pd.Series([1, 0, 0] * 30, dtype="Int64"), None, 0, 1),
        (pd.Categorical(["n", "y", "n"] * 30), None, "n", "y"),
    ],
)
def test_the_positive_label_is_1_or_true_and_otherwise_the_rarer_one(labels, asked, negative, positive):
    labels = labels * 30 if isinstance(labels, list) else labels
    found = table_model(positive=asked, **FAST).fit(numbers(), labels)
    classes = sorted([negative, positive])
    assert found.classes_.tolist() == classes
    assert (found.negative_label_, found.positive_label_) == (negative, positive)
    up, known = found.labels(labels)
    assert known.all()
    np.testing.assert_array_equal(up, found.held_out_["positive"])
    assert set(found.predict(numbers()).tolist()) <= set(classes)


@pytest.mark.parametrize(
    ("labels", "positive", "sentence"),
    [
        ([1] * 90, None, "The target 'y' is 1 in every row"),
        ([0, 1, 2] * 30, None, "has 3 different values"),
        ([None] * 90, None, "is missing in every row"),
        (["", "?", "NA"] * 30, None, "is missing in every row"),
        ([0, 1] * 45, "yes", "has no label 'yes' to be positive, only 0, 1"),
        (
            [0] * 88 + [1] * 2,
            None,
            "The label 1 has 2 rows .* 3 folds need at least 3; .* or use 2 folds",
        ),
    ],
)
def test_a_target_without_two_labels_is_refused(labels, positive, sentence):
    with pytest.raises(TableError, match=sentence):
        fit_table(numbers().with_columns(y=pl.Series(labels)), "y", positive=positive)


def test_rows_without_a_label_are_left_out_and_counted():
    x = numbers()
    y = pl.Series([1, 0, None] * 30)
    found = table_model(**FAST).fit(x, y)
    kept = table_model(**FAST).fit(x.filter(y.is_not_null()), y.drop_nulls())
    assert found.training_["rows_without_label"] == 30
    assert found.training_["rows"] == 60
    np.testing.assert_array_equal(found.decision_function(x), kept.decision_function(x))


def test_a_label_the_model_does_not_know_is_refused(model):
    up, known = model.labels(pl.Series("rich", [" >50K", None, "<=50K"]))
    assert up.tolist() == [True, False, False]
    assert known.tolist() == [True, False, True]
    with pytest.raises(
        TableError, match=r"'rich' is 'poor' in row 1 \(from 0\); the labels of the model"
    ):
        model.labels(pl.Series("rich", [">50K", "poor"]))


# --- options


def test_dropped_weight_and_group_columns_are_no_features(table):
    rng = np.random.default_rng(0)
    wide = table.with_columns(
        w=pl.Series(rng.integers(1, 4, 600)), household=pl.Series(rng.integers(0, 60, 600))
    )
    found = fit_table(wide, "rich", drop=["gain", "married"], weight="w", group="household", **FAST)
    assert {column["name"] for column in found.columns_} == {"id", "", "age", "job", "hours"}
    said = found.training_
    assert (said["weight"], said["group"]) == ("w", "household")
    assert said["auc"] > 0.85
    assert said["auc_low"] is None
    np.testing.assert_array_equal(found.held_out_["weight"], wide["w"].to_numpy())


def test_groups_are_held_out_together():
    """Labels go by group and the feature only tells groups apart: held out, it says nothing."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(60), 5)
    label = rng.integers(0, 2, 60)[group]
    table = pl.DataFrame({"x": rng.normal(size=60)[group], "label": label, "group": group.astype(str)})
    apart = fit_table(table, "label", group="group", gammas=[1000.0], **FAST).training_["auc"]
    mixed = fit_table(table, "label", drop=["group"], gammas=[1000.0], **FAST).training_["auc"]
    assert mixed > 0.8
    assert apart < 0.7


def test_cross_validation_and_metadata_routing_take_frames(table):
    wide = table.with_columns(household=pl.Series(np.arange(600) % 50))
    scores = cross_val_score(
        table_model(drop=["id"], **FAST), table.drop("rich"), table["rich"], scoring="roc_auc", cv=2
    )
    assert scores.min() > 0.85
    with sklearn.config_context(enable_metadata_routing=True):
        routed = fit_table(wide, "rich", group="household", **FAST)
    plain = fit_table(wide, "rich", group="household", **FAST)
    clock = {"date": 0, "seconds": 0, "search_seconds": 0}
    assert routed.training_ | clock == plain.training_ | clock


def test_a_row_of_weight_zero_is_absent(table):
    X, y = table.drop("rich"), table["rich"]
    weight = (np.arange(600) % 3 > 0).astype(float)
    found = table_model(**FAST).fit(X, y, sample_weight=weight)
    kept = table_model(**FAST).fit(X.filter(pl.Series(weight > 0)), y.filter(pl.Series(weight > 0)))
    np.testing.assert_array_equal(found.decision_function(X), kept.decision_function(X))


def test_aim_calibration_and_search_parameters_are_passed_on(table):
    found = fit_table(table, "rich", aim="recall=0.95", calibration="isotonic", cv=4, **FAST)
    assert found.threshold_.recall >= 0.95
    assert type(found.calibrator_).__name__ == "IsotonicCalibrator"
    assert found.model_.n_splits_ == 4
    assert found.model_.Cs_.tolist() == FAST["Cs"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ({"target": "richh"}, r"no column 'richh', which is named as the target\. Did you mean 'rich'"),
        ({"weight": "w"}, "no column 'w', which is named as the weight"),
        ({"drop": ["jobs"]}, "no column 'jobs', which drop names"),
        ({"drop": ["rich"]}, "cannot be both the target and dropped"),
        ({"drop": "job"}, "drop must be a list of column names"),
        ({"weight": "hours"}, r"The weight 'hours' is None in row \d+"),
        ({"calibration": "none"}, "calibration must be one of"),
        ({"aim": "win"}, "win"),
        ({"max_levels": 1}, "max_levels must be"),
        ({"rare_level": 0}, "rare_level must be"),
        ({"cv": 1}, "cv must be"),
    ],
)
def test_a_mistake_is_one_sentence(table, call, sentence):
    with pytest.raises(ValueError, match=sentence):
        fit_table(table, **{"target": "rich", **call})


def test_a_bad_value_is_named_by_its_row_in_the_whole_table():
    table = numbers().with_columns(
        x=pl.when(pl.int_range(90) == 80).then(float("inf")).otherwise("x"),
        y=pl.Series([1, 0, None] * 30),
    )
    with pytest.raises(TableError, match=r"Column 'x' holds inf in row 80 \(from 0\)"):
        fit_table(table.with_columns(y=pl.Series([None] * 3 + [1, 0, 0] * 29)), "y")
    assert fit_table(table, "y", **FAST).training_["rows"] == 60  # row 80 has no label


def test_y_and_groups_must_have_a_row_each(table):
    with pytest.raises(TableError, match="y must have one entry for each of the 600 rows"):
        TableModel().fit(table, [0, 1])
    with pytest.raises(TableError, match="groups must have one entry"):
        TableModel().fit(table.drop("rich"), table["rich"], groups=[1, 2])


@pytest.mark.slow
def test_by_default_what_is_best_is_found_out_without_flattery():
    rng = np.random.default_rng(0)
    columns = {f"noise {i}": rng.normal(size=1200) for i in range(8)}
    x, z = rng.normal(size=(2, 1200))
    frame = pl.DataFrame({"x": np.exp(2 * x), "z": z, **columns})
    rich = pl.Series("rich", x**2 + z**2 + 0.2 * rng.normal(size=1200) > 2.0)
    model = table_model(n_landmarks=300).fit(frame[:600], rich[:600])
    plain = table_model(n_landmarks=300, preset="paper").fit(frame[:600], rich[:600])
    truth = rich[600:].to_numpy()
    ours, before = (roc_auc(truth, each.decision_function(frame[600:])) for each in (model, plain))
    assert ours > before + 0.02
    assert abs(model.training_["auc"] - ours) < 0.03  # what it told of itself
    assert model.model_.trials_
