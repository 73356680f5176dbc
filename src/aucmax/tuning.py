"""What a kernel classifier finds out by itself: scaling, landmarks, bandwidth, C and a metric.

All of it is tried on a sample of the rows, some of which are held out: a third of them where the
smaller class is large, else each in its turn. One thing after another is settled:

1. C and gamma, by climbing: gamma in factors of two around the distance rule, C in factors of four.
2. Columns standardised, or brought to normal scores by rank, which helps where they have long tails, or
   left in their own units.
3. Landmarks of each class, in equal shares or by the roots of their sizes, of all rows, or at random.
4. The metric. Columns (or directions) along which the learnt score is steep are stretched, the others
   shrunk: the metric is the mean outer product of the score's gradient (the average gradient outer
   product of recursive feature machines), damped by a power and by a share of the identity.
   Landmarks, C and gamma follow, and it is done again, for a few rounds.
5. How many landmarks: twice as many, as long as that lowers ``1 - AUC`` by a few per cent. If the
   metric helped, a last round is learnt from the better machine.

Whatever came first stays, unless what comes after ranks the held-out rows better by more than the
standard error of the difference (paired, by DeLong): so the machine does not end worse than it began,
but for chance. A metric is learnt from rows that do not judge it, and at the end, with as many rounds
as were found to help, from the whole sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold

from aucmax._checks import is_sparse
from aucmax._memory import format_bytes
from aucmax._threads import cpu_count, one_blas_thread
from aucmax.features.kernels import resolve_gamma
from aucmax.features.landmarks import equal_shares
from aucmax.features.nystroem import AUTO_LANDMARKS, NystroemFeatures
from aucmax.operators import FeatureOperator
from aucmax.pairs import PairLoss, ordered_share
from aucmax.solvers.newton import Newton

__all__ = ["Damping", "Kernel", "Sample", "Settings", "draw_sample", "learn_metric", "tune"]

Array = npt.NDArray[Any]

#: Rows that are tried on, of either class at most half of them as far as the other has any: with one
#: part held out, and with several in turn.
SAMPLE_ROWS = 20_000
FOLDED_ROWS = 10_000

#: With so many rows of the smaller class one part held out tells enough.
_ENOUGH = 2000

#: With fewer of it they are held out by fifths, else by thirds.
_FEW = 100

#: With fewer rows of a class, or fewer rows, nothing can be found out, and nothing is tried.
MIN_CLASS = 10
MIN_ROWS = 100

#: Landmarks to begin with, the most that are tried on the sample, and the most that may come out.
FIRST_LANDMARKS = 500
MOST_TRIED = 2000
MOST_LANDMARKS = 8000

#: Bytes that trials hold for a row and a landmark: distances and features, of three folds, twice.
_TRIAL_BYTES = 48

#: The grids, in steps of these factors, and their ends. C is per average row; gamma is a multiple of
#: the distance rule.
_C_STEP, _C_RANGE = 4.0, (4.0**-7, 4.0**5)
_GAMMA_STEP, _GAMMA_RANGE = 2.0, (2.0**-4, 2.0**4)

#: Where C begins, of two classes of one size; of a rare one it is less in proportion, so that a row of
#: it weighs the same. With 20 to 200 positives among 20,000 rows of six data sets the best was within a
#: factor of four from there.
_FIRST_C = 4.0

#: A further step has to lower ``1 - AUC`` by this share: where it is flat, nothing is gained.
_WORTH_A_STEP = 0.01

#: Standard errors by which something new has to be better.
_BEYOND = 1.0

#: Twice the landmarks have to lower ``1 - AUC`` by this share.
_WORTH_DOUBLING = 0.02

#: Relative distance to the minimum at which a trial stops.
_TOL = 3e-3

#: Rows that gradients are taken at.
_GRADIENT_ROWS = 5000

MAX_ROUNDS = 3

#: The work that ``effort=1`` stands for: seconds on two cores.
_EFFORT_SECONDS = 60.0

Rows = Any
Say = Callable[[str], None]


@dataclass(frozen=True)
class Damping:
    """How a mean outer product of gradients becomes a metric: to a power, with some identity."""

    power: float
    identity: float


@dataclass(frozen=True)
class Round:
    """A round of the metric that was kept: how damped, and the machine it was learnt from."""

    damping: Damping
    C: float
    gamma: float  # a multiple of the rule
    n_landmarks: int = FIRST_LANDMARKS


#: Weakest first: the stronger has to be better beyond noise. Where rows are few, one between the two.
DAMPINGS = (Damping(0.5, 0.1), Damping(1.0, 0.02))
FEW_DAMPINGS = (Damping(0.7, 0.1),)


@dataclass(frozen=True)
class Settings:
    """What a fit may leave open: settled, or not yet (None).

    All but ``metric`` are as the classifier's parameters; that is None for the plain distance, else
    what rows are multiplied with.
    """

    C: float | None = None
    gamma: float | str | None = None
    n_landmarks: int | None = None
    landmarks: Any = None
    standardize: Any = None
    metric: Array | None = None

    def filled(self, other: Settings) -> Settings:
        """With what is open taken from another."""
        missing = {name: value for name, value in vars(other).items() if getattr(self, name) is None}
        return replace(self, **missing)

    @property
    def complete(self) -> bool:
        """Whether nothing is open; a metric is not asked for here."""
        return all(value is not None for name, value in vars(self).items() if name != "metric")


@dataclass(frozen=True)
class Kernel:
    """The kernel, and the rule or number for gamma that multiples are of; which may be all there is."""

    name: str = "rbf"
    gamma: str | float = "distance"
    fixed: bool = False
    degree: int = 3
    coef0: float = 1.0


@dataclass(frozen=True)
class Sample:
    """Rows to try on: as each scaling gives them, their classes, weights and how they are split."""

    rows: dict[Any, Rows]
    codes: Array
    weight: Array
    positives: Sequence[Array]
    folds: Sequence[tuple[Array, Array]]
    room: float = np.inf  #: bytes for the trials

    @property
    def few(self) -> bool:
        """Whether a class is so small that little can be told apart, and little is tried."""
        return bool(np.bincount(self.codes).min() < _FEW)

    @property
    def first_cost(self) -> float:
        """Where C begins."""
        shares = [float(self.weight[up].sum() / self.weight.sum()) for up in self.positives]
        return _FIRST_C * float(np.mean([2.0 * min(share, 1.0 - share) for share in shares]))

    @property
    def most_landmarks(self) -> int:
        """That may be tried: half of a fold's training rows, as far as there is room."""
        smallest = min(train.size for train, _ in self.folds)
        return int(min(MOST_TRIED, smallest // 2, self.room / (_TRIAL_BYTES * self.codes.size)))


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
    ) -> None:
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
            kernel=kernel.name,
            gamma=kernel.gamma,
            degree=kernel.degree,
            coef0=kernel.coef0,
            random_state=seed,
        ).fit(rows[train], sample.codes[train], sample_weight=sample.weight[train])
        self._raw = self._map.raw_block(rows)
        self._at: tuple[float, Any, Newton] | None = None

    def solve(self, gamma: float, C: float) -> tuple[Array, Array]:
        """Scores (n, k) of all rows and weights (v, k) over the landmarks."""
        if self._at is None or self._at[0] != gamma:
            mapped = self._map if gamma == 1.0 else self._map.with_gamma(gamma * self._map.gamma_)
            features = mapped.features(self.rows, self._raw)
            self._at = gamma, mapped, Newton(FeatureOperator(features), self._losses, tol=_TOL)
        _, mapped, newton = self._at
        newton.run(np.full(len(self._losses), C))
        return newton.scores, mapped.fold(newton.coef)

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
        return self._map.with_gamma(gamma * self._map.gamma_).gradients(rows, coef.T)


