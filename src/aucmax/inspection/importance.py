"""The importance of columns, by the gradient of the score or by the loss of AUC without them.

The mean squared gradient measures how steeply the score changes with a column while the others stay
fixed. It needs no labels and costs about as much as scoring. Columns are measured in standard
deviations, so units do not matter. Permutation importance measures the AUC that is lost when a column's
values are shuffled. It needs labels, and one scoring per column and repeat. It is near 0 for a column
whose information another column also holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.sparsefuncs import mean_variance_axis

from aucmax.features.metric import unstretch
from aucmax.features.scalers import MetricScaler
from aucmax.fitting.machines import Blend, KernelMachine, LinearMachine, SupportMachine, add_up
from aucmax.fitting.scaling import scale_rows
from aucmax.inspection.table_columns import unwrap
from aucmax.metrics import roc_auc
from aucmax.rows.interface import as_rows, dense, is_sparse
from aucmax.rows.validation import check_labels, check_weight
from aucmax.runtime.parameters import COUNT, check_value
from aucmax.runtime.threads import over_blocks

#: From a block of rows to the gradients (m, d) of each score there.
Gradient = Callable[[slice], Sequence[np.ndarray]]

__all__ = ["Importance", "mean_squared_gradient", "permutation_importance"]


@dataclass(frozen=True)
class Importance:
    """The importance of each column.

    ``names`` are the columns in the order of the table. ``value`` is the mean squared gradient of the
    score, or the loss of AUC, and ``standard_error`` its standard error over the rows or the repeats.
    """

    names: list[str]
    value: np.ndarray
    standard_error: np.ndarray

    @property
    def share(self) -> np.ndarray:
        """Return each column's part of the sum; 0 for a negative value."""
        part = np.maximum(self.value, 0.0)
        return part / part.sum() if part.any() else part

    @property
    def order(self) -> np.ndarray:
        """Return the indices of the columns, the most important first."""
        return np.argsort(-self.value, kind="stable")


def mean_squared_gradient(model: Any, X: Any = None, *, sample_weight: Any = None) -> Importance:
    """Average the squared derivative of the score by each column, in standard deviations, over rows.

    Parameters
    ----------
    model : fitted classifier of this package, or a fitted ``TableModel``
        For a ``TableModel``, the features of one column of the table are added up.
    X : array, CSR matrix or data frame of shape (n, d), optional
        A few thousand rows are enough. By default the model's landmarks, which are training rows.
    sample_weight : array of shape (n,), optional

    Notes
    -----
    Standard deviations are those of the training rows, or of ``X`` if the model does not standardise.
    With several classes, it is the mean over their scores. The rbf kernel's gradient is
    ``sum_j b_j k(x, u_j) 2 gamma (u_j - x)`` for weights b over landmarks u; at a laplacian's kinks, it
    is the mean of both sides.

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax import KernelAUCClassifier
    >>> from aucmax.inspection.importance import mean_squared_gradient
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> y = X[:, 1] ** 2 > 1  # the other columns are noise
    >>> model = KernelAUCClassifier(n_landmarks=100, random_state=0).fit(X, y)
    >>> found = mean_squared_gradient(model, X)
    >>> found.names[found.order[0]], bool(found.share[1] > 0.9)
    ('1', True)
    """
    rows, fitted, columns = unwrap(model, X)
    weight = check_weight(sample_weight, rows.shape[0])
    rows, weight = rows[weight > 0], weight[weight > 0]
    with np.errstate(over="ignore", invalid="ignore"):  # checked below
        squares = _squared_gradients(fitted, rows, columns.membership)
    finite = np.isfinite(squares).all(axis=1)
    if not finite.all():
        raise ValueError(
            f"The gradient at row {int(finite.argmin())} of X is not finite "
            f"({int((~finite).sum())} such rows): its features are too extreme for this model."
        )
    share = weight / weight.sum()
    value = share @ squares
    return Importance(columns.names, value, np.sqrt((share**2) @ (squares - value) ** 2))


def _squared_gradients(fitted: Any, X: Any, membership: Any) -> np.ndarray:
    """Return the squared derivative of the score by each column of the table, for each row."""
    gradient = _gradient(fitted, X)
    squares = np.empty((X.shape[0], membership.shape[1]))

    def work(block: slice) -> None:
        by_class = gradient(block)
        squares[block] = np.mean([each**2 for each in by_class], axis=0) @ membership

    width = int(getattr(fitted, "dual_coef_", X).shape[1])
    over_blocks(work, X.shape[0], 8 * (4 * X.shape[1] + 3 * width))
    return squares


