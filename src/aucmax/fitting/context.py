"""What only one fit needs: its checkpoint, its deadline, and how it reports progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aucmax.fitting.checkpoint import Checkpoint, describe_fit
from aucmax.runtime.deadline import NEVER, Deadline
from aucmax.runtime.parameters import random_generator

__all__ = ["Context", "check_begun", "draw_seed", "open_context"]


@dataclass(frozen=True)
class Context:
    """Made when a fit begins, passed down by argument, and gone when the fit ends.

    Parameters
    ----------
    checkpoint : Checkpoint
        What an interrupted fit has reached; without a file it keeps nothing.
    deadline : Deadline
        When the fit has to take the best it has.
    seed : int
        For all that is drawn at random; a resumed fit has the seed of the one before.
    verbose : bool
        Whether to report on standard error.
    """

    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    deadline: Deadline = NEVER
    seed: int = 0
    verbose: bool = False

    def say(self, text: str) -> None:
        """Report a line, if the fit is verbose."""
        if self.verbose:
            print(text, file=sys.stderr)


@contextmanager
def open_context(estimator: Any, data: Mapping[str, Sequence[Any]], began: float) -> Iterator[Context]:
    """The context of a fit that began at the monotonic time ``began``.

    A checkpoint belongs to the estimator's parameters and to ``data``, arrays by name. Its file is
    removed when the fit has succeeded.
    """
    path, verbose = estimator.checkpoint, bool(getattr(estimator, "verbose", 0))
    kept = Checkpoint() if path is None else Checkpoint(path, describe_fit(estimator, data))
    try:
        deadline = Deadline(estimator.time_budget, time.monotonic() - began + kept.before)
        random_state = getattr(estimator, "random_state", None)
        seed = kept.once("seed", lambda: draw_seed(random_state))
        context = Context(kept, deadline, seed, verbose)
        if kept.before:
            context.say(f"Going on from {path}: {kept.before:.0f} s of it are done")
        yield context
        kept.remove()
    finally:
        kept.close()


def check_begun(steps: int, deadline: Deadline) -> None:
    """Refuse to end a fit whose time was over before a single step was done: there is no result."""
    if deadline.limited and not steps:
        raise TimeoutError(
            f"time_budget={deadline.seconds:.3g} s was over before the first step of the solver had "
            "ended: there is no result. Allow more time, or use fewer landmarks or rows."
        )


def draw_seed(random_state: Any) -> int:
    """A seed for NumPy's newer generator from scikit-learn's ``random_state``."""
    return int(random_generator(random_state).randint(2**31))
