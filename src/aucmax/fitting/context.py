"""What only one fit needs: seed, memory budget, deadline, checkpoint and progress."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from aucmax.fitting.checkpoint import Checkpoint, describe_fit
from aucmax.runtime.deadline import NEVER, Deadline
from aucmax.runtime.memory import Budget
from aucmax.runtime.parameters import random_generator
from aucmax.runtime.progress import StatusLine

__all__ = ["Context", "check_begun", "draw_seed", "open_context"]


@dataclass(frozen=True)
class Context:
    """What one fit alone needs: made when it begins, passed down, and dropped when it ends.

    Parameters
    ----------
    name : str
        The estimator's class, for messages.
    seed : int
        Seeds everything drawn at random; a resumed fit has the seed of the one before.
    random_state : as scikit-learn has it
        Seeds the landmarks.
    memory : Budget
        The memory of this machine that the fit may use.
    max_memory : int, str or None
        The parameter itself, which limits the workers of a cluster.
    deadline : Deadline
        When the fit has to take the best it has.
    checkpoint : Checkpoint
        What an interrupted fit has reached; without a file nothing is stored.
    verbose : bool
        Whether to report on standard error.
    status : StatusLine
        Where the fit reports what it is doing.
    """

    name: str = "The fit"
    seed: int = 0
    random_state: Any = 0
    memory: Budget = field(default_factory=Budget.of)
    max_memory: int | str | None = None
    deadline: Deadline = NEVER
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    verbose: bool = False
    status: StatusLine = field(default_factory=StatusLine)

    def part(self, name: str) -> Context:
        """Return the context of one of several machines, with its own part of the checkpoint."""
        return replace(self, checkpoint=self.checkpoint.part(name))

    def say(self, text: object) -> None:
        """Report a line if the fit is verbose."""
        self.status.say(text)


@contextmanager
def open_context(
    estimator: Any,
    settings: Any,
    data: Mapping[str, Sequence[Any]],
    began: float,
    remote: bool = False,
) -> Iterator[Context]:
    """Open the context of a fit that began at the monotonic time ``began``.

    ``settings`` is the estimator with the parameters of a context: a search has those of the estimator
    it holds. A checkpoint belongs to all parameters and to ``data``, arrays by name; its file is
    removed when the fit has succeeded. ``max_memory`` limits this machine unless rows are ``remote``.
    """
    names = ("checkpoint", "max_memory", "random_state", "time_budget", "verbose")
    path, max_memory, random_state, time_budget, verbose = (
        getattr(settings, name, None) for name in names
    )
    checkpoint = Checkpoint() if path is None else Checkpoint(path, describe_fit(estimator, data))
    status = StatusLine(bool(verbose))
    try:
        context = Context(
            type(estimator).__name__,
            checkpoint.once("seed", lambda: draw_seed(random_state)),
            random_state,
            Budget.of(None if remote else max_memory),
            max_memory,
            Deadline(time_budget, time.monotonic() - began + checkpoint.before),
            checkpoint,
            bool(verbose),
            status,
        )
        if checkpoint.before:
            context.say(f"Resuming from {path}: {checkpoint.before:.0f} s of it are done")
        yield context
        checkpoint.remove()
    finally:
        status.close()
        checkpoint.close()


def check_begun(steps: int, deadline: Deadline) -> None:
    """Refuse to end a fit whose time was over before its first step: there is no result."""
    if deadline.limited and not steps:
        raise TimeoutError(
            f"time_budget={deadline.seconds:.3g} s was over before the first step of the solver had "
            "ended: there is no result. Allow more time, or use fewer landmarks or rows."
        )


def draw_seed(random_state: Any) -> int:
    """Draw a seed for NumPy's newer generator from scikit-learn's ``random_state``."""
    return int(random_generator(random_state).randint(2**31))