def permutation_importance(
    model: Any,
    X: Any,
    y: Any,
    *,
    n_repeats: int = 5,
    sample_weight: Any = None,
    random_state: Any = None,
) -> Importance:
    """Measure the mean loss of AUC when a column's values are shuffled among the rows.

    All features of one column of a table are shuffled together.

    Parameters
    ----------
    model : fitted two-class classifier, or a fitted ``TableModel``
    X : array or data frame of shape (n, d)
        Rows that the model was not fitted to; training rows show what it has memorised.
    y : array of shape (n,)
    n_repeats : int, default=5
    sample_weight : array of shape (n,), optional
    random_state : int, RandomState or None

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax import KernelAUCClassifier
    >>> from aucmax.inspection.importance import permutation_importance
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> y = X[:, 1] ** 2 > 1
    >>> model = KernelAUCClassifier(n_landmarks=100, random_state=0).fit(X[:200], y[:200])
    >>> found = permutation_importance(model, X[200:], y[200:], random_state=0)
    >>> found.names[found.order[0]], bool(found.value[1] > 0.3)
    ('1', True)
    """
    from sklearn.inspection import permutation_importance as permute

    check_value("n_repeats", n_repeats, COUNT)
    rows, fitted, columns = unwrap(model, X)
    names, owner = columns.names, columns.owner
    positive = _check_shuffled(model, X, rows, y)
    weight = None if sample_weight is None else check_weight(sample_weight, rows.shape[0])
    # Row numbers are shuffled, in one column for each column of the table. So the features of a column
    # move together, and the table is prepared once.
    numbers = np.repeat(np.arange(rows.shape[0])[:, None], len(names), axis=1)

    def auc(_: Any, numbers: np.ndarray, positive: np.ndarray, sample_weight: Any = None) -> float:
        shuffled = rows.copy()
        for feature in np.flatnonzero(owner >= 0):
            shuffled[:, feature] = rows[numbers[:, owner[feature]], feature]
        return roc_auc(positive, fitted.decision_function(shuffled), sample_weight=sample_weight)

    options = {"n_repeats": n_repeats, "sample_weight": weight, "random_state": random_state}
    result = permute(fitted, numbers, positive, scoring=auc, **options)
    spread = result.importances.std(axis=1, ddof=1) if n_repeats > 1 else np.full(len(names), np.nan)
    return Importance(names, result.importances_mean, spread / np.sqrt(n_repeats))


def _check_shuffled(model: Any, X: Any, rows: Any, y: Any) -> np.ndarray:
    """Return which rows are positive, after checking that their columns can be shuffled."""
    if X is None:
        raise ValueError("X must hold rows to shuffle, preferably rows the model was not fitted to.")
    if is_sparse(rows):
        raise ValueError("X must be dense, because shuffling columns of a sparse matrix is slow.")
    classes = np.asarray(model.classes_)
    if classes.size != 2:
        raise ValueError(f"permutation_importance needs two classes; the model has {classes.size}.")
    check_labels(y)
    if np.shape(y) != (rows.shape[0],):
        raise ValueError(
            f"y has shape {np.shape(y)} for {rows.shape[0]} rows of X: pass one label each."
        )
    return np.asarray(np.asarray(y) == getattr(model, "positive_label_", classes[1]))


def _gradient(model: Any, X: Any) -> Gradient:
    """Return a function from blocks of rows to the gradients (m, d) of each score."""
    machine, scaler = getattr(model, "machine_", None), getattr(model, "scaler_", None)
    if isinstance(machine, LinearMachine):
        slopes = machine.coef * (_deviation(X) if scaler is None else scaler.scale_)
        return lambda block: [np.broadcast_to(each, X[block].shape) for each in slopes]
    if not isinstance(machine, KernelMachine | SupportMachine | Blend):
        raise ValueError(
            f"There is no gradient for {type(model).__name__}, only for classifiers of this package. "
            "Use permutation_importance."
        )
    return _kernel_gradient(machine, X)


def _kernel_gradient(machine: KernelMachine | SupportMachine | Blend, X: Any) -> Gradient:
    if isinstance(machine, Blend):
        own = [_kernel_gradient(each, X) for each in machine.machines]
        return lambda block: [
            add_up(of_score, machine.weights)
            for of_score in zip(*(each(block) for each in own), strict=True)
        ]
    scaler = machine.scaler
    metric = scaler.metric if isinstance(scaler, MetricScaler) else None
    plain = scaler.scaler if isinstance(scaler, MetricScaler) else scaler
    unit = _deviation(X) if plain is None else 1.0
    rows = scale_rows(scaler, as_rows(X))[:]
    return lambda block: [
        unit * unstretch(each, metric) for each in machine.gradients(dense(rows[block]))
    ]


def _deviation(X: Any) -> np.ndarray:
    if not is_sparse(X):
        return np.asarray(X.std(axis=0))
    return np.sqrt(mean_variance_axis(X, axis=0)[1])
