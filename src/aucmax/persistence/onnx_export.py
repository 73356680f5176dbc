"""Export a model as one ONNX graph that runs without Python: preprocessing, map, score, probability.

A classifier, or a pipeline of numbers, has one input ``X`` (n, d). A TableModel, or a pipeline that
begins with TableFeatures or a ColumnTransformer fitted on a frame, has one input (n, 1) per column, by
name: numbers,
with NaN for a missing value (booleans are 0, 1 or NaN), or text, with "" for a missing value and
without outer blanks. Outputs are double: ``score``, as in ``decision_function``, (n,) for two classes,
else (n, classes); for a TableModel ``score`` and ``probability`` of its positive label, (n,).

The graph computes in double precision, because the squares of an rbf kernel and the large weights of
both signs over landmarks lose digits in float32. It holds all kernel values of the rows passed,
several times rows x landmarks x 8 bytes, so pass rows in batches.
"""

from __future__ import annotations

import json
import os
import warnings
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from aucmax.features.scalers import MetricScaler, QuantileScaler
from aucmax.persistence.onnx_graph import Graph, OnnxError, library
from aucmax.persistence.onnx_parts import parts_of, probability, score_of
from aucmax.reading.frames import as_frame
from aucmax.rows.interface import dense
from aucmax.rows.validation import refuse_odd
from aucmax.runtime.installing import extra_command
from aucmax.runtime.output_files import replacing
from aucmax.runtime.parameters import OneOf, check_value, warn_user
from aucmax.tables.columns import normal_frame
from aucmax.tables.table_features import TableFeatures
from aucmax.tables.target_encoding import LevelMeans

__all__ = ["OnnxError", "to_onnx"]

TOLERANCE = 1e-5  #: largest difference from Python's scores, relative to the largest of them
_ROUNDING = 1e-8  # scores smaller than this part of the largest weight are rounding
_MADE_ROWS = 64  # rows made up for the comparison if none are passed
_BATCH = 100  # rows passed to the graph at a time; larger batches were slower


def to_onnx(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    X: Any = None,
    *,
    input_type: str = "float32",
) -> Any:
    """Export a fitted model as one ONNX graph, and compare its scores with Python's.

    Parameters
    ----------
    model : estimator
        A classifier of aucmax, a pipeline that ends in one, or a :class:`~aucmax.tables.TableModel`.
        Earlier steps may be TableFeatures, StandardScaler, SimpleImputer, OneHotEncoder,
        ColumnTransformer, NystroemFeatures and FourierFeatures. Columns of dates are refused.
    path : path, optional
        Where to write the graph, by convention ending in ``.onnx``. It replaces an existing file when
        it is complete.
    X : array or data frame, optional
        Rows to compare scores on; without X, rows are made up from the fitted model.
    input_type : {"float32", "float64"}, default="float32"
        The type of numeric inputs. Columns whose values float32 cannot distinguish, such as seconds
        since 1970, need "float64"; the comparison detects them.

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    OnnxError
        If a part of the model is not supported, or if a score differs from Python's by more than 1e-5
        of the largest score (a probability by more than 1e-5). No file is written then. Python computes
        in double for the comparison, which needs onnxruntime; without it a warning is raised.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from aucmax import KernelAUCClassifier, to_onnx
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> graph = to_onnx(KernelAUCClassifier(n_landmarks=50).fit(X, y), X=X)  # doctest: +SKIP
    >>> [each.name for each in graph.graph.output]  # doctest: +SKIP
    ['score']
    """
    check_value("input_type", input_type, OneOf("float32", "float64"))
    check_is_fitted(model)
    _refuse_dates(model)
    graph = _build(model, input_type)
    made = graph.model(_metadata(model))
    _compare(model, made, graph, X)
    if path is not None:
        with replacing(Path(path)) as file:
            file.write(made.SerializeToString())
    return made


def _build(model: Any, input_type: str) -> Graph:
    graph = Graph(input_type)
    score = score_of(graph, model, _inputs(graph, model))
    shape: list[Any] = ["n", len(_steps(model)[-1].classes_)]
    if shape[1] == 2:
        score, shape = graph.add("Squeeze", score, graph.indices(1)), ["n"]
    graph.output("score", score, shape)
    calibrator = getattr(model, "calibrator_", None)
    if calibrator is not None:
        graph.output("probability", probability(graph, calibrator, score), ["n"])
    return graph


def _steps(model: Any) -> list[Any]:
    return [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]


def _metadata(model: Any) -> dict[str, str]:
    """Return what a user of the graph needs: the classes, the positive one, and the threshold."""
    last = _steps(model)[-1]
    classes = last.classes_.tolist()
    entries = {"kind": type(last).__name__, "classes": json.dumps(classes)}
    if len(classes) == 2:
        entries["positive"] = json.dumps(getattr(model, "positive_label_", classes[1]))
    threshold = getattr(model, "threshold_", None)
    if threshold is not None:
        entries["threshold"] = repr(float(threshold.threshold))
    return entries


