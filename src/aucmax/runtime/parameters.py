"""Checks of parameters. Each error says what was expected, what came and what to try."""

from __future__ import annotations

import sys
import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np

#: The largest number that float64 holds.
LARGEST = float(np.finfo(np.float64).max)


def check_number(
    name: str,
    value: Any,
    *,
    low: float = 0.0,
    closed: bool = False,
    high: float = np.inf,
    integer: bool = False,
) -> None:
    """Refuse a parameter that is no number above ``low`` (or at it, if ``closed``)."""
    kind = Integral if integer else Real
    number = isinstance(value, kind) and not isinstance(value, (bool, np.bool_))
    if number and (low <= value if closed else low < value) and value <= min(high, LARGEST):
        return
    what = "a whole number" if integer else "a number"
    bound = f"{'of at least' if closed else 'above'} {low:g}"
    if high < np.inf:
        bound += f" and at most {high:g}"
    raise ValueError(f"{name} must be {what} {bound}; got {value!r}.")


def is_auto(value: Any) -> bool:
    """Whether a parameter is left at "auto"; arrays, which compare by entry, are not."""
    return isinstance(value, str) and value == "auto"


def is_flag(value: Any) -> bool:
    """Whether a parameter is True or False, or stands for one of them as 1 and 0 do."""
    return isinstance(value, bool | np.bool_) or (isinstance(value, Integral) and value in (0, 1))


def check_flag(name: str, value: Any) -> None:
    """Refuse a parameter that is neither True nor False."""
    if not is_flag(value):
        raise ValueError(f"{name} must be True or False; got {value!r}.")


def check_verbose(value: Any) -> None:
    """Refuse a verbosity that is neither a flag nor a whole number."""
    if not is_flag(value):
        check_number("verbose", value, closed=True, integer=True)


def random_generator(random_state: Any) -> np.random.RandomState:
    """The generator that ``random_state`` stands for in scikit-learn."""
    from sklearn.utils import check_random_state

    try:
        return check_random_state(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            "random_state must be None, a whole number from 0 to 4294967295 or a RandomState; got "
            f"{random_state!r}."
        ) from None


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse a parameter that is none of the words."""
    if not (isinstance(value, str) and value in choices):
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}; got {value!r}.")


def check_increasing(name: str, values: Any) -> None:
    """Refuse a grid that is not a row of rising positive numbers."""
    try:
        grid = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers; got {values!r}.") from None
    if grid.ndim != 1 or not grid.size:
        raise ValueError(f"{name} must be a list of at least one number; got {values!r}.")
    bad = np.flatnonzero(~(np.isfinite(grid) & (grid > 0)))
    if bad.size:
        raise ValueError(f"{name} must be positive and finite; entry {bad[0]} is {grid[bad[0]]:g}.")
    falls = np.flatnonzero(np.diff(grid) <= 0)
    if falls.size:
        i = falls[0]
        raise ValueError(
            f"{name} must rise from entry to entry; entry {i} is {grid[i]:g} and the next "
            f"{grid[i + 1]:g}. Use sorted(set({name}))."
        )


def check_gamma(value: Any) -> None:
    """Refuse a bandwidth that is neither a rule's name nor a positive number."""
    if isinstance(value, str):
        check_choice("gamma", value, ("distance", "scale"))
    else:
        check_number("gamma", value)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's own code, however deep in the package this is called."""
    frame, level = sys._getframe(1), 2
    package = __name__.split(".", 1)[0]
    while frame.f_back and frame.f_globals.get("__name__", "").split(".", 1)[0] == package:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
