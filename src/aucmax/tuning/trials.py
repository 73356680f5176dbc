"""Solve one candidate on a sample by C and gamma, and compare how two rank held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
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
    held: list[Array] = field(default_factory=list)  #: by fold, scores (m, k) of its held-out rows

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
        self.sample, self.kernel, self._deadline = sample, kernel, deadline
        numbers = list(range(len(sample.folds)))
        shared = all(metric is metrics[0] for metric in metrics)
        self._groups = [numbers] if shared else [[number] for number in numbers]
        self._maps = side_by_side(self._map, self._groups)
        self._at: tuple[float, list[_Solver]] | None = None
        self._known: dict[tuple[float, float], Result] = {}

    def twin(self) -> Candidate:
        """Return the same candidate with features of its own, to try another gamma at the same time.

        Maps and results are shared.
        """
        other = copy(self)
        other._at = None
        return other

    def _map(self, group: list[int]) -> TrialMap:
        return trial_map(self.sample, self.settings, self.metrics[group[0]], self.kernel)

    def _losses(self, group: list[int]) -> list[PairLoss]:
        """Return the losses of some folds: for each fold, of each class."""
        sample, out = self.sample, []
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
        C, k = C * self.sample.scale, len(self.sample.positives)
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
            tests = [test for _, test in self.sample.folds]
            self._known[gamma, C] = Result(
                C,
                gamma,
                float(np.mean([self._auc(s, t) for s, t in zip(scores, tests, strict=True)])),
                [self._placements(s, t) for s, t in zip(scores, tests, strict=True)],
                coef,
                [own[test] for own, test in zip(scores, tests, strict=True)],
            )
        return self._known[gamma, C]

    def _auc(self, scores: Array, test: Array) -> float:
        """Return the mean AUC of the held-out rows over classes."""
        own, u = [], self.sample.weight[test]
        for ranking, up in enumerate(self.sample.positives):
            s, positive = scores[test, ranking], up[test]
            own.append(ordered_share(s[positive], s[~positive], u[positive], u[~positive]))
        return float(np.mean(own))

    def _placements(self, scores: Array, test: Array) -> list[Placements]:
        """Return the placements of the held-out rows for each class."""
        out = []
        for ranking, up in enumerate(self.sample.positives):
            s, positive = scores[test, ranking], up[test]
            out.append(placements(s[positive], s[~positive]))
        return out

    def mean_outers(self, result: Result, kind: str, rng: np.random.Generator) -> list[Array]:
        """Return the mean outer product of the score's gradient over each fold's training rows."""
        out = []
        for group, mapped in zip(self._groups, self._maps, strict=True):
            for number in group:
                train, _ = self.sample.folds[number]
                some = np.sort(rng.permutation(train)[:_GRADIENT_ROWS])
                gradients = mapped.gradients(result.gamma, result.coef[number], some)
                out.append(mean_outer(gradients, kind, self.metrics[number]))
        return out

    @property
    def best_known(self) -> Result | None:
        """The best result so far, if there is any."""
        return max(self._known.values(), key=lambda each: each.auc, default=None)


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
