"""Fit a model to a file or a frame that has its target among the columns."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from aucmax.operators.placement import Plan
from aucmax.reading.frames import TableError, check_names, row_weights
from aucmax.reading.opened import OpenedTable, open_table
from aucmax.runtime.parameters import NAMES, check_value
from aucmax.tables.model import TableModel, fit_training_table, make_search
from aucmax.tables.time_split import row_times
from aucmax.tables.training_table import TrainingTable, prepare_table


def fit_table(
    table: Any,
    target: str,
    *,
    positive: Any = None,
    drop: Sequence[str] = (),
    weight: str | None = None,
    group: str | None = None,
    time: str | None = None,
    **params: Any,
) -> TableModel:
    """Fit a :class:`TableModel` to a table that has its target among the columns.

    Parameters
    ----------
    table : path, list of paths, polars or pandas frame
        A CSV, TSV, JSON lines, Parquet, Arrow, LIBSVM or Excel file, compressed or not; several files
        with the same columns; or a frame.
    target : str
        The column with the two labels.
    weight, group : str, optional
        The columns with the weight of each row, and with groups of rows that are held out together.
    time : str, optional
        The column with the time of each row: a date, a time or a number. The latest quarter of the rows
        is held out, and the AUC, the probabilities and the threshold come from it. The final model is
        fitted to all rows. The column itself is not a feature.
    positive, drop, **params
        All parameters of :class:`TableModel`.

    Examples
    --------
    >>> import numpy as np
    >>> import polars as pl
    >>> from aucmax import KernelAUCClassifier, fit_table
    >>> x = np.random.default_rng(0).normal(size=300)
    >>> table = pl.DataFrame({"size": x, "sold": np.where(np.abs(x) > 1.2, "yes", "no")})
    >>> model = fit_table(table, "sold", estimator=KernelAUCClassifier(n_landmarks=30))
    >>> model.classes_.tolist(), model.training_["auc"] > 0.95
    (['no', 'yes'], True)
    """
    began = perf_counter()
    opened = open_table(table)
    with opened.located():
        return fit_training_table(
            *_separate(opened, began, target, drop, weight, group, time, positive=positive, **params)
        )


def plan_table(table: Any, target: str, **params: Any) -> Plan:
    """Return the memory and time that :func:`fit_table` would need, without the fit.

    It takes the parameters of :func:`fit_table`, reads the table and prepares its columns.
    """
    began = perf_counter()
    opened = open_table(table)
    with opened.located():
        model, training = _separate(opened, began, target, **params)
        prepared = prepare_table(model, training.X, training)
    return make_search(model, prepared.folds).plan(prepared.rows)


def _separate(
    opened: OpenedTable,
    began: float,
    target: str,
    drop: Any = (),
    weight: Any = None,
    group: Any = None,
    time: Any = None,
    **params: Any,
) -> tuple[TableModel, TrainingTable]:
    """Check the columns that are named, and separate them from the features."""
    special = {"target": target, "weight": weight, "group": group, "time": time}
    for what, name in special.items():
        if not isinstance(name, str) and (name is not None or what == "target"):
            raise TypeError(
                f"{what} must be the name of a column of the table; got a {type(name).__name__}. If "
                "rows and labels are two objects, use TableModel().fit(X, y, sample_weight, groups)."
            )
    frame = opened.frame
    check_value("drop", drop, NAMES)
    for what, name in special.items():
        if name is not None:
            check_names(frame.columns, [name], f"is named as the {what}")
    check_names(frame.columns, drop, "drop names")
    if target in drop:
        raise TableError(f"Column {target!r} cannot be both the target and dropped.")
    named = {name for name in special.values() if name is not None}
    model = TableModel(drop=tuple(name for name in drop if name not in named), **params)
    training = TrainingTable(
        frame.drop(named),
        frame[target],
        None if weight is None else row_weights(frame[weight]),
        None if group is None else frame[group],
        began,
        target,
        weight,
        group,
        opened.data_hash,
        None if time is None else row_times(frame[time]),
        time,
    )
    return model, training
