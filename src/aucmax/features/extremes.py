"""Measure columns at the edge of float64 without overflow, refuse them, or warn of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.sparsefuncs import mean_variance_axis

from aucmax.rows.interface import Rows, dense, values_of
from aucmax.runtime.parameters import warn_user

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

#: Beyond these, coefficients in the units of a column overflow or vanish.
_LEAST_SIZE, _LARGEST_SIZE = 2.0**-1000, 2.0**1000

#: Deviations below this have squares that lose digits, or vanish.
_LEAST_SQUARED = 2.0**-480

#: A column whose mean is more than this many deviations from zero loses half of float64's digits or
#: more where its squares are summed.
_FAR = 1e7

#: A deviation of this many roundings of the mean is rounding.
_ROUNDINGS = 8.0 * np.finfo(np.float64).eps

#: About how many rows on workers are looked at.
_REMOTE_ROWS = 1000


def measure_extremes(scaler: Any, rows: Rows, weight: Floats, names: Any = None) -> Any:
    """Measure again the columns of a fitted StandardScaler whose variance is no normal number.

    The squares of very large or small values overflow or vanish, which makes a column look constant.
    Dividing by a power of two first, which rounds nothing, keeps them in range.
    """
    columns = _doubtful(scaler)
    if not columns.size:
        return scaler
    if rows.remote:
        refuse_extremes(scaler, rows[:: max(1, rows.shape[0] // _REMOTE_ROWS)], names)
        return scaler
    lows, highs = zip(*(_extents(block, columns) for _, block in rows.blocks()), strict=True)
    low, high = np.min(lows, axis=0), np.max(highs, axis=0)
    size, share = np.maximum(-low, high), weight / weight.max()
    for index in np.flatnonzero(size > _LARGEST_SIZE):
        raise _extreme(int(columns[index]), names, float(size[index]))
    scaler.mean_[columns], scaler.scale_[columns], scaler.var_[columns] = low, 1.0, 0.0
    for index in np.flatnonzero(high > low):
        column = int(columns[index])
        parts = [dense(block[:, [column]]) for _, block in rows.blocks()]
        mean, deviation = _moments(np.concatenate(parts)[:, 0].astype(np.float64), share)
        scaler.mean_[column] = mean
        if deviation is not None and deviation < _LEAST_SIZE:
            raise _extreme(column, names, float(size[index]))
        if deviation is not None:
            with np.errstate(over="ignore", under="ignore"):
                scaler.scale_[column], scaler.var_[column] = deviation, np.square(deviation)
    return scaler


def refuse_extremes(scaler: Any, block: Any, names: Any = None) -> None:
    """Refuse columns of a block that are too large or too small for a StandardScaler."""
    columns = _doubtful(scaler)
    if not columns.size:
        return
    low, high = _extents(block, columns)
    size = np.maximum(-low, high)
    known = np.isfinite(scaler.scale_[columns]) & np.isfinite(scaler.var_[columns])
    for index in np.flatnonzero(~known | ((size > 0) & (size < _LEAST_SQUARED))):
        raise _extreme(int(columns[index]), names, float(size[index]))


def refuse_tiny(rows: Rows) -> None:
    """Refuse rows that are not scaled and so small that products of two entries vanish."""
    if not rows.in_memory:
        return
    values = values_of(rows[:])
    size = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if 0.0 < size < _LEAST_SQUARED:
        raise ValueError(
            f"The largest entry of X is {size:.3g}, and products of such numbers vanish. Use "
            "standardize=True, or multiply X by a power of ten."
        )


def fits_float32(block: Any) -> bool:
    """Return whether squared distances between rows neither overflow nor vanish in float32."""
    size = float(np.abs(values_of(block)).max(initial=0.0))
    return size == 0.0 or 2.0**-50 < size < 2.0**50


def warn_far(rows: Rows, names: Any = None) -> None:
    """Warn of uncentred rows so far from zero that rounding hides their differences."""
    if not rows.in_memory:
        return
    X = rows[:]
    if rows.sparse:
        mean, variance = mean_variance_axis(X, axis=0)
    else:
        mean, variance = X.mean(axis=0, dtype=np.float64), X.var(axis=0, dtype=np.float64)
    far = np.flatnonzero((np.abs(mean) > _FAR * np.sqrt(variance)) & (variance > 0.0))
    if not far.size:
        return
    index = int(far[0])
    which, todo = "Rows that are not standardised", "Use standardize=True"
    if rows.sparse:
        which, todo = "Sparse rows", "Pass X.toarray()"
    warn_user(
        f"X, column {_name(index, names)}, lies far from zero: its mean is {mean[index]:.3g}, its "
        f"standard deviation {np.sqrt(variance[index]):.3g}. {which} are not centred, and rounding "
        f"hides such small differences. {todo}, or subtract the mean."
    )


def _doubtful(scaler: Any) -> Indices:
    """Return the columns that look constant, and those whose variance is no normal number."""
    scale, variance = scaler.scale_, scaler.var_
    odd = ~np.isfinite(scale) | ~np.isfinite(variance) | (scale < _LEAST_SQUARED)
    return np.flatnonzero(odd | ((scale == 1.0) & (variance != 1.0)))


def _extents(block: Any, columns: Indices) -> tuple[Floats, Floats]:
    """Return the least and the largest value of some columns."""
    values = block[:, columns]
    low, high = (
        np.asarray(dense(each), dtype=np.float64).ravel()
        for each in (values.min(axis=0), values.max(axis=0))
    )
    return low, high


def _moments(values: Floats, share: Floats) -> tuple[float, float | None]:
    """Return weighted mean and deviation at any magnitude; None if the deviation is rounding."""
    exponent = int(np.frexp(np.abs(values).max())[1])
    values = np.ldexp(values, -exponent)
    total = share.sum()
    mean = values[0] + share @ (values - values[0]) / total
    deviation = float(np.sqrt(share @ (values - mean) ** 2 / total))
    constant = deviation <= _ROUNDINGS * abs(mean)
    return float(np.ldexp(mean, exponent)), None if constant else float(np.ldexp(deviation, exponent))


def _extreme(index: int, names: Any, size: float) -> ValueError:
    what, todo = ("small", "Multiply") if size < 1.0 else ("large", "Divide")
    return ValueError(
        f"X, column {_name(index, names)}, is too {what} to be standardised: its largest entry is "
        f"{size:.3g}. {todo} the column by a power of ten."
    )


def _name(index: int, names: Any) -> str:
    return str(index) if names is None else repr(str(names[index]))
