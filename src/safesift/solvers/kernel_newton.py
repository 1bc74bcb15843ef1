"""Kernel problems of smooth losses on a block: Newton's method in the kernel space.

With w = f''(t) and S the samples of curvature, a Newton step solves (Chapelle 2007)

    (K_SS + diag(1/(step·w))) β_S + c = t_S − ν_S/w_S − (values of all others),    Σβ = wanted,

and β = −step·ν on the others: 0 on a flat piece. It is solved in the scaled form I + RKR ⪰ I with
R = √(step·w), which no small w can spoil.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from safesift.arithmetic.numerics import EPS, cholesky
from safesift.design.kernels import NotPositiveError
from safesift.solvers.kernel_block import Block
from safesift.solvers.kernel_pairs import Inner
from safesift.solvers.line_search import Share, backtrack

Array = NDArray[np.float64]

_MAX_STEPS = 60
# Armijo's share of the predicted decrease, and the shortest step
_SHARE, _LEAST = 1e-4, 2.0**-30


@dataclass(frozen=True, eq=False)
class _Point:
    """Coordinates, their own values Kβ, and the intercept."""

    beta: Array
    own: Array
    intercept: float

    def towards(self, other: _Point, length: float) -> _Point:
        if length == 1.0:
            return other
        return _Point(
            self.beta + length * (other.beta - self.beta),
            self.own + length * (other.own - self.own),
            self.intercept + length * (other.intercept - self.intercept),
        )


def solve_by_newton(block: Block, beta: Array, intercept: float, tol: float) -> Inner:
    """Solve a block until a Newton step promises to lower the objective by `tol` at most.

    Parameters
    ----------
    block : Block
        Of a smooth loss.
    beta, intercept : array, float
        A start.
    tol : float
        In units of the block's objective.
    """
    point = _Point(beta, block.K @ beta, intercept)
    value = _value(block, point)
    for _ in range(_MAX_STEPS):
        target = _newton_target(block, point)
        promised = -_slope(block, point, target)
        if not promised > EPS * abs(value):
            return Inner(target.beta, target.intercept)
        length, reached = _search(block, point, target, promised, value)
        if length == 0.0:
            break
        point, value = point.towards(target, length), reached
        if length == 1.0 and promised <= tol:
            break
    return Inner(point.beta, point.intercept)


def _predictions(block: Block, point: _Point) -> Array:
    return point.own + block.offset + point.intercept


def _value(block: Block, point: _Point) -> float:
    losses = block.loss.value(_predictions(block, point), block.y)
    value = float((block.steps * losses).sum()) + 0.5 * float(point.beta @ point.own)
    return value if block.wanted is None else value + point.intercept * block.wanted


def _slope(block: Block, point: _Point, target: _Point) -> float:
    """Of the objective along the way to the target."""
    moved = target.own - point.own
    nu = block.loss.slope(_predictions(block, point), block.y)
    slope = float((block.steps * nu) @ moved) + float(point.beta @ moved)
    if block.wanted is None:
        return slope
    shift = target.intercept - point.intercept
    return slope + shift * (float(block.steps @ nu) + block.wanted)


def _newton_target(block: Block, point: _Point) -> _Point:
    pred = _predictions(block, point)
    nu, w = block.loss.slope(pred, block.y), block.loss.curvature(pred, block.y)
    root = np.sqrt(block.steps * w)
    curved = np.flatnonzero(root > 0)
    beta = np.where(root > 0, 0.0, -block.steps * nu)
    fixed = np.flatnonzero(beta)
    if not curved.size:
        return _Point(beta, block.K @ beta, point.intercept)
    R, K = root[curved], block.K[np.ix_(curved, curved)]
    right = pred[curved] - nu[curved] / w[curved] - block.offset[curved]
    if fixed.size:
        right -= block.K[np.ix_(curved, fixed)] @ beta[fixed]
    K *= R
    K *= R[:, None]
    K[np.diag_indices_from(K)] += 1.0
    try:
        factor = cholesky(K)
    except np.linalg.LinAlgError:
        raise NotPositiveError("a Newton system has a negative eigenvalue") from None
    intercept = 0.0
    if block.wanted is None:
        solved = cho_solve(factor, R * right, check_finite=False)
    else:
        both = cho_solve(factor, np.column_stack([R * right, R]), check_finite=False)
        rest = block.wanted - float(beta.sum())
        intercept = (float(R @ both[:, 0]) - rest) / float(R @ both[:, 1])
        solved = both[:, 0] - intercept * both[:, 1]
    beta[curved] = R * solved
    return _Point(beta, block.K @ beta, intercept)


def _search(block: Block, point: _Point, target: _Point, promised: float, value: float) -> Share:
    """The share of the way that lowers the objective by a part of what is promised."""

    def along(share: float) -> float:
        return _value(block, point.towards(target, share))

    noise = 8 * EPS * abs(value)
    return backtrack(along, value + noise, slope=-_SHARE * promised, least=_LEAST)
