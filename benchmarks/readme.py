"""``python -m benchmarks.readme``: write the pages' tables from the rows in docs/benchmarks."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

from benchmarks.contest import summary
from benchmarks.mixed_tables import summary as mixed_tables_summary

ROOT = Path(__file__).parent.parent
PAPER = {  # NBAUC in the paper's Table 2; covtype in full from its Table 4
    "spambase": 98.04,
    "usps": 99.24,
    "magic04": 93.06,
    "ijcnn1": 99.57,
    "connect-4": 94.09,
    "skin": 99.98,
    "covtype-80k": 96.03,
    "covtype": 96.60,
}


def rows(name: str) -> list[dict[str, Any]]:
    text = (ROOT / "docs" / "benchmarks" / f"{name}.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def end_to_end() -> str:
    found = rows("end_to_end")
    times: dict[str, list[float]] = {}
    for row in found:
        times.setdefault(row["model"], []).append(row["seconds"])
    lines = ["| model | test AUC | seconds (each round) |", "|---|---|---|"]
    for model in sorted(times, key=lambda m: (not m.startswith("aucmax"), m)):
        auc = next(r["test_auc"] for r in found if r["model"] == model)
        lines.append(f"| {model} | {auc:.4f} | {', '.join(f'{t:.1f}' for t in times[model])} |")
    peak = found[0]["peak_gib"]
    base = times["scikit-learn Nystroem + LogisticRegression C=1"]
    lines.append("")
    for C in ("1", "10"):
        ours = times[f"aucmax C={C}"]
        ratios = ", ".join(f"{a / b:.2f}" for a, b in zip(ours, base, strict=True))
        lines.append(
            f"aucmax at C={C} takes {ratios} of the time of scikit-learn at C=1 (one number per round)."
        )
    lines.append(f"Peak memory of the process after aucmax: {peak:.1f} GiB.")
    return "\n".join(lines)


def accuracy() -> str:
    lines = [
        "| data | training rows | splits | test AUC | paper's NBAUC | C chosen | fit, seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    found = rows("accuracy")
    for name in dict.fromkeys(row["data"] for row in found):
        mine = [row for row in found if row["data"] == name]
        aucs = [100 * row["test_auc"] for row in mine]
        spread = f" ± {statistics.stdev(aucs):.2f}" if len(aucs) > 1 else ""
        chosen = ", ".join(f"{c:g}" for c in sorted({row["C"] for row in mine}))
        seconds = statistics.median(row["fit_seconds"] for row in mine)
        lines.append(
            f"| {name} | {mine[0]['rows']:,} | {len(mine)} | {statistics.mean(aucs):.2f}{spread} | "
            f"{PAPER[name]:.2f} | {chosen} | {seconds:.1f} |"
        )
    return "\n".join(lines)


STOCHASTIC = {  # the paper's Table 4: AUC of NBAUC, NSAUC, NSOLAM and NOAM
    "ijcnn1": (99.57, 99.69, 98.86, 98.16),
    "connect-4": (94.08, 94.04, 90.60, 85.96),
    "skin": (99.98, 99.98, 99.01, 99.98),
    "cod-rna": (99.18, 99.19, 99.10, 98.29),
    "covtype": (96.60, 96.00, 92.25, 91.29),
}
METHODS = ("NBAUC", "NSAUC", "NSOLAM", "NOAM", "NSVMSGD2", "NSAUC, later iterates weigh more")


def stochastic() -> str:
    lines = [
        "| data | " + " | ".join(METHODS) + " |",
        "|---|" + "---|" * len(METHODS),
    ]
    found = rows("stochastic")
    for name in dict.fromkeys(row["data"] for row in found):
        cells = []
        for method in METHODS:
            last = [r for r in found if r["data"] == name and r["method"] == method][-1]
            paper = dict(zip(METHODS, STOCHASTIC[name], strict=False)).get(method)
            beside = f" ({paper:.2f})" if paper else ""
            cells.append(f"{100 * last['test_auc']:.2f}{beside}, {last['seconds']:.1f} s")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def epochs() -> str:
    """How NSAUC, its last iterate and NSOLAM go on with the epochs."""
    shown = (1, 2, 3, 5, 10, 15, 20)
    lines = [
        "| data | method | " + " | ".join(str(epoch) for epoch in shown) + " |",
        "|---|---|" + "---|" * len(shown),
    ]
    found = rows("stochastic")
    for name in dict.fromkeys(row["data"] for row in found):
        for method in ("NSAUC", "NSVMSGD2", "NSOLAM"):
            auc = {
                r["epoch"]: r["test_auc"] for r in found if (r["data"], r["method"]) == (name, method)
            }
            cells = [f"{100 * auc[epoch]:.2f}" if epoch in auc else "" for epoch in shown]
            lines.append(f"| {name} | {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def rank_svm() -> str:
    """Test AUC with each grid (and splits), and the objective against landmarks on all rows."""
    lines = [
        "| data | rows | paper | paper's grid | grid around the distance rule "
        "| a fifth of the rows, paper's grid | objective relative to every row as a landmark "
        "| seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    found = rows("rank_svm")
    for name in dict.fromkeys(row["data"] for row in found):
        mine = [row for row in found if row["data"] == name]
        kinds = [
            [r for r in mine if (r.get("grid") == "the paper's") == wanted] for wanted in (True, False)
        ]
        auc = [f"{100 * statistics.mean(r['test_auc'] for r in k):.2f} ({len(k)})" for k in kinds]
        fifth = 100 * statistics.mean(r["test_auc_fifth"] for r in kinds[0])
        beside = next(row for row in mine if "relative_difference" in row)
        seconds = statistics.median(row["seconds"] for row in mine)
        lines.append(
            f"| {name} | {beside['rows']:,} | {beside['paper']:.2f} | {auc[0]} | {auc[1]} "
            f"| {fifth:.2f} | {100 * beside['relative_difference']:+.2f} % | {seconds:.0f} |"
        )
    return "\n".join(lines)


def rank_svm_large() -> str:
    """What each part of the exact kernel machine's solver brings, and its cost at full size."""
    lines = [
        "| data | rows | solver | products | Newton steps | seconds | kernel matrix, seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows("rank_svm_large"), key=lambda row: (row["rows_asked"], row["data"])):
        ended = "" if row["converged"] else " (not converged)"
        making = row["kernel_seconds"]
        lines.append(
            f"| {row['data']} | {row['rows']:,} | {row['variant']}{ended} | {row['products']:,} "
            f"| {row['steps']} | {row['seconds']:.1f} | {'' if making is None else f'{making:.1f}'} |"
        )
    return "\n".join(lines)


def half_precision() -> str:
    """How far a rounded kernel matrix leads from the minimum."""
    found = rows("half_precision")
    lines = ["| data | gamma | C in the paper's unit | float32 | float16 |", "|---|---|---|---|---|"]
    for key in dict.fromkeys((row["data"], row["gamma"], row["paper_C"]) for row in found):
        own = [row for row in found if (row["data"], row["gamma"], row["paper_C"]) == key]
        excess = {row["dtype"]: row["excess"] for row in own}
        cells = " | ".join(f"{max(excess[name], 0.0):.0e}" for name in ("float32", "float16"))
        lines.append(f"| {key[0]} | {key[1]:g} | {key[2]:g} | {cells} |")
    return "\n".join(lines)


def search() -> str:
    """What the paper's grid costs inside one solve, and what the choice is worth."""
    lines = [
        "| data | rows | one fit | grid, early stop | whole grid | 79 fits, extrapolated "
        "| largest difference in AUC | memory relative to one fit | C chosen "
        "| test AUC, at that C and best on the grid |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    found = rows("search")
    sizes = {"usps": 7_291, "ijcnn1": 49_990, "connect-4": 54_045, "covtype-80k": 80_000}
    for name in dict.fromkeys(row["data"] for row in found if row["kind"] == "full"):
        kinds = {row["kind"]: row for row in found if row["data"] == name}
        full, one = kinds["full"], [r for r in found if (r["data"], r["kind"]) == (name, "fit")]
        cells = [name, f"{sizes.get(name, 464_809):,}"]
        if one:
            naive, early = kinds["naive"], kinds["early"]
            cells += [
                " and ".join(f"{row['seconds']:.3g}" for row in one) + " s",
                f"{early['seconds']:,.0f} s, {_range(early['times_one_fit'])} fits",
                f"{full['seconds']:,.0f} s, {_range(full['times_one_fit'])} fits",
                f"{naive['seconds_of_79']:,.0f} s, from {naive['fits']} fits",
                f"{naive['largest_difference']:.1g}",
                f"{early['memory_of_one_fit']:.2f}, {full['memory_of_one_fit']:.2f}",
            ]
        else:
            cells += ["", "", f"{full['seconds']:.0f} s", "", "", ""]
        cells += [
            f"{full['C']:.3g}",
            f"{100 * full['test_auc']:.2f}, {100 * full['best_test_auc']:.2f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _range(values: list[float]) -> str:
    low, high = (f"{value:.1f}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def apart() -> str:
    lines = [
        "| data | landmarks | shared minus per fold | C shared, per fold | test AUC shared, per fold |",
        "|---|---|---|---|---|",
    ]
    for row in rows("search"):
        if row["kind"] != "apart":
            continue
        for kind in ("kmeans", "class-kmeans"):
            tests = ", ".join(f"{100 * auc:.2f}" for auc in row[f"{kind} test"])
            lines.append(
                f"| {row['data']} | {kind} | {row[f'{kind} difference at C shared']:+.4f} "
                f"| {row[f'{kind} C shared']:.3g}, {row[f'{kind} C apart']:.3g} | {tests} |"
            )
    return "\n".join(lines)


def gamma() -> str:
    """Three readings of the paper's bandwidth against its results, with all but the least features."""
    return _readings([row for row in rows("gamma") if row["cut"] < 1e-6])


def gamma_cut() -> str:
    """The same with features of eigenvalues up to 1e-6 of the largest left out."""
    return _readings([row for row in rows("gamma") if row["cut"] == 1e-6])


def _readings(found: list[dict[str, Any]]) -> str:
    factors = sorted({row["factor"] for row in found}, reverse=True)
    names = {1.0: "1/b", 0.5: "1/(2b)", 0.25: "1/(4b)"}
    lines = [
        f"| | data | paper | {' | '.join(names[factor] for factor in factors)} |",
        "|---" * 6 + "|",
    ]
    misses: dict[float, list[float]] = {factor: [] for factor in factors}
    for method, data in dict.fromkeys((row["method"], row["data"]) for row in found):
        mine = [row for row in found if (row["method"], row["data"]) == (method, data)]
        paper, cells = mine[0]["paper"], []
        for factor in factors:
            mean = statistics.mean(row["test_auc"] for row in mine if row["factor"] == factor)
            misses[factor].append(mean - paper)
            cells.append(f"{mean:.2f} ({mean - paper:+.2f})")
        lines.append(f"| {method} | {data} | {paper:.2f} | {' | '.join(cells)} |")
    squares = {f: statistics.mean(miss**2 for miss in misses[f]) ** 0.5 for f in factors}
    absolute = {f: statistics.mean(abs(miss) for miss in misses[f]) for f in factors}
    for title, each in (("root mean square", squares), ("mean absolute", absolute)):
        lines.append(
            f"| {title} difference | | | " + " | ".join(f"{each[f]:.2f}" for f in factors) + " |"
        )
    text = "\n".join(lines).replace("(-0.00)", "(0.00)").replace("(+0.00)", "(0.00)")
    return text.replace("(-", "(−")


def tables() -> str:
    """What a CSV of 500,000 rows takes."""
    lines = ["| | rows | seconds | rows per second | peak memory |", "|---|---|---|---|---|"]
    found = rows("tables")
    for row in found:
        pace = row.get("rows_per_second")
        told = f"{pace:,.0f}" if pace else f"{row['outside_share']:.1%} outside mapping and solving"
        memory = f"{row['peak_gib']:.2f} GiB" if "peak_gib" in row else ""
        lines.append(f"| {row['kind']} | {row['rows']:,} | {row['seconds']:.1f} | {told} | {memory} |")
    paces = {row["kind"]: row["rows_per_second"] for row in reversed(found) if "rows_per_second" in row}
    ratio = paces["predict"] / paces["scikit-learn predict"]
    fewer, more = [row for row in found if row["kind"] == "predict"][-2:]
    beyond = (more["rows"] - fewer["rows"]) / (more["seconds"] - fewer["seconds"])
    lines += [
        "",
        f"`predict` scores {ratio:.1f} times as many rows per second as scikit-learn's pipeline; only "
        f"the time of `predict` includes the start of Python. Beyond {fewer['rows']:,} rows it scores "
        f"{beyond:,.0f} rows per second.",
    ]
    return "\n".join(lines)


def large() -> str:
    """Fits beyond memory, passes by rows, and the cost of recomputing kernel values."""
    found = rows("large")
    lines = [
        "| rows | `max_memory` | kernel values | seconds | passes | seconds per pass | test AUC "
        "| peak memory |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in found:
        if row["kind"] == "fit":
            lines.append(
                f"| {row['rows']:,} | {row['max_memory'] or 'not set'} | {row['place']} "
                f"| {row['seconds']:,.0f} | {row['passes']} | {row['seconds_a_pass']:.3g} "
                f"| {row['test_auc']:.5f} | {row['peak_gib']:.2f} GiB |"
            )
    passes = [row for row in found if row["kind"] == "pass"]
    told = ", ".join(f"{row['seconds_a_pass']:.3g} s for {row['rows']:,} rows" for row in passes)
    slope = next(row["slope"] for row in found if row["kind"] == "slope")
    recomputed = [row for row in found if row["kind"] == "recompute"]
    to_memory, to_parts = (
        ", ".join(f"{row[name]:.1f}" for row in recomputed)
        for name in ("ratio_to_memory", "ratio_to_parts")
    )
    product, exponential = (
        statistics.median(row[name] for row in recomputed)
        for name in ("gflops", "exponentials_a_second")
    )
    lines += [
        "",
        f"A pass that recomputes kernel values takes {told}: a log-log slope of {slope:.2f}.",
        f"At covtype's shape (54 columns, 1600 landmarks) it takes {to_memory} times as long as a pass "
        f"over values in memory (one number per round), and {to_parts} times as long as its matrix "
        f"product ({product:.0f} GFLOP/s in float32) and its exponentials ({exponential / 1e9:.2f} "
        "billion per second) alone.",
    ]
    return "\n".join(lines)


def distributed() -> str:
    """Two workers against two threads."""
    lines = ["| round | model | seconds | test AUC | ratio |", "|---|---|---|---|---|"]
    for row in rows("distributed"):
        ratio = f"{row['ratio']:.2f}" if "ratio" in row else ""
        lines.append(
            f"| {row['round'] + 1} | {row['model']} | {row['seconds']:.1f} | {row['test_auc']:.5f} "
            f"| {ratio} |"
        )
    return "\n".join(lines)


def contest() -> str:
    """The whole contest."""
    there = (ROOT / "docs" / "benchmarks" / "contest.jsonl").exists()
    return summary.markdown(rows("contest") if there else [])


def contest_short() -> str:
    """Ranks and times beside boosted trees, and where they are better."""
    there = (ROOT / "docs" / "benchmarks" / "contest.jsonl").exists()
    return summary.short(rows("contest") if there else [])


def contest_times() -> str:
    """Seconds and memory of fits by the size of the data."""
    there = (ROOT / "docs" / "benchmarks" / "contest.jsonl").exists()
    return summary.sizes(rows("contest")) if there else "No rows yet."


def mixed_tables() -> str:
    """Tables with categories and missing values: AUCs, ranks, times and losses."""
    there = (ROOT / "docs" / "benchmarks" / "mixed_tables.jsonl").exists()
    return mixed_tables_summary.markdown(rows("mixed_tables") if there else [])


def parts() -> str:
    """What each part of tuning is worth, by fits without it."""
    found = {(row["data"], row["seed"], row["part"]): row for row in rows("parts")}
    names = list(dict.fromkeys(part for _, _, part in found))
    lines = [
        "| without it | AUC, points: mean | lowest | highest | seconds relative to everything on |",
        "|---|---|---|---|---|",
    ]
    for name in names[1:]:
        pairs = [
            (row, found[data, seed, names[0]])
            for (data, seed, part), row in found.items()
            if part == name
        ]
        gains = [100.0 * (row["auc"] - whole["auc"]) for row, whole in pairs]
        pace = statistics.geometric_mean(row["seconds"] / whole["seconds"] for row, whole in pairs)
        points = (statistics.mean(gains), min(gains), max(gains))
        lines.append(f"| {name} | {' | '.join(f'{each:+.2f}' for each in points)} | {pace:.2f} |")
    return "\n".join(lines)


PAGES = {
    "README.md": (contest_short,),
    "docs/faq.md": (contest_times,),
    "docs/measured.md": (end_to_end, accuracy),
    "docs/design.md": (search, apart),
    "docs/methods.md": (stochastic, epochs, rank_svm, rank_svm_large, half_precision),
    "docs/paper/README.md": (gamma, gamma_cut),
    "docs/tables.md": (tables,),
    "docs/large.md": (large,),
    "docs/distributed.md": (distributed,),
    "docs/contest.md": (contest, mixed_tables),
}


def main() -> None:
    for name, tables in PAGES.items():
        page = ROOT / name
        text = page.read_text()
        for make in tables:
            pattern = rf"(<!-- {make.__name__} -->\n)(?:.*?\n)?(<!-- /{make.__name__} -->)"
            text, count = re.subn(pattern, lambda m: f"{m[1]}{make()}\n{m[2]}", text, flags=re.S)
            if count != 1:
                raise SystemExit(f"{name} has no section {make.__name__}")
        page.write_text(text)


if __name__ == "__main__":
    main()
