"""The paper's claims, held against result rows.

A claim is tested on the data sets that have what it compares. It is *confirmed* when it holds on
enough of them, *not confirmed* when it fails on more than half, and *mixed* between. AUC differences
are in points: hundredths of AUC, as the paper's percentages.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from aucmax.paper import published
from aucmax.paper.figure import curves, mean_curve
from aucmax.paper.tables import (
    QUICK,
    Cell,
    Published,
    Row,
    Rows,
    Table,
    auc,
    difference,
    is_done,
    learning_seconds,
    mean_of,
    notes_of,
    paired_means,
    seeds_of,
    show_auc,
    signed,
    training_seconds,
    why_no_data,
)

#: AUCs this near are equal: a few hundredths come and go with the seed.
EQUAL = 0.05

#: "Competitive" and "on par" mean no more than this below; also what "reaches the paper" means.
NEAR = 0.5

#: The range over the epoch grid that is still "does not fluctuate".
STEADY = 0.5

#: A gain from the first to the last epoch count below this is "no significant improvement".
NO_GAIN = 0.5

#: The share of data sets for claims of a general kind; the paper's own tables have an exception or two.
MOST = 0.8

#: The share for claims that the paper makes of all data sets.
ALL = 1.0

#: A ratio of times from here on is "orders of magnitude"; counted, and no part of the verdict.
MAGNITUDES = 100.0

Verdict = Literal["confirmed", "not confirmed", "mixed", "not tested"]


@dataclass(frozen=True)
class Claim:
    """What the paper says, whether the rows bear it out, and the numbers in a sentence."""

    text: str
    verdict: Verdict
    evidence: str


@dataclass(frozen=True)
class Reach:
    """Ours beside the paper's, in percent; None where there is none."""

    table: str
    data: str
    method: str
    ours: float | None
    paper: float | None

    @property
    def difference(self) -> float | None:
        """Of the numbers as shown, with two decimals."""
        if self.ours is None or self.paper is None:
            return None
        return round(difference(self.ours, self.paper, show_auc), 2)

    @property
    def within(self) -> bool | None:
        """Whether it is no further than ``NEAR`` from the paper's."""
        return None if self.difference is None else abs(self.difference) <= NEAR


def claims(rows: Rows) -> list[Claim]:
    """The claims of the paper's section 5, in its order of experiments."""
    return [
        _at_or_above(rows, "RBF-RankSVM", "exact RBF-RankSVM"),
        _at_or_above(rows, "RFAUC", "RFAUC"),
        _at_or_above(rows, "Linear RankSVM", "Linear RankSVM"),
        _faster_than_kernel(rows),
        _landmarks_against_random_features(rows),
        _kernel_above_linear(rows),
        _stochastic_as_good(rows),
        _stochastic_above_online(rows),
        _solam_above_oam(rows),
        _averaging_helps(rows),
        _steady(rows),
        _solam_stuck(rows),
    ]


def reach(rows: Rows) -> list[Reach]:
    """NBAUC (Tables 2 and 4) and NSAUC (Table 4) on every data set, beside the paper's."""
    return [cell for cell in _all_cells(rows) if cell.method in ("NBAUC", "NSAUC")]


# Each claim ----------------------------------------------------------------------------------------


def _verdict(holds: Iterable[bool], needed: float = MOST) -> Verdict:
    results = list(holds)
    if not results:
        return "not tested"
    share = sum(results) / len(results)
    return "confirmed" if share >= needed else "mixed" if share >= 0.5 else "not confirmed"


def _gains(rows: Rows, experiment: str, one: str, other: str) -> dict[str, float]:
    """By how many points one method is above another, by data set."""
    gains = {}
    for data in published.DATASETS:
        means = paired_means(rows, experiment, data, (one, other), auc)
        if means is not None:
            gains[data] = means[0] - means[1]
    return gains


def _points(value: float) -> str:
    return signed(value, show_auc)


