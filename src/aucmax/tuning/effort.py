"""What an effort stands for: how many landmarks a fit may have, and how long trials take.

Everything here is computed from sizes, not measured, so that the same data gives the same model on any
machine.
"""

from __future__ import annotations

from aucmax.features.nystroem import AUTO_LANDMARKS
from aucmax.tuning.trial_rows import first_landmarks, sample_rows, wide_rows

#: The most landmarks that may come out, and the fewest below an effort of 1.
MOST_LANDMARKS = 8000
_LEAST_LANDMARKS = 100

#: The seconds that the fit after tuning may take at ``effort=1``, on two cores: a constant, a part per
#: row, and the most. CatBoost as it comes takes about as long.
_EFFORT_SECONDS, _EFFORT_SECONDS_PER_ROW, _MOST_SECONDS = 1.0, 2e-4, 60.0

#: Flops per second of a matrix product, and seconds that forty passes take per value.
_FLOPS = 5e10
_PASSES_BYTES = 1.6e-8


def most_landmarks(n_rows: int, n_columns: int, effort: float, second_kernel: bool = False) -> int:
    """Return the most landmarks, in hundreds, whose fit takes no longer than the effort allows.

    With a second kernel there are twice the features and at most half the landmarks; none if a thousand
    take too long. More than a thousand are at most half of the rows: the others lie close to them.
    Below an effort of 1 there may be fewer than a thousand.

    >>> most_landmarks(80_000, 54, 1.0), most_landmarks(5_000_000, 54, 1.0)
    (2500, 1000)
    >>> most_landmarks(5_000_000, 54, 0.5)
    100
    """
    count = AUTO_LANDMARKS if effort >= 1.0 or second_kernel else _LEAST_LANDMARKS
    most = min(MOST_LANDMARKS // (2 if second_kernel else 1), max(AUTO_LANDMARKS, n_rows // 2))
    allowed = effort * min(_EFFORT_SECONDS + _EFFORT_SECONDS_PER_ROW * n_rows, _MOST_SECONDS)
    if second_kernel and _seconds(n_rows, n_columns, count, second_kernel) > allowed:
        return 0
    while count < most and _seconds(n_rows, n_columns, count + 100, second_kernel) <= allowed:
        count += 100
    return count


def tuning_seconds(n_rows: int, n_columns: int, effort: float, brief: bool) -> float:
    """Return about how long the trials of a fit take on two cores.

    The parts of a trial are features by a matrix product, about forty passes over them for each fold,
    Cholesky factors, and Python; a candidate has distances in addition. The number of trials depends on
    the data: these are the counts of a usual fit, and half or twice as many occur.
    """
    rows = min(n_rows, sample_rows(n_rows, effort))
    count = min(first_landmarks(rows, effort), rows)
    solve = (
        (2.0 * rows * count**2 + 2.0 * count**3) / _FLOPS + 3.0 * rows * count * _PASSES_BYTES + 0.01
    )
    setup = 2.0 * n_columns * rows * count / _FLOPS
    solves, settings = (20, 5) if brief else (60, 12)
    wide = min(n_rows, wide_rows(n_rows, effort))
    more = 0.0 if brief or wide < 1.5 * rows else 15.0 * wide / rows * solve
    return solves * solve + 3.0 * settings * setup + more


def _seconds(n_rows: int, n_columns: int, n_landmarks: int, second_kernel: bool) -> float:
    """Return the time of a fit: two hundred passes over kernel values made once, and eigenvectors.

    The second kernel goes column by column.
    """
    values = float(n_rows) * n_landmarks
    seconds = values * (7e-8 + 2e-11 * n_columns) + 1.5e-10 * n_landmarks**3
    return 2.0 * seconds + 1e-10 * values * n_columns if second_kernel else seconds
