"""A semismooth proximal Newton method on the Gram matrix, for every problem with few features.

Smooth losses: the quadratic model of loss and folded part at a point, with the penalty as it is, is
minimised exactly (`solvers.quadratic`), and a line search on the objective follows
(`solvers.steps`). As soon as it can be told how far predictions still move, steps read only the
rows that may change their piece, and one pass over all rows measures the gap. Losses with kinks:
the same on the loss rounded off over a shrinking width, until the gap of the problem itself is
small.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from safesift.design.rows import rows_of
from safesift.problem.duality import WIDTHS
from safesift.problem.evaluation import Evaluation
from safesift.problem.gram import WeightedGram
from safesift.problem.passes import Computation
from safesift.problem.problem import Evaluate, Problem
from safesift.regions import Region
from safesift.regions.near import NearOptimum
from safesift.solvers.base import Proposal, Solver, Steps, register
from safesift.solvers.costs import (
    LONG_PATH,
    nearly_all_curve,
    passes_of_a_gram,
    passes_of_factors,
    passes_of_products,
    too_wide,
)
from safesift.solvers.driver import Level
from safesift.solvers.records import Settings
from safesift.solvers.sampling import start_on_a_sample
from safesift.solvers.screening import may_leave_piece
from safesift.solvers.steps import NewtonSteps
from safesift.solvers.views import AllRows, SomeRows

Array = NDArray[np.float64]

# the rounding of kinks shrinks by this factor, after at most so many steps
_SHRINK, _MOST_STEPS = 0.2, 25
# leaving rows out pays where at most this share of them is read
_FEW = 0.6
# steps go on to this share of the gap that is asked for, as long as they get anywhere
_POLISH = 1e-3
# the model of a view of few rows is minimised this much more exactly than the gap demands
_SHARPER = 1e-4
# rows move at most so many times as far as they moved last time, or so many times the mean
_FURTHER, _MEAN_SHARE = 2.0, 0.25
# what a level takes, of a path and by itself: passes, Gram matrices of all rows, and factors; for
# losses that curve at a varying rate (False) and for those of quadratic pieces (True)
_WARM = {False: (6.0, 2.5, 8), True: (3.0, 0.13, 5)}
_COLD = {False: (16.0, 3.5, 10), True: (12.0, 1.1, 10)}
# matrices of a level of a path where nearly all rows curve
_MATRICES_IF_ALL_CURVE = 0.2
# matrices for losses with kinks
_MATRICES_WITH_KINKS = 100


@register
class Newton(Solver):
    """Keeps the Gram matrix."""

    name = "newton"
    thorough = True
    remote = True

    def __init__(self, problem: Problem, settings: Settings, start: Array | None = None) -> None:
        super().__init__(problem, settings, start)
        self._gram = WeightedGram(rows_of(problem.design))
        self._smooth = math.isfinite(problem.loss.smoothness)

    @classmethod
    def refusal(cls, problem: Problem) -> str:
        return too_wide(problem)

    @classmethod
    def cost(cls, problem: Problem, n_levels: int) -> float:
        design = rows_of(problem.design)
        if math.isinf(problem.loss.smoothness):
            return _MATRICES_WITH_KINKS * (1.0 + passes_of_a_gram(design))
        warm = n_levels >= LONG_PATH
        # rows that stay on a quadratic piece leave the matrix as it is
        passes, matrices, factors = (_WARM if warm else _COLD)[problem.loss.quadratic_rays]
        if warm and nearly_all_curve(problem):
            matrices = _MATRICES_IF_ALL_CURVE
        products = matrices * passes_of_products(design)
        return passes + products + passes_of_factors(design, factors)

    def goes_on(self, level: Level) -> bool:
        # steps converge quadratically: one more makes the solution exact, and its rows decided
        return self._smooth and bool(level.problem.pieces) and level.gap > _POLISH * level.target

    def region(self, level: Level) -> Region | None:
        if level.screening.region is not None:
            # built for every step already, and once more at the end
            return level.screening.region if level.converged or level.exhausted else None
        if not level.problem.pieces:
            return None  # nothing to decide
        return NearOptimum(self._gram if self._smooth else None)

    def steps(self, level: Level) -> Steps:
        return self._smooth_steps(level) if self._smooth else self._steps_with_kinks(level)

    # --- smooth losses ----------------------------------------------------------------------

    def _smooth_steps(self, level: Level) -> Steps:
        problem, gram = level.problem, self._gram
        # how far a cold start was from the solution says nothing about this level
        past = level.past
        movement = past.movement if past is not None and past.warm else None
        if not level.begun and past is None and self._start is None:
            self._start = yield from start_on_a_sample(problem, self.settings, self.name)
        yield from self.arrive(level, promised=math.inf)
        steps, stuck = NewtonSteps(_curvature_scales(problem)), False
        while True:
            # of where steps begin predictions are kept, and not the slopes
            pred, done = level.at.pred, steps.n_iter
            rows = None if stuck else self._doubtful(level, movement)
            movement = None  # a vector of n numbers that nobody needs now
            if rows is None or len(rows) > _FEW * problem.design.n_samples:
                stuck = True  # unless that was progress
                found = yield from step_on_all(problem, level.at, steps, gram)
                promised = steps.promised
            else:
                found, promised = (yield from self._settled(level, rows, steps)), 0.0
            gained = yield Proposal(
                at=level.at if found is None else found,
                steps=steps.n_iter - done,
                promised=promised,
            )
            if gained:
                stuck, movement = False, np.abs(level.at.pred - pred)
            elif stuck:
                return
            else:
                stuck = True  # the guess did harm: all rows next time

    def _doubtful(self, level: Level, movement: Array | None) -> NDArray[np.intp] | None:
        """The rows that may change their piece; None for all."""
        screening, problem = level.screening, level.problem
        if problem.design.n_samples <= problem.design.n_columns:
            return None  # to factor the matrix costs more than to read all of them
        if screening.region is not None:
            if not level.measured:
                return None
            return np.flatnonzero(screening.undecided(level.certificate))
        if not screening.guesses or movement is None or not problem.pieces:
            return None
        reach = _FURTHER * movement
        reach += _MEAN_SHARE * float(problem.shares @ movement)
        return may_leave_piece(problem, level.at, reach)

    def _settled(
        self, level: Level, rows: NDArray[np.intp], steps: NewtonSteps
    ) -> Computation[Evaluation]:
        """Steps that read some rows, and a pass over all of them to see what came of it."""
        problem, at = level.problem, level.at
        yield from self._gram.moving(problem.shares * problem.loss.curvature(at.pred, problem.y))
        view = SomeRows(problem, at, self._gram, rows)
        most = min(level.max_iter - level.n_iter, _MOST_STEPS)
        yield from steps.settle(view, _SHARPER * level.target, most, level.report)
        self._gram.adopt(view.gram, rows)
        return (yield Evaluate(problem, view.here.point))

    # --- losses with kinks ------------------------------------------------------------------

    def _steps_with_kinks(self, level: Level) -> Steps:
        problem = level.problem
        yield from self.arrive(level)
        for width in _widths(problem):
            rounded = problem.with_loss(problem.loss.smoothed(width))
            most = min(level.max_iter - level.n_iter, _MOST_STEPS)
            steps = NewtonSteps(_curvature_scales(rounded))
            promise = 1e-3 * min(width, level.target)
            found = yield from _descend(rounded, level.at.point, steps, promise, most)
            yield Proposal(point=found.point, steps=steps.n_iter, slopes=found)


def step_on_all(
    problem: Problem, at: Evaluation, steps: NewtonSteps, gram: WeightedGram
) -> Computation[Evaluation | None]:
    """One step that reads every row; None where nothing lowers the objective."""
    view = AllRows(problem, at, gram)
    moved = yield from steps.step(view)
    return view.here.source if moved else None


def _descend(
    rounded: Problem, point: Array, steps: NewtonSteps, promise: float, most: int
) -> Computation[Evaluation]:
    """Steps on a rounded problem until the model promises no more than that."""
    at, gram = (yield Evaluate(rounded, point)), WeightedGram(rows_of(rounded.design))
    while steps.n_iter < most and steps.promised > promise:
        found = yield from step_on_all(rounded, at, steps, gram)
        if found is None:
            break
        at = found
    return at


def _widths(problem: Problem) -> Iterator[float]:
    width = WIDTHS[0] * problem.unit
    while width > 1e-14 * problem.unit:
        yield width
        width *= _SHRINK


def _curvature_scales(problem: Problem) -> Array:
    """The largest curvature of the loss along each coordinate, for the damping.

    By columns, so that one column in other units is damped in those, and the others as ever.
    """
    curvature = problem.loss.smoothness * problem.risk.rows.columns_sq
    if problem.Q is not None:
        curvature = curvature + np.diag(problem.Q)
    return np.where(curvature > 0, curvature, 1.0)