def _extremes(values: Mapping[str, float]) -> str:
    low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    if len(values) == 1:
        return f"{_points(values[low])} points"
    return f"from {_points(values[low])} ({low}) to {_points(values[high])} ({high}) points"


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{data} {_points(value)}" for data, value in values.items())


def _sets(number: int) -> str:
    return f"{number} data set" if number == 1 else f"{number} data sets"


def _untested(text: str, what: str) -> Claim:
    return Claim(text, "not tested", f"No data set has results of {what}.")


def _at_or_above(rows: Rows, other: str, told: str) -> Claim:
    text = f"NBAUC ranks at least as well as {told}"
    gains = _gains(rows, "batch", "NBAUC", other)
    if not gains:
        return _untested(text, f"both NBAUC and {other}")
    below = {data: gain for data, gain in gains.items() if gain < -EQUAL}
    return Claim(
        text,
        _verdict(data not in below for data in gains),
        f"At or above on {len(gains) - len(below)} of {_sets(len(gains))} "
        f"(equal within {EQUAL} points), {_extremes(gains)}"
        + (f"; below on {_listed(below)}." if below else "."),
    )


def _ratios(rows: Rows, experiment: str, slow: str, fast: str, measure: Any) -> dict[str, float]:
    """How many times as long one method takes as another, by data set."""
    ratios = {}
    for data in published.DATASETS:
        means = paired_means(rows, experiment, data, (slow, fast), measure)
        if means is not None and means[1] > 0:
            ratios[data] = means[0] / means[1]
    return ratios


def _times(ratio: float) -> str:
    """A ratio with two or three figures."""
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.1f}" if ratio >= 1 else f"{ratio:.2g}"


def _ratio_range(ratios: Mapping[str, float]) -> str:
    low, high = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    if len(ratios) == 1:
        return f"{_times(ratios[low])} on {low}"
    middle = statistics.median(ratios.values())
    return f"{_times(ratios[low])} ({low}) to {_times(ratios[high])} ({high}), median {_times(middle)}"


def _faster_than_kernel(rows: Rows) -> Claim:
    text = "NBAUC trains faster than exact RBF-RankSVM"
    ratios = _ratios(rows, "batch", "RBF-RankSVM", "NBAUC", training_seconds)
    stopped = [
        data
        for data in published.DATASETS
        if any(row["status"] == "stopped" for row in seeds_of(rows, "batch", data, "RBF-RankSVM"))
        and data not in ratios
    ]
    halted = f" Not counted: {', '.join(stopped)}, where RBF-RankSVM was stopped." if stopped else ""
    if not ratios:
        claim = _untested(text, "both NBAUC and RBF-RankSVM")
        return Claim(text, claim.verdict, claim.evidence + halted)
    faster = sum(ratio > 1.0 for ratio in ratios.values())
    far = sum(ratio >= MAGNITUDES for ratio in ratios.values())
    return Claim(
        text,
        _verdict(ratio > 1.0 for ratio in ratios.values()),
        f"Faster on {faster} of {_sets(len(ratios))}, {MAGNITUDES:g} times and more on {far}; "
        f"RBF-RankSVM's time over NBAUC's, embedding included, is {_ratio_range(ratios)}.{halted}",
    )


def _landmarks_against_random_features(rows: Rows) -> Claim:
    text = "k-means landmarks make better features than random Fourier features, on most data sets"
    gains = _gains(rows, "batch", "NBAUC", "RFAUC")
    if not gains:
        return _untested(text, "both NBAUC and RFAUC")
    above = sum(gain > EQUAL for gain in gains.values())
    below = sum(gain < -EQUAL for gain in gains.values())
    verdict: Verdict = "mixed"
    if 2 * above > len(gains):
        verdict = "confirmed"
    elif above <= below:
        verdict = "not confirmed"
    return Claim(
        text,
        verdict,
        f"Landmarks are better on {above}, worse on {below} and equal (within {EQUAL} points) on "
        f"{len(gains) - above - below} of {_sets(len(gains))}; the median difference is "
        f"{_points(statistics.median(gains.values()))}, {_extremes(gains)}.",
    )


