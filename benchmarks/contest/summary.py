"""What the rows say: AUC by data set, ranks, significant differences, time, rare positives."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]
Key = tuple[str, str, int, str]

FIRST = "aucmax"
TIME_UNIT = "LightGBM tuned"
FULL = "full"
OURS = ("aucmax", "aucmax (paper)")
#: The first method with one thing changed: compared with it alone, on the splits that both ran on.
CHANGED = ("aucmax, no metric", "aucmax, one kernel", "aucmax, effort 4")
#: Left out of ranks: who does not take part everywhere.
SOMEWHERE = ("SVC", "xRFM", "RealMLP")
#: Who is compared with where positives are rare.
TUNED = ("LightGBM tuned", "XGBoost tuned", "CatBoost tuned")
#: Who is in the short table of the README, and where positives are rare, the share shown there.
SHORT = (FIRST, "LightGBM tuned", "CatBoost tuned", "XGBoost tuned", "CatBoost", "LightGBM", "XGBoost")
SHORT_SHARE = "0.3 %"
#: A difference in mean AUC that counts where most splits have no paired test.
CLEARLY = 0.001


def latest(rows: Iterable[Row]) -> dict[Key, Row]:
    """The last row of each method on each split."""
    return {(row["data"], row["regime"], row["seed"], row["method"]): row for row in rows}


def comparable(rows: Iterable[Row]) -> list[Row]:
    """The last rows of the splits that the first method has run on: the others are yet to be shown."""
    last = latest(rows)
    return [row for (*place, _), row in last.items() if (*place, FIRST) in last]


def same_duel(duel: Row, row: Row, first: Row) -> bool:
    """Whether a paired test was with the scores that the first method's row is of, by their AUC."""
    return abs(row["auc"] - duel["difference"] - first["auc"]) < 1e-9


class Table:
    """Rows of one regime, by data set and method."""

    def __init__(self, rows: Iterable[Row], regime: str) -> None:
        self.rows = [row for row in comparable(rows) if row["regime"] == regime]
        self.data = _unique(row["data"] for row in self.rows)
        self.methods = _unique(row["method"] for row in self.rows if row["method"] not in CHANGED)
        self._cells: dict[tuple[str, str], list[Row]] = {}
        for row in self.rows:
            self._cells.setdefault((row["data"], row["method"]), []).append(row)
        self._seeds = {name: {r["seed"] for r in self.rows if r["data"] == name} for name in self.data}

    def cell(self, data: str, method: str) -> list[Row]:
        return self._cells.get((data, method), [])

    def ran(self, data: str, method: str) -> bool:
        """Whether a method has a row, good or bad, on each split of the data set."""
        return {row["seed"] for row in self.cell(data, method)} == self._seeds[data]

    def mean(self, data: str, method: str, what: str = "auc") -> float | None:
        """Over the splits, or None unless the method came through on each."""
        cell = self.cell(data, method)
        if not self.ran(data, method) or any(row["status"] != "ok" for row in cell):
            return None
        return statistics.fmean(row[what] for row in cell)

    def ranked(self) -> list[str]:
        return [method for method in self.methods if method not in SOMEWHERE]

    def complete(self) -> list[str]:
        """Data sets that all ranked methods ran on."""
        return [name for name in self.data if all(self.ran(name, method) for method in self.ranked())]

    def ranks(self) -> dict[str, float]:
        """Mean rank over the complete data sets, of mean AUCs; who did not come through is last."""
        found: dict[str, list[float]] = {method: [] for method in self.ranked()}
        for name in self.complete():
            means = {method: self.mean(name, method) for method in found}
            scores = {method: -math.inf if m is None else m for method, m in means.items()}
            for method, score in scores.items():
                above = sum(other > score for other in scores.values())
                equal = sum(other == score for other in scores.values())
                found[method].append(above + (equal + 1) / 2)
        return {method: statistics.fmean(ranks) for method, ranks in found.items() if ranks}

    def duels(self, method: str, data: Iterable[str] | None = None) -> tuple[int, int, int]:
        """Splits where the first method is better, worse, or neither at the 5 % level."""
        found = []
        for name in self.data if data is None else data:
            first = {row["seed"]: row for row in self.cell(name, FIRST) if row["status"] == "ok"}
            for row in self.cell(name, method):
                duel, other = row.get("against"), first.get(row["seed"])
                if duel and other and same_duel(duel, row, other):
                    found.append(duel)
        better = sum(duel["p"] < 0.05 and duel["difference"] < 0 for duel in found)
        worse = sum(duel["p"] < 0.05 and duel["difference"] > 0 for duel in found)
        return better, worse, len(found) - better - worse

    def data_sets_won(self, method: str) -> tuple[int, int]:
        """Data sets where the first method is better, or worse, on more than half of the splits."""
        won = lost = 0
        for name in self.data:
            better, worse, neither = self.duels(method, [name])
            won += better > worse + neither
            lost += worse > better + neither
        return won, lost

    def time_ratio(self, method: str, what: str = "fit_seconds") -> float | None:
        """Geometric mean over data sets of mean seconds, in units of ``TIME_UNIT``'s."""
        logs = []
        for name in self.data:
            mine, unit = (self.mean(name, who, what) for who in (method, TIME_UNIT))
            if mine and unit:
                logs.append(math.log(mine / unit))
        return math.exp(statistics.fmean(logs)) if logs else None

    def overall(self, method: str, what: str = "auc") -> float | None:
        """Mean over the complete data sets."""
        means = [self.mean(name, method, what) for name in self.complete()]
        found = [mean for mean in means if mean is not None]
        return statistics.fmean(found) if found and len(found) == len(means) else None

    def most(self, method: str, what: str) -> float | None:
        """The largest of all its rows."""
        found = [row[what] for row in self.rows if row["method"] == method and what in row]
        return max(found, default=None)


