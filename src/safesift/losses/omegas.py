"""Ω: what is added to the conjugate of a loss to give the loss a flat region, or to smooth it.

f_μ = (f* + μΩ)* is the infimum convolution of a loss f with (μΩ)*. All functions here are of one
number, convex (but for `Entropy`), smooth away from 0, and vanish at 0. The flat region comes from
a kink of Ω at 0, smoothness of f_μ from strong convexity of Ω.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from safesift.losses.scalar import (
    Function,
    Interpolant,
    NotSmoothError,
    call,
    interpolate,
    require_callable,
)

Array = NDArray[np.float64]
INF = math.inf


class Omega(ABC):
    """A term of the dual, as a function of one dual variable u and of μ.

    Every method returns a property of the whole term, which is μΩ(u) unless the class says
    otherwise.

    Attributes
    ----------
    domain : (float, float)
        The interval, containing 0, on which Ω is finite.
    is_convex : bool
        Whether Ω is convex by itself; then it makes no loss less smooth.
    is_norm : bool
        Whether Ω is a norm, which the bounds of `safesift.workflows.objective_bounds` need.
    constant_curvature : float or None
        Ω'' away from 0 where it is a constant.
    """

    domain: ClassVar[tuple[float, float]] = (-INF, INF)
    constant_curvature: ClassVar[float | None] = None

    @property
    def is_convex(self) -> bool:
        return True

    @property
    def is_norm(self) -> bool:
        return False

    @abstractmethod
    def value(self, u: ArrayLike, mu: float) -> Array:
        """μΩ(u), for u inside the domain."""

    @abstractmethod
    def slope(self, u: ArrayLike, mu: float) -> Array:
        """Its derivative at u ≠ 0."""

    @abstractmethod
    def curvature(self, u: ArrayLike, mu: float) -> Array:
        """Its second derivative at u ≠ 0."""

    @abstractmethod
    def slopes_at_zero(self, mu: float) -> tuple[float, float]:
        """Its derivatives at 0 from the left and from the right; infinite beyond the domain."""


@dataclass(frozen=True)
class L1(Omega):
    """Ω(u) = |u|: shifts both sides of a loss apart by μ, which leaves a flat region between."""

    constant_curvature = 0.0

    @property
    def is_norm(self) -> bool:
        return True

    def value(self, u: ArrayLike, mu: float) -> Array:
        return mu * np.abs(u)

    def slope(self, u: ArrayLike, mu: float) -> Array:
        return mu * np.sign(u)

    def curvature(self, u: ArrayLike, mu: float) -> Array:
        return np.zeros(np.shape(u))

    def slopes_at_zero(self, mu: float) -> tuple[float, float]:
        return -mu, mu


@dataclass(frozen=True)
class Quadratic(Omega):
    """Ω(u) = ½u²: the Moreau envelope, smooth with constant 1/μ. No flat region by itself."""

    constant_curvature = 1.0

    def value(self, u: ArrayLike, mu: float) -> Array:
        return 0.5 * mu * np.square(u)

    def slope(self, u: ArrayLike, mu: float) -> Array:
        return mu * np.asarray(u, dtype=np.float64)

    def curvature(self, u: ArrayLike, mu: float) -> Array:
        return np.full(np.shape(u), float(mu))

    def slopes_at_zero(self, mu: float) -> tuple[float, float]:
        return 0.0, 0.0


@dataclass(frozen=True)
class NonpositiveL1(Omega):
    """Ω(u) = |u| for u ≤ 0, +∞ beyond: turns a loss of 1 − margin into a hinge of it."""

    domain = (-INF, 0.0)
    constant_curvature = 0.0

    def value(self, u: ArrayLike, mu: float) -> Array:
        return mu * np.abs(u)

    def slope(self, u: ArrayLike, mu: float) -> Array:
        return np.full(np.shape(u), -float(mu))

    def curvature(self, u: ArrayLike, mu: float) -> Array:
        return np.zeros(np.shape(u))

    def slopes_at_zero(self, mu: float) -> tuple[float, float]:
        return -mu, INF


@dataclass(frozen=True)
class Entropy(Omega):
    """Ω(u) = u·log(−u) + μ|u| on [−1, 0]: makes the logistic loss safe.

    μ sits *inside* Ω: the term added to f* is Ω itself, not μΩ, and μ = 0 still changes the loss.
    Ω is concave; only f* + Ω may be convex, as it is for the logistic loss, where it is
    (1 − v)·log(1 − v) + μv at u = −v.
    """

    domain = (-1.0, 0.0)

    @property
    def is_convex(self) -> bool:
        return False

    def value(self, u: ArrayLike, mu: float) -> Array:
        v = np.maximum(np.negative(u), 0.0)
        return mu * v - xlogy(v, v)

    def slope(self, u: ArrayLike, mu: float) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(np.negative(u), 0.0)) + (1.0 - mu)

    def curvature(self, u: ArrayLike, mu: float) -> Array:
        with np.errstate(divide="ignore"):
            return 1.0 / np.asarray(u, dtype=np.float64)

    def slopes_at_zero(self, mu: float) -> tuple[float, float]:
        return -INF, INF


@dataclass(frozen=True, eq=False)
class CustomOmega(Omega):
    """μΩ for a user's Ω: convex, finite on the whole line, smooth except perhaps at 0.

    A concave one is taken, too, where f* + μΩ is convex; nothing is then known of the smoothness.

    Parameters
    ----------
    function : callable
        Ω, vectorised. Its value at 0 is subtracted.
    derivative : callable, optional
        Ω', vectorised; from a polynomial interpolant on each side of 0 where it is not given.

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> omega = ss.CustomOmega(lambda u: np.abs(u) + u**2)
    >>> safe = ss.make_safe(ss.losses.Squared(), omega=omega, mu=0.5)
    >>> print(safe.value([0.5, 2.5], 0.0))
    [0. 1.]
    """

    function: Function
    derivative: Function | None = None

    def __post_init__(self) -> None:
        require_callable("omega: function", self.function)
        if self.derivative is not None:
            require_callable("omega: derivative", self.derivative)
        self._require_consistent()
        left, right = self._one_sided
        if not (math.isfinite(left + right) and left <= right):
            raise ValueError(
                f"omega must be convex and finite around 0, but its derivatives there are {left:g} "
                f"from the left and {right:g} from the right: give a convex function."
            )

    @cached_property
    def is_convex(self) -> bool:
        """Whether chords never become flatter; tried out at many u, and trusted between them."""
        u = np.concatenate([-np.geomspace(1e3, 1e-3, 121), [0.0], np.geomspace(1e-3, 1e3, 121)])
        values = self.value(u, 1.0)
        u, values = u[np.isfinite(values)], values[np.isfinite(values)]
        chords, noise = np.diff(values) / np.diff(u), 1e-14 * np.abs(values[1:] + values[:-1])
        room = noise / np.diff(u) + 1e-9 * np.abs(chords)
        return not (chords[:-1] - chords[1:] > room[:-1] + room[1:]).any()

    @property
    def is_norm(self) -> bool:
        """Whether Ω(u) = Ω(1)·|u| > 0, the only norms of one number; tried out at many u."""
        u = np.concatenate([[1.0, -1.0], *(s * np.geomspace(1e-9, 1e9, 181) for s in (-1, 1))])
        values = self.value(u, 1.0)
        return bool(values[0] > 0 and np.allclose(values, values[0] * np.abs(u), rtol=1e-12))

    def value(self, u: ArrayLike, mu: float) -> Array:
        with np.errstate(all="ignore"):
            return mu * (call(self.function, u) - self._at_zero)

    def slope(self, u: ArrayLike, mu: float) -> Array:
        if self.derivative is None:
            return mu * self._interpolant.derivative(u)
        with np.errstate(all="ignore"):
            return mu * call(self.derivative, u)

    def curvature(self, u: ArrayLike, mu: float) -> Array:
        if self.derivative is None:
            return mu * self._interpolant.second_derivative(u)
        return mu * self._interpolant.derivative(u)

    def slopes_at_zero(self, mu: float) -> tuple[float, float]:
        left, right = self._one_sided
        return mu * left, mu * right

    def _require_consistent(self) -> None:
        """Refuse a derivative that plain differences contradict."""
        if self.derivative is None:
            return
        u = np.array([-2.0, -1.0, -0.5, -0.1, 0.1, 0.5, 1.0, 2.0])
        differences = (self.value(u + 1e-5, 1.0) - self.value(u - 1e-5, 1.0)) / 2e-5
        slopes = self.slope(u, 1.0)
        with np.errstate(invalid="ignore"):
            apart = np.abs(slopes - differences) > 1e-4 * (1.0 + np.abs(slopes))
        if apart.any():
            raise ValueError(
                f"omega: derivative is {slopes[apart][0]:g} at u={u[apart][0]:g}, where function "
                f"grows at the rate {differences[apart][0]:g}: give the derivative of function."
            )

    @cached_property
    def _interpolant(self) -> Interpolant:
        """Of the derivative if there is one, else of the function, on each side of 0."""
        try:
            return interpolate(self.derivative or self.function, np.zeros(1))
        except NotSmoothError:
            raise ValueError(
                "omega is not smooth away from 0: give a function whose only kink is at 0."
            ) from None

    @cached_property
    def _at_zero(self) -> float:
        return float(self.function(np.zeros(1))[0])

    @property
    def _one_sided(self) -> tuple[float, float]:
        # Ω(h)/h falls towards the derivative as h does: at such an h nothing is left of the rest
        h = np.array([-1e-150, 1e-150])
        if self.derivative is not None:
            left, right = call(self.derivative, h)
        else:
            with np.errstate(all="ignore"):
                left, right = self.value(h, 1.0) / h
        return float(left), float(right)


OMEGAS: dict[str, type[Omega]] = {
    "l1": L1,
    "quadratic": Quadratic,
    "nonpositive_l1": NonpositiveL1,
    "entropy": Entropy,
}


@dataclass(frozen=True)
class DualTerm:
    """μΩ(u) + ½·width·u², what is added to the conjugate of f."""

    omega: Omega
    mu: float
    width: float = 0.0

    def value(self, u: Array) -> Array:
        return self.omega.value(u, self.mu) + 0.5 * self.width * np.square(u)

    def slope(self, u: Array, side: int) -> Array:
        """Its derivative; at 0 the one from the given side."""
        away = self.omega.slope(u, self.mu) + self.width * u
        return np.where(u == 0, self.omega.slopes_at_zero(self.mu)[(side + 1) // 2], away)

    def curvature(self, u: Array) -> Array:
        return self.omega.curvature(u, self.mu) + self.width

    @property
    def constant_curvature(self) -> float | None:
        """Its second derivative away from 0 where that is a constant."""
        own = self.omega.constant_curvature
        return None if own is None else own * self.mu + self.width

    @property
    def strong_convexity(self) -> float:
        """A modulus that is known without looking at f."""
        return self.constant_curvature or 0.0
