"""Check a table before training: what each column is taken for, all problems at once, and warnings."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from aucmax.reading.frames import RowError, TableError, row_weights
from aucmax.reading.opened import OpenedTable, open_table, text_columns
from aucmax.runtime.parameters import check_parameters
from aucmax.runtime.spelling import nearest
from aucmax.tables.check_result import TableCheck
from aucmax.tables.column_options import OPTIONS, ColumnOptions
from aucmax.tables.columns import Column, make_preprocessor, used
from aucmax.tables.data_warnings import (
    Finding,
    option_for,
    warn_about_identifiers,
    warn_about_table,
    warn_about_time,
)
from aucmax.tables.inputs import training_frame
from aucmax.tables.labels import Labels, two_labels, why_positive
from aucmax.tables.model import TableModel
from aucmax.tables.profile import profile_columns
from aucmax.tables.search import make_search
from aucmax.tables.table_features import TableFeatures, learn_features
from aucmax.tables.time_split import later_rows, row_times
from aucmax.tables.training_table import group_codes, make_folds

_MOST_LABELS = 20  #: With more labels, none of them is suggested as the positive one.
_PLAN_ROWS = 20_000  #: The time of training is estimated from the features of this many rows.


def check_table(
    table: Any,
    target: str,
    *,
    positive: Any = None,
    drop: Sequence[str] = (),
    weight: str | None = None,
    group: str | None = None,
    time: str | None = None,
    estimate: bool = True,
    **params: Any,
) -> TableCheck:
    """Check a table before :func:`fit_table` is called with the same arguments.

    All problems are returned, not only the first, and none is raised but a file that cannot be read.

    Parameters
    ----------
    table, target, positive, drop, weight, group, time, **params
        The arguments of :func:`fit_table`.
    estimate : bool, default=True
        Estimate how long training takes, which needs about a second.

    Returns
    -------
    TableCheck

    Examples
    --------
    >>> import polars as pl
    >>> from aucmax import check_table
    >>> rows = range(100)
    >>> table = pl.DataFrame(
    ...     {
    ...         "age": [20 + i % 50 for i in rows],
    ...         "part": [[i] for i in rows],
    ...         "day": [f"2024-01-{1 + i % 31}" for i in rows],
    ...         "closed": [i % 4 == 0 for i in rows],
    ...         "left": ["no" if i % 4 else "yes" for i in rows],
    ...     }
    ... )
    >>> found = check_table(table, "left")
    >>> [(each.column, each.option) for each in found.problems]
    [('part', '--drop part')]
    >>> [(each.kind, each.column) for each in found.warnings]
    [('few rows', None), ('copy of the target', 'closed'), ('time column', 'day')]
    """
    named = {"target": target, "weight": weight, "group": group, "time": time}
    params |= {"positive": positive, "drop": drop}
    check_parameters(TableModel(**params))
    found, fit = check_opened(open_table(table, as_text=text_columns(params)), named, **params)
    return found if fit is None or not estimate else add_estimate(found, fit)


@dataclass(frozen=True)
class PlannedFit:
    """What the time of training is estimated from."""

    model: TableModel
    rows: pl.DataFrame
    folds: Any


def add_estimate(found: TableCheck, fit: PlannedFit) -> TableCheck:
    """Return a check with the time and memory that training will take."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit that follows warns itself
        plan = _plan(fit.model, fit.rows, fit.folds)
    return replace(found, seconds=float(plan.seconds), plan=str(plan))


