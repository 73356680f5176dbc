"""Describe what a result was computed with: versions, processor, threads, memory."""

from __future__ import annotations

import os
import platform
import sys
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
