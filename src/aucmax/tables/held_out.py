"""Learn the calibrator, threshold and AUC of a model from held-out scores."""

from __future__ import annotations

import numpy as np

from aucmax.metrics import calibration, roc_auc, roc_auc_interval
from aucmax.metrics.thresholds import Aim, Threshold, choose_threshold
from aucmax.runtime.parameters import warn_user

Calibrator = calibration.SigmoidCalibrator | calibration.IsotonicCalibrator


def learn_from_held_out(
    positive: np.ndarray, scores: np.ndarray, weight: np.ndarray | None, method: str, aim: str | None
) -> tuple[Calibrator, Threshold, dict[str, float | None]]:
    """Fit the calibrator, choose the threshold and measure the AUC of the rows that have a score."""
    known = ~np.isnan(scores)
    positive, scores = positive[known], scores[known]
    weight = None if weight is None else weight[known]
    calibrator = calibration.make_calibrator(method).fit(scores, positive, weight)
    wanted = Aim() if aim is None else Aim.parse(aim)
    try:
        threshold = choose_threshold(positive, scores, wanted, weight)
    except ValueError as error:  # raising it would lose a fitted model
        warn_user(f"The aim {wanted} cannot be met, so the threshold is chosen for {Aim()}: {error}")
        threshold = choose_threshold(positive, scores, Aim(), weight)
    if weight is not None:  # DeLong's interval is not defined
        auc = roc_auc(positive, scores, sample_weight=weight)
        return calibrator, threshold, {"auc": auc, "auc_low": None, "auc_high": None}
    found = roc_auc_interval(positive, scores)
    return calibrator, threshold, {"auc": found.auc, "auc_low": found.low, "auc_high": found.high}
