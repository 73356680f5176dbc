"""A tiny check with one case of each outcome; the tests use it to check the harness itself."""

from __future__ import annotations

import os
import tempfile
import time

from reliability.harness import Case, Violation

FULL = 6


def case(number: int, seed: int) -> Case:
    """0 keeps its promise, 1 breaks it, 2 hangs, 3 ends the process, 4 raises, 5 leaves a file."""
    runs = {1: _broken, 2: _hangs, 3: _dies, 4: _raises, 5: _leaves}
    return Case(f"made case {number} of seed {seed}", runs.get(number, _kept), limit=0.5)


def _kept() -> str:
    return "kept"


def _leaves() -> str:
    tempfile.mkdtemp()
    return "kept"


def _broken() -> str:
    raise Violation("expected 1, got 2")


def _hangs() -> str:
    time.sleep(60)
    return "kept"


def _dies() -> str:
    os._exit(7)


def _raises() -> str:
    raise KeyError("unexpected")
