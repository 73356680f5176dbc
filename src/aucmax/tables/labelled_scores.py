"""Rows with labels and scores: of a table, or of the training with held-out scores."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from aucmax.reading.byte_streams import find_table
from aucmax.reading.frames import RowError, TableError, as_frame, check_names, frame_hash, row_weights
from aucmax.reading.read import file_hash, located, read_table

__all__ = ["ScoredRows", "score_rows"]


@dataclass(frozen=True)
class ScoredRows:
    """Rows with their class, score, probability and weight.

    ``source`` is "table" for rows of a table that the model was not trained on, as far as can be told;
    "training table" for that very table, with held-out scores; "held out" for these without a table.
    """

    positive: np.ndarray
    score: np.ndarray
    probability: np.ndarray
    weight: np.ndarray
    source: str
    name: str | None = None  #: of the file
    frame: pl.DataFrame | None = None  #: the same rows of the table
    number: np.ndarray | None = None  #: of each row in the table, from 0
    without_label: int = 0

    @property
    def weighted(self) -> bool:
        return bool(np.ptp(self.weight))


def score_rows(model: Any, table: Any = None, target: str | None = None) -> ScoredRows:
    """Score a table (path or frame), or take the held-out scores of the training rows."""
    if table is None:
        return _held_out(model, "held out")
    with located(table):
        return _of_table(model, table, target)


def _of_table(model: Any, table: Any, target: str | None) -> ScoredRows:
    name = None
    if isinstance(table, str | Path):
        name, frame, hashes = Path(table).name, _read(model, table, target), {file_hash(table)}
    else:
        frame, hashes = as_frame(table), set()
    about = model.training_
    target = target or about.get("target")
    if not target:
        raise TableError(
            "The model was trained without the name of its target, so target must name the column of "
            "the table with the labels."
        )
    check_names(frame.columns, [target], "was to be the target")
    positive, known = model.labels(frame[target])
    weight = np.ones(frame.height)
    if about.get("weight") in frame.columns:
        weight = row_weights(frame[about["weight"]])
    used = known & (weight > 0)
    number = np.flatnonzero(used)
    if not (positive[used].any() and (~positive[used]).any()):
        raise TableError(
            f"The table has {int(positive[used].sum()):,} rows of {model.positive_label_!r} and "
            f"{int((~positive[used]).sum()):,} of {model.negative_label_!r} in {target!r}; it takes "
            "both."
        )
    rows = frame if used.all() else frame.filter(pl.Series(used))
    without_label = int((~known).sum())
    hashes |= {frame_hash(frame), frame_hash(frame.drop(target))}
    if about.get("data_hash") in hashes and len(model.held_out_["score"]) == rows.height:
        return _held_out(model, "training table", name, rows, number, without_label)
    try:
        scores = model.scores(rows)
    except RowError as error:  # counted among the rows in use
        raise error.moved(number[error.row]) from None
    probability = model.calibrator_.predict(scores)
    return ScoredRows(
        positive[used],
        scores,
        probability,
        weight[used],
        "table",
        name,
        rows,
        number,
        without_label,
    )


def _read(model: Any, table: str | Path, target: str | None) -> pl.DataFrame:
    """A file as ``aucmax predict`` would take it."""
    if find_table(table).format == "libsvm":  # ends with the last feature that is not 0 in some row
        about = model.training_
        special = (target or about.get("target"), about.get("weight"))
        return read_table(table, [name for name in special if name] + list(model.reading_schema))
    categories = [column["name"] for column in model.columns_ if column["kind"] == "category"]
    return read_table(table, schema=dict.fromkeys(categories, pl.String))  # "01234" is no 1234


def _held_out(
    model: Any,
    source: str,
    name: str | None = None,
    frame: pl.DataFrame | None = None,
    number: np.ndarray | None = None,
    without_label: int = 0,
) -> ScoredRows:
    parts = model.held_out_
    seen = ~np.isnan(parts["score"])
    scores = parts["score"][seen]
    return ScoredRows(
        np.asarray(parts["positive"], dtype=bool)[seen],
        scores,
        model.calibrator_.predict(scores),
        np.asarray(parts["weight"], dtype=np.float64)[seen],
        source,
        name,
        frame if frame is None or seen.all() else frame.filter(pl.Series(seen)),
        None if number is None else number[seen],
        without_label,
    )
