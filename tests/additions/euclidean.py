"""A penalty from outside the library: the norm itself, not its square."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.penalties import Penalty, Subgradient

Array = NDArray[np.float64]

# what rounding may do to a norm, to a sum, and to their quotient
_HAIR = 1e-14


@dataclass(frozen=True)
class Euclidean(Penalty):
    """R(x) = ‖x‖₂: all coefficients at once are zero, or none is.

    R* is the indicator of the unit ball, so that a dual point is feasible where its pull is no
    longer than alpha.
    """

    def value(self, coef: Array) -> float:
        return math.hypot(*coef)

    def support(self, u: Array, alpha: float, error: float = 0.0) -> float:
        return 0.0 if math.hypot(*u) + error <= alpha else math.inf

    def feasible_multiples(
        self, u: Array, offset: Array, alpha: float, error: float = 0.0
    ) -> tuple[float, float]:
        """Where the line of c·u + offset is inside the ball: around its point nearest to 0."""
        # a hair less, so that the sum, rounded, is still inside
        limit, length = alpha * (1.0 - _HAIR) - 8.0 * error, math.hypot(*u)
        direction = u / length if length > 0 else u
        nearest = -float(direction @ offset)
        distance = math.hypot(*(offset + nearest * direction))
        if not distance < limit:
            return 1.0, 0.0
        if length == 0:
            return 0.0, 4.0
        half = math.sqrt((limit - distance) * (limit + distance)) * (1.0 - _HAIR)
        return max((nearest - half) / length, 0.0), min((nearest + half) / length, 4.0)

    def prox(self, coef: Array, step: float) -> Array:
        return coef * self._left(math.hypot(*coef), step)

    def least_norm(self, coef: Array, gradient: Array, alpha: float) -> Subgradient:
        if coef.any():
            return Subgradient(gradient + alpha * self.subgradient(coef, coef))
        return Subgradient(gradient * self._left(math.hypot(*gradient), alpha))

    def norm_bound(self, objective: float, alpha: float) -> float:
        return objective / alpha

    def subgradient(self, coef: Array, towards: Array) -> Array:
        if coef.any():
            return coef / math.hypot(*coef)
        return towards / max(math.hypot(*towards), 1.0)

    @staticmethod
    def _left(length: float, shortening: float) -> float:
        """The share of a vector that is left once it is that much shorter."""
        return max(length - shortening, 0.0) / length if length > 0 else 0.0
