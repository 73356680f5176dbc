"""The paper's acronyms as estimators, with its grids in our units.

The paper writes its batch objectives as ``1/2 ||w||^2 + C sum over pairs``; ours is
``1/2 ||w||^2 + C n/(n_pos n_neg) sum over pairs``. A grid of the paper's C therefore depends on the
class counts, and is made from the labels. Its stochastic lambda is ``alpha`` in both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from aucmax.estimators.baselines import KernelRankSVM, OAMClassifier, SOLAMClassifier
from aucmax.estimators.classifiers import KernelAUCClassifier, LinearAUCClassifier
from aucmax.estimators.streaming import SGDAUCClassifier
from aucmax.features.nystroem import NystroemFeatures

__all__ = ["METHODS", "Method"]

#: Landmarks, and random Fourier features, in all of the paper.
LANDMARKS = 1600

#: ``{2^-15, ..., 2^10}`` and ``{2^-5, ..., 2^5}``, in the paper's unit of C.
_WIDE = 2.0 ** np.arange(-15, 11)
_NARROW = 2.0 ** np.arange(-5, 6)

#: The share of rows that the subsampled machine learns from.
_FIFTH = 0.2


@dataclass(frozen=True)
class Method:
    """One of the paper's methods.

    Attributes
    ----------
    name : str
        As the paper has it.
    grid : callable
        Labels to the values searched over, as scikit-learn's ``GridSearchCV`` takes them.
    left_open : str
        What the paper does not say, and what is done here.
    """

    name: str
    grid: Callable[[Any], dict[str, list[float]]]
    left_open: str
    _make: Callable[[int, Any], BaseEstimator]

    def make(self, random_state: Any = None, n_landmarks: int = LANDMARKS) -> BaseEstimator:
        """The estimator, unfitted, with the paper's settings and our defaults for the rest."""
        return self._make(n_landmarks, random_state)


def _costs(paper: np.ndarray, y: Any, share: float = 1.0) -> list[float]:
    """The paper's C in our units: times n_pos n_neg / n, of the share of rows that is learnt from."""
    _, counts = np.unique(np.asarray(y), return_counts=True)
    if counts.size != 2:
        raise ValueError(f"The paper's grids are for two classes; y has {counts.size}.")
    return [float(c) for c in share * paper * counts[0] * counts[1] / counts.sum()]


def _lambdas(step: str) -> dict[str, list[float]]:
    return {step: [1e-10, 1e-9, 1e-8, 1e-7]}


def _nsauc_grid(y: Any) -> dict[str, list[float]]:
    # KernelAUCClassifier has no alpha: C = 1 / (alpha n).
    n = np.asarray(y).size
    return {"C": [1.0 / (value * n) for value in _lambdas("")[""]]}


def _on_features(n_landmarks: int, random_state: Any, learner: Any) -> Pipeline:
    """A learner behind the paper's embedding."""
    return Pipeline(
        [
            ("scale", StandardScaler()),
            ("map", NystroemFeatures(n_landmarks, random_state=random_state)),
            ("rank", learner.set_params(standardize=False, random_state=random_state)),
        ]
    )


_EMBEDDING = (
    "Landmarks are the rows nearest to k-means centres instead of the centres, at most 25 rows per "
    "landmark are clustered, and eigenvalues up to 1e-6 of the largest are dropped: the paper gives "
    "neither the number of iterations nor the rank."
)

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "RBF-RankSVM",
            lambda y: {"gamma": [2.0**k for k in range(-6, 0)], "C": _costs(_NARROW, y)},
            "Solved by truncated Newton in the kernel's inner product; the paper uses the solver of "
            "Kuo, Lee and Lin (2014) and does not give its stopping rule.",
            lambda landmarks, seed: KernelRankSVM(random_state=seed),
        ),
        Method(
            "RBF-RankSVM (subsample)",
            lambda y: {"gamma": [2.0**k for k in range(-6, 0)], "C": _costs(_NARROW, y, _FIFTH)},
            "A fifth of the rows of each class; the paper says a fifth, selected randomly.",
            lambda landmarks, seed: KernelRankSVM(subsample=_FIFTH, random_state=seed),
        ),
        Method(
            "Linear RankSVM",
            lambda y: {"C": _costs(_WIDE, y)},
            "The minimum to 1e-4; the paper does not give the stopping rule of PRSVM+.",
            lambda landmarks, seed: LinearAUCClassifier(),
        ),
        Method(
            "RFAUC",
            lambda y: {"gamma": [1.0, 0.1, 0.01], "C": _costs(_WIDE, y)},
            "The paper's gamma of 1, 10, 100 is read as a width, exp(-||x - y||^2 / gamma): as a "
            "factor it would make every kernel value of standardised data vanish.",
            lambda landmarks, seed: KernelAUCClassifier(
                preset="paper", feature_map="fourier", n_landmarks=landmarks, random_state=seed
            ),
        ),
        Method(
            "NBAUC",
            lambda y: {"C": _costs(_WIDE, y)},
            _EMBEDDING,
            lambda landmarks, seed: KernelAUCClassifier(
                preset="paper", n_landmarks=landmarks, random_state=seed
            ),
        ),
        Method(
            "NSAUC",
            _nsauc_grid,
            "No t0, skips or epochs are given: t0 makes the first step 1 over the mean squared norm of "
            "the rows, both skips are 16, an epoch is n steps and there are 20. " + _EMBEDDING,
            lambda landmarks, seed: KernelAUCClassifier(
                preset="paper", solver="sgd", n_landmarks=landmarks, random_state=seed
            ),
        ),
        Method(
            "NSVMSGD2",
            lambda y: _lambdas("rank__alpha"),
            "As NSAUC, without the average.",
            lambda landmarks, seed: _on_features(landmarks, seed, SGDAUCClassifier(average=False)),
        ),
        Method(
            "NOAM",
            lambda y: {"rank__C": [2.0**k for k in range(-10, 11)]},
            "One pass, and the grid of Zhao et al. (2011), 2^-10 to 2^10: the paper says as suggested "
            "there. " + _EMBEDDING,
            lambda landmarks, seed: _on_features(landmarks, seed, OAMClassifier()),
        ),
        Method(
            "NSOLAM",
            lambda y: {
                "rank__zeta": [float(z) for z in range(1, 101, 9)],
                "rank__radius": [10.0**k for k in range(-1, 6)],
            },
            "The bound on the norm of rows is the largest met so far. Each epoch takes the rows in a "
            "new random order. " + _EMBEDDING,
            lambda landmarks, seed: _on_features(landmarks, seed, SOLAMClassifier()),
        ),
    )
}
