"""A classifier of tables: columns of any kind in; scores, probabilities and decisions out."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from numbers import Integral
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import PredefinedSplit, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils.validation import check_is_fitted

from aucmax.estimators.search import KernelAUCClassifierCV
from aucmax.metrics import roc_auc, roc_auc_interval
from aucmax.metrics.calibration import IsotonicCalibrator, SigmoidCalibrator, make_calibrator
from aucmax.metrics.thresholds import Aim, Threshold, choose_threshold
from aucmax.reading.frames import (
    RowError,
    TableError,
    as_series,
    check_names,
    frame_hash,
)
from aucmax.rows.validation import all_or_nothing, check_weight
from aucmax.runtime.parameters import check_choice, check_number, is_auto, warn_user
from aucmax.tables.columns import (
    feature_names,
    features,
    make_preprocessor,
    normal_frame,
    reading_schema,
)
from aucmax.tables.inputs import scoring_frame, training_frame
from aucmax.tables.labels import Labels, known_labels, two_labels
from aucmax.tables.profile import study_columns
from aucmax.tables.unseen_values import Surprises, count_surprises, tell_surprises

__all__ = ["TableModel", "check_drop"]


class TableModel(ClassifierMixin, BaseEstimator):
    """Rank the rows of a table: prepare its columns, choose C and gamma, calibrate, cut.

    Numbers stay, with the median where one is missing and a second feature that says so; categories
    become a feature for each level, the rare ones pooled; columns that tell nothing are left out.
    ``columns_`` says what was done to each. Folds of cross-validation give each training row a score
    by a model that has not seen it: from these come the AUC in ``training_``, the probabilities and
    the threshold. Medians and levels are those of all rows; no label has a part in them.

    Parameters
    ----------
    positive : label, optional
        The label to be ranked high; the rarer one by default. Text is understood for any label.
    drop : sequence of str, default=()
        Columns to leave out.
    rare_level : int or "auto", default="auto"
        Levels of a category with fewer rows are pooled; "auto" is 10, or 0.1 % of the rows if more.
    max_levels : int, default=50
        Features a category may become; further levels, the rarest, are pooled.
    kernel, landmarks, metric : default="auto"
    preset, effort : default=None, 1.0
        As in :class:`KernelAUCClassifier`: it is tuned on held-out rows.
    Cs, gammas, time_budget, n_landmarks, solver, max_memory
        As in :class:`KernelAUCClassifierCV`.
    cv : int or splitter, default=3
        A number of folds, with classes in equal shares and rows in random order (whole groups, where
        they are given), or a splitter of scikit-learn.
    calibration : {"sigmoid", "isotonic"}, default="sigmoid"
        How scores become probabilities; isotonic for a thousand positives or more.
    aim : str, optional
        What the threshold is chosen for, such as "precision=0.8": see ``aucmax.metrics.thresholds``. By
        default recall less false-positive rate is made as large as can be.
    random_state : int, default=0
    verbose : int, default=0
        1 shows a bar over the search.

    Attributes
    ----------
    columns_ : list of dict
        For each column of the table: name, type (polars'), kind ("number", "boolean", "category" or
        "dropped"), missing (rows), treatment (a sentence), features (what was made of it), and of
        categories the levels, those pooled (at most a hundred of them) and pooled_count.
    preprocessor_ : ColumnTransformer
        From frames in normal form to features; ``feature_names_`` are their names.
    model_ : KernelAUCClassifierCV
    classes_ : array of shape (2,)
        The two labels, sorted. ``decision_function``, ``predict_proba`` and so all of scikit-learn
        follow their order.
    positive_label_, negative_label_ : label
        Which of the two is ranked high, and the other. ``scores``, ``probabilities``, ``threshold_``,
        ``held_out_``, ``training_``, files of scores and reports speak of ``positive_label_``.
    n_features_in_ : int
    feature_names_in_ : array of str
        Of a frame, the names of its columns.
    calibrator_ : SigmoidCalibrator or IsotonicCalibrator
    threshold_ : Threshold
        With the counts and rates to expect.
    held_out_ : dict of arrays over training rows
        "positive" (bool), "score" (by a fold that has not seen the row; NaN where there is none)
        and "weight".
    training_ : dict
        Rows, positives, AUC of the held-out scores with its interval, and where all came from.

    Examples
    --------
    >>> import numpy as np
    >>> import polars as pl
    >>> from aucmax.tables import TableModel
    >>> rng = np.random.default_rng(0)
    >>> table = pl.DataFrame({"age": rng.integers(18, 80, 400), "plan": rng.choice(["a", "b"], 400)})
    >>> left = (table["age"] > 60) & (table["plan"] == "b")
    >>> model = TableModel(n_landmarks=50).fit(table, left)
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
    calibrator_: SigmoidCalibrator | IsotonicCalibrator
    threshold_: Threshold
    held_out_: dict[str, np.ndarray]
    training_: dict[str, Any]

    def __init__(
        self,
        *,
        positive: Any = None,
        drop: Sequence[str] = (),
        rare_level: int | str = "auto",
        max_levels: int = 50,
        Cs: Any = "auto",
        gammas: Any = None,
        cv: Any = 3,
        time_budget: float | None = None,
        kernel: str = "auto",
        n_landmarks: int | str = "auto",
        landmarks: Any = "auto",
        metric: str | None = "auto",
        preset: str | None = None,
        effort: float = 1.0,
        solver: str = "newton",
        max_memory: int | str | None = None,
        calibration: str = "sigmoid",
        aim: str | None = None,
        random_state: int = 0,
        verbose: int = 0,
    ) -> None:
        self.positive = positive
        self.drop = drop
        self.rare_level = rare_level
        self.max_levels = max_levels
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.time_budget = time_budget
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.metric = metric
        self.preset = preset
        self.effort = effort
        self.solver = solver
        self.max_memory = max_memory
        self.calibration = calibration
        self.aim = aim
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> TableModel:
        """Learn from a table and the label of each row.

        Parameters
        ----------
        X : polars or pandas frame, array or list of n rows
            Columns of a frame are known by their names, those of an array by their positions.
        y : series or array of shape (n,)
            Two labels of any kind. Rows without one are left out.
        sample_weight : array of shape (n,), optional
        groups : array of shape (n,), optional
            Rows of one group, such as of one customer, are held out together.
        """
        return self._fit(X, y, sample_weight, groups, {}, time.perf_counter())

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, about: dict[str, Any], began: float
    ) -> TableModel:
        """Fit; ``began`` is when the clock of ``time_budget`` was started."""
        with all_or_nothing(self):
            target = str(about.get("target") or getattr(y, "name", None) or "")
            table = training_frame(self, X)
            ready = self._make_ready(table, y, sample_weight, groups, target)
            rows, positive, weight, groups = ready.rows, ready.positive, ready.weight, ready.groups
            about = {"data_hash": about.get("data_hash") or frame_hash(table), **about}
            self.model_ = self._search(ready.folds, self._time_left(began))
            even = not np.ptp(weight)
            given = {} if groups is None else {"groups": groups}
            searching = time.perf_counter()
            self.model_.fit(rows, positive.astype(np.int8), None if even else weight, **given)
            searching = time.perf_counter() - searching
            scores = self.model_.held_out_scores_
            self.held_out_ = {"positive": positive, "score": scores, "weight": weight}
            self._calibrate(positive, scores, None if even else weight)
            self.training_ = {
                **self._quality(positive, scores, None if even else weight),
                "rows": int(positive.size),
                "positives": int(positive.sum()),
                "rows_without_label": ready.without_label,
                "copies": _copies(ready.frame, self.columns_, positive),
                "seconds": time.perf_counter() - began,
                "search_seconds": searching,
                "target": target or None,
                "positive": self.positive_label_,
                "negative": self.negative_label_,
                "weight": about.get("weight"),
                "group": about.get("group"),
                "random_state": self.random_state,
                "data_hash": about["data_hash"],
                "date": datetime.now(UTC).isoformat(timespec="seconds"),
            }
        return self

    def _make_ready(
        self, table: pl.DataFrame, y: Any, sample_weight: Any, groups: Any, target: str
    ) -> _Ready:
        """All that comes before the search: labels, folds, columns and what becomes of them."""
        self._check_params()
        labels = two_labels(y, self.positive, target)
        check_length("y", labels.known, table)
        weight = check_weight(sample_weight, table.height)
        used = labels.known & (weight > 0)
        if groups is not None:
            groups = as_series(groups, "groups")
            check_length("groups", groups, table)
            groups = _group_codes(groups)[used]
        positive = labels.positive[used]
        folds = self._folds(positive, groups, labels, used)
        frame = self._without_dropped(table)
        frame = frame if used.all() else frame.filter(pl.Series(used))
        try:
            self.columns_ = study_columns(frame, rare_level=self.rare_level, max_levels=self.max_levels)
        except RowError as error:  # counted among the rows in use
            raise error.moved(np.flatnonzero(used)[error.row]) from None
        self.preprocessor_ = make_preprocessor(self.columns_)
        self.feature_names_ = feature_names(self.columns_)
        self.classes_, self.positive_label_ = labels.classes, labels.positive_label
        missing = int((~labels.known).sum())
        rows = features(self.preprocessor_, normal_frame(frame, self.columns_))
        return _Ready(rows, positive, weight[used], groups, folds, frame, missing)

    @property
    def negative_label_(self) -> Any:
        """The label that is not ``positive_label_``."""
        check_is_fitted(self, "classes_")
        first, second = self.classes_.tolist()
        return first if second == self.positive_label_ else second

    def scores(self, X: Any) -> np.ndarray:
        """Score of each row (n,): the higher, the more like ``positive_label_``.

        A row is called positive where its score is at or above ``threshold_.threshold``.
        """
        check_is_fitted(self)
        return self.model_.decision_function(self.features(X))

    def probabilities(self, X: Any) -> np.ndarray:
        """Probability of ``positive_label_`` for each row (n,)."""
        scores = self.scores(X)
        return self.calibrator_.predict(scores)

    def decision_function(self, X: Any) -> np.ndarray:
        """Distance of each row's score from the threshold (n,): above 0 means ``classes_[1]``.

        So its sign is that of ``predict``, and it rises with ``scores`` if ``positive_label_`` is
        ``classes_[1]``, and falls with them otherwise.
        """
        scores, threshold = self.scores(X), self.threshold_.threshold
        if self.positive_label_ != self.classes_[1]:
            return threshold - scores
        # A score at the threshold is positive, and must not come out as 0.
        return scores - np.nextafter(threshold, -np.inf)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities (n, 2) of the labels, in the order of ``classes_``."""
        up = self.probabilities(X)
        columns = [1.0 - up, up] if self.positive_label_ == self.classes_[1] else [up, 1.0 - up]
        return np.column_stack(columns)

    def predict(self, X: Any) -> np.ndarray:
        """The positive label at or above ``threshold_``, the negative one below."""
        decision = self.decision_function(X)
        return self.classes_[(decision > 0).astype(np.intp)]

    def features(self, X: Any, *, first_row: int = 0, surprises: Surprises | None = None) -> np.ndarray:
        """The features (n, d) that ``model_`` sees of each row, in float32.

        ``first_row`` is the number of the first row of X, for errors that name a row of a batch; to
        ``surprises`` is added what the training did not have.
        """
        check_is_fitted(self, "preprocessor_")
        frame = normal_frame(scoring_frame(self, X), self.columns_, first_row=first_row)
        if surprises is not None:
            surprises.update(count_surprises(frame, self.columns_))
        return features(self.preprocessor_, frame)

    def surprises(self, X: Any) -> list[str]:
        """Sentences on what a table holds that the training did not: levels never seen, new holes."""
        check_is_fitted(self, "preprocessor_")
        table = scoring_frame(self, X)
        counts = count_surprises(normal_frame(table, self.columns_), self.columns_)
        return tell_surprises(counts, table.height, self.columns_)

    def labels(self, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Which rows of a target are positive, and which have a label at all, as two bool arrays.

        Labels that were read as another type are understood ("1" for 1); others are refused.
        """
        check_is_fitted(self)
        name = str(getattr(y, "name", None) or "")
        return known_labels(y, self.negative_label_, self.positive_label_, name)

    @property
    def reading_schema(self) -> dict[str, Any]:
        """Columns the model needs, with the types to read them in from a text file."""
        check_is_fitted(self, "columns_")
        return reading_schema(self.columns_)

    def __getstate__(self) -> dict[str, Any]:
        """With columns as one text, and without what is made of them: files hold many columns so."""
        state: dict[str, Any] = super().__getstate__()
        if "columns_" not in state:
            return state
        state = {**state, "columns_": json.dumps(self.columns_)}
        if "feature_names_in_" in state:
            state["feature_names_in_"] = json.dumps(self.feature_names_in_.tolist())
        return {name: state[name] for name in state if name not in ("preprocessor_", "feature_names_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a model; one of version 0.1 had the negative and the positive label as classes."""
        state = dict(state)
        if isinstance(state.get("columns_"), str):
            columns = json.loads(state["columns_"])
            state |= {"columns_": columns, "feature_names_": feature_names(columns)}
            state["preprocessor_"] = make_preprocessor(columns)
            if "feature_names_in_" in state:
                names = json.loads(state["feature_names_in_"])
                state["feature_names_in_"] = np.array(names, dtype=object)
        elif "classes_" in state and "positive_label_" not in state:
            names = [column["name"] for column in state["columns_"]]
            state["positive_label_"] = state["classes_"][1].item()
            state["classes_"] = np.sort(state["classes_"])
            state["feature_names_in_"] = np.array(names, dtype=object)
            state["n_features_in_"] = len(names)
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags

    def _check_params(self) -> None:
        check_choice("calibration", self.calibration, ("sigmoid", "isotonic"))
        if self.time_budget is not None:
            check_number("time_budget", self.time_budget)
        if self.aim is not None:
            Aim.parse(self.aim)
        if not is_auto(self.rare_level):
            check_number("rare_level", self.rare_level, low=1, closed=True, integer=True)
        check_number("max_levels", self.max_levels, low=2, closed=True, integer=True)
        check_drop(self.drop)

    def _without_dropped(self, table: pl.DataFrame) -> pl.DataFrame:
        check_names(table.columns, self.drop, "was to be dropped")
        return table.drop(list(self.drop))

    def _folds(
        self, positive: np.ndarray, groups: np.ndarray | None, labels: Labels, used: np.ndarray
    ) -> Any:
        """The splitter, where there are rows and groups enough for it."""
        of_each = ((labels.positive_label, positive), (labels.negative_label, ~positive))
        for label, rows in of_each:
            if not rows.any():
                raise TableError(
                    f"No row of {label!r} has a weight above 0: one class is left, and a ranking needs "
                    "two."
                )
        if not isinstance(self.cv, Integral):
            return _splits_of_used(self.cv, used)
        check_number("cv", self.cv, low=2, closed=True, integer=True)
        wanted = int(self.cv)
        for label, rows in of_each:
            count = int(rows.sum()) if groups is None else np.unique(groups[rows]).size
            if count < wanted:
                what = "rows" if groups is None else "groups with rows"
                fewer = f", or use {count} folds" if count > 1 else ""
                raise TableError(
                    f"The label {label!r} has {count} {what} of non-zero weight, and {wanted} "
                    f"folds need at least {wanted}; bring more of them{fewer}."
                )
        splitter = StratifiedKFold if groups is None else StratifiedGroupKFold
        return splitter(wanted, shuffle=True, random_state=self.random_state)

    def _time_left(self, began: float) -> float | None:
        """Seconds of the time budget that reading and preparing the table have left to the search."""
        if self.time_budget is None:
            return None
        spent = time.perf_counter() - began
        if spent >= self.time_budget:
            raise TimeoutError(
                f"time_budget={self.time_budget:g} s was over when the table had been read and "
                f"prepared, after {spent:.1f} s: there is no model. Allow more time."
            )
        return self.time_budget - spent

    def _search(self, folds: Any, time_budget: float | None) -> KernelAUCClassifierCV:
        return KernelAUCClassifierCV(
            self.Cs,
            gammas=self.gammas,
            cv=folds,
            time_budget=time_budget,
            kernel=self.kernel,
            n_landmarks=self.n_landmarks,
            landmarks=self.landmarks,
            metric=self.metric,
            preset=self.preset,
            effort=self.effort,
            gamma="auto" if self.gammas is None else "distance",
            standardize="auto",
            solver=self.solver,
            max_memory=self.max_memory,
            random_state=self.random_state,
            verbose=self.verbose,
        )

    def _calibrate(self, positive: np.ndarray, scores: np.ndarray, weight: np.ndarray | None) -> None:
        held = ~np.isnan(scores)
        weight = None if weight is None else weight[held]
        aim = Aim() if self.aim is None else Aim.parse(self.aim)
        self.calibrator_ = make_calibrator(self.calibration).fit(scores[held], positive[held], weight)
        try:
            self.threshold_ = choose_threshold(positive[held], scores[held], aim, weight)
        except ValueError as error:  # too late to refuse: all else is learnt
            warn_user(f"The aim {aim} cannot be met, so the threshold is chosen for {Aim()}: {error}")
            self.threshold_ = choose_threshold(positive[held], scores[held], Aim(), weight)

    @staticmethod
    def _quality(
        positive: np.ndarray, scores: np.ndarray, weight: np.ndarray | None
    ) -> dict[str, float | None]:
        """AUC of held-out scores; DeLong's interval knows no weights, so there is none with them."""
        held = ~np.isnan(scores)
        if weight is not None:
            auc = roc_auc(positive[held], scores[held], sample_weight=weight[held])
            return {"auc": auc, "auc_low": None, "auc_high": None}
        found = roc_auc_interval(positive[held], scores[held])
        return {"auc": found.auc, "auc_low": found.low, "auc_high": found.high}


@dataclass(frozen=True)
class _Ready:
    """A table as the search takes it."""

    rows: np.ndarray
    positive: np.ndarray
    weight: np.ndarray
    groups: np.ndarray | None
    folds: Any
    frame: pl.DataFrame
    without_label: int


def check_drop(drop: Any) -> None:
    """Refuse columns to drop that are no list of names."""
    if isinstance(drop, str):
        raise ValueError(f"drop must be a list of column names; got the text {drop!r}.")
    names = list(drop) if isinstance(drop, Iterable) and getattr(drop, "ndim", 1) != 0 else [None]
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"drop must be a list of column names; got {drop!r}.")


def _copies(frame: pl.DataFrame, columns: Sequence[dict[str, Any]], positive: np.ndarray) -> int:
    """Rows that have a twin, in a table fine enough for that to be no chance."""
    used = [column["name"] for column in columns if column["kind"] != "dropped"]
    numbers = [column["name"] for column in columns if column["kind"] == "number"]
    if not any(frame[name].n_unique() > frame.height / 20 for name in numbers):
        return 0
    return int(frame.select(used).with_columns(pl.Series(" positive", positive)).is_duplicated().sum())


def _splits_of_used(cv: Any, used: np.ndarray) -> Any:
    """Splits that name rows of the whole table, renumbered for the rows in use; else the splitter."""
    if used.all() or (hasattr(cv, "split") and not isinstance(cv, PredefinedSplit)):
        return cv
    place = np.cumsum(used) - 1
    every = np.arange(used.size)
    splits = cv.split() if hasattr(cv, "split") else cv
    return [
        tuple(place[rows[used[rows]]] for rows in (every[train], every[test])) for train, test in splits
    ]


def _group_codes(groups: pl.Series) -> np.ndarray:
    """A number for each group; a row without one is a group of its own."""
    codes = groups.cast(pl.String, strict=False).rank("dense").to_numpy().copy()
    alone = np.flatnonzero(groups.is_null().to_numpy())
    codes = np.nan_to_num(codes.astype(np.float64), nan=0.0)
    codes[alone] = codes.max(initial=0.0) + 1 + np.arange(alone.size)
    return codes.astype(np.intp)


def check_length(name: str, values: Any, table: pl.DataFrame) -> None:
    """Refuse what does not go with the rows of a table one by one."""
    if len(values) != table.height:
        raise TableError(
            f"{name} must have one entry for each of the {table.height:,} rows of the table; it has "
            f"{len(values):,}."
        )