def _kernel_above_linear(rows: Rows) -> Claim:
    text = "Both RBF-RankSVMs rank better than Linear RankSVM, except on protein"
    kernels = ("RBF-RankSVM", "RBF-RankSVM (subsample)")
    gains = {kernel: _gains(rows, "batch", kernel, "Linear RankSVM") for kernel in kernels}
    holds: dict[str, bool] = {}
    for data in published.DATASETS:
        found = [gains[kernel][data] for kernel in kernels if data in gains[kernel]]
        if found:
            sign = -1.0 if data == "protein" else 1.0
            holds[data] = all(sign * gain > EQUAL for gain in found)
    if not holds:
        return _untested(text, "Linear RankSVM and an RBF-RankSVM")
    against = []
    for data in (data for data, held in holds.items() if not held):
        mine = [
            f"{kernel} {_points(gains[kernel][data])}" for kernel in kernels if data in gains[kernel]
        ]
        against.append(f"{data} ({', '.join(mine)})")
    protein = "" if "protein" in holds else " protein was not tested."
    return Claim(
        text,
        _verdict(holds.values()),
        f"As claimed on {sum(holds.values())} of {_sets(len(holds))} (by more than {EQUAL} points)"
        + (f"; not on {', '.join(against)}." if against else ".")
        + protein,
    )


def _stochastic_as_good(rows: Rows) -> Claim:
    text = "NSAUC ranks as well as NBAUC in a fraction of the learning time"
    gains = _gains(rows, "stochastic", "NSAUC", "NBAUC")
    ratios = _ratios(rows, "stochastic", "NBAUC", "NSAUC", learning_seconds)
    both = [data for data in gains if data in ratios]
    if not both:
        return _untested(text, "both NSAUC and NBAUC")
    near = sum(gains[data] >= -NEAR for data in both)
    faster = sum(ratios[data] > 1.0 for data in both)
    worst = min(both, key=gains.__getitem__)
    return Claim(
        text,
        _verdict(gains[data] >= -NEAR and ratios[data] > 1.0 for data in both),
        f"No more than {NEAR} points below on {near} of {_sets(len(both))} ({_listed(gains)}; lowest "
        f"on {worst}), faster on {faster}; NBAUC's learning time over NSAUC's is "
        f"{_ratio_range(ratios)}.",
    )


def _stochastic_above_online(rows: Rows) -> Claim:
    text = "NSAUC ranks better than the online methods NOAM and NSOLAM"
    gains = {other: _gains(rows, "stochastic", "NSAUC", other) for other in ("NOAM", "NSOLAM")}
    if not any(gains.values()):
        return _untested(text, "NSAUC and an online method")
    told = [
        f"above {other} on {sum(gain > EQUAL for gain in each.values())} of {_sets(len(each))} "
        f"({_listed(each)})"
        for other, each in gains.items()
        if each
    ]
    return Claim(
        text,
        _verdict(gain > EQUAL for each in gains.values() for gain in each.values()),
        f"By more than {EQUAL} points, {'; '.join(told)}.",
    )


def _solam_above_oam(rows: Rows) -> Claim:
    text = "NSOLAM ranks better than NOAM"
    gains = _gains(rows, "stochastic", "NSOLAM", "NOAM")
    if not gains:
        return _untested(text, "both NSOLAM and NOAM")
    above = [gain > EQUAL for gain in gains.values()]
    return Claim(
        text,
        _verdict(above),
        f"Above by more than {EQUAL} points on {sum(above)} of {_sets(len(above))} ({_listed(gains)}).",
    )


def _by_epochs(rows: Rows, method: str) -> dict[str, dict[int, float]]:
    """Mean AUC by epoch count, by data set."""
    found = {}
    for data in published.LARGE_DATASETS:
        points = mean_curve(curves(rows, data, method))
        if points:
            found[data] = {epochs: mean for epochs, mean, _ in points}
    return found


