"""Result rows become tables, figure and claims as worked out by hand."""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from aucmax.paper import published, results
from aucmax.paper.claims import MOST, claims
from aucmax.paper.figure import figure1, seconds_per_epoch
from aucmax.paper.result_tables import TABLES
from aucmax.paper.results import (
    QUICK_WARNING,
    difference,
    mean_ranks,
    paired_means,
    seeds_of,
    show_auc,
    show_seconds,
    signed,
    signed_rank,
)
from aucmax.paper.store import protocol_of
from aucmax.paper.text_table import Entry, Table, html_page
from aucmax.paper.write_results import gaps, page, write_report

table1, table2, table3, table4 = TABLES.values()


def row(experiment, data, method="", seed=0, auc=None, learning=1.0, embedding=0.0, **more):
    """A result row; auc in percent."""
    out = {
        "experiment": experiment,
        "data": data,
        "method": method,
        "seed": seed,
        "status": "done",
        "reason": "",
        "note": "",
        "quick": False,
        "landmarks": 1600,
        "protocol": protocol_of(method),
        "learning_seconds": learning,
        "embedding_seconds": embedding,
        "versions": {"aucmax": "1.0"},
        "machine": {"cores": 2},
    }
    if auc is not None:
        out |= {"auc": auc / 100, "auc_low": auc / 100 - 0.001, "auc_high": auc / 100 + 0.001}
    return out | more


def stopped(experiment, data, method, seed=0, reason="over the limit of 600 s", status="stopped"):
    out = row(experiment, data, method, seed, status=status, reason=reason)
    return {key: value for key, value in out.items() if not key.endswith("_seconds")}


def curve(data, method, aucs, seed=0, pace=2.0, **more):
    """A row of the epoch experiment; aucs in percent by number of epochs."""
    points = [{"epochs": n, "auc": value / 100, "seconds": pace * n} for n, value in aucs.items()]
    if method == "NSAUC":  # the last iterate is a little lower
        points = [point | {"last_auc": point["auc"] - 0.003} for point in points]
    return row("epochs", data, method, seed, max(aucs.values()), curve=points, **more)


def cell_of(table, data, heading, nth=0):
    found = [k for k, line in enumerate(table.body) if line[0].ours == data]
    return table.body[found[0] + nth][table.headings.index(heading)]


def the_papers_own():
    """Rows that say what the paper says."""
    rows = [row("data", data, **values) for data, values in published.TABLE1.items()]
    for experiment, aucs, times in (
        ("batch", published.TABLE2, published.TABLE3),
        ("stochastic", published.TABLE4_AUC, published.TABLE4_SECONDS),
    ):
        for data, by_method in aucs.items():
            for method, auc in by_method.items():
                if auc is not None:
                    rows.append(row(experiment, data, method, 0, auc, times[data][method]))
    for data in published.LARGE_DATASETS:
        top = published.TABLE4_AUC[data]
        rows.append(curve(data, "NSAUC", dict.fromkeys(published.EPOCHS, top["NSAUC"])))
        rows.append(curve(data, "NSVMSGD2", dict.fromkeys(published.EPOCHS, top["NSAUC"] - 0.3)))
        rows.append(curve(data, "NSOLAM", dict.fromkeys(published.EPOCHS, top["NSOLAM"])))
    return rows


# What the paper printed


def test_transcription():
    assert published.TABLE1["covtype"] == {
        "n_train": 464809,
        "n_test": 116203,
        "n_features": 54,
        "ratio": 10.65,
    }
    assert published.TABLE2["protein"]["RFAUC"] == 58.43
    assert published.TABLE2["skin"]["RFAUC"] == 100.0
    assert published.TABLE2["connect-4"]["RBF-RankSVM"] is None
    assert published.TABLE3["acoustic"]["RBF-RankSVM"] == 134030
    assert published.TABLE3["covtype"]["NBAUC"] == 220.90
    assert published.TABLE4_AUC["connect-4"] == {
        "NOAM": 85.96,
        "NSOLAM": 90.60,
        "NSAUC": 94.04,
        "NBAUC": 94.08,
    }
    assert published.TABLE4_SECONDS["covtype"]["NBAUC"] == 1110.44
    assert published.EPOCHS == (1, 2, 3, 4, 5, 10, 20, 50, 100, 200, 300, 400)


