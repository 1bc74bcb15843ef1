"""Balls that contain every optimum: regions by themselves, and starts of the ellipsoid method.

Each bounds the distance ‖x* − centre‖ in the penalised coordinates. Where there is an intercept,
`BallRegion.build` adds the interval in which its optimum must lie (`regions.intercept`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, norm, root_over, total
from safesift.design.rows import rows_of
from safesift.parameters import require_positive
from safesift.penalties import L2
from safesift.problem.certificate import Certificate
from safesift.problem.problem import Problem
from safesift.regions.base import (
    Everything,
    Intersection,
    Region,
    RegionError,
    TestSet,
    require_strong_convexity,
)
from safesift.regions.ellipsoidal import BallTimesInterval, EllipsoidalSet, KnownPredictions
from safesift.regions.intercept import UnboundedInterceptError, intercept_interval
from safesift.regions.shape import Shape

Array = NDArray[np.float64]


# rounds a radius upwards
_UP = 1.0 + 8 * EPS


class Ball(NamedTuple):
    """{ x : ‖x − center‖ ≤ radius } in the penalised coordinates.

    Attributes
    ----------
    center : array of shape (n_features,)
    radius : float
    """

    center: Array
    radius: float


class StartRegion(Region):
    """A region whose set is, or fits into, an ellipsoid: one that the ellipsoid method can cut."""

    def validate_start(self, problem: Problem) -> None:
        """Like `validate`, for use as the start of the ellipsoid method."""
        self.validate(problem)

    @abstractmethod
    def start(self, certificate: Certificate, dense: bool) -> EllipsoidalSet:
        """The set as an ellipsoid, in the dense or in the low-rank form where both exist."""


class BallRegion(StartRegion):
    """A ball in the penalised coordinates, with an interval for the intercept if there is one.

    Attributes
    ----------
    name : str
    certified : bool
    """

    name: ClassVar[str]
    certified: ClassVar[bool] = True

    @abstractmethod
    def ball(self, certificate: Certificate) -> Ball:
        """The ball, from what is proved at its centre."""

    def build(self, certificate: Certificate) -> TestSet:
        problem = certificate.problem
        if not problem.fit_intercept:
            return self.start(certificate, dense=False)
        ball = self.ball(certificate)
        interval = intercept_interval(certificate, ball)
        label = self._label(ball.radius)
        certified = self.certified and problem.certified
        coef, intercept = problem.split(certificate.at.point)
        return BallTimesInterval(
            *ball, interval, name=label, certified=certified,
            known=_predictions_at(certificate) if np.array_equal(ball.center, coef) else None,
            known_at=intercept,
        )  # fmt: skip

    def start(self, certificate: Certificate, dense: bool) -> EllipsoidalSet:
        problem, at = certificate.problem, certificate.at
        center, radius = self.ball(certificate)
        label, certified = self._label(radius), self.certified and problem.certified
        if not problem.fit_intercept:
            shape = Shape.ball(len(center), radius, dense)
            # not where the centre was moved
            here = np.array_equal(center, at.point)
            known = _predictions_at(certificate) if here else None
            return EllipsoidalSet(center, shape, name=label, certified=certified, known=known)
        low, high = intercept_interval(certificate, Ball(center, radius))
        p = len(center)
        # the smallest ellipsoid around a ball of dimension p times a segment
        shape = Shape.ball_and_segment(
            p + 1, radius * math.sqrt((p + 1) / p), 0.5 * (high - low) * math.sqrt(p + 1), dense
        )
        point = np.append(center, 0.5 * (low + high))
        slack = 4 * EPS * (norm(point) + shape.size)
        return EllipsoidalSet(point, shape, slack, name=label, certified=certified)

    def _label(self, radius: float) -> str:
        return f"{self.name.replace('_', ' ')} (radius {radius:.3g})"


def plain_ball(problem: Problem) -> BallRegion:
    """The ball there is for every problem: of the gap with strong convexity, else of the norm."""
    return GapBall() if problem.strong_convexity > 0 else NormBall()


@dataclass(frozen=True)
class Balls(Region):
    """The balls that apply: of the gap or of the norm, and for a smooth loss that of the gradient.

    Parameters
    ----------
    why : str
        Why there is nothing better, for whoever reads about the set.
    """

    why: str = ""

    def build(self, certificate: Certificate) -> TestSet:
        problem = certificate.problem
        try:
            sets: list[TestSet] = [plain_ball(problem).build(certificate)]
        except UnboundedInterceptError:
            return Everything(self.why or "the data do not bound the intercept")
        # at a kink no subgradient tells that the optimum is near
        smooth = math.isfinite(problem.loss.smoothness) and problem.strong_convexity > 0
        if smooth and not problem.fit_intercept and problem.design.has_rows:
            sets.append(GradientBall().build(certificate))
        return Intersection(tuple(sets), self.why)


@np.errstate(over="ignore", invalid="ignore")
def may_decide(certificate: Certificate) -> bool:
    """Whether the ball of the gap could decide a row, were the intercept what it is now.

    If not, bounds on the intercept are not worth their pass over the rows.
    """
    problem, pred = certificate.problem, certificate.at.pred
    radius, norms_sq = GapBall().ball(certificate).radius, rows_of(problem.design).feature_norms_sq

    def is_inside(rows: slice) -> bool:
        reach, counts = radius * np.sqrt(norms_sq[rows]), problem.weights[rows] > 0
        room = problem.pieces.room(pred[rows], rows)
        return bool(((room > reach) & counts).any())

    return any(map(is_inside, problem.design.sample_blocks))


def _predictions_at(certificate: Certificate) -> KnownPredictions:
    return KnownPredictions(certificate.at.pred, certificate.at.size)


def _penalised(certificate: Certificate) -> Array:
    """The coefficients; the very same array as the point where there is no intercept."""
    return certificate.problem.split(certificate.at.point)[0]


def _objective(certificate: Certificate) -> float:
    """An upper bound on the optimal value, which is not negative."""
    return max(certificate.value, 0.0)


@dataclass(frozen=True)
class GapBall(BallRegion):
    """The ball of radius √(2Δ/κ) around the centre, Δ the duality gap, κ the strong convexity.

    From P(x₀) ≥ P(x*) + ½κ‖x₀ − x*‖² (the paper prints the radius as 2Δ/λ). Needs strong
    convexity in all coordinates; as the start of an ellipsoid an intercept may be free.
    """

    name = "gap_ball"

    def validate(self, problem: Problem) -> None:
        require_strong_convexity(self.name, problem)

    def validate_start(self, problem: Problem) -> None:
        require_strong_convexity(self.name, problem, intercept_allowed=True)

    def ball(self, certificate: Certificate) -> Ball:
        curvature = certificate.problem.strong_convexity
        radius = root_over(2.0 * certificate.gap, curvature) * _UP
        return Ball(_penalised(certificate), radius)


@dataclass(frozen=True)
class ObjectiveBall(BallRegion):
    """The ball of radius √(2P(x₀)/κ) around the centre: no dual point, since P ≥ 0."""

    name = "objective_ball"

    def validate(self, problem: Problem) -> None:
        require_strong_convexity(self.name, problem, intercept_allowed=True)

    def ball(self, certificate: Certificate) -> Ball:
        curvature = certificate.problem.strong_convexity
        radius = root_over(2.0 * _objective(certificate), curvature) * _UP
        return Ball(_penalised(certificate), radius)


@dataclass(frozen=True)
class NormBall(BallRegion):
    """The ball around 0 that alpha·R(x*) ≤ P(x₀) allows.

    ‖x*‖₂ ≤ ‖x*‖₁ ≤ P(x₀)/alpha for l1, √(2P(x₀)/alpha) for l2, the radius for a norm-ball
    constraint. Needs no strong convexity.
    """

    name = "norm_ball"

    def ball(self, certificate: Certificate) -> Ball:
        problem = certificate.problem
        radius = problem.penalty.norm_bound(_objective(certificate), problem.alpha) * _UP
        return Ball(np.zeros(problem.design.n_features), radius)


@dataclass(frozen=True)
class GradientBall(BallRegion):
    """The ball of radius ½‖g‖/κ around x₀ − ½g/κ, g a subgradient at the centre.

    Strong convexity from x₀ to x* and back gives κ‖x* − x₀‖² + gᵀ(x* − x₀) ≤ 0. No dual point is
    needed. Needs strong convexity in all coordinates.
    """

    name = "gradient_ball"

    def validate(self, problem: Problem) -> None:
        require_strong_convexity(self.name, problem)

    def ball(self, certificate: Certificate) -> Ball:
        at, rounding = certificate.at, certificate.rounding
        kappa = certificate.problem.strong_convexity
        g = at.subgradient
        # κ‖u‖² + gᵀu ≤ cut + ‖error‖·‖u‖: radius and centre both take their share of the error
        half = 0.5 * (norm(g) + rounding.gradient) / kappa
        excess = (rounding.cut + at.subgradient_slack) / kappa
        moved = 0.5 * rounding.gradient / kappa + 4 * EPS * (norm(at.point) + half)
        radius = (math.hypot(half, math.sqrt(excess)) + moved) * _UP
        return Ball(at.point - (0.5 / kappa) * g, radius)


@dataclass(frozen=True)
class GuessedBall(BallRegion):
    """A ball of a guessed radius around the centre, over all coordinates: not certified.

    Check afterwards (`ScreeningResult.check`, `safesift.solve_and_repair`). A radius that
    provably cannot contain the optimum raises `RegionError`.

    Parameters
    ----------
    radius : float
    """

    radius: float = 1.0
    name = "guessed_ball"
    certified = False

    def __post_init__(self) -> None:
        require_positive("radius", self.radius)

    def ball(self, certificate: Certificate) -> Ball:
        return Ball(certificate.at.point, self.radius)

    def build(self, certificate: Certificate) -> TestSet:
        return self.start(certificate, dense=False)

    def start(self, certificate: Certificate, dense: bool) -> EllipsoidalSet:
        at, nearest = certificate.at, distance_to_optimum(certificate)
        if nearest > self.radius:
            raise RegionError(
                f"radius={self.radius:.3g} cannot contain the optimum, which is at least "
                f"{nearest:.3g} away from the centre: give a larger radius, or a better coef."
            )
        shape = Shape.ball(len(at.point), self.radius, dense)
        known, label = _predictions_at(certificate), self._label(self.radius)
        return EllipsoidalSet(at.point, shape, name=label, certified=False, known=known)


def distance_to_optimum(certificate: Certificate) -> float:
    """A lower bound on the distance from a point to every optimum, often 0.

    From the norm that the penalty allows, and, where the objective is smooth with constant L,
    from ‖∇P(x₀)‖ ≤ L‖x₀ − x*‖.
    """
    problem, at = certificate.problem, certificate.at
    allowed = problem.penalty.norm_bound(_objective(certificate), problem.alpha)
    nearest = max(norm(_penalised(certificate)) * (1 - 1e-9) - allowed, 0.0)
    if isinstance(problem.penalty, L2) and math.isfinite(problem.loss.proved_smoothness):
        mean_square = total(problem.shares, problem.design.row_norms**2)
        smoothness = problem.loss.proved_smoothness * mean_square + problem.alpha
        if problem.Q is not None:
            smoothness += float(np.trace(problem.Q))
        steepness = norm(at.subgradient) - certificate.rounding.gradient
        nearest = max(nearest, steepness / smoothness * (1 - 1e-9))
    return nearest
