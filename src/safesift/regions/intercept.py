"""In which interval an unpenalised intercept must lie at every optimum."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from safesift.penalties import _norm
from safesift.problem import Problem

if TYPE_CHECKING:
    from safesift.problem import Evaluation
    from safesift.regions.ball import Ball

_MAX_TRIES = 12


class UnboundedInterceptError(ValueError):
    """The data do not bound the intercept, so no bounded region contains every optimum."""


def intercept_interval(problem: Problem, at: Evaluation, ball: Ball) -> tuple[float, float]:
    """Bounds on the intercept of every optimum whose coefficients lie in a ball.

    The mean loss is above its tangent at (x₀, c₀ + Δ) and at most P(x₀, c₀) at an optimum, since
    R ≥ 0. With S the tangent's slope in c and u its slope in x this gives, for S > 0,

        c* ≤ c₀ + Δ + (P(x₀, c₀) − loss(x₀, c₀ + Δ) + ‖u‖·max‖x* − x₀‖) / S

    and the mirror image for S < 0. A few shifts Δ are tried, one pass over the data each.

    Raises
    ------
    UnboundedInterceptError
        If no tangent bounds the intercept, as with one class only.
    """
    coef, intercept = problem.split(at.point)
    reach = ball.radius + _norm(ball.center - coef)
    scale = float(problem.shares @ np.abs(at.pred - problem.y)) or 1.0
    limit = at.value + problem.rounding(at).value
    ends = []
    for sign in (-1.0, 1.0):
        best = math.inf
        for doubling in range(_MAX_TRIES):
            shift = sign * scale * 2.0**doubling
            distance = _distance(problem, coef, intercept + shift, limit, reach, sign)
            bound = abs(shift) + distance
            if best < math.inf and bound >= best:
                break
            best = min(best, bound)
        if not math.isfinite(best):
            raise UnboundedInterceptError(
                "fit_intercept=True: the data do not bound the intercept (is there only one "
                "class, or a loss that is flat on one side?); use fit_intercept=False."
            )
        ends.append(intercept + sign * best)
    return ends[0], ends[1]


def _distance(
    problem: Problem, coef: np.ndarray, intercept: float, limit: float, reach: float, sign: float
) -> float:
    """How far beyond `intercept`, in the direction of `sign`, an optimum may lie."""
    there = problem.evaluate(problem.join(coef, intercept))
    rounding = problem.rounding(there)
    gradient = there.loss_gradient
    mean_loss = there.value - problem.alpha * problem.penalty.value(coef)
    if problem.folded is not None:
        gradient = gradient + problem.folded.product(there.point) + problem.folded.q
    steepness = sign * gradient[-1] - rounding.gradient
    if steepness <= 0:
        return math.inf
    rise = limit - mean_loss + 2.0 * rounding.value + rounding.cut
    rise += (_norm(gradient[:-1]) + rounding.gradient) * reach
    return max(rise, 0.0) / steepness * (1.0 + 1e-12)
