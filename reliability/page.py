"""Write the table of docs/reliability.md from the runs recorded in docs/reliability/runs.jsonl."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RUNS = ROOT / "docs" / "reliability" / "runs.jsonl"
PAGE = ROOT / "docs" / "reliability.md"


def runs(path: Path = RUNS) -> list[dict[str, Any]]:
    """The recorded runs, in the order in which they were made."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def table(rows: list[dict[str, Any]]) -> str:
    """A row per run: the latest of each check first."""
    if not rows:
        return "No runs are recorded yet."
    lines = [
        "| check | cases | outcomes | violations | minutes | seed | date | commit | cores, Python |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    checks = dict.fromkeys(row["check"] for row in rows)
    for row in (row for check in checks for row in reversed(rows) if row["check"] == check):
        counted = sorted(row["outcomes"].items(), key=lambda item: -item[1])
        outcomes = ", ".join(f"{n:,} {word}" for word, n in counted)
        lines.append(
            f"| {row['check']} | {row['cases']:,} | {outcomes} | {row['violations']:,} "
            f"| {row['seconds'] / 60:.1f} | {row['seed']} | {row['date']} | {row['commit']} "
            f"| {row['cores']}, {row['versions']['python']} |"
        )
    return "\n".join(lines)


def write_page(page: Path = PAGE, rows: list[dict[str, Any]] | None = None) -> None:
    """Put the table between the markers of the page."""
    made = table(runs() if rows is None else rows)
    pattern = r"(<!-- runs -->\n)(?:.*?\n)?(<!-- /runs -->)"
    text, count = re.subn(pattern, lambda m: f"{m[1]}{made}\n{m[2]}", page.read_text(), flags=re.S)
    if count != 1:
        raise SystemExit(f"{page} must have one section between <!-- runs --> and <!-- /runs -->.")
    page.write_text(text)
