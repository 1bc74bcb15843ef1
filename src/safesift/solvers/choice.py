"""The solver for a problem: Newton's method where the Gram matrix is affordable."""

from __future__ import annotations

import math

from safesift.penalties import L2
from safesift.problem import Evaluation, Problem
from safesift.solvers.first_order import short_run
from safesift.solvers.newton import newton

# beyond this many columns a step costs more than many passes over the data
_LARGEST_GRAM = 1000
_MAX_PASSES = 300
_ROUGH, _ROUGH_STEPS = 1e-5, 30


def solve(problem: Problem, tol: float = 1e-6) -> Evaluation:
    """A point of relative duality gap `tol`, or as near as a few hundred passes come to it."""
    if problem.design.n_columns <= _LARGEST_GRAM:
        return newton(problem, tol=tol).at
    return short_run(problem, _MAX_PASSES)


def rough_solution(problem: Problem) -> Evaluation:
    """A decent centre for a region, at little cost; nothing is claimed about it.

    First-order steps do well on smooth problems with l2 and with many columns. Without strong
    convexity they are slow, and a few Newton steps cost less than they save.
    """
    curved = math.isfinite(problem.loss.smoothness) and not isinstance(problem.penalty, L2)
    if curved and problem.design.n_columns <= _LARGEST_GRAM:
        return newton(problem, tol=_ROUGH, max_iter=_ROUGH_STEPS).at
    return short_run(problem)
