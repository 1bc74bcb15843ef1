"""Penalties R(x): l2, l1, elastic net, and the indicators of an l2 or l1 ball.

A penalty sees the penalised coordinates only; the intercept never reaches it. In the objective it
is multiplied by alpha, except that an indicator does not change when multiplied.

To add a penalty, subclass `Penalty` and put it into `PENALTIES`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from safesift.numerics import EPS, norm
from safesift.parameters import require_finite, require_positive

__all__ = ["L1", "L2", "PENALTIES", "ElasticNet", "L1Ball", "L2Ball", "Penalty", "Subgradient"]

Array = NDArray[np.float64]

# allowance for the rounding of a norm, relative; norms are of vectors of far fewer than 2³⁰ entries
_ROOM = 1e-12


class Subgradient(NamedTuple):
    """A vector v with P(x) + vᵀ(u − x) ≤ P(u) + slack for every u.

    The slack is 0 for a true subgradient. It is positive where a point numerically on the
    boundary of a ball is treated as lying on it.
    """

    vector: Array
    slack: float = 0.0


class Cut(NamedTuple):
    """A half-space normalᵀ(u − x) ≤ −depth that contains every feasible u."""

    normal: Array
    depth: float


class Penalty(ABC):
    """A convex penalty R with R(0) = 0, even in each coordinate.

    Attributes
    ----------
    strong_convexity : float
        The largest κ with R − ½κ‖x‖² convex: 1 for l2, 0 for l1.
    is_constraint : bool
        Whether R takes the values 0 and +inf only, so that alpha does not matter.
    """

    strong_convexity: float = 0.0
    is_constraint: bool = False

    @abstractmethod
    def value(self, coef: Array) -> float:
        """R(coef)."""

    def value_error(self, coef: Array) -> float:
        """A bound on the rounding error of R(coef)."""
        return (len(coef) + 1) * EPS * self.value(coef)

    @abstractmethod
    def support(self, u: Array, alpha: float, error: float = 0.0) -> float:
        """The largest value of alpha·R*(v/alpha) over all v with ‖v − u‖₂ ≤ error.

        With `error` the rounding of `u`, this is what a certified dual value subtracts.
        """

    @abstractmethod
    def prox(self, coef: Array, step: float) -> Array:
        """argmin_u ½‖u − coef‖² + step·R(u)."""

    @abstractmethod
    def least_norm(self, coef: Array, gradient: Array, alpha: float) -> Subgradient:
        """The element of gradient + alpha·∂R(coef) of least norm."""

    @abstractmethod
    def norm_bound(self, objective: float, alpha: float) -> float:
        """A bound on ‖x‖₂ for every x with alpha·R(x) ≤ objective."""

    def subgradient(self, coef: Array, towards: Array) -> Array:
        """The element of ∂R(coef) nearest to a vector; not for constraints."""
        threshold = self.sparse_threshold(1.0)
        kinked = np.clip(towards, -threshold, threshold)
        absolute = np.where(coef != 0, threshold * np.sign(coef), kinked)
        return absolute + self.strong_convexity * coef

    def secant_floor(self, coef: Array, pull: Array, reach: Array, alpha: float) -> Array:
        """A d ≥ 0 with (v − pull)ᵀ(x − coef) ≥ Σ d_j (x_j − coef_j)² wherever |x_j| ≤ reach_j.

        For every v in alpha·∂R(x); `pull` is an element of alpha·∂R(coef). What curvature is to a
        loss: alpha for l2, and for l1 the distance of the pull to ±alpha on the coordinates at 0.
        """
        return np.full_like(coef, alpha * self.strong_convexity)

    def secant_ceiling(self, coef: Array, lower: Array, upper: Array, alpha: float) -> Array:
        """c with v − pull = diag(d)(x − coef), d ≤ c, for x in [lower, upper]; +inf if unknown."""
        return np.full_like(coef, math.inf)

    def sparse_threshold(self, alpha: float) -> float:
        """τ ≥ 0 such that |j-th partial derivative of the rest| < τ at an optimum means x_j = 0."""
        return 0.0

    def conjugate(self, z: Array) -> float:
        """R*(z)."""
        return self.support(z, 1.0)

    def feasible_multiples(
        self, u: Array, offset: Array, alpha: float, error: float = 0.0
    ) -> tuple[float, float]:
        """The interval of c ≤ 4 for which `support(c·u + offset, alpha, error·max(c, 1))` < inf.

        Empty (low > high) where there is none.
        """
        return 0.0, 4.0

    def contains(self, coef: Array) -> bool:
        """Whether R is surely finite at a point, rounding of norms included."""
        return True

    def inside(self, coef: Array) -> Array:
        """The nearest point that is surely feasible, nearly."""
        return coef

    def feasibility_cut(self, coef: Array) -> Cut | None:
        """A cut that separates an infeasible point from the constraint, None for a feasible one."""
        return None


def _soft(coef: Array, threshold: float) -> Array:
    return np.sign(coef) * np.maximum(np.abs(coef) - threshold, 0.0)


def _l1_least_norm(coef: Array, gradient: Array, weight: float) -> Array:
    """Least-norm element of gradient + weight·∂‖·‖₁(coef)."""
    return np.where(coef != 0, gradient + weight * np.sign(coef), _soft(gradient, weight))


def _l1_secant_floor(coef: Array, pull: Array, reach: Array, weight: float) -> Array:
    """From 0 to x_j the slope of weight·|x_j| grows from the pull to ±weight."""
    with np.errstate(divide="ignore", invalid="ignore"):
        floor = np.maximum(weight - np.abs(pull), 0.0) / reach * (1.0 - 1e-12)
    return np.where((coef == 0) & np.isfinite(floor), floor, 0.0)


def _l1_secant_ceiling(coef: Array, lower: Array, upper: Array) -> Array:
    """The l1 norm is linear where no sign changes."""
    same_sign = ((coef > 0) & (lower > 0)) | ((coef < 0) & (upper < 0))
    return np.where(same_sign, 0.0, math.inf)


def _largest(u: Array) -> float:
    return float(np.max(np.abs(u), initial=0.0))


def _quotient(value: float, divisor: float) -> float:
    """value / divisor for values of 0 or more, where the divisor may have underflowed to 0."""
    if divisor > 0:
        return value / divisor
    return math.inf if value > 0 else 0.0


def _square(value: float) -> float:
    """value², +inf where Python's power would raise OverflowError."""
    return value * value


