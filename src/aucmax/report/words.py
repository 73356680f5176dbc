"""Numbers as a reader wants them."""

from __future__ import annotations

import math
from typing import Any


def count(value: float, digits: int = 0) -> str:
    """A number with commas; of a fraction, as many digits as there are, up to so many.

    >>> count(1234567), count(1234.5, 1), count(1234.0, 1)
    ('1,234,567', '1,234.5', '1,234')
    """
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(share: float, digits: int = 1) -> str:
    r"""A share in percent.

    >>> percent(0.1234), percent(0.05, 0)
    ('12.3\xa0%', '5\xa0%')
    """
    return f"{100 * share:.{digits}f}\u00a0%"  # which no line ends between


def fixed(value: float, digits: int) -> str:
    """A number with so many decimals.

    >>> fixed(0.12345, 3)
    '0.123'
    """
    return f"{value:.{digits}f}"


def two_digits(value: float) -> float:
    """A number that is meant roughly.

    >>> two_digits(48.72), two_digits(0.1234)
    (49.0, 0.12)
    """
    return float(f"{value:.2g}")


def cell(value: Any, most: int = 80) -> str | None:
    """A value of a table as text; None where it is missing.

    >>> cell(0.1 + 0.2), cell(None), cell(True), cell(1234567)
    ('0.3', None, 'true', '1234567')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= most else text[: most - 1] + "…"
