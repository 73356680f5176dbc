"""Memory as users write it, and as much as there is."""

from __future__ import annotations

import os
import re
from numbers import Real

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def parse_bytes(value: int | float | str) -> int:
    """A number of bytes from a number or from text such as ``"4GB"`` or ``"500 MiB"``.

    >>> parse_bytes("1.5GB")
    1500000000
    >>> parse_bytes("2MiB")
    2097152
    """
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+\.?\d*)\s*([KMGT]?)(i?)B?\s*", value, flags=re.IGNORECASE)
        if match:
            unit = match[2].upper()
            step = 2 ** (10 * " KMGT".index(unit or " ")) if match[3] else _UNITS[unit]
            return int(float(match[1]) * step)
    elif isinstance(value, Real) and not isinstance(value, bool) and 0 < value < float("inf"):
        return int(value)
    raise ValueError(f'max_memory must be bytes or text such as "4GB"; got {value!r}.')


def format_bytes(number: int) -> str:
    """Bytes for reading.

    >>> format_bytes(2_974_777_600)
    '2.97 GB'
    >>> format_bytes(999_600)
    '1 MB'
    """
    unit = next((u for u in ("T", "G", "M", "K") if number >= 0.9995 * _UNITS[u]), "")
    return f"{number / _UNITS[unit]:.3g} {unit.replace('K', 'k')}B"


def available_bytes() -> int | None:
    """Memory that is free now, where the system tells."""
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def fits(needed: int, max_memory: int | str | None) -> bool:
    """Whether so many bytes are within the limit, or free (in that case with a fifth to spare)."""
    if max_memory is not None:
        return needed <= parse_bytes(max_memory)
    free = available_bytes()
    return free is None or needed <= 0.8 * free


def check_fits(what: str, needed: int, max_memory: int | str | None) -> None:
    """Refuse work whose largest array is above the limit, before it starts."""
    limit = available_bytes() if max_memory is None else parse_bytes(max_memory)
    if limit is not None and needed > limit:
        free = max_memory is None
        raise MemoryError(
            f"{what} needs {format_bytes(needed)}, and {format_bytes(limit)} "
            f"{'is free' if free else 'is the limit set by max_memory'}. Use fewer landmarks "
            f"(n_landmarks){' or' if free else ','} fit on a sample of the rows"
            f"{'.' if free else ', or raise max_memory.'}"
        )
