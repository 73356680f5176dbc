"""Parts of a fit that become learnt attributes: thresholds, records and numbers in plain form."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.fitting.problem import Problem
from aucmax.metrics.cutoffs import balanced_threshold
from aucmax.runtime.parameters import is_auto, warn_user

Array = npt.NDArray[Any]

#: What ``max_iter="auto"`` stands for: Newton steps, epochs.
MAX_STEPS = 100
EPOCHS = 20


def most_iterations(max_iter: int | str, auto: int) -> int:
    """Return ``max_iter`` as a number: ``auto`` if it is left at "auto"."""
    return auto if is_auto(max_iter) else int(max_iter)


def intercepts(scores: Array, problem: Problem, name: str) -> Array:
    """Return minus the threshold of each ranking, from training scores (n, k); see ``predict``."""
    if scores.size and not np.ptp(scores, axis=0).any():
        warn_user(
            f"{name} gives all training rows the same score: it has learnt nothing. Check that X "
            "varies with y, and that parameters are not extreme."
        )
    pairs = zip(scores.T, problem.positives, strict=True)
    return -np.array([balanced_threshold(own, up, problem.weight) for own, up in pairs])


def plain_record(record: Any) -> dict[str, Any]:
    """Return a solver's record as ``history_`` holds it."""
    return {name: plain(value) for name, value in vars(record).items()}


def plain(value: Any) -> Any:
    """Return an array as a number, or as a list of several: JSON and data frames take these."""
    if isinstance(value, np.ndarray):
        return value.item() if value.size == 1 else value.tolist()
    return value
