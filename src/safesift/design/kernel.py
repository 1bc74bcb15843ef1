"""Functions of a reproducing kernel space as points: rows are the features φ(x_i).

    data → `kernels.Kernel` (entries K_ij) → `gram_columns.GramColumns` (rows of K in blocks, cached
    within a budget) → `KernelDesign` → `Problem` with the penalty `SquaredNorm`

A point is h = Σ β_j φ(x_j), stored as the vector β (then the intercept c). The gradient of the
loss, (1/W) Σ s_i ν_i φ(x_i), has the coordinates s∘ν/W, so the optimum is β = −s∘ν/(alpha·W),
predictions are t = Kβ + c and ‖h‖² = βᵀKβ: a duality gap needs t, ν and norms, never an n × n
matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, row_blocks
from safesift.design.base import Design
from safesift.design.gram_columns import GramColumns

Array = NDArray[np.float64]

# how many elements the predictions of which are known are remembered
_REMEMBERED = 4
# values are computed anew where so many times their size was added up to get them
_WORN = 30.0


@dataclass(frozen=True, eq=False)
class Element:
    """h = Σ β_j φ(x_j), and its values at the samples.

    Attributes
    ----------
    beta, values : arrays of shape (n_samples,)
        The coordinates, and Kβ.
    work : float
        Σ|β_j|√K_jj over all terms that were ever added up to get the values: at least `size(β)`,
        and more where they came about by small changes. Their rounding error is relative to it.
    """

    beta: Array
    values: Array
    work: float

    def plus(self, change: Array, gram: GramColumns) -> Element:
        """The element with its coordinates changed, for the kernel rows of the change."""
        if not change.any():
            return self
        beta = self.beta + change
        # the two sums are rounded too
        rounded = 4 * EPS / gram.dot_error * gram.size(beta)
        work = self.work + gram.size(change) + rounded
        return Element(beta, self.values + gram.product(change), work)

    def refreshed(self, gram: GramColumns) -> Element:
        """The same with its values computed anew, if much was added up and taken away again."""
        if self.work <= _WORN * gram.size(self.beta):
            return self
        return Element(self.beta, gram.product(self.beta), gram.size(self.beta))


@dataclass(frozen=True, eq=False)
class KernelDesign(Design):
    """Rows φ(x_i), and a column of ones if `intercept`; coefficients are coordinates β.

    The transposed product Σ u_i φ(x_i) has the coordinates u: it costs nothing and has no
    error.

    Parameters
    ----------
    gram : GramColumns
    intercept : bool
    """

    gram: GramColumns
    intercept: bool = False
    _known: list[Element] = field(default_factory=list)
    has_rows = False

    @property
    def n_samples(self) -> int:
        return self.gram.n_samples

    @property
    def n_features(self) -> int:
        return self.gram.n_samples

    @property
    def dot_error(self) -> float:
        return self.gram.dot_error

    @property
    def sum_error(self) -> float:
        """Sums over samples are pairwise, by blocks."""
        return (64 + len(row_blocks(self.n_samples))) * EPS

    @cached_property
    def row_norms(self) -> Array:
        """Upper bounds on √K_ii, the ones included."""
        return np.sqrt(self.gram.roots**2 + float(self.intercept)) * (1.0 + 4 * EPS)

    def remember(self, element: Element) -> None:
        """Values that are known need not be computed again, of multiples neither."""
        self._known.insert(0, element)
        del self._known[_REMEMBERED:]

    def element(self, beta: Array) -> Element:
        """The element of given coordinates, with its values."""
        found = self._recalled(beta)
        if found is None:
            found = Element(beta, self.gram.product(beta), self.gram.size(beta))
            self.remember(found)
        return found

    def _recalled(self, beta: Array) -> Element | None:
        """An element that is known, or a multiple of one; None where there is none."""
        for known in self._known:
            if beta is known.beta or np.array_equal(beta, known.beta):
                return known
            factor = _factor(beta, known.beta)
            if factor is not None:
                # a multiple is the same up to a rounding of every coordinate
                work = abs(factor) * known.work * (1.0 + 4 * EPS / self.dot_error)
                return Element(beta, factor * known.values, work)
        return None

    def size(self, point: Array) -> float:
        if not self.intercept:
            return self._size(point)
        return self._size(point[:-1]) + abs(float(point[-1]))

    def _size(self, beta: Array) -> float:
        known, size = self._recalled(beta), self.gram.size(beta)
        return size if known is None else max(size, known.work)

    def norm_sq(self, beta: Array) -> tuple[float, float]:
        """‖h‖² and a bound on its error."""
        element = self.element(beta)
        value = math.fsum(element.beta * element.values)
        error = (self.dot_error + 4 * EPS) * element.work * self.gram.size(beta)
        return max(value, 0.0), error

    def matvec(self, point: Array) -> Array:
        if point.ndim > 1:
            # kernel rows that one point needs are kept for the next
            return np.stack([self.matvec(one) for one in point.T], axis=1)
        if not self.intercept:
            return self.element(point).values.copy()
        return self.element(point[:-1]).values + point[-1]

    def rmatvec(self, u: Array) -> Array:
        """The coordinates of Σ u_i φ(x_i), and Σ u_i."""
        return np.concatenate([u, u.sum(axis=0, keepdims=True)]) if self.intercept else u

    def pass_through(self, x: Array, dual: Callable[[Array, slice], Array]) -> tuple[Array, Array]:
        pred = self.matvec(x)
        parts = [dual(pred[rows], rows) for rows in row_blocks(self.n_samples)]
        return pred, self.rmatvec(np.concatenate(parts))


def _factor(beta: Array, known: Array) -> float | None:
    """The number by which one vector is a multiple of the other, up to rounding."""
    largest = int(np.argmax(np.abs(known)))
    if known[largest] == 0.0:
        return None
    factor = float(beta[largest] / known[largest])
    if np.all(np.abs(beta - factor * known) <= 2 * EPS * np.abs(beta)):
        return factor
    return None
