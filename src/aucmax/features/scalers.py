"""Scalers in addition to scikit-learn's StandardScaler: by ranks, and by a metric after another."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from aucmax.features.metric import stretch
from aucmax.rows.interface import Rows, as_rows, is_sparse
from aucmax.rows.validation import check_rows, check_weight
from aucmax.runtime.parameters import Number, check_parameters, declare
from aucmax.runtime.threads import over_blocks

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

#: Quantiles are taken of at most this many rows: they are as good as those of more, and quick to sort.
SAMPLE_ROWS = 200_000

#: Mid-ranks are kept this far from 0 and 1, where normal quantiles are infinite.
_TAIL = 1e-3

#: Shares that differ less are equal: sums of weights in another order differ so much.
_SHARE_EPS = 1e-9

#: Levels are rounded to this, for the same reason.
_GRID = 2.0**-30

#: Values that differ less are equal: a slope between them would overflow.
_LEAST_GAP = 1e-300

_TYPES = (np.float64, np.float32)


@declare(n_knots=Number(low=2, closed=True, integer=True))
class QuantileScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Map each column to about normal by a rising, piecewise linear function.

    A value becomes the normal quantile of its mid-rank: the share of rows below it plus half of those
    equal to it. So outliers move closer, and a frequent value, such as the 0 of a column of counts,
    moves to where its middle row is. The function has a knot at every distinct value if these are few,
    otherwise at quantiles and around frequent values. Transformed training rows have mean 0 and
    variance 1; values beyond their range are clipped. A constant column becomes 0.

    Parameters
    ----------
    n_knots
        The most knots of a column.

    Attributes
    ----------
    knots_, levels_ : arrays of shape (K, d)
        The knots of each column's function, and its values there. Columns with fewer than K repeat
        their last.
    n_features_in_ : int

    Notes
    -----
    With more than 200,000 rows, every k-th is used, with the smallest k that leaves no more.

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
        """Learn the function of each column of dense rows; rows of weight 0 are ignored."""
        check_parameters(self)
        _refuse_sparse(X)
        source = as_rows(check_rows(self, X))
        rows, weight = _sample(source, check_weight(sample_weight, source.shape[0]))
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
        """Return the level of each value, in float32 if ``X`` is."""
        check_is_fitted(self)
        _refuse_sparse(X)
        X = validate_data(self, X, dtype=_TYPES, reset=False)
        return _interpolated(X, self.knots_, self.levels_)

    def inverse_transform(self, X: Any) -> Array:
        """Return a value for each level, the largest where several have it."""
        check_is_fitted(self)
        X = check_array(X, dtype=_TYPES, ensure_all_finite=False)
        return _interpolated(X, self.levels_, self.knots_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class MetricScaler(TransformerMixin, BaseEstimator):
    """Transform rows by a fitted scaler, then multiply them by a metric; there is nothing to fit.

    Parameters
    ----------
    scaler : fitted transformer or None
        None leaves rows as they are.
    metric : array of shape (d,) or (d, k)
        One factor per column, or a matrix that rows are multiplied by.

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax.features.scalers import MetricScaler
    >>> MetricScaler(None, np.array([2.0, 0.5])).transform([[1.0, 1.0]])
    array([[2. , 0.5]])
    """

    #: Parameters that a fit has learnt, so that a checkpoint stores them.
    _learnt_params = ("scaler", "metric")

    def __init__(self, scaler: Any, metric: Any) -> None:
        self.scaler = scaler
        self.metric = metric

    def fit(self, X: Any = None, y: Any = None) -> MetricScaler:
        """Return itself."""
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
        """Return rows (n, d), or (n, k) for a matrix, in float32 if ``X`` is."""
        if self.scaler is None:
            rows = check_array(X, accept_sparse="csr", dtype=_TYPES, ensure_all_finite=False)
        else:
            rows = self.scaler.transform(X)
        return stretch(rows, self.metric)

    def inverse_transform(self, X: Any) -> Any:
        """Return the smallest rows that become ``X``, or come nearest to it."""
        rows = check_array(X, accept_sparse="csr", dtype=_TYPES, ensure_all_finite=False)
        rows = stretch(rows, _inverse(self.metric))
        return rows if self.scaler is None else self.scaler.inverse_transform(rows)


def _refuse_sparse(X: Any) -> None:
    if X.sparse if isinstance(X, Rows) else is_sparse(X):
        raise ValueError(
            "Ranks would make sparse rows dense. Use standardize=True, which only scales columns, or "
            "pass X.toarray()."
        )


def _sample(rows: Rows, weight: Floats) -> tuple[Array, Floats | None]:
    """Return rows of non-zero weight, every k-th of many, and their weights unless these are equal."""
    present = None if weight.all() else np.flatnonzero(weight)
    step = -(-(weight.size if present is None else present.size) // SAMPLE_ROWS)
    index: Any = slice(None, None, step) if present is None else present[::step]
    block, weight = rows[index], weight[index]
    return block, weight / weight.max() if np.ptp(weight) else None


def _distinct(column: Array, weight: Floats | None) -> tuple[Floats, Floats]:
    """Return the distinct values, rising, and the share of each."""
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
    """Return the knots and levels of a column with these distinct values."""
    up_to = np.cumsum(share)
    chosen = np.arange(values.size)
    if values.size > n_knots:
        chosen = np.searchsorted(up_to, np.linspace(0.0, 1.0, n_knots) - _SHARE_EPS)
        chosen[-1] = values.size - 1
        chosen, times = np.unique(chosen, return_counts=True)
        # A value that stands for three quantiles leaves room for both its neighbours, whose ranks are
        # far from its own.
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
    """Map each column by its own function, over threads."""
    if X.shape[1] != knots.shape[1]:
        raise ValueError(
            f"X has {X.shape[1]} columns, but the scaler was fitted to {knots.shape[1]}: pass the same."
        )
    out = np.empty(X.shape, X.dtype)
    at, to = np.ascontiguousarray(knots.T), np.ascontiguousarray(levels.T)

    def work(rows: slice) -> None:
        for j in range(X.shape[1]):
            out[rows, j] = _interpolate(X[rows, j], at[j], to[j])

    over_blocks(work, X.shape[0], 2 * X.shape[1] * X.dtype.itemsize)
    return out


def _exponent(values: Array) -> int:
    """Return the power of two to divide by where differences of values would overflow or vanish."""
    size = float(np.abs(values[[0, -1]]).max())
    return 0 if size == 0.0 or 2.0**-500 < size < 2.0**500 else int(np.frexp(size)[1])


def _interpolate(values: Array, knots: Floats, levels: Floats) -> Array:
    exponent = _exponent(knots)
    if exponent:
        with np.errstate(over="ignore"):  # beyond the ends, where infinity is clipped as well
            values, knots = np.ldexp(values, -exponent), np.ldexp(knots, -exponent)
    return np.interp(values, knots, levels)


def _inverse(metric: Array) -> Array:
    """Return the pseudo-inverse, in which a column of factor 0 stays 0."""
    if metric.ndim > 1:
        return np.linalg.pinv(metric)
    return np.divide(1.0, metric, out=np.zeros(metric.shape), where=metric != 0)
