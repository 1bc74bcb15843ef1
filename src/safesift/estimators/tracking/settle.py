"""Newton's method on a followed problem: exact values and gradients of all rows at every step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from safesift.arithmetic.numerics import EPS, solve_positive
from safesift.estimators.tracking.certificate import Slope, certified_gap, slope
from safesift.estimators.tracking.data import Data
from safesift.estimators.tracking.follower import Follower

# steps go on to this share of the gap that is asked for
_POLISH = 1e-2
_LEAST_SHARE = 1e-6


@dataclass(frozen=True, eq=False)
class Settled:
    """Where the steps ended.

    Attributes
    ----------
    gap : float
        Certified, on all rows.
    value : float
        P.
    at : Slope
        The gradient there.
    n_iter : int
    """

    gap: float
    value: float
    at: Slope
    n_iter: int


def settle(follower: Follower, data: Data, tol: float, max_iter: int) -> Settled:
    """Go to the optimum; the gap says how near that was.

    The tolerance is relative to P itself, which is less than P of the best constant model.
    """
    value, gap, n_iter, changed = follower.value(data.total), math.inf, 0, -1
    while True:
        at = slope(follower, data)
        before, gap = gap, certified_gap(follower, data, at)
        # on the same pieces as before the gap falls, but for what the arithmetic allows
        stalled = changed == follower.n_changed and not gap < 0.5 * before
        if gap <= _POLISH * tol * value or stalled or n_iter >= max_iter:
            return Settled(gap, value, at, n_iter)
        changed = follower.n_changed
        moved = _step(follower, data, at, value)
        if moved is None:
            return Settled(gap, value, at, n_iter)
        value, n_iter = moved, n_iter + 1


def _step(follower: Follower, data: Data, at: Slope, value: float) -> float | None:
    """A Newton step, shorter where P would rise; None where it does not fall at all."""
    start, step = follower.point, -_solved(follower.curvature(data.total), at.gradient)
    room = 64 * EPS * abs(value) + follower.sums.rounding(follower.length) / data.total
    share = 1.0
    while share > _LEAST_SHARE:
        follower.move(start + share * step, data)
        reached = follower.value(data.total)
        if reached <= value + room:
            return reached
        share *= 0.25
    follower.move(start, data)
    return None


def _solved(H: np.ndarray, right: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.solve(H, right)
    except np.linalg.LinAlgError:
        return solve_positive(H, right)
