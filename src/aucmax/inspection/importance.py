"""Which columns a score depends on: by its gradient, or by what AUC loses without them.

The mean squared gradient asks how steeply the score changes with a column, everything else held: it
needs no labels and costs about as much as scoring. Columns are measured in standard deviations, so
that units do not matter. Permutation importance asks what the ranking loses when a column's values
are shuffled among the rows: it needs labels, a scoring per column and repeat, and gives nothing to a
column whose information another one has, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from aucmax.features.fourier import FourierFeatures
from aucmax.features.kernels import LandmarkKernel
from aucmax.features.nystroem import NystroemFeatures
from aucmax.features.scalers import MetricScaler
from aucmax.fitting.scaling import scale_rows
from aucmax.metrics import roc_auc
from aucmax.rows.validation import check_labels, check_rows, check_weight, drop_absent, is_sparse
from aucmax.runtime.parameters import check_number
from aucmax.runtime.threads import over_blocks
from aucmax.tuning import unstretched

__all__ = ["Importance", "mean_squared_gradient", "permutation_importance"]


@dataclass(frozen=True)
class Importance:
    """How much each column matters.

    Attributes
    ----------
    names : list of str
        The columns, in the order of the table.
    value : array of shape (n_columns,)
        Mean squared gradient of the score, or loss of AUC.
    standard_error : array of shape (n_columns,)
        Of ``value``: over the rows, or over the repeats.
    """

    names: list[str]
    value: np.ndarray
    standard_error: np.ndarray

    @property
    def share(self) -> np.ndarray:
        """Each column's part of the sum; one that seems to do harm has none."""
        part = np.maximum(self.value, 0.0)
        return part / part.sum() if part.any() else part

    @property
    def order(self) -> np.ndarray:
        """Indices of the columns, the most important first."""
        return np.argsort(-self.value, kind="stable")


def mean_squared_gradient(model: Any, X: Any = None, *, sample_weight: Any = None) -> Importance:
    """Mean over rows of the squared derivative of the score by each column, in standard deviations.

    Parameters
    ----------
    model : fitted classifier of this package, or a fitted ``TableModel``
        Of a ``TableModel``, what was made of one column of the table is added up.
    X : array, CSR matrix or data frame of shape (n, d), optional
        Rows at which to take it; a few thousand give it closely. Without any, the model's landmarks,
        which are rows it was trained on.
    sample_weight : array of shape (n,), optional

    Notes
    -----
    A deviation is that of the training rows, or of ``X`` itself for a model that does not standardise.
    Of several classes, it is the mean over their scores. The rbf kernel's gradient is
    ``sum_j b_j k(x, u_j) 2 gamma (u_j - x)`` for weights b over landmarks u; a laplacian's, which has
    none at its kinks, is that of either side's mean there.

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax import KernelAUCClassifier
    >>> from aucmax.inspection.importance import mean_squared_gradient
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> y = X[:, 1] ** 2 > 1  # neither the first nor the third says anything
    >>> model = KernelAUCClassifier(n_landmarks=100, random_state=0).fit(X, y)
    >>> found = mean_squared_gradient(model, X)
    >>> found.names[found.order[0]], bool(found.share[1] > 0.9)
    ('1', True)
    """
    rows, fitted, names, owner = _unwrap(model, X)
    used = np.flatnonzero(owner >= 0)
    membership = sparse.csr_array(
        (np.ones(used.size), (used, owner[used])), shape=(owner.size, len(names))
    )
    weight = check_weight(sample_weight, rows.shape[0])
    rows, _, weight = drop_absent(rows, None, weight)
    with np.errstate(over="ignore", invalid="ignore"):  # found and named below
        squares = _squared_gradients(fitted, rows, membership)
    finite = np.isfinite(squares).all(axis=1)
    if not finite.all():
        raise ValueError(
            f"The gradient at row {int(finite.argmin())} of X is not finite "
            f"({int((~finite).sum())} such rows): its features are too extreme for this model."
        )
    share = weight / weight.sum()
    value = share @ squares
    error = np.sqrt((share**2) @ (squares - value) ** 2)
    return Importance(names, value, error)


