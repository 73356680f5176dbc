"""The paper's methods by name, with its grids in our units.

The paper minimises ``1/2 ||w||^2 + C * (sum over pairs)``, and we minimise
``1/2 ||w||^2 + C n/(n_pos n_neg) * (sum over pairs)``. A grid of C therefore depends on the class
counts, and is a function of the labels. The paper's ``lambda`` is our ``alpha``, and ``1/(C n)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from aucmax.estimators.kernel import KernelAUCClassifier
from aucmax.estimators.linear import LinearAUCClassifier
from aucmax.estimators.online import OAMClassifier, SOLAMClassifier
from aucmax.estimators.rank_svm import KernelRankSVM
from aucmax.estimators.search import KernelAUCClassifierCV, LinearAUCClassifierCV
from aucmax.estimators.streaming import SGDAUCClassifier
from aucmax.features.nystroem import NystroemFeatures
from aucmax.fitting.grids import PAPER_C, PAPER_LAMBDA
from aucmax.paper.published import LANDMARKS

Grid = dict[str, list[float]]

#: The share of the rows that the subsampled RankSVM learns from.
_FIFTH = 0.2

#: How close to its minimum, relatively, the exact machine is solved. On all rows of connect-4 it took
#: 11 minutes to 1e-4.
_EXACT_TOL = 1e-3

#: How close to its minimum each value of C on a path is solved while C is chosen; the final fit is
#: solved to 1e-4. A path of NBAUC on ijcnn1 takes 0.6 of the time that it takes to 1e-4, and chooses
#: the same C.
_SEARCH_TOL = 1e-3

#: The paper's grids that no search uses by default; ``fitting/grids.py`` has the others. C is in the
#: paper's unit, and :func:`_costs` converts it.
_C_NARROW = 2.0 ** np.arange(-5, 6)
_C_ONLINE = [2.0**k for k in range(-10, 11)]
_RBF_GAMMA = [2.0**k for k in range(-6, 0)]
_FOURIER_GAMMA = [1.0, 0.1, 0.01]
_ZETA = [float(z) for z in range(1, 101, 9)]
_RADIUS = [10.0**k for k in range(-1, 6)]


@dataclass(frozen=True)
class Method:
    """One of the paper's methods.

    ``model`` is the estimator with the paper's settings. ``grid`` maps labels to the values to search,
    in the form that ``GridSearchCV`` takes. ``search`` tunes it along a path of C; None means that each
    setting is fitted by itself, on features computed once. ``left_open`` is what the paper does not
    specify, and what we do.
    """

    name: str
    model: BaseEstimator
    grid: Callable[[Any], Grid]
    search: BaseEstimator | None
    left_open: str

    def make(self, random_state: Any = None, n_landmarks: int = LANDMARKS) -> BaseEstimator:
        """Return the unfitted estimator, with the paper's settings and our defaults for the rest."""
        return _copy(self.model, random_state, n_landmarks)

    def make_search(self, grid: Grid, random_state: Any, n_landmarks: int) -> BaseEstimator:
        """Return the unfitted search over a grid."""
        rising = {f"{name}s": sorted(values) for name, values in grid.items()}
        return _copy(self.search, random_state, n_landmarks).set_params(**rising)


def _copy(template: Any, random_state: Any, n_landmarks: int) -> Any:
    values = {"random_state": random_state, "n_landmarks": n_landmarks}
    names = {name: name.split("__")[-1] for name in template.get_params()}
    wanted = {name: values[last] for name, last in names.items() if last in values}
    return clone(template).set_params(**wanted)


def _costs(paper: np.ndarray, y: Any, share: float = 1.0) -> list[float]:
    """Convert the paper's C to our unit, for a model that learns from this share of the rows."""
    _, counts = np.unique(np.asarray(y), return_counts=True)
    if counts.size != 2:
        raise ValueError(f"The paper's grids are for two classes; y has {counts.size}.")
    return [float(c) for c in share * paper * counts[0] * counts[1] / counts.sum()]


