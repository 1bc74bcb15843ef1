"""Samples as the methods see them: numbers of every row, some rows at a time.

Rows in memory come all at once, those of a source a piece after the other: whoever chooses among
them adds up, counts, and keeps what may be chosen, and holds no number of every row.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from safesift.design.rows import RowDesign
from safesift.problem.training import Training
from safesift.workflows.compression.metric import LeverageMetric

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

# values from which the quantiles of a class are told, where there are that many
_FEWEST_OF_A_CLASS = 2**12


class Rows(Protocol):
    """Rows that follow each other.

    Attributes
    ----------
    start : int
        The number of the first one.
    weights : array
    counted : mask
        Rows of positive weight: the others are not part of the problem.
    class_codes : array of int
        Which class a row is of; zeros without classes, any number without weight.
    centers : array
        What numbers and intervals ask for.
    own_predictions : array
        At the solution; with several classes, that of the own class.
    margins : array
        How far predictions are out of the flat piece, negative inside.
    test_values : array
        The same of bounds at every optimum, negative where the row is proved to be flat.
    active : mask
        Rows of weight not proved to lie on a flat piece of their loss at every optimum.
    slope_sizes : array
        ‖ν_i‖ over the problems.
    leverage : array
        a_iᵀH⁻¹a_i.
    """

    @property
    def start(self) -> int: ...
    @property
    def weights(self) -> Array: ...
    @property
    def counted(self) -> Mask: ...
    @property
    def class_codes(self) -> Indices: ...
    @property
    def centers(self) -> Array: ...
    @property
    def own_predictions(self) -> Array: ...
    @property
    def margins(self) -> Array: ...
    @property
    def test_values(self) -> Array: ...
    @property
    def active(self) -> Mask: ...
    @property
    def slope_sizes(self) -> Array: ...
    @property
    def leverage(self) -> Array: ...


Of = Callable[[Rows], NDArray]


class Samples(ABC):
    """All of them, and what is known of them together."""

    classes: NDArray | None
    training: Training

    @abstractmethod
    def parts(self) -> Iterator[Rows]:
        """All rows, in their order."""

    @property
    @abstractmethod
    def n_rows(self) -> int: ...

    @property
    @abstractmethod
    def alpha(self) -> float: ...

    @property
    @abstractmethod
    def divisor(self) -> float:
        """W."""

    @property
    @abstractmethod
    def certified(self) -> bool:
        """Whether no guess entered the test values."""

    @property
    @abstractmethod
    def metric(self) -> LeverageMetric:
        """The norm in which gradients and rows are measured."""

    @property
    @abstractmethod
    def pull(self) -> Array:
        """Σ s_i ν_i a_i, (n_columns, n_problems)."""

    @abstractmethod
    def taken(self, kept: Indices) -> tuple[RowDesign, Array]:
        """Some rows, by rising numbers, and their ν."""

    # --- sums, and some values ----------------------------------------------------------------

    def sum(self, of: Of) -> float:
        """Over all rows."""
        return sum((float(of(rows).sum()) for rows in self.parts()), 0.0)

    def count(self, of: Of) -> int:
        """Rows that are selected."""
        return sum(int(np.count_nonzero(of(rows))) for rows in self.parts())

    def masses(self, codes: Of, values: Of, n_groups: int) -> Array:
        """The total of every group."""
        totals = np.zeros(n_groups)
        for rows in self.parts():
            totals += np.bincount(codes(rows), values(rows), minlength=n_groups)
        return totals

    def at(self, kept: Indices, of: Of) -> NDArray:
        """Values of some rows, by rising numbers."""
        found = []
        for rows in self.parts():
            stop = rows.start + len(rows.weights)
            mine = kept[slice(*np.searchsorted(kept, (rows.start, stop)))]
            if len(mine):
                found.append(of(rows)[mine - rows.start])
        return np.concatenate(found)

    @cached_property
    def n_counted(self) -> int:
        return self.count(lambda rows: rows.counted)

    @cached_property
    def n_active(self) -> int:
        return self.count(lambda rows: rows.active)

    @cached_property
    def total_weight(self) -> float:
        return self.sum(lambda rows: rows.weights)

    @cached_property
    def dimension(self) -> float:
        """The effective dimension, trace(H⁻¹(H − alpha·I))."""
        divisor = self.divisor
        return self.sum(lambda rows: (rows.weights / divisor) * rows.leverage)

    @property
    def most_values(self) -> int:
        """Of all classes together, from which their quantiles are told."""
        return sys.maxsize

    @property
    def n_classes(self) -> int:
        return 1 if self.classes is None else len(self.classes)

    @cached_property
    def class_sizes(self) -> Indices:
        """How many rows of positive weight every class has."""
        found = [np.bincount(rows.class_codes[rows.counted], minlength=self.n_classes)
                 for rows in self.parts()]  # fmt: skip
        return np.sum(found, axis=0)

    def thinned(self, of: Of) -> list[Array]:
        """For every class values of its rows of positive weight, rising.

        All of them where they are not many, else every so many-th in the order of the rows.
        """
        most = max(self.most_values // self.n_classes, _FEWEST_OF_A_CLASS)
        strides, seen = -(-self.class_sizes // most), np.zeros(self.n_classes, dtype=np.intp)
        found: list[list[Array]] = [[] for _ in range(self.n_classes)]
        for rows in self.parts():
            values = of(rows)
            for code, mine in grouped(rows.class_codes, rows.counted):
                found[code].append(values[mine[-seen[code] % strides[code] :: strides[code]]])
                seen[code] += len(mine)
        return [np.sort(np.concatenate([*some, np.zeros(0)])) for some in found]


def grouped(codes: Indices, selected: Mask) -> Iterator[tuple[int, Indices]]:
    """Every group that has selected rows, and their numbers, rising."""
    rows = np.flatnonzero(selected)
    rows = rows[np.argsort(codes[rows], kind="stable")]
    found, firsts = np.unique(codes[rows], return_index=True)
    yield from zip(found.tolist(), np.split(rows, firsts)[1:], strict=True)