def _averaging_helps(rows: Rows) -> Claim:
    text = "Averaging helps: NSAUC is at or above NSVMSGD2 at each number of epochs"
    averaged, last = _by_epochs(rows, "NSAUC"), _by_epochs(rows, "NSVMSGD2")
    gains = {
        data: {
            epochs: averaged[data][epochs] - last[data][epochs]
            for epochs in averaged[data].keys() & last[data]
        }
        for data in averaged
        if data in last
    }
    gains = {data: each for data, each in gains.items() if each}
    if not gains:
        return _untested(text, "both NSAUC and NSVMSGD2 by epochs")
    points = [gain for each in gains.values() for gain in each.values()]
    held = sum(min(each.values()) >= -EQUAL for each in gains.values())
    means = {data: statistics.fmean(each.values()) for data, each in gains.items()}
    helped = sum(mean > EQUAL for mean in means.values())
    never_below = _verdict(gain >= -EQUAL for gain in points)
    # At or above alone would hold of two equal methods; the paper saw a gain on four of six.
    helps = 2 * helped >= len(gains)
    verdict: Verdict = (
        never_below if helps else "mixed" if never_below == "confirmed" and helped else "not confirmed"
    )
    return Claim(
        text,
        verdict,
        f"At or above (within {EQUAL} points) at {sum(gain >= -EQUAL for gain in points)} of "
        f"{len(points)} points, at every number of epochs on {held} of {_sets(len(gains))}; "
        f"above in the mean over epochs on {helped} ({_listed(means)}); the lowest point is "
        f"{_points(min(points))}.",
    )


def _steady(rows: Rows) -> Claim:
    text = "NSAUC's AUC does not fluctuate with the number of epochs"
    found = {data: each for data, each in _by_epochs(rows, "NSAUC").items() if len(each) > 1}
    if not found:
        return _untested(text, "NSAUC at several numbers of epochs")
    ranges = {data: max(each.values()) - min(each.values()) for data, each in found.items()}
    falls = {data: _largest_fall(each) for data, each in found.items()}
    worst = max(falls, key=falls.__getitem__)
    listed = ", ".join(f"{data} {value:.2f}" for data, value in ranges.items())
    return Claim(
        text,
        _verdict((value <= STEADY for value in ranges.values()), ALL),
        f"From the lowest to the highest over the epoch counts are at most {STEADY} points on "
        f"{sum(value <= STEADY for value in ranges.values())} of {_sets(len(ranges))} ({listed}); the "
        f"largest fall from one count to the next is {falls[worst]:.2f} points ({worst}).",
    )


def _largest_fall(by_epochs: Mapping[int, float]) -> float:
    values = [by_epochs[epochs] for epochs in sorted(by_epochs)]
    return max(0.0, *(before - after for before, after in itertools.pairwise(values)))


def _solam_stuck(rows: Rows) -> Claim:
    text = "NSOLAM does not improve after its first epoch"
    found = {
        data: each for data, each in _by_epochs(rows, "NSOLAM").items() if 1 in each and len(each) > 1
    }
    if not found:
        return _untested(text, "NSOLAM at one epoch and at more")
    gains = {data: each[max(each)] - each[1] for data, each in found.items()}
    stuck = [gain < NO_GAIN for gain in gains.values()]
    return Claim(
        text,
        _verdict(stuck, ALL),
        f"Gains less than {NO_GAIN} points from one epoch to the last on {sum(stuck)} of "
        f"{_sets(len(stuck))} ({_listed(gains)}).",
    )


# The page ------------------------------------------------------------------------------------------

_EXPERIMENTS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "data": ("Table 1", published.DATASETS, ("",)),
    "batch": ("Tables 2 and 3", published.DATASETS, published.BATCH_METHODS),
    "stochastic": ("Table 4", published.LARGE_DATASETS, published.STOCHASTIC_METHODS),
    "epochs": ("Figure 1", published.LARGE_DATASETS, published.EPOCH_METHODS),
}


