"""What a small duality gap proves by itself, for losses with a Lipschitz slope.

With x* an optimum, t* its predictions, ν* their slopes, 0 ∈ ∂P(x*) and convexity give

    gap ≥ P(x₀) − P* ≥ (1/W) Σ s_i B_i + ½κ‖x₀ − x*‖² + ½‖x₀ − x*‖²_Q,
    B_i = f_i(t_i) − f_i(t*_i) − ν*_i(t_i − t*_i) ≥ (ν_i − ν*_i)² / (2L),

every term ≥ 0. So every slope is known to √(2L·W·gap/s_i), which encloses the predictions of the
rows where the loss curves. On those, B_i ≥ ½w_i(t_i − t*_i)² with w_i the curvature floor of the
enclosure, and x* lies in the ellipsoid ½‖x − x₀‖²_H ≤ gap, H = κI + Q + (1/W) Σ s_i w_i a_i a_iᵀ.
No rounds of lowering weights, and no pass over the data but for the Gram matrix.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, norm
from safesift.problem.decisions import Bounds
from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.regions.ellipsoidal import EllipsoidalSet
from safesift.regions.shape import Shape
from safesift.regions.whitening import Whitening, whiten

Array = NDArray[np.float64]


class ProvedCurvature(NamedTuple):
    """Curvature floors w_i between x₀ and every optimum, and the bounds they hold on."""

    weights: Array
    bounds: Bounds


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def proved_curvature(problem: Problem, at: Evaluation, gap: float) -> ProvedCurvature:
    """The rows that the gap proves to be where their loss curves, at every optimum.

    The slope f' grows: where f'(t_i ± ρ_i) is beyond what ν*_i can be, |t*_i − t_i| < ρ_i.
    """
    loss, y, error = problem.loss, problem.y, problem.prediction_error(at)
    curvature = loss.curvature(at.pred, y)
    noise = loss.smoothness * error + (16 * EPS + loss.precision) * (1.0 + np.abs(at.nu))
    reach = np.sqrt(2.0 * loss.smoothness * gap / problem.shares) * (1.0 + 8 * EPS) + 2.0 * noise
    rho = 1.01 * reach / curvature + 2.0 * error
    lower, upper = at.pred - rho, at.pred + rho
    enclosed = (problem.shares > 0) & (curvature > 0) & np.isfinite(rho)
    enclosed &= loss.slope(upper, y) - at.nu > reach
    enclosed &= at.nu - loss.slope(lower, y) > reach
    bounds = Bounds(np.where(enclosed, lower, -math.inf), np.where(enclosed, upper, math.inf))
    floor = loss.curvature_floor(
        np.where(enclosed, lower - error, at.pred), np.where(enclosed, upper + error, at.pred), y
    )
    return ProvedCurvature(np.where(enclosed, floor * (1.0 - 16 * EPS), 0.0), bounds)


def distance_bound(problem: Problem, at: Evaluation, gap: float) -> float:
    """A bound on ‖x* − x₀‖ for every optimum, the intercept left aside.

    A loss that is ≥ 0 and L-smooth is at least ν²/(2L), so that the slopes bound the mean loss at
    an optimum from below, and what is left of P(x₀) bounds the penalty there.
    """
    coef, _ = problem.split(at.point)
    most = at.value + problem.rounding(at).value
    if problem.folded is None:
        L = problem.loss.smoothness
        noise = L * problem.prediction_error(at) + 16 * EPS * np.abs(at.nu)
        root = np.sqrt(problem.shares)
        slopes = norm(root * at.nu) * (1.0 - 8 * EPS) - norm(root * noise)
        least = max(slopes - math.sqrt(2.0 * L * gap), 0.0) * (1.0 - problem.design.sum_error)
        most = max(most - 0.5 * least * least / L, 0.0)
    return (problem.penalty.norm_bound(most, problem.alpha) + norm(coef)) * (1.0 + 16 * EPS)


def gap_ellipsoid(
    point: Array, gap: float, H: Array, spread: Array, error: float
) -> EllipsoidalSet | None:
    """{ x : ½‖x − point‖²_H ≤ gap }, None where H is too close to singular for the arithmetic.

    Parameters
    ----------
    H, spread, error
        A matrix below κI + Q + Σ share_i w_i a_i a_iᵀ, known to error·spread·spreadᵀ.
    """
    white = whiten(H, spread, error) if len(H) else Whitening(H, 0.0)
    if white is None:
        return None
    radius = math.sqrt(2.0 * gap / (1.0 - white.looseness)) * (1.0 + 8 * EPS)
    shape = Shape(len(point), 1.0, None, radius * white.basis)
    slack = 4 * EPS * norm(point)
    return EllipsoidalSet(point, shape, slack, name="gap ellipsoid")
