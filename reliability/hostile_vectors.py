"""Hostile labels, weights and scores: one value per row, or what claims to be."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

from reliability import hostile
from reliability.hostile import Hostile, Maker


def _same(what: str, make: Callable[[np.ndarray], Any], must: str = "scored", **more: Any) -> Maker:
    return lambda rng, v: Hostile(what, make(v), twin=v, must=must, **more)


def _bad(what: str, make: Callable[[np.ndarray], Any], must: str = "refused") -> Maker:
    return lambda rng, v: Hostile(what, make(v), must=must)


def _with(value: Any, dtype: Any = np.float64) -> Callable[[np.ndarray], np.ndarray]:
    """The third entry replaced."""

    def make(v: np.ndarray) -> np.ndarray:
        out = v.astype(dtype)
        out[2] = value
        return out

    return make


def _named(low: Any, high: Any, dtype: Any = None) -> Callable[[np.ndarray], Any]:
    """Labels 0 and 1 by two other names, in the same order."""
    return lambda y: np.array([high if up else low for up in y.tolist()], dtype=dtype)


def _objects(low: Any, high: Any) -> Callable[[np.ndarray], Any]:
    return _named(low, high, object)


#: In place of labels 0 and 1. The twins hold 0 and 1 again, in the same rows.
LABELS: dict[str, Maker] = {
    "bool": _same("labels: bool", lambda y: y.astype(bool)),
    "int8": _same("labels: int8", lambda y: y.astype(np.int8)),
    "uint64": _same("labels: uint64", lambda y: y.astype(np.uint64)),
    "float": _same("labels: float", lambda y: y.astype(float)),
    "float16": _same("labels: float16", lambda y: y.astype(np.float16)),
    "big-endian": _same("labels: big-endian", lambda y: y.astype(">i4")),
    "minus one": _same("labels: -1 and 1", _named(-1, 1)),
    "huge ints": _same("labels: near the end of int64", _named(2**63 - 2, 2**63 - 1)),
    "uint64 huge": _same("labels: near the end of uint64", _named(2**64 - 2, 2**64 - 1, np.uint64)),
    "huge floats": _same("labels: huge whole floats", _named(1e300, 2e300), "either"),
    "fractions": _same("labels: 0.25 and 0.75", _named(0.25, 0.75), "either"),
    "beyond int64": _same("labels: ints beyond int64", _objects(10**30, 10**30 + 1), "either"),
    "text": _same("labels: text", _named("no", "yes")),
    "text objects": _same("labels: text objects", _objects("no", "yes")),
    "empty text": _same("labels: text, one empty", _named("", "yes")),
    "unicode": _same("labels: text of other scripts", _named("нет", "是")),
    "bytes": _same("labels: bytes", _named(b"no", b"yes"), "either"),
    "numbers as text": _same("labels: numbers as text", _named("0", "1")),
    "objects bool": _same("labels: bool objects", _objects(False, True), "either"),
    "objects int": _same("labels: int objects", _objects(0, 1), "either"),
    "mixed": _bad("labels: a number and a text", _objects(0, "one"), "refused"),
    "bool and text": _bad("labels: a bool and a text", _objects(False, "yes"), "refused"),
    "number and bool": _bad("labels: 0 and True", _objects(0, True), "either"),
    "tuples": _bad("labels: tuples", lambda y: [(int(v), 1) for v in y]),
    "dates": _same(
        "labels: datetime64", lambda y: np.datetime64("2020-01-01") + y.astype("m8[D]"), "either"
    ),
    "date objects": _same("labels: dates", _objects(date(2020, 1, 1), date(2020, 1, 2)), "either"),
    "complex": _bad("labels: complex", lambda y: y + 1j * y, "either"),
    "NaN": _bad("labels: one NaN", _with(np.nan)),
    "inf": _bad("labels: one infinity", _with(np.inf)),
    "None": _bad("labels: one None", _with(None, object)),
    "None in text": _bad(
        "labels: text, one None", lambda y: _with(None, object)(_objects("a", "b")(y))
    ),
    "NaN in text": _bad(
        "labels: text, one NaN", lambda y: _with(np.nan, object)(_objects("a", "b")(y))
    ),
    "all NaN": _bad("labels: all NaN", lambda y: np.full(len(y), np.nan)),
    "one class": _bad("labels: one class", np.zeros_like),
    "no rows": _bad("labels: none", lambda y: y[:0]),
    "short": _bad("labels: one too few", lambda y: y[:-1]),
    "long": _bad("labels: one too many", lambda y: np.append(y, 1)),
    "one positive": lambda rng, y: Hostile(
        "labels: one positive", (np.arange(len(y)) == 4).astype(int)
    ),
    "one negative": lambda rng, y: Hostile(
        "labels: one negative", (np.arange(len(y)) != 4).astype(int)
    ),
    "three": _bad("labels: three classes", lambda y: y + (np.arange(len(y)) % 3 == 0), "either"),
    "three, one row": _bad("labels: a third class of one row", lambda y: _with(2, int)(y), "either"),
    "all differ": _bad("labels: all different", lambda y: np.arange(len(y)), "either"),
    "continuous": _bad("labels: continuous", lambda y: y + np.linspace(0, 0.5, len(y))),
    "column": _same("labels: a column", lambda y: y[:, None], "either"),
    "two columns": _bad("labels: two columns", lambda y: np.stack([y, 1 - y], 1)),
    "row": _bad("labels: a row", lambda y: y[None, :]),
    "0-d": _bad("labels: no dimension", lambda y: np.array(1)),
    "scalar": _bad("labels: a number", lambda y: 1),
    "absent": _bad("labels: absent", lambda y: None),
    "string": _bad("labels: a text", lambda y: "y"),
    "dict": _bad("labels: a dict", lambda y: {"y": 1}),
    "sparse": _bad("labels: sparse", lambda y: sparse.csr_array(y[None, :].astype(float))),
    "list": _same("labels: a list", lambda y: y.tolist()),
    "tuple": _same("labels: a tuple", lambda y: tuple(y.tolist())),
    "list of text": _same("labels: a list of text", lambda y: ["b" if v else "a" for v in y]),
    "read-only": _same("labels: read-only", hostile.read_only),
    "backwards": _same("labels: negative strides", hostile.backwards),
    "spread out": _same("labels: every second of more", hostile.spread_out),
    "memmap": _same("labels: memmap", lambda y: hostile.mapped(y, "r")),
    "masked, none": _same("labels: masked array, nothing hidden", lambda y: hostile.masked(y, False)),
    "masked": _bad("labels: masked array, an entry hidden", lambda y: hostile.masked(y, True)),
    "pandas": _same("labels: pandas", lambda y: pd.Series(y, index=np.arange(len(y))[::-1])),
    "pandas Int64": _same("labels: pandas Int64", lambda y: pd.Series(y, dtype="Int64")),
    "pandas boolean": _same("labels: pandas boolean", lambda y: pd.Series(y == 1, dtype="boolean")),
    "pandas string": _same(
        "labels: pandas string", lambda y: pd.Series(_named("a", "b")(y), dtype="string")
    ),
    "pandas category": _same(
        "labels: pandas category", lambda y: pd.Series(_named("a", "b")(y)).astype("category")
    ),
    "pandas arrow": _same(
        "labels: pandas string[pyarrow]",
        lambda y: pd.Series(_named("a", "b")(y), dtype="string[pyarrow]"),
    ),
    "pandas NA": _bad(
        "labels: pandas Int64 with NA", lambda y: pd.Series([pd.NA, *y[1:].tolist()], dtype="Int64")
    ),
    "pandas string NA": _bad(
        "labels: pandas string with NA",
        lambda y: pd.Series([pd.NA, *_named("a", "b")(y[1:]).tolist()], dtype="string"),
    ),
    "polars": _same("labels: polars", lambda y: pl.Series("y", y)),
    "polars text": _same("labels: polars String", lambda y: pl.Series("y", _named("a", "b")(y))),
    "polars category": _same(
        "labels: polars Categorical",
        lambda y: pl.Series("y", _named("a", "b")(y), dtype=pl.Categorical),
        "either",
    ),
    "polars null": _bad("labels: polars with null", lambda y: pl.Series("y", [None, *y[1:].tolist()])),
    "arrow": _same("labels: Arrow", pa.array, "either"),
    "arrow chunks": _same(
        "labels: Arrow in chunks", lambda y: pa.chunked_array([y[:9], y[9:]]), "either"
    ),
    "arrow null": _bad("labels: Arrow with null", lambda y: pa.array([None, *y[1:].tolist()])),
    "datetime objects": _same(
        "labels: datetime objects", _objects(datetime(2020, 1, 1), datetime(2020, 1, 2)), "either"
    ),
    "nested": _bad("labels: lists", lambda y: [[int(v)] * (1 + i % 2) for i, v in enumerate(y)]),
}

#: The same numbers, held in another way: of weights as of scores.
_NUMBERS: dict[str, Maker] = {
    "float16": _same("float16", lambda v: v.astype(np.float16)),
    "float32": _same("float32", lambda v: v.astype(np.float32)),
    "longdouble": _same("longdouble", lambda v: v.astype(np.longdouble)),
    "big-endian": _same("big-endian", lambda v: v.astype(">f8")),
    "objects": _same("objects", lambda v: v.astype(object)),
    "decimals": _same("Decimal objects", lambda v: [Decimal(x) for x in v.tolist()], "either"),
    "fractions": _same("Fraction objects", lambda v: [Fraction(x) for x in v.tolist()], "either"),
    "list": _same("a list", lambda v: v.tolist()),
    "tuple": _same("a tuple", lambda v: tuple(v.tolist())),
    "read-only": _same("read-only", hostile.read_only),
    "backwards": _same("negative strides", hostile.backwards),
    "spread out": _same("every second of more", hostile.spread_out),
    "unaligned": _same("unaligned", hostile.unaligned),
    "memmap": _same("memmap", lambda v: hostile.mapped(v, "r")),
    "memmap changed": _same("memmap changed in memory", hostile.mapped_and_changed),
    "masked, none": _same("masked array, nothing hidden", lambda v: hostile.masked(v, False)),
    "masked": _bad("masked array, an entry hidden", lambda v: hostile.masked(v, True)),
    "pandas": _same("pandas, index reversed", lambda v: pd.Series(v, index=np.arange(len(v))[::-1])),
    "pandas Float64": _same("pandas Float64", lambda v: pd.Series(v, dtype="Float64")),
    "pandas arrow": _same("pandas double[pyarrow]", lambda v: pd.Series(v, dtype="double[pyarrow]")),
    "pandas NA": _bad("pandas with NA", lambda v: pd.Series([pd.NA, *v[1:].tolist()], dtype="Float64")),
    "polars": _same("polars", lambda v: pl.Series("v", v)),
    "polars null": _bad("polars with null", lambda v: pl.Series("v", [None, *v[1:].tolist()])),
    "arrow": _same("Arrow", pa.array, "either"),
    "arrow null": _bad("Arrow with null", lambda v: pa.array([None, *v[1:].tolist()])),
    "text numbers": _same("numbers as text", lambda v: v.astype(str), "either"),
    "text": _bad("text", lambda v: np.where(v > v.mean(), "high", "low")),
    "string": _bad("a text", lambda v: "balanced"),
    "complex real": _same("complex without imaginary part", lambda v: v.astype(complex), "either"),
    "complex": _bad("complex", lambda v: v + 1j),
    "dates": _bad("datetime64", lambda v: np.datetime64("2020-01-01") + v.astype("m8[D]"), "refused"),
    "durations": _bad("timedelta64", lambda v: (8 * v).astype("m8[s]"), "either"),
    "NaN": _bad("one NaN", _with(np.nan)),
    "None": _bad("one None", _with(None, object)),
    "dict entry": _bad("one dict", _with({}, object)),
    "short": _bad("one too few", lambda v: v[:-1]),
    "long": _bad("one too many", lambda v: np.append(v, 1.0)),
    "no rows": _bad("no entries", lambda v: v[:0]),
    "column": _same("a column", lambda v: v[:, None], "either"),
    "row": _bad("a row", lambda v: v[None, :]),
    "two columns": _bad("two columns", lambda v: np.stack([v, v], 1)),
    "3-d": _bad("three dimensions", lambda v: v[:, None, None]),
    "0-d": _bad("no dimension", lambda v: np.array(1.0), "either"),
    "sparse": _bad("sparse", lambda v: sparse.csr_array(v[None, :])),
    "dict": _bad("a dict", lambda v: {"v": 1.0}),
    "set": _bad("a set", lambda v: {1.0, 2.0}),
    "ragged": _bad(
        "lists of different lengths", lambda v: [[1.0] * (1 + i % 2) for i in range(len(v))]
    ),
    "too huge": _bad("ints beyond floats", _with(10**400, object)),
}

WEIGHTS: dict[str, Maker] = {
    **_NUMBERS,
    "inf": _bad("one infinity", _with(np.inf)),
    "scalar": _bad("a number", lambda v: 2.0, "either"),
    "bool": lambda rng, v: Hostile("bool", v > 1, twin=(v > 1).astype(float), must="scored"),
    "negative": _bad("one negative", _with(-1.0)),
    "barely negative": _bad("one barely negative", _with(-5e-324)),
    "negative zero": lambda rng, v: Hostile("negative zero", _with(-0.0)(v), twin=_with(0.0)(v)),
    "all zero": _bad("all zero", np.zeros_like),
    "one left": _bad("all but one zero", lambda v: (np.arange(len(v)) == 1).astype(float)),
    "few left": _bad("all but six zero", lambda v: (np.arange(len(v)) < 6).astype(float), "either"),
    "one huge": _bad("one 1e30", _with(1e30), "either"),
    "one vast": _bad("one 1e300", _with(1e300), "either"),
    "one tiny": _bad("one 1e-300", _with(1e-300), "either"),
    "one denormal": _bad("one denormal", _with(5e-324), "either"),
    "all huge": _bad("times 1e30", lambda v: v * 1e30, "either"),
    "all vast": _bad("times 1e300", lambda v: v * 1e300, "either"),
    "all largest": _bad("the largest floats", lambda v: np.full(len(v), np.finfo(float).max), "either"),
    "all small": _bad("times 1e-30", lambda v: v * 1e-30, "either"),
    "all tiny": _bad("times 1e-300", lambda v: v * 1e-300, "either"),
    "all denormal": _bad("denormal", lambda v: np.full(len(v), 5e-324), "either"),
    "wide": _bad("from 1e-150 to 1e150", lambda v: np.logspace(-150, 150, len(v)), "either"),
    "integers": lambda rng, v: Hostile(
        "int64", (8 * v).astype(int), twin=np.trunc(8 * v), must="scored"
    ),
    "float16 huge": _bad("float16 at 60000", lambda v: np.full(len(v), 60000, np.float16), "either"),
}

SCORES: dict[str, Maker] = {
    **_NUMBERS,
    "inf": _bad("one infinity", _with(np.inf), "either"),
    "-inf": _bad("one negative infinity", _with(-np.inf), "either"),
    "scalar": _bad("a number", lambda v: 2.0),
    "bool": lambda rng, v: Hostile("bool", v > 1, twin=(v > 1).astype(float), must="either"),
    "constant": _bad("all equal", np.ones_like, "either"),
    "huge": _bad("times 1e300", lambda v: v * 1e300, "either"),
    "largest": _bad("plus and minus the largest float", lambda v: np.sign(v - 1) * 1.7e308, "either"),
    "tiny": _bad("times 1e-300", lambda v: v * 1e-300, "either"),
    "denormal": _bad("times 5e-324", lambda v: v * 5e-324, "either"),
    "offset": _bad("plus 1e15", lambda v: v + 1e15, "either"),
    "negative zero": _bad("zeros of both signs", lambda v: np.where(v > 1, 0.0, -0.0), "either"),
    "int64 huge": _bad("neighbours beyond 2**53", lambda v: 2**62 + (8 * v).astype(np.int64), "either"),
    "integers": lambda rng, v: Hostile("int64", (8 * v).astype(int), twin=np.trunc(8 * v)),
}
