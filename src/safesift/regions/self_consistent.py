"""The greatest self-consistent weights, and the ellipsoid they give.

Write ν₀ for the slopes at the centre x₀, g for the subgradient there, and let every sample carry a
weight w_i ≥ 0, the penalty a diagonal D ≥ 0, H = D + Q + (1/W) Σ s_i w_i a_i a_iᵀ ≻ 0 and

    B = { x₀ + u : ‖u‖²_H + gᵀu ≤ 0 }.

If for every i with w_i > 0 the secants of f_i' from a_iᵀx₀ have slope w_i or more on an open
interval around { a_iᵀx : x ∈ B }, then B contains every optimum (docs/theory.md has the proof).
A secant may cross a kink: a sample need not stay on its piece to carry curvature.

Without strong convexity a known bound ‖x* − x₀‖ ≤ ρ on the penalised coordinates helps out:
‖u‖²_{H + εI} + gᵀu ≤ ερ² for every ε ≥ 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, norm
from safesift.design.base import Design
from safesift.design.rows import rows_of
from safesift.problem.decisions import Bounds
from safesift.regions.base import bounds_of_rows
from safesift.regions.center import Center
from safesift.regions.curvature_models import CurvatureModel
from safesift.regions.ellipsoidal import EllipsoidalSet, Hull
from safesift.regions.shape import Shape

Array = NDArray[np.float64]
Ridges = tuple[float, ...]

# a sample that fails is lowered to what an ellipsoid this much wider would allow
_WIDENING = (1.1, 1.1, 1.2, 1.2, 1.3, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
# trial values of ε, relative to the curvature of the samples, and how many rows compare them
_RIDGES = (0.0, 1e-12, 1e-11, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)
_PROBES = 50


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of the optimum beforehand.

    Attributes
    ----------
    bounds : Bounds
        On the predictions of all rows.
    reach : array of shape (n_features,)
        |x*_j| ≤ reach_j.
    distance : float
        ‖x* − x₀‖₂ ≤ distance in the penalised coordinates.
    """

    bounds: Bounds
    reach: Array
    distance: float


@dataclass(frozen=True, eq=False)
class SelfConsistent:
    """Self-consistent weights and their ellipsoid (one for each alpha of the centre).

    Attributes
    ----------
    weights : array of shape (n_samples,)
    bounds : Bounds
        On the rows that carry a weight.
    hull : Hull
    energy : float
        (1/W) Σ s_i (secant slope)_i (a_iᵀu)² ≤ energy for u = x* − x₀.
    """

    weights: Array
    bounds: Bounds
    hull: Hull
    energy: float


def self_consistent(
    center: Center, model: CurvatureModel, known: Known, max_rounds: int
) -> SelfConsistent | None:
    """Lower the weights from f'' until every one of them is confirmed; None if no ellipsoid is."""
    design, weights = center.problem.design, center.curvature()
    diagonal = center.diagonal(known.reach)
    ridges: Ridges = _RIDGES if center.problem.strong_convexity == 0 else (0.0,)
    for n_rounds in range(1, max_rounds + 1):
        if n_rounds == max_rounds:  # nothing is confirmed: no sample carries curvature
            weights = np.zeros_like(weights)
        model.move(weights)
        found, ridges = _best_ellipsoids(center, model, diagonal, known.distance, ridges)
        if found is None:
            return None
        rows = weights > 0
        bounds = bounds_of_rows(found.hull, design, rows).intersect(known.bounds.take(rows))
        lowered = _confirmed(center, bounds, rows, weights[rows], n_rounds)
        if np.array_equal(lowered, weights[rows]):
            return SelfConsistent(weights, bounds, found.hull, found.energy)
        weights = weights.copy()
        weights[rows] = lowered
    return None


def bounds_of_all(found: SelfConsistent, design: Design, known: Known) -> Bounds:
    """The bounds of all rows; those that carry a weight have been tested already."""
    carrying = found.weights > 0
    rest = bounds_of_rows(found.hull, design, ~carrying).intersect(known.bounds.take(~carrying))
    lower, upper = np.empty_like(found.weights), np.empty_like(found.weights)
    lower[carrying], upper[carrying] = found.bounds
    lower[~carrying], upper[~carrying] = rest
    return Bounds(lower, upper)


