"""Fill in the parameters left at "auto": by rule, or by trials on a sample of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from aucmax.features.kernels import RADIAL
from aucmax.features.nystroem import AUTO_LANDMARKS
from aucmax.fitting.context import Context
from aucmax.fitting.folds import positives_of
from aucmax.fitting.scaling import Scaling, fit_scaler, scale_rows
from aucmax.operators.placement import budget_bytes
from aucmax.rows.blocked import held_bytes
from aucmax.rows.content_order import content_order
from aucmax.rows.validation import is_elsewhere, is_remote, is_sparse
from aucmax.runtime.deadline import Deadline, OutOfTimeError
from aucmax.runtime.parameters import warn_user
from aucmax.tuning.learnt_metric import Round, as_rounds, plain_rounds
from aucmax.tuning.settings import Kernel, Settings
from aucmax.tuning.trial_rows import (
    WIDE_ROWS,
    Sample,
    draw_sample,
    first_landmarks,
    rows_within,
    sample_rows,
    too_few,
)
from aucmax.tuning.trials import learn_rounds
from aucmax.tuning.tuner import MOST_TRIED, most_landmarks, tune, tuning_seconds

__all__ = ["PAPER", "UNTRIED", "Asked", "Resolved", "fits_float32", "learn_metric_again", "resolve"]

#: What "auto" stands for where nothing is tried: in the paper, where it is not wanted, and where rows
#: are too few.
PAPER = Settings(10.0, "distance", 1600, "kmeans", True, "rbf")
PLAIN = replace(PAPER, n_landmarks=AUTO_LANDMARKS)
UNTRIED = replace(PLAIN, landmarks="class-kmeans")

#: Kernels whose width can be tuned.
_TRIED_KERNELS = ("auto", *RADIAL)

#: Columns whose deviations are within this factor may be in one unit, as pixels or indicators are.
_ALIKE = 100.0

#: Seconds of a time budget that allow for an effort of 1: half of them for trials, half for the fit.
_SECONDS_OF_EFFORT = 120.0
_TUNING_SHARE = 0.5

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
    settings : Settings
        With None where a parameter is "auto".
    kernel : Kernel
        The kernel of the trials.
    tunable : bool
        Whether trials are wanted, and known for this kind of machine.
    needed : names of settings
        Those which, if left at "auto", are a reason to tune.
    scaling : Scaling
        How trials scale their rows, apart from ``standardize``.
    metric, preset, effort, time_budget, max_memory
        As in :class:`KernelAUCClassifier`.
    """

    settings: Settings
    kernel: Kernel
    tunable: bool
    needed: tuple[str, ...]
    scaling: Scaling
    metric: str | None
    preset: str | None
    effort: float
    time_budget: float | None
    max_memory: int | str | None

    @property
    def given_landmarks(self) -> bool:
        """Whether landmarks are an array."""
        return not isinstance(self.settings.landmarks, str | None)

    @property
    def real_effort(self) -> float:
        """The effort asked for, or what the time budget allows if that is less."""
        if self.time_budget is None:
            return self.effort
        return min(self.effort, self.time_budget / _SECONDS_OF_EFFORT)

    def to_be_tuned(self, X: Any) -> bool:
        """Whether a fit to these rows makes trials, if there are enough of them."""
        open_ = any(getattr(self.settings, name) is None for name in self.needed)
        return self.tunable and (open_ or metric_kind(self, X) is not None)

    def room(self, X: Any) -> float:
        """Bytes for trials on this machine: half of what is free, or of what rows leave of a limit."""
        if is_remote(X) or self.max_memory is None:
            return 0.5 * budget_bytes(None)
        return max(0.0, 0.5 * (budget_bytes(self.max_memory) - held_bytes(X)))


@dataclass(frozen=True)
class Resolved:
    """Settings with nothing left open, what was tried, and the rounds by which a metric was learnt."""

    settings: Settings
    trials: list[dict[str, Any]]
    rounds: list[Round]

    def plain(self) -> tuple[dict[str, Any], list[dict[str, Any]], list[list[float]]]:
        """As a checkpoint holds it."""
        return vars(self.settings), self.trials, plain_rounds(self.rounds)

    @classmethod
    def of_plain(cls, plain: Sequence[Any]) -> Resolved:
        settings, trials, rounds = plain
        return cls(Settings(**settings), list(trials), as_rounds(rounds))


