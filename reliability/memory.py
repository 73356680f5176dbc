"""Fits and commands under a limit of address space (``ulimit -v``), from next to nothing to plenty.

Promised: the right result, or one sentence that names what memory was short for; a command ends with
exit code 2 then. Never an abort, a hang or an empty message.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from reliability.flat_parameters import small_search
from reliability.harness import Case, Violation
from reliability.launcher import ROOT

FULL = 200

#: Seconds in which a program must have ended.
PATIENCE = 90.0

#: What a program prints before its score, and how far a score may be from that without a limit: a fit
#: with little memory may choose landmarks from fewer rows.
SCORE, TOLERANCE = "score", 0.02

#: A remark that may come before the sentence.
NOTE = "compiling a loop for this machine"

#: Set the limit at once, or after the imports, then allowing this many bytes more.
START = """
import resource, sys
def limit(more):
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + more, used + more))
"""

FIT = """
import numpy as np
from aucmax import KernelAUCClassifier, KernelAUCClassifierCV, LinearAUCClassifier, SGDAUCClassifier
X = np.random.default_rng(0).normal(size=({rows}, 10))
y = X[:, 0] * X[:, 1] + X[:, 2] > 0
limit(int(sys.argv[1]))
try:
    model = {model}.fit(X, y)
    scores = model.decision_function(X[:2000])
except MemoryError as error:
    print(f"aucmax: {{error}}", file=sys.stderr)
    sys.exit(2)
print("score", float(np.mean(scores[y[:2000]][:, None] > scores[~y[:2000]][None, :])))
"""

COMMAND = """
limit(int(sys.argv[1]))
sys.argv = ["aucmax", *sys.argv[2:]]
from aucmax.cli import main
main()
"""

FITS = {
    "kernel": (
        "KernelAUCClassifier(1.0, kernel='rbf', gamma=0.1, n_landmarks=200, random_state=0)",
        20_000,
    ),
    "kernel, many rows": (
        "KernelAUCClassifier(1.0, kernel='rbf', gamma=0.1, n_landmarks=300, random_state=0)",
        60_000,
    ),
    "linear": ("LinearAUCClassifier()", 20_000),
    "sgd": ("SGDAUCClassifier(epochs=2, random_state=0)", 20_000),
    "search": (
        "KernelAUCClassifierCV(KernelAUCClassifier(n_landmarks=40, preset='paper', random_state=0), "
        "Cs=3, gammas=1)",
        2_000,
    ),
}

COMMANDS = (
    "train {t}/t.csv --target y --landmarks 20 --preset paper --folds 2 -o {o}/m.aucmax",
    "predict {t}/m.aucmax {t}/t.csv -o {o}/s.csv",
    "predict {t}/m.aucmax {t}/t.csv -o {o}/s.parquet",
    "evaluate {t}/m.aucmax {t}/t.csv --json",
    "info {t}/m.aucmax --json",
)


@functools.cache
def inputs() -> Path:
    """A table and a model of it, made once for each process."""
    import polars as pl

    from aucmax import save_model
    from aucmax.tables import fit_table

    folder = Path(tempfile.mkdtemp(prefix="aucmax-memory-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    X = np.random.default_rng(0).normal(size=(2000, 2))
    table = pl.DataFrame(
        {"a": X[:, 0], "b": X[:, 1], "y": np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")}
    )
    table.write_csv(folder / "t.csv")
    save_model(fit_table(table, "y", estimator=small_search(), cv=2), folder / "m.aucmax")
    return folder


def case(number: int, seed: int) -> Case:
    """Fits and commands in turn; the limit is drawn, more often where it is tight."""
    rng = np.random.default_rng([seed, number])
    if number % 2:
        command = COMMANDS[number // 2 % len(COMMANDS)]
        room = int(rng.uniform(20, 400) if rng.random() < 0.3 else rng.uniform(400, 3500)) * 10**6
        name = f"aucmax {command.split()[0]}"
        work = functools.partial(run_command, command, room)
    else:
        name = list(FITS)[number // 2 % len(FITS)]
        room = int(rng.uniform(0, 150) if rng.random() < 0.2 else rng.uniform(150, 900)) * 10**6
        work = functools.partial(run_fit, name, room)
        name = f"fit ({name})"
    return Case(f"{name} with {room // 10**6:,} MB of address space left", work, limit=2 * PATIENCE)


def run_fit(name: str, room: int) -> str:
    done = _started(_code(name), str(room))
    if done.returncode == 0:
        found = float(done.stdout.split(SCORE)[-1])
        if abs(found - expected(name)) > TOLERANCE:
            raise Violation(f"the AUC is {found}, and {expected(name)} without a limit")
        return "right"
    return _sentence(done)


def run_command(command: str, room: int) -> str:
    with tempfile.TemporaryDirectory(prefix="aucmax-memory-") as folder:
        done = _started(START + COMMAND, str(room), *command.format(t=inputs(), o=folder).split())
        left = os.listdir(folder)
        if done.returncode == 0:
            if "-o" in command and len(left) != 1:
                raise Violation(f"it ended well and left {left}")
            return "right"
        if left:
            raise Violation(f"it was refused and left {left}\n{done.stderr[-500:]}")
    return _sentence(done)


@functools.cache
def expected(name: str) -> float:
    done = _started(_code(name), str(10**12))
    return float(done.stdout.split(SCORE)[-1])


def _code(name: str) -> str:
    model, rows = FITS[name]
    return START + FIT.format(model=model, rows=rows)


def _started(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    try:
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "100"},
        )
    except subprocess.TimeoutExpired:
        raise Violation(f"no end after {PATIENCE:g} s") from None


def _sentence(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in done.stderr.splitlines() if line.strip() and NOTE not in line]
    if done.returncode != 2 or len(lines) != 1 or not lines[0].startswith("aucmax: "):
        raise Violation(f"exit code {done.returncode} and no single sentence:\n{done.stderr[-2500:]}")
    if "memory" not in lines[0] and "address space" not in lines[0] and "is free" not in lines[0]:
        raise Violation(f"the sentence is not about memory: {lines[0]}")
    return "refused"
