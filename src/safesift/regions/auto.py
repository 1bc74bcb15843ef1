"""The best bound of the regions that apply."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from safesift.problem.certificate import Certificate
from safesift.regions.ball import Balls, plain_ball
from safesift.regions.base import Everything, Intersection, Region, TestSet
from safesift.regions.curvature import Curvature
from safesift.regions.ellipsoid import Ellipsoid
from safesift.regions.intercept import UnboundedInterceptError

# the ellipsoid method halves the volume in about 1.4(d + 1) steps: beyond this dimension the
# passes are better spent in a solver
_LOW_DIMENSION = 10
_STEPS_PER_DIMENSION = 10
_ROUNDS = 10


@dataclass(frozen=True)
class Auto(Region):
    """The best bound per row of all regions that apply, within a fixed budget.

    - A loss with curvature: the `Curvature` region, 10 rounds of each kind at most. It lies inside
      the gradient ball, and costs about four products of the matrix with 100 vectors (fewer
      columns: with as many), and up to 1 000 columns a Gram matrix of the rows in use.
    - With strong convexity the gap ball, without it the norm ball, and for losses without curvature
      the gradient ball: together less than three passes over the data, and a few more to bound an
      intercept.
    - In dimension 10 or less the ellipsoid method, with 10 steps per dimension, a pass each.
    """

    def build(self, certificate: Certificate) -> TestSet:
        problem = certificate.problem
        dimension = problem.design.n_columns
        curved = math.isfinite(problem.loss.smoothness)
        # the curvature region lies inside the gradient ball
        regions: list[Region] = [plain_ball(problem), Curvature(max_rounds=_ROUNDS)]
        if not curved:
            regions = [Balls()]
        if dimension <= _LOW_DIMENSION:
            regions.append(Ellipsoid(n_steps=_STEPS_PER_DIMENSION * dimension))
        return Intersection(tuple(_sets(regions, certificate)))


def _sets(regions: list[Region], certificate: Certificate) -> Iterator[TestSet]:
    for region in regions:
        try:
            yield region.build(certificate)
        except UnboundedInterceptError:
            yield Everything()
