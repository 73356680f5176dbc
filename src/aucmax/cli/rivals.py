"""Models of other libraries to compare with, as their users would set them up, without tuning."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aucmax.runtime.installing import install_command


class _Nystroem(Nystroem):
    """Nystroem whose width follows from the number of features."""

    def fit(self, X: Any, y: Any = None) -> Any:
        self.set_params(gamma=1.0 / X.shape[1], n_components=min(1000, len(X)))
        return super().fit(X, y)


def _logistic(*steps: Any) -> Any:
    return make_pipeline(StandardScaler(), *steps, LogisticRegression(max_iter=1000))


def _installed(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ValueError(f"{name} is not installed. Install it: {install_command(name)}") from None


#: How to make each model from a seed.
RIVALS: dict[str, Callable[[int], Any]] = {
    "logistic": lambda seed: _logistic(),
    "nystroem": lambda seed: _logistic(_Nystroem(random_state=seed)),
    "forest": lambda seed: RandomForestClassifier(
        300, min_samples_leaf=2, n_jobs=-1, random_state=seed
    ),
    "lightgbm": lambda seed: _installed("lightgbm").LGBMClassifier(
        n_estimators=300, random_state=seed, verbose=-1
    ),
    "xgboost": lambda seed: _installed("xgboost").XGBClassifier(n_estimators=300, random_state=seed),
}
