"""Matrices with a row for each column of the data, on a device: factors, and systems of equations.

What is solved for proposes steps only. A factor that exists proves that a matrix is positive
definite up to (d + 2)·EPS·trace, in whatever order its sums are taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.devices.arrays import DeviceArray
from safesift.arithmetic.devices.places import (
    Place,
    brought_here,
    honest_products,
    raising_errors,
)

Array = NDArray[np.float64]


def add_to_diagonal(H: DeviceArray, values: Array) -> None:
    """Add numbers to the first entries of the diagonal."""
    padded = np.zeros(len(H))
    padded[: len(values)] = values
    place = H.place
    if place.own is not place.xp:
        # a view of those libraries
        diagonal = H.array.diagonal()
        diagonal += place.moved(padded)
        return
    ones = place.xp.eye(len(H), dtype=place.xp.float64, device=place.device)
    # not 0·∞ elsewhere: such numbers are finite, or nothing is
    H.array[...] = H.array + place.moved(padded)[:, None] * ones


def set_diagonal(H: DeviceArray, values: Array) -> None:
    """Replace the diagonal."""
    place = H.place
    ones = place.xp.eye(len(H), dtype=place.xp.float64, device=place.device)
    H.array[...] = place.xp.where(ones != 0, place.moved(values)[:, None], H.array)


def cholesky(H: DeviceArray, ridge: float = 0.0) -> DeviceArray:
    """The lower factor of H + ridge·I.

    Raises
    ------
    LinAlgError
        Where there is none: some libraries raise errors of their own, some return no numbers.
    """
    work, xp = H, H.place.xp
    if ridge:
        work = H.copy()
        add_to_diagonal(work, np.full(len(H), ridge))
    try:
        with honest_products(H.place), raising_errors(H.place):
            factor = xp.linalg.cholesky(work.array)
    except Exception as error:
        if type(error).__name__ in ("LinAlgError", "_LinAlgError"):
            raise np.linalg.LinAlgError("the matrix is not positive definite.") from None
        raise
    if not bool(xp.all(xp.isfinite(factor))):
        raise np.linalg.LinAlgError("the matrix is not positive definite.")
    return DeviceArray(factor, H.place)


def cho_solve(factor: DeviceArray, right: Array) -> Array:
    """H⁻¹ right for H = LLᵀ."""
    place, columns = factor.place, right.reshape(len(right), -1)
    with honest_products(place):
        found = _substituted(factor.array, place.moved(columns), place)
    return brought_here(found).reshape(right.shape)


def _substituted(factor: Any, right: Any, place: Place) -> Any:
    """By substitution where the library has it; the standard knows general systems only."""
    library = place.xp.__name__.rpartition(".")[2]
    if library == "torch":
        import torch

        return torch.cholesky_solve(right, factor)
    if library == "cupy":
        from cupyx.scipy.linalg import solve_triangular

        return solve_triangular(
            factor, solve_triangular(factor, right, lower=True), trans=1, lower=True
        )
    xp = place.xp
    return xp.linalg.solve(xp.matrix_transpose(factor), xp.linalg.solve(factor, right))
