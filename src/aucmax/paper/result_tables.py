"""The paper's four tables from result rows, beside what it printed.

A cell is the mean over seeds, ± the standard deviation (n - 1) where there are several; beneath it
stand the paper's value and our difference from it, both of the numbers as shown. AUC is in percent.
Results of small samples are never averaged with full ones, nor results of different landmark counts.
"""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from aucmax.paper import published
from aucmax.paper.text_table import Cell, Table

Row = Mapping[str, Any]
Rows = Sequence[Row]
Measure = Callable[[Row], float]
Show = Callable[[float], str]
Published = Mapping[str, Mapping[str, float | None]]

QUICK = "QUICK: small samples, not the paper's protocol"

#: With fewer data sets no signed-rank test can come near the usual levels (5 give p = 0.06 at best).
FEWEST_TO_TEST = 5


# What the rows say ---------------------------------------------------------------------------------


def seeds_of(rows: Rows, experiment: str, data: str, method: str = "") -> list[Row]:
    """The rows of a cell, one a seed, later before earlier.

    Where a cell was run in several ways, only one of them is taken: the full protocol before quick,
    the paper's data before a substitute, its number of landmarks before others, more before fewer.
    """
    key = (experiment, data, method)
    mine = [row for row in rows if (row["experiment"], row["data"], row["method"]) == key]
    best = max(map(_preference, mine), default=None)
    latest = {row["seed"]: row for row in mine if _preference(row) == best}
    return [latest[seed] for seed in sorted(latest)]


def _preference(row: Row) -> tuple[bool, bool, bool, int]:
    landmarks = row.get("landmarks") or 0
    true_data = not row.get("substitute")
    return not row.get("quick"), true_data, landmarks == published.LANDMARKS, landmarks


def is_done(row: Row) -> bool:
    return bool(row["status"] == "done")


def auc(row: Row) -> float:
    """In percent."""
    return 100.0 * float(row["auc"])


def training_seconds(row: Row) -> float:
    """With the embedding, as Table 3 has it."""
    return float(row.get("embedding_seconds") or 0.0) + float(row["learning_seconds"])


def learning_seconds(row: Row) -> float:
    """Without the embedding, as Table 4 has it."""
    return float(row["learning_seconds"])


def mean_of(rows: Rows, experiment: str, data: str, method: str, measure: Measure) -> float | None:
    """The mean over the seeds that ended; None where none did."""
    values = [measure(row) for row in seeds_of(rows, experiment, data, method) if is_done(row)]
    return statistics.fmean(values) if values else None


def paired_means(
    rows: Rows, experiment: str, data: str, methods: Sequence[str], measure: Measure
) -> list[float] | None:
    """Each method's mean over the seeds that all of them ended; None where there are none.

    A seed is a split of its own on most data sets: means over different ones do not compare.
    """
    ended = [
        {row["seed"]: measure(row) for row in seeds_of(rows, experiment, data, method) if is_done(row)}
        for method in methods
    ]
    shared = set.intersection(*map(set, ended))
    if not shared:
        return None
    return [statistics.fmean(values[seed] for seed in shared) for values in ended]


def why_no_data(rows: Rows, data: str) -> str | None:
    """Why a data set could not be had; None where it could, or was not asked for."""
    tried = seeds_of(rows, "data", data)
    if not tried or any(is_done(row) for row in rows if row["data"] == data):
        return None
    return str(tried[-1].get("reason") or "it could not be read")


def notes_of(row: Row) -> list[str]:
    """The sentences of a row's note."""
    return [part for part in (part.strip() for part in (row.get("note") or "").split(";")) if part]


# How numbers are shown -----------------------------------------------------------------------------


def show_auc(value: float) -> str:
    return f"{value:.2f}"


def show_seconds(value: float) -> str:
    return f"{value:,.2f}" if value < 999.995 else f"{value:,.0f}"


def show_count(value: float) -> str:
    return f"{value:,.0f}"


def difference(ours: float, paper: float, show: Show) -> float:
    """Of the two numbers as shown, so that a reader finds the same."""
    return float(show(ours).replace(",", "")) - float(show(paper).replace(",", ""))


