"""Sharper regions from secants bounded on both sides.

Once the predictions at the optimum are known to lie in intervals, the secant slopes of f_i' from
the centre to the optimum lie between a floor w_i and a ceiling c_i, the centre anywhere. With the
same for the penalty (it is quadratic, or no sign changes) the difference u = x* − x₀ solves

    (H + E)u = −g,     H from the floors,   0 ⪯ E ⪯ Δ = (1/W) Σ s_i (c_i − w_i) a_i a_iᵀ + …

so u = −Sg with (H + Δ)⁻¹ ⪯ S ⪯ H⁻¹, and every such Sg lies in the ellipsoid

    aᵀu ∈ −½aᵀ(H⁻¹ + (H+Δ)⁻¹)g ± ½‖a‖_Z‖g‖_Z,     Z = H⁻¹ − (H+Δ)⁻¹.

A sample whose piece is known adds nothing to Δ: when all are, Z = 0 and the optimum is the Newton
step. The bounds so found raise the floors and lower the ceilings again, until nothing moves.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from safesift.numerics import EPS, norm
from safesift.regions.base import Bounds
from safesift.regions.center import Center
from safesift.regions.curvature_models import ExactModel
from safesift.regions.ellipsoidal import EllipsoidalSet, Hull
from safesift.regions.gram import Whitening, rounding_of_form
from safesift.regions.shape import Shape

Array = NDArray[np.float64]

# another round is worth its cost while it takes this share of the uncertainty away
_WORTHWHILE = 0.25


def sharpen(
    center: Center, model: ExactModel, diagonal: Array, start: Hull, bounds: Bounds,
    max_rounds: int,
) -> tuple[Hull, Bounds]:  # fmt: skip
    """The sharper set and bounds, from bounds that hold; `start` and `bounds` if there are none.

    Parameters
    ----------
    diagonal : array of shape (n_features,)
        The curvature of the penalty.
    start : Hull
        A set of which `bounds` are the bounds; it also bounds the coefficients.
    """
    if center.slack > 0:
        return start, bounds
    current, left = start, math.inf
    for _ in range(max_rounds):
        ceiling = center.diagonal_ceiling(*current.coordinate_bounds().take(slice(len(diagonal))))
        if not np.isfinite(ceiling).all():
            break
        floors, ceilings = _secants(center, bounds)
        uncertain = ceilings > floors
        uncertainty = float(center.problem.shares @ (ceilings - floors))
        if uncertainty >= (1.0 - _WORTHWHILE) * left:
            break
        left = uncertainty
        model.move(floors)
        white = model.whitening(diagonal)
        if white is None:
            break
        extra = center.problem.shares * (ceilings - floors)
        current = _two_sided_set(center, white, extra, ceiling - diagonal)
        sharper = current.bounds(center.problem.design.only(uncertain))
        bounds = _replaced(bounds, uncertain, sharper.intersect(bounds.take(uncertain)))
    return current, bounds


def _secants(center: Center, bounds: Bounds) -> tuple[Array, Array]:
    floors, ceilings = center.secant_bounds(bounds, np.ones(len(bounds.lower), dtype=bool))
    floors = np.where(center.carrying, floors, 0.0)
    return floors, np.where(center.carrying, np.maximum(ceilings, floors), 0.0)


def _replaced(bounds: Bounds, rows: NDArray, better: Bounds) -> Bounds:
    lower, upper = bounds.lower.copy(), bounds.upper.copy()
    lower[rows], upper[rows] = better
    return Bounds(lower, upper)


def _two_sided_set(center: Center, white: Whitening, extra: Array, extra_diagonal: Array) -> Hull:
    """The ellipsoid of all −Sg, for each alpha of the centre."""
    T, loose = white.basis, white.looseness
    directions, most = _extra_curvature(center, T, extra, extra_diagonal)
    # in the coordinates of T: I/(1 + looseness + Λ) ⪯ S ⪯ I/(1 − looseness)
    smallest = 1.0 / (1.0 + loose + most)
    largest = 1.0 / (1.0 - loose)
    middle = 0.5 * (largest + smallest)
    spread = np.sqrt(np.maximum(largest - smallest, 0.0) + 8 * EPS)
    factor = T @ (directions * spread)
    shape = Shape(len(T), 1.0, None, factor)
    rounding = 8.0 * (len(T) + 8) * EPS
    size, stretch = float(np.linalg.norm(T)), Shape(len(T), 1.0, None, T).stretch
    sets = []
    for g in center.gradients:
        image = directions.T @ (T.T @ g)
        radius = 0.5 * (norm(spread * image) + rounding * size * norm(g)) * (1.0 + 1e-12)
        moved = center.at.point - T @ (directions @ (middle * image))
        lost = largest * (stretch**2 * center.gradient_error + rounding * size**2 * norm(g))
        sets.append(
            EllipsoidalSet(
                moved, shape.scaled(radius), lost + 4 * EPS * norm(moved),
                name="two-sided curvature ellipsoid", certified=center.problem.certified,
            )
        )  # fmt: skip
    return Hull(tuple(sets))


def _extra_curvature(
    center: Center, T: Array, extra: Array, extra_diagonal: Array
) -> tuple[Array, Array]:
    """Orthonormal V and λ ≥ 0 with TᵀΔT ⪯ V diag(λ) Vᵀ, for Δ = Σ extra_i a_i a_iᵀ + diag."""
    design = center.problem.design
    matrix = design.gram(extra)
    diagonal = np.zeros(len(T))
    diagonal[: len(extra_diagonal)] = np.maximum(extra_diagonal, 0.0)
    matrix[np.diag_indices_from(matrix)] += diagonal
    values, vectors = np.linalg.eigh(T.T @ matrix @ T)
    spread = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    error = rounding_of_form(T, spread, design.sum_error + 8 * EPS)
    error += 64 * len(T) * EPS * float(np.abs(values).max(initial=0.0))
    return vectors, np.maximum(values, 0.0) + error
