"""Declare once what each parameter may be, for checks, error messages and documentation.

An estimator declares its parameters in one table::

    @declare(C=(AUTO, Number()), solver=OneOf("newton", "sgd"))
    class Model(BaseEstimator): ...

``check_parameters(model)`` refuses a bad value in a sentence made from the table. In the docstring a
parameter stands by its name alone; its type and default are filled in from the table and ``__init__``.
"""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol, TypeVar

import numpy as np

from aucmax.runtime.memory import parse_bytes

T = TypeVar("T")

#: The largest number that float64 holds.
LARGEST = float(np.finfo(np.float64).max)


class Kind(Protocol):
    """One kind of value that a parameter may have.

    ``words`` complete the sentence "C must be ..."; ``shown`` is the type in documentation. ``fault``
    returns None for a good value, "" for a value of another kind, or what is wrong with it.
    """

    @property
    def words(self) -> str: ...

    @property
    def shown(self) -> str: ...

    def fault(self, value: Any) -> str | None: ...


@dataclass(frozen=True)
class Number:
    """A number above ``low``, or also ``low`` itself if ``closed``, up to ``high``."""

    low: float = 0.0
    high: float = np.inf
    closed: bool = False
    integer: bool = False

    @property
    def words(self) -> str:
        what = "a whole number" if self.integer else "a number"
        bound = f"{'of at least' if self.closed else 'above'} {self.low:g}"
        return f"{what} {bound}" + (f" and at most {self.high:g}" if self.high < np.inf else "")

    @property
    def shown(self) -> str:
        return "int" if self.integer else "float"

    def fault(self, value: Any) -> str | None:
        number = isinstance(value, Integral if self.integer else Real)
        if not number or isinstance(value, bool | np.bool_):
            return ""
        above = self.low <= value if self.closed else self.low < value
        return None if above and value <= min(self.high, LARGEST) else ""


@dataclass(frozen=True)
class OneOf:
    """One of some words, or None if that is among them."""

    choices: tuple[str | None, ...]

    def __init__(self, *choices: str | None) -> None:
        object.__setattr__(self, "choices", choices)

    @property
    def words(self) -> str:
        listed = ", ".join(repr(choice) for choice in self.choices)
        return listed if len(self.choices) == 1 else f"one of {listed}"

    @property
    def shown(self) -> str:
        texts = [f'"{each}"' for each in self.choices if each is not None]
        listed = [texts[0]] if len(texts) == 1 else [f"{{{', '.join(texts)}}}"] if texts else []
        return " or ".join([*listed, *(["None"] if None in self.choices else [])])

    def fault(self, value: Any) -> str | None:
        plain = value is None or isinstance(value, str)
        return None if plain and value in self.choices else ""


@dataclass(frozen=True)
class Fulfils:
    """A value that passes a test of its own; the test returns None, or what is wrong with the value."""

    words: str
    shown: str
    test: Callable[[Any], str | None]

    def fault(self, value: Any) -> str | None:
        return self.test(value)


def is_flag(value: Any) -> bool:
    """Return whether a value is True or False, or stands for one as 1 or 0."""
    return isinstance(value, bool | np.bool_) or (isinstance(value, Integral) and value in (0, 1))


def _grid_fault(values: Any) -> str | None:
    if isinstance(values, str) or np.isscalar(values) or values is None:
        return ""
    try:
        grid = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return f"must hold numbers; got {values!r}."
    if grid.ndim != 1 or not grid.size:
        return f"must be a list of at least one number; got {values!r}."
    bad = np.flatnonzero(~(np.isfinite(grid) & (grid > 0)))
    if bad.size:
        return f"must be positive and finite; entry {bad[0]} is {grid[bad[0]]:g}."
    falls = np.flatnonzero(np.diff(grid) <= 0)
    if falls.size:
        i = falls[0]
        rise = f"entry {i} is {grid[i]:g} and the next {grid[i + 1]:g}"
        return f"must rise from entry to entry; {rise}. Use sorted(set(values))."
    return None


def _path_fault(value: Any) -> str | None:
    return None if isinstance(value, str) or hasattr(value, "__fspath__") else ""


def _points_fault(values: Any) -> str | None:
    if isinstance(values, str):
        return ""
    try:
        return None if np.ndim(values) == 2 else ""
    except ValueError:  # rows of different lengths
        return ""


