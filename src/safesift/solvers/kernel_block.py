"""A kernel problem on a few of its samples, the coordinates of all others fixed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.losses import Loss

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
        return self._beyond(beta) if abs(excess) > mass else beta

    def _beyond(self, beta: Array) -> Array:
        """Coordinates moved towards their ends, away from 0, as far as the wanted sum needs it."""
        excess = float(beta.sum()) - self.wanted
        rooms = (self.lower if excess > 0 else self.upper) - beta
        endless = np.isinf(rooms)
        if endless.any():
            return beta - np.where(endless, excess / endless.sum(), 0.0)
        room = float(np.abs(rooms).sum())
        return beta + min(abs(excess) / room, 1.0) * rooms if room > 0 else beta
