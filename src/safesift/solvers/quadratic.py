"""The model of a Newton step: a quadratic function plus a penalty, minimised exactly.

`minimise` has one implementation per penalty, all on a p × p matrix without a pass over the data:
Cholesky for l2, an active-set method for l1 and elastic net, and the multiplier of the constraint
for the two balls. Any other penalty is served through its prox.

Steps within an orthant: coefficients that would change their signs are stopped at zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, singledispatch
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import brentq

from safesift.arithmetic.numerics import EPS, add_to_diagonal, norm, solve_positive
from safesift.penalties import L1, L2, ElasticNet, L1Ball, L2Ball, Penalty
from safesift.solvers.systems import Systems

Array = NDArray[np.float64]


# shares of the way that are tried before only the first change of sign is left
_SHORTEST = 1e-3
# signs are followed one by one in so many coordinates at most, and so often in each of them
_MOST_FOLLOWED, _CHANGES = 2000, 4
# so often signs are exchanged although no fewer are wrong than before
_PATIENCE = 3
# a matrix is next to singular that turns more signs than were changed, and this share of all
_ASTRAY = 0.25


class OrthantStep(NamedTuple):
    """By how much coefficients change, and which of them are stopped at zero."""

    change: Array
    stopped: NDArray[np.bool_]


def orthant_step(
    start: Array, direction: Array, signs: Array, rise: Callable[[Array], float]
) -> OrthantStep:
    """The first of ever shorter steps that goes downhill, several coefficients stopped at once.

    Parameters
    ----------
    start, direction : array
        Up to the first change of sign, this direction is known to go downhill.
    signs : array
        Those of `start`; 1 or −1 where that is zero and may become positive or negative; 0 for
        coefficients whose signs are free.
    rise : callable
        By how much a change lifts the function that is to be made smaller.
    """
    changes_at = np.full(len(start), np.inf)
    shrinks = signs * direction < 0.0
    changes_at[shrinks] = np.abs(start[shrinks] / direction[shrinks])
    first, share = float(changes_at.min(initial=1.0)), 1.0
    while True:
        stopped = changes_at <= share
        change = np.where(stopped, -start, share * direction)
        # "not >": also where overflow left no numbers to compare
        if not share > first or rise(change) < 0.0:
            return OrthantStep(change, stopped)
        share = max(0.5 * share, first) if share > _SHORTEST else first


@dataclass(frozen=True, eq=False)
class Model:
    """½uᵀHu + bᵀu with H positive definite; the first p coordinates of u are penalised.

    H is in C order, and nobody else's: it is changed in between.
    """

    H: Array
    b: Array
    p: int

    def ridged(self, weight: float) -> Model:
        """With ½·weight·‖u‖² added on the penalised coordinates."""
        H = self.H.copy()
        add_to_diagonal(H, weight, self.p)
        return replace(self, H=H)

    def minimum(self) -> Array:
        """The minimiser without a penalty."""
        return solve_positive(self.H, -self.b)

    def ridge_minimum(self, weight: float) -> Array:
        """The minimiser of `ridged(weight)`, without a copy of the matrix."""
        if not isinstance(self.H, np.ndarray):
            return self.ridged(weight).minimum()
        diagonal = self.H.reshape(-1)[:: len(self.H) + 1]
        before = diagonal.copy()
        diagonal[: self.p] += weight
        try:
            return self.minimum()
        finally:
            diagonal[:] = before


@singledispatch
def minimise(penalty: Penalty, model: Model, alpha: float, start: Array) -> Array:
    """argmin of ½uᵀHu + bᵀu + alpha·R(u), by accelerated proximal steps for a general R."""
    step = 1.0 / float(np.linalg.eigvalsh(model.H)[-1])
    u = ahead = start
    momentum = 1.0
    for _ in range(500):
        moved = ahead - step * (model.H @ ahead + model.b)
        moved[: model.p] = penalty.prox(moved[: model.p], step * alpha)
        if norm(moved - u) <= 1e-14 * norm(moved):
            return moved
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum**2))
        ahead = moved + (momentum - 1.0) / following * (moved - u)
        u, momentum = moved, following
    return u


@minimise.register
def _(penalty: L2, model: Model, alpha: float, start: Array) -> Array:
    return model.ridge_minimum(alpha)


@minimise.register
def _(penalty: L1, model: Model, alpha: float, start: Array) -> Array:
    return lasso(model, alpha, start)


@minimise.register
def _(penalty: ElasticNet, model: Model, alpha: float, start: Array) -> Array:
    curved = model.ridged(alpha * penalty.strong_convexity)
    return lasso(curved, alpha * penalty.l1_ratio, start)


@minimise.register
def _(penalty: L2Ball, model: Model, alpha: float, start: Array) -> Array:
    """(H + τI)u = −b with the τ ≥ 0 for which ‖u‖ is the radius, in the eigenbasis of H.

    An intercept is eliminated first: what is left is the Schur complement.
    """
    inside = model.minimum()
    if norm(inside[: model.p]) <= penalty.radius:
        return inside
    p, H, b = model.p, model.H, model.b
    rest = slice(p, None)
    eliminated = solve_positive(H[rest, rest], np.column_stack([H[rest, :p], b[rest]]))
    schur = H[:p, :p] - H[:p, rest] @ eliminated[:, :p]
    values, vectors = eigh(schur)
    values = np.maximum(values, 0.0)
    pull = vectors.T @ (b[:p] - H[:p, rest] @ eliminated[:, p])

    def excess(multiplier: float) -> float:
        return norm(pull / (values + multiplier)) - penalty.radius

    largest = norm(pull) / penalty.radius * (1.0 + 1e-12)
    multiplier = least = EPS * largest
    if excess(least) > 0:
        multiplier = float(brentq(excess, least, largest, xtol=1e-300, rtol=4 * EPS, disp=False))
    coef = vectors @ (-pull / (values + multiplier))
    return np.concatenate([coef, -eliminated[:, :p] @ coef - eliminated[:, p]])


@minimise.register
def _(penalty: L1Ball, model: Model, alpha: float, start: Array) -> Array:
    """The lasso with the weight for which ‖u‖₁ is the radius.

    For given signs ‖u‖₁ is a falling line in the weight: Newton steps, kept within a bracket, hit
    its root exactly once the signs are right.
    """
    inside, p = model.minimum(), model.p
    if np.abs(inside[:p]).sum() <= penalty.radius:
        return inside
    low, high = 0.0, math.inf
    found, weight = start, float(np.abs(model.H @ start + model.b)[:p].max())
    for _ in range(100):
        search = _searched(model, weight, found)
        found, excess = search.u, float(np.abs(search.u[:p]).sum()) - penalty.radius
        low, high = (weight, high) if excess > 0 else (low, weight)
        enclosed = math.isfinite(high) and high - low <= 4 * EPS * high
        if enclosed or abs(excess) <= 4 * EPS * penalty.radius:
            break
        weight = weight + excess * search.weight_per_norm()
        if not low < weight < high:
            weight = 0.5 * (low + high) if math.isfinite(high) else 2.0 * low
    return found


def lasso(model: Model, weight: float, start: Array) -> Array:
    """argmin of ½uᵀHu + bᵀu + weight·‖u‖₁ over the penalised coordinates, by active sets.

    The minimiser for given signs is a linear system. First all signs that are wrong there change
    at once, for as long as they become fewer (block principal pivoting: Kim and Park, *Fast
    nonnegative matrix factorization*, SIAM J. Sci. Comput. 2011), which takes a handful of systems
    but need not end. Where it does not, coordinates that would change sign on the way to the
    minimiser are stopped at 0 and leave, several at a time if that goes downhill; once the signs
    hold, coordinates whose gradient exceeds the weight enter, several at a time. Every round of
    that lowers the objective, so that it ends.
    """
    return _searched(model, weight, start).u


def _searched(model: Model, weight: float, start: Array) -> _SignSearch:
    search = _SignSearch(model, weight, start)
    if search.exchange() or (search.follow() and search.exchange()):
        return search
    least = math.inf
    for _ in range(20 + 2 * model.p):
        search.settle()
        # at the end of the arithmetic a coordinate may enter and leave for ever
        if not search.value < least or not search.enter():
            break
        least = search.value
    return search


class _SignSearch:
    """A point, its active coordinates and their signs."""

    def __init__(self, model: Model, weight: float, start: Array) -> None:
        self.model, self.weight = model, weight
        self.systems = Systems(np.ascontiguousarray(model.H))
        self.u = start.copy()
        self.signs = np.sign(start)
        self.signs[model.p :] = 0.0
        self.active = start != 0
        self.active[model.p :] = True

    def exchange(self) -> bool:
        """Change all signs that are wrong, until none is; False where they do not become fewer."""
        # many of the first signs may be wrong
        fewest, patience, n_changed = math.inf, _PATIENCE, len(self.u)
        u, signs, active = self.u, self.signs, self.active
        while patience:
            u = self.systems.solve(active, -self.model.b - self.weight * signs)
            gradient, room = self._gradient(u)
            beyond = self._beyond(gradient, room, active)
            wrong, enters = signs * u < 0, beyond > 0
            n_wrong = int(np.count_nonzero(wrong | enters))
            if n_wrong == 0 and np.isfinite(u).all():
                off = np.where(active, np.abs(gradient + self.weight * signs), 0.0)
                if self.systems.exact or (off <= room).all():
                    self.u, self.signs, self.active = u, signs, active
                    return True
                self.systems.forget()
                continue
            if np.count_nonzero(wrong) > max(n_changed, _ASTRAY * np.count_nonzero(active)):
                # next to singular: signs that hardly changed say nothing any more
                return False
            fewest, patience = (n_wrong, _PATIENCE) if n_wrong < fewest else (fewest, patience - 1)
            signs = np.where(wrong, 0.0, np.where(enters, -np.sign(gradient), signs))
            active, n_changed = (active & ~wrong) | enters, n_wrong
        return False

    def follow(self) -> bool:
        """Change one sign at a time, by compiled loops; False where the matrix is too large.

        A factor that follows by rank-one changes loses digits: what comes of it is a start.
        """
        from safesift.arithmetic.compiled.lasso import follow_signs

        model, d = self.model, len(self.u)
        if d > _MOST_FOLLOWED:
            return False
        changes = _CHANGES * (d + 10)
        found = self.u.copy(), self.signs.copy(), self.active.copy()
        factor, order = np.zeros((d, d)), np.zeros(d, dtype=np.int64)
        known = self.systems.factor_into(factor, order, self.active)
        problem = self.systems.H, model.b, self.weight, model.p
        follow_signs(*problem, *found, factor, order, known, changes)
        if not np.isfinite(found[0]).all():
            return False
        self.u, self.signs, self.active = found
        return True

    def _gradient(self, u: Array) -> tuple[Array, Array]:
        """The gradient, and how far it may be off by rounding."""
        model = self.model
        gradient = model.H @ u + model.b
        return gradient, 64 * EPS * (np.abs(model.H) @ np.abs(u) + np.abs(model.b))

    def _beyond(self, gradient: Array, room: Array, active: NDArray[np.bool_]) -> Array:
        """By how much the gradient exceeds the weight where coordinates are not active."""
        beyond = np.where(active, 0.0, np.abs(gradient) - self.weight - room)
        beyond[self.model.p :] = 0.0
        return beyond

    def settle(self) -> None:
        """Move to the minimiser on the active coordinates, dropping those that reach 0."""
        for _ in range(len(self.u) + 1):
            rows = np.flatnonzero(self.active)
            here, signs = self.u[rows], self.signs[rows]
            block, pull = self.model.H[np.ix_(rows, rows)], self.model.b[rows] + self.weight * signs
            there = solve_positive(block, -pull)
            if not (signs * there < 0).any():
                self.u[rows] = there
                return
            rise = partial(_rise, block, block @ here + pull)
            step = orthant_step(here, there - here, signs, rise)
            self.u[rows] = here + step.change
            self.active[rows[step.stopped]] = False

    def enter(self) -> bool:
        """Activate the coordinates that violate optimality most; False where none does."""
        gradient, room = self._gradient(self.u)
        beyond = self._beyond(gradient, room, self.active)
        violating = np.flatnonzero(beyond > 0)
        if violating.size == 0:
            return False
        most = max(8, violating.size // 4)
        chosen = violating[np.argsort(beyond[violating])[-most:]]
        self.active[chosen] = True
        self.signs[chosen] = -np.sign(gradient[chosen])
        return True

    @property
    def value(self) -> float:
        """What is minimised."""
        u, model = self.u, self.model
        smooth = float(u @ (0.5 * (model.H @ u) + model.b))
        return smooth + self.weight * float(np.abs(u[: model.p]).sum())

    def weight_per_norm(self) -> float:
        """By how much the weight must grow for ‖u‖₁ to fall by 1, while the signs hold."""
        rows = np.flatnonzero(self.active)
        signs = self.signs[rows]
        fall = float(signs @ solve_positive(self.model.H[np.ix_(rows, rows)], signs))
        return 1.0 / fall if fall > 0 else math.inf


def _rise(H: Array, slopes: Array, change: Array) -> float:
    """By how much a quadratic function is larger after a change."""
    return float(change @ (slopes + 0.5 * (H @ change)))
