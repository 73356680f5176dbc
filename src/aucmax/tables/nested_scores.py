"""Held-out scores of a table whose features depend on labels: level means are learnt in each fold.

The search computes the features of all rows once. Level means of its training rows then depend on
labels of rows that it holds out, and although no row's feature depends on its own label, that flatters
the AUC: with random labels, the relation that the training rows show agrees with that of the held-out
rows more often than by chance. The choice of C hardly notices. The AUC, the probabilities and the
threshold would, so their scores come from here: for each fold, the means are learnt from its training
rows alone, and the classifier is fitted again with the settings that the search chose.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv

from aucmax.estimators.kernel import KernelAUCClassifier
from aucmax.estimators.search import KernelAUCClassifierCV
from aucmax.tables.columns import feature_names, normal_frame
from aucmax.tables.target_encoding import encode, encoded_columns, learn_means, out_of_fold_means

if TYPE_CHECKING:
    from aucmax.tables.training_table import PreparedTable

_LEAST_SECONDS = 0.5  #: A fold gets this much time even if the budget is over.


def nested_scores(
    search: KernelAUCClassifierCV, prepared: PreparedTable, end: float | None = None
) -> np.ndarray:
    """Return the score of each training row by folds that did not learn from it; NaN without one.

    ``end`` is when the time budget is over, by ``time.perf_counter``; folds share what is left. The
    scores of a fold are shifted so that its training rows have the mean that the final model gives
    them. A row held out more than once has the mean of its scores.
    """
    target, rows = prepared.target, prepared.rows
    columns = prepared.table_features.columns_
    normal = normal_frame(prepared.frame, columns)
    names = feature_names(columns)
    final = search.decision_function(rows)
    total, times = np.zeros(len(rows)), np.zeros(len(rows))
    folds = list(check_cv(prepared.folds).split(rows, target.positive, target.groups))
    for number, (train, test) in enumerate(folds):
        own, features = target.take(train), rows.copy()
        for name, feature in encoded_columns(columns).items():
            place, levels = names.index(feature), normal[name]
            features[train, place] = out_of_fold_means(levels[train], own)
            features[test, place] = encode(levels[test], learn_means(levels[train], own))
        left = None if end is None else (end - time.perf_counter()) / (len(folds) - number)
        classifier = _with_settings(search, len(train), left)
        classifier.fit(features[train], own.positive.astype(np.int8), own.weight)
        level = np.average(classifier.decision_function(features[train]), weights=own.weight)
        shift = np.average(final[train], weights=own.weight) - level
        total[test] += classifier.decision_function(features[test]) + shift
        times[test] += 1.0
    return np.where(times > 0, total / np.maximum(times, 1.0), np.nan)


def _with_settings(
    search: KernelAUCClassifierCV, n_rows: int, seconds: float | None
) -> KernelAUCClassifier:
    """Return an unfitted classifier with the settings that the search chose."""
    inner, settings = clone(search.estimator or KernelAUCClassifier()), search.settings_
    chosen: dict[str, Any] = {
        name: settings[name] for name in ("landmarks", "standardize", "kernel") if name in settings
    }
    learnt = search.metric_ is not None  # then it is learnt again
    return inner.set_params(
        **chosen,
        C=search.C_,
        gamma=search.gamma_,
        n_landmarks=min(int(settings["n_landmarks"]), n_rows),
        metric=inner.metric if learnt else None,
        checkpoint=None,
        time_budget=None if seconds is None else max(seconds, _LEAST_SECONDS),
        verbose=0,
    )
