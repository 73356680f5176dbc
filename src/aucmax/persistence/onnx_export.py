"""Models as ONNX graphs: preprocessing, map, score and probability in one file that needs no Python.

The graph computes in double precision whatever the model was fitted in: the squares of an rbf kernel
and the large, opposite weights over landmarks lose digits otherwise. Memory is that of the kernel
values, rows x landmarks x 8 bytes a few times over, so hand it rows in batches. (The laplacian's
distance is summed feature by feature in a Scan; as one broadcast it would take that for every feature.)

====================================  ==============================================================
model                                 inputs
====================================  ==============================================================
a classifier, or a pipeline of them   ``X`` (n, d), float32 or float64
a pipeline that begins with a         one for each column, by its name, (n, 1): numbers, with NaN for
ColumnTransformer fitted on a frame   a missing value; text for categories, with "" for one
TableModel                            the same; booleans are 0, 1 or NaN, text without blanks around
====================================  ==============================================================

The output of a classifier is ``score``, as ``decision_function`` has it: (n,) for two classes, else
(n, classes). A TableModel has two, ``score`` and ``probability`` of its positive label, (n,), as its
methods ``scores`` and ``probabilities`` give them. All are double. The graph's metadata has the classes
and, of two classes, the positive one, which a high score speaks for.
"""

from __future__ import annotations

import json
import os
import warnings
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from aucmax.features.scalers import MetricScaler, QuantileScaler
from aucmax.persistence.onnx_graph import (
    TEXT,
    Graph,
    OnnxError,
    library,
    parts_of,
    probability,
    score_of,
)
from aucmax.rows.validation import is_sparse, refuse_odd
from aucmax.runtime.output_files import replacing
from aucmax.runtime.parameters import check_choice, warn_user

__all__ = ["OnnxError", "to_onnx"]

#: Largest difference from Python, of the largest score; of probabilities, as it is.
TOLERANCE = 1e-5

#: Of the largest weight, what a score must be to be more than rounding (with a margin).
_ROUNDING = 1e-8

#: Rows made to compare on where none are given.
_MADE_ROWS = 64

#: Rows that the graph is handed at a time; more were slower.
_BATCH = 100


def to_onnx(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    X: Any = None,
    *,
    input_type: str = "float32",
) -> Any:
    """Export a fitted model as one ONNX graph, and compare the two.

    Parameters
    ----------
    model : estimator
        A classifier of aucmax, a pipeline that ends in one, or a :class:`~aucmax.tables.TableModel`. In
        front of it may stand StandardScaler, SimpleImputer, OneHotEncoder, ColumnTransformer,
        NystroemFeatures and FourierFeatures.
    path : path, optional
        A file that is there is replaced, by a whole one or not at all.
        Where to write it, ending in ``.onnx`` by convention.
    X : array or data frame, optional
        Rows to compare scores on. Without, some are made up from what the model knows of its columns.
    input_type : {"float32", "float64"}, default="float32"
        Of numbers. A column whose values differ less than float32 can tell (times in seconds since
        1970, say) needs "float64", and the comparison says so.

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    OnnxError
        For a part of the model that is not known here, and when a score differs from that of Python by
        more than 1e-5 of the largest (a probability by more than 1e-5). Nothing is written then. Python
        is made to compute in double for this: with float32, as it scores models that were fitted to
        float32 or to many rows, its own rounding may be larger.

    Notes
    -----
    The comparison needs onnxruntime, without which a warning says that it was left out.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from aucmax import KernelAUCClassifier
    >>> from aucmax.persistence.onnx_export import to_onnx
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = KernelAUCClassifier(n_landmarks=50, random_state=0).fit(X, y)
    >>> graph = to_onnx(model, X=X)  # doctest: +SKIP
    >>> [each.name for each in graph.graph.output]  # doctest: +SKIP
    ['score']
    """
    check_choice("input_type", input_type, ("float32", "float64"))
    check_is_fitted(model)
    graph = Graph(input_type)
    score = score_of(graph, model, _inputs(graph, model))
    shape: list[Any] = ["n", len(_last(model).classes_)]
    if shape[1] == 2:
        score, shape = graph.add("Squeeze", score, graph.constant([1], np.int64)), ["n"]
    graph.output("score", score, shape)
    calibrator = getattr(model, "calibrator_", None)
    if calibrator is not None:
        graph.output("probability", probability(graph, calibrator, score), ["n"])
    made = graph.model(_metadata(model))
    _compare(model, made, graph, X)
    if path is not None:
        with replacing(Path(path)) as file:
            file.write(made.SerializeToString())
    return made


def _last(model: Any) -> Any:
    return model[-1] if isinstance(model, Pipeline) else model


