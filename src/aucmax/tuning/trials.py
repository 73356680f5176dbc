"""One setting tried on a sample: solves by C and gamma, and which of two ranks held-out rows better."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.features.nystroem import NystroemFeatures
from aucmax.operators import FeatureOperator
from aucmax.pairs import PairLoss, ordered_share
from aucmax.rows.validation import is_sparse
from aucmax.runtime.deadline import NEVER, Deadline, OutOfTimeError
from aucmax.runtime.threads import cpu_count, one_blas_thread
from aucmax.solvers.newton import Newton
from aucmax.solvers.options import Stopping
from aucmax.tuning import learnt_metric as metrics
from aucmax.tuning.learnt_metric import Round, mean_outer, stretched
from aucmax.tuning.settings import Kernel, Settings
from aucmax.tuning.trial_rows import FIRST_LANDMARKS, Sample

Array = npt.NDArray[Any]
Rows = Any

#: The grids, in steps of these factors, and their ends. C is per average row; gamma is a multiple of
#: the distance rule.
_C_STEP, _C_RANGE = 4.0, (4.0**-7, 4.0**5)
_GAMMA_STEP, _GAMMA_RANGE = 2.0, (2.0**-4, 2.0**4)

#: A further step has to lower ``1 - AUC`` by this share: where it is flat, nothing is gained.
_WORTH_A_STEP = 0.01

#: Standard errors by which something new has to be better.
_BEYOND = 1.0

#: Relative distance to the minimum at which a trial stops.
_TOL = 3e-3

#: Rows that gradients are taken at.
_GRADIENT_ROWS = 5000


@dataclass
class Result:
    """How a setting ranked the held-out rows, and each fold's weights over landmarks."""

    C: float
    gamma: float
    auc: float
    shares: list[list[tuple[Array, Array]]]  # by fold and class: of positives, of negatives
    coef: list[Array]

    def gains_on(self, other: Result) -> bool:
        """Whether it is better by an amount that matters."""
        return self.auc - other.auc > _WORTH_A_STEP * (1.0 - other.auc)

    def beats(self, other: Result) -> bool:
        """Whether it is better by more than the noise of the difference."""
        difference, variance = [], []
        for mine, others in zip(self.shares, other.shares, strict=True):
            for (pos, neg), (pos_other, neg_other) in zip(mine, others, strict=True):
                moved = pos - pos_other, neg - neg_other
                difference.append(moved[0].mean())
                variance.append(sum(float(part.var()) / max(part.size - 1, 1) for part in moved))
        count = len(difference)
        return bool(np.mean(difference) > _BEYOND * np.sqrt(np.sum(variance)) / count)


