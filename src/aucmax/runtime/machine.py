"""Describe what a result was computed with: versions, processor, threads, memory."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("aucmax", "numpy", "scipy", "scikit-learn", "numba", "threadpoolctl")


def versions(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Return the versions of Python and of some packages, by default those that affect a result."""
    found = {"python": platform.python_version()} | dict.fromkeys(packages, "source tree")
    for name in packages:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def machine() -> dict[str, Any]:
    """Return the processor, its cores, and the BLAS with its threads."""
    import numpy  # noqa: F401  (loads its BLAS, so that it is listed)
    from threadpoolctl import threadpool_info

    blas = next((info for info in threadpool_info() if info["user_api"] == "blas"), None)
    return {
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "blas_threads": blas["num_threads"] if blas else None,
        "blas": f"{blas['internal_api']} {blas['version']}" if blas else None,
    }


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def peak_gib() -> float | None:
    """Return the largest resident memory of this process so far, in GiB; None on Windows."""
    if sys.platform == "win32":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


class Company:
    """What other programs, and other machines on the same hardware, use of the processors meanwhile."""

    def __init__(self) -> None:
        self._began, self._others = time.perf_counter(), _others_seconds()

    def share(self) -> float | None:
        """Return their share of the processors' time since this was made; None if it is not known."""
        now, elapsed = _others_seconds(), time.perf_counter() - self._began
        if now is None or self._others is None or elapsed <= 0:
            return None
        return max(0.0, (now - self._others) / (elapsed * (os.cpu_count() or 1)))


def _others_seconds() -> float | None:
    """Return the processors' busy seconds that this process did not use, as Linux counts them."""
    with suppress(OSError, ValueError, IndexError):
        ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        user, nice, system, _, _, irq, softirq, steal = ticks
        busy = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
        return busy - sum(os.times()[:4])
    return None
