"""A classifier for tables with columns of any kind: scores, probabilities and decisions."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.utils.validation import check_is_fitted

from aucmax.estimators.kernel import KernelAUCClassifier
from aucmax.estimators.ranking import current_state
from aucmax.estimators.search import KernelAUCClassifierCV
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
    Number,
    OneOf,
    check_parameters,
    declare,
)
from aucmax.tables import columns as table_columns
from aucmax.tables.drift import Drift, RowSample, find_drift
from aucmax.tables.held_out import Calibrator, learn_from_held_out
from aucmax.tables.inputs import scoring_frame, training_frame
from aucmax.tables.labels import known_labels
from aucmax.tables.training_table import TrainingTable, prepare_table
from aucmax.tables.unseen_values import UnseenCounts, count_unseen, describe_unseen


def _check_aim(aim: Any) -> None:
    Aim.parse(aim)


AIM = Fulfils('an aim such as "precision=0.8"', "str", _check_aim)


@declare(
    estimator=ESTIMATOR,
    positive=LABEL,
    drop=NAMES,
    rare_level=(AUTO, COUNT),
    max_levels=Number(low=2, closed=True, integer=True),
    cv=CV,
    calibration=OneOf("sigmoid", "isotonic"),
    aim=(NONE, AIM),
    random_state=RANDOM_STATE,
)
class TableModel(ClassifierMixin, BaseEstimator):
    """Rank the rows of a table, with its columns prepared, C and gamma tuned, and scores calibrated.

    Numbers are used as they are; the median replaces missing values, and a second feature marks them.
    Categories are one-hot encoded, with rare levels pooled. Columns without information are dropped.
    Medians and levels come from all rows, without their labels. Cross-validation gives each training
    row a score by a model that was not fitted to it. The AUC in ``training_``, the probabilities and
    the threshold come from these held-out scores.

    Parameters
    ----------
    estimator
        The classifier: a :class:`KernelAUCClassifier`, whose C is cross-validated, or a
        :class:`KernelAUCClassifierCV`. None is the first with its defaults. Its ``time_budget`` counts
        from when the table is read.
    positive
        The label to rank high, by default the rarer one. Text is accepted for any label.
    drop
        Columns to leave out.
    rare_level
        Levels of a category with fewer rows are pooled; "auto" is 10, or 0.1 % of the rows if more.
    max_levels
        The largest number of features of a category; further levels, the rarest, are pooled.
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
    columns_ : list of dict
        For each column of the table: name, type (in polars), kind ("number", "boolean", "category" or
        "dropped"), missing (number of rows), treatment (a sentence) and features (their names); for
        categories also the levels, the pooled levels (at most a hundred) and pooled_count.
    preprocessor_ : ColumnTransformer
        From frames in normal form to features; ``feature_names_`` are their names.
    model_ : KernelAUCClassifierCV
    classes_ : array of shape (2,)
        The two labels, sorted, as scikit-learn, ``decision_function`` and ``predict_proba`` use them.
    positive_label_, negative_label_ : label
        The label that is ranked high, and the other one. ``scores``, ``probabilities``, ``threshold_``,
        ``held_out_``, ``training_``, score files and reports refer to ``positive_label_``.
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

    columns_: list[dict[str, Any]]
    preprocessor_: ColumnTransformer
    feature_names_: list[str]
    model_: KernelAUCClassifierCV
    classes_: np.ndarray
    positive_label_: Any
    negative_label_: Any
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
        self.rare_level = rare_level
        self.max_levels = max_levels
        self.cv = cv
        self.calibration = calibration
        self.aim = aim
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> TableModel:
        """Fit to a polars or pandas frame, array or list of n rows, and the label of each row.

        The two labels may be of any type, and rows without a label are left out. Rows of one group,
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
        check_is_fitted(self, "preprocessor_")
        frame = scoring_frame(self, X)
        frame = table_columns.normal_frame(frame, self.columns_, first_row=first_row)
        if unseen is not None:
            unseen.update(count_unseen(frame, self.columns_))
        if sample is not None:
            sample.add(frame)
        return table_columns.features(self.preprocessor_, frame)

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
        return known_labels(y, self.negative_label_, self.positive_label_, name)

    @property
    def reading_schema(self) -> dict[str, Any]:
        """Return the columns that the model needs, with the types to read them from a text file in."""
        check_is_fitted(self, "columns_")
        return table_columns.reading_schema(self.columns_)

    def __getstate__(self) -> dict[str, Any]:
        """Store the columns as one JSON text, which is short, and leave out what follows from it."""
        state: dict[str, Any] = super().__getstate__()
        if "columns_" not in state:
            return state
        state = {**state, "columns_": json.dumps(self.columns_)}
        if "reference_" in state:
            state["reference_"] = json.dumps(self.reference_)
        if "feature_names_in_" in state:
            state["feature_names_in_"] = json.dumps(self.feature_names_in_.tolist())
        derived = ("preprocessor_", "feature_names_", "negative_label_")
        return {name: value for name, value in state.items() if name not in derived}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a model; version 0.1 stored the negative and the positive label as ``classes_``."""
        state = dict(state)
        if isinstance(state.get("columns_"), str):
            columns = state["columns_"] = json.loads(state["columns_"])
            if "reference_" in state:  # models of earlier versions have none
                state["reference_"] = json.loads(state["reference_"])
            state["feature_names_"] = table_columns.feature_names(columns)
            state["preprocessor_"] = table_columns.make_preprocessor(columns)
            if "feature_names_in_" in state:
                names = json.loads(state["feature_names_in_"])
                state["feature_names_in_"] = np.array(names, dtype=object)
        elif "classes_" in state and "positive_label_" not in state:
            names = [column["name"] for column in state["columns_"]]
            state["positive_label_"] = state["classes_"][1].item()
            state["classes_"] = np.sort(state["classes_"])
            state["feature_names_in_"] = np.array(names, dtype=object)
            state["n_features_in_"] = len(names)
        if "classes_" in state:
            first, second = state["classes_"].tolist()
            state["negative_label_"] = first if second == state["positive_label_"] else second
        super().__setstate__(current_state(self, state))

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


