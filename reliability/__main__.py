"""``python -m reliability NAME``: run one check, count its outcomes, list what was violated."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from reliability.harness import (
    Result,
    ResultFile,
    Summary,
    all_numbers,
    append_row,
    run_check,
    show_progress,
)
from reliability.page import write_page

CHECKS = {
    "inputs": "hostile arrays, frames, weights and parameters against every estimator and metric",
    "invariants": "row order, labels, weights, batches, saving, ONNX, threads: the same scores",
    "kills": "kill -9 and Ctrl-C at random moments; what was kept leads to the same answer",
    "disks": "a full disk, or a folder that is read-only, at every write",
    "memory": "fits and commands under a limit of address space",
    "files": "mutated and crafted model files, tables and LIBSVM files",
    "cluster": "Dask workers killed and starved, and a scheduler lost",
}

RESULTS = Path("reliability-results")


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    listed = "\n".join(f"  {name:12s} {text}" for name, text in CHECKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m reliability",
        description=f"Checks of what aucmax promises.\n\n{listed}\n"
        f"  {'all':12s} each of them in turn\n"
        f"  {'page':12s} write the table of docs/reliability.md from docs/reliability/runs.jsonl",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", choices=[*CHECKS, "all", "page"])
    parser.add_argument("--cases", type=int, help="number of cases; a full run without it")
    parser.add_argument("--minutes", type=float, help="start no case after this many minutes")
    parser.add_argument("--seed", type=int, default=0, help="another seed gives other cases")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="worker processes")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="run this case alone")
    parser.add_argument("--record", type=Path, metavar="FILE", help="append the counts to this file")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for results")
    options = parser.parse_args(arguments)
    if options.name is None:
        parser.print_help()
    return options


def _module(name: str) -> str:
    return f"reliability.{name}"


def run(name: str, options: argparse.Namespace) -> Summary:
    """Run one check as the command line asks, and print what came of it."""
    module = _module(name)
    total: int | None = options.cases
    if total is None and options.minutes is None:
        total = int(import_module(module).FULL)
    numbers: Iterable[int] = all_numbers(total)
    if options.only is not None:
        numbers, total = [options.only], 1
    results = ResultFile(name, options.out)

    def on_result(summary: Summary, result: Result) -> None:
        results(summary, result)
        show_progress(summary, total)

    jobs = max(1, options.jobs if total is None else min(options.jobs, total))
    summary = run_check(
        module, numbers, seed=options.seed, jobs=jobs, minutes=options.minutes, on_result=on_result
    )
    if sys.stderr.isatty():
        print(file=sys.stderr)
    print(summary.text(), flush=True)
    row = summary.row()
    results.add(row)
    if options.record:
        append_row(options.record, row)
    return summary


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    if options.name is None:
        return 0
    if options.name == "page":
        write_page()
        return 0
    names = list(CHECKS) if options.name == "all" else [options.name]
    there = [name for name in names if find_spec(_module(name))]
    if not there:
        print(f"There is no module reliability/{options.name}.py.", file=sys.stderr)
        return 2
    violated = [name for name in there if run(name, options).violations]
    return 1 if violated else 0


if __name__ == "__main__":
    raise SystemExit(main())
