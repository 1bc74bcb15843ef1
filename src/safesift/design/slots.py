"""Rows that come and go: they lie in slots, which are written to and read from one by one.

Writing touches only the slots that are written to, or makes a new matrix. So whoever holds other
slots never notices, and a matrix from before a write that was given up is as good as ever. Two that
write to the same slots would: of several owners each takes a copy first (`SlotDesign.copied`).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift.arithmetic import tally
from safesift.design import block_algebra as algebra
from safesift.design.base import Array
from safesift.design.dense import DenseDesign
from safesift.design.factory import as_design
from safesift.design.rows import RowDesign, RowSubset, rows_of
from safesift.design.sparse import SparseDesign, rows_per_block

Slots = NDArray[np.intp]

# a matrix that grows takes room for this many times what it holds
_GROWTH = 1.25


class SlotDesign(RowDesign):
    """All slots. What a slot holds that nobody uses is of no account: an older row, or zeros.

    Attributes
    ----------
    norms : array of shape (n_samples,)
        `row_norms`, found when rows are written.
    """

    norms: Array

    @property
    def row_norms(self) -> Array:
        return self.norms

    @property
    def feature_norms_sq(self) -> Array:
        return as_design(self.data).row_norms ** 2

    @abstractmethod
    def written(self, slots: Slots, X: Any, held: Slots) -> Self:
        """With the rows of X in some slots, also beyond the last one; those in `held` ones stay."""

    def at(self, slots: Slots) -> SlotRows:
        """The rows in some slots, in any order."""
        return SlotRows(self, slots)

    def copied(self) -> Self:
        """The same rows in slots of their own."""
        design: Any = self  # a dataclass, as all of them are
        values = {one.name: getattr(self, one.name) for one in fields(design)}
        arrays = {name: array for name, array in values.items() if isinstance(array, np.ndarray)}
        return replace(design, **{name: array.copy() for name, array in arrays.items()})

    def _with_norms(self, slots: Slots, X: RowDesign) -> Array:
        """The norms of all slots, once X is written."""
        norms, needed = self.norms, int(slots.max(initial=-1)) + 1
        if needed > len(norms):
            norms = grown(norms, room_for(needed), float(self.intercept))
        norms[slots] = X.row_norms
        return norms


@dataclass(frozen=True, eq=False, repr=False)
class SlotRows(RowSubset):
    """The rows in some slots. Those that fit into one block are gathered once, ones included.

    Few are read at a time, and then for several products: going through blocks would take longer.
    """

    @cached_property
    def _block(self) -> Any:
        """Those rows; None where they do not fit."""
        if len(self.rows) > self.base.block_rows:
            return None
        block = self.base.gathered(self.rows)
        return algebra.with_ones(block) if self.base.intercept else block

    def matvec(self, x: Array) -> Array:
        block = self._block
        if block is None:
            return super().matvec(x)
        tally.count(len(self.rows))
        return block @ x

    def weighted_sums(self, quadratic: Array, linear: Array) -> tuple[Array, Array]:
        block = self._block
        if block is None:
            return super().weighted_sums(quadratic, linear)
        tally.count(len(self.rows))
        return algebra.signed_gram(block, quadratic), block.T @ linear


def as_slots(X: Any, intercept: bool) -> SlotDesign:
    """A copy of the rows of X in the first slots, and room for more."""
    (n, p), nowhere, no_norms = X.shape, np.empty(0, dtype=np.intp), np.empty(0)
    if sparse.issparse(X):
        values = np.empty(0, dtype=X.dtype)
        empty: SlotDesign = SparseSlots(values, nowhere, nowhere, nowhere, no_norms, p, intercept)
    else:
        empty = DenseSlots(np.empty((0, p), dtype=X.dtype), intercept, norms=no_norms)
    return empty.written(np.arange(n), X, nowhere)


def grown(array: NDArray, capacity: int, fill: Any = 0) -> NDArray:
    """A copy with room for more entries."""
    larger = np.full((capacity, *array.shape[1:]), fill, dtype=array.dtype)
    larger[: len(array)] = array
    return larger


def room_for(n: int) -> int:
    """How many slots to make where n are needed."""
    return int(_GROWTH * n) + 16


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class DenseSlots(SlotDesign, DenseDesign):
    """An array with a row for each slot."""

    norms: Array

    def written(self, slots: Slots, X: Any, held: Slots) -> DenseSlots:
        new = DenseDesign(X.toarray() if sparse.issparse(X) else X, self.intercept)
        norms, array = self._with_norms(slots, new), self.array
        if len(norms) > len(array):
            array = grown(array, len(norms))
        array = array.astype(np.result_type(array.dtype, new.array.dtype), copy=False)
        array[slots] = new.array
        return replace(self, array=array, norms=norms)


@dataclass(frozen=True, eq=False, repr=False)
class SparseSlots(SlotDesign):
    """The entries of CSR rows one after another; rows that go leave holes until there are many.

    Attributes
    ----------
    values, indices : arrays
        Of the entries, `used` of them.
    starts, lengths : arrays of shape (n_samples,)
        Where the entries of each row lie.
    """

    values: NDArray
    indices: NDArray
    starts: Slots
    lengths: Slots
    norms: Array
    n_features: int
    intercept: bool
    used: int = 0

    # --- writing ----------------------------------------------------------------------------

    def written(self, slots: Slots, X: Any, held: Slots) -> SparseSlots:
        new = rows_of(as_design(sparse.csr_array(X), self.intercept))
        norms = self._with_norms(slots, new)
        return self._with_room(len(norms), new.data, held)._appended(slots, new.data, norms)

    def _with_room(self, capacity: int, X: Any, held: Slots) -> SparseSlots:
        """For so many slots, and for the entries of X in a type that holds both."""
        wide, kind = self, np.result_type(self.values.dtype, X.dtype)
        if kind != self.values.dtype:
            wide = replace(wide, values=self.values.astype(kind))
        if capacity > self.n_samples:
            starts, lengths = grown(self.starts, capacity), grown(self.lengths, capacity)
            wide = replace(wide, starts=starts, lengths=lengths)
        return wide._packed(held, X.nnz) if wide.used + X.nnz > len(wide.values) else wide

    def _packed(self, held: Slots, n_more: int) -> SparseSlots:
        """Without holes, and with room for more entries."""
        kept, lengths, starts = self._entries(held), np.zeros_like(self.lengths), self.starts.copy()
        lengths[held] = self.lengths[held]
        starts[held] = np.cumsum(lengths[held]) - lengths[held]
        capacity = room_for(2 * len(kept) + n_more)
        values, indices = grown(self.values[kept], capacity), grown(self.indices[kept], capacity)
        return replace(
            self, values=values, indices=indices, starts=starts, lengths=lengths, used=len(kept)
        )

    def _appended(self, slots: Slots, X: Any, norms: Array) -> SparseSlots:
        end = self.used + X.nnz
        self.values[self.used : end] = X.data
        self.indices[self.used : end] = X.indices
        self.starts[slots] = self.used + X.indptr[:-1]
        self.lengths[slots] = np.diff(X.indptr)
        return replace(self, norms=norms, used=end)

    # --- reading ----------------------------------------------------------------------------

    def _entries(self, slots: Slots) -> Slots:
        """Where the entries of some rows lie."""
        lengths = self.lengths[slots]
        ends = np.cumsum(lengths)
        return np.repeat(self.starts[slots] - (ends - lengths), lengths) + np.arange(lengths.sum())

    def _matrix(self, slots: Slots, kind: Any) -> Any:
        entries = self._entries(slots)
        indptr = np.concatenate([[0], np.cumsum(self.lengths[slots])])
        values = self.values[entries].astype(kind, copy=False)
        shape = (len(slots), self.n_features)
        return sparse.csr_array((values, self.indices[entries], indptr), shape=shape)

    @property
    def n_samples(self) -> int:
        return len(self.starts)

    @property
    def row_length(self) -> int:
        return self.n_features

    @property
    def block_rows(self) -> int:
        return rows_per_block(self.used, self.n_samples, self.n_features)

    @property
    def data(self) -> Any:
        return self._matrix(np.arange(self.n_samples), self.values.dtype)

    def block(self, rows: slice) -> Any:
        return self.gathered(np.arange(rows.start, rows.stop))

    def gathered(self, rows: Slots) -> Any:
        return self._matrix(rows, np.float64)

    def take(self, rows: NDArray) -> SparseDesign:
        slots = np.flatnonzero(rows) if rows.dtype == bool else rows
        return SparseDesign(self._matrix(slots, self.values.dtype), self.intercept)

    def columns(self, features: NDArray) -> SparseDesign:
        return SparseDesign(self.data, self.intercept).columns(features)