def _all_cells(rows: Rows) -> list[Reach]:
    """Every AUC of Tables 2 and 4 beside ours."""
    tables: tuple[tuple[str, str, Published], ...] = (
        ("Table 2", "batch", published.TABLE2),
        ("Table 4", "stochastic", published.TABLE4_AUC),
    )
    return [
        Reach(table, data, method, mean_of(rows, experiment, data, method, auc), paper)
        for table, experiment, values in tables
        for data, by_method in values.items()
        for method, paper in by_method.items()
    ]


def _used(rows: Rows) -> list[Row]:
    """The rows that tables and figure are made of."""
    return [
        row
        for experiment, (_, datasets, methods) in _EXPERIMENTS.items()
        for data in datasets
        for method in methods
        for row in seeds_of(rows, experiment, data, method)
    ]


def page(rows: Rows, departures: Sequence[str] = ()) -> str:
    """A Markdown page: what was run, the claims, and where ours and the paper's numbers part.

    ``departures`` are those from the paper's protocol that every run has.
    """
    used = _used(rows)
    quick = any(row.get("quick") for row in used)
    parts = [
        "# The paper's experiments, run again",
        f"**{QUICK}.** No verdict below says anything of the paper." if quick else "",
        "[Table 1](table1.md), [Table 2](table2.md), [Table 3](table3.md), [Table 4](table4.md) and "
        "[Figure 1](figure1.png) hold the numbers. AUC is in percent, differences are in its points, "
        "and ours are means over seeds.",
        "## What was run",
        _bullets(_what_was_run(used)),
        "## The paper's claims",
        _claims_table(claims(rows)).markdown().strip(),
        "## Does it reach the paper?",
        _reach_table(reach(rows)).markdown().strip(),
        *_furthest(_all_cells(rows)),
        "## What was substituted",
        _bullets(_substituted(used)) or "No data set and no run.",
        "## What is done otherwise throughout" if departures else "",
        _bullets(departures),
        "## What was not run",
        _bullets(_not_run(rows)) or "Every cell of the tables and the figure has a result.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {_plain(line)}" for line in lines)


def _plain(text: str) -> str:
    """Text of others, kept from being read as markup."""
    return Table("", text, (), ()).markdown().split("\n")[0]


def _what_was_run(used: Sequence[Row]) -> list[str]:
    done = [row for row in used if is_done(row)]
    runs = [row for row in done if row["experiment"] != "data"]
    seeds = sorted({row["seed"] for row in runs})
    landmarks = sorted({row["landmarks"] for row in runs if row.get("landmarks")})
    lines = [
        f"{len(runs)} results of {sum(row['experiment'] != 'data' for row in used)} runs on "
        f"{_sets(len({row['data'] for row in runs}))}",
        f"seeds: {', '.join(map(str, seeds)) or 'none'}",
        f"landmarks: {', '.join(f'{n:,}' for n in landmarks) or 'none'}",
    ]
    for key in ("machine", "versions"):
        for each in dict.fromkeys(_pairs(row[key]) for row in done if row.get(key)):
            lines.append(f"{key}: {each}")
    return lines


def _pairs(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_pairs(each)}" for key, each in value.items())
    return str(value)


def _claims_table(found: Sequence[Claim]) -> Table:
    return Table(
        "claims",
        f"Confirmed: it holds on at least {MOST:.0%} of the data sets that can test it, or on all "
        "where the paper speaks of all. Not confirmed: on less than half. Mixed: between.",
        ("", "claim", "verdict", "the numbers"),
        tuple(
            (Cell(str(number)), Cell(claim.text), Cell(claim.verdict, best=True), Cell(claim.evidence))
            for number, claim in enumerate(found, start=1)
        ),
        left=4,
    )