@dataclass(frozen=True)
class L2(Penalty):
    """R(x) = ½‖x‖₂².

    Examples
    --------
    >>> import numpy as np
    >>> from safesift.penalties import L2
    >>> L2().value(np.array([3.0, 4.0]))
    12.5
    """

    strong_convexity = 1.0

    def value(self, coef: Array) -> float:
        return 0.5 * _square(norm(coef))

    def support(self, u: Array, alpha: float, error: float = 0.0) -> float:
        return _quotient(0.5 * _square(norm(u) + error), alpha)

    def prox(self, coef: Array, step: float) -> Array:
        return coef / (1.0 + step)

    def least_norm(self, coef: Array, gradient: Array, alpha: float) -> Subgradient:
        return Subgradient(gradient + alpha * coef)

    def norm_bound(self, objective: float, alpha: float) -> float:
        return math.sqrt(_quotient(2.0 * objective, alpha))

    def secant_ceiling(self, coef: Array, lower: Array, upper: Array, alpha: float) -> Array:
        return np.full_like(coef, alpha)


@dataclass(frozen=True)
class L1(Penalty):
    """R(x) = ‖x‖₁."""

    def value(self, coef: Array) -> float:
        return float(np.abs(coef).sum())

    def support(self, u: Array, alpha: float, error: float = 0.0) -> float:
        return 0.0 if _largest(u) + error <= alpha else math.inf

    def feasible_multiples(
        self, u: Array, offset: Array, alpha: float, error: float = 0.0
    ) -> tuple[float, float]:
        # a hair less, so that the sum, rounded, is still feasible
        limit = alpha * (1.0 - 4e-15) - 4.0 * error
        rest = np.where(u == 0, np.abs(offset), 0.0)
        if limit <= _largest(rest):
            return 1.0, 0.0
        moving = u != 0
        ends = np.stack([-limit - offset[moving], limit - offset[moving]]) / u[moving]
        low, high = np.sort(ends, axis=0)
        return float(np.max(low, initial=0.0)), float(np.min(high, initial=4.0))

    def prox(self, coef: Array, step: float) -> Array:
        return _soft(coef, step)

    def least_norm(self, coef: Array, gradient: Array, alpha: float) -> Subgradient:
        return Subgradient(_l1_least_norm(coef, gradient, alpha))

    def norm_bound(self, objective: float, alpha: float) -> float:
        return _quotient(objective, alpha)

    def secant_floor(self, coef: Array, pull: Array, reach: Array, alpha: float) -> Array:
        return _l1_secant_floor(coef, pull, reach, alpha)

    def secant_ceiling(self, coef: Array, lower: Array, upper: Array, alpha: float) -> Array:
        return _l1_secant_ceiling(coef, lower, upper)

    def sparse_threshold(self, alpha: float) -> float:
        return alpha


