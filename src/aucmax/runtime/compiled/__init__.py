"""Runs a loop compiled where numba is at hand, and its NumPy twin where it is not.

Compiled code is kept on disk beside this package, or in the user's cache folder if that is read-only;
if neither can be written, every process compiles anew.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from aucmax.runtime.compiled import loops, twins

#: Seconds of compiling after which a user is told what is going on.
_SILENT = 1.0

_COMPILING = threading.Lock()


def run(name: str, *arguments: Any) -> Any:
    """Call the loop ``name`` of ``loops``."""
    loop, typeof = _loop(name)
    if typeof is not None:
        types = tuple(typeof(argument) for argument in arguments)
        if types not in loop.signatures:
            with _COMPILING, _announced():  # threads that need the same loop wait for one
                loop.compile(types)
    return loop(*arguments)


@cache
def _loop(name: str) -> tuple[Any, Callable[[Any], Any] | None]:
    """A loop, and what tells numba's type of an argument if it is a compiled one."""
    try:
        numba: Any = import_module("numba")
    except ImportError:
        return getattr(twins, name), None
    if numba.config.DISABLE_JIT:
        return getattr(twins, name), None
    # Sums may be reordered, which is what lets them use vector instructions; NaN stays NaN.
    options = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}
    function = getattr(loops, name)
    try:
        return numba.njit(cache=True, **options)(function), numba.typeof
    except RuntimeError:  # no folder for the cache can be written
        return numba.njit(**options)(function), numba.typeof


@contextmanager
def _announced() -> Iterator[None]:
    def say() -> None:
        print("aucmax: compiling a loop for this machine, once ...", file=sys.stderr, flush=True)

    timer = threading.Timer(_SILENT, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
