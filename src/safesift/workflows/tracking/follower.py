"""One problem that is followed as its samples change, and what is proved of it.

Every row is on one piece of its loss at the current point x, and the sums of the pieces are the
objective:

    P(x) = (½xᵀQx + qᵀx + r)/W + ½·alpha·‖x‖².

A row of width w (`RowMetric`) that is `room` away from the ends of its piece stays on it until x
has moved by room/w. So the follower counts how far x has travelled, and every row has a deadline:
as long as x has not travelled that far, the row is proved to be on its piece, unread. When the
deadline has passed, the row is read and gets a new one; if it changed its piece, Q, q and r change
by that row. P and its gradient are therefore those of *all* rows at every step, of the edited ones
with their new W, and so are the duality gap and the ball of all optima that follow from them.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, length_bound, prediction_error
from safesift.design.slots import Slots, grown
from safesift.penalties import L2
from safesift.problem.duality import stationary_gap
from safesift.problem.problem import Problem
from safesift.problem.risk import Risk
from safesift.problem.running import RunningQuadratic, Terms
from safesift.regions.near import proved_curvature_floor
from safesift.workflows.tracking.data import Data, Rows
from safesift.workflows.tracking.pieces import PieceTable

Array = NDArray[np.float64]

_MOST_ROUNDS = 3


class Follower:
    """The state of one problem.

    Attributes
    ----------
    table : PieceTable
        The loss, and which class is 1.
    alpha : float
        Of the l2 penalty.
    n_features : int
        The coordinates that are penalised; one more is the intercept.
    point, length : array, float
        Coefficients, then the intercept if there is one; a bound on their norm.
    sums : RunningQuadratic
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

    def __init__(self, table: PieceTable, alpha: float, point: Array, data: Data) -> None:
        """At a point, in one pass over the rows."""
        self.table, self.alpha, self.n_features = table, alpha, data.design.n_features
        self.point, self.length = point, length_bound(point)
        self.n_read = self.n_changed = 0
        self.doubt = False
        self.rebuild(data)

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
        self.sums, self.travelled = RunningQuadratic.zero(len(self.point)), 0.0
        nothing = data.rows(data.order[:0])
        for slots in data.parts:
            self.swap(nothing, data.rows(slots))
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
        which = np.concatenate([before, self._place(entering)])
        rows = entering.replacing(leaving)
        self.sums = self.sums.plus(rows.design, self.table.terms(rows.y, which, rows.weights))

    def _place(self, rows: Rows) -> NDArray[np.intp]:
        """Read rows at the point: their pieces, and their deadlines."""
        self.n_read += len(rows.slots)
        pred = rows.design.matvec(self.point)
        which, room = self.table.locate(rows.y, pred)
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
        """Of predictions at the point, and of their distance to the targets."""
        design, sizes = rows.design, self.table.sizes(rows.y)
        return prediction_error(design, self.length, design.row_norms, pred, sizes)

    def look(self, data: Data, slots: Slots) -> Rows:
        """Some rows, counted as read."""
        self.n_read += len(slots)
        return data.rows(slots)

    def overdue(self, reach: float = 0.0) -> Slots:
        """Rows that may leave their piece within some distance of the point."""
        return (self.deadline <= (self.travelled + reach) * (1.0 + 4 * EPS)).nonzero()[0]

    # --- the objective ----------------------------------------------------------------------

    def move(self, point: Array, data: Data) -> None:
        """Go to another point, reading the rows that may have left their piece on the way."""
        length = data.metric.length(point - self.point)
        self.travelled = (self.travelled + length) * (1.0 + 2 * EPS)
        self.point, self.length = point, length_bound(point)
        slots = self.overdue()
        self.doubt = False
        if slots.size:
            self._read_again(data.rows(slots))

    def _read_again(self, rows: Rows) -> None:
        before = self.piece[rows.slots]
        which = self._place(rows)
        changed = (which != before).nonzero()[0]
        if changed.size:
            rows = rows.take(changed)
            new = self.table.terms(rows.y, which[changed], rows.weights)
            old = self.table.terms(rows.y, before[changed], rows.weights)
            change = Terms(*(there - here for there, here in zip(new, old, strict=True)))
            self.sums = self.sums.plus(rows.design, change)
            self.n_changed += changed.size

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
        gradient = self.sums.gradient(self.point) / total
        gradient[: self.n_features] += self.alpha * self.point[: self.n_features]
        return gradient

    def curvature(self, total: float) -> Array:
        """The matrix of second derivatives of P."""
        H = self.sums.Q / total
        H.reshape(-1)[: self.n_features * (len(H) + 1) : len(H) + 1] += self.alpha
        return H

    def problem(self, data: Data) -> Problem:
        """The same objective with its rows one by one."""
        y, design = self.table.numbers(data.y[data.order]), data.design.at(data.order)
        risk = Risk.of(design, self.table.loss, y, data.weights[data.order])
        return Problem(risk, L2(), self.alpha)


