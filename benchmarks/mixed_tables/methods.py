"""The methods, each with its own way of handling categories and missing values."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from aucmax import TableModel

THREADS = 2
MISSING = "(missing)"  # the level that CatBoost gets for a missing category


class Aucmax:
    """TableModel with its defaults."""

    def __init__(self, seed: int, categories: list[str]) -> None:
        self.model = TableModel(random_state=seed)

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Aucmax:
        self.model.fit(X, y)
        return self

    def scores(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.decision_function(X)


class CatBoost:
    """CatBoost with its defaults and its own encoding of categories."""

    def __init__(self, seed: int, categories: list[str]) -> None:
        from catboost import CatBoostClassifier

        self.categories = categories
        self.model = CatBoostClassifier(
            cat_features=categories,
            thread_count=THREADS,
            random_seed=seed,
            verbose=0,
            allow_writing_files=False,
        )

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> CatBoost:
        self.model.fit(self.prepared(X), y)
        return self

    def scores(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict(self.prepared(X), prediction_type="RawFormulaVal")

    def prepared(self, X: pd.DataFrame) -> pd.DataFrame:
        """CatBoost accepts NaN in numbers only."""
        return X.assign(**{name: X[name].fillna(MISSING) for name in self.categories})


class LightGBM:
    """LightGBM with 300 trees and pandas categories; levels that are new at test time are missing."""

    def __init__(self, seed: int, categories: list[str]) -> None:
        from lightgbm import LGBMClassifier

        self.categories = categories
        self.model = LGBMClassifier(n_estimators=300, n_jobs=THREADS, random_state=seed, verbose=-1)

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> LightGBM:
        self.levels_ = {name: sorted(X[name].dropna().unique()) for name in self.categories}
        self.model.fit(self.prepared(X), y)
        return self

    def scores(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict(self.prepared(X), raw_score=True)

    def prepared(self, X: pd.DataFrame) -> pd.DataFrame:
        known = {
            name: pd.Categorical(X[name].where(X[name].isin(levels), None), categories=levels)
            for name, levels in self.levels_.items()
        }
        return X.assign(**known)


class Method(NamedTuple):
    """``make`` takes a seed and the names of the columns of text."""

    make: Callable[[int, list[str]], Any]
    package: str

    def version(self) -> str | None:
        """Return the name and version of its package, or None if it is not installed."""
        try:
            return f"{self.package} {version(self.package)}"
        except PackageNotFoundError:
            return None


#: The first is ours; fit times are relative to CatBoost's.
METHODS = {
    "aucmax": Method(Aucmax, "aucmax"),
    "CatBoost": Method(CatBoost, "catboost"),
    "LightGBM": Method(LightGBM, "lightgbm"),
}
