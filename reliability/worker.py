"""A process that runs one case after the other, and the side of it that the parent holds."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

#: Characters of a violation's text that are kept.
MOST_TEXT = 4000

#: Seconds within which a worker must have started, or made its next case.
START_LIMIT = 120.0

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Worker:
    """Hands cases to a process; kills it and starts another when a case takes too long."""

    def __init__(self, module: str, seed: int, threads: int) -> None:
        self._arguments = (module, seed)
        self._threads = threads
        self.busy = False
        self.deadline = 0.0
        self._number, self._name, self._began, self._limit = -1, "", 0.0, START_LIMIT
        self._start()

    def _start(self) -> None:
        context = get_context("spawn")  # a fork would inherit the state of threads
        self.connection, theirs = context.Pipe()
        # Temporary files of cases go there, too: a process that is killed does not remove its own.
        self._folder = Path(tempfile.mkdtemp(prefix="reliability-"))
        self._log = self._folder / "output.log"
        self._process = context.Process(target=_work, args=(theirs, str(self._log), *self._arguments))
        threads = {name: str(self._threads) for name in _THREADS}
        with _environment({**threads, "TMPDIR": str(self._folder)}):
            self._process.start()
        theirs.close()

    def take(self, numbers: Iterator[int]) -> bool:
        """Begin the next of the numbers; False if there is none."""
        number = next(numbers, None)
        if number is None:
            return False
        self._number, self._name, self._limit = number, "not yet made", START_LIMIT
        self._began = time.monotonic()
        self.deadline = self._began + self._limit
        self.busy = True
        with contextlib.suppress(OSError):  # a worker that has died is noticed when it is read
            self.connection.send(number)
        return True

    def read(self) -> dict[str, Any] | None:
        """What the process sent: the start of a case (None), its result, or its own death."""
        try:
            message = self.connection.recv()
        except (EOFError, OSError):
            self._process.join(5.0)
            how = f"the process ended during the case (exit code {self._process.exitcode})"
            return self._give_up("died", f"{how}\n{self._tail()}")
        if "limit" in message:
            self._name, self._limit = message["name"], message["limit"]
            self._began = time.monotonic()
            self.deadline = self._began + self._limit
            return None
        self.busy = False
        result: dict[str, Any] = message
        return result

    def overdue(self) -> dict[str, Any] | None:
        """The violation of a case that has passed its limit; None if there is time left."""
        if time.monotonic() < self.deadline:
            return None
        return self._give_up("hung", f"no end after {self._limit:g} s\n{self._where()}")

    def _give_up(self, outcome: str, text: str) -> dict[str, Any]:
        seconds = time.monotonic() - self._began
        self.stop()
        self._start()
        self.busy = False
        return {
            "number": self._number,
            "name": self._name,
            "outcome": outcome,
            "seconds": seconds,
            "violation": text.strip(),
        }

    def _where(self) -> str:
        """The stack of a process that hangs, if it can still write one."""
        if not hasattr(signal, "SIGUSR1"):
            return ""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid or 0, signal.SIGUSR1)
            time.sleep(0.5)
        return self._tail()

    def _tail(self, most: int = 3000) -> str:
        with contextlib.suppress(OSError):
            return self._log.read_text(errors="replace")[-most:]
        return ""

    def stop(self) -> None:
        """End the process with all that it started."""
        self.connection.close()
        if hasattr(os, "killpg") and self._process.pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.join()
        shutil.rmtree(self._folder, ignore_errors=True)


def _work(connection: Connection, log: str, module: str, seed: int) -> None:
    """Run the cases whose numbers come in, until the parent hangs up."""
    if hasattr(os, "setsid"):
        os.setsid()  # so that what a case starts can be ended with it
    output = open(log, "w", buffering=1)  # noqa: SIM115  (open as long as the process lives)
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    faulthandler.enable(output)
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1, output)
    warnings.simplefilter("ignore")
    check = import_module(module)
    with contextlib.suppress(EOFError, OSError):
        while True:
            number = connection.recv()
            os.truncate(log, 0)
            os.lseek(output.fileno(), 0, os.SEEK_SET)
            connection.send(run_case(check, number, seed, connection.send))


def run_case(check: Any, number: int, seed: int, announce: Any = None) -> dict[str, Any]:
    """Make and run one case; its result as a dictionary."""
    from reliability.harness import Violation

    name, began = "not yet made", time.monotonic()
    try:
        case = check.case(number, seed)
        name, began = case.name, time.monotonic()
        if announce:
            announce({"name": name, "limit": case.limit})
        outcome, violation = case.run(), ""
    except Violation as broken:
        outcome, violation = "violated", f"{broken}" or "no text"
    except (Exception, SystemExit, KeyboardInterrupt):
        outcome, violation = "violated", traceback.format_exc()
    return {
        "number": number,
        "name": name,
        "outcome": outcome,
        "seconds": time.monotonic() - began,
        "violation": violation if len(violation) <= MOST_TEXT else violation[-MOST_TEXT:],
    }


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


if __name__ == "__main__":
    sys.exit("Run `python -m reliability`.")
