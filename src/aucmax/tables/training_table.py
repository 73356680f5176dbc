"""A training table: rows, labels, weights and groups, and their preparation for the search."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from sklearn.model_selection import PredefinedSplit, StratifiedGroupKFold, StratifiedKFold

from aucmax.reading.frames import RowError, TableError, as_series
from aucmax.rows.validation import check_weight
from aucmax.runtime.parameters import Number, check_parameters, check_value
from aucmax.tables.column_options import OPTIONS
from aucmax.tables.columns import normal_frame, used
from aucmax.tables.drift import Reference, describe_rows
from aucmax.tables.inputs import training_frame
from aucmax.tables.labels import Labels, two_labels
from aucmax.tables.row_hashes import FEW_TWINS, sketch_rows, twins_by_chance
from aucmax.tables.table_features import TableFeatures, learn_features
from aucmax.tables.target_encoding import TargetRows
from aucmax.tables.time_split import later_rows

if TYPE_CHECKING:
    from aucmax.tables.model import TableModel


@dataclass(frozen=True)
class TrainingTable:
    """Rows, labels, weights and groups as the user passed them, and where they came from."""

    X: Any
    y: Any
    sample_weight: Any
    groups: Any
    began: float  #: when reading started, by ``time.perf_counter``
    target: str = ""  #: the name of the target, if it has one
    weight: str | None = None  #: the columns of the weights and the groups, if they are columns
    group: str | None = None
    data_hash: str | None = None  #: of the file
    times: np.ndarray | None = None  #: the time of each row, to hold out the latest rows
    time: str | None = None  #: the column of the times


@dataclass(frozen=True)
class PreparedTable:
    """The rows in use (with a label and a weight above 0) as the search takes them."""

    rows: np.ndarray
    target: TargetRows
    folds: Any
    table_features: TableFeatures
    frame: pl.DataFrame
    labels: Labels
    reference: Reference  #: what drift is measured against
    row_hashes: np.ndarray  #: by which rows of the training table are recognised

    def copies(self) -> int:
        """Count the rows that have a copy; 0 if no column is fine enough to make copies unlikely."""
        columns = self.table_features.columns_
        frame, numbers = self.frame, used(columns, ["number"])
        if not any(frame[column["name"]].n_unique() > frame.height / 20 for column in numbers):
            return 0
        table = frame.select([column["name"] for column in used(columns)])
        if twins_by_chance(table) > FEW_TWINS:
            return 0
        positive = pl.Series(" positive", self.target.positive)
        return int(table.with_columns(positive).is_duplicated().sum())


def prepare_table(model: TableModel, frame: pl.DataFrame, table: TrainingTable) -> PreparedTable:
    """Check a model's parameters and its training table, with X as a frame, and compute features."""
    check_parameters(model)
    labels = two_labels(table.y, model.positive, table.target)
    groups = None if table.groups is None else as_series(table.groups, "groups")
    for name, values in (("y", labels.known), ("groups", groups)):
        if values is not None and len(values) != frame.height:
            raise TableError(
                f"{name} must have one entry for each of the {frame.height:,} rows of the table; it "
                f"has {len(values):,}."
            )
    weight = check_weight(table.sample_weight, frame.height)
    in_use = labels.known & (weight > 0)
    codes = None if groups is None else group_codes(groups)[in_use]
    positive, weight = labels.positive[in_use], weight[in_use]
    if table.times is None:
        folds = make_folds(model.cv, model.random_state, labels, in_use, codes)
    else:
        folds = later_rows(table.times[in_use], positive, codes, table.time or "time")
        codes = None
    frame = frame if in_use.all() else frame.filter(pl.Series(in_use))
    target = TargetRows(positive, weight, codes, model.random_state)
    names = (*OPTIONS, "rare_level", "max_levels", "random_state")
    table_features = TableFeatures(**{name: getattr(model, name) for name in names})
    training_frame(table_features, frame)
    try:
        rows = learn_features(table_features, frame, target)
    except RowError as error:  # its row counts only rows in use
        raise error.moved(np.flatnonzero(in_use)[error.row]) from None
    if table_features.encodings_ and not hasattr(folds, "split"):
        folds = list(folds)  # they are used twice
    normal, columns = normal_frame(frame, table_features.columns_), table_features.columns_
    reference, hashes = describe_rows(normal, columns), sketch_rows(normal, columns)
    return PreparedTable(rows, target, folds, table_features, frame, labels, reference, hashes)


def make_folds(
    cv: Any, random_state: int, labels: Labels, in_use: np.ndarray, groups: np.ndarray | None
) -> Any:
    """Return the splitter of the rows in use, if each class has enough rows, or groups, for it."""
    positive = labels.positive[in_use]
    classes = ((labels.positive_label, positive), (labels.negative_label, ~positive))
    for label, rows in classes:
        if not rows.any():
            raise TableError(
                f"No row of {label!r} has a weight above 0: one class is left, but a ranking needs two."
            )
    if not isinstance(cv, Integral):
        return _splits_in_use(cv, in_use)
    check_value("cv", cv, Number(low=2, closed=True, integer=True))
    for label, rows in classes:
        count = int(rows.sum()) if groups is None else np.unique(groups[rows]).size
        if count < int(cv):
            what = "rows" if groups is None else "groups with rows"
            fewer = f", or use {count} folds" if count > 1 else ""
            raise TableError(
                f"The label {label!r} has {count} {what} of non-zero weight, but {cv} folds need at "
                f"least {cv}; add more{fewer}."
            )
    splitter = StratifiedKFold if groups is None else StratifiedGroupKFold
    return splitter(int(cv), shuffle=True, random_state=random_state)


def _splits_in_use(cv: Any, in_use: np.ndarray) -> Any:
    """Renumber splits that list rows of the whole table, so that they list the rows in use."""
    if in_use.all() or (hasattr(cv, "split") and not isinstance(cv, PredefinedSplit)):
        return cv
    number, every = np.cumsum(in_use) - 1, np.arange(in_use.size)
    splits = cv.split() if hasattr(cv, "split") else cv
    return [tuple(number[rows[in_use[rows]]] for rows in (every[a], every[b])) for a, b in splits]


def group_codes(groups: pl.Series) -> np.ndarray:
    """Number the groups; a row without a group is a group of its own."""
    ranks = groups.cast(pl.String, strict=False).rank("dense").fill_null(0)
    codes, alone = ranks.to_numpy().astype(np.intp), np.flatnonzero(groups.is_null().to_numpy())
    codes[alone] = codes.max(initial=0) + 1 + np.arange(alone.size)
    return codes