def test_published_tables_agree_on_names():
    for table in (published.TABLE1, published.TABLE2, published.TABLE3):
        assert tuple(table) == published.DATASETS
    for table in (published.TABLE4_AUC, published.TABLE4_SECONDS):
        assert tuple(table) == published.LARGE_DATASETS
    assert set(published.LARGE_DATASETS) < set(published.DATASETS)
    for data in published.DATASETS:  # a dash in one is a dash in the other
        for method in published.BATCH_METHODS:
            assert (published.TABLE2[data][method] is None) == (published.TABLE3[data][method] is None)


def test_names_are_those_of_the_methods():
    from aucmax.paper.methods import METHODS

    named = {*published.BATCH_METHODS, *published.STOCHASTIC_METHODS, *published.EPOCH_METHODS}
    assert named == set(METHODS)


# Numbers


def test_mean_spread_and_difference_by_hand():
    rows = [row("batch", "spambase", "NBAUC", k, auc) for k, auc in enumerate((98.0, 98.2, 98.7))]
    cell = cell_of(table2(rows), "spambase", "NBAUC")
    assert cell == Entry("98.30 ± 0.36", "98.04, +0.26", best=True)
    assert cell_of(table2(rows), "spambase", "seeds").ours == "3"
    assert cell_of(table2(rows[:1]), "spambase", "NBAUC").ours == "98.00"


def test_training_time_has_the_embedding_and_learning_time_has_not():
    rows = [
        row("batch", "ijcnn1", "NBAUC", learning=10.0, embedding=2.5, auc=99),
        row("stochastic", "ijcnn1", "NSAUC", learning=10.0, embedding=2.5, auc=99),
    ]
    assert cell_of(table3(rows), "ijcnn1", "NBAUC") == Entry("12.50", "88.87, −76.37", best=True)
    assert cell_of(table4(rows), "ijcnn1", "NSAUC", 1) == Entry("10.00", "4.80, +5.20", best=True)
    assert cell_of(table4(rows), "ijcnn1", "NSAUC").ours == "99.00"


def test_numbers_are_shown_alike():
    assert show_seconds(999.99) == "999.99"
    assert show_seconds(999.996) == "1,000"
    assert show_seconds(134030) == "134,030"
    assert signed(-0.001, show_auc) == "0.00"
    assert signed(-0.5, show_auc) == "−0.50"
    assert difference(98.214, 98.04, show_auc) == pytest.approx(0.17)


def test_best_is_bold_largest_auc_shortest_time_and_ties():
    rows = [
        row("batch", "usps", "NBAUC", auc=99.001, learning=3.0),
        row("batch", "usps", "RFAUC", auc=99.003, learning=2.0),
        row("batch", "usps", "Linear RankSVM", auc=90, learning=1.0),
    ]
    assert [cell.best for cell in table2(rows).body[1]] == [False] * 5 + [True, True]
    assert [cell.best for cell in table3(rows).body[1]] == [False] * 4 + [True, False, False]


def test_mean_ranks_by_hand():
    aucs = {
        "spambase": (98, 97, 96),
        "usps": (99, 99, 90),
        "magic04": (90, 92, 91),
        "skin": (99, None, 98),
    }
    rows = [
        row("batch", data, method, auc=auc)
        for data, values in aucs.items()
        for method, auc in zip(("NBAUC", "RFAUC", "Linear RankSVM"), values, strict=True)
        if auc is not None
    ]
    ranks, shared = mean_ranks(rows, "batch")
    assert shared == 3  # skin lacks RFAUC
    assert ranks == pytest.approx(
        {"NBAUC": (1 + 1.5 + 3) / 3, "RFAUC": (2 + 1.5 + 1) / 3, "Linear RankSVM": (3 + 3 + 2) / 3}
    )
    first, second = table2(rows).summary
    assert first[0] == Entry("mean rank by AUC", "3 data sets")
    assert [cell.ours for cell in first[2:]] == ["–", "–", "2.67", "1.50", "1.83"]
    assert [cell.best for cell in first[2:]] == [False, False, False, True, False]
    assert second[-1] == Entry()
    assert second[4] == Entry("too few to test", "above on 3 of 4")