def make_search(model: TableModel, folds: Any, spent: float = 0.0) -> KernelAUCClassifierCV:
    """Return the search that a table model fits, less the time that was spent before it."""
    held = KernelAUCClassifier() if model.estimator is None else model.estimator
    if not isinstance(held, KernelAUCClassifier | KernelAUCClassifierCV):
        raise TypeError(
            "estimator must be a KernelAUCClassifier, a KernelAUCClassifierCV or None; got a "
            f"{type(held).__name__}."
        )
    search = clone(held if isinstance(held, KernelAUCClassifierCV) else KernelAUCClassifierCV(held))
    inner = search.estimator or KernelAUCClassifier()
    check_parameters(inner)
    seed = model.random_state if inner.random_state is None else inner.random_state
    inner.set_params(time_budget=_left(inner, spent), random_state=seed)
    return search.set_params(cv=folds, estimator=inner)


def _left(estimator: KernelAUCClassifier, spent: float) -> float | None:
    """Return what is left of an estimator's time budget."""
    budget = estimator.time_budget
    if budget is None or spent < budget:
        return None if budget is None else budget - spent
    raise TimeoutError(
        f"time_budget={budget:g} s was over when the table had been read and prepared, after "
        f"{spent:.1f} s, so there is no model. Allow more time."
    )


def fit_training_table(model: TableModel, table: TrainingTable) -> TableModel:
    """Fit a model to a training table, for ``TableModel.fit`` and for ``fit_table``."""
    with all_or_nothing(model):
        frame = training_frame(model, table.X)
        prepared = prepare_table(model, frame, table)
        positive, weight, labels = prepared.positive, prepared.weight, prepared.labels
        model.columns_, model.preprocessor_ = prepared.columns, prepared.preprocessor
        model.feature_names_ = table_columns.feature_names(prepared.columns)
        model.reference_, model.row_hashes_ = prepared.reference, prepared.row_hashes
        model.classes_ = labels.classes
        model.positive_label_, model.negative_label_ = labels.positive_label, labels.negative_label
        data_hash = table.data_hash or frame_hash(frame)
        model.model_ = make_search(model, prepared.folds, time.perf_counter() - table.began)
        sample_weight = weight if np.ptp(weight) else None
        grouped = {} if prepared.groups is None else {"groups": prepared.groups}
        search_began = time.perf_counter()
        model.model_.fit(prepared.rows, positive.astype(np.int8), sample_weight, **grouped)
        search_seconds = time.perf_counter() - search_began
        scores = model.model_.held_out_scores_
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
