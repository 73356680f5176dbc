"""What a fit may leave open, and the kernel it is open for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Settings:
    """What a fit may leave open: settled, or not yet (None).

    All but ``metric`` are as the classifier's parameters; that is None for the plain distance, else
    what rows are multiplied with.
    """

    C: float | None = None
    gamma: float | str | None = None
    n_landmarks: int | None = None
    landmarks: Any = None
    standardize: Any = None
    kernel: str | None = None
    metric: Array | None = None

    def filled(self, other: Settings) -> Settings:
        """With what is open taken from another."""
        missing = {name: value for name, value in vars(other).items() if getattr(self, name) is None}
        return replace(self, **missing)


@dataclass(frozen=True)
class Kernel:
    """The kernel to begin with, and the rule or number for gamma that multiples are of.

    ``fixed`` says that gamma is no other than that.
    """

    name: str = "rbf"
    gamma: str | float = "distance"
    fixed: bool = False
    degree: int = 3
    coef0: float = 1.0
