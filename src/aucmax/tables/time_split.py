"""Hold out the latest rows of a table, because a model scores later rows than those it was trained on.

The rows are split once. The latest quarter is held out: it chooses C, and the AUC, the calibration and
the threshold come from its scores. Rows of the same time stay together. The final model is then fitted
to all rows. Forward-chaining folds were rejected: their first models see only a part of the past, and
their scores are not comparable with each other.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from aucmax.reading.frames import RowError, TableError, shown
from aucmax.reading.numerals import as_number, number_style
from aucmax.reading.text import clean_text

LATER_SHARE = 0.25  #: The share of rows that is held out, the latest ones.
#: How dates are written, the most common first; "%m/%d/%Y" before "%d/%m/%Y" would guess the country.
_FORMATS = (
    *("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"),
    *("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y/%m/%d", "%Y/%m/%d %H:%M:%S", "%Y%m%d"),
    *("%Y-%m", "%d.%m.%Y", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d %b %Y", "%d-%b-%Y", "%b %d, %Y"),
)
_SLASHED = ("%d/%m/%Y", "%m/%d/%Y")


def row_times(series: pl.Series) -> np.ndarray:
    """Return a column of dates, times or numbers as numbers that rise with time.

    >>> row_times(pl.Series("day", ["2024-01-31", "2024-02-01"])).argsort().tolist()
    [0, 1]
    """
    if series.dtype.is_nested() or series.dtype in (pl.Binary, pl.Object, pl.Boolean):
        raise TableError(
            f"The time column {series.name!r} is of type {series.dtype}; it must hold dates, times or "
            "numbers."
        )
    known = series
    if not (series.dtype.is_numeric() or series.dtype.is_temporal()):
        known = clean_text(series)
    if known.dtype.is_float():
        known = known.fill_nan(None)
    if known.null_count():
        raise RowError(
            f"The time column {series.name!r} has no value in row {RowError.ROW}, so the row is "
            "neither early nor late. Fill it in, or leave the row out.",
            int(known.is_null().arg_max() or 0),
        )
    if known.dtype == pl.String:
        known = _parsed(known)
    return known.to_physical().cast(pl.Float64).to_numpy()


def _parsed(text: pl.Series) -> pl.Series:
    """Parse text as numbers or dates; refuse the first value that is neither."""
    best = as_number(text, number_style(text.unique()))
    zone = text.str.replace(r"(Z|[+-]\d{2}:?\d{2})$", "")
    dates = zone if text.str.contains(r"\d{2}:\d{2}.*(Z|[+-]\d{2}:?\d{2})$").all() else text
    for form in (*_FORMATS, *_slashed(text)):
        if not best.null_count():
            break
        tried = dates.str.to_datetime(form, strict=False, ambiguous="earliest")
        if tried.null_count() < best.null_count():
            best = tried
    if best.null_count():
        row = int(best.is_null().arg_max() or 0)
        raise RowError(
            f"The time column {text.name!r} holds {shown(text[row])} in row {RowError.ROW}, which is "
            "no date that is known here. Write dates as 2024-01-31 or 2024-01-31 18:30:00.",
            row,
        )
    return best


def _slashed(text: pl.Series) -> tuple[str, ...]:
    """Return the formats of dates such as 31/01/2024, if only one order of day and month fits."""
    parts = text.str.extract_groups(r"^(\d{1,2})/(\d{1,2})/\d{4}").struct.unnest()
    first, second = (parts[name].cast(pl.Int64).max() for name in parts.columns[:2])
    if first is None or second is None:
        return ()
    day_first, month_first = int(first) > 12, int(second) > 12  # type: ignore[arg-type]
    if day_first == month_first:
        raise TableError(
            f"The time column {text.name!r} holds dates such as {shown(text[0])}, whose day and month "
            "cannot be told apart. Write dates as 2024-01-31."
        )
    return _SLASHED[:1] if day_first else _SLASHED[1:]


def later_rows(
    times: np.ndarray, positive: np.ndarray, groups: np.ndarray | None, name: str
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the split that holds out the latest quarter of the rows.

    With groups, rows of a group that is held out are not used for training then.

    >>> splits = later_rows(np.arange(8), np.arange(8) % 2 == 0, None, "day")
    >>> [rows.tolist() for rows in splits[0]]
    [[0, 1, 2, 3, 4, 5], [6, 7]]
    """
    ordered = np.sort(times)
    cut = ordered[int(np.floor((1 - LATER_SHARE) * times.size))]
    later = times >= cut
    if later.all():  # more than three quarters share the earliest time
        later = times > cut
    earlier = ~later if groups is None else ~later & ~np.isin(groups, groups[later])
    for part, rows in (("earlier", earlier), ("later", later)):
        ups = int(positive[rows].sum())
        downs = int(rows.sum()) - ups
        if not ups or not downs:
            apart = "" if groups is None else ", without the groups of the later rows,"
            raise TableError(
                f"Split by {name!r}, the {part} rows{apart} have {ups:,} rows of the positive label "
                f"and {downs:,} of the other, and both parts need both labels. Use more rows, or leave "
                "out time."
            )
    return [(np.flatnonzero(earlier), np.flatnonzero(later))]
