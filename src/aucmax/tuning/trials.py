"""Solve one candidate on a sample by C and gamma, and compare how two rank held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.features.metric import Damping, learn_metric, mean_outer, stretch
from aucmax.fitting.settings import Settings
from aucmax.metrics.auc import Placements, auc_variance, placements
from aucmax.operators.in_memory import FeatureOperator
from aucmax.pairs import PairLoss, ordered_share
from aucmax.rows.interface import dense
from aucmax.runtime.deadline import NEVER, Deadline, OutOfTimeError
from aucmax.runtime.threads import side_by_side
from aucmax.solvers.newton import Newton
from aucmax.solvers.options import Stopping
from aucmax.tuning.trial_map import TrialMap
from aucmax.tuning.trial_rows import FIRST_LANDMARKS, Sample

Array = npt.NDArray[Any]

#: The grids, in steps of these factors, and their ends. C is that of a fit to all rows, at most so many
#: times the first one, or as much less; gamma is a multiple of the distance rule.
_C_STEP, _C_FACTOR = 4.0, 4.0**8
_GAMMA_STEP, _GAMMA_RANGE = 2.0, (2.0**-5, 2.0**5)

#: A further step has to lower ``1 - AUC`` by this share: on a plateau nothing is gained.
_WORTH_A_STEP = 0.002

#: A new candidate has to be better by this many standard errors.
_BEYOND = 1.0

#: The relative distance to the minimum at which a trial stops.
_TOL = 3e-3

#: Preconditioners are built after this many times as many products as in a fit. A product over few rows
#: takes a millisecond, a preconditioner ten: with 4, trials took a sixth less processor time.
_PATIENCE = 4.0

#: The number of rows at which gradients are taken.
_GRADIENT_ROWS = 2000


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


@dataclass(frozen=True)
class _Solver:
    """A solver over the features of some folds, and the factors that made the features."""

    newton: Newton
    factors: list[Array]

    def run(self, C: float) -> tuple[Array, Array]:
        """Return scores (n, problems), and weights (v, problems) over the landmarks."""
        found = self.newton.run(np.full(len(self.newton.data.losses), C))
        return found.scores.copy(), TrialMap.fold(found.coef, self.factors)


def trial_map(
    sample: Sample, settings: Settings, metric: Array | None, kernel: TrialKernel
) -> TrialMap:
    """Return the map of a sample's rows under some settings and a metric."""
    rows = stretch(sample.rows[settings.standardize], metric)
    count = settings.n_landmarks or FIRST_LANDMARKS
    if isinstance(settings.landmarks, str | None):
        points = dense(rows[sample.landmarks(count, settings.landmarks or "class-kmeans")])
    else:
        points = np.asarray(settings.landmarks, dtype=rows.dtype)
    return TrialMap(rows, points, sample.weight, settings.kernel or kernel.name, kernel.gamma)


