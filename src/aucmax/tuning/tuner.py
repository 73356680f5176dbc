"""The sequence of trials, and the rule by which a candidate replaces the best so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.features.bandwidth import resolve_gamma
from aucmax.features.kernels import BOTH
from aucmax.features.metric import Damping, learn_metric, mean_outer, stretch
from aucmax.features.nystroem import AUTO_LANDMARKS
from aucmax.fitting.settings import Settings
from aucmax.rows.interface import ArrayRows
from aucmax.runtime.deadline import NEVER, Deadline, OutOfTimeError
from aucmax.tuning.trial_rows import FIRST_LANDMARKS, MOST_TRIED, Sample
from aucmax.tuning.trials import Candidate, MetricRound, Result, TrialKernel, repeat_rounds

Array = npt.NDArray[Any]
Search = Callable[[Candidate, Any], Result]

#: Twice the landmarks have to lower ``1 - AUC`` by this share.
_WORTH_DOUBLING = 0.02

#: Above this AUC on held-out rows, a second kernel and twice the work are not worth a trial.
_ALMOST_PERFECT = 0.9998

#: The most rounds of the metric.
MAX_METRIC_ROUNDS = 3

#: Dampings of the metric, the weakest first: the stronger has to be better beyond noise. If rows are
#: few, one between the two.
DAMPINGS = (Damping(0.5, 0.1), Damping(1.0, 0.02))
FEW_DAMPINGS = (Damping(0.7, 0.1),)

_SCALINGS = {"quantile": "columns by rank", False: "columns in their own units"}
_LANDMARKS = {
    "root-kmeans": "landmarks of each class by the root of its size",
    "kmeans": "landmarks of all rows",
    "uniform": "landmarks at random",
}


def _silent(text: str) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class Limits:
    """How much tuning may do.

    Parameters
    ----------
    first_landmarks : int
        The number of landmarks that trials begin with.
    most_landmarks, most_with_second : int
        The most landmarks that may come out, with one kernel and with a second one.
    brief : bool
        Whether to try scalings and one round of the metric, and nothing else.
    widen : callable, optional
        Takes a scaling and returns a sample of more rows, if there are many more.
    deadline : Deadline
        When to stop with the best so far.
    affordable : callable, optional
        Takes the seconds per kernel value in trials and returns the most landmarks the fit may have.
    """

    first_landmarks: int = FIRST_LANDMARKS
    most_landmarks: int = MOST_TRIED
    most_with_second: int = MOST_TRIED
    brief: bool = False
    widen: Callable[[Any], Sample] | None = None
    deadline: Deadline = field(default_factory=lambda: NEVER)
    affordable: Callable[[float], int] | None = None


def tune(
    sample: Sample,
    fixed: Settings,
    kernel: TrialKernel,
    metric: str | None,
    limits: Limits,
    seed: int = 0,
    say: Callable[[str], None] = _silent,
) -> tuple[Settings, list[dict[str, Any]], list[MetricRound]]:
    """Choose what is open in ``fixed`` by trials; return it, trial records and rounds of the metric.

    ``metric`` is None, "diagonal" or "full". Scalings are tried in the order of ``sample.rows``. Raises
    :class:`OutOfTimeError` if time is over before the first result.
    """
    # 1) C and gamma
    tuner = Tuner(sample, fixed, kernel, metric, limits, seed, say)
    try:
        if limits.brief:
            tuner.try_scalings()
            tuner.learn_metric(rounds=1)
            tuner.count_landmarks(min(limits.most_landmarks, AUTO_LANDMARKS), double=False)
            tuner.learn_last_round()
        else:
            # 2) How columns are scaled
            tuner.try_scalings()
            # 3) Kinds of landmarks
            tuner.try_landmarks()
            # 4) The metric
            tuner.learn_metric()
            # 5) How many landmarks, and a metric from more of them
            tuner.count_landmarks(limits.most_landmarks)
            tuner.learn_last_round()
            # 6) A second kernel
            tuner.try_second_kernel()
            # 7) C, gamma and how many landmarks, once more on more rows
            tuner.try_more_rows()
    except OutOfTimeError:
        say("The time for tuning is over: the best so far is used.")
        tuner.keep_metric()
    if limits.affordable is not None and fixed.n_landmarks is None:
        tuner.count = min(tuner.count, limits.affordable(tuner.seconds_per_value))
    return tuner.chosen(), tuner.records, tuner.rounds


class Tuner:
    """The best candidate so far, what was tried, and the rounds of the metric that helped."""

    def __init__(
        self,
        sample: Sample,
        fixed: Settings,
        kernel: TrialKernel,
        metric: str | None,
        limits: Limits,
        seed: int,
        say: Callable[[str], None],
    ) -> None:
        self.limits, self.seconds_per_value = limits, 0.0
        self.sample, self.fixed, self.kernel, self.metric = sample, fixed, kernel, metric
        self.seed, self.say, self.rng = seed, say, np.random.default_rng(seed)
        self.count = fixed.n_landmarks or limits.first_landmarks
        self.first = min(self.count, limits.first_landmarks)
        self.second_kernel = False
        self.plain: list[Array | None] = [None] * len(sample.folds)
        self.learnt: Array | None = None
        self.records: list[dict[str, Any]] = []
        self.rounds: list[MetricRound] = []
        settings = replace(fixed, standardize=next(iter(sample.rows)), n_landmarks=self.first)
        self.candidate, self.best = self._try(settings, self.plain, Candidate.climb, None)
        self._record("as it is", self.best, True)

    def try_scalings(self) -> None:
        """Try other scalings."""
        for scaling in list(self.sample.rows)[1:]:
            settings = replace(self.candidate.settings, standardize=scaling)
            self._contest(_SCALINGS[scaling], settings, self.plain)

    def try_landmarks(self) -> None:
        """Try other strategies for landmarks."""
        smallest = min(train.size for train, _ in self.sample.folds)
        if self.fixed.landmarks is None and smallest > self.first and not self.sample.few:
            for strategy, what in _LANDMARKS.items():
                settings = replace(self.candidate.settings, landmarks=strategy)
                self._contest(what, settings, self.plain, Candidate.c_near)

    def learn_metric(self, rounds: int = MAX_METRIC_ROUNDS) -> None:
        """Learn a metric, in as many rounds as help."""
        if self.metric is None:
            return
        rounds = 1 if self.sample.few else rounds
        dampings: Sequence[Damping] = FEW_DAMPINGS if rounds == 1 else DAMPINGS
        for number in range(1, rounds + 1):
            if not self._learn_round(f"metric, round {number}", dampings, Candidate.climb):
                break
            dampings = (self.rounds[-1].damping,)

    def count_landmarks(self, most: int, double: bool = True) -> None:
        """Double the landmarks while that pays; beyond what can be tried, while it is expected to.

        At least a thousand are used if the effort allows: they cost little.
        """
        if self.fixed.n_landmarks is not None:
            if self.count > self.first:
                more = max(1, min(self.count, self.sample.most_landmarks))
                settings = replace(self.candidate.settings, n_landmarks=more)
                what = "as many landmarks as given"
                self._contest(what, settings, self.candidate.metrics, Candidate.nearby, always=True)
            return
        least, gain, ratio = min(AUTO_LANDMARKS, most), 0.0, 0.5
        double = double and not self.sample.few
        while double and 2 * self.count <= min(self.sample.most_landmarks, most):
            before = self.best.auc
            if not self._double():
                self.count = max(self.count, least)
                return
            share = (self.best.auc - before) / max(1.0 - before, 1e-12)
            ratio = min(share / gain, 0.8) if gain else 0.5
            gain = share
        while gain * ratio > _WORTH_DOUBLING and self.count < most:
            self.count, gain = min(2 * self.count, most), gain * ratio
        self.count = max(self.count, least)

    def learn_last_round(self) -> None:
        """Learn the metric once more from a machine with more landmarks, then from the whole sample."""
        if self.rounds and (self.candidate.settings.n_landmarks or 0) > self.first:
            self._learn_round("metric, last round", (self.rounds[-1].damping,), Candidate.nearby)
        self.keep_metric()

    def keep_metric(self) -> None:
        """Learn the metric from the whole sample, by the rounds that helped."""
        if self.learnt is None:
            settings, kind = self.candidate.settings, str(self.metric)
            self.learnt = repeat_rounds(
                self.sample, settings, self.rounds, kind, self.kernel, self.seed
            )

    def try_second_kernel(self) -> None:
        """Try a second kernel, the laplacian, over the same landmarks, if it is affordable.

        It stays unless it ranks held-out rows worse beyond noise: everything before was chosen on these
        rows for the rbf alone, so that what two kernels get right together counts for too little. What
        is chosen with more rows is chosen for the rbf alone, at half the cost.
        """
        if self.metric == "full":  # directions are rotated, and a laplacian goes by columns
            return
        if self.best.auc > _ALMOST_PERFECT:
            return
        settings = self.candidate.settings
        room = 2 * (settings.n_landmarks or FIRST_LANDMARKS) <= self.sample.most_values
        if self.fixed.kernel is None and self.count <= self.limits.most_with_second and room:
            both = replace(settings, kernel=BOTH)
            _, result = self._try(both, self.candidate.metrics, Candidate.same, self.best)
            self.second_kernel = not self.best.beats(result)
            self._record("a second kernel, the laplacian", result, self.second_kernel)

    def try_more_rows(self) -> None:
        """Tune C, gamma and the number of landmarks again on more rows.

        More rows show finer differences: a narrower kernel, a larger C, more landmarks. The metric
        stays the same for all candidates. Nothing is tried if nothing is open, or if landmarks are so
        many that trials would cost as much as fits.
        """
        limits, asked = self.limits, self.fixed
        done = asked.C is not None and asked.n_landmarks is not None and self.kernel.fixed
        if limits.widen is None or self.count > MOST_TRIED or done:
            return
        most = limits.most_with_second if self.second_kernel else limits.most_landmarks
        wide = limits.widen(self.candidate.settings.standardize)
        self.sample = wide
        settings = replace(self.candidate.settings, n_landmarks=min(self.count, wide.most_landmarks))
        metrics = [self.learnt] * len(wide.folds)
        what = f"on {len(wide.codes):,} rows"
        self._contest(what, settings, metrics, Candidate.climb, always=True)
        while self.fixed.n_landmarks is None and 2 * self.count <= min(wide.most_landmarks, most):
            if not self._double():
                break

    def chosen(self) -> Settings:
        """Return the settings found."""
        settings = replace(
            self.candidate.settings, n_landmarks=self.count, C=self.best.C, metric=self.learnt
        )
        settings = replace(settings, kernel=BOTH if self.second_kernel else self.kernel.name)
        if settings.landmarks is None:
            settings = replace(settings, landmarks="class-kmeans")
        if not self.kernel.fixed:
            rows = ArrayRows(stretch(self.sample.rows[settings.standardize], self.learnt))
            rule = resolve_gamma(self.kernel.gamma, rows, self.sample.weight, self.kernel.name)
            settings = replace(settings, gamma=self.best.gamma * rule)
        return settings

    def _try(
        self,
        settings: Settings,
        metrics: Sequence[Array | None],
        search: Search,
        near: Result | None,
    ) -> tuple[Candidate, Result]:
        """Search under some settings, unless that would not end in time by what others have taken.

        The first search of all, with nothing to start from, returns the best it had when time was over.
        """
        values = float(settings.n_landmarks or self.first) * len(self.sample.codes)
        values *= len(self.sample.folds)
        if self.seconds_per_value * values > self.limits.deadline.left():
            raise OutOfTimeError
        began = time.perf_counter()
        candidate = Candidate(
            self.sample, settings, metrics, self.kernel, self.seed, self.limits.deadline
        )
        try:
            result = search(candidate, near)
        except OutOfTimeError:
            known = candidate.best_known
            if near is not None or known is None:
                raise
            result = known
        spent = time.perf_counter() - began
        self.seconds_per_value = max(self.seconds_per_value, spent / values)
        return candidate, result

    def _contest(
        self,
        what: str,
        settings: Settings,
        metrics: Sequence[Array | None],
        search: Search = Candidate.climb,
        share: float = 0.0,
        always: bool = False,
    ) -> bool:
        """Try other settings, and use them if they are better beyond noise.

        They also have to lower ``1 - AUC`` by ``share``. With ``always`` they are used in any case.
        """
        best = self.best
        other, result = self._try(settings, metrics, search, best)
        gains = result.auc - best.auc > share * (1.0 - best.auc)
        better = always or (result.beats(best) and gains)
        self._record(what, result, better)
        if better:
            self.candidate, self.best = other, result
        return better

    def _double(self) -> bool:
        """Try twice the landmarks."""
        more = 2 * self.count
        settings = replace(self.candidate.settings, n_landmarks=more)
        better = self._contest(
            f"{more} landmarks", settings, self.candidate.metrics, Candidate.nearby, _WORTH_DOUBLING
        )
        self.count = more if better else self.count
        return better

    def _learn_round(self, what: str, dampings: Sequence[Damping], search: Search) -> bool:
        """Learn one round of the metric from the best candidate."""
        source, best, chosen = self.candidate, self.best, None
        outer = [
            mean_outer(trial.gradients(best.gamma, coef, self.rng), str(self.metric), own)
            for trial, coef, own in zip(source.trials, best.coef, source.metrics, strict=True)
        ]
        for damping in dampings:
            metrics = [learn_metric(each, damping) for each in outer]
            if any(each is None for each in metrics):
                self.say("The score is constant: there is no metric to learn.")
                break
            if self._contest(f"{what}, power {damping.power:g}", source.settings, metrics, search):
                chosen = damping
        if chosen is not None:
            count = source.settings.n_landmarks or FIRST_LANDMARKS
            self.rounds.append(MetricRound(chosen, best.C, best.gamma, count))
        return chosen is not None

    def _record(self, what: str, result: Result, used: bool) -> None:
        self.records.append(
            {"what": what, "auc": result.auc, "C": result.C, "gamma": result.gamma, "kept": used}
        )
        self.say(
            f"{what}: AUC {result.auc:.4f} on held-out rows at C={result.C:g}, gamma x {result.gamma:g}"
            f"{'' if used else ', not kept'}"
        )
