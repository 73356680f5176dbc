"""How well a time budget holds, what less effort saves, and how good the estimate of a plan is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

from aucmax import KernelAUCClassifier
from aucmax.metrics import roc_auc
from benchmarks.harness import timed

ROWS = (1_000, 10_000, 50_000)
TEST = 5_000
BUDGETS = (2.0, 5.0, 10.0, 30.0)
EFFORTS = (0.1, 0.5, 1.0)


def run(options: Any) -> Iterator[dict[str, Any]]:
    _fit(300, effort=0.1)  # compiles loops outside the clock
    for n_rows in ROWS:
        for effort in EFFORTS:
            yield _fit(n_rows, effort=effort)
        for budget in BUDGETS:
            yield _fit(n_rows, time_budget=budget)


def _fit(n_rows: int, **params: Any) -> dict[str, Any]:
    X, y = make_classification(n_rows + TEST, 20, n_informative=8, weights=[0.95], random_state=0)
    model = KernelAUCClassifier(random_state=0, **params)
    expected = model.plan(X[:n_rows]).seconds
    try:
        seconds, _ = timed(lambda: model.fit(X[:n_rows], y[:n_rows]))
        auc = roc_auc(y[n_rows:], model.decision_function(X[n_rows:]))
    except TimeoutError:
        seconds, auc = np.nan, np.nan
    budget = params.get("time_budget")
    return {
        "rows": n_rows,
        "effort": params.get("effort", 1.0),
        "budget": budget,
        "seconds": seconds,
        "allowed": None if budget is None else 1.2 * budget + 2.0,
        "estimated": expected,
        "auc": auc,
    }