# --- Markdown


def markdown(rows: Iterable[Row]) -> str:
    kept = comparable(rows)
    if not kept:
        return "No rows yet."
    full, rare = Table(kept, FULL), rare_tables(kept)
    parts = []
    if full.rows:
        parts += [
            "### Whole data sets\n\nTest AUC in percent, mean over splits; the best in bold.",
            aucs(full),
            standing(full),
            behind(full),
            times(full),
            *(changed(full, method) for method in CHANGED),
            "Average precision in percent, mean over splits; the best in bold.",
            aucs(full, "average_precision"),
        ]
    if rare:
        parts += ["### Rare positives", levels(rare), together(rare), *part_way(kept).values()]
        parts += [by_data(rare), *(behind(table, f" at {name}") for name, table in rare.items())]
    parts += [searches(kept), failures(kept)]
    return "\n\n".join(part for part in parts if part)


def rare_tables(rows: Iterable[Row]) -> dict[str, Table]:
    """Of each share of positives, the largest first, with the methods that ran on every draw."""
    kept = comparable(rows)
    late = set(part_way(kept))
    kept = [row for row in kept if row["method"] not in late]
    regimes = [name for name in _unique(row["regime"] for row in kept) if name != FULL]
    return {name: Table(kept, name) for name in sorted(regimes, key=_share, reverse=True)}


def part_way(rows: Iterable[Row]) -> dict[str, str]:
    """Who has not run on every draw of rare positives, with what is known from those it ran on."""
    rare = [row for row in comparable(rows) if row["regime"] != FULL]
    places: dict[str, dict[tuple[Any, ...], Row]] = {}
    for row in rare:
        place = row["data"], row["regime"], row["seed"]
        places.setdefault(row["method"], {})[place] = row
    first, told = places.get(FIRST, {}), {}
    for method, own in places.items():
        both = [(own[p], first[p]) for p in own if own[p]["status"] == first[p]["status"] == "ok"]
        if len(own) < len(first) and both:
            its, mine = (statistics.fmean(pair[i]["auc"] for pair in both) for i in (0, 1))
            duels = [r["against"] for r, f in both if "against" in r and same_duel(r["against"], r, f)]
            better, worse = (
                sum(d["p"] < 0.05 and sign * d["difference"] < 0 for d in duels) for sign in (1, -1)
            )
            told[method] = (
                f"{method} has run on {len(own)} of {len(first)} draws: there its mean AUC is "
                f"{100 * its:.2f}, and {FIRST}'s {100 * mine:.2f} (better on {better}, worse on "
                f"{worse}, neither on {len(duels) - better - worse})."
            )
    return told


