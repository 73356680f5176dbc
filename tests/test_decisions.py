"""Decisions: costs of mistakes, other thresholds for a saved model, capacity, groups and reasons."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import polars as pl
import pytest

from aucmax import load_model, predict_table, with_threshold
from aucmax.metrics import roc_auc_interval
from aucmax.metrics.costs import expected_cost
from aucmax.metrics.groups import evaluate_groups, holm
from aucmax.metrics.thresholds import Aim, choose_threshold
from tests.searches import fit_table
from tests.test_table_commands import check_schema, people, run
from tests.test_table_model import FAST


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with tables and a model; the value of a customer is what losing them costs."""
    folder = tmp_path_factory.mktemp("decisions")
    rng = np.random.default_rng(0)
    for name, rows, seed in (("train", 700, 0), ("new", 400, 1)):
        value = pl.Series("value", rng.exponential(100.0, rows).round(2))
        region = pl.Series("region", rng.choice(["east", "west"], rows))
        people(rows, seed=seed).with_columns(value, region).write_csv(folder / f"{name}.csv")
    code, _ = run(
        folder,
        "train train.csv --target left --drop value --drop region --landmarks 60 --gammas 3 "
        "--preset paper --aim cost=500:20 -o model.aucmax",
    )
    assert code == 0
    return folder


def sample(seed=0, n=300):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.3
    scores = np.round(rng.normal(size=n) + positive, 1)
    return positive, scores, rng.exponential(10.0, n).round(), rng.integers(0, 3, n).astype(float)


def test_costs_as_aims():
    assert Aim.parse("cost=500:20") == Aim("cost", 500.0, 20.0)
    assert str(Aim.parse(" COST = 500 : 20 ")) == "cost=500:20"
    assert Aim.parse("cost=row:2.5") == Aim("cost", None, 2.5)
    assert str(Aim("cost", None, 2.5)) == "cost=row:2.5"
    assert Aim.parse("cost=5") == Aim("cost", 5.0)
    for text, said in {
        "cost=5:": "needs a number after cost=",
        "cost=a:2": "needs a number after cost=",
        "cost=5:-1": "the cost of a false alarm must be a number above 0",
        "cost=-5:1": "the aim cost must be a number above 0",
        "cost=5:10%": "takes costs, not a percentage",
        "recall=0.5:2": "needs a number after recall=",
    }.items():
        with pytest.raises(ValueError, match=re.escape(said)):
            Aim.parse(text)
    with pytest.raises(ValueError, match="only the aim cost"):
        Aim("recall", 0.5, 2.0)


@pytest.mark.parametrize("seed", range(5))
def test_the_cheapest_threshold_is_that_of_a_loop_over_all_cuts(seed):
    positive, scores, costs, weight = sample(seed)
    for by_row, weights in ((True, None), (True, weight), (False, None), (False, weight)):
        aim, miss = ("cost=row:7", costs) if by_row else ("cost=12:7", 12.0)
        options = {"miss_cost": costs} if by_row else {}
        chosen = choose_threshold(positive, scores, aim, weights, **options)
        assert chosen.aim == aim

        def total(threshold, miss=miss, weights=weights):
            found = expected_cost(
                positive, scores, threshold, miss=miss, alarm=7.0, sample_weight=weights
            )
            slow = np.where(positive, miss, 7.0) * (positive != (scores >= threshold))
            u = np.ones(positive.size) if weights is None else weights
            assert found.total == pytest.approx(float(u @ slow))
            assert found.per_row == pytest.approx(float(u @ slow / u.sum()))
            assert found.total == pytest.approx(found.missed + found.alarms)
            return found.total

        everything = [total(t) for t in [np.inf, *np.unique(scores)]]
        assert total(chosen.threshold) == pytest.approx(min(everything))
        found = expected_cost(positive, scores, 0.0, miss=miss, alarm=7.0, sample_weight=weights)
        assert found.if_none == pytest.approx(everything[0])
        assert found.if_all == pytest.approx(everything[1])


def test_costs_in_money_and_their_ratio_choose_the_same():
    positive, scores, *_ = sample()
    ratio, money = (choose_threshold(positive, scores, aim) for aim in ("cost=25", "cost=500:20"))
    assert ratio.threshold == money.threshold
    assert money.cost(500.0, 20.0) == 20.0 * ratio.cost(25.0)


def test_the_interval_of_a_cost_covers_it():
    rng, inside = np.random.default_rng(0), 0
    for _ in range(300):
        positive = rng.random(400) < 0.5
        scores = np.where(rng.random(400) < 0.8, positive, ~positive).astype(float)
        found = expected_cost(positive, scores, 0.5, miss=10.0, alarm=2.0)
        inside += found.per_row_low <= 0.2 * 6.0 <= found.per_row_high
    assert 0.91 < inside / 300 < 0.98