def _metadata(model: Any) -> dict[str, str]:
    """What a user of the graph alone would ask: which classes, which of them a high score means, and
    from which score on."""
    classes = _last(model).classes_.tolist()
    told = {"kind": type(_last(model)).__name__, "classes": json.dumps(classes)}
    if len(classes) == 2:
        told["positive"] = json.dumps(getattr(model, "positive_label_", classes[1]))
    threshold = getattr(model, "threshold_", None)
    if threshold is not None:
        told["threshold"] = repr(float(threshold.threshold))
    return told


# What goes in: a matrix, or the columns of a table


def _columns_of(model: Any) -> ColumnTransformer | None:
    """The part that takes a table's columns by name, if the model begins with one."""
    first = getattr(model, "preprocessor_", model[0] if isinstance(model, Pipeline) else None)
    known = isinstance(first, ColumnTransformer) and hasattr(first, "feature_names_in_")
    return first if known else None


def _inputs(graph: Graph, model: Any) -> Any:
    """The name of the matrix that rows come in, or of each column, by column."""
    table = _columns_of(model)
    if table is None:
        return graph.input("X", model.n_features_in_)
    taken = {i for _, _, indices in parts_of(table) for i in indices}
    names = [table.feature_names_in_[i] for i in sorted(taken)]
    if hasattr(model, "columns_"):
        names = [column["name"] for column in model.columns_ if column["name"] in names]
    text = _text_columns(table)
    return {name: graph.input(name, 1, TEXT if name in text else None) for name in names}


def _text_columns(table: ColumnTransformer) -> set[str]:
    text = set()
    for _, part, indices in parts_of(table):
        encoder = part[0] if isinstance(part, Pipeline) else part
        if isinstance(encoder, OneHotEncoder):
            for i, levels in zip(indices, encoder.categories_, strict=True):
                if levels.dtype.kind in "OUS":
                    text.add(table.feature_names_in_[i])
    return text


# The comparison with Python