def test_signed_rank_against_its_definition():
    gains = (1.0, 2.0, 3.0, 4.0, -0.5, 5.0)
    rows = []
    for data, gain in zip(published.LARGE_DATASETS, gains, strict=True):
        rows += [
            row("stochastic", data, "NSAUC", auc=90 + gain),
            row("stochastic", data, "NOAM", auc=90),
        ]
    p, above, of = signed_rank(rows, "stochastic", "NSAUC", "NOAM")
    # The least rank is negative: of 64 sign patterns two have a sum of ranks of 0 or 1 at each end.
    assert (p, above, of) == (pytest.approx(4 / 64), 5, 6)
    assert table4(rows).summary[1][3] == Entry("p = 0.062", "above on 5 of 6")
    same = [each | {"auc": 0.9} for each in rows]
    assert signed_rank(same, "stochastic", "NSAUC", "NOAM") == (1.0, 0, 6)


# Cells without a number, and notes


def test_not_run_no_data_and_stopped():
    rows = [
        row("data", "acoustic", status="failed", reason="acoustic_scale is not in the folder"),
        stopped("batch", "covtype", "RBF-RankSVM"),
        stopped("batch", "covtype", "RFAUC", reason="out of memory", status="failed"),
    ]
    table = table2(rows)
    assert cell_of(table, "spambase", "NBAUC") == Entry("not run", "98.04")
    assert cell_of(table, "connect-4", "RBF-RankSVM") == Entry("not run", "–")
    assert cell_of(table, "acoustic", "NBAUC").ours == "no data"
    halted = cell_of(table, "covtype", "RBF-RankSVM")
    assert (halted.ours, halted.beneath) == ("–", "93.94")
    assert halted.notes == ("Stopped: over the limit of 600 s.",)
    failed = cell_of(table, "covtype", "RFAUC")
    assert failed.notes == ("Failed: out of memory.",)
    name = cell_of(table, "acoustic", "data")
    assert name.notes == ("No data: acoustic_scale is not in the folder.",)
    assert cell_of(table1(rows), "acoustic", "features") == Entry("no data", "50")


def test_a_cell_with_fewer_seeds_says_so():
    rows = [row("batch", "usps", "NBAUC", seed, 99) for seed in range(3)]
    rows += [row("batch", "usps", "RFAUC", 0, 97), stopped("batch", "usps", "RFAUC", 1)]
    rows += [row("batch", "usps", "Linear RankSVM", seed, 90) for seed in range(2)]
    table = table2(rows)
    partly, fewer = cell_of(table, "usps", "RFAUC"), cell_of(table, "usps", "Linear RankSVM")
    assert partly.notes == ("1 seed only; the others stopped: over the limit of 600 s.",)
    assert fewer.notes == ("2 seeds only.",)


def test_notes_are_on_the_name_or_the_cell_once():
    split, tuned = "random 80/20, for lack of cod-rna.r", "C and gamma chosen on 3,000 rows"
    rows = [row("data", "cod-rna", note=split, n_train=1, n_test=1, n_features=8, ratio=2)]
    for experiment in ("batch", "stochastic"):
        rows += [
            row(experiment, "cod-rna", method, auc=99, note=split) for method in ("NBAUC", "NSAUC")
        ]
    rows.append(row("batch", "cod-rna", "RBF-RankSVM", auc=99, note=f"{split}; {tuned}"))
    rows.append(row("batch", "usps", "RBF-RankSVM", auc=99, note=tuned))
    for make in TABLES.values():
        table = make(rows)
        notes = cell_of(table, "cod-rna", "data").notes
        assert notes == ("Random 80/20, for lack of cod-rna.r.",)
        assert len(set(table.footnotes.values())) == len(table.footnotes)
        for form in (table.markdown(), table.latex(), table.html()):
            assert "for lack of cod-rna.r" in form
    table = table2(rows)
    assert cell_of(table, "usps", "data").notes == ()
    same = cell_of(table, "usps", "RBF-RankSVM").notes
    assert same == cell_of(table, "cod-rna", "RBF-RankSVM").notes
    assert list(table.footnotes.values()) == ["a", "b"]
    assert table.footnotes[same[0]] == "a"  # letters in reading order
    # Without a row of the data, a note that all cells of a row share goes to the name.
    assert cell_of(table2(rows[1:]), "cod-rna", "data").notes
    assert cell_of(table2(rows[1:]), "cod-rna", "NBAUC").notes == ()


