"""Fit a model to a file or a frame that has its target among the columns."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import polars as pl

from aucmax.operators.placement import Plan
from aucmax.reading.frames import as_series, row_weights
from aucmax.reading.opened import OpenedTable, open_table, text_columns
from aucmax.runtime.parameters import NAMES, check_value
from aucmax.tables.column_options import OPTIONS, ColumnOptions
from aucmax.tables.model import TableModel, fit_training_table
from aucmax.tables.search import make_search
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
        The column with the labels.
    weight, group : str, optional
        The columns with the weight of each row, and with groups of rows that are held out together.
    time : str, optional
        The column with the time of each row: a date, a time or a number. The latest quarter of the rows
        is held out, and the AUC, the probabilities and the threshold come from it. The final model is
        fitted to all rows. The column itself is not a feature.
    positive, drop, **params
        All parameters of :class:`TableModel`, such as ``category``, ``number``, ``date`` and ``id``,
        which say what columns hold.

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
    began, params = perf_counter(), params | {"positive": positive, "drop": drop}
    special = {"target": target, "weight": weight, "group": group, "time": time}
    opened = open_as_said(table, params)
    with opened.located():
        return fit_training_table(*_separate(table, opened, began, special, params))


def plan_table(table: Any, target: str, **params: Any) -> Plan:
    """Return the memory and time that :func:`fit_table` would need, without the fit.

    It takes the parameters of :func:`fit_table`, reads the table and prepares its columns.
    """
    began = perf_counter()
    special = {what: params.pop(what, None) for what in ("weight", "group", "time")}
    opened = open_as_said(table, params)
    with opened.located():
        model, training = _separate(table, opened, began, {"target": target, **special}, params)
        prepared = prepare_table(model, training.X, training)
    return make_search(model, prepared.folds).plan(prepared.rows)


def open_as_said(table: Any, params: dict[str, Any]) -> OpenedTable:
    """Read a table, with columns that are said to be categories or dates as they are written."""
    for option in OPTIONS:
        check_value(option, params.get(option, ()), NAMES)
    return open_table(table, as_text=text_columns(params))


def _separate(
    table: Any,
    opened: OpenedTable,
    began: float,
    special: dict[str, Any],
    params: dict[str, Any],
) -> tuple[TableModel, TrainingTable]:
    """Check the columns that are named, and separate them from the features."""
    for what, name in special.items():
        if not isinstance(name, str) and (name is not None or what == "target"):
            raise TypeError(
                f"{what} must be the name of a column of the table; got a {type(name).__name__}. If "
                "rows and labels are two objects, use TableModel().fit(X, y, sample_weight, groups)."
            )
    frame, params = opened.frame, dict(params)
    named_by = {option: params.pop(option, ()) for option in OPTIONS}
    options = ColumnOptions(**named_by)
    options.check(frame.columns, special)
    special_names = {name for name in special.values() if name is not None}
    kept: dict[str, Any] = {
        option: tuple(name for name in names if name not in special_names)
        for option, names in named_by.items()
    }
    target, weight, group, time = (special[what] for what in ("target", "weight", "group", "time"))
    labels = frame[target]
    if labels.dtype == pl.Categorical and hasattr(table, "iloc"):  # labels keep their own type
        labels = as_series(table.iloc[:, frame.columns.index(target)], target)
    training = TrainingTable(
        frame.drop(special_names),
        labels,
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
    return TableModel(**kept, **params), training