def check_opened(
    opened: OpenedTable, named: dict[str, str | None], **params: Any
) -> tuple[TableCheck, PlannedFit | None]:
    """Check a table that was read, without the time of training; None if it cannot be trained on.

    ``named`` has the columns of target, weight, group and time; ``params`` those of TableModel.
    """
    model = TableModel(**params)
    check_parameters(model)
    make_search(model, model.cv)  # checks the parameters of the estimator
    frame, problems = opened.frame, list[Finding]()
    attempt = _Attempts(opened, problems)

    # 1) The columns that are named
    options = ColumnOptions.of(model)
    present = _named_columns(frame, named, options, problems)
    target = str(named["target"])

    # 2) The rows in use
    labels, times, in_use = _rows_in_use(frame, model, present, attempt)
    others = [name for name in frame.columns if name not in {*present.values(), *model.drop}]
    rows = frame.select(others)
    rows = rows if in_use.all() else rows.filter(pl.Series(in_use))

    # 3) What each column is taken for
    columns = _profile_each(rows, model, options, np.flatnonzero(in_use), attempt)
    levels = _count_levels(rows)
    usable = [column for column in columns if "problem" not in column]
    if not used(usable) and not problems:
        attempt("no columns", None, make_preprocessor, usable)

    # 4) Splits and warnings
    found_warnings = list[Finding]()
    folds = None
    if labels is not None:
        groups = frame[present["group"]] if "group" in present else None
        folds = attempt(
            "folds", None, _folds, model, labels, in_use, groups, times, present.get("time")
        )
        ups = labels.positive[in_use]
        if ups.any() and not ups.all():
            found_warnings += warn_about_table(rows, ups, usable, target, levels)
    found_warnings += warn_about_identifiers(rows, levels, model.id, present.get("group"))
    if named.get("time") is None:
        found_warnings += warn_about_time(frame, list(present.values()))
    found = TableCheck(
        target=target,
        rows=int(in_use.sum()),
        **_about_labels(labels, in_use, model.positive),
        rows_without_label=0 if labels is None else int((~labels.known).sum()),
        columns=_describe(rows, columns, levels),
        problems=problems,
        warnings=found_warnings,
    )
    return found, None if problems else PlannedFit(model, rows, folds)


class _Attempts:
    """Calls functions, and collects the errors they raise as problems."""

    def __init__(self, opened: OpenedTable, problems: list[Finding]) -> None:
        self._opened, self._problems = opened, problems

    def __call__(
        self,
        kind: str,
        column: str | None,
        call: Callable[..., Any],
        *arguments: Any,
        rows: np.ndarray | None = None,
        option: str | None = None,
    ) -> Any:
        """Return what the call returns; None if it fails, with its error among the problems.

        ``rows`` are the numbers of rows in the whole table, if the call sees a part of them.
        """
        try:
            with self._opened.located():
                try:
                    return call(*arguments)
                except RowError as error:
                    raise error if rows is None else error.moved(rows[error.row]) from None
        except TableError as error:
            self._problems.append(Finding(kind, str(error), column, option))
            return None


def _named_columns(
    frame: pl.DataFrame,
    named: dict[str, str | None],
    options: ColumnOptions,
    problems: list[Finding],
) -> dict[str, str]:
    """Return the target, weight, group and time that the table has; add wrong names to the problems."""
    for fault in options.faults(frame.columns, named):
        kind = fault.option if fault.option in named else "columns"
        meant = None
        if fault.option is not None and fault.meant is not None:
            meant = option_for(fault.option, fault.meant)
        problems.append(Finding(str(kind), fault.sentence, fault.column, meant))
    target = named["target"]
    return {
        what: name
        for what, name in named.items()
        if name in frame.columns and (what == "target" or name != target)
    }


def _rows_in_use(
    frame: pl.DataFrame, model: TableModel, present: dict[str, str], attempt: _Attempts
) -> tuple[Labels | None, np.ndarray | None, np.ndarray]:
    """Return the labels, the times, and which rows have a label and a weight above 0."""
    labels = weights = times = None
    if "target" in present:
        name = present["target"]
        option = _positive_option(frame[name], model.positive)
        labels = attempt("target", name, two_labels, frame[name], model.positive, name, option=option)
    if "weight" in present:
        weights = attempt("weight", present["weight"], row_weights, frame[present["weight"]])
    if "time" in present:
        times = attempt("time", present["time"], row_times, frame[present["time"]])
    in_use = np.ones(frame.height, bool) if labels is None else labels.known.copy()
    if weights is not None:
        in_use &= weights > 0
    return labels, times, in_use


