"""The mean of the label at each level of a category, for categories with very many levels.

Levels without a feature of their own are pooled, which loses what distinguishes them. One more feature
keeps it: the share of positive rows at the level, drawn towards the share ``p`` among all rows ::

    mean(level) = (positives(level) + m p) / (rows(level) + m),    m = p (1 - p) / v

where ``v`` is the variance of the true shares between levels, estimated by the method of moments. If
levels differ no more than by chance, ``v`` is small and all means are close to ``p``. Rows count by
their weights. Levels that were not seen get ``p``.

The label of a row must have no part in its own feature, or a model would learn to read it off. So the
training rows are cut into five folds, and the means of a fold come from the other four. New rows get
the means of all training rows. A row's feature may still depend on rows of another cross-validation
around it; ``tables/nested_scores.py`` says what follows for the AUC on held-out rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

_FOLDS = 5
_LEAST_SMOOTHING = 1.0

Encoding = dict[str, Any]  #: "levels", their "means" and the "prior" of one column, as plain data.


@dataclass(frozen=True)
class TargetRows:
    """What the means are learnt from: which rows are positive, their weights and groups."""

    positive: np.ndarray
    weight: np.ndarray
    groups: np.ndarray | None = None
    random_state: int = 0

    def take(self, rows: np.ndarray) -> TargetRows:
        """Return some of the rows."""
        groups = None if self.groups is None else self.groups[rows]
        return TargetRows(self.positive[rows], self.weight[rows], groups, self.random_state)


class LevelMeans(TransformerMixin, BaseEstimator):
    """Replace the levels of each column by their means; the part "means" of a preprocessor."""

    def __init__(self, encodings: Sequence[Encoding] = ()) -> None:
        self.encodings = encodings

    def fit(self, X: Any, y: Any = None) -> LevelMeans:
        """Do nothing: the means are a parameter."""
        self.n_features_in_ = len(self.encodings)
        return self

    def transform(self, X: pl.DataFrame) -> np.ndarray:
        """Return the means (n, columns) in float32."""
        return np.column_stack(
            [encode(column, each) for column, each in zip(X, self.encodings, strict=True)]
        )

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return a name for each column, as scikit-learn needs it to choose the kind of output."""
        return np.array([f"mean {i}" for i in range(len(self.encodings))], dtype=object)


def encode(levels: pl.Series, encoding: Encoding) -> np.ndarray:
    """Return the mean of each row's level in float32, and the prior for levels that were not seen."""
    known, means = encoding["levels"], encoding["means"]
    found = levels.replace_strict(known, means, default=encoding["prior"], return_dtype=pl.Float64)
    return found.to_numpy().astype(np.float32)


def learn_means(levels: pl.Series, target: TargetRows) -> Encoding:
    """Learn the mean of each level from all rows.

    >>> rows = TargetRows(np.array([True, True, False, False] * 50), np.ones(200))
    >>> found = learn_means(pl.Series(["a", "a", "b", "b"] * 50), rows)
    >>> found["levels"], [round(mean, 3) for mean in found["means"]], found["prior"]
    (['a', 'b'], [0.995, 0.005], 0.5)
    """
    codes, names = _codes(levels)
    prior, smoothing = _prior_and_smoothing(codes, len(names), target)
    means = _means(codes, len(names), target, prior, smoothing)
    return {"levels": names, "means": means.astype(np.float32).tolist(), "prior": float(prior)}


def out_of_fold_means(levels: pl.Series, target: TargetRows) -> np.ndarray:
    """Return the mean of each row's level among the rows of other folds, in float32."""
    codes, names = _codes(levels)
    # The prior and the smoothing are the same for all rows, so they distinguish none.
    prior, smoothing = _prior_and_smoothing(codes, len(names), target)
    found = np.full(codes.size, prior, np.float32)
    for train, test in _folds(target):
        means = _means(codes[train], len(names), target.take(train), prior, smoothing)
        found[test] = means[codes[test]]
    return found


def encoded_columns(columns: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the feature of level means, by column, for the columns that have one."""
    return {column["name"]: column["encoded"] for column in columns if column.get("encoded")}


def put_out_of_fold(
    rows: np.ndarray,
    columns: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    normal: pl.DataFrame,
    target: TargetRows,
) -> None:
    """Write the means for training into the features (n, d), which have these names."""
    for name, feature in encoded_columns(columns).items():
        rows[:, names.index(feature)] = out_of_fold_means(normal[name], target)


def _codes(levels: pl.Series) -> tuple[np.ndarray, list[str]]:
    names = levels.unique().sort()
    codes = levels.replace_strict(names, np.arange(len(names)), return_dtype=pl.Int64)
    return codes.to_numpy(), names.to_list()


def _prior_and_smoothing(codes: np.ndarray, n_levels: int, target: TargetRows) -> tuple[float, float]:
    """Return p and m; m is in the unit of the weights, which count as rows once their mean is 1."""
    unit = float(target.weight.mean())
    weight = target.weight / unit
    prior = float(np.average(target.positive, weights=weight))
    counts = np.bincount(codes, weight, n_levels)
    present = counts > 0
    shares = np.bincount(codes, weight * target.positive, n_levels)[present] / counts[present]
    counts, total, noise = counts[present], float(counts.sum()), prior * (1.0 - prior)
    spread = float((counts * (shares - prior) ** 2).sum()) - (counts.size - 1) * noise
    scale = total - float((counts**2).sum()) / total
    between = spread / scale if scale > 0 else 0.0
    if between <= 0.0:
        return prior, unit * total
    return prior, unit * min(max(noise / between, _LEAST_SMOOTHING), total)


def _means(
    codes: np.ndarray, n_levels: int, target: TargetRows, prior: float, smoothing: float
) -> np.ndarray:
    counts = np.bincount(codes, target.weight, n_levels)
    positives = np.bincount(codes, target.weight * target.positive, n_levels)
    return np.asarray((positives + smoothing * prior) / (counts + smoothing))


def _folds(target: TargetRows) -> list[tuple[np.ndarray, np.ndarray]]:
    """Cut the rows into folds; rows of one group stay together. Too few rows give none."""
    positive, groups = target.positive, target.groups
    own = np.arange(positive.size) if groups is None else groups
    count = min(_FOLDS, *(np.unique(own[rows]).size for rows in (positive, ~positive)))
    if count < 2:
        return []
    splitter = StratifiedKFold if groups is None else StratifiedGroupKFold
    folds = splitter(count, shuffle=True, random_state=target.random_state)
    return list(folds.split(np.zeros(positive.size), positive, groups))
