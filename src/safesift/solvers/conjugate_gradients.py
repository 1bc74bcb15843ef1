"""Preconditioned conjugate gradients, ended where a Newton step is good enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.problem.passes import Computation

Array = NDArray[np.float64]
Product = Callable[[Array], Computation[Array]]
Preconditioner = Callable[[Array], Array]

# the residual becomes this share of the right side
_FORCING = 0.05
# a step along a direction, relative to what the preconditioner expects, beyond which it is flat
_LONGEST = 1e12


class Outcome(NamedTuple):
    """Where conjugate gradients ended, and whether that is as near as was asked for."""

    solution: Array
    solved: bool


def conjugate_gradients(
    product: Product,
    right: Array,
    precondition: Preconditioner,
    enough: float,
    most_products: int = 500,
) -> Computation[Outcome]:
    """H⁻¹ right, until ‖residual‖² is `enough` or the residual small beside `right`.

    Parameters
    ----------
    product : callable
        v ↦ Hv, for a positive semidefinite H; its passes over the data can be shared.
    right : array
    precondition : callable
        v ↦ about H⁻¹v, positive definite.
    enough : float
        0 to go by the size of `right` alone.
    most_products : int, default=500
        However few they are, the way to where they end goes downhill.
    """
    solution, residual = np.zeros_like(right), right.copy()
    scaled = precondition(residual)
    direction, energy = scaled, float(residual @ scaled)
    size = float(right @ right)
    # where the whole right side would be enough and yet was not, less is
    limit = enough if _FORCING**2 * size < enough < size else _FORCING**2 * size
    for _ in range(most_products):
        if float(residual @ residual) <= limit:
            return Outcome(solution, True)
        image = yield from product(direction)
        curvature = float(direction @ image)
        if not curvature > energy / _LONGEST:
            # flat to rounding: a line search goes as far as is worth it
            return Outcome(solution if solution.any() else direction, False)
        length = energy / curvature
        solution += length * direction
        residual = residual - length * image
        scaled = precondition(residual)
        energy, before = float(residual @ scaled), energy
        direction = scaled + (energy / before) * direction
    return Outcome(solution, False)
