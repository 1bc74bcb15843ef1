"""Interval targets: two columns of ends, either of them possibly infinite, checked row by row."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def as_intervals(y: Any) -> Array:
    """Targets as an array of lower and upper ends, of shape (n_samples, 2).

    Parameters
    ----------
    y : array or frame of shape (n_samples, 2) or (n_samples,)
        Lower and upper ends, -inf and inf where there is none. One column means intervals of
        width zero.

    Raises
    ------
    ValueError
        Where an end is NaN, the lower end exceeds the upper one, both ends are infinite, or a
        finite number is missing altogether; the message names the first rows.
    """
    array = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        _warn_about_column()
        array = array[:, 0]
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] != 2):
        raise ValueError(
            f"y has shape {array.shape}: interval targets have two columns, the lower and the "
            "upper ends, or one column for intervals of width zero."
        )
    numbers = _numbers(array)
    if numbers.ndim == 1:
        _check_numbers(numbers)
        return np.column_stack([numbers, numbers])
    _check_ends(numbers)
    return numbers


def distance(pred: Array, intervals: Array) -> Array:
    """How far predictions are from their intervals, 0 inside."""
    return np.maximum(np.maximum(intervals[:, 0] - pred, pred - intervals[:, 1]), 0.0)


def _warn_about_column() -> None:
    from sklearn.exceptions import DataConversionWarning

    warnings.warn(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of y "
        "to (n_samples, ), for example using ravel().",
        DataConversionWarning,
        stacklevel=4,
    )


def _numbers(array: NDArray) -> Array:
    try:
        if array.dtype.kind == "c":
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"y must hold numbers, the ends of intervals, got {array.dtype}: convert it first."
        ) from None


def _check_numbers(y: Array) -> None:
    _refuse(np.isnan(y), "y contains NaN", "remove those samples first")
    _refuse(
        np.isinf(y),
        "y contains infinity",
        "remove those samples, or pass two columns, the ends of intervals",
    )


def _check_ends(y: Array) -> None:
    low, high = y.T
    _refuse(
        np.isnan(y).any(axis=1),
        "y contains NaN",
        "write -inf or inf for an end that is not known, or remove those samples",
    )
    _refuse(
        ~np.isfinite(y).any(axis=1),
        "y has intervals without a finite end",
        "such samples say nothing, remove them",
    )
    _refuse(
        low > high,
        "y has intervals whose lower end exceeds the upper one",
        "the columns are lower, upper",
    )


def _refuse(bad: NDArray[np.bool_], what: str, remedy: str, most: int = 5) -> None:
    if not bad.any():
        return
    rows = np.flatnonzero(bad)
    named = ", ".join(map(str, rows[:most])) + (", …" if len(rows) > most else "")
    count = f"{len(rows)} row{'s' if len(rows) > 1 else ''}"
    raise ValueError(f"{what} in {count} ({named}): {remedy}.")
