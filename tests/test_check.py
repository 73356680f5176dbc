"""A table is checked before training: all problems at once, and warnings that name the remedy."""

import numpy as np
import polars as pl
import pytest

from aucmax import KernelAUCClassifier, check_table, fit_table
from aucmax.metrics import roc_auc
from aucmax.reading.frames import TableError
from aucmax.tables import data_warnings
from aucmax.tables.data_warnings import auc_interval, is_time
from tests.test_table_commands import check_schema, people, run

INFINITE = pl.Series([1.0, 2.5] * 149 + [float("inf"), 3.0])


def kinds(found):
    return [(each.kind, each.column) for each in found.warnings]


def test_every_problem_is_named_at_once_with_its_remedy():
    table = people(200).with_columns(
        pl.Series("odd parts", [[1]] * 200),
        pl.Series("list", [[1, 2]] * 200),
        pl.Series("huge", [1.0] * 199 + [float("inf")]),
    )
    found = check_table(table, "left")
    assert {(each.column, each.option) for each in found.problems} == {
        ("odd parts", "--drop 'odd parts'"),
        ("list", "--drop list"),
        ("huge", "--drop huge"),
    }
    assert "row 199" in next(each.sentence for each in found.problems if each.column == "huge")
    assert found.seconds is None
    with pytest.raises(TableError, match="3 problems"):
        found.refuse_problems()
    assert check_table(table, "left", drop=["odd parts", "list", "huge"]).problems == []


def test_wrong_names_are_problems_too_and_columns_are_still_described():
    found = check_table(people(100), "lfet", drop=["agee"], weight="yeers")
    sentences = " ".join(each.sentence for each in found.problems)
    for near in ("'left'", "'age'", "'years'"):
        assert f"Did you mean {near}?" in sentences
    assert [column["name"] for column in found.columns] == people(1).columns


def test_all_wrong_options_are_named_at_once_as_they_should_be():
    said = {"drop": ["agee"], "category": ["planx", "age"], "number": ["age"], "date": ["yers"]}
    found = check_table(people(100), "left", **said, weight="left", group="custmer", time="tme")
    assert {(each.kind, each.column, each.option) for each in found.problems} == {
        ("columns", "agee", "--drop age"),
        ("columns", "planx", "--category plan"),
        ("columns", "yers", "--date years"),
        ("columns", "age", None),
        ("columns", "left", None),
        ("group", "custmer", "--group customer"),
        ("time", "tme", found.problems[1].option),
    }
    sentences = " ".join(each.sentence for each in found.problems)
    assert "cannot be both the target and the weight" in sentences
    with pytest.raises(TableError, match="cannot be both the target and the time"):
        fit_table(people(100), "left", time="left")


def test_a_target_with_three_labels_suggests_one_to_rank_high():
    table = people(300)
    found = check_table(table, "plan")
    rarest = table["plan"].drop_nulls().value_counts(sort=True)["plan"][-1]
    assert [each.option for each in found.problems] == [f"--positive {rarest}"]
    assert [each.option for each in check_table(table, "left", positive="yess").problems] == [
        "--positive yes"
    ]


