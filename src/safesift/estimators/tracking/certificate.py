"""What is proved about a followed problem: its duality gap, and where its optima are.

Both come from the gradient g of the *edited* objective at the point: the edited rows are in Q and
q, and the divisor is the total weight after the edit. That all rows are in it, on the pieces they
are on at the point, is what a `Follower` sees to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, length_bound
from safesift.estimators.tracking.data import Data
from safesift.estimators.tracking.follower import Follower
from safesift.estimators.tracking.store import Slots
from safesift.estimators.tracking.sums import weighted_gram
from safesift.problem.duality import stationary_gap
from safesift.regions.near import proved_curvature_floor

Array = NDArray[np.float64]

_MOST_ROUNDS = 3


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
    errors = follower.prediction_errors(rows, rows.block @ follower.point)
    return 2.0 * follower.targets.loss.smoothness * float((rows.weights * rows.norms) @ errors)


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
    terms = follower.targets.terms(rows.y, follower.piece[slots], rows.weights)
    return weighted_gram(rows.block, terms.quadratic)


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
