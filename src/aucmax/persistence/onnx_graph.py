"""An ONNX graph, node by node: fitted transformers, kernel maps, scores and calibrators."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from aucmax import __version__
from aucmax.estimators.baselines import KernelRankSVM
from aucmax.estimators.kernel_scores import KernelScores
from aucmax.estimators.ranking import LinearScores
from aucmax.features.fourier import FourierFeatures
from aucmax.features.kernels import BOTH
from aucmax.features.nystroem import NystroemFeatures
from aucmax.features.scalers import MetricScaler, QuantileScaler
from aucmax.metrics.calibration import SIGMOID_END, TILT, IsotonicCalibrator, SigmoidCalibrator
from aucmax.rows.validation import is_sparse

#: The versions of ONNX's operators and file that are written: of 2022, which all runtimes know.
_OPSETS = {"": 17, "ai.onnx.ml": 3}
_IR_VERSION = 8

#: The kind of an input that holds no numbers.
TEXT = "text"


class OnnxError(ValueError):
    """A model that has no ONNX graph, or whose graph does not agree with it."""


class Graph:
    """An ONNX graph as it grows: each call adds a node and gives the name of what it computes."""

    def __init__(self, input_type: str) -> None:
        self.onnx = library("onnx")
        self.input_type = np.dtype(input_type)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: dict[str, Any] = {}
        self.outputs: dict[str, Any] = {}

    def add(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        name = f"/{op}_{len(self.nodes)}"
        make = self.onnx.helper.make_node
        self.nodes.append(make(op, inputs, [name], name, domain=domain, **attributes))
        return name

    def constant(self, values: Any, dtype: Any = np.float64) -> str:
        name = f"/constant_{len(self.constants)}"
        array = np.ascontiguousarray(values, dtype=dtype)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def input(self, name: str, width: int, kind: Any = None) -> str:
        """A matrix handed in; numbers come out as double."""
        types, helper = self.onnx.TensorProto, self.onnx.helper
        element = types.STRING
        if kind != TEXT:
            element = helper.np_dtype_to_tensor_dtype(self.input_type)
        self.inputs[name] = helper.make_tensor_value_info(name, element, ["n", width])
        return name if kind == TEXT else self.double(name)

    def output(self, name: str, value: str, shape: list[Any]) -> None:
        free = name
        while free in self.inputs:  # a column of the table may have our name
            free += "_"
        double = self.onnx.TensorProto.DOUBLE
        self.outputs[name] = self.onnx.helper.make_tensor_value_info(free, double, shape)
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [free], f"/{free}"))

    def double(self, value: str) -> str:
        return self.add("Cast", value, to=self.onnx.TensorProto.DOUBLE)

    def columns(self, value: str, indices: Sequence[int] | np.ndarray) -> str:
        return self.add("Gather", value, self.constant(indices, np.int64), axis=1)

    def model(self, metadata: dict[str, str]) -> Any:
        helper, outputs = self.onnx.helper, list(self.outputs.values())
        graph = helper.make_graph(
            self.nodes, "aucmax", list(self.inputs.values()), outputs, self.constants
        )
        model = helper.make_model(
            graph,
            producer_name="aucmax",
            producer_version=__version__,
            ir_version=_IR_VERSION,
            opset_imports=[helper.make_opsetid(*each) for each in _OPSETS.items()],
        )
        helper.set_model_props(model, metadata)
        self.onnx.checker.check_model(model)
        return model


def library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f'to_onnx needs {name}, which is not installed: pip install "aucmax[onnx]"'
        ) from error


# Transformers


def parts_of(table: ColumnTransformer) -> list[tuple[str, Any, list[int]]]:
    """Name, fitted transformer and column numbers of each part that is not dropped."""
    names = list(getattr(table, "feature_names_in_", range(table.n_features_in_)))
    parts = []
    for label, part, columns in table.transformers_:
        if isinstance(part, str) and part == "drop":
            continue
        if isinstance(columns, slice):
            if isinstance(columns.start, str) or isinstance(columns.stop, str):
                raise OnnxError(
                    f"part {label!r} of the ColumnTransformer has a slice of names: list them."
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
    """What a fitted transformer makes of a matrix."""
    if isinstance(part, Pipeline):
        for _, step in part.steps:
            value = transformed(graph, step, value)
        return str(value)
    if isinstance(part, ColumnTransformer):
        return _each_column(graph, part, value)
    if part == "passthrough" or part is None:
        return str(value)
    if isinstance(part, FunctionTransformer) and part.func is None:
        return str(value)
    if isinstance(part, StandardScaler | QuantileScaler | MetricScaler):
        return _scaled(graph, part, value)
    if isinstance(part, SimpleImputer):
        return _imputed(graph, part, value)
    if isinstance(part, OneHotEncoder):
        return _one_hot(graph, part, value)
    if isinstance(part, NystroemFeatures):
        return _kernel_product(graph, part, part.landmarks_, value, part.projection_)
    if isinstance(part, FourierFeatures):
        return _waves(graph, part, value)
    raise OnnxError(
        f"to_onnx does not know {type(part).__name__}. It knows StandardScaler, SimpleImputer, "
        "OneHotEncoder, ColumnTransformer, NystroemFeatures, FourierFeatures and pipelines of them: "
        "apply the rest to the rows before."
    )


def _each_column(graph: Graph, table: ColumnTransformer, value: Any) -> str:
    made = []
    for _, part, indices in parts_of(table):
        if isinstance(value, dict):
            chosen = [value[table.feature_names_in_[i]] for i in indices]
            block = chosen[0] if len(chosen) == 1 else graph.add("Concat", *chosen, axis=1)
        else:
            block = graph.columns(value, indices)
        made.append(transformed(graph, part, block))
    return made[0] if len(made) == 1 else graph.add("Concat", *made, axis=1)


def _scaled(graph: Graph, scaler: Any, value: str) -> str:
    if scaler is None:
        return value
    if isinstance(scaler, QuantileScaler):
        return _interpolated(graph, scaler, value)
    if isinstance(scaler, MetricScaler):
        inner, factor = _scaled(graph, scaler.scaler, value), graph.constant(scaler.metric)
        return graph.add("Mul" if scaler.metric.ndim == 1 else "MatMul", inner, factor)
    if scaler.with_mean:
        value = graph.add("Sub", value, graph.constant(scaler.mean_))
    if scaler.with_std:
        value = graph.add("Div", value, graph.constant(scaler.scale_))
    return value


def _interpolated(graph: Graph, scaler: QuantileScaler, rows: str) -> str:
    """Each column as its first level and a sum of ramps, a column at a time."""
    if len(scaler.knots_) == 1:  # constant columns alone
        return graph.add("Mul", rows, graph.constant(0.0))
    helper, types = graph.onnx.helper, graph.onnx.TensorProto
    info, size = helper.make_tensor_value_info, len(scaler.knots_) - 1
    widths, rises = np.diff(scaler.knots_, axis=0), np.diff(scaler.levels_, axis=0)
    body = helper.make_graph(
        [
            helper.make_node("Unsqueeze", ["/column", "/last"], ["/upright"]),
            helper.make_node("Sub", ["/upright", "/knots"], ["/past"]),
            helper.make_node("Div", ["/past", "/widths"], ["/way"]),
            helper.make_node("Max", ["/way", "/zero"], ["/begun"]),
            helper.make_node("Min", ["/begun", "/one"], ["/ramps"]),
            helper.make_node("MatMul", ["/ramps", "/rises"], ["/risen"]),
            helper.make_node("Add", ["/risen", "/first"], ["/level"]),
        ],
        "levels",
        [
            info("/column", types.DOUBLE, ["n"]),
            *(info(f"/{name}", types.DOUBLE, [size]) for name in ("knots", "widths", "rises")),
            info("/first", types.DOUBLE, []),
        ],
        [info("/level", types.DOUBLE, ["n"])],
        [
            helper.make_tensor("/last", types.INT64, [1], [1]),
            helper.make_tensor("/zero", types.DOUBLE, [], [0.0]),
            helper.make_tensor("/one", types.DOUBLE, [], [1.0]),
        ],
    )
    parts = [
        scaler.knots_[:-1].T,
        np.where(widths > 0, widths, 1.0).T,  # repeated knots rise by nothing
        rises.T,
        scaler.levels_[0],
    ]
    by_column = graph.add("Transpose", rows, perm=[1, 0])
    each = [graph.constant(part) for part in parts]
    made = graph.add("Scan", by_column, *each, body=body, num_scan_inputs=1 + len(each))
    return graph.add("Transpose", made, perm=[1, 0])


def _imputed(graph: Graph, imputer: SimpleImputer, value: str) -> str:
    fill = np.asarray(imputer.statistics_)
    if fill.dtype.kind not in "fiub" or not _is_nan(imputer.missing_values):
        raise OnnxError("to_onnx knows SimpleImputer for numbers with NaN as the missing value alone.")
    hole = graph.add("IsNaN", value)
    kept = np.flatnonzero(~np.isnan(fill))  # a column of holes alone is left out by the imputer
    if imputer.keep_empty_features:
        fill, kept = np.nan_to_num(fill), np.arange(fill.size)
    filled = graph.add("Where", hole, graph.constant(np.nan_to_num(fill)), value)
    if kept.size < fill.size:
        filled = graph.columns(filled, kept)
    if imputer.indicator_ is None or not len(imputer.indicator_.features_):
        return filled
    marks = graph.double(graph.columns(hole, imputer.indicator_.features_))
    return graph.add("Concat", filled, marks, axis=1)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def _one_hot(graph: Graph, encoder: OneHotEncoder, value: str) -> str:
    """Each column's level looked up in a table of what the encoder makes of it, the last row unseen."""
    made = []
    for i, levels in enumerate(encoder.categories_):
        column = graph.columns(value, [i])
        codes = _encoded(encoder, i)
        if levels.dtype.kind in "OUS":
            keys = ["" if level is None or _is_nan(level) else str(level) for level in levels]
            if len(set(keys)) < len(keys):
                raise OnnxError(
                    f"two levels of column {i} of the OneHotEncoder are one as text, in which a "
                    'missing value is "".'
                )
            index = graph.add(
                "LabelEncoder",
                column,
                domain="ai.onnx.ml",
                keys_strings=keys,
                values_int64s=list(range(len(keys))),
                default_int64=len(keys),
            )
            flat = graph.add("Squeeze", index, graph.constant([1], np.int64))
            made.append(graph.add("Gather", graph.constant(codes), flat, axis=0))
        else:
            if np.isnan(levels.astype(np.float64)).any():
                raise OnnxError(f"NaN is a level of column {i} of the OneHotEncoder: impute it before.")
            hits = graph.double(graph.add("Equal", column, graph.constant(levels[None])))
            known = graph.add("MatMul", hits, graph.constant(codes[:-1] - codes[-1]))
            made.append(graph.add("Add", known, graph.constant(codes[-1])))
    return made[0] if len(made) == 1 else graph.add("Concat", *made, axis=1)


