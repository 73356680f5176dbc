"""All settings of a kernel fit, once tuning has chosen those that were left at "auto"."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from aucmax.features.fourier import FourierFeatures
from aucmax.features.kernels import BOTH, RADIAL
from aucmax.features.nystroem import NystroemFeatures
from aucmax.fitting.scaling import Scaling
from aucmax.fitting.settings import Settings

#: Kernel values up to this size stay in float64 if the data is; larger ones are in float32. So small
#: problems agree with any float64 optimiser, and large ones take half the memory and time.
FLOAT64_BYTES = 2**26

Features = NystroemFeatures | FourierFeatures


@dataclass(frozen=True)
class Recipe:
    """Scaling, metric, kernel, landmarks, C and solver of a kernel fit.

    ``capped`` is for more landmarks than rows: if true, every row becomes a landmark without a warning,
    otherwise with one. The other fields are as in :class:`KernelAUCClassifier`.
    """

    settings: Settings = field(default_factory=Settings)
    feature_map: str = "nystroem"
    degree: int = 3
    coef0: float = 1.0
    capped: bool = True
    solver: str = "newton"
    tol: float = 1e-4
    max_iter: int | str = "auto"

    def scaling(self, names: Any = None) -> Scaling:
        """Return how rows are scaled."""
        by_distance = self.settings.kernel in RADIAL
        return Scaling(self.settings.standardize, self.settings.metric, by_distance, names)

    def new_map(self, n_rows: int | None, random_state: Any, verbose: bool = False) -> Features:
        """Return the unfitted map for this many rows."""
        settings, count = self.settings, int(self.settings.n_landmarks or 0)
        shared: dict[str, Any] = {"kernel": settings.kernel, "gamma": settings.gamma}
        made: Features
        if self.feature_map == "fourier":
            made = FourierFeatures(count, random_state=random_state, **shared)
        else:
            made = NystroemFeatures(
                min(count, n_rows) if self.capped and n_rows is not None else count,
                landmarks=settings.landmarks,
                degree=self.degree,
                coef0=self.coef0,
                random_state=random_state,
                verbose=verbose,
                **shared,
            )
        made.set_output(transform="default")
        return made

    def count(self, n_rows: int) -> int:
        """Return the number of landmarks, or of Fourier features."""
        landmarks, count = self.settings.landmarks, int(self.settings.n_landmarks or 0)
        if self.feature_map == "fourier":
            return count
        return min(count, n_rows) if isinstance(landmarks, str) else len(landmarks)

    def width(self, n_rows: int) -> int:
        """Return the number of kernel values of a row."""
        return self.count(n_rows) * (2 if self.settings.kernel == BOTH else 1)

    def landmark_bytes(self, width: int, n_columns: int) -> int:
        """Return the memory of landmarks with their copies in float64, and matrices between them."""
        return landmark_bytes(width, n_columns, 0 if self.feature_map == "fourier" else width)


def landmark_bytes(n_landmarks: int, n_columns: int, between: int) -> int:
    """Return the memory of landmarks with their copies in float64, and matrices between them."""
    return 24 * n_landmarks * (n_columns + between)
