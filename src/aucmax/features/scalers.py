"""Scalers beside scikit-learn's StandardScaler: by ranks, and by a metric on top of another."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import check_is_fitted, validate_data

from aucmax.rows.blocked import BlockedRows
from aucmax.rows.validation import check_rows, check_weight, is_elsewhere, is_remote, is_sparse
from aucmax.runtime.parameters import check_number, warn_user
from aucmax.runtime.threads import over_blocks

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

#: Rows that quantiles are taken of, at most: they are as good as those of more, and sorted in a moment.
SAMPLE_ROWS = 200_000

#: Mid-ranks are kept this far from 0 and 1, where normal quantiles are infinite.
_TAIL = 1e-3

#: Shares that differ less are one: sums of weights in another order do.
_SHARE_EPS = 1e-9

#: Levels are rounded to this, for the same reason.
_GRID = 2.0**-30

#: Values that differ less are one: a slope between them would overflow.
_LEAST_GAP = 1e-300

_TYPES = (np.float64, np.float32)


#: Beyond these, coefficients in the units of a column overflow or vanish.
_LEAST_SIZE, _LARGEST_SIZE = 2.0**-1000, 2.0**1000

#: Deviations below this have squares that lose digits, or vanish.
_LEAST_SQUARED = 2.0**-480

#: Columns whose mean is more than this many deviations from zero lose half of float64's digits or more
#: where squares of them are summed.
_FAR = 1e7

#: Deviations of so many roundings of the mean are rounding.
_ROUNDINGS = 8.0 * np.finfo(np.float64).eps

#: Rows on workers that are looked at, about.
_REMOTE_ROWS = 1000


class QuantileScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Each column through a rising, piecewise linear map that makes it about normal.

    A value becomes the normal quantile of its mid-rank: the share of rows below it, and half of those
    at it. Far values thus come near, and a heavy one, such as the 0 of a column of counts, takes the
    place of its middle row. The map has a knot at every distinct value if these are few, and else at
    quantiles and around heavy values. Transformed training rows have mean 0 and variance 1; values
    beyond their range are taken for its end. A constant column becomes 0.

    Parameters
    ----------
    n_knots : int, default=200
        Knots of a column, at most.

    Attributes
    ----------
    knots_, levels_ : arrays of shape (K, d)
        Where each column's map has its knots, and its values there. Columns of fewer than K repeat
        their last.
    n_features_in_ : int

    Notes
    -----
    Of more than 200,000 rows, every k-th is taken, with the least k that leaves no more. The order of
    fewer does not matter.

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax.features.scalers import QuantileScaler
    >>> X = np.array([[0.0], [0.0], [1.0], [1000.0]])
    >>> QuantileScaler().fit_transform(X).ravel().round(2)
    array([-0.92, -0.92,  0.38,  1.47])
    """

    def __init__(self, n_knots: int = 200) -> None:
        self.n_knots = n_knots

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> QuantileScaler:
        """Learn the map of each column of dense rows ``X`` (n, d); a row of weight 0 is absent."""
        check_number("n_knots", self.n_knots, low=2, closed=True, integer=True)
        _refuse_sparse(X)
        X = check_rows(self, X)
        rows, weight = _sample(X, check_weight(sample_weight, X.shape[0]))
        maps: list[Any] = [None] * rows.shape[1]

        def learn(columns: slice) -> None:
            for j in range(columns.start, columns.stop):
                maps[j] = _rank_map(*_distinct(rows[:, j], weight), int(self.n_knots))

        over_blocks(learn, rows.shape[1], 0, block_rows=1)
        most = max(knots.size for knots, _ in maps)
        self.knots_, self.levels_ = (
            np.column_stack([np.pad(each[i], (0, most - each[i].size), "edge") for each in maps])
            for i in range(2)
        )
        return self

    def transform(self, X: Any) -> Array:
        """Levels of each value, in float32 if ``X`` is."""
        check_is_fitted(self)
        _refuse_sparse(X)
        X = validate_data(self, X, dtype=_TYPES, reset=False)
        return _interpolated(X, self.knots_, self.levels_)

    def inverse_transform(self, X: Any) -> Array:
        """A value for each level; where several have it, the largest."""
        check_is_fitted(self)
        X = check_array(X, dtype=_TYPES, ensure_all_finite=False)
        return _interpolated(X, self.levels_, self.knots_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class MetricScaler(TransformerMixin, BaseEstimator):
    """Rows as another scaler gives them, times a metric. Both are there already: nothing is fitted.

    Parameters
    ----------
    scaler : fitted transformer or None
        None takes rows as they are.
    metric : array of shape (d,) or (d, k)
        A factor for each column, or a matrix that rows are multiplied with.

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax.features.scalers import MetricScaler
    >>> MetricScaler(None, np.array([2.0, 0.5])).transform([[1.0, 1.0]])
    array([[2. , 0.5]])
    """

    #: Parameters that a checkpoint keeps, since a fit has learnt them.
    _learnt_params = ("scaler", "metric")

    def __init__(self, scaler: Any, metric: Any) -> None:
        self.scaler = scaler
        self.metric = metric

    def fit(self, X: Any = None, y: Any = None) -> MetricScaler:
        """Itself."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def n_features_in_(self) -> int:
        return int(self.metric.shape[0])

    @property
    def n_features_out_(self) -> int:
        return int(self.metric.shape[-1])

    def transform(self, X: Any) -> Any:
        """Rows (n, d), or (n, k) for a matrix, in float32 if ``X`` is."""
        if self.scaler is None:
            rows = check_array(X, accept_sparse="csr", dtype=_TYPES, ensure_all_finite=False)
        else:
            rows = self.scaler.transform(X)
        return _times(rows, self.metric)

    def inverse_transform(self, X: Any) -> Any:
        """The rows of least size, as the other scaler gives them, that become ``X``; or nearest it."""
        rows = check_array(X, accept_sparse="csr", dtype=_TYPES, ensure_all_finite=False)
        rows = _times(rows, _inverse(self.metric))
        return rows if self.scaler is None else self.scaler.inverse_transform(rows)


def with_extremes(scaler: Any, X: Any, weight: Floats, names: Any = None) -> Any:
    """A fitted StandardScaler, with columns measured again whose variance is no normal number.

    The squares of very large or small values overflow or vanish, which makes a column look constant.
    Dividing by a power of two first, which rounds nothing, leaves them in range.
    """
    columns = _doubtful(scaler)
    if not columns.size:
        return scaler
    if is_remote(X):
        refuse_extremes(scaler, X[:: max(1, X.shape[0] // _REMOTE_ROWS)], names)
        return scaler
    low, high = _extents(X, columns)
    size, share = np.maximum(-low, high), weight / weight.max()
    for index in np.flatnonzero(size > _LARGEST_SIZE):
        raise _extreme(int(columns[index]), names, float(size[index]))
    scaler.mean_[columns], scaler.scale_[columns], scaler.var_[columns] = low, 1.0, 0.0
    for index in np.flatnonzero(high > low):
        column = int(columns[index])
        mean, deviation = _moments(_column_values(X, columns[index : index + 1])[:, 0], share)
        scaler.mean_[column] = mean
        if deviation is not None and deviation < _LEAST_SIZE:
            raise _extreme(column, names, float(size[index]))
        if deviation is not None:
            with np.errstate(over="ignore", under="ignore"):
                scaler.scale_[column], scaler.var_[column] = deviation, np.square(deviation)
    return scaler


def refuse_extremes(scaler: Any, X: Any, names: Any = None) -> None:
    """Refuse columns that a StandardScaler cannot measure block by block: too large or too small."""
    columns = _doubtful(scaler)
    if not columns.size:
        return
    low, high = _extents(X, columns)
    size = np.maximum(-low, high)
    known = np.isfinite(scaler.scale_[columns]) & np.isfinite(scaler.var_[columns])
    for index in np.flatnonzero(~known | ((size > 0) & (size < _LEAST_SQUARED))):
        raise _extreme(int(columns[index]), names, float(size[index]))


def refuse_tiny(X: Any) -> None:
    """Refuse rows that are left as they are and so small that the products of two vanish."""
    if is_elsewhere(X):
        return
    values = X.data if is_sparse(X) else X
    size = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if 0.0 < size < _LEAST_SQUARED:
        raise ValueError(
            f"The largest entry of X is {size:.3g}: products of such numbers vanish. Use "
            "standardize=True, or multiply X."
        )


def warn_far(X: Any, names: Any = None) -> None:
    """Warn of uncentred rows so far from zero that rounding hides their differences."""
    if is_elsewhere(X):
        return
    if is_sparse(X):
        mean, variance = mean_variance_axis(X, axis=0)
    else:
        mean, variance = X.mean(axis=0, dtype=np.float64), X.var(axis=0, dtype=np.float64)
    far = np.flatnonzero((np.abs(mean) > _FAR * np.sqrt(variance)) & (variance > 0.0))
    if not far.size:
        return
    index = int(far[0])
    column = index if names is None else repr(str(names[index]))
    todo = "Pass X.toarray()" if is_sparse(X) else "Use standardize=True"
    warn_user(
        f"X, column {column}, lies far from zero: its mean is {mean[index]:.3g}, its standard "
        f"deviation {np.sqrt(variance[index]):.3g}. "
        f"{'Sparse rows' if is_sparse(X) else 'Rows that are not standardised'} are not centred, and "
        f"rounding hides such small differences. {todo}, or subtract the mean."
    )


def _doubtful(scaler: Any) -> npt.NDArray[np.intp]:
    """Columns taken for constant, and those whose variance is no normal number."""
    scale, variance = scaler.scale_, scaler.var_
    odd = ~np.isfinite(scale) | ~np.isfinite(variance) | (scale < _LEAST_SQUARED)
    return np.flatnonzero(odd | ((scale == 1.0) & (variance != 1.0)))


def _extents(X: Any, columns: npt.NDArray[np.intp]) -> tuple[Floats, Floats]:
    """The least and the largest value of some columns."""
    parts = X.slices() if isinstance(X, BlockedRows) else [slice(None)]
    low, high = np.full(columns.size, np.inf), np.full(columns.size, -np.inf)
    for part in parts:
        values = X[part][:, columns]
        least, most = (
            np.asarray(each.toarray() if is_sparse(each) else each, dtype=np.float64).ravel()
            for each in (values.min(axis=0), values.max(axis=0))
        )
        low, high = np.minimum(low, least), np.maximum(high, most)
    return low, high


def _column_values(X: Any, columns: npt.NDArray[np.intp]) -> Floats:
    """Some columns of rows, dense, in float64."""
    if isinstance(X, BlockedRows):
        return np.concatenate([X[part][:, columns].astype(np.float64) for part in X.slices()])
    some = X[:, columns]
    return np.asarray(some.toarray() if is_sparse(some) else some, dtype=np.float64)


def _moments(values: Floats, share: Floats) -> tuple[float, float | None]:
    """Weighted mean and standard deviation at any magnitude; None where there is only rounding."""
    exponent = int(np.frexp(np.abs(values).max())[1])
    values = np.ldexp(values, -exponent)
    total = share.sum()
    mean = values[0] + share @ (values - values[0]) / total
    deviation = float(np.sqrt(share @ (values - mean) ** 2 / total))
    constant = deviation <= _ROUNDINGS * abs(mean)
    return float(np.ldexp(mean, exponent)), None if constant else float(np.ldexp(deviation, exponent))


def _extreme(index: int, names: Any, size: float) -> ValueError:
    column = index if names is None else repr(str(names[index]))
    what = "small" if size < 1.0 else "large"
    todo = "Multiply" if size < 1.0 else "Divide"
    return ValueError(
        f"X, column {column}, is too {what} to be standardised: its largest entry is {size:.3g}. "
        f"{todo} the column by a power of ten."
    )


def _refuse_sparse(X: Any) -> None:
    if is_sparse(X) or getattr(X, "is_sparse", False):  # the rows that workers hold say it so
        raise ValueError(
            "Ranks would make sparse rows dense: use standardize=True, which only scales columns, or "
            "pass X.toarray()."
        )


def _sample(X: Any, weight: Floats) -> tuple[Array, Floats | None]:
    """Rows of non-zero weight, every k-th of many, and their weights unless these are equal."""
    kept = None if weight.all() else np.flatnonzero(weight)
    step = -(-(weight.size if kept is None else kept.size) // SAMPLE_ROWS)
    index: Any = slice(None, None, step) if kept is None else kept[::step]
    rows, weight = X if step == 1 and kept is None and not is_elsewhere(X) else X[index], weight[index]
    return rows, weight / weight.max() if np.ptp(weight) else None


def _distinct(column: Array, weight: Floats | None) -> tuple[Floats, Floats]:
    """Distinct values, rising, and the share of each."""
    if weight is None:
        values = np.sort(column).astype(np.float64)
    else:
        order = np.lexsort((weight, column))  # equal values by weight: the sum is that of any order
        values, weight = column[order].astype(np.float64), weight[order]
    gaps = np.diff(np.ldexp(values, -_exponent(values)))
    starts = np.flatnonzero(np.append(True, gaps > _LEAST_GAP))
    if weight is None:
        share = np.diff(np.append(starts, values.size)).astype(np.float64)
    else:
        share = np.add.reduceat(weight, starts)
    return values[starts], share / share.sum()


def _rank_map(values: Floats, share: Floats, n_knots: int) -> tuple[Floats, Floats]:
    """Knots and levels of a column with these distinct values."""
    up_to = np.cumsum(share)
    chosen = np.arange(values.size)
    if values.size > n_knots:
        chosen = np.searchsorted(up_to, np.linspace(0.0, 1.0, n_knots) - _SHARE_EPS)
        chosen[-1] = values.size - 1
        chosen, times = np.unique(chosen, return_counts=True)
        # A value that takes the place of three quantiles leaves room for both its neighbours, whose
        # ranks are far from its own.
        heavy = chosen[times >= 3]
        around = np.clip(np.concatenate([heavy - 1, heavy + 1]), 0, values.size - 1)
        chosen = np.union1d(chosen, around)
    knots = values[chosen]
    levels = ndtri(np.clip((up_to - 0.5 * share)[chosen], _TAIL, 1.0 - _TAIL))
    found = _interpolate(values, knots, levels)
    middle = share @ found
    spread = np.sqrt(share @ (found - middle) ** 2) if values.size > 1 else 1.0
    return knots, np.round((levels - middle) / spread / _GRID) * _GRID


def _interpolated(X: Array, knots: Floats, levels: Floats) -> Array:
    """Each column through its own map, over threads."""
    if X.shape[1] != knots.shape[1]:
        raise ValueError(f"X has {X.shape[1]} columns, but the scaler was fitted on {knots.shape[1]}.")
    out = np.empty(X.shape, X.dtype)
    at, to = np.ascontiguousarray(knots.T), np.ascontiguousarray(levels.T)

    def work(rows: slice) -> None:
        for j in range(X.shape[1]):
            out[rows, j] = _interpolate(X[rows, j], at[j], to[j])

    over_blocks(work, X.shape[0], 2 * X.shape[1] * X.dtype.itemsize)
    return out


def _exponent(values: Array) -> int:
    """Of the power of two to divide values by where their differences would overflow or vanish."""
    size = float(np.abs(values[[0, -1]]).max())
    return 0 if size == 0.0 or 2.0**-500 < size < 2.0**500 else int(np.frexp(size)[1])


def _interpolate(values: Array, knots: Floats, levels: Floats) -> Array:
    exponent = _exponent(knots)
    if exponent:
        with np.errstate(over="ignore"):  # beyond the ends, where infinity is as good
            values, knots = np.ldexp(values, -exponent), np.ldexp(knots, -exponent)
    return np.interp(values, knots, levels)


def _times(rows: Any, metric: Array) -> Any:
    """``rows * metric`` for a factor a column, ``rows @ metric`` for a matrix; in the dtype of rows."""
    if rows.shape[1] != metric.shape[0]:
        raise ValueError(
            f"The metric is of {metric.shape[0]} columns, and the rows have {rows.shape[1]}."
        )
    factor = metric.astype(rows.dtype, copy=False)
    if not is_sparse(rows):
        return rows * factor if factor.ndim == 1 else rows @ factor
    if factor.ndim > 1:
        raise ValueError(
            "A metric that is a matrix would make sparse rows dense: use a factor for each column, or "
            "pass X.toarray()."
        )
    rows = rows.tocsr()
    parts = (rows.data * factor[rows.indices], rows.indices, rows.indptr)
    return type(rows)(parts, shape=rows.shape)


def _inverse(metric: Array) -> Array:
    """The pseudo-inverse, in which a column of factor 0 stays 0."""
    if metric.ndim > 1:
        return np.linalg.pinv(metric)
    return np.divide(1.0, metric, out=np.zeros(metric.shape), where=metric != 0)
