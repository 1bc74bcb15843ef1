"""The operations a data matrix must offer, written once over blocks of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic import tally
from safesift.arithmetic.numerics import EPS, UNDERFLOW, norm

Array = NDArray[np.float64]

# where a larger share of the rows is used, reading all of them costs less than gathering some
_WORTH_GATHERING = 0.6


class Design(ABC):
    """A matrix of n_samples rows, with a column of ones at the end if `intercept`.

    The data stay in the type they came in. Products walk over blocks of rows and are computed in
    float64 block by block, so that float32 or integer data are exact and never copied whole, and
    so that sums over the samples are two-level sums with a small rounding error.

    Subclasses give the blocks. Attributes `n_samples`, `n_features` (without the ones),
    `n_columns` (with them) and `intercept` describe the shape.

    Attributes
    ----------
    dot_error : float
        |computed aᵢᵀx − exact| ≤ dot_error·‖aᵢ‖·‖x‖ + n_columns·UNDERFLOW.
    sum_error : float
        ‖computed Aᵀu − exact‖ ≤ sum_error·Σ|uᵢ|·‖aᵢ‖, and the same for plain sums over samples.
    gram_error : float
        |computed Σ wᵢaᵢaᵢᵀ − exact| ≤ gram_error·ccᵀ, entry by entry, for c_j² = Σ wᵢaᵢⱼ², w ≥ 0.
    """

    n_samples: int
    n_features: int
    intercept: bool

    @property
    def n_columns(self) -> int:
        """Number of columns, the ones included."""
        return self.n_features + self.intercept

    @abstractmethod
    def blocks(self, n_rows: int) -> Iterator[tuple[slice, NDArray]]:
        """Consecutive slices of rows, with the rows as float64 (dense or CSR), without ones."""

    @abstractmethod
    def gathered(self, rows: NDArray) -> NDArray:
        """The rows at some indices as one block, float64."""

    @abstractmethod
    def take(self, rows: NDArray) -> Design:
        """The rows selected by a boolean mask or by indices, in the type they came in."""

    @abstractmethod
    def columns(self, features: NDArray) -> Design:
        """The features selected by a boolean mask, and the ones if there are any."""

    @property
    @abstractmethod
    def data(self) -> NDArray:
        """The matrix as it came, without the column of ones."""

    @property
    @abstractmethod
    def block_rows(self) -> int:
        """The largest number of rows in a block of a product with vectors."""

    @property
    def gram_rows(self) -> int:
        """The largest number of rows in a block of a Gram matrix."""
        return self.block_rows

    @property
    @abstractmethod
    def row_length(self) -> int:
        """The largest number of non-zeros in a row, the ones not counted."""

    @abstractmethod
    def _block_norms_sq(self, block: NDArray) -> Array: ...

    @abstractmethod
    def _block_gram(self, block: NDArray, weights: Array) -> Array: ...

    @abstractmethod
    def _block_columns_sq(self, block: NDArray, weights: Array) -> Array: ...

    # --- rounding ---------------------------------------------------------------------------

    def size(self, point: Array) -> float:
        """The norm of a point, to which the rounding of its predictions is relative."""
        return norm(point)

    @property
    def dot_error(self) -> float:
        return (self.row_length + 8) * EPS

    @property
    def sum_error(self) -> float:
        return self._error_of_sums(self.block_rows)

    @property
    def gram_error(self) -> float:
        return self._error_of_sums(self.gram_rows)

    def _error_of_sums(self, n_rows: int) -> float:
        """Of sums over blocks of so many rows, added up."""
        n_blocks = -(-self.n_samples // max(n_rows, 1))
        return (min(n_rows, self.n_samples) + n_blocks + 8) * EPS

    # --- products ---------------------------------------------------------------------------

    def read(self, n_rows: int | None = None) -> Iterator[tuple[slice, NDArray]]:
        """Blocks of `block_rows` or of so many rows, counted as they are read."""
        for rows, block in self.blocks(max(n_rows or self.block_rows, 1)):
            tally.count(rows.stop - rows.start)
            yield rows, block

    def matvec(self, x: Array) -> Array:
        """A @ x for a vector, or for a matrix with few columns."""
        out = np.empty((self.n_samples, *x.shape[1:]))
        for rows, block in self.read():
            out[rows] = self._block_dot(block, x)
        return out

    def rmatvec(self, u: Array) -> Array:
        """Aᵀ @ u for a vector, or for a matrix with few columns."""
        out = np.zeros((self.n_columns, *u.shape[1:]))
        for rows, block in self.read():
            self._accumulate(out, block, u[rows])
        return out

    def pass_through(self, x: Array, dual: Callable[[Array, slice], Array]) -> tuple[Array, Array]:
        """The predictions A @ x and, in the same pass, Aᵀ @ dual(predictions, rows).

        x may be a vector, or a matrix with few columns.
        """
        # each column of predictions in one piece, as whoever asks for several uses them
        pred = np.empty((self.n_samples, *x.shape[1:]), order="F")
        gradient = np.zeros((self.n_columns, *x.shape[1:]))
        for rows, block in self.read():
            pred[rows] = self._block_dot(block, x)
            self._accumulate(gradient, block, dual(pred[rows], rows))
        return pred, gradient

    def gram(self, weights: Array) -> Array:
        """Σ weights_i a_i a_iᵀ: n_columns × n_columns, symmetric.

        Rows of weight 0 are skipped, unless they are so few that gathering the others costs more.
        """
        out = np.zeros((self.n_columns, self.n_columns))
        p = self.n_features
        used = np.flatnonzero(weights)
        if len(used) < _WORTH_GATHERING * self.n_samples:
            return self.only(used).gram(weights[used])
        for rows, block in self.read(self.gram_rows):
            w = weights[rows]
            out[:p, :p] += self._block_gram(block, w)
            if self.intercept:
                column = block.T @ w
                out[:p, p] += column
                out[p, :p] += column
                out[p, p] += w.sum()
        return out

    def gram_of(self, rows: NDArray[np.intp], weights: Array) -> Array:
        """The same over rows at increasing indices, with their weights."""
        if len(rows) < _WORTH_GATHERING * self.n_samples:
            return self.only(rows).gram(weights)
        whole = np.zeros(self.n_samples)
        whole[rows] = weights
        return self.gram(whole)

    def gram_product(self, basis: Array, weights: Array) -> Array:
        """Σ weights_i a_i (a_iᵀ basis): the Gram matrix times few columns, in one pass."""
        out = np.zeros((self.n_columns, basis.shape[1]))
        for rows, block in self.read():
            self._accumulate(out, block, weights[rows, None] * self._block_dot(block, basis))
        return out

    def columns_sq(self, weights: Array) -> Array:
        """Σ weights_i a_ij² for every column, the ones included."""
        out = np.zeros(self.n_columns)
        for rows, block in self.read():
            out[: self.n_features] += self._block_columns_sq(block, weights[rows])
        if self.intercept:
            out[-1] = weights.sum()
        return out

    def projected_sq(self, basis: Array, weights: Array) -> Array:
        """Σ_j weights_j (basis_jᵀa_i)² for every row, holding no n × k matrix."""
        out = np.empty(self.n_samples)
        for rows, block in self.read():
            projected = self._block_dot(block, basis)
            np.square(projected, out=projected)
            out[rows] = projected @ weights
        return out

    @cached_property
    def row_norms(self) -> Array:
        """Upper bounds on ‖a_i‖₂, the ones included, exact up to rounding.

        NaN or infinite where the row is, or where the squares overflow.
        """
        norms_sq = np.empty(self.n_samples)
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, block in self.read():
                norms_sq[rows] = self._block_norms_sq(block)
            norms_sq += float(self.intercept)
            norms_sq *= 1.0 + self.dot_error
            norms_sq[norms_sq > 0] += self.n_columns * UNDERFLOW
            return self._repair_underflow(np.sqrt(norms_sq))

    def _repair_underflow(self, norms: Array) -> Array:
        """A row whose squares underflow is not a zero row: bound it by its largest entry."""
        doubtful = np.flatnonzero(norms < 1e-140)
        if doubtful.size:
            largest = self.largest_entries(doubtful)
            bound = largest * (np.sqrt(self.n_columns) * (1.0 + 4 * EPS))
            bound = np.where(bound > 0, np.nextafter(bound, np.inf), 0.0)
            norms[doubtful] = np.maximum(norms[doubtful], bound)
        return norms

    def largest_entries(self, rows: NDArray) -> Array:
        """max_j |a_ij| for the given row indices, the ones not counted."""
        largest = np.empty(len(rows))
        for start in range(0, len(rows), self.block_rows):
            part = slice(start, start + self.block_rows)
            largest[part] = self._largest_of(self.take(rows[part]).data)
        return largest

    @abstractmethod
    def _largest_of(self, data: NDArray) -> Array:
        """max_j |a_ij| for every row of a part of the matrix."""

    def only(self, rows: NDArray) -> Design:
        """The rows of a mask, or at increasing indices, read where they lie: nothing is copied."""
        indices = np.flatnonzero(rows) if rows.dtype == bool else rows
        return self if len(indices) == self.n_samples else self._rows_at(indices)

    def _rows_at(self, indices: NDArray[np.intp]) -> Design:
        return RowSubset(self, indices)

    # --- the column of ones -----------------------------------------------------------------

    def _block_dot(self, block: NDArray, x: Array) -> Array:
        if not self.intercept:
            return block @ x
        return block @ x[:-1] + x[-1]

    def _accumulate(self, out: Array, block: NDArray, u: Array) -> None:
        p = self.n_features
        out[:p] += block.T @ u
        if self.intercept:
            out[p] += u.sum(axis=0)


@dataclass(frozen=True, eq=False)
class RowSubset(Design):
    """The rows of a design at increasing indices, without a copy of them all.

    Regions test a shrinking set of rows again and again; a block of it is gathered at a time.
    """

    base: Design
    rows: NDArray[np.intp]

    @property
    def intercept(self) -> bool:
        return self.base.intercept

    @property
    def n_samples(self) -> int:
        return len(self.rows)

    @property
    def n_features(self) -> int:
        return self.base.n_features

    @property
    def row_length(self) -> int:
        return self.base.row_length

    @property
    def block_rows(self) -> int:
        return self.base.block_rows

    @property
    def gram_rows(self) -> int:
        return self.base.gram_rows

    @property
    def data(self) -> NDArray:
        return self.base.take(self.rows).data

    @cached_property
    def row_norms(self) -> Array:
        return self.base.row_norms[self.rows]

    def blocks(self, n_rows: int) -> Iterator[tuple[slice, NDArray]]:
        for start in range(0, self.n_samples, n_rows):
            part = slice(start, min(start + n_rows, self.n_samples))
            yield part, self.gathered(np.arange(part.start, part.stop))

    def _rows_at(self, indices: NDArray[np.intp]) -> Design:
        return RowSubset(self.base, self.rows[indices])

    def gathered(self, rows: NDArray) -> NDArray:
        return self.base.gathered(self.rows[rows])

    def take(self, rows: NDArray) -> Design:
        return self.base.take(self.rows[rows])

    def columns(self, features: NDArray) -> RowSubset:
        return RowSubset(self.base.columns(features), self.rows)

    def _block_norms_sq(self, block: NDArray) -> Array:
        return self.base._block_norms_sq(block)

    def _block_gram(self, block: NDArray, weights: Array) -> Array:
        return self.base._block_gram(block, weights)

    def _block_columns_sq(self, block: NDArray, weights: Array) -> Array:
        return self.base._block_columns_sq(block, weights)

    def _largest_of(self, data: NDArray) -> Array:
        return self.base._largest_of(data)
