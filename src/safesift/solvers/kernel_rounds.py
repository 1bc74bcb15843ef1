"""A round of the kernel solver: choose a working set, solve on it, bring all values up to date."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from safesift.design.kernel import Element
from safesift.problem.decisions import Decisions
from safesift.problem.duality import Ray
from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.regions.kernel_curvature import kernel_of
from safesift.solvers.driver import Level
from safesift.solvers.kernel_block import (
    Block,
    Inner,
    improve_by_pairs,
    solve_by_newton,
    solve_by_pairs,
)

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# the first working set, and how many violators join a later one at least
_FIRST, _JOINING = 1000, 500
# how well a block is solved: relative to the largest violation, or to the gap, of the whole
_SHARE = 0.02
# blocks of so many samples that are all there is are solved as well as can be: to such a violation
# for losses with kinks
SMALL, _EXACT = 1500, 1e-11


@dataclass(frozen=True, eq=False)
class State:
    """A function and an intercept."""

    element: Element
    intercept: float

    def point(self, problem: Problem) -> Array:
        return problem.join(self.element.beta, self.intercept)


class Rounds:
    """What it takes to improve states of one problem.

    Attributes
    ----------
    steps : array of shape (n_samples,)
        s_i / (alpha·W): β_i = −step_i·ν_i at the optimum.
    lower, upper : arrays of shape (n_samples,)
        Ends of β_i, from the domain of the conjugate.
    kinked : bool
        Whether the loss has kinks.
    """

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self.seed = problem, seed
        self.design = kernel_of(problem.design)
        self.steps = problem.shares / problem.alpha
        least, most = problem.loss.dual_interval(problem.y)
        with np.errstate(invalid="ignore"):
            self.lower = np.where(self.steps > 0, -self.steps * most, 0.0)
            self.upper = np.where(self.steps > 0, -self.steps * least, 0.0)
        self.kinked = math.isinf(problem.loss.smoothness)
        self.form = problem.loss.dual_form(problem.y)
        if self.kinked and self.form is None:
            raise ValueError(
                f"loss={problem.loss!r} has kinks and declares no dual form: use its smoothed "
                "version, or another loss."
            )

    def start(self, start: State | None) -> State:
        """The start with coordinates that are dual feasible for this alpha, 0 by default."""
        n = self.design.n_samples
        if start is None:
            zero = Element(np.zeros(n), np.zeros(n), 0.0)
            return State(zero, self.problem.split(self.problem.constant_point)[1])
        element = start.element
        inside = np.clip(element.beta, self.lower, self.upper)
        element = element.plus(inside - element.beta, self.design.gram)
        return replace(start, element=element.refreshed(self.design.gram))

    def ray(self, state: State) -> Ray:
        """The dual point that belongs to the coordinates."""
        nu, design = self._slopes(state), self.design
        gradient = design.rmatvec(self.problem.shares * nu)
        return Ray(nu, gradient, np.zeros(design.n_columns))

    def _slopes(self, state: State) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            nu = np.where(self.steps > 0, -state.element.beta / self.steps, 0.0)
        # dividing by a step must not leave the domain by a rounding
        return np.clip(nu, *self.problem.loss.dual_interval(self.problem.y))

    def improved(self, state: State, at: Evaluation, level: Level, stalled: int) -> State:
        """Solve on a working set; the same state where nothing violates anything.

        The working set is the larger, the more rounds in a row were of no use: with an intercept
        the coordinates of a few samples may not be able to move at all.
        """
        problem, beta = self.problem, state.element.beta
        known = self.known(level.decisions)
        if known is not None:
            fixed = np.where(np.isnan(known), beta, known)
            state = replace(state, element=state.element.plus(fixed - beta, self.design.gram))
            beta = state.element.beta
            at = problem.evaluate(state.point(problem))
        open_rows = (self.steps > 0) & (True if known is None else np.isnan(known))
        violation = np.where(open_rows, self.violations(at, beta), 0.0)
        rng = np.random.default_rng([self.seed, level.n_iter])
        rows = self.working_set(beta, violation, open_rows, 2**stalled, rng)
        if not rows.size:
            return state
        K = self.design.gram.submatrix(rows)
        own = K @ beta[rows]
        wanted = float(beta[rows].sum() - beta.sum()) if problem.fit_intercept else None
        block = Block(
            K, state.element.values[rows] - own, problem.loss.take(rows), problem.y[rows],
            self.steps[rows], self.lower[rows], self.upper[rows], wanted,
        )  # fmt: skip
        # a small block that is all there is is solved to the last digit
        exact = len(rows) <= SMALL and len(rows) == int(open_rows.sum())
        share = 0.0 if exact else _SHARE * 0.1**stalled
        start = Inner(beta[rows], state.intercept, math.inf)
        inner = self.inner(
            block, start, share * float(violation.max()), share * level.gap / problem.alpha
        )
        change = np.zeros_like(beta)
        change[rows] = block.feasible(inner.beta) - beta[rows]
        element = state.element.plus(change, self.design.gram).refreshed(self.design.gram)
        return State(element, self.intercept(element, inner.intercept))

    def inner(self, block: Block, start: Inner, violation: float, gap: float) -> Inner:
        """Solve a block to a violation, or to a gap, that is a share of what the whole has."""
        form = block.loss.dual_form(block.y)
        if form is not None and self.kinked:
            least = _EXACT * self.problem.unit
            return solve_by_pairs(block, form, block.feasible(start.beta), max(violation, least))
        if form is not None and violation > 0:
            # which samples carry the model is found out by cheap steps
            start = improve_by_pairs(block, form, block.feasible(start.beta), violation)
        if start.violation > violation:
            return solve_by_newton(block, start.beta, start.intercept, gap)
        return start

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
        self,
        beta: Array,
        violation: Array,
        open_rows: Mask,
        factor: int,
        rng: np.random.Generator,
    ) -> NDArray[np.intp]:
        """The samples that carry the model so far, and those that violate optimality most."""
        largest = self.design.gram.largest_block
        if not beta.any():
            return self.first_set(np.flatnonzero(open_rows), factor, rng)
        carrying = open_rows & (beta != 0)
        n_carrying = int(carrying.sum())
        # those that violate nothing come last, if at all
        others = np.flatnonzero(open_rows & ~carrying & ((violation > 0) | (factor > 1)))
        joining = min(factor * max(_JOINING, n_carrying), len(others))
        if n_carrying + joining <= largest:
            rows = np.append(np.flatnonzero(carrying), _some_of(others, violation, joining, rng))
        else:
            # not all fit: the worst, and some others every time
            rows = _some_of(np.flatnonzero(open_rows), violation, largest, rng)
        return np.sort(rows)

    def first_set(
        self, rows: NDArray[np.intp], factor: int, rng: np.random.Generator
    ) -> NDArray[np.intp]:
        """A random sample, in which no label is too rare."""
        rows = rng.permutation(rows)
        size = min(factor * max(_FIRST, len(rows) // 10), self.design.gram.largest_block)
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


def _root(slope: Callable[[float], float], start: float, step: float) -> float:
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


def _some_of(
    rows: NDArray[np.intp], violation: Array, n: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """The worst of some rows, and as many others: the worst alone are often alike."""
    if len(rows) <= n:
        return rows
    rows = rows[np.argsort(-violation[rows], kind="stable")]
    return np.append(rows[: n // 2], rng.permutation(rows[n // 2 :])[: n - n // 2])
