"""What a table holds that the training table did not: levels never seen, and new holes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

#: Rows by column and by what is new in them, "unseen" or "missing".
Surprises = Counter[tuple[str, str]]


def count_surprises(frame: pl.DataFrame, columns: Sequence[Mapping[str, Any]]) -> Surprises:
    """Count over the rows of a frame in normal form."""
    counts: Surprises = Counter()
    for column in columns:
        name = column["name"]
        if column["kind"] == "category":
            counts[name, "unseen"] += _unseen(frame[name], column)
        if column["kind"] == "dropped" or column["missing"]:
            continue
        if column["kind"] == "category":
            counts[name, "missing"] += int((frame[name] == "").sum())
        else:
            counts[name, "missing"] += int(np.isnan(frame[name].to_numpy()).sum())
    return +counts


def _unseen(text: pl.Series, column: Mapping[str, Any]) -> int:
    pooled = column.get("pooled") or []
    if column.get("pooled_count", len(pooled)) > len(pooled):
        return 0  # not all of the rare levels have been kept by name
    return int((~text.is_in(["", *column["levels"], *pooled])).sum())


def tell_surprises(counts: Surprises, rows: int, columns: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence for each."""
    by_name = {column["name"]: column for column in columns}
    told = []
    for (name, what), count in counts.items():
        column, share = by_name[name], f"Column {name!r}: {count:,} of {rows:,} rows"
        if what == "unseen":
            place = "count as rare ones" if column.get("pooled") else "count as none of the levels"
            told.append(f"{share} have a value that training never had; they {place}.")
        else:
            taken = "count as none of the levels"
            if column["kind"] != "category":
                taken = f"take the median, {column['median']:.6g}"
            told.append(
                f"{share} have no value, where every row of the training had one; they {taken}."
            )
    return told
