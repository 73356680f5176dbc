"""Explain the score of a row: how much each column moves it away from a reference row's score.

Contributions are *integrated gradients* (Sundararajan, Taly and Yan 2017): the gradient of the score,
averaged along the straight line from the reference to the row, times the difference of the two. The
line is straight in standardised features. The contributions of a row add up to its score less the
reference's. The averages are in closed form: see ``aucmax.features.line_gradients``.

The features of one column of a table are added up: all levels of a category, or a number and the mark
of its missing values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aucmax.features.metric import stretch, unstretch
from aucmax.features.scalers import MetricScaler, QuantileScaler
from aucmax.fitting.machines import Blend, KernelMachine, LinearMachine, SupportMachine, add_up
from aucmax.fitting.scaling import scale_rows
from aucmax.inspection.table_columns import Columns, columns_of, landmark_rows
from aucmax.rows.interface import as_rows, dense
from aucmax.rows.validation import check_rows
from aucmax.runtime.parameters import COUNT, check_value
from aucmax.runtime.scalars import is_missing
from aucmax.runtime.threads import over_blocks

#: Characters of a value that are shown.
_LONGEST = 60

__all__ = ["Explanation", "Reason", "Reasons", "explain"]


class Reason(NamedTuple):
    """One column's part in the score of a row: its name, the row's value, and the contribution.

    >>> print(Reason("plan", "basic", 1.25), Reason("age", None, -0.5), sep="; ")
    plan = basic (+1.25); age is missing (-0.5)
    """

    name: str
    value: Any
    by: float

    @property
    def fact(self) -> str:
        """Return the name with the value, as text."""
        value = self.value
        if is_missing(value) or (isinstance(value, str) and not value.strip()):
            return f"{self.name} is missing"
        if isinstance(value, bool | float):
            text = str(value).lower() if isinstance(value, bool) else f"{value:.10g}"
        else:
            text = str(value).strip()
        return f"{self.name} = {text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'}"

    def __str__(self) -> str:
        return f"{self.fact} ({self.by:+.3g})"


class Reasons(NamedTuple):
    """The columns that raise the score of a row most, and those that lower it most."""

    raises: list[Reason]
    lowers: list[Reason]


@dataclass(frozen=True)
class Explanation:
    """The contribution of each column to the score of each row; made by :func:`explain`.

    For every row, ``contributions.sum(axis=1)`` is ``scores - reference_score``, up to ``error``.
    """

    names: list[str]  #: the columns
    contributions: np.ndarray  #: (n, columns)
    scores: np.ndarray  #: (n,), as the model gives them
    reference_score: float
    values: Sequence[Any]  #: for each column, the values of the n rows
    error: float  #: the largest difference between a row's sum of contributions and what it should be

    def top(self, k: int = 3) -> list[Reasons]:
        """Return for each row at most k columns that raise its score and k that lower it.

        The largest contribution comes first. A column that contributes nothing is not listed.
        """
        check_value("k", k, COUNT)
        k = min(k, len(self.names))
        order = np.argsort(-self.contributions, axis=1, kind="stable")
        found = []
        for row, by in enumerate(self.contributions):
            up = [self._reason(row, i) for i in order[row, :k] if by[i] > 0]
            down = [self._reason(row, i) for i in order[row, ::-1][:k] if by[i] < 0]
            found.append(Reasons(up, down))
        return found

    def _reason(self, row: int, column: int) -> Reason:
        value = self.values[column][row]
        value = value.item() if isinstance(value, np.generic) else value
        return Reason(self.names[column], value, float(self.contributions[row, column]))


def explain(model: Any, X: Any, *, reference: Any = None, label: Any = None) -> Explanation:
    """Return the contribution of each column to the score of each row.

    Parameters
    ----------
    model : fitted classifier of this package, or a fitted ``TableModel``
    X : array, CSR matrix or data frame of shape (n, d)
        The rows to explain.
    reference : array of shape (d,) or (1, d), or a frame of one row for a ``TableModel``, optional
        The row to compare with. By default it is the mean training row after standardisation, in which
        a category has each of its levels in part. For a model without standardisation it is the mean of
        the landmarks or support rows.
    label : label, optional
        The class whose score is explained. Only a model of several classes needs it.

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax import KernelAUCClassifier, explain
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> y = X[:, 1] ** 2 > 1  # the other columns are noise
    >>> model = KernelAUCClassifier(n_landmarks=100, random_state=0).fit(X, y)
    >>> found = explain(model, [[0.0, 2.0, 0.0]])
    >>> found.top(1)[0].raises[0].name
    '1'
    >>> moved = found.scores[0] - found.reference_score
    >>> bool(abs(found.contributions.sum() - moved) < 1e-6)
    True
    """
    check_is_fitted(model)
    if hasattr(model, "columns_"):
        if label is not None:
            raise ValueError("label is for models of several classes; leave it out for a TableModel.")
        found: Explanation = model.explain(X, reference=reference)
        return found
    rows = check_rows(model, X, reset=False)
    if reference is not None:
        reference = check_rows(model, np.atleast_2d(reference), reset=False)
    columns = columns_of(model, rows.shape[1])
    values = list(dense(rows).T)
    return explain_features(model, rows, columns, values, reference=reference, label=label)


def explain_features(
    model: Any,
    rows: Any,
    columns: Columns,
    values: Sequence[Any],
    *,
    reference: Any = None,
    label: Any = None,
) -> Explanation:
    """Explain checked rows of features (n, d) by a classifier; ``values`` are those of the columns."""
    machine = getattr(model, "machine_", None)
    if not isinstance(machine, KernelMachine | SupportMachine | LinearMachine | Blend):
        raise ValueError(
            f"There are no contributions for {type(model).__name__}, only for classifiers of this "
            "package."
        )
    score = _which_score(model, label)
    reference = _mean_row(model) if reference is None else reference
    if reference.shape[0] != 1:
        raise ValueError(f"reference must be one row; got {reference.shape[0]}.")
    scores, start_score = (
        np.asarray(model.decision_function(each)).reshape(each.shape[0], -1)[:, score]
        for each in (rows, reference)
    )
    parts = _contributions(machine, rows, reference, score)
    contributions = parts @ columns.membership
    missed = np.abs(contributions.sum(axis=1) - (scores - start_score[0]))
    error = float(missed.max(initial=0.0))
    return Explanation(columns.names, contributions, scores, float(start_score[0]), values, error)


def _which_score(model: Any, label: Any) -> int:
    """Return the number of the score to explain."""
    classes = np.asarray(model.classes_)
    if classes.size == 2:
        if label is not None and label != classes[1]:
            raise ValueError(
                f"The score of a model of two classes is that of {classes.tolist()[1]!r}: leave label "
                "out."
            )
        return 0
    found = np.flatnonzero(classes == label) if label is not None else np.zeros(0)
    if not found.size:
        names = ", ".join(repr(each) for each in classes.tolist()[:8])
        raise ValueError(
            f"The model has {classes.size} classes with a score each, so label must name the class to "
            f"explain; got {label!r}. The classes are {names}{' and more' if classes.size > 8 else ''}."
        )
    return int(found[0])


def _mean_row(model: Any) -> np.ndarray:
    """Return the mean training row (1, d), after standardisation, in the units of X."""
    scaler = getattr(model, "scaler_", None)
    plain = scaler.scaler if isinstance(scaler, MetricScaler) else scaler
    if isinstance(plain, QuantileScaler):
        return np.asarray(plain.inverse_transform(np.zeros((1, plain.n_features_in_))))
    if plain is not None and getattr(plain, "mean_", None) is not None:
        return np.asarray(plain.mean_)[None]
    rows = getattr(model, "support_rows_", None)
    if rows is not None and scaler is None and len(rows):
        return np.asarray(rows, np.float64).mean(axis=0)[None]
    if getattr(getattr(model, "feature_map_", None), "landmarks_", None) is None:
        raise ValueError(
            f"This {type(model).__name__} was fitted without standardisation and keeps no training row "
            "to compare with: pass a row as reference."
        )
    return landmark_rows(model).astype(np.float64).mean(axis=0)[None]


def _contributions(machine: Any, rows: Any, reference: Any, score: int) -> np.ndarray:
    """Return the contribution of each feature to the score of each row."""
    if isinstance(machine, Blend):
        own = [_contributions(each, rows, reference, score) for each in machine.machines]
        return add_up(own, machine.weights)
    out = np.empty(rows.shape)
    if isinstance(machine, LinearMachine):
        start = dense(reference)[0]

        def work(block: slice) -> None:
            out[block] = machine.coef[score] * (dense(rows[block]) - start)

        over_blocks(work, rows.shape[0], 16 * rows.shape[1])
        return out
    scaler = machine.scaler
    metric = scaler.metric if isinstance(scaler, MetricScaler) else None
    plain = scaler.scaler if isinstance(scaler, MetricScaler) else scaler
    scaled, first = (scale_rows(plain, as_rows(each))[:] for each in (rows, reference))
    begin = dense(first).astype(np.float64)
    start = stretch(begin, metric)[0]

    def walk(block: slice) -> None:
        moved = dense(scaled[block]).astype(np.float64) - begin
        slopes = machine.line_gradients(start, stretch(moved, metric), score)
        out[block] = moved * unstretch(slopes, metric)

    width = int(machine.dual_coef.shape[1])
    over_blocks(walk, rows.shape[0], 8 * (6 * width + 4 * rows.shape[1]))
    return out
