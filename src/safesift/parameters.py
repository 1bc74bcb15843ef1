"""Parameters: numbers as they should be, or one clear sentence."""

from __future__ import annotations

import math
import re
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

_SIZE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([kMGT]?)B", re.IGNORECASE)
_BYTES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


def require_non_negative(name: str, value: ArrayLike, per_sample: bool = False) -> None:
    """Refuse parameters that are negative, NaN or infinite."""
    numbers = _numbers(name, value, per_sample)
    if not (np.isfinite(numbers).all() and (numbers >= 0).all()):
        raise ValueError(f"{name} must be finite and not negative, got {_worst(numbers)!r}.")


def require_positive(name: str, value: ArrayLike) -> None:
    """Refuse parameters that are not positive and finite."""
    numbers = _numbers(name, value)
    if not (np.isfinite(numbers).all() and (numbers > 0).all()):
        raise ValueError(f"{name} must be positive and finite, got {_worst(numbers)!r}.")


def require_finite(name: str, value: ArrayLike) -> None:
    """Refuse parameters that are NaN or infinite."""
    numbers = _numbers(name, value)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be finite, got {_worst(numbers)!r}.")


def own(values: ArrayLike) -> Array:
    """Numbers that nobody can change any more: a copy, unless they are such already."""
    array = np.asarray(values, dtype=np.float64)
    base = array if array.base is None else array.base
    if array.flags.writeable or getattr(getattr(base, "flags", None), "writeable", True):
        array = array.copy()
        array.flags.writeable = False
    return array


def check_positive(name: str, value: Any) -> float:
    """A positive finite number."""
    try:
        if isinstance(value, str):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}.") from None
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be positive and finite, got {value!r}.")
    return number


def check_memory(value: Any) -> int:
    """A budget of memory in bytes, given so or as a size such as "500 MB" or "2 GB"."""
    size = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if size is not None:
        value = round(float(size[1]) * _BYTES[size[2].lower()])
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(
            f"memory must be a size such as '500 MB', or a number of bytes, got {value!r}."
        )
    return int(value)


def check_count(name: str, value: Any) -> int:
    """A positive whole number."""
    if not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}.")
    return int(value)


def check_jobs(value: Any) -> int | None:
    """A number of threads as joblib counts them, or None."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if value is not None and (not whole or value == 0):
        raise ValueError(
            "n_jobs must be a number of threads, or a negative one (-1 for all processors, -2 for "
            f"all but one), got {value!r}."
        )
    return None if value is None else int(value)


def _numbers(name: str, value: ArrayLike, per_sample: bool = False) -> Array:
    wanted = "a number or one number per sample" if per_sample else "a number"
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be {wanted}, got {type(value).__name__}.") from None
    if value is None or numbers.ndim > per_sample:
        raise TypeError(f"{name} must be {wanted}, got {type(value).__name__}.")
    return numbers


def _worst(numbers: Array) -> float:
    """The value to complain about."""
    return float(np.where(np.isnan(numbers), -np.inf, numbers).min())
