"""What text in a table means: a missing value, a number, yes or no, a date."""

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
_THOUSANDS = r"^[+-]?\d{1,3}(,\d{3})+(\.\d*)?$"
_COMMA = r"^[+-]?\d*,\d+([eE][+-]?\d+)?$"
_DOTS = r"^[+-]?\d{1,3}(\.\d{3})+(,\d*)?$"
_DATE = (
    r"^(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}|\d{1,2}[/.]\d{1,2}[/.]\d{2}"
    r"|\d{1,2}[- ][A-Za-z]{3,9}[- ,]+\d{2,4}|[A-Za-z]{3,9} \d{1,2}, *\d{4})([T ,].*)?$"
    r"|^\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?$"
)


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


def number_style(levels: pl.Series) -> str:
    """Return the style in which most of these values are numbers.

    >>> import polars as pl
    >>> number_style(pl.Series(["1,234", "5"])), number_style(pl.Series(["0,5", "12,25"]))
    ('thousands', 'comma')
    >>> number_style(pl.Series(["1.234,50", "0,5"]))
    'dots and comma'
    """
    styles = ("plain", "thousands", "comma", "dots and comma")
    return min(styles, key=lambda style: as_number(levels, style).null_count())


def as_number(text: pl.Series, style: str) -> pl.Series:
    """Convert text in a style of :func:`number_style` to Float64; null where it is no number."""
    if style == "thousands":
        text = text.zip_with(~text.str.contains(_THOUSANDS), text.str.replace_all(",", ""))
    elif style in ("comma", "dots and comma"):
        if style != "comma":
            text = text.zip_with(~text.str.contains(_DOTS), text.str.replace_all(".", "", literal=True))
        text = text.zip_with(~text.str.contains(_COMMA), text.str.replace(",", "."))
    return text.cast(pl.Float64, strict=False)


def is_boolean(levels: pl.Series) -> bool:
    """Return whether text is yes and no, or another such pair, in upper or lower case."""
    return set(levels.str.to_lowercase().unique().head(3)) in _PAIRS


def as_boolean(text: pl.Series) -> pl.Series:
    """Convert text such as yes and false to Boolean; null where it is neither."""
    low = text.str.to_lowercase()
    return low.is_in(_TRUE).set(~low.is_in([*_TRUE, *_FALSE]), None)


def dates_among(levels: pl.Series) -> pl.Series:
    """Return the values that are a date or a time of day."""
    return levels.filter(levels.str.contains(_DATE))
