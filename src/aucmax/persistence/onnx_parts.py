"""The parts of a model as nodes of an ONNX graph: transformers, kernel maps, scores and calibrators."""

from __future__ import annotations

import warnings
from functools import partial, reduce
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from aucmax.features.fourier import FourierFeatures, FourierMap
from aucmax.features.kernels import KernelSpec
from aucmax.features.nystroem import NystroemFeatures
from aucmax.features.scalers import MetricScaler, QuantileScaler
from aucmax.fitting.machines import Blend, KernelMachine, LinearMachine, SupportMachine
from aucmax.metrics.calibration import SIGMOID_END, TILT, IsotonicCalibrator, SigmoidCalibrator
from aucmax.persistence.onnx_graph import Graph, OnnxError
from aucmax.rows.interface import dense
from aucmax.tables.table_features import TableFeatures
from aucmax.tables.target_encoding import LevelMeans


def parts_of(table: ColumnTransformer) -> list[tuple[str, Any, list[int]]]:
    """Return the name, fitted transformer and column indices of each part that is not dropped."""
    names = list(getattr(table, "feature_names_in_", range(table.n_features_in_)))
    parts = []
    for label, part, columns in table.transformers_:
        if isinstance(part, str) and part == "drop":
            continue
        if isinstance(columns, slice):
            if isinstance(columns.start, str) or isinstance(columns.stop, str):
                raise OnnxError(
                    f"part {label!r} of the ColumnTransformer has a slice of names: list the names "
                    "instead."
                )
            indices = list(range(len(names))[columns])
        else:
            listed = np.atleast_1d(np.asarray(columns))
            if listed.dtype == bool:
                listed = np.flatnonzero(listed)
            indices = [names.index(each) if isinstance(each, str) else int(each) for each in listed]
        if indices:
            parts.append((label, part, indices))
    return parts


def transformed(graph: Graph, part: Any, value: Any) -> str:
    """Return the result of a fitted transformer on a matrix."""
    if isinstance(part, Pipeline):
        for _, step in part.steps:
            value = transformed(graph, step, value)
        return str(value)
    if part is None or part == "passthrough":
        return str(value)
    if isinstance(part, FunctionTransformer) and part.func is None:
        return str(value)
    if isinstance(part, TableFeatures):
        return transformed(graph, part.preprocessor_, value)
    known = (
        (ColumnTransformer, _each_column),
        (StandardScaler | QuantileScaler | MetricScaler, _scaled),
        (SimpleImputer, _imputed),
        (OneHotEncoder, _one_hot),
        (LevelMeans, _level_means),
        (NystroemFeatures, _nystroem),
        (FourierFeatures, _fourier),
    )
    for kind, build in known:
        if isinstance(part, kind):
            return build(graph, part, value)
    raise OnnxError(
        f"to_onnx does not support {type(part).__name__}. It supports TableFeatures, StandardScaler, "
        "SimpleImputer, OneHotEncoder, ColumnTransformer, NystroemFeatures, FourierFeatures and "
        "pipelines of them: transform the rows with the other steps first."
    )


def _each_column(graph: Graph, table: ColumnTransformer, value: Any) -> str:
    made = []
    for _, part, indices in parts_of(table):
        if isinstance(value, dict):
            block = graph.joined([value[table.feature_names_in_[i]] for i in indices])
        else:
            block = graph.columns(value, indices)
        made.append(transformed(graph, part, block))
    return graph.joined(made)


def _scaled(graph: Graph, scaler: Any, value: str) -> str:
    if scaler is None:
        return value
    if isinstance(scaler, QuantileScaler):
        return _interpolated(graph, scaler, value)
    if isinstance(scaler, MetricScaler):
        inner = _scaled(graph, scaler.scaler, value)
        return graph.add("Mul" if scaler.metric.ndim == 1 else "MatMul", inner, scaler.metric)
    if scaler.with_mean:
        value = graph.add("Sub", value, scaler.mean_)
    if scaler.with_std:
        value = graph.add("Div", value, scaler.scale_)
    return value


