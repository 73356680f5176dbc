"""How a fit scales its rows: as the parameters say, or as tuning has chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from aucmax.features.scalers import (
    MetricScaler,
    QuantileScaler,
    refuse_tiny,
    warn_far,
    with_extremes,
)
from aucmax.rows.validation import is_elsewhere, is_sparse

__all__ = ["Scaling", "fit_scaler", "new_scaler", "rounded", "scale_rows"]


@dataclass(frozen=True)
class Scaling:
    """What rows go through before they are mapped or solved for.

    Parameters
    ----------
    standardize : bool or "quantile"
    metric : array of shape (d,) or (d, d), optional
        What standardised rows are multiplied with.
    by_distance : bool
        Whether only differences of rows count, as in kernels of distances: then rows that are not
        centred do no harm.
    names : sequence of str, optional
        Names of the columns, for errors.
    """

    standardize: bool | str
    metric: np.ndarray | None = None
    by_distance: bool = False
    names: Any = None


def new_scaler(X: Any, scaling: Scaling) -> Any:
    """The scaler for these rows, unfitted; None where they are left as they are."""
    plain: Any = None
    if scaling.standardize == "quantile":
        plain = QuantileScaler().set_output(transform="default")
    elif scaling.standardize:
        # Centring would turn a CSR matrix into a dense one, so that is only scaled.
        plain = StandardScaler(with_mean=not is_sparse(X)).set_output(transform="default")
    return plain if scaling.metric is None else MetricScaler(plain, scaling.metric)


def fit_scaler(X: Any, weight: np.ndarray, scaling: Scaling) -> Any:
    """The scaler for these rows, fitted; None where they are left as they are."""
    plain = _fit_plain(X, weight, scaling)
    return plain if scaling.metric is None else MetricScaler(plain, scaling.metric)


def _fit_plain(X: Any, weight: np.ndarray, scaling: Scaling) -> Any:
    if not scaling.by_distance and (is_sparse(X) or not scaling.standardize):
        warn_far(X, scaling.names)
    if not scaling.standardize:
        refuse_tiny(X)
        return None
    scaler = new_scaler(X, Scaling(scaling.standardize))
    if isinstance(scaler, QuantileScaler):
        return scaler.fit(X, sample_weight=weight)
    if is_elsewhere(X):
        scaler = X.scaler(weight)
    else:
        # Only ratios of weights matter to it; tiny or huge ones would underflow or overflow. Equal
        # ones are left out, since weighing takes twice the time.
        scaler.fit(X, sample_weight=weight / weight.max() if np.ptp(weight) else None)
    return rounded(with_extremes(scaler, X, weight, scaling.names))


def rounded(scaler: StandardScaler) -> StandardScaler:
    """The same with mean and scale rounded to a billionth of the scale.

    Rows in another order, or in parts on several machines, give means that differ in their last bits;
    of those k-means may make quite other landmarks.

    >>> scaler = rounded(StandardScaler().fit([[1 / 3], [1.0]]))
    >>> f"{scaler.mean_[0]:.8f} {scaler.scale_[0]:.8f}"
    '0.66666667 0.33333333'
    """
    grid = np.exp2(np.floor(np.log2(scaler.scale_)) - 30)
    scaler.scale_ = np.round(scaler.scale_ / grid) * grid
    if scaler.mean_ is not None:
        scaler.mean_ = np.round(scaler.mean_ / grid) * grid
    return scaler


def scale_rows(scaler: StandardScaler | QuantileScaler | MetricScaler | None, X: Any) -> Any:
    """Rows through a fitted scaler; themselves if there is none."""
    if scaler is None:
        return X
    if is_sparse(X) and getattr(getattr(scaler, "scaler", scaler), "with_mean", False):
        raise ValueError(
            "X is sparse, and the model was fitted to dense rows, which it centres: pass X.toarray(), "
            "or fit the model to sparse rows."
        )
    return X.scaled_by(scaler) if is_elsewhere(X) else scaler.transform(X)
