"""Fill in the parameters left at "auto": by rule, or by trials on a sample of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.features.extremes import fits_float32
from aucmax.features.nystroem import AUTO_LANDMARKS
from aucmax.fitting.context import Context
from aucmax.fitting.problem import Fold, Problem, positives_of
from aucmax.fitting.recipe import Recipe, landmark_bytes
from aucmax.fitting.scaling import fit_scaler, scale_rows
from aucmax.fitting.settings import Settings
from aucmax.rows.content_order import content_order
from aucmax.rows.interface import ArrayRows, Block, Rows, is_sparse
from aucmax.runtime.deadline import Deadline, OutOfTimeError
from aucmax.runtime.memory import Budget
from aucmax.runtime.parameters import warn_user
from aucmax.tuning.blend import blend_weights, machines_within, variants
from aucmax.tuning.effort import most_landmarks, tuning_seconds
from aucmax.tuning.trial_rows import (
    MOST_TRIED,
    Sample,
    are_many,
    cost_scale,
    draw_sample,
    first_landmarks,
    most_tried,
    rows_within,
    sample_rows,
    too_few,
    wide_rows,
)
from aucmax.tuning.trials import MetricRound, TrialKernel, repeat_rounds
from aucmax.tuning.tuner import ALMOST_PERFECT, PAPER, Limits, Tuned, tune

__all__ = [
    "PAPER", "UNTRIED", "Asked", "Machine", "Resolved", "most_machines", "relearn_metric", "resolve",
    "seconds_of_tuning",
]  # fmt: skip

Array = npt.NDArray[Any]

#: What "auto" stands for without trials: if they are not wanted, and if rows are too few.
PLAIN = Settings(10.0, "distance", AUTO_LANDMARKS, "kmeans", True, "rbf")
UNTRIED = replace(PLAIN, landmarks="class-kmeans")

#: Columns whose deviations are within this factor may have one unit, as pixels or indicators do.
_ALIKE = 100.0

#: A time budget of this many seconds allows for an effort of 1: half for trials, half for the fit.
_SECONDS_OF_EFFORT = 12.0
_TUNING_SHARE = 0.5

#: Trials may use this share of the memory that rows leave.
_ROOM_SHARE = 0.5

#: The fewest landmarks that a short time budget leaves.
_LEAST_LANDMARKS = 50

#: Below this effort little is tried.
_BRIEF = 0.5

#: A full metric is a matrix of columns by columns.
_MOST_COLUMNS_FULL = 2000


@dataclass(frozen=True)
class Asked:
    """What the parameters of a kernel classifier ask for.

    Parameters
    ----------
    recipe : Recipe
        Its settings have None where a parameter is "auto".
    kernel : TrialKernel
        The kernel of the trials.
    tunable : bool
        Whether trials are wanted, and known for this kind of machine.
    needed : names of settings
        Those which, if left at "auto", are a reason to tune.
    metric, preset, effort, time_budget
        As in :class:`KernelAUCClassifier`.
    """

    recipe: Recipe
    kernel: TrialKernel
    tunable: bool
    needed: tuple[str, ...]
    metric: str | None
    preset: str | None
    effort: float
    time_budget: float | None

    @property
    def settings(self) -> Settings:
        return self.recipe.settings

    @property
    def own_landmarks(self) -> bool:
        """Whether landmarks are the user's own points."""
        return not isinstance(self.settings.landmarks, str | None)

    @property
    def real_effort(self) -> float:
        """The effort asked for, or what the time budget allows if that is less."""
        if self.time_budget is None:
            return self.effort
        return min(self.effort, self.time_budget / _SECONDS_OF_EFFORT)

    def needs_trials(self, rows: Rows) -> bool:
        """Return whether a fit to these rows makes trials, if there are enough rows."""
        open_ = any(getattr(self.settings, name) is None for name in self.needed)
        return self.tunable and (open_ or metric_kind(self, rows) is not None)

    def untried(self) -> Recipe:
        """Return the recipe without trials."""
        return self.filled(UNTRIED if self.preset is None else PAPER)

    def filled(self, settings: Settings) -> Recipe:
        """Return the recipe with these settings wherever one is open."""
        return replace(self.recipe, settings=self.settings.filled(settings))


