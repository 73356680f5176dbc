"""The paper's four tables from result rows, with the paper's number beneath each of ours."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from aucmax.paper import published, results
from aucmax.paper.published import LANDMARKS
from aucmax.paper.results import Measure, Row, Rows, Show, count, is_done, notes_of, seeds_of
from aucmax.paper.text_table import Entry, Line, Table

_READING = (
    "Our AUC is the mean over seeds, ± the standard deviation if there are several, and our time the "
    "median; beneath are the paper's value and our difference from it. The best of ours in a row is "
    "bold. A seed sets the landmarks, the sampling and, for data without a split, the split; usps and "
    "ijcnn1 have one."
)


class _Metric(NamedTuple):
    """A measure of a row, what the paper prints for it, and how to show it.

    ``middle`` is the mean or the median over seeds, ``best`` which of a row's values is the best.
    """

    name: str
    measure: Measure
    paper: Mapping[str, Mapping[str, float | None]]
    show: Show
    best: Callable[..., Any]
    middle: Callable[[Iterable[float]], float]


def table1(rows: Rows) -> Table:
    """Table 1: the data sets."""
    columns: dict[str, tuple[str, Show]] = {
        "n_train": ("training rows", results.show_count),
        "n_test": ("test rows", results.show_count),
        "n_features": ("features", results.show_count),
        "ratio": ("negatives per positive", results.show_auc),
    }
    lines = []
    for data in published.DATASETS:
        seeds, entries = seeds_of(rows, "data", data), []
        for column, (_, show) in columns.items():
            values = [float(row[column]) for row in seeds if is_done(row) and column in row]
            values = values[:1] if len(set(values)) == 1 else values
            paper, absent = published.TABLE1[data][column], results.absent(rows, data)
            entries.append(Entry(*_against_paper(values, paper, show, absent, statistics.fmean)))
        lines.append((_name(rows, data, notes_of(*seeds)), *entries))
    return Table(
        "table1",
        _caption(rows, "data", "Table 1. The data sets."),
        ("data", *(heading for heading, _ in columns.values())),
        tuple(lines),
        remarks=("Beneath our value: the paper's value and our difference from it.",),
    )


def _comparison(
    name: str, experiment: str, metrics: Sequence[_Metric], champion: str | None, rows: Rows
) -> Table:
    """Return a table of data sets by methods, with ranks and tests at the bottom for a champion."""
    scope, several = published.SCOPES[experiment], len(metrics) > 1
    remarks = [_READING]
    if champion is not None:
        remarks.append(
            "Mean ranks use unrounded AUC, with 1 for the best, over the data sets and seeds that all "
            "methods with any result share. The last row is a two-sided Wilcoxon signed-rank test of "
            f"{champion} against each method across at least {results.FEWEST_TO_TEST} data sets."
        )
    timed = any(metric.name == "seconds" for metric in metrics)
    if timed:
        remarks.append("The paper's times are from another machine: compare ratios within a row.")
    return Table(
        name,
        _caption(rows, experiment, _CAPTIONS[name]),
        ("data", *(["metric"] if several else []), "seeds", *scope.methods),
        tuple(line for data in scope.datasets for line in _lines(rows, experiment, data, metrics)),
        () if champion is None else _ranks(rows, experiment, champion, blank=1 + several),
        tuple(remarks),
        left=1 + several,
    )


def _caption(rows: Rows, experiment: str, text: str) -> str:
    used = results.rows_of(rows, experiment)
    if numbers := results.other_landmarks(used):
        text += f" With {numbers} landmarks; the paper has {LANDMARKS:,}."
    return f"{text} {results.QUICK_WARNING}." if any(row.get("quick") for row in used) else text


def _lines(rows: Rows, experiment: str, data: str, metrics: Sequence[_Metric]) -> Iterator[Line]:
    """Yield a line per metric; the first has the name of the data set and the number of seeds."""
    methods = published.SCOPES[experiment].methods
    runs = {method: seeds_of(rows, experiment, data, method) for method in methods}
    most = max(sum(map(is_done, seeds)) for seeds in runs.values())
    shared = notes_of(*seeds_of(rows, "data", data))
    noted = [notes_of(*seeds) for seeds in runs.values() if any(map(is_done, seeds))]
    if len(noted) > 1:  # the note of a single method is about that method
        shared += [text for text in noted[0] if all(text in each for each in noted)]
    mixed = len({bool(row.get("quick")) for row in results.rows_of(rows, experiment)}) > 1
    notes = {method: _notes(seeds, shared, most, mixed) for method, seeds in runs.items()}
    name, number = _name(rows, data, shared), Entry(str(most or ""))
    for metric in metrics:
        values = {m: [metric.measure(row) for row in runs[m] if is_done(row)] for m in methods}
        means = {m: results.shown(metric.middle(v), metric.show) for m, v in values.items() if v}
        best = metric.best(means.values(), default=None)
        entries = []
        for m in methods:
            absent = "–" if runs[m] else results.absent(rows, data)
            paper = metric.paper[data][m]
            texts = _against_paper(values[m], paper, metric.show, absent, metric.middle)
            entries.append(Entry(*texts, m in means and means[m] == best, notes[m]))
        yield (name, *([Entry(metric.name)] if len(metrics) > 1 else []), number, *entries)
        name = number = Entry()


def _footnotes(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text[0].upper() + text[1:].rstrip(".") + "." for text in texts))


def _name(rows: Rows, data: str, notes: Sequence[str]) -> Entry:
    reason = results.why_no_data(rows, data)
    return Entry(data, notes=_footnotes([*notes, *([f"no data: {reason}"] if reason else [])]))


def _notes(seeds: Sequence[Row], shared: Sequence[str], most: int, mixed: bool) -> tuple[str, ...]:
    """Return the footnotes of a method's entries: its own notes, and which seeds have no result."""
    texts = [text for text in notes_of(*seeds) if text not in shared]
    failed, done = list(results.failures(seeds)), sum(map(is_done, seeds))
    if not done:
        texts += failed
    elif failed or done < most:
        others = "; the others " + ", ".join(failed) if failed else ""
        texts.append(f"{count(done, 'seed')} only{others}")
    if mixed and any(row.get("quick") for row in seeds):
        texts.append(results.QUICK_WARNING)
    return _footnotes(texts)


