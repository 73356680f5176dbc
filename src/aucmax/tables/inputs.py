"""What a TableModel takes for rows: frames by the names of their columns, arrays by their positions.

Columns of an array are named ``x0``, ``x1`` and so on, as scikit-learn names them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.utils.validation import check_array

from aucmax.reading.frames import as_frame, as_series, is_frame
from aucmax.rows.validation import refuse_odd
from aucmax.runtime.parameters import warn_user

__all__ = ["scoring_frame", "training_frame"]


def training_frame(estimator: Any, X: Any) -> pl.DataFrame:
    """Rows to fit to; ``n_features_in_`` and, of a frame, ``feature_names_in_`` are set."""
    if isinstance(X, str | Path):
        raise TypeError(
            f"X must be a frame or an array; got the text {str(X)!r}. If it is the path of a file, use "
            "fit_table(path, target), with the name of the column of labels."
        )
    if is_frame(X):
        frame = as_frame(X)
        estimator.feature_names_in_ = np.array(frame.columns, dtype=object)
    else:
        frame = _from_array(X)
    estimator.n_features_in_ = frame.width
    return frame


def scoring_frame(estimator: Any, X: Any) -> pl.DataFrame:
    """Rows to score, with the column names of the training.

    A frame's columns are found by name, so it may have others, and in any order. Columns of an array,
    or for a model that was fitted to an array, count by position.
    """
    fitted_names = getattr(estimator, "feature_names_in_", None)
    kind = type(estimator).__name__
    if is_frame(X):
        frame = as_frame(X)
        if fitted_names is not None or set(_names(estimator.n_features_in_)) <= set(frame.columns):
            return frame
        warn_user(f"X has feature names, but {kind} was fitted without feature names")
    else:
        frame = _from_array(X)
        if fitted_names is not None:
            warn_user(f"X does not have valid feature names, but {kind} was fitted with feature names")
    if frame.width != estimator.n_features_in_:
        raise ValueError(
            f"X has {frame.width} features, but {kind} is expecting {estimator.n_features_in_} "
            "features as input."
        )
    names = _names(frame.width) if fitted_names is None else fitted_names.tolist()
    return frame.rename(dict(zip(frame.columns, names, strict=True)))


def _names(width: int) -> list[str]:
    return [f"x{i}" for i in range(width)]


def _from_array(X: Any) -> pl.DataFrame:
    refuse_odd("X", X)
    try:
        array = check_array(
            X, dtype=None, ensure_all_finite=False, estimator="TableModel", input_name="X"
        )
    except (TypeError, ValueError) as error:
        if re.search(r"\bX\b", str(error)):
            raise
        raise type(error)(f"X must be a frame or an array of rows: {error}") from None
    return pl.DataFrame([as_series(array[:, i], name) for i, name in enumerate(_names(array.shape[1]))])
