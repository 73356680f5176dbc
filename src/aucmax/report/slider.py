"""The threshold slider of a report: exact counts and intervals at each of its stops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from aucmax.report.curves import Cuts


def slider_stops(model: Any, cuts: Cuts) -> dict[str, Any]:
    """Return the cuts for the page's script, by rising threshold.

    The cost of a missed positive is that of the model's aim, or that at which the default aim is the
    cheapest.
    """
    kind, _, value = model.threshold_.aim.partition("=")
    ratio = float(value if kind == "cost" else f"{cuts.negatives / cuts.positives:.2g}")
    whole = bool((np.mod(cuts.tp, 1) == 0).all() and (np.mod(cuts.fp, 1) == 0).all())
    spread = float(cuts.threshold[0] - cuts.threshold[-1])
    bounds = {
        name: [[round(low, 5), round(high, 5)] for low, high in reversed(pairs)]
        for name, pairs in cuts.intervals().items()
    }
    thresholds = cuts.threshold[::-1]
    return {
        "threshold": thresholds.tolist(),
        "probability": [float(f"{p:.5g}") for p in model.calibrator_.predict(thresholds)],
        "tp": _plain(cuts.tp[::-1], whole),
        "fp": _plain(cuts.fp[::-1], whole),
        "positives": _plain([cuts.positives], whole)[0],
        "negatives": _plain([cuts.negatives], whole)[0],
        **bounds,
        "start": thresholds.size - 1 - cuts.start,
        "ratio": ratio,
        "digits": 0 if whole else 1,
        "places": int(np.clip(3 - math.floor(math.log10(spread)), 0, 8)) if spread > 0 else 3,
    }


def _plain(values: Any, whole: bool) -> list[float]:
    return [int(value) if whole else round(float(value), 6) for value in values]
