"""The report: its numbers against the library's, hostile text, and the page in a real browser."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from scipy.special import betaincinv

from aucmax.inspection.importance import mean_squared_gradient, permutation_importance
from aucmax.metrics import roc_auc
from aucmax.metrics.evaluation import evaluate
from aucmax.metrics.thresholds import measure_threshold
from aucmax.report import write_report
from aucmax.report.curves import make_cuts, roc_band, score_histogram
from aucmax.tables import TableError
from tests.searches import fit_table

pytest.importorskip("matplotlib", reason="reports need matplotlib")
pytest.importorskip("jinja2", reason="reports need jinja2")

EVIL = "<script>alert(1)</script>"
EVIL_NAME = "\"><img src=x onerror='alert(2)'> $x^{ & {{ 7 * 7 }}"


def customers(rows=600, seed=0):
    rng = np.random.default_rng(seed)
    age, calls = rng.integers(18, 80, rows), rng.poisson(2, rows)
    plan = rng.choice([EVIL, "plus", "basic"], rows, p=[0.6, 0.3, 0.1])
    score = np.sin(age / 9.0) + 0.6 * calls - 1.0 * (plan == "plus") + rng.logistic(size=rows)
    return pl.DataFrame(
        {
            "age": age,
            EVIL_NAME: calls,
            "plan": plan,
            "income": np.where(rng.random(rows) < 0.1, np.nan, rng.normal(30.0, 9.0, rows).round(2)),
            "left": np.where(score > 2.6, "yes", "no"),
        }
    ).with_columns(pl.col("income").fill_nan(None))


@pytest.fixture(scope="module")
def model():
    return fit_table(customers(), "left", preset="paper", n_landmarks=60, Cs=6)


@pytest.fixture(scope="module")
def tested(model, tmp_path_factory):
    """A report on other rows, read from a file."""
    folder = tmp_path_factory.mktemp("report")
    customers(500, seed=1).write_csv(folder / "later.csv")
    return write_report(model, folder / "later.csv", folder / "report.html", permutation=True)


class Page(HTMLParser):
    """What a browser would see of a page, roughly."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.inside = [], [], []
        self.feed(text)
        self.text = re.sub(r"\s+", " ", "".join(self.words))

    def handle_starttag(self, tag, attrs):
        self.words.append(" ")
        self.tags.append((tag, dict(attrs)))
        self.inside.append(tag)

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        if not {"script", "style"} & set(self.inside[-1:]):
            self.words.append(data)

    def stops(self):
        return json.loads(re.search(r'id="stops">(.*?)</script>', self.rawdata, re.DOTALL).group(1))


def read(path):
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    page.rawdata = text
    return page


# --- curves


@pytest.mark.parametrize("weighted", [False, True])
def test_counts_and_intervals_at_every_cut_are_exact(weighted):
    rng = np.random.default_rng(0)
    positive = rng.random(5000) < 0.1
    scores = (rng.normal(size=5000) + positive).round(3)  # ties
    weight = rng.integers(0, 4, 5000).astype(float) if weighted else None
    cuts = make_cuts(positive, scores, weight, threshold=0.4217, most=100)
    assert cuts.threshold.size <= 100
    assert cuts.threshold[cuts.start] == 0.4217
    assert (np.diff(cuts.threshold) < 0).all()
    assert (cuts.called[0], cuts.called[-1]) == (0.0, 1.0)
    bounds = cuts.intervals()
    for i in range(0, cuts.threshold.size, 7):
        there = measure_threshold(positive, scores, cuts.threshold[i], weight)
        assert (there.tp, there.fp) == pytest.approx((cuts.tp[i], cuts.fp[i]))
        assert bounds["recall"][i] == pytest.approx((there.recall_low, there.recall_high))
        assert bounds["fpr"][i] == pytest.approx((there.fpr_low, there.fpr_high))
        assert bounds["precision"][i] == pytest.approx((there.precision_low, there.precision_high))


def test_few_rows_keep_all_their_cuts_and_thinned_curves_their_area():
    positive, scores = np.array([True, False, True, False]), np.array([4.0, 3.0, 3.0, 1.0])
    cuts = make_cuts(positive, scores)
    assert cuts.tp.tolist() == [0, 1, 2, 2]
    assert cuts.threshold.tolist()[1:] == [3.5, 2.0, 1.0]
    assert cuts.start == 1  # recall 0.5, no false alarm; the next has both at a half more
    rng = np.random.default_rng(0)
    positive = rng.random(100_000) < 0.01
    scores = rng.normal(size=100_000) + 2 * positive
    cuts = make_cuts(positive, scores)
    assert np.trapezoid(cuts.recall, cuts.fpr) == pytest.approx(roc_auc(positive, scores), abs=1e-4)


