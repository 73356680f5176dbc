"""Values that the training table did not have: unseen levels, and missing values in new columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import polars as pl

from aucmax.tables.columns import Column, used

#: Numbers of rows by column and by what is new in them: "level" or "missing".
UnseenCounts = Counter[tuple[str, str]]


def count_unseen(frame: pl.DataFrame, columns: Sequence[Column]) -> UnseenCounts:
    """Count, in a frame in normal form, the rows whose values the training table did not have."""
    counts: UnseenCounts = Counter()
    for column in used(columns):
        name, is_category = column["name"], column["kind"] == "category"
        if is_category:
            counts[name, "level"] = _unseen_levels(frame[name], column)
        if not column["missing"]:
            name_here = f"{name}: days" if column["kind"] == "date" else name
            here = frame[name_here]
            missing = (here == "") if is_category else np.isnan(here.to_numpy())
            counts[name, "missing"] = int(missing.sum())
    return +counts


def _unseen_levels(text: pl.Series, column: Column) -> int:
    pooled = column.get("pooled") or []
    if column.get("pooled_count", len(pooled)) > len(pooled):
        return 0  # some rare levels were not stored, so seen and unseen ones look alike
    return int((~text.is_in(["", *column["levels"], *pooled])).sum())


def describe_unseen(counts: UnseenCounts, rows: int, columns: Sequence[Column]) -> list[str]:
    """Write a sentence for each count, of ``rows`` in all."""
    by_name = {column["name"]: column for column in columns}
    sentences = []
    for (name, what), count in counts.items():
        column, effect = by_name[name], "they match none of its levels"
        value = "a value that does not occur" if what == "level" else "no value, which does not occur"
        if what == "level" and column.get("pooled"):
            effect = "they count as rare levels"
        elif what == "missing" and column["kind"] == "date":
            effect = "they get the medians"
        elif what == "missing" and column["kind"] != "category":
            effect = f"they get the median, {column['median']:.6g}"
        sentences.append(
            f"Column {name!r}: {count:,} of {rows:,} rows have {value} in the training table; {effect}."
        )
    return sentences
