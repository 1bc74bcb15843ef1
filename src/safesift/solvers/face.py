"""A quadratic model with an l1 penalty where no coefficient changes its sign.

Coordinate descent finds the coefficients that are not zero in a few epochs, and then creeps along
the valleys that similar columns make. With signs that stay as they are the model is quadratic, and
conjugate gradients go through valleys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.problem.passes import Computation, alone
from safesift.solvers.conjugate_gradients import conjugate_gradients
from safesift.solvers.orthant import orthant_step

Array = NDArray[np.float64]

# a direction need not be better than the signs are, which change with every step
_MOST_PRODUCTS = 20


class Slide(NamedTuple):
    """A change of the coefficients, what it does to predictions, and how many products it took."""

    change: Array
    moved: Array
    n_products: int


@dataclass(frozen=True)
class Face:
    """m(d) = slopesᵀd + ½Σ weights_i (a_iᵀd)² + ½Σ ridge_j d_j² + Σ threshold_j |coef_j + d_j|.

    Attributes
    ----------
    columns : sparse array of shape (n_samples, n_columns)
        Its rows are the a_i.
    weights : array of shape (n_samples,)
    slopes, bends, ridge, threshold, coef : arrays of shape (n_columns,)
        `bends` are about the second derivatives. A coefficient whose threshold is 0 may change its
        sign, others are stopped at zero.
    """

    columns: Any
    weights: Array
    slopes: Array
    bends: Array
    ridge: Array
    threshold: Array
    coef: Array

    def slide(self) -> Slide:
        """From `coef` to the minimiser, or as much of the way as makes the model smaller."""
        direction, n_products = self._direction()
        signs = np.where(self.threshold > 0.0, np.sign(self.coef), 0.0)
        change = orthant_step(self.coef, direction, signs, self._rise).change
        return Slide(change, self.columns @ change, n_products)

    def _direction(self) -> tuple[Array, int]:
        """To the minimiser if signs were free, and how many products it took to find."""
        n_products = 0

        def product(v: Array) -> Computation[Array]:
            nonlocal n_products
            n_products += 1
            # columns that nobody else reads
            yield from ()
            return self.columns.T @ (self.weights * (self.columns @ v)) + self.ridge * v

        bends = np.where(self.bends > 0.0, self.bends, 1.0)
        uphill = self.slopes + self.threshold * np.sign(self.coef)
        found = alone(
            conjugate_gradients(product, -uphill, lambda v: v / bends, 0.0, _MOST_PRODUCTS)
        )
        return found.solution, n_products

    def _rise(self, change: Array) -> float:
        """By how much the model is larger after a change."""
        moved = self.columns @ change
        curved = float(self.weights @ moved**2) + float(self.ridge @ change**2)
        longer = np.abs(self.coef + change) - np.abs(self.coef)
        return float(self.slopes @ change) + 0.5 * curved + float(self.threshold @ longer)
