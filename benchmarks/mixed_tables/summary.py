"""Summarise the rows: AUC by table, mean AUC and rank, fit times, and where aucmax is behind."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]
Key = tuple[str, int, str]

FIRST = "aucmax"
TIME_UNIT = "CatBoost"


def latest(rows: Iterable[Row]) -> dict[Key, Row]:
    """Return the last row of each method on each split."""
    return {(row["data"], row["seed"], row["method"]): row for row in rows}


class Results:
    """The mean AUC and the mean seconds of each method on each table.

    A table is complete if all methods succeeded on the same splits; only complete tables count in
    means, ranks and ratios.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        good = [row for row in latest(rows).values() if row["status"] == "ok"]
        self.methods = sorted({row["method"] for row in good}, key=lambda name: (name != FIRST, name))
        self.data = sorted({row["data"] for row in good})
        self._cells: dict[tuple[str, str], list[Row]] = {}
        for row in good:
            self._cells.setdefault((row["data"], row["method"]), []).append(row)
        self.about = {row["data"]: row for row in good}
        self.complete = [name for name in self.data if self._is_complete(name)]

    def _is_complete(self, data: str) -> bool:
        return len({frozenset(self.seeds(data, method)) for method in self.methods}) == 1

    def seeds(self, data: str, method: str) -> set[int]:
        return {row["seed"] for row in self._cells.get((data, method), [])}

    def mean(self, data: str, method: str, what: str = "auc") -> float:
        return statistics.fmean(row[what] for row in self._cells[data, method])

    def rank(self, data: str, method: str) -> float:
        """Return the rank by mean AUC, 1 for the best; equal methods share their mean rank."""
        own, means = self.mean(data, method), [self.mean(data, other) for other in self.methods]
        return sum(mean > own for mean in means) + (sum(mean == own for mean in means) + 1) / 2

    def time_ratio(self, data: str, method: str) -> float:
        seconds = [self.mean(data, each, "fit_seconds") for each in (method, TIME_UNIT)]
        return seconds[0] / seconds[1]


# --- Markdown


def markdown(rows: Iterable[Row]) -> str:
    """Return all tables of the section."""
    rows = list(rows)
    results = Results(rows)
    if not results.complete:
        return "\n\n".join(filter(None, ["No table is complete yet.", failures(rows)]))
    held = {name for name in results.complete if results.about[name]["held_back"]}
    groups = {
        "Tables that rules may be tuned on": [name for name in results.complete if name not in held],
        "Tables held back": [name for name in results.complete if name in held],
    }
    parts = ["Test AUC in percent, mean over splits; the best in bold."]
    for title, names in groups.items():
        if names:
            parts += [f"### {title}", aucs(results, names), standing(results, names)]
    parts += ["### All tables", standing(results, results.complete), behind(results)]
    left_out = [name for name in results.data if name not in results.complete]
    if left_out:
        told = "Left out, because not all methods have succeeded on the same splits"
        parts.append(f"{told}: {', '.join(left_out)}.")
    parts.append(failures(rows))
    return "\n\n".join(part for part in parts if part)


def aucs(results: Results, names: list[str]) -> str:
    """Return the mean AUCs: tables down, methods across."""
    head = ["table", "rows", "positives", "columns", "of text", "with missing values", "splits"]
    lines = _head([*head, *results.methods])
    for name in names:
        about = results.about[name]
        shown = {method: f"{100 * results.mean(name, method):.2f}" for method in results.methods}
        best = max(shown.values(), key=float)
        cells = [f"**{auc}**" if auc == best else auc for auc in shown.values()]
        counts = [about[key] for key in ("rows", "positives", "columns")]
        counts += [about[key] for key in ("categories", "columns_with_missing")]
        counts.append(len(results.seeds(name, results.methods[0])))
        lines.append(_line([name, *(f"{count:,}" for count in counts), *cells]))
    return "\n".join(lines)


def standing(results: Results, names: list[str]) -> str:
    """Return mean AUC, mean rank and relative time of each method over some tables."""
    timed = TIME_UNIT in results.methods
    ratio = [f"fit time relative to {TIME_UNIT}, geometric mean (range)"] if timed else []
    lines = _head(["method", f"mean AUC over {len(names)} tables", "mean rank", *ratio])
    for method in results.methods:
        auc = statistics.fmean(results.mean(name, method) for name in names)
        rank = statistics.fmean(results.rank(name, method) for name in names)
        cells = [method, f"{100 * auc:.2f}", f"{rank:.2f}"]
        if timed:
            ratios = [results.time_ratio(name, method) for name in names]
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            spread = f" ({min(ratios):.2g} to {max(ratios):.2g})" if method != TIME_UNIT else ""
            cells.append(f"{mean:.2g}{spread}")
        lines.append(_line(cells))
    return "\n".join(lines)


def behind(results: Results) -> str:
    """Return a sentence that lists every table where another method has the higher mean AUC."""
    rivals = [method for method in results.methods if method != FIRST]
    if FIRST not in results.methods or not rivals:
        return ""
    found = []
    for name in results.complete:
        best = max(rivals, key=lambda method: results.mean(name, method))
        own, other = results.mean(name, FIRST), results.mean(name, best)
        if own < other:
            found.append((own - other, f"{name} ({100 * own:.2f} against {100 * other:.2f}, {best})"))
    listed = f": {', '.join(text for _, text in sorted(found))}" if found else ""
    return (
        f"{FIRST} is behind the better of the other methods on {len(found)} of "
        f"{len(results.complete)} tables{listed}."
    )


def failures(rows: Iterable[Row]) -> str:
    """Return a list of the runs that failed, with the reason."""
    lines = [
        f"- {method} on {data}, seed {seed}: {row.get('reason', 'no reason known')}"
        for (data, seed, method), row in latest(rows).items()
        if row["status"] != "ok"
    ]
    return "\n".join(["Failed runs:", "", *lines]) if lines else ""


def _head(names: list[str]) -> list[str]:
    return [_line(names), "|" + "---|" * len(names)]


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
