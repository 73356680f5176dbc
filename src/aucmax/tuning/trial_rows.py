"""The sample of rows that trials run on, and how part of it is held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold

from aucmax.features.landmarks import equal_shares
from aucmax.rows.interface import Block
from aucmax.runtime.memory import format_bytes

Array = npt.NDArray[Any]

#: Rows in a sample, balanced between the classes as far as possible: with one part held out, with
#: several held out in turn, and in the last step, which tunes C, gamma and landmarks once more.
SAMPLE_ROWS = 20_000
FOLDED_ROWS = 10_000
WIDE_ROWS = 80_000

#: With this many rows of the smaller class, in a larger sample, holding out one part is enough. One
#: third of usps's 7291 rows found 500 landmarks enough on some splits where 2000 rank better; with
#: magic04's 15,216, all thirds found nothing that one did not, in 2.5 times the time.
_ENOUGH = 2000

#: With fewer rows of the smaller class, rows are held out by fifths instead of thirds.
_FEW = 100

#: With fewer rows, or fewer rows of a class, there are no trials: held-out rows would decide by chance.
MIN_CLASS = 10
MIN_ROWS = 100

#: Landmarks that trials begin with, and the most that are tried.
FIRST_LANDMARKS = 500
MOST_TRIED = 2000

#: Bytes that trials hold of one fold: per row and landmark (distances and features, twice), per
#: landmark and column or other landmark, and per row and column of dense rows while they are made.
_FOLD_BYTES = 16
_LANDMARK_BYTES = 24
_ROW_BYTES = 20

#: Where C begins, with two classes of one size. For a rare class it is less in proportion, so that one
#: of its rows weighs the same. With 20 to 200 positives among 20,000 rows of six data sets the best C
#: was within a factor of four of this.
_FIRST_C = 4.0

#: The fewest rows, and landmarks to begin with, that an effort below 1 leaves.
_LEAST_ROWS = 2000
_LEAST_LANDMARKS = 100


def sample_rows(effort: float) -> int:
    """Return the number of rows to sample, by the effort."""
    return int(max(_LEAST_ROWS, min(effort, 1.0) * SAMPLE_ROWS))


def first_landmarks(effort: float) -> int:
    """Return the landmarks that trials begin with, by the effort: the work grows as their square.

    >>> first_landmarks(2.0), first_landmarks(0.25)
    (500, 250)
    """
    return int(max(_LEAST_LANDMARKS, np.sqrt(min(effort, 1.0)) * FIRST_LANDMARKS))


@dataclass(frozen=True)
class Sample:
    """The rows of the trials, by scaling; their classes and weights; and how they are split."""

    rows: dict[Any, Block]
    codes: Array
    weight: Array
    positives: Sequence[Array]
    folds: Sequence[tuple[Array, Array]]
    room: float = np.inf  #: bytes for the trials

    @property
    def few(self) -> bool:
        """Whether a class is so small that few differences can be seen, and little is tried."""
        return bool(np.bincount(self.codes).min() < _FEW)

    @property
    def first_cost(self) -> float:
        """Where C begins."""
        shares = [float(self.weight[up].sum() / self.weight.sum()) for up in self.positives]
        return _FIRST_C * float(np.mean([2.0 * min(share, 1.0 - share) for share in shares]))

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
    codes: Array, rng: np.random.Generator, most: int = SAMPLE_ROWS
) -> tuple[Array, list[tuple[Array, Array]]]:
    """Return sorted row numbers of a sample, and its splits as numbers within the sample."""
    counts = np.bincount(codes)
    enough = min(equal_shares(counts.tolist(), most)) >= _ENOUGH
    shares = equal_shares(counts.tolist(), most if enough else min(most, FOLDED_ROWS))
    parts = [
        rng.choice(np.flatnonzero(codes == c), share, replace=False) for c, share in enumerate(shares)
    ]
    rows = np.sort(np.concatenate(parts))
    n_splits = 3 if min(shares) >= _FEW else 5
    splitter = StratifiedKFold(n_splits, shuffle=True, random_state=int(rng.integers(2**31)))
    folds = list(splitter.split(rows, codes[rows]))
    return rows, folds[:1] if enough and rows.size > FOLDED_ROWS else folds


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
