"""Check the arrays that a user passes.

Errors number rows and columns from 0, as NumPy and pandas index them, and count every row that was
passed, rows of weight 0 included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from typing import Any

import numpy as np

from aucmax.rows.interface import Rows, is_sparse, values_of
from aucmax.runtime.parameters import LARGEST
from aucmax.runtime.scalars import is_missing, is_number

Array = np.ndarray[Any, Any]

#: Weights with a smaller sum lose digits.
_LEAST_TOTAL = 2.0**-1000

#: Kinds of NumPy arrays that are not numbers, and what to do about them.
_ODD_KINDS = {
    "c": "complex numbers: pass their real parts or absolute values",
    "V": "structured entries: pass its fields as columns of a plain array",
    "m": "durations: divide them by np.timedelta64(1, 's'), or use aucmax.TableModel",
    "M": "dates: subtract a date and divide by np.timedelta64(1, 'D'), or use aucmax.TableModel",
}

#: The classifiers cannot import what prepares tables, so the sentence has the line to write.
_TABLE_MODEL = (
    "or let aucmax prepare the columns: make_pipeline(TableFeatures(), KernelAUCClassifier()), or "
    "aucmax.TableModel"
)


def check_rows(estimator: Any, X: Any, y: Any = "no_validation", *, reset: bool = True) -> Any:
    """Return X as a float array or CSR matrix, and y if it is passed.

    Works as scikit-learn's ``validate_data``, which records or compares the columns, but names the
    column and row of a bad entry. Rows that come in blocks were checked when they were read.
    """
    from sklearn.utils.validation import validate_data

    if isinstance(X, Rows):
        estimator.n_features_in_ = X.shape[1]
        return X if isinstance(y, str) else (X, y)
    if type(X).__name__ == "LazyFrame":
        raise TypeError("X is a polars LazyFrame, which holds no rows yet. Pass X.collect().")
    refuse_odd("X", X)
    _refuse_odd_columns(X)
    try:
        checked = validate_data(
            estimator,
            X,
            y,
            accept_sparse="csr",
            dtype=(np.float64, np.float32),
            order="C",  # rows are read in blocks; frames come by column
            ensure_all_finite=False,
            reset=reset,
        )
    except (TypeError, ValueError, OverflowError) as error:
        _refuse_text(X)
        if re.search(r"\b[Xy]\b", str(error)):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        both = "inconsistent numbers of samples" in str(error)
        what = "X and y must have the same number of rows" if both else "X must be a table of numbers"
        raise kind(f"{what}: {error}") from None
    rows, *rest = checked if isinstance(checked, tuple) else (checked,)
    rows = _canonical(rows) if is_sparse(rows) else rows
    _check_finite(rows, frame_names(X))
    return (rows, *rest) if rest else rows


def check_weight(weight: Any, n_rows: int) -> Array:
    """Return row weights as float64; ones if there are none."""
    if weight is None:
        return np.ones(n_rows)
    weight = as_floats("sample_weight", weight)
    if weight.ndim == 0 and np.isfinite(weight):
        weight = np.full(n_rows, float(weight))
    if weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have shape ({n_rows},), one weight per row of X; "
            f"its shape is {weight.shape}."
        )
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if bad.size:
        raise ValueError(
            "sample_weight must be finite and not negative; "
            f"row {bad[0]} has {weight[bad[0]]:g} ({bad.size} such rows)."
        )
    if not weight.any():
        raise ValueError("sample_weight is zero on every row: there is nothing to learn from.")
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    if not _LEAST_TOTAL <= total <= LARGEST:
        row = int(weight.argmax())
        raise ValueError(
            f"sample_weight is too {'small' if total < 1.0 else 'large'}: its largest entry, of row "
            f"{row}, is {weight[row]:.3g}. Divide all weights by it."
        )
    return np.asarray(weight)


def refuse_lone_weight(weight: Array) -> None:
    """Refuse weights of which one is so large that all others vanish in float64."""
    row = int(weight.argmax())
    others = float(weight.sum() - weight[row])
    if others == 0.0 and np.count_nonzero(weight) > 1:
        raise ValueError(
            f"sample_weight is too large in row {row}: with {weight[row]:.3g} there, all other weights "
            "vanish in float64. Lower it, or give the other rows weight 0."
        )


def as_floats(name: str, values: Any) -> Array:
    """Return numbers as float64, NaN and infinity included; refuse anything else."""
    refuse_odd(name, values)
    try:
        with np.errstate(over="ignore"):
            return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must hold one number per row: {error}.") from None


def refuse_odd(name: str, values: Any) -> None:
    """Refuse arrays of which NumPy silently drops a part: masks, imaginary parts, units of time."""
    if np.ma.isMaskedArray(values) and np.ma.is_masked(values):
        where = np.argwhere(np.ma.getmaskarray(values))
        row, *column = where[0].tolist() if values.ndim else [0]
        first = f"row {row}" + "".join(f", column {each}" for each in column[:1])
        raise ValueError(
            f"{name} is a masked array, and masks are not supported; the first masked entry is in "
            f"{first} ({len(where)} in all). Fill them with {name}.filled(value), or drop these rows."
        )
    if isinstance(values, list | tuple):
        try:
            values = np.asarray(values)
        except (TypeError, ValueError):  # the conversion that follows reports it
            return
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in _ODD_KINDS:
        also = "Complex data not supported: " if dtype.kind == "c" else ""  # scikit-learn's own words
        raise ValueError(f"{also}{name} holds {_ODD_KINDS[dtype.kind]}.")


def _refuse_odd_columns(X: Any) -> None:
    """Refuse a frame with a column of times or complex numbers, and name the column."""
    names = frame_names(X)
    for index, dtype in enumerate([] if names is None else getattr(X, "dtypes", [])):
        kind = getattr(dtype, "kind", "")
        if hasattr(dtype, "is_temporal") and dtype.is_temporal():
            kind = "m" if "Duration" in str(dtype) else "M"
        if kind in _ODD_KINDS:
            raise ValueError(f"X, {_column(index, names)}, holds {_ODD_KINDS[kind]}.")


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Leave an estimator unfitted unless its fit completes."""
    _forget(estimator)
    try:
        yield
    except KeyboardInterrupt:
        _forget(estimator)
        path = getattr(getattr(estimator, "estimator", None) or estimator, "checkpoint", None)
        more = "" if path is None else f" Fit again to resume from its checkpoint {str(path)!r}."
        raise KeyboardInterrupt(
            f"{type(estimator).__name__}.fit was interrupted; the estimator is left unfitted.{more}"
        ) from None
    except BaseException:
        _forget(estimator)
        raise


