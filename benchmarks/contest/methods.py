"""Who takes part. The names are those of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from aucmax import KernelAUCClassifier
from benchmarks.contest.boosting import THREADS, Boosted, Budget, Tuned
from benchmarks.contest.torch_models import XRFM, RealMLP

Make = Callable[[int, tuple[int, int], Budget], Any]


@dataclass(frozen=True)
class Method:
    """``make`` gives an unfitted model for a seed, the shape of the training rows and a budget."""

    make: Make
    package: str = "scikit-learn"
    rare: bool = False  # takes part where positives are rare
    most_rows: int | None = None

    def version(self) -> str | None:
        """Name and version of its package, or None where that is not installed."""
        try:
            return f"{self.package} {version(self.package)}"
        except PackageNotFoundError:
            return None


class ByProbability:
    """A classifier that has probabilities and no decision function."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Any, y: Any) -> ByProbability:
        self.model.fit(X, y)
        return self

    def decision_function(self, X: Any) -> Any:
        return self.model.predict_proba(X)[:, 1]


def ours(**parameters: Any) -> Make:
    return lambda seed, shape, budget: KernelAUCClassifier(**parameters, random_state=seed)


def boosted(library: str) -> Method:
    return Method(lambda seed, shape, budget: Boosted(library, seed), library.lower(), rare=True)


def tuned(library: str) -> Method:
    return Method(lambda seed, shape, budget: Tuned(library, seed, budget), library.lower(), rare=True)


def nystroem(seed: int, shape: tuple[int, int], budget: Budget) -> Any:
    features = Nystroem(
        gamma=1 / shape[1], n_components=min(1000, shape[0]), random_state=seed, n_jobs=1
    )
    return make_pipeline(StandardScaler(), features, LogisticRegression(max_iter=1000))


#: The first is the one that all others are compared with.
METHODS = {
    "aucmax": Method(ours(), "aucmax", rare=True),
    "aucmax (paper)": Method(ours(preset="paper"), "aucmax", rare=True),
    "aucmax, effort 4": Method(ours(effort=4), "aucmax"),
    "aucmax, no metric": Method(ours(metric=None), "aucmax"),
    "aucmax, one kernel": Method(ours(kernel="rbf"), "aucmax"),
    "LightGBM": boosted("LightGBM"),
    "LightGBM tuned": tuned("LightGBM"),
    "XGBoost": boosted("XGBoost"),
    "XGBoost tuned": tuned("XGBoost"),
    "CatBoost": boosted("CatBoost"),
    "CatBoost tuned": tuned("CatBoost"),
    "HistGradientBoosting": Method(
        lambda seed, shape, budget: HistGradientBoostingClassifier(random_state=seed), rare=True
    ),
    "ExtraTrees": Method(
        lambda seed, shape, budget: ByProbability(
            ExtraTreesClassifier(500, n_jobs=THREADS, random_state=seed)
        ),
        rare=True,
    ),
    # Its memory is about 30 bytes for each pair of rows.
    "xRFM": Method(lambda seed, shape, budget: XRFM(seed), "xrfm", most_rows=15_500),
    # It has 256 epochs: 80,000 rows would take hours on one core.
    "RealMLP": Method(lambda seed, shape, budget: RealMLP(seed), "pytabkit", most_rows=15_500),
    "Nystroem + logistic regression": Method(nystroem),
    "SVC": Method(
        lambda seed, shape, budget: make_pipeline(StandardScaler(), SVC(cache_size=500)),
        most_rows=10_000,
    ),
    "logistic regression": Method(
        lambda seed, shape, budget: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        rare=True,
    ),
}


def due(method: Method, rows: int, rare: bool) -> bool:
    """Whether a method takes part by default."""
    return (method.rare or not rare) and (method.most_rows is None or rows <= method.most_rows)
