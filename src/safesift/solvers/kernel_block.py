"""A kernel problem on a few of its samples, the coordinates of all others fixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from safesift.arithmetic.numerics import EPS, cholesky, solve_positive
from safesift.design.kernels import NotPositiveError
from safesift.losses import Loss
from safesift.losses.dual_form import DualForm
from safesift.solvers.line_search import Share, backtrack

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Block:
    """min over β, c of Σ step_i f(Kβ + offset + c; y) + ½βᵀKβ + c·wanted, on some samples.

    The whole problem divided by alpha, where the slopes of all other samples are fixed: they
    leave an offset and what Σβ_i must be.

    Attributes
    ----------
    K : array of shape (m, m)
    offset : array of shape (m,)
    loss, y : Loss, array
    steps : array of shape (m,)
        s_i / (alpha·W): β_i = −step_i·ν_i at the optimum.
    lower, upper : arrays of shape (m,)
        Ends of β_i, from the domain of the conjugate.
    wanted : float or None
        Σβ_i where there is an intercept.
    """

    K: Array
    offset: Array
    loss: Loss
    y: Array
    steps: Array
    lower: Array
    upper: Array
    wanted: float | None

    def feasible(self, beta: Array) -> Array:
        """The coordinates moved into their ends, and to the wanted sum: towards 0 if that does."""
        beta = np.clip(beta, self.lower, self.upper)
        if self.wanted is None:
            return beta
        excess = float(beta.sum()) - self.wanted
        side = beta > 0 if excess > 0 else beta < 0
        mass = float(np.abs(beta[side]).sum())
        if mass > 0 and excess != 0:
            beta[side] *= max(1.0 - abs(excess) / mass, 0.0)
        return self._beyond(beta, self.wanted) if abs(excess) > mass else beta

    def _beyond(self, beta: Array, wanted: float) -> Array:
        """Coordinates moved towards their ends, away from 0, as far as the wanted sum needs it."""
        excess = float(beta.sum()) - wanted
        rooms = (self.lower if excess > 0 else self.upper) - beta
        endless = np.isinf(rooms)
        if endless.any():
            return beta - np.where(endless, excess / endless.sum(), 0.0)
        room = float(np.abs(rooms).sum())
        return beta + min(abs(excess) / room, 1.0) * rooms if room > 0 else beta


# --- kernel problems of losses with kinks on a block: pairs of coordinates, then whole faces ---


# steps on pairs, in multiples of the number of samples: at first, and between steps on faces
_FIRST_SWEEPS, _SWEEPS = 20, 2


_ALTERNATIONS, _FACES = 100, 8


# negative curvature that rounding explains, relative to the diagonal
_ROUNDING = 1e-7


class Inner(NamedTuple):
    """Coordinates and intercept that solve a block, and how far they violate optimality."""

    beta: Array
    intercept: float
    violation: float = 0.0


def solve_by_pairs(block: Block, form: DualForm, beta: Array, tol: float) -> Inner:
    """Solve a block to a violation of the optimality conditions, in units of the predictions.

    Steps on pairs find out which coordinates are at an end; a step on a face then moves all others
    to the minimum of the quadratic function that is left, or as far towards it as their ends allow.

    Parameters
    ----------
    block : Block
    form : DualForm
        Of its loss.
    beta : array
        A start; feasible.
    tol : float
    """
    inner = Inner(beta, 0.0, np.inf)
    for k in range(_ALTERNATIONS):
        inner = improve_by_pairs(block, form, inner.beta, tol, _SWEEPS if k else _FIRST_SWEEPS)
        if not inner.violation > tol:
            break
        for _ in range(_FACES):
            if _face_step(block, form, inner.beta):
                break
    return inner


def improve_by_pairs(
    block: Block, form: DualForm, beta: Array, tol: float, sweeps: int = _FIRST_SWEEPS
) -> Inner:
    """Steps on pairs (on single coordinates without an intercept) for a few sweeps' worth."""
    from safesift.arithmetic.compiled.pairs import descend_pairs, descend_singles

    descend = descend_singles if block.wanted is None else descend_pairs
    ends = (form.low, form.high, block.lower, block.upper)
    beta = beta.copy()
    d = form.curvature / block.steps
    pull = block.K @ beta + block.offset + d * beta
    max_steps = sweeps * len(beta)
    violation, middle, least = descend(block.K, d, *ends, beta, pull, tol, max_steps)
    if least < -_ROUNDING * float(np.diag(block.K).max(initial=0.0)):
        raise NotPositiveError("two samples with a negative squared distance")
    return Inner(beta, -middle, violation)


def _face_step(block: Block, form: DualForm, beta: Array) -> bool:
    """Towards the minimum over the coordinates inside their ends; True if it was reached."""
    free = np.flatnonzero((beta != 0) & (beta > block.lower) & (beta < block.upper))
    if not free.size:
        return True
    start, d = beta[free], form.curvature / block.steps[free]
    low, high = form.low[free], form.high[free]
    slope = block.K[free] @ beta + block.offset[free] + d * start
    slope -= np.where(start > 0, low, high)
    H = block.K[np.ix_(free, free)].copy()
    H[np.diag_indices_from(H)] += d
    solved = solve_positive(H, np.column_stack([slope, np.ones(len(free))]))
    step = -solved[:, 0]
    if block.wanted is not None:
        step += solved[:, 1] * (solved[:, 0].sum() / solved[:, 1].sum())
    ends = np.where(
        step > 0,
        np.where(start > 0, block.upper[free], 0.0),
        np.where(start > 0, 0.0, block.lower[free]),
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        rooms = np.where(step != 0, (ends - start) / step, np.inf)
    length = min(1.0, float(rooms.min()))
    if not np.isfinite(step).all() or not float(slope @ step) < 0:
        return True
    beta[free] = np.where(rooms <= length, ends, start + length * step)
    return length == 1.0


# --- kernel problems of smooth losses on a block: Newton's method in the kernel space -----
#
# With w = f''(t) and S the samples of curvature, a Newton step solves (Chapelle 2007)
#
#     (K_SS + diag(1/(step·w))) β_S + c = t_S − ν_S/w_S − (values of all others),    Σβ = wanted,
#
# and β = −step·ν on the others: 0 on a flat piece. It is solved in the scaled form I + RKR ⪰ I with
# R = √(step·w), which no small w can spoil.


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
