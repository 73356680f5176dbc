"""Questions about one value of unknown type: is it missing, is it a number?"""

from __future__ import annotations

from typing import Any


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas' NA.

    >>> is_missing(float("nan")), is_missing(""), is_missing(0)
    (True, False, False)
    """
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # NA is neither equal nor unequal to itself
        return "NA" in type(value).__name__


def is_number(value: Any) -> bool:
    """Return whether Python reads a value, such as a piece of text, as a number.

    >>> is_number("1e5"), is_number("1,5")
    (True, False)
    """
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
