"""What every penalty offers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, UNDERFLOW

Array = NDArray[np.float64]


class Subgradient(NamedTuple):
    """A vector v with P(x) + vᵀ(u − x) ≤ P(u) + slack for every u.

    The slack is 0 for a true subgradient. It is positive where a point numerically on the
    boundary of a ball is treated as lying on it.

    Attributes
    ----------
    vector : array of shape (n_features,)
    slack : float
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

    is_constraint: bool = False

    if TYPE_CHECKING:
        # a number in most classes, computed in some
        @property
        def strong_convexity(self) -> float: ...

    else:
        strong_convexity: float = 0.0

    @abstractmethod
    def value(self, coef: Array) -> float:
        """R(coef)."""

    def value_error(self, coef: Array) -> float:
        """A bound on the rounding error of R(coef)."""
        return (len(coef) + 1) * EPS * self.value(coef) + 4 * UNDERFLOW

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