def aucs(table: Table, what: str = "auc") -> str:
    """Mean AUC, or another measure: methods down, data sets across."""
    lines = _head(["method", *(f"{name} ({_splits(table, name)})" for name in table.data)])
    best = {name: _best(table, name, table.methods, what) for name in table.data}
    for method in table.methods:
        cells = [_auc(table, name, method, best[name], what) for name in table.data]
        lines.append(_line([method, *cells]))
    return "\n".join(lines)


def standing(table: Table) -> str:
    """Ranks, duels with the first method, and time."""
    ranks, complete = table.ranks(), len(table.complete())
    lines = _head(
        [
            "method",
            f"mean rank, {complete} data sets",
            f"splits where {FIRST} is better, worse, neither",
            f"data sets where {FIRST} is better, worse",
            f"fit time relative to {TIME_UNIT}",
            f"predict time relative to {TIME_UNIT}",
            "peak memory, GiB",
        ]
    )
    for method in sorted(table.methods, key=lambda name: ranks.get(name, math.inf)):
        duels = table.duels(method)
        numbers = (
            table.time_ratio(method),
            table.time_ratio(method, "predict_seconds"),
            table.most(method, "peak_gib"),
        )
        cells = [f"{ranks[method]:.2f}" if method in ranks else "–"]
        if any(duels):
            cells += [", ".join(map(str, duels)), ", ".join(map(str, table.data_sets_won(method)))]
        else:
            cells += ["", ""]
        lines.append(
            _line([method, *cells, *(f"{number:.2g}" if number else "" for number in numbers)])
        )
    return "\n".join(lines)


def short(rows: Iterable[Row]) -> str:
    """The README's table: mean ranks and times beside boosted trees, and where we lose."""
    kept = comparable(rows)
    full, rare = Table(kept, FULL), rare_tables(kept).get(SHORT_SHARE)
    if not full.rows or rare is None:
        return "No rows yet."
    ranks, rare_ranks = full.ranks(), rare.ranks()
    lines = _head(
        [
            "method",
            f"mean rank, {len(full.complete())} data sets",
            f"mean rank, {len(rare.complete())} data sets with {SHORT_SHARE} positives",
            f"fit time relative to {TIME_UNIT}",
        ]
    )
    for method in sorted((name for name in SHORT if name in ranks), key=ranks.__getitem__):
        ratio, rank = full.time_ratio(method), rare_ranks.get(method)
        cells = [f"{ranks[method]:.1f}", "–" if rank is None else f"{rank:.1f}"]
        lines.append(_line([method, *cells, f"{ratio:.2g}" if ratio else ""]))
    return "\n".join([*lines, "", lost(full)])


def sizes(rows: Iterable[Row]) -> str:
    """How long a fit of each whole data set takes, and how much memory, by its size."""
    table = Table(rows, FULL)
    names = [f"{FIRST}, s", "paper's settings, s", "LightGBM, s"]
    lines = _head(["data", "rows", "columns", *names, f"memory of {FIRST}, GiB"])
    for name in sorted(table.data, key=lambda name: table.cell(name, FIRST)[0]["rows"]):
        own = table.cell(name, FIRST)
        seconds = (table.mean(name, each, "fit_seconds") for each in (*OURS, "LightGBM"))
        cells = [name, f"{own[0]['rows']:,}", f"{own[0]['features']:,}"]
        cells += ["" if s is None else f"{s:.2g}" if s < 10 else f"{s:.0f}" for s in seconds]
        lines.append(_line([*cells, f"{max(row['peak_gib'] for row in own):.1f}"]))
    return "\n".join(lines)


