"""``python -m benchmarks.readme``: write the README's tables from the rows in docs/benchmarks."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

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
    ratios = ", ".join(f"{a / b:.2f}" for a, b in zip(times["aucmax C=1"], base, strict=True))
    lines.append("")
    lines.append(
        f"aucmax at C=1 takes {ratios} of the time of scikit-learn at C=1 (in each round), at a peak "
        f"of {peak:.1f} GiB for the whole process."
    )
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


def main() -> None:
    page = ROOT / "README.md"
    text = page.read_text()
    for name, make in (("end_to_end", end_to_end), ("accuracy", accuracy)):
        pattern = rf"(<!-- {name} -->\n)(?:.*?\n)?(<!-- /{name} -->)"
        text, count = re.subn(pattern, lambda m: f"{m[1]}{make()}\n{m[2]}", text, flags=re.S)
        if count != 1:
            raise SystemExit(f"README.md has no section {name}")
    page.write_text(text)


if __name__ == "__main__":
    main()
