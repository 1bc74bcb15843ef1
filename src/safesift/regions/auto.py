"""The best bound of the regions that apply."""

from __future__ import annotations

from dataclasses import dataclass

from safesift.problem import Evaluation, Problem
from safesift.regions.ball import GapBall, GradientBall, NormBall
from safesift.regions.base import Everything, Intersection, Region, TestSet
from safesift.regions.ellipsoid import Ellipsoid
from safesift.regions.intercept import UnboundedInterceptError

# the ellipsoid method halves the volume in about 1.4(d + 1) steps: beyond this dimension the
# passes are better spent in a solver
_LOW_DIMENSION = 10
_STEPS_PER_DIMENSION = 10


@dataclass(frozen=True)
class Auto(Region):
    """The best bound per row of all regions that apply, within a fixed budget.

    With strong convexity the gap ball, and without an intercept the gradient ball: together less
    than three passes over the data beyond the evaluation at the centre, and a few more to bound an
    intercept. Without strong convexity the norm ball. In dimension 10 or less, the ellipsoid method
    too, with 10 steps per dimension, a pass each.
    """

    def build(self, problem: Problem, at: Evaluation) -> TestSet:
        regions: list[Region] = [GapBall() if problem.strong_convexity > 0 else NormBall()]
        if problem.strong_convexity > 0 and not problem.fit_intercept:
            regions.append(GradientBall())
        dimension = problem.design.n_columns
        if dimension <= _LOW_DIMENSION:
            regions.append(Ellipsoid(n_steps=_STEPS_PER_DIMENSION * dimension))
        try:
            return Intersection(tuple(region.build(problem, at) for region in regions))
        except UnboundedInterceptError:
            return Everything()