class Race:
    """One setting but for C and gamma, over all folds."""

    def __init__(
        self,
        sample: Sample,
        settings: Settings,
        metrics: Sequence[Array | None],
        kernel: Kernel,
        seed: int,
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
            Trial(sample, stretched(base, metric), fold, settings, kernel, seed)
            for fold, metric in zip(sample.folds, metrics, strict=True)
        ]
        self._known: dict[tuple[float, float], Result] = {}

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
        """The best C, from that of a kindred race, at the same gamma."""
        return self.walk(best.gamma, best.C, patience=1)

    def climb(self, near: Result | None = None) -> Result:
        """The best C and gamma, from those of a kindred race or from nowhere.

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

    def nearby(self, best: Result) -> Result:
        """At the C and gamma of a kindred race, or with a narrower kernel."""
        C = best.C if self.settings.C is None else self.settings.C
        found = self.at(best.gamma, C)
        if self._kernel.fixed or best.gamma * _GAMMA_STEP > _GAMMA_RANGE[1]:
            return found
        narrow = self.at(best.gamma * _GAMMA_STEP, C)
        return narrow if narrow.beats(found) else found


def tune(
    sample: Sample,
    fixed: Settings,
    kernel: Kernel = Kernel(),  # noqa: B008
    *,
    metric: str | None = "diagonal",
    seed: int = 0,
    most_landmarks: int = MOST_TRIED,
    say: Say = lambda text: None,
) -> tuple[Settings, list[dict[str, Any]], list[Round]]:
    """Settle what is open in ``fixed``, by trials on the sample; their records; rounds of the metric.

    ``metric`` is None, "diagonal" or "full"; ``most_landmarks`` the most that may come out. Scalings
    are tried in the order of ``sample.rows``.
    """
    rng, records = np.random.default_rng(seed), []
    plain = [None] * len(sample.folds)
    scalings = list(sample.rows)
    first = min(fixed.n_landmarks or FIRST_LANDMARKS, FIRST_LANDMARKS)
    settings = replace(fixed, standardize=scalings[0], n_landmarks=first)

    def tried(what: str, result: Result, kept: bool) -> None:
        records.append(
            {"what": what, "auc": result.auc, "C": result.C, "gamma": result.gamma, "kept": kept}
        )
        say(
            f"{what}: AUC {result.auc:.4f} on held-out rows at C={result.C:g}, gamma x {result.gamma:g}"
            f"{'' if kept else ', not kept'}"
        )

    race = Race(sample, settings, plain, kernel, seed)
    best = race.climb()
    tried("as it is", best, True)

    def contest(
        what: str,
        settings: Settings,
        metrics: Sequence[Array | None],
        search: Callable[[Race, Result], Result] = Race.climb,
        share: float = 0.0,
    ) -> bool:
        """Try another setting, and go on with it if it is better, by a share of what is left."""
        nonlocal race, best
        other = Race(sample, settings, metrics, kernel, seed)
        result = search(other, best)
        kept = result.beats(best) and result.auc - best.auc > share * (1.0 - best.auc)
        tried(what, result, kept)
        if kept:
            race, best = other, result
        return kept

    for scaling in scalings[1:]:
        what = "columns by rank" if scaling == "quantile" else "columns in their own units"
        contest(what, replace(settings, standardize=scaling), plain)
    smallest = min(train.size for train, _ in sample.folds)
    if fixed.landmarks is None and smallest > first and not sample.few:
        names = {
            "root-kmeans": "landmarks of each class by the root of its size",
            "kmeans": "landmarks of all rows",
            "uniform": "landmarks at random",
        }
        for strategy, what in names.items():
            contest(what, replace(race.settings, landmarks=strategy), plain, Race.walk_near)
    rounds: list[Round] = []

    def learn(what: str, dampings: Sequence[Damping], search: Callable[[Race, Result], Result]) -> bool:
        """One round of the metric, from the machine as it is."""
        source, judged, kept = race, best, None
        outer = [
            mean_outer(trial.gradients(judged.gamma, coef, rng), str(metric), own)
            for trial, coef, own in zip(source.trials, judged.coef, source.metrics, strict=True)
        ]
        for damping in dampings:
            metrics = [learn_metric(each, damping) for each in outer]
            if any(each is None for each in metrics):
                say("The score is constant: there is no metric to learn.")
                break
            if contest(f"{what}, power {damping.power:g}", source.settings, metrics, search):
                kept = damping
        if kept is not None:
            count = source.settings.n_landmarks or FIRST_LANDMARKS
            rounds.append(Round(kept, judged.C, judged.gamma, count))
        return kept is not None

    dampings: Sequence[Damping] = FEW_DAMPINGS if sample.few else DAMPINGS
    for number in range(1, 2 if sample.few else MAX_ROUNDS + 1) if metric is not None else ():
        if not learn(f"metric, round {number}", dampings, Race.climb):
            break
        dampings = (rounds[-1].damping,)
    count = fixed.n_landmarks
    if count is None:
        count = _count_landmarks(
            sample,
            most_landmarks,
            lambda more, share: contest(
                f"{more} landmarks",
                replace(race.settings, n_landmarks=more),
                race.metrics,
                Race.nearby,
                share,
            ),
            lambda: best.auc,
        )
    elif count > first:
        more = max(1, min(count, sample.most_landmarks))
        race = Race(sample, replace(race.settings, n_landmarks=more), race.metrics, kernel, seed)
        best = race.nearby(best)
        tried("as many landmarks as given", best, True)
    if rounds and (race.settings.n_landmarks or 0) > first:
        learn("metric, last round", dampings, Race.nearby)
    settings = race.settings
    if settings.landmarks is None:
        settings = replace(settings, landmarks="class-kmeans")
    learnt = learn_rounds(sample, settings, rounds, str(metric), kernel, seed)
    settings = replace(settings, n_landmarks=count)
    if not kernel.fixed:
        rows = stretched(sample.rows[settings.standardize], learnt)
        rule = resolve_gamma(kernel.gamma, rows, sample.weight, kernel.name)
        settings = replace(settings, gamma=best.gamma * rule)
    return replace(settings, C=best.C, metric=learnt), records, rounds


def _count_landmarks(
    sample: Sample, most: int, try_landmarks: Callable[[int, float], bool], auc: Callable[[], float]
) -> int:
    """Double the landmarks as long as it pays; beyond what can be tried, as long as it will.

    At least a thousand are taken: they cost little.
    """
    count, gain, ratio = FIRST_LANDMARKS, 0.0, 0.5
    while 2 * count <= min(sample.most_landmarks, most) and not sample.few:
        before = auc()
        if not try_landmarks(2 * count, _WORTH_DOUBLING):
            return max(count, AUTO_LANDMARKS)
        share = (auc() - before) / max(1.0 - before, 1e-12)
        ratio = min(share / gain, 0.8) if gain else 0.5
        gain, count = share, 2 * count
    while gain * ratio > _WORTH_DOUBLING and count < most:
        count, gain = min(2 * count, most), gain * ratio
    return max(count, AUTO_LANDMARKS)


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
        learnt = learn_metric(outer, each.damping)
    return learnt


def mean_outer(gradients: Sequence[Array], kind: str, metric: Array | None) -> Array:
    """Mean outer product (d, d) of gradients, or its diagonal (d,), in the units of unstretched rows.

    ``gradients`` are by rows under ``metric``; of several classes it is their mean.
    """
    total: Any = 0.0
    for each in gradients:
        own = unstretched(np.asarray(each, dtype=np.float64), metric)
        total = total + ((own**2).mean(axis=0) if kind == "diagonal" else own.T @ own / len(own))
    return np.asarray(total / len(gradients))


def learn_metric(outer: Array, damping: Damping) -> Array | None:
    """What rows are multiplied with, from a mean outer product of gradients or its diagonal.

    The root of ``(1 - identity) M^power / mean + identity``, so that squared distances keep their size
    on average. None if there is no gradient.

    >>> import numpy as np
    >>> learn_metric(np.array([4.0, 0.0]), Damping(1.0, 0.0))
    array([1.41421356, 0.        ])
    """
    values, vectors = (outer, None) if outer.ndim == 1 else np.linalg.eigh(outer)
    largest = values.max()
    if not np.isfinite(largest) or largest <= 0:
        return None
    values = np.maximum(values / largest, 0.0) ** damping.power
    root = np.sqrt((1.0 - damping.identity) * values / values.mean() + damping.identity)
    return root if vectors is None else (vectors * root) @ vectors.T


def stretched(rows: Rows, metric: Array | None) -> Rows:
    """Rows times a metric (d,) or (d, d), in their own dtype; CSR rows stay so."""
    if metric is None:
        return rows
    metric = metric.astype(rows.dtype)
    if metric.ndim == 2:
        return rows @ metric
    return rows.multiply(metric).tocsr() if is_sparse(rows) else rows * metric


def unstretched(gradients: Array, metric: Array | None) -> Array:
    """Gradients by stretched rows as those by the rows themselves."""
    if metric is None:
        return gradients
    return gradients * metric if metric.ndim == 1 else gradients @ metric.T


def most_landmarks(n_rows: int, n_features: int, effort: float) -> int:
    """The most landmarks, in hundreds, whose fit takes about a minute of two cores, times the effort.

    Reckoned, not measured: the same data is to give the same model on any machine. More than half of
    the rows are never taken: the others lie close to them.

    >>> most_landmarks(80_000, 54, 1.0), most_landmarks(5_000_000, 54, 1.0)
    (5600, 1000)
    """
    count, most = AUTO_LANDMARKS, min(MOST_LANDMARKS, n_rows // 2)
    while count < most and _seconds(n_rows, n_features, count + 100) <= _EFFORT_SECONDS * effort:
        count += 100
    return count


def _seconds(n_rows: int, n_features: int, n_landmarks: int) -> float:
    """Of a fit: two hundred passes over kernel values, which are made once, and their eigenvectors."""
    values = float(n_rows) * n_landmarks
    return values * (7e-8 + 2e-11 * n_features) + 1.5e-10 * n_landmarks**3


def draw_sample(
    codes: Array, rng: np.random.Generator, room: float = np.inf
) -> tuple[Array, list[tuple[Array, Array]]]:
    """Row numbers to try on, sorted, and how they are split: by numbers within the sample.

    ``room`` is the bytes that trials may hold.
    """
    counts = np.bincount(codes)
    most = int(min(SAMPLE_ROWS, room / (_TRIAL_BYTES * FIRST_LANDMARKS)))
    one = min(equal_shares(counts.tolist(), most)) >= _ENOUGH
    shares = equal_shares(counts.tolist(), most if one else min(most, FOLDED_ROWS))
    parts = [
        rng.choice(np.flatnonzero(codes == c), share, replace=False) for c, share in enumerate(shares)
    ]
    rows = np.sort(np.concatenate(parts))
    n_splits = 3 if min(shares) >= _FEW else 5
    splitter = StratifiedKFold(n_splits, shuffle=True, random_state=int(rng.integers(2**31)))
    folds = list(splitter.split(rows, codes[rows]))
    return rows, folds[:1] if one else folds


def plain_rounds(rounds: Sequence[Round]) -> list[list[float]]:
    """As plain data, which a checkpoint holds."""
    return [
        [each.damping.power, each.damping.identity, each.C, each.gamma, each.n_landmarks]
        for each in rounds
    ]


def as_rounds(plain: Sequence[Sequence[float]]) -> list[Round]:
    """From plain data."""
    return [
        Round(Damping(power, identity), C, gamma, int(count))
        for power, identity, C, gamma, count in plain
    ]


def too_few(codes: Array, room: float = np.inf) -> str | None:
    """Why there is nothing to find out from so few rows, or in so little memory, if there is not."""
    if room < _TRIAL_BYTES * FIRST_LANDMARKS * 10 * MIN_ROWS:
        return f"max_memory leaves {format_bytes(int(room))} for trials"
    smallest = int(np.bincount(codes).min())
    if smallest < MIN_CLASS:
        return f"the smallest class has {smallest} rows, and {MIN_CLASS} are needed"
    if codes.size < MIN_ROWS:
        return f"there are {codes.size} rows, and {MIN_ROWS} are needed"
    return None


def _solved(trials: Sequence[Trial], gamma: float, C: float) -> list[tuple[Array, Array]]:
    """All of them, side by side where there are several: they are small, and BLAS is idle often."""
    if len(trials) == 1:
        return [trials[0].solve(gamma, C)]

    def solve(trial: Trial) -> tuple[Array, Array]:
        with np.errstate(over="ignore", invalid="ignore"):  # found and named by the solver
            return trial.solve(gamma, C)

    with one_blas_thread(), ThreadPoolExecutor(cpu_count()) as pool:
        return list(pool.map(solve, trials))


def _below(values: Array, than: Array) -> Array:
    """For each of ``than``, the share of values below; of equal ones a half counts."""
    ordered = np.sort(values)
    count = np.searchsorted(ordered, than, "left") + np.searchsorted(ordered, than, "right")
    return np.asarray(count / (2.0 * values.size))
