"""Kernel problems by working sets: solve on a few samples exactly, look at all, add violators.

The coordinates of samples outside the working set are fixed, 0 at first. What is solved is thus the
dual problem on some of its coordinates, and every round lowers it. A round needs the square block
of the working set, and the kernel rows of the samples whose coordinates changed; no kernel entry
between two samples of no influence is ever computed. After every round the gap is certified on all
samples, and samples that a region decides on a flat or linear piece leave for good: their
coordinates are known.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift import progress
from safesift.arithmetic import tally
from safesift.design.kernel import KernelDesign
from safesift.problem.decisions import Decisions, decide
from safesift.problem.duality import DualPoint
from safesift.problem.problem import Problem
from safesift.regions.kernel_ball import gap_ball
from safesift.regions.kernel_curvature import curvature_set
from safesift.solvers.kernel_rounds import SMALL, Rounds, State
from safesift.solvers.records import Check, Fit, Settings, Solution

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# rounds beyond the tolerance, for as long as so many times the carrying samples are kept
_EXTRA, _LOOSE = 2, 1.2
# rounds without a greater dual value after which rounding allows no more
_PATIENCE = 12
# which regions tell what became of the samples
SCREENINGS = ("auto", "curvature", "gap_ball")


def check_kernel_screening(screening: Any) -> str | None:
    """One of `SCREENINGS`, or None."""
    if screening is None or (isinstance(screening, str) and screening in SCREENINGS):
        return screening
    raise ValueError(
        f"screening={screening!r} is not known for kernels: choose one of "
        f"{', '.join(SCREENINGS)}, or None."
    )


@dataclass(frozen=True, eq=False)
class Look:
    """How a state stands, on all samples.

    Attributes
    ----------
    solution : Solution
    decisions : Decisions
    """

    solution: Solution
    decisions: Decisions


def kernel_path(
    levels: Sequence[Sequence[Problem]],
    settings: Settings,
    starts: Sequence[State | None] | None = None,
) -> Iterator[list[Fit]]:
    """Solve kernel problems that share one design, for one alpha after another, warm.

    Parameters
    ----------
    levels : sequence of sequences of Problem
        `levels[i][k]` is problem k (a class against the rest) at the i-th alpha.
    settings : Settings
    starts : sequence of State, optional
        For each problem of the first level.

    Yields
    ------
    list of Fit
    """
    states = list(starts) if starts is not None else [None] * len(levels[0])
    for problems in levels:
        fits = []
        for k, problem in enumerate(problems):
            solver = _Level(problem, settings)
            fit, states[k] = solver.run(states[k])
            fits.append(fit)
        yield fits


class _Level:
    """One problem at one alpha."""

    def __init__(self, problem: Problem, settings: Settings) -> None:
        self.problem, self.settings = problem, settings
        self.design: KernelDesign = problem.design
        self.reference = problem.constant_value or 1.0
        self.rounds = Rounds(problem, settings.seed)

    def run(self, start: State | None) -> tuple[Fit, State]:
        problem, settings = self.problem, self.settings
        began, history = time.perf_counter(), []
        decided = Decisions.nothing(problem)
        dual, stalled, extra = None, 0, 0
        with tally.counting() as rows:
            state = self.rounds.start(start)
            for n_iter in range(settings.max_iter + 1):
                look = self.look(state, dual, n_iter, decided)
                solution, decided = look.solution, look.decisions
                history.append(
                    _check(solution, decided, rows.rows / problem.design.n_samples, began)
                )
                # every round raises the dual value; the primal one may rise for a while
                stalled = stalled + 1 if solution.dual is dual else 0
                dual = solution.dual
                extra = extra + 1 if solution.converged else 0
                if extra > (_EXTRA if self.loose(state, decided) else 0):
                    break
                if stalled > _PATIENCE or n_iter == settings.max_iter:
                    break
                progress.report("kernel rounds", n_iter + 1, settings.max_iter)
                moved = self.rounds.improved(state, solution, decided, stalled)
                if moved is state:
                    break
                state = moved
        return Fit(problem, solution, decided, tuple(history)), state

    def loose(self, state: State, decided: Decisions) -> bool:
        """Whether many more samples are kept than carry the model: a smaller gap drops them."""
        n_kept, n_carrying = (~decided.dropped).sum(), np.count_nonzero(state.element.beta)
        return self.settings.screening is not None and n_kept > _LOOSE * n_carrying

    def look(self, state: State, dual: DualPoint | None, n_iter: int, decided: Decisions) -> Look:
        """Certify the gap on all samples, and decide those that it decides."""
        problem = self.problem
        self.design.remember(state.element)
        at = problem.evaluate(state.point(problem))
        nu = self.rounds.slopes(state)
        found = DualPoint(nu, problem.dual(nu))
        dual = found if dual is None or found.value > dual.value else dual
        gap = problem.gap(at, dual)
        converged = gap <= self.settings.tol * self.reference
        solution = Solution(at, dual, gap, self.reference, n_iter, converged)
        if self.settings.screening is not None:
            bounds = gap_ball(problem, at, gap).bounds(self.design)
            decided = _both(decided, decide(problem, bounds, "always"))
            if self.worth_more(solution, decided):
                found = curvature_set(problem, at, bounds, decided.undecided)
                if found is not None:
                    bounds = found.bounds(self.design).intersect(bounds)
                    decided = _both(decided, decide(problem, bounds, "always"))
        return Look(solution, decided)

    def worth_more(self, solution: Solution, decided: Decisions) -> bool:
        """Whether what the ball leaves undecided is worth the curvature region."""
        problem = self.problem
        if self.rounds.kinked or self.settings.screening == "gap_ball":
            return False
        if not decided.undecided.any():
            return False
        curved = problem.loss.curvature(solution.at.pred, problem.y) > 0
        n_curved = int((curved & (problem.shares > 0)).sum())
        if self.settings.screening == "auto":
            return solution.converged and n_curved <= SMALL
        return solution.n_iter > 0 and n_curved <= self.design.gram.largest_block


def _both(before: Decisions, now: Decisions) -> Decisions:
    """What either of two looks at the same problem has decided."""
    earlier = before.which >= 1
    earlier &= now.which < 0
    return replace(
        now,
        dropped=now.dropped | before.dropped,
        folded=(now.folded | before.folded) & ~before.dropped,
        which=np.where(earlier, before.which, now.which),
    )


def _check(solution: Solution, decisions: Decisions, passes: float, began: float) -> Check:
    return Check.of(
        decisions,
        gap=solution.gap,
        reference=solution.reference,
        passes=passes,
        began=began,
        n_features=int((~decisions.dropped).sum()),
    )
