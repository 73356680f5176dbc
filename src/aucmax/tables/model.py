"""A classifier for tables with columns of any kind: scores, probabilities and decisions."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from aucmax.estimators.ranking import current_state
from aucmax.estimators.search import KernelAUCClassifierCV
from aucmax.inspection.explanation import Explanation, explain_features
from aucmax.inspection.table_columns import columns_of
from aucmax.metrics.thresholds import Aim, Threshold
from aucmax.reading.frames import frame_hash
from aucmax.rows.validation import all_or_nothing
from aucmax.runtime.parameters import (
    AUTO,
    COUNT,
    CV,
    ESTIMATOR,
    LABEL,
    NAMES,
    NONE,
    RANDOM_STATE,
    Fulfils,
    OneOf,
    declare,
)
from aucmax.tables import columns as table_columns
from aucmax.tables.drift import Drift, RowSample, find_drift
from aucmax.tables.earlier_states import renewed_state
from aucmax.tables.held_out import Calibrator, learn_from_held_out
from aucmax.tables.inputs import scoring_frame, training_frame
from aucmax.tables.labels import known_labels
from aucmax.tables.nested_scores import nested_scores
from aucmax.tables.search import make_search
from aucmax.tables.table_features import MAX_LEVELS, TableFeatures, make_features
from aucmax.tables.training_table import TrainingTable, prepare_table
from aucmax.tables.unseen_values import UnseenCounts, describe_unseen


def _check_aim(aim: Any) -> None:
    if Aim.parse(aim).by_row:
        raise ValueError(
            f"the aim {aim} needs the cost of each row, which a fit does not take: fit with another "
            "aim, then use aucmax.with_threshold."
        )


AIM = Fulfils('an aim such as "precision=0.8"', "str", _check_aim)


@declare(
    estimator=ESTIMATOR,
    positive=LABEL,
    drop=NAMES,
    category=NAMES,
    number=NAMES,
    date=NAMES,
    id=NAMES,
    rare_level=(AUTO, COUNT),
    max_levels=MAX_LEVELS,
    cv=CV,
    calibration=OneOf("sigmoid", "isotonic"),
    aim=(NONE, AIM),
    random_state=RANDOM_STATE,
)
class TableModel(ClassifierMixin, BaseEstimator):
    """Rank the rows of a table, with its columns prepared, C and gamma tuned, and scores calibrated.

    :class:`TableFeatures` prepares the columns. Medians and levels come from all rows, without their
    labels. Cross-validation gives each training row a score by a model that was not fitted to it; if a
    category has level means, which use labels, they are learnt again in each fold. The AUC in
    ``training_``, the probabilities and the threshold come from these held-out scores.

    Parameters
    ----------
    estimator
        The classifier: a :class:`KernelAUCClassifier`, whose C is cross-validated, or a
        :class:`KernelAUCClassifierCV`. None is the first with its defaults. Its ``time_budget`` counts
        from when the table is read.
    positive
        The label to rank high. By default it is 1 of 0 and 1, True of False and True, and otherwise the
        rarer label. With three or more labels it must be named, and is ranked against the rest. Text is
        accepted for any label.
    drop
        Columns to leave out.
    category
        Columns to take as categories.
    number
        Columns to take as numbers.
    date
        Columns to take as dates.
    id
        Columns that identify rows, which are left out.
    rare_level
        Levels of a category with fewer rows are pooled: see :class:`TableFeatures`.
    max_levels
        The largest number of one-hot features of a category: see :class:`TableFeatures`.
    cv
        The number of shuffled, stratified folds (rows of a group stay in one fold), or a splitter.
    calibration
        How scores become probabilities; isotonic needs a thousand positives or more.
    aim
        What the threshold is chosen for, such as "precision=0.8": see ``aucmax.metrics.thresholds``. By
        default, the largest difference between recall and false-positive rate.
    random_state
        Seed of the folds, and of the estimator if it has none.

    Attributes
    ----------
    table_features_ : TableFeatures
        The preparation of columns.
    columns_, preprocessor_ : list of dict, ColumnTransformer
        As in :class:`TableFeatures`; ``feature_names_`` are the names of the features.
    model_ : KernelAUCClassifierCV
    classes_ : array of shape (2,)
        The two labels, sorted, as scikit-learn, ``decision_function`` and ``predict_proba`` use them.
    positive_label_, negative_label_ : label
        The label that is ranked high, and the other one. With three or more labels, that is "not" the
        first, and ``other_labels_`` are all that count as it. ``scores``, ``probabilities``,
        ``threshold_``, ``held_out_``, ``training_``, score files and reports refer to
        ``positive_label_``.
    n_features_in_, feature_names_in_ : int, and array of str if the model was fitted to a frame
    calibrator_ : SigmoidCalibrator or IsotonicCalibrator
    threshold_ : Threshold
    held_out_ : dict of arrays over training rows
        "positive" (bool), "score" (NaN if the row was in no test fold) and "weight".
    training_ : dict
        Rows, positives, AUC of the held-out scores with its interval, and the origin of the data.
    reference_ : dict
        Deciles or shares of levels of each column in use, by which ``find_drift`` measures drift.
    row_hashes_ : array of uint64
        A sample of the hashes of the training rows: see ``aucmax.tables.row_hashes``.

    Examples
    --------
    >>> import numpy as np
    >>> import polars as pl
    >>> from aucmax import KernelAUCClassifier, TableModel
    >>> rng = np.random.default_rng(0)
    >>> table = pl.DataFrame({"age": rng.integers(18, 80, 400), "plan": rng.choice(["a", "b"], 400)})
    >>> left = (table["age"] > 60) & (table["plan"] == "b")
    >>> model = TableModel(KernelAUCClassifier(n_landmarks=50)).fit(table, left)
    >>> sorted(model.feature_names_), model.training_["auc"] > 0.95
    (['age', 'plan = a', 'plan = b'], True)
    >>> bool(model.predict_proba(pl.DataFrame({"age": [75], "plan": ["b"]}))[0, 1] > 0.5)
    True
    """

    table_features_: TableFeatures
    columns_ = property(attrgetter("table_features_.columns_"))
    preprocessor_ = property(attrgetter("table_features_.preprocessor_"))
    feature_names_ = property(attrgetter("table_features_.feature_names_"))
    model_: KernelAUCClassifierCV
    classes_: np.ndarray
    positive_label_: Any
    negative_label_: Any
    other_labels_: list[Any]
    calibrator_: Calibrator
    threshold_: Threshold
    held_out_: dict[str, np.ndarray]
    training_: dict[str, Any]
    reference_: dict[str, Any]
    row_hashes_: np.ndarray

    def __init__(
        self,
        estimator: Any = None,
        *,
        positive: Any = None,
        drop: Sequence[str] = (),
        category: Sequence[str] = (),
        number: Sequence[str] = (),
        date: Sequence[str] = (),
        id: Sequence[str] = (),
        rare_level: int | str = "auto",
        max_levels: int = 50,
        cv: Any = 3,
        calibration: str = "sigmoid",
        aim: str | None = None,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.positive = positive
        self.drop = drop
        self.category = category
        self.number = number
        self.date = date
        self.id = id
        self.rare_level = rare_level
        self.max_levels = max_levels
        self.cv = cv
        self.calibration = calibration
        self.aim = aim
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> TableModel:
        """Fit to a polars or pandas frame, array or list of n rows, and the label of each row.

        Labels may be of any type, and rows without a label are left out. Rows of one group,
        such as one customer, are held out together.
        """
        began, target = time.perf_counter(), str(getattr(y, "name", None) or "")
        return fit_training_table(self, TrainingTable(X, y, sample_weight, groups, began, target))

    def scores(self, X: Any) -> np.ndarray:
        """Return the score of each row (n,); higher scores are more like ``positive_label_``.

        ``predict`` labels a row positive if its score is at or above ``threshold_.threshold``.
        """
        check_is_fitted(self)
        return self.model_.decision_function(self.features(X))

    def probabilities(self, X: Any) -> np.ndarray:
        """Return the probability of ``positive_label_`` for each row (n,)."""
        scores = self.scores(X)
        return self.calibrator_.predict(scores)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the distance of each score from the threshold (n,); above 0 means ``classes_[1]``.

        It rises with ``scores`` if ``positive_label_`` is ``classes_[1]``, and falls otherwise.
        """
        scores, threshold = self.scores(X), self.threshold_.threshold
        if self.positive_label_ != self.classes_[1]:
            return threshold - scores
        # A score at the threshold is positive, so its distance must be above 0.
        return scores - np.nextafter(threshold, -np.inf)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities (n, 2) of the labels, in the order of ``classes_``."""
        up = self.probabilities(X)
        columns = [1.0 - up, up] if self.positive_label_ == self.classes_[1] else [up, 1.0 - up]
        return np.column_stack(columns)

    def predict(self, X: Any) -> np.ndarray:
        """Return the positive label for scores at or above ``threshold_``, the negative one below."""
        decision = self.decision_function(X)
        return self.classes_[(decision > 0).astype(np.intp)]

    def features(
        self,
        X: Any,
        *,
        first_row: int = 0,
        unseen: UnseenCounts | None = None,
        sample: RowSample | None = None,
    ) -> np.ndarray:
        """Return the features (n, d) that ``model_`` takes, in float32.

        ``first_row`` is the number of the first row of X, for errors that name a row of a batch. Counts
        of values that the training table did not have are added to ``unseen``, and rows to ``sample``.
        """
        check_is_fitted(self, "table_features_")
        frame = scoring_frame(self, X)
        return make_features(
            self.table_features_, frame, first_row=first_row, unseen=unseen, sample=sample
        )

    def explain(self, X: Any, *, reference: Any = None) -> Explanation:
        """Return how much each column of the table moves the score of each row.

        Contributions add up to the score of the row less that of ``reference``, a frame of one row, or
        by default the mean training row: see :func:`aucmax.explain`.
        """
        check_is_fitted(self)
        frame = scoring_frame(self, X)
        rows = self.features(frame)
        start = None if reference is None else self.features(reference)
        columns = columns_of(self, rows.shape[1])
        values = [frame[name] for name in columns.names]
        return explain_features(self.model_, rows, columns, values, reference=start)

    def unseen_values(self, X: Any) -> list[str]:
        """Describe, in sentences, the values that the training table did not have."""
        counts: UnseenCounts = Counter()
        rows = len(self.features(X, unseen=counts))
        return describe_unseen(counts, rows, self.columns_)

    def drift(self, X: Any) -> list[Drift]:
        """Return the columns of a table that differ from the training table, the farthest first.

        Models of versions without ``reference_`` return none.
        """
        sample = RowSample()
        self.features(X, sample=sample)
        return sample_drift(self, sample)

    def labels(self, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows of a target are positive, and which have a label, as two bool arrays.

        Labels of another type are recognised ("1" for 1); unknown labels are refused.
        """
        check_is_fitted(self)
        name = str(getattr(y, "name", None) or "")
        others = self.other_labels_
        return known_labels(y, self.negative_label_, self.positive_label_, name, others)

    @property
    def reading_schema(self) -> dict[str, Any]:
        """Return the columns that the model needs, with the types to read them from a text file in."""
        check_is_fitted(self, "columns_")
        return table_columns.reading_schema(self.columns_)

    def __getstate__(self) -> dict[str, Any]:
        """Store the column names as one JSON text, which is short, and leave out what follows."""
        state: dict[str, Any] = super().__getstate__()
        if "reference_" in state:
            state = {**state, "reference_": json.dumps(self.reference_)}
        if "feature_names_in_" in state:
            names = json.dumps(self.feature_names_in_.tolist())
            state = {**state, "feature_names_in_": names}
        return {name: value for name, value in state.items() if name != "negative_label_"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a model, of this or an earlier version: see ``aucmax.tables.earlier_states``."""
        super().__setstate__(current_state(self, renewed_state(state)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags


def sample_drift(model: TableModel, sample: RowSample) -> list[Drift]:
    """Return the drift of sampled rows; none for a model of a version that kept no reference."""
    reference, frame = getattr(model, "reference_", None), sample.frame
    if reference is None or frame is None:
        return []
    return find_drift(frame, model.columns_, reference)


def fit_training_table(model: TableModel, table: TrainingTable) -> TableModel:
    """Fit a model to a training table, for ``TableModel.fit`` and for ``fit_table``."""
    with all_or_nothing(model):
        frame = training_frame(model, table.X)
        prepared = prepare_table(model, frame, table)
        target, labels = prepared.target, prepared.labels
        positive, weight = target.positive, target.weight
        model.table_features_, model.classes_ = prepared.table_features, labels.classes
        model.reference_, model.row_hashes_ = prepared.reference, prepared.row_hashes
        model.positive_label_, model.negative_label_ = labels.positive_label, labels.negative_label
        model.other_labels_ = list(labels.others)
        data_hash = table.data_hash or frame_hash(frame)
        encoded = bool(prepared.table_features.encodings_)
        spent = time.perf_counter() - table.began
        model.model_ = make_search(model, prepared.folds, spent, 0.5 if encoded else 1.0)
        sample_weight = weight if np.ptp(weight) else None
        grouped = {} if target.groups is None else {"groups": target.groups}
        search_began = time.perf_counter()
        model.model_.fit(prepared.rows, positive.astype(np.int8), sample_weight, **grouped)
        search_seconds = time.perf_counter() - search_began
        scores = model.model_.held_out_scores_
        if encoded:
            budget = getattr(model.model_.estimator, "time_budget", None)  # half of what was left
            end = None if budget is None else search_began + 2.0 * budget
            scores = nested_scores(model.model_, prepared, end)
        model.held_out_ = {"positive": positive, "score": scores, "weight": weight}
        learnt = learn_from_held_out(positive, scores, sample_weight, model.calibration, model.aim)
        model.calibrator_, model.threshold_, auc = learnt
        model.training_ = {
            **auc,
            "rows": int(positive.size),
            "positives": int(positive.sum()),
            "rows_without_label": int((~labels.known).sum()),
            "copies": prepared.copies(),
            "seconds": time.perf_counter() - table.began,
            "search_seconds": search_seconds,
            "target": table.target or None,
            "positive": labels.positive_label,
            "negative": labels.negative_label,
            "weight": table.weight,
            "group": table.group,
            "time": table.time,
            "random_state": model.random_state,
            "data_hash": data_hash,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
        }
    return model
