"""Which solver a problem goes to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from safesift.design import DenseDesign, SparseDesign
from safesift.penalties import L1, L2, ElasticNet
from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.solvers.first_order import short_run
from safesift.solvers.newton import LARGEST, newton
from safesift.solvers.records import Fit, Settings

Array = NDArray[np.float64]
# what `solvers.path.solve_path` passes on
PathSolver = Callable[
    [Sequence[Sequence[Problem]], Settings, Sequence[Array | None] | None], Iterable[list[Fit]]
]

# beyond this many columns a step costs more than many passes over the data
_LARGEST_GRAM = 1000
_MAX_PASSES = 300
_ROUGH, _ROUGH_STEPS = 1e-5, 30
# from so many columns on, steps on single rows cost less than the Gram matrix and its factors, and
# from so many on for fewer levels than that: measured on 10 000 and 40 000 rows
_WIDE, _WIDE_ALONE, _LONG_PATH = 1500, 500, 4
# from so many columns on, one Gram matrix for many steps beats one for each: measured on 20 000 to
# 580 000 rows with 54, 267, 784 and 2304 columns
_CURVED = 100


def best_solver(problem: Problem, n_levels: int = 1) -> PathSolver:
    """The solver for a problem, by its loss, its penalty, its shape and the length of its path."""
    smooth, penalty = math.isfinite(problem.loss.smoothness), problem.penalty
    if prefers_dual_descent(problem, n_levels):
        from safesift.solvers.dual_descent import dual_descent
        from safesift.solvers.relay import relay

        return relay if smooth and problem.design.n_columns <= LARGEST else dual_descent
    if smooth and isinstance(penalty, L1 | ElasticNet) and penalty.sparse_threshold(1.0) > 0:
        from safesift.solvers.sparse_newton import sparse_newton

        return sparse_newton
    if smooth and isinstance(penalty, L2) and problem.design.n_columns > _widest_gram(problem):
        from safesift.solvers.newton_cg import newton_cg

        return newton_cg
    if smooth and penalty.is_constraint and problem.design.n_columns > LARGEST:
        from safesift.solvers.multiplier import multiplier_path

        return multiplier_path
    from safesift.solvers.gram_path import newton_path

    return newton_path


def _widest_gram(problem: Problem) -> int:
    """Up to how many columns every step of a smooth problem may form a Gram matrix."""
    # rows that stay on a quadratic piece leave the matrix as it is; where there are pieces at all,
    # it is their curvature that tells best what became of the rows
    return LARGEST if problem.pieces else _CURVED


def prefers_dual_descent(problem: Problem, n_levels: int = 1) -> bool:
    """Whether dual coordinate descent is the solver to begin with for a problem.

    It needs an l2 penalty and a loss with closed-form dual steps. Losses with kinks have no better
    solver; with smooth ones it beats Newton's method on the Gram matrix where there are many
    columns, the more so where the matrix serves for few levels.
    """
    design = problem.design
    if not isinstance(problem.penalty, L2) or problem.folded is not None:
        return False
    if not isinstance(design, DenseDesign | SparseDesign):
        return False
    # an intercept costs dual steps much, and Newton steps nothing
    alone = n_levels < _LONG_PATH and not design.intercept
    wide = _WIDE_ALONE if alone else _WIDE
    if math.isfinite(problem.loss.smoothness) and design.n_columns <= wide:
        return False
    return problem.loss.dual_form(problem.y) is not None


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