def test_the_band_is_jeffreys_interval_where_negatives_are_countless():
    rng = np.random.default_rng(0)
    positive = np.arange(100_000) < 40
    scores = np.where(positive, rng.normal(1.5, 1.0, 100_000), rng.normal(size=100_000))
    cuts = make_cuts(positive, scores, most=5000)
    band = roc_band(cuts)
    for at in (60, 100, 140):
        found = int((scores[positive] >= np.quantile(scores[~positive], 1 - band.fpr[at])).sum())
        low, high = (betaincinv(found + 0.5, 40 - found + 0.5, tail) for tail in (0.025, 0.975))
        assert band.low[at] == pytest.approx(low, abs=0.03)
        assert band.high[at] == pytest.approx(high, abs=0.03)
    perfect = make_cuts(np.arange(50) < 10, -np.arange(50.0))
    assert roc_band(perfect).low[100] < 0.85  # ten of ten found is no certainty


def test_histograms_hold_all_rows_of_a_class():
    rng = np.random.default_rng(0)
    positive, scores = rng.random(1000) < 0.2, rng.standard_cauchy(1000)
    histogram = score_histogram(positive, scores, np.ones(1000))
    assert histogram.positive.sum() == pytest.approx(1.0)
    assert histogram.negative.sum() == pytest.approx(1.0)
    same = score_histogram(np.array([True, False]), np.zeros(2), np.ones(2))
    assert np.isfinite(same.edges).all()


# --- the page


def test_the_numbers_are_those_of_the_library(model, tested):
    table = customers(500, seed=1)
    positive = (table["left"] == "yes").to_numpy()
    scores = model.scores(table)
    found = evaluate(positive, scores, model.calibrator_.predict(scores))
    page = read(tested)
    assert f"AUC {found.auc:.3f} 95 % interval {found.auc_low:.3f} to {found.auc_high:.3f}" in page.text
    assert f"{found.average_precision:.3f}" in page.text
    assert f"500 rows of later.csv, {found.positives} of them “yes”" in page.text
    assert "not the one the model was trained on" in page.text
    stops = page.stops()
    i = stops["start"]
    own = measure_threshold(positive, scores, model.threshold_.threshold)
    assert stops["threshold"][i] == pytest.approx(own.threshold, rel=1e-6)
    assert (stops["tp"][i], stops["fp"][i]) == (own.tp, own.fp)
    assert stops["precision"][i] == pytest.approx([own.precision_low, own.precision_high], abs=1e-5)
    worst = np.flatnonzero(~positive)[scores[~positive].argmax()]
    assert f"Rows of “no” with the highest scores row {worst} score {scores[worst]:.3f} " in page.text


def test_the_first_rows_and_the_mistakes_are_explained(model, tested):
    table = customers(500, seed=1)
    first = int(model.scores(table).argmax())
    (raises, lowers), *_ = model.explain(table[first : first + 1]).top(3)
    page = read(tested)
    assert page.text.count("Raises the score") == page.text.count("Lowers the score") == 18
    assert f"most important columns. row {first} score" in page.text
    for reason in raises + lowers:
        if abs(reason.by) >= 0.0005:
            assert f"{reason.fact} {reason.by:+.3f}".replace("-0.", "−0.") in page.text


def test_rows_have_their_id(model, tmp_path):
    table = customers(400, seed=1).with_columns(pl.Series("who", [f"w{i:04d}" for i in range(400)]))
    first = int(model.scores(table).argmax())
    page = read(write_report(model, table, tmp_path / "r.html", id="who"))
    assert f"most important columns. who w{first:04d} score" in page.text
    assert f"Row {first}. " in page.text
    with pytest.raises(TableError, match=r"no column 'woh', which is named as the id.*'who'"):
        write_report(model, table, tmp_path / "r.html", id="woh")
    with pytest.raises(ValueError, match="make the report with a table"):
        write_report(model, None, tmp_path / "r.html", id="who")
    own = fit_table(table, "left", preset="paper", n_landmarks=20, Cs=2)
    page = read(write_report(own, table, tmp_path / "r.html"))
    assert "most important columns. who w" in page.text  # it was dropped as an identifier
    assert "the parts are those of the final model" in page.text


