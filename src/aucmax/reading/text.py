"""What text in a table means: a missing value, or yes or no."""

from __future__ import annotations

import polars as pl

from aucmax.runtime.scalars import is_number as is_number

#: Text that means a missing value, in any column.
MISSING_MARKS = ("", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "Null", "null")
#: Text that means a missing value only among numbers; elsewhere it may be a level.
_NUMBER_MARKS = ("-", "--", ".", "none", "None", "NONE", "na", "missing", "Missing")

#: Longer text is cut to this many characters; levels of a category differ before that.
LONGEST = 1000

_PAIRS = ({"true", "false"}, {"yes", "no"}, {"t", "f"}, {"y", "n"})
_TRUE, _FALSE = ("true", "yes", "t", "y", "1"), ("false", "no", "f", "n", "0")


def clean_text(series: pl.Series) -> pl.Series:
    """Strip blanks around text, cut long text, and set marks of missing values to null."""
    text = series.cast(pl.String).str.strip_chars()
    longest = text.str.len_bytes().max()
    if isinstance(longest, int) and longest > LONGEST:
        text = text.str.slice(0, LONGEST)
    return text.set(text.is_in(MISSING_MARKS), None)


def without_marks(text: pl.Series) -> pl.Series:
    """Set text to null where it means a missing value among numbers."""
    return text.set(text.is_in(_NUMBER_MARKS), None)


def is_boolean(levels: pl.Series) -> bool:
    """Return whether text is yes and no, or another such pair, in upper or lower case."""
    return set(levels.str.to_lowercase().unique().head(3)) in _PAIRS


def as_boolean(text: pl.Series) -> pl.Series:
    """Convert text such as yes and false to Boolean; null where it is neither."""
    low = text.str.to_lowercase()
    return low.is_in(_TRUE).set(~low.is_in([*_TRUE, *_FALSE]), None)