def _on_features(learner: Any) -> Pipeline:
    """Put the paper's embedding in front of a learner."""
    learner.set_params(standardize=False)
    features = NystroemFeatures(landmarks="centroids", gamma="paper")
    return Pipeline([("scale", StandardScaler()), ("map", features), ("rank", learner)])


def _path(**params: Any) -> KernelAUCClassifierCV:
    """Return the search of a kernel machine with the paper's settings and some of its own."""
    machine = KernelAUCClassifier(preset="paper", tol=_SEARCH_TOL, **params)
    return KernelAUCClassifierCV(machine, refit=False)


_EMBEDDING = (
    "We cluster at most 25 rows per landmark, in 10 iterations, keep equal centres once, and drop "
    "eigenvalues up to 1e-8 of the largest; the paper gives neither the number of iterations nor the "
    "rank. We read its bandwidth b as exp(-d^2 / (2b))."
)

_ALL = (
    Method(
        "RBF-RankSVM",
        KernelRankSVM(tol=_EXACT_TOL),
        lambda y: {"gamma": _RBF_GAMMA, "C": _costs(_C_NARROW, y)},
        _path(gamma=1.0, standardize=False),
        "We solve it by truncated Newton in the kernel's inner product, to 1e-3 of the minimum; the "
        "paper uses the solver of Kuo, Lee and Lin (2014) and does not give its stopping rule.",
    ),
    Method(
        "RBF-RankSVM (subsample)",
        KernelRankSVM(subsample=_FIFTH, tol=_EXACT_TOL),
        lambda y: {"gamma": _RBF_GAMMA, "C": _costs(_C_NARROW, y, _FIFTH)},
        _path(gamma=1.0, standardize=False),
        "We sample a fifth of the rows of each class; the paper samples a fifth at random.",
    ),
    Method(
        "Linear RankSVM",
        LinearAUCClassifier(),
        lambda y: {"C": _costs(PAPER_C, y)},
        LinearAUCClassifierCV(refit=False),
        "We solve to 1e-4 of the minimum; the paper does not give the stopping rule of PRSVM+.",
    ),
    Method(
        "RFAUC",
        KernelAUCClassifier(preset="paper", feature_map="fourier"),
        lambda y: {"gamma": _FOURIER_GAMMA, "C": _costs(PAPER_C, y)},
        _path(gamma=1.0, feature_map="fourier"),
        "We read the paper's gamma of 1, 10, 100 as a width, exp(-||x - y||^2 / gamma); as a factor, "
        "it would make every kernel value of standardised data vanish.",
    ),
    Method(
        "NBAUC",
        KernelAUCClassifier(preset="paper"),
        lambda y: {"C": _costs(PAPER_C, y)},
        _path(),
        _EMBEDDING,
    ),
    Method(
        "NSAUC",
        KernelAUCClassifier(preset="paper", solver="sgd"),
        lambda y: {"C": [1.0 / (value * np.asarray(y).size) for value in PAPER_LAMBDA]},
        _path(solver="sgd").set_params(n_jobs=-1),
        "The paper gives no t0, skips or epochs: our first step is 1 over the mean squared norm of the "
        f"rows, both skips are 16, and there are 20 epochs of n steps. {_EMBEDDING}",
    ),
    Method(
        "NSVMSGD2",
        _on_features(SGDAUCClassifier(average=False)),
        lambda y: {"rank__alpha": PAPER_LAMBDA.tolist()},
        None,
        "As NSAUC, without the average.",
    ),
    Method(
        "NOAM",
        _on_features(OAMClassifier()),
        lambda y: {"rank__C": _C_ONLINE},
        None,
        "We make one pass, and use the grid of Zhao et al. (2011), 2^-10 to 2^10, to which the paper "
        f"refers. {_EMBEDDING}",
    ),
    Method(
        "NSOLAM",
        _on_features(SOLAMClassifier()),
        lambda y: {"rank__zeta": _ZETA, "rank__radius": _RADIUS},
        None,
        "The bound on the norm of rows is the largest norm so far, and each epoch takes the rows in a "
        f"new random order. {_EMBEDDING}",
    ),
)

METHODS = {method.name: method for method in _ALL}
