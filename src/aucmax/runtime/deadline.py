"""The moment at which a fit has to take the best it has."""

from __future__ import annotations

import math
import time

__all__ = ["NEVER", "Deadline", "OutOfTimeError"]


class OutOfTimeError(Exception):
    """Work was stopped by its deadline before it came to a result."""


class Deadline:
    """The end of a time budget that began ``spent`` seconds ago; without a budget it never comes.

    >>> Deadline().over(), Deadline(0.0).over(), Deadline(60.0).part(0.5).left() < 31.0
    (False, True, True)
    """

    def __init__(self, seconds: float | None = None, spent: float = 0.0) -> None:
        self.seconds = seconds
        self._end = math.inf if seconds is None else time.monotonic() + seconds - spent

    @property
    def limited(self) -> bool:
        """Whether there is an end at all."""
        return self._end < math.inf

    def left(self) -> float:
        """Seconds left, 0 when it is over."""
        return max(0.0, self._end - time.monotonic())

    def over(self) -> bool:
        return time.monotonic() >= self._end

    def part(self, share: float) -> Deadline:
        """A deadline that ends when a share of the time left is over."""
        return Deadline(share * self.left()) if self.limited else self


NEVER = Deadline()
