"""A full disk, or a folder that is read-only, at every write.

Promised: the older output is whole, nothing else is left behind, and the program ends with one sentence
that names the file and an exit code that is not 0. If there was room after all, the output is whole.
"""

from __future__ import annotations

import atexit
import functools
import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reliability.flat_parameters import small_search
from reliability.harness import Case, Violation
from reliability.launcher import STDERR, Launcher
from reliability.small_disk import PLACE, VERDICT

FULL = 300

#: Seconds in which a program must have ended.
PATIENCE = 60.0


@dataclass(frozen=True)
class Output:
    """A program that writes a file, the bytes of the file, and what its errors name beside it."""

    name: str
    words: tuple[str, ...]
    file: str
    size: int


OUTPUTS = (
    Output("save_model", ("save", "INPUTS/m.aucmax", "out.aucmax"), "out.aucmax", 40_000),
    Output("to_onnx", ("onnx", "INPUTS/m.aucmax", "out.onnx"), "out.onnx", 8_000),
    Output("write_report", ("report", "INPUTS/m.aucmax", "out.html"), "out.html", 300_000),
    *(
        Output(
            f"predict to {ending}, {rank}",
            *(
                (
                    "aucmax",
                    "predict",
                    "INPUTS/m.aucmax",
                    "INPUTS/t.csv",
                    "-o",
                    f"s.{ending}",
                    rank,
                    "--force",
                ),
            ),
            f"s.{ending}",
            80_000,
        )
        for ending in ("csv", "tsv", "parquet", "arrow")
        for rank in ("--rank", "--no-rank")
    ),
    Output(
        "train",
        (
            *("aucmax", "train", "INPUTS/t.csv", "--target", "y", "-o", "m.aucmax", "--landmarks", "5"),
            *("--preset", "paper", "--folds", "2", "--force"),
        ),
        "m.aucmax",
        40_000,
    ),
)


@functools.cache
def launcher() -> Launcher:
    made = Launcher()
    atexit.register(made.close)
    return made


@functools.cache
def inputs() -> Path:
    """A table and a model of it, made once for each process."""
    import polars as pl

    from aucmax import save_model
    from aucmax.tables import fit_table

    folder = Path(tempfile.mkdtemp(prefix="aucmax-disks-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    X = np.random.default_rng(0).normal(size=(400, 2))
    table = pl.DataFrame(
        {"a": X[:, 0], "b": X[:, 1], "y": np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")}
    )
    table.write_csv(folder / "t.csv")
    save_model(fit_table(table, "y", estimator=small_search(), cv=2), folder / "m.aucmax")
    return folder


def case(number: int, seed: int) -> Case:
    """The programs in turn; the room that is left is drawn, from none to more than enough."""
    rng = np.random.default_rng([seed, number])
    output = OUTPUTS[number % len(OUTPUTS)]
    kind = "read-only" if rng.random() < 0.15 else "full"
    room = int(rng.integers(0, 1 + 2 * output.size // 4096)) * 4096 if rng.random() < 0.8 else 0
    order: dict[str, Any] = {
        "kind": kind,
        "room": room,
        "output": output.file,
        "old": int(rng.integers(1, 1000)) if rng.random() < 0.7 else 0,
        "temporary": bool(rng.random() < 0.3),
    }
    where = "in a read-only folder" if kind == "read-only" else f"with {room:,} bytes of room"
    more = ", over an older file" * bool(order["old"]) + ", temporary files too" * order["temporary"]
    return Case(f"{output.name} {where}{more}", lambda: run(output, order), limit=2 * PATIENCE)


def run(output: Output, order: dict[str, Any]) -> str:
    folder = Path(tempfile.mkdtemp(prefix="aucmax-disk-"))
    try:
        (folder / PLACE).mkdir()
        words = [word.replace("INPUTS", str(inputs())) for word in output.words]
        pid = launcher().start(["limited", json.dumps({**order, "program": words})], folder)
        code = launcher().wait(pid, PATIENCE)
        if not (folder / VERDICT).exists():
            said = (folder / STDERR).read_text(errors="replace")[-2000:]
            raise Violation(f"the process ended with exit code {code} and no verdict\n{said}")
        return _judged(output, order, json.loads((folder / VERDICT).read_text()))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _judged(output: Output, order: dict[str, Any], found: dict[str, Any]) -> str:
    said, after = found["words"].strip(), found["after"]
    if found["code"] == 0:
        if set(after) != {output.file}:
            raise Violation(f"it ended well and left {sorted(after)}")
        if after[output.file] in ("", found["before"].get(output.file)):
            raise Violation("it ended well, and the output is not the new one")
        return "written"
    if after != found["before"]:
        changed = sorted(
            name for name in {*after, *found["before"]} if after.get(name) != found["before"].get(name)
        )
        raise Violation(f"exit code {found['code']}, and these have changed: {changed}\n{said}")
    lines = [line for line in said.splitlines() if line.strip()]
    if found["code"] != 2 or len(lines) != 1 or not lines[0].startswith("aucmax: "):
        raise Violation(f"exit code {found['code']} ({found['how']}) and no single sentence:\n{said}")
    if len(lines[0]) < 20:
        raise Violation(f"the sentence tells nothing: {lines[0]}")
    return "refused"