def _confirmed(
    center: Center, bounds: Bounds, rows: NDArray, weights: Array, n_rounds: int
) -> Array:
    """The weights where the ellipsoid confirms them, lower ones elsewhere."""
    floor, _ = center.secant_bounds(bounds, rows)
    failing = weights > floor
    if not failing.any():
        return weights
    factor = _WIDENING[min(n_rounds, len(_WIDENING)) - 1]
    failed_rows = rows.copy()
    failed_rows[rows] = failing
    anticipated, _ = center.secant_bounds(bounds.take(failing).widened(factor), failed_rows)
    anticipated = np.minimum(anticipated, floor[failing])
    lowered = weights.copy()
    lowered[failing] = np.where(anticipated < 1e-3 * weights[failing], 0.0, anticipated)
    return lowered


@dataclass(frozen=True, eq=False)
class Ellipsoids:
    """The ellipsoids of given weights, whether self-consistent or not.

    Attributes
    ----------
    hull : Hull
        One for each alpha of the centre.
    energy : float
        The largest −gᵀu over them.
    """

    hull: Hull
    energy: float


def _best_ellipsoids(
    center: Center, model: CurvatureModel, diagonal: Array, distance: float, ridges: Ridges
) -> tuple[Ellipsoids | None, Ridges]:
    """The narrowest over the trial values of ε, and the values to try next time."""
    best, narrowest, at = None, math.inf, 0
    for k, ridge in enumerate(ridges):
        found = ellipsoids(center, model, diagonal, ridge * model.scale, distance)
        if found is None:
            continue
        width = _typical_width(center, found.hull) if len(ridges) > 1 else 0.0
        if width < narrowest:
            best, narrowest, at = found, width, k
    return best, ridges[max(at - 1, 0) : at + 2]


def _typical_width(center: Center, hull: Hull) -> float:
    design = rows_of(center.problem.design)
    rows = np.arange(0, design.n_samples, max(design.n_samples // _PROBES, 1))
    bounds = hull.bounds(design.only(rows))
    return float(np.sum(bounds.upper - bounds.lower))


def ellipsoids(
    center: Center, model: CurvatureModel, diagonal: Array, epsilon: float, distance: float
) -> Ellipsoids | None:
    """{ x₀ + u : ‖u‖²_{H + εI} + gᵀu ≤ slack + ε·distance² } for every alpha of the centre.

    H belongs to the present weights of the model and the diagonal of the penalty.
    """
    metric = model.metric(diagonal + epsilon)
    allowance = center.slack + (epsilon * distance * distance if epsilon > 0 else 0.0)
    if metric is None or not math.isfinite(allowance):
        return None
    shape = metric.shape
    sets, energies = [], []
    for g in center.gradients:
        image = shape.transpose_product(g)
        lost = metric.stretch * center.gradient_error + _product_error(shape) * norm(g)
        length = norm(image) + lost
        # no square that may underflow
        radius = (math.hypot(0.5 * length, math.sqrt(allowance)) + 0.5 * lost) * (1.0 + 8 * EPS)
        if not math.isfinite(radius):
            return None
        moved = center.at.point - 0.5 * shape.product(image)
        slack = _product_error(shape) * shape.size * norm(g) + 4 * EPS * norm(moved)
        name = f"curvature ellipsoid ({model.describe()})"
        sets.append(
            EllipsoidalSet(
                moved, shape.scaled(radius), slack, name=name, certified=center.problem.certified
            )
        )
        energies.append(((0.5 * length + radius) * length + center.slack) * (1.0 + 1e-12))
    return Ellipsoids(Hull(tuple(sets)), max(energies))


def _product_error(shape: Shape) -> float:
    """‖computed Bᵀg − exact‖ ≤ this·‖g‖, and the same for Bu."""
    return 4.0 * (shape.dimension + 8) * EPS * shape.size
