"""Convert values to what JSON holds."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np


def json_ready(value: Any) -> Any:
    """Convert a value to the types of JSON; numbers that are not finite become null.

    >>> json_ready({"auc": np.float64("nan"), "counts": np.array([1, 2])})
    {'auc': None, 'counts': [1, 2]}
    """
    if isinstance(value, Mapping):
        return {str(key): json_ready(each) for key, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return json_ready(value.tolist())
    if isinstance(value, list | tuple):
        return [json_ready(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, date | os.PathLike | np.random.RandomState):
        return str(value)
    return value
