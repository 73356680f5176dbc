"""Deadlines: the moment at which a fit has to return the best result it has."""

from __future__ import annotations

import math
import time

__all__ = ["NEVER", "Deadline", "OutOfTimeError"]


class OutOfTimeError(Exception):
    """The deadline passed before the work had any result."""


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
        """Return whether there is a deadline at all."""
        return self._end < math.inf

    def left(self) -> float:
        """Return the seconds left; 0 when the time is over."""
        return max(0.0, self._end - time.monotonic())

    def over(self) -> bool:
        """Return whether the time is over."""
        return time.monotonic() >= self._end

    def part(self, share: float) -> Deadline:
        """Return a deadline after a share of the time left."""
        return Deadline(share * self.left()) if self.limited else self


NEVER = Deadline()
