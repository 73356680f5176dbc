"""What all classifiers share: scores, decisions, and the attributes of a machine."""

from __future__ import annotations

import inspect
import os
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from aucmax.rows.interface import as_rows
from aucmax.rows.sources import is_dask, is_source, source_blocks
from aucmax.rows.validation import check_rows, refuse_odd
from aucmax.runtime.memory import guarded_memory

Array = npt.NDArray[Any]


class _NoProbabilities:
    """Make a method absent, as ``hasattr`` sees it, with an error that names the alternatives."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, model: Any, owner: type) -> Any:
        raise AttributeError(
            f"{owner.__name__} has no {self._name}: it gives scores, by decision_function. For "
            "probabilities put scikit-learn's CalibratedClassifierCV around it, or fit an "
            "aucmax.TableModel, which is calibrated."
        )


class RankingClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that scores rows by a machine.

    ``fit`` of a subclass makes a machine and calls :meth:`_keep`, which turns its parts into learnt
    attributes; ``machine_`` puts them together again.
    """

    classes_: Array
    intercept_: Array
    n_features_in_: int

    @property
    def machine_(self) -> Any:
        """The machine that the learnt attributes make up, as a value."""
        raise NotImplementedError

    def _keep(self, machine: Any, **attributes: Any) -> None:
        """Set learnt attributes: the parts of a machine, by their names, and others."""
        parts = {f"{name}_": value for name, value in vars(machine).items() if name != "spec"}
        for name, value in {**parts, **attributes}.items():
            setattr(self, name, value)

    def decision_function(self, X: Any) -> Array:
        """Return the score of each row less the threshold: the higher, the more positive.

        The shape is (n,) for two classes, where positive means ``classes_[1]``; otherwise
        (n, n_classes).
        """
        check_is_fitted(self)
        if is_dask(X):
            from aucmax.distributed import lazily

            return lazily(self, "decision_function", X)
        with guarded_memory(f"Scoring by {type(self).__name__}", self, X):
            if not is_source(X):
                return self._decide(check_rows(self, X, reset=False))
            names = getattr(self, "feature_names_in_", None)
            parts, first = [], 0
            for block in source_blocks(X, None if names is None else names.tolist()):
                parts.append(self._decide(self._checked_block(block), first))
                first += len(block)
            return np.concatenate(parts)

    def _checked_block(self, block: Array) -> Array:
        """Return a block of rows; refuse one with other columns than those of the fit."""
        refuse_odd("X", block)
        if block.ndim != 2 or block.shape[1] != self.n_features_in_:
            raise ValueError(
                f"A block of X has shape {block.shape}; {type(self).__name__} was fitted to "
                f"{self.n_features_in_} columns: pass blocks of shape (rows, {self.n_features_in_})."
            )
        return block

    def _decide(self, X: Any, first: int = 0) -> Array:
        """Return scores of checked rows; the first of them is number ``first`` of all."""
        with np.errstate(over="ignore", invalid="ignore"):  # checked below
            scores = self.machine_.scores(as_rows(X)).astype(np.float64) + self.intercept_
        finite = np.isfinite(scores).all(axis=1)
        if not finite.all():
            from aucmax.reading.frames import RowError

            raise RowError(
                f"The score of row {RowError.ROW} is not finite ({int((~finite).sum())} such rows): "
                "its features are too extreme for this model.",
                first + int(finite.argmin()),
            )
        return scores[:, 0] if self.classes_.size == 2 else scores

    def predict(self, X: Any) -> Array:
        """Return the class of each row: above the threshold, or of the highest of several scores.

        The threshold is where sensitivity plus specificity on the training scores is largest
        (Youden's), so it does not follow the majority when one class is rare. For another aim use
        scikit-learn's ``TunedThresholdClassifierCV`` around this classifier.
        """
        if is_dask(X):
            check_is_fitted(self)
            from aucmax.distributed import lazily

            return lazily(self, "predict", X)
        decision = self.decision_function(X)
        if self.classes_.size == 2:
            return self.classes_[(decision > 0).astype(np.intp)]
        # A class that has not occurred in a stream yet is not predicted.
        seen = getattr(self, "class_seen_", True)
        return self.classes_[np.where(seen, decision, -np.inf).argmax(axis=1)]

    predict_proba = _NoProbabilities()
    predict_log_proba = _NoProbabilities()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with the checkpoint's path as text, which model files can hold."""
        state: dict[str, Any] = super().__getstate__()
        path = state.get("checkpoint")
        return {**state, "checkpoint": os.fspath(path)} if isinstance(path, os.PathLike) else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(current_state(self, state))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def current_state(estimator: Any, state: dict[str, Any]) -> dict[str, Any]:
    """Return a state with the present parameters; an earlier version may have had others."""
    params = inspect.signature(type(estimator)).parameters
    known = {
        name: value
        for name, value in state.items()
        if name in params or name.endswith("_") or name.startswith("_")
    }
    return {**{name: each.default for name, each in params.items()}, **known}
