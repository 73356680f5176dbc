"""The threshold slider of a report: its stops, and its text before the script runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from aucmax.report.curves import Cuts
from aucmax.report.words import count, percent

#: The rates at each stop: key, label and explanation.
RATES = (
    ("precision", "Precision", "share of rows labelled positive that are positive"),
    ("recall", "Recall", "share of positives that are found"),
    ("fpr", "False-positive rate", "share of negatives that are labelled positive"),
    ("called", "Rows labelled positive", "share of all rows"),
    ("cost", "Cost of mistakes", "in false alarms"),
)


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


def text_at_start(stops: dict[str, Any]) -> dict[str, str]:
    """Return what the page shows before its script runs, or if scripts are off."""
    i = stops["start"]
    tp, fp, pos, neg = stops["tp"][i], stops["fp"][i], stops["positives"], stops["negatives"]
    called, rows = tp + fp, pos + neg
    cost = fp + stops["ratio"] * (pos - tp)
    counts = {"tp": tp, "fn": pos - tp, "fp": fp, "tn": neg - fp, "called": called, "cost": cost}
    text = {name: count(value, stops["digits"]) for name, value in counts.items()}
    positives, total = count(pos, stops["digits"]), count(rows, stops["digits"])
    rates = {"precision": tp / called if called else None, "recall": tp / pos, "fpr": fp / neg}
    for name, rate in rates.items():
        low, high = stops[name][i]
        text[name] = "–" if rate is None else percent(rate)
        text[f"{name}_range"] = "" if rate is None else f"{percent(low)} to {percent(high)}"
    return text | {
        "threshold": f"{stops['threshold'][i]:.{stops['places']}f}",
        "probability": percent(stops["probability"][i]),
        "called": percent(called / rows),
        "called_range": f"{text['called']} of {total}",
        "cost_range": f"{100 * cost / rows:.1f} per 100 rows",
        "summary": (
            f"{text['called']} of {total} rows are labelled positive, {text['tp']} of them correctly; "
            f"{text['fn']} of {positives} positives are missed."
        ),
    }
