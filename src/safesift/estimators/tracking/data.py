"""The samples that there are at the moment, and what becomes of them in an edit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift.arithmetic.numerics import EPS, ROOT_UNDERFLOW
from safesift.estimators.tracking.metric import Metric, norms_of
from safesift.estimators.tracking.store import Slots, Store, grown, make_store
from safesift.estimators.tracking.sums import parts

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
    y, weights, norms, widths : arrays
        Targets as the user gave them, weights times those of the classes, norms of the rows, in
        the Euclidean metric and in that of the data.
    """

    slots: Slots
    block: Any
    y: NDArray
    weights: Array
    norms: Array
    widths: Array

    @property
    def n_columns(self) -> int:
        return self.block.shape[1]

    @property
    def dot_error(self) -> float:
        """As of a `Design`: a row has at most as many entries as there are columns."""
        return (self.n_columns + 8) * EPS

    def negative(self) -> Rows:
        """The same to be taken away: with weights of the other sign."""
        return Rows(self.slots, self.block, self.y, -self.weights, self.norms, self.widths)

    def joined(self, other: Rows) -> Rows:
        """These, then others."""
        stack = sparse.vstack if sparse.issparse(self.block) else np.concatenate
        return Rows(
            np.concatenate([self.slots, other.slots]), stack([self.block, other.block]),
            np.concatenate([self.y, other.y]), np.concatenate([self.weights, other.weights]),
            np.concatenate([self.norms, other.norms]), np.concatenate([self.widths, other.widths]),
        )  # fmt: skip

    def take(self, which: NDArray) -> Rows:
        """Some of them."""
        return Rows(
            self.slots[which], self.block[which], self.y[which], self.weights[which],
            self.norms[which], self.widths[which],
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Edit:
    """A checked edit of the samples there are.

    Attributes
    ----------
    stay, removed : arrays
        Slots of the samples that stay, in their order, and of those that go.
    relabelled : array
        Slots of those with a new target.
    labels, label_weights : arrays
        Their new targets, and their weights (which those of the classes may change).
    X, y, sample_weight, weights : matrix and arrays
        New samples; the weights are those given, and those times the weights of the classes.
    """

    stay: Slots
    removed: Slots
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
        return {
            "n_added": len(self.y),
            "n_removed": len(self.removed),
            "n_relabelled": len(self.relabelled),
        }


@dataclass(frozen=True, eq=False)
class Data:
    """Samples in slots.

    An edit writes to free slots only and makes a new `Data`, so that the old one stays as it was.

    Attributes
    ----------
    store : Store
        Of the rows.
    metric : Metric
        In which steps are measured.
    order : array
        The slots of the samples, as the user numbers them.
    free : array
        The other slots.
    y, sample_weight, weights, norms, widths : arrays of the length of the store
        See `Rows`; `sample_weight` is without the weights of the classes.
    total : float
        W, the sum of the weights.
    """

    store: Store
    metric: Metric
    order: Slots
    free: Slots
    y: NDArray
    sample_weight: Array
    weights: Array
    norms: Array
    widths: Array
    total: float

    @classmethod
    def of(
        cls, X: Any, y: NDArray, sample_weight: Array, weights: Array, norms: Array, intercept: bool
    ) -> Data:
        """A copy of the samples, in their order, and in the Euclidean metric."""
        store, n = make_store(X, intercept), len(y)
        size = store.capacity
        return cls(
            store, Metric.of(np.eye(X.shape[1] + intercept)), np.arange(n), np.arange(n, size),
            grown(y, size, y[0]), grown(sample_weight, size), grown(weights, size),
            grown(norms, size), grown(norms + ROOT_UNDERFLOW, size), float(weights.sum()),
        )  # fmt: skip

    def measured(self, moments: Array) -> Data:
        """In another metric: one pass over the rows."""
        metric, widths = Metric.of(moments), np.zeros(len(self.y))
        for part in parts(self.n_samples):
            slots = self.order[part]
            widths[slots] = metric.widths(self.store.block(slots), self.norms[slots])
        return replace(self, metric=metric, widths=widths)

    @property
    def n_samples(self) -> int:
        return len(self.order)

    def rows(self, slots: Slots) -> Rows:
        """The samples in some slots."""
        return Rows(
            slots, self.store.block(slots), self.y[slots], self.weights[slots], self.norms[slots],
            self.widths[slots],
        )  # fmt: skip

    def leaving(self, edit: Edit) -> Rows:
        """The samples that are removed, or are no longer what they were."""
        return self.rows(np.concatenate([edit.removed, edit.relabelled]))

    def edited(self, edit: Edit) -> tuple[Data, Rows]:
        """The samples after an edit, and those of them that are new or have a new target."""
        data = self._with_free(len(edit.y))
        slots, free = data.free[: len(edit.y)], data.free[len(edit.y) :]
        if len(slots):
            data = data._written(slots, edit)
        if len(edit.relabelled):
            data = data._relabelled(edit)
        order = np.concatenate([edit.stay, slots])
        # what becomes free now is written to by the next edit at the earliest
        free = np.concatenate([free, edit.removed])
        total = float(data.weights[order].sum())
        data = Data(
            data.store, self.metric, order, free, data.y, data.sample_weight, data.weights,
            data.norms, data.widths, total,
        )  # fmt: skip
        return data, data.rows(np.concatenate([edit.relabelled, slots]))

    def _written(self, slots: Slots, edit: Edit) -> Data:
        """With new samples in free slots."""
        store, y = self.store.written(slots, edit.X, edit.stay), _with_room(self.y, edit.y)
        y[slots], self.sample_weight[slots], self.weights[slots] = (
            edit.y, edit.sample_weight, edit.weights,
        )  # fmt: skip
        block = store.block(slots)
        self.norms[slots] = norms = norms_of(block)
        self.widths[slots] = self.metric.widths(block, norms)
        unchanged = store is self.store and y is self.y
        return self if unchanged else replace(self, store=store, y=y)

    def _relabelled(self, edit: Edit) -> Data:
        y, weights = _with_room(self.y, edit.labels).copy(), self.weights.copy()
        y[edit.relabelled], weights[edit.relabelled] = edit.labels, edit.label_weights
        return replace(self, y=y, weights=weights)

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
            widths=grown(self.widths, larger),
        )


def _with_room(y: NDArray, other: NDArray) -> NDArray:
    """The targets in a type that holds the others as well, such as longer strings."""
    return y.astype(np.result_type(y.dtype, other.dtype), copy=False)
