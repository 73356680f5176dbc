"""Hostile feature rows: dtypes, layouts, frames, sparse formats, magnitudes, shapes, contents.

Plain rows hold multiples of 1/8 between -8 and 8, which every floating-point type represents exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

from reliability import hostile
from reliability.hostile import Hostile, Maker

Rng = np.random.Generator


def _same(what: str, make: Callable[[np.ndarray], Any], must: str = "scored", **more: Any) -> Maker:
    """The same numbers in another guise."""
    return lambda rng, X: Hostile(what, make(X), twin=X, must=must, **more)


def _whole(what: str, dtype: Any, low: int = -8) -> Maker:
    """Whole numbers, in a type of their own."""

    def make(rng: Rng, X: np.ndarray) -> Hostile:
        whole = np.clip(np.round(X * 8), low, 100)
        return Hostile(what, whole.astype(dtype), twin=whole, must="scored")

    return make


def _bad(what: str, make: Callable[[np.ndarray], Any], must: str = "refused") -> Maker:
    return lambda rng, X: Hostile(what, make(X), must=must)


def _with_entry(value: float, dtype: Any = np.float64) -> Callable[[np.ndarray], Any]:
    def make(X: np.ndarray) -> Any:
        out = X.astype(dtype)
        out[len(X) // 2, -1] = value
        return out

    return make


DTYPES: dict[str, Maker] = {
    "bool": lambda rng, X: Hostile("bool", X > 0, twin=(X > 0).astype(float), must="scored"),
    **{name: _whole(name, name) for name in ("int8", "int16", "int32", "int64", ">i4", ">i8")},
    **{name: _whole(name, name, low=0) for name in ("uint8", "uint16", "uint32", "uint64")},
    "float16": _same("float16", lambda X: X.astype(np.float16)),
    "float32": _same("float32", lambda X: X.astype(np.float32), tolerance=2e-2),
    "longdouble": _same("longdouble", lambda X: X.astype(np.longdouble)),
    ">f8": _same("big-endian float64", lambda X: X.astype(">f8")),
    ">f4": _same("big-endian float32", lambda X: X.astype(">f4"), tolerance=2e-2),
    "complex real": _same("complex without imaginary part", lambda X: X.astype(complex), "either"),
    "complex": _bad("complex", lambda X: X + 1j),
    "objects": _same("objects that are floats", lambda X: X.astype(object)),
    "decimals": _same("Decimal objects", lambda X: np.vectorize(Decimal)(X), "either"),
    "text numbers": _same("numbers as text", lambda X: X.astype(str), "either"),
    "object text numbers": _same(
        "numbers as text objects", lambda X: X.astype(str).astype(object), "either"
    ),
    "text": _bad("text", lambda X: np.where(X > 0, "high", "low")),
    "bytes": _bad("bytes", lambda X: np.where(X > 0, b"high", b"low")),
    "one text": _bad("objects, one of them text", _with_entry("x", object)),  # type: ignore[arg-type]
    "one None": _bad("objects, one of them None", _with_entry(None, object)),  # type: ignore[arg-type]
    "one dict": _bad("objects, one of them a dict", _with_entry({}, object)),  # type: ignore[arg-type]
    "one list": _bad("objects, one of them a list", _with_entry([1], object)),  # type: ignore[arg-type]
    "dates": _bad("datetime64", lambda X: np.datetime64("2020-01-01") + (X * 8).astype("m8[D]")),
    "durations": _bad("timedelta64", lambda X: (X * 8).astype("m8[s]"), "either"),
    "records": _bad("a structured array", lambda X: np.rec.fromarrays(X.T)),
    "void": _bad("void", lambda X: X.astype(np.float64).view("V8")),
    "None": _bad("None", lambda X: None),
    "a number": _bad("a number", lambda X: 3.5),
    "a dict": _bad("a dict of columns", lambda X: dict(enumerate(X.T))),
    "a set": _bad("a set", lambda X: {1.0, 2.0}),
    "a generator": _bad("a generator of numbers", lambda X: (v for v in X.ravel()), "either"),
}

LAYOUTS: dict[str, Maker] = {
    "fortran": _same("Fortran order", np.asfortranarray),
    "backwards": _same("negative strides", hostile.backwards),
    "spread out": _same("every second row", hostile.spread_out),
    "columns of more": _same("every second column", lambda X: np.repeat(X, 2, axis=1)[:, ::2]),
    "read-only": _same("read-only", hostile.read_only),
    "unaligned": _same("unaligned", hostile.unaligned),
    "memmap r": _same("memmap r", lambda X: hostile.mapped(X, "r")),
    "memmap c": _same("memmap c", lambda X: hostile.mapped(X, "c")),
    "memmap r+": _same("memmap r+", lambda X: hostile.mapped(X, "r+")),
    "memmap changed": _same("memmap changed in memory", hostile.mapped_and_changed),
    "memmap replaced": _same("memmap, its file replaced", hostile.mapped_and_replaced),
    "memmap raw": _same("memmap behind a header, by columns", hostile.mapped_after_header),
    "memmap slice": _same(
        "slice of a memmap", lambda X: hostile.mapped(np.repeat(X, 2, axis=0), "r")[::2]
    ),
    "memmap tail": _same(
        "last rows of a memmap", lambda X: hostile.mapped(np.vstack([X[:7], X]), "r")[7:]
    ),
    "memmap columns": _same(
        "columns of a memmap", lambda X: hostile.mapped(np.hstack([X[:, :1], X]), "r")[:, 1:]
    ),
    "memmap int": lambda rng, X: Hostile(
        "memmap of int16",
        hostile.mapped((X * 8).astype(np.int16), "r"),
        twin=np.trunc(X * 8),
        must="scored",
    ),
    "memmap float32": _same(
        "memmap of float32", lambda X: hostile.mapped(X.astype(np.float32), "r"), tolerance=2e-2
    ),
    "memmap big-endian": _same(
        "memmap of big-endian float64", lambda X: hostile.mapped(X.astype(">f8"), "r")
    ),
    "memmap one NaN": _bad("memmap with a NaN", lambda X: hostile.mapped(_with_entry(np.nan)(X), "r")),
    "memmap 1-d": _bad("memmap of one dimension", lambda X: hostile.mapped(X.ravel(), "r")),
    "memmap text": _bad("memmap of text", lambda X: hostile.mapped(np.where(X > 0, "a", "b"), "r")),
    "memmap complex": _bad("memmap of complex", lambda X: hostile.mapped(X + 1j, "r")),
    "list": _same("a list of lists", lambda X: X.tolist()),
    "tuple": _same("a tuple of tuples", lambda X: tuple(map(tuple, X.tolist()))),
    "array-like": _same("an object with __array__", hostile.ArrayLike, "either"),
    "masked, none": _same("masked array, nothing hidden", lambda X: hostile.masked(X, False)),
    "masked": _bad("masked array, an entry hidden", lambda X: hostile.masked(X, True)),
    "matrix": _same("numpy.matrix", np.asmatrix, "either"),
}


def _names(X: np.ndarray) -> list[str]:
    return [f"c{i}" for i in range(X.shape[1])]


def _pandas(X: Any, names: Any = None, **more: Any) -> pd.DataFrame:
    return pd.DataFrame(X, columns=_names(X) if names is None else names, **more)


def _hole(frame: pd.DataFrame, value: Any) -> pd.DataFrame:
    frame.iloc[len(frame) // 2, 0] = value
    return frame


FRAMES: dict[str, Maker] = {
    "pandas": _same("pandas", _pandas),
    "pandas rows": _same(
        "pandas, index reversed and doubled",
        lambda X: _pandas(X, index=np.repeat(np.arange(len(X)), 2)[: len(X)][::-1]),
    ),
    "pandas Float64": _same("pandas Float64", lambda X: _pandas(X).astype("Float64")),
    "pandas Int64": lambda rng, X: Hostile(
        "pandas Int64",
        _pandas(np.trunc(X)).astype("Int64"),
        twin=np.trunc(X),
        must="scored",
    ),
    "pandas boolean": lambda rng, X: Hostile(
        "pandas boolean", _pandas(X > 0).astype("boolean"), twin=(X > 0).astype(float), must="scored"
    ),
    "pandas NA": _bad("pandas Float64 with NA", lambda X: _hole(_pandas(X).astype("Float64"), pd.NA)),
    "pandas NaN": _bad("pandas with NaN", lambda X: _hole(_pandas(X), np.nan)),
    "pandas arrow": _same("pandas double[pyarrow]", lambda X: _pandas(X).astype("double[pyarrow]")),
    "pandas arrow null": _bad(
        "pandas double[pyarrow] with null", lambda X: _hole(_pandas(X).astype("double[pyarrow]"), None)
    ),
    "pandas objects": _same("pandas objects", lambda X: _pandas(X).astype(object), "either"),
    "pandas category numbers": _same(
        "pandas categories that are numbers", lambda X: _pandas(X).astype("category"), "either"
    ),
    "pandas category": _bad(
        "pandas categories", lambda X: _pandas(np.where(X > 0, "a", "b")).astype("category")
    ),
    "pandas text": _bad("pandas text", lambda X: _pandas(np.where(X > 0, "high", "low"))),
    "pandas dates": _bad(
        "pandas dates",
        lambda X: _pandas(pd.Timestamp("2020-01-01") + pd.to_timedelta(X[:, 0], "D"), ["d"]),
    ),
    "pandas sparse": _same("pandas Sparse", lambda X: _pandas(X).astype("Sparse[float]"), "either"),
    "pandas float32 mixed": _same(
        "pandas, columns of several types",
        lambda X: _pandas(X).astype({"c0": np.float32}),
        tolerance=2e-2,
    ),
    "pandas whole names": _same("pandas, names that are numbers", lambda X: pd.DataFrame(X)),
    "pandas mixed names": _same(
        "pandas, names of two kinds",
        lambda X: _pandas(X, [0, *_names(X)[1:]]),
        "either",
    ),
    "pandas twice": _same("pandas, a name twice", lambda X: _pandas(X, ["c"] * X.shape[1]), "either"),
    "pandas levels": _same(
        "pandas, names of two levels",
        lambda X: _pandas(X, pd.MultiIndex.from_tuples([("a", n) for n in _names(X)])),
        "either",
    ),
    "pandas odd names": _same(
        "pandas, odd names", lambda X: _pandas(X, ["", " ", "a\nb", "é", "\x00", "[x]"][: X.shape[1]])
    ),
    "pandas series": _bad("pandas series", lambda X: pd.Series(X[:, 0])),
    "polars": _same("polars", lambda X: pl.DataFrame(X, schema=_names(X))),
    "polars Float32": _same(
        "polars Float32",
        lambda X: pl.DataFrame(X, schema=_names(X)).cast(pl.Float32),
        tolerance=2e-2,
    ),
    "polars ints": lambda rng, X: Hostile(
        "polars Int16",
        pl.DataFrame(np.trunc(X), schema=_names(X)).cast(pl.Int16),
        twin=np.trunc(X),
        must="scored",
    ),
    "polars bool": lambda rng, X: Hostile(
        "polars Boolean",
        pl.DataFrame(X > 0, schema=_names(X)),
        twin=(X > 0).astype(float),
        must="scored",
    ),
    "polars null": _bad(
        "polars with null",
        lambda X: pl.DataFrame(X, schema=_names(X)).with_columns(
            pl.when(pl.col("c0") > 0).then(pl.col("c0"))
        ),
    ),
    "polars Decimal": _same(
        "polars Decimal",
        lambda X: pl.DataFrame(X, schema=_names(X)).cast(pl.Decimal(10, 3)),
        "either",
    ),
    "polars text": _bad(
        "polars text", lambda X: pl.DataFrame(np.where(X > 0, "a", "b"), schema=_names(X))
    ),
    "polars dates": _bad(
        "polars dates",
        lambda X: pl.DataFrame({"d": [datetime(2020, 1, 1) + timedelta(v) for v in X[:, 0].tolist()]}),
    ),
    "polars category": _bad(
        "polars Categorical",
        lambda X: pl.DataFrame(np.where(X > 0, "a", "b"), schema=_names(X)).cast(pl.Categorical),
    ),
    "polars lists": _bad("polars List", lambda X: pl.DataFrame({"l": X.tolist()})),
    "polars lazy": _same(
        "polars LazyFrame", lambda X: pl.DataFrame(X, schema=_names(X)).lazy(), "either"
    ),
    "arrow": _same("Arrow table", lambda X: pa.table(dict(zip(_names(X), X.T, strict=True))), "either"),
    "arrow null": _bad(
        "Arrow table with null",
        lambda X: pa.table({"c0": [None, *X[1:, 0].tolist()], "c1": X[:, -1]}),
    ),
}


def _with_zeros(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X[np.abs(X) < 1] = 0.0
    return X


def _sparse(what: str, make: Callable[[np.ndarray], Any], must: str = "scored") -> Maker:
    """Compared to the same matrix as plain CSR, since a dense twin would be centred."""

    def maker(rng: Rng, X: np.ndarray) -> Hostile:
        X = _with_zeros(X)
        return Hostile(what, make(X), twin=sparse.csr_array(X), must=must)  # type: ignore[arg-type]

    return maker


def _long_indices(X: np.ndarray) -> Any:
    out = sparse.csr_array(X)
    out.indices, out.indptr = out.indices.astype(np.int64), out.indptr.astype(np.int64)
    return out


def _unsorted(X: np.ndarray) -> Any:
    out = sparse.csr_array(X)
    for start, end in zip(out.indptr[:-1], out.indptr[1:], strict=True):
        out.indices[start:end] = out.indices[start:end][::-1].copy()
        out.data[start:end] = out.data[start:end][::-1].copy()
    out.has_sorted_indices = False
    return out


def _in_halves(X: np.ndarray) -> Any:
    whole = sparse.coo_array(X)
    rows, columns = whole.coords
    halves = (np.tile(0.5 * whole.data, 2), (np.tile(rows, 2), np.tile(columns, 2)))
    return sparse.coo_array(halves, shape=X.shape)


def _csr_in_halves(X: np.ndarray) -> Any:
    whole = sparse.csr_array(X)
    parts = (np.repeat(0.5 * whole.data, 2), np.repeat(whole.indices, 2), 2 * whole.indptr)
    return sparse.csr_array(parts, shape=X.shape)


def _explicit_zeros(X: np.ndarray) -> Any:
    out = sparse.csr_array(np.where(X == 0, 77.0, X))
    out.data[out.data == 77.0] = 0.0
    return out


def _sparse_entry(value: float) -> Callable[[np.ndarray], Any]:
    def make(X: np.ndarray) -> Any:
        out = sparse.csr_array(X)
        out.data[len(out.data) // 2] = value
        return out

    return make


SPARSE: dict[str, Maker] = {
    **{
        f"{form} {kind}": _sparse(f"sparse {form}_{kind}", getattr(sparse, f"{form}_{kind}"))
        for form in ("csr", "csc", "coo", "lil", "dok", "dia", "bsr")
        for kind in ("array", "matrix")
    },
    "long indices": _sparse("CSR with 64-bit indices", _long_indices),
    "unsorted": _sparse("CSR with unsorted indices", _unsorted),
    "halves": _sparse("COO with entries in two halves", _in_halves),
    "CSR halves": _sparse("CSR with entries in two halves", _csr_in_halves),
    "explicit zeros": _sparse("CSR with explicit zeros", _explicit_zeros),
    "sparse ints": lambda rng, X: Hostile(
        "CSR of int32",
        sparse.csr_array((X * 8).astype(np.int32)),
        twin=sparse.csr_array((X * 8).astype(np.int32).astype(float)),  # type: ignore[arg-type]
        must="scored",
    ),
    "sparse bools": lambda rng, X: Hostile(
        "CSR of bool",
        sparse.csr_array(X > 0),
        twin=sparse.csr_array((X > 0).astype(float)),  # type: ignore[arg-type]
        must="scored",
    ),
    "sparse NaN": _bad("CSR with NaN", _sparse_entry(np.nan)),
    "sparse inf": _bad("CSR with infinity", _sparse_entry(np.inf)),
    "sparse complex": _bad("CSR of complex", lambda X: sparse.csr_array(X + 1j)),
    "sparse zero": _bad("CSR without entries", lambda X: sparse.csr_array(X.shape), "either"),
    "sparse empty": _bad("CSR without rows", lambda X: sparse.csr_array((0, X.shape[1]))),
    "sparse wide": _bad(
        "CSR with 50,000 columns",
        lambda X: sparse.hstack([sparse.csr_array(X), sparse.csr_array((len(X), 50_000))]).tocsr(),
        "either",
    ),
    "sparse huge": _bad(
        "CSR times 1e300", lambda X: sparse.csr_array(_with_zeros(X) * 1e300), "either"
    ),
    "sparse tiny": _bad(
        "CSR times 1e-300", lambda X: sparse.csr_array(_with_zeros(X) * 1e-300), "either"
    ),
}


def _scaled(power: int) -> Maker:
    """Times a power of two: rows that are standardised must not tell the difference."""

    def make(rng: Rng, X: np.ndarray) -> Hostile:
        return Hostile(f"X times 2**{power}", np.ldexp(X, power), ranks_like=X)

    return make


def _moved(offset: float) -> Maker:
    # Beyond 1e16 all digits of X are lost.
    like = abs(offset) < 1e16
    return lambda rng, X: Hostile(f"X plus {offset:g}", X + offset, ranks_like=X if like else None)


def _sparse_moved(offset: float) -> Maker:
    return lambda rng, X: Hostile(f"CSR plus {offset:g}", sparse.csr_array(X + offset), ranks_like=X)


def _column(what: str, change: Callable[[np.ndarray], np.ndarray]) -> Maker:
    def make(rng: Rng, X: np.ndarray) -> Hostile:
        index = int(rng.integers(X.shape[1]))
        X[:, index] = change(X[:, index])
        return Hostile(f"column {index} {what}", X)

    return make


MAGNITUDES: dict[str, Maker] = {
    **{
        f"2**{power}": _scaled(power)
        for power in (-1060, -1000, -600, -300, -140, -60, 60, 120, 140, 300, 500, 600, 1000, 1018)
    },
    **{f"+{offset:g}": _moved(offset) for offset in (1e3, -1e6, 1e9, 1e12, 1e15, 1e17, 1e300)},
    **{f"sparse +{offset:g}": _sparse_moved(offset) for offset in (1e3, 1e9, 1e15)},
    "column huge": _column("times 1e300", lambda c: c * 1e300),
    "column large": _column("times 1e150", lambda c: c * 1e150),
    "column tiny": _column("times 1e-300", lambda c: c * 1e-300),
    "column moved": _column("plus 1e12", lambda c: c + 1e12),
    "column denormal": _column("denormal", lambda c: c * 5e-324),
    "column zero": _column("zero", np.zeros_like),
    "column constant": _column("constant", lambda c: np.full_like(c, 1 / 3)),
    "column constant huge": _column("constant at 1e300", lambda c: np.full_like(c, 1e300)),
    "column outlier": _column("with one 1e300", lambda c: np.where(np.arange(len(c)) == 3, 1e300, c)),
    "column outlier 1e20": _column(
        "with one 1e20", lambda c: np.where(np.arange(len(c)) == 3, 1e20, c)
    ),
    "column nearly constant": _column(
        "nearly constant", lambda c: 1.0 + np.where(np.arange(len(c)) % 2 == 0, 0.0, 1e-16)
    ),
    "column max": _column("of largest floats", lambda c: np.sign(c) * np.finfo(float).max),
    "column exp": _column("exponential", lambda c: np.exp(80 * c)),
    "float32 large": lambda rng, X: Hostile("float32 times 1e37", (X * 1e37).astype(np.float32)),
    "float32 tiny": lambda rng, X: Hostile("float32 times 1e-40", (X * 1e-40).astype(np.float32)),
    "float16 large": lambda rng, X: Hostile("float16 times 4000", (X * 4000).astype(np.float16)),
    "int64 huge": lambda rng, X: Hostile(
        "int64 near its end", (X * 2**59).astype(np.int64), ranks_like=X
    ),
    "uint64 huge": lambda rng, X: Hostile(
        "uint64 near its end", ((X + 8) * 2**59).astype(np.uint64), ranks_like=X
    ),
    "objects huge": lambda rng, X: Hostile(
        "objects that are huge ints", (X * 8).astype(int).astype(object) * 10**30
    ),
    "objects too huge": lambda rng, X: Hostile(
        "objects beyond floats", (X * 8).astype(int).astype(object) * 10**400, must="refused"
    ),
}

CONTENTS: dict[str, Maker] = {
    "all constant": _bad("all rows equal", np.ones_like, "either"),
    "all zero": _bad("all zero", np.zeros_like, "either"),
    "duplicated rows": _bad("rows in ten copies", lambda X: X[np.arange(len(X)) // 10], "either"),
    "two rows": _bad("two distinct rows", lambda X: X[np.arange(len(X)) % 2], "either"),
    "duplicated columns": _bad("each column twice", lambda X: np.hstack([X, X]), "either"),
    "ties": _bad("signs alone", np.sign, "either"),
    "negative zero": lambda rng, X: Hostile(
        "negative zeros", np.where(X == 0, -0.0, X), twin=X, must="scored"
    ),
    "NaN": _bad("one NaN", _with_entry(np.nan)),
    "inf": _bad("one infinity", _with_entry(np.inf)),
    "-inf": _bad("one negative infinity", _with_entry(-np.inf)),
    "both inf": _bad(
        "infinities that cancel",
        lambda X: np.where(X > 4, np.inf, np.where(X < -4, -np.inf, _with_entry(np.inf)(X))),
    ),
    "all NaN": _bad("all NaN", lambda X: np.full_like(X, np.nan)),
    "float32 NaN": _bad("float32 with NaN", _with_entry(np.nan, np.float32)),
    "float16 inf": _bad("float16 with infinity", _with_entry(np.inf, np.float16)),
    "no rows": _bad("no rows", lambda X: X[:0]),
    "no columns": _bad("no columns", lambda X: X[:, :0]),
    "one row": _bad("one row", lambda X: X[:1]),
    "one row short": _bad("a row too few", lambda X: X[:-1]),
    "1-d": _bad("one dimension", lambda X: X[:, 0]),
    "0-d": _bad("no dimension", lambda X: np.array(1.5)),
    "3-d": _bad("three dimensions", lambda X: X[:, :, None]),
    "ragged": _bad("rows of different lengths", lambda X: [*X[:-1].tolist(), [1.0] * 9]),
    "empty list": _bad("an empty list", lambda X: []),
    "text path": _bad("a path that does not exist", lambda X: "no-such-file.csv"),
    "wide": lambda rng, X: Hostile("300 columns", np.hstack([X, rng.normal(size=(len(X), 300))])),
    "one column": _bad("one column", lambda X: X[:, :1], "scored"),
    "broadcast": _bad("one row broadcast", lambda X: np.broadcast_to(X[0], X.shape), "either"),
}

KINDS = (DTYPES, LAYOUTS, FRAMES, SPARSE, MAGNITUDES, CONTENTS)
ROWS: dict[str, Maker] = {name: maker for kind in KINDS for name, maker in kind.items()}