def _encoded(encoder: OneHotEncoder, column: int) -> np.ndarray:
    """The encoder's own output for every level of a column, and for one that it has not seen."""
    levels = list(encoder.categories_[column])
    text = encoder.categories_[column].dtype.kind in "OUS"
    unseen: Any = "\0 unseen" if text else max(levels) + 1
    asked = levels if encoder.handle_unknown == "error" else [*levels, unseen]
    rows = np.empty((len(asked), len(encoder.categories_)), dtype=object)
    rows[:] = [[known[0] for known in encoder.categories_]]
    rows[:, column] = asked
    if not any(known.dtype.kind in "OUS" for known in encoder.categories_):
        rows = rows.astype(np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it was fitted with names of columns, and unseen is on purpose
        out = encoder.transform(rows)
    out = np.asarray(out.toarray() if is_sparse(out) else out, dtype=np.float64)
    widths = [_width(encoder, i) for i in range(len(encoder.categories_))]
    start = sum(widths[:column])
    out = out[:, start : start + widths[column]]
    return out if len(asked) > len(levels) else np.vstack([out, np.zeros_like(out[:1])])


def _width(encoder: OneHotEncoder, column: int) -> int:
    pooled = getattr(encoder, "infrequent_categories_", [None] * len(encoder.categories_))[column]
    dropped = encoder.drop_idx_ is not None and encoder.drop_idx_[column] is not None
    return len(encoder.categories_[column]) - (0 if pooled is None else len(pooled) - 1) - dropped


# Scores


def score_of(graph: Graph, model: Any, value: Any) -> str:
    """Scores (n, k) of a classifier."""
    if isinstance(model, Pipeline):
        for _, step in model.steps[:-1]:
            value = transformed(graph, step, value)
        return score_of(graph, model[-1], value)
    if hasattr(model, "preprocessor_") and hasattr(model, "model_"):
        return score_of(graph, model.model_, transformed(graph, model.preprocessor_, value))
    if isinstance(model, KernelScores):
        rows = _scaled(graph, model.scaler_, value)
        if isinstance(model.feature_map_, NystroemFeatures):
            points = model.feature_map_.landmarks_
            score = _kernel_product(graph, model.feature_map_, points, rows, model.dual_coef_.T)
        else:
            waves = _waves(graph, model.feature_map_, rows)
            score = graph.add("MatMul", waves, graph.constant(model.dual_coef_.T))
    elif isinstance(model, KernelRankSVM):
        rows = _scaled(graph, model.scaler_, value)
        score = _kernel_product(graph, model, model.support_rows_, rows, model.dual_coef_.T)
    elif isinstance(model, LinearScores):
        score = graph.add("MatMul", value, graph.constant(model.coef_.T))
    else:
        raise OnnxError(
            f"to_onnx takes a classifier of aucmax, a TableModel or a pipeline that ends in one; got "
            f"{type(model).__name__}."
        )
    return graph.add("Add", score, graph.constant(model.intercept_))


def _waves(graph: Graph, features: FourierFeatures, rows: str) -> str:
    """Random Fourier features."""
    angles = graph.add("MatMul", rows, graph.constant(features.frequencies_))
    # Not every runtime has the cosine in double.
    shift = features.offsets_.astype(np.float64) + np.pi / 2
    waves = graph.add("Sin", graph.add("Add", angles, graph.constant(shift)))
    return graph.add("Mul", waves, graph.constant(np.sqrt(2.0 / shift.size)))


def _kernel_product(graph: Graph, kernel: Any, points: np.ndarray, rows: str, coef: np.ndarray) -> str:
    """``k(X, U) @ coef`` for a kernel as features/kernels.py has it."""
    if not len(points):  # an exact machine that nothing told the classes apart
        points, coef = np.zeros((1, points.shape[1])), np.zeros((1, coef.shape[1]))
    points = points.astype(np.float64)
    if kernel.kernel == BOTH:
        near = _kernel_values(graph, kernel, "rbf", kernel.gamma_, points, rows)
        other = _kernel_values(graph, kernel, "laplacian", kernel.gamma_l1_, points, rows)
        values = graph.add("Concat", near, other, axis=1)
    else:
        values = _kernel_values(graph, kernel, kernel.kernel, kernel.gamma_, points, rows)
    return graph.add("MatMul", values, graph.constant(coef))


def _kernel_values(
    graph: Graph, kernel: Any, name: str, gamma: float, points: np.ndarray, rows: str
) -> str:
    if name == "rbf":
        # Moved to their mean, rows and landmarks keep the digits of their distance.
        centre = points.mean(axis=0)
        rows, points = graph.add("Sub", rows, graph.constant(centre)), points - centre
        squares = graph.add("ReduceSum", graph.add("Mul", rows, rows), graph.constant([1], np.int64))
        products = graph.add("MatMul", rows, graph.constant(2.0 * points.T))
        below = graph.add("Sub", products, graph.constant((points**2).sum(axis=1)))
        distance = graph.add("Min", graph.add("Sub", below, squares), graph.constant(0.0))
        return graph.add("Exp", graph.add("Mul", distance, graph.constant(gamma)))
    if name == "laplacian":
        distance = _manhattan(graph, rows, points)
        return graph.add("Exp", graph.add("Mul", distance, graph.constant(-gamma)))
    factor = gamma if name == "polynomial" else 1.0
    values = graph.add("MatMul", rows, graph.constant(factor * points.T))
    if name == "polynomial":
        values = graph.add("Add", values, graph.constant(kernel.coef0))
        values = graph.add("Pow", values, graph.constant(kernel.degree))
    return values


def _manhattan(graph: Graph, rows: str, points: np.ndarray) -> str:
    """L1 distances (n, v), a feature at a time."""
    helper, double = graph.onnx.helper, graph.onnx.TensorProto.DOUBLE
    info = helper.make_tensor_value_info
    last = helper.make_tensor("/last", graph.onnx.TensorProto.INT64, [1], [1])
    body = helper.make_graph(
        [
            helper.make_node("Unsqueeze", ["/feature", "/last"], ["/upright"]),
            helper.make_node("Sub", ["/upright", "/points"], ["/apart"]),
            helper.make_node("Abs", ["/apart"], ["/size"]),
            helper.make_node("Add", ["/so_far", "/size"], ["/sum"]),
        ],
        "distance",
        [
            info("/so_far", double, ["n", len(points)]),
            info("/feature", double, ["n"]),
            info("/points", double, [len(points)]),
        ],
        [info("/sum", double, ["n", len(points)])],
        [last],
    )
    first = [graph.constant([each], np.int64) for each in (0, 1)]
    count = graph.add("Slice", graph.add("Shape", rows), *first)
    shape = graph.add("Concat", count, graph.constant([len(points)], np.int64), axis=0)
    zeros = graph.add(
        "ConstantOfShape", shape, value=graph.onnx.numpy_helper.from_array(np.zeros(1), "zero")
    )
    by_feature = graph.add("Transpose", rows, perm=[1, 0])
    return graph.add("Scan", zeros, by_feature, graph.constant(points.T), body=body, num_scan_inputs=2)


# Probabilities


def probability(graph: Graph, calibrator: Any, score: str) -> str:
    if isinstance(calibrator, SigmoidCalibrator):
        return _sigmoid(graph, calibrator, score)
    if isinstance(calibrator, IsotonicCalibrator):
        return _isotonic(graph, calibrator, score)
    raise OnnxError(f"to_onnx does not know the calibrator {type(calibrator).__name__}.")


def _sigmoid(graph: Graph, calibrator: Any, score: str) -> str:
    """As SigmoidCalibrator.predict has it, with its tails."""
    one = graph.constant(1.0)
    logits = graph.add("Mul", score, graph.constant(calibrator.slope_))
    logits = graph.add("Add", logits, graph.constant(calibrator.intercept_))
    size = graph.add("Abs", logits)
    near = graph.add("Min", size, graph.constant(SIGMOID_END))
    small = graph.add("Exp", graph.add("Neg", near))
    large = graph.add("Div", one, graph.add("Add", small, one))
    beyond = graph.add("Mul", large, graph.add("Sub", size, near))
    rest = graph.add("Div", graph.add("Mul", small, large), graph.add("Add", beyond, one))
    below = graph.add("Less", logits, graph.constant(0.0))
    return graph.add("Where", below, rest, graph.add("Sub", one, rest))


def _isotonic(graph: Graph, calibrator: Any, score: str) -> str:
    """As IsotonicCalibrator.predict has it: a sum of ramps, and the two tails."""
    knots, values = calibrator.scores_, calibrator.probabilities_
    zero, one = graph.constant(0.0), graph.constant(1.0)
    found = graph.constant(values[:1])
    if knots.size > 1:
        upright = graph.add("Unsqueeze", score, graph.constant([1], np.int64))
        way = graph.add("Sub", upright, graph.constant(knots[:-1]))
        way = graph.add("Div", way, graph.constant(np.diff(knots)))
        ramps = graph.add("Min", graph.add("Max", way, zero), one)
        found = graph.add("Add", graph.add("MatMul", ramps, graph.constant(np.diff(values))), found)
    for end, sign, share in ((knots[0], -1.0, -values[0]), (knots[-1], 1.0, 1.0 - values[-1])):
        distance = graph.add("Sub", score, graph.constant(end))
        steps = graph.add("Mul", distance, graph.constant(sign / calibrator.spread_))
        steps = graph.add("Max", steps, zero)
        tail = graph.add("Div", steps, graph.add("Add", steps, one))
        found = graph.add("Add", found, graph.add("Mul", tail, graph.constant(TILT * share)))
    return found
