"""What the programs come to when nobody stops them: made once for each seed, and kept on disk."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aucmax.runtime.output_files import hold
from reliability.harness import Violation
from reliability.launcher import ENDED, ROOT, STARTED, STDERR, STDOUT, Launcher
from reliability.programs import CHECKPOINT, SCORES

#: Of a row of the paper's results, what differs between two runs, beside seconds.
_VOLATILE = ("company", "peak_gib", "finished", "machine", "versions")


@dataclass(frozen=True)
class Program:
    """What is run: its words, where INPUTS stands for the folder of tables, and its output."""

    kind: str
    name: str
    words: tuple[str, ...]
    output: str


def _command(kind: str, words: str, output: str) -> Program:
    return Program(kind, f"aucmax {words}", ("aucmax", *words.split()), output)


def _fit(name: str) -> Program:
    return Program("fit", f"a fit with a checkpoint ({name})", ("fit", name, "INPUTS/rows.npz"), SCORES)


_TRAIN = "train INPUTS/train.csv --target y -o m.aucmax --force --landmarks 60"
_PREDICT = "predict INPUTS/m.aucmax INPUTS/new.csv --id id --rows 2000 --force"
_PAPER = "paper table2 --quick --data spambase --data-dir INPUTS --landmarks 20 --out results"

PROGRAMS = {
    "fit": [_fit(name) for name in ("kernel", "auto", "search", "linear search", "sgd")],
    "train": [
        _command("train", f"{_TRAIN} --preset paper", "m.aucmax"),
        _command("train", f"{_TRAIN} --preset paper --solver sgd --gammas 2", "m.aucmax"),
    ],
    "predict": [
        _command("predict", f"{_PREDICT} -o scores.{ending} {rank}", f"scores.{ending}")
        for ending in ("csv", "parquet", "arrow")
        for rank in ("--rank", "--no-rank")
    ],
    "paper": [_command("paper", f"{_PAPER} --method NBAUC --method RFAUC", "results/rows.jsonl")],
}


@dataclass(frozen=True)
class Answer:
    """A run that nobody stopped: its seconds, the files that it leaves, and where they are."""

    inputs: Path
    folder: Path
    seconds: float
    files: list[str]

    def command(self, program: Program) -> list[str]:
        return [word.replace("INPUTS", str(self.inputs)) for word in program.words]

    def check_whole(self, program: Program, folder: Path, *, must: bool = False) -> None:
        """An output that is there is this one to the bit, or to what a solver's tolerance allows."""
        if program.kind == "fit" and (folder / CHECKPOINT).exists():
            try:
                with np.load(folder / CHECKPOINT, allow_pickle=False) as arrays:
                    json.loads(arrays["header"].tobytes())
            except Exception as error:
                raise Violation(f"The checkpoint is not whole: {error!r}") from None
        if not (folder / program.output).exists():
            if must:
                raise Violation(f"There is no {program.output}, but {visible(folder)}.")
            return
        try:
            _CHECKS[program.kind](self, program, folder, must)
        except Violation:
            raise
        except Exception as error:
            raise Violation(f"{program.output} is not whole: {error!r}") from error

    def _same_fit(self, program: Program, folder: Path, must: bool) -> None:
        with np.load(self.folder / SCORES) as ours, np.load(folder / SCORES) as theirs:
            expected, found = ours["scores"], theirs["scores"]
            if not np.allclose(ours["chosen"], theirs["chosen"], rtol=1e-6):
                raise Violation(f"C and gamma are {theirs['chosen']}, not {ours['chosen']}.")
        apart = float(np.abs(found - expected).max() / np.abs(expected).max())
        # Newton ends within tol = 1e-8 of the minimum, so scores within a multiple of its root.
        if apart > (0.0 if "sgd" in program.words else 2e-3):
            raise Violation(f"Scores differ by {apart:.2g} of the largest.")

    def _same_model(self, program: Program, folder: Path, must: bool) -> None:
        expected, found = (
            _scores_of(each / program.output, self.inputs) for each in (self.folder, folder)
        )
        if not np.array_equal(expected, found):
            apart = float(np.abs(found - expected).max())
            raise Violation(f"The model's scores differ by {apart:.2g}.")

    def _same_bytes(self, program: Program, folder: Path, must: bool) -> None:
        if (folder / program.output).read_bytes() != (self.folder / program.output).read_bytes():
            raise Violation(f"{program.output} is another file than without a kill.")

    def _same_rows(self, program: Program, folder: Path, must: bool) -> None:
        """After a kill the last line may be cut off; the next run drops it."""
        expected, found = (_rows(each / program.output) for each in (self.folder, folder))
        unlike = [row for row in found if row not in expected]
        if unlike or (must and len(found) != len(expected)):
            raise Violation(f"{len(found)} rows of {len(expected)}; not expected: {unlike}")


_CHECKS = {
    "fit": Answer._same_fit,
    "train": Answer._same_model,
    "predict": Answer._same_bytes,
    "paper": Answer._same_rows,
}