def test_more_than_26_notes_have_letters():
    rows = [
        row("batch", data, method, auc=90, note=f"note of {data} and {method}")
        for data in published.DATASETS
        for method in published.BATCH_METHODS
    ]
    letters = list(table2(rows).footnotes.values())
    assert len(set(letters)) == 50
    assert letters[24:28] == ["y", "z", "aa", "ab"]


def test_quick_is_said_and_never_mixed_in():
    quick = row("batch", "usps", "NBAUC", 1, 50, quick=True)
    assert QUICK_WARNING in table2([quick]).caption
    assert QUICK_WARNING in table2([quick]).markdown()
    assert QUICK_WARNING in page([quick])
    full = row("batch", "usps", "NBAUC", 0, 99)
    assert QUICK_WARNING not in table2([quick, full]).caption
    assert cell_of(table2([quick, full]), "usps", "NBAUC").ours == "99.00"
    both = table2([row("batch", "skin", "NBAUC", 0, 99), quick])
    assert QUICK_WARNING in both.caption
    assert cell_of(both, "usps", "NBAUC").notes == (f"{QUICK_WARNING}.",)
    assert cell_of(both, "skin", "NBAUC").notes == ()


def test_one_number_of_landmarks_a_cell_and_the_last_row_of_a_seed():
    rows = [
        row("batch", "usps", "NBAUC", 0, 98),
        row("batch", "usps", "NBAUC", 0, 99),
        row("batch", "usps", "NBAUC", 1, 90, landmarks=200),
    ]
    assert [each["auc"] for each in seeds_of(rows, "batch", "usps", "NBAUC")] == [0.99]
    assert "landmarks" not in table2(rows).caption
    assert "With 200 landmarks; the paper has 1,600." in table2(rows[2:]).caption


# Forms


LIMIT = "over_all\nlimit & 5 < 6"
NASTY = Table(
    "table9",
    "Table 9. a_b & c < d | 50 % {x} \\ ~^ #$",
    ("data_set", "x & y"),
    ((Entry("a_b|c", "<i>−1</i>", True, (LIMIT, "100 %")), Entry("1 ± 2", notes=(LIMIT,))),),
    ((Entry("sum"), Entry("[*3*]")),),
    ("read & <weep>",),
)


