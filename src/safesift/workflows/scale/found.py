"""What a pass finds: sums over rows, which can be added up, and rows that are held."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, norm
from safesift.design.pool import stacked
from safesift.problem.evaluation import Folded
from safesift.problem.looks import SampleSums
from safesift.workflows.scale.codes import Packed

Array = NDArray[np.float64]


class RaySums(NamedTuple):
    """Of the positive and of the negative slopes apart: what dual points near them are worth.

    Attributes
    ----------
    gradients : array of shape (2, n_columns)
        (1/W) Σ s_i ν_i a_i.
    ones, halves : arrays of shape (2,)
        (1/W) Σ s_i f*(c·ν_i) for c = 1 and c = ½.
    sizes : array of shape (2,)
        The sizes of the terms of the former.
    """

    gradients: Array
    ones: Array
    halves: Array
    sizes: Array

    def plus(self, other: RaySums) -> RaySums:
        return RaySums(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


@dataclass(frozen=True, eq=False)
class Found:
    """Of one problem at its point, over some rows.

    Attributes
    ----------
    sums : SampleSums
    gradient : array
        (1/W) Σ s_i ν_i a_i.
    constant : float
        The loss of the constant model that was asked about.
    weight : float
        (1/W) Σ s_i.
    added, removed : Folded or None
        Of rows that were folded, and of those that were taken out or moved to another piece.
    clearance : float
        Every folded or dropped row stays on its piece as far from the point as that.
    sum_error : float
        The largest of all blocks.
    n_kept, n_undecided, n_decided, n_moved : int
        Rows that are not dropped, that are not decided, those of positive weight that are, and
        rows that changed their piece.
    rays : RaySums or None
    """

    sums: SampleSums
    gradient: Array
    constant: float
    weight: float
    added: Folded | None
    removed: Folded | None
    clearance: float
    sum_error: float
    n_kept: int
    n_undecided: int
    n_decided: int
    n_moved: int
    rays: RaySums | None = None

    def plus(self, other: Found) -> Found:
        rays = self.rays
        if rays is not None and other.rays is not None:
            rays = rays.plus(other.rays)
        return Found(
            SampleSums(*(a + b for a, b in zip(self.sums, other.sums, strict=True))),
            self.gradient + other.gradient,
            self.constant + other.constant,
            self.weight + other.weight,
            _both(self.added, other.added),
            _both(self.removed, other.removed),
            min(self.clearance, other.clearance),
            max(self.sum_error, other.sum_error),
            self.n_kept + other.n_kept,
            self.n_undecided + other.n_undecided,
            self.n_decided + other.n_decided,
            self.n_moved + other.n_moved,
            rays,
        )


def added(one: tuple[Found, ...], other: tuple[Found, ...]) -> tuple[Found, ...]:
    """The sums of several problems, of two sets of rows; there are none of no rows."""
    if not one or not other:
        return one or other
    return tuple(mine.plus(theirs) for mine, theirs in zip(one, other, strict=True))


def _both(one: Folded | None, other: Folded | None) -> Folded | None:
    if one is None or other is None:
        return one if other is None else other
    return one.plus(other)


@dataclass(frozen=True, eq=False)
class Held:
    """Rows that are not folded for some of the problems.

    Attributes
    ----------
    parts, places : arrays of shape (n_held,)
        Where they came from, and their numbers there.
    X : array or CSR matrix
        Scaled, if columns are.
    y, weights : arrays
    wanted : mask of shape (n_held, n_problems)
        By which problems.
    """

    parts: NDArray[np.intp]
    places: NDArray[np.intp]
    X: Any
    y: NDArray
    weights: Array
    wanted: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.places)

    @staticmethod
    def together(parts: list[Held]) -> Held:
        """All of them, in their order."""
        if len(parts) == 1:
            return parts[0]
        # an empty array of labels need not be of their type
        parts = [part for part in parts if len(part)] or parts[:1]
        columns = zip(*((h.parts, h.places, h.y, h.weights, h.wanted) for h in parts), strict=True)
        where, places, y, weights, wanted = map(np.concatenate, columns)
        return Held(where, places, stacked([h.X for h in parts]), y, weights, wanted)

    def wanted_by(self, n_problems: int) -> Held:
        """None of these rows, for so many problems."""
        none = np.zeros((0, n_problems), dtype=bool)
        return Held(self.parts[:0], self.places[:0], self.X[:0], self.y[:0], self.weights[:0], none)

    def take(self, rows: NDArray[np.intp]) -> Held:
        """Some of them, by rising numbers."""
        if len(rows) == len(self):
            return self
        return Held(
            self.parts[rows], self.places[rows], self.X[rows], self.y[rows], self.weights[rows],
            self.wanted[rows],
        )  # fmt: skip

    def of(self, problem: int) -> Held:
        """Those that one problem wants."""
        return self.take(np.flatnonzero(self.wanted[:, problem]))

    def wanted_among(self, problems: list[int]) -> Held:
        """Those that some problems want, for these only."""
        if problems == list(range(self.wanted.shape[1])):
            return self
        mine = replace(self, wanted=self.wanted[:, problems])
        return mine.take(np.flatnonzero(mine.wanted.any(axis=1)))


class Note(NamedTuple):
    """Of one problem in one part: see `Found`."""

    clearance: float
    n_kept: int
    n_undecided: int
    n_decided: int

    @classmethod
    def of(cls, found: Found) -> Note:
        return cls(found.clearance, found.n_kept, found.n_undecided, found.n_decided)


@dataclass(frozen=True, eq=False)
class PartFound:
    """What a pass found in one part, for all problems.

    Attributes
    ----------
    part : int
    problems : tuple of Found
    codes : list of arrays
        For every problem the piece of every row, as `Codes` has them.
    held : list of Held
    notes : tuple of Note
        One for every problem; none of a part without rows.
    """

    part: int
    problems: tuple[Found, ...]
    codes: list[NDArray[np.uint8]]
    held: list[Held]
    notes: tuple[Note, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """It travels with two bits or four for a row."""
        packed = [Packed.of(one) for one in self.codes]
        return _part_found, (self.part, self.problems, packed, self.held, self.notes)


def _part_found(part: int, problems: Any, codes: list[Packed], held: Any, notes: Any) -> PartFound:
    return PartFound(part, problems, [one.unpacked() for one in codes], held, notes)


# --- what is folded, of rows that come and go -------------------------------------------------

# beyond this ratio what is left is too small a difference of what came and went
_CANCELLED = 8.0


@dataclass(frozen=True, eq=False)
class Balance:
    """The rows that were folded, less those that were taken out again."""

    added: Folded | None = None
    removed: Folded | None = None

    def plus(self, added: Folded | None, removed: Folded | None) -> Balance:
        return Balance(_both(self.added, added), _both(self.removed, removed))

    @property
    def _traces(self) -> tuple[float, float]:
        """Of what came and of what went."""
        both = (self.added, self.removed)
        came, went = (0.0 if one is None or one.Q is None else np.trace(one.Q) for one in both)
        return float(came), float(went)

    @property
    def cancelled(self) -> bool:
        """Whether so much came and went that a sum made anew would be better."""
        came, went = self._traces
        return not came + went <= _CANCELLED * (came - went) and came > 0

    @property
    def error(self) -> float:
        """‖computed Q − exact‖: e·ccᵀ has the norm e·‖c‖², and ‖c‖² is the trace, of either sum."""
        if self.added is None:
            return 0.0
        lost = max(one.Q_error for one in (self.added, self.removed) if one is not None) + 4 * EPS
        return lost * sum(self._traces) * (1.0 + 1e-6)

    def folded(self, n_columns: int) -> Folded:
        """The difference, for whoever needs no bounds on its errors."""
        if self.added is None:
            return Folded(np.zeros(n_columns), 0.0)
        came, went = self.added, self.removed
        if went is None:
            return Folded(came.q, came.r, came.Q)
        Q = came.Q
        if went.Q is not None:
            assert Q is not None  # what went had come
            Q = Q - went.Q
        return Folded(came.q - went.q, came.r - went.r, Q)

    def folded_at(self, point: Array) -> Folded:
        """The difference, with what rounding may have done to its value and gradient at a point."""
        plain, size = self.folded(len(point)), norm(point)
        sums = [one for one in (self.added, self.removed) if one is not None]
        q_error = sum(one.q_error + EPS * norm(one.q) for one in sums) + self.error * size
        r_error = sum(one.r_error + EPS * abs(one.r) for one in sums) + 0.5 * self.error * size**2
        return Folded(plain.q, plain.r, plain.Q, q_error=q_error, r_error=r_error)