class Trial:
    """A map of one fold's training rows, and solves over it."""

    def __init__(
        self,
        sample: Sample,
        rows: Rows,
        fold: tuple[Array, Array],
        settings: Settings,
        kernel: Kernel,
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
        landmarks = "class-kmeans" if settings.landmarks is None else settings.landmarks
        self._map = NystroemFeatures(
            min(settings.n_landmarks or FIRST_LANDMARKS, train.size),
            landmarks=landmarks,
            kernel=settings.kernel or kernel.name,
            gamma=kernel.gamma,
            degree=kernel.degree,
            coef0=kernel.coef0,
            random_state=seed,
        ).place(rows[train], sample.codes[train], sample.weight[train])
        self._raw = self._map.raw_block(rows)
        self._at: tuple[float, Any, Newton] | None = None

    def solve(self, gamma: float, C: float) -> tuple[Array, Array]:
        """Scores (n, k) of all rows and weights (v, k) over the landmarks."""
        if self._at is None or self._at[0] != gamma:
            self._at = None  # features of two bandwidths are not held at a time
            mapped = self._map.with_gamma(gamma * self._map.gamma_)
            features = mapped.features(self.rows, self._raw)
            stopping = Stopping(tol=_TOL, deadline=self._deadline)
            solver = Newton(FeatureOperator(features), self._losses, stopping=stopping)
            self._at = gamma, mapped, solver
        _, mapped, newton = self._at
        found = newton.run(np.full(len(self._losses), C))
        if self._deadline.over():
            raise OutOfTimeError  # it may have been stopped anywhere
        return found.scores, mapped.fold(found.coef)

    def shares(self, scores: Array) -> list[tuple[Array, Array]]:
        """Of each class: the share of negatives below each held-out positive, and the other way."""
        out = []
        for column, up in enumerate(self._positives):
            s, positive = scores[self.test, column], up[self.test]
            out.append((_below(s[~positive], s[positive]), 1.0 - _below(s[positive], s[~positive])))
        return out

    def auc(self, scores: Array) -> float:
        own = []
        for column, up in enumerate(self._positives):
            s, positive, u = scores[self.test, column], up[self.test], self._weight[self.test]
            own.append(ordered_share(s[positive], s[~positive], u[positive], u[~positive]))
        return float(np.mean(own))

    def gradients(self, gamma: float, coef: Array, rng: np.random.Generator) -> list[Array]:
        """Of each class's score, at some training rows."""
        some = np.sort(rng.permutation(self.train)[:_GRADIENT_ROWS])
        rows = self.rows[some]
        rows = rows.toarray() if is_sparse(rows) else rows
        return self._map.gradients(rows, coef.T, gamma * self._map.gamma_)


class Candidate:
    """One setting but for C and gamma, over all folds."""

    def __init__(
        self,
        sample: Sample,
        settings: Settings,
        metrics: Sequence[Array | None],
        kernel: Kernel,
        seed: int,
        deadline: Deadline = NEVER,
    ) -> None:
        base = sample.rows[settings.standardize]
        self.settings, self.metrics, self._kernel, self._first_cost = (
            settings,
            metrics,
            kernel,
            sample.first_cost,
        )
        # One after the other: k-means silences a warning meanwhile, which is no matter for threads.
        self.trials = [
            Trial(sample, stretched(base, metric), fold, settings, kernel, seed, deadline)
            for fold, metric in zip(sample.folds, metrics, strict=True)
        ]
        self._known: dict[tuple[float, float], Result] = {}

    @property
    def best_known(self) -> Result | None:
        """The best of what has been tried, if anything has."""
        return max(self._known.values(), key=lambda each: each.auc, default=None)

    def at(self, gamma: float, C: float) -> Result:
        if (gamma, C) not in self._known:
            solved = _solved(self.trials, gamma, C)
            pairs = list(zip(self.trials, solved, strict=True))
            self._known[gamma, C] = Result(
                C,
                gamma,
                float(np.mean([trial.auc(scores) for trial, (scores, _) in pairs])),
                [trial.shares(scores) for trial, (scores, _) in pairs],
                [coef for _, (_, coef) in pairs],
            )
        return self._known[gamma, C]

    def walk(self, gamma: float, start: float, patience: int) -> Result:
        """The best C: up from a start, and down if that was best, until it is no better so many times.

        It is the start unless another is better beyond noise.
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

    def walk_near(self, best: Result) -> Result:
        """The best C, from that of a kindred candidate, at the same gamma."""
        return self.walk(best.gamma, best.C, patience=1)

    def climb(self, near: Result | None = None) -> Result:
        """The best C and gamma, from those of a kindred candidate or from nowhere.

        Gamma rises as long as that helps, or else falls.
        """
        best = self.walk(1.0, self._first_cost, patience=2) if near is None else self.walk_near(near)
        for step in () if self._kernel.fixed else (_GAMMA_STEP, 1.0 / _GAMMA_STEP):
            improved = False
            while _GAMMA_RANGE[0] <= best.gamma * step <= _GAMMA_RANGE[1]:
                result = self.walk(best.gamma * step, best.C, patience=1)
                if not (result.gains_on(best) and result.beats(best)):
                    break
                best, improved = result, True
            if improved:
                break
        return best

    def stay(self, best: Result) -> Result:
        """At the C and gamma of a kindred candidate."""
        return self.at(best.gamma, best.C)

    def nearby(self, best: Result) -> Result:
        """At the C and gamma of a kindred candidate, or with a narrower kernel."""
        C = best.C if self.settings.C is None else self.settings.C
        found = self.at(best.gamma, C)
        if self._kernel.fixed or best.gamma * _GAMMA_STEP > _GAMMA_RANGE[1]:
            return found
        narrow = self.at(best.gamma * _GAMMA_STEP, C)
        return narrow if narrow.beats(found) else found


def learn_rounds(
    sample: Sample,
    settings: Settings,
    rounds: Sequence[Round],
    kind: str,
    kernel: Kernel,
    seed: int,
) -> Array | None:
    """The metric of some rounds, from all rows of a sample."""
    everything, rng = np.arange(len(sample.codes)), np.random.default_rng(seed)
    learnt: Array | None = None
    for each in rounds:
        rows = stretched(sample.rows[settings.standardize], learnt)
        own = int(rng.integers(2**31))
        machine = replace(settings, n_landmarks=each.n_landmarks)
        trial = Trial(sample, rows, (everything, everything), machine, kernel, own)
        _, coef = trial.solve(each.gamma, each.C)
        outer = mean_outer(trial.gradients(each.gamma, coef, rng), kind, learnt)
        learnt = metrics.learn_metric(outer, each.damping)
    return learnt


def _solved(trials: Sequence[Trial], gamma: float, C: float) -> list[tuple[Array, Array]]:
    """All of them, side by side where there are several: they are small, and BLAS is idle often."""
    if len(trials) == 1:
        return [trials[0].solve(gamma, C)]

    def solve(trial: Trial) -> tuple[Array, Array]:
        # Values that overflow are found and named by the solver.
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            return trial.solve(gamma, C)

    with one_blas_thread(), ThreadPoolExecutor(cpu_count()) as pool:
        return list(pool.map(solve, trials))


def _below(values: Array, than: Array) -> Array:
    """For each of ``than``, the share of values below; of equal ones a half counts."""
    ordered = np.sort(values)
    count = np.searchsorted(ordered, than, "left") + np.searchsorted(ordered, than, "right")
    return np.asarray(count / (2.0 * values.size))