def _compare(model: Any, made: Any, graph: Graph, X: Any) -> None:
    """Refuse a graph whose scores, or probabilities, are not the model's."""
    try:
        runtime = library("onnxruntime")
    except ImportError:
        warn_user(
            "The ONNX graph was not compared with the model, since onnxruntime is not installed: "
            'pip install "aucmax[onnx]"'
        )
        return
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(
        made.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    rows = _made_rows(model) if X is None else X
    width: tuple[int, ...] = getattr(rows, "shape", ())
    # A table's columns are found by name, so it may have others.
    columns = getattr(model, "n_features_in_", None) if _columns_of(model) is None else None
    if columns is not None and len(width) == 2 and width[1] != columns:
        raise ValueError(f"X has {width[1]} columns, and the model was fitted to {columns}.")
    expected, fed = _expected(model, graph, rows)
    names = [each.name for each in graph.outputs.values()]
    batches = [
        session.run(names, {name: column[start : start + _BATCH] for name, column in fed.items()})
        for start in range(0, len(expected["score"]), _BATCH)
    ]
    found = {
        what: np.concatenate(each)
        for what, each in zip(graph.outputs, zip(*batches, strict=True), strict=True)
    }
    # Where all rows are alike, scores are the rounding of the terms that they are sums of.
    terms = _ROUNDING * float(np.abs(_weights(_last(model))).max(initial=0.0))
    largest = float(np.abs(expected["score"]).max(initial=max(terms, 1e-300)))
    advice = ""
    if graph.input_type == np.float32:
        advice = ' Numbers that float32 cannot hold closely enough need input_type="float64".'
    for what, scale in (("score", largest), ("probability", 1.0)):
        if what in found:
            _refuse_difference(what, found[what], expected[what], scale, advice)


def _weights(model: Any) -> np.ndarray:
    """Those that a score is the weighted sum with."""
    model = getattr(model, "model_", model)
    return np.asarray(getattr(model, "dual_coef_", getattr(model, "coef_", 0.0)))


def _refuse_difference(
    what: str, found: np.ndarray, expected: np.ndarray, scale: float, advice: str
) -> None:
    if found.shape != expected.shape:
        raise OnnxError(
            f"the graph gives a {what} of shape {found.shape}, and Python {expected.shape}."
        )
    away = np.abs(found - expected).reshape(len(expected), -1).max(axis=1, initial=0.0) / scale
    if (away <= TOLERANCE).all():  # not so where something is NaN
        return
    row = int(np.argmax(np.where(np.isnan(away), np.inf, away)))
    raise OnnxError(
        f"the graph does not agree with the model, so it was not written: the {what} of row {row} "
        f"differs by {away[row]:.1e} (relative; {TOLERANCE:g} is allowed).{advice}"
    )


def _expected(model: Any, graph: Graph, rows: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """What the model says of rows, computed in double, and the rows as the graph takes them."""
    twin = _in_double(model)
    if hasattr(model, "preprocessor_"):
        from aucmax.reading.frames import as_frame
        from aucmax.tables.columns import normal_frame

        rows = normal_frame(as_frame(rows), model.columns_)
        score = twin.model_.decision_function(_wide(model.preprocessor_.transform(rows)))
    elif _columns_of(model) is not None:
        score = twin.decision_function(rows)
    else:
        rows = _wide(rows)
        score = _quietly(twin.decision_function, rows)
    expected = {"score": score}
    if "probability" in graph.outputs:
        expected["probability"] = model.calibrator_.predict(score)
    if _columns_of(model) is None:
        return expected, {"X": rows.astype(graph.input_type)}
    return expected, {name: _column(rows[name], graph, name) for name in graph.inputs}


def _column(values: Any, graph: Graph, name: str) -> np.ndarray:
    if graph.inputs[name].type.tensor_type.elem_type == graph.onnx.TensorProto.STRING:
        listed = np.asarray(values, dtype=object)
        text = ["" if each is None or each != each else str(each) for each in listed]
        return np.array(text, dtype=object)[:, None]
    return np.asarray(values, dtype=np.float64).astype(graph.input_type)[:, None]


def _wide(rows: Any) -> np.ndarray:
    refuse_odd("X", rows)
    try:
        plain = np.asarray(rows.toarray() if is_sparse(rows) else rows)
        refuse_odd("X", plain)
        return plain.astype(np.float64, copy=False)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"X must hold numbers to compare scores on: {error}") from None


def _quietly(call: Any, rows: np.ndarray) -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        return call(rows)


def _in_double(model: Any) -> Any:
    """The same model with its kernel map in float64, in which it then scores."""
    twin = deepcopy(model)
    parts = [step for _, step in twin.steps] if isinstance(twin, Pipeline) else [twin]
    parts += [part.model_ for part in parts if hasattr(part, "model_")]
    parts += [part.feature_map_ for part in parts if hasattr(part, "feature_map_")]
    for part in parts:
        for name in ("landmarks_", "frequencies_", "offsets_", "support_rows_"):
            if hasattr(part, name):
                setattr(part, name, getattr(part, name).astype(np.float64))
    return twin


def _made_rows(model: Any) -> Any:
    """Rows such as the model might see: around landmarks, in the units of what scales them."""
    random = np.random.default_rng(0)
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    first = getattr(model, "preprocessor_", steps[0])
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
    """Middle and size of a column's values, as far as a scaler knows them."""
    if isinstance(scaler, MetricScaler):
        return _units(scaler.scaler, column)
    if isinstance(scaler, QuantileScaler) and column < scaler.n_features_in_:
        low, middle, high = np.quantile(np.unique(scaler.knots_[:, column]), [0.1, 0.5, 0.9])
        return middle, 0.5 * (high - low)
    if isinstance(scaler, StandardScaler) and scaler.mean_ is not None and column < scaler.mean_.size:
        return scaler.mean_[column], scaler.scale_[column]
    return 0.0, 1.0


def _made_table(table: ColumnTransformer, last: Any, random: np.random.Generator) -> Any:
    """A value of each column for each row, with holes where they are imputed and levels unseen."""
    made: dict[int, Any] = {i: np.zeros(_MADE_ROWS) for i in range(table.n_features_in_)}
    for label, part, indices in parts_of(table):
        first = part[0] if isinstance(part, Pipeline) else part
        for place, i in enumerate(indices):
            some = random.random(_MADE_ROWS) < 0.2
            if isinstance(first, OneHotEncoder):
                levels = first.categories_[place]
                made[i] = levels[random.integers(len(levels), size=_MADE_ROWS)]
                if levels.dtype.kind in "OUS" and first.handle_unknown != "error":
                    made[i] = np.where(some, "never seen before", made[i])
                continue
            # A column that reaches the classifier as it is has its units there.
            scaler, at = getattr(last, "scaler_", None), table.output_indices_[label].start + place
            if isinstance(first, StandardScaler):
                scaler, at = first, place
            middle, size = _units(scaler, at)
            made[i] = middle + size * random.normal(size=_MADE_ROWS)
            if isinstance(first, SimpleImputer):
                made[i][some] = np.nan
    if not hasattr(table, "feature_names_in_"):
        return np.column_stack([made[i] for i in range(table.n_features_in_)])
    import polars as pl

    return pl.DataFrame({name: list(made[i]) for i, name in enumerate(table.feature_names_in_)})
