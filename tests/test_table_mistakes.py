"""Mistakes in calls on tables are one sentence with a way out; and very large tables."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from aucmax import LinearAUCClassifier, load_model, save_model
from aucmax.cli.commands import info
from aucmax.report import write_report
from aucmax.tables import TableError, TableModel
from tests.searches import fit_table, plan_table, table_model

FAST = {"preset": "paper", "n_landmarks": 10, "Cs": [1.0]}


def table(n: int = 60) -> pl.DataFrame:
    x = np.random.default_rng(0).normal(size=n)
    return pl.DataFrame({"x": x, "y": np.where(x + np.arange(n) % 2 > 0.5, "yes", "no")})


@pytest.mark.parametrize("call", [fit_table, plan_table])
def test_rows_and_labels_apart_are_sent_to_the_estimator(call):
    X, y = table().select("x"), table()["y"]
    for labels in (y, pd.Series(y.to_list()), y.to_numpy(), None):
        with pytest.raises(TypeError, match=r"target must be the name of a column .*use TableModel"):
            call(X, labels)
    with pytest.raises(TypeError, match="weight must be the name of a column of the table; got a list"):
        call(table(), "y", weight=[1.0] * 60)


def test_a_path_is_sent_to_fit_table(tmp_path):
    with pytest.raises(TypeError, match=r"got the text '.*t\.csv'.* use fit_table\(path, target\)"):
        TableModel().fit(tmp_path / "t.csv", "y")


def test_a_file_that_is_not_there_is_named(tmp_path):
    (tmp_path / "people.csv").write_text("x,y\n1,2\n")
    with pytest.raises(FileNotFoundError, match=r"there is no file .*peple\.csv\. Did you mean"):
        fit_table(tmp_path / "peple.csv", "y")


def test_two_columns_of_one_name_are_refused():
    twice = table().lazy().select("x", pl.col("x"), "y")
    with pytest.raises(TableError, match="columns of one name"):
        fit_table(twice, "y")
    frame = pd.DataFrame({"x": table()["x"], "y": table()["y"]})
    with pytest.raises(TableError, match="more than one column named 'x'"):
        TableModel().fit(pd.concat([frame, frame[["x"]]], axis=1), frame["y"])


def test_a_report_of_another_model_asks_for_a_table_model(tmp_path):
    fitted = LinearAUCClassifier().fit(table().select("x").to_numpy(), table()["y"].to_numpy())
    with pytest.raises(TypeError, match=r"needs a fitted TableModel; got a LinearAUC.*fit_table"):
        write_report(fitted, None, tmp_path / "r.html")


# Large tables


def test_a_very_long_value_is_cut(tmp_path):
    long, longer = "x" * 1_000, "x" * 100_000
    words = ["a", "b", "c"] * 20
    words[7], words[8] = long, longer
    model = fit_table(table().with_columns(word=pl.Series(words)), "y", **FAST)
    (column,) = (column for column in model.columns_ if column["name"] == "word")
    assert column["levels"] == ["a", "b", "c"]
    assert column["pooled"] == [long]  # the two are one value
    assert len(column["treatment"]) < 250
    path = save_model(model, tmp_path / "m.aucmax")
    assert longer.encode() not in path.read_bytes()
    with pytest.raises(TableError, match=r"Column 'x' holds 'x{60}…' in row 3"):
        model.scores(pl.DataFrame({"x": ["1.5"] * 3 + [longer], "word": ["a"] * 4}))


def test_a_table_of_many_columns_is_kept_and_listed_in_short(tmp_path, capsys):
    rng = np.random.default_rng(0)
    wide = pl.DataFrame({f"c{i}": rng.normal(size=60) for i in range(250)})
    wide = wide.with_columns(
        c3=pl.Series([None] + [1.5, 2.0] * 29 + [0.5]), town=pl.Series(["a", "b"] * 30)
    )
    model = table_model(**FAST).fit(wide, table()["y"])
    path = save_model(model, tmp_path / "m.aucmax")
    state = model.table_features_.__getstate__()
    assert isinstance(state["columns_"], str)
    assert "preprocessor_" not in state
    loaded = load_model(path)
    assert loaded.columns_ == model.columns_
    assert loaded.feature_names_ == model.feature_names_
    np.testing.assert_array_equal(loaded.scores(wide), model.scores(wide))
    np.testing.assert_array_equal(
        loaded.preprocessor_.transform(wide.with_columns(pl.all().exclude("town").cast(pl.Float32))),
        model.preprocessor_.transform(wide.with_columns(pl.all().exclude("town").cast(pl.Float32))),
    )
    info(path)
    told = capsys.readouterr()
    assert "c199" in told.out
    assert "c201" not in told.out.split("column ")[-1]
    assert "51 more columns are not shown" in told.err
    info(path, as_json=True)
    assert len(json.loads(capsys.readouterr().out)["columns"]) == 251
