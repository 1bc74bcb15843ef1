"""l2, l1 and what lies between.

Pieces of formulas that several penalties are made of, most of them of the l1 norm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import UNDERFLOW, half_square_over, norm, root_over
from safesift.parameters import require_finite
from safesift.penalties.base import Penalty, Subgradient

Array = NDArray[np.float64]


def soft(coef: Array, threshold: float) -> Array:
    return np.sign(coef) * np.maximum(np.abs(coef) - threshold, 0.0)


def l1_least_norm(coef: Array, gradient: Array, weight: float) -> Array:
    """Least-norm element of gradient + weight·∂‖·‖₁(coef)."""
    return np.where(coef != 0, gradient + weight * np.sign(coef), soft(gradient, weight))


def l1_secant_floor(coef: Array, pull: Array, reach: Array, weight: float) -> Array:
    """From 0 to x_j the slope of weight·|x_j| grows from the pull to ±weight."""
    with np.errstate(divide="ignore", invalid="ignore"):
        floor = np.maximum(weight - np.abs(pull), 0.0) / reach * (1.0 - 1e-12)
    return np.where((coef == 0) & np.isfinite(floor), floor, 0.0)


def l1_secant_ceiling(coef: Array, lower: Array, upper: Array) -> Array:
    """The l1 norm is linear where no sign changes."""
    same_sign = ((coef > 0) & (lower > 0)) | ((coef < 0) & (upper < 0))
    return np.where(same_sign, 0.0, math.inf)


def largest(u: Array) -> float:
    return float(np.max(np.abs(u), initial=0.0))


def quotient(value: float, divisor: float) -> float:
    """value / divisor, and not less, for values of 0 or more; the divisor may be 0."""
    if value == 0:
        return 0.0
    return value / divisor + UNDERFLOW if divisor > 0 else math.inf


def square(value: float) -> float:
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
        return 0.5 * square(norm(coef))

    def support(self, u: Array, alpha: float, error: float = 0.0) -> float:
        return half_square_over(norm(u) + error, alpha)

    def prox(self, coef: Array, step: float) -> Array:
        return coef / (1.0 + step)

    def least_norm(self, coef: Array, gradient: Array, alpha: float) -> Subgradient:
        return Subgradient(gradient + alpha * coef)

    def norm_bound(self, objective: float, alpha: float) -> float:
        return root_over(2.0 * objective, alpha)

    def secant_ceiling(self, coef: Array, lower: Array, upper: Array, alpha: float) -> Array:
        return np.full_like(coef, alpha)


@dataclass(frozen=True)
class L1(Penalty):
    """R(x) = ‖x‖₁."""

    def value(self, coef: Array) -> float:
        return float(np.abs(coef).sum())

    def support(self, u: Array, alpha: float, error: float = 0.0) -> float:
        return 0.0 if largest(u) + error <= alpha else math.inf

    def feasible_multiples(
        self, u: Array, offset: Array, alpha: float, error: float = 0.0
    ) -> tuple[float, float]:
        # a hair less, so that the sum, rounded, is still feasible
        limit = alpha * (1.0 - 4e-15) - 4.0 * error
        if not offset.any():
            # the largest entry ends the interval: nothing needs to be sorted
            most = largest(u)
            if not limit > 0 or math.isnan(most):
                return 1.0, 0.0
            return 0.0, min(limit / most, 4.0) if most > 0 else 4.0
        rest = np.where(u == 0, np.abs(offset), 0.0)
        if limit <= largest(rest):
            return 1.0, 0.0
        moving = u != 0
        ends = np.stack([-limit - offset[moving], limit - offset[moving]]) / u[moving]
        low, high = np.sort(ends, axis=0)
        return float(np.max(low, initial=0.0)), float(np.min(high, initial=4.0))

    def prox(self, coef: Array, step: float) -> Array:
        return soft(coef, step)

    def least_norm(self, coef: Array, gradient: Array, alpha: float) -> Subgradient:
        return Subgradient(l1_least_norm(coef, gradient, alpha))

    def norm_bound(self, objective: float, alpha: float) -> float:
        return quotient(objective, alpha)

    def secant_floor(self, coef: Array, pull: Array, reach: Array, alpha: float) -> Array:
        return l1_secant_floor(coef, pull, reach, alpha)

    def secant_ceiling(self, coef: Array, lower: Array, upper: Array, alpha: float) -> Array:
        return l1_secant_ceiling(coef, lower, upper)

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
        l2 = 0.5 * self.strong_convexity * square(norm(coef))
        return self.l1_ratio * float(np.abs(coef).sum()) + l2

    def support(self, u: Array, alpha: float, error: float = 0.0) -> float:
        beyond = norm(soft(u, alpha * self.l1_ratio)) + error
        return half_square_over(beyond, alpha * self.strong_convexity)

    def prox(self, coef: Array, step: float) -> Array:
        return soft(coef, step * self.l1_ratio) / (1.0 + step * self.strong_convexity)

    def least_norm(self, coef: Array, gradient: Array, alpha: float) -> Subgradient:
        smooth = gradient + alpha * self.strong_convexity * coef
        return Subgradient(l1_least_norm(coef, smooth, alpha * self.l1_ratio))

    def norm_bound(self, objective: float, alpha: float) -> float:
        bound = root_over(2.0 * objective, alpha * self.strong_convexity)
        if self.l1_ratio > 0:
            bound = min(bound, quotient(objective, alpha * self.l1_ratio))
        return bound

    def secant_floor(self, coef: Array, pull: Array, reach: Array, alpha: float) -> Array:
        # at 0 the pull of the l2 part is 0, so all of it is the l1 norm's
        absolute = l1_secant_floor(coef, pull, reach, self.sparse_threshold(alpha))
        return absolute + alpha * self.strong_convexity

    def secant_ceiling(self, coef: Array, lower: Array, upper: Array, alpha: float) -> Array:
        return l1_secant_ceiling(coef, lower, upper) + alpha * self.strong_convexity

    def sparse_threshold(self, alpha: float) -> float:
        return alpha * self.l1_ratio


def is_ridge(penalty: Penalty) -> bool:
    """Whether R is ½‖x‖² itself, of which more is known than a strong convexity says."""
    return isinstance(penalty, L2) or (isinstance(penalty, ElasticNet) and penalty.l1_ratio == 0)
