"""The sample of rows that trials run on, and how part of it is held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold

from aucmax.features.landmarks import OF_CLASSES, equal_shares, shares_of
from aucmax.rows.interface import Block
from aucmax.runtime.memory import format_bytes

Array = npt.NDArray[Any]

#: Rows in a sample at an effort of 1, balanced between the classes as far as possible: so many, or the
#: rows over so many if that is more; and the most at any effort. Each third is held out in turn. On
#: connect-4 (54,000 rows) 8000 instead of 4000 rows, with 500 instead of 400 landmarks, raised the test
#: AUC from 0.922 to 0.948, because the metric is learnt from them.
SAMPLE_ROWS, _ROWS_PER_SAMPLED, _MOST_SAMPLE_ROWS = 4000, 10, 10_000

#: Rows of the last step, which tunes C, gamma and landmarks once more, at an effort of 1, and the most
#: at any.
WIDE_ROWS, _MOST_WIDE_ROWS = 10_000, 80_000

#: The last step needs so many rows of the smaller class, and so many times the rows of the sample.
_WIDE_CLASS, _WIDER = 1000, 1.5

#: With so many rows of the smaller class, holding out one third is enough in the last step.
_ENOUGH = 4000

#: With fewer rows of the smaller class, rows are held out by fifths instead of thirds.
_FEW = 100

#: With fewer rows, or fewer rows of a class, there are no trials: held-out rows would decide by chance.
MIN_CLASS = 10
MIN_ROWS = 100

#: Landmarks that trials begin with, or one for so many rows if that is more; and the most that are
#: tried.
FIRST_LANDMARKS, _ROWS_PER_LANDMARK = 400, 16
MOST_TRIED = 2000

#: Bytes that trials hold of one fold: per row and landmark (distances and features, twice), per
#: landmark and column or other landmark, and per row and column of dense rows while they are made.
_FOLD_BYTES = 16
_LANDMARK_BYTES = 24
_ROW_BYTES = 20

#: Where C n begins, per effective row. The best was between an eighth of this (covtype with 60
#: positives) and 64 times it (a made table of 3000 rows).
_FIRST_WEIGHT = 8.0

#: How C n grows with the effective rows. On 80,000 rows of cod-rna the best C was 16 to 64 times that
#: of 8000 rows (test AUC 0.9935 instead of 0.9929).
_WEIGHT_POWER = 1.5

#: The fewest rows, and landmarks to begin with, that an effort below 1 leaves.
_LEAST_ROWS = 1000
_LEAST_LANDMARKS = 100


def sample_rows(n_rows: int, effort: float) -> int:
    """Return the number of rows to sample, by the effort.

    >>> sample_rows(20_000, 1.0), sample_rows(80_000, 1.0), sample_rows(20_000, 0.5)
    (4000, 8000, 2000)
    """
    rows = effort * max(SAMPLE_ROWS, n_rows / _ROWS_PER_SAMPLED)
    return int(np.clip(rows, _LEAST_ROWS, _MOST_SAMPLE_ROWS))


def wide_rows(n_rows: int, effort: float) -> int:
    """Return the number of rows of the last step, by the effort: at least twice those of a sample.

    >>> wide_rows(20_000, 1.0), wide_rows(80_000, 1.0), wide_rows(20_000, 4.0)
    (10000, 16000, 40000)
    """
    rows = max(effort * WIDE_ROWS, 2 * sample_rows(n_rows, effort))
    return int(min(rows, _MOST_WIDE_ROWS))


def first_landmarks(n_sampled: int, effort: float) -> int:
    """Return the landmarks that trials begin with, by the rows of the sample and the effort.

    >>> first_landmarks(4000, 1.0), first_landmarks(8000, 1.0), first_landmarks(4000, 0.25)
    (400, 500, 200)
    """
    count = max(FIRST_LANDMARKS, n_sampled / _ROWS_PER_LANDMARK)
    return int(max(_LEAST_LANDMARKS, np.sqrt(min(effort, 1.0)) * count))


def most_tried(effort: float) -> int:
    """Return the most landmarks of a trial, by the effort.

    >>> most_tried(0.3), most_tried(1.0), most_tried(4.0)
    (400, 800, 2000)
    """
    return int(np.clip(2 * FIRST_LANDMARKS * effort, FIRST_LANDMARKS, MOST_TRIED))


def effective_rows(up: Array, weight: Array) -> float:
    """Return ``n_pos n_neg / n``, which the rarer class limits, by weights.

    >>> effective_rows(np.array([True, False, False, False]), np.ones(4))
    0.75
    """
    positive, total = float(weight[up].sum()), float(weight.sum())
    return positive * (total - positive) / total


def cost_scale(
    positives: Sequence[Array], weight: Array, whole: Sequence[Array], whole_weight: Array
) -> float:
    """Return what C of a fit to all rows is multiplied by for a sample of them.

    C n, the weight of the loss, grows with the number of effective rows, to the power of 1.5. A sample
    that has all rows of a rare class knows about as much as all rows do, and is fitted as closely.
    """
    sizes = [effective_rows(up, weight) for up in positives]
    wholes = [effective_rows(up, whole_weight) for up in whole]
    share = np.mean(sizes) / np.mean(wholes)
    return float(share**_WEIGHT_POWER * whole_weight.sum() / weight.sum())


@dataclass(frozen=True)
class Sample:
    """The rows of the trials, by scaling; their classes and weights; and how they are split."""

    rows: dict[Any, Block]
    codes: Array
    weight: Array
    positives: Sequence[Array]
    folds: Sequence[tuple[Array, Array]]
    room: float = np.inf  #: bytes for the trials
    scale: float = 1.0  #: what C of a fit to all rows is multiplied by for these
    seed: int = 0  #: of landmarks

    @property
    def few(self) -> bool:
        """Whether a class is so small that few differences can be seen, and little is tried."""
        return bool(np.bincount(self.codes).min() < _FEW)

    @property
    def first_cost(self) -> float:
        """Where C of a fit to all rows begins."""
        total = float(self.weight.sum())
        effective = np.mean([effective_rows(up, self.weight) for up in self.positives])
        return _FIRST_WEIGHT * float(effective) / total / self.scale

    def landmarks(self, count: int, strategy: str) -> Array:
        """Draw rows as landmarks, from each class as many as a strategy takes.

        Trials compare other things, for which rows at random do as well as those that k-means finds.
        """
        counts = np.bincount(self.codes)
        if count >= self.codes.size:
            return np.arange(self.codes.size)
        if strategy in OF_CLASSES:
            shares = shares_of(strategy)(counts.tolist(), count)
        else:
            shares = np.diff(np.round(np.cumsum(counts) * count / counts.sum()), prepend=0)
        rng = np.random.default_rng(self.seed)
        drawn = [
            rng.permutation(np.flatnonzero(self.codes == code))[: int(share)]
            for code, share in enumerate(shares)
        ]
        return np.sort(np.concatenate(drawn))

    @property
    def most_landmarks(self) -> int:
        """The most landmarks to try: half of a fold's training rows, as far as there is room."""
        smallest = min(train.size for train, _ in self.folds)
        return int(min(MOST_TRIED, smallest // 2, self.most_values))

    @property
    def most_values(self) -> float:
        """The number of kernel values per row that there is room for."""
        n_columns = next(iter(self.rows.values())).shape[1]
        held = _FOLD_BYTES * self.codes.size + _LANDMARK_BYTES * (n_columns + MOST_TRIED)
        return self.room / (held * len(self.folds))


def rows_within(codes: Array, room: float, n_dense: int, most: int) -> int:
    """Return the number of rows that there is room for, at most ``most``.

    ``n_dense`` is the number of columns if rows are dense, otherwise 0.
    """
    return int(min(most, codes.size, room / _bytes_per_row(codes, n_dense)))


def _bytes_per_row(codes: Array, n_dense: int) -> int:
    folds = 3 if np.bincount(codes).min() >= _FEW else 5
    return _FOLD_BYTES * folds * FIRST_LANDMARKS + _ROW_BYTES * n_dense


def draw_sample(
    codes: Array, rng: np.random.Generator, most: int = SAMPLE_ROWS, one_part: bool = False
) -> tuple[Array, list[tuple[Array, Array]]]:
    """Return sorted row numbers of a sample, and its splits as numbers within the sample.

    Each third or fifth is held out in turn. With ``one_part`` it is the first third alone, if that has
    enough rows of the smaller class.
    """
    shares = equal_shares(np.bincount(codes).tolist(), most)
    parts = [
        rng.choice(np.flatnonzero(codes == c), share, replace=False) for c, share in enumerate(shares)
    ]
    rows = np.sort(np.concatenate(parts))
    n_splits = 3 if min(shares) >= _FEW else 5
    splitter = StratifiedKFold(n_splits, shuffle=True, random_state=int(rng.integers(2**31)))
    folds = list(splitter.split(rows, codes[rows]))
    return rows, folds[:1] if one_part and min(shares) >= _ENOUGH else folds


def are_many(codes: Array, sampled: int, wide: int) -> bool:
    """Return whether ``wide`` rows show more than ``sampled`` ones, of the smaller class as well."""
    smallest = min(equal_shares(np.bincount(codes).tolist(), wide))
    return smallest >= _WIDE_CLASS and wide >= _WIDER * sampled


def too_few(codes: Array, room: float = np.inf, n_dense: int = 0) -> str | None:
    """Return why these rows, or this memory, are too few for trials; None if they are enough."""
    wanted = 10 * MIN_ROWS * _bytes_per_row(codes, n_dense)
    if room < wanted:
        return (
            f"{format_bytes(int(room))} of memory are left for trials, and {format_bytes(wanted)} are "
            "needed; raise max_memory"
        )
    smallest = int(np.bincount(codes).min())
    if smallest < MIN_CLASS:
        return f"the smallest class has {smallest} rows, and {MIN_CLASS} are needed"
    if codes.size < MIN_ROWS:
        return f"there are {codes.size} rows, and {MIN_ROWS} are needed"
    return None
