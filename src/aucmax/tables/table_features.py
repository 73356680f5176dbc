"""The preparation of a table as a transformer: from columns of any kind to numeric features."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from aucmax.reading.frames import TableError
from aucmax.rows.validation import all_or_nothing
from aucmax.runtime.parameters import (
    AUTO,
    COUNT,
    NAMES,
    RANDOM_STATE,
    Number,
    check_parameters,
    declare,
)
from aucmax.tables import columns as table_columns
from aucmax.tables.column_options import ColumnOptions
from aucmax.tables.drift import RowSample
from aucmax.tables.inputs import scoring_frame, training_frame
from aucmax.tables.labels import label_series
from aucmax.tables.profile import profile_columns
from aucmax.tables.target_encoding import (
    Encoding,
    TargetRows,
    encoded_columns,
    learn_means,
    put_out_of_fold,
)
from aucmax.tables.unseen_values import UnseenCounts, count_unseen

MAX_LEVELS = Number(low=2, closed=True, integer=True)


@declare(
    drop=NAMES,
    category=NAMES,
    number=NAMES,
    date=NAMES,
    id=NAMES,
    rare_level=(AUTO, COUNT),
    max_levels=MAX_LEVELS,
    random_state=RANDOM_STATE,
)
class TableFeatures(TransformerMixin, BaseEstimator):
    """Turn the columns of a table, whatever they hold, into numeric features.

    This is the preparation of :class:`TableModel` as a step for pipelines. Numbers are used as they
    are, also if they are written as text; the median replaces missing values, and one more feature
    marks them. Categories are one-hot encoded, with rare levels pooled. Dates become days, year,
    month, weekday and hour. Columns without information and identifiers are dropped. ``columns_`` says
    what was done with each column.

    Parameters
    ----------
    drop
        Columns to leave out.
    category
        Columns to take as categories, such as codes that are written as numbers.
    number
        Columns to take as numbers, even if all their values are different.
    date
        Columns to take as dates, also if they are written as eight digits (20241231).
    id
        Columns that identify rows, which are left out.
    rare_level
        Levels of a category with fewer rows are pooled; "auto" is 10, or 0.1 % of the rows if more.
    max_levels
        The largest number of one-hot features of a category; further levels, the rarest, are pooled. If
        a category has more levels than this and ``fit`` gets two labels, one more feature holds the
        smoothed mean of the label at each level.
    random_state
        Seed of the folds in which these means are computed for the training rows.

    Attributes
    ----------
    columns_ : list of dict
        For each column of the table that is not in ``drop``: name, type (in polars), kind ("number",
        "boolean", "category", "date" or "dropped"), missing (number of rows), treatment (a sentence)
        and features (their names). Numbers and dates that are written as text have the style in
        ``written``; dates also the first date, ``origin``, and their ``parts``; categories the levels,
        the pooled levels (at most a hundred), pooled_count, and in ``encoded`` the feature of level
        means.
    encodings_ : dict
        The levels of such columns with the mean at each level and the mean of all rows.
    preprocessor_ : ColumnTransformer
        From frames in normal form (see ``aucmax.tables.columns``) to features.
    n_features_in_, feature_names_in_ : int, and array of str if fitted to a frame

    Notes
    -----
    As with scikit-learn's ``TargetEncoder``, ``fit_transform(X, y)`` differs from ``fit(X, y)``
    followed by ``transform(X)`` if there are level means: in the first, the label of a row has no part
    in its own feature. Pipelines call ``fit_transform`` for training rows and ``transform`` for others,
    which is right.

    Examples
    --------
    >>> import polars as pl
    >>> from sklearn.pipeline import make_pipeline
    >>> from aucmax import KernelAUCClassifier, TableFeatures
    >>> table = pl.DataFrame({"price": ["$1,200", "$350", None] * 20, "plan": ["a", "b", "b"] * 20})
    >>> TableFeatures().fit(table).get_feature_names_out().tolist()
    ['price', 'price is missing', 'plan = b', 'plan = a']
    >>> model = make_pipeline(TableFeatures(), KernelAUCClassifier(preset="paper", n_landmarks=3))
    >>> model.fit(table, [1, 0, 0] * 20).score(table, [1, 0, 0] * 20)
    1.0
    """

    columns_: list[dict[str, Any]]
    encodings_: dict[str, Encoding]
    preprocessor_: ColumnTransformer
    n_features_in_: int
    feature_names_in_: np.ndarray

    def __init__(
        self,
        *,
        drop: Sequence[str] = (),
        category: Sequence[str] = (),
        number: Sequence[str] = (),
        date: Sequence[str] = (),
        id: Sequence[str] = (),
        rare_level: int | str = "auto",
        max_levels: int = 50,
        random_state: int = 0,
    ) -> None:
        self.drop = drop
        self.category = category
        self.number = number
        self.date = date
        self.id = id
        self.rare_level = rare_level
        self.max_levels = max_levels
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> TableFeatures:
        """Learn what to do with the columns of a polars or pandas frame, array or list.

        The labels ``y`` are needed only for level means; without them, or if they are not two, there
        are none.
        """
        self._learn(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, and return the features (n, d) to train on, in float32."""
        return self._learn(X, y)

    def transform(self, X: Any) -> np.ndarray:
        """Return the features (n, d) in float32.

        Columns of frames are found by name, those of arrays and lists by position.
        """
        check_is_fitted(self, "columns_")
        return make_features(self, scoring_frame(self, X))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features; a name that occurs twice gets a number."""
        check_is_fitted(self, "columns_")
        _check_feature_names_in(self, input_features)
        seen: Counter[str] = Counter()
        names = []
        for name in self.feature_names_:
            seen[name] += 1
            names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
        return np.array(names, dtype=object)

    @property
    def feature_names_(self) -> list[str]:
        """The names of the features as ``columns_`` has them."""
        return table_columns.feature_names(self.columns_)

    def _learn(self, X: Any, y: Any) -> np.ndarray:
        with all_or_nothing(self):
            frame = training_frame(self, X)
            if frame.height < 2:
                raise TableError("TableFeatures needs at least two rows; the table has 1 sample.")
            target = None if y is None else _target_rows(y, frame.height, self.random_state)
            return learn_features(self, frame, target)

    def __getstate__(self) -> dict[str, Any]:
        """Store what was learnt as JSON text, which is short, and leave out what follows from it."""
        state: dict[str, Any] = super().__getstate__()
        state = {name: value for name, value in state.items() if name != "preprocessor_"}
        for name in {"columns_", "encodings_"} & state.keys():
            state[name] = json.dumps(state[name])
        if "feature_names_in_" in state:
            state["feature_names_in_"] = json.dumps(self.feature_names_in_.tolist())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        for name in {"columns_", "encodings_", "feature_names_in_"} & state.keys():
            state[name] = json.loads(state[name])
        if "feature_names_in_" in state:
            state["feature_names_in_"] = np.array(state["feature_names_in_"], dtype=object)
        if "columns_" in state:
            state["preprocessor_"] = table_columns.make_preprocessor(
                state["columns_"], state["encodings_"]
            )
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []  # features are float32
        return tags


def learn_features(
    transformer: TableFeatures, frame: pl.DataFrame, target: TargetRows | None
) -> np.ndarray:
    """Learn what to do with the columns of a frame, and return the features to train on."""
    check_parameters(transformer)
    options = ColumnOptions.of(transformer)
    options.check(frame.columns)
    frame = frame.drop(list(options.drop))
    columns = profile_columns(
        frame,
        options.kinds(),
        rare_level=transformer.rare_level,
        max_levels=transformer.max_levels,
        encode=target is not None,
    )
    normal = table_columns.normal_frame(frame, columns)
    names = encoded_columns(columns) if target is not None else {}
    encodings = {name: learn_means(normal[name], target) for name in names if target is not None}
    transformer.preprocessor_ = table_columns.make_preprocessor(columns, encodings)
    transformer.columns_, transformer.encodings_ = columns, encodings
    return training_features(transformer, normal, target)


def training_features(
    transformer: TableFeatures, normal: pl.DataFrame, target: TargetRows | None
) -> np.ndarray:
    """Return the features of training rows in normal form, with level means from other rows."""
    rows = table_columns.features(transformer.preprocessor_, normal)
    if target is not None:
        put_out_of_fold(rows, transformer.columns_, transformer.feature_names_, normal, target)
    return rows


def make_features(
    transformer: TableFeatures,
    frame: pl.DataFrame,
    *,
    first_row: int = 0,
    unseen: UnseenCounts | None = None,
    sample: RowSample | None = None,
) -> np.ndarray:
    """Return the features of a frame; see ``TableModel.features`` for the parameters."""
    normal = table_columns.normal_frame(frame, transformer.columns_, first_row=first_row)
    if unseen is not None:
        unseen.update(count_unseen(normal, transformer.columns_))
    if sample is not None:
        sample.add(normal)
    return table_columns.features(transformer.preprocessor_, normal)


def _target_rows(y: Any, n_rows: int, random_state: int) -> TargetRows | None:
    """Return the target of a fit if it has two labels; rows without a label have no weight."""
    labels = label_series(y, "y")
    if len(labels) != n_rows:
        raise ValueError(
            f"X and y must have the same number of rows; X has {n_rows:,} and y {len(labels):,}."
        )
    classes = labels.drop_nulls().unique().sort()
    if len(classes) != 2:
        return None
    positive = (labels == classes[1]).fill_null(False).to_numpy()
    return TargetRows(positive, labels.is_not_null().to_numpy().astype(float), None, random_state)
