"""The sequence of trials, and the rule by which a candidate replaces the best so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from aucmax.features.bandwidth import resolve_gamma
from aucmax.features.kernels import BOTH
from aucmax.features.metric import Damping, learn_metric, stretch
from aucmax.features.nystroem import AUTO_LANDMARKS
from aucmax.fitting.settings import Settings
from aucmax.rows.interface import ArrayRows
from aucmax.runtime.deadline import NEVER, Deadline, OutOfTimeError
from aucmax.runtime.progress import StatusLine
from aucmax.runtime.threads import side_by_side
from aucmax.tuning import climbing
from aucmax.tuning.trial_rows import FIRST_LANDMARKS, MOST_TRIED, Sample
from aucmax.tuning.trials import (
    Candidate,
    MetricRound,
    Result,
    TrialKernel,
    repeat_rounds,
)

Array = npt.NDArray[Any]
Search = Callable[[Candidate, Any], Result]

#: Twice the landmarks have to lower ``1 - AUC`` by this share; and what the next doubling is expected
#: to gain, relative to the last.
_WORTH_DOUBLING, _NEXT_GAIN = 0.02, 0.6

#: Above this AUC on held-out rows, a second kernel and twice the work are not worth a trial.
ALMOST_PERFECT = 0.9998

#: The paper's C, and its gamma as a multiple of the distance rule.
PAPER_C, PAPER_GAMMA = 10.0, 0.5
PAPER = Settings(PAPER_C, "paper", 1600, "centroids", True, "rbf")

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
}


@dataclass(frozen=True)
class Limits:
    """How much tuning may do.

    Parameters
    ----------
    first_landmarks : int
        The number of landmarks that trials begin with.
    most_landmarks, most_with_second : int
        The most landmarks that may come out, with one kernel and with a second one.
    most_tried : int
        The most landmarks that trials may have; beyond it, gains are extrapolated.
    brief : bool
        Whether to try scalings and one round of the metric, and nothing else.
    widen : callable, optional
        Takes scalings and returns a sample of more rows, if there are many more.
    deadline : Deadline
        When to stop with the best so far.
    fit_rows : int
        The number of rows of the fit, for an estimate of its time.
    affordable : callable, optional
        Takes the seconds per kernel value in trials and returns the most landmarks the fit may have.
    """

    first_landmarks: int = FIRST_LANDMARKS
    most_landmarks: int = MOST_TRIED
    most_with_second: int = MOST_TRIED
    most_tried: int = MOST_TRIED
    brief: bool = False
    widen: Callable[[list[Any]], Sample] | None = None
    deadline: Deadline = field(default_factory=lambda: NEVER)
    fit_rows: int = 0
    affordable: Callable[[float], int] | None = None


def tune(
    sample: Sample,
    fixed: Settings,
    kernel: TrialKernel,
    metric: str | None,
    limits: Limits,
    seed: int = 0,
    status: StatusLine | None = None,
) -> Tuned:
    """Choose what is open in ``fixed`` by trials.

    ``metric`` is None, "diagonal" or "full". Scalings are tried in the order of ``sample.rows``. Raises
    :class:`OutOfTimeError` if time is over before the first result.
    """
    # 1) C and gamma
    tuner = Tuner(sample, fixed, kernel, metric, limits, seed, status or StatusLine())
    # 2) to 4): what else to try, and about how long it takes relative to the first settings
    rounds = 1 if limits.brief else MAX_METRIC_ROUNDS
    steps: list[Step] = [
        Step("scalings", 0.5, tuner.try_scalings),
        Step("a metric", 0.7 * rounds, partial(tuner.learn_metric, rounds)),
        Step("landmarks", 0.2, partial(tuner.count_landmarks, limits.most_landmarks)),
        Step("the last metric", 0.1, tuner.learn_last_round),
    ]
    if not limits.brief:
        # 5) to 7)
        steps += [
            Step("a second kernel", 0.5, tuner.try_second_kernel),
            Step("more rows", 3.0 if limits.widen else 0.0, tuner.try_more_rows),
            Step("the paper's settings", 0.1, tuner.try_paper),
        ]
    try:
        tuner.take(steps)
    except OutOfTimeError:
        tuner.status.say("The time for tuning is over: the best so far is used.")
        tuner.keep_metric()
    if limits.affordable is not None and fixed.n_landmarks is None:
        tuner.count = min(tuner.count, limits.affordable(tuner.seconds_per_value))
    on_sample = tuner.best if tuner.sample is sample else tuner.on_sample
    return Tuned(tuner.chosen(), tuner.records, tuner.rounds, on_sample)


class Tuned(NamedTuple):
    """What tuning found: settings, records of trials, and the rounds of the metric.

    ``result`` is the best on the first sample; None if the settings were found on more rows only.
    """

    settings: Settings
    records: list[dict[str, Any]]
    rounds: list[MetricRound]
    result: Result | None


class Step(NamedTuple):
    """A step of tuning: what it tries, its cost relative to the first settings, and what does it."""

    what: str
    cost: float
    take: Callable[[], None]


class Entry(NamedTuple):
    """Settings to try: their name, the metric of each fold, and how C and gamma are searched."""

    what: str
    settings: Settings
    metrics: Sequence[Array | None]
    search: Search = climbing.climb


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
        status: StatusLine,
    ) -> None:
        self.limits, self.seconds_per_value = limits, 0.0
        self.sample, self.fixed, self.kernel, self.metric = sample, fixed, kernel, metric
        self.seed, self.status, self.rng = seed, status, np.random.default_rng(seed)
        self.count = fixed.n_landmarks or limits.first_landmarks
        self.first = min(self.count, limits.first_landmarks)
        self.second_kernel = False
        self.plain: list[Array | None] = [None] * len(sample.folds)
        self.learnt: Array | None = None
        self.records: list[dict[str, Any]] = []
        self.rounds: list[MetricRound] = []
        self.on_sample: Result | None = None  # the best on the first sample, once there is another
        settings = replace(fixed, standardize=next(iter(sample.rows)), n_landmarks=self.first)
        began = time.monotonic()
        self.candidate, self.best = self._try(settings, self.plain, climbing.from_rules, None)
        self.first_seconds = time.monotonic() - began
        self._record("as it is", self.best, True)

    def take(self, steps: Sequence[Step]) -> None:
        """Take steps, and show which, the best AUC so far and about how long the fit still takes."""
        began, done, ahead = time.monotonic(), 0.0, sum(step.cost for step in steps)
        for step in steps:
            pace = (time.monotonic() - began) / done if done else self.first_seconds
            values = self.limits.fit_rows * max(self.count, min(AUTO_LANDMARKS, self.limits.fit_rows))
            left = pace * ahead + self.seconds_per_value * values
            self.status.show(f"trying {step.what}: best AUC so far {self.best.auc:.4f}", left)
            step.take()
            done, ahead = done + step.cost, ahead - step.cost

    def try_scalings(self) -> None:
        """Try other scalings."""
        others = list(self.sample.rows)[1:]
        own = [replace(self.candidate.settings, standardize=scaling) for scaling in others]
        if others:
            names = [_SCALINGS[scaling] for scaling in others]
            pairs = zip(names, own, strict=True)
            self._contest(*(Entry(*each, self.plain, climbing.c_near) for each in pairs))

    def learn_metric(self, rounds: int = MAX_METRIC_ROUNDS) -> None:
        """Learn a metric, in as many rounds as help."""
        if self.metric is None:
            return
        rounds = 1 if self.sample.few else rounds
        dampings: Sequence[Damping] = FEW_DAMPINGS if rounds == 1 else DAMPINGS
        for number in range(1, rounds + 1):
            if not self._learn_round(f"metric, round {number}", dampings, climbing.narrow):
                break
            dampings = (self.rounds[-1].damping,)

    def count_landmarks(self, most: int) -> None:
        """Take as many landmarks as given, or a thousand if the effort allows: they cost little."""
        if self.fixed.n_landmarks is None:
            self.count = max(self.count, min(AUTO_LANDMARKS, most))
        elif self.count > self.first:
            more = max(1, min(self.count, self.sample.most_landmarks))
            settings = replace(self.candidate.settings, n_landmarks=more)
            what = "as many landmarks as given"
            entry = Entry(what, settings, self.candidate.metrics, climbing.nearby)
            self._contest(entry, always=True)

    def _extrapolate(self, tried: int, auc_of_half: float, most: int) -> None:
        """Double the landmarks as long as that is expected to pay, from what the last doubling gained.

        Each doubling is expected to gain a little over half as much as the one before. If the last one
        did not pay, half of the landmarks are enough.
        """
        count, gain = tried, (self.best.auc - auc_of_half) / max(1.0 - auc_of_half, 1e-12)
        if gain <= _WORTH_DOUBLING:
            count //= 2
        while gain * _NEXT_GAIN > _WORTH_DOUBLING and count < most:
            count, gain = min(2 * count, most), gain * _NEXT_GAIN
        self.count = max(count, min(AUTO_LANDMARKS, most))

    def learn_last_round(self) -> None:
        """Learn the metric once more from a machine with more landmarks, then from the whole sample."""
        if self.rounds and (self.candidate.settings.n_landmarks or 0) > self.first:
            self._learn_round("metric, last round", (self.rounds[-1].damping,), climbing.nearby)
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

        It stays if it ranks held-out rows better; of a small class, unless it ranks them worse beyond
        noise, because both together are the mean of two machines that cannot be told apart.
        """
        if self.metric == "full":  # directions are rotated, and a laplacian goes by columns
            return
        if self.best.auc > ALMOST_PERFECT:
            return
        settings = self.candidate.settings
        room = 2 * (settings.n_landmarks or FIRST_LANDMARKS) <= self.sample.most_values
        if self.fixed.kernel is None and self.count <= self.limits.most_with_second and room:
            both, few = replace(settings, kernel=BOTH), self.sample.few
            search = climbing.same if few else climbing.c_near
            candidate, result = self._try(both, self.candidate.metrics, search, self.best)
            kept = not self.best.beats(result) if few else result.auc > self.best.auc
            self._record("a second kernel, the laplacian", result, kept)
            self.second_kernel = kept
            if kept:
                self.candidate, self.best = candidate, result

    def try_more_rows(self) -> None:
        """Tune C, gamma, the kind of landmarks and their number again on more rows.

        More rows show finer differences: a narrower kernel, a larger C, more landmarks. The metric
        stays the same for all candidates. Nothing is tried if nothing is open.
        """
        limits, asked = self.limits, self.fixed
        done = asked.C is not None and asked.n_landmarks is not None and self.kernel.fixed
        if limits.widen is None or done:
            return
        most = limits.most_with_second if self.second_kernel else limits.most_landmarks
        scaling = self.candidate.settings.standardize
        plain = [True] if True in self.sample.rows else []  # for the paper's settings
        wide = limits.widen(list(dict.fromkeys([scaling, *plain])))
        self.on_sample = self.best
        self.sample = wide
        tried = limits.most_tried // (2 if self.second_kernel else 1)
        count = min(asked.n_landmarks or tried, tried, wide.most_landmarks)
        settings = replace(self.candidate.settings, n_landmarks=count)
        metrics = [self.learnt] * len(wide.folds)
        self._contest(Entry(f"on {len(wide.codes):,} rows", settings, metrics), always=True)
        if asked.landmarks is None:
            own = [replace(self.candidate.settings, landmarks=each) for each in _LANDMARKS]
            pairs = zip(_LANDMARKS.values(), own, strict=True)
            self._contest(*(Entry(*each, metrics, climbing.same) for each in pairs))
        if asked.n_landmarks is None:
            half = replace(self.candidate.settings, n_landmarks=max(1, count // 2))
            _, result = self._try(half, metrics, climbing.same, self.best)
            self._record(f"{count // 2} landmarks", result, False)
            self._extrapolate(count, result.auc, most)

    def try_paper(self) -> None:
        """Try the paper's settings, which stay if they rank held-out rows best."""
        asked = self.fixed
        names = ("C", "gamma", "n_landmarks", "landmarks", "standardize", "kernel")
        if any(getattr(asked, name) is not None for name in names) or True not in self.sample.rows:
            return
        paper = replace(PAPER, n_landmarks=self.candidate.settings.n_landmarks)
        plain: list[Array | None] = [None] * len(self.sample.folds)
        near = replace(self.best, C=PAPER_C, gamma=PAPER_GAMMA)
        other, result = self._try(paper, plain, climbing.same, near)
        kept = result.auc > self.best.auc and (not self.sample.few or result.beats(self.best))
        self._record("the paper's settings", result, kept)
        if kept:
            self.candidate, self.best, self.learnt, self.rounds = other, result, None, []
            self.second_kernel = False
            self.on_sample = None

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
        candidate = Candidate(self.sample, settings, metrics, self.kernel, self.limits.deadline)
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

    def _contest(self, *entries: Entry, always: bool = False) -> int | None:
        """Try other settings side by side; use the best of them if it ranks held-out rows better.

        Of a small class, it has to be better beyond noise. With ``always`` it is used in any case.
        Return the number of the entry that is used.
        """
        before = self.best
        found = side_by_side(
            lambda each: self._try(each.settings, each.metrics, each.search, before), entries
        )
        used = max(range(len(found)), key=lambda number: found[number][1].auc)
        result = found[used][1]
        gains = result.auc > before.auc
        better = always or (gains and (not self.sample.few or result.beats(before)))
        for number, (entry, (_, each)) in enumerate(zip(entries, found, strict=True)):
            self._record(entry.what, each, better and number == used)
        if better:
            self.candidate, self.best = found[used]
        return used if better else None

    def _learn_round(self, what: str, dampings: Sequence[Damping], search: Search) -> bool:
        """Learn one round of the metric from the best candidate."""
        source, best = self.candidate, self.best
        outer = source.mean_outers(best, str(self.metric), self.rng)
        entries = []
        for damping in dampings:
            metrics = [learn_metric(each, damping) for each in outer]
            if any(each is None for each in metrics):
                self.status.say("The score is constant: there is no metric to learn.")
                return False
            entries.append(Entry(f"{what}, power {damping.power:g}", source.settings, metrics, search))
        used = self._contest(*entries)
        if used is None:
            return False
        count = source.settings.n_landmarks or FIRST_LANDMARKS
        self.rounds.append(MetricRound(dampings[used], best.C, best.gamma, count))
        return True

    def _record(self, what: str, result: Result, used: bool) -> None:
        self.records.append(
            {"what": what, "auc": result.auc, "C": result.C, "gamma": result.gamma, "kept": used}
        )
        self.status.say(
            f"{what}: AUC {result.auc:.4f} on held-out rows at C={result.C:g}, gamma x {result.gamma:g}"
            f"{'' if used else ', not kept'}"
        )