def _positive_option(target: pl.Series, asked: Any) -> str | None:
    """Return the option that names the positive label: the one meant, or the rarest of some labels."""
    if target.dtype.is_float() or target.dtype.is_temporal() or target.dtype.is_nested():
        return None
    labels = target.drop_nulls().value_counts(sort=True)[target.name].cast(pl.String, strict=False)
    if asked is not None:
        meant = nearest(asked, labels.drop_nulls().head(_MOST_LABELS))
    else:
        meant = labels[-1] if 2 < len(labels) <= _MOST_LABELS else None
    return None if meant is None else option_for("positive", meant)


def _profile_each(
    frame: pl.DataFrame,
    model: TableModel,
    options: ColumnOptions,
    numbers: np.ndarray,
    attempt: _Attempts,
) -> list[Column]:
    """Profile each column alone, so that a bad one does not hide the next."""
    rules: dict[str, Any] = {"rare_level": model.rare_level, "max_levels": model.max_levels}
    columns, kinds = [], options.kinds()
    for name in frame.columns:

        def profile(name: str = name) -> Column:
            return profile_columns(frame.select(name), kinds, encode=True, **rules)[0]

        option = option_for("drop", name)
        found = attempt("column", name, profile, rows=numbers, option=option)
        if found is None:
            found = {"name": name, "type": str(frame[name].dtype), "kind": "problem", "problem": True}
            found |= {"missing": frame[name].null_count(), "treatment": "cannot be used: see below"}
        columns.append(found)
    return columns


def _count_levels(frame: pl.DataFrame) -> dict[str, int]:
    """Count the different values of each column; values of some nested types cannot be compared."""
    counts = dict[str, int]()
    for series in frame:
        with suppress(pl.exceptions.PolarsError):
            counts[series.name] = series.n_unique() - (series.null_count() > 0)
    return counts


def _describe(
    frame: pl.DataFrame, columns: Sequence[Column], levels: Mapping[str, int]
) -> list[dict[str, Any]]:
    """Return what to show of each column."""
    out = []
    for column in columns:
        series = frame[column["name"]]
        known = series.is_not_null()
        example = series[int(known.arg_max() or 0)] if known.any() else None
        keys = ("name", "type", "kind", "missing", "treatment")
        shown = {key: column[key] for key in keys} | {"levels": levels.get(column["name"])}
        out.append(shown | {"example": None if example is None else str(example)[:40]})
    return out


def _about_labels(labels: Labels | None, in_use: np.ndarray, asked: Any) -> dict[str, Any]:
    if labels is None:
        return {}
    ups = int(labels.positive[labels.known].sum())
    why = why_positive(labels.positive_label, labels.negative_label, named=asked is not None)
    if why == "the rarer label" and 2 * ups == int(labels.known.sum()):
        why = "both labels are equally frequent, and it comes last"
    return {
        "positive": labels.positive_label,
        "negative": labels.negative_label,
        "why_positive": why,
        "positives": int(labels.positive[in_use].sum()),
    }


def _folds(
    model: TableModel,
    labels: Labels,
    in_use: np.ndarray,
    groups: pl.Series | None,
    times: np.ndarray | None,
    time: str | None,
) -> Any:
    codes = None if groups is None else group_codes(groups)[in_use]
    if times is not None:
        return later_rows(times[in_use], labels.positive[in_use], codes, str(time))
    return make_folds(model.cv, model.random_state, labels, in_use, codes)


def _plan(model: TableModel, frame: pl.DataFrame, folds: Any) -> Any:
    """Plan the fit of a whole table from the features of some rows."""
    some = frame.gather_every(max(1, frame.height // _PLAN_ROWS)).head(_PLAN_ROWS)
    said = {name: getattr(model, name) for name in OPTIONS}
    kept: dict[str, Any] = {
        name: [each for each in said[name] if each in some.columns] for name in OPTIONS
    }
    prepare = TableFeatures(**kept, max_levels=model.max_levels, rare_level=model.rare_level)
    training_frame(prepare, some)
    made = learn_features(prepare, some, None)
    # Rows beyond these are only counted: pages of zeros that nothing writes to take no time.
    whole = np.zeros((frame.height, made.shape[1]), made.dtype)
    whole[: len(made)] = made
    return make_search(model, folds).plan(whole)
