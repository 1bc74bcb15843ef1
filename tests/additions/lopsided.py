"""A loss from outside the library: too high is forgiven further than too low."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.losses import Piece, ResidualLoss

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Lopsided(ResidualLoss):
    """φ(r) = ½·distance(r, [−below, above])²: free within a tube that need not be symmetric.

    φ*(u) = ½u² + max(above·u, −below·u) is a parabola with a kink at 0, which is declared by the
    ends of argmin φ.

    Parameters
    ----------
    below, above : float
        How far a prediction may lie below and above its target.
    """

    below: float = 0.25
    above: float = 1.0

    smoothness = 1.0
    lipschitz = math.inf
    _dual_interval = (-math.inf, math.inf)

    def __post_init__(self) -> None:
        for name in ("below", "above"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be a number of 0 or more.")

    @property
    def _minimisers(self) -> tuple[float, float]:
        return -self.below, self.above

    def _phi(self, residual: Array) -> Array:
        return 0.5 * self._dphi(residual) ** 2

    def _dphi(self, residual: Array) -> Array:
        return residual - np.clip(residual, -self.below, self.above)

    def _ddphi(self, residual: Array) -> Array:
        return self._floor(residual, residual)

    def _floor(self, lower: Array, upper: Array) -> Array:
        return np.where((upper < -self.below) | (lower > self.above), 1.0, 0.0)

    def _conjugate_ratio(self, u: Array) -> Array:
        return 0.5 * u + np.where(u > 0, self.above, -self.below)

    def _pieces(self) -> list[Piece]:
        below, above = self.below, self.above
        return [
            Piece(-below, above),
            Piece(-math.inf, -below, quadratic=1.0, linear=below, constant=0.5 * below**2),
            Piece(above, math.inf, quadratic=1.0, linear=-above, constant=0.5 * above**2),
        ]