@dataclass(frozen=True)
class ElasticNet(Penalty):
    """R(x) = l1_ratio·‖x‖₁ + ½(1 − l1_ratio)·‖x‖₂².

    Parameters
    ----------
    l1_ratio : float in [0, 1), default=0.5
        The share of the l1 norm; 0 is l2. For 1 use `L1`, which is not strongly convex.
    """

    l1_ratio: float = 0.5

    def __post_init__(self) -> None:
        require_finite("l1_ratio", self.l1_ratio)
        if not 0.0 <= self.l1_ratio < 1.0:
            raise ValueError(
                f"l1_ratio must be in [0, 1), got {self.l1_ratio!r}: for 1 use penalty='l1'."
            )

    @property
    def strong_convexity(self) -> float:
        return 1.0 - self.l1_ratio

    def value(self, coef: Array) -> float:
        l2 = 0.5 * self.strong_convexity * _square(norm(coef))
        return self.l1_ratio * float(np.abs(coef).sum()) + l2

    def support(self, u: Array, alpha: float, error: float = 0.0) -> float:
        beyond = norm(_soft(u, alpha * self.l1_ratio)) + error
        return _quotient(0.5 * _square(beyond), alpha * self.strong_convexity)

    def prox(self, coef: Array, step: float) -> Array:
        return _soft(coef, step * self.l1_ratio) / (1.0 + step * self.strong_convexity)

    def least_norm(self, coef: Array, gradient: Array, alpha: float) -> Subgradient:
        smooth = gradient + alpha * self.strong_convexity * coef
        return Subgradient(_l1_least_norm(coef, smooth, alpha * self.l1_ratio))

    def norm_bound(self, objective: float, alpha: float) -> float:
        bound = math.sqrt(_quotient(2.0 * objective, alpha * self.strong_convexity))
        if self.l1_ratio > 0:
            bound = min(bound, _quotient(objective, alpha * self.l1_ratio))
        return bound

    def secant_floor(self, coef: Array, pull: Array, reach: Array, alpha: float) -> Array:
        # at 0 the pull of the l2 part is 0, so all of it is the l1 norm's
        absolute = _l1_secant_floor(coef, pull, reach, self.sparse_threshold(alpha))
        return absolute + alpha * self.strong_convexity

    def secant_ceiling(self, coef: Array, lower: Array, upper: Array, alpha: float) -> Array:
        return _l1_secant_ceiling(coef, lower, upper) + alpha * self.strong_convexity

    def sparse_threshold(self, alpha: float) -> float:
        return alpha * self.l1_ratio


