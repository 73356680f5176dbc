"""Held-out rows that fit the question: later rows, and other groups."""

import warnings
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

from aucmax import KernelAUCClassifier, fit_table
from aucmax.reading.frames import TableError
from aucmax.tables.time_split import later_rows, row_times
from tests.test_table_commands import check_schema, people, run

QUICK = KernelAUCClassifier(preset="paper", n_landmarks=20)


def dated(rows=400):
    days = [(date(2020, 1, 1) + timedelta(days=i)).isoformat() for i in range(rows)]
    return people(rows).with_columns(pl.Series("day", days).shuffle(seed=0)).drop("customer")


def test_the_latest_quarter_is_held_out_and_the_time_is_no_feature():
    table = dated()
    model = fit_table(table, "left", time="day", estimator=QUICK)
    held = ~np.isnan(model.held_out_["score"])
    assert held.sum() == 100
    days = table["day"].to_numpy()
    assert days[held].min() > days[~held].max()
    assert "day" not in [column["name"] for column in model.columns_]
    assert model.training_["time"] == "day"
    known = model.held_out_["positive"][held], model.held_out_["score"][held]
    assert model.training_["auc"] == pytest.approx(roc_auc_score(*known))


def test_a_signal_that_ends_is_seen_by_time_but_not_at_random():
    rng = np.random.default_rng(0)
    x, when = rng.normal(size=800), np.arange(800)
    up = np.where(when < 600, x, rng.normal(size=800)) + 0.3 * rng.normal(size=800) > 0.8
    table = pl.DataFrame({"x": x, "when": when, "y": up})
    at_random = fit_table(table, "y", drop=["when"], estimator=QUICK).training_["auc"]
    by_time = fit_table(table, "y", time="when", estimator=QUICK).training_["auc"]
    assert at_random > 0.8
    assert by_time < 0.6


def test_groups_of_later_rows_are_not_trained_on():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 150, 400)
    times, up = np.arange(400.0), np.arange(400) % 3 == 0
    ((earlier, later),) = later_rows(times, up, groups, "day")
    assert later.tolist() == list(range(300, 400))
    assert not set(groups[earlier]) & set(groups[later])
    model = fit_table(
        dated().with_columns(pl.Series("who", groups)), "left", time="day", group="who", estimator=QUICK
    )
    assert (~np.isnan(model.held_out_["score"])).sum() == 100


def test_the_auc_with_groups_comes_from_other_groups():
    rng = np.random.default_rng(0)
    who = rng.integers(0, 60, 600)
    mark, label = rng.normal(size=60)[who], (rng.random(60) < 0.4)[who]
    table = pl.DataFrame({"mark": mark, "noise": rng.normal(size=600), "who": who, "y": label})
    alone = fit_table(table, "y", drop=["who"], estimator=QUICK).training_["auc"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it ranks no better than chance
        together = fit_table(table, "y", group="who", estimator=QUICK).training_["auc"]
    assert together < alone - 0.1


@pytest.mark.parametrize(
    "values",
    [
        ["2024-01-31", "2024-02-01"],
        ["31.01.2024", "01.02.2024"],
        ["2024-01-31 08:00:00", "2024-01-31 09:30:00"],
        ["2024-01-31T08:00:00Z", "2024-01-31T09:30:00Z"],
        ["31/01/2024", "01/02/2024"],
        ["1,000", "2,000"],
        [date(2024, 1, 31), date(2024, 2, 1)],
        [9, 10],
    ],
)
def test_times_of_many_kinds_rise(values):
    first, second = row_times(pl.Series("t", values))
    assert first < second


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["2024-01-31", None], r"no value in row 1 "),
        (["2024-01-31", "soon"], r"holds 'soon' in row 1 "),
        (["01/02/2024", "02/03/2024"], "day and month cannot be told apart"),
        ([True, False], "type Boolean"),
    ],
)
def test_a_column_without_times_is_refused_with_the_row(values, said):
    with pytest.raises(TableError, match=said):
        row_times(pl.Series("t", values))


def test_rows_of_one_time_stay_together_and_both_parts_need_both_labels():
    times = np.repeat([1.0, 2.0], [90, 10])
    up = np.arange(100) % 2 == 0
    ((earlier, later),) = later_rows(times, up, None, "t")
    assert (earlier.size, later.size) == (90, 10)
    with pytest.raises(TableError, match="the later rows have 0 rows of the positive"):
        later_rows(np.arange(100.0), np.arange(100) < 50, None, "t")
    with pytest.raises(TableError, match="need both labels"):
        later_rows(np.ones(100), up, None, "t")


def test_the_command_splits_by_time_and_names_the_nearest_column(tmp_path, capsys):
    dated().write_csv(tmp_path / "t.csv")
    quick = "--landmarks 20 --gammas 1 --preset paper"
    code, told = run(tmp_path, f"train t.csv --target left --time day {quick}")
    assert code == 0
    assert "AUC of the latest quarter" in told
    code, told = run(tmp_path, f"train t.csv --target left --time day {quick} --force --json")
    assert check_schema("train", told)["time"] == "day"
    assert run(tmp_path, f"train t.csv --target left --time dya {quick} --force")[0] == 2
    assert "Did you mean 'day'?" in capsys.readouterr().err
    dated().with_columns(
        day=pl.when(pl.int_range(pl.len()) == 7).then(None).otherwise("day")
    ).write_csv(tmp_path / "gap.csv")
    assert run(tmp_path, f"train gap.csv --target left --time day {quick} --force")[0] == 2
    assert "row 7 (from 0; line 9 of gap.csv)" in capsys.readouterr().err