def _table_features(model: Any) -> TableFeatures | None:
    """Return the preparation of columns, if the model begins with one."""
    first = getattr(model, "table_features_", _steps(model)[0])
    return first if isinstance(first, TableFeatures) else None


def _refuse_dates(model: Any) -> None:
    table = _table_features(model)
    for column in [] if table is None else table.columns_:
        if column["kind"] == "date":
            raise OnnxError(
                f"column {column['name']!r} holds dates, which an ONNX graph does not read. Train with "
                "numbers made of them (such as the month), or without the column."
            )


def _column_transformer(model: Any) -> ColumnTransformer | None:
    """Return the first step of the model if it takes the columns of a table by name."""
    first = _steps(model)[0]
    first = getattr(first, "preprocessor_", first)
    by_name = isinstance(first, ColumnTransformer) and hasattr(first, "feature_names_in_")
    return first if by_name else None


def _inputs(graph: Graph, model: Any) -> Any:
    """Add the inputs; return the name of the matrix, or names by column."""
    table = _column_transformer(model)
    if table is None:
        return graph.input("X", model.n_features_in_)
    taken: set[int] = set()
    text: set[int] = set()
    for _, part, indices in parts_of(table):
        taken.update(indices)
        encoder = _steps(part)[0]
        if isinstance(encoder, OneHotEncoder):
            levels = zip(indices, encoder.categories_, strict=True)
            text.update(i for i, each in levels if each.dtype.kind in "OUS")
        elif isinstance(encoder, LevelMeans):
            text.update(indices)
    positions = {table.feature_names_in_[i]: i for i in sorted(taken)}
    prepared = _table_features(model)
    names = positions if prepared is None else [column["name"] for column in prepared.columns_]
    return {name: graph.input(name, 1, positions[name] in text) for name in names if name in positions}


def _compare(model: Any, made: Any, graph: Graph, X: Any) -> None:
    """Refuse a graph whose scores or probabilities differ from the model's."""
    try:
        runtime = library("onnxruntime")
    except ImportError:
        warn_user(
            "The ONNX graph was not compared with the model, because onnxruntime is not installed: "
            f"{extra_command('onnx')}"
        )
        return
    rows = _made_rows(model) if X is None else X
    width: tuple[int, ...] = getattr(rows, "shape", ())
    # Columns of a table are found by name, so it may have others.
    columns = getattr(model, "n_features_in_", None) if _column_transformer(model) is None else None
    if columns is not None and len(width) == 2 and width[1] != columns:
        raise ValueError(f"X has {width[1]} columns, but the model was fitted to {columns}.")
    expected, inputs = _expected(model, graph, rows)
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(made.SerializeToString(), options, ["CPUExecutionProvider"])
    names = [each.name for each in graph.outputs.values()]
    batches = [
        session.run(names, {name: column[start : start + _BATCH] for name, column in inputs.items()})
        for start in range(0, len(expected["score"]), _BATCH)
    ]
    found = map(np.concatenate, zip(*batches, strict=True))
    # If all rows are alike, their scores are the rounding of the terms that they are sums of.
    last = _steps(model)[-1]
    last = getattr(last, "model_", last)
    weights = np.asarray(getattr(last, "dual_coef_", getattr(last, "coef_", 0.0)))
    terms = _ROUNDING * float(np.abs(weights).max(initial=0.0))
    largest = float(np.abs(expected["score"]).max(initial=max(terms, 1e-300)))
    advice = ""
    if graph.input_type == np.float32:
        advice = ' Numbers that float32 does not hold exactly enough need input_type="float64".'
    for name, values in zip(graph.outputs, found, strict=True):
        scale = largest if name == "score" else 1.0
        _refuse_difference(name, values, expected[name], scale, advice)


def _refuse_difference(
    what: str, found: np.ndarray, expected: np.ndarray, scale: float, advice: str
) -> None:
    if found.shape != expected.shape:
        raise OnnxError(f"the {what} of the graph has shape {found.shape}, Python's {expected.shape}.")
    away = np.abs(found - expected).reshape(len(expected), -1).max(axis=1, initial=0.0) / scale
    if (away <= TOLERANCE).all():  # false if anything is NaN
        return
    row = int(np.argmax(np.where(np.isnan(away), np.inf, away)))
    raise OnnxError(
        f"the graph does not agree with the model, so it was not written: the {what} of row {row} "
        f"differs by {away[row]:.1e} (relative; {TOLERANCE:g} is allowed).{advice}"
    )