def _interpolated(graph: Graph, scaler: QuantileScaler, rows: str) -> str:
    """Return each column as its first level and a sum of ramps, one column at a time."""
    if len(scaler.knots_) == 1:  # all columns are constant
        return graph.add("Mul", rows, 0.0)
    widths, size = np.diff(scaler.knots_, axis=0), len(scaler.knots_) - 1
    knots = ", ".join(f"double[{size}] {name}" for name in ("knots", "widths", "rises"))
    body = graph.scan_body(
        f"""slice (double[n] column, {knots}, double first) => (double[n] level)
        <int64[1] axis = {{1}}, double zero = {{0.0}}, double one = {{1.0}}> {{
            upright = Unsqueeze (column, axis)
            past = Sub (upright, knots)
            way = Div (past, widths)
            begun = Max (way, zero)
            ramps = Min (begun, one)
            risen = MatMul (ramps, rises)
            level = Add (risen, first)
        }}"""
    )
    parts = (
        scaler.knots_[:-1].T,
        np.where(widths > 0, widths, 1.0).T,  # repeated knots rise by nothing
        np.diff(scaler.levels_, axis=0).T,
        scaler.levels_[0],
    )
    by_column = graph.add("Transpose", rows, perm=[1, 0])
    made = graph.add("Scan", by_column, *parts, body=body, num_scan_inputs=1 + len(parts))
    return graph.add("Transpose", made, perm=[1, 0])


def _imputed(graph: Graph, imputer: SimpleImputer, value: str) -> str:
    fill = np.asarray(imputer.statistics_)
    if fill.dtype.kind not in "fiub" or not _is_nan(imputer.missing_values):
        raise OnnxError("to_onnx supports SimpleImputer only for numbers, with NaN as missing value.")
    missing = graph.add("IsNaN", value)
    filled = graph.add("Where", missing, np.nan_to_num(fill), value)
    empty = np.isnan(fill)
    if empty.any() and not imputer.keep_empty_features:  # the imputer drops columns without a value
        filled = graph.columns(filled, np.flatnonzero(~empty))
    if imputer.indicator_ is None or not len(imputer.indicator_.features_):
        return filled
    return graph.joined([filled, graph.double(graph.columns(missing, imputer.indicator_.features_))])


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def _one_hot(graph: Graph, encoder: OneHotEncoder, value: str) -> str:
    """Look up each level in a table of the encoder's output, whose last row is for unseen levels."""
    made = []
    for i, levels in enumerate(encoder.categories_):
        column, codes = graph.columns(value, [i]), _encoded(encoder, i)
        if levels.dtype.kind in "OUS":
            keys = ["" if level is None or _is_nan(level) else str(level) for level in levels]
            if len(set(keys)) < len(keys):
                raise OnnxError(
                    f'two levels of column {i} are equal as text (a missing value is ""): join them.'
                )
            made.append(_looked_up(graph, column, keys, codes))
        else:
            if np.isnan(levels.astype(np.float64)).any():
                raise OnnxError(f"NaN is a level of column {i} of the OneHotEncoder: impute it first.")
            hits = graph.double(graph.add("Equal", column, levels[None]))
            made.append(graph.add("Add", graph.add("MatMul", hits, codes[:-1] - codes[-1]), codes[-1]))
    return graph.joined(made)


def _looked_up(graph: Graph, column: str, keys: list[str], table: np.ndarray) -> str:
    """Return the row of a table for each level; the last row is for levels that are not listed."""
    numbers = {"values_int64s": list(range(len(keys))), "default_int64": len(keys)}
    index = graph.add("LabelEncoder", column, domain="ai.onnx.ml", keys_strings=keys, **numbers)
    return graph.add("Gather", table, graph.add("Squeeze", index, graph.indices(1)), axis=0)


def _level_means(graph: Graph, means: LevelMeans, value: str) -> str:
    """Look up the mean of each level."""
    made = []
    for i, each in enumerate(means.encodings):
        table = np.array([*each["means"], each["prior"]], dtype=np.float64)[:, None]
        made.append(_looked_up(graph, graph.columns(value, [i]), each["levels"], table))
    return graph.joined(made)


