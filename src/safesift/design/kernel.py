"""Functions of a reproducing kernel space as points: rows are the features φ(x_i).

    data → `kernels.Kernel` (entries K_ij) → `gram_columns.GramColumns` (rows of K in blocks, cached
    within a budget) → `KernelDesign` → `Problem` with the penalty `SquaredNorm`

A point is h = Σ β_j φ(x_j), stored as the vector β (then the intercept c). The gradient of the
loss, (1/W) Σ s_i ν_i φ(x_i), has the coordinates s∘ν/W, so the optimum is β = −s∘ν/(alpha·W),
predictions are t = Kβ + c and ‖h‖² = βᵀKβ: a duality gap needs t, ν and norms, never an n × n
matrix.

Rows of a Gram matrix, computed in blocks and kept within a budget of memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic import tally
from safesift.arithmetic.numerics import EPS, UNDERFLOW, row_blocks, total
from safesift.arithmetic.threads import run
from safesift.design.base import Design
from safesift.design.blocks import slices
from safesift.design.kernels import Kernel

Array = NDArray[np.float64]


# rows that are computed at a time, entries of a block, and terms that are summed at a time
_ROWS, _BLOCK, _TERMS = 256, 2**23, 1024


# entries that a thread computes at a time
_TASK = 2**18


# rows of the blocks that a square block is made of
_SQUARE = 1024


# from this share of the rows that are kept on, all are read rather than some gathered
_WORTH_READING = 0.4


class GramColumns:
    """The rows (or columns: it is symmetric) of a Gram matrix.

    Parameters
    ----------
    kernel : Kernel
    memory : int
        Bytes for the rows that are kept; at least a block of them is.

    Attributes
    ----------
    diagonal : array of shape (n_samples,)
    dot_error : float
        |computed (Kβ)_i − exact| ≤ dot_error·√K_ii·Σ|β_j|√K_jj.
    """

    def __init__(self, kernel: Kernel, memory: int) -> None:
        self.kernel = kernel
        n = kernel.n_samples
        self.diagonal = np.maximum(kernel.diagonal, 0.0)
        self.roots = np.sqrt(self.diagonal) * (1.0 + 4 * EPS)
        self.dot_error = (min(n, _TERMS) + n // _TERMS + 8) * EPS + 2.0 * kernel.entry_error
        self.memory = memory
        self._capacity = max(min(n, memory // (8 * n)), min(n, _ROWS))
        # the memory is the system's to give when it is first written to
        self._kept = np.empty((self._capacity, n))
        self._place = np.full(n, -1)
        self._owner = np.full(self._capacity, -1)
        self._used = np.zeros(self._capacity, dtype=np.int64)
        self._clock = 0

    @property
    def n_samples(self) -> int:
        return self.kernel.n_samples

    @property
    def largest_block(self) -> int:
        """How many rows a square block may have, for it to take as much memory as is kept."""
        return max(math.isqrt(self.memory // 8), 100)

    def product(self, beta: Array) -> Array:
        """K @ β, from the rows where β is not 0."""
        out = np.zeros(self.n_samples)
        support = np.flatnonzero(beta)
        self._keep(support)
        places = self._place[support]
        self._add_kept(out, places[places >= 0], beta[support[places >= 0]])
        rest = support[places < 0]
        for start in range(0, len(rest), self._rows_at_once):
            some = rest[start : start + self._rows_at_once]
            out += beta[some] @ self._computed(some)
        return out

    def submatrix(self, rows: NDArray) -> Array:
        """K[rows, rows], symmetric. Nothing but what is kept is used, and nothing more is kept."""
        out = np.empty((len(rows), len(rows)))
        places = self._place[rows]
        known, missing = np.flatnonzero(places >= 0), np.flatnonzero(places < 0)
        for start in range(0, len(known), self._rows_at_once):
            some = known[start : start + self._rows_at_once]
            _put(out, some, slice(None), self._kept[np.ix_(places[some], rows)])
        for start in range(0, len(missing), _SQUARE):
            some, others = missing[start : start + _SQUARE], missing[start:]
            tally.count(len(some) * len(others) // self.n_samples)
            _put(out, some, others, self.kernel.block(rows[some], rows[others]))
        return out

    def block(self, rows: NDArray, columns: NDArray) -> Array:
        """K[rows, columns], from what is kept of the columns."""
        places = self._place[columns]
        if (places >= 0).all():
            return self._kept[places][:, rows].T
        tally.count(len(rows) * len(columns) // self.n_samples)
        return self.kernel.block(rows, columns)

    def norm_sq(self, beta: Array) -> float:
        """βᵀKβ, from the rows where β is not 0."""
        support = np.flatnonzero(beta)
        if not support.size:
            return 0.0
        return max(total(beta[support], self.product(beta)[support]), 0.0)

    def size(self, beta: Array) -> float:
        """Σ|β_j|√K_jj: what rounding errors of Kβ are relative to, and at least the norm."""
        return total(self.roots, np.abs(beta))

    # --- what is kept -----------------------------------------------------------------------

    @property
    def _rows_at_once(self) -> int:
        return max(min(_ROWS, _BLOCK // self.n_samples), 16)

    def _computed(self, rows: NDArray) -> Array:
        tally.count(len(rows))
        out = np.empty((len(rows), self.n_samples))

        def fill(columns: slice) -> None:
            out[:, columns] = self.kernel.block(rows, columns)

        run(fill, slices(self.n_samples, max(_TASK // max(len(rows), 1), _ROWS)))
        return out

    def _keep(self, wanted: NDArray) -> None:
        """Compute those of the rows that are not kept, as far as there is room for them."""
        self._clock += 1
        places = self._place[wanted]
        self._used[places[places >= 0]] = self._clock
        missing = wanted[places < 0]
        if not missing.size:
            return
        oldest = np.argsort(self._used, kind="stable")
        free = oldest[self._used[oldest] < self._clock][: len(missing)]
        missing = missing[: len(free)]
        for start in range(0, len(free), self._rows_at_once):
            places = free[start : start + self._rows_at_once]
            rows = missing[start : start + self._rows_at_once]
            before = self._owner[places]
            self._place[before[before >= 0]] = -1
            self._kept[places] = self._computed(rows)
            self._owner[places], self._place[rows] = rows, places
            self._used[places] = self._clock

    def _add_kept(self, out: Array, places: NDArray, beta: Array) -> None:
        """out += Σ β_j K_j over rows that are kept."""
        if not places.size:
            return
        last = int(places.max()) + 1
        if len(places) > _WORTH_READING * last:
            spread = np.zeros(last)
            spread[places] = beta
            for start in range(0, last, _TERMS):
                part = slice(start, min(start + _TERMS, last))
                out += spread[part] @ self._kept[part]
            return
        for start in range(0, len(places), self._rows_at_once):
            part = slice(start, start + self._rows_at_once)
            out += beta[part] @ self._kept[places[part]]


def _put(out: Array, rows: NDArray, columns: NDArray | slice, block: Array) -> None:
    """Write a block and its transpose; where they meet, it is symmetric up to rounding only."""
    if isinstance(columns, slice):
        out[rows], out[:, rows] = block, block.T
    else:
        out[np.ix_(rows, columns)], out[np.ix_(columns, rows)] = block, block.T
    square = out[np.ix_(rows, rows)]
    out[np.ix_(rows, rows)] = 0.5 * (square + square.T)


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


@dataclass(frozen=True, eq=False, repr=False)
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

    def fingerprint(self) -> bytes:
        return self.gram.kernel.fingerprint()

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
        # products of numbers from 1e-162 on underflow, n of them for each value
        lost = 4 * self.n_samples * UNDERFLOW * (1.0 + float(np.abs(beta).sum()))
        return max(value, 0.0), error + lost

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
