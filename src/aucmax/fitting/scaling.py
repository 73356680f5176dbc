"""Scale the rows of a fit by its parameters, or as tuning has chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import StandardScaler

from aucmax.features.extremes import measure_extremes, refuse_tiny, warn_far
from aucmax.features.scalers import MetricScaler, QuantileScaler
from aucmax.fitting.context import Context
from aucmax.fitting.problem import Problem
from aucmax.rows.interface import Rows, new_standard_scaler

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Scaling:
    """How rows are scaled before they are mapped or solved for.

    Parameters
    ----------
    standardize : bool or "quantile"
    metric : array of shape (d,) or (d, d), optional
        What standardised rows are multiplied by.
    by_distance : bool
        Whether only differences of rows count, as in kernels of distances. Uncentred rows then do no
        harm.
    names : sequence of str, optional
        The names of the columns, for errors.
    """

    standardize: bool | str
    metric: Array | None = None
    by_distance: bool = False
    names: Any = None


def new_scaler(rows: Rows, scaling: Scaling) -> Any:
    """Return the unfitted scaler for these rows; None if they are not scaled."""
    plain: Any = None
    if scaling.standardize == "quantile":
        plain = _quantile_scaler()
    elif scaling.standardize:
        plain = new_standard_scaler(not rows.sparse)
    return plain if scaling.metric is None else MetricScaler(plain, scaling.metric)


def _quantile_scaler() -> Any:
    return QuantileScaler().set_output(transform="default")


def fit_scaler(rows: Rows, weight: Array, scaling: Scaling) -> Any:
    """Return the fitted scaler for these rows; None if they are not scaled."""
    plain = _fit_plain(rows, weight, scaling)
    return plain if scaling.metric is None else MetricScaler(plain, scaling.metric)


def _fit_plain(rows: Rows, weight: Array, scaling: Scaling) -> Any:
    """Return the fitted scaler without the metric."""
    if not scaling.by_distance and (rows.sparse or not scaling.standardize):
        warn_far(rows, scaling.names)
    if not scaling.standardize:
        refuse_tiny(rows)
        return None
    if scaling.standardize == "quantile":
        return _quantile_scaler().fit(rows[:] if rows.in_memory else rows, sample_weight=weight)
    scaler = rows.standard_scaler(weight)
    return rounded(measure_extremes(scaler, rows, weight, scaling.names))


def rounded(scaler: StandardScaler) -> StandardScaler:
    """Round mean and scale to a billionth of the scale.

    Rows in another order, or in parts on several machines, give means that differ in their last bits,
    from which k-means may make quite different landmarks.

    >>> scaler = rounded(StandardScaler().fit([[1 / 3], [1.0]]))
    >>> f"{scaler.mean_[0]:.8f} {scaler.scale_[0]:.8f}"
    '0.66666667 0.33333333'
    """
    grid = np.exp2(np.floor(np.log2(scaler.scale_)) - 30)
    scaler.scale_ = np.round(scaler.scale_ / grid) * grid
    if scaler.mean_ is not None:
        scaler.mean_ = np.round(scaler.mean_ / grid) * grid
    return scaler


def scale_rows(scaler: Any, rows: Rows) -> Rows:
    """Return rows through a fitted scaler; themselves if there is none."""
    return rows if scaler is None else rows.scaled(scaler)


def scaled(problem: Problem, scaling: Scaling, context: Context) -> tuple[Any, Rows]:
    """Return the fitted scaler of a problem, or that of its checkpoint, with the scaled rows."""
    rows = problem.rows
    scaler = context.checkpoint.fitted(
        "scaler",
        lambda: fit_scaler(rows, problem.weight, scaling),
        lambda: new_scaler(rows, scaling),
    )
    return scaler, scale_rows(scaler, rows)
