"""A semismooth proximal Newton method on the Gram matrix, for every problem with few features.

Smooth losses: the quadratic model of loss and folded part at a point, with the penalty as it is, is
minimised exactly (`solvers.quadratic`), and a line search on the objective follows
(`solvers.steps`). As soon as it can be told how far predictions still move, steps read only the
rows that may change their piece (`solvers.doubt`), and one pass over all rows measures the gap.
Losses with kinks: the same on the loss rounded off over a shrinking width, until the gap of the
problem itself is small.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from safesift import progress
from safesift.arithmetic.numerics import EPS
from safesift.problem.duality import WIDTHS, DualPoint
from safesift.problem.evaluation import Evaluation
from safesift.problem.gram import WeightedGram
from safesift.problem.problem import Problem
from safesift.solvers.doubt import Doubt, EveryRow
from safesift.solvers.lockstep import Query, Run, alone
from safesift.solvers.records import Solution
from safesift.solvers.steps import Steps
from safesift.solvers.views import AllRows, SomeRows

Array = NDArray[np.float64]

# beyond this many columns the Gram matrix costs too much
LARGEST = 5000
# the rounding of kinks shrinks by this factor, after at most so many steps
_SHRINK, _MOST_STEPS = 0.2, 25
# leaving rows out pays where at most this share of them is read
_FEW = 0.6
# steps go on to this share of the gap that is asked for, as long as they get anywhere
_POLISH = 1e-3
# the model of a view of few rows is minimised this much more exactly than the gap demands
_SHARPER = 1e-4


@dataclass
class Memory:
    """What is carried from one level of a path to the next.

    Attributes
    ----------
    at : Evaluation
        Its solution.
    gram : WeightedGram
    movement : array or None
        By how much predictions moved from the level before.
    """

    at: Evaluation
    gram: WeightedGram
    movement: Array | None = None


# data so large that squares overflow end in an infinite gap, not in a warning
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def newton(
    problem: Problem,
    *,
    tol: float,
    max_iter: int = 100,
    start: Array | None = None,
    reference: float | None = None,
) -> Solution:
    """Minimise a problem to a certified relative duality gap.

    Parameters
    ----------
    problem : Problem
        With at most 5 000 columns; any loss, penalty, weights, folded part.
    tol : float
        Stop as soon as the duality gap is at most tol times `reference`.
    max_iter : int, default=100
        The largest number of Newton steps.
    start : array, optional
        A point; the best constant model by default.
    reference : float, optional
        By default P of the best constant model. Of a reduced problem, give that of the full one.

    Returns
    -------
    Solution
    """
    check_columns(problem)
    reference = reference_value(problem) if reference is None else reference
    run = NewtonRun(problem, reference, tol, max_iter, EveryRow())
    return alone(run.solve(start))


def check_columns(problem: Problem) -> None:
    """Refuse problems whose Gram matrix is too large."""
    if problem.design.n_columns > LARGEST:
        raise ValueError(
            f"X has {problem.design.n_features} features, and the Newton solver works with at most "
            f"{LARGEST} columns: select or project features first."
        )


def reference_value(problem: Problem) -> float:
    """P of the best constant model; where that is 0, a value of the size of the loss's unit.

    0 up to rounding: relative to less than that no gap can be small.
    """
    value, unit = problem.constant_value, problem.unit * min(problem.unit, 1.0)
    return value if value > 64 * EPS * unit else unit


class NewtonRun:
    """One run on one problem: the point, the best dual point, the gap.

    Attributes
    ----------
    at : Evaluation
        The best point so far.
    dual : DualPoint
    gap : float
    gram : WeightedGram or None
        Of the loss's curvature, for smooth losses.
    memory : Memory or None
        For the next level; after `solve`, for smooth losses.
    """

    at: Evaluation
    dual: DualPoint | None = None
    gap: float = math.inf
    gram: WeightedGram | None = None
    memory: Memory | None = None

    def __init__(
        self, problem: Problem, reference: float, tol: float, max_iter: int, doubt: Doubt
    ) -> None:
        self.problem, self.reference, self.max_iter = problem, reference, max_iter
        self.target = tol * reference
        self._doubt, self._n_iter = doubt, 0

    def solve(self, start: Array | Memory | None = None) -> Run[Solution]:
        """From a point, from the best constant model, or from the last level of a path."""
        if math.isinf(self.problem.loss.smoothness):
            yield from self._with_kinks(start.at.point if isinstance(start, Memory) else start)
        else:
            yield from self._smooth(start)
        return Solution(
            at=self.at,
            dual=self.dual,
            gap=self.gap,
            reference=self.reference,
            n_iter=self._n_iter,
            converged=self.gap <= self.target,
        )

    def check(self) -> None:
        """Called each time the gap was measured on all rows."""

    @property
    def _ended(self) -> bool:
        return self.gap <= self.target or self._n_iter >= self.max_iter

    def _first(self, start: Array | None) -> Run[Evaluation]:
        point = self.problem.constant_point if start is None else self.problem.feasible(start)
        return (yield Query(self.problem, point))

    def _measure(self, slopes: Evaluation) -> None:
        """The gap at the best point, with the dual point of these slopes if that is better."""
        self.dual = self.problem.best_dual(slopes, self.dual)
        self.gap = self.problem.gap(self.at, self.dual)
        self.check()

    # --- smooth losses ----------------------------------------------------------------------

    def _smooth(self, start: Array | Memory | None) -> Run[None]:
        problem, movement = self.problem, None
        if isinstance(start, Memory) and problem.penalty.contains(problem.split(start.at.point)[0]):
            first, gram = problem.reevaluate(start.at), start.gram
            movement = start.movement
        else:
            start = start.at.point if isinstance(start, Memory) else start
            first = yield from self._first(start)
            gram = WeightedGram(problem.design)
        self.at, self.gram = first, gram
        if not isinstance(start, Memory):
            self._measure(first)
        steps, stuck = Steps(problem), False
        # steps converge quadratically: one more makes the solution exact, and its rows decided
        enough = (_POLISH if problem.pieces else 1.0) * self.target
        while self.gap > enough and self._n_iter < self.max_iter:
            gram.move(problem.shares * problem.loss.curvature(self.at.pred, problem.y))
            before, gap = self.at, self.gap
            rows = None if stuck else self._doubt.rows(problem, before, movement)
            if rows is None or len(rows) > _FEW * problem.design.n_samples:
                stuck = True  # unless that was progress
                yield from self._step_on_all(steps, gram)
            else:
                yield from self._steps_on(rows, steps, gram)
            self._n_iter = steps.n_iter
            progress.report("solver", min(self._n_iter, self.max_iter), self.max_iter)
            # at the end of the arithmetic the value stands still; the gap may still fall
            if self._fell(before) or self.gap < 0.9 * gap:
                stuck, movement = False, np.abs(self.at.pred - before.pred)
            elif stuck:
                break
            else:
                stuck = True  # the guess did harm: all rows next time
        if self.dual is None:
            self.at = yield Query(problem, self.at.point)
            self._measure(self.at)
        # how far a cold start was from the solution says nothing about the next level
        moved = np.abs(self.at.pred - first.pred) if isinstance(start, Memory) else None
        self.memory = Memory(self.at, gram, moved)

    def _step_on_all(self, steps: Steps, gram: WeightedGram) -> Run[None]:
        """One step that reads every row."""
        before = self.at
        found = yield from step_on_all(self.problem, before, steps, gram)
        if found is not None:
            self.at = found
        # where the model still promises more than the target, the gap is larger still
        ends = steps.promised <= 0.5 * self.target or not self._fell(before)
        if ends or steps.n_iter % _MOST_STEPS == 0:
            self._measure(self.at)

    def _fell(self, before: Evaluation) -> bool:
        """Whether the objective is below what it was, by more than its rounding."""
        return self.at.value < before.value - 8 * EPS * abs(before.value)

    def _steps_on(self, rows: NDArray, steps: Steps, gram: WeightedGram) -> Run[None]:
        """Steps that read some rows, and a pass over all of them to see what came of it."""
        view = SomeRows(self.problem, self.at, gram, rows)
        most = min(self.max_iter - steps.n_iter, _MOST_STEPS)
        steps.settle(view, _SHARPER * self.target, most)
        gram.adopt(view.gram, rows)
        found = yield Query(self.problem, view.here.point)
        if found.value <= self.at.value:
            self.at = found
        self._measure(found)

    # --- losses with kinks ------------------------------------------------------------------

    def _with_kinks(self, start: Array | None) -> Run[None]:
        self.at = yield from self._first(start)
        self._measure(self.at)
        for width in self._widths():
            if self._ended:
                return
            rounded = replace(self.problem, loss=self.problem.loss.smoothed(width))
            most = min(self.max_iter - self._n_iter, _MOST_STEPS)
            found = yield from self._descend(rounded, 1e-3 * min(width, self.target), most)
            at = yield Query(self.problem, found.point)
            if at.value <= self.at.value:
                self.at = at
            self._measure(found)

    def _descend(self, rounded: Problem, promise: float, most: int) -> Run[Evaluation]:
        """Steps on a rounded problem until the model promises no more than that."""
        steps, gram = Steps(rounded), WeightedGram(rounded.design)
        at = yield Query(rounded, self.at.point)
        while steps.n_iter < most and steps.promised > promise:
            found = yield from step_on_all(rounded, at, steps, gram)
            if found is None:
                break
            at = found
            progress.report("solver", self._n_iter + steps.n_iter, self.max_iter)
        self._n_iter += steps.n_iter
        return at

    def _widths(self) -> Iterator[float]:
        width = WIDTHS[0] * self.problem.unit
        while width > 1e-14 * self.problem.unit:
            yield width
            width *= _SHRINK


def step_on_all(
    problem: Problem, at: Evaluation, steps: Steps, gram: WeightedGram
) -> Run[Evaluation | None]:
    """One step that reads every row; None where nothing lowers the objective."""
    view = AllRows(problem, at, gram)
    asking = steps.step(view)
    try:
        point = next(asking)
        while True:
            evaluation = yield Query(problem, point)
            point = asking.send(view.local(evaluation))
    except StopIteration as ended:
        return view.here.source if ended.value else None
