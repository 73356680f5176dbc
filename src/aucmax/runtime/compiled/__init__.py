"""Run a loop compiled by numba, or its NumPy twin where numba is absent.

numba stores compiled code on disk next to this package, or in the user's cache folder if that is
read-only; if neither can be written, every process compiles again.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from aucmax.runtime.compiled import loops, twins

#: Seconds of compiling after which a message is printed.
_SILENT = 1.0
_MESSAGE = "aucmax: compiling a loop for this machine, once ..."

_COMPILING = threading.Lock()


def run(name: str, *arguments: Any) -> Any:
    """Call the loop ``name`` of ``loops``, and compile it first if its arguments have new types."""
    loop, typeof = _loop(name)
    if typeof is not None:
        types = tuple(typeof(argument) for argument in arguments)
        if types not in loop.signatures:
            timer = threading.Timer(_SILENT, lambda: print(_MESSAGE, file=sys.stderr, flush=True))
            timer.daemon = True
            with _COMPILING:  # threads that need the same loop wait for one
                timer.start()
                try:
                    loop.compile(types)
                finally:
                    timer.cancel()
    return loop(*arguments)


@cache
def _loop(name: str) -> tuple[Any, Callable[[Any], Any] | None]:
    """Return a loop, and ``numba.typeof`` if it is a compiled one."""
    try:
        numba: Any = import_module("numba")
    except ImportError:
        numba = None
    if numba is None or numba.config.DISABLE_JIT:
        return getattr(twins, name), None
    # Sums may be reordered, which lets them use vector instructions; NaN stays NaN.
    options = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}
    function = getattr(loops, name)
    try:
        return numba.njit(cache=True, **options)(function), numba.typeof
    except RuntimeError:  # no folder for the cache can be written
        return numba.njit(**options)(function), numba.typeof
