"""Numbers written as text: thousands, decimal commas, currency signs, percent and accounting style.

A *style* says how the numbers of a column are written: "plain" (1234.5), "thousands" (1,234.5), "comma"
(1234,5) or "dots and comma" (1.234,5). If they carry a sign before or after them, it follows, as in
"thousands with $" or "comma with %". A number with another sign is not a number in that style: dollars
and euros are not one column. A percentage is read as written, 18.3 for "18.3%". Parentheses around a
number make it negative, as accountants write it. In every style a blank or an apostrophe may separate
thousands, as in "1 234,5". "time of day" is a style, too: hours since midnight.
"""

from __future__ import annotations

import re

import polars as pl

_BASES = ("plain", "thousands", "comma", "dots and comma")
_TIME = "time of day"

_THOUSANDS = r"^[+-]?\d{1,3}(,\d{3})+(\.\d*)?$"
_COMMA = r"^[+-]?\d*,\d+([eE][+-]?\d+)?$"
_DOTS = r"^[+-]?\d{1,3}(\.\d{3})+(,\d*)?$"
_BLANK = r"[ \x{a0}\x{202f}'’]"
_BLANKS = rf"^[+-]?\d{{1,3}}({_BLANK}\d{{3}})+([.,]\d*)?$"
_CLOCK = r"^(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?$"
_CURRENCY = (
    r"US\$|R\$|A\$|C\$|\p{Sc}|USD|EUR|GBP|JPY|CHF|CAD|AUD|INR|CNY|SEK|NOK|DKK|PLN|BRL|MXN|ZAR|kr|zł|Kč"
)
_BEFORE = rf"^\(?[+-]?\s*({_CURRENCY})\s*\(?[+-]?[\d.,]"
_AFTER = rf"[\d.,]\s*\)?\s*({_CURRENCY}|%)\s*\)?$"
_ZEROS = r"^0[\d ]*\d$"


def number_style(levels: pl.Series) -> str:
    """Return the style in which most of these values are numbers.

    >>> import polars as pl
    >>> number_style(pl.Series(["1,234", "5"])), number_style(pl.Series(["0,5", "12,25"]))
    ('thousands', 'comma')
    >>> number_style(pl.Series(["1.234,50 €", "0,5 €"])), number_style(pl.Series(["18.3%", "7%"]))
    ('dots and comma with €', 'plain with %')
    """
    sign = _most_frequent_sign(levels)
    styles = [f"{base} with {sign}" if sign else base for base in _BASES]
    if not sign and levels.str.contains(_CLOCK).any():
        styles.append(_TIME)
    return min(styles, key=lambda style: as_number(levels, style).null_count())


def as_number(text: pl.Series, style: str) -> pl.Series:
    """Convert text in a style of :func:`number_style` to Float64; null where it is no number.

    >>> import polars as pl
    >>> as_number(pl.Series(["$1,234.50", "($12)", "-$3", "€5"]), "thousands with $").to_list()
    [1234.5, -12.0, -3.0, None]
    """
    if style == _TIME:
        return _hours(text)
    base, _, sign = style.partition(" with ")
    text = _without_parentheses(text)
    if sign:
        text = _without_parentheses(_without_sign(text, sign))
    grouped = text.str.contains(_BLANKS)
    if grouped.any():
        text = text.zip_with(~grouped, text.str.replace_all(_BLANK, ""))
    if base == "thousands":
        text = text.zip_with(~text.str.contains(_THOUSANDS), text.str.replace_all(",", ""))
    elif base in ("comma", "dots and comma"):
        if base != "comma":
            text = text.zip_with(~text.str.contains(_DOTS), text.str.replace_all(".", "", literal=True))
        text = text.zip_with(~text.str.contains(_COMMA), text.str.replace(",", "."))
    return text.cast(pl.Float64, strict=False)


def describe_style(style: str) -> str:
    """Return how numbers in a style are written, to follow "text read as numbers"."""
    base, _, sign = style.partition(" with ")
    words = {
        "thousands": ' with "," between thousands',
        "comma": ' with "," before decimals',
        "dots and comma": ' with "." between thousands and "," before decimals',
        _TIME: ", the hours since midnight",
    }.get(base, "")
    return words + (f'{" and" if words else " with"} the sign "{sign}"' if sign else "")


def are_codes(levels: pl.Series) -> bool:
    """Return whether digits are codes: one of them has a leading zero, as "00037" or "030 123"."""
    return bool(levels.str.contains(_ZEROS).any())


def are_whole(levels: pl.Series) -> bool:
    """Return whether all values are whole numbers without any sign or separator, or with blanks."""
    return bool(levels.str.contains(r"^[+-]?(\d{1,18}|\d{1,3}( \d{3}){1,5})$").all())


def _most_frequent_sign(levels: pl.Series) -> str:
    signs = levels.str.extract(_BEFORE).fill_null(levels.str.extract(_AFTER)).drop_nulls()
    return str(signs.mode().sort()[0]) if len(signs) else ""


def _without_parentheses(text: pl.Series) -> pl.Series:
    """Write "(12)" as "-12"."""
    closed = text.str.starts_with("(")
    if not closed.any():
        return text
    return text.zip_with(~closed, text.str.replace(r"^\(\s*([^()+-][^()]*?)\s*\)$", "-${1}"))


def _without_sign(text: pl.Series, sign: str) -> pl.Series:
    literal = re.escape(sign)
    if sign == "%":  # a bare number among percentages may be a share, except for 0
        text = text.set(~(text.str.contains("%", literal=True) | (text == "0")), None)
    else:
        text = text.str.replace(rf"^([+-]?)\s*{literal}\s*", "${1}")
    return text.str.replace(rf"\s*{literal}$", "")


def _hours(text: pl.Series) -> pl.Series:
    parts = text.str.extract_groups(_CLOCK).struct
    hours, minutes, seconds = (parts.field(name).cast(pl.Float64) for name in ("1", "2", "3"))
    seconds = seconds.fill_null(0.0)
    valid = ((hours < 24) & (minutes < 60) & (seconds < 60)).fill_null(False)
    return (hours + minutes / 60 + seconds / 3600).set(~valid, None)
