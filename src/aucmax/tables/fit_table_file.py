"""Fit a model to a table that has its target among the columns: a file or a frame."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from aucmax.operators.placement import Plan
from aucmax.reading.frames import TableError, as_frame, check_names, row_weights
from aucmax.reading.read import file_hash, located, read_table
from aucmax.tables.model import TableModel, check_drop

__all__ = ["fit_table", "plan_table"]


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
    """Fit a :class:`TableModel` to a table with its target among the columns.

    Parameters
    ----------
    table : path, polars or pandas frame
        A CSV, TSV, Parquet, Arrow or LIBSVM file, compressed or not, or a frame.
    target : str
        The column with the two labels.
    positive : label, optional
        The rarer by default.
    drop : sequence of str, default=()
        Columns to leave out.
    weight, group : str, optional
        Columns with the weight of each row, and with what rows must not be parted by.
    **params
        All other parameters of :class:`TableModel`.

    Examples
    --------
    >>> import numpy as np
    >>> import polars as pl
    >>> from aucmax.tables import fit_table
    >>> x = np.random.default_rng(0).normal(size=300)
    >>> table = pl.DataFrame({"size": x, "sold": np.where(np.abs(x) > 1.2, "yes", "no")})
    >>> model = fit_table(table, "sold", n_landmarks=30)
    >>> model.classes_.tolist(), model.training_["auc"] > 0.95
    (['no', 'yes'], True)
    """
    began = time.perf_counter()
    with located(table):
        model, given = _opened(table, target, positive, drop, weight, group, params)
        about: dict[str, Any] = {"target": target, "weight": weight, "group": group}
        if isinstance(table, str | Path):
            about["data_hash"] = file_hash(table)
        return model._fit(*given, about, began)


def plan_table(
    table: Any,
    target: str,
    *,
    positive: Any = None,
    drop: Sequence[str] = (),
    weight: str | None = None,
    group: str | None = None,
    **params: Any,
) -> Plan:
    """What :func:`fit_table` would keep where and how long it would take, without the fit.

    The table is read and its columns are studied; parameters are those of :func:`fit_table`.
    """
    with located(table):
        model, given = _opened(table, target, positive, drop, weight, group, params)
        ready = model._make_ready(*given, target)
    return model._search(ready.folds, model.time_budget).plan(ready.rows)


def _opened(
    table: Any,
    target: str,
    positive: Any,
    drop: Sequence[str],
    weight: str | None,
    group: str | None,
    params: dict[str, Any],
) -> tuple[TableModel, tuple[pl.DataFrame, pl.Series, Any, Any]]:
    """An unfitted model, and features, labels, weights and groups of a table."""
    for what, name in {"target": target, "weight": weight, "group": group}.items():
        if not isinstance(name, str) and (name is not None or what == "target"):
            raise TypeError(
                f"{what} must be the name of a column of the table; got a {type(name).__name__}. If "
                "rows and labels are two objects, use TableModel().fit(X, y, sample_weight, groups)."
            )
    frame = read_table(table) if isinstance(table, str | Path) else as_frame(table)
    check_drop(drop)
    special = {"the target": target, "the weight": weight, "the group": group}
    for what, name in special.items():
        if name is not None:
            check_names(frame.columns, [name], f"was to be {what}")
    check_names(frame.columns, drop, "was to be dropped")
    if target in drop:
        raise TableError(f"Column {target!r} cannot be the target and dropped.")
    named = {name for name in special.values() if name is not None}
    model = TableModel(
        positive=positive, drop=tuple(name for name in drop if name not in named), **params
    )
    own = None if weight is None else row_weights(frame[weight])
    groups = None if group is None else frame[group]
    return model, (frame.drop(list(named)), frame[target], own, groups)
