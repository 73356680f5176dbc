"""The page on a run: the paper's claims, where we reach its numbers, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aucmax.paper import published
from aucmax.paper.claims import EQUAL, MOST, NEAR, Claim, claims
from aucmax.paper.result_tables import (
    QUICK,
    Published,
    Row,
    Rows,
    auc,
    count,
    difference,
    is_done,
    mean_of,
    notes_of,
    seeds_of,
    show_auc,
    signed,
    why_no_data,
)
from aucmax.paper.text_table import Cell, Table

_EXPERIMENTS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "data": ("Table 1", published.DATASETS, ("",)),
    "batch": ("Tables 2 and 3", published.DATASETS, published.BATCH_METHODS),
    "stochastic": ("Table 4", published.LARGE_DATASETS, published.STOCHASTIC_METHODS),
    "epochs": ("Figure 1", published.LARGE_DATASETS, published.EPOCH_METHODS),
}


@dataclass(frozen=True)
class Reach:
    """Ours beside the paper's, in percent; None where there is none."""

    table: str
    data: str
    method: str
    ours: float | None
    paper: float | None
    chance: float | None = None  #: half of the 95 % interval that one draw of test rows has
    stand_in: bool = False  #: whether other data stands in for the paper's

    @property
    def difference(self) -> float | None:
        """Of the numbers as shown, with two decimals."""
        if self.ours is None or self.paper is None:
            return None
        return round(difference(self.ours, self.paper, show_auc), 2)

    @property
    def verdict(self) -> str:
        """Whether it is no further than ``NEAR`` from the paper's, and if not, on which side."""
        if self.difference is None:
            return "not run"
        if abs(self.difference) <= NEAR:
            return "yes"
        return "above" if self.difference > 0 else "below"


def reach(rows: Rows) -> list[Reach]:
    """NBAUC (Tables 2 and 4) and NSAUC (Table 4) on every data set, beside the paper's."""
    return [cell for cell in _all_cells(rows) if cell.method in ("NBAUC", "NSAUC")]


def _all_cells(rows: Rows) -> list[Reach]:
    """Every AUC of Tables 2 and 4 beside ours."""
    tables: tuple[tuple[str, str, Published], ...] = (
        ("Table 2", "batch", published.TABLE2),
        ("Table 4", "stochastic", published.TABLE4_AUC),
    )
    return [
        _beside(rows, table, experiment, data, method, paper)
        for table, experiment, values in tables
        for data, by_method in values.items()
        for method, paper in by_method.items()
    ]


def _beside(
    rows: Rows, table: str, experiment: str, data: str, method: str, paper: float | None
) -> Reach:
    ours, chance = (
        mean_of(rows, experiment, data, method, measure) for measure in (auc, _half_interval)
    )
    stand_in = any(row.get("substitute") for row in seeds_of(rows, experiment, data, method))
    return Reach(table, data, method, ours, paper, chance, stand_in)


def _half_interval(row: Row) -> float:
    return 50.0 * (float(row["auc_high"]) - float(row["auc_low"]))


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
        f"{count(len({row['data'] for row in runs}), 'data set')}",
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
    tested = [cell for cell in found if cell.difference is not None]
    own = [cell for cell in tested if not cell.stand_in]
    lines = []
    for cell in found:
        ours = "–" if cell.ours is None else show_auc(cell.ours)
        paper = "–" if cell.paper is None else show_auc(cell.paper)
        gap = "–" if cell.difference is None else signed(cell.difference, show_auc)
        chance = "–" if cell.chance is None else f"±{show_auc(cell.chance)}"
        verdict = f"{cell.verdict} (stand-in)" if cell.stand_in else cell.verdict
        texts = (cell.method, cell.data, cell.table, ours, paper, gap, chance, verdict)
        lines.append(tuple(Cell(text) for text in texts))
    lines.sort(key=lambda line: (line[0].ours, line[2].ours))
    told = (
        f"NBAUC and NSAUC are within {NEAR} points of the paper, or above it, on "
        f"{sum(cell.verdict != 'below' for cell in own)} of {len(own)} cells that were run on its data"
    )
    if len(own) < len(tested):
        near = sum(cell.verdict != "below" for cell in tested if cell.stand_in)
        told += f", and on {near} of {len(tested) - len(own)} where other data stands in"
    return Table(
        "reach",
        f'{told}. The paper\'s numbers come from one split; under "chance" stands by how much a '
        "draw of test rows may be off (half of DeLong's 95 % interval).",
        ("method", "data", "where", "ours", "paper", "difference", "chance", f"within {NEAR}"),
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
            f"{show_auc(cell.paper or 0.0)}, {signed(gap, show_auc)}"
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
