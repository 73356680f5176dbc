"""What a column holds: written numbers, codes, identifiers, dates, and what the user says of it."""

from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pytest

from aucmax import KernelAUCClassifier, fit_table, load_model, predict_table, save_model, to_onnx
from aucmax.persistence.onnx_export import OnnxError
from aucmax.tables import TableError, TableFeatures, TableModel, read_table, table_batches

FAST = KernelAUCClassifier(preset="paper", n_landmarks=30)
ROWS = 240
RNG = np.random.default_rng(0)
AMOUNT = RNG.integers(-90_000, 900_000, ROWS) / 4


def columns(table, **params) -> dict[str, dict]:
    return {each["name"]: each for each in TableFeatures(**params).fit(table).columns_}


def feature(table, name, **params) -> np.ndarray:
    made = TableFeatures(**params)
    rows = made.fit_transform(table)
    return rows[:, made.get_feature_names_out().tolist().index(name)]


# --- numbers that are written with signs


def accounting(value: float) -> str:
    return f"({-value:,.2f})" if value < 0 else f"{value:,.2f}"


def european(value: float) -> str:
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


WRITTEN = {
    "dollars": (lambda v: f"${v:,.2f}".replace("$-", "-$"), "thousands with $"),
    "accounting": (accounting, "thousands"),
    "dollars in parentheses": (
        lambda v: f"(${-v:,.2f})" if v < 0 else f"${v:,.2f}",
        "thousands with $",
    ),
    "euros": (lambda v: f"{european(v)} €", "dots and comma with €"),
    "euros with blanks": (lambda v: f"{v:,.2f} €".replace(",", " ").replace(".", ","), "comma with €"),
    "percent": (lambda v: f"{v:.2f}%", "plain with %"),
    "percent with comma": (lambda v: f"{v:.2f} %".replace(".", ","), "comma with %"),
    "francs": (lambda v: f"CHF {v:,.2f}".replace(",", "'"), "plain with CHF"),
    "blanks": (lambda v: f"{v:,.2f}".replace(",", " ").replace(".", ","), "comma"),
    "narrow blanks": (lambda v: f"{v:,.2f}".replace(",", "\u202f").replace(".", ","), "comma"),
    "apostrophes": (lambda v: f"{v:,.2f}".replace(",", "’"), "plain"),
}


@pytest.mark.parametrize("how", WRITTEN)
def test_signs_thousands_and_parentheses_are_read_as_numbers(how):
    write, style = WRITTEN[how]
    table = pl.DataFrame({"x": [write(value) for value in AMOUNT]})
    found = columns(table)["x"]
    assert (found["kind"], found["written"]) == ("number", style)
    np.testing.assert_allclose(feature(table, "x"), AMOUNT, rtol=1e-6)
    assert "text read as numbers" in found["treatment"]


def test_two_currencies_are_not_one_column_of_numbers():
    table = pl.DataFrame({"x": [f"{sign}{i % 9}" for i in range(100) for sign in "$€"]})
    assert columns(table)["x"]["kind"] == "category"
    all_in_parentheses = pl.DataFrame({"x": ["(1)", "(2)"] * 20})
    assert columns(all_in_parentheses)["x"]["kind"] == "category"


def test_another_sign_in_a_new_table_is_refused_with_its_row():
    made = TableFeatures().fit(pl.DataFrame({"x": [f"${v:,.2f}" for v in AMOUNT]}))
    assert made.transform(pl.DataFrame({"x": ["$5", "($1,000)", "7", "?"]}))[:3, 0].tolist() == [
        5.0,
        -1000.0,
        7.0,
    ]
    with pytest.raises(TableError, match=r"Column 'x' holds '€5' in row 1 \(from 0\), but a number"):
        made.transform(pl.DataFrame({"x": ["$5", "€5"]}))


def test_money_survives_files_predictions_and_graphs(tmp_path):
    table = pl.DataFrame({"price": [f"${v:,.2f}" for v in AMOUNT], "y": AMOUNT > 100_000})
    table.write_csv(tmp_path / "t.csv")
    model = fit_table(tmp_path / "t.csv", "y", estimator=FAST)
    assert model.training_["auc"] > 0.95
    loaded = load_model(save_model(model, tmp_path / "m.aucmax"))
    np.testing.assert_array_equal(loaded.scores(table), model.scores(table))
    predict_table(loaded, tmp_path / "t.csv", tmp_path / "s.csv")
    np.testing.assert_allclose(pl.read_csv(tmp_path / "s.csv")["score"], model.scores(table), rtol=1e-6)
    pytest.importorskip("onnxruntime")
    assert [each.name for each in to_onnx(model, X=table).graph.input] == ["price"]


