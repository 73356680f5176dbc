"""Tables that differ from the training table, and rows that are in both."""

import json
import warnings
import zipfile

import numpy as np
import polars as pl
import pytest

from aucmax import KernelAUCClassifier, fit_table, load_model, predict_table, save_model
from aucmax.reading.frames import TableError
from aucmax.tables import drift, row_hashes
from aucmax.tables.row_hashes import share_in_sketch, share_of_training_rows, sketch_rows
from tests.models import make
from tests.test_table_commands import check_schema, people, run

QUICK = KernelAUCClassifier(preset="paper", n_landmarks=20)


@pytest.fixture(scope="module")
def model():
    return fit_table(people(), "left", estimator=QUICK)


@pytest.fixture(scope="module")
def place(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("drift")
    save_model(model, folder / "m.aucmax")
    people(400, seed=1).write_csv(folder / "same.csv")
    older = people(400, seed=1).with_columns(pl.col("age") + 500, pl.lit("silver").alias("plan"))
    older.write_csv(folder / "older.csv")
    people().head(300).write_csv(folder / "seen.csv")
    return folder


def test_a_table_like_the_training_table_has_no_drift(model):
    for seed in range(1, 6):
        assert model.drift(people(400, seed=seed)) == []
    assert model.drift(people(3, seed=9)) == []


def test_drift_is_said_with_the_numbers_of_both_tables(model):
    table = people(400, seed=1).with_columns(
        pl.col("age") + 500,
        pl.lit("gold").alias("plan"),
        pl.lit(None, pl.Float64).alias("years"),
        pl.lit(True).alias("member"),
    )
    found = {each.column: each.sentence for each in model.drift(table)}
    median = people()["age"].median()
    assert f"its median is {table['age'].median():g} here and {median:g} in training" in found["age"]
    assert "'gold' is in 100% of the rows here, and in 7%" in found["plan"]
    assert "no value in 100% of the rows here, and in 0%" in found["years"]
    assert "is true in 100% of the rows here, and in 4" in found["member"]


def test_a_wider_spread_is_drift_though_the_median_is_the_same():
    rng = np.random.default_rng(0)
    x = np.r_[rng.integers(-3, 4, 601)].astype(float)
    table = pl.DataFrame({"x": x, "z": rng.normal(size=601), "y": x + rng.normal(size=601) > 1})
    fitted = fit_table(table, "y", estimator=QUICK)
    wide = table.with_columns(pl.col("x") * 10)
    (found,) = fitted.drift(wide)
    assert "distributed differently" in found.sentence


def test_rows_of_all_batches_are_compared(model, tmp_path, monkeypatch):
    monkeypatch.setattr(drift, "SAMPLE_ROWS", 200)
    table = pl.concat([people(300, seed=1), people(300, seed=2).with_columns(pl.col("age") + 500)])
    table.write_csv(tmp_path / "t.csv")
    done = predict_table(model, tmp_path / "t.csv", tmp_path / "s.csv", batch_rows=70)
    assert [each.column for each in done.drift] == ["age"]


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_the_sample_is_evenly_spaced_however_rows_come(size, monkeypatch):
    monkeypatch.setattr(drift, "SAMPLE_ROWS", 100)
    rows, sample = pl.DataFrame({"i": range(1000)}), drift.RowSample()
    for part in rows.iter_slices(size):
        sample.add(part)
    assert sample.frame["i"].to_list() == list(range(0, 1000, 16))


def test_what_drift_needs_is_small_and_kept_in_the_file(model, place):
    loaded = load_model(place / "m.aucmax")
    assert loaded.reference_ == model.reference_
    np.testing.assert_array_equal(loaded.row_hashes_, model.row_hashes_)
    assert len(json.dumps(model.reference_)) < 2000


def test_earlier_models_say_nothing_of_drift():
    for path in [*make.FOLDER.glob("table-0.1.0.aucmax"), *make.FOLDER.glob("table-format-2.aucmax")]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of another scikit-learn, as it will come to be
            old = load_model(path)
        rows = make.rows(json.loads(path.with_suffix(".json").read_text())["rows"])
        assert not hasattr(old, "reference_")
        assert old.drift(rows) == []
        assert share_of_training_rows(old, rows) is None


def test_training_rows_are_recognised_in_other_tables(model):
    assert share_of_training_rows(model, people()) == 1.0
    assert share_of_training_rows(model, people(400, seed=1)) < 0.01  # two are equal by chance
    half = pl.concat([people().head(200), people(200, seed=1)])
    assert share_of_training_rows(model, half) == pytest.approx(0.5, abs=0.01)


def test_a_sketch_of_many_rows_estimates_the_share(monkeypatch):
    monkeypatch.setattr(row_hashes, "KEPT", 500)
    rng = np.random.default_rng(0)
    columns = [{"name": "a", "kind": "number"}, {"name": "b", "kind": "category"}]

    def rows(count):
        levels = rng.choice(["x", "y"], count)
        return pl.DataFrame({"a": rng.normal(size=count).astype(np.float32), "b": levels})

    training, other = rows(20_000), rows(20_000)
    sketch = sketch_rows(training, columns)
    assert sketch.size == 500
    mixed = pl.concat([training[:5000], other[:15_000]])
    share = share_in_sketch(row_hashes.hash_rows(mixed, columns), sketch, 20_000)
    assert share == pytest.approx(0.25, abs=0.06)
    coarse = pl.DataFrame({"a": pl.Series([1.0, 2.0] * 50, dtype=pl.Float32), "b": ["x"] * 100})
    assert sketch_rows(coarse, columns).size == 0  # equal rows mean nothing there


def test_evaluate_names_drift_and_shared_rows(place, capsys):
    code, told = run(place, "evaluate m.aucmax older.csv --json")
    found = check_schema("evaluate", told)
    assert code == 0
    assert [each["column"] for each in found["drift"]] == ["age", "plan"]
    assert found["rows_in_training"] == 0.0  # no training row is so old
    assert "higher: its median is" in capsys.readouterr().err.replace("\n", " ")
    code, told = run(place, "evaluate m.aucmax seen.csv --json")
    assert check_schema("evaluate", told)["rows_in_training"] == 1.0
    assert "About 100% of the rows are in the training table too" in capsys.readouterr().err
    assert run(place, "evaluate m.aucmax older.csv --fail-on-drift")[0] == 3
    assert run(place, "evaluate m.aucmax same.csv --fail-on-drift")[0] == 0


def test_compare_names_shared_rows(place, capsys):
    code, told = run(place, "compare m.aucmax m.aucmax seen.csv --json")
    assert code == 0
    assert check_schema("compare", told)["rows_in_training"] == 1.0


def test_predict_can_fail_on_drift_and_still_writes_the_scores(place, capsys):
    code, told = run(place, "predict m.aucmax older.csv -o older-scores.csv --json --fail-on-drift")
    assert code == 3
    found = check_schema("predict", told)
    assert [each["column"] for each in found["drift"]] == ["age", "plan"]
    assert "'plan': 400 of 400 rows have a value" in found["unseen_values"][0]
    assert pl.read_csv(place / "older-scores.csv").height == 400
    assert run(place, "predict m.aucmax same.csv -o same-scores.csv --fail-on-drift")[0] == 0


def test_all_missing_columns_are_named_at_once(model, place, capsys):
    with pytest.raises(TableError, match="no columns 'age', 'plan', which the model was trained on"):
        model.scores(people(5).drop("age", "plan"))
    people(5).drop("age", "plan").write_csv(place / "less.csv")
    assert run(place, "predict m.aucmax less.csv -o l.csv")[0] == 2
    assert "no columns 'age', 'plan'" in capsys.readouterr().err


def test_a_model_file_leaves_out_what_can_be_computed_again(model, place):
    with zipfile.ZipFile(place / "m.aucmax") as file:
        assert len(file.read("model.skops")) < 300_000
    loaded = load_model(place / "m.aucmax")
    features = loaded.model_.feature_map_
    assert not hasattr(features, "projections_")
    np.testing.assert_array_equal(loaded.scores(people(50)), model.scores(people(50)))
    assert not hasattr(features, "projections_")  # scores do not need them
    kept = model.model_.feature_map_
    np.testing.assert_allclose(
        features.transform(kept.landmarks_), kept.transform(kept.landmarks_), atol=1e-6
    )
    assert hasattr(kept, "projections_")  # the saved model itself is unchanged
