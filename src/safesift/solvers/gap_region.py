"""The region of a duality gap that is known already."""

from __future__ import annotations

import math
from dataclasses import dataclass

from safesift.arithmetic.numerics import EPS
from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.regions import GapBall, GradientBall, Region, TestSet
from safesift.regions.ball import Ball
from safesift.regions.base import Everything, Intersection
from safesift.regions.intercept import UnboundedInterceptError


@dataclass(frozen=True)
class _BallOfGap(GapBall):
    gap: float

    def ball(self, problem: Problem, at: Evaluation) -> Ball:
        radius = math.sqrt(2.0 * self.gap / problem.strong_convexity) * (1.0 + 8 * EPS)
        return Ball(problem.split(at.point)[0], radius)


@dataclass(frozen=True)
class KnownGap(Region):
    """The ball of a certified gap at the centre, and for smooth losses that of the gradient.

    A solver that works with dual points knows a better one than the slopes at a point give, where
    the loss has kinks a much better one.

    Parameters
    ----------
    gap : float
        At least P(centre) − min P, of a strongly convex penalty.
    """

    gap: float

    def build(self, problem: Problem, at: Evaluation) -> TestSet:
        if not math.isfinite(self.gap):
            return Everything()
        try:
            ball = _BallOfGap(self.gap).build(problem, at)
        except UnboundedInterceptError:
            return Everything()
        if problem.fit_intercept or math.isinf(problem.loss.smoothness):
            return ball
        return Intersection((ball, GradientBall().build(problem, at)))
