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

from safesift.solvers.conjugate_gradients import conjugate_gradients

Array = NDArray[np.float64]

# of the way to the minimiser, tried one after the other; at last up to the first change of sign
_SHARES = (1.0, 0.5, 0.25, 0.125)


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
    slopes, ridge, threshold, coef : arrays of shape (n_columns,)
        A coefficient whose threshold is 0 may change its sign, others are stopped at zero.
    """

    columns: Any
    weights: Array
    slopes: Array
    ridge: Array
    threshold: Array
    coef: Array

    def slide(self) -> Slide:
        """From `coef` to the minimiser, or as much of the way as makes the model smaller."""
        direction, n_products = self._direction()
        for share in (*_SHARES, self._first_change_of_sign(direction)):
            change = self._stopped(share * direction)
            moved = self.columns @ change
            if self._rise(change, moved) < 0.0:
                return Slide(change, moved, n_products)
        return Slide(np.zeros_like(direction), np.zeros(len(self.weights)), n_products)

    def _direction(self) -> tuple[Array, int]:
        """To the minimiser if signs were free, and how many products it took to find."""
        n_products = 0

        def product(v: Array) -> Array:
            nonlocal n_products
            n_products += 1
            return self.columns.T @ (self.weights * (self.columns @ v)) + self.ridge * v

        bends = self.columns.power(2).T @ self.weights + self.ridge
        bends[bends <= 0.0] = 1.0
        uphill = self.slopes + self.threshold * np.sign(self.coef)
        found = conjugate_gradients(product, -uphill, lambda v: v / bends, enough=0.0)
        return found.solution, n_products

    def _first_change_of_sign(self, direction: Array) -> float:
        """The share of the way up to which the model is quadratic, so that it falls."""
        shrinks = (self.coef * direction < 0.0) & (self.threshold > 0.0)
        return float(np.min(-self.coef[shrinks] / direction[shrinks], initial=1.0))

    def _stopped(self, change: Array) -> Array:
        reached = self.coef + change
        stopped = (np.sign(reached) != np.sign(self.coef)) & (self.threshold > 0.0)
        return np.where(stopped, -self.coef, change)

    def _rise(self, change: Array, moved: Array) -> float:
        """By how much the model is larger after a change."""
        curved = float(self.weights @ moved**2) + float(self.ridge @ change**2)
        longer = np.abs(self.coef + change) - np.abs(self.coef)
        return float(self.slopes @ change) + 0.5 * curved + float(self.threshold @ longer)
