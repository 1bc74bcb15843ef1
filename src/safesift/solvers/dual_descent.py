"""Dual coordinate descent with an l2 penalty, certified on all rows.

For x(ν) = −Aᵀ(s∘ν)/(W·alpha) the dual is maximised one ν_i at a time, in random order, which moves
x along a_i only (Hsieh et al., *A dual coordinate descent method for large-scale linear SVM*, ICML
2008). Rows leave the loop on two grounds: a ball around the optimum proves what their dual
variable is there; or, as in LIBLINEAR, their prediction is further inside their piece than any
other is outside. What the second ground costs is seen, and repaired, when the gap is measured.

An unpenalised intercept c is a proximal-point iteration: next to a centre it is penalised, and the
centre moves to it after every epoch. At its limit Σ s_i ν_i = 0. Rows are measured from their mean,
so that the coefficients do not do the intercept's work, and it settles as fast as they do. From one
alpha to the next it is the prediction for that mean that goes on as before, and a cold start begins
with an intercept that is nearly penalised as the coefficients are: with few rows to balance yet, it
would otherwise overshoot, and take ten epochs to come back. Rows with kinks respond to it together,
and so by less than each of them would: a centre that creeps is moved to where its moves lead.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import total
from safesift.design import DenseDesign, SparseDesign
from safesift.design.rows import rows_of
from safesift.penalties import L2
from safesift.problem.problem import Problem
from safesift.regions import Region
from safesift.regions.ball import Balls, may_decide
from safesift.solvers.base import Proposal, Solver, Steps, register
from safesift.solvers.costs import LONG_PATH, mean_row_length, mostly_zeros, passes_of_a_gram
from safesift.solvers.driver import Level
from safesift.solvers.dual_loop import Loop
from safesift.solvers.entropy_loop import EntropyLoop
from safesift.solvers.newton import Newton
from safesift.solvers.parabola_loop import ParabolaLoop
from safesift.solvers.records import Settings

Array = NDArray[np.float64]

# screen when the gap seems to have fallen by this factor since it was measured; without a region
# to wait for, after so many epochs, and again when they have doubled
_WORTH_A_LOOK, _MANY_EPOCHS = 0.1, 16
# where the gap is larger than its estimate, the next one to reach is as much smaller as the gap is
# too large, and a bit; at least that share of the estimate
_A_BIT, _STRICTER = 0.7, 0.3
# what an epoch over hardly any row counts, as a share of one over all rows
_LEAST_SHARE = 0.002
# what a level costs by itself (False) and on a path (True), for dense rows (False) and for those of
# mostly zeros (True)
_EPOCHS = {False: {False: 30.0, True: 28.0}, True: {False: 18.0, True: 12.0}}
# of dense rows and losses with kinks: fewer where rows lie far from them, three times as many where
# classes overlap
_EPOCHS_WITH_KINKS = 40.0
_WITH_INTERCEPT = 1.35
# what steps on rows that are stored as sparse ones cost, next to the passes of others over them
_STORED_SPARSE = 0.75
# logistic epochs, how many more it takes for each unit by which a step moves a prediction, and so
# many entries take the time of the exponentials of a step
_LOGISTIC_EPOCHS, _PER_UNIT, _EXPONENTIALS = 12.0, 0.6, 30.0
# how many times the matrix of a cold Newton method is factored
_FACTORS = 10


def _stricter(gap: float, target: float) -> float:
    """The share of an estimate that is to be reached next, where the gap was this one."""
    return max(_STRICTER, _A_BIT * target / gap) if gap > target else _STRICTER


def _loop_for(problem: Problem) -> type[ParabolaLoop | EntropyLoop] | None:
    """The steps that a loss has."""
    loss, y = problem.loss.take(slice(0, 1)), problem.y[:1]
    if loss.dual_form(y) is not None:
        return ParabolaLoop
    return None if loss.entropy_signs(y) is None else EntropyLoop


@register
class DualDescent(Solver):
    """Keeps the dual variables. A step is an epoch, counted by the share of rows in the loop."""

    name = "dual_descent"
    threaded = True

    def __init__(self, problem: Problem, settings: Settings, start: Array | None = None) -> None:
        super().__init__(problem, settings, start)
        self._loop: Loop | None = None

    @classmethod
    def refusal(cls, problem: Problem) -> str:
        if not isinstance(problem.penalty, L2):
            return f"the penalty {problem.penalty!r} is not l2"
        if problem.folded is not None:
            return "samples are folded away"
        if not isinstance(problem.design, DenseDesign | SparseDesign):
            return "it works with rows in memory"
        return "" if _loop_for(problem) else f"the loss {problem.loss!r} has no dual steps"

    @classmethod
    def cost(cls, problem: Problem, n_levels: int) -> float:
        design = rows_of(problem.design)
        epochs = _EPOCHS[mostly_zeros(design)][n_levels >= LONG_PATH]
        if math.isinf(problem.loss.smoothness) and not mostly_zeros(design):
            epochs = _EPOCHS_WITH_KINKS
        logistic = _loop_for(problem) is EntropyLoop
        if isinstance(design, SparseDesign) and not logistic:
            epochs *= _STORED_SPARSE
        if logistic and mostly_zeros(design):
            moved = total(problem.shares**2, design.feature_norms_sq) / problem.alpha
            epochs = _LOGISTIC_EPOCHS + _PER_UNIT * moved
            epochs *= 1.0 + _EXPONENTIALS / mean_row_length(design)
        return epochs * (_WITH_INTERCEPT if problem.fit_intercept else 1.0)

    def region(self, level: Level) -> Region | None:
        if level.screening.region is not None:
            return level.screening.region
        if not level.problem.pieces:
            return None  # nothing to decide
        if not level.problem.fit_intercept:
            return Balls()
        stuck = self._loop is not None and self._loop.stuck
        ended = level.converged or level.exhausted or stuck
        # on the way, bounds on an intercept cost more passes than they save
        return Balls() if ended and may_decide(level.certificate) else None

    def steps(self, level: Level, most: int | None = None) -> Steps:
        """Epochs, `most` of them at most, and now and then a look at where things stand."""
        loop, screening = self._begun(level), level.screening
        most = level.max_iter if most is None else min(most, level.max_iter)
        enough, look_again, spent, looked = level.target, _MANY_EPOCHS, 0.0, 0.0
        while True:
            estimate = loop.epoch(shrinks=screening.guesses)
            if estimate > enough:
                loop.accelerate(_STRICTER * enough, estimate)
            spent += max(loop.share_visited, _LEAST_SHARE)
            level.report(spent - looked)
            ended = spent >= most or loop.stuck
            worth = self._worth_a_look(level, estimate, math.ceil(spent - 1e-9) >= look_again)
            if not (ended or estimate <= enough or worth):
                continue
            look_again = max(look_again, 2 * math.ceil(spent - 1e-9))
            yield Proposal(point=loop.mean_point, ray=loop.ray(), steps=spent - looked)
            looked = spent
            if ended:
                return
            if estimate <= enough and loop.complete:
                enough = estimate * _stricter(level.gap, level.target)
            loop.resume(level.decisions if screening.guesses or screening.region else None)

    def _begun(self, level: Level) -> Loop:
        if self._loop is None:
            kind = _loop_for(level.problem)
            assert kind is not None, "others are refused"
            self._loop = kind(level.problem, self.settings.seed)
            if self._start is not None:
                self._loop.start_at(self._start)
        self._loop.move_to(level.problem)
        return self._loop

    def _worth_a_look(self, level: Level, estimate: float, long: bool) -> bool:
        """Whether rows may be decided by now that were not at the last look."""
        if level.screening.region is not None:
            return estimate <= _WORTH_A_LOOK * min(level.gap, level.problem.reference)
        return level.screening.guesses and long


@register
class Relay(Solver):
    """Epochs as long as they are cheap, Newton's method on the Gram matrix from there.

    Epochs cost little, and with many columns they are done before a Gram matrix would be; for small
    alphas, or columns in different units, thousands may not do. So they get the time that a Gram
    matrix costs; of a loss with kinks, for which Newton's method takes many, half of all steps. At
    the first level where they need more, Newton's method takes over at the point where they got to,
    and goes on along the path by itself: its matrix is there by then.
    """

    name = "relay"

    def __init__(self, problem: Problem, settings: Settings, start: Array | None = None) -> None:
        super().__init__(problem, settings, start)
        self._hand_to(DualDescent(problem, settings, start))
        # where the steps are few, half of them are Newton's
        affordable = min(settings.max_iter // 2, self._affordable_epochs(problem))
        self._affordable = max(int(affordable), 1)

    @classmethod
    def _affordable_epochs(cls, problem: Problem) -> float:
        if math.isinf(problem.loss.smoothness):
            return math.inf
        return passes_of_a_gram(rows_of(problem.design), _FACTORS)

    @classmethod
    def refusal(cls, problem: Problem) -> str:
        return DualDescent.refusal(problem) or Newton.refusal(problem)

    @classmethod
    def cost(cls, problem: Problem, n_levels: int) -> float:
        # a hair less than epochs alone, which it need not go on with
        epochs = 0.99 * DualDescent.cost(problem, n_levels)
        return min(epochs, cls._affordable_epochs(problem) + Newton.cost(problem, n_levels))

    def _hand_to(self, solver: Solver) -> None:
        self._current = solver
        self.thorough, self.threaded = solver.thorough, solver.threaded

    def region(self, level: Level) -> Region | None:
        return self._current.region(level)

    def goes_on(self, level: Level) -> bool:
        return self._current.goes_on(level)

    def steps(self, level: Level) -> Steps:
        if isinstance(self._current, DualDescent):
            yield from self._current.steps(level, self._affordable)
            if level.converged or level.exhausted:
                return
            self._hand_to(Newton(level.problem, self.settings))
            yield from self._back_to_before(level)
        yield from self._current.steps(level)

    def _back_to_before(self, level: Level) -> Steps:
        """Go on from the last solution, or a constant model, if epochs ended further away."""
        problem, past = level.problem, level.past
        if past is None:
            if problem.reference < level.at.value:
                yield Proposal(point=problem.constant_point, steps=0.0, promised=math.inf)
            return
        before = problem.reevaluate(past.at)
        if before.value < level.at.value:
            yield Proposal(at=before, steps=0.0, promised=math.inf)
