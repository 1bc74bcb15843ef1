"""In which interval an unpenalised intercept must lie at every optimum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from safesift.arithmetic.numerics import EPS, norm, total
from safesift.problem.certificate import Certificate
from safesift.problem.evaluation import Evaluation
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
# an interval of the intercept next to how far the ball lets predictions go: so wide is narrow
_NARROW = (1.0, 2.0, 4.0)
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
    slopes = _Slopes.around(certificate, ball)
    if not problem.design.has_rows:
        if slopes is None:
            raise UnboundedInterceptError(_UNBOUNDED)
        return slopes.intercept - slopes.farthest(-1.0), slopes.intercept + slopes.farthest(1.0)
    if not problem.penalty.contains(problem.split(at.point)[0]):
        # only at a feasible point the value bounds the optimal one
        at = problem.evaluate(problem.feasible(at.point))
        limit = at.value + problem.rounding(at).value
    coef, intercept = problem.split(at.point)
    tangents = _Tangents(problem, at, limit, reach=ball.radius + norm(ball.center - coef))
    scale = problem.unit + total(problem.shares, np.abs(at.pred - problem.risk.targets.centers))
    shift = _first_shift(certificate, at, scale)
    near = np.full(2, math.inf) if slopes is None else slopes.near()
    if np.isfinite(near).all():
        # where the ball is small the first shift is about the best
        down, up = np.minimum(near, tangents.bounds([shift])[0])
    else:
        down, up = tangents.farthest(shift, scale)
    return intercept - float(down), intercept + float(up)


def _first_shift(certificate: Certificate, at: Evaluation, scale: float) -> float:
    """About the shift by which the mean loss rises as far as it is known: found without a pass.

    With h the curvature in c a tangent from there gives about ½Δ + gap/(hΔ), and what the reach in
    x costs, which hardly depends on Δ: the best is where ½hΔ² is the gap.
    """
    problem, mean = certificate.problem, at.sums.loss
    loss, y, shares = problem.loss, problem.y, problem.shares
    wanted = certificate.gap + 64 * EPS * abs(mean)
    shift = scale
    for _ in range(_MAX_TRIES):
        rise = max(total(shares, loss.value(at.pred + move, y)) - mean for move in (-shift, shift))
        factor = math.sqrt(wanted / rise) if rise > 0 else _FACTOR
        shift = min(max(shift * factor, _LEAST * scale), scale)
        if 1.0 / _FACTOR < factor < _FACTOR:
            break
    return shift


@dataclass(frozen=True, eq=False)
class _Slopes:
    """Bounds on the intercept by slopes alone, without a pass over the data.

    At an optimum Σ s_i ν*_i + q = 0 with ν*_i a slope of the loss at h*(x_i) + c*, and q that of a
    linear term. Slopes grow: where Σ s_i f'(least h*(x_i) + c) + q > 0 already, c* ≤ c, and
    likewise from below. Where the ball is small that is about as good as tangents are.

    Attributes
    ----------
    problem : Problem
    pred, reach : arrays of shape (n_samples,)
        Predictions at the centre, and how far from them those of an optimum may be for its
        coefficients' part.
    intercept : float
        At the centre.
    """

    problem: Problem
    pred: np.ndarray
    reach: np.ndarray
    intercept: float

    @classmethod
    def around(cls, certificate: Certificate, ball: Ball) -> _Slopes | None:
        """None where predictions are not known at the centre, or the slope of a folded part."""
        problem, at = certificate.problem, certificate.at
        coef, intercept = problem.split(at.point)
        known = np.array_equal(ball.center, coef) and math.isfinite(ball.radius)
        if problem.Q is not None or not known:
            return None
        # and the rounding of the sums of predictions, reach and shifts
        reach = ball.radius * problem.design.row_norms + problem.prediction_error(at)
        reach = reach * (1.0 + 8 * EPS) + 8 * EPS * np.abs(at.pred)
        return cls(problem, at.pred, reach, intercept)

    def near(self) -> np.ndarray:
        """How far below and above it may be, infinite where that is more than the ball suggests."""
        typical = total(self.problem.shares, self.reach)
        if not math.isfinite(typical):
            return np.full(2, math.inf)

        def settled_at(sign: float) -> float:
            tried = (times * typical for times in _NARROW)
            found = next((shift for shift in tried if self.settled(sign, shift)), math.inf)
            return self._rounded(found)

        return np.array([settled_at(sign) for sign in (-1.0, 1.0)])

    def _rounded(self, shift: float) -> float:
        return shift * (1.0 + 8 * EPS) + 4 * EPS * abs(self.intercept)

    def farthest(self, sign: float) -> float:
        """How far the intercept may be beyond that of the centre, on the side of `sign`."""
        shift = _LEAST * self.problem.unit
        while not self.settled(sign, shift):
            shift *= 8.0
            if shift > _MOST * self.problem.unit:
                raise UnboundedInterceptError(_UNBOUNDED)
        low, high = shift / 8.0, shift
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.settled(sign, middle) else (middle, high)
        return self._rounded(high)

    def settled(self, sign: float, shift: float) -> bool:
        """Whether no optimum's intercept is further on the side of `sign`."""
        problem = self.problem
        nu = problem.loss.slope(self.pred - sign * self.reach + sign * shift, problem.y)
        linear = noise = 0.0
        if problem.folded is not None:
            linear, noise = float(problem.q[-1]), problem.folded.gradient_error(0.0)
        lost = problem.design.sum_error + 16 * EPS + problem.loss.precision
        noise += lost * (total(problem.shares, np.abs(nu)) + abs(linear))
        return sign * (total(problem.shares, nu) + linear) > noise


@dataclass(frozen=True, eq=False)
class _Tangents:
    """Tangents of the objective above and below the intercept of a point."""

    problem: Problem
    at: Evaluation
    limit: float
    reach: float

    def farthest(self, shift: float, scale: float) -> tuple[float, float]:
        """How far below and above the intercept an optimum may lie.

        The best shift may be anywhere below the scale of the predictions: others than the first are
        tried from there on, several in a pass, as long as that is worth one.
        """
        found = self.bounds([shift, scale, scale / _FACTOR])
        best = found.min(axis=0)
        while np.isinf(best).any() and scale < _MOST * self.problem.unit:
            scale *= _FACTOR**2
            best = np.minimum(best, self.bounds([scale / _FACTOR, scale]).min(axis=0))
        if np.isinf(best).any():
            raise UnboundedInterceptError(_UNBOUNDED)
        better = found[0] > best
        while better.any() and scale > shift:
            scale /= _FACTOR**2
            found = self.bounds([scale, scale / _FACTOR])
            better = found.min(axis=0) < _HARDLY_BETTER * best
            best = np.minimum(best, found.min(axis=0))
        return float(best[0]), float(best[1])

    def bounds(self, shifts: list[float]) -> np.ndarray:
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