@dataclass(frozen=True)
class _Ball(Penalty):
    """The indicator of { ‖x‖ ≤ radius } in the norm of the subclass."""

    radius: float = 1.0
    is_constraint = True

    def __post_init__(self) -> None:
        require_positive("radius", self.radius)

    @abstractmethod
    def _size(self, coef: Array) -> float:
        """The norm that the constraint bounds."""

    @abstractmethod
    def _dual_size(self, u: Array) -> float:
        """Its dual norm."""

    @abstractmethod
    def _outward(self, coef: Array) -> Array:
        """A subgradient of the norm at a point that is not 0."""

    @abstractmethod
    def _multiplier(self, coef: Array, gradient: Array) -> float:
        """The τ ≥ 0 for which gradient + τ·∂‖coef‖ has an element of least norm."""

    def value(self, coef: Array) -> float:
        return 0.0 if self._size(coef) <= self.radius * (1.0 + _ROOM) else math.inf

    def support(self, u: Array, alpha: float, error: float = 0.0) -> float:
        return self.radius * (self._dual_size(u) + error)

    def norm_bound(self, objective: float, alpha: float) -> float:
        return self.radius

    def contains(self, coef: Array) -> bool:
        return self._size(coef) <= self.radius * (1.0 - _ROOM)

    def inside(self, coef: Array) -> Array:
        pulled = self.prox(coef, 1.0)
        size = self._size(pulled)
        limit = self.radius * (1.0 - 2.0 * _ROOM)
        return pulled if size <= limit else pulled * (limit / size)

    def feasibility_cut(self, coef: Array) -> Cut | None:
        excess = self._size(coef) - self.radius
        if excess <= _ROOM * self.radius:
            return None
        return Cut(self._outward(coef), excess)

    def least_norm(self, coef: Array, gradient: Array, alpha: float) -> Subgradient:
        inside_by = self.radius - self._size(coef)
        if inside_by > _ROOM * self.radius:
            return Subgradient(gradient)
        multiplier = self._multiplier(coef, gradient)
        # outwardᵀu ≤ radius for every feasible u, and outwardᵀcoef = ‖coef‖
        return Subgradient(
            self._pulled(coef, gradient, multiplier),
            multiplier * (abs(inside_by) + _ROOM * self.radius),
        )

    def _pulled(self, coef: Array, gradient: Array, multiplier: float) -> Array:
        return gradient + multiplier * self._outward(coef)


@dataclass(frozen=True)
class L2Ball(_Ball):
    """The constraint ‖x‖₂ ≤ radius.

    Parameters
    ----------
    radius : float, default=1.0
    """

    def _size(self, coef: Array) -> float:
        return norm(coef)

    def _dual_size(self, u: Array) -> float:
        return norm(u)

    def _outward(self, coef: Array) -> Array:
        return coef / norm(coef)

    def _multiplier(self, coef: Array, gradient: Array) -> float:
        return max(0.0, -float(gradient @ self._outward(coef)))

    def prox(self, coef: Array, step: float) -> Array:
        size = norm(coef)
        return coef if size <= self.radius else coef * (self.radius / size)


@dataclass(frozen=True)
class L1Ball(_Ball):
    """The constraint ‖x‖₁ ≤ radius.

    Parameters
    ----------
    radius : float, default=1.0
    """

    def _size(self, coef: Array) -> float:
        return float(np.abs(coef).sum())

    def _dual_size(self, u: Array) -> float:
        return _largest(u)

    def _outward(self, coef: Array) -> Array:
        return np.sign(coef)

    def _multiplier(self, coef: Array, gradient: Array) -> float:
        """The root of τ ↦ ½ d/dτ ‖least-norm element‖², which grows with τ."""

        unit = _largest(gradient)
        if unit == 0:
            return 0.0

        def growth(multiplier: float) -> float:
            pulled = _l1_least_norm(coef, gradient / unit, multiplier)
            return float(pulled @ np.where(coef != 0, np.sign(coef), -np.sign(pulled)))

        if growth(0.0) >= 0:
            return 0.0
        return unit * float(brentq(growth, 0.0, 1.0, xtol=1e-300))

    def _pulled(self, coef: Array, gradient: Array, multiplier: float) -> Array:
        return _l1_least_norm(coef, gradient, multiplier)

    def prox(self, coef: Array, step: float) -> Array:
        if self._size(coef) <= self.radius:
            return coef
        # soft-thresholding to the norm `radius`; measured from the largest entry, the threshold
        # does not cancel however far the point is
        below = np.abs(coef) - _largest(coef)
        ordered = np.sort(below)[::-1]
        counts = np.arange(1, len(ordered) + 1)
        rises = (self.radius - np.cumsum(ordered)) / counts
        last = np.flatnonzero(ordered + rises > 0)[-1]
        return np.sign(coef) * np.maximum(below + rises[last], 0.0)


PENALTIES: dict[str, type[Penalty]] = {
    "l2": L2,
    "l1": L1,
    "elastic_net": ElasticNet,
    "l2_ball": L2Ball,
    "l1_ball": L1Ball,
}
