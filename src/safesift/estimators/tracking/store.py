"""Rows in slots: a matrix that rows can be written to, and read from, one by one.

A column of ones is stored with them where the model has an intercept. Writing touches only the
slots that are written to, or makes a new store: whoever holds the other slots never notices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]
Slots = NDArray[np.intp]

# a store that grows takes room for this many times what it holds
_GROWTH = 1.25


class Store(Protocol):
    """What a store offers.

    Attributes
    ----------
    capacity : int
        Number of slots.
    """

    capacity: int

    def written(self, slots: Slots, X: Any, live: Slots) -> Self:
        """With the rows of X in some slots; only the rows in the `live` slots need be kept."""

    def block(self, slots: Slots) -> Any:
        """The rows in some slots in float64, the ones included."""

    def rows(self, slots: Slots) -> Any:
        """The rows in some slots as they came."""


def make_store(X: Any, intercept: bool) -> Store:
    """A store with a copy of the rows of X in its first slots."""
    n, p = X.shape
    if sparse.issparse(X):
        nothing = np.empty(0, dtype=np.intp)
        empty = SparseStore(
            np.empty(0, dtype=X.dtype), np.empty(0, dtype=np.intp), nothing, nothing, p, intercept
        )
    else:
        empty = DenseStore(np.empty((0, p + intercept), dtype=X.dtype), intercept)
    return empty.written(np.arange(n), X, np.empty(0, dtype=np.intp))


def grown(array: NDArray, capacity: int, fill: Any = 0) -> NDArray:
    """A copy with room for more entries."""
    larger = np.full((capacity, *array.shape[1:]), fill, dtype=array.dtype)
    larger[: len(array)] = array
    return larger


def room_for(n: int) -> int:
    """How many slots to make where n are needed."""
    return int(_GROWTH * n) + 16


@dataclass(frozen=True, eq=False)
class DenseStore:
    """An array."""

    buffer: NDArray
    intercept: bool

    @property
    def capacity(self) -> int:
        return len(self.buffer)

    def written(self, slots: Slots, X: Any, live: Slots) -> DenseStore:
        if sparse.issparse(X):
            X = X.toarray()
        buffer = self.buffer
        kind = np.result_type(buffer.dtype, X.dtype)
        needed = int(slots.max(initial=-1)) + 1
        if kind != buffer.dtype or needed > len(buffer):
            capacity = max(len(buffer), room_for(needed) if needed > len(buffer) else 0)
            buffer = grown(buffer.astype(kind, copy=False), capacity)
        buffer[slots, : X.shape[1]] = X
        if self.intercept:
            buffer[slots, -1] = 1.0
        return self if buffer is self.buffer else DenseStore(buffer, self.intercept)

    def block(self, slots: Slots) -> Array:
        return self.buffer[slots].astype(np.float64, copy=False)

    def rows(self, slots: Slots) -> NDArray:
        return self.buffer[slots, :-1] if self.intercept else self.buffer[slots]


@dataclass(frozen=True, eq=False)
class SparseStore:
    """The entries of CSR rows one after another; removed rows leave holes until there are many."""

    data: NDArray
    indices: NDArray
    starts: Slots
    lengths: Slots
    n_features: int
    intercept: bool
    used: int = 0

    @property
    def capacity(self) -> int:
        return len(self.starts)

    def written(self, slots: Slots, X: Any, live: Slots) -> SparseStore:
        X = sparse.csr_array(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        if self.intercept:
            ones = np.ones((X.shape[0], 1), dtype=X.dtype)
            X = sparse.hstack([X, sparse.csr_array(ones)], format="csr")
        store = self._with_room(slots, X, live)
        return store._appended(slots, X)

    def _with_room(self, slots: Slots, X: Any, live: Slots) -> SparseStore:
        store, needed = self, int(slots.max(initial=-1)) + 1
        if np.result_type(store.data.dtype, X.dtype) != store.data.dtype:
            kind = np.result_type(store.data.dtype, X.dtype)
            store = replace(store, data=store.data.astype(kind))
        if needed > store.capacity:
            starts = grown(store.starts, room_for(needed))
            store = replace(store, starts=starts, lengths=grown(store.lengths, len(starts)))
        if store.used + X.nnz > len(store.data):
            store = store._packed(live, X.nnz)
        return store

    def _packed(self, live: Slots, n_more: int) -> SparseStore:
        """Without holes, and with room for more entries."""
        kept, starts = self._entries(live), self.starts.copy()
        starts[live] = np.cumsum(self.lengths[live]) - self.lengths[live]
        capacity = room_for(2 * len(kept) + n_more)
        return replace(
            self,
            data=grown(self.data[kept], capacity),
            indices=grown(self.indices[kept], capacity),
            starts=starts,
            used=len(kept),
        )

    def _appended(self, slots: Slots, X: Any) -> SparseStore:
        end = self.used + X.nnz
        self.data[self.used : end] = X.data
        self.indices[self.used : end] = X.indices
        self.starts[slots] = self.used + X.indptr[:-1]
        self.lengths[slots] = np.diff(X.indptr)
        return replace(self, used=end)

    def _entries(self, slots: Slots) -> Slots:
        """Where the entries of some rows lie."""
        lengths = self.lengths[slots]
        ends = np.cumsum(lengths)
        return np.repeat(self.starts[slots] - (ends - lengths), lengths) + np.arange(lengths.sum())

    def block(self, slots: Slots) -> Any:
        entries = self._entries(slots)
        indptr = np.concatenate([[0], np.cumsum(self.lengths[slots])])
        data = self.data[entries].astype(np.float64, copy=False)
        shape = (len(slots), self.n_features + self.intercept)
        return sparse.csr_array((data, self.indices[entries], indptr), shape=shape)

    def rows(self, slots: Slots) -> Any:
        return self.block(slots)[:, : self.n_features].astype(self.data.dtype, copy=False)
