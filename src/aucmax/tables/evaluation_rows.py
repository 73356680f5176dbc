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
    frame: pl.DataFrame | None = None  #: the same rows of the table
    number: np.ndarray | None = None  #: the number of each row in the table, from 0
    name: str | None = None  #: of the file
    without_label: int = 0

    @property
    def weighted(self) -> bool:
        """Return whether the weights differ."""
        return bool(np.ptp(self.weight))


def evaluation_rows(model: Any, table: Any = None, target: str | None = None) -> EvaluationRows:
    """Score a table (path or frame), or take the held-out scores of the training rows."""
    if table is None:
        return EvaluationRows(*_held_out(model), "held out")
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
            f"{int((~positive).sum()):,} of {model.negative_label_!r} in {target!r}; it needs both."
        )
    rows = frame if in_use.all() else frame.filter(pl.Series(in_use))
    origin = (Path(table).name if is_file else None, int((~known).sum()))
    hashes = {frame_hash(frame), frame_hash(frame.drop(target))}
    hashes |= {file_hash(table)} if is_file else set()
    if about.get("data_hash") in hashes and len(model.held_out_["score"]) == rows.height:
        known = ~np.isnan(model.held_out_["score"])
        rows = rows if known.all() else rows.filter(pl.Series(known))
        return EvaluationRows(*_held_out(model), "training table", rows, number[known], *origin)
    try:
        scores = model.scores(rows)
    except RowError as error:  # its row counts only rows in use
        raise error.moved(number[error.row]) from None
    probability = model.calibrator_.predict(scores)
    return EvaluationRows(positive, scores, probability, weight, "table", rows, number, *origin)


def _read(model: Any, table: str | Path, target: str) -> pl.DataFrame:
    """Read a file as ``aucmax predict`` does."""
    if find_table(table).format == "libsvm":  # it may lack the last features, where all rows are 0
        special = [name for name in (target, model.training_.get("weight")) if name]
        return read_table(table, special + list(model.reading_schema))
    as_text = [column["name"] for column in model.columns_ if column["kind"] in ("category", "date")]
    return read_table(table, schema=dict.fromkeys(as_text, pl.String))  # "01234" is not 1234


def _held_out(model: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return class, score, probability and weight of the training rows with a held-out score."""
    known = ~np.isnan(model.held_out_["score"])
    positive, scores, weight = (model.held_out_[key][known] for key in ("positive", "score", "weight"))
    return positive.astype(bool), scores, model.calibrator_.predict(scores), weight.astype(np.float64)
