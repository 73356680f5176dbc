"""A Dask cluster whose scheduler and workers are processes of their own, to be killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from reliability.launcher import ROOT

#: Seconds in which the cluster must have started.
START = 90.0

#: A variable in the environment of all processes of a cluster, those that nannies start included.
_MARK = "AUCMAX_RELIABILITY_CLUSTER"


class Cluster:
    """A scheduler and two workers of one thread, and a client that fits use."""

    def __init__(self, *, nanny: bool, memory: str, workers: int = 2) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="aucmax-cluster-")
        self._address = Path(self._folder.name) / "scheduler.json"
        place = ["--scheduler-file", str(self._address)]
        local = ["--host", "127.0.0.1", "--no-dashboard"]
        self._processes = [self._start("scheduler", *place, *local, "--port", "0")]
        options = [*place, *local, "--nthreads", "1", "--memory-limit", memory]
        options += ["--nanny" if nanny else "--no-nanny", "--death-timeout", "10"]
        self._processes += [self._start("worker", *options) for _ in range(workers)]
        self._count = workers

    def _start(self, what: str, *options: str) -> subprocess.Popen[bytes]:
        paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
        with Path(self._folder.name, f"{what}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{what}", *options],
                stdout=log,
                stderr=log,
                cwd=self._folder.name,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), _MARK: self._folder.name},
            )

    def __enter__(self) -> Cluster:
        import distributed

        try:
            until = time.monotonic() + START
            while not self._address.exists() and time.monotonic() < until:
                time.sleep(0.05)
            self.client = distributed.Client(scheduler_file=str(self._address), timeout=START)
            self.client.wait_for_workers(self._count, timeout=START)
            self.workers = sorted(self.client.run(os.getpid).values())
            self.other = distributed.Client(
                scheduler_file=str(self._address), timeout=START, set_as_default=False
            )
        except BaseException:
            self._end()
            raise
        self.scheduler = self._processes[0].pid
        return self

    def alive(self) -> list[int]:
        """The processes of the cluster that are there now."""
        mark, found = f"{_MARK}={self._folder.name}".encode(), []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if mark in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
        return found

    @property
    def still_there(self) -> bool:
        """Whether the scheduler runs."""
        return self._processes[0].poll() is None

    def shut_down(self, seconds: float) -> list[int]:
        """Close the cluster as a user would, and return the processes still alive after ``seconds``."""
        with contextlib.suppress(Exception):
            self.client.close(timeout=1)
            self.other.shutdown()
        until = time.monotonic() + seconds
        while (left := self.alive()) and time.monotonic() < until:
            time.sleep(0.05)
        return left

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def _end(self) -> None:
        for name in ("client", "other"):
            client: Any = getattr(self, name, None)
            if client is not None:
                with contextlib.suppress(Exception):
                    client.close(timeout=1)
        for pid in self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self._processes:
            process.wait()
        self._folder.cleanup()