def _bytes_fault(value: Any) -> str | None:
    try:
        parse_bytes(value)
    except ValueError:
        return ""
    return None


def _names_fault(names: Any) -> str | None:
    if isinstance(names, str):
        return f"must be a list of column names; got the text {names!r}."
    listed = isinstance(names, Iterable) and getattr(names, "ndim", 1) != 0
    return None if listed and all(isinstance(name, str) for name in names) else ""


def _anything(value: Any) -> str | None:
    return None


AUTO = OneOf("auto")
NONE = OneOf(None)
FLAG = Fulfils("True or False", "bool", lambda value: None if is_flag(value) else "")
INTEGER = Fulfils("a whole number", "int", lambda value: None if isinstance(value, Integral) else "")
COUNT = Number(low=1, closed=True, integer=True)
VERBOSE = (FLAG, Number(closed=True, integer=True))
GRID = Fulfils("a list of rising positive numbers", "list of rising numbers", _grid_fault)
PATH = Fulfils("the path of a file", "path", _path_fault)
BYTES = Fulfils('a number of bytes, or text such as "4GB"', 'int or text such as "4GB"', _bytes_fault)
POINTS = Fulfils("a dense array of shape (v, d)", "array of shape (v, d)", _points_fault)
NAMES = Fulfils("a list of column names", "sequence of str", _names_fault)
#: Checked where they are used.
LABEL = Fulfils("a label", "label or None", _anything)
RANDOM_STATE = Fulfils("a random state", "int, RandomState or None", _anything)
CV = Fulfils("folds", "int, splitter or iterable", _anything)
ESTIMATOR = Fulfils("an estimator", "estimator or None", _anything)


def is_auto(value: Any) -> bool:
    """Return whether a parameter is "auto"; an array, which compares entry by entry, is not."""
    return isinstance(value, str) and value == "auto"


def check_value(name: str, value: Any, *kinds: Kind) -> None:
    """Refuse a value that is of none of the kinds."""
    detail = ""
    for kind in kinds:
        fault = kind.fault(value)
        if fault is None:
            return
        detail = detail or fault
    if detail:
        raise ValueError(f"{name} {detail}")
    *first, last = [kind.words for kind in kinds]
    allowed = f"{', '.join(first)} or {last}" if first else last
    raise ValueError(f"{name} must be {allowed}; got {value!r}.")


#: The table of each class.
_TABLES: dict[type, dict[str, tuple[Kind, ...]]] = {}


def declare(**table: Kind | tuple[Kind, ...]) -> Callable[[type[T]], type[T]]:
    """Declare what each parameter of an estimator may be, and complete its docstring."""
    kinds = {name: each if isinstance(each, tuple) else (each,) for name, each in table.items()}

    def decorate(cls: type[T]) -> type[T]:
        _TABLES[cls] = kinds
        signature = inspect.signature(cls.__init__).parameters

        def complete(found: re.Match[str]) -> str:
            name = found[1]
            if name not in kinds:
                return found[0]
            shown = " or ".join(dict.fromkeys(kind.shown for kind in kinds[name]))
            default = repr(signature[name].default).replace("'", '"')
            return f"    {name} : {shown}, default={default}"

        cls.__doc__ = re.sub(r"^    (\w+)$(?=\n {8})", complete, cls.__doc__ or "", flags=re.MULTILINE)
        return cls

    return decorate


def check_parameters(estimator: Any) -> None:
    """Refuse the first parameter of an estimator that is not what its table allows."""
    table = next(_TABLES[cls] for cls in type(estimator).__mro__ if cls in _TABLES)
    for name, kinds in table.items():
        check_value(name, getattr(estimator, name), *kinds)


def random_generator(random_state: Any) -> np.random.RandomState:
    """Return the generator that ``random_state`` stands for in scikit-learn."""
    from sklearn.utils import check_random_state

    try:
        return check_random_state(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            "random_state must be None, a whole number from 0 to 4294967295 or a RandomState; got "
            f"{random_state!r}."
        ) from None


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's own code, however deep in the package this is called."""
    frame, level = sys._getframe(1), 2
    package = __name__.split(".", 1)[0]
    while frame.f_back and frame.f_globals.get("__name__", "").split(".", 1)[0] == package:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