def test_markdown_escapes_and_keeps_its_columns():
    text = NASTY.markdown()
    assert "a\\_b &amp; c &lt; d" in text
    assert "**a\\_b\\|c**<sup>a,b</sup><br>&lt;i&gt;−1&lt;/i&gt;" in text
    assert "<sup>a</sup> over\\_all limit &amp; 5 &lt; 6" in text
    assert "\\[\\*3\\*\\]" in text
    lines = [line for line in text.split("\n") if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {3}


@pytest.mark.parametrize("rows", [[], the_papers_own()], ids=["empty", "full"])
def test_every_form_of_every_table(rows):
    for make in TABLES.values():
        table = make(rows)
        assert {len(line) for line in (*table.body, *table.summary)} == {len(table.headings)}
        _check_latex(table.latex(), len(table.headings))
        _Balanced().check(table.html())
        assert table.markdown().count("\n| ") > len(table.body)
    _check_latex(NASTY.latex(), 2)
    _Balanced().check(html_page([make(rows) for make in TABLES.values()] + [NASTY], title="a < b"))


def _check_latex(text, columns):
    begun = re.findall(r"\\(begin|end)\{(\w+)\}", text)
    assert begun == [("begin", "table"), ("begin", "tabular"), ("end", "tabular"), ("end", "table")]
    bare = re.sub(r"\\[\\{}$%&#_]", "", "\n".join(text.split("\n")[1:]))
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert not set("<>%#_~^|±−–") & set(bare) - {"|"}
    assert text.index(r"\toprule") < text.index(r"\midrule") < text.index(r"\bottomrule")
    for line in text.split("\n"):
        if line.endswith(r" \\"):
            assert len(re.findall(r"(?<!\\)&", line)) == columns - 1


def test_latex_numbers_its_own_tables():
    assert "Table 9" not in NASTY.latex()
    assert r"\caption{a\_b \& c \textless{} d" in NASTY.latex()
    assert r"\textbf{a\_b|c}\textsuperscript{a,b}" in NASTY.latex()


class _Balanced(HTMLParser):
    """Every tag closed in its turn."""

    def check(self, text):
        self.open = []
        self.feed(text)
        self.close()
        assert self.open == []
        assert "a_b & c" not in text
        assert "<weep>" not in text
        assert "<i>" not in text

    def handle_starttag(self, tag, attrs):
        if tag not in ("br", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_terminal_shows_all_of_it_without_reading_markup():
    from rich.console import Console

    console = Console(width=120, file=None, record=True, quiet=False)
    with console.capture() as caught:
        console.print(NASTY.rich())
        console.print(table2(the_papers_own()).rich())
    text = caught.get()
    assert "a_b|c[a,b]" in text
    assert "[*3*]" in text
    assert "98.04, 0.00" in text


# Figure


def test_seconds_per_epoch_by_hand():
    points = [(1, 3.0), (2, 5.0), (10, 21.0)]
    line = [{"epochs": n, "auc": 0.9, "seconds": seconds} for n, seconds in points]
    mean, spread = seconds_per_epoch([line])  # 3, 2 and 2 seconds
    assert mean == pytest.approx(7 / 3)
    assert spread == pytest.approx((1 / 3) ** 0.5)
    assert seconds_per_epoch([]) is None


@pytest.fixture
def figure_rows():
    rows = [row("data", "acoustic", status="failed", reason="not there")]
    for seed in range(2):
        for method in published.EPOCH_METHODS:
            rows.append(curve("ijcnn1", method, {1: 98.0 + seed, 10: 99.0, 400: 99.5}, seed))
            rows.append(curve("cod-rna", method, {1: 98.0, 400: 99.0}, seed, note="costs $5 _ & <x>"))
    return rows


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_figure_is_written_and_the_same_each_time(figure_rows, tmp_path, suffix):
    path = figure1(figure_rows, tmp_path / f"figure1.{suffix}")
    first = path.read_bytes()
    assert first.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix])
    assert figure1(figure_rows, path).read_bytes() == first
    assert [file.name for file in tmp_path.iterdir()] == [f"figure1.{suffix}"]


