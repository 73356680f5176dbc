"""Solve one candidate on a sample by C and gamma, and compare how two rank held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.features.kernel_products import raw_matrix
from aucmax.features.kernels import LandmarkKernel
from aucmax.features.metric import Damping, learn_metric, mean_outer, stretch
from aucmax.features.nystroem import NystroemFeatures
from aucmax.fitting.settings import Settings
from aucmax.metrics.auc import Placements, auc_variance, placements
from aucmax.operators.in_memory import FeatureOperator
from aucmax.pairs import PairLoss, ordered_share
from aucmax.rows.interface import ArrayRows, Block, dense
from aucmax.runtime.deadline import NEVER, Deadline, OutOfTimeError
from aucmax.runtime.threads import cpu_count, one_blas_thread
from aucmax.solvers.newton import Newton
from aucmax.solvers.options import Stopping
from aucmax.tuning.trial_rows import FIRST_LANDMARKS, Sample

Array = npt.NDArray[Any]

#: The grids, in steps of these factors, and their ends. C is per average row; gamma is a multiple of
#: the distance rule.
_C_STEP, _C_RANGE = 4.0, (4.0**-7, 4.0**5)
_GAMMA_STEP, _GAMMA_RANGE = 2.0, (2.0**-4, 2.0**4)

#: A further step has to lower ``1 - AUC`` by this share: on a plateau nothing is gained.
_WORTH_A_STEP = 0.01

#: A new candidate has to be better by this many standard errors.
_BEYOND = 1.0

#: The relative distance to the minimum at which a trial stops.
_TOL = 3e-3

#: The number of rows at which gradients are taken.
_GRADIENT_ROWS = 5000


@dataclass(frozen=True)
class TrialKernel:
    """The kernel that trials begin with, and the rule or number for gamma that multiples refer to.

    With ``fixed``, gamma may not change.
    """

    name: str = "rbf"
    gamma: str | float = "distance"
    fixed: bool = False
    degree: int = 3
    coef0: float = 1.0


@dataclass(frozen=True)
class MetricRound:
    """A round of the metric that helped: its damping, and the machine it was learnt from."""

    damping: Damping
    C: float
    gamma: float  # a multiple of the rule
    n_landmarks: int

    def plain(self) -> list[float]:
        """Return plain data, which a checkpoint holds."""
        return [self.damping.power, self.damping.identity, self.C, self.gamma, self.n_landmarks]

    @classmethod
    def of_plain(cls, plain: Sequence[float]) -> MetricRound:
        """Return the round that :meth:`plain` was called on."""
        power, identity, C, gamma, count = plain
        return cls(Damping(power, identity), C, gamma, int(count))


@dataclass
class Result:
    """How a candidate ranked the held-out rows, and each fold's weights over landmarks."""

    C: float
    gamma: float
    auc: float
    placements: list[list[Placements]]  # by fold and class
    coef: list[Array]

    def gains_on(self, other: Result) -> bool:
        """Return whether this result is better by an amount that matters."""
        return self.auc - other.auc > _WORTH_A_STEP * (1.0 - other.auc)

    def beats(self, other: Result) -> bool:
        """Return whether this result is better by more than the noise of the difference."""
        difference, variance = [], []
        for mine, others in zip(self.placements, other.placements, strict=True):
            for own, rival in zip(mine, others, strict=True):
                difference.append((own[0] - rival[0]).mean())
                variance.append(auc_variance(own, rival))
        count = len(difference)
        return bool(np.mean(difference) > _BEYOND * np.sqrt(np.sum(variance)) / count)