def resolve(X: Any, codes: np.ndarray, weight: np.ndarray, asked: Asked, context: Context) -> Resolved:
    """Fill in what is left at "auto" for these rows; a resumed fit takes what was found before."""
    make = partial(_resolve, X, codes, weight, asked, context)
    return Resolved.of_plain(context.checkpoint.once("settings", lambda: make().plain()))


def _resolve(X: Any, codes: np.ndarray, weight: np.ndarray, asked: Asked, context: Context) -> Resolved:
    metric, settings = metric_kind(asked, X), asked.settings
    if not asked.to_be_tuned(X):
        return Resolved(settings.filled(PLAIN if asked.preset is None else PAPER), [], [])
    why = too_few(codes, asked.room(X), _dense_columns(X))
    if why is not None:
        _report_untried(why, asked, context)
        return Resolved(settings.filled(UNTRIED), [], [])
    seed, effort = context.seed, asked.real_effort
    sample = _trial_sample(X, codes, weight, asked, seed)
    wide = rows_within(codes, asked.room(X), _dense_columns(X), WIDE_ROWS)
    many = len(sample.folds) == 1 and wide >= 2 * len(sample.codes)
    limited = context.deadline.limited
    try:
        tuned, trials, rounds = tune(
            sample,
            settings,
            asked.kernel,
            metric=metric,
            seed=seed,
            most_landmarks=most_landmarks(X.shape[0], X.shape[1], effort),
            most_with_second=most_with_second_kernel(X, asked),
            first_landmarks=first_landmarks(effort),
            brief=effort < _BRIEF,
            widen=partial(_wide_sample, X, codes, weight, asked, seed) if many else None,
            say=context.say,
            deadline=context.deadline.part(_TUNING_SHARE),
            affordable=partial(_affordable, X.shape[0], context.deadline) if limited else None,
        )
    except OutOfTimeError:
        warn_user(
            f'time_budget={asked.time_budget:g} s leaves no time to tune what is "auto": the '
            "settings for very few rows are used. Allow more time, or set C and gamma."
        )
        return Resolved(settings.filled(replace(UNTRIED, n_landmarks=_LEAST_LANDMARKS)), [], [])
    return Resolved(tuned, trials, list(rounds))


def learn_metric_again(
    X: Any,
    codes: np.ndarray,
    weight: np.ndarray,
    asked: Asked,
    resolved: Resolved,
    seed: int,
) -> np.ndarray | None:
    """The metric of these rows, learnt with the settings found, by as many rounds."""
    # The rounds are those of the first kernel, whether or not a second one was added.
    settings = replace(resolved.settings, kernel=asked.kernel.name, metric=None)
    sample = _trial_sample(X, codes, weight, asked, seed, [settings.standardize])
    kind = str(metric_kind(asked, X))
    return learn_rounds(sample, settings, resolved.rounds, kind, asked.kernel, seed)


def metric_kind(asked: Asked, X: Any) -> str | None:
    """Which metric is learnt for these rows: "diagonal", "full", or None."""
    if asked.metric == "full":
        if is_remote(X) or X.shape[1] > _MOST_COLUMNS_FULL or getattr(X, "format", "") == "csr":
            raise ValueError(
                f'metric="full" is for dense rows of up to {_MOST_COLUMNS_FULL} columns on this '
                'machine: use metric="learned", which stretches columns.'
            )
        return "full"
    if asked.metric is None or asked.preset is not None or asked.given_landmarks:
        return None
    return "diagonal"


def most_with_second_kernel(X: Any, asked: Asked) -> int:
    """Landmarks that a second kernel may have: none of CSR rows, which it would have to fill up.

    What they take is to be half of the room for trials, so that it is the kernel values which may have
    to go elsewhere.
    """
    if is_sparse(X) or getattr(X, "is_sparse", False):
        return 0
    most = most_landmarks(X.shape[0], X.shape[1], asked.real_effort, second_kernel=True)
    while most and landmark_bytes(2 * most, X.shape[1], between=2 * most) > 0.5 * asked.room(X):
        most = max(0, most - 100)
    return most


