"""The features of a model, and the column of the table that each feature comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from aucmax.rows.validation import check_rows


@dataclass(frozen=True)
class Columns:
    """The names of the columns, and for each feature the number of its column, or -1 for none."""

    names: list[str]
    owner: np.ndarray

    @property
    def membership(self) -> Any:
        """Return a sparse matrix (features, columns): values of features times it are per column."""
        used, shape = np.flatnonzero(self.owner >= 0), (self.owner.size, len(self.names))
        return sparse.csr_array((np.ones(used.size), (used, self.owner[used])), shape=shape)


def columns_of(model: Any, n_features: int) -> Columns:
    """Return the columns of a model; a model that takes arrays has one for each feature."""
    if not hasattr(model, "columns_"):
        names = getattr(model, "feature_names_in_", range(n_features))
        return Columns([str(name) for name in names], np.arange(n_features))
    used = [column for column in model.columns_ if column["features"]]
    owners = {name: i for i, column in enumerate(used) for name in column["features"]}
    owner = np.array([owners.get(name, -1) for name in model.feature_names_])
    return Columns([column["name"] for column in used], owner)


def unwrap(model: Any, X: Any) -> tuple[Any, Any, Columns]:
    """Return rows of features, their classifier, and the columns; without X, the model's landmarks."""
    check_is_fitted(model)
    if not hasattr(model, "columns_"):
        rows = landmark_rows(model) if X is None else check_rows(model, X, reset=False)
        return rows, model, columns_of(model, rows.shape[1])
    rows = landmark_rows(model.model_) if X is None else model.features(X)
    return rows, model.model_, columns_of(model, rows.shape[1])


def landmark_rows(model: Any) -> np.ndarray:
    """Return the landmarks in the units of the table."""
    landmarks = getattr(getattr(model, "feature_map_", None), "landmarks_", None)
    if landmarks is None:
        raise ValueError(f"This {type(model).__name__} has no landmarks, so X must hold rows.")
    scaler = model.scaler_
    return landmarks if scaler is None else np.asarray(scaler.inverse_transform(landmarks))