def _against_paper(
    values: Sequence[float],
    paper: float | None,
    show: Show,
    absent: str,
    middle: Callable[[Iterable[float]], float],
) -> tuple[str, str]:
    """Return our value and its spread, and beneath it the paper's and our difference from it."""
    beneath = "–" if paper is None else show(paper)
    if not values:
        return absent, beneath
    mean = middle(values)
    ours = show(mean) + (f" ± {show(statistics.stdev(values))}" if len(values) > 1 else "")
    if paper is not None:
        beneath += f", {results.signed(results.difference(mean, paper, show), show)}"
    return ours, beneath


def _ranks(rows: Rows, experiment: str, champion: str, blank: int) -> tuple[Line, Line]:
    """Return the lines of mean ranks and of tests at the bottom of a table."""
    ranks, shared = results.mean_ranks(rows, experiment)
    best = min((round(rank, 2) for rank in ranks.values()), default=None)
    first = [Entry("mean rank by AUC", count(shared, "data set")), *[Entry()] * blank]
    second = [Entry(f"{champion} against it", "signed-rank test"), *[Entry()] * blank]
    for method in published.SCOPES[experiment].methods:
        rank = ranks.get(method)
        first.append(Entry("–") if rank is None else Entry(f"{rank:.2f}", best=round(rank, 2) == best))
        if method == champion:
            second.append(Entry())
            continue
        p, wins, of = results.signed_rank(rows, experiment, champion, method)
        test = "too few to test" if p is None else f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"
        second.append(Entry(test, f"above on {wins} of {of}" if of else ""))
    return tuple(first), tuple(second)


def _auc_metric(paper: published.Results) -> _Metric:
    return _Metric("AUC", results.auc, paper, results.show_auc, max, statistics.fmean)


def _time_metric(measure: Measure, paper: published.Results) -> _Metric:
    return _Metric("seconds", measure, paper, results.show_seconds, min, statistics.median)


_TABLE2 = _auc_metric(published.TABLE2)
_TABLE3 = _time_metric(results.training_seconds, published.TABLE3)
_TABLE4 = (
    _auc_metric(published.TABLE4_AUC),
    _time_metric(results.learning_seconds, published.TABLE4_SECONDS),
)
_CAPTIONS = {
    "table2": "Table 2. Test AUC of the batch methods, in percent.",
    "table3": "Table 3. Training time of the batch methods with the embedding, in seconds.",
    "table4": "Table 4. Test AUC in percent, and learning time in seconds without the embedding, of "
    "the stochastic methods and of NBAUC.",
}

#: The functions that make the paper's tables from rows.
TABLES: dict[str, Callable[[Rows], Table]] = {
    "table1": table1,
    "table2": partial(_comparison, "table2", "batch", (_TABLE2,), "NBAUC"),
    "table3": partial(_comparison, "table3", "batch", (_TABLE3,), None),
    "table4": partial(_comparison, "table4", "stochastic", _TABLE4, "NSAUC"),
}