def _expected(model: Any, graph: Graph, rows: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the model's outputs, computed in double, and the rows as inputs of the graph."""
    twin = _in_double(model)
    by_name = _column_transformer(model) is not None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        prepared = _table_features(model)
        if prepared is not None:
            rows = normal_frame(as_frame(rows), prepared.columns_)
            features = _wide(prepared.preprocessor_.transform(rows))
            rest = twin[1:] if isinstance(twin, Pipeline) else twin.model_
            score = rest.decision_function(features)
        else:
            rows = rows if by_name else _wide(rows)
            score = twin.decision_function(rows)
    expected = {"score": score}
    if "probability" in graph.outputs:
        expected["probability"] = model.calibrator_.predict(score)
    if not by_name:
        return expected, {"X": rows.astype(graph.input_type)}
    inputs = {}
    for name, each in graph.inputs.items():
        if each.type.tensor_type.elem_type == graph.onnx.TensorProto.STRING:
            listed = np.asarray(rows[name], dtype=object)
            column = np.array(["" if x is None or x != x else str(x) for x in listed], dtype=object)
        else:
            column = np.asarray(rows[name], dtype=np.float64).astype(graph.input_type)
        inputs[name] = column[:, None]
    return expected, inputs


def _wide(rows: Any) -> np.ndarray:
    """Return rows as a dense float64 array."""
    refuse_odd("X", rows)
    try:
        plain = dense(rows)
        refuse_odd("X", plain)
        return plain.astype(np.float64, copy=False)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"X must hold numbers to compare scores on: {error}") from None


def _in_double(model: Any) -> Any:
    """Return a copy of the model whose kernel map is in float64, so that it scores in float64."""
    twin = deepcopy(model)
    parts = _steps(twin)
    parts += [part.model_ for part in parts if hasattr(part, "model_")]
    parts += [other for part in parts for other in getattr(part, "parts_", [])]  # of a blend
    parts += [part.feature_map_ for part in parts if hasattr(part, "feature_map_")]
    for part in parts:
        for name in ("landmarks_", "frequencies_", "offsets_", "support_rows_"):
            if hasattr(part, name):
                setattr(part, name, getattr(part, name).astype(np.float64))
    return twin


def _made_rows(model: Any) -> Any:
    """Make up rows near landmarks, in the units of the model's scaler."""
    random = np.random.default_rng(0)
    steps = _steps(model)
    first = getattr(steps[0], "preprocessor_", steps[0])
    if isinstance(first, ColumnTransformer):
        return _made_table(first, getattr(model, "model_", steps[-1]), random)
    known = isinstance(first, StandardScaler | QuantileScaler | MetricScaler)
    scaler = first if known else getattr(first, "scaler_", None)
    width = getattr(scaler, "n_features_out_", model.n_features_in_)
    rows: np.ndarray = random.normal(size=(_MADE_ROWS, width))
    points = getattr(getattr(first, "feature_map_", first), "landmarks_", None)
    if points is not None:
        rows = 0.3 * rows + points[random.integers(len(points), size=_MADE_ROWS)]
    return rows if scaler is None else _wide(scaler.inverse_transform(rows))


def _units(scaler: Any, column: int) -> tuple[float, float]:
    """Return the middle and spread of a column's values; 0 and 1 if the scaler does not hold them."""
    if isinstance(scaler, MetricScaler):
        return _units(scaler.scaler, column)
    if isinstance(scaler, QuantileScaler) and column < scaler.n_features_in_:
        low, middle, high = np.quantile(np.unique(scaler.knots_[:, column]), [0.1, 0.5, 0.9])
        return middle, 0.5 * (high - low)
    if isinstance(scaler, StandardScaler) and scaler.mean_ is not None and column < scaler.mean_.size:
        return scaler.mean_[column], scaler.scale_[column]
    return 0.0, 1.0


def _made_table(table: ColumnTransformer, last: Any, random: np.random.Generator) -> Any:
    """Make up a table with missing values where they are imputed, and with unseen levels."""
    made: dict[int, Any] = {i: np.zeros(_MADE_ROWS) for i in range(table.n_features_in_)}
    for label, part, indices in parts_of(table):
        first = _steps(part)[0]
        for position, i in enumerate(indices):
            some = random.random(_MADE_ROWS) < 0.2
            if isinstance(first, OneHotEncoder | LevelMeans):
                if isinstance(first, LevelMeans):
                    levels = np.array(first.encodings[position]["levels"], dtype=object)
                else:
                    levels = first.categories_[position]
                made[i] = levels[random.integers(len(levels), size=_MADE_ROWS)]
                if levels.dtype.kind in "OUS" and getattr(first, "handle_unknown", "") != "error":
                    made[i] = np.where(some, "never seen before", made[i])
                continue
            # A column that reaches the classifier unscaled has its units there.
            scaler, column = first, position
            if not isinstance(first, StandardScaler):
                scaler = getattr(last, "scaler_", None)
                column = table.output_indices_[label].start + position
            middle, size = _units(scaler, column)
            made[i] = middle + size * random.normal(size=_MADE_ROWS)
            if isinstance(first, SimpleImputer):
                made[i][some] = np.nan
    if not hasattr(table, "feature_names_in_"):
        return np.column_stack([made[i] for i in range(table.n_features_in_)])
    return pl.DataFrame({name: list(made[i]) for i, name in enumerate(table.feature_names_in_)})
