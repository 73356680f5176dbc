"""The order of trials, and the rule by which a candidate replaces the best so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.features.kernels import BOTH, resolve_gamma
from aucmax.features.nystroem import AUTO_LANDMARKS
from aucmax.runtime.deadline import NEVER, Deadline, OutOfTimeError
from aucmax.tuning import learnt_metric as metrics
from aucmax.tuning.learnt_metric import DAMPINGS, FEW_DAMPINGS, Damping, Round, mean_outer, stretched
from aucmax.tuning.settings import Kernel, Settings
from aucmax.tuning.trial_rows import (
    FIRST_LANDMARKS,
    FOLDED_ROWS,
    MOST_TRIED,
    WIDE_ROWS,
    Sample,
    sample_rows,
)
from aucmax.tuning.trial_rows import first_landmarks as landmarks_to_begin_with
from aucmax.tuning.trials import Candidate, Result, learn_rounds

Array = npt.NDArray[Any]
Say = Callable[[str], None]
Search = Callable[[Candidate, Any], Result]

#: The most landmarks that may come out.
MOST_LANDMARKS = 8000

#: Twice the landmarks have to lower ``1 - AUC`` by this share.
_WORTH_DOUBLING = 0.02

#: An AUC on held-out rows above which a second kernel, and twice the work, is not worth a trial.
_ALL_BUT_RIGHT = 0.9998

#: Of the metric.
MAX_ROUNDS = 3

#: The fewest that may come out below an effort of 1.
_LEAST_LANDMARKS = 100

#: The work that ``effort=1`` stands for: seconds on two cores.
_EFFORT_SECONDS = 60.0

_SCALINGS = {"quantile": "columns by rank", False: "columns in their own units"}
_LANDMARKS = {
    "root-kmeans": "landmarks of each class by the root of its size",
    "kmeans": "landmarks of all rows",
    "uniform": "landmarks at random",
}


def tune(
    sample: Sample,
    fixed: Settings,
    kernel: Kernel = Kernel(),  # noqa: B008
    *,
    metric: str | None = "diagonal",
    seed: int = 0,
    most_landmarks: int = MOST_TRIED,
    most_with_second: int = MOST_TRIED,
    first_landmarks: int = FIRST_LANDMARKS,
    brief: bool = False,
    widen: Callable[[Any], Sample] | None = None,
    say: Say = lambda text: None,
    deadline: Deadline = NEVER,
    affordable: Callable[[float], int] | None = None,
) -> tuple[Settings, list[dict[str, Any]], list[Round]]:
    """Settle what is open in ``fixed``, by trials on the sample; their records; rounds of the metric.

    ``metric`` is None, "diagonal" or "full"; ``most_landmarks`` the most that may come out, and
    ``most_with_second`` the most that may have a second kernel. Scalings
    are tried in the order of ``sample.rows``. ``widen`` gives a sample of more rows, scaled in one of
    these ways, if there are many more. Trials begin with ``first_landmarks``; ``brief`` ones try
    scalings and one round of the metric, and nothing else. After ``deadline`` nothing more is tried,
    and the best so far counts; :class:`OutOfTimeError` is raised if there is none. ``affordable`` gives
    the most landmarks that the fit may have, by the seconds that a kernel value took in trials.
    """
    # 1) C and gamma
    tuner = Tuner(sample, fixed, kernel, metric, seed, say, first_landmarks, deadline)
    try:
        if brief:
            tuner.try_scalings()
            tuner.learn_metric(rounds=1)
            tuner.count_landmarks(min(most_landmarks, AUTO_LANDMARKS), double=False)
            tuner.learn_last_round()
        else:
            _try_the_rest(tuner, most_landmarks, most_with_second, widen)
    except OutOfTimeError:
        say("The time for tuning is over: the best so far is taken.")
        tuner.make_do()
    if affordable is not None and fixed.n_landmarks is None:
        tuner.count = min(tuner.count, affordable(tuner.seconds_per_value))
    return tuner.settled(), tuner.records, tuner.rounds


def _try_the_rest(
    tuner: Tuner, most_landmarks: int, most_with_second: int, widen: Callable[[Any], Sample] | None
) -> None:
    """All that follows C and gamma, in the order the package's docstring gives."""
    # 2) How columns are scaled
    tuner.try_scalings()
    # 3) Kinds of landmarks
    tuner.try_landmarks()
    # 4) The metric
    tuner.learn_metric()
    # 5) How many landmarks, and a metric from more of them
    tuner.count_landmarks(most_landmarks)
    tuner.learn_last_round()
    # 6) A second kernel
    tuner.try_second_kernel(most_with_second)
    # 7) C, gamma and how many landmarks, once more on more rows
    if widen is not None and tuner.wants_more_rows():
        most = most_with_second if tuner.second_kernel else most_landmarks
        tuner.go_on_with(widen(tuner.candidate.settings.standardize), most)