def test_nothing_is_cut_off_on_a_narrow_screen_or_in_print(tested):
    """Wide tables become lists, and no rule hides a cell."""
    page = tested.read_text()
    style = page[page.index("<style>") : page.index("</style>")]
    assert "text-overflow" not in style
    hidden = re.findall(r"([^{}]*)\{[^{}]*display: none[^{}]*\}", style)
    assert [" ".join(each.split()) for each in hidden] == [
        ".columns thead",
        "nav, .buttons, #slider, .controls .hint",
    ]
    assert 'data-name="treatment"' in page
    assert "also count the scores beyond the axis" in page


def test_the_training_table_is_told_of_and_held_out_scores_are_used(model, tmp_path):
    auc = f"{model.training_['auc']:.3f}"
    page = read(write_report(model, customers(), tmp_path / "r.html"))
    assert "This is the table the model was trained on." in page.text
    assert f"AUC {auc} 95 % interval" in page.text
    assert "Most confident mistakes" in page.text
    page = read(write_report(model, None, tmp_path / "r.html"))
    assert "made without a table" in page.text
    assert f"AUC {auc} 95 % interval" in page.text
    assert "Most confident mistakes" not in page.text
    assert "over the model's landmarks" in page.text


def test_importance_by_landmarks_is_near_that_by_rows_and_adds_up_by_column(model):
    table = customers()
    by_rows, by_landmarks = mean_squared_gradient(model, table), mean_squared_gradient(model)
    assert by_rows.names == ["age", EVIL_NAME, "plan", "income"]
    assert by_rows.share == pytest.approx(by_landmarks.share, abs=0.15)
    alone = mean_squared_gradient(model.model_, model.features(table))
    of_plan = [i for i, name in enumerate(model.feature_names_) if name.startswith("plan")]
    assert by_rows.value[2] == pytest.approx(alone.value[of_plan].sum())


def test_permutation_of_a_table_shuffles_all_that_is_made_of_a_column(model):
    table = customers(400, seed=2)
    found = permutation_importance(model, table, table["left"], n_repeats=10, random_state=0)
    positive, rng = (table["left"] == "yes").to_numpy(), np.random.default_rng(0)
    base = roc_auc(positive, model.decision_function(table))
    for i, name in enumerate(found.names):
        losses = []
        for _ in range(10):
            shuffled = table.with_columns(table[name].gather(rng.permutation(400)))
            losses.append(base - roc_auc(positive, model.decision_function(shuffled)))
        error = np.hypot(found.standard_error[i], np.std(losses, ddof=1) / np.sqrt(10))
        assert abs(found.value[i] - np.mean(losses)) < 5 * error + 1e-9


def test_nothing_of_the_users_becomes_markup(tested):
    page = read(tested)
    scripts = [attrs for tag, attrs in page.tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "stops"}, {}]
    assert not [attrs for _, attrs in page.tags if any(name.startswith("on") for name in attrs)]
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert EVIL in page.text
    assert re.sub(r"\s+", " ", EVIL_NAME) in page.text  # with its braces: no template of ours
    assert "49" not in re.findall(r"\{\{.*?\}\}|49 \*", page.text)


def test_hostile_labels_and_file_names_are_text_as_well(tmp_path):
    table = (
        customers(300)
        .with_columns(left=pl.col("left").replace("yes", EVIL))
        .rename({"left": EVIL_NAME * 2})
    )
    model = fit_table(table, EVIL_NAME * 2, preset="paper", n_landmarks=20, Cs=3)
    page = read(write_report(model, table, tmp_path / "r.html"))
    assert len([tag for tag, _ in page.tags if tag == "script"]) == 2
    assert not [attrs for _, attrs in page.tags if any(name.startswith("on") for name in attrs)]
    assert f"“{EVIL}”" in page.text


