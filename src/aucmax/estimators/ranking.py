"""What all classifiers share, whatever they learn with."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from aucmax.features.kernels import RADIAL
from aucmax.fitting.context import Context, draw_seed, open_context
from aucmax.fitting.folds import positives_of
from aucmax.fitting.scaling import Scaling, fit_scaler, new_scaler, scale_rows
from aucmax.metrics.cutoffs import balanced_threshold
from aucmax.rows.blocked import BlockedRows
from aucmax.rows.content_order import content_order
from aucmax.rows.sources import Source, is_source, open_rows, source_blocks
from aucmax.rows.validation import (
    all_or_nothing,
    check_classes,
    check_labels,
    check_rows,
    check_weight,
    drop_absent,
    is_dask,
    is_elsewhere,
    refuse_lone_weight,
    refuse_odd,
)
from aucmax.runtime.memory import guarded_memory
from aucmax.runtime.parameters import check_flag, check_verbose, warn_user

#: Kernel values up to this size are kept in float64 when the data is; larger ones in float32. Small
#: problems so agree with any float64 optimiser; large ones take half the memory and time.
FLOAT64_BYTES = 2**26


class _NoProbabilities:
    """Makes a method absent, as ``hasattr`` sees it, with an error that names what has it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, model: Any, owner: type) -> Any:
        raise AttributeError(
            f"{owner.__name__} has no {self._name}: it gives scores, by decision_function. For "
            "probabilities put scikit-learn's CalibratedClassifierCV around it, or fit an "
            "aucmax.TableModel, which is calibrated."
        )