# --- identifiers


def test_an_identifier_may_have_a_few_missing_values_and_blanks():
    numbers = RNG.choice(10**9, ROWS, replace=False) + 10**9
    holes = [None if row % 20 == 7 else int(value) for row, value in enumerate(numbers)]
    table = pl.DataFrame(
        {
            "account": holes,
            "phone": [f"{value:,}".replace(",", " ") for value in numbers],
            "hardly known": [value if row < 30 else None for row, value in enumerate(holes)],
            "age": RNG.integers(18, 90, ROWS),
        }
    )
    found = columns(table)
    for name in ("account", "phone"):
        assert found[name]["treatment"].startswith("dropped as an identifier"), name
    assert found["account"]["missing"] == ROWS // 20
    assert found["hardly known"]["kind"] == "number"


def test_unique_whole_numbers_identify_rows_whatever_their_name():
    table = pl.DataFrame(
        {
            "account": RNG.choice(10**9, ROWS, replace=False),
            "phone": [str(value) for value in RNG.choice(10**9, ROWS, replace=False) + 10**9],
            "member_no": np.cumsum(RNG.integers(1, 90, ROWS)),
            "balance": RNG.choice(10**9, ROWS, replace=False) - 10**6 * 500,
            "share": RNG.random(ROWS),
            "age": RNG.integers(18, 90, ROWS),
        }
    )
    found = columns(table)
    for name in ("account", "phone", "member_no"):
        assert found[name]["kind"] == "dropped"
        assert found[name]["treatment"] == (
            "dropped as an identifier: all values are unique whole numbers; to keep it, name it with "
            "the option number"
        )
    assert {found[name]["kind"] for name in ("balance", "share", "age")} == {"number"}
    kept = columns(table, number=["account", "phone", "member_no"])
    assert {column["kind"] for column in kept.values()} == {"number"}
    assert columns(table[:19])["account"]["kind"] == "number"


# --- codes


@pytest.mark.parametrize(
    "codes",
    [
        pd.Categorical([1, 2, 30] * 80),
        pl.Series(["1", "2", "30"] * 80, dtype=pl.Categorical),
        pl.Series(["1", "2", "30"] * 80, dtype=pl.Enum(["1", "2", "30"])),
        ["01", "02", "30"] * 80,
    ],
)
def test_codes_are_categories_if_their_type_or_a_leading_zero_says_so(codes):
    frame = pd.DataFrame if isinstance(codes, pd.Categorical) else pl.DataFrame
    found = columns(frame({"code": codes, "x": np.arange(240) / 7}))["code"]
    assert found["kind"] == "category"
    assert [str(int(level)) for level in found["levels"]] == ["1", "2", "30"]


def test_a_target_of_categories_keeps_its_own_values():
    x = RNG.normal(size=240)
    table = pd.DataFrame({"x": x, "y": pd.Categorical(np.where(x > 0.5, 1, 0))})
    assert fit_table(table, "y", estimator=FAST).classes_.tolist() == [0, 1]


def test_leading_zeros_survive_a_csv_file(tmp_path):
    path = tmp_path / "t.csv"
    rows = [f'{i % 7:05d},{i % 5},"0{i % 3}", 0{i % 3}' for i in range(210)]
    path.write_text("zip,n,quoted,spaced\n" + "\n".join(rows) + "\n")
    frame = read_table(path)
    assert frame.dtypes == [pl.String, pl.Int64, pl.String, pl.String]
    assert frame["zip"][:2].to_list() == ["00000", "00001"]
    assert next(iter(table_batches(path)))["zip"][1] == "00001"
    assert columns(frame)["zip"]["levels"][1] == "00001"
    assert columns(frame, number=["zip"])["zip"]["kind"] == "number"
    table = frame.with_columns(y=pl.Series([i % 7 < 2 for i in range(210)]))
    table.write_csv(path)
    model = fit_table(path, "y", estimator=FAST)
    predict_table(model, path, tmp_path / "s.csv")
    np.testing.assert_allclose(pl.read_csv(tmp_path / "s.csv")["score"], model.scores(table), rtol=1e-6)
    assert model.training_["auc"] > 0.95


# --- dates

DAYS = [datetime(2023, 12, 30) + timedelta(days=int(day)) for day in RNG.integers(0, 400, ROWS)]
TIMES = [
    day + timedelta(minutes=int(m)) for day, m in zip(DAYS, RNG.integers(0, 1440, ROWS), strict=True)
]
DATES = {
    "polars date": pl.Series([day.date() for day in DAYS]),
    "polars datetime": pl.Series(DAYS),
    "polars with a zone": pl.Series(DAYS).dt.replace_time_zone("America/New_York"),
    "ISO": [f"{day:%Y-%m-%d}" for day in DAYS],
    "day first": [f"{day:%d/%m/%Y}" for day in DAYS],
    "month first": [f"{day:%m/%d/%Y}" for day in DAYS],
    "dots": [f"{day.day}.{day.month}.{day.year}" for day in DAYS],
    "month by name": [f"{day:%d %b %Y}" for day in DAYS],
}


