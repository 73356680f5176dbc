"""Fit a model to a file or a frame that has its target among the columns."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from aucmax.operators.placement import Plan
from aucmax.reading.frames import as_frame, as_series, check_names, row_weights
from aucmax.reading.read import file_hash, located, read_table
from aucmax.runtime.parameters import NAMES, check_value
from aucmax.tables.column_options import OPTIONS, ColumnOptions
from aucmax.tables.model import TableModel, fit_training_table
from aucmax.tables.search import make_search
from aucmax.tables.training_table import TrainingTable, prepare_table


def fit_table(
    table: Any,
    target: str,
    *,
    positive: Any = None,
    drop: Sequence[str] = (),
    weight: str | None = None,
    group: str | None = None,
    **params: Any,
) -> TableModel:
    """Fit a :class:`TableModel` to a table that has its target among the columns.

    Parameters
    ----------
    table : path, polars or pandas frame
        A CSV, TSV, Parquet, Arrow or LIBSVM file, compressed or not, or a frame.
    target : str
        The column with the labels.
    weight, group : str, optional
        The columns with the weight of each row, and with groups of rows that are held out together.
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
    params |= {"positive": positive, "drop": drop}
    with located(table):
        return fit_training_table(*_open(table, target, weight, group, **params))


def plan_table(table: Any, target: str, **params: Any) -> Plan:
    """Return the memory and time that :func:`fit_table` would need, without the fit.

    It takes the parameters of :func:`fit_table`, reads the table and prepares its columns.
    """
    with located(table):
        model, training = _open(table, target, **params)
        prepared = prepare_table(model, training.X, training)
    return make_search(model, prepared.folds).plan(prepared.rows)


def _open(
    table: Any, target: str, weight: Any = None, group: Any = None, **params: Any
) -> tuple[TableModel, TrainingTable]:
    """Read a table, check the columns that are named, and separate them from the features."""
    began = time.perf_counter()
    special = {"target": target, "weight": weight, "group": group}
    for what, name in special.items():
        if not isinstance(name, str) and (name is not None or what == "target"):
            raise TypeError(
                f"{what} must be the name of a column of the table; got a {type(name).__name__}. If "
                "rows and labels are two objects, use TableModel().fit(X, y, sample_weight, groups)."
            )
    named_by = {option: params.pop(option, ()) for option in OPTIONS}
    for option, names in named_by.items():
        check_value(option, names, NAMES)
    options = ColumnOptions(**named_by)
    is_file = isinstance(table, str | Path)
    as_text = dict.fromkeys([*options.category, *options.date], pl.String)  # as they are written
    frame = read_table(table, schema=as_text) if is_file else as_frame(table)
    for what, name in special.items():
        if name is not None:
            check_names(frame.columns, [name], f"is named as the {what}")
    options.check(frame.columns)
    options.refuse_special(special)
    special_names = {name for name in special.values() if name is not None}
    kept: dict[str, Any] = {
        option: tuple(name for name in names if name not in special_names)
        for option, names in named_by.items()
    }
    model = TableModel(**kept, **params)
    weights = None if weight is None else row_weights(frame[weight])
    groups = None if group is None else frame[group]
    digest = file_hash(table) if is_file else None
    rows, labels = frame.drop(special_names), frame[target]
    if labels.dtype == pl.Categorical and hasattr(table, "iloc"):  # labels keep their own type
        labels = as_series(table.iloc[:, frame.columns.index(target)], target)
    return model, TrainingTable(rows, labels, weights, groups, began, target, weight, group, digest)
