"""Rows with known labels and the scores of a model, for evaluation and reports."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from aucmax.reading.byte_streams import find_table
from aucmax.reading.frames import RowError, TableError, as_frame, check_names, frame_hash, row_weights
from aucmax.reading.read import file_hash, located, read_table


@dataclass(frozen=True)
class EvaluationRows:
    """Rows with their class, score, probability and weight.

    ``source`` is "table" for a table other than the training table, "training table" for the training
    table with held-out scores, and "held out" for these scores without a table.
    """

    positive: np.ndarray
    score: np.ndarray
    probability: np.ndarray
    weight: np.ndarray
    source: str
    name: str | None = None  #: of the file
    frame: pl.DataFrame | None = None  #: the same rows of the table
    number: np.ndarray | None = None  #: the number of each row in the table, from 0
    without_label: int = 0

    @property
    def weighted(self) -> bool:
        """Whether the weights differ."""
        return bool(np.ptp(self.weight))


def evaluation_rows(model: Any, table: Any = None, target: str | None = None) -> EvaluationRows:
    """Score a table (path or frame), or take the held-out scores of the training rows."""
    if table is None:
        return _held_out(model, "held out")
    with located(table):
        return _score_table(model, table, target or model.training_.get("target"))


def _score_table(model: Any, table: Any, target: str | None) -> EvaluationRows:
    if not target:
        raise TableError(
            "The model was trained without the name of its target, so target must name the column of "
            "the table with the labels."
        )
    about, is_file = model.training_, isinstance(table, str | Path)
    frame = _read(model, table, target) if is_file else as_frame(table)
    check_names(frame.columns, [target], "is named as the target")
    positive, known = model.labels(frame[target])
    weighted = about.get("weight") in frame.columns
    weight = row_weights(frame[about["weight"]]) if weighted else np.ones(frame.height)
    in_use = known & (weight > 0)
    positive, weight, number = positive[in_use], weight[in_use], np.flatnonzero(in_use)
    if positive.all() or not positive.any():
        raise TableError(
            f"The table has {int(positive.sum()):,} rows of {model.positive_label_!r} and "
            f"{int((~positive).sum()):,} of {model.negative_label_!r} in {target!r}; rows of both are "
            "needed."
        )
    rows = frame if in_use.all() else frame.filter(pl.Series(in_use))
    origin = (Path(table).name if is_file else None, rows, number, int((~known).sum()))
    hashes = {frame_hash(frame), frame_hash(frame.drop(target))} | (
        {file_hash(table)} if is_file else set()
    )
    if about.get("data_hash") in hashes and len(model.held_out_["score"]) == rows.height:
        return _held_out(model, "training table", *origin)
    try:
        scores = model.scores(rows)
    except RowError as error:  # its row counts only rows in use
        raise error.moved(number[error.row]) from None
    return EvaluationRows(positive, scores, model.calibrator_.predict(scores), weight, "table", *origin)


def _read(model: Any, table: str | Path, target: str) -> pl.DataFrame:
    """Read a file as ``aucmax predict`` does."""
    if find_table(table).format == "libsvm":  # it may lack the last features, where all rows are 0
        special = [name for name in (target, model.training_.get("weight")) if name]
        return read_table(table, special + list(model.reading_schema))
    categories = [column["name"] for column in model.columns_ if column["kind"] == "category"]
    return read_table(table, schema=dict.fromkeys(categories, pl.String))  # "01234" is not 1234


def _held_out(
    model: Any,
    source: str,
    name: str | None = None,
    frame: pl.DataFrame | None = None,
    number: np.ndarray | None = None,
    without_label: int = 0,
) -> EvaluationRows:
    """Take the training rows that have a held-out score."""
    known = ~np.isnan(model.held_out_["score"])
    scores = model.held_out_["score"][known]
    return EvaluationRows(
        np.asarray(model.held_out_["positive"], dtype=bool)[known],
        scores,
        model.calibrator_.predict(scores),
        np.asarray(model.held_out_["weight"], dtype=np.float64)[known],
        source,
        name,
        None if frame is None else frame.filter(pl.Series(known)),
        None if number is None else number[known],
        without_label,
    )
