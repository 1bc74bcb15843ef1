"""Half-spaces that contain every optimum, from one evaluation of the objective."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from safesift.problem.certificate import Certificate
from safesift.problem.evaluation import Evaluation, Rounding
from safesift.problem.problem import Problem
from safesift.regions.ball import StartRegion
from safesift.regions.base import Region, TestSet
from safesift.regions.ellipsoidal import EllipsoidalSet, HalfSpace

Array = NDArray[np.float64]
Depth = Literal["deep", "central"]


class CutMaker:
    """Cuts the centre of a set off, remembering the best objective value seen.

    For g ∈ ∂P(z), every optimum satisfies gᵀ(x* − z) ≤ P_best − P(z) ≤ 0: a *deep* cut uses the
    best value known, a *central* one only that it is at most P(z). Rounding errors of values and
    gradient make the cut shallower. Outside a norm-ball constraint the constraint itself cuts.
    """

    def __init__(self, certificate: Certificate, depth: Depth) -> None:
        self._problem, self._known, self._depth = certificate.problem, certificate, depth
        self._best = math.inf
        self._learn(certificate.at, certificate.rounding)

    def __call__(self, region: EllipsoidalSet) -> HalfSpace:
        """The cut through or above the centre of `region`: at most one pass over the data."""
        coef, _ = self._problem.split(region.center)
        outside = self._problem.penalty.feasibility_cut(coef)
        if outside is not None:
            depth = outside.depth * (1.0 - 1e-12) if self._depth == "deep" else 0.0
            return HalfSpace(self._problem.join(outside.normal, 0.0), depth)
        at, rounding = self._evaluate(region.center)
        reach = region.shape.size + region.slack
        lost = at.subgradient_slack + rounding.cut + rounding.gradient * reach
        gained = at.value - rounding.value - self._best
        self._learn(at, rounding)
        if self._depth == "central" or not gained > 0:
            gained = 0.0
        return HalfSpace(at.subgradient, gained - lost)

    def _learn(self, at: Evaluation, rounding: Rounding) -> None:
        """A value bounds the optimal one only where the point is surely feasible."""
        if self._problem.penalty.contains(self._problem.split(at.point)[0]):
            self._best = min(self._best, at.value + rounding.value)

    def _evaluate(self, center: Array) -> tuple[Evaluation, Rounding]:
        if np.array_equal(center, self._known.at.point):
            return self._known.at, self._known.rounding
        at = self._problem.evaluate(center)
        return at, self._problem.rounding(at)


@dataclass(frozen=True)
class HalfSpaceCut(Region):
    """Another region, cut by a subgradient at its centre.

    Costs one pass more than the region (none where its centre was evaluated already) and one
    product for the test.

    Parameters
    ----------
    region : Region
        What to cut: a ball or an ellipsoid.
    depth : {"deep", "central"}, default="deep"
        Whether to use that the best value seen is below the value at the centre.
    """

    region: Region
    depth: Depth = "deep"

    def validate(self, problem: Problem) -> None:
        _check_depth(self.depth)
        if isinstance(self.region, StartRegion):
            self.region.validate_start(problem)
        elif isinstance(self.region, Region) and self.region.is_ellipsoid:
            self.region.validate(problem)
        else:
            raise ValueError(
                f"region=HalfSpaceCut(...) needs a ball or an ellipsoid to cut, got "
                f"{self.region!r}: pass for example GapBall() or Ellipsoid()."
            )

    @np.errstate(over="ignore", invalid="ignore")
    def build(self, certificate: Certificate) -> TestSet:
        whole = self._whole(certificate)
        cut = replace(whole, cut=CutMaker(certificate, self.depth)(whole))
        cut.cut_depth()  # an empty intersection is an error here, not when bounds are asked for
        return cut

    def _whole(self, certificate: Certificate) -> EllipsoidalSet:
        # with an intercept a ball is a product set: cut the ellipsoid around it
        if isinstance(self.region, StartRegion):
            return self.region.start(certificate, dense=False)
        return self.region.build(certificate)


def _check_depth(depth: str) -> None:
    if depth not in ("deep", "central"):
        raise ValueError(f"depth must be 'deep' or 'central', got {depth!r}.")