def test_the_legend_stays_inside_its_panel(figure_rows, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from aucmax.paper import figure as module

    monkeypatch.setattr(module, "_seconds", lambda mean, spread: "0.028 ± 0.001")
    with matplotlib.rc_context({"font.size": 8}):
        figure = module._draw(figure_rows, Figure(dpi=200))  # as in the file
        canvas = FigureCanvasAgg(figure)
        canvas.draw()  # which places the legend
        legend = figure.axes[0].get_legend().get_window_extent(canvas.get_renderer())
    panel = figure.axes[0].bbox
    assert panel.x0 <= legend.x0 < legend.x1 <= panel.x1


def test_figure_says_what_it_shows(figure_rows):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    from aucmax.paper.figure import _draw

    figure = _draw(figure_rows, Figure())
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [
        "(a) ijcnn1", "(b) connect-4", "(c) acoustic", "(d) skin", "(e) cod-rna*", "(f) covtype",
    ]  # fmt: skip
    assert [text.get_text() for text in figure.axes[1].texts] == ["not run"]
    assert [text.get_text() for text in figure.axes[2].texts] == ["no data"]
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    lines = ("NSAUC", "NSVMSGD2", "NSVMSGD2, own λ", "NSOLAM")
    assert legend == [f"{line} (2.00 ± 0.00 s)" for line in lines]
    assert list(figure.axes[0].lines[0].get_ydata()) == pytest.approx([98.5, 99.0, 99.5])
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["1", "10", "100", "400"]
    under = " ".join(figure.texts[0].get_text().split())
    assert "learning seconds per epoch without the embedding" in under
    assert "* cod-rna: costs $5 _ & <x>." in under
    assert QUICK_WARNING not in under


def test_a_failed_figure_leaves_the_old_one(figure_rows, tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    path = tmp_path / "figure1.png"
    path.write_bytes(b"old")

    def half(self, file, **_):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(Figure, "savefig", half)
    with pytest.raises(OSError, match="disk full"):
        figure1(figure_rows, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_figure_errors_teach(figure_rows, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"\.png, \.svg or \.pdf, not 'figure1\.gif'"):
        figure1(figure_rows, tmp_path / "figure1.gif")
    with pytest.raises(FileNotFoundError, match="make it first"):
        figure1(figure_rows, tmp_path / "none" / "figure1.png")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ValueError, match=r'pip install .*"matplotlib>='):
        figure1(figure_rows, tmp_path / "figure1.png")


# Claims


def verdicts(rows):
    return {number: claim.verdict for number, claim in enumerate(claims(rows), start=1)}


def test_no_rows_test_no_claim():
    assert set(verdicts([]).values()) == {"not tested"}
    assert len(verdicts([])) == 16


def test_the_papers_own_numbers_confirm_it():
    assert set(verdicts(the_papers_own()).values()) == {"confirmed"}


def test_claims_carry_the_papers_numbers():
    found = {number: claim.evidence for number, claim in enumerate(claims(the_papers_own()), start=1)}
    assert "At or above on 8 of 9 data sets" in found[1]
    assert "below on ijcnn1 −0.11" in found[1]
    assert "NBAUC is faster on 8 of 9 data sets" in found[4]
    assert "0.4 (spambase) to 883 (acoustic)" in found[4]
    assert "better on 7, worse on 0 and equal (within 0.05 points) on 3 of 10" in found[6]
    assert "spambase (RBF-RankSVM +0.53, RBF-RankSVM (subsample) −1.45)" in found[7]
    assert "lowest on covtype" in found[8]
    assert "22.6 (covtype)" in found[8]
    assert "72 of 72 points" in found[12]


def _all(rows, experiment, method, **changes):
    """The rows with every result of a method changed."""
    return [
        each | {key: change(each) for key, change in changes.items()}
        if (each["experiment"], each["method"]) == (experiment, method)
        else each
        for each in rows
    ]


def _bend(shift, what="auc"):
    """Curves moved by a function of the epochs, in points."""
    return lambda each: [
        point | {what: point[what] + shift(point["epochs"]) / 100} for point in each["curve"]
    ]


REFUTED = {
    1: ("batch", "RBF-RankSVM", {"auc": lambda _: 0.999}),
    2: ("batch", "RFAUC", {"auc": lambda _: 0.9999}),
    3: ("batch", "Linear RankSVM", {"auc": lambda _: 0.9999}),
    4: ("batch", "NBAUC", {"learning_seconds": lambda _: 1e6}),
    5: ("batch", "Linear RankSVM", {"learning_seconds": lambda _: 1e6}),
    6: ("batch", "RFAUC", {"auc": lambda _: 0.9999}),
    7: ("batch", "Linear RankSVM", {"auc": lambda each: 0.5 if each["data"] == "protein" else 0.9999}),
    8: ("stochastic", "NSAUC", {"learning_seconds": lambda _: 1e6}),
    9: ("stochastic", "NSOLAM", {"auc": lambda _: 0.9999}),
    10: ("stochastic", "NSAUC", {"learning_seconds": lambda _: 1e6}),
    11: ("stochastic", "NOAM", {"auc": lambda _: 0.9999}),
    12: ("epochs", "NSAUC", {"curve": _bend(lambda _: 0.6, "last_auc")}),
    13: ("epochs", "NSAUC", {"curve": _bend(lambda epochs: 1e3 * epochs, "seconds")}),
    14: ("epochs", "NSAUC", {"curve": _bend(lambda _: -1.0)}),
    15: ("epochs", "NSAUC", {"curve": _bend(lambda epochs: -1.0 if epochs == 20 else 0.0)}),
    16: ("epochs", "NSOLAM", {"curve": _bend(lambda epochs: 0.0 if epochs < 400 else 0.6)}),
}


@pytest.mark.parametrize("number", REFUTED)
def test_each_claim_can_fail(number):
    experiment, method, changes = REFUTED[number]
    rows = _all(the_papers_own(), experiment, method, **changes)
    if number == 9:
        rows = _all(rows, experiment, "NOAM", **changes)
    assert verdicts(rows)[number] == "not confirmed"


def test_a_claim_can_be_mixed():
    # NOAM wins on three of six: more than a fifth, not more than half.
    rows = _all(
        the_papers_own(),
        "stochastic",
        "NOAM",
        auc=lambda each: 0.9999 if each["data"] in ("ijcnn1", "skin", "covtype") else each["auc"],
    )
    assert MOST > 0.5
    assert verdicts(rows)[11] == "mixed"


def test_equal_methods_do_not_show_that_averaging_helps():
    rows = _all(the_papers_own(), "epochs", "NSAUC", curve=_bend(lambda _: 0.3, "last_auc"))
    assert verdicts(rows)[12] == "not confirmed"


def test_a_stopped_kernel_machine_counts_as_taking_at_least_its_limit():
    rows = [
        row("batch", "skin", "NBAUC", auc=99) | {"learning_seconds": 9.0, "embedding_seconds": 1.0},
        stopped("batch", "skin", "RBF-RankSVM") | {"time_limit": 900.0},
    ]
    claim = claims(rows)[3]
    assert claim.verdict == "confirmed"
    assert "90.0 (skin)" in claim.evidence
    assert "Stopped at its limit, so at least: skin." in claim.evidence


def test_a_verdict_without_the_data_that_stand_in():
    rows = [
        row("batch", data, "NBAUC", auc=auc) | {"substitute": data == "protein"}
        for data, auc in (("usps", 98.0), ("protein", 90.0))
    ]
    rows.append(row("batch", "usps", "RFAUC", auc=97.0))
    rows.append(row("batch", "protein", "RFAUC", auc=95.0) | {"substitute": True})
    claim = claims(rows)[1]
    assert (claim.verdict, claim.own) == ("mixed", "confirmed")


def test_a_cell_of_an_earlier_protocol_is_used_until_it_is_run_again():
    old = row("batch", "usps", "NBAUC", auc=98.0) | {"protocol": None}
    new = row("batch", "usps", "NBAUC", auc=99.0)
    assert results.notes_of(*results.seeds_of([old], "batch", "usps", "NBAUC")) == [
        "run with an earlier version of the protocol"
    ]
    assert results.seeds_of([new, old], "batch", "usps", "NBAUC") == [new]
    assert "NBAUC (Tables 2 and 3): usps +1.00." in page([old, new])


def test_gaps_by_hand():
    rows = [
        row("batch", "usps", "NBAUC", auc=98.74),  # 99.24 in the paper
        row("batch", "skin", "NBAUC", auc=99.0),  # 99.98
        row("stochastic", "covtype", "NSAUC", auc=96.6),  # 96.00
    ]
    found = {(gap.table, gap.method, gap.data): gap for gap in gaps(rows)}
    assert len(found) == 10 * 5 + 6 * 4
    edge = found["Table 2", "NBAUC", "usps"]
    assert (edge.points, edge.verdict) == (-0.5, "yes")
    skin = found["Table 2", "NBAUC", "skin"]
    assert (skin.points, skin.verdict) == (-0.98, "below")
    assert found["Table 4", "NSAUC", "covtype"].verdict == "above"
    assert found["Table 4", "NBAUC", "covtype"].points is None
    assert found["Table 4", "NBAUC", "covtype"].verdict == "not run"


def test_a_gap_shows_how_hard_the_splits_of_its_seeds_are():
    rows = [
        row("stochastic", "connect-4", "NSAUC", 0, auc=93.0),
        row("batch", "connect-4", "Linear RankSVM", 0, auc=87.7),  # 88.20 in the paper
        row("batch", "connect-4", "Linear RankSVM", 1, auc=90.0),  # a split that NSAUC has not run
    ]
    found = {(gap.table, gap.method, gap.data): gap for gap in gaps(rows)}
    assert found["Table 4", "NSAUC", "connect-4"].linear == -0.5
    assert found["Table 2", "NBAUC", "connect-4"].linear is None
    assert "| ±0.10 | −0.50 | below |" in page(rows)


def test_page_shows_stand_in_data_and_chance():
    rows = [
        row("batch", "protein", "NBAUC", auc=80.0) | {"substitute": True},  # 84.33 in the paper
        row("batch", "skin", "NBAUC", auc=99.0) | {"auc_low": 0.988, "auc_high": 0.992},
    ]
    text = page(rows)
    assert "on 0 of 1 cells that were run on its data, and on 0 of 1 where other data stands in" in text
    assert "| 80.00 | 84.33 | −4.33 |" in text
    assert "| below (stand-in) |" in text
    assert "| 99.00 | 99.98 | −0.98 | ±0.20 | – | below |" in text


def test_page_tells_what_was_run_and_what_not():
    rows = [
        row("data", "protein", status="failed", reason="protein_x & <y> is missing"),
        row("batch", "usps", "NBAUC", 0, 98.24, note="tuned on 3,000 rows"),
        row("batch", "usps", "NBAUC", 1, 98.24, note="tuned on 3,000 rows"),
        row("stochastic", "covtype", "NSAUC", 0, 96.5),
        stopped("batch", "usps", "RBF-RankSVM", 0),
        stopped("batch", "usps", "RBF-RankSVM", 1),
    ]
    text = page(rows)
    for said in (
        "3 results of 5 runs on 2 data sets",
        "- seeds: 0, 1\n",
        "- landmarks: 1,600\n",
        "- machine: cores 2\n",
        "- versions: aucmax 1.0\n",
        "- NBAUC on usps (Table 2): 98.24, the paper 99.24, −1.00\n",
        "- NSAUC on covtype (Table 4): 96.50, the paper 96.00, +0.50\n",
        "- usps (NBAUC): tuned on 3,000 rows.\n",
        "- protein: no data: protein\\_x &amp; &lt;y&gt; is missing.\n",
        "- Tables 2 and 3, RBF-RankSVM, usps (seeds 0, 1): stopped: over the limit of 600 s.\n",
        "| NBAUC | usps | Table 2 | 98.24 | 99.24 | −1.00 | ±0.10 | – | below |",
        "[Figure 1](figure1.png)",
    ):
        assert said in text
    assert QUICK_WARNING not in text
    for number in range(1, 5):
        assert f"(table{number}.md)" in text


def test_page_of_no_rows_and_of_all():
    assert "not tested" in page([])
    full = page(the_papers_own())
    assert "RBF-RankSVM, connect-4: not run." in full
    assert "0 of 73 cells are more than 0.05 points below the paper." in full
    assert "No data set and no run." in full
    assert "- Folds share &lt;b&gt;." in page([], ["Folds share <b>."])


def test_methods_are_compared_on_the_seeds_both_have():
    """A seed is a split: the one method has an easy one that the other has not run."""
    rows = [
        row("batch", "connect-4", "RBF-RankSVM", 0, auc=93.0),
        row("batch", "connect-4", "NBAUC", 0, auc=92.0),
        row("batch", "connect-4", "NBAUC", 1, auc=96.0),
    ]
    both = paired_means(rows, "batch", ("RBF-RankSVM", "NBAUC"))
    assert both == {"connect-4": pytest.approx([93.0, 92.0])}
    assert claims(rows)[0].verdict == "not confirmed"
    ranks, shared = mean_ranks(rows, "batch")
    assert (ranks, shared) == ({"RBF-RankSVM": 1.0, "NBAUC": 2.0}, 1)
    apart = [row("batch", "skin", "NBAUC", 0, auc=99.0), row("batch", "skin", "RFAUC", 1, auc=98.0)]
    assert paired_means(apart, "batch", ("NBAUC", "RFAUC")) == {}


def test_the_papers_data_come_before_a_substitute():
    rows = [
        row("batch", "cod-rna", "NBAUC", 0, auc=99.0),
        row("batch", "cod-rna", "NBAUC", 1, auc=90.0, substitute=True),
    ]
    assert [each["seed"] for each in seeds_of(rows, "batch", "cod-rna", "NBAUC")] == [0]


def test_committed_pages_are_those_of_the_committed_rows(tmp_path):
    folder = Path(__file__).parents[1] / "docs" / "paper"
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    absent = row("data", "acoustic", status="failed", reason="the data files are missing")
    write_report([*rows, absent | {"curve": False}], tmp_path)
    for path in sorted(tmp_path.iterdir()):
        if path.suffix not in (".png", ".pdf"):  # these depend on the version of Matplotlib
            assert path.read_text() == (folder / path.name).read_text(), path.name
