"""Hostile values of parameters: at and beyond their bounds, and of the wrong kind."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np

VALUES: tuple[Any, ...] = (
    0,
    -1,
    1,
    2,
    0.0,
    -0.0,
    0.5,
    1.0,
    1.5,
    -0.5,
    1e-300,
    5e-324,
    1e-12,
    1e12,
    1e300,
    float("nan"),
    float("inf"),
    float("-inf"),
    10**15,
    10**30,
    "",
    "text",
    "auto",
    "1",
    "nan",
    b"auto",
    None,
    True,
    False,
    np.True_,
    np.float32(1.5),
    np.float64(2.0),
    np.float64("nan"),
    np.int64(3),
    np.uint8(2),
    np.int8(-1),
    np.array(1.0),
    np.array(2),
    np.array([1.0, 2.0]),
    np.array([]),
    np.array([[1.0, 2.0], [0.5, 0.5]]),
    [],
    [1.0],
    [1.0, 10.0],
    [10.0, 1.0],
    [1.0, 1.0],
    [float("nan")],
    ["a"],
    (),
    (1.0, 10.0),
    {},
    {"a": 1},
    1 + 0j,
    1j,
    Decimal("1.5"),
    np.datetime64("2020-01-01"),
    np.str_("auto"),
    np.str_("rbf"),
    object,
    len,
)

#: Larger ones mean what they say: work, threads or files without end.
BOUNDED = ("epochs", "max_iter", "n_jobs", "n_repeats", "cv", "verbose", "n_iter_no_change")


def values_for(name: str) -> tuple[Any, ...]:
    """The values that a parameter of this name is tried with."""
    if name == "n_jobs":
        return (0, 1, 1.5, "text", None, float("nan"), np.int64(1), [1])
    if name in BOUNDED:
        return tuple(value for value in VALUES if not _is_large(value))
    return VALUES


def is_nonsense(value: Any) -> bool:
    """Whether no parameter that is a number or a word can mean this."""
    if isinstance(value, complex) or value is object or value is len:
        return True
    return isinstance(value, float) and bool(np.isnan(value))


def _is_large(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**6
