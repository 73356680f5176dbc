"""What a result was obtained on: versions, processor, threads, memory."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("aucmax", "numpy", "scipy", "scikit-learn", "numba", "threadpoolctl")


def versions() -> dict[str, str]:
    """Of Python and of the packages a result depends on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "source tree"
    return found


def machine() -> dict[str, Any]:
    """Processor, cores, and the BLAS with its threads."""
    import numpy  # noqa: F401  (so that its BLAS is counted)
    from threadpoolctl import threadpool_info

    blas = [info for info in threadpool_info() if info["user_api"] == "blas"]
    return {
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "blas_threads": blas[0]["num_threads"] if blas else None,
        "blas": f"{blas[0]['internal_api']} {blas[0]['version']}" if blas else None,
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()


def peak_gib() -> float | None:
    """Largest resident memory of this process so far; None where the system does not tell."""
    if sys.platform == "win32":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30