def test_bad_costs_are_refused():
    positive, scores, costs, _ = sample()
    with pytest.raises(ValueError, match="the aim cost=row:1 needs miss_cost"):
        choose_threshold(positive, scores, "cost=row:1")
    with pytest.raises(ValueError, match="miss_cost is for the aim cost=row:20, and the aim is recall"):
        choose_threshold(positive, scores, "recall=0.5", miss_cost=costs)
    with pytest.raises(ValueError, match="at least 0; row 3 has -1"):
        choose_threshold(positive, scores, "cost=row:1", miss_cost=np.where(np.arange(300) == 3, -1, 2))
    with pytest.raises(ValueError, match="a cost for each of the 300 rows; got 2"):
        expected_cost(positive, scores, 0.0, miss=[1.0, 2.0])
    with pytest.raises(ValueError, match="miss must be a number of at least 0"):
        expected_cost(positive, scores, 0.0, miss=-1.0)
    table = people(200)
    with pytest.raises(ValueError, match=r"which a fit does not take.*with_threshold"):
        fit_table(table, "left", aim="cost=row:2", **FAST)


def test_another_threshold_for_a_model(place):
    model = load_model(place / "model.aucmax")
    held = model.held_out_
    changed = with_threshold(model, "recall=0.9")
    expected = choose_threshold(held["positive"], held["score"], "recall=0.9")
    assert changed.threshold_ == expected
    assert model.threshold_.aim == "cost=500:20"  # the model itself is as it was
    table = pl.read_csv(place / "new.csv")
    np.testing.assert_array_equal(changed.scores(table), model.scores(table))
    up = model.scores(table) >= expected.threshold
    assert (changed.predict(table) == np.where(up, "yes", "no")).all()
    on_table = with_threshold(model, "recall=0.9", table)
    assert on_table.threshold_ == choose_threshold(
        (table["left"] == "yes").to_numpy(), model.scores(table), "recall=0.9"
    )
    by_value = with_threshold(model, "cost=row:20", table, cost_column="value")
    assert by_value.threshold_ == choose_threshold(
        (table["left"] == "yes").to_numpy(),
        model.scores(table),
        "cost=row:20",
        miss_cost=table["value"].to_numpy(),
    )
    with pytest.raises(ValueError, match="needs a table with a cost column"):
        with_threshold(model, "cost=row:20")
    with pytest.raises(ValueError, match="miss_cost is for the aim"):
        with_threshold(model, "recall=0.9", table, cost_column="value")


def test_the_threshold_command_writes_a_new_model(place, tmp_path, capsys):
    before = (place / "model.aucmax").read_bytes()
    code, told = run(place, f"threshold model.aucmax --aim recall=0.9 -o {tmp_path}/a.aucmax --json")
    assert code == 0
    found = check_schema("threshold", told)
    assert (found["source"], found["cost"]) == ("held out", None)
    assert (place / "model.aucmax").read_bytes() == before
    assert load_model(tmp_path / "a.aucmax").threshold_.threshold == found["threshold"]["threshold"]
    code, told = run(
        place,
        f"threshold model.aucmax new.csv --cost-column value --cost-alarm 20 -o {tmp_path}/b.aucmax "
        "--json",
    )
    assert code == 0
    found = check_schema("threshold", told)
    assert (found["source"], found["threshold"]["aim"]) == ("table", "cost=row:20")
    cost = found["cost"]
    assert cost["total"] <= min(cost["if_none"], cost["if_all"])
    code, told = run(place, f"threshold {tmp_path}/b.aucmax --cost-miss 500 --cost-alarm 20 --force")
    assert code == 0
    assert "expected cost of mistakes per row" in told
    assert load_model(tmp_path / "b.aucmax").threshold_.aim == "cost=500:20"
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("model.aucmax --aim recall=0.9", "or add --force to change model.aucmax itself"),
        ("model.aucmax -o x.aucmax", "name one aim"),
        ("model.aucmax --aim cost=5 --cost-miss 2 -o x.aucmax", "name one aim"),
        ("model.aucmax --cost-alarm 2 -o x.aucmax", "--cost-alarm needs the cost of a missed positive"),
        ("model.aucmax --cost-miss 2 --cost-column value -o x.aucmax", "give one of them"),
        ("model.aucmax --cost-column value -o x.aucmax", "--cost-column value needs a table"),
        ("model.aucmax --aim cost=row:2 -o x.aucmax", "use --cost-column"),
        ("model.aucmax new.csv --cost-column valeu -o x.aucmax", "Did you mean 'value'?"),
        ("model.aucmax new.csv --cost-column plan -o x.aucmax", "The cost 'plan' is "),
        ("model.aucmax new.csv --aim recall=0.9 -o new.csv --force", "is an input"),
        ("model.aucmax --aim precision=1.5 -o x.aucmax", "at most 1"),
    ],
)
def test_mistakes_with_thresholds_are_one_sentence_each(place, capsys, arguments, said):
    assert run(place, f"threshold {arguments}")[0] == 2
    error = capsys.readouterr().err
    assert said in " ".join(error.split())
    assert "Traceback" not in error
    assert not (place / "x.aucmax").exists()


