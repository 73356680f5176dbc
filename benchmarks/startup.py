"""How long ``import aucmax`` and ``aucmax --help`` take, as a ratio to ``import numpy``."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from benchmarks.harness import timed

COMMANDS = {
    "import numpy": ["-c", "import numpy"],
    "import aucmax": ["-c", "import aucmax"],
    "aucmax --help": ["-m", "aucmax", "--help"],
}


def run(options: Any) -> Iterator[dict[str, Any]]:
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(15):  # in turn, so that a busy moment falls on all
        for name, arguments in COMMANDS.items():
            command = [sys.executable, *arguments]
            times[name].append(
                timed(lambda: subprocess.run(command, capture_output=True, check=True))[0]
            )
    base = statistics.median(times["import numpy"])
    for name, values in times.items():
        median = statistics.median(values)
        yield {"command": name, "seconds": median, "times_numpy": median / base, "runs": len(values)}
