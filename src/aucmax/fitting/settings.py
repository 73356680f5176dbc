"""Settings of a kernel fit that may be left open, for tuning to fill in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Settings:
    """The settings of a kernel fit; None stands for one that is still open.

    All but ``metric`` are as the classifier's parameters. ``metric`` is what rows are multiplied by;
    None leaves distances as they are.
    """

    C: float | None = None
    gamma: float | str | None = None
    n_landmarks: int | None = None
    landmarks: Any = None
    standardize: Any = None
    kernel: str | None = None
    metric: Array | None = None

    def filled(self, other: Settings) -> Settings:
        """Return these settings with open ones taken from another."""
        missing = {name: value for name, value in vars(other).items() if getattr(self, name) is None}
        return replace(self, **missing)
