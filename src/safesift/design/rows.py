"""Matrices whose rows can be read: all operations, written once over blocks of rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic import tally
from safesift.arithmetic.fingerprints import fingerprint
from safesift.arithmetic.numerics import EPS, UNDERFLOW
from safesift.arithmetic.threads import each
from safesift.design import block_algebra as algebra
from safesift.design.base import Array, Design
from safesift.design.blocks import BlockedRows, slices

# where a larger share of the rows is used, reading all of them costs less than gathering some
_WORTH_GATHERING = 0.6
# rows that several sums need are read together where they are so many times as many as there are
_SHARED = 1.2
# entries of the Gram matrices that are held at a time, of a task each
_GRAM_ENTRIES = 2**22
# up to so many vectors are multiplied by compiled loops: BLAS is slow where a matrix is so narrow
_FEW_VECTORS = 4
# the types that loops are compiled for: blocks of any other are converted first
COMPILED_TYPES = (np.float32, np.float64)


class GramPart(NamedTuple):
    """Σ weights_i a_i a_iᵀ over some rows, in all columns or at some features (and the ones).

    Row numbers rise, weights are positive. `only` are the rows of that matrix to compute, counted
    among these features.
    """

    rows: NDArray[np.intp]
    weights: Array
    features: NDArray[np.intp] | None = None
    only: NDArray[np.intp] | None = None


class RowDesign(BlockedRows):
    """A matrix whose rows can be read in blocks, dense or CSR.

    The data stay in the type they came in. Products walk over blocks of rows and are computed in
    float64 block by block, so that float32 or integer data are exact and never copied whole, and
    so that sums over the samples are two-level sums with a small rounding error. Subclasses give
    the blocks.
    """

    @abstractmethod
    def gathered(self, rows: NDArray) -> NDArray:
        """The rows at some indices as one block, float64."""

    @abstractmethod
    def take(self, rows: NDArray) -> RowDesign:
        """The rows selected by a boolean mask or by indices, in the type they came in."""

    def numbers_of(self, rows: NDArray) -> Array:
        """The rows at some indices, a few, as a dense array of this process."""
        data: Any = self.take(rows).data
        return algebra.dense(data).astype(np.float64)

    def hold(self, rows: NDArray) -> RowDesign:
        """A copy of some rows that is read again and again, and counted once."""
        copied = self.take(rows)
        tally.count(copied.n_samples)
        return copied.as_held()

    def as_held(self) -> RowDesign:
        """The same rows, counted no more; a kind of matrix that cannot tell is counted on."""
        return self

    @abstractmethod
    def columns(self, features: NDArray) -> RowDesign:
        """The features selected by a boolean mask, and the ones if there are any."""

    @property
    @abstractmethod
    def data(self) -> NDArray:
        """The matrix as it came, without the column of ones."""

    def fingerprint(self) -> bytes:
        blocks = (self.block(rows) for rows in slices(self.n_samples, self.block_rows))
        return fingerprint(self.intercept, *map(fingerprint, blocks))

    # --- products ---------------------------------------------------------------------------

    def matvec(self, x: Array) -> Array:
        out = np.empty((self.n_samples, *x.shape[1:]))

        def dot(rows: slice, block: NDArray) -> None:
            out[rows] = self._block_dot(block, x)

        self._visit(dot, self._rows_read_once)
        return out

    def rmatvec(self, u: Array) -> Array:
        if self.compiled is not None and math.prod(u.shape[1:]) <= _FEW_VECTORS:
            return self._compiled_rmatvec(u)

        def add(sums: list[Array], rows: slice, block: NDArray) -> None:
            self._accumulate(sums[0], block, u[rows])

        return self._sum([(self.n_columns, *u.shape[1:])], add, self._rows_read_once)[0]

    def pass_through(self, x: Array, dual: Callable[[Array, slice], Array]) -> tuple[Array, Array]:
        fused = getattr(dual, "fused", None)
        if fused is not None and x.ndim == 1 and self.compiled is not None:
            return self._fused(x, fused)
        # each column of predictions in one piece, as whoever asks for several uses them
        pred = np.empty((self.n_samples, *x.shape[1:]), order="F")

        def add(sums: list[Array], rows: slice, block: NDArray) -> None:
            pred[rows] = self._block_dot(block, x)
            self._accumulate(sums[0], block, dual(pred[rows], rows))

        # products with several columns are worth larger blocks
        n_rows = self.block_rows if x.ndim == 1 else self._rows_read_once
        (gradient,) = self._sum([(self.n_columns, *x.shape[1:])], add, n_rows)
        return pred, gradient

    @property
    def compiled(self) -> tuple[Any, ...] | None:
        """The rows as compiled loops know them; None where they read no such matrix."""
        return None

    @property
    def _fused_rows(self) -> int:
        """The rows of a block that compiled loops read twice, where they lie."""
        return self.block_rows

    @property
    def sum_error(self) -> float:
        return max(map(self._error_of_sums, (self._rows_read_once, self._fused_rows)))

    def _fused(self, x: Array, fused: Callable[..., None]) -> tuple[Array, Array]:
        """`pass_through` with one compiled loop for each task."""
        pred, x = np.empty(self.n_samples), np.ascontiguousarray(x, dtype=np.float64)

        def add(task: slice, gradient: Array) -> None:
            fused(self.compiled, task, self._fused_rows, x, self.intercept, pred, gradient)

        return pred, self._sum_over_tasks(add, (self.n_columns,))

    def _compiled_rmatvec(self, u: Array) -> Array:
        """`rmatvec` with a few vectors, by a loop that does not read rows it has no use for."""
        from safesift.arithmetic.compiled.transposed import add_transposed

        vectors = u.reshape(self.n_samples, math.prod(u.shape[1:]))
        loads = np.ascontiguousarray(vectors.T, dtype=np.float64)

        def add(task: slice, sums: Array) -> None:
            ends = task.start, task.stop, self._fused_rows
            add_transposed(self.compiled, *ends, loads, self.intercept, sums)

        sums = self._sum_over_tasks(add, (len(loads), self.n_columns))
        return sums.T.reshape(self.n_columns, *u.shape[1:])

    def _sum_over_tasks(self, add: Callable[[slice, Array], None], shape: tuple[int, ...]) -> Array:
        """What compiled loops add up over tasks, one call each, and then over the tasks."""

        def part(task: slice) -> Array:
            sums = np.zeros(shape)
            add(task, sums)
            return sums

        if not self.held:
            tally.count(self.n_samples)
        total = np.zeros(shape)
        for sums in each(part, self._tasks(self._fused_rows)):
            total += sums
        return total

    def gram(self, weights: Array) -> Array:
        """Σ weights_i a_i a_iᵀ: n_columns × n_columns, symmetric; rows of weight 0 are skipped."""
        used = np.flatnonzero(weights)
        return self.grams([GramPart(used, weights[used])])[0]

    def weighted_sums(self, quadratic: Array, linear: Array) -> tuple[Array, Array]:
        """Σ quadratic_i a_i a_iᵀ and Σ linear_i a_i for numbers of any sign, in one pass.

        Both to `gram_error`: relative to ccᵀ for c_j² = Σ |quadratic_i|aᵢⱼ², and to
        Σ |linear_i|·‖aᵢ‖.
        """

        def add(sums: list[Array], rows: slice, block: NDArray) -> None:
            whole = algebra.with_ones(block) if self.intercept else block
            sums[0] += algebra.signed_gram(whole, quadratic[rows])
            sums[1] += whole.T @ linear[rows]

        d = self.n_columns
        gram, column = self._sum([(d, d), (d,)], add, self.gram_rows, self._gram_tasks)
        return gram, column

    @property
    def _gram_tasks(self) -> int:
        """So many matrices are held at a time; where they are large, threads share one."""
        p = max(self.n_columns, 1)
        return 1 if p > algebra.TILE else max(_GRAM_ENTRIES // p**2, 1)

    @property
    def source(self) -> RowDesign:
        """The design that is read where this one is: another one for some of its columns."""
        return self

    @property
    def selected(self) -> NDArray[np.intp] | None:
        """Which features of the source these are; None for all."""
        return None

    def grams(self, parts: Sequence[GramPart]) -> list[Array]:
        """Several Gram matrices in one pass: every row that some of them need is read once."""
        rows = self._of_any(parts)
        if len(parts) > 1 and sum(len(part.rows) for part in parts) <= _SHARED * len(rows):
            # hardly a row serves two of them
            return [gram for part in parts for gram in self.grams([part])]
        if len(rows) >= _WORTH_GATHERING * self.n_samples:
            return self._grams(parts)
        among = [part._replace(rows=_places(part.rows, rows)) for part in parts]
        return self.only(rows)._grams(among)

    def _of_any(self, parts: Sequence[GramPart]) -> NDArray[np.intp]:
        """The rows that belong to some part."""
        if len(parts) == 1:
            return parts[0].rows
        used = np.zeros(self.n_samples, dtype=bool)
        for part in parts:
            used[part.rows] = True
        return np.flatnonzero(used)

    def _grams(self, parts: Sequence[GramPart]) -> list[Array]:
        """The same, reading all rows."""

        def add(sums: list[Array], rows: slice, block: NDArray) -> None:
            for total, part in zip(sums, parts, strict=True):
                used, weights = _part_of(part, rows, block)
                if len(weights) == 0:
                    continue
                if part.only is None:
                    self._add_gram(total, used, weights)
                else:
                    self._add_products(total, used, weights, part.only)

        shapes = [self._gram_shape(part) for part in parts]
        return self._sum(shapes, add, self.gram_rows, max(self._gram_tasks // len(parts), 1))

    def _gram_shape(self, part: GramPart) -> tuple[int, int]:
        n_features = self.n_features if part.features is None else len(part.features)
        n_columns = n_features + self.intercept
        return (n_columns if part.only is None else len(part.only)), n_columns

    def _add_gram(self, total: Array, block: NDArray, weights: Array) -> None:
        """Add Σ weights_i a_i a_iᵀ over the rows of a block, the ones included."""
        p = block.shape[1]
        algebra.add_gram(total[:p, :p], block, weights)
        if self.intercept:
            column = block.T @ weights
            total[:p, p] += column
            total[p, :p] += column
            total[p, p] += weights.sum()

    def _add_products(
        self, total: Array, block: NDArray, weights: Array, only: NDArray[np.intp]
    ) -> None:
        """Add Σ weights_i a_ij a_iᵀ over the rows of a block, for some features j."""
        p = block.shape[1]
        scaled = algebra.scaled(algebra.taken(block, only, axis=1), weights)
        total[:, :p] += algebra.dense(scaled.T @ block)
        if self.intercept:
            total[:, p] += np.asarray(scaled.sum(axis=0)).ravel()

    def gram_product(self, basis: Array, weights: Array) -> Array:
        """Σ weights_i a_i (a_iᵀ basis): the Gram matrix times few columns, in one pass."""

        def add(sums: list[Array], rows: slice, block: NDArray) -> None:
            self._accumulate(sums[0], block, weights[rows, None] * self._block_dot(block, basis))

        return self._sum([(self.n_columns, basis.shape[1])], add, self._rows_read_once)[0]

    def columns_sq(self, weights: Array) -> Array:
        """Σ weights_i a_ij² for every column, the ones included; for several weights as columns."""

        def add(sums: list[Array], rows: slice, block: NDArray) -> None:
            self._accumulate(sums[0], algebra.squared(block), weights[rows])

        return self._sum([(self.n_columns, *weights.shape[1:])], add, self._rows_read_once)[0]

    def projected_sq(self, basis: Array, weights: Array) -> Array:
        """Σ_j weights_j (basis_jᵀa_i)² for every row, holding no n × k matrix."""
        out = np.empty(self.n_samples)

        def project(rows: slice, block: NDArray) -> None:
            projected = self._block_dot(block, basis)
            np.square(projected, out=projected)
            out[rows] = projected @ weights

        self._visit(project, self._rows_read_once)
        return out

    def scaled_norms(self, scales: Array) -> Array:
        """Upper bounds on the norms of the rows with their columns scaled, the ones included."""
        norms_sq, weights = np.empty(self.n_samples), np.square(scales)

        def fill(rows: slice, block: NDArray) -> None:
            norms_sq[rows] = algebra.weighted_norms_sq(block, weights[: self.n_features])

        self._visit(fill, self._rows_read_once)
        norms_sq += weights[self.n_features :].sum()
        # a square that underflows is lost, and its weight may be large
        lost = self.n_columns * UNDERFLOW * (1.0 + float(weights.max(initial=0.0)))
        return np.sqrt(norms_sq * (1.0 + 2.0 * self.dot_error) + lost)

    def _norms_sq(self) -> Array:
        """Squared norms of the rows, the ones not counted."""
        norms_sq = np.empty(self.n_samples)

        def fill(rows: slice, block: NDArray) -> None:
            norms_sq[rows] = algebra.norms_sq(block)

        self._visit(fill, self._rows_read_once)
        return norms_sq

    @cached_property
    def row_norms(self) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            norms_sq = self._norms_sq()
            norms_sq += float(self.intercept)
            norms_sq *= 1.0 + self.dot_error
            np.add(norms_sq, self.n_columns * UNDERFLOW, out=norms_sq, where=norms_sq > 0)
            return self._repair_underflow(np.sqrt(norms_sq))

    @cached_property
    def feature_norms_sq(self) -> Array:
        """‖a_i‖² without the column of ones."""
        without_ones = _with_fields(self, intercept=False) if self.intercept else self
        return without_ones.row_norms**2

    def _repair_underflow(self, norms: Array) -> Array:
        """A row whose squares underflow is not a zero row: bound it by its largest entry."""
        doubtful = (norms < 1e-140).nonzero()[0]
        if doubtful.size:
            largest = self.largest_entries(doubtful)
            bound = largest * (np.sqrt(self.n_columns) * (1.0 + 4 * EPS))
            bound = np.where(bound > 0, np.nextafter(bound, np.inf), 0.0)
            norms[doubtful] = np.maximum(norms[doubtful], bound)
        return norms

    def largest_entries(self, rows: NDArray) -> Array:
        """max_j |a_ij| for the given row indices, the ones not counted."""
        largest = np.empty(len(rows))
        for part in slices(len(rows), self.block_rows):
            largest[part] = algebra.largest(self.take(rows[part]).data)
        return largest

    def only(self, rows: NDArray) -> RowDesign:
        """The rows of a mask, or at increasing indices, read where they lie: nothing is copied."""
        indices = np.flatnonzero(rows) if rows.dtype == bool else rows
        return self if len(indices) == self.n_samples else self._rows_at(indices)

    def _rows_at(self, indices: NDArray[np.intp]) -> RowDesign:
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


def rows_of(design: Design) -> RowDesign:
    """The design, for what reads its rows; a kernel's functions are no rows."""
    if not isinstance(design, RowDesign):
        raise TypeError(f"{type(design).__name__} has no rows that can be read.")
    return design


