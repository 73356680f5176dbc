"""What a caller chooses about a solve: when it stops, and what is called after each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aucmax.runtime.deadline import NEVER, Deadline

#: Plain data and arrays from which a solve can continue; a checkpoint stores it.
SavedState = dict[str, Any]

#: Rows that a preconditioner samples per feature. On covtype (465k rows, C = 100) 10, 16 and 24 of them
#: took 285, 310 and 190 passes, and 42, 46 and 33 s.
ROWS_PER_FEATURE = 20


@dataclass(frozen=True)
class Stopping:
    """When a Newton solver stops."""

    tol: float = 1e-4  #: estimated relative distance to the minimum at which a problem has converged
    max_iter: int = 100  #: Newton steps
    deadline: Deadline = NEVER  #: after it, a solver returns what it has reached by the next product


@dataclass(frozen=True)
class Hooks:
    """Functions to call after each step: with its record, and with the state to resume from."""

    on_record: Callable[[Any], None] | None = None
    on_state: Callable[[SavedState], None] | None = None


#: Takes Newton steps from a state until a solve has ended: its data, its state, its hooks.
Iterate = Callable[[Any, Any, Hooks], None]

DEFAULT_STOPPING = Stopping()
NO_HOOKS = Hooks()
