"""All that is measured of scores, as one array of numbers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from aucmax.metrics import compare_roc_auc, roc_auc, roc_auc_interval
from aucmax.metrics.calibration import IsotonicCalibrator, SigmoidCalibrator
from aucmax.metrics.evaluation import evaluate
from aucmax.metrics.thresholds import choose_threshold


def all_numbers(positive: Any, scores: Any, weight: Any, aim: str) -> np.ndarray:
    """AUC, intervals, a threshold with its rates, and an evaluation; -1 where there is no number."""
    found = [roc_auc(positive, scores, sample_weight=weight)]
    if weight is None:
        found += [*roc_auc_interval(positive, scores)]
        found += [*compare_roc_auc(positive, scores, np.sin(scores))]
    found += _floats(asdict(choose_threshold(positive, scores, aim, weight)))
    found += _floats(asdict(evaluate(positive, scores, sample_weight=weight)))
    found += _probabilities(positive, scores, weight)
    return np.nan_to_num(np.array(found, dtype=np.float64), nan=-1.0)


def counted(positive: Any, scores: Any, weight: Any, aim: str) -> np.ndarray:
    """What a row of weight 2 changes as that row twice does: no interval, which counts rows."""
    chosen = choose_threshold(positive, scores, aim, weight)
    whole = evaluate(positive, scores, sample_weight=weight)
    names = ("threshold", "tp", "fp", "fn", "tn", "precision", "recall", "fpr")
    found = [roc_auc(positive, scores, sample_weight=weight)]
    found += [getattr(chosen, name) for name in names]
    found += [whole.auc, whole.average_precision, whole.positive_share]
    found += _floats([asdict(each) for each in (*whole.top, *whole.partial_auc)])
    return np.nan_to_num(np.array(found, dtype=np.float64), nan=-1.0)


def _probabilities(positive: Any, scores: Any, weight: Any) -> list[float]:
    grid = np.linspace(-3.0, 3.0, 15)
    found = []
    for kind in (SigmoidCalibrator, IsotonicCalibrator):
        found += kind().fit(scores, positive, weight).predict(grid).tolist()
    return found


def _floats(value: Any) -> list[float]:
    if value is None or isinstance(value, str):
        return []
    if isinstance(value, dict | list | tuple):
        values = value.values() if isinstance(value, dict) else value
        return [number for each in values for number in _floats(each)]
    return [float(value)]
