"""SciPy CSR matrices, with 32 or 64 bit indices.

Products with rows of a CSR matrix by compiled loops, on several threads.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift.arithmetic import tally
from safesift.arithmetic.fingerprints import fingerprint
from safesift.arithmetic.threads import each, run
from safesift.design.base import Array
from safesift.design.blocks import slices
from safesift.design.rows import COMPILED_TYPES, GramPart, RowDesign, RowSubset

# the rows of a Gram matrix are shared out in stripes where there are so many pairs of entries;
# every stripe reads all entries, so that more would cost more than they save
_MANY_PAIRS, _STRIPES = 2**20, 4
# to put an entry of a column where its row is takes as long as to visit so many in the rows
_PER_SORTED_ENTRY = 4


# data, indices, indptr, offset and rows: see `arithmetic.compiled.csr`
Entries = tuple[NDArray, NDArray, NDArray, int, NDArray]


class CsrProducts(RowDesign):
    """The products of a `RowDesign` whose rows are rows of a CSR matrix.

    A block is a task: its rows are summed one after the other, and the sums of the blocks in their
    order, so that `sum_error` holds and nothing depends on the number of threads.
    """

    @property
    @abstractmethod
    def csr(self) -> Any:
        """The matrix."""

    @property
    @abstractmethod
    def csr_rows(self) -> NDArray[np.intp]:
        """The increasing indices of the rows that belong to the design."""

    @property
    def _rows_read_once(self) -> int:
        # a block is a task already
        return self.block_rows

    def _blocks_read(self) -> list[slice]:
        """The blocks of rows, counted as read."""
        if not self.held:
            tally.count(self.n_samples)
        return slices(self.n_samples, self.block_rows)

    def _entries(self, rows: slice | NDArray) -> Entries:
        """What a compiled loop needs to know of rows; converted where it is not compiled for."""
        matrix, here = self.csr, self.csr_rows[rows]
        if matrix.dtype in COMPILED_TYPES:
            return matrix.data, matrix.indices, matrix.indptr, 0, here
        start, stop = int(matrix.indptr[here[0]]), int(matrix.indptr[here[-1] + 1])
        data = matrix.data[start:stop].astype(np.float64)
        return data, matrix.indices[start:stop], matrix.indptr, start, here

    def _squared_entries(self, rows: slice) -> Entries:
        """The same for a_ij² in place of a_ij."""
        data, indices, indptr, offset, here = self._entries(rows)
        first = int(indptr[here[0]]) - offset
        entries = slice(first, int(indptr[here[-1] + 1]) - offset)
        squares = np.square(data[entries], dtype=np.float64)
        return squares, indices[entries], indptr, offset + first, here

    # --- products ---------------------------------------------------------------------------

    def matvec(self, x: Array) -> Array:
        out, x = np.empty((self.n_samples, *x.shape[1:])), _plain(x)
        run(lambda rows: self._dot(rows, x, out[rows]), self._blocks_read())
        return out

    def rmatvec(self, u: Array) -> Array:
        return self._summed(u.shape[1:], lambda rows: u[rows], self._blocks_read())

    def pass_through(self, x: Array, dual: Callable[[Array, slice], Array]) -> tuple[Array, Array]:
        fused = getattr(dual, "fused", None)
        if fused is not None and x.ndim == 1 and self.compiled is not None:
            return self._fused(x, fused)
        pred, x = np.empty((self.n_samples, *x.shape[1:])), _plain(x)

        def load(rows: slice) -> Array:
            self._dot(rows, x, pred[rows])
            return dual(pred[rows], rows)

        return pred, self._summed(x.shape[1:], load, self._blocks_read())

    def _norms_sq(self) -> Array:
        from safesift.arithmetic.compiled import csr

        out = np.empty(self.n_samples)
        run(lambda rows: csr.norms_sq(*self._entries(rows), out[rows]), self._blocks_read())
        return out

    def columns_sq(self, weights: Array) -> Array:
        blocks = self._blocks_read()
        return self._summed(
            weights.shape[1:], lambda rows: weights[rows], blocks, self._squared_entries
        )

    def gram_product(self, basis: Array, weights: Array) -> Array:
        basis = _plain(basis)

        def load(rows: slice) -> Array:
            projected = np.empty((rows.stop - rows.start, basis.shape[1]))
            self._dot(rows, basis, projected)
            projected *= weights[rows, None]
            return projected

        return self._summed(basis.shape[1:], load, self._blocks_read())

    def projected_sq(self, basis: Array, weights: Array) -> Array:
        from safesift.arithmetic.compiled import csr

        out, basis, weights = np.zeros(self.n_samples), _plain(basis), _plain(weights)
        if weights.shape != basis.shape[1:]:
            # the loop would read past their end
            raise ValueError(f"weights of shape {weights.shape} for {basis.shape[1]} columns.")
        if not basis.size:
            return out
        ones = basis[-1] if self.intercept else np.zeros(basis.shape[1])
        # of a triangular factor only what is not zero is read, where that is worth finding out
        begins = np.zeros(len(basis), dtype=np.intp)
        if self.n_samples > len(basis):
            begins = (basis != 0).argmax(axis=1)
        run(
            lambda rows: csr.projected_sq(
                *self._entries(rows), basis, begins, ones, weights, out[rows]
            ),
            self._blocks_read(),
        )
        return out

    def _grams(self, parts: Sequence[GramPart]) -> list[Array]:
        if any(part.features is not None for part in parts):
            return super()._grams(parts)
        grams = [
            _GramOfPart(self, part) if part.only is None else _ProductsOfPart(self, part)
            for part in parts
        ]
        n_stripes, blocks = self._n_stripes, self._blocks_read()

        def fill(stripe: int) -> None:
            for rows in blocks:
                for gram in grams:
                    gram.add(rows, stripe, n_stripes)

        run(fill, range(n_stripes))
        return [gram.whole() for gram in grams]

    @property
    def _n_stripes(self) -> int:
        n_pairs = 0.5 * self.csr.nnz**2 / max(self.csr.shape[0], 1)
        return _STRIPES if n_pairs > _MANY_PAIRS else 1

    # --- one block --------------------------------------------------------------------------

    def _dot(self, rows: slice, x: Array, out: Array) -> None:
        """out = (rows of the design) @ x."""
        from safesift.arithmetic.compiled import csr

        multiply = csr.dot if x.ndim == 1 else csr.dot_many
        multiply(*self._entries(rows), x, out)
        if self.intercept:
            out += x[-1]

    def _summed(
        self,
        shape: tuple[int, ...],
        load: Callable[[slice], Array],
        blocks: list[slice],
        entries: Callable[[slice], Entries] | None = None,
    ) -> Array:
        """Σ over the blocks of (their rows)ᵀ @ load(rows), or of other entries where theirs are."""
        from safesift.arithmetic.compiled import csr

        add = csr.add_transposed_many if shape else csr.add_transposed
        entries = entries or self._entries

        def part(rows: slice) -> Array:
            u = _plain(load(rows))
            out = np.zeros((self.n_columns, *shape))
            add(*entries(rows), u, out)
            if self.intercept:
                out[-1] = u.sum(axis=0)
            return out

        total = np.zeros((self.n_columns, *shape))
        for partial in each(part, blocks):
            total += partial
        return total


def _plain(values: Array) -> Array:
    """In float64 and in C order, which the loops are compiled for."""
    return np.ascontiguousarray(values, dtype=np.float64)


class _SumOfPart(ABC):
    """A matrix of sums over some rows, a block at a time: sums of blocks are added up."""

    def __init__(self, design: CsrProducts, part: GramPart, shape: tuple[int, int]) -> None:
        self._design, self._part = design, part
        self._total, self._partial = np.zeros((2, *shape))

    def add(self, rows: slice, stripe: int, n_stripes: int) -> None:
        """Add the rows of a block to a stripe of the matrix."""
        first, last = np.searchsorted(self._part.rows, (rows.start, rows.stop))
        if first == last:
            return
        entries = self._design._entries(self._part.rows[first:last])
        self._add(entries, self._part.weights[first:last], stripe, n_stripes)
        mine = slice(stripe, None, n_stripes)
        self._total[mine] += self._partial[mine]
        self._partial[mine] = 0.0

    @abstractmethod
    def _add(self, entries: Entries, weights: Array, stripe: int, n_stripes: int) -> None:
        """Add some rows to a stripe of the sum of their block."""

    @abstractmethod
    def whole(self) -> Array:
        """The matrix, the column of ones included."""


class _GramOfPart(_SumOfPart):
    """The Gram matrix of some rows."""

    def __init__(self, design: CsrProducts, part: GramPart) -> None:
        super().__init__(design, part, (design.n_features, design.n_features))
        self._ones = np.zeros(design.n_features)

    def _add(self, entries: Entries, weights: Array, stripe: int, n_stripes: int) -> None:
        from safesift.arithmetic.compiled.csr import add_gram, add_transposed

        add_gram(*entries, weights, stripe, n_stripes, self._partial)
        if self._design.intercept and stripe == 0:
            ones = np.zeros_like(self._ones)
            add_transposed(*entries, weights, ones)
            self._ones += ones

    def whole(self) -> Array:
        """Both halves, and the column of ones."""
        gram = self._total + self._total.T
        np.fill_diagonal(gram, np.diag(self._total))
        if not self._design.intercept:
            return gram
        ones, weight = self._ones, self._part.weights.sum()
        return np.block([[gram, ones[:, None]], [ones[None], np.array([[weight]])]])


class _ProductsOfPart(_SumOfPart):
    """Some of its rows: products of some columns with all of them."""

    def __init__(self, design: CsrProducts, part: GramPart) -> None:
        assert part.only is not None, "of a whole matrix half is computed"
        super().__init__(design, part, (len(part.only), design.n_columns))
        self._places = np.full(design.n_features, -1)
        self._places[part.only] = np.arange(len(part.only))

    def _add(self, entries: Entries, weights: Array, stripe: int, n_stripes: int) -> None:
        from safesift.arithmetic.compiled.csr import add_products

        ones = self._design.intercept
        add_products(*entries, weights, self._places, ones, stripe, n_stripes, self._partial)

    def whole(self) -> Array:
        return self._total


# entries of a block: so many that a thread is worth its start, and for every column so many that
# adding up the sums of blocks costs little
_BLOCK_ENTRIES, _ENTRIES_PER_COLUMN = 2**20, 8


def rows_per_block(n_entries: int, n_samples: int, n_features: int) -> int:
    """How many rows of a sparse matrix make a block."""
    entries = max(_BLOCK_ENTRIES, _ENTRIES_PER_COLUMN * n_features)
    # as many as whole blocks would be, all of one size: threads share them out evenly
    n_blocks = max(math.ceil(n_entries / entries), 1)
    return max(math.ceil(n_samples / n_blocks), 16)


@dataclass(frozen=True, eq=False, repr=False)
class SparseDesign(CsrProducts):
    """A CSR matrix without duplicate entries, referenced and not copied."""

    matrix: Any
    intercept: bool = False
    held: bool = False

    @property
    def data(self) -> Any:
        return self.matrix

    @property
    def n_samples(self) -> int:
        return self.matrix.shape[0]

    @property
    def n_features(self) -> int:
        return self.matrix.shape[1]

    @cached_property
    def row_length(self) -> int:
        return int(np.diff(self.matrix.indptr).max(initial=0))

    @property
    def n_entries(self) -> int:
        return self.matrix.nnz

    @property
    def block_rows(self) -> int:
        return rows_per_block(self.matrix.nnz, self.n_samples, self.n_features)

    @property
    def csr(self) -> Any:
        return self.matrix

    @property
    def compiled(self) -> tuple[Any, ...] | None:
        matrix = self.matrix
        known = matrix.dtype in COMPILED_TYPES
        return (matrix.data, matrix.indices, matrix.indptr) if known else None

    @cached_property
    def csr_rows(self) -> NDArray[np.intp]:
        return np.arange(self.n_samples)

    def block(self, rows: slice) -> Any:
        data, indices, indptr = self.matrix.data, self.matrix.indices, self.matrix.indptr
        entries = slice(indptr[rows.start], indptr[rows.stop])
        starts = indptr[rows.start : rows.stop + 1] - indptr[rows.start]
        values = data[entries].astype(np.float64, copy=False)
        shape = (rows.stop - rows.start, self.n_features)
        return sparse.csr_array((values, indices[entries], starts), shape=shape)

    def gathered(self, rows: NDArray) -> Any:
        return self.matrix[rows].astype(np.float64, copy=False)

    def fingerprint(self) -> bytes:
        return fingerprint(self.intercept, self.matrix)

    def as_held(self) -> SparseDesign:
        return replace(self, held=True)

    def take(self, rows: NDArray) -> SparseDesign:
        return SparseDesign(self.matrix[rows], self.intercept)

    def _rows_at(self, indices: NDArray[np.intp]) -> RowDesign:
        return SparseRows(self, indices)

    def columns(self, features: NDArray) -> SparseDesign:
        chosen = np.flatnonzero(features)
        if not len(chosen):
            empty = sparse.csr_array((self.n_samples, 0), dtype=self.matrix.dtype)
            return SparseDesign(empty, self.intercept)
        by_rows = self.compiled is not None and self._many_entries(chosen)
        part = self._out_of_rows(chosen) if by_rows else self.by_columns[:, chosen].tocsr()
        return SparseDesign(part, self.intercept)

    def _many_entries(self, features: NDArray[np.intp]) -> bool:
        """Whether to go through all rows costs less than to sort the entries of some columns."""
        return _PER_SORTED_ENTRY * int(self.column_lengths[features].sum()) > self.matrix.nnz

    @cached_property
    def column_lengths(self) -> NDArray[np.intp]:
        """How many entries every column has."""
        return self._column_counts().sum(axis=0)

    def _column_counts(self) -> NDArray[np.intp]:
        """How many entries every column has in each of the blocks."""
        from safesift.arithmetic.compiled import csr

        blocks = slices(self.n_samples, self.block_rows)
        counts = np.zeros((len(blocks), self.n_features), dtype=np.intp)
        indices, indptr = self.matrix.indices, self.matrix.indptr

        def count(k: int) -> None:
            csr.count_columns(indices, indptr, blocks[k].start, blocks[k].stop, counts[k])

        run(count, range(len(blocks)))
        return counts

    def _out_of_rows(self, features: NDArray[np.intp]) -> Any:
        """Some columns, found in the rows."""
        from safesift.arithmetic.compiled import csr

        data, indices, indptr = self.matrix.data, self.matrix.indices, self.matrix.indptr
        place = np.full(self.n_features, -1, dtype=indices.dtype)
        place[features] = np.arange(len(features))
        blocks, starts = self._blocks_read(), np.zeros(self.n_samples + 1, dtype=indptr.dtype)
        run(
            lambda rows: csr.count_entries(
                indices, indptr, rows.start, rows.stop, place, starts[1:]
            ),
            blocks,
        )
        np.cumsum(starts, out=starts)
        values, places = (np.empty(starts[-1], kind) for kind in (data.dtype, indices.dtype))
        run(
            lambda rows: csr.take_entries(
                data, indices, indptr, rows.start, rows.stop, place, starts, values, places
            ),
            blocks,
        )
        shape = (self.n_samples, len(features))
        return sparse.csr_array((values, places, starts), shape=shape)

    @cached_property
    def by_columns(self) -> Any:
        """A copy in CSC: reading some columns then costs their entries, and not all.

        Every block knows where its entries of each column go: behind those of the blocks before.
        """
        from safesift.arithmetic.compiled import csr

        data, indices, indptr = self.matrix.data, self.matrix.indices, self.matrix.indptr
        blocks, counts = slices(self.n_samples, self.block_rows), self._column_counts()
        starts = np.zeros(self.n_features + 1, dtype=indptr.dtype)
        np.cumsum(counts.sum(axis=0), out=starts[1:])
        places = np.cumsum(counts, axis=0) - counts + starts[:-1]
        rows = np.empty(len(indices), dtype=np.result_type(indices.dtype, indptr.dtype))
        values = np.empty_like(data)

        def sort(k: int) -> None:
            first, last = blocks[k].start, blocks[k].stop
            csr.sort_entries(data, indices, indptr, first, last, places[k], values, rows)

        run(sort, range(len(blocks)))
        return sparse.csc_array((values, rows, starts), shape=self.matrix.shape)


@dataclass(frozen=True, eq=False, repr=False)
class SparseRows(CsrProducts, RowSubset):
    """Some rows of a CSR matrix, at increasing indices, read where they lie."""

    base: SparseDesign

    @property
    def csr(self) -> Any:
        return self.base.matrix

    @property
    def csr_rows(self) -> NDArray[np.intp]:
        return self.rows

    def _rows_at(self, indices: NDArray[np.intp]) -> RowDesign:
        return SparseRows(self.base, self.rows[indices])

    def columns(self, features: NDArray) -> SparseRows:
        return SparseRows(self.base.columns(features), self.rows)