def _encoded(encoder: OneHotEncoder, column: int) -> np.ndarray:
    """Return the encoder's own output for every level of a column, and for an unseen one."""
    known = encoder.categories_
    text = [levels.dtype.kind in "OUS" for levels in known]
    levels = list(known[column])
    unseen: Any = "\0 unseen" if text[column] else max(levels) + 1
    asked = levels if encoder.handle_unknown == "error" else [*levels, unseen]
    rows = np.empty((len(asked), len(known)), dtype=object)
    rows[:] = [[each[0] for each in known]]
    rows[:, column] = asked
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about column names and, on purpose, an unseen level
        out = encoder.transform(rows if any(text) else rows.astype(np.float64))
    out = dense(out).astype(np.float64)
    pooled = getattr(encoder, "infrequent_categories_", [None] * len(known))
    dropped = [None] * len(known) if encoder.drop_idx_ is None else encoder.drop_idx_
    widths = [
        len(each) - (0 if rare is None else len(rare) - 1) - (drop is not None)
        for each, rare, drop in zip(known, pooled, dropped, strict=True)
    ]
    start = sum(widths[:column])
    out = out[:, start : start + widths[column]]
    return out if len(asked) > len(levels) else np.vstack([out, np.zeros_like(out[:1])])


def score_of(graph: Graph, model: Any, value: Any) -> str:
    """Return the scores (n, k) of a classifier."""
    if isinstance(model, Pipeline):
        for _, step in model.steps[:-1]:
            value = transformed(graph, step, value)
        return score_of(graph, model[-1], value)
    if hasattr(model, "preprocessor_") and hasattr(model, "model_"):
        return score_of(graph, model.model_, transformed(graph, model.preprocessor_, value))
    machine = getattr(model, "machine_", None)
    if not isinstance(machine, LinearMachine | SupportMachine | KernelMachine | Blend):
        raise OnnxError(
            f"to_onnx takes a classifier of aucmax, or a pipeline of one; got {type(model).__name__}."
        )
    return graph.add("Add", _machine_score(graph, machine, value), model.intercept_)


def _machine_score(
    graph: Graph, machine: LinearMachine | SupportMachine | KernelMachine | Blend, value: Any
) -> str:
    """Return the scores (n, k) of a machine before the threshold."""
    if isinstance(machine, LinearMachine):
        return graph.add("MatMul", value, machine.coef.T)
    if isinstance(machine, Blend):
        terms = [
            graph.add("Mul", _machine_score(graph, each, value), float(weight))
            for each, weight in zip(machine.machines, machine.weights, strict=True)
        ]
        return reduce(partial(graph.add, "Add"), terms)
    rows, coef = _scaled(graph, machine.scaler, value), machine.dual_coef.T
    if isinstance(machine, SupportMachine):
        return _kernel_product(graph, machine.spec, rows, machine.support_rows, coef)
    fitted = machine.feature_map.kernel_map
    if isinstance(fitted, FourierMap):
        return graph.add("MatMul", _waves(graph, fitted, rows), coef)
    return _kernel_product(graph, fitted.spec, rows, fitted.landmarks, coef)


def _waves(graph: Graph, fitted: FourierMap, rows: str) -> str:
    """Return random Fourier features."""
    angles = graph.add("MatMul", rows, fitted.frequencies)
    # A shifted sine, because not every runtime has the cosine in double.
    shift = fitted.offsets.astype(np.float64) + np.pi / 2
    return graph.add(
        "Mul", graph.add("Sin", graph.add("Add", angles, shift)), np.sqrt(2.0 / shift.size)
    )


def _fourier(graph: Graph, features: FourierFeatures, rows: str) -> str:
    return _waves(graph, features.map, rows)


def _nystroem(graph: Graph, features: NystroemFeatures, rows: str) -> str:
    return _kernel_product(graph, features.spec, rows, features.landmarks_, features.projection_)


def _kernel_product(
    graph: Graph, spec: KernelSpec, rows: str, points: np.ndarray, coef: np.ndarray
) -> str:
    """Return ``k(X, U) @ coef`` for a kernel of ``features/kernels.py``."""
    if not len(points):  # an exact machine without support rows
        points, coef = np.zeros((1, points.shape[1])), np.zeros((1, coef.shape[1]))
    points = points.astype(np.float64)
    values = [_kernel_values(graph, part, points, rows) for part in spec.parts]
    return graph.add("MatMul", graph.joined(values), coef)


