"""Which region tells, at the end of a solver, what became of the rows."""

from __future__ import annotations

import math

from safesift.gram import WeightedGram
from safesift.problem import Evaluation, Problem
from safesift.regions import REGIONS, Region
from safesift.regions.base import Everything, TestSet
from safesift.regions.near import near_optimum
from safesift.solvers.records import Settings


def certified_region(
    problem: Problem, at: Evaluation, gap: float, gram: WeightedGram | None, settings: Settings
) -> TestSet:
    """A set that contains every optimum: the region asked for, or the cheapest that decides.

    After a Newton method a small ball around its last point decides nearly everything for next to
    nothing; where there is none, the region `auto` is built.
    """
    if isinstance(settings.screening, Region):
        return settings.screening.build(problem, at)
    if math.isfinite(problem.loss.smoothness):
        found = near_optimum(problem, at, gap, gram)
        if not isinstance(found, Everything):
            return found
    return REGIONS["auto"]().build(problem, at)