def expected_parts(days) -> dict[str, np.ndarray]:
    first = min(days)
    return {
        "days": np.array([(day - first) / timedelta(days=1) for day in days]),
        "year": np.array([day.year for day in days]),
        "month": np.array([day.month for day in days]),
        "weekday": np.array([day.isoweekday() for day in days]),
        "hour": np.array([day.hour for day in days]),
    }


@pytest.mark.parametrize("how", DATES)
def test_dates_become_days_year_month_and_weekday(how):
    table = pl.DataFrame({"when": DATES[how]})
    found = columns(table)["when"]
    assert found["kind"] == "date"
    assert found["features"] == ["when: days", "when: year", "when: month", "when: weekday"]
    assert found["origin"] == min(DAYS).isoformat()
    for part, values in expected_parts(DAYS).items():
        if part != "hour":
            np.testing.assert_allclose(feature(table, f"when: {part}"), values, atol=1e-4)


@pytest.mark.parametrize("style", ["%Y-%m-%dT%H:%M:%S", "%d/%m/%Y %H:%M", "%m/%d/%Y %I:%M %p", None])
def test_times_add_the_hour(style):
    values = pl.Series(TIMES) if style is None else [time.strftime(style) for time in TIMES]
    for part, expected in expected_parts(TIMES).items():
        np.testing.assert_allclose(
            feature(pl.DataFrame({"when": values}), f"when: {part}"), expected, atol=1e-3
        )


def test_pandas_dates_and_missing_ones_get_medians_and_one_mark():
    when = pd.Series(pd.to_datetime(DAYS)).where(np.arange(ROWS) % 6 > 0)
    table = pd.DataFrame({"when": when, "zoned": when.dt.tz_localize("UTC")})
    made = TableFeatures()
    rows = made.fit_transform(table)
    names = made.get_feature_names_out().tolist()
    assert names[-2:] == ["when is missing", "zoned is missing"]
    present = [day for i, day in enumerate(DAYS) if i % 6]
    months = rows[:, names.index("when: month")]
    assert months[0] == np.median([day.month for day in present])
    np.testing.assert_array_equal(rows[:, -2], np.arange(ROWS) % 6 == 0)
    np.testing.assert_array_equal(rows[:, names.index("zoned: month")], months)
    normal = pl.DataFrame({"when": [date(2030, 1, 1), None], "zoned": ["2030-01-01", "?"]})
    assert made.transform(normal)[:, names.index("zoned: year")].tolist()[0] == 2030


def test_dates_survive_files_and_predictions_and_a_graph_refuses_them(tmp_path):
    table = pl.DataFrame({"when": DATES["day first"], "y": [day.isoweekday() > 5 for day in DAYS]})
    table.write_csv(tmp_path / "t.csv")
    model = fit_table(tmp_path / "t.csv", "y", estimator=FAST)
    assert model.training_["auc"] > 0.9
    loaded = load_model(save_model(model, tmp_path / "m.aucmax"))
    assert loaded.columns_ == model.columns_
    np.testing.assert_array_equal(loaded.scores(table), model.scores(table))
    predict_table(loaded, tmp_path / "t.csv", tmp_path / "s.csv")
    np.testing.assert_allclose(pl.read_csv(tmp_path / "s.csv")["score"], model.scores(table), rtol=1e-6)
    typed = table.with_columns(when=pl.Series(DAYS))
    np.testing.assert_array_equal(model.scores(typed), model.scores(table))
    with pytest.raises(TableError, match=r"'soon' in row 1 \(from 0\)"):
        model.scores(pl.DataFrame({"when": ["31/12/2024", "soon"]}))
    assert "they get the medians" in model.unseen_values(pl.DataFrame({"when": [None, "1/1/2024"]}))[0]
    with pytest.raises(OnnxError, match="column 'when' holds dates"):
        to_onnx(model)


