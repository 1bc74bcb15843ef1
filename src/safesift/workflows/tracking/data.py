"""The samples that there are at the moment, their metric, and what an edit makes of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, ROOT_UNDERFLOW, cholesky, length_bound, norm
from safesift.design.rows import RowDesign
from safesift.design.slots import SlotDesign, SlotRows, Slots, as_slots, grown

Array = NDArray[np.float64]

# rows that are read at a time, so that the errors of sums do not grow with their number
_BLOCK = 256
# an inverse that is off by more than that is not worth the trouble
_LOOSEST = 1e-3
# what is added to the second moments, relative to their mean: directions without any may get some
_RIDGE = 1e-2
# the arrays of `Data` with an entry for each slot
_PER_SLOT = ("y", "sample_weight", "weights", "widths")


@dataclass(frozen=True, eq=False)
class RowMetric:
    """|aᵀd| ≤ width(a)·length(d) for every row a and step d.

    From two matrices with T·S ≈ I, aᵀd = (Tᵀa)ᵀ(Sd) + aᵀ(I − TS)d, and with ‖I − TS‖ ≤ η the rest
    is at most η‖a‖‖d‖ ≤ ‖Tᵀa‖·η‖S‖/(1 − η)·‖d‖. That S is a Cholesky factor of the second moments
    of the rows makes the bound good, and is not needed for it to hold.

    Attributes
    ----------
    T, S : arrays of shape (n_columns, n_columns)
    T_size, S_size : float
        Their Frobenius norms.
    looseness : float
        η.
    """

    T: Array
    S: Array
    T_size: float
    S_size: float
    looseness: float

    @classmethod
    def of(cls, moments: Array) -> RowMetric:
        """From the second moments of the rows, or anything like them."""
        identity = np.eye(len(moments))
        try:
            with np.errstate(all="ignore"):
                ridge = _RIDGE * float(np.trace(moments)) / len(moments)
                S = cholesky(moments, ridge)[0].T
                return cls._checked(np.asarray(np.linalg.inv(S), dtype=np.float64), S)
        except np.linalg.LinAlgError:
            return cls._checked(identity, identity)

    @classmethod
    def _checked(cls, T: Array, S: Array) -> RowMetric:
        T_size, S_size = norm(T), norm(S)
        rest = norm(np.eye(len(S)) - T @ S) + (len(S) + 4) * EPS * T_size * S_size
        if not rest < _LOOSEST:
            raise np.linalg.LinAlgError("an inverse that is not one")
        return cls(T, S, T_size, S_size, rest)

    def widths(self, rows: RowDesign) -> Array:
        """‖Tᵀa‖ of rows, rounded up; never 0, since rooms are divided by it."""
        image, lost = rows.matvec(self.T), (len(self.T) + 8) * EPS
        widths = np.sqrt(np.einsum("ij,ij->i", image, image)) * (1.0 + lost)
        # squares may underflow
        return widths + len(self.T) * ROOT_UNDERFLOW + lost * self.T_size * rows.row_norms

    def length(self, step: Array) -> float:
        """The length of a step, rounded up."""
        image = self.S @ step
        rest = self.looseness / (1.0 - self.looseness) + (len(step) + 8) * EPS
        length = length_bound(image) + rest * self.S_size * length_bound(step)
        return length * (1.0 + 16 * EPS)

    def radius(self, euclidean: float) -> float:
        """The largest length of steps of a Euclidean length."""
        return euclidean * self.S_size * (1.0 + 2.0 * self.looseness + 1e-10)


@dataclass(frozen=True, eq=False)
class Rows:
    """Some samples.

    Attributes
    ----------
    design : SlotRows
        Of the slots where they lie.
    y, weights, widths : arrays
        Targets as the user gave them, weights times those of the classes, widths in the metric of
        the data.
    """

    design: SlotRows
    y: NDArray
    weights: Array
    widths: Array

    @property
    def slots(self) -> Slots:
        return self.design.rows

    def take(self, which: NDArray | slice) -> Rows:
        """Some of them."""
        design = SlotRows(self.design.base, self.slots[which])
        return Rows(design, self.y[which], self.weights[which], self.widths[which])

    def replacing(self, leaving: Rows) -> Rows:
        """Others that lie in slots of the same design, to be taken away, and then these."""
        return Rows(
            SlotRows(self.design.base, np.concatenate([leaving.slots, self.slots])),
            np.concatenate([leaving.y, self.y]),
            np.concatenate([-leaving.weights, self.weights]),
            np.concatenate([leaving.widths, self.widths]),
        )


@dataclass(frozen=True, eq=False)
class Change:
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
    def leaving(self) -> Slots:
        """Slots of the samples that are removed, or are no longer what they were."""
        return np.concatenate([self.removed, self.relabelled])


@dataclass(frozen=True, eq=False)
class Data:
    """Samples in slots.

    An edit writes to free slots only and makes a new `Data`, so that the old one stays as it was,
    until the next edit: that may write to what this one has set free. What is to stay for longer
    has to be `shared`.

    Attributes
    ----------
    design : SlotDesign
    metric : RowMetric
        In which steps are measured.
    order : array
        The slots of the samples, as the user numbers them.
    free : array
        The other slots.
    y, sample_weight, weights, widths : arrays with an entry for each slot
        See `Rows`; `sample_weight` is without the weights of the classes.
    total : float
        W, the sum of the weights.
    owned : bool
        Whether nobody else looks at these slots. If not, they are copied before the first write.
    """

    design: SlotDesign
    metric: RowMetric
    order: Slots
    free: Slots
    y: NDArray
    sample_weight: Array
    weights: Array
    widths: Array
    total: float
    owned: bool = True

    @classmethod
    def of(cls, X: Any, y: NDArray, sample_weight: Array, weights: Array, intercept: bool) -> Data:
        """A copy of the samples, in their order, and in the Euclidean metric."""
        design, n = as_slots(X, intercept), len(y)
        size, metric = design.n_samples, RowMetric.of(np.eye(design.n_columns))
        return cls(
            design, metric, np.arange(n), np.arange(n, size), grown(y, size),
            grown(sample_weight, size), grown(weights, size), design.row_norms + ROOT_UNDERFLOW,
            float(weights.sum()),
        )  # fmt: skip

    def measured(self, moments: Array) -> Data:
        """In another metric: one pass over the rows."""
        metric, widths = RowMetric.of(moments), np.zeros(len(self.y))
        for slots in self.parts:
            widths[slots] = metric.widths(self.design.at(slots))
        return replace(self, metric=metric, widths=widths)

    # --- reading ----------------------------------------------------------------------------

    @property
    def n_samples(self) -> int:
        return len(self.order)

    @property
    def parts(self) -> list[Slots]:
        """The slots of all samples, few at a time."""
        return [self.order[start : start + _BLOCK] for start in range(0, len(self.order), _BLOCK)]

    def rows(self, slots: Slots) -> Rows:
        """The samples in some slots."""
        return Rows(self.design.at(slots), self.y[slots], self.weights[slots], self.widths[slots])

    # --- editing ----------------------------------------------------------------------------

    @property
    def shared(self) -> Data:
        """The same for several owners: none of them ever writes to these slots."""
        return replace(self, owned=False)

    def _own(self) -> Data:
        """The same in memory of its own."""
        if self.owned:
            return self
        copies: dict[str, Any] = {name: getattr(self, name).copy() for name in _PER_SLOT}
        return replace(self, design=self.design.copied(), owned=True, **copies)

    def edited(self, change: Change) -> Edited:
        """What an edit makes of the samples."""
        data = self._with_free(len(change.y))
        slots, free = data.free[: len(change.y)], data.free[len(change.y) :]
        if len(slots):
            data = data._own()._written(slots, change)
        if len(change.relabelled):
            data = data._relabelled(change)
        order = np.concatenate([change.stay, slots])
        # what becomes free now is written to by the next edit at the earliest
        free = np.concatenate([free, change.removed])
        total = float(data.weights[order].sum())
        data = replace(data, order=order, free=free, total=total)
        out = change.leaving
        # where they lay, they still lie
        leaving = Rows(data.design.at(out), self.y[out], self.weights[out], self.widths[out])
        return Edited(data, leaving, data.rows(np.concatenate([change.relabelled, slots])))

    def _written(self, slots: Slots, change: Change) -> Data:
        """With new samples in free slots."""
        design = self.design.written(slots, change.X, self.order)
        y = _with_room(self.y, change.y)
        y[slots], self.sample_weight[slots] = change.y, change.sample_weight
        self.weights[slots] = change.weights
        self.widths[slots] = self.metric.widths(design.at(slots))
        return replace(self, design=design, y=y)

    def _relabelled(self, change: Change) -> Data:
        y, weights = _with_room(self.y, change.labels).copy(), self.weights.copy()
        y[change.relabelled], weights[change.relabelled] = change.labels, change.label_weights
        return replace(self, y=y, weights=weights)

    def _with_free(self, n_slots: int) -> Data:
        """With enough free slots."""
        missing = n_slots - len(self.free)
        if missing <= 0:
            return self
        size = len(self.y)
        larger = size + missing + size // 4
        wider: dict[str, Any] = {name: grown(getattr(self, name), larger) for name in _PER_SLOT}
        return replace(self, free=np.append(self.free, np.arange(size, larger)), **wider)


class Edited(NamedTuple):
    """The samples after an edit, those that left as they were, and those that are new.

    A sample with another target is among both.
    """

    data: Data
    leaving: Rows
    entering: Rows


def _with_room(y: NDArray, other: NDArray) -> NDArray:
    """The targets in a type that holds the others as well, such as longer strings."""
    return y.astype(np.result_type(y.dtype, other.dtype), copy=False)
