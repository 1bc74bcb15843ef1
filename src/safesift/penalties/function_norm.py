"""The squared norm of a kernel space as a penalty."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import half_square_over
from safesift.penalties.norms import L2

if TYPE_CHECKING:
    from safesift.design.kernel import KernelDesign

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SquaredNorm(L2):
    """R(h) = ½‖h‖² of h = Σ β_j φ(x_j), as a function of β: ½βᵀKβ.

    Gradients are gradients in the kernel space: that of R at β has the coordinates β.
    """

    design: KernelDesign

    def value(self, coef: Array) -> float:
        return 0.5 * self.design.norm_sq(coef)[0]

    def value_error(self, coef: Array) -> float:
        return 0.5 * self.design.norm_sq(coef)[1]

    def support(self, u: Array, alpha: float, error: float = 0.0) -> float:
        norm_sq, more = self.design.norm_sq(u)
        return half_square_over(math.sqrt(norm_sq + more) + error, alpha)
