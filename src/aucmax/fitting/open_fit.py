"""Begin a fit: check what the user passes, and make a problem and a context of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.fitting.context import Context, open_context
from aucmax.fitting.problem import Problem, check_folds, make_folds
from aucmax.rows.content_order import content_order
from aucmax.rows.interface import as_rows
from aucmax.rows.sources import Source, is_dask, is_source, open_source
from aucmax.rows.validation import (
    all_or_nothing,
    check_classes,
    check_labels,
    check_rows,
    check_weight,
    refuse_lone_weight,
)
from aucmax.runtime.memory import guarded_memory
from aucmax.runtime.parameters import check_parameters

Array = npt.NDArray[Any]


@contextmanager
def open_fit(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    takes: tuple[str, ...] = (),
    search: tuple[Any, dict[str, Any]] | None = None,
    data: dict[str, Any] | None = None,
) -> Iterator[tuple[Problem, Context]]:
    """Check parameters, rows, labels and weights once; yield the problem and the context of the fit.

    Parameters
    ----------
    estimator : the estimator to be fitted
        It stays unfitted unless the block completes.
    X, y, sample_weight
        As users pass them to ``fit``.
    takes : names among "files" and "dask"
        What ``X`` may be in addition to an array, CSR matrix or frame.
    search : (estimator, metadata for the splitter), optional
        For a search: the estimator it holds, whose parameters are checked and make the context. Folds
        are made by the search's own ``cv``.
    data : dict of arrays
        What else the fit depends on, for the checkpoint.
    """
    settings, split = (estimator, {}) if search is None else search
    for each in {id(estimator): estimator, id(settings): settings}.values():
        check_parameters(each)
    began = time.monotonic()
    with (
        guarded_memory(f"The fit of {type(estimator).__name__}", settings, X),
        all_or_nothing(estimator),
        _opened(estimator, X, y, sample_weight, takes) as (X, y, sample_weight),
    ):
        check_labels(y)
        X, y = check_rows(estimator, X, y)
        check_classes(y)
        weight = check_weight(sample_weight, X.shape[0])
        refuse_lone_weight(weight)
        problem = _make_problem(estimator, X, y, weight, None if search is None else split)
        del X
        resumable = getattr(settings, "checkpoint", None) is not None
        arrays = {**problem.arrays(), **(data or {})} if resumable else {}
        try:
            with (
                np.errstate(over="ignore", invalid="ignore", divide="ignore"),  # solvers check
                open_context(estimator, settings, arrays, began, problem.rows.remote) as context,
            ):
                yield problem, context
        except FloatingPointError as error:
            raise ValueError(
                f"The fit cannot go on: {error}. Check X, sample_weight and C for extreme values, and "
                "use standardize=True."
            ) from None


@contextmanager
def _opened(
    estimator: Any, X: Any, y: Any, sample_weight: Any, takes: tuple[str, ...]
) -> Iterator[tuple[Any, Any, Any]]:
    """Open rows that are in files or on a Dask cluster; others are yielded as they are."""
    if is_dask(X):
        from aucmax.distributed import take_over

        if "dask" not in takes:
            raise ValueError(
                f"{type(estimator).__name__} does not fit Dask collections; KernelAUCClassifier and "
                "KernelAUCClassifierCV do. Pass X.compute() if it fits into memory."
            )
        yield take_over(estimator, X, y, sample_weight)
    elif "files" in takes and is_source(X):
        with open_source(X, y, sample_weight) as source:
            _record_columns(estimator, source)
            yield source.rows, np.asarray(source.y), source.weight
    else:
        yield X, y, sample_weight


def _record_columns(estimator: Any, source: Source) -> None:
    """Set the attributes that scikit-learn has for the columns of ``X``."""
    n_rows, n_columns = source.rows.shape
    if np.shape(source.y) != (n_rows,):
        raise ValueError(
            f"y must have one label for each of {n_rows} rows; got shape {np.shape(source.y)}."
        )
    estimator.n_features_in_ = n_columns
    if source.names is not None:
        estimator.feature_names_in_ = np.array(source.names, dtype=object)


def _make_problem(
    estimator: Any, X: Any, y: Any, weight: Array, split: dict[str, Any] | None
) -> Problem:
    """Drop rows of weight 0, order rows in memory by content, and make folds for a search."""
    present = np.flatnonzero(weight)
    classes, codes = np.unique(y[present], return_inverse=True)
    if classes.size < 2:
        raise ValueError(
            "Ranking needs rows of at least two classes; those of non-zero weight are all of one "
            f"class, {classes.tolist()[0]!r}."
        )
    rows = as_rows(X)
    if present.size < weight.size:
        rows = rows.take(present)
    if rows.in_memory:
        order = content_order(rows, codes, weight[present])
        rows, codes, present = rows.take(order), codes[order], present[order]
    folds: Any = ()
    if split is not None:
        split = {name: value for name, value in split.items() if value is not None}
        folds = make_folds(estimator.cv, X, y, weight, present, split)
    names = getattr(estimator, "feature_names_in_", None)
    whole = bool(getattr(estimator, "refit", True))
    problem = Problem(rows, codes, weight[present], classes, present, weight.size, names, folds, whole)
    check_folds(problem)
    return problem
