"""What the gradients of past steps tell about the curvature: the memory of L-BFGS.

Nocedal, *Updating quasi-Newton matrices with limited storage*, Mathematics of Computation 1980.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# steps that are remembered
_REMEMBERED = 10
# below this cosine between a step and the change of the gradient, that is rounding
_FLAT = 1e-10


class _Step(NamedTuple):
    """A step, by how much the gradient changed along it, and the product of both."""

    change: Array
    bend: Array
    curvature: float


class Memory:
    """The last steps."""

    def __init__(self) -> None:
        self._steps: deque[_Step] = deque(maxlen=_REMEMBERED)

    def add(self, change: Array, bend: Array) -> None:
        """Remember a step; not where the gradient did not change along it."""
        curvature = float(change @ bend)
        if curvature > _FLAT * float(np.linalg.norm(change) * np.linalg.norm(bend)):
            self._steps.append(_Step(change, bend, curvature))

    def solve(self, gradient: Array, precondition: Callable[[Array], Array]) -> Array:
        """About H⁻¹ gradient: what the preconditioner makes of it, corrected along past steps."""
        left, shares = gradient.copy(), []
        for step in reversed(self._steps):
            share = float(step.change @ left) / step.curvature
            left -= share * step.bend
            shares.append(share)
        found = precondition(left)
        for step, share in zip(self._steps, reversed(shares), strict=True):
            found = found + (share - float(step.bend @ found) / step.curvature) * step.change
        return found