@pytest.mark.parametrize(("value", "shown"), [("-3.5", "-3.5"), ("", "missing")])
def test_a_bad_cost_names_its_row(place, tmp_path, capsys, value, shown):
    lines = (place / "new.csv").read_text().splitlines()
    fields = lines[8].split(",")
    fields[lines[0].split(",").index("value")] = value
    (tmp_path / "bad.csv").write_text("\n".join([*lines[:8], ",".join(fields), *lines[9:]]) + "\n")
    code, _ = run(place, f"evaluate model.aucmax {tmp_path}/bad.csv --cost-column value")
    assert code == 2
    told = " ".join(capsys.readouterr().err.split())
    assert f"The cost 'value' is {shown} in row 7 (from 0; line 9 of " in told


def test_evaluate_shows_the_expected_cost(place, capsys):
    model, table = load_model(place / "model.aucmax"), pl.read_csv(place / "new.csv")
    positive, scores = (table["left"] == "yes").to_numpy(), model.scores(table)
    threshold = model.threshold_.threshold
    for options, miss, alarm in (
        ("", 500.0, 20.0),  # the costs the model was trained for
        ("--cost-miss 3 --cost-alarm 2", 3.0, 2.0),
        ("--cost-column value --cost-alarm 4", table["value"].to_numpy(), 4.0),
    ):
        code, told = run(place, f"evaluate model.aucmax new.csv {options} --json")
        assert code == 0
        expected = expected_cost(positive, scores, threshold, miss=miss, alarm=alarm)
        assert check_schema("evaluate", told)["cost"] == pytest.approx(expected.to_dict())
    code, told = run(place, "evaluate model.aucmax new.csv")
    assert code == 0
    assert "if no row or all were labelled positive" in told
    capsys.readouterr()


def test_groups_have_the_auc_of_their_rows():
    rng = np.random.default_rng(1)
    groups = rng.choice(["a", "b", "c"], 600)
    positive = rng.random(600) < 0.4
    scores = rng.normal(size=600) + np.where(groups == "c", 0.0, 2.0) * positive
    found = {each.group: each for each in evaluate_groups(positive, scores, groups, 0.5)}
    assert list(found) == ["a", "b", "c"]
    for name, each in found.items():
        own = groups == name
        alone = roc_auc_interval(positive[own], scores[own])
        assert (each.auc, each.auc_low, each.auc_high) == alone[:3]
        rest = roc_auc_interval(positive[~own], scores[~own])
        assert each.difference == pytest.approx(alone.auc - rest.auc)
        assert (each.rows, each.positives) == (own.sum(), positive[own].sum())
        called = own & (scores >= 0.5)
        assert each.threshold.tp == (called & positive).sum()
        assert each.threshold.fp == (called & ~positive).sum()
    assert found["c"].differs
    assert found["c"].difference < -0.2


def test_groups_alike_are_seldom_told_apart():
    """Holm's correction: at most about 5 % of tables name any of ten groups that are all alike."""
    rng, named = np.random.default_rng(0), 0
    for _ in range(200):
        positive, groups = rng.random(600) < 0.4, rng.integers(0, 10, 600).astype(str)
        scores = rng.normal(size=600) + positive
        named += any(each.differs for each in evaluate_groups(positive, scores, groups, 0.0))
    assert named <= 18


def test_a_group_of_one_class_has_no_auc_and_weights_no_test():
    positive, scores, _, weight = sample()
    groups = np.where(np.arange(300) < 150, "a", "b")
    groups[:4] = "c"
    positive[:4] = True
    a, b, c = evaluate_groups(positive, scores, groups, 0.5)
    assert (c.auc, c.auc_low, c.difference, c.p_value, c.differs) == (None, None, None, None, False)
    assert None not in (a.p_value, b.p_value)
    for each in evaluate_groups(positive, scores, groups, 0.5, weight + 1.0):
        assert (each.auc_low, each.p_value, each.differs) == (None, None, False)
    perfect = evaluate_groups(  # no noise is seen in so few rows, but it is there
        [True, False, True, False, True, False], [1, 0, 1, 0, 0, 1], list("aabbbb"), 0.5
    )
    assert perfect[0].auc == 1.0
    assert not perfect[0].differs
    assert holm([]) == []