class Trial:
    """A kernel map of one fold's training rows, and the solver over it."""

    def __init__(
        self,
        sample: Sample,
        rows: Block,
        fold: tuple[Array, Array],
        settings: Settings,
        kernel: TrialKernel,
        seed: int,
        deadline: Deadline = NEVER,
    ) -> None:
        if deadline.over():
            raise OutOfTimeError
        self._deadline = deadline
        train, self.test = fold
        weight = np.zeros(len(sample.weight))
        weight[train] = sample.weight[train]
        self.rows, self.train = rows, train
        self._losses = [PairLoss(up, weight) for up in sample.positives]
        self._positives, self._weight = sample.positives, sample.weight
        self._map = NystroemFeatures(
            min(settings.n_landmarks or FIRST_LANDMARKS, train.size),
            landmarks="class-kmeans" if settings.landmarks is None else settings.landmarks,
            kernel=settings.kernel or kernel.name,
            gamma=kernel.gamma,
            degree=kernel.degree,
            coef0=kernel.coef0,
            random_state=seed,
        ).fit_landmarks(ArrayRows(rows[train]), sample.codes[train], sample.weight[train])
        unit = replace(self._map.spec, gamma=1.0, gamma_l1=1.0)
        self._raw = raw_matrix(LandmarkKernel(self._map.landmarks_, unit, rows.dtype), rows)
        self._at: tuple[float, Any, Newton] | None = None

    def solve(self, gamma: float, C: float) -> tuple[Array, Array]:
        """Return scores (n, k) of all rows, and weights (v, k) over the landmarks."""
        if self._at is None or self._at[0] != gamma:
            self._at = None  # features of two bandwidths are not held at a time
            mapped = self._map.with_gamma(gamma * self._map.gamma_).map
            features = mapped.features(self.rows, self._raw)
            stopping = Stopping(_TOL, deadline=self._deadline)
            solver = Newton(FeatureOperator(features), self._losses, stopping=stopping)
            self._at = gamma, mapped, solver
        _, mapped, newton = self._at
        found = newton.run(np.full(len(self._losses), C))
        if self._deadline.over():
            raise OutOfTimeError  # the solve may have been stopped anywhere
        return found.scores, mapped.fold(found.coef)

    def placements(self, scores: Array) -> list[Placements]:
        """Return the placements of the held-out rows for each class."""
        out = []
        for ranking, up in enumerate(self._positives):
            s, positive = scores[self.test, ranking], up[self.test]
            out.append(placements(s[positive], s[~positive]))
        return out

    def auc(self, scores: Array) -> float:
        """Return the mean AUC of the held-out rows over classes."""
        own = []
        for ranking, up in enumerate(self._positives):
            s, positive, u = scores[self.test, ranking], up[self.test], self._weight[self.test]
            own.append(ordered_share(s[positive], s[~positive], u[positive], u[~positive]))
        return float(np.mean(own))

    def gradients(self, gamma: float, coef: Array, rng: np.random.Generator) -> list[Array]:
        """Return the gradient of each class's score at some training rows."""
        some = np.sort(rng.permutation(self.train)[:_GRADIENT_ROWS])
        spec = replace(self._map.spec, gamma=gamma * self._map.gamma_)
        rows = dense(self.rows[some])
        return LandmarkKernel(self._map.landmarks_, spec, rows.dtype).gradients(rows, coef.T)