@dataclass(frozen=True)
class Machine:
    """The recipe of one machine of a fit, with nothing left open.

    ``rounds`` are those of the learnt metric, and ``weight`` is that of its scores.
    """

    recipe: Recipe
    rounds: Sequence[MetricRound] = ()
    weight: float = 1.0

    def plain(self) -> list[Any]:
        """Return plain data, which a checkpoint holds."""
        return [vars(self.recipe.settings), [each.plain() for each in self.rounds], self.weight]

    @classmethod
    def of_plain(cls, plain: Sequence[Any], recipe: Recipe) -> Machine:
        """Return the machine that :meth:`plain` was called on; ``recipe`` has all but the settings."""
        settings, rounds, weight = plain
        own = replace(recipe, settings=Settings(**settings))
        return cls(own, [MetricRound.of_plain(each) for each in rounds], float(weight))


@dataclass(frozen=True)
class Resolved:
    """The machines of a fit, one or the several of a blend, and records of trials."""

    machines: list[Machine]
    trials: list[dict[str, Any]]

    @property
    def first(self) -> Machine:
        return self.machines[0]


def resolve(problem: Problem, asked: Asked, context: Context) -> Resolved:
    """Fill in what is left at "auto"; a resumed fit reuses what was found before."""
    known = context.checkpoint.recall("settings")
    if known is None:
        machines, trials = _resolve(problem, asked, context)
        known = [each.plain() for each in machines], trials
        context.checkpoint.note("settings", known)
    machines, trials = known
    return Resolved([Machine.of_plain(each, asked.recipe) for each in machines], list(trials))


def _resolve(
    problem: Problem, asked: Asked, context: Context
) -> tuple[list[Machine], list[dict[str, Any]]]:
    rows, settings = problem.rows, asked.settings
    if not asked.needs_trials(rows):
        return [Machine(asked.filled(PLAIN if asked.preset is None else PAPER))], []
    room = trial_room(rows, context.memory)
    why = too_few(problem.codes, room, _dense_columns(rows))
    if why is not None:
        text = f'There are no trials for "auto", and no metric is learnt: {why}.'
        (warn_user if asked.metric in ("learned", "full") else context.say)(text)
        return [Machine(asked.filled(UNTRIED))], []
    make = partial(_trial_sample, problem, asked, context)
    sample = make()
    effort, deadline = asked.real_effort, context.deadline
    wide = rows_within(problem.codes, room, _dense_columns(rows), wide_rows(rows.shape[0], effort))
    many = are_many(problem.codes, len(sample.codes), wide)
    limits = Limits(
        first_landmarks(len(sample.codes), effort),
        most_landmarks(*rows.shape, effort),
        most_with_second_kernel(rows, asked, context.memory),
        most_tried(effort),
        effort < _BRIEF,
        (lambda scalings: make(scalings, wide)) if many else None,
        deadline.part(_TUNING_SHARE),
        rows.shape[0],
        partial(_affordable, machines_within(effort) * rows.shape[0], deadline)
        if deadline.limited
        else None,
    )
    metric = metric_kind(asked, rows)
    try:
        found = tune(sample, settings, asked.kernel, metric, limits, context.seed, context.status)
        return _blended(found, sample, asked, metric, limits, context)
    except OutOfTimeError:
        warn_user(
            f'time_budget={asked.time_budget:g} s leaves no time to tune what is "auto": the '
            "settings for very few rows are used. Allow more time, or set C and gamma."
        )
        return [Machine(asked.filled(replace(UNTRIED, n_landmarks=_LEAST_LANDMARKS)))], []


