"""In which interval an unpenalised intercept must lie at every optimum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from safesift.arithmetic.numerics import EPS, norm, total
from safesift.problem.certificate import Certificate
from safesift.problem.problem import Problem

if TYPE_CHECKING:
    from safesift.regions.ball import Ball

# shifts change by this factor; so many tries reach from the scale of the data to its extremes
_FACTOR, _MAX_TRIES = 4.0, 30
# a bound that is hardly better than the last one is not worth another pass
_HARDLY_BETTER = 0.8
# shifts that slopes are tried at, in units of the predictions, and how well the best is found
_LEAST, _MOST, _BISECTIONS = 1e-14, 1e8, 12
_UNBOUNDED = (
    "fit_intercept=True: the data do not bound the intercept (is there only one class, or a loss "
    "that is flat on one side?); use fit_intercept=False."
)


class UnboundedInterceptError(ValueError):
    """The data do not bound the intercept, so no bounded region contains every optimum."""


def intercept_interval(certificate: Certificate, ball: Ball) -> tuple[float, float]:
    """Bounds on the intercept of every optimum whose coefficients lie in a ball.

    The objective is above its tangent at (x₀, c₀ + Δ) and at most P(x₀, c₀) at an optimum. With S
    the tangent's slope in c and u its slope in x this gives, for S > 0,

        c* ≤ c₀ + Δ + (P(x₀, c₀) − P(x₀, c₀ + Δ) + ‖u‖·max‖x* − x₀‖) / S

    and the mirror image for S < 0. The same holds for the mean loss alone on the right, since
    R ≥ 0; that is better far from the optimum. A few shifts Δ are tried, a pass over the data
    each.

    Raises
    ------
    UnboundedInterceptError
        If no tangent bounds the intercept, as with one class only.
    """
    problem, at, limit = certificate.problem, certificate.at, certificate.value
    if not problem.design.has_rows:
        return _interval_of_slopes(certificate, ball)
    if not problem.penalty.contains(problem.split(at.point)[0]):
        # only at a feasible point the value bounds the optimal one
        at = problem.evaluate(problem.feasible(at.point))
        limit = at.value + problem.rounding(at).value
    coef, intercept = problem.split(at.point)
    tangents = _Tangents(
        problem=problem,
        coef=coef,
        intercept=intercept,
        limit=limit,
        reach=ball.radius + norm(ball.center - coef),
    )
    scale = problem.unit + total(problem.shares, np.abs(at.pred - problem.risk.targets.centers))
    return intercept - tangents.farthest(scale, -1.0), intercept + tangents.farthest(scale, 1.0)


def _interval_of_slopes(certificate: Certificate, ball: Ball) -> tuple[float, float]:
    """The same without a pass over the data, where gradients have no norm that is cheap to tell.

    At an optimum Σ s_i ν*_i = 0 with ν*_i a slope of the loss at h*(x_i) + c*. Slopes grow: where
    Σ s_i f'(least h*(x_i) + c) > 0 already, c* ≤ c, and likewise from below.
    """
    problem, at = certificate.problem, certificate.at
    coef, intercept = problem.split(at.point)
    if not np.array_equal(ball.center, coef):
        # predictions are known at the point only
        raise UnboundedInterceptError(_UNBOUNDED)
    reach = ball.radius * problem.design.row_norms + problem.prediction_error(at)
    down = _farthest_by_slopes(problem, at.pred + reach, -1.0)
    up = _farthest_by_slopes(problem, at.pred - reach, 1.0)
    room = 4 * EPS * abs(intercept)
    return intercept - (down + room), intercept + (up + room)


def _farthest_by_slopes(problem: Problem, ends: np.ndarray, sign: float) -> float:
    """How far the intercept may be beyond that of a point, on the side of `sign`."""

    def settled(shift: float) -> bool:
        nu = problem.loss.slope(ends + sign * shift, problem.y)
        noise = (problem.design.sum_error + 16 * EPS + problem.loss.precision) * total(
            problem.shares, np.abs(nu)
        )
        return sign * total(problem.shares, nu) > noise

    shift = _LEAST * problem.unit
    while not settled(shift):
        shift *= 8.0
        if shift > _MOST * problem.unit:
            raise UnboundedInterceptError(_UNBOUNDED)
    low, high = shift / 8.0, shift
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if settled(middle) else (middle, high)
    return high * (1.0 + 8 * EPS)


@dataclass(frozen=True, eq=False)
class _Tangents:
    """Tangents of the objective above and below the intercept of a point."""

    problem: Problem
    coef: np.ndarray
    intercept: float
    limit: float
    reach: float

    def farthest(self, scale: float, sign: float) -> float:
        """How far from the intercept, on the side of `sign`, an optimum may lie."""
        best, shift, factor = self.bound(scale, sign), scale, 1.0 / _FACTOR
        if math.isinf(best):
            factor = _FACTOR
        for _ in range(_MAX_TRIES):
            shift *= factor
            bound = self.bound(shift, sign)
            if math.isfinite(best) and bound >= _HARDLY_BETTER * best:
                return min(best, bound)
            best = min(best, bound)
        if math.isfinite(best):
            return best
        raise UnboundedInterceptError(_UNBOUNDED)

    def bound(self, shift: float, sign: float) -> float:
        """The bound from one tangent, infinite if it falls on the side of `sign`."""
        problem = self.problem
        at = problem.evaluate(problem.join(self.coef, self.intercept + sign * shift))
        rounding = problem.rounding(at)
        steepness = sign * at.subgradient[-1] - rounding.gradient
        if not steepness > 0:
            return math.inf
        penalty = problem.penalty.value(self.coef)
        loss_slope = at.loss_gradient + problem.q
        if problem.folded is not None:
            loss_slope = loss_slope + problem.folded.product(at.point)
        rises = (
            -at.value + at.subgradient_slack + self._tilt(at.subgradient, rounding.gradient),
            -at.value + problem.alpha * penalty + self._tilt(loss_slope, rounding.gradient),
        )
        rise = self.limit + min(rises) + 2.0 * rounding.value + rounding.cut
        return shift + max(rise, 0.0) / steepness * (1.0 + 1e-12)

    def _tilt(self, slope: np.ndarray, error: float) -> float:
        return (norm(slope[:-1]) + error) * self.reach