def _reach_table(found: Sequence[Reach]) -> Table:
    tested = [cell for cell in found if cell.within is not None]
    lines = []
    for cell in found:
        ours = "–" if cell.ours is None else show_auc(cell.ours)
        paper = "–" if cell.paper is None else show_auc(cell.paper)
        gap = "–" if cell.difference is None else _points(cell.difference)
        within = {None: "not run", True: "yes", False: "no"}[cell.within]
        if cell.difference is not None and cell.difference > NEAR:
            within = "above"
        texts = (cell.method, cell.data, cell.table, ours, paper, gap, within)
        lines.append(tuple(Cell(text) for text in texts))
    lines.sort(key=lambda line: (line[0].ours, line[2].ours))
    return Table(
        "reach",
        f"NBAUC and NSAUC are within {NEAR} points of the paper on "
        f"{sum(bool(cell.within) for cell in tested)} of {len(tested)} cells that were run.",
        ("method", "data", "where", "ours", "paper", "difference", f"within {NEAR}"),
        tuple(lines),
        left=3,
    )


def _furthest(cells: Sequence[Reach], shown: int = 10) -> list[str]:
    """The cells furthest below the paper, and those furthest above."""
    gaps = [(cell.difference, cell) for cell in cells if cell.difference is not None]
    short = sorted((pair for pair in gaps if pair[0] < -EQUAL), key=lambda pair: pair[0])
    better = sorted((pair for pair in gaps if pair[0] > EQUAL), key=lambda pair: -pair[0])
    parts = []
    for heading, word, found in (
        ("## Where we fall short", "below", short),
        ("## Where we are better", "above", better),
    ):
        told = f"{len(found)} of {len(gaps)} cells are more than {EQUAL} points {word} the paper"
        told += f"; the {shown} furthest:" if len(found) > shown else ":" if found else "."
        lines = [
            f"{cell.method} on {cell.data} ({cell.table}): {show_auc(cell.ours or 0.0)}, the paper "
            f"{show_auc(cell.paper or 0.0)}, {_points(gap)}"
            for gap, cell in found[:shown]
        ]
        parts += [heading, told, _bullets(lines)]
    return parts


def _substituted(used: Sequence[Row]) -> list[str]:
    """Each note once, with the data sets and methods it is about."""
    about: dict[str, dict[str, set[str]]] = {}
    for row in used:
        for text in notes_of(row):
            about.setdefault(text, {}).setdefault(row["data"], set()).add(row["method"])
    lines = []
    for text, by_data in about.items():
        methods = {method for each in by_data.values() for method in each if method}
        only = f" ({', '.join(sorted(methods))})" if len(methods) in (1, 2) else ""
        lines.append(f"{', '.join(by_data)}{only}: {text.rstrip('.')}.")
    return lines


def _not_run(rows: Rows) -> list[str]:
    """Expected results that are missing, by experiment and why."""
    lines = []
    for data in published.DATASETS:
        reason = why_no_data(rows, data)
        if reason is not None:
            lines.append(f"{data}: no data: {reason.rstrip('.')}.")
    for experiment, (where, datasets, methods) in _EXPERIMENTS.items():
        missing: dict[tuple[str, str], dict[str, list[int]]] = {}
        for data in datasets:
            if why_no_data(rows, data) is not None:
                continue
            for method in methods:
                seeds = seeds_of(rows, experiment, data, method)
                if not seeds:
                    missing.setdefault((method, "not run"), {})[data] = []
                for row in seeds:
                    if not is_done(row):
                        why = f"{row['status']}: {row.get('reason') or 'no reason given'}"
                        missing.setdefault((method, why), {}).setdefault(data, []).append(row["seed"])
        for (method, why), by_data in missing.items():
            who = f", {method}" if method else ""
            on = [
                f"{data} (seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))})" if seeds else data
                for data, seeds in by_data.items()
            ]
            lines.append(f"{where}{who}, {', '.join(on)}: {why.rstrip('.')}.")
    return lines