def lost(table: Table) -> str:
    """The data sets on which a boosted tree is better: on most splits, or in the mean if not tested."""
    tested, untested = [], []
    for name in table.data:
        splits, mine = len(table.cell(name, FIRST)), table.mean(name, FIRST)
        for method in SHORT[1:]:
            better, worse, neither = table.duels(method, [name])
            if worse > better + neither:
                tested.append(name)
                break
            its = table.mean(name, method)
            too_few = 2 * (better + worse + neither) < splits
            if too_few and None not in (mine, its) and its - mine > CLEARLY:
                untested.append(name)
                break
    if not tested + untested:
        return f"On no data set is a boosted tree better than {FIRST} on most splits at the 5 % level."
    sentences = []
    if tested:
        sentences.append(
            f"{FIRST} loses on {_listed(tested)}: there a boosted tree is better on most splits at the "
            "5 % level."
        )
    if untested:
        sentences.append(
            f"The mean AUC of a boosted tree is more than {100 * CLEARLY:g} points above {FIRST}'s on "
            f"{_listed(untested)}, where most splits have no paired test."
        )
    return " ".join(sentences)


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def behind(table: Table, where: str = "") -> str:
    """On which data sets the first method's mean AUC is below the best of the others."""
    rivals = [method for method in table.methods if method not in OURS]
    found = []
    for name in table.data:
        mine, best = table.mean(name, FIRST), _best(table, name, rivals)
        if mine is not None and best is not None and mine < best:
            who = next(method for method in rivals if table.mean(name, method) == best)
            found.append(f"{name} ({100 * mine:.2f} against {100 * best:.2f}, {who})")
    compared = sum(
        table.mean(name, FIRST) is not None and _best(table, name, rivals) is not None
        for name in table.data
    )
    if not compared:
        return ""
    listed = f": {', '.join(found)}." if found else "."
    count = f"{len(found)} of {compared} data sets{where}"
    return f"{FIRST} is behind the best of the rivals on {count}{listed}"


def times(table: Table) -> str:
    """Where the first method's fits are quickest and slowest, relative to the unit of time."""
    found = []
    for name in table.data:
        mine, unit = (table.mean(name, who, "fit_seconds") for who in (FIRST, TIME_UNIT))
        if mine and unit:
            found.append((mine / unit, name))
    if not found:
        return ""
    (least, quick), (most, slow) = min(found), max(found)
    return (
        f"{FIRST}'s fits take {least:.2g} ({quick}) to {most:.2g} ({slow}) times those of {TIME_UNIT}."
    )


def changed(table: Table, method: str) -> str:
    """The first method against itself with one thing changed, on the splits that both ran on."""
    lines = _head(
        [
            "data",
            "splits",
            FIRST,
            method,
            f"{FIRST} better, worse, neither",
            f"fit time relative to {FIRST}",
        ]
    )
    ratios: list[float] = []
    for name in table.data:
        own = {row["seed"]: row for row in table.cell(name, FIRST) if row["status"] == "ok"}
        its = [r for r in table.cell(name, method) if r["status"] == "ok" and r["seed"] in own]
        if not its:
            continue
        mine = [own[row["seed"]] for row in its]
        means = [f"{100 * statistics.fmean(row['auc'] for row in rows):.2f}" for rows in (mine, its)]
        seconds = [statistics.fmean(row["fit_seconds"] for row in rows) for rows in (mine, its)]
        ratios.append(seconds[1] / seconds[0])
        duels = ", ".join(map(str, table.duels(method, [name])))
        lines.append(_line([name, str(len(its)), *means, duels, f"{ratios[-1]:.2g}"]))
    if not ratios:
        return ""
    better, worse, neither = table.duels(method)
    mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
    told = (
        f"Compared with {method}, {FIRST} is better on {better}, worse on {worse} and neither on "
        f"{neither} splits at the 5 % level; its fits take {1 / mean:.2g} times as long in the "
        f"geometric mean, and between {1 / max(ratios):.2g} and {1 / min(ratios):.2g} times."
    )
    return "\n".join([*lines, "", told])


def searches(rows: list[Row]) -> str:
    """How far the searches came."""
    found: dict[str, list[int]] = {}
    for row in rows:
        if row["status"] == "ok" and "configurations" in row:
            found.setdefault(row["method"], []).append(row["configurations"])
    told = [
        f"{method} {statistics.fmean(counts):.1f} ({min(counts)} to {max(counts)})"
        for method, counts in found.items()
    ]
    return f"Configurations per search, mean and range: {', '.join(told)}." if told else ""