def _kernel_values(graph: Graph, spec: KernelSpec, points: np.ndarray, rows: str) -> str:
    if spec.name == "rbf":
        # Centred rows and landmarks keep more digits of their distance.
        centre = points.mean(axis=0)
        rows, points = graph.add("Sub", rows, centre), points - centre
        squares = graph.add("ReduceSum", graph.add("Mul", rows, rows), graph.indices(1))
        products = graph.add("MatMul", rows, 2.0 * points.T)
        below = graph.add("Sub", products, (points**2).sum(axis=1))
        distance = graph.add("Min", graph.add("Sub", below, squares), 0.0)
        return graph.add("Exp", graph.add("Mul", distance, spec.gamma))
    if spec.name == "laplacian":
        return graph.add("Exp", graph.add("Mul", _manhattan(graph, rows, points), -spec.gamma))
    if spec.name == "polynomial":
        products = graph.add("MatMul", rows, spec.gamma * points.T)
        return graph.add("Pow", graph.add("Add", products, spec.coef0), spec.degree)
    if spec.name == "linear":
        return graph.add("MatMul", rows, points.T)
    raise OnnxError(f"to_onnx does not support the {spec.name} kernel.")


def _manhattan(graph: Graph, rows: str, points: np.ndarray) -> str:
    """Return L1 distances (n, v), summed feature by feature: a broadcast would hold all of them."""
    size = len(points)
    body = graph.scan_body(
        f"""slice (double[n, {size}] so_far, double[n] feature, double[{size}] points)
        => (double[n, {size}] sum) <int64[1] axis = {{1}}> {{
            upright = Unsqueeze (feature, axis)
            apart = Sub (upright, points)
            step = Abs (apart)
            sum = Add (so_far, step)
        }}"""
    )
    count = graph.add("Slice", graph.add("Shape", rows), graph.indices(0), graph.indices(1))
    shape = graph.add("Concat", count, graph.indices(size), axis=0)
    zero = graph.onnx.numpy_helper.from_array(np.zeros(1), "zero")
    zeros = graph.add("ConstantOfShape", shape, value=zero)
    by_feature = graph.add("Transpose", rows, perm=[1, 0])
    return graph.add("Scan", zeros, by_feature, points.T, body=body, num_scan_inputs=2)


def probability(graph: Graph, calibrator: Any, score: str) -> str:
    """Return the probabilities (n,) of a calibrator, as its ``predict`` computes them."""
    if isinstance(calibrator, IsotonicCalibrator):
        return _isotonic(graph, calibrator, score)
    if not isinstance(calibrator, SigmoidCalibrator):
        raise OnnxError(f"to_onnx does not support the calibrator {type(calibrator).__name__}.")
    logits = graph.add("Add", graph.add("Mul", score, calibrator.slope_), calibrator.intercept_)
    size = graph.add("Abs", logits)
    near = graph.add("Min", size, SIGMOID_END)
    small = graph.add("Exp", graph.add("Neg", near))
    large = graph.add("Div", 1.0, graph.add("Add", small, 1.0))
    beyond = graph.add("Mul", large, graph.add("Sub", size, near))
    rest = graph.add("Div", graph.add("Mul", small, large), graph.add("Add", beyond, 1.0))
    return graph.add("Where", graph.add("Less", logits, 0.0), rest, graph.add("Sub", 1.0, rest))


def _isotonic(graph: Graph, calibrator: IsotonicCalibrator, score: str) -> str:
    """Return a sum of ramps and the two tails."""
    knots, values = calibrator.scores_, calibrator.probabilities_
    found = graph.constant(values[:1])
    if knots.size > 1:
        past = graph.add("Sub", graph.add("Unsqueeze", score, graph.indices(1)), knots[:-1])
        way = graph.add("Div", past, np.diff(knots))
        ramps = graph.add("Min", graph.add("Max", way, 0.0), 1.0)
        found = graph.add("Add", graph.add("MatMul", ramps, np.diff(values)), found)
    for end, sign, share in ((knots[0], -1.0, -values[0]), (knots[-1], 1.0, 1.0 - values[-1])):
        steps = graph.add("Mul", graph.add("Sub", score, end), sign / calibrator.spread_)
        steps = graph.add("Max", steps, 0.0)
        tail = graph.add("Div", steps, graph.add("Add", steps, 1.0))
        found = graph.add("Add", found, graph.add("Mul", tail, TILT * share))
    return found
