"""The contest: the same splits for all, nothing run twice, nothing lost, and what rows sum up to."""

import json
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from aucmax.paper.data import Split
from benchmarks import readme
from benchmarks.contest import boosting, data, methods, runner, summary
from benchmarks.contest.methods import Method
from benchmarks.harness import Writer


def made_split(negatives=3000, positives=1000, test=200, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], [negatives, positives])
    y_test = np.repeat([0, 1], [test // 2, test - test // 2])
    X, X_test = (rng.normal(size=(len(part), 3)) + part[:, None] for part in (y, y_test))
    return Split("made", X.astype(np.float32), y, X_test.astype(np.float32), y_test)


# --- splits


def test_thinning_keeps_the_share_and_at_least_twenty():
    found = dict(data.thinned(made_split(negatives=19_800), seed=3))
    counts = {regime: int(split.y_train.sum()) for regime, split in found.items()}
    assert counts == {"1 %": 200, "0.3 %": 60, "0.1 %": 20}
    for split in found.values():
        assert (split.y_train == 0).sum() == 19_800
    assert found["1 %"].y_train.mean() == pytest.approx(0.01)


def test_a_share_that_changes_nothing_is_left_out():
    found = dict(data.thinned(made_split(), seed=0))
    assert {regime: int(split.y_train.sum()) for regime, split in found.items()} == {
        "1 %": 30,
        "0.3 %": 20,
    }


def test_thinning_leaves_test_rows_alone_and_caps_negatives(monkeypatch):
    monkeypatch.setattr(data, "RARE_NEGATIVES", 2500)
    split = made_split()
    for _, thin in data.thinned(split, seed=1):
        assert (thin.y_train == 0).sum() == 2500
        np.testing.assert_array_equal(thin.X_test, split.X_test)
        np.testing.assert_array_equal(thin.y_test, split.y_test)


def test_training_rows_of_a_thinned_split_keep_their_labels():
    split = made_split()
    labels = {row.tobytes(): label for row, label in zip(split.X_train, split.y_train, strict=True)}
    _, thin = next(data.thinned(split, seed=1))
    assert all(
        labels[row.tobytes()] == label for row, label in zip(thin.X_train, thin.y_train, strict=True)
    )


def test_a_smaller_share_has_some_of_the_positives_of_a_larger():
    one, other = (split for _, split in data.thinned(made_split(), seed=1))
    larger = {row.tobytes() for row in one.X_train}
    assert all(row.tobytes() in larger for row in other.X_train)


@pytest.mark.parametrize("name", data.INSIDE)
def test_splits_follow_their_seed(name):
    one, same, other = (data.whole(data.read(name, seed), seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.X_train, same.X_train)
    np.testing.assert_array_equal(one.X_test, same.X_test)
    assert not np.array_equal(one.X_train, other.X_train)
    assert len(one.y_test) == pytest.approx(0.3 * (len(one.y_train) + len(one.y_test)), abs=1)


def test_test_rows_are_capped(monkeypatch):
    monkeypatch.setattr(data, "TEST_ROWS", 50)
    assert len(data.whole(made_split(), 0).y_test) == 50


# --- running


class Fake:
    """Scores rows by a column; remembers what it was fitted to."""

    seen: ClassVar[list] = []

    def __init__(self, column):
        self.column = column

    def fit(self, X, y):
        Fake.seen.append((self.column, X.tobytes(), y.tobytes()))
        return self

    def decision_function(self, X):
        return X[:, self.column]


class Failing(Fake):
    def fit(self, X, y):
        raise MemoryError("no room")


@pytest.fixture
def contest(tmp_path, monkeypatch):
    """Runs the contest of fakes in this process; gives its rows and those of the file."""
    monkeypatch.setattr(runner, "alone", lambda work, *given: work(*given))
    monkeypatch.setattr(runner, "PUBLISHED", tmp_path / "published.jsonl")
    monkeypatch.setattr(runner, "SETTINGS", {})
    monkeypatch.setattr(data, "DATA", ("made",))
    monkeypatch.setattr(data, "RARE", ("made",))
    monkeypatch.setattr(data, "read", lambda name, seed: made_split(seed=seed))
    monkeypatch.setattr(
        methods,
        "METHODS",
        {
            "aucmax": Method(lambda *_: Fake(0), rare=True),
            "other": Method(lambda *_: Fake(1), rare=True),
            "small": Method(lambda *_: Fake(2), most_rows=100),
            "failing": Method(lambda *_: Failing(2)),
        },
    )
    monkeypatch.setattr(Fake, "seen", [])

    def run(**changes):
        options = SimpleNamespace(
            data=None,
            seeds=2,
            first_seed=0,
            out=tmp_path / "out",
            methods=None,
            regimes=["full"],
            configurations=2,
            seconds=1.0,
            limit=60.0,
            retry=False,
            since="",
            publish=False,
            scores=False,
        )
        vars(options).update(changes)
        writer = Writer("contest", options.out)
        for row in runner.run(options):
            writer.add(row)
        return writer.rows, options

    return run


def test_all_methods_get_the_same_rows(contest):
    rows, _ = contest(regimes=None)
    fits = [seen for seen in Fake.seen if len(seen[2]) > 400 * 8]  # without warming up
    assert {given[1:] for given in fits if given[0] == 0} == {
        given[1:] for given in fits if given[0] == 1
    }
    assert len(fits) == 2 * 2 * 3  # methods, seeds, regimes that differ
    assert {row["regime"] for row in rows} == {"full", "1 %", "0.3 %"}


def test_rows_say_what_was_run(contest):
    rows, options = contest(seeds=1)
    first, other, failing = rows
    assert (first["rows"], first["positives"], first["features"]) == (4000, 1000, 3)
    assert 0.5 < first["auc"] < 1
    assert "against" not in first
    assert other["against"]["difference"] == pytest.approx(other["auc"] - first["auc"])
    assert other["against"]["low"] < other["against"]["difference"] < other["against"]["high"]
    assert (failing["status"], failing["reason"]) == ("failed", "MemoryError: no room")
    assert "auc" not in failing
    kept = np.load(options.out / "contest-scores" / "made--full--0--other.npy")
    assert kept.dtype == np.float32


def test_who_is_limited_to_few_rows_stays_away(contest):
    rows, _ = contest(methods=["small"])
    assert rows == []


def test_restart_runs_only_what_is_missing(contest):
    first, options = contest(seeds=1)
    assert contest(seeds=1)[0] == []
    again, _ = contest(seeds=2)
    assert {row["seed"] for row in again} == {1}
    retried, _ = contest(seeds=2, retry=True)
    assert [(row["method"], row["seed"]) for row in retried] == [("failing", 0), ("failing", 1)]
    lines = (options.out / "contest.jsonl").read_text().splitlines()
    assert len(lines) == len(first) + len(again) + len(retried)


def test_seeds_before_the_first_are_left_out(contest):
    assert {row["seed"] for row in contest(first_seed=1, regimes=None)[0]} == {1}
    # Five splits of so few rows, unless their number is told.
    later, _ = contest(first_seed=4, seeds=None)
    assert {row["seed"] for row in later} == {4}
    assert contest(first_seed=5, seeds=None)[0] == []


def test_published_rows_are_not_run_again(contest):
    _, options = contest(seeds=1)
    options.publish = True
    runner.show(options)
    (options.out / "contest.jsonl").unlink()
    assert contest(seeds=1)[0] == []


def test_comparisons_follow_when_the_first_method_is_run_again(contest, monkeypatch):
    contest(seeds=1)
    monkeypatch.setitem(methods.METHODS, "aucmax", Method(lambda *_: Fake(2), rare=True))
    monkeypatch.setattr(runner.time, "strftime", lambda _: "2098-01-01T00:00:00")
    rows, options = contest(seeds=1, methods=["aucmax"], since="2097-01-01T00:00:00")
    assert [row["method"] for row in rows] == ["aucmax", "other"]
    assert rows[1]["against"]["difference"] == pytest.approx(rows[1]["auc"] - rows[0]["auc"])
    assert len(runner.known(options.out)) == 3


def test_scores_are_made_again_for_the_paired_test(contest, monkeypatch, capsys):
    contest(seeds=1, methods=["other"])
    rows, options = contest(seeds=1, methods=["aucmax"])
    assert [row["method"] for row in rows] == ["aucmax", "other"]
    path = options.out / "contest-scores" / "made--full--0--other.npy"
    before = np.load(path)
    path.unlink()
    contest(seeds=1, scores=True)
    assert not path.exists()  # the test was made already
    monkeypatch.setattr(summary, "same_duel", lambda *_: False)
    contest(seeds=1, scores=True)
    np.testing.assert_array_equal(np.load(path), before)
    assert "made, full, seed 0, other: the same model" in capsys.readouterr().err
    # Not those of another model.
    path.unlink()
    monkeypatch.setitem(methods.METHODS, "other", Method(lambda *_: Fake(2), rare=True))
    contest(seeds=1, scores=True)
    assert not path.exists()
    assert "other: another model, its AUC differs by" in capsys.readouterr().err


def test_a_search_is_fitted_again_with_what_it_chose():
    split = made_split(300, 100)
    model = boosting.Tuned("XGBoost", 0, boosting.Budget(2, 5.0))
    model.library = FakeLibrary()
    model.library.made = []
    model.library.make_searched = lambda seed, rounds, **drawn: (
        model.library.made.append((rounds, drawn)) or SimpleNamespace(fit=lambda X, y: "fitted")
    )
    assert model.fit_chosen(split.X_train, split.y_train, {"x": 1.0, "balanced": True}, 7) is model
    assert model.library.made == [(7, {"x": 1.0, "scale_pos_weight": 3.0})]
    assert model.model_ == "fitted"


def test_a_missing_package_leaves_a_method_out(contest, monkeypatch, capsys):
    monkeypatch.setitem(methods.METHODS, "other", Method(lambda *_: Fake(1), package="no-such-package"))
    rows, _ = contest(seeds=1)
    assert [row["method"] for row in rows] == ["aucmax", "failing"]
    assert "no-such-package is not installed" in capsys.readouterr().err


def test_unknown_names_are_told(contest):
    for wrong in ({"methods": ["nobody"]}, {"data": ["nothing"]}, {"regimes": ["7 %"]}):
        with pytest.raises(SystemExit, match="there are"):
            contest(**wrong)


def test_a_process_that_ends_gives_a_row(contest, monkeypatch):
    def ends(work, name, seed, folder, *_):
        if name == "other":
            (folder / "clock").write_text("0")
        raise runner.BrokenProcessPool

    monkeypatch.setattr(runner, "alone", ends)
    rows, _ = contest(seeds=1)
    assert [row["status"] for row in rows] == ["failed", "over time", "failed"]
    assert rows[1]["reason"] == "more than 60 seconds"


def test_in_a_process_of_its_own(tmp_path):
    options = SimpleNamespace(configurations=1, seconds=1.0, limit=60.0, out=tmp_path)
    split = made_split(300, 100)
    for part in ("X_train", "y_train", "X_test", "y_test"):
        np.save(tmp_path / f"{part}.npy", getattr(split, part))
    place = runner.Place("made", "full", 0, split)
    row = runner.one(place, "logistic regression", tmp_path, options, tmp_path)
    model = LogisticRegression().fit(split.X_train, split.y_train)
    scores = model.decision_function(split.X_test)
    assert row["status"] == "ok"
    assert row["auc"] == pytest.approx(runner.roc_auc(split.y_test, scores), abs=1e-3)
    assert row["peak_gib"] > 0


# --- searching


class FakeLibrary:
    """Its AUC is best after three rounds, and better with a larger ``x``."""

    def make_searched(self, seed, rounds, **parameters):
        self.made = {"rounds": rounds, **parameters}
        return SimpleNamespace(x=parameters.get("x", 0.0), fit=lambda X, y: self)

    def curve(self, model, train, valid, wait, deadline):
        return [0.5, 0.6, 0.7 + model.x / 10, 0.6]

    def margins(self, model, X):
        return X[:, 0]


@pytest.fixture
def fake_library(monkeypatch):
    library = FakeLibrary()
    monkeypatch.setitem(boosting.LIBRARIES, "fake", library)
    monkeypatch.setitem(boosting.SPACES, "fake", {"x": boosting.between(0, 1)})
    monkeypatch.setitem(boosting.OWN, "fake", {})
    return library


def test_a_search_takes_the_best_configuration_and_its_rounds(fake_library):
    split = made_split()
    model = boosting.Tuned("fake", 0, boosting.Budget(5, 60.0)).fit(split.X_train, split.y_train)
    drawn = [model.draw(number)["x"] for number in range(1, 5)]
    assert model.draw(0) == {}
    assert model.report_["chosen"] == {"x": max(drawn)}
    assert (model.report_["configurations"], model.report_["trees"]) == (5, 3)
    assert fake_library.made == {"rounds": 3, "x": max(drawn)}
    model = boosting.Tuned("fake", 0, boosting.Budget(5, 0.0)).fit(split.X_train, split.y_train)
    assert model.report_["configurations"] == 1  # the library's own, however little time there is


def test_the_round_is_the_last_of_the_best():
    assert boosting.best_round(np.array([0.5, 1.0, 1.0, 0.9])) == (1.0, 3)


def test_folds_go_on_until_their_mean_gets_no_better(fake_library, monkeypatch):
    asked = []

    def curve(model, train, valid, wait, deadline):
        asked.append(fake_library.made["rounds"])
        whole = np.full(1000, 0.5)
        whole[[2, 149]] = 0.6, 0.7  # a lucky round, and the best one
        return list(whole[: asked[-1]])

    monkeypatch.setattr(fake_library, "curve", curve)
    monkeypatch.setattr(boosting, "patience", lambda drawn: 100)
    y = np.repeat([0, 1], [300, 30])
    model = boosting.Tuned("fake", 0, boosting.Budget(1, 60.0)).fit(np.zeros((330, 1)), y)
    assert asked == [200] * 3 + [400] * 3
    assert (model.report_["trees"], model.report_["validation"]) == (150, "3 folds")


def test_patience_grows_as_the_rate_falls():
    rates = ({}, {"learning_rate": 0.3}, {"learning_rate": 0.05}, {"learning_rate": 0.001})
    assert [boosting.patience(drawn) for drawn in rates] == [50, 50, 100, 250]


def test_few_rows_of_a_class_are_scored_by_folds():
    assert len(boosting.held_out(np.repeat([0, 1], [1000, 199]), 0)) == 3
    ((train, valid),) = boosting.held_out(np.repeat([0, 1], [800, 200]), 0)
    assert (len(train), len(valid)) == (800, 200)
    assert not set(train) & set(valid)


def test_balanced_weighs_positives():
    assert boosting.weighed({"balanced": True}, np.array([0, 0, 0, 1])) == {"scale_pos_weight": 3.0}
    assert boosting.weighed({"balanced": False, "a": 1}, np.array([0, 1])) == {"a": 1}


@pytest.mark.parametrize("library", boosting.LIBRARIES)
def test_the_libraries_can_be_searched(library):
    pytest.importorskip(library.lower())
    split = made_split(600, 300)
    model = boosting.Tuned(library, 0, boosting.Budget(3, 60.0)).fit(split.X_train, split.y_train)
    assert model.report_["configurations"] == 3
    scores = model.decision_function(split.X_test)
    assert runner.roc_auc(split.y_test, scores) > 0.8
    # The clock stops a configuration in the middle, with one fold and with three.
    for y in (split.y_train, np.where(np.arange(900) < 750, 0, 1)):
        folds = boosting.held_out(y, 0)
        assert len(model.mean_curve(model.draw(1), split.X_train, y, folds, 0.0)) <= 2


# --- summing up


def made_row(data, method, seed, auc, seconds=1.0, regime="full", p=1.0, difference=0.0, **more):
    return {
        "data": data,
        "regime": regime,
        "seed": seed,
        "method": method,
        "status": "ok",
        "rows": 1000,
        "positives": 100,
        "auc": auc,
        "average_precision": auc / 2,
        "fit_seconds": seconds,
        "predict_seconds": seconds / 10,
        "peak_gib": seconds,
        "against": {"p": p, "difference": difference},
        **more,
    }


ROWS = [
    made_row("a", "aucmax", 0, 0.90, 2.0),
    made_row("a", "aucmax", 1, 0.80, 4.0),
    made_row("a", "LightGBM tuned", 0, 0.80, 1.0, p=0.01, difference=-0.1),
    made_row("a", "LightGBM tuned", 1, 0.86, 1.0, p=0.2, difference=0.06),
    made_row("a", "C", 0, 0.70, p=0.04, difference=-0.2),
    made_row("a", "C", 1, 0.70, p=0.04, difference=-0.1),
    made_row("b", "aucmax", 0, 0.70, 12.0),
    made_row("b", "LightGBM tuned", 0, 0.90, 1.0, p=0.001, difference=0.2),
    made_row("b", "C", 0, 0.70),
    made_row("b", "SVC", 0, 0.99),
]
FAILED = {
    "data": "b",
    "regime": "full",
    "seed": 0,
    "method": "C",
    "status": "over time",
    "reason": "more than 5 seconds",
    "rows": 1000,
    "positives": 100,
}


def test_means_and_ranks():
    table = summary.Table(ROWS, "full")
    assert table.mean("a", "aucmax") == pytest.approx(0.85)
    assert table.mean("a", "LightGBM tuned") == pytest.approx(0.83)
    assert table.ranks() == {"aucmax": (1 + 2.5) / 2, "LightGBM tuned": (2 + 1) / 2, "C": (3 + 2.5) / 2}
    assert table.time_ratio("aucmax") == pytest.approx((3 * 12) ** 0.5)


def test_times_are_told_where_they_are_least_and_most():
    told = "aucmax's fits take 3 (a) to 12 (b) times those of LightGBM tuned."
    assert summary.times(summary.Table(ROWS, "full")) == told
    assert told in summary.markdown(ROWS)
    assert summary.times(summary.Table(ROWS[:2], "full")) == ""


def test_who_fails_is_last_and_named():
    table = summary.Table([*ROWS, FAILED], "full")
    assert table.mean("b", "C") is None
    assert table.ranks()["C"] == 3
    assert table.ranks()["aucmax"] == (1 + 2) / 2
    assert "C on b, full, seed 0: over time (more than 5 seconds)" in summary.markdown([*ROWS, FAILED])


def test_a_data_set_counts_once_all_have_run_on_it():
    table = summary.Table([*ROWS, made_row("b", "aucmax", 1, 0.7)], "full")
    assert table.complete() == ["a"]
    assert table.ranks() == {"aucmax": 1, "LightGBM tuned": 2, "C": 3}
    assert table.mean("b", "C") is None


def test_significant_differences():
    table = summary.Table(ROWS, "full")
    assert table.duels("LightGBM tuned") == (1, 1, 1)
    assert table.duels("C") == (2, 0, 1)
    assert table.data_sets_won("LightGBM tuned") == (0, 1)
    assert table.data_sets_won("C") == (1, 0)


def test_a_duel_counts_only_with_the_last_row_of_the_first_method():
    rows = [
        made_row("a", "aucmax", 0, 0.92),
        made_row("a", "C", 0, 0.8, p=0.01, difference=-0.1),
    ]
    assert summary.Table(rows, "full").duels("C") == (0, 0, 0)
    rows[0]["auc"] = 0.9  # what the test was with
    assert summary.Table(rows, "full").duels("C") == (1, 0, 0)
    rows[0]["status"] = "failed"
    assert summary.Table(rows, "full").duels("C") == (0, 0, 0)


def test_splits_without_the_first_method_are_not_shown_yet():
    table = summary.Table([*ROWS, made_row("a", "C", 2, 0.99), made_row("c", "C", 0, 0.99)], "full")
    assert table.data == ["a", "b"]
    assert table.mean("a", "C") == pytest.approx(0.70)


def test_the_last_row_counts():
    table = summary.Table([*ROWS, made_row("a", "aucmax", 1, 0.70)], "full")
    assert table.mean("a", "aucmax") == pytest.approx(0.80)


def test_markdown_tells_losses_and_rare_positives():
    rare = [
        made_row("a", "aucmax", 0, 0.6, regime="1 %"),
        made_row("a", "C", 0, 0.7, regime="1 %", p=0.01, difference=0.1),
        made_row("a", "aucmax", 0, 0.5, regime="0.1 %"),
        made_row("a", "C", 0, 0.4, regime="0.1 %", p=0.01, difference=-0.1),
    ]
    text = summary.markdown([*ROWS, *rare])
    assert "| aucmax | **85.00** | 70.00 |" in text
    assert "behind the best of the rivals on 1 of 2 data sets: b (70.00 against 99.00, SVC)." in text
    assert "| C | 70.00, 1.00 (0, 1, 0) | 40.00, 2.00 (1, 0, 0) |" in text
    assert "data sets at 1 %: a (60.00 against 70.00, C)." in text
    assert "| aucmax | **42.50** | 35.00 |" in text  # average precision
    assert " | 6 | 6 | 12 |" in text  # of aucmax: fit time, time of predicting, memory
    assert "Over all of these" not in text


def test_who_is_part_way_is_told_apart_from_the_tables():
    rows = [
        made_row("a", "aucmax", 0, 0.6, regime="1 %"),
        made_row("a", "aucmax", 1, 0.8, regime="1 %"),
        made_row("a", "C", 0, 0.5, regime="1 %", p=0.01, difference=-0.1),
        made_row("a", "C", 1, 0.8, regime="1 %"),
        made_row("a", "late", 1, 0.7, regime="1 %", p=0.01, difference=-0.1),
    ]
    told = (
        "late has run on 1 of 2 draws: there its mean AUC is 70.00, and aucmax's 80.00 "
        "(better on 1, worse on 0, neither on 0)."
    )
    assert summary.part_way(rows) == {"late": told}
    (table,) = summary.rare_tables(rows).values()
    assert table.methods == ["aucmax", "C"]
    assert told in summary.markdown(rows)


def test_rare_positives_together_are_told_against_who_was_searched():
    rows = [
        made_row("a", "aucmax", 0, 0.6, regime="1 %"),
        made_row("a", "XGBoost tuned", 0, 0.5, regime="1 %"),
        made_row("a", "aucmax", 0, 0.5, regime="0.1 %"),
        made_row("a", "XGBoost tuned", 0, 0.54, regime="0.1 %"),
    ]
    told = "+3.00 points from XGBoost tuned's (above it on 1 of 2 data sets and shares)."
    assert told in summary.markdown(rows)


def test_the_page_is_what_the_rows_say():
    page = (readme.ROOT / "docs" / "contest.md").read_text()
    assert f"<!-- contest -->\n{readme.contest()}\n<!-- /contest -->" in page
    assert summary.markdown([]) == "No rows yet."


def test_rows_can_be_read_back(contest):
    _, options = contest(seeds=1)
    for line in (options.out / "contest.jsonl").read_text().splitlines():
        assert {"data", "regime", "seed", "method", "status", "versions"} <= json.loads(line).keys()


def test_a_change_is_compared_with_the_first_method_alone():
    rows = [
        *ROWS,
        made_row("a", "aucmax, no metric", 1, 0.70, 1.0, p=0.01, difference=-0.1),
        made_row("b", "aucmax, no metric", 0, 0.71, 12.0, p=0.5, difference=0.01),
    ]
    table = summary.Table(rows, "full")
    assert "aucmax, no metric" not in table.methods
    assert table.ranks() == summary.Table(ROWS, "full").ranks()
    told = summary.changed(table, "aucmax, no metric")
    assert "| a | 1 | 80.00 | 70.00 | 1, 0, 0 | 0.25 |" in told
    assert "better on 1, worse on 0 and neither on 1 splits" in told
    assert "take 2 times as long in the geometric mean, and between 1 and 4 times" in told
    assert told in summary.markdown(rows)
    assert summary.changed(table, "aucmax, effort 4") == ""


def test_where_boosted_trees_win_is_said_with_and_without_paired_tests():
    table = summary.Table(ROWS, "full")
    assert summary.lost(table).startswith("aucmax loses on b: there a boosted tree is better")
    untested = [{name: row[name] for name in row if name != "against"} for row in ROWS]
    text = summary.lost(summary.Table(untested, "full"))
    assert text.startswith(
        "The mean AUC of a boosted tree is more than 0.1 points above aucmax's on b,"
    )
    # A test of an earlier run of aucmax counts for nothing.
    stale = [{**row, "auc": row["auc"] + 0.01 * (row["method"] == "aucmax")} for row in ROWS]
    assert "where most splits have no paired test" in summary.lost(summary.Table(stale, "full"))
    even = [row for row in ROWS if row["data"] == "a" and row["method"] != "C"]
    assert summary.lost(summary.Table(even, "full")).startswith("On no data set")