class Tuner:
    """The best machine so far, what was tried, and the rounds of the metric that were kept."""

    def __init__(
        self,
        sample: Sample,
        fixed: Settings,
        kernel: Kernel,
        metric: str | None,
        seed: int,
        say: Say,
        first_landmarks: int = FIRST_LANDMARKS,
        deadline: Deadline = NEVER,
    ) -> None:
        self._deadline, self.seconds_per_value = deadline, 0.0
        self.sample, self.fixed, self.kernel, self.metric = sample, fixed, kernel, metric
        self.seed, self.say, self.rng = seed, say, np.random.default_rng(seed)
        self.first = min(fixed.n_landmarks or first_landmarks, first_landmarks)
        self.count = fixed.n_landmarks or first_landmarks
        self.second_kernel = False
        self.plain: list[Array | None] = [None] * len(sample.folds)
        self.learnt: Array | None = None
        self.records: list[dict[str, Any]] = []
        self.rounds: list[Round] = []
        settings = replace(fixed, standardize=next(iter(sample.rows)), n_landmarks=self.first)
        self.candidate, self.best = self._try(settings, self.plain, Candidate.climb, None)
        self._record("as it is", self.best, True)

    def try_scalings(self) -> None:
        for scaling in list(self.sample.rows)[1:]:
            self._contest(
                _SCALINGS[scaling], replace(self.candidate.settings, standardize=scaling), self.plain
            )

    def try_landmarks(self) -> None:
        smallest = min(train.size for train, _ in self.sample.folds)
        if self.fixed.landmarks is None and smallest > self.first and not self.sample.few:
            for strategy, what in _LANDMARKS.items():
                settings = replace(self.candidate.settings, landmarks=strategy)
                self._contest(what, settings, self.plain, Candidate.walk_near)

    def learn_metric(self, rounds: int = MAX_ROUNDS) -> None:
        if self.metric is None:
            return
        rounds = 1 if self.sample.few else rounds
        dampings: Sequence[Damping] = FEW_DAMPINGS if rounds == 1 else DAMPINGS
        for number in range(1, rounds + 1):
            if not self._learn(f"metric, round {number}", dampings, Candidate.climb):
                break
            dampings = (self.rounds[-1].damping,)

    def count_landmarks(self, most: int, double: bool = True) -> None:
        """Double the landmarks as long as it pays; beyond what can be tried, as long as it will.

        At least a thousand are taken where the effort allows: they cost little.
        """
        if self.fixed.n_landmarks is not None:
            if self.count > self.first:
                more = max(1, min(self.count, self.sample.most_landmarks))
                settings = replace(self.candidate.settings, n_landmarks=more)
                self._go_on(
                    "as many landmarks as given", settings, self.candidate.metrics, Candidate.nearby
                )
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
        if self.rounds and (self.candidate.settings.n_landmarks or 0) > self.first:
            self._learn("metric, last round", (self.rounds[-1].damping,), Candidate.nearby)
        self._keep_metric()

    def make_do(self) -> None:
        """End where time was over: the metric is still to be learnt from the whole sample."""
        self._deadline = NEVER
        if self.learnt is None:
            self._keep_metric()

    def try_second_kernel(self, most: int) -> None:
        """Try a second kernel, the laplacian, over the same landmarks, where it is affordable.

        It stays unless it ranks held-out rows worse beyond noise: all that came before was chosen on
        these, for the rbf alone, so that what two kernels get right together counts for too little.
        What is settled with more rows is settled for the rbf alone, at half of the cost.
        """
        if self.metric == "full":  # directions are turned, and a laplacian goes by columns
            return
        if self.best.auc > _ALL_BUT_RIGHT:
            return
        settings = self.candidate.settings
        room = 2 * (settings.n_landmarks or FIRST_LANDMARKS) <= self.sample.most_values
        if self.fixed.kernel is None and self.count <= most and room:
            both = replace(settings, kernel=BOTH)
            _, result = self._try(both, self.candidate.metrics, Candidate.stay, self.best)
            self.second_kernel = not self.best.beats(result)
            self._record("a second kernel, the laplacian", result, self.second_kernel)

    def wants_more_rows(self) -> bool:
        """Not if nothing is open, nor if landmarks are so many that trials would cost what fits do."""
        asked = self.fixed
        settled = asked.C is not None and asked.n_landmarks is not None and self.kernel.fixed
        return self.count <= MOST_TRIED and not settled

    def go_on_with(self, wide: Sample, most: int) -> None:
        """More rows tell finer things: a narrower kernel, a larger C, more landmarks.

        The metric stays, and is the same for all that is tried.
        """
        self.sample = wide
        settings = replace(self.candidate.settings, n_landmarks=min(self.count, wide.most_landmarks))
        self._go_on(
            f"on {len(wide.codes):,} rows", settings, [self.learnt] * len(wide.folds), Candidate.climb
        )
        while self.fixed.n_landmarks is None and 2 * self.count <= min(wide.most_landmarks, most):
            if not self._double():
                break

    def settled(self) -> Settings:
        """What came out."""
        settings = replace(
            self.candidate.settings, n_landmarks=self.count, C=self.best.C, metric=self.learnt
        )
        settings = replace(settings, kernel=BOTH if self.second_kernel else self.kernel.name)
        if settings.landmarks is None:
            settings = replace(settings, landmarks="class-kmeans")
        if not self.kernel.fixed:
            rows = stretched(self.sample.rows[settings.standardize], self.learnt)
            rule = resolve_gamma(self.kernel.gamma, rows, self.sample.weight, self.kernel.name)
            settings = replace(settings, gamma=self.best.gamma * rule)
        return settings

    # --- one trial

    def _try(
        self,
        settings: Settings,
        stretch: Sequence[Array | None],
        search: Search,
        near: Result | None,
    ) -> tuple[Candidate, Result]:
        """Search under one setting, unless it would not end in time by what others have taken.

        The first search of all, with nothing near to go on from, gives the best it had when time was
        over.
        """
        count = float(settings.n_landmarks or self.first)
        values = count * len(self.sample.codes) * len(self.sample.folds)  # of the kernel
        if self.seconds_per_value * values > self._deadline.left():
            raise OutOfTimeError
        began = time.perf_counter()
        candidate = Candidate(self.sample, settings, stretch, self.kernel, self.seed, self._deadline)
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

    def _go_on(
        self, what: str, settings: Settings, stretch: Sequence[Array | None], search: Search
    ) -> None:
        """With another setting, whether it is better or not."""
        self.candidate, self.best = self._try(settings, stretch, search, self.best)
        self._record(what, self.best, True)

    def _contest(
        self,
        what: str,
        settings: Settings,
        stretch: Sequence[Array | None],
        search: Search = Candidate.climb,
        share: float = 0.0,
    ) -> bool:
        """Try another setting, and go on with it if it is better, by a share of what is left."""
        best = self.best
        other, result = self._try(settings, stretch, search, best)
        kept = result.beats(best) and result.auc - best.auc > share * (1.0 - best.auc)
        self._record(what, result, kept)
        if kept:
            self.candidate, self.best = other, result
        return kept

    def _double(self) -> bool:
        """Try twice the landmarks."""
        more = 2 * self.count
        settings = replace(self.candidate.settings, n_landmarks=more)
        kept = self._contest(
            f"{more} landmarks", settings, self.candidate.metrics, Candidate.nearby, _WORTH_DOUBLING
        )
        self.count = more if kept else self.count
        return kept

    def _learn(self, what: str, dampings: Sequence[Damping], search: Search) -> bool:
        """One round of the metric, from the machine as it is."""
        source, judged, kept = self.candidate, self.best, None
        outer = [
            mean_outer(trial.gradients(judged.gamma, coef, self.rng), str(self.metric), own)
            for trial, coef, own in zip(source.trials, judged.coef, source.metrics, strict=True)
        ]
        for damping in dampings:
            stretch = [metrics.learn_metric(each, damping) for each in outer]
            if any(each is None for each in stretch):
                self.say("The score is constant: there is no metric to learn.")
                break
            if self._contest(f"{what}, power {damping.power:g}", source.settings, stretch, search):
                kept = damping
        if kept is not None:
            count = source.settings.n_landmarks or FIRST_LANDMARKS
            self.rounds.append(Round(kept, judged.C, judged.gamma, count))
        return kept is not None

    def _keep_metric(self) -> None:
        """Learn it from the whole sample, by the rounds that were kept."""
        settings = self.candidate.settings
        self.learnt = learn_rounds(
            self.sample, settings, self.rounds, str(self.metric), self.kernel, self.seed
        )

    def _record(self, what: str, result: Result, kept: bool) -> None:
        self.records.append(
            {"what": what, "auc": result.auc, "C": result.C, "gamma": result.gamma, "kept": kept}
        )
        self.say(
            f"{what}: AUC {result.auc:.4f} on held-out rows at C={result.C:g}, gamma x {result.gamma:g}"
            f"{'' if kept else ', not kept'}"
        )