class RankingClassifier(ClassifierMixin, BaseEstimator):
    """Labels, standardised rows, one column of scores per ranked class, threshold, decision."""

    standardize: bool | str
    checkpoint: Any = None
    time_budget: float | None = None
    classes_: np.ndarray
    intercept_: np.ndarray
    scaler_: Any  # a StandardScaler, QuantileScaler or MetricScaler, or None

    #: Whether a fit reads rows by blocks, and so takes what is no array.
    _takes_blocks = False

    def _fit(self, X: Any, y: Any, sample_weight: Any = None, **extra: Any) -> Any:
        """Check, standardise, learn; ``_fit_columns`` gets what ``_prepare`` makes of the rest."""
        self._check_params()
        check_verbose(getattr(self, "verbose", 0))
        began = time.monotonic()
        with (
            guarded_memory(f"The fit of {type(self).__name__}", self, X),
            all_or_nothing(self),
            open_rows(X, y, sample_weight, self._takes_blocks) as given,
        ):
            if given is not None:
                X, y, sample_weight = self._take_source(given)
            elif is_dask(X):
                from aucmax.distributed import take_over

                X, y, sample_weight = take_over(self, X, y, sample_weight)
            check_labels(y)
            X, y = check_rows(self, X, y)
            check_classes(y)
            weight = check_weight(sample_weight, X.shape[0])
            refuse_lone_weight(weight)
            present = np.flatnonzero(weight)
            self.classes_, codes = np.unique(y[present], return_inverse=True)
            if self.classes_.size < 2:
                raise ValueError(
                    "Ranking needs rows of at least two classes; those of non-zero weight are all of "
                    f"one class, {self.classes_.tolist()[0]!r}."
                )
            given, given_weight = X, weight
            X, _, weight = drop_absent(X, None, weight)
            if not is_elsewhere(X):
                order = content_order(X, codes, weight)
                X, codes, weight, present = X[order], codes[order], weight[order], present[order]
            extra = self._prepare(given, y, given_weight, present, **extra)
            del given
            try:
                with (
                    np.errstate(over="ignore", invalid="ignore", divide="ignore"),  # found and named
                    open_context(self, self._fit_data(X, codes, weight, extra), began) as context,
                ):
                    extra |= self._settle(X, codes, weight, context)
                    scaling = self._scaling()
                    self.scaler_ = context.checkpoint.fitted(
                        "scaler", lambda: fit_scaler(X, weight, scaling), lambda: new_scaler(X, scaling)
                    )
                    self._fit_columns(self._scaled(X), codes, weight, context, unscaled=X, **extra)
            except FloatingPointError as error:
                raise ValueError(
                    f"The fit cannot go on: {error}. Check for extreme values in X, sample_weight "
                    "and C, and standardize the features."
                ) from None
        return self

    def _take_source(self, source: Source) -> tuple[BlockedRows, np.ndarray, Any]:
        X = BlockedRows(source.rows, dtype=source.rows.dtype)
        y = np.asarray(source.y)
        if y.shape != (X.shape[0],):
            raise ValueError(f"y must have one label for each of {X.shape[0]} rows; got {y.shape}.")
        self.n_features_in_ = X.shape[1]
        if source.names is not None:
            self.feature_names_in_ = np.array(source.names, dtype=object)
        return X, y, source.weight

    def _fit_data(
        self, X: Any, codes: np.ndarray, weight: np.ndarray, extra: dict[str, Any]
    ) -> dict[str, Sequence[Any]]:
        """All arrays that the fit depends on, by name, if it has a checkpoint to compare them with."""
        if self.checkpoint is None:
            return {}
        labels = (codes, self.classes_)
        return {"X": (X,), "y": labels, "sample_weight": (weight,), **self._more_data(**extra)}

    def _more_data(self, **extra: Any) -> dict[str, Sequence[Any]]:
        """Arrays beside rows, labels and weights that the fit depends on, by name."""
        return {}

    def _settle(
        self, X: Any, codes: np.ndarray, weight: np.ndarray, context: Context
    ) -> dict[str, Any]:
        """Tune the parameters left at "auto"; what else was found goes to ``_fit_columns``."""
        return {}

    def _scaling(self) -> Scaling:
        """How rows are scaled, once that is settled."""
        by_distance = getattr(self, "kernel", None) in (*RADIAL, "auto")
        names = getattr(self, "feature_names_in_", None)
        return Scaling(self.standardize, by_distance=by_distance, names=names)

    def _scaled(self, X: Any) -> Any:
        return scale_rows(self.scaler_, X)

    def _check_params(self) -> None:
        raise NotImplementedError

    def _prepare(
        self, X: Any, y: Any, weight: np.ndarray, fitted: np.ndarray, **extra: Any
    ) -> dict[str, Any]:
        """What ``_fit_columns`` takes beside rows, classes and weights.

        It is made from all rows as they came; ``fitted`` has the positions of those that a fit sees,
        in its order.
        """
        return extra

    def _fit_columns(
        self, X: Any, codes: np.ndarray, weight: np.ndarray, context: Context, **extra: Any
    ) -> None:
        """Learn from standardised rows: set ``intercept_`` and all that ``_scores`` needs."""
        raise NotImplementedError

    def _positives(self, codes: np.ndarray) -> list[np.ndarray]:
        """The positive rows of each column: the second of two classes, or each against the rest."""
        return positives_of(codes, self.classes_.size)

    def _set_thresholds(
        self, scores: np.ndarray, positives: list[np.ndarray], weight: np.ndarray
    ) -> None:
        """Cut each column of scores (n, k) where ``predict`` shall; see there."""
        if scores.size and not np.ptp(scores, axis=0).any():
            warn_user(
                f"{type(self).__name__} gives all training rows the same score: it has learnt nothing. "
                "Check that X varies with y, and that parameters are not extreme."
            )
        self.intercept_ = -np.array(
            [
                balanced_threshold(column, up, weight)
                for column, up in zip(scores.T, positives, strict=True)
            ]
        )

    def _scores(self, X: Any) -> np.ndarray:
        """Scores (n, k) of checked rows, before the threshold."""
        raise NotImplementedError

    def decision_function(self, X: Any) -> np.ndarray:
        """Score of each row, less the learnt threshold: the higher, the more positive.

        Shape (n,) for two classes, where positive means ``classes_[1]``; otherwise (n, n_classes).
        """
        check_is_fitted(self)
        if is_dask(X):
            return self._lazily("decision_function", X)
        with guarded_memory(f"Scoring by {type(self).__name__}", self, X):
            return self._decided(X)

    def _decided(self, X: Any) -> np.ndarray:
        if is_source(X):
            names = getattr(self, "feature_names_in_", None)
            blocks = source_blocks(X, None if names is None else names.tolist())
            parts, first = [], 0
            for block in blocks:
                parts.append(self._decide(self._as_block(block), first))
                first += len(block)
            return np.concatenate(parts)
        return self._decide(check_rows(self, X, reset=False))

    def _as_block(self, block: np.ndarray) -> np.ndarray:
        refuse_odd("X", block)
        if block.ndim != 2 or block.shape[1] != self.n_features_in_:
            raise ValueError(
                f"A block of X has shape {block.shape}; {type(self).__name__} was fitted to "
                f"{self.n_features_in_} columns."
            )
        return block

    def _decide(self, X: Any, first: int = 0) -> np.ndarray:
        """Scores of checked rows, of which the first is number ``first`` of all."""
        with np.errstate(over="ignore", invalid="ignore"):  # found and named below
            scores = self._scores(X).astype(np.float64) + self.intercept_
        finite = np.isfinite(scores).all(axis=1)
        if not finite.all():
            from aucmax.reading.frames import RowError

            raise RowError(
                f"The score of row {RowError.ROW} is not finite ({int((~finite).sum())} such rows): "
                "its features are too extreme for this model.",
                first + int(finite.argmin()),
            )
        return scores[:, 0] if self.classes_.size == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Class of each row: above the threshold, or of the highest score among several classes.

        The threshold is where sensitivity plus specificity on the training scores is largest
        (Youden's), so it does not follow the majority when one class is rare. For another aim use
        scikit-learn's ``TunedThresholdClassifierCV`` around this classifier.
        """
        if is_dask(X):
            check_is_fitted(self)
            return self._lazily("predict", X)
        decision = self.decision_function(X)
        if self.classes_.size == 2:
            return self.classes_[(decision > 0).astype(np.intp)]
        return self.classes_[self._rivals(decision).argmax(axis=1)]

    predict_proba = _NoProbabilities()
    predict_log_proba = _NoProbabilities()

    def _lazily(self, method: str, X: Any) -> Any:
        from aucmax.distributed import lazily

        return lazily(self, method, X)

    def _rivals(self, decision: np.ndarray) -> np.ndarray:
        """Scores (n, n_classes) of which the highest wins."""
        return decision

    def __getstate__(self) -> dict[str, Any]:
        """With the checkpoint's path as text, which files of a model can hold and any system reads."""
        state: dict[str, Any] = super().__getstate__()
        path = state.get("checkpoint")
        return {**state, "checkpoint": os.fspath(path)} if isinstance(path, os.PathLike) else state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class LinearScores:
    """Scores that are linear in X, kept in its units whatever units they were learnt in."""

    scaler_: Any
    intercept_: np.ndarray

    def _set_coef(self, coef: np.ndarray) -> None:
        """``coef_`` in the units of X, from coefficients (d, k) over standardised rows."""
        if self.scaler_ is not None:
            if not isinstance(self.scaler_, StandardScaler):
                kind = type(self.scaler_).__name__
                raise TypeError(f"Linear scores need a StandardScaler or none; got a {kind}.")
            coef = coef / self.scaler_.scale_[:, None]
            if self.scaler_.with_mean:
                self.intercept_ = self.intercept_ - self.scaler_.mean_ @ coef
        self.coef_ = coef.T

    def _scores(self, X: Any) -> np.ndarray:
        return X @ self.coef_.T


class WeightedClassifier(RankingClassifier):
    """Classifiers whose ``fit`` takes weights and nothing else."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit to rows ``X`` (n, d) and their classes ``y``.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n, d)
            Or more than memory holds: a ``numpy.memmap``, the path of a file or of a folder of Parquet
            files, or an iterable of blocks (X, y) or (X, y, weight). The
            kernel classifiers take Dask arrays and data frames, too: see :mod:`aucmax.distributed`.
        y : array of shape (n,)
            Any two labels, or more: then each class is ranked against the rest. The name of a column
            if X is a path; None if X is blocks.
        sample_weight : array of shape (n,), optional
            A pair weighs the product of its rows' weights. A row of weight 0 is absent, from the
            standardisation, landmarks and bandwidth as well.
        """
        return self._fit(X, y, sample_weight)


def check_linear(standardize: Any) -> None:
    """Refuse a way to standardise that scores would not be linear in X after."""
    if isinstance(standardize, str):
        raise ValueError(
            f"standardize must be True or False for this classifier; got {standardize!r}. "
            'KernelAUCClassifier takes "quantile", too.'
        )
    check_flag("standardize", standardize)


def generator(random_state: Any) -> np.random.Generator:
    """NumPy's newer generator from scikit-learn's ``random_state``."""
    return np.random.default_rng(draw_seed(random_state))


def plain_records(history: Iterable[Any]) -> list[dict[str, Any]]:
    """A solver's records as ``history_`` holds them."""
    return [{name: plain(value) for name, value in vars(record).items()} for record in history]


def plain(value: Any) -> Any:
    """Numbers for one column, lists for several: what JSON and data frames take."""
    if isinstance(value, np.ndarray):
        return value.item() if value.size == 1 else value.tolist()
    return value
