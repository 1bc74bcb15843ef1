"""In which interval an unpenalised intercept must lie at every optimum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from safesift.arithmetic.numerics import EPS, norm, total
from safesift.problem.certificate import Certificate
from safesift.problem.evaluation import Evaluation
from safesift.problem.looks import Look
from safesift.problem.problem import Problem, evaluate_shifted

if TYPE_CHECKING:
    from safesift.regions.ball import Ball

# shifts change by this factor
_FACTOR = 4.0
# a bound that is hardly better than the last one is not worth another pass
_HARDLY_BETTER = 0.8
# the first shift is found in so many tries
_MAX_TRIES = 6
# shifts that slopes are tried at, in units of the predictions, and how well the best is found
_LEAST, _MOST, _BISECTIONS = 1e-14, 1e18, 12
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
    R ≥ 0; that is better far from the optimum. A few shifts Δ share a pass over the data.

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
    tangents = _Tangents(problem, at, limit, reach=ball.radius + norm(ball.center - coef))
    scale = problem.unit + total(problem.shares, np.abs(at.pred - problem.risk.targets.centers))
    down, up = tangents.farthest(_first_shift(certificate, at, scale), scale)
    return intercept - down, intercept + up


def _first_shift(certificate: Certificate, at: Evaluation, scale: float) -> float:
    """About the shift by which the mean loss rises as far as it is known: found without a pass.

    With h the curvature in c a tangent from there gives about ½Δ + gap/(hΔ), and what the reach in
    x costs, which hardly depends on Δ: the best is where ½hΔ² is the gap.
    """
    problem, mean = certificate.problem, at.sums.loss
    wanted = certificate.gap + 64 * EPS * abs(mean)
    shift = scale
    for _ in range(_MAX_TRIES):
        rise = max(_mean_loss(problem, at, move) - mean for move in (-shift, shift))
        factor = math.sqrt(wanted / rise) if rise > 0 else _FACTOR
        shift = min(max(shift * factor, _LEAST * scale), scale)
        if 1.0 / _FACTOR < factor < _FACTOR:
            break
    return shift


def _mean_loss(problem: Problem, at: Evaluation, shift: float) -> float:
    look = Look(problem, at.size)
    look.of_all(at.pred + shift)
    return look.sums.loss


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
    at: Evaluation
    limit: float
    reach: float

    def farthest(self, shift: float, scale: float) -> tuple[float, float]:
        """How far below and above the intercept an optimum may lie.

        Where the ball is small the first shift is about the best. Where it is not, the best may be
        anywhere below the scale of the predictions: others are tried from there on, several in a
        pass, as long as that is worth one.
        """
        found = self._bounds([shift, scale, scale / _FACTOR])
        best = found.min(axis=0)
        while np.isinf(best).any() and scale < _MOST * self.problem.unit:
            scale *= _FACTOR**2
            best = np.minimum(best, self._bounds([scale / _FACTOR, scale]).min(axis=0))
        if np.isinf(best).any():
            raise UnboundedInterceptError(_UNBOUNDED)
        better = found[0] > best
        while better.any() and scale > shift:
            scale /= _FACTOR**2
            found = self._bounds([scale, scale / _FACTOR])
            better = found.min(axis=0) < _HARDLY_BETTER * best
            best = np.minimum(best, found.min(axis=0))
        return float(best[0]), float(best[1])

    def _bounds(self, shifts: list[float]) -> np.ndarray:
        """Below and above, for every shift."""
        both = [sign * shift for shift in shifts for sign in (-1.0, 1.0)]
        there = evaluate_shifted(self.problem, self.at, both)
        return np.reshape(list(map(self._bound, there)), (len(shifts), 2))

    def _bound(self, there: Evaluation) -> float:
        """The bound from one tangent, infinite if it does not rise away from the point."""
        problem, moved = self.problem, float(there.point[-1] - self.at.point[-1])
        rounding = problem.rounding(there)
        steepness = math.copysign(1.0, moved) * there.subgradient[-1] - rounding.gradient
        if not steepness > 0:
            return math.inf
        penalty = problem.penalty.value(there.point[:-1])
        loss_slope = there.loss_gradient + problem.q
        if problem.folded is not None:
            loss_slope = loss_slope + problem.folded.product(there.point)
        rises = (
            there.subgradient_slack + self._tilt(there.subgradient, rounding.gradient),
            problem.alpha * penalty + self._tilt(loss_slope, rounding.gradient),
        )
        rise = (self.limit - there.value) + min(rises) + 2.0 * rounding.value + rounding.cut
        return abs(moved) + max(rise, 0.0) / steepness * (1.0 + 1e-12)

    def _tilt(self, slope: np.ndarray, error: float) -> float:
        return (norm(slope[:-1]) + error) * self.reach