def visible(folder: Path) -> list[str]:
    """All files below a folder but what the launcher keeps there, those in the temporary folder too."""
    files = (path for path in folder.rglob("*") if path.is_file())
    names = sorted(path.relative_to(folder).as_posix() for path in files)
    return [name for name in names if name not in (STDERR, STDOUT, STARTED, ENDED)]


def _scores_of(path: Path, inputs: Path) -> Any:
    import polars as pl

    from aucmax import load_model

    return load_model(path).decision_function(pl.read_csv(inputs / "train.csv"))


def _rows(path: Path) -> list[dict[str, Any]]:
    *lines, last = path.read_bytes().split(b"\n")
    try:
        rows = [json.loads(line) for line in [*lines, last] if line]
    except ValueError:
        rows = [json.loads(line) for line in lines]
    return [
        {key: value for key, value in row.items() if key not in _VOLATILE and "seconds" not in key}
        for row in rows
    ]


# --- made once


def answer_of(program: Program, seed: int, launcher: Launcher) -> Answer:
    """The answer from disk; of several processes that want it, one makes it."""
    place = Path(tempfile.gettempdir()) / f"aucmax-kills-{os.getuid()}" / f"{_code_hash()}-{seed}"
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = place / hashlib.sha256(repr(program).encode()).hexdigest()[:12]
    about = place / f"{folder.name}.json"
    inputs = place / "inputs"
    with (place / ".lock").open("a") as lock:
        hold(lock, wait=True)
        if not (inputs / "spambase.data").exists():
            shutil.rmtree(inputs, ignore_errors=True)
            _make_inputs(inputs, seed)
        if program.kind == "predict" and not (inputs / "m.aucmax").exists():
            _make_model(inputs, launcher)
        if not about.exists():
            shutil.rmtree(folder, ignore_errors=True)
            found = _made(program, Answer(inputs, folder, 0.0, []), launcher)
            about.write_text(json.dumps({"seconds": found.seconds, "files": found.files}))
    return Answer(inputs, folder, **json.loads(about.read_text()))


def _made(program: Program, blank: Answer, launcher: Launcher) -> Answer:
    blank.folder.mkdir()
    began = time.time()
    pid = launcher.start(blank.command(program), blank.folder)
    code = launcher.wait(pid, 120.0)
    if code != 0:
        said = (blank.folder / STDERR).read_text(errors="replace")
        raise Violation(f"Left alone, {program.name} ends with exit code {code}:\n{said}")
    seconds = ended_after(blank.folder, began)
    return Answer(blank.inputs, blank.folder, seconds, visible(blank.folder))


def ended_after(folder: Path, began: float) -> float:
    """Seconds of the clock from a moment until the program in a folder had done its work."""
    file = folder / ENDED
    return max(0.05, file.stat().st_mtime - began) if file.exists() else time.time() - began


@functools.cache
def _code_hash() -> str:
    """Another version of the code has other answers."""
    digest = hashlib.sha256()
    for path in sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "reliability").glob("*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _make_inputs(folder: Path, seed: int) -> None:
    """Rows for the fits, tables for the commands, and last of all a file of the paper's."""
    folder.mkdir()
    rng = np.random.default_rng([seed, 1])
    X = rng.normal(size=(3000, 6))
    y = (X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=3000) > 1.0).astype(int)
    np.savez(folder / "rows.npz", X=X, y=y)
    _write_table(folder / "train.csv", 600, rng)
    _write_table(folder / "new.csv", 20_000, rng)
    spam = np.sort(rng.permutation(4601) < 1813)
    values = rng.normal(size=(4601, 57)) + 0.3 * spam[:, None]
    lines = (
        ",".join([*(f"{value:.3g}" for value in row), str(int(up))])
        for row, up in zip(values, spam, strict=True)
    )
    (folder / "spambase.data").write_text("\n".join(lines) + "\n")


def _make_model(folder: Path, launcher: Launcher) -> None:
    words = "train train.csv --target y -o m.aucmax --landmarks 60 --preset paper"
    pid = launcher.start(["aucmax", *words.split()], folder)
    if launcher.wait(pid, 120.0) != 0:
        raise Violation(f"The model cannot be made:\n{(folder / STDERR).read_text()}")


def _write_table(path: Path, rows: int, rng: np.random.Generator) -> None:
    import polars as pl

    age, income = rng.normal(40, 12, rows).round(1), rng.lognormal(10, 1, rows).round(2)
    plan = rng.choice(["basic", "plus", "pro"], rows)
    y = (age - 40) / 12 + (plan == "pro") + rng.normal(size=rows) > 1.2
    table = pl.DataFrame({"id": np.arange(rows), "age": age, "income": income, "plan": plan})
    missing = pl.Series(rng.random(rows) < 0.05)
    table = table.with_columns(pl.when(missing).then(None).otherwise(pl.col("income")).alias("income"))
    table.with_columns(y=pl.Series(np.where(y, "yes", "no"))).write_csv(path)
