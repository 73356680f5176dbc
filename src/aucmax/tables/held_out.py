"""What a model learns from held-out scores besides the ranking: its AUC and its threshold."""

from __future__ import annotations

import numpy as np

from aucmax.metrics import roc_auc, roc_auc_interval
from aucmax.metrics.thresholds import Aim, Threshold, choose_threshold
from aucmax.runtime.parameters import warn_user


def held_out_auc(
    positive: np.ndarray, scores: np.ndarray, weight: np.ndarray | None
) -> dict[str, float | None]:
    """Return the AUC with DeLong's interval, which is not defined for weighted rows."""
    if weight is not None:
        auc = roc_auc(positive, scores, sample_weight=weight)
        return {"auc": auc, "auc_low": None, "auc_high": None}
    found = roc_auc_interval(positive, scores)
    return {"auc": found.auc, "auc_low": found.low, "auc_high": found.high}


def held_out_threshold(
    positive: np.ndarray, scores: np.ndarray, weight: np.ndarray | None, aim: str | None
) -> Threshold:
    """Choose the threshold for an aim; warn and take the default aim if this one cannot be met."""
    wanted = Aim() if aim is None else Aim.parse(aim)
    try:
        return choose_threshold(positive, scores, wanted, weight)
    except ValueError as error:  # no error, which would lose a fitted model
        warn_user(f"The aim {wanted} cannot be met, so the threshold is chosen for {Aim()}: {error}")
        return choose_threshold(positive, scores, Aim(), weight)
