"""Run the cases of a check in worker processes, and count what came of them.

A check is a module with ``FULL``, the number of cases of a full run, and ``case(number, seed)``, which
gives the same :class:`Case` for the same arguments in any process. A case returns a word ("scored",
"refused") under which its outcome is counted. It is violated if it raises :class:`Violation` or any
other exception, if it takes longer than its limit, or if its process ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import count
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from aucmax.runtime.machine import machine, versions
from reliability.worker import START_LIMIT, Worker

#: Cases that the summary lists as the slowest.
SLOWEST = 5


class Violation(Exception):  # noqa: N818  (it reports a finding)
    """A promise was broken; the text says which one, what was expected and what came."""


@dataclass(frozen=True)
class Case:
    """One thing to try."""

    name: str
    """One line: what is tried."""
    run: Callable[[], str]
    """Returns the word under which the outcome is counted; raises Violation."""
    limit: float = 20.0
    """Seconds after which the case counts as a violation."""


@dataclass(frozen=True)
class Result:
    """What came of one case; ``violation`` is empty if its promise was kept."""

    number: int
    name: str
    outcome: str
    seconds: float
    violation: str = ""


@dataclass
class Summary:
    """Counts of one run of a check."""

    check: str
    seed: int
    seconds: float = 0.0
    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    violations: list[Result] = field(default_factory=list)
    slowest: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        self.cases += 1
        self.outcomes[result.outcome] += 1
        if result.violation:
            self.violations.append(result)
        self.slowest = sorted([*self.slowest, result], key=lambda r: -r.seconds)[:SLOWEST]

    def command(self, number: int) -> str:
        """The command that repeats one case."""
        return f"python -m reliability {self.check} --only {number} --seed {self.seed}"

    def row(self) -> dict[str, Any]:
        """Counts with everything needed to run them again, for JSON."""
        return {
            "check": self.check,
            "cases": self.cases,
            "outcomes": dict(sorted(self.outcomes.items())),
            "violations": len(self.violations),
            "seconds": round(self.seconds, 1),
            "seed": self.seed,
            "date": time.strftime("%Y-%m-%d"),
            "commit": commit(),
            **machine(),
            "versions": versions(),
        }

    def text(self, most: int = 40) -> str:
        """The counts, the slowest cases and the violations, as lines to read."""
        counted = ", ".join(f"{n:,} {word}" for word, n in self.outcomes.most_common())
        lines = [f"{self.check}: {self.cases:,} cases in {self.seconds:.0f} s: {counted}"]
        lines += [f"  {r.seconds:6.1f} s  {r.number}: {r.name}" for r in self.slowest]
        for result in self.violations[:most]:
            lines += ["", f"VIOLATED {result.number}: {result.name}"]
            lines += [f"    {line}" for line in result.violation.splitlines()]
            lines.append(f"    {self.command(result.number)}")
        if len(self.violations) > most:
            lines += ["", f"... and {len(self.violations) - most:,} more in the file of results."]
        return "\n".join([*lines, "", f"{len(self.violations):,} violations"])


def commit() -> str:
    """The commit that is checked, with a plus if files differ from it."""
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        name = subprocess.run(
            [*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
        changed = subprocess.run([*git, "diff", "--quiet", "HEAD"], check=False).returncode
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{name}+" if changed else name


def run_check(
    module: str,
    numbers: Iterable[int],
    *,
    seed: int = 0,
    jobs: int = 1,
    minutes: float | None = None,
    on_result: Callable[[Summary, Result], None] | None = None,
) -> Summary:
    """Run the numbered cases of ``module`` (its import path) in ``jobs`` processes."""
    began = time.monotonic()
    end = None if minutes is None else began + 60.0 * minutes
    summary = Summary(module.rpartition(".")[2], seed)
    left = _until(end, iter(numbers))
    threads = max(1, (os.cpu_count() or 1) // jobs)
    workers = [Worker(module, seed, threads) for _ in range(jobs)]
    try:
        while busy := [worker for worker in workers if worker.busy or worker.take(left)]:
            for result in _results(busy):
                summary.add(result)
                summary.seconds = time.monotonic() - began
                if on_result:
                    on_result(summary, result)
    finally:
        for worker in workers:
            worker.stop()
    return summary


def _until(end: float | None, numbers: Iterator[int]) -> Iterator[int]:
    for number in numbers:
        if end is not None and time.monotonic() > end:
            return
        yield number


def _results(busy: list[Worker]) -> Iterator[Result]:
    """Wait for the next message or deadline; the results that it brings."""
    patience = max(0.0, min(worker.deadline for worker in busy) - time.monotonic())
    connections: list[Connection] = [worker.connection for worker in busy]
    ready = wait(connections, timeout=patience)
    for worker in busy:
        message = worker.read() if worker.connection in ready else worker.overdue()
        if message is not None:
            yield Result(**message)


class ResultFile:
    """Appends violations, and in the end the counts, to a file of JSON lines."""

    def __init__(self, check: str, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{check}.jsonl"

    def add(self, row: dict[str, Any]) -> None:
        append_row(self.path, row)

    def __call__(self, summary: Summary, result: Result) -> None:
        if result.violation:
            self.add({**asdict(result), "command": summary.command(result.number)})


def append_row(path: Path, row: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


def show_progress(summary: Summary, total: int | None) -> None:
    """One line on a terminal, written over the last."""
    if not sys.stderr.isatty():
        return
    of = f" of {total:,}" if total else ""
    counted = ", ".join(f"{n:,} {word}" for word, n in summary.outcomes.most_common(4))
    line = f"{summary.check}: {summary.cases:,}{of} cases, {summary.seconds:.0f} s: {counted}"
    print(f"\r\033[K{line[:110]}", end="", file=sys.stderr, flush=True)


def all_numbers(total: int | None) -> Iterable[int]:
    """Numbers of cases; without end if there is no total."""
    return count() if total is None else range(total)


__all__ = ["START_LIMIT", "Case", "Result", "Summary", "Violation", "run_check"]