# --- what is proved ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Slope:
    """The gradient of P at the point of a follower.

    Attributes
    ----------
    gradient : array
    error : float
        ‖computed − exact‖₂, the rounding of all updates of the sums included.
    """

    gradient: Array
    error: float


def slope(follower: Follower, data: Data) -> Slope:
    """The gradient over all rows, and a bound on its error.

    A row that is so near to the end of its piece that rounding decides on which side it is has a
    slope that is off by its prediction's error times the smoothness.
    """
    total, gradient = data.total, follower.gradient(data.total)
    error = follower.sums.gradient_error(follower.length)
    if follower.doubt:
        error += _slope_errors(follower, data, follower.overdue())
    # the total weight is a pairwise sum, off by (32 + log₂ n)·EPS at most
    share = 128 * EPS
    sizes = length_bound(gradient) + 2.0 * follower.alpha * follower.length
    return Slope(gradient, (error / total) * (1.0 + share) + share * sizes)


def _slope_errors(follower: Follower, data: Data, slots: Slots) -> float:
    rows = follower.look(data, slots)
    errors = follower.prediction_errors(rows, rows.design.matvec(follower.point))
    norms, smoothness = rows.design.row_norms, follower.table.loss.smoothness
    return 2.0 * smoothness * float((rows.weights * norms) @ errors)


def certified_gap(follower: Follower, data: Data, at: Slope) -> float:
    """The duality gap of the whole problem at the point; infinite where none can be proved."""
    if follower.n_features == len(follower.point):
        return stationary_gap(at.gradient, at.error, follower.alpha)
    column = follower.sums.Q[-1] / data.total
    doubt = (follower.sums.Q_error + 8 * EPS * follower.sums.Q_size) / data.total
    least = column[-1] - doubt
    if not least > 0:
        return math.inf
    # in a dual point that is feasible, predictions of the rows that curve move by that much; twice
    # as far, in case that less curves
    shift = np.zeros_like(column)
    shift[-1] = 2.0 * (abs(float(at.gradient[-1])) + at.error) / least
    doubtful = follower.overdue(data.metric.length(shift))
    if doubtful.size:
        column = column - _curvature_of(follower, data, doubtful)[-1] / data.total
        if not column[-1] - doubt > 0.5 * least:
            return math.inf
    return stationary_gap(at.gradient, at.error, follower.alpha, column, doubt)


def _curvature_of(follower: Follower, data: Data, slots: Slots) -> Array:
    """The part of Q that is due to some rows."""
    rows = follower.look(data, slots)
    terms = follower.table.terms(rows.y, follower.piece[slots], rows.weights)
    return rows.design.weighted_sums(terms.quadratic, terms.linear)[0]


def undecided(follower: Follower, data: Data, at: Slope) -> Slots:
    """Rows that are not proved to be on their piece at every optimum of the edited problem.

    The ball around the point with radius ‖g‖/θ contains every optimum if the curvature of P is at
    least θ wherever the rows that are counted stay on their pieces, that is, within the ball
    (`regions.near`). θ is alpha without an intercept, and otherwise from the matrix of second
    derivatives, less the rows that might leave.
    """
    steepness = (length_bound(at.gradient) + at.error) * (1.0 + 8 * EPS)
    if follower.n_features == len(follower.point):
        return follower.overdue(data.metric.radius(steepness / follower.alpha))
    H = follower.curvature(data.total)
    error = follower.sums.Q_error / data.total + 8 * EPS * float(np.trace(H))
    slots = np.empty(0, dtype=np.intp)
    for _ in range(_MOST_ROUNDS):
        less = _curvature_of(follower, data, slots) / data.total if slots.size else 0.0
        floor = proved_curvature_floor(H - less, error)
        found = follower.overdue(data.metric.radius(steepness / floor)) if floor > 0 else None
        if found is None:
            break
        if len(found) <= len(slots):
            return found
        slots = found
    return data.order
