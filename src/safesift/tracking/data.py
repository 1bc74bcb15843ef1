"""The samples that there are at the moment, and what becomes of them in an edit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.design import as_design
from safesift.numerics import EPS
from safesift.tracking.store import Slots, Store, grown, make_store

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rows:
    """Some samples, gathered.

    Attributes
    ----------
    slots : array
        Where they lie.
    block : array or CSR array, float64
        With the column of ones, if there is an intercept.
    y, weights, norms : arrays
        Targets as the user gave them, weights times those of the classes, norms of the rows.
    """

    slots: Slots
    block: Any
    y: NDArray
    weights: Array
    norms: Array

    @property
    def n_columns(self) -> int:
        return self.block.shape[1]

    @property
    def dot_error(self) -> float:
        """As of a `Design`: a row has at most as many entries as there are columns."""
        return (self.n_columns + 8) * EPS

    def take(self, which: NDArray) -> Rows:
        """Some of them."""
        return Rows(
            self.slots[which], self.block[which], self.y[which], self.weights[which],
            self.norms[which],
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Edit:
    """A checked edit of the samples there are.

    Attributes
    ----------
    stays : array of bool
        For every sample, in its order, whether it is not removed.
    relabelled : array
        Slots of those with a new target.
    labels, label_weights : arrays
        Their new targets, and their weights (which those of the classes may change).
    X, y, sample_weight, weights : matrix and arrays
        New samples; the weights are those given, and those times the weights of the classes.
    """

    stays: NDArray[np.bool_]
    relabelled: Slots
    labels: NDArray
    label_weights: Array
    X: Any
    y: NDArray
    sample_weight: Array
    weights: Array

    @property
    def counts(self) -> dict[str, int]:
        """How large it is, for the history."""
        removed = len(self.stays) - int(np.count_nonzero(self.stays))
        return {
            "n_added": len(self.y),
            "n_removed": removed,
            "n_relabelled": len(self.relabelled),
        }


@dataclass(frozen=True, eq=False)
class Data:
    """Samples in slots; free slots have weight 0.

    Attributes
    ----------
    store : Store
        Of the rows.
    order : array
        The slots of the samples, as the user numbers them.
    free : array
        The other slots.
    y, sample_weight, weights, norms : arrays of the length of the store
        See `Rows`; `sample_weight` is without the weights of the classes.
    total : float
        W, the sum of the weights.
    """

    store: Store
    order: Slots
    free: Slots
    y: NDArray
    sample_weight: Array
    weights: Array
    norms: Array
    total: float

    @classmethod
    def of(
        cls, X: Any, y: NDArray, sample_weight: Array, weights: Array, norms: Array, intercept: bool
    ) -> Data:
        """A copy of the samples, in their order."""
        store, n = make_store(X, intercept), len(y)
        size = store.capacity
        return cls(
            store, np.arange(n), np.arange(n, size), grown(y, size, y[0]),
            grown(sample_weight, size), grown(weights, size), grown(norms, size),
            float(weights.sum()),
        )  # fmt: skip

    @property
    def n_samples(self) -> int:
        return len(self.order)

    def rows(self, slots: Slots) -> Rows:
        """The samples in some slots."""
        return Rows(
            slots, self.store.block(slots), self.y[slots], self.weights[slots], self.norms[slots]
        )

    def leaving(self, edit: Edit) -> Rows:
        """The samples that are removed, or are no longer what they were."""
        return self.rows(np.concatenate([self.order[~edit.stays], edit.relabelled]))

    def edited(self, edit: Edit, intercept: bool) -> tuple[Data, Rows]:
        """The samples after an edit, and those of them that are new or have a new target.

        Nothing that belongs to the samples before the edit is overwritten: slots that become free
        now are used by the next edit at the earliest.
        """
        removed, order = self.order[~edit.stays], self.order[edit.stays]
        n_new = len(edit.y)
        data = self._with_free(n_new)
        slots, free = data.free[:n_new], data.free[n_new:]
        y = _with_room(data.y, edit.y, edit.labels)
        sample_weight, weights = data.sample_weight.copy(), data.weights.copy()
        weights[removed] = sample_weight[removed] = 0.0
        y[edit.relabelled], weights[edit.relabelled] = edit.labels, edit.label_weights
        store, norms = data.store, data.norms
        if n_new:
            norms = norms.copy()
            store = store.written(slots, edit.X, order)
            y[slots], sample_weight[slots], weights[slots] = edit.y, edit.sample_weight, edit.weights
            norms[slots] = as_design(edit.X, intercept).row_norms
        data = Data(
            store, np.concatenate([order, slots]), np.concatenate([free, removed]), y,
            sample_weight, weights, norms, float(weights.sum()),
        )  # fmt: skip
        return data, data.rows(np.concatenate([edit.relabelled, slots]))

    def _with_free(self, n_slots: int) -> Data:
        """With enough free slots."""
        missing = n_slots - len(self.free)
        if missing <= 0:
            return self
        size = len(self.y)
        larger = size + missing + size // 4
        return replace(
            self,
            free=np.concatenate([self.free, np.arange(size, larger)]),
            y=grown(self.y, larger, self.y[0]),
            sample_weight=grown(self.sample_weight, larger),
            weights=grown(self.weights, larger),
            norms=grown(self.norms, larger),
        )


def _with_room(y: NDArray, *others: NDArray) -> NDArray:
    """A copy of the targets whose type holds the others as well, such as longer strings."""
    kind = np.result_type(y.dtype, *(other.dtype for other in others if len(other)))
    return y.astype(kind, copy=True)
