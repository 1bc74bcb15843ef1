"""The solver for a problem: Newton's method where the Gram matrix is affordable."""

from __future__ import annotations

from safesift.problem import Evaluation, Problem
from safesift.solvers.first_order import short_run
from safesift.solvers.newton import newton

# beyond this many columns a step costs more than many passes over the data
_LARGEST_GRAM = 1000
_MAX_PASSES = 300


def solve(problem: Problem, tol: float = 1e-6) -> Evaluation:
    """A point of relative duality gap `tol`, or as near as a few hundred passes come to it."""
    if problem.design.n_columns <= _LARGEST_GRAM:
        return newton(problem, tol=tol).at
    return short_run(problem, _MAX_PASSES)