def _with_fields(design: Any, **fields: Any) -> RowDesign:
    """The same design but for some fields: it is a dataclass, of whatever kind."""
    return replace(design, **fields)


def _places(some: NDArray[np.intp], rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Where some of these rows are among them; the numbers of both rise."""
    return np.arange(len(rows)) if some is rows else np.searchsorted(rows, some)


def _part_of(part: GramPart, rows: slice, block: NDArray) -> tuple[NDArray, Array]:
    """The rows of a block that belong to a part, or all of them with zeros among their weights."""
    first, last = np.searchsorted(part.rows, (rows.start, rows.stop))
    here, weights = part.rows[first:last] - rows.start, part.weights[first:last]
    if 0 < len(here) < _WORTH_GATHERING * block.shape[0]:
        block = algebra.taken(block, here, axis=0)
    elif 0 < len(here) < block.shape[0]:
        spread = np.zeros(block.shape[0])
        spread[here] = weights
        weights = spread
    if part.features is not None:
        block = algebra.taken(block, part.features, axis=1)
    return block, weights


@dataclass(frozen=True, eq=False, repr=False)
class DerivedRows(RowDesign):
    """Rows that are made of those of another design when they are read: like it, unless it says."""

    base: RowDesign

    @property
    def intercept(self) -> bool:
        return self.base.intercept

    @property
    def held(self) -> bool:
        return self.base.held

    @property
    def n_samples(self) -> int:
        return self.base.n_samples

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


@dataclass(frozen=True, eq=False, repr=False)
class RowSubset(DerivedRows):
    """The rows of a design at increasing indices, without a copy of them all.

    Regions test a shrinking set of rows again and again; a block of it is gathered at a time.
    """

    rows: NDArray[np.intp]

    @property
    def n_samples(self) -> int:
        return len(self.rows)

    @property
    def data(self) -> NDArray:
        return self.base.take(self.rows).data

    @cached_property
    def row_norms(self) -> Array:
        return self.base.row_norms[self.rows]

    @cached_property
    def feature_norms_sq(self) -> Array:
        return self.base.feature_norms_sq[self.rows]

    def block(self, rows: slice) -> NDArray:
        return self.base.gathered(self.rows[rows])

    def _rows_at(self, indices: NDArray[np.intp]) -> RowDesign:
        return RowSubset(self.base, self.rows[indices])

    def gathered(self, rows: NDArray) -> NDArray:
        return self.base.gathered(self.rows[rows])

    def take(self, rows: NDArray) -> RowDesign:
        return self.base.take(self.rows[rows])

    def columns(self, features: NDArray) -> RowSubset:
        return RowSubset(self.base.columns(features), self.rows)
