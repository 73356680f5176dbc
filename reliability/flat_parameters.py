"""Estimators that hold others, made from one flat set of parameters.

The checks draw parameters by name and replace one by something hostile, whichever estimator has it.
"""

from __future__ import annotations

import inspect
from typing import Any

import aucmax

#: What each of these estimators holds.
_HELD = {
    "TableModel": "KernelAUCClassifierCV",
    "KernelAUCClassifierCV": "KernelAUCClassifier",
    "LinearAUCClassifierCV": "LinearAUCClassifier",
}


def names(kind: str) -> tuple[str, ...]:
    """The names of all parameters of an estimator and of those it holds."""
    own = [name for name in inspect.signature(getattr(aucmax, kind)).parameters if name != "estimator"]
    held = names(_HELD[kind]) if kind in _HELD else ()
    return tuple(dict.fromkeys([*own, *held]))


def build(kind: str, params: dict[str, Any]) -> Any:
    """An estimator with these parameters; each goes to the outermost estimator that has it.

    The seed goes to all of them. Without a parameter for it, what an estimator holds stays None.
    """
    cls = getattr(aucmax, kind)
    known = inspect.signature(cls).parameters
    own = {name: value for name, value in params.items() if name in known}
    rest = {name: value for name, value in params.items() if name not in known}
    if kind in _HELD and rest:
        seed = {"random_state": params["random_state"]} if "random_state" in params else {}
        held = _HELD[kind]
        own["estimator"] = build(held, {**(seed if "random_state" in names(held) else {}), **rest})
    return cls(**own)


def set_flat(estimator: Any, **params: Any) -> Any:
    """Set parameters of an estimator or of one that it holds."""
    known = sorted(estimator.get_params(), key=len)
    for name, value in params.items():
        full = next(each for each in known if each.split("__")[-1] == name)
        estimator.set_params(**{full: value})
    return estimator


def small_search() -> Any:
    """The search of a small table model."""
    classifier = aucmax.KernelAUCClassifier(
        n_landmarks=8, kernel="rbf", gamma="distance", random_state=0
    )
    return aucmax.KernelAUCClassifierCV(classifier, gammas=1)
