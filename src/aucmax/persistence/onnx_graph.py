"""Build an ONNX graph node by node."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from aucmax import __version__
from aucmax.runtime.installing import extra_command

# Versions of ONNX's operators and file format: those of 2022, which all runtimes support.
_OPSETS = {"": 17, "ai.onnx.ml": 3}
_IR_VERSION = 8


class OnnxError(ValueError):
    """A model that cannot be exported to ONNX, or whose graph gives other scores."""


class Graph:
    """An ONNX graph under construction: each call adds a node and returns the name of its result."""

    def __init__(self, input_type: str) -> None:
        self.onnx = library("onnx")
        self.input_type = np.dtype(input_type)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: dict[str, Any] = {}
        self.outputs: dict[str, Any] = {}

    def add(self, op: str, *inputs: Any, domain: str = "", **attributes: Any) -> str:
        """Add a node. An input is the name of another result, or numbers for a constant."""
        names = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        name = f"/{op}_{len(self.nodes)}"
        make = self.onnx.helper.make_node
        self.nodes.append(make(op, names, [name], name, domain=domain, **attributes))
        return name

    def constant(self, values: Any, dtype: Any = np.float64) -> str:
        name = f"/constant_{len(self.constants)}"
        array = np.ascontiguousarray(values, dtype=dtype)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def indices(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def input(self, name: str, width: int, text: bool = False) -> str:
        """Add an input matrix of text, or of numbers, which are cast to double."""
        helper, string = self.onnx.helper, self.onnx.TensorProto.STRING
        element = string if text else helper.np_dtype_to_tensor_dtype(self.input_type)
        self.inputs[name] = helper.make_tensor_value_info(name, element, ["n", width])
        return name if text else self.double(name)

    def output(self, name: str, value: str, shape: list[Any]) -> None:
        free = name
        while free in self.inputs:  # a column of the table may have this name
            free += "_"
        double = self.onnx.TensorProto.DOUBLE
        self.outputs[name] = self.onnx.helper.make_tensor_value_info(free, double, shape)
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [free], f"/{free}"))

    def double(self, value: str) -> str:
        return self.add("Cast", value, to=self.onnx.TensorProto.DOUBLE)

    def columns(self, value: str, indices: Sequence[int] | np.ndarray) -> str:
        return self.add("Gather", value, self.indices(*indices), axis=1)

    def joined(self, blocks: Sequence[str]) -> str:
        return blocks[0] if len(blocks) == 1 else self.add("Concat", *blocks, axis=1)

    def scan_body(self, text: str) -> Any:
        """Return the body of a Scan from ONNX's text format; "/" keeps its names apart from columns."""
        return self.onnx.compose.add_prefix_graph(self.onnx.parser.parse_graph(text), "/")

    def model(self, metadata: dict[str, str]) -> Any:
        helper, ends = self.onnx.helper, [list(each.values()) for each in (self.inputs, self.outputs)]
        model = helper.make_model(
            helper.make_graph(self.nodes, "aucmax", *ends, self.constants),
            producer_name="aucmax",
            producer_version=__version__,
            ir_version=_IR_VERSION,
            opset_imports=[helper.make_opsetid(*each) for each in _OPSETS.items()],
        )
        helper.set_model_props(model, metadata)
        self.onnx.checker.check_model(model)
        return model


def library(name: str) -> Any:
    """Import a library of the extra "onnx"."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"to_onnx needs {name}. Install it: {extra_command('onnx')}") from error
