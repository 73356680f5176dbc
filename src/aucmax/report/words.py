"""Format numbers and values for readers."""

from __future__ import annotations

import math
from typing import Any


def count(value: float, digits: int = 0) -> str:
    """Format a number with commas and at most ``digits`` decimals.

    >>> count(1234567), count(1234.5, 1), count(1234.0, 1)
    ('1,234,567', '1,234.5', '1,234')
    """
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(share: float, digits: int = 1) -> str:
    r"""Format a share in percent.

    >>> percent(0.1234), percent(0.05, 0)
    ('12.3\xa0%', '5\xa0%')
    """
    return f"{100 * share:.{digits}f}\u00a0%"  # a blank without a line break


def cell(value: Any, most: int = 80) -> str | None:
    """Format a value of a table; None if it is missing.

    >>> cell(0.1 + 0.2), cell(None), cell(True), cell(1234567)
    ('0.3', None, 'true', '1234567')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    text = text.lower() if isinstance(value, bool) else text
    return text if len(text) <= most else text[: most - 1] + "…"
