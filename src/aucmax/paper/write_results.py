"""Write the results of a run: its tables, its figure, and a page on the paper's claims and numbers."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from aucmax.paper import published, results
from aucmax.paper.claims import EQUAL, MOST, NEAR, Claim, claims
from aucmax.paper.figure import figure1
from aucmax.paper.protocol import DEPARTURES, tabulated
from aucmax.paper.result_tables import TABLES
from aucmax.paper.results import Row, Rows, count, is_done, seeds_of, show_auc, signed
from aucmax.paper.store import protocol_of
from aucmax.paper.text_table import Entry, Table, escape_markdown, html_page
from aucmax.runtime.output_files import replacing


def write_report(rows: Sequence[dict[str, Any]], folder: Path, what: str = "all") -> list[Table]:
    """Write one table, the figure or all, and return the tables among them."""
    copies = [copy for row in rows for copy in tabulated(row)]
    made = {name: make(copies) for name, make in TABLES.items() if what in (name, "all")}
    texts: dict[str, str] = {}
    for name, table in made.items():
        texts |= {f"{name}.md": table.markdown(), f"{name}.tex": table.latex()}
        texts[f"{name}.html"] = table.html()
    if what == "all":
        texts |= {"tables.html": html_page(made.values()), "results.md": page(copies)}
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        with replacing(folder / name) as file:
            file.write(text.encode())
    if what in ("figure1", "all"):  # last, as only the figure needs matplotlib
        for suffix in ("png", "pdf"):
            figure1(copies, folder / f"figure1.{suffix}")
    return list(made.values())


#: The headings of how far a number is from the paper's.
_DISTANCES = ("difference", "chance", "linear")


class Gap(NamedTuple):
    """Our AUC and the paper's for one entry of a table, in percent; None if there is none."""

    table: str
    data: str
    method: str
    ours: float | None
    paper: float | None
    points: float | None  #: the difference of the numbers as shown
    chance: float | None  #: half of the 95 % interval for one draw of test rows
    linear: float | None  #: the difference of Linear RankSVM on the same splits
    stand_in: bool  #: whether other data replaces the paper's

    @property
    def verdict(self) -> str:
        """Whether ours is within ``NEAR`` of the paper's, and if not, on which side."""
        if self.points is None:
            return "not run"
        return "yes" if abs(self.points) <= NEAR else "above" if self.points > 0 else "below"


def gaps(rows: Rows) -> list[Gap]:
    """Compare every AUC of Tables 2 and 4 with the paper's."""
    table2 = [("Table 2", "batch", *line) for line in published.TABLE2.items()]
    table4 = [("Table 4", "stochastic", *line) for line in published.TABLE4_AUC.items()]
    found = []
    for table, experiment, data, values in table2 + table4:
        linear = seeds_of(rows, "batch", data, "Linear RankSVM")
        for method, paper in values.items():
            seeds = seeds_of(rows, experiment, data, method)
            done = [row for row in seeds if is_done(row)]
            chance = None
            if done:
                chance = statistics.fmean(50.0 * (row["auc_high"] - row["auc_low"]) for row in done)
            own = {row["seed"] for row in done}
            same_splits = [row for row in linear if row["seed"] in own]
            ours, points = _against(done, paper)
            _, of_linear = _against(same_splits, published.TABLE2[data]["Linear RankSVM"])
            stand_in = any(row.get("substitute") for row in seeds)
            found.append(Gap(table, data, method, ours, paper, points, chance, of_linear, stand_in))
    return found


def _against(seeds: Rows, paper: float | None) -> tuple[float | None, float | None]:
    """Return the mean AUC of the seeds that ended, and its difference from the paper's."""
    done = [results.auc(row) for row in seeds if is_done(row)]
    if not done:
        return None, None
    ours = statistics.fmean(done)
    return ours, None if paper is None else round(results.difference(ours, paper, show_auc), 2)


