"""Kernel problems by working sets: solve on a few samples exactly, look at all, add violators.

The coordinates of samples outside the working set are fixed, 0 at first. What is solved is thus the
dual problem on some of its coordinates, and every round lowers it. A round needs the square block
of the working set, and the kernel rows of the samples whose coordinates changed; no kernel entry
between two samples of no influence is ever computed. After every round the gap is certified on all
samples, and samples that a region decides on a flat or linear piece leave for good: their
coordinates are known.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift import progress
from safesift.design import tally
from safesift.duality import DualPoint
from safesift.problem import Evaluation, Problem
from safesift.rkhs.ball import gap_ball
from safesift.rkhs.curvature import curvature_set
from safesift.rkhs.design import Element, KernelDesign
from safesift.screening import Decisions, decide
from safesift.solvers.dual_form import dual_form
from safesift.solvers.kernel_block import Block
from safesift.solvers.kernel_newton import solve_by_newton
from safesift.solvers.kernel_pairs import Inner, improve_by_pairs, solve_by_pairs
from safesift.solvers.records import Check, Fit, Settings, Solution

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# the first working set, and how many violators join a later one at least
_FIRST, _JOINING = 1000, 500
# how well a block is solved: relative to the largest violation, and to the gap
_VIOLATION, _GAP = 0.02, 0.02
# blocks of so many samples are solved as well as can be: to such a violation for losses with kinks
_SMALL, _EXACT = 1500, 1e-11
# rounds beyond the tolerance, for as long as so many times the carrying samples are kept
_EXTRA, _LOOSE = 2, 1.2
# rounds without a greater dual value after which rounding allows no more
_PATIENCE = 6


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
class State:
    """A function and an intercept."""

    element: Element
    intercept: float

    def point(self, problem: Problem) -> Array:
        return problem.join(self.element.beta, self.intercept)


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
        self.steps = problem.shares / problem.alpha
        least, most = problem.loss.dual_interval(problem.y)
        with np.errstate(invalid="ignore"):
            self.lower = np.where(self.steps > 0, -self.steps * most, 0.0)
            self.upper = np.where(self.steps > 0, -self.steps * least, 0.0)
        self.kinked = math.isinf(problem.loss.smoothness)
        self.form = dual_form(problem.loss, problem.y)
        if self.kinked and self.form is None:
            raise ValueError(
                f"loss={problem.loss!r} has kinks and a conjugate that is not quadratic: use its "
                "smoothed version, or another loss."
            )

    def run(self, start: State | None) -> tuple[Fit, State]:
        problem, settings = self.problem, self.settings
        began, history = time.perf_counter(), []
        decided = Decisions.nothing(problem)
        dual, stalled, extra = None, 0, 0
        with tally.counting() as rows:
            state = self.feasible(start)
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
                moved = self.round(state, look)
                if moved is state:
                    break
                state = moved
        return Fit(problem, solution, decided, tuple(history)), state

    def loose(self, state: State, decided: Decisions) -> bool:
        """Whether many more samples are kept than carry the model: a smaller gap drops them."""
        n_kept, n_carrying = (~decided.dropped).sum(), np.count_nonzero(state.element.beta)
        return self.settings.screening is not None and n_kept > _LOOSE * n_carrying

    # --- states -----------------------------------------------------------------------------

    def feasible(self, start: State | None) -> State:
        """The start with coordinates that are dual feasible for this alpha, 0 by default."""
        n = self.design.n_samples
        if start is None:
            zero = Element(np.zeros(n), np.zeros(n), 0.0)
            return State(zero, self.problem.split(self.problem.constant_point)[1])
        element = start.element
        inside = np.clip(element.beta, self.lower, self.upper)
        element = element.plus(inside - element.beta, self.design.gram)
        return replace(start, element=element.refreshed(self.design.gram))

    def look(self, state: State, dual: DualPoint | None, n_iter: int, decided: Decisions) -> Look:
        """Certify the gap on all samples, and decide those that it decides."""
        problem = self.problem
        self.design.remember(state.element)
        at = problem.evaluate(state.point(problem))
        with np.errstate(divide="ignore", invalid="ignore"):
            nu = np.where(self.steps > 0, -state.element.beta / self.steps, 0.0)
        # dividing by a step must not leave the domain by a rounding
        nu = np.clip(nu, *problem.loss.dual_interval(problem.y))
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
        if self.kinked or self.settings.screening == "gap_ball" or not decided.undecided.any():
            return False
        curved = self.problem.loss.curvature(solution.at.pred, self.problem.y) > 0
        n_curved = int((curved & (self.steps > 0)).sum())
        if self.settings.screening == "auto":
            return solution.converged and n_curved <= _SMALL
        return solution.n_iter > 0 and n_curved <= self.design.gram.largest_block

    # --- a round ----------------------------------------------------------------------------

    def round(self, state: State, look: Look) -> State:
        """Solve on a working set; the same state where nothing violates anything."""
        problem, at, beta = self.problem, look.solution.at, state.element.beta
        known = self.known(look.decisions)
        if known is not None:
            fixed = np.where(np.isnan(known), beta, known)
            state = replace(state, element=state.element.plus(fixed - beta, self.design.gram))
            beta = state.element.beta
            at = problem.evaluate(state.point(problem))
        open_rows = (self.steps > 0) & (True if known is None else np.isnan(known))
        violation = np.where(open_rows, self.violations(at, beta), 0.0)
        rows = self.working_set(at, beta, violation, open_rows)
        if not rows.size:
            return state
        K = self.design.gram.submatrix(rows)
        own = K @ beta[rows]
        wanted = float(beta[rows].sum() - beta.sum()) if problem.fit_intercept else None
        block = Block(
            K, state.element.values[rows] - own, problem.loss.take(rows), problem.y[rows],
            self.steps[rows], self.lower[rows], self.upper[rows], wanted,
        )  # fmt: skip
        inner = self.inner(
            block, beta[rows], state.intercept, float(violation.max()), look.solution.gap,
            int(open_rows.sum()),
        )  # fmt: skip
        change = np.zeros_like(beta)
        change[rows] = block.feasible(inner.beta) - beta[rows]
        element = state.element.plus(change, self.design.gram).refreshed(self.design.gram)
        return State(element, self.intercept(element, inner.intercept))

    def inner(
        self,
        block: Block,
        beta: Array,
        intercept: float,
        violation: float,
        gap: float,
        n_open: int,
    ) -> Inner:
        """Solve a block better than the whole is solved; a small one that is all of it exactly."""
        small = len(beta) <= _SMALL and len(beta) == n_open
        tol, inner = _VIOLATION * violation, Inner(beta, intercept, math.inf)
        if self.kinked:
            exact = _EXACT * self.problem.unit
            return solve_by_pairs(block, block.feasible(beta), exact if small else tol)
        if self.form is not None and not small:
            # which samples carry the model is found out by cheap steps
            form = dual_form(block.loss, block.y)
            inner = improve_by_pairs(block, form, block.feasible(beta), tol)
        if inner.violation > tol:
            tol = 0.0 if small else _GAP * gap / self.problem.alpha
            inner = solve_by_newton(block, inner.beta, inner.intercept, tol)
        return inner

    def known(self, decisions: Decisions) -> Array | None:
        """The coordinates of samples proved to be on a flat or linear piece, NaN elsewhere."""
        flat = decisions.dropped | (decisions.folded & (decisions.quadratic == 0))
        flat &= self.steps > 0
        if not flat.any():
            return None
        return np.where(flat, -self.steps * decisions.linear, math.nan)

    @np.errstate(invalid="ignore")
    def violations(self, at: Evaluation, beta: Array) -> Array:
        """How far each prediction is from where its coordinate would be optimal."""
        form = self.form
        if form is None:
            return np.abs(at.nu * self.steps + beta) / self.steps.max()
        with np.errstate(divide="ignore"):
            pull = at.pred + (form.curvature / self.steps * beta if form.curvature else 0.0)
        short = np.where(beta >= 0, form.low, form.high) - pull
        excess = pull - np.where(beta <= 0, form.high, form.low)
        short, excess = short * (beta < self.upper), excess * (beta > self.lower)
        return np.fmax(np.fmax(short, excess), 0.0)

    def working_set(
        self, at: Evaluation, beta: Array, violation: Array, open_rows: Mask
    ) -> NDArray[np.intp]:
        """The samples that carry the model so far, and those that violate optimality most."""
        largest = self.design.gram.largest_block
        carrying = open_rows & (beta != 0)
        violating = np.flatnonzero((violation > 0) & ~carrying)
        n_carrying = int(carrying.sum())
        if not beta.any():
            return self.first_set(np.flatnonzero(open_rows))
        joining = max(_JOINING, n_carrying)
        if n_carrying + min(joining, len(violating)) <= largest:
            chosen = self.chosen(violating, violation, joining)
            return np.sort(np.concatenate([np.flatnonzero(carrying), chosen]))
        # not all fit: the worst, and of what carries the model some others every time
        worst = np.argsort(-violation, kind="stable")[: largest // 2]
        others = np.flatnonzero(carrying & ~np.isin(np.arange(len(beta)), worst))
        rng = np.random.default_rng(len(others))
        return np.sort(np.append(worst, rng.permutation(others)[: largest - len(worst)]))

    def chosen(self, rows: NDArray[np.intp], violation: Array, n: int) -> NDArray[np.intp]:
        """The worst of some rows, and as many others: the worst alone are often alike."""
        if len(rows) <= n:
            return rows
        rows = rows[np.argsort(-violation[rows], kind="stable")]
        rng = np.random.default_rng(len(rows))
        return np.append(rows[: n // 2], rng.permutation(rows[n // 2 :])[: n - n // 2])

    def first_set(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """A random sample, in which no label is too rare."""
        rows = np.random.default_rng(self.settings.seed).permutation(rows)
        size = min(max(_FIRST, len(rows) // 10), self.design.gram.largest_block)
        if self.problem.loss.task != "classification":
            return np.sort(rows[:size])
        positive = self.problem.y[rows] > 0
        sides = rows[positive], rows[~positive]
        least = [max(len(side) * size // max(len(rows), 1), size // 4) for side in sides]
        return np.sort(np.concatenate([s[:m] for s, m in zip(sides, least, strict=True)]))

    def intercept(self, element: Element, start: float) -> float:
        """The best intercept for a function: where the slopes of all samples cancel."""
        problem = self.problem
        if not problem.fit_intercept:
            return 0.0

        def slope(c: float) -> float:
            return float(problem.shares @ problem.loss.slope(element.values + c, problem.y))

        return _root(slope, start, 1e-3 * problem.unit)


def _root(slope, start: float, step: float) -> float:
    """Where a growing function changes its sign."""
    sign = -1.0 if slope(start) > 0 else 1.0
    low, high = start, start + sign * step
    for _ in range(60):
        if sign * slope(high) >= 0:
            break
        low, high, step = high, high + 2.0 * sign * step, 2.0 * step
    for _ in range(60):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (low, middle) if sign * slope(middle) >= 0 else (middle, high)
    return high


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
    n_kept = int((~decisions.dropped).sum())
    return Check(
        passes=passes,
        seconds=time.perf_counter() - began,
        gap=solution.gap,
        relative_gap=solution.relative_gap,
        n_kept=n_kept,
        n_undecided=int(decisions.undecided.sum()),
        n_features=n_kept,
    )
