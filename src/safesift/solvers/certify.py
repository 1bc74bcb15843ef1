"""Which region tells, on the way and at the end of a solver, what became of the rows."""

from __future__ import annotations

from safesift.problem.decisions import Decisions
from safesift.problem.evaluation import Evaluation
from safesift.problem.gram import WeightedGram
from safesift.problem.problem import Problem
from safesift.regions import REGIONS, Region
from safesift.regions.base import Everything, TestSet
from safesift.regions.near import near_optimum
from safesift.solvers.records import Settings

# up to this share of undecided rows, a region that costs many passes is not built for them
_FEW = 0.05


def quick_region(
    problem: Problem, at: Evaluation, gap: float, gram: WeightedGram | None, settings: Settings
) -> TestSet:
    """A set that contains every optimum, for a look at each prediction and no pass over the data.

    After a Newton method it decides nearly everything.
    """
    if isinstance(settings.screening, Region):
        return Everything("another region was asked for")
    return near_optimum(problem, at, gap, gram)


def worth_more(problem: Problem, decisions: Decisions, settings: Settings) -> bool:
    """Whether what is left undecided is worth a thorough region."""
    if isinstance(settings.screening, Region):
        return True
    if settings.screening is None or not problem.pieces:
        return False
    return bool(len(decisions.dropped)) and float(decisions.undecided.mean()) > _FEW


def thorough_region(problem: Problem, at: Evaluation, settings: Settings) -> TestSet:
    """The region that was asked for, or `auto`."""
    region = settings.screening if isinstance(settings.screening, Region) else REGIONS["auto"]()
    return region.build(problem, at)