def _forget(estimator: Any) -> None:
    for name in [name for name in vars(estimator) if name.endswith("_") and name[0] != "_"]:
        delattr(estimator, name)


def frame_names(X: Any) -> list[str] | None:
    """Return the column names of a frame as text; None for anything else."""
    columns = getattr(X, "columns", None)
    return None if columns is None else [str(name) for name in columns]


def _column(index: int, names: list[str] | None) -> str:
    return f"column {index}" if names is None else f"column {names[index]!r}"


def _refuse_text(X: Any) -> None:
    """Refuse text, dates and numbers too large for float64, and name their column and row."""
    names = frame_names(X)
    if names is not None and hasattr(X, "iloc"):
        columns = [X.iloc[:, i] for i in range(len(names))]
    elif names is not None and hasattr(X, "get_columns"):
        columns = X.get_columns()
    else:
        table = np.array([]) if is_sparse(X) else np.asarray(X, dtype=object)
        columns = list(table.T) if table.ndim == 2 else []
    for index, values in enumerate(columns):
        for row, value in enumerate(np.asarray(values, dtype=object)):
            if isinstance(value, str | bytes | date | np.datetime64) and not is_number(value):
                kind = "text" if isinstance(value, str | bytes) else "a date"
                raise ValueError(
                    f"X has {kind} in {_column(index, names)} (row {row}: {value!r}), but features "
                    "must be numbers. Encode it first (for example with scikit-learn's OneHotEncoder "
                    f"or OrdinalEncoder), drop it, {_TABLE_MODEL}."
                ) from None
            if isinstance(value, int) and not abs(value) <= LARGEST:
                raise ValueError(
                    f"X has a number beyond 1.8e308 in {_column(index, names)} (row {row}), which "
                    "float64 does not hold. Divide the column, or take its logarithm."
                ) from None