def levels(tables: dict[str, Table]) -> str:
    """Mean AUC and duels: methods down, shares of positives across."""
    names = _unique(method for table in tables.values() for method in table.methods)
    told = [f"{share} of rows positive ({len(table.complete())})" for share, table in tables.items()]
    lines = [
        "Test AUC in percent, mean over data sets (their number in the header) and draws, then mean "
        f"rank; in brackets, draws where {FIRST} is better, worse, neither at the 5 % level.",
        "",
        *_head(["method", *told]),
    ]
    for method in names:
        cells = []
        for table in tables.values():
            mean, rank, duels = table.overall(method), table.ranks().get(method), table.duels(method)
            cell = "–" if mean is None or rank is None else f"{100 * mean:.2f}, {rank:.2f}"
            cells.append(f"{cell} ({', '.join(map(str, duels))})" if any(duels) else cell)
        lines.append(_line([method, *cells]))
    return "\n".join(lines)


def together(tables: dict[str, Table]) -> str:
    """How far the first method is above the searched ones, over all shares of positives."""
    told = []
    for rival in TUNED:
        apart = []
        for table in tables.values():
            for name in table.data:
                mine, its = table.mean(name, FIRST), table.mean(name, rival)
                if mine is not None and its is not None:
                    apart.append(mine - its)
        if apart:
            mean, above = statistics.fmean(apart), sum(each > 0 for each in apart)
            where = f"above it on {above} of {len(apart)} data sets and shares"
            told.append(f"{100 * mean:+.2f} points from {rival}'s ({where})")
    return f"Over all of these, {FIRST}'s mean AUC differs by {', '.join(told)}." if told else ""


def by_data(tables: dict[str, Table]) -> str:
    """Mean AUC: data sets and shares down, methods across."""
    methods = _unique(method for table in tables.values() for method in table.methods)
    lines = _head(["data", "regime", "rows", "positives", "draws", *methods])
    for name in _unique(name for table in tables.values() for name in table.data):
        for regime, table in tables.items():
            if name not in table.data:
                continue
            some = next(row for row in table.rows if row["data"] == name)
            best = _best(table, name, methods)
            cells = [_auc(table, name, method, best) for method in methods]
            lines.append(
                _line(
                    [
                        name,
                        regime,
                        f"{some['rows']:,}",
                        f"{some['positives']:,}",
                        str(_splits(table, name)),
                        *cells,
                    ]
                )
            )
    return "\n".join(lines)


def failures(rows: list[Row]) -> str:
    """The runs that failed, and why."""
    found: dict[tuple[str, ...], list[int]] = {}
    for row in rows:
        if row["status"] != "ok":
            what = row["method"], row["data"], row["regime"], row["status"], row.get("reason", "")
            found.setdefault(what, []).append(row["seed"])
    lines = []
    for (method, name, regime, status, reason), seeds in found.items():
        listed = ", ".join(map(str, sorted(seeds)))
        lines.append(f"- {method} on {name}, {regime}, seed {listed}: {status} ({reason})")
    return "\n".join(["Failed runs:", "", *lines]) if lines else ""


def _auc(table: Table, data: str, method: str, best: float | None, what: str = "auc") -> str:
    mean, cell = table.mean(data, method, what), table.cell(data, method)
    if mean is None:
        good = sum(row["status"] == "ok" for row in cell)
        return f"{good} of {_splits(table, data)} done" if cell else ""
    told = f"{100 * mean:.2f}"
    return f"**{told}**" if best is not None and told == f"{100 * best:.2f}" else told


def _best(table: Table, data: str, methods: Iterable[str], what: str = "auc") -> float | None:
    means = [table.mean(data, method, what) for method in methods]
    return max((mean for mean in means if mean is not None), default=None)


def _splits(table: Table, data: str) -> int:
    return len({row["seed"] for row in table.rows if row["data"] == data})


def _share(regime: str) -> float:
    return float(regime.removesuffix("%"))


def _unique(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _head(names: list[str]) -> list[str]:
    return [_line(names), "|" + "---|" * len(names)]


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
