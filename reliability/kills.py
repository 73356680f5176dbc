"""Kill -9 and Ctrl-C at random moments of fits with a checkpoint, ``train``, ``predict`` and ``paper``.

Promised: a file that is there afterwards is whole; run again, the program comes to the answer of a run
that nobody stopped, and leaves nothing behind but that; after Ctrl-C the exit code is 130, with one
sentence and no traceback, and the estimator is unfitted; no process outlives the program.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

import numpy as np

from reliability.harness import Case, Violation
from reliability.kill_answers import PROGRAMS, Answer, Program, answer_of, ended_after, visible
from reliability.launcher import ENDED, STARTED, STDERR, Launcher, remaining
from reliability.programs import SCORES, STOPPED

#: Programs by signals, a hundred times each.
FULL = 800

#: Seconds in which a program that was sent a signal, or runs again, must have ended.
PATIENCE = 60.0

SIGNALS = (signal.SIGKILL, signal.SIGINT)


#: The server for all cases of this process; another is started should it have ended.
_launchers: list[Launcher] = []


def launcher() -> Launcher:
    if not _launchers or not _launchers[-1].running:
        _launchers.append(Launcher())
        atexit.register(_launchers[-1].close)
    return _launchers[-1]


def case(number: int, seed: int) -> Case:
    """The programs and signals in turn; variant, moments and the number of kills are drawn."""
    rng = np.random.default_rng([seed, number])
    kind = list(PROGRAMS)[number % len(PROGRAMS)]
    sent = SIGNALS[number // len(PROGRAMS) % len(SIGNALS)]
    program = PROGRAMS[kind][rng.integers(len(PROGRAMS[kind]))]
    moments = rng.uniform(size=rng.choice([1, 2, 3], p=[0.7, 0.2, 0.1]))
    fresh = bool(rng.random() < 0.1)
    at = " and ".join(f"{moment:.2f}" for moment in moments)
    name = f"{sent.name} at {at} of {program.name}{', in a new Python' if fresh else ''}"
    return Case(name, lambda: run(program, seed, sent, moments.tolist(), fresh), limit=180.0)


def run(program: Program, seed: int, sent: signal.Signals, moments: list[float], fresh: bool) -> str:
    """Interrupt the program at each of the moments, then let it come to its end."""
    answer = answer_of(program, seed, launcher())
    folder = Path(tempfile.mkdtemp(prefix="aucmax-kill-"))
    try:
        words = [interrupted(program, answer, folder, sent, each, fresh) for each in moments]
        finished(program, answer, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return f"{sent.name}, {program.kind}: {max(words, key=_ORDER.index)}"


#: Seconds that the last whole run of a program took, by its name: less than the first, if that ran on a
#: busier machine.
_lasted: dict[str, float] = {}

#: Outcomes of one interruption; a case of several is counted under the last of these.
_ORDER = ("ended first", "stopped")


def interrupted(
    program: Program, answer: Answer, folder: Path, sent: signal.Signals, moment: float, fresh: bool
) -> str:
    """Start the program, send the signal, and check what is left."""
    for name in (STARTED, ENDED):
        (folder / name).unlink(missing_ok=True)
    pid = launcher().start(answer.command(program), folder, fresh=fresh)
    if fresh and sent == signal.SIGINT:  # Python itself shows a traceback while it imports
        until = time.monotonic() + PATIENCE
        while not (folder / STARTED).exists() and time.monotonic() < until:
            time.sleep(0.01)
    code = launcher().wait(pid, moment * _lasted.get(program.name, answer.seconds))
    if code is None:
        # A terminal sends Ctrl-C to all processes of the command.
        (os.killpg if sent == signal.SIGINT else os.kill)(pid, sent)
        code = launcher().wait(pid, PATIENCE)
    said = (folder / STDERR).read_text(errors="replace") if (folder / STDERR).exists() else ""
    if code is None:
        os.killpg(pid, signal.SIGKILL)
        launcher().wait(pid, PATIENCE)
        raise Violation(f"It was still running {PATIENCE:g} s after {sent.name}.\n{said}")
    if left := remaining(pid, 10.0):
        raise Violation(f"Processes outlived the program by 10 s: {left}")
    answer.check_whole(program, folder)
    if code == 0 or (folder / ENDED).exists():
        answer.check_whole(program, folder, must=True)
        return "ended first"
    if sent == signal.SIGINT:
        check_words(program, folder, code, said)
    elif code != -signal.SIGKILL:
        raise Violation(f"The exit code is {code} after SIGKILL.\n{said}")
    return "stopped"


def check_words(program: Program, folder: Path, code: int, said: str) -> None:
    """What a user sees of Ctrl-C: one sentence, exit code 130; in Python, an unfitted estimator.

    If the signal came inside code that is made from text, as dataclasses are, Python ends itself by the
    signal though the program has handled it; a shell shows 130 for this as well.
    """
    code = 130 if code == -signal.SIGINT else code
    stopped = folder / STOPPED
    if program.kind == "fit":
        if not stopped.exists():
            return  # outside of fit, in the lines around it
        found = json.loads(stopped.read_text())
        stopped.unlink()
        if found["learnt"]:
            raise Violation(f"After Ctrl-C the estimator has {found['learnt']}.")
        if "unfitted" not in found["sentence"]:
            raise Violation(f"After Ctrl-C the exception says {found['sentence']!r}.")
    if "Traceback" in said or code != 130:
        raise Violation(f"After Ctrl-C the exit code is {code} (130 expected), and it says:\n{said}")
    lines = said.strip().splitlines()
    if program.kind in ("paper", "train"):  # earlier lines are about cells or columns
        lines = lines[-1:]
    if program.kind != "fit" and (len(lines) != 1 or not lines[0].startswith("Stopped")):
        raise Violation(f"After Ctrl-C it says, where one sentence was expected:\n{said}")


def finished(program: Program, answer: Answer, folder: Path) -> None:
    """Run the program to its end: the same answer, and nothing left behind."""
    began = time.time()
    pid = launcher().start(answer.command(program), folder)
    code = launcher().wait(pid, PATIENCE)
    _lasted[program.name] = ended_after(folder, began)
    said = (folder / STDERR).read_text(errors="replace")
    if code is None:
        os.killpg(pid, signal.SIGKILL)
        launcher().wait(pid, PATIENCE)
    if code != 0:
        raise Violation(f"Run again, it ends with exit code {code} and says:\n{said}")
    answer.check_whole(program, folder, must=True)
    left = visible(folder)
    if left != answer.files:
        raise Violation(f"Run again, it leaves {left}, where {answer.files} were expected.")


__all__ = ["FULL", "SCORES", "case"]
