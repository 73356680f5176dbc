"""Result rows by cell: the seeds of a cell, means and tests over them, and how numbers are shown."""

from __future__ import annotations

import itertools
import statistics
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from aucmax.paper.published import LANDMARKS, SCOPES
from aucmax.paper.store import is_disturbed, protocol_of

Row = Mapping[str, Any]
Rows = Sequence[Row]
Measure = Callable[[Row], float]
Show = Callable[[float], str]

QUICK_WARNING = "QUICK: small samples, not the paper's protocol"

#: With fewer data sets no signed-rank test can come near the usual levels (5 give p = 0.06 at best).
FEWEST_TO_TEST = 5


def seeds_of(rows: Rows, experiment: str, data: str, method: str = "") -> list[Row]:
    """Return the rows of a cell, the last one for each seed.

    If a cell was run in several ways, these are not averaged, and one is used: the full protocol before
    quick, the latest version of it before others, the paper's data before a substitute, its number of
    landmarks before others, then the most.
    """
    key = (experiment, data, method)
    cell = [row for row in rows if (row["experiment"], row["data"], row["method"]) == key]
    best = max(map(_preference, cell), default=None)
    latest = {row["seed"]: row for row in cell if _preference(row) == best}
    return [latest[seed] for seed in sorted(latest)]


def _preference(row: Row) -> tuple[bool, int, bool, bool, int]:
    landmarks, own = row.get("landmarks") or 0, not row.get("substitute")
    return not row.get("quick"), version(row), own, landmarks == LANDMARKS, landmarks


def version(row: Row) -> int:
    """Return the version of the protocol that a row was computed with."""
    return int(row.get("protocol") or 1)


def rows_of(rows: Rows, experiment: str) -> list[Row]:
    """Return the rows that the tables and the figure of an experiment use."""
    cells = itertools.product(SCOPES[experiment].datasets, SCOPES[experiment].methods)
    return [row for cell in cells for row in seeds_of(rows, experiment, *cell)]


def is_done(row: Row) -> bool:
    return bool(row["status"] == "done")


def on_own_data(rows: Rows) -> list[Row]:
    """Return the rows that are of the paper's own data, and of no substitute."""
    return [row for row in rows if not row.get("substitute")]


def auc(row: Row) -> float:
    """Return the AUC in percent."""
    return 100.0 * float(row["auc"])


def training_seconds(row: Row) -> float:
    """Return the time of Table 3, with the embedding."""
    return float(row.get("embedding_seconds") or 0.0) + float(row["learning_seconds"])


def learning_seconds(row: Row) -> float:
    """Return the time of Table 4, without the embedding."""
    return float(row["learning_seconds"])


def paired_means(
    rows: Rows,
    experiment: str,
    methods: Sequence[str],
    measure: Measure = auc,
    middle: Callable[[Iterable[float]], float] = statistics.fmean,
) -> dict[str, list[float]]:
    """Return each method's mean over the seeds that all of them ended, by data set.

    A seed is a split of its own on most data sets, so means over different seeds do not compare. Of
    times, the ``middle`` is the median.
    """
    found = {}
    for data in SCOPES[experiment].datasets:
        cells = [seeds_of(rows, experiment, data, method) for method in methods]
        ended = [{row["seed"]: measure(row) for row in cell if is_done(row)} for cell in cells]
        if shared := set.intersection(*map(set, ended)):
            found[data] = [middle([each[seed] for seed in shared]) for each in ended]
    return found


def gains(rows: Rows, experiment: str, one: str, other: str) -> dict[str, float]:
    """Return by how many points of AUC one method is above another, by data set."""
    means = paired_means(rows, experiment, (one, other))
    return {data: first - second for data, (first, second) in means.items()}


def mean_ranks(rows: Rows, experiment: str) -> tuple[dict[str, float], int]:
    """Return mean ranks by AUC over the data sets that all methods with results have, and how many."""
    from scipy.stats import rankdata

    done = {row["method"] for row in rows_of(rows, experiment) if is_done(row)}
    methods = [method for method in SCOPES[experiment].methods if method in done]
    means = paired_means(rows, experiment, methods) if len(methods) > 1 else {}
    ranks = [rankdata(np.negative(each)) for each in means.values()]
    averages = map(float, np.mean(ranks, axis=0)) if ranks else ()
    return dict(zip(methods, averages, strict=False)), len(ranks)


def signed_rank(
    rows: Rows, experiment: str, champion: str, other: str
) -> tuple[float | None, int, int]:
    """Test two methods across data sets: p (None for too few), wins of the champion, and data sets."""
    from scipy.stats import wilcoxon

    found = list(gains(rows, experiment, champion, other).values())
    wins = sum(gain > 0 for gain in found)
    if len(found) < FEWEST_TO_TEST:
        return None, wins, len(found)
    if not any(found):
        return 1.0, 0, len(found)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # older versions of SciPy warn of ties
        return float(wilcoxon(found).pvalue), wins, len(found)


def why_no_data(rows: Rows, data: str) -> str | None:
    """Return why a data set could not be read, or None if it could or was not requested."""
    tried = seeds_of(rows, "data", data)
    if not tried or any(is_done(row) for row in rows if row["data"] == data):
        return None
    return str(tried[-1].get("reason") or "it could not be read")


def absent(rows: Rows, data: str) -> str:
    """Return the words for a result that is not there."""
    return "not run" if why_no_data(rows, data) is None else "no data"


def failures(seeds: Sequence[Row]) -> dict[str, list[int]]:
    """Return why seeds have no result, with the seeds of each reason."""
    found: dict[str, list[int]] = {}
    for row in seeds:
        if not is_done(row):
            reason = f"{row['status']}: {row.get('reason') or 'no reason given'}"
            found.setdefault(reason, []).append(row["seed"])
    return found


def notes_of(*rows: Row) -> list[str]:
    """Return the sentences of the rows' notes, each once."""
    parts = [part.strip() for row in rows for part in (row.get("note") or "").split(";")]
    if any(row["method"] and version(row) < protocol_of(row["method"]) for row in rows):
        parts.append("run with an earlier version of the protocol")
    parts += [f"{row['method']}: timed beside other programs" for row in rows if is_disturbed(row)]
    return list(dict.fromkeys(filter(None, parts)))


def by_note(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the rows that share each note."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        for text in notes_of(row):
            found.setdefault(text, []).append(row)
    return found


def names_of(rows: Rows) -> str:
    """Return the names of the rows' data sets, each once."""
    return ", ".join(dict.fromkeys(row["data"] for row in rows))


def other_landmarks(used: Sequence[Row]) -> str:
    """Return the numbers of landmarks in use, or nothing if they are the paper's alone."""
    numbers = {row.get("landmarks") or LANDMARKS for row in used}
    return "" if numbers <= {LANDMARKS} else " and ".join(f"{n:,}" for n in sorted(numbers))


show_auc, show_count = "{:.2f}".format, "{:,.0f}".format


def show_seconds(value: float) -> str:
    return f"{value:,.2f}" if value < 999.995 else f"{value:,.0f}"


def shown(value: float, show: Show) -> float:
    """Return a number as rounded for show."""
    return float(show(value).replace(",", ""))


def difference(ours: float, paper: float, show: Show) -> float:
    """Return the difference of two numbers as shown, so that a reader finds the same."""
    return shown(ours, show) - shown(paper, show)


def signed(value: float, show: Show = show_auc) -> str:
    """Show a number with + or the true minus sign; one that shows as zero has no sign."""
    text = show(abs(value))
    return ("" if not text.strip("0.,") else "+" if value > 0 else "−") + text


def count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
