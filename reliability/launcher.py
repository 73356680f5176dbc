"""A process with the imports behind it, which forks a process for each program that is to be killed.

Starting Python and importing takes longer than most of these programs. What is forked is a process of
its own, in a session of its own, and meets real signals. With ``fresh`` it is Python started anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent

#: Where a program's words go, in the folder it runs in.
STDOUT, STDERR = ".stdout", ".stderr"

#: A program that is started anew makes this file when it has imported what it needs.
STARTED = ".started"

#: Any program makes this file when its work is done, before Python ends.
ENDED = ".ended"


class Launcher:
    """Starts programs through a server of its own, which ends with this process."""

    def __init__(self) -> None:
        paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
        one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self._server = subprocess.Popen(
            [sys.executable, "-m", "reliability.launcher"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # so that it outlives a Ctrl-C here, and ends what it started
            env={**os.environ, **one, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "100"},
            cwd=ROOT,
        )

    def start(self, program: list[str], folder: Path, *, fresh: bool = False) -> int:
        """Start a program in a folder; its process id."""
        return int(self._ask({"program": program, "folder": str(folder), "fresh": fresh}))

    def wait(self, pid: int, seconds: float) -> int | None:
        """The exit code of a program, minus the signal that ended it; None if it is still running."""
        code = self._ask({"wait": pid, "seconds": seconds})
        return None if code is None else int(code)

    @property
    def running(self) -> bool:
        """Whether the server is there."""
        return self._server.poll() is None

    def close(self) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        with contextlib.suppress(OSError):
            self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()

    def _ask(self, order: dict[str, Any]) -> Any:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        print(json.dumps(order), file=self._server.stdin, flush=True)
        return json.loads(self._server.stdout.readline())


def remaining(session: int, seconds: float) -> list[str]:
    """The commands of a session's processes that are still alive after ``seconds``."""
    until = time.monotonic() + seconds
    while (found := _in_session(session)) and time.monotonic() < until:
        time.sleep(0.02)
    return found


def _in_session(session: int) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(stat[3]) == session and stat[0] != "Z":
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found.append(f"{folder.name}: {command[:80]}")
    return found


# --- the server, and what it forks


def serve() -> dict[str, Any] | None:
    """Answer orders until the other side hangs up. In a forked process, return the order to follow."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    running: set[int] = set()
    for line in sys.stdin:
        order: dict[str, Any] = json.loads(line)
        if "program" in order:
            until = time.monotonic() + 10.0  # the thread that reports compiling ends on its own
            while _threads() and time.monotonic() < until:
                time.sleep(0.01)
            assert not _threads(), f"A fork would lose the threads {_threads()}."
            pid = os.fork()
            if pid == 0:
                answers.close()
                return order
            running.add(pid)
            print(pid, file=answers)
        else:
            code = _code(order["wait"], order["seconds"])
            if code is not None:
                running.discard(order["wait"])
            print(json.dumps(code), file=answers)
    for pid in running:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    return None


def _threads() -> list[str]:
    """Other threads of this process, but for jemalloc's, which it starts again in a fork."""
    others = [path for path in Path("/proc/self/task").glob("*") if path.name != str(os.getpid())]
    names = [(path / "comm").read_text().strip() for path in others]
    return [name for name in names if not name.startswith("jemalloc")]


def _code(pid: int, seconds: float) -> int | None:
    until = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= until:
            return None
        time.sleep(0.002)


def follow(order: dict[str, Any]) -> None:
    """In the forked process: become the program."""
    os.setsid()
    os.chdir(order["folder"])
    scratch = Path(".tmp").absolute()
    scratch.mkdir(exist_ok=True)
    os.environ["TMPDIR"] = str(scratch)
    tempfile.tempdir = None
    empty = os.open(os.devnull, os.O_RDONLY)
    out, err = (os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for name in (STDOUT, STDERR))
    for have, want in ((empty, 0), (out, 1), (err, 2)):
        os.dup2(have, want)
        os.close(have)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if order["fresh"]:
        os.execv(sys.executable, [sys.executable, "-m", "reliability.programs", *order["program"]])
    from reliability.programs import run

    run(order["program"])


if __name__ == "__main__":
    import reliability.programs

    reliability.programs.warm_up()
    found = serve()
    if found is not None:
        follow(found)
