"""Dual coordinate descent with an l2 penalty, certified on all rows.

For x(ν) = −Aᵀ(s∘ν)/(W·alpha) the dual is maximised one ν_i at a time, in random order, which moves
x along a_i only (Hsieh et al., *A dual coordinate descent method for large-scale linear SVM*, ICML
2008). Rows leave the loop on two grounds: a ball around the optimum proves what their dual
variable is there; or, as in LIBLINEAR, their prediction is further inside their piece than any
other is outside. What the second ground costs is seen, and repaired, when the gap is measured.

An unpenalised intercept c is a proximal-point iteration: next to a centre it is penalised, and the
centre moves to it after every epoch. At its limit Σ s_i ν_i = 0.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from safesift import progress
from safesift.arithmetic import tally
from safesift.arithmetic.threads import each
from safesift.problem.decisions import Decisions, decide
from safesift.problem.duality import Dual, DualPoint
from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.regions import Region
from safesift.regions.base import Everything
from safesift.solvers.dual_loop import Loop, row_norms_sq
from safesift.solvers.gap_region import KnownGap
from safesift.solvers.newton import reference_value
from safesift.solvers.records import Check, Fit, Settings, Solution

Array = NDArray[np.float64]

# screen when the gap seems to have fallen by this factor since it was measured; without a region
# to wait for, after so many epochs, and again when they have doubled
_WORTH_A_LOOK, _MANY_EPOCHS = 0.1, 16
# where the gap is larger than its estimate, the share of the estimate that is the next to reach
_STRICTER = 0.3
# what an epoch over hardly any row counts, as a share of one over all rows
_LEAST_SHARE = 0.002


def dual_descent(
    levels: Sequence[Sequence[Problem]],
    settings: Settings,
    starts: Sequence[Array | None] | None = None,
) -> Iterator[list[Fit]]:
    """Solve problems with an l2 penalty and closed-form dual steps, warm along a path.

    The arguments and what is yielded are those of `solve_path`; a step is an epoch, counted by the
    share of the rows that are in the loop. The problems of a level are shared out among the
    threads.
    """
    starts = [None] * len(levels[0]) if starts is None else starts
    norms_sq = row_norms_sq(levels[0][0].design)
    loops = [Loop(problem, norms_sq, settings.seed) for problem in levels[0]]
    for loop, start in zip(loops, starts, strict=True):
        if start is not None:
            loop.start_at(start)
    for problems in levels:
        tracks = list(zip(loops, problems, strict=True))
        yield list(each(lambda track: _solved(*track, settings), tracks))


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _solved(loop: Loop, problem: Problem, settings: Settings) -> Fit:
    loop.move_to(problem)
    with tally.counting() as counted:
        return _Run(problem, loop, settings, counted).solve()


class _Run:
    """One problem: epochs, and now and then a certified look at where things stand."""

    def __init__(
        self, problem: Problem, loop: Loop, settings: Settings, counted: tally.Tally
    ) -> None:
        self._problem, self._loop, self._settings, self._counted = problem, loop, settings, counted
        self._reference = reference_value(problem)
        self._target = settings.tol * self._reference
        self._began = time.perf_counter()
        self._history: list[Check] = []
        self._epochs = 0.0
        self._at: Evaluation | None = None
        self._dual: DualPoint | None = None
        self._gap = math.inf

    def solve(self) -> Fit:
        most, loop = self._settings.max_iter, self._loop
        enough, look_again = self._target, _MANY_EPOCHS
        while True:
            estimate = loop.epoch(shrinks=self._settings.screening == "auto")
            if estimate > enough:
                loop.accelerate(_STRICTER * enough, estimate)
            self._epochs += max(loop.share_visited, _LEAST_SHARE)
            progress.report("solver", min(self._n_iter, most), most)
            ended = self._epochs >= most or loop.stuck
            if not ended and estimate > enough and not self._worth_a_look(estimate, look_again):
                continue
            look_again = max(look_again, 2 * self._n_iter)
            self._measure()
            ended |= self._gap <= self._target
            decisions = self._decisions(ended)
            self._history.append(self._standing(decisions))
            if ended:
                return self._fit(decisions)
            if estimate <= enough and loop.complete:
                enough = _STRICTER * estimate
            loop.resume(decisions if self._settings.screening is not None else None)

    @property
    def _n_iter(self) -> int:
        return math.ceil(self._epochs - 1e-9)

    def _worth_a_look(self, estimate: float, look_again: int) -> bool:
        if isinstance(self._settings.screening, Region):
            known = min(self._gap, self._reference)
            return estimate <= _WORTH_A_LOOK * known
        return self._settings.screening == "auto" and self._n_iter >= look_again

    def _measure(self) -> None:
        """The gap on all rows, of the best point and the best dual point so far."""
        problem = self._problem
        dual = Dual(problem).feasible(self._loop.ray())
        at = problem.evaluate(self._loop.point)
        self._at = at if self._at is None or at.value < self._at.value else self._at
        if self._dual is None or dual.value > self._dual.value:
            self._dual = dual
        self._gap = problem.gap(self._at, self._dual)

    def _decisions(self, ended: bool) -> Decisions:
        problem, region = self._problem, self._settings.screening
        if isinstance(region, Region):
            test_set = region.build(problem, self._at)
        elif ended or not problem.fit_intercept:
            test_set = KnownGap(self._gap).build(problem, self._at)
        else:
            # bounds on an intercept cost more passes than they save
            test_set = Everything()
        return decide(problem, test_set.row_bounds(problem.design), "always")

    def _standing(self, decisions: Decisions) -> Check:
        return Check.of(
            decisions,
            gap=self._gap,
            reference=self._reference,
            passes=self._counted.rows / self._problem.design.n_samples,
            began=self._began,
            n_features=self._problem.design.n_features,
        )

    def _fit(self, decisions: Decisions) -> Fit:
        solution = Solution(
            at=self._at,
            dual=self._dual,
            gap=self._gap,
            reference=self._reference,
            n_iter=min(self._n_iter, self._settings.max_iter),
            converged=self._gap <= self._target,
        )
        return Fit(self._problem, solution, decisions, tuple(self._history))