def _blended(
    found: Tuned, sample: Sample, asked: Asked, metric: str | None, limits: Limits, context: Context
) -> tuple[list[Machine], list[dict[str, Any]]]:
    """Tune machines that differ from the one found, as many as the effort allows, and weigh them all.

    Each of the others has the landmarks of an effort of 1, and is tuned on the first sample alone.
    """

    def machine(tuned: Tuned, weight: float = 1.0) -> Machine:
        return Machine(replace(asked.recipe, settings=tuned.settings), tuned.rounds, weight)

    trials = list(found.records)
    if found.result is None or found.result.auc > ALMOST_PERFECT:
        return [machine(found)], trials
    n_rows, n_columns = limits.fit_rows, next(iter(sample.rows.values())).shape[1]
    limits = replace(
        limits,
        most_landmarks=min(limits.most_landmarks, most_landmarks(n_rows, n_columns, 1.0)),
        most_with_second=min(
            limits.most_with_second, most_landmarks(n_rows, n_columns, 1.0, second_kernel=True)
        ),
        widen=None,
    )
    made = [found]
    for variant in variants(found.settings, asked.settings, sample):
        if len(made) == machines_within(asked.real_effort):
            break
        fixed = replace(asked.settings, standardize=variant.standardize, kernel=variant.kernel)
        one = replace(sample, rows={variant.standardize: sample.rows[variant.standardize]})
        kernel = replace(asked.kernel, name=variant.kernel or asked.kernel.name)
        own = metric if variant.metric else None
        try:
            other = tune(one, fixed, kernel, own, limits, context.seed, context.status)
        except OutOfTimeError:
            break
        made.append(other)
        trials += [{**each, "what": f"{variant.what}: {each['what']}"} for each in other.records]
    if len(made) == 1:
        return [machine(found)], trials
    held = [each.result.held for each in made if each.result is not None]
    weights, auc = blend_weights(held, sample)
    pairs = zip(made, weights.tolist(), strict=True)
    machines = [machine(each, weight) for each, weight in pairs if weight > 0]
    kept = len(machines) > 1
    what = f"a blend of {len(machines)} machines" if kept else "a blend"
    record = {"what": what, "auc": auc, "C": found.result.C, "gamma": found.result.gamma, "kept": kept}
    context.say(f"{what}: AUC {auc:.4f} on held-out rows{'' if kept else ', not kept'}")
    return machines, [*trials, record]


def relearn_metric(
    problem: Problem, asked: Asked, machine: Machine, context: Context, fold: Fold
) -> Array | None:
    """Learn the metric of a fold's training rows, with the settings found, by as many rounds."""
    present = np.flatnonzero(fold.weight)
    own = replace(
        problem,
        rows=problem.rows.take(present),
        codes=problem.codes[present],
        weight=fold.weight[present],
    )
    # The rounds are those of the first kernel, whether or not a second one was added.
    settings = replace(machine.recipe.settings, kernel=asked.kernel.name, metric=None)
    sample = _trial_sample(own, asked, context, [settings.standardize])
    kind = str(metric_kind(asked, problem.rows))
    return repeat_rounds(sample, settings, machine.rounds, kind, asked.kernel, context.seed)


def metric_kind(asked: Asked, rows: Rows) -> str | None:
    """Return which metric is learnt for these rows: "diagonal", "full", or None."""
    if asked.metric == "full":
        if rows.remote or rows.sparse or rows.shape[1] > _MOST_COLUMNS_FULL:
            raise ValueError(
                f'metric="full" is for dense rows of up to {_MOST_COLUMNS_FULL} columns on this '
                'machine. Use metric="learned", which stretches columns.'
            )
        return "full"
    if asked.metric is None or asked.preset is not None or asked.own_landmarks:
        return None
    return "diagonal"


def trial_room(rows: Rows, memory: Budget) -> float:
    """Return the bytes that trials may use."""
    return max(0.0, _ROOM_SHARE * (memory.total - rows.nbytes))


