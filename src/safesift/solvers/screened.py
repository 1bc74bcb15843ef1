"""Solve, and screen on the way: a few steps on all rows, the rest on those that are undecided."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from safesift.design.tally import Tally, counting
from safesift.problem import Evaluation, Problem
from safesift.regions import REGIONS, Region
from safesift.screening import Decisions, decide
from safesift.solvers.newton import newton
from safesift.solvers.records import Check, Fit, Settings, Solution

Array = NDArray[np.float64]

# the relative gap at which it pays to screen
_ROUGH = 1e-3


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def screened_newton(problem: Problem, settings: Settings, start: Array | None = None) -> Fit:
    """Minimise a problem by Newton steps, folding away the rows that are decided.

    First all rows to a rough gap, then the reduced problem, which has exactly the same optima. Its
    gap is not that of the problem: the gap is measured on all rows, and where a decided row is off
    its piece, so that the two differ, steps on all rows repair it.

    Parameters
    ----------
    problem : Problem
    settings : Settings
    start : array, optional
        A point; the best constant model by default.

    Returns
    -------
    Fit
    """
    with counting() as tally:
        return _Run(problem, settings, tally).solve(start)


class _Run:
    def __init__(self, problem: Problem, settings: Settings, tally: Tally) -> None:
        self._problem, self._settings, self._tally = problem, settings, tally
        self._region = _region(settings)
        self._began = time.perf_counter()
        self._history: list[Check] = []

    def solve(self, start: Array | None) -> Fit:
        problem, tol, most = self._problem, self._settings.tol, self._settings.max_iter
        screens = self._settings.screening is not None
        rough = max(tol, _ROUGH) if screens else tol
        current = newton(problem, tol=rough, max_iter=most, start=start)
        decisions = self._check(current)
        target, n_iter = tol * current.reference, current.n_iter
        stages = [self._on_undecided_rows, self._on_all_rows] if screens else []
        while stages and current.gap > target and n_iter < most:
            advance = stages.pop(0)
            current = advance(current, decisions, most - n_iter)
            n_iter += current.n_iter
            decisions = self._check(current)
        solution = replace(current, n_iter=n_iter, converged=current.gap <= target)
        return Fit(problem, solution, decisions, tuple(self._history))

    def _check(self, found: Solution) -> Decisions:
        problem = self._problem
        test_set = self._region.build(problem, found.at)
        decisions = decide(problem, test_set.bounds(problem.design), "always")
        p = problem.design.n_features
        self._history.append(
            Check(
                passes=self._tally.rows / problem.design.n_samples,
                seconds=time.perf_counter() - self._began,
                gap=found.gap,
                relative_gap=found.relative_gap,
                n_kept=int((~decisions.dropped).sum()),
                n_undecided=int(decisions.undecided.sum()),
                n_features=p - int(test_set.zero_features(p).sum()),
            )
        )
        return decisions

    def _on_all_rows(self, current: Solution, decisions: Decisions, max_iter: int) -> Solution:
        problem, tol = self._problem, self._settings.tol
        found = newton(problem, tol=tol, max_iter=max_iter, start=current.at.point)
        return _better(problem, current, found.at, found)

    def _on_undecided_rows(
        self, current: Solution, decisions: Decisions, max_iter: int
    ) -> Solution:
        problem = self._problem
        if decisions.undecided.all():
            return self._on_all_rows(current, decisions, max_iter)
        found = newton(
            problem.reduce(decisions),
            tol=self._settings.tol,
            max_iter=max_iter,
            start=current.at.point,
            reference=current.reference,
        )
        at = problem.evaluate(found.at.point)
        slopes = at
        if math.isinf(problem.loss.smoothness):
            # at a kink the slopes are those of the reduced dual, elsewhere those of the piece
            nu = at.nu.copy()
            nu[decisions.undecided] = found.dual.nu
            slopes = replace(at, nu=nu, loss_gradient=problem.design.rmatvec(problem.shares * nu))
        dual = problem.best_dual(slopes, current.dual)
        found = replace(found, dual=dual, gap=problem.gap(at, dual))
        return _better(problem, current, at, found)


def _region(settings: Settings) -> Region:
    if isinstance(settings.screening, Region):
        return settings.screening
    return REGIONS["auto"]()


def _better(problem: Problem, current: Solution, at: Evaluation, found: Solution) -> Solution:
    """The better point with the better dual point; the steps are those of the second."""
    at = at if at.value <= current.at.value else current.at
    dual = max(current.dual, found.dual, key=lambda point: point.value)
    return replace(found, at=at, dual=dual, gap=problem.gap(at, dual))