class Candidate:
    """All settings but C and gamma, tried over all folds.

    Folds that share a metric share the map, and are solved together.
    """

    def __init__(
        self,
        sample: Sample,
        settings: Settings,
        metrics: Sequence[Array | None],
        kernel: TrialKernel,
        deadline: Deadline = NEVER,
    ) -> None:
        if deadline.over():
            raise OutOfTimeError
        self.settings, self.metrics = settings, metrics
        self._sample, self._kernel, self._deadline = sample, kernel, deadline
        numbers = list(range(len(sample.folds)))
        shared = all(metric is metrics[0] for metric in metrics)
        self._groups = [numbers] if shared else [[number] for number in numbers]
        self._maps = side_by_side(self._map, self._groups)
        self._at: tuple[float, list[_Solver]] | None = None
        self._known: dict[tuple[float, float], Result] = {}

    def _map(self, group: list[int]) -> TrialMap:
        return trial_map(self._sample, self.settings, self.metrics[group[0]], self._kernel)

    def _losses(self, group: list[int]) -> list[PairLoss]:
        """Return the losses of some folds: for each fold, of each class."""
        sample, out = self._sample, []
        for number in group:
            weight = sample.weight.copy()
            weight[sample.folds[number][1]] = 0.0
            out += [PairLoss(up, weight) for up in sample.positives]
        return out

    def _solve(self, gamma: float, C: float) -> tuple[list[Array], list[Array]]:
        """Return each fold's scores (n, k) of all rows, and its weights (v, k) over the landmarks."""
        if self._at is None or self._at[0] != gamma:
            self._at = None  # features of two bandwidths are not held at a time
            stopping = Stopping(_TOL, deadline=self._deadline)

            def make(number: int) -> _Solver:
                features, factors = self._maps[number].features(gamma)
                losses = self._losses(self._groups[number])
                newton = Newton(
                    FeatureOperator(features), losses, stopping=stopping, patience=_PATIENCE
                )
                return _Solver(newton, factors)

            self._at = gamma, side_by_side(make, range(len(self._maps)))
        solvers = self._at[1]
        C, k = C * self._sample.scale, len(self._sample.positives)
        found = side_by_side(lambda solver: solver.run(C), solvers)
        if self._deadline.over():
            raise OutOfTimeError  # the solve may have been stopped anywhere
        scores = [each for own, _ in found for each in np.split(own, own.shape[1] // k, axis=1)]
        coef = [each for _, own in found for each in np.split(own, own.shape[1] // k, axis=1)]
        return scores, coef

    def fitted(self, gamma: float, C: float) -> Result:
        """Return the weights over landmarks at one gamma and C, without held-out rows."""
        _, coef = self._solve(gamma, C)
        return Result(C, gamma, np.nan, [], coef)

    def at(self, gamma: float, C: float) -> Result:
        """Return the result at one gamma and C, solved once."""
        if (gamma, C) not in self._known:
            scores, coef = self._solve(gamma, C)
            tests = [test for _, test in self._sample.folds]
            self._known[gamma, C] = Result(
                C,
                gamma,
                float(np.mean([self._auc(s, t) for s, t in zip(scores, tests, strict=True)])),
                [self._placements(s, t) for s, t in zip(scores, tests, strict=True)],
                coef,
            )
        return self._known[gamma, C]

    def _auc(self, scores: Array, test: Array) -> float:
        """Return the mean AUC of the held-out rows over classes."""
        own, u = [], self._sample.weight[test]
        for ranking, up in enumerate(self._sample.positives):
            s, positive = scores[test, ranking], up[test]
            own.append(ordered_share(s[positive], s[~positive], u[positive], u[~positive]))
        return float(np.mean(own))

    def _placements(self, scores: Array, test: Array) -> list[Placements]:
        """Return the placements of the held-out rows for each class."""
        out = []
        for ranking, up in enumerate(self._sample.positives):
            s, positive = scores[test, ranking], up[test]
            out.append(placements(s[positive], s[~positive]))
        return out

    def mean_outers(self, result: Result, kind: str, rng: np.random.Generator) -> list[Array]:
        """Return the mean outer product of the score's gradient over each fold's training rows."""
        out = []
        for group, mapped in zip(self._groups, self._maps, strict=True):
            for number in group:
                train, _ = self._sample.folds[number]
                some = np.sort(rng.permutation(train)[:_GRADIENT_ROWS])
                gradients = mapped.gradients(result.gamma, result.coef[number], some)
                out.append(mean_outer(gradients, kind, self.metrics[number]))
        return out

    @property
    def best_known(self) -> Result | None:
        """The best result so far, if there is any."""
        return max(self._known.values(), key=lambda each: each.auc, default=None)

    def best_c(self, gamma: float, start: float, patience: int = 1) -> Result:
        """Return the best C: up from a start, and down if that was best.

        A direction ends after ``patience`` values that are no better. Of a small class, the start stays
        unless another value is better beyond noise.
        """
        if self.settings.C is not None:
            return self.at(gamma, self.settings.C)
        first = best = self.at(gamma, start)
        for step in (_C_STEP, 1.0 / _C_STEP):
            worse, C = 0, start * step
            while worse < patience and 1.0 / _C_FACTOR <= C / self._sample.first_cost <= _C_FACTOR:
                result = self.at(gamma, C)
                worse = 0 if result.auc > best.auc else worse + 1
                best = max(best, result, key=lambda each: each.auc)
                C *= step
            if start != best.C:
                break
        return best if not self._sample.few or best.beats(first) else first

    def c_near(self, best: Result) -> Result:
        """Return the best C, from that of another candidate, at the same gamma."""
        return self.best_c(best.gamma, best.C)

    def climb(self, near: Result | None = None) -> Result:
        """Return the best C and gamma, from those of another candidate or from the rules.

        Gamma goes in the direction that helps more, as long as it helps.
        """
        best = self.c_near(near) if near else self.best_c(1.0, self._sample.first_cost, patience=2)
        return self._climb(best, 1.0 / _GAMMA_STEP, _GAMMA_STEP)

    def narrow(self, near: Result) -> Result:
        """Return the best C, from that of another candidate, and gamma as long as more of it helps."""
        return self._climb(self.c_near(near), _GAMMA_STEP)

    def _climb(self, best: Result, *steps: float) -> Result:
        tried = [(step, self._stepped(best, step)) for step in steps if not self._kernel.fixed]
        step, result = max(tried, key=lambda each: each[1].auc, default=(1.0, best))
        while self._is_better(result, best):
            best, result = result, self._stepped(result, step)
        return best

    def _stepped(self, best: Result, step: float) -> Result:
        """Return the best C at a further gamma, or the same result at the end of the range."""
        gamma = best.gamma * step
        return self.best_c(gamma, best.C) if _GAMMA_RANGE[0] <= gamma <= _GAMMA_RANGE[1] else best

    def _is_better(self, result: Result, best: Result) -> bool:
        """Return whether a result is better, of a small class beyond noise."""
        return result.gains_on(best) and (not self._sample.few or result.beats(best))

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
        return narrow if narrow.gains_on(found) else found


def repeat_rounds(
    sample: Sample,
    settings: Settings,
    rounds: Sequence[MetricRound],
    kind: str,
    kernel: TrialKernel,
    seed: int,
) -> Array | None:
    """Learn the metric from all rows of a sample, by repeating these rounds."""
    everything, nothing = np.arange(len(sample.codes)), np.arange(0)
    rng = np.random.default_rng(seed)
    learnt: Array | None = None
    for each in rounds:
        machine = replace(settings, n_landmarks=each.n_landmarks, C=each.C)
        whole = Candidate(replace(sample, folds=[(everything, nothing)]), machine, [learnt], kernel)
        result = whole.fitted(each.gamma, each.C)
        (outer,) = whole.mean_outers(result, kind, rng)
        learnt = learn_metric(outer, each.damping)
    return learnt