def most_landmarks(n_rows: int, n_features: int, effort: float, second_kernel: bool = False) -> int:
    """The most landmarks, in hundreds, whose fit takes about a minute of two cores, times the effort.

    With a laplacian kernel beside the rbf it has twice the features, and half of the landmarks at most;
    none where a thousand take too long.

    Computed, not measured: the same data gives the same number on any machine.
    More than a thousand are at most half of the rows: the others lie close to them. Below an effort of
    1 there may be fewer than a thousand, and from there on there are not.

    >>> most_landmarks(80_000, 54, 1.0), most_landmarks(5_000_000, 54, 1.0)
    (5600, 1000)
    >>> most_landmarks(5_000_000, 54, 0.5)
    100
    """
    least = AUTO_LANDMARKS if effort >= 1.0 or second_kernel else _LEAST_LANDMARKS
    most = min(MOST_LANDMARKS // (2 if second_kernel else 1), max(AUTO_LANDMARKS, n_rows // 2))
    count = least
    seconds = _seconds_with_second if second_kernel else _seconds
    if second_kernel and seconds(n_rows, n_features, count) > _EFFORT_SECONDS * effort:
        return 0
    while count < most and seconds(n_rows, n_features, count + 100) <= _EFFORT_SECONDS * effort:
        count += 100
    return count


def tuning_seconds(n_rows: int, n_features: int, effort: float, brief: bool) -> float:
    """About how long the trials of a fit take on two cores, before anything is known of the rows.

    Of a trial's parts: features by a product of matrices, about forty passes over them, eigenvectors of
    the landmarks' kernel, and what Python takes; of a setting's, k-means and distances. How many trials
    there are depends on the data: the counts are those of a usual fit, and half or twice as many occur.
    """
    folds = 3 if n_rows <= FOLDED_ROWS else 1
    rows = min(n_rows, sample_rows(effort))
    count = min(landmarks_to_begin_with(effort), 2 * rows // 3)
    solve = (2.0 * rows * count**2 + 20.0 * count**3) / _FLOPS + rows * count * _PASSES_BYTES + 0.01
    setup = 2.0 * n_features * (rows * count + 250.0 * count**2) / _FLOPS
    solves, settings = (20, 5) if brief else (60, 12)
    seconds = _SIDE_BY_SIDE * folds * solves * solve if folds > 1 else solves * solve
    wide = 0.0 if brief or n_rows < 2 * rows else 10.0 * min(n_rows, WIDE_ROWS) / rows * solve
    return seconds + folds * settings * setup + wide


#: Flops a second of a product of matrices, seconds that forty passes take for a value, and the share of
#: their time that trials of several folds take side by side.
_FLOPS = 5e10
_PASSES_BYTES = 1.6e-8
_SIDE_BY_SIDE = 0.6


def _seconds(n_rows: int, n_features: int, n_landmarks: int) -> float:
    """Of a fit: two hundred passes over kernel values, which are made once, and their eigenvectors."""
    values = float(n_rows) * n_landmarks
    return values * (7e-8 + 2e-11 * n_features) + 1.5e-10 * n_landmarks**3


def _seconds_with_second(n_rows: int, n_features: int, n_landmarks: int) -> float:
    """Of a fit with two kernels, one of which takes each column by itself."""
    columns = float(n_rows) * n_landmarks * n_features
    return 2.0 * _seconds(n_rows, n_features, n_landmarks) + 1e-10 * columns
