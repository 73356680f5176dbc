"""Rows of a benchmark: timed after a warm-up, with all that is needed to run them again."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from aucmax.runtime.machine import machine, versions


def environment() -> dict[str, Any]:
    """Machine, threads and versions: part of every row."""
    return {**machine(), "versions": versions()}


def touch_memory(gib: float) -> None:
    """Have the system hand out memory once, to a process that ends at once.

    The first touch of a page can be twenty times slower than any later one where memory is virtual
    itself; whoever runs first would pay it for all. A process of its own leaves our peak alone.
    """
    code = f"bytearray(b'x') * int({gib} * 2**30)"
    subprocess.run([sys.executable, "-c", code], check=False)


def alone(work: Any, *arguments: Any) -> dict[str, Any]:
    """The row that ``work`` gives, run in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        row: dict[str, Any] = pool.submit(work, *arguments).result()
    return row


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def median_time(work: Callable[[], Any], repeats: int = 7) -> float:
    """Median of several runs, after one outside the clock."""
    work()
    return statistics.median(timed(work)[0] for _ in range(repeats))


def stored_rows(benchmark: str, folder: Path) -> list[dict[str, Any]]:
    """The rows that earlier runs have written."""
    path = folder / f"{benchmark}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Writer:
    """Appends rows to a JSONL file as they come and shows a table at the end."""

    def __init__(self, benchmark: str, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{benchmark}.jsonl"
        self._base = {"benchmark": benchmark, "when": time.strftime("%Y-%m-%dT%H:%M:%S")}
        self._environment = environment()
        self.rows: list[dict[str, Any]] = []

    def add(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        with self._path.open("a") as file:
            file.write(json.dumps({**self._base, **row, **self._environment}) + "\n")
        print("  ".join(f"{key}={_short(value)}" for key, value in row.items()), flush=True)

    def table(self, columns: Iterable[str] | None = None) -> str:
        names = list(columns or {key: None for row in self.rows for key in row})
        lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
        lines += [
            "| " + " | ".join(_short(row.get(name, "")) for name in names) + " |" for row in self.rows
        ]
        return "\n".join(lines)


def _short(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