def test_an_identifier_that_repeats_suggests_a_group():
    table = people(300).with_columns(pl.Series("house", [row // 3 for row in range(300)]))
    found = check_table(table, "left", id=["house"], estimate=False)
    assert [(each.kind, each.option) for each in found.warnings] == [
        ("repeated identifier", "--group house")
    ]
    assert "its 300 values are only 100 different ones" in found.warnings[0].sentence
    assert kinds(check_table(table, "left", id=["house"], group="house", estimate=False)) == []
    assert kinds(check_table(table, "left", id=["customer"], estimate=False)) == []


def test_columns_are_described_with_levels_missing_values_and_an_example():
    found = check_table(people(300), "left")
    by_name = {column["name"]: column for column in found.columns}
    assert by_name["plan"]["levels"] == 3
    assert by_name["age"]["missing"] == people(300)["age"].null_count()
    assert by_name["customer"]["kind"] == "dropped"
    assert by_name["customer"]["example"] == "c0-00000"
    assert (found.rows, found.positive, found.why_positive) == (300, "yes", "the rarer label")
    assert found.seconds > 0
    assert (
        check_table(people(300), "left", positive="no", estimate=False).why_positive == "as requested"
    )


def test_rows_without_label_are_counted_and_do_not_hide_a_row_number():
    table = people(100).with_columns(
        pl.Series("left", [None] * 5 + people(100)["left"].to_list()[5:]),
        pl.Series("huge", [1.0, 2.0] * 49 + [float("inf"), 1.0]),
    )
    found = check_table(table, "left")
    assert (found.rows, found.rows_without_label) == (95, 5)
    assert "row 98" in found.problems[0].sentence


def test_a_column_that_holds_the_answer_is_named():
    table = people(600)
    up = (table["left"] == "yes").to_numpy()
    rng = np.random.default_rng(0)
    table = table.with_columns(
        pl.Series("closed on day", np.where(up, rng.normal(9, 1, 600), rng.normal(0, 1, 600))),
        pl.Series("copy", np.where(up, "b", "a")),
        pl.Series("filled", [1.0 + i if u else None for i, u in enumerate(up)]),
    )
    found = check_table(table, "left", estimate=False)
    assert kinds(found) == [
        ("leakage", "closed on day"),
        ("copy of the target", "copy"),
        ("leakage", "filled"),
    ]
    assert found.warnings[0].option == "--drop 'closed on day'"
    assert kinds(check_table(people(600), "left", estimate=False)) == []


def test_the_auc_of_a_column_is_that_of_a_sample_of_each_class(monkeypatch):
    rng = np.random.default_rng(0)
    up = rng.random(5000) < 0.1
    values = up + rng.normal(size=5000)
    assert data_warnings._auc(values, up) == pytest.approx(roc_auc(up, values))
    ties = values.round()
    assert data_warnings._auc(ties, up) == pytest.approx(roc_auc(up, ties))
    monkeypatch.setattr(data_warnings, "SAMPLE_ROWS", 300)
    rows = data_warnings.sample_of_classes(up)
    assert rows.size <= 600
    assert up[rows].sum() >= 200
    table = pl.DataFrame({"x": 20.0 * up + rng.normal(size=5000), "y": up})
    assert "on a sample of" in check_table(table, "y", estimate=False).warnings[0].sentence


def test_equal_rows_with_other_labels_are_counted():
    table = people(300).drop("customer")
    other = pl.when(pl.col("left") == "yes").then(pl.lit("no")).otherwise(pl.lit("yes"))
    found = check_table(pl.concat([table, table[:20].with_columns(left=other)]), "left", estimate=False)
    assert [each.kind for each in found.warnings] == ["contradictory rows"]
    assert found.warnings[0].sentence.startswith("40 rows")


def test_rows_that_are_equal_by_chance_are_not_warned_of():
    rng = np.random.default_rng(0)
    n = 1300
    passengers = pl.DataFrame(
        {
            "class": rng.choice(["1st", "2nd", "3rd"], n, p=[0.25, 0.2, 0.55]),
            "sex": rng.choice(["f", "m"], n),
            "age": rng.normal(30, 14, n).clip(1, 80).round(),
            "relatives": rng.poisson(0.5, n),
            "y": rng.random(n) < 0.4,
        }
    )
    assert passengers["age"].n_unique() > n / 20
    assert kinds(check_table(passengers, "y", estimate=False)) == []
    model = fit_table(passengers, "y", estimator=KernelAUCClassifier(preset="paper", n_landmarks=20))
    assert model.training_["copies"] == 0
    fare = passengers.with_columns(fare=pl.Series(rng.exponential(30, n).round(2)))
    twice = pl.concat([fare, fare.with_columns(y=~pl.col("y"))])
    assert kinds(check_table(twice, "y", estimate=False)) == [("contradictory rows", None)]


def test_few_positives_widen_the_interval_as_hanley_and_mcneil_have_it():
    table = people(2000)
    few = pl.concat([table.filter(left="yes")[:12], table.filter(left="no")])
    found = check_table(few, "left", estimate=False)
    assert [each.kind for each in found.warnings] == ["few rows"]
    low, high = auc_interval(0.8, 12, few.height - 12)
    assert f"from {low:.2f} to {high:.2f}" in found.warnings[0].sentence
    # Hanley and McNeil's example: an AUC of 0.893 with 51 and 58 rows has a standard error of 0.032.
    low, high = auc_interval(0.893, 51, 58)
    assert (high - low) / 2 / 1.96 == pytest.approx(0.032, abs=0.001)


@pytest.mark.parametrize(
    ("values", "name", "yes"),
    [
        (["2024-01-31", None, "2024-02-01"], "x", True),
        (["a", "b"], "date", False),
        ([2019, 2020, 2021], "year", True),
        ([2019, 2020, 2021], "price", False),
        ([1_700_000_000, 1_700_000_100], "event_time", True),
        ([1, 2, 3], "day", False),
    ],
)
def test_a_time_column_is_recognised(values, name, yes):
    assert is_time(pl.Series(name, values)) is yes


def test_a_time_column_suggests_a_split_by_time():
    table = people(600).with_columns(pl.Series("signup_year", [2000 + i % 20 for i in range(600)]))
    warning = check_table(table, "left", estimate=False).warnings[0]
    assert (warning.kind, warning.option) == ("time column", "--time signup_year")
    assert kinds(check_table(table, "left", time="signup_year", estimate=False)) == []


def test_the_command_prints_columns_problems_and_time(tmp_path, capsys):
    people(300).write_csv(tmp_path / "t.csv")
    code, told = run(tmp_path, "check t.csv --target left")
    error = capsys.readouterr().err
    assert code == 0
    assert "one-hot, 3 levels" in told
    assert "which is ranked high (the rarer label)" in error
    assert "Training will take about" in error
    people(300).with_columns(size=INFINITE).write_csv(tmp_path / "bad.csv")
    code, told = run(tmp_path, "check bad.csv --target left")
    assert code == 2
    assert "Use --drop size" in capsys.readouterr().err


def test_the_command_speaks_json(tmp_path):
    people(300).write_csv(tmp_path / "t.csv")
    code, told = run(tmp_path, "check t.csv --target left --json")
    assert code == 0
    found = check_schema("check", told)
    assert (found["problems"], found["rows"]) == ([], 300)
    code, told = run(tmp_path, "check t.csv --target plan --json")
    assert code == 2
    assert check_schema("check", told)["problems"][0]["column"] == "plan"


def test_train_prints_the_check_first_and_names_all_problems(tmp_path, capsys):
    table = people(300)
    table.with_columns(copy=pl.col("left")).write_csv(tmp_path / "t.csv")
    code, told = run(tmp_path, "train t.csv --target left --landmarks 20 --gammas 1")
    said = capsys.readouterr().err.splitlines()
    assert code == 0
    assert said[0] == "t.csv: 300 rows, 7 columns; 'left' is 'no' 264 times, 'yes' 36 times."
    assert any("Use --drop copy" in line for line in said)
    assert told.index("one-hot") < told.index("cross-validated AUC")
    table.with_columns(size=INFINITE, weight=INFINITE).write_csv(tmp_path / "bad.csv")
    assert run(tmp_path, "train bad.csv --target left --force")[0] == 2
    error = capsys.readouterr().err
    assert "2 problems" in error
    assert "--drop size" in error
    assert "--drop weight" in error
