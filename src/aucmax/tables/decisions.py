"""Choose another threshold for a fitted model, from costs or another aim, without training."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from sklearn.utils.validation import check_is_fitted

from aucmax.metrics.costs import ExpectedCost, expected_cost
from aucmax.metrics.thresholds import Aim, choose_threshold
from aucmax.reading.frames import RowError, TableError, check_names
from aucmax.reading.read import located
from aucmax.tables.evaluation_rows import EvaluationRows, evaluation_rows

if TYPE_CHECKING:
    from aucmax.tables.model import TableModel


def with_threshold(
    model: TableModel,
    aim: str | Aim,
    table: Any = None,
    *,
    target: str | None = None,
    cost_column: str | None = None,
) -> TableModel:
    """Return a copy of a model with another threshold; scores and probabilities stay the same.

    Parameters
    ----------
    model : fitted TableModel
    aim : str
        What the threshold is chosen for, such as "recall=0.9" or "cost=500:20": see
        ``aucmax.metrics.thresholds``.
    table : path or frame, optional
        Rows with labels to choose the threshold on. For the training table, or without a table, these
        are the training rows with their held-out scores.
    target : str, optional
        The column with the labels, if it is not that of the training table.
    cost_column : str, optional
        The column of the table with the cost of missing each row. The aim then has the cost of a false
        alarm, such as "cost=row:20".

    Examples
    --------
    >>> import polars as pl
    >>> from aucmax import KernelAUCClassifier, fit_table, with_threshold
    >>> rows = pl.DataFrame({"a": [i / 10 for i in range(200)], "y": ["no"] * 150 + ["yes"] * 50})
    >>> model = fit_table(rows, "y", estimator=KernelAUCClassifier(preset="paper", n_landmarks=20))
    >>> few = with_threshold(model, "top=5%")
    >>> few.threshold_.aim, few.threshold_.tp + few.threshold_.fp <= 10
    ('top=5%', True)
    >>> (few.predict(rows) == "yes").sum() < (model.predict(rows) == "yes").sum()
    np.True_
    """
    check_is_fitted(model)
    wanted = aim if isinstance(aim, Aim) else Aim.parse(aim)
    if wanted.by_row and (table is None or cost_column is None):
        raise ValueError(f"the aim {wanted} needs a table with a cost column: name both.")
    rows = evaluation_rows(model, table, target)
    with located(table):
        costs = None if cost_column is None else miss_costs_of(rows, cost_column)
    return choose_for_rows(model, wanted, rows, costs)


def choose_for_rows(
    model: TableModel, aim: Aim, rows: EvaluationRows, costs: np.ndarray | None = None
) -> TableModel:
    """Return a copy of the model with the best threshold on scored rows."""
    weight = rows.weight if rows.weighted else None
    found = copy(model)
    found.threshold_ = choose_threshold(rows.positive, rows.score, aim, weight, miss_cost=costs)
    return found


def cost_at_threshold(
    model: TableModel, aim: Aim, rows: EvaluationRows, costs: np.ndarray | None = None
) -> ExpectedCost:
    """Return what the mistakes at a model's threshold cost on scored rows, by the costs of an aim."""
    return expected_cost(
        rows.positive,
        rows.score,
        model.threshold_.threshold,
        miss=aim.value if costs is None else costs,
        alarm=aim.alarm,
        sample_weight=rows.weight if rows.weighted else None,
    )


def miss_costs_of(rows: EvaluationRows, column: str) -> np.ndarray:
    """Return the cost of missing each row; refuse a missing or negative one, and name its row."""
    if rows.frame is None or rows.number is None:
        raise TableError(f"The costs in {column!r} need a table: name it.")
    check_names(rows.frame.columns, [column], "is named as the cost of missing a row")
    series = rows.frame[column]
    values = series.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if bad.size:
        value = series[int(bad[0])]
        held = "missing" if value is None else repr(value)
        raise RowError(
            f"The cost {column!r} is {held} in row {RowError.ROW}; the cost of missing a row must be a "
            "number of at least 0.",
            int(rows.number[bad[0]]),
        )
    return values