def test_evaluate_by_group(place, capsys):
    code, told = run(place, "evaluate model.aucmax new.csv --by plan --json")
    assert code == 0
    found = check_schema("evaluate", told)
    assert found["by"] == "plan"
    assert [each["group"] for each in found["groups"]] == ["basic", "gold", "plus"]
    assert sum(each["rows"] for each in found["groups"]) == 400
    code, told = run(place, "evaluate model.aucmax new.csv --by region")
    assert code == 0
    assert re.search(r"^east +\d+ ", told, re.MULTILINE)
    assert "noise explains" in capsys.readouterr().err
    for by, said in (("regoin", "Did you mean 'region'?"), ("customer", "400 different values")):
        assert run(place, f"evaluate model.aucmax new.csv --by {by}")[0] == 2
        assert said in " ".join(capsys.readouterr().err.split())


def test_evaluate_by_a_column_with_gaps(place, tmp_path):
    table = pl.read_csv(place / "new.csv")
    gaps = pl.when(pl.int_range(400) < 9).then(None).otherwise(pl.col("region")).alias("region")
    table.with_columns(gaps).write_csv(tmp_path / "gaps.csv")
    code, told = run(place, f"evaluate model.aucmax {tmp_path}/gaps.csv --by region --json")
    assert code == 0
    groups = check_schema("evaluate", told)["groups"]
    assert (groups[0]["group"], groups[0]["rows"]) == ("(missing)", 9)


@pytest.mark.parametrize(("top", "count"), [("37", 37), ("5%", 20), ("1000", 400)])
def test_exactly_the_first_rows_are_labelled_positive(place, top, count):
    for rank in ("--rank", "--no-rank"):
        command = f"predict model.aucmax new.csv --top {top} {rank} --rows 150 -o s.csv --force"
        assert run(place, command)[0] == 0
        found = pl.read_csv(place / "s.csv")
        up = (found["label"] == "yes").to_numpy()
        assert up.sum() == count
        assert found["score"].to_numpy()[up].min() >= found["score"].to_numpy()[~up].max(initial=-9e9)
        assert ("rank" in found.columns) == (rank == "--rank")


def test_of_equal_scores_the_first_rows_count(place, tmp_path):
    model, row = load_model(place / "model.aucmax"), pl.read_csv(place / "new.csv")[:1]
    pl.concat([row] * 50).write_csv(tmp_path / "same.csv")
    predict_table(model, tmp_path / "same.csv", tmp_path / "s.parquet", top=7)
    labels = pl.read_parquet(tmp_path / "s.parquet")["label"].to_list()
    assert labels == ["yes"] * 7 + ["no"] * 43


@pytest.mark.parametrize("top", ["0", "-3", "2.5", "many", "150%"])
def test_a_bad_number_of_rows_is_refused(place, capsys, top):
    assert run(place, f"predict model.aucmax new.csv --top {top}")[0] == 2
    assert "top must be a number of rows such as 500, or a share such as 5%" in capsys.readouterr().err


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "arrow"])
def test_predict_explains_scores_in_every_format(place, tmp_path, ending):
    output = tmp_path / f"s.{ending}"
    code, _ = run(
        place, f"predict model.aucmax new.csv --explain 2 --rows 150 --id customer -o {output}"
    )
    assert code == 0
    read = {"csv": pl.read_csv, "parquet": pl.read_parquet, "arrow": pl.read_ipc}
    found = read.get(ending, lambda path: pl.read_csv(path, separator="\t"))(output)
    names = ["customer", "score", "probability", "label", "rank", "raised_by", "lowered_by"]
    assert found.columns == names
    model, table = load_model(place / "model.aucmax"), pl.read_csv(place / "new.csv")
    for (raises, lowers), up, down in zip(
        model.explain(table).top(2), found["raised_by"], found["lowered_by"], strict=True
    ):
        assert (up or "") == "; ".join(map(str, raises))
        assert (down or "") == "; ".join(map(str, lowers))
    assert any("age is missing (" in (text or "") for text in found["raised_by"] + found["lowered_by"])


def test_a_column_of_the_outputs_name_cannot_be_copied(place, tmp_path, capsys):
    table = pl.read_csv(place / "new.csv").rename({"customer": "raised_by"})
    table.write_csv(tmp_path / "t.csv")
    model = shutil.copy(place / "model.aucmax", tmp_path)
    command = f"predict {model} t.csv --id raised_by -o s.csv"
    assert run(tmp_path, command)[0] == 0
    assert run(tmp_path, f"{command} --force --explain 1")[0] == 2
    assert "has a column 'raised_by', as the output" in " ".join(capsys.readouterr().err.split())


def test_costs_are_shown_by_the_report_of_such_a_model(place, tmp_path):
    assert run(place, f"report model.aucmax new.csv -o {tmp_path}/r.html --json")[0] == 0
    page = (tmp_path / "r.html").read_text()
    stops = json.loads(re.search(r'id="stops">(.*?)</script>', page)[1])
    assert stops["ratio"] == 25.0
    assert "a missed positive costs 500 and a false alarm 20" in page
