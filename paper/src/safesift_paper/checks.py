"""Parameters: numbers as they should be, or one clear sentence."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any


def check_count(name: str, value: Any) -> int:
    """A positive whole number."""
    if not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}.")
    return int(value)


def check_positive(name: str, value: Any) -> float:
    """A positive finite number."""
    if not isinstance(value, Real) or not 0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {value!r}.")
    return float(value)
