"""Solve, and screen on the way: a few steps on all rows, the rest on those that are undecided."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from safesift.problem import Evaluation, Problem
from safesift.regions import REGIONS, Bounds
from safesift.screening import Decisions, decide
from safesift.solvers.newton import Solution, newton

Array = NDArray[np.float64]

# the relative gap at which it pays to screen
_ROUGH = 1e-3


@dataclass(frozen=True)
class Round:
    """One run of the solver, and where it left the full problem.

    Attributes
    ----------
    n_rows : int
        How many rows the solver worked on.
    n_iter : int
        Its steps.
    gap, relative_gap : float
        Certified, on all rows, at its end.
    n_kept, n_undecided : int
        How many rows are not proved to be of no influence, and on how many it is not proved
        on which piece of their loss they lie, at its end.
    """

    n_rows: int
    n_iter: int
    gap: float
    relative_gap: float
    n_kept: int
    n_undecided: int


@dataclass(frozen=True, eq=False)
class ScreenedSolution:
    """A solution certified on all rows, and what became of every row there.

    Attributes
    ----------
    solution : Solution
        Of the full problem.
    decisions : Decisions
        At the solution.
    rounds : tuple of Round
    """

    solution: Solution
    decisions: Decisions
    rounds: tuple[Round, ...]


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def screened_newton(
    problem: Problem, *, tol: float, max_iter: int = 100, start: Array | None = None
) -> ScreenedSolution:
    """Minimise a problem by Newton steps, folding away the rows that are decided.

    First all rows to a rough gap, then the reduced problem, which has exactly the same optima. Its
    gap is not that of the problem: the gap is measured on all rows, and where a decided row is off
    its piece, so that the two differ, steps on all rows repair it.

    Parameters
    ----------
    problem : Problem
    tol : float
        Relative to P of the best constant model.
    max_iter : int, default=100
        The largest number of Newton steps, over all rounds.
    start : array, optional
        A point; the best constant model by default.

    Returns
    -------
    ScreenedSolution
    """
    n_rows = problem.design.n_samples
    current = newton(problem, tol=max(tol, _ROUGH), max_iter=max_iter, start=start)
    bounds = _bounds(problem, current.at)
    rounds = [_round(problem, n_rows, current, bounds)]
    target, n_iter = tol * current.reference, current.n_iter
    stages = [_on_undecided_rows, _on_all_rows]
    while stages and current.gap > target and n_iter < max_iter:
        advance = stages.pop(0)
        current, n_rows = advance(problem, current, bounds, tol, max_iter - n_iter)
        n_iter += current.n_iter
        bounds = _bounds(problem, current.at)
        rounds.append(_round(problem, n_rows, current, bounds))
    solution = replace(current, n_iter=n_iter, converged=current.gap <= target)
    return ScreenedSolution(solution, decide(problem, bounds, "always"), tuple(rounds))


def _bounds(problem: Problem, at: Evaluation) -> Bounds:
    return REGIONS["auto"]().build(problem, at).bounds(problem.design)


def _round(problem: Problem, n_rows: int, found: Solution, bounds: Bounds) -> Round:
    decisions = decide(problem, bounds, "always")
    kept, undecided = int((~decisions.dropped).sum()), int(decisions.undecided.sum())
    return Round(n_rows, found.n_iter, found.gap, found.relative_gap, kept, undecided)


def _on_all_rows(
    problem: Problem, current: Solution, bounds: Bounds, tol: float, max_iter: int
) -> tuple[Solution, int]:
    found = newton(problem, tol=tol, max_iter=max_iter, start=current.at.point)
    return _better(problem, current, found.at, found), problem.design.n_samples


def _on_undecided_rows(
    problem: Problem, current: Solution, bounds: Bounds, tol: float, max_iter: int
) -> tuple[Solution, int]:
    decisions = decide(problem, bounds)
    if decisions.undecided.all():
        return _on_all_rows(problem, current, bounds, tol, max_iter)
    reduced = problem.reduce(decisions)
    found = newton(
        reduced, tol=tol, max_iter=max_iter, start=current.at.point, reference=current.reference
    )
    at = problem.evaluate(found.at.point)
    if math.isinf(problem.loss.smoothness):
        # at a kink the slopes are those of the reduced dual, elsewhere those of the piece
        nu = at.nu.copy()
        nu[decisions.undecided] = found.dual.nu
        slopes = replace(at, nu=nu, loss_gradient=problem.design.rmatvec(problem.shares * nu))
    else:
        slopes = at
    dual = problem.best_dual(slopes, current.dual)
    found = replace(found, dual=dual, gap=problem.gap(at, dual))
    return _better(problem, current, at, found), reduced.design.n_samples


def _better(problem: Problem, current: Solution, at: Evaluation, found: Solution) -> Solution:
    """The better point with the better dual point; the steps are those of the second."""
    at = at if at.value <= current.at.value else current.at
    dual = max(current.dual, found.dual, key=lambda point: point.value)
    return replace(found, at=at, dual=dual, gap=problem.gap(at, dual))