def most_with_second_kernel(rows: Rows, asked: Asked, memory: Budget) -> int:
    """Return the most landmarks that a second kernel may have; 0 for CSR rows, which it would fill.

    Landmarks are to take at most half of the room for trials, so that kernel values alone may have to
    go elsewhere.
    """
    if rows.sparse:
        return 0
    most = most_landmarks(*rows.shape, asked.real_effort, second_kernel=True)
    room = 0.5 * trial_room(rows, memory)
    while most and landmark_bytes(2 * most, rows.shape[1], between=2 * most) > room:
        most = max(0, most - 100)
    return most


def most_machines(rows: Rows, asked: Asked) -> int:
    """Return the most machines that a fit may blend."""
    return machines_within(asked.real_effort) if asked.needs_trials(rows) else 1


def seconds_of_tuning(rows: Rows, asked: Asked) -> float:
    """Return about how long trials will take, at most half of a time budget."""
    if not asked.needs_trials(rows):
        return 0.0
    effort = asked.real_effort
    seconds = machines_within(effort) * tuning_seconds(*rows.shape, effort, effort < _BRIEF)
    limit = np.inf if asked.time_budget is None else _TUNING_SHARE * asked.time_budget
    return min(seconds, limit)


def _affordable(n_rows: int, deadline: Deadline, seconds_per_value: float) -> int:
    """Return the most landmarks whose fits end in time on this machine as busy as it is.

    ``n_rows`` are those of all fits together. A fit to all rows takes about as long per kernel value as
    a search over C and gamma in the trials; half of the time is left in reserve.
    """
    if not seconds_per_value:
        return AUTO_LANDMARKS
    count = 0.5 * deadline.left() / (seconds_per_value * n_rows)
    return int(max(_LEAST_LANDMARKS, min(count, MOST_TRIED)))


def _trial_sample(
    problem: Problem,
    asked: Asked,
    context: Context,
    scalings: list[Any] | None = None,
    most_rows: int | None = None,
) -> Sample:
    """Draw the sample of the trials, scaled in each way worth trying."""
    rows, codes, weight = problem.rows, problem.codes, problem.weight
    room = trial_room(rows, context.memory)
    wanted = sample_rows(codes.size, asked.real_effort) if most_rows is None else most_rows
    most = rows_within(codes, room, _dense_columns(rows), wanted)
    # Rows in memory are in the order of their content already.
    order = np.arange(codes.size) if rows.in_memory else content_order(rows, codes, weight)
    rng = np.random.default_rng(context.seed)
    drawn, folds = draw_sample(codes[order], rng, most, one_part=most_rows is not None)
    index = order[drawn]
    part, own, u = rows[index], codes[index], weight[index]
    if scalings is None:
        scalings = [asked.settings.standardize]
        if asked.settings.standardize is None:  # the user's own landmarks are in standardised units
            scalings = [True] if asked.own_landmarks else _scalings(part)
    # Rows of the sample stand for all of their class.
    stand_for = u * (np.bincount(codes, weight) / np.bincount(own, u))[own]
    # The same names and kernel as in the fit, so that the same warnings apply.
    scaling = replace(asked.untried().scaling(problem.names), metric=None)
    scaled = {}
    for each in scalings:
        scaler = fit_scaler(ArrayRows(part), stand_for, replace(scaling, standardize=each))
        scaled[each] = scale_rows(scaler, ArrayRows(part)).astype(np.float32)[:]
    positives = positives_of(own, problem.classes.size)
    scale = cost_scale(positives, u, positives_of(codes, problem.classes.size), weight)
    return Sample(scaled, own, u, positives, folds, room, scale, context.seed)


def _scalings(block: Block) -> list[Any]:
    """Return the scalings worth trying: none at all only if columns are of one kind."""
    if is_sparse(block):
        return [True]
    spread = block.std(axis=0)
    spread = spread[spread > 0]
    alike = spread.size > 1 and spread.max() <= _ALIKE * spread.min()
    alike = alike and fits_float32(block)
    return [True, "quantile", False] if alike else [True, "quantile"]


def _dense_columns(rows: Rows) -> int:
    """Return the number of columns whose values are all held; CSR rows hold few."""
    return 0 if rows.sparse else int(rows.shape[1])
