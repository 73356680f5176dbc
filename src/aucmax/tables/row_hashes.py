"""A sketch of the training rows, to find rows of another table that the model was trained on.

Each row gets a 64-bit hash of its prepared columns. The sketch keeps the :data:`KEPT` smallest
different hashes. It is a random sample of the rows, and every row of another table whose hash is at
most the largest one kept can be looked up exactly. The hash is our own, because that of polars changes
between versions: a number counts by the bits of its float32, a level by the blake2b hash of its text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from aucmax.tables.columns import Column, normal_frame, normal_name, used

KEPT = 8192  #: Hashes in a sketch: 64 kB.
FEW_TWINS = 0.1  #: If a row equals more others than this by chance, equal rows are no sign of copies.
_SAMPLE_ROWS = 20_000  #: Rows from which chance is estimated.
_MANY = 0.05  #: If this share of the training rows are copies, equal rows are no sign of shared rows.


def hash_rows(frame: pl.DataFrame, columns: Sequence[Column]) -> np.ndarray:
    """Return a 64-bit hash of each row of a frame in normal form.

    >>> columns = [{"name": "a", "kind": "number"}]
    >>> frame = pl.DataFrame({"a": pl.Series([0.5, 2.0, 0.5], dtype=pl.Float32)})
    >>> hash_rows(frame, columns).tolist()
    [12143599794774963797, 18228315330136084223, 12143599794774963797]
    """
    total = np.zeros(frame.height, np.uint64)
    for column in used(columns):
        series = frame[normal_name(column)]
        codes = _text_codes(series) if series.dtype == pl.String else _number_codes(series)
        total = _mixed(total ^ codes)
    return total


def _number_codes(series: pl.Series) -> np.ndarray:
    values = series.to_numpy().astype(np.float32)
    values = np.where(np.isnan(values), np.float32(np.nan), values) + np.float32(0)  # one NaN, one zero
    return values.view(np.uint32).astype(np.uint64)


def _text_codes(series: pl.Series) -> np.ndarray:
    levels = series.unique()
    codes = [
        int.from_bytes(hashlib.blake2b(str(level).encode(), digest_size=8).digest(), "little")
        for level in levels.to_list()
    ]
    return series.replace_strict(levels, pl.Series(codes, dtype=pl.UInt64)).to_numpy()


def _mixed(values: np.ndarray) -> np.ndarray:
    """Mix the bits of 64-bit numbers, as splitmix64 does."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def twins_by_chance(frame: pl.DataFrame) -> float:
    """Return how many other rows a row equals by chance, if the columns were independent.

    It is the number of rows, times the product of the shares of pairs of rows with the same value of a
    column, over different rows of a sample.

    >>> twins_by_chance(pl.DataFrame({"a": ["x", "y"] * 50, "b": range(100)}))
    0.0
    """
    step = -(-frame.height // _SAMPLE_ROWS)
    some, share = frame.gather_every(max(1, step)).unique(), 1.0
    pairs = some.height * (some.height - 1)
    for series in some:
        counts = series.value_counts(name=" rows")[" rows"].cast(pl.Float64)
        share *= float((counts * (counts - 1)).sum()) / max(1, pairs)
    return frame.height * share


def sketch_rows(frame: pl.DataFrame, columns: Sequence[Column]) -> np.ndarray:
    """Return the smallest hashes of the rows, sorted; none if many rows are equal by chance."""
    hashes = hash_rows(frame, columns)
    unique = np.unique(hashes)
    if unique.size < (1 - _MANY) * hashes.size:
        return unique[:0]
    return unique[:KEPT]


def share_in_sketch(hashes: np.ndarray, sketch: np.ndarray, training_rows: int) -> float | None:
    """Return about which share of rows is among the training rows; None if that cannot be found."""
    if not sketch.size or not hashes.size:
        return None
    complete = sketch.size < KEPT or training_rows <= KEPT
    below = hashes if complete else hashes[hashes <= sketch[-1]]
    if not below.size:
        return None
    return float(np.isin(below, sketch).mean())


def share_of_training_rows(model: Any, X: Any) -> float | None:
    """Return about which share of a table's rows a table model was trained on; None if unknown.

    It is unknown for models of versions that kept no hashes, and for tables in which rows are often
    equal by chance.
    """
    sketch = getattr(model, "row_hashes_", None)
    if sketch is None or not sketch.size:
        return None
    hashes = hash_rows(normal_frame(X, model.columns_), model.columns_)
    return share_in_sketch(hashes, sketch, model.training_["rows"])
