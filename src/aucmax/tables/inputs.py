"""Make frames of inputs: frames have column names, columns of arrays become ``x0``, ``x1``, ..."""

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


def training_frame(estimator: Any, X: Any) -> pl.DataFrame:
    """Return X as a frame to fit to, and set ``n_features_in_`` and ``feature_names_in_``."""
    if isinstance(X, str | Path):
        raise TypeError(
            f"X must be a frame or an array; got the text {str(X)!r}. To read a file, use "
            "fit_table(path, target) with the name of the column of labels."
        )
    frame = as_frame(X) if is_frame(X) else _from_array(X, type(estimator).__name__)
    if is_frame(X):
        estimator.feature_names_in_ = np.array(frame.columns, dtype=object)
    estimator.n_features_in_ = frame.width
    return frame


def scoring_frame(estimator: Any, X: Any) -> pl.DataFrame:
    """Return X as a frame to score, with the column names of the training table.

    Columns of a frame are found by name, so there may be others, in any order. If X is an array, or the
    model was fitted to one, columns are taken by position.
    """
    fitted_names = getattr(estimator, "feature_names_in_", None)
    width, kind = estimator.n_features_in_, type(estimator).__name__
    frame = as_frame(X) if is_frame(X) else _from_array(X, type(estimator).__name__)
    if is_frame(X):
        if fitted_names is not None or set(_names(width)) <= set(frame.columns):
            return frame
        warn_user(f"X has feature names, but {kind} was fitted without feature names")
    elif fitted_names is not None:
        warn_user(f"X does not have valid feature names, but {kind} was fitted with feature names")
    if frame.width != width:
        raise ValueError(
            f"X has {frame.width} features, but {kind} is expecting {width} features as input."
        )
    names = _names(width) if fitted_names is None else fitted_names.tolist()
    return frame.rename(dict(zip(frame.columns, names, strict=True)))


def _names(width: int) -> list[str]:
    return [f"x{i}" for i in range(width)]


def _from_array(X: Any, kind: str) -> pl.DataFrame:
    refuse_odd("X", X)
    try:
        array = check_array(X, dtype=None, ensure_all_finite=False, estimator=kind, input_name="X")
    except (TypeError, ValueError) as error:
        if re.search(r"\bX\b", str(error)):
            raise
        raise type(error)(f"X must be a frame or an array of rows: {error}") from None
    return pl.DataFrame([as_series(array[:, i], name) for i, name in enumerate(_names(array.shape[1]))])
