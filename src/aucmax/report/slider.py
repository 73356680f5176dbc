"""The threshold slider of a report: its stops, and what stands there before its script runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from aucmax.report.curves import Cuts
from aucmax.report.words import count, fixed, percent, two_digits

#: What is shown of each stop, as the template lists it.
RATES = (
    {"key": "precision", "label": "Precision", "says": "of rows called positive, how many are"},
    {"key": "recall", "label": "Recall", "says": "of positives, how many are found"},
    {
        "key": "fpr",
        "label": "False-positive rate",
        "says": "of negatives, how many are called positive",
    },
    {"key": "called", "label": "Rows called positive", "says": "of all rows"},
    {"key": "cost", "label": "Cost of mistakes", "says": "counted in false alarms"},
)


def cost_ratio(model: Any, cuts: Cuts) -> float:
    """That of the model's aim; else the one at which the default aim is the cheapest."""
    kind, _, value = model.threshold_.aim.partition("=")
    if kind == "cost":
        return float(value)
    return two_digits(cuts.negatives / cuts.positives)


def slider_stops(model: Any, cuts: Cuts, ratio: float) -> dict[str, Any]:
    """The cuts for the page's script, by rising threshold."""
    whole = bool((np.mod(cuts.tp, 1) == 0).all() and (np.mod(cuts.fp, 1) == 0).all())
    spread = float(cuts.threshold[0] - cuts.threshold[-1])
    bounds = {
        name: [[round(low, 5), round(high, 5)] for low, high in reversed(pairs)]
        for name, pairs in cuts.intervals().items()
    }
    up = slice(None, None, -1)
    return {
        "threshold": cuts.threshold[up].tolist(),
        "probability": [float(f"{p:.5g}") for p in model.calibrator_.predict(cuts.threshold[up])],
        "tp": _plain(cuts.tp[up], whole),
        "fp": _plain(cuts.fp[up], whole),
        "positives": _plain([cuts.positives], whole)[0],
        "negatives": _plain([cuts.negatives], whole)[0],
        **bounds,
        "start": cuts.threshold.size - 1 - cuts.start,
        "ratio": ratio,
        "digits": 0 if whole else 1,
        "places": int(np.clip(3 - math.floor(math.log10(spread)), 0, 8)) if spread > 0 else 3,
    }


def _plain(values: Any, whole: bool) -> list[float]:
    return [int(value) if whole else round(float(value), 6) for value in values]


def text_at_start(stops: dict[str, Any], ratio: float) -> dict[str, str]:
    """What stands in the page before its script runs, or where none does."""
    i, digits = stops["start"], stops["digits"]
    tp, fp, pos, neg = stops["tp"][i], stops["fp"][i], stops["positives"], stops["negatives"]
    called, rows = tp + fp, pos + neg
    cost = fp + ratio * (pos - tp)

    def said(pair: list[float]) -> str:
        return f"{percent(pair[0])} to {percent(pair[1])}"

    def number(value: float) -> str:
        return count(value, digits)

    return {
        "threshold": fixed(stops["threshold"][i], stops["places"]),
        "probability": percent(stops["probability"][i]),
        "tp": number(tp),
        "fn": number(pos - tp),
        "fp": number(fp),
        "tn": number(neg - fp),
        "precision": percent(tp / called) if called else "–",
        "precision_range": said(stops["precision"][i]) if called else "",
        "recall": percent(tp / pos),
        "recall_range": said(stops["recall"][i]),
        "fpr": percent(fp / neg),
        "fpr_range": said(stops["fpr"][i]),
        "called": percent(called / rows),
        "called_range": f"{number(called)} of {number(rows)}",
        "cost": number(cost),
        "cost_range": f"{100 * cost / rows:.1f} per 100 rows",
        "summary": (
            f"{number(called)} of {number(rows)} rows are called positive, and {number(tp)} of them "
            f"are; {number(pos - tp)} of {number(pos)} positives are missed."
        ),
    }
