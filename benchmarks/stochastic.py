"""Stochastic methods on the paper's large data: test AUC by epoch and learning time, beside NBAUC.

The map (1600 landmarks) is made once per data set; times are of learning alone, as in the paper's
Table 4, and all methods learn from the same projected features. Hyper-parameters come from rows held
back from training: at most 80,000 (20,000 for the online baselines, whose grids are thinned). C of
NSAUC is the paper's grid of lambda for the full data; NSVMSGD2 is the same run without the average.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from aucmax.features.nystroem import NystroemFeatures
from aucmax.metrics import roc_auc
from aucmax.operators.in_memory import FeatureOperator
from aucmax.pairs import PairLoss
from aucmax.paper.data import load_dataset
from aucmax.solvers.newton import minimize
from aucmax.solvers.stochastic import OAM, SOLAM, PairSGD, first_step, mean_square
from benchmarks.harness import timed

DATA = ("ijcnn1", "connect-4", "skin", "cod-rna", "covtype")
EPOCHS = 20
NEWTON_GRID = (3.0, 10.0, 30.0, 100.0, 300.0)
LAMBDAS = (1e-10, 1e-9, 1e-8, 1e-7)
SOLAM_GRID = [(zeta, radius) for zeta in (1.0, 10.0, 100.0) for radius in (1.0, 10.0, 100.0, 1000.0)]
OAM_GRID = (2.0**-10, 2.0**-7, 2.0**-4, 2.0**-1, 2.0**2)


class Part:
    """Features of some rows, to learn from and to score."""

    def __init__(self, F: np.ndarray, y: np.ndarray) -> None:
        self.F, self.up = F, y == 1

    def auc(self, coef: np.ndarray) -> float:
        return roc_auc(self.up, FeatureOperator(self.F).scores(coef[:, None])[:, 0])

    def some(self, rows: np.ndarray) -> Part:
        return Part(self.F[rows], self.up[rows])

    def held_back(self, rows: int, rng: np.random.Generator) -> tuple[Part, Part]:
        chosen = rng.permutation(len(self.up))[:rows]
        cut = int(0.8 * chosen.size)
        return self.some(chosen[:cut]), self.some(chosen[cut:])


def run(options: Any) -> Iterator[dict[str, Any]]:
    for name in options.data or DATA:
        for seed in range(options.seeds or 1):
            yield from one(name, seed, options.landmarks)


def one(name: str, seed: int, landmarks: int) -> Iterator[dict[str, Any]]:
    split = load_dataset(name, seed=seed)
    scaler = StandardScaler().fit(split.X_train)
    X = scaler.transform(split.X_train)
    features = NystroemFeatures(landmarks, random_state=seed).fit(X)
    train = Part(features.transform(X), split.y_train)
    test = Part(features.transform(scaler.transform(split.X_test)), split.y_test)
    rng = np.random.default_rng(seed)
    fit, held = train.held_back(80_000, rng)
    few, few_held = train.held_back(20_000, rng)
    base = {"data": name, "rows": len(train.up), "rank": features.rank_, "seed": seed}

    C = best(NEWTON_GRID, lambda value: held.auc(newton(fit, value)))
    seconds, coef = timed(lambda: newton(train, C))
    yield {
        **base,
        "method": "NBAUC",
        "epoch": None,
        "test_auc": test.auc(coef),
        "seconds": seconds,
        "C": C,
    }

    def sgd_held(alpha: float, power: float) -> float:
        cost = 1.0 / (alpha * len(train.up))
        learner = sgd(fit, 1.0 / (cost * len(fit.up)), power)
        for _ in range(EPOCHS):
            learner.epoch(fit.F, fit.up, np.ones(len(fit.up)), rng)
        return held.auc(learner.coef)

    for label, power in (("NSAUC", 0.0), ("NSAUC, later iterates weigh more", 3.0)):
        alpha = best(LAMBDAS, lambda value: sgd_held(value, power))
        for row in curve(sgd(train, alpha, power), train, EPOCHS, seed):
            learner = row.pop("learner")
            yield {**base, "method": label, **row, "test_auc": test.auc(learner.coef), "lambda": alpha}
            if power == 0.0:
                last = learner.w.astype(np.float64)
                yield {**base, "method": "NSVMSGD2", **row, "test_auc": test.auc(last), "lambda": alpha}

    def solam_held(pair: tuple[float, float]) -> float:
        learner = solam(few, *pair)
        for _ in range(5):
            learner.epoch(few.F, few.up, np.ones(len(few.up)), rng)
        return few_held.auc(learner.coef)

    zeta, radius = best(SOLAM_GRID, solam_held)
    for row in curve(solam(train, zeta, radius), train, 15, seed):
        coef = row.pop("learner").coef
        chosen = {"zeta": zeta, "radius": radius}
        yield {**base, "method": "NSOLAM", **row, "test_auc": test.auc(coef), **chosen}

    def oam_held(value: float) -> float:
        learner = OAM(few.F.shape[1], few.F.dtype, C=value, buffer_size=100)
        learner.epoch(few.F, few.up, np.ones(len(few.up)), rng)
        return few_held.auc(learner.coef)

    cost = best(OAM_GRID, oam_held)
    for row in curve(OAM(train.F.shape[1], train.F.dtype, C=cost, buffer_size=100), train, 1, seed):
        coef = row.pop("learner").coef
        yield {**base, "method": "NOAM", **row, "test_auc": test.auc(coef), "C": cost}


def best(values: Any, score: Callable[[Any], float]) -> Any:
    return max(values, key=score)


def newton(part: Part, C: float) -> np.ndarray:
    solution = minimize(FeatureOperator(part.F), [PairLoss(part.up)], np.array([C]))
    return solution.coef[:, 0]


def sgd(part: Part, alpha: float, power: float) -> PairSGD:
    eta0 = first_step(mean_square(part.F))
    return PairSGD(part.F.shape[1], part.F.dtype, alpha=alpha, eta0=eta0, average_power=power)


def solam(part: Part, zeta: float, radius: float) -> SOLAM:
    return SOLAM(part.F.shape[1], part.F.dtype, zeta=zeta, radius=radius, buffer_size=1)


def curve(learner: Any, part: Part, epochs: int, seed: int) -> Iterator[dict[str, Any]]:
    """After each epoch: the learner, and the seconds that learning has taken."""
    rng, weight, seconds = np.random.default_rng(seed), np.ones(len(part.up)), 0.0
    for epoch in range(1, epochs + 1):
        more, _ = timed(lambda: learner.epoch(part.F, part.up, weight, rng))
        seconds += more
        yield {"epoch": epoch, "seconds": seconds, "learner": learner}