def landmark_bytes(n_landmarks: int, n_features: int, between: int) -> int:
    """Landmarks with their copies in float64, and matrices between them."""
    return 24 * n_landmarks * (n_features + between)


def seconds_of_tuning(X: Any, asked: Asked) -> float:
    """About how long trials will take, if there are any, within half of a time budget."""
    if not asked.to_be_tuned(X):
        return 0.0
    effort = asked.real_effort
    seconds = tuning_seconds(X.shape[0], X.shape[1], effort, effort < _BRIEF)
    limit = np.inf if asked.time_budget is None else _TUNING_SHARE * asked.time_budget
    return min(seconds, limit)


def fits_float32(X: Any) -> bool:
    """Whether squares of distances between rows neither overflow nor vanish in float32."""
    size = float(np.abs(X).max()) if not is_sparse(X) else float(np.abs(X.data).max(initial=0.0))
    return size == 0.0 or 2.0**-50 < size < 2.0**50


def _affordable(n_rows: int, deadline: Deadline, seconds_per_value: float) -> int:
    """The most landmarks whose fit ends in time on this machine as busy as it is.

    A fit to all rows takes about as long for a kernel value as a search over C and gamma in the trials
    does; half of the time is left for what goes wrong.
    """
    if not seconds_per_value:
        return AUTO_LANDMARKS
    count = 0.5 * deadline.left() / (seconds_per_value * n_rows)
    return int(max(_LEAST_LANDMARKS, min(count, MOST_TRIED)))


def _trial_sample(
    X: Any,
    codes: np.ndarray,
    weight: np.ndarray,
    asked: Asked,
    seed: int,
    scalings: list[Any] | None = None,
    most_rows: int | None = None,
) -> Sample:
    most_rows = sample_rows(asked.real_effort) if most_rows is None else most_rows
    most = rows_within(codes, asked.room(X), _dense_columns(X), most_rows)
    # Rows in memory are in the order of their content already.
    order = content_order(X, codes, weight) if is_elsewhere(X) else np.arange(codes.size)
    drawn, folds = draw_sample(codes[order], np.random.default_rng(seed), most)
    rows = order[drawn]
    part, own, u = X[rows], codes[rows], weight[rows]
    if scalings is None:
        scalings = [asked.settings.standardize]
        if asked.settings.standardize is None:  # landmarks that are given are in standardised units
            scalings = [True] if asked.given_landmarks else _scalings(part)
    # Rows of the sample stand for all of their class.
    stand_for = u * (np.bincount(codes, weight) / np.bincount(own, u))[own]
    scaled = {each: _trial_rows(part, stand_for, asked, each) for each in scalings}
    return Sample(scaled, own, u, positives_of(own, int(codes.max()) + 1), folds, asked.room(X))


def _wide_sample(
    X: Any, codes: np.ndarray, weight: np.ndarray, asked: Asked, seed: int, standardize: Any
) -> Sample:
    return _trial_sample(X, codes, weight, asked, seed, [standardize], WIDE_ROWS)


def _trial_rows(X: Any, weight: np.ndarray, asked: Asked, standardize: Any) -> Any:
    scaling = replace(asked.scaling, standardize=standardize, metric=None)
    return scale_rows(fit_scaler(X, weight, scaling), X).astype(np.float32, copy=False)


def _scalings(X: Any) -> list[Any]:
    """What is worth trying on rows: as they are only if their columns are of one kind."""
    if is_sparse(X):
        return [True]
    spread = X.std(axis=0)
    spread = spread[spread > 0]
    alike = spread.size > 1 and spread.max() <= _ALIKE * spread.min()
    alike = alike and fits_float32(X)
    return [True, "quantile", False] if alike else [True, "quantile"]


def _dense_columns(X: Any) -> int:
    """Columns whose values are all held; of CSR rows only few are."""
    return 0 if is_sparse(X) else int(X.shape[1])


def _report_untried(why: str, asked: Asked, context: Context) -> None:
    text = f'Nothing is tried out for "auto", and no metric learnt: {why}.'
    if asked.metric in ("learned", "full"):
        warn_user(text)
    else:
        context.say(text)
