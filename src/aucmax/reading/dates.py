"""Dates and times, written as text or of polars' own types.

A *style* is the format of the dates of a column, as in ``strftime``. A time of day may follow a date
in every style: "2024-12-31T23:59", "31/12/2024 23:59:59.5" or "12/31/2024 11:59 pm". Times are those
on the clock: a time zone is not taken into account.
"""

from __future__ import annotations

import polars as pl

#: The styles that are tried, in this order, and what they are called. Where values fit two of them
#: equally well, as 01/02/2024 does, the first is taken: the day before the month.
STYLES = {
    "%Y-%m-%d": "year-month-day",
    "%Y/%m/%d": "year/month/day",
    "%Y.%m.%d": "year.month.day",
    "%d/%m/%Y": "day/month/year",
    "%m/%d/%Y": "month/day/year",
    "%d.%m.%Y": "day.month.year",
    "%d-%m-%Y": "day-month-year",
    "%m-%d-%Y": "month-day-year",
    "%d %B %Y": "day, name of the month, year",
    "%d-%B-%Y": "day, name of the month, year",
    "%B %d, %Y": "name of the month, day, year",
    "%d/%m/%y": "day/month/year of two digits",
    "%m/%d/%y": "month/day/year of two digits",
    "%d.%m.%y": "day.month.year of two digits",
}
#: Digits alone are a date only if the user names the column as one.
DIGITS = {"%Y%m%d": "year, month and day in eight digits"}

_DATE = (
    r"^(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}|\d{1,2}[/.]\d{1,2}[/.]\d{2}"
    r"|\d{1,2}[- ][A-Za-z]{3,9}[- ,]+\d{2,4}|[A-Za-z]{3,9} \d{1,2}, *\d{4})([T ,].*)?$"
)
_PARTS = (
    r"^(?<date>.*?)(?:[T ,]+(?<hour>\d{1,2}):(?<minute>\d{2})(?::(?<second>\d{2}(?:[.,]\d+)?))?"
    r"\s*(?<half>[AaPp][Mm])?\s*(?:Z|UTC|[+-]\d{2}:?\d{2})?)?$"
)
_FIRST_LEVELS = 1000  #: Styles that fit none of this many values are not tried on the others.


def dates_among(levels: pl.Series) -> pl.Series:
    """Return the values that look like a date."""
    return levels.filter(levels.str.contains(_DATE))


def date_style(levels: pl.Series, *, digits: bool = False) -> str:
    """Return the style in which most of these values are dates.

    >>> import polars as pl
    >>> date_style(pl.Series(["31/12/2024", "1/2/2024"])), date_style(pl.Series(["12/31/2024"]))
    ('%d/%m/%Y', '%m/%d/%Y')
    """
    first = levels.head(_FIRST_LEVELS)
    fits = {
        style: len(first) - as_dates(first, style).null_count()
        for style in [*STYLES, *(DIGITS if digits else {})]
    }
    most = max(fits.values())
    likely = [style for style, count in fits.items() if 2 * count >= most]
    return min(likely, key=lambda style: as_dates(levels, style).null_count())


def as_dates(text: pl.Series, style: str) -> pl.Series:
    """Convert text in a style to Datetime; null where it is no date.

    >>> import polars as pl
    >>> as_dates(pl.Series(["31/12/2024 1:30 pm", "soon"]), "%d/%m/%Y").to_list()
    [datetime.datetime(2024, 12, 31, 13, 30), None]
    """
    parts = text.str.extract_groups(_PARTS).struct
    days = parts.field("date").str.strip_chars().str.to_date(style, strict=False)
    days = days.set(~days.dt.year().is_between(1000, 9999), None)
    hour, minute = (parts.field(name).cast(pl.Float64) for name in ("hour", "minute"))
    second = parts.field("second").str.replace(",", ".").cast(pl.Float64).fill_null(0.0)
    half = parts.field("half").str.to_lowercase().fill_null("")
    hour = (hour % 12 + 12 * (half == "pm").cast(pl.Float64)).zip_with(half != "", hour)
    bad = ((hour >= 24) | (minute >= 60) | (second >= 60)).fill_null(False)
    seconds = (3600 * hour + 60 * minute).fill_null(0.0) + second
    since = (1000 * seconds).round().cast(pl.Int64).cast(pl.Duration("ms"))
    return (days.cast(pl.Datetime("ms")) + since).set(bad, None).alias(text.name)


def without_zone(series: pl.Series) -> pl.Series:
    """Return dates, with or without a time, as the clock shows them."""
    if series.dtype == pl.Datetime and getattr(series.dtype, "time_zone", None):
        series = series.dt.replace_time_zone(None)
    return series.cast(pl.Datetime("ms"))


def as_quantity(series: pl.Series) -> pl.Series:
    """Convert durations to days, and times of the day to hours."""
    unit = 86_400e9 if series.dtype == pl.Duration else 3600e9
    duration = series if series.dtype == pl.Duration else series.cast(pl.Duration("ns"))
    return (duration.dt.total_nanoseconds() / unit).alias(series.name)
