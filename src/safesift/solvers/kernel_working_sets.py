"""Kernel problems by working sets: solve on a few samples exactly, look at all, add violators.

The coordinates of samples outside the working set are fixed, 0 at first. What is solved is thus the
dual problem on some of its coordinates, and every round lowers it. A round needs the square block
of the working set, and the kernel rows of the samples whose coordinates changed; no kernel entry
between two samples of no influence is ever computed. Samples that a region decides on a flat or
linear piece leave for good: their coordinates are known.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from safesift.design.kernel import KernelDesign
from safesift.losses.base import Loss
from safesift.problem.problem import Evaluate, Problem
from safesift.regions import Region
from safesift.regions.ball import Balls
from safesift.regions.kernel_curvature import KernelCurvature, kernel_of
from safesift.solvers.base import Proposal, Solver, Steps, register
from safesift.solvers.driver import Level
from safesift.solvers.kernel_rounds import SMALL, Rounds, State
from safesift.solvers.records import Settings
from safesift.solvers.screening import Screening

Array = NDArray[np.float64]

# rounds beyond the tolerance, for as long as so many times the carrying samples are kept
_EXTRA, _LOOSE = 2, 1.2
# rounds without a greater dual value after which rounding allows no more
_PATIENCE = 12
# the regions that serve functions of a kernel's space
KERNEL_REGIONS: dict[str, type[Region]] = {
    "auto": KernelCurvature,
    "curvature": KernelCurvature,
    "gap_ball": Balls,
}


@register
class WorkingSets(Solver):
    """Keeps the function it is at. A step is a round."""

    name = "working_sets"

    def __init__(self, problem: Problem, settings: Settings, start: Array | None = None) -> None:
        super().__init__(problem, settings, start)
        self._state: State | None = None
        if start is not None:
            coef, intercept = problem.split(start)
            self._state = State(kernel_of(problem.design).element(coef), intercept)
        self._extra = 0

    @classmethod
    def refusal(cls, problem: Problem) -> str:
        if not isinstance(problem.design, KernelDesign):
            return "it works with a kernel, not with rows"
        return _without_steps(problem.loss, problem.y)

    @classmethod
    def cost(cls, problem: Problem, n_levels: int) -> float:
        return 1.0

    def steps(self, level: Level) -> Steps:
        problem, design = level.problem, kernel_of(level.problem.design)
        rounds = Rounds(problem, self.settings.seed)
        state = self._state = rounds.start(self._state)
        self._extra, best, stalled, steps = 0, -math.inf, 0, 0.0
        while True:
            design.remember(state.element)
            at = yield Evaluate(problem, state.point(problem))
            yield Proposal(at=at, ray=rounds.ray(state), steps=steps)
            self._extra += level.converged
            # every round raises the dual value; the primal one may rise for a while
            value = level.certificate.dual.value
            stalled, best = (0 if value > best else stalled + 1), max(best, value)
            before, steps = state, 1.0
            state = self._state = rounds.improved(before, at, level, stalled)
            if state is before or stalled > _PATIENCE:
                return

    def goes_on(self, level: Level) -> bool:
        """Where many more samples are kept than carry the model, a smaller gap drops them."""
        return self._extra < _EXTRA and self._loose(level)

    def _loose(self, level: Level) -> bool:
        if self._state is None or not _screens(level.screening):
            return False
        n_carrying = np.count_nonzero(self._state.element.beta)
        return bool((~level.decisions.dropped).sum() > _LOOSE * n_carrying)

    def region(self, level: Level) -> Region | None:
        if not _screens(level.screening):
            return Balls() if level.converged or level.exhausted else None
        return KernelCurvature() if self._worth_curvature(level) else Balls()

    def _worth_curvature(self, level: Level) -> bool:
        """Whether what balls leave undecided is worth the curvature region."""
        problem, asked = level.problem, level.screening.region
        curved = problem.loss.curvature(level.at.pred, problem.y) > 0
        n_curved = int((curved & (problem.shares > 0)).sum())
        if asked is None:
            return level.converged and n_curved <= SMALL
        by_curvature = isinstance(asked, KernelCurvature)
        largest = kernel_of(problem.design).gram.largest_block
        return by_curvature and level.n_iter > 0 and n_curved <= largest


def _screens(screening: Screening) -> bool:
    return screening.guesses or screening.region is not None


def _without_steps(loss: Loss, y: Array) -> str:
    if math.isinf(loss.smoothness) and loss.dual_form(y) is None:
        return f"the loss {loss!r} has kinks and a conjugate that is not quadratic"
    return ""
