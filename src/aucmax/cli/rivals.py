"""Models of other libraries to compare with, as their users would set them up; none is tuned."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from sklearn.base import ClassifierMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def _logistic(seed: int) -> ClassifierMixin:
    from sklearn.linear_model import LogisticRegression

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def _nystroem(seed: int) -> ClassifierMixin:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression

    class Mapped(Nystroem):
        """With the width that the number of features asks for."""

        def fit(self, X: Any, y: Any = None) -> Any:
            self.set_params(gamma=1.0 / X.shape[1], n_components=min(1000, len(X)))
            return super().fit(X, y)

    return make_pipeline(StandardScaler(), Mapped(random_state=seed), LogisticRegression(max_iter=1000))


def _forest(seed: int) -> ClassifierMixin:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(300, min_samples_leaf=2, n_jobs=-1, random_state=seed)


def _lightgbm(seed: int) -> ClassifierMixin:
    LGBMClassifier = _imported("lightgbm").LGBMClassifier

    return LGBMClassifier(n_estimators=300, random_state=seed, verbose=-1)


def _xgboost(seed: int) -> ClassifierMixin:
    XGBClassifier = _imported("xgboost").XGBClassifier

    return XGBClassifier(n_estimators=300, random_state=seed)


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ValueError(f"{name} is not installed: pip install {name}") from None


#: By name, made from a seed.
RIVALS: dict[str, Callable[[int], Any]] = {
    "logistic": _logistic,
    "nystroem": _nystroem,
    "forest": _forest,
    "lightgbm": _lightgbm,
    "xgboost": _xgboost,
}