def _squared_gradients(fitted: Any, X: Any, membership: Any) -> np.ndarray:
    """The squared derivative of the score by each column of the table, for each row."""
    gradient, rows = _gradient(fitted, X)
    squares = np.empty((rows.shape[0], membership.shape[1]))

    def work(block: slice) -> None:
        dense = rows[block].toarray() if is_sparse(rows) else rows[block]
        by_class = gradient(dense)
        squares[block] = np.mean([each**2 for each in by_class], axis=0) @ membership

    over_blocks(work, rows.shape[0], 8 * (4 * rows.shape[1] + _width(fitted)))
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
    """What AUC falls by, on average, when a column's values are shuffled among the rows.

    Scikit-learn's ``permutation_importance`` with AUC for the score. All that was made of one column of
    a table is shuffled together.

    Parameters
    ----------
    model : fitted two-class classifier, or a fitted ``TableModel``
    X : array or data frame of shape (n, d)
        Rows the model was not fitted to: on others it tells what was learnt by heart.
    y : array of shape (n,)
    n_repeats : int, default=5
    sample_weight : array of shape (n,), optional
    random_state : int, RandomState or None, default=None

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

    check_number("n_repeats", n_repeats, low=1, closed=True, integer=True)
    if X is None:
        raise ValueError("X must give rows to shuffle, best those that the model was not fitted to.")
    rows, fitted, names, owner = _unwrap(model, X)
    if is_sparse(rows):
        raise ValueError("X must be dense: a sparse matrix shuffled column by column is slow.")
    classes = np.asarray(model.classes_)
    if classes.size != 2:
        raise ValueError(f"permutation_importance is for two classes; the model has {classes.size}.")
    check_labels(y)
    if np.shape(y) != (rows.shape[0],):
        raise ValueError(f"y has shape {np.shape(y)} for {rows.shape[0]} rows of X.")
    positive = np.asarray(y) == getattr(model, "positive_label_", classes[1])
    # What is shuffled is row numbers, a column of them for each column of the table: the numbers made
    # of it then move together, and the table is prepared once.
    numbers = np.repeat(np.arange(rows.shape[0])[:, None], len(names), axis=1)

    def auc(_: Any, numbers: np.ndarray, positive: np.ndarray, sample_weight: Any = None) -> float:
        shuffled = rows.copy()
        for feature in np.flatnonzero(owner >= 0):
            shuffled[:, feature] = rows[numbers[:, owner[feature]], feature]
        scores = fitted.decision_function(shuffled)
        return roc_auc(positive, scores, sample_weight=sample_weight)

    result = permute(
        fitted,
        numbers,
        positive,
        scoring=auc,
        n_repeats=n_repeats,
        sample_weight=None if sample_weight is None else check_weight(sample_weight, rows.shape[0]),
        random_state=random_state,
    )
    spread = result.importances.std(axis=1, ddof=1) if n_repeats > 1 else np.full(len(names), np.nan)
    return Importance(names, result.importances_mean, spread / np.sqrt(n_repeats))


def _unwrap(model: Any, X: Any) -> tuple[Any, Any, list[str], np.ndarray]:
    """Rows of features, their classifier, names of columns, and the column of each feature, or -1."""
    check_is_fitted(model)
    if not hasattr(model, "columns_"):
        rows = _landmark_rows(model) if X is None else check_rows(model, X, reset=False)
        names = getattr(model, "feature_names_in_", range(rows.shape[1]))
        return rows, model, [str(name) for name in names], np.arange(rows.shape[1])
    used = [column for column in model.columns_ if column["features"]]
    place = {name: i for i, name in enumerate(model.feature_names_)}
    owner = np.full(len(model.feature_names_), -1)
    for i, column in enumerate(used):
        owner[[place[name] for name in column["features"]]] = i
    rows = _landmark_rows(model.model_) if X is None else model.features(X)
    return rows, model.model_, [column["name"] for column in used], owner


def _landmark_rows(model: Any) -> np.ndarray:
    """The landmarks in the units of the table."""
    landmarks = getattr(getattr(model, "feature_map_", None), "landmarks_", None)
    if landmarks is None:
        raise ValueError(f"This {type(model).__name__} has no landmarks: X must give rows.")
    scaler = model.scaler_
    return landmarks if scaler is None else np.asarray(scaler.inverse_transform(landmarks))


def _gradient(model: Any, X: Any) -> tuple[Callable[[np.ndarray], Sequence[np.ndarray]], Any]:
    """A function from dense rows (m, d) to the gradients (m, d) of each score, and the rows for it."""
    scaler = getattr(model, "scaler_", None)
    machine = getattr(model, "feature_map_", model)
    points = getattr(machine, "landmarks_", getattr(machine, "support_rows_", None))
    coef = getattr(model, "coef_", getattr(model, "dual_coef_", None))
    if isinstance(machine, FourierFeatures) or points is not None:
        rows = scale_rows(scaler, X)
        metric = scaler.metric if isinstance(scaler, MetricScaler) else None
        plain = scaler.scaler if isinstance(scaler, MetricScaler) else scaler
        unit = _deviation(X) if plain is None else 1.0
        if isinstance(machine, NystroemFeatures):
            machine = machine.filler(np.float64)
        elif points is not None:
            machine = LandmarkKernel(
                points, machine.kernel, machine.gamma_, machine.degree, machine.coef0
            )
        return lambda Z: [
            unit * unstretched(each, metric) for each in machine.gradients(Z, np.asarray(coef))
        ], rows
    if coef is not None and coef.shape[1] == X.shape[1]:
        unit = _deviation(X) if scaler is None else scaler.scale_
        return lambda Z: [np.broadcast_to(each * unit, Z.shape) for each in coef], X
    raise ValueError(
        f"There is no gradient for {type(model).__name__}: it is known for this package's classifiers. "
        "Use permutation_importance."
    )


def _deviation(X: Any) -> np.ndarray:
    if not is_sparse(X):
        return np.asarray(X.std(axis=0))
    mean = np.asarray(X.mean(axis=0)).ravel()
    return np.sqrt(np.maximum(np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2, 0.0))


def _width(model: Any) -> int:
    """Numbers held for each row while its gradient is taken."""
    coef = getattr(model, "coef_", getattr(model, "dual_coef_", np.empty((1, 1))))
    return 3 * int(coef.shape[1])