def test_odd_dates():
    digits = pl.DataFrame({"when": [int(f"{day:%Y%m%d}") for day in DAYS]})
    assert columns(digits)["when"]["kind"] == "number"
    assert columns(digits, date=["when"])["when"]["written"] == "%Y%m%d"
    with pytest.raises(
        TableError, match=r"'unknown' in row 0 \(from 0\)\. Correct such values, leave them"
    ):
        columns(pl.DataFrame({"when": ["unknown", *DATES["ISO"]]}))
    with pytest.raises(TableError, match="'x' is of type Float64, but should hold dates"):
        columns(pl.DataFrame({"x": [1.5, 2.5] * 20}), date=["x"])
    with pytest.raises(TableError, match="'x' is named by number, but holds dates"):
        columns(pl.DataFrame({"x": DAYS}), number=["x"])
    same = columns(pl.DataFrame({"when": ["2024-01-31"] * 30, "x": np.arange(30) / 7}))["when"]
    assert same["treatment"] == "dropped: every value is 2024-01-31"
    with pytest.raises(TableError, match="Two features are named 'when: year'; rename the column"):
        columns(pl.DataFrame({"when": DAYS, "when: year": np.arange(ROWS) / 7}))


def test_durations_and_times_of_day_are_numbers():
    table = pl.DataFrame(
        {
            "long": pl.Series([timedelta(hours=36 * (i % 5)) for i in range(40)]),
            "at": pl.Series(
                [(datetime(2024, 1, 1) + timedelta(minutes=90 * i)).time() for i in range(40)]
            ),
            "clock": [f"{i % 24:02d}:30" for i in range(40)],
        }
    )
    np.testing.assert_allclose(feature(table, "long")[:3], [0, 1.5, 3.0])
    np.testing.assert_allclose(feature(table, "at")[:3], [0, 1.5, 3.0])
    np.testing.assert_allclose(feature(table, "clock")[:3], [0.5, 1.5, 2.5])
    assert columns(table)["clock"]["written"] == "time of day"


# --- what the user says


def test_the_user_may_say_what_a_column_holds():
    table = pl.DataFrame(
        {
            "grade": RNG.integers(1, 4, ROWS),
            "score": RNG.integers(0, 10**9, ROWS),
            "town": RNG.choice(["Bath", "Hull"], ROWS),
            "nested": [[1, 2]] * ROWS,
        }
    )
    found = columns(table, category=["grade"], number=["score"], id=["town", "nested"])
    assert {name: column["kind"] for name, column in found.items()} == {
        "grade": "category",
        "score": "number",
        "town": "dropped",
        "nested": "dropped",
    }
    assert sorted(found["grade"]["levels"]) == ["1", "2", "3"]
    assert found["town"]["treatment"] == "dropped as an identifier, which the option id names"
    with pytest.raises(
        TableError, match=r"'town' is read as numbers, but holds '(Bath|Hull)' in row 0"
    ):
        columns(table.drop("nested"), number=["town"])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ({"category": ["a"], "number": ["a"]}, "'a' is named by both category and number"),
        ({"drop": ["a"], "date": ["a"]}, "'a' is named by both drop and date"),
        ({"number": ["aa"]}, r"no column 'aa', which number names\. Did you mean 'a'"),
        ({"category": ["y"]}, "'y' cannot be both the target and named by category"),
        ({"id": ["y"]}, "'y' cannot be both the target and named by id"),
        ({"number": ["w"], "weight": "w"}, "'w' cannot be both the weight and named by number"),
        ({"category": "a"}, "category must be a list of column names"),
    ],
)
def test_contradicting_options_are_one_sentence(call, sentence):
    table = pl.DataFrame({"a": AMOUNT, "w": np.ones(ROWS), "y": AMOUNT > 0})
    with pytest.raises(ValueError, match=sentence) as caught:
        fit_table(table, "y", **call)
    assert "\n" not in str(caught.value)


def test_a_named_label_is_ranked_against_the_rest(tmp_path):
    x = RNG.normal(size=ROWS)
    y = np.where(x > 0.8, 2, np.where(x < -0.5, 0, 1))
    model = TableModel(FAST, positive=2).fit(pl.DataFrame({"x": x}), y)
    assert (model.positive_label_, model.negative_label_) == ("2", "not 2")
    assert model.classes_.tolist() == ["2", "not 2"]
    assert model.other_labels_ == [0, 1]
    assert model.training_["positives"] == (y == 2).sum()
    assert model.training_["auc"] > 0.95
    loaded = load_model(save_model(model, tmp_path / "m.aucmax"))
    up, known = loaded.labels(pl.Series("y", [2, 0, None, 1]))
    assert up.tolist() == [True, False, False, False]
    assert known.tolist() == [True, True, False, True]
    with pytest.raises(TableError, match="The target 'y' is 7 in row 0"):
        loaded.labels(pl.Series("y", [7]))
    with pytest.raises(TableError, match=r"has 3 different values .* or name one with positive"):
        TableModel(FAST).fit(pl.DataFrame({"x": x}), y)
