"""Columns in very different units: which they are, for whoever has to say so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from safesift.problem.problem import Problem

# beyond this ratio, float64 has too few digits left for the smaller columns
_FAR_APART = 1e6


@dataclass(frozen=True)
class ColumnScales:
    """The columns of the largest and of the smallest entries, columns of zeros not counted.

    Attributes
    ----------
    largest, smallest : int
        Their numbers.
    largest_rms, smallest_rms : float
        The roots of their mean squares, rows weighted.
    """

    largest: int
    smallest: int
    largest_rms: float
    smallest_rms: float

    @property
    def ratio(self) -> float:
        """How many times as large the one is as the other."""
        return self.largest_rms / self.smallest_rms

    @property
    def far_apart(self) -> bool:
        """Whether that is so much that it is worth a word where something went wrong."""
        return not self.ratio <= _FAR_APART

    def described(self, names: Sequence[str] | None = None) -> str:
        """Who is how many times as large as whom, by names where columns have some."""
        large, small = (
            f"X[:, {column}]" if names is None else f"{names[column]!r}"
            for column in (self.largest, self.smallest)
        )
        return f"column {large} is {self.ratio:.0e} times as large as column {small}"


def column_scales(problem: Problem) -> ColumnScales | None:
    """How large the columns of a problem are, next to each other: one pass, made once.

    None where there are no two columns to compare, as in the space of a kernel.
    """
    if not problem.design.has_rows:
        return None
    with np.errstate(over="ignore"):
        squares = problem.risk.rows.columns_sq[: problem.design.n_features]
    counted = np.flatnonzero(squares > 0)
    if len(counted) < 2:
        return None
    largest = int(counted[np.argmax(squares[counted])])
    smallest = int(counted[np.argmin(squares[counted])])
    return ColumnScales(
        largest, smallest, math.sqrt(squares[largest]), math.sqrt(squares[smallest])
    )


def column_names(X: Any) -> tuple[str, ...] | None:
    """The names of the columns of a frame, where they are strings; None without them."""
    names = getattr(X, "columns", None)
    # a matrix may have a method of that name
    if names is None or callable(names) or not all(isinstance(name, str) for name in names):
        return None
    return tuple(names)


def column_name(names: Sequence[str] | None, column: int) -> str:
    """The name of a column, or one made of its number."""
    return f"x{column}" if names is None else names[column]