class Candidate:
    """All settings but C and gamma, tried over all folds."""

    def __init__(
        self,
        sample: Sample,
        settings: Settings,
        metrics: Sequence[Array | None],
        kernel: TrialKernel,
        seed: int,
        deadline: Deadline = NEVER,
    ) -> None:
        self.settings, self.metrics, self._kernel = settings, metrics, kernel
        self._first_cost, base = sample.first_cost, sample.rows[settings.standardize]
        # One after the other: k-means silences a warning meanwhile, which threads must not do.
        self.trials = [
            Trial(sample, stretch(base, metric), fold, settings, kernel, seed, deadline)
            for fold, metric in zip(sample.folds, metrics, strict=True)
        ]
        self._known: dict[tuple[float, float], Result] = {}

    @property
    def best_known(self) -> Result | None:
        """The best result so far, if there is any."""
        return max(self._known.values(), key=lambda each: each.auc, default=None)

    def at(self, gamma: float, C: float) -> Result:
        """Return the result at one gamma and C, solved once."""
        if (gamma, C) not in self._known:
            pairs = list(zip(self.trials, _solved(self.trials, gamma, C), strict=True))
            self._known[gamma, C] = Result(
                C,
                gamma,
                float(np.mean([trial.auc(scores) for trial, (scores, _) in pairs])),
                [trial.placements(scores) for trial, (scores, _) in pairs],
                [coef for _, (_, coef) in pairs],
            )
        return self._known[gamma, C]

    def best_c(self, gamma: float, start: float, patience: int = 1) -> Result:
        """Return the best C: up from a start, and down if that was best.

        A direction ends after ``patience`` values that are no better. The start stays unless another
        value is better beyond noise.
        """
        if self.settings.C is not None:
            return self.at(gamma, self.settings.C)
        first = best = self.at(gamma, start)
        for step in (_C_STEP, 1.0 / _C_STEP):
            worse, C = 0, start * step
            while worse < patience and _C_RANGE[0] <= C <= _C_RANGE[1]:
                result = self.at(gamma, C)
                worse = 0 if result.gains_on(best) else worse + 1
                best = max(best, result, key=lambda each: each.auc)
                C *= step
            if start != best.C:
                break
        return best if best.beats(first) else first

    def c_near(self, best: Result) -> Result:
        """Return the best C, from that of another candidate, at the same gamma."""
        return self.best_c(best.gamma, best.C)

    def climb(self, near: Result | None = None) -> Result:
        """Return the best C and gamma, from those of another candidate or from the rules.

        Gamma rises as long as that helps, otherwise it falls.
        """
        best = self.best_c(1.0, self._first_cost, patience=2) if near is None else self.c_near(near)
        for step in () if self._kernel.fixed else (_GAMMA_STEP, 1.0 / _GAMMA_STEP):
            improved = False
            while _GAMMA_RANGE[0] <= best.gamma * step <= _GAMMA_RANGE[1]:
                result = self.best_c(best.gamma * step, best.C)
                if not (result.gains_on(best) and result.beats(best)):
                    break
                best, improved = result, True
            if improved:
                break
        return best

    def same(self, best: Result) -> Result:
        """Return the result at the C and gamma of another candidate."""
        return self.at(best.gamma, best.C)

    def nearby(self, best: Result) -> Result:
        """Return the result at the C and gamma of another candidate, or with a narrower kernel."""
        C = best.C if self.settings.C is None else self.settings.C
        found = self.at(best.gamma, C)
        if self._kernel.fixed or best.gamma * _GAMMA_STEP > _GAMMA_RANGE[1]:
            return found
        narrow = self.at(best.gamma * _GAMMA_STEP, C)
        return narrow if narrow.beats(found) else found


def repeat_rounds(
    sample: Sample,
    settings: Settings,
    rounds: Sequence[MetricRound],
    kind: str,
    kernel: TrialKernel,
    seed: int,
) -> Array | None:
    """Learn the metric from all rows of a sample, by repeating these rounds."""
    everything, rng = np.arange(len(sample.codes)), np.random.default_rng(seed)
    learnt: Array | None = None
    for each in rounds:
        rows = stretch(sample.rows[settings.standardize], learnt)
        own = int(rng.integers(2**31))
        machine = replace(settings, n_landmarks=each.n_landmarks)
        trial = Trial(sample, rows, (everything, everything), machine, kernel, own)
        _, coef = trial.solve(each.gamma, each.C)
        outer = mean_outer(trial.gradients(each.gamma, coef, rng), kind, learnt)
        learnt = learn_metric(outer, each.damping)
    return learnt


def _solved(trials: Sequence[Trial], gamma: float, C: float) -> list[tuple[Array, Array]]:
    """Solve all trials, side by side if there are several: they are small, and BLAS is often idle."""
    if len(trials) == 1:
        return [trials[0].solve(gamma, C)]

    def solve(trial: Trial) -> tuple[Array, Array]:
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):  # the solver checks
            return trial.solve(gamma, C)

    with one_blas_thread(), ThreadPoolExecutor(cpu_count()) as pool:
        return list(pool.map(solve, trials))