def page(rows: Rows, departures: Sequence[str] = DEPARTURES) -> str:
    """Return a Markdown page: what was run, the claims, and our numbers against the paper's."""
    used = [row for experiment in published.SCOPES for row in results.rows_of(rows, experiment)]
    found = gaps(rows)
    quick = any(row.get("quick") for row in used)
    parts = [
        "# The paper's experiments, run again",
        f"**{results.QUICK_WARNING}.** The verdicts do not apply to the paper." if quick else "",
        "[Table 1](table1.md), [Table 2](table2.md), [Table 3](table3.md), [Table 4](table4.md) and "
        "[Figure 1](figure1.png) have the numbers. AUC is in percent, differences are in points of it, "
        "and ours are means over seeds.",
        "## What was run",
        _bullets(_what_was_run(used)),
        "## The paper's claims",
        _claims_table(claims(rows)).markdown().strip(),
        "## Do we reach the paper's numbers?",
        _reach_table([gap for gap in found if gap.method in ("NBAUC", "NSAUC")]).markdown().strip(),
        *_furthest("## Where we fall short", "below", found, -1),
        *_furthest("## Where we are better", "above", found, 1),
        *_changed(rows),
        "## What was substituted",
        _bullets(_substituted(used)) or "No data set and no run.",
        "## How every run departs from the paper" if departures else "",
        _bullets(departures),
        "## What was not run",
        _bullets(_not_run(rows)) or "Every cell of the tables and the figure has a result.",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {escape_markdown(line)}" for line in lines)


def _what_was_run(used: Sequence[Row]) -> list[str]:
    runs = [row for row in used if row["experiment"] != "data"]
    done = [row for row in runs if is_done(row)]
    seeds = sorted({row["seed"] for row in done})
    landmarks = sorted({row["landmarks"] for row in done if row.get("landmarks")})
    datasets = count(len({row["data"] for row in done}), "data set")
    lines = [
        f"{len(done)} results of {len(runs)} runs on {datasets}",
        f"seeds: {', '.join(map(str, seeds)) or 'none'}",
        f"landmarks: {', '.join(f'{n:,}' for n in landmarks) or 'none'}",
    ]
    for key in ("machine", "versions"):
        known = [row[key].items() for row in used if is_done(row) and row.get(key)]
        texts = [", ".join(f"{name} {value}" for name, value in pairs) for pairs in known]
        lines += [f"{key}: {text}" for text in dict.fromkeys(texts)]
    return lines


def _claims_table(found: Sequence[Claim]) -> Table:
    lines = [
        (
            Entry(str(k)),
            Entry(claim.text),
            Entry(claim.verdict, best=True),
            Entry(claim.own),
            Entry(claim.evidence),
        )
        for k, claim in enumerate(found, start=1)
    ]
    return Table(
        "claims",
        f"Confirmed: the claim holds on at least {MOST:.0%} of the data sets that can test it, or on "
        "all if the paper says so. Not confirmed: it holds on less than half. Mixed: between. The "
        "second verdict leaves out data sets that stand in for the paper's. A run that was stopped "
        "counts as one of at least its time limit.",
        ("", "claim", "verdict", "on its own data", "the numbers"),
        tuple(lines),
        left=5,
    )


def _reach_table(found: Sequence[Gap]) -> Table:
    lines = []
    for gap in sorted(found, key=lambda gap: (gap.method, gap.table)):
        numbers = [(gap.ours, show_auc), (gap.paper, show_auc), (gap.points, signed)]
        texts = ["–" if value is None else show(value) for value, show in numbers]
        chance = "–" if gap.chance is None else f"±{gap.chance:.2f}"
        linear = "–" if gap.linear is None else signed(gap.linear)
        verdict = f"{gap.verdict} (stand-in)" if gap.stand_in else gap.verdict
        cells = (gap.method, gap.data, gap.table, *texts, chance, linear, verdict)
        lines.append(tuple(map(Entry, cells)))
    own, others = (
        [gap.verdict != "below" for gap in found if gap.points is not None and gap.stand_in == stand_in]
        for stand_in in (False, True)
    )
    more = f", and on {sum(others)} of {len(others)} where other data stands in" if others else ""
    return Table(
        "reach",
        f"NBAUC and NSAUC are within {NEAR} points of the paper, or above it, on {sum(own)} of "
        f"{len(own)} cells that were run on its data{more}. The paper's numbers come from one split; "
        '"chance" is how far one draw of test rows may be off (half of DeLong\'s 95 % interval). '
        '"linear" is the difference of Linear RankSVM on the same splits: the paper leaves only its '
        "stopping rule open, so this shows how much easier or harder our splits are than the paper's.",
        ("method", "data", "where", "ours", "paper", *_DISTANCES, f"within {NEAR}"),
        tuple(lines),
        left=3,
    )


def _furthest(heading: str, word: str, found: Sequence[Gap], sign: int) -> list[str]:
    """List the ten numbers that are furthest from the paper's on one side."""
    tested = [(sign * gap.points, gap) for gap in found if gap.points is not None]
    far = sorted((pair for pair in tested if pair[0] > EQUAL), key=lambda pair: -pair[0])
    text = f"{len(far)} of {len(tested)} cells are more than {EQUAL} points {word} the paper"
    text += "; the 10 furthest:" if len(far) > 10 else ":" if far else "."
    lines = [
        f"{gap.method} on {gap.data} ({gap.table}): {gap.ours:.2f}, the paper {gap.paper:.2f}, "
        + signed(sign * points)
        for points, gap in far[:10]
    ]
    return [heading, text, _bullets(lines)]


def _changed(rows: Rows) -> list[str]:
    """Say how AUCs moved where cells were run with this version of the protocol and the one before."""
    runs = [row for row in rows if row["method"] and is_done(row) and not row.get("quick")]
    before, now = (
        [row for row in runs if (results.version(row) == protocol_of(row["method"])) == latest]
        for latest in (False, True)
    )
    lines = []
    for experiment, method in (("batch", m) for m in published.BATCH_METHODS):
        lines += _moved(before, now, experiment, method)
    for method in published.STOCHASTIC_METHODS[:-1]:
        lines += _moved(before, now, "stochastic", method)
    return ["## What changed since the version before", _bullets(lines)] if lines else []


def _moved(before: Rows, now: Rows, experiment: str, method: str) -> list[str]:
    old, new = (results.paired_means(part, experiment, (method,)) for part in (before, now))
    moved = {data: new[data][0] - old[data][0] for data in new if data in old}
    if not moved:
        return []
    listed = ", ".join(f"{data} {signed(points)}" for data, points in moved.items())
    return [f"{method} ({published.SCOPES[experiment].title}): {listed}."]


def _substituted(used: Sequence[Row]) -> list[str]:
    """Return each note once, with the data sets and methods that it is about."""
    lines = []
    for text, noted in results.by_note(used).items():
        methods = sorted({row["method"] for row in noted} - {""})
        only = f" ({', '.join(methods)})" if len(methods) in (1, 2) else ""
        lines.append(f"{results.names_of(noted)}{only}: {text.rstrip('.')}.")
    return lines


def _not_run(rows: Rows) -> list[str]:
    """Return the results that are missing, by experiment, method and reason."""
    reasons = {data: results.why_no_data(rows, data) for data in published.DATASETS}
    lines = [f"{data}: no data: {reason.rstrip('.')}." for data, reason in reasons.items() if reason]
    for experiment, scope in published.SCOPES.items():
        missing: dict[tuple[str, str], list[str]] = {}
        for data in (data for data in scope.datasets if reasons[data] is None):
            for method in scope.methods:
                seeds = seeds_of(rows, experiment, data, method)
                if not seeds:
                    missing.setdefault((method, "not run"), []).append(data)
                for why, failed in results.failures(seeds).items():
                    numbers = f"seed{'s' * (len(failed) > 1)} {', '.join(map(str, failed))}"
                    missing.setdefault((method, why), []).append(f"{data} ({numbers})")
        for (method, why), names in missing.items():
            who = f", {method}" if method else ""
            lines.append(f"{scope.title}{who}, {', '.join(names)}: {why.rstrip('.')}.")
    return lines
