"""What callers choose about a solve: when it stops, and who hears of its progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aucmax.runtime.deadline import NEVER, Deadline

#: Plain data and arrays from which a solve can continue; a checkpoint stores it.
SavedState = dict[str, Any]


@dataclass(frozen=True)
class Stopping:
    """When a Newton solver stops.

    ``tol`` is the relative distance to the minimum, as estimated, at which a problem has converged.
    ``max_iter`` limits the Newton steps. At the ``deadline`` a solver finishes the product at hand and
    returns what it has reached.
    """

    tol: float = 1e-4
    max_iter: int = 100
    deadline: Deadline = NEVER


@dataclass(frozen=True)
class Hooks:
    """Functions to call after each step: with its record, and with the state to resume from."""

    on_record: Callable[[Any], None] | None = None
    on_state: Callable[[SavedState], None] | None = None


DEFAULT_STOPPING = Stopping()
NO_HOOKS = Hooks()
