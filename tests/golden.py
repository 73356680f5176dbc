"""``python -m tests.golden``: write golden.json, what each method gives on two small sets."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, make_moons
from sklearn.model_selection import train_test_split

from aucmax.metrics import roc_auc
from aucmax.paper.methods import METHODS

FILE = Path(__file__).with_name("golden.json")


def data() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    X, y = make_moons(1200, noise=0.3, random_state=0)
    keep = np.flatnonzero((y == 0) | (np.arange(1200) % 5 == 0))
    return {"breast cancer": load_breast_cancer(return_X_y=True), "rare moon": (X[keep], y[keep])}


def result(name: str, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Test AUC, and the mean margin between the classes: it shows a change that AUC may hide."""
    X_fit, X_test, y_fit, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    model = METHODS[name].make(random_state=0, n_landmarks=100).fit(X_fit, y_fit)
    scores = model.decision_function(X_test)
    margin = float(scores[y_test == 1].mean() - scores[y_test == 0].mean())
    return {"auc": round(roc_auc(y_test, scores), 6), "margin": round(margin, 5)}


def main() -> None:
    found = {
        source: {name: result(name, X, y) for name in METHODS} for source, (X, y) in data().items()
    }
    FILE.write_text(json.dumps(found, indent=2) + "\n")
    print(FILE.read_text())


if __name__ == "__main__":
    main()