def _canonical(X: Any) -> Any:
    """Return a CSR matrix with entries of one cell added up, and 32-bit indices where they suffice."""
    if not X.has_canonical_format:
        X = X.copy()  # the caller's matrix stays as it is
        X.sum_duplicates()
    if X.indices.dtype == np.int32 or max(X.nnz, *X.shape) > np.iinfo(np.int32).max:
        return X
    parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return type(X)(parts, shape=X.shape)


def _check_finite(X: Any, names: list[str] | None) -> None:
    values = values_of(X)
    with np.errstate(all="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return  # an infinity or NaN would show in the sum
    bad = np.flatnonzero(~np.isfinite(values).ravel())
    if not bad.size:
        return
    if is_sparse(X):
        row = int(np.searchsorted(X.indptr, bad[0], side="right") - 1)
        column, value = int(X.indices[bad[0]]), values[bad[0]]
    else:
        row, column = (int(i) for i in divmod(bad[0], X.shape[1]))
        value = X[row, column]
    what, todo = "infinity", "Numbers must be below 1.8e308: replace it, or drop these rows"
    if np.isnan(value):
        what, todo = "NaN", f"Impute it first with scikit-learn's SimpleImputer, {_TABLE_MODEL}"
    raise ValueError(
        f"Input X contains {what} in {_column(column, names)} (row {row}; {bad.size} such entries in "
        f"all). {todo}."
    )


def check_labels(y: Any, name: str = "y") -> None:
    """Refuse missing or mixed labels and name the first; scikit-learn checks the rest of y."""
    if y is None:
        if name != "y":
            raise ValueError(f"{name} must hold one label per row; got None.")
        raise ValueError(
            "This classifier requires y to be passed, but the target y is None: "
            "a ranking is learnt from classes."
        )
    if is_sparse(y):
        raise ValueError(f"{name} must be a one-dimensional array of labels; got a sparse matrix.")
    if getattr(getattr(y, "dtype", None), "kind", "") not in "mM":  # times are valid labels
        refuse_odd(name, y)
    try:
        np.asarray(y)
    except ValueError as error:  # lists in place of labels
        raise ValueError(f"{name} must hold one label per row: {error}") from None
    # As objects: a list of text with a NaN in it would otherwise become the text "nan".
    labels = y if getattr(y, "dtype", None) is not None else np.asarray(y, dtype=object)
    if isinstance(labels.dtype, np.dtype) and labels.dtype.kind in "biuUS":
        return
    flat = np.asarray(labels, dtype=object).ravel()
    bad = [row for row, label in enumerate(flat) if is_missing(label)]
    if bad:
        raise ValueError(
            f"Input {name} contains NaN: row {bad[0]} has no label ({len(bad)} such rows). "
            "Drop these rows or label them."
        )
    text = np.array([isinstance(label, str) for label in flat])
    if text.any() and not text.all():
        here, there = int(text.argmax()), int(text.argmin())
        raise ValueError(
            f"{name} mixes text and other labels: row {here} has {flat[here]!r}, row {there} has "
            f"{flat[there]!r}. Use labels of one kind, for example [str(label) for label in {name}]."
        )


def check_classes(y: Array) -> None:
    """Refuse labels that scikit-learn does not accept as classes."""
    from sklearn.utils.multiclass import check_classification_targets

    try:
        check_classification_targets(y)
    except (TypeError, ValueError) as error:
        todo = "y must hold classes: whole numbers, text or booleans"
        if y.dtype == object:
            todo += ". Convert its Python objects with y.astype(int) or y.astype(str)"
        raise type(error)(f"{error} {todo}.") from None
