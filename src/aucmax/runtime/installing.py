"""The command that installs what is missing, for the Python that is running.

A command that names the package itself (``pip install "aucmax[onnx]"``) fails after an installation
from a clone or a wheel if no index has the package. The command here names the packages that an extra
stands for, as the installed metadata list them, so it is the same for a clone, a wheel and an index.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec

__all__ = ["extra_command", "install_command"]

#: What a shell takes as one word without quotes.
_PLAIN = re.compile(r"[\w./\\:+-]+")


def extra_command(extra: str) -> str:
    """Return the command that installs the packages of an extra.

    >>> extra_command("plot")  # doctest: +ELLIPSIS
    '...pip install ..."matplotlib>=...'
    """
    return install_command(*(_packages(extra) or (f"aucmax[{extra}]",)))


def install_command(*packages: str) -> str:
    """Return the command that installs packages into the running Python, by pip or else by uv."""
    if find_spec("pip") is None:
        words = ["uv", "pip", "install", "--python", sys.executable, *packages]
    else:
        words = [sys.executable, "-m", "pip", "install", *packages]
    return " ".join(word if _PLAIN.fullmatch(word) else f'"{word}"' for word in words)


def _packages(extra: str) -> list[str]:
    """Return the requirements of an extra, without its marker."""
    try:
        found = requires("aucmax") or []
    except PackageNotFoundError:  # the sources are on the path, and nothing is installed
        return []
    marker = re.compile(rf"(.+?);\s*extra\s*==\s*['\"]{re.escape(extra)}['\"]\s*")
    return [match[1].strip() for match in map(marker.fullmatch, found) if match]
