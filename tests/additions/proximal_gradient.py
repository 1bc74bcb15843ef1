"""A solver from outside the library: the plainest there is."""

from __future__ import annotations

import math

import numpy as np

from safesift.problem import Problem
from safesift.solvers import Level, Proposal, Solver, Steps


class ProximalGradient(Solver):
    """Steps down the gradient of the loss, each followed by the prox of the penalty.

    Chosen by its name only: its cost is said to be infinite.
    """

    name = "proximal_gradient"

    @classmethod
    def refusal(cls, problem: Problem) -> str:
        if math.isinf(problem.loss.smoothness):
            return f"the loss {problem.loss!r} has kinks"
        return "" if problem.design.has_rows else "it works with rows, not with a kernel"

    @classmethod
    def cost(cls, problem: Problem, n_levels: int) -> float:
        return math.inf

    def steps(self, level: Level) -> Steps:
        yield from self.arrive(level)
        problem, p, gained = level.problem, level.problem.design.n_features, True
        step = 1.0 / _largest_curvature(problem)
        while gained:
            point = level.at.point - step * problem.smooth_gradient(level.at)
            point[:p] = problem.penalty.prox(point[:p], step * problem.alpha)
            gained = yield Proposal(point=point)


def _largest_curvature(problem: Problem) -> float:
    """A bound on the curvature of everything but the penalty, in any direction."""
    folded = 0.0 if problem.Q is None else float(np.trace(problem.Q))
    rows = float(problem.shares @ problem.design.row_norms**2)
    return problem.loss.smoothness * rows + folded or 1.0
