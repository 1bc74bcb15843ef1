"""Constraints: the indicators of norm balls."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from safesift.arithmetic.numerics import norm
from safesift.parameters import require_positive
from safesift.penalties.base import Cut, Penalty, Subgradient
from safesift.penalties.norms import l1_least_norm, largest

Array = NDArray[np.float64]

# allowance for the rounding of a norm, relative; norms are of vectors of far fewer than 2³⁰ entries
_ROOM = 1e-12


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
        return largest(u)

    def _outward(self, coef: Array) -> Array:
        return np.sign(coef)

    def _multiplier(self, coef: Array, gradient: Array) -> float:
        """The root of τ ↦ ½ d/dτ ‖least-norm element‖², which grows with τ."""

        unit = largest(gradient)
        if unit == 0:
            return 0.0

        def growth(multiplier: float) -> float:
            pulled = l1_least_norm(coef, gradient / unit, multiplier)
            return float(pulled @ np.where(coef != 0, np.sign(coef), -np.sign(pulled)))

        if growth(0.0) >= 0:
            return 0.0
        return unit * float(brentq(growth, 0.0, 1.0, xtol=1e-300))

    def _pulled(self, coef: Array, gradient: Array, multiplier: float) -> Array:
        return l1_least_norm(coef, gradient, multiplier)

    def prox(self, coef: Array, step: float) -> Array:
        if self._size(coef) <= self.radius:
            return coef
        # soft-thresholding to the norm `radius`; measured from the largest entry, the threshold
        # does not cancel however far the point is
        below = np.abs(coef) - largest(coef)
        ordered = np.sort(below)[::-1]
        counts = np.arange(1, len(ordered) + 1)
        rises = (self.radius - np.cumsum(ordered)) / counts
        last = np.flatnonzero(ordered + rises > 0)[-1]
        return np.sign(coef) * np.maximum(below + rises[last], 0.0)
