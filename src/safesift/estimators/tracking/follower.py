"""One problem that is followed as its samples change, without reading them again.

Every row is on one piece of its loss at the current point x, and the sums of the pieces are the
objective:

    P(x) = (½xᵀQx + qᵀx + r)/W + ½·alpha·‖x‖².

A row of width w (`Metric`) that is `room` away from the ends of its piece stays on it until x has
moved by room/w. So the follower counts how far x has travelled, and every row has a deadline: as
long as x has not travelled that far, the row is proved to be on its piece, unread. When the
deadline has passed, the row is read and gets a new one; if it changed its piece, Q, q and r change
by that row. P, its gradient and the duality gap are therefore those of *all* rows at every step.
"""

from __future__ import annotations

import math
from copy import copy

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, UNDERFLOW, length_bound
from safesift.estimators.tracking.data import Data, Rows
from safesift.estimators.tracking.pieces import Targets
from safesift.estimators.tracking.store import Slots, grown
from safesift.estimators.tracking.sums import Sums, Terms, parts

Array = NDArray[np.float64]


class Follower:
    """The state of one problem.

    Attributes
    ----------
    targets : Targets
        The loss, and which class is 1.
    alpha : float
        Of the l2 penalty.
    n_features : int
        The coordinates that are penalised; one more is the intercept.
    point, length : array, float
        Coefficients, then the intercept if there is one; a bound on their norm.
    sums : Sums
        Over all rows, on their pieces at the point.
    piece : array
        For every slot the piece its row is on.
    deadline : array
        For every slot how far the point may have travelled before the row has to be read again;
        infinite for free slots.
    travelled : float
        Length of the way of the point, rounded up.
    fresh_residue : float
        What rounding may change of P, right after the sums were built from all rows.
    doubt : bool
        Whether rounding leaves open on which piece some row is.
    n_read, n_changed : int
        Rows read, and rows that were found on another piece, since the last `fresh_copy`.
    """

    def __init__(self, targets: Targets, alpha: float, n_features: int, point: Array) -> None:
        self.targets, self.alpha, self.n_features = targets, alpha, n_features
        self.point, self.length = point, length_bound(point)
        self.n_read = self.n_changed = 0
        self.doubt = False

    @classmethod
    def at(
        cls, targets: Targets, alpha: float, n_features: int, point: Array, data: Data
    ) -> Follower:
        """At a point, in one pass over the rows."""
        follower = cls(targets, alpha, n_features, point)
        follower.rebuild(data)
        return follower

    def fresh_copy(self) -> Follower:
        """A copy that can go its own way."""
        other = copy(self)
        other.piece, other.deadline = self.piece.copy(), self.deadline.copy()
        other.n_read = other.n_changed = 0
        return other

    # --- rows -------------------------------------------------------------------------------

    def rebuild(self, data: Data) -> None:
        """Sums, pieces and deadlines from all rows: no trace of any row that was removed."""
        size = len(data.y)
        self.piece, self.deadline = np.zeros(size, dtype=np.int8), np.full(size, math.inf)
        self.sums, self.travelled = Sums.zero(len(self.point)), 0.0
        nothing = data.rows(data.order[:0])
        for part in parts(data.n_samples):
            self.swap(nothing, data.rows(data.order[part]))
        self.fresh_residue = self.residue(data.total)

    def remeasure(self, before: Data, data: Data) -> None:
        """Take over deadlines into another metric: what room there is does not depend on it."""
        slots, deadline = data.order, np.full(len(self.deadline), math.inf)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            room = (self.deadline[slots] - self.travelled * (1.0 + 4 * EPS)) * before.widths[slots]
            reach = room / data.widths[slots] * (1.0 - 16 * EPS)
        # a row that nothing moves stays, one without room has to be read
        reach[self.deadline[slots] == math.inf] = math.inf
        deadline[slots] = np.where(reach > 0, reach, -math.inf)
        self.deadline, self.travelled = deadline, 0.0
        self.doubt = self.doubt or bool((deadline == -math.inf).any())

    def swap(self, leaving: Rows, entering: Rows) -> None:
        """Rows that go, and rows that come: these may lie in slots beyond what there was."""
        before = self.piece[leaving.slots]
        self.deadline[leaving.slots] = math.inf
        largest = int(entering.slots.max(initial=-1))
        if largest >= len(self.deadline):
            self.piece = grown(self.piece, 2 * largest + 2)
            self.deadline = grown(self.deadline, 2 * largest + 2, math.inf)
        self.n_read += len(leaving.slots)
        after = self._place(entering)
        rows = leaving.negative().joined(entering)
        terms = self.targets.terms(rows.y, np.concatenate([before, after]), rows.weights)
        self.sums = self.sums.plus(rows.block, rows.norms, terms)

    def _place(self, rows: Rows) -> NDArray[np.intp]:
        """Read rows at the point: their pieces, and their deadlines."""
        self.n_read += len(rows.slots)
        pred = rows.block @ self.point
        which, room = self.targets.locate(rows.y, pred)
        room -= self.prediction_errors(rows, pred)
        reach = room / rows.widths
        reach *= 1.0 - 8 * EPS
        reach += self.travelled * (1.0 - 8 * EPS)
        # whatever is not known to be on its piece is read again
        reach[np.isnan(reach)] = -math.inf
        reach[rows.weights == 0] = math.inf
        self.doubt = self.doubt or bool(
            reach.min(initial=math.inf) <= self.travelled * (1.0 + 4 * EPS)
        )
        self.piece[rows.slots], self.deadline[rows.slots] = which, reach
        return which

    def prediction_errors(self, rows: Rows, pred: Array) -> Array:
        """As `numerics.prediction_error`: of predictions, and of their distance to the targets."""
        product = (rows.dot_error * self.length) * rows.norms
        rounding = 4 * EPS * (np.abs(pred) + (self.targets.sizes(rows.y) + 1.0))
        return product + rounding + rows.n_columns * UNDERFLOW

    def look(self, data: Data, slots: Slots) -> Rows:
        """Some rows, counted as read."""
        self.n_read += len(slots)
        return data.rows(slots)

    def overdue(self, reach: float = 0.0) -> Slots:
        """Rows that may leave their piece within some distance of the point."""
        return np.flatnonzero(self.deadline <= (self.travelled + reach) * (1.0 + 4 * EPS))

    # --- the objective ----------------------------------------------------------------------

    def move(self, point: Array, data: Data) -> int:
        """Go to another point, reading the rows that may have left their piece on the way.

        Returns
        -------
        int
            How many did.
        """
        length = data.metric.length(point - self.point)
        self.travelled = (self.travelled + length) * (1.0 + 2 * EPS)
        self.point, self.length = point, length_bound(point)
        slots = self.overdue()
        self.doubt = False
        return self._read_again(data.rows(slots)) if slots.size else 0

    def _read_again(self, rows: Rows) -> int:
        before = self.piece[rows.slots]
        which = self._place(rows)
        changed = np.flatnonzero(which != before)
        if changed.size:
            rows = rows.take(changed)
            new = self.targets.terms(rows.y, which[changed], rows.weights)
            old = self.targets.terms(rows.y, before[changed], rows.weights)
            change = Terms(*(there - here for there, here in zip(new, old, strict=True)))
            self.sums = self.sums.plus(rows.block, rows.norms, change)
            self.n_changed += changed.size
        return changed.size

    def value(self, total: float) -> float:
        """P, with W the total weight."""
        coef = self.point[: self.n_features]
        return self.sums.value(self.point) / total + 0.5 * self.alpha * float(coef @ coef)

    def residue(self, total: float) -> float:
        """By how much the rounding of the sums may change P, as a share of P."""
        value = self.value(total)
        return self.sums.residue(self.length) / (total * value) if value > 0 else math.inf

    def gradient(self, total: float) -> Array:
        """The gradient of P, with W the total weight."""
        gradient = (self.sums.Q @ self.point + self.sums.q) / total
        gradient[: self.n_features] += self.alpha * self.point[: self.n_features]
        return gradient

    def curvature(self, total: float) -> Array:
        """The matrix of second derivatives of P."""
        H = self.sums.Q / total
        H.reshape(-1)[: self.n_features * (len(H) + 1) : len(H) + 1] += self.alpha
        return H