def test_the_file_stands_alone_and_is_in_order(tested):
    page = read(tested)
    assert not re.search(r'(src|href)="(?!#|data:)', page.rawdata)
    assert "@import" not in page.rawdata
    policy = [attrs["content"] for _, attrs in page.tags if "http-equiv" in attrs]
    assert re.fullmatch(r"default-src 'none'; .*; script-src 'sha256-[\w+/=]{44}'", policy[0])
    assert set(re.findall(r"https?://[^\s\"'<]+", page.rawdata)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert ("html", {"lang": "en"}) in page.tags
    images = [attrs for _, attrs in page.tags if attrs.get("role") == "img"]
    assert len(images) == 9
    assert all(len(attrs["aria-label"]) > 20 for attrs in images)
    # Nothing that is drawn keeps a colour the page cannot change, but for the further lines of a path.
    assert "#1463a5" not in re.sub(r"<style>.*?</style>", "", page.rawdata, flags=re.DOTALL)


def test_many_rows_make_no_large_file_and_few_positives_are_not_lost_among_them(model, tmp_path):
    table = customers(60_000, seed=3)
    rare = table.with_columns(
        left=pl.when(pl.int_range(60_000) % 4000 == 7).then(pl.lit("yes")).otherwise(pl.lit("no"))
    )
    path = write_report(model, rare, tmp_path / "r.html", max_rows=200, permutation=True)
    assert "There are only 15 rows of “yes”" in read(path).text
    assert path.stat().st_size < 600_000
    assert len(read(path).stops()["threshold"]) <= 1000


def test_the_same_input_gives_the_same_file(model, tested, tmp_path):
    again = write_report(model, tested.with_name("later.csv"), tmp_path / "r.html", permutation=True)
    assert again.read_bytes() == tested.read_bytes()


@pytest.mark.parametrize("score", [-50.0, 50.0])
def test_equal_scores_with_the_threshold_beyond_them_still_make_a_report(
    model, tmp_path, monkeypatch, score
):
    monkeypatch.setattr(type(model), "scores", lambda _, X: np.full(len(X), score))
    page = read(write_report(model, customers(100, seed=4), tmp_path / "r.html", max_rows=20))
    assert "AUC 0.500 95 % interval" in page.text
    assert len(page.stops()["threshold"]) == 2


def test_weights_numbers_as_labels_other_solvers_and_few_rows(tmp_path):
    rng = np.random.default_rng(0)
    table = customers(300).with_columns(
        left=(pl.col("left") == "yes").cast(pl.Int64), weight=pl.Series(rng.uniform(0.5, 2.0, 300))
    )
    model = fit_table(
        table,
        "left",
        weight="weight",
        n_landmarks=20,
        solver="sgd",
        Cs=2,
        aim="cost=4",
        calibration="isotonic",
    )
    page = read(write_report(model, table, tmp_path / "r.html"))
    assert "weighted; no interval" in page.text
    assert "Rows are weighted." in page.text
    assert "the cheapest when it was chosen, if a missed positive costs 4 false alarms" in page.text
    assert page.stops()["ratio"] == 4.0
    few = customers(40, seed=5).with_columns(left=pl.Series(np.arange(40) < 12).cast(pl.Int64))
    page = read(write_report(model, few.with_columns(weight=pl.lit(1.0)), tmp_path / "r.html"))
    assert "There are only 12 rows of “1”" in page.text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.drop("left"), "no column 'left'"),
        (lambda t: t.drop("age"), "no column 'age'"),
        (lambda t: t.with_columns(left=pl.lit("yes")), "100 rows of 'yes' and 0 of 'no'"),
        (lambda t: t.with_columns(left=pl.col("left").replace("no", "maybe")), "is 'maybe' in row"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_and_nothing_is_overwritten(model, tmp_path, change, said):
    path = tmp_path / "r.html"
    path.write_text("mine")
    with pytest.raises(TableError, match=said):
        write_report(model, change(customers(100)), path)
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_and_other_mistakes_are_said(model, tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        write_report(model, None, tmp_path / "none" / "r.html")
    with pytest.raises(ValueError, match="max_rows must be a whole number of at least 1"):
        write_report(model, None, tmp_path / "r.html", max_rows=0)


# --- in a browser


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("there is no chromium on this machine")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def opened(browser, tested):
    """A page from disk; what it complained of, or asked the network for, fails the test."""
    contexts = []

    def opening(width=1200, **settings):
        context = browser.new_context(viewport={"width": width, "height": 900}, **settings)
        page = context.new_page()
        bad = []
        page.on("console", lambda message: bad.append(message.text))
        page.on("pageerror", lambda error: bad.append(str(error)))
        page.on("dialog", lambda dialog: bad.append(dialog.message))
        page.on(
            "request", lambda r: bad.append(r.url) if not r.url.startswith(("file:", "data:")) else None
        )
        contexts.append((context, bad))
        page.goto(tested.as_uri())
        return page

    yield opening
    for context, bad in contexts:
        context.close()
        assert bad == []


def shown(page, key):
    return page.locator(f"#out-{key}").inner_text().replace("\u00a0", " ")


def check_numbers(page, positive, scores, stops):
    """All that the page shows at its present stop, against Python's."""
    threshold = stops["threshold"][int(page.locator("#slider").input_value())]
    there = measure_threshold(positive, scores, threshold)
    for key in ("tp", "fp", "fn", "tn"):
        assert shown(page, key) == f"{getattr(there, key):,.0f}"
    for key in ("precision", "recall", "fpr"):
        value, low, high = (getattr(there, key + end) for end in ("", "_low", "_high"))
        if np.isnan(value):
            assert shown(page, key) == "–"
            continue
        assert float(shown(page, key).removesuffix(" %")) == pytest.approx(100 * value, abs=0.0501)
        ends = re.findall(r"[\d.]+", shown(page, f"{key}-range"))
        assert [float(end) for end in ends] == pytest.approx([100 * low, 100 * high], abs=0.06)
    ratio = float(page.locator("#ratio").input_value())
    assert float(shown(page, "cost").replace(",", "")) == pytest.approx(there.cost(ratio), abs=0.51)
    return there


def test_the_slider_shows_what_python_counts(model, tested, opened):
    table = customers(500, seed=1)
    positive, scores = (table["left"] == "yes").to_numpy(), model.scores(table)
    page, stops = opened(), read(tested).stops()
    slider = page.locator("#slider")
    at = stops["start"]
    assert int(slider.input_value()) == at
    own = check_numbers(page, positive, scores, stops)
    assert own.tp == measure_threshold(positive, scores, model.threshold_.threshold).tp
    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert int(slider.input_value()) == at + 5
    check_numbers(page, positive, scores, stops)
    for key, tp in (("Home", positive.sum()), ("End", 0)):
        page.keyboard.press(key)
        assert check_numbers(page, positive, scores, stops).tp == tp
    assert "No row is labelled positive" in page.locator("#summary").inner_text()
    for value in (3, 77, 200):
        slider.fill(str(value))
        check_numbers(page, positive, scores, stops)
        assert f"score {stops['threshold'][value]:.{stops['places']}f}" in slider.get_attribute(
            "aria-valuetext"
        )
    page.locator("#ratio").fill("3")
    page.locator("#to-cheapest").click()
    cheapest = check_numbers(page, positive, scores, stops).cost(3)
    cuts = [measure_threshold(positive, scores, t).cost(3) for t in stops["threshold"]]
    assert cheapest == min(cuts)
    page.locator("#to-model").click()
    assert int(slider.input_value()) == at


def test_markers_lie_on_their_curves(tested, opened):
    page, stops = opened(), read(tested).stops()
    i = stops["start"]
    recall, fpr = stops["tp"][i] / stops["positives"], stops["fp"][i] / stops["negatives"]
    plot = page.locator("#figure-roc .plot")
    left, top, right, bottom = (float(x) for x in plot.get_attribute("data-box").split())
    marker = plot.locator(".marker")
    assert float(marker.get_attribute("cx")) == pytest.approx(left + fpr * (right - left), abs=0.1)
    place = bottom - recall / 1.02 * (bottom - top)
    assert float(marker.get_attribute("cy")) == pytest.approx(place, abs=0.1)
    # The curve itself, where the browser has drawn it, passes through the middle of the marker.
    assert page.locator(".marker").count() == 5
    assert page.locator("#figure-roc svg").bounding_box()["width"] > 400


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_phone_needs_no_sideways_scroll(opened, width):
    page = opened(width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#slider").bounding_box()["width"] > 0.6 * min(width, 560)


def test_dark_and_printed_pages_change_their_colours(opened):
    page = opened(color_scheme="dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(colour) == "rgb(18, 24, 30)"
    page.emulate_media(media="print")
    assert page.evaluate(colour) == "rgb(255, 255, 255)"
    assert not page.locator("#slider").is_visible()
    assert page.locator(".confusion").is_visible()


def test_without_scripts_the_page_still_has_its_numbers(model, opened):
    page = opened(java_script_enabled=False)
    assert shown(page, "recall").endswith(" %")
    assert page.locator("#figure-roc svg").is_visible()
