"""The bandwidth gamma of a kernel, by a rule from the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.rows.interface import ArrayRows, Rows, dense, values_of
from aucmax.runtime.parameters import Number, OneOf
from aucmax.runtime.threads import over_blocks

Array = npt.NDArray[Any]

#: What the parameter gamma may be.
GAMMA = (OneOf("distance", "paper", "scale"), Number())

#: The paper takes its bandwidth from the first 80,000 rows.
GAMMA_ROWS = 80_000

#: Squared distances between rows of smaller entries lose digits, or vanish.
_LEAST_SIZE = {np.dtype(np.float64): 2.0**-480, np.dtype(np.float32): 2.0**-50}


def resolve_gamma(gamma: str | float, rows: Rows, weight: Array, kernel: str) -> float:
    """Return gamma as a number: itself, or by a rule from rows and their weights.

    ``"distance"`` is ``1/b``, where b is the mean distance to the mean over the first 80,000 rows, in
    the distance of the kernel (squared for the rbf). ``"paper"`` is ``1/(2b)``, our reading of the
    paper's bandwidth; ``python -m benchmarks gamma`` compares it with others. ``"scale"`` is
    scikit-learn's, ``1 / (d * variance of all entries)``. Where rows are constant, b is 1.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "paper":
        return 0.5 * resolve_gamma("distance", rows, weight, kernel)
    if gamma == "distance":
        rows, weight = ArrayRows(rows[:GAMMA_ROWS]), weight[:GAMMA_ROWS]
    if rows.in_memory:
        _refuse_tiny(rows, gamma)
    power = 1 if gamma == "distance" and kernel == "laplacian" else 2
    if rows.in_memory:
        with np.errstate(over="ignore", invalid="ignore"):  # checked below
            centre = np.asarray(rows[:].T @ weight).ravel() / weight.sum()
        middle = np.full(centre.size, centre.mean()) if gamma == "scale" else centre
        spread = _mean_distance(rows, weight, middle, power)
    else:
        scaler = rows.standard_scaler(weight)
        centre = scaler.mean_
        spread = float((scaler.var_ + (centre - centre.mean()) ** 2).sum())
    if not np.isfinite(spread) or not np.isfinite(1.0 / spread if spread else 1.0):
        raise ValueError(
            f"gamma={gamma!r} cannot be found: squared distances between rows of X, about {spread:g}, "
            "overflow or vanish. Standardize X, or give gamma as a number."
        )
    size = float(np.abs(centre).max(initial=0.0))
    # The spread that rounding gives a constant column does not count.
    noise = rows.shape[1] * (4.0 * np.finfo(rows.dtype).eps * size) ** power
    return 1.0 / spread if spread > noise else 1.0


def _refuse_tiny(rows: Rows, gamma: str) -> None:
    """Refuse rows whose squared distances vanish, which would make them look constant."""
    size = float(np.abs(values_of(rows[:])).max(initial=0.0))
    if 0.0 < size < _LEAST_SIZE[np.dtype(rows.dtype)]:
        raise ValueError(
            f"gamma={gamma!r} cannot be found: the largest entry of X is {size:.3g}, whose square "
            "vanishes. Standardize or multiply X."
        )


def _mean_distance(rows: Rows, weight: Array, centre: Array, power: int) -> float:
    """Return the weighted mean of ``sum |x - centre|**power``, without cancelling squares."""
    away = np.empty(rows.shape[0])

    def measure(part: slice) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # checked by the caller
            away[part] = (np.abs(dense(rows[part]) - centre) ** power).sum(axis=1)

    over_blocks(measure, rows.shape[0], rows.shape[1] * 8)
    return float(np.average(away, weights=weight))