def signed(value: float, show: Show) -> str:
    """With + or the true minus sign; a difference that shows as zero has no sign."""
    text = show(abs(value))
    if not text.strip("0.,"):
        return text
    return ("+" if value > 0 else "−") + text


def _spread(values: Sequence[float], show: Show) -> str:
    mean = show(statistics.fmean(values))
    return f"{mean} ± {show(statistics.stdev(values))}" if len(values) > 1 else mean


# The paper's tables --------------------------------------------------------------------------------


class _Footnotes:
    """Letters for texts, in the order of first use; the same text has the same letter."""

    def __init__(self) -> None:
        self._letters: dict[str, str] = {}

    def mark(self, texts: Iterable[str]) -> tuple[str, ...]:
        letters = []
        for text in texts:
            text = text[0].upper() + text[1:].rstrip(".") + "."
            letters.append(self._letters.setdefault(text, _letter(len(self._letters))))
        return tuple(dict.fromkeys(letters))

    @property
    def texts(self) -> dict[str, str]:
        return {letter: text for text, letter in self._letters.items()}


def _letter(number: int) -> str:
    return (_letter(number // 26 - 1) if number >= 26 else "") + chr(ord("a") + number % 26)


def _ended_badly(seeds: Sequence[Row]) -> list[str]:
    """Why some seeds of a cell have no result."""
    reasons = [
        f"{row['status']}: {row.get('reason') or 'no reason given'}"
        for row in seeds
        if not is_done(row)
    ]
    return list(dict.fromkeys(reasons))


def _beneath(values: Sequence[float], paper: float | None, show: Show) -> str:
    if paper is None:
        return "–"
    if not values:
        return show(paper)
    return f"{show(paper)}, {signed(difference(statistics.fmean(values), paper, show), show)}"


class _Builder:
    """What the cells of one table share: its rows, footnotes, and which rows were used."""

    def __init__(self, rows: Rows, experiment: str, columns: Sequence[str]) -> None:
        self.rows, self.experiment, self.columns = rows, experiment, columns
        self.notes = _Footnotes()
        self.used = [
            row
            for data in published.DATASETS
            for method in (columns if experiment != "data" else ("",))
            for row in seeds_of(rows, experiment, data, method)
        ]
        self._kinds = {bool(row.get("quick")) for row in self.used}

    def name(self, data: str) -> Cell:
        """A data set's name, with the notes that hold for all of its row."""
        reason = why_no_data(self.rows, data)
        texts = self._shared(data) + ([f"no data: {reason}"] if reason else [])
        return Cell(data, marks=self.notes.mark(texts))

    def _shared(self, data: str) -> list[str]:
        texts = [text for row in seeds_of(self.rows, "data", data) for text in notes_of(row)]
        if self.experiment != "data":
            cells = [seeds_of(self.rows, self.experiment, data, method) for method in self.columns]
            said = [
                {text for row in cell for text in notes_of(row)}
                for cell in cells
                if any(map(is_done, cell))
            ]
            if len(said) > 1:  # what one cell alone says is about its method
                first = [text for cell in cells for row in cell for text in notes_of(row)]
                texts += [text for text in first if all(text in each for each in said)]
        return list(dict.fromkeys(texts))

    def seeds(self, data: str) -> int:
        """The most seeds of a cell in a row."""
        cells = [seeds_of(self.rows, self.experiment, data, method) for method in self.columns]
        return max(sum(is_done(row) for row in cell) for cell in cells)

    def results(
        self, data: str, measure: Measure, paper: Published, show: Show, most: bool
    ) -> list[Cell]:
        """The cells of a row; the best is the largest or the smallest as shown."""
        shared, seeds = self._shared(data), self.seeds(data)
        cells, means = [], []
        for method in self.columns:
            mine = seeds_of(self.rows, self.experiment, data, method)
            values = [measure(row) for row in mine if is_done(row)]
            texts = [text for row in mine for text in notes_of(row) if text not in shared]
            bad = _ended_badly(mine)
            if values and (bad or len(values) < seeds):
                texts += [
                    f"{count(len(values), 'seed')} only{'; the others ' if bad else ''}"
                    + ", ".join(bad)
                ]
            elif bad:
                texts += bad
            if len(self._kinds) > 1 and any(row.get("quick") for row in mine):
                texts.append(QUICK)
            if values:
                ours = _spread(values, show)
            elif mine:
                ours = "–"
            else:
                ours = "not run" if why_no_data(self.rows, data) is None else "no data"
            beneath = _beneath(values, paper[data][method], show)
            cells.append(Cell(ours, beneath, marks=self.notes.mark(texts)))
            means.append(show(statistics.fmean(values)).replace(",", "") if values else None)
        ran = [float(mean) for mean in means if mean is not None]
        best = (max if most else min)(ran, default=math.nan)
        return [
            Cell(cell.ours, cell.beneath, mean is not None and float(mean) == best, cell.marks)
            for cell, mean in zip(cells, means, strict=True)
        ]

    def caption(self, text: str) -> str:
        landmarks = {row.get("landmarks") or published.LANDMARKS for row in self.used}
        if landmarks - {published.LANDMARKS}:
            numbers = " and ".join(f"{number:,}" for number in sorted(landmarks))
            text += f" With {numbers} landmarks; the paper has {published.LANDMARKS:,}."
        return f"{text} {QUICK}." if True in self._kinds else text


def count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


_READING = (
    "Ours is the mean over seeds ± standard deviation where there are several; beneath it the paper's "
    "value and our difference from it. Bold is the best of ours in the row. A seed sets landmarks and "
    "sampling and, where the data come without a split, the split; usps and ijcnn1 come with one."
)


def table1(rows: Rows) -> Table:
    """Table 1: the data sets."""
    columns: dict[str, tuple[str, Show]] = {
        "n_train": ("training rows", show_count),
        "n_test": ("test rows", show_count),
        "n_features": ("features", show_count),
        "ratio": ("negatives per positive", show_auc),
    }
    build = _Builder(rows, "data", tuple(columns))
    lines = []
    for data in published.DATASETS:
        line = [build.name(data)]
        seeds = [row for row in seeds_of(rows, "data", data) if is_done(row)]
        for column, (_, show) in columns.items():
            values = [float(row[column]) for row in seeds if row.get(column) is not None]
            if len(set(values)) == 1:
                values = values[:1]
            ours = "not run" if why_no_data(rows, data) is None else "no data"
            beneath = _beneath(values, published.TABLE1[data][column], show)
            line.append(Cell(_spread(values, show) if values else ours, beneath))
        lines.append(tuple(line))
    return Table(
        "table1",
        build.caption("Table 1. The data sets."),
        ("data", *(heading for heading, _ in columns.values())),
        tuple(lines),
        remarks=("Beneath ours: the paper's value and our difference from it.",),
        footnotes=build.notes.texts,
    )


def table2(rows: Rows) -> Table:
    """Table 2: test AUC of the batch methods."""
    summary = _comparison(rows, "batch", published.DATASETS, published.BATCH_METHODS, "NBAUC", blank=1)
    return _batch(
        rows, "table2", "Table 2. Test AUC of the batch methods, in percent.", auc, published.TABLE2,
        show_auc, most=True, summary=summary, remark=_ranks_remark("NBAUC"),
    )  # fmt: skip


def table3(rows: Rows) -> Table:
    """Table 3: training time of the batch methods."""
    return _batch(
        rows, "table3", "Table 3. Training time of the batch methods with the embedding, in seconds.",
        training_seconds, published.TABLE3, show_seconds, most=False,
        remark="The paper's times are of another machine: compare ratios within a row.",
    )  # fmt: skip


def _batch(
    rows: Rows,
    name: str,
    caption: str,
    measure: Measure,
    paper: Published,
    show: Show,
    most: bool,
    remark: str,
    summary: tuple[tuple[Cell, ...], ...] = (),
) -> Table:
    build = _Builder(rows, "batch", published.BATCH_METHODS)
    lines = []
    for data in published.DATASETS:
        name_cell, seeds = build.name(data), build.seeds(data)
        cells = build.results(data, measure, paper, show, most)
        lines.append((name_cell, Cell(str(seeds) if seeds else ""), *cells))
    return Table(
        name,
        build.caption(caption),
        ("data", "seeds", *published.BATCH_METHODS),
        tuple(lines),
        summary,
        (_READING, remark),
        build.notes.texts,
    )


def table4(rows: Rows) -> Table:
    """Table 4: test AUC and learning time of the stochastic methods, and of NBAUC."""
    methods = published.STOCHASTIC_METHODS
    build = _Builder(rows, "stochastic", methods)
    lines = []
    for data in published.LARGE_DATASETS:
        name, seeds = build.name(data), build.seeds(data)
        first = build.results(data, auc, published.TABLE4_AUC, show_auc, most=True)
        second = build.results(
            data, learning_seconds, published.TABLE4_SECONDS, show_seconds, most=False
        )
        lines.append((name, Cell("AUC"), Cell(str(seeds) if seeds else ""), *first))
        lines.append((Cell(), Cell("seconds"), Cell(), *second))
    return Table(
        "table4",
        build.caption(
            "Table 4. Test AUC in percent, and learning time in seconds without the embedding, of the "
            "stochastic methods and of NBAUC."
        ),
        ("data", "metric", "seeds", *methods),
        tuple(lines),
        _comparison(rows, "stochastic", published.LARGE_DATASETS, methods, "NSAUC", blank=2),
        (
            _READING,
            _ranks_remark("NSAUC"),
            "The paper's times are of another machine: compare ratios within a row.",
        ),
        build.notes.texts,
        left=2,
    )


def _ranks_remark(champion: str) -> str:
    return (
        "Mean rank is of unrounded AUC, 1 for the best, over the data sets and seeds that all methods "
        f"with any result have. The last row is a two-sided Wilcoxon signed-rank test of {champion} "
        f"against each method across data sets; fewer than {FEWEST_TO_TEST} are too few to test."
    )


def mean_ranks(
    rows: Rows, experiment: str, datasets: Sequence[str], methods: Sequence[str]
) -> tuple[dict[str, float], int]:
    """Each method's mean rank by AUC over the data sets that all have, and how many those are.

    Methods without any result do not take part.
    """
    from scipy.stats import rankdata

    ran = [
        method
        for method in methods
        if any(mean_of(rows, experiment, data, method, auc) is not None for data in datasets)
    ]
    if len(ran) < 2:
        return {}, 0
    found = [paired_means(rows, experiment, data, ran, auc) for data in datasets]
    ranks = [rankdata([-mean for mean in means]) for means in found if means is not None]
    if not ranks:
        return {}, 0
    return {
        method: statistics.fmean(float(rank[j]) for rank in ranks) for j, method in enumerate(ran)
    }, len(ranks)


def signed_rank(
    rows: Rows, experiment: str, datasets: Sequence[str], champion: str, other: str
) -> tuple[float | None, int, int]:
    """The paired test across data sets: p (None for too few), how often champion wins, of how many."""
    from scipy.stats import wilcoxon

    found = [paired_means(rows, experiment, data, (champion, other), auc) for data in datasets]
    gains = [means[0] - means[1] for means in found if means is not None]
    above = sum(gain > 0 for gain in gains)
    if len(gains) < FEWEST_TO_TEST:
        return None, above, len(gains)
    if not any(gains):
        return 1.0, 0, len(gains)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # older versions of scipy mind ties among few
        return float(wilcoxon(gains).pvalue), above, len(gains)


def _p_value(p: float) -> str:
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"


def _comparison(
    rows: Rows,
    experiment: str,
    datasets: Sequence[str],
    methods: Sequence[str],
    champion: str,
    blank: int,
) -> tuple[tuple[Cell, ...], ...]:
    """The rows of mean ranks and of tests at the bottom of a table."""
    ranks, shared = mean_ranks(rows, experiment, datasets, methods)
    best = min((round(rank, 2) for rank in ranks.values()), default=None)
    first = [Cell("mean rank by AUC", count(shared, "data set")), *[Cell()] * blank]
    second = [Cell(f"{champion} against it", "signed-rank test"), *[Cell()] * blank]
    for method in methods:
        rank = ranks.get(method)
        first.append(Cell("–") if rank is None else Cell(f"{rank:.2f}", best=round(rank, 2) == best))
        if method == champion:
            second.append(Cell())
            continue
        p, above, of = signed_rank(rows, experiment, datasets, champion, method)
        told = f"above on {above} of {of}" if of else ""
        second.append(Cell("too few to test" if p is None else _p_value(p), told))
    return tuple(first), tuple(second)
