"""Truncated Newton steps for l2 penalties and smooth losses, where columns are many or rows curve.

The Newton system (κI + Aᵀ diag(s f''/W) A)d = −g is solved by conjugate gradients on the rows that
curve, only as far as the gap aimed at needs. They are preconditioned by its diagonal; once products
have cost as much as a Gram matrix, by the matrix as it was then, which later steps and levels use,
too, until it has been outlived as long again. Where curvature changes with every step, as that of
the logistic loss does on every row, that spares most of the Gram matrices of a plain Newton method.

Where rows are many, some of them give a start, and their matrix a preconditioner that is as good:
then quasi-Newton steps, of one pass each, come before Newton steps, for as long as they go fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from safesift.design.rows import rows_of
from safesift.penalties import L2
from safesift.problem.evaluation import Evaluation
from safesift.problem.passes import ColumnsSq, Computation, CurvatureProduct, Transposed
from safesift.problem.problem import Evaluate, Problem
from safesift.regions import Region
from safesift.regions.ball import Balls
from safesift.regions.energy import GapEnergy
from safesift.solvers.base import Proposal, Solver, Steps, register
from safesift.solvers.conjugate_gradients import conjugate_gradients
from safesift.solvers.costs import (
    LARGEST,
    LONG_PATH,
    mostly_zeros,
    nearly_all_curve,
    passes_of_a_gram,
)
from safesift.solvers.driver import Level
from safesift.solvers.quasi_newton import Memory
from safesift.solvers.records import Settings
from safesift.solvers.sampling import OnASample, rows_of_a_sample

Array = NDArray[np.float64]

# a step is solved to this share of the gap aimed at, if not to a share of the gradient
_INNER = 0.1
# pivots of a factor below this share of the largest are rounding
_SINGULAR = 1e-13
# a matrix that was of no use makes the next one worth so many times as many products
_MORE_PATIENCE = 4
# quasi-Newton steps are made as long as two of them make what they promise fall to this share
_FAST = 0.5
# a sample is of no use where all rows lose this share of what it gained on its own
_LOST = 0.5
# quick steps go on to this share of the gap that is asked for, where rows can be decided
_POLISH = 0.02
# what a level costs, by itself (False) and on a path (True), for dense rows (False) and for those
# of mostly zeros (True); by itself where a sample of the rows is solved for first
_PASSES = {False: {False: 15.0, True: 13.0}, True: {False: 40.0, True: 20.0}}
_ONCE_NEAR, _ON_THE_SAMPLE, _TO_COME_NEAR = 8.0, 150.0, 40.0
# on a path, where nearly all rows curve, and so does a sample of them
_PASSES_IF_ALL_CURVE = 9.0
_WITH_INTERCEPT = 1.25


@register
class NewtonCG(Solver):
    """Keeps a preconditioner."""

    name = "newton_cg"
    looks = False

    def __init__(self, problem: Problem, settings: Settings, start: Array | None = None) -> None:
        super().__init__(problem, settings, start)
        self._preconditioner = Preconditioner(passes_of_a_gram(rows_of(problem.design)))
        self._begun = self._quick = False

    @classmethod
    def refusal(cls, problem: Problem) -> str:
        if not isinstance(problem.penalty, L2):
            return f"the penalty {problem.penalty!r} is not l2"
        if math.isinf(problem.loss.smoothness):
            return f"the loss {problem.loss!r} has kinks"
        return "" if problem.design.has_rows else "it works with rows, not with a kernel"

    @classmethod
    def cost(cls, problem: Problem, n_levels: int) -> float:
        design = rows_of(problem.design)
        passes = _PASSES[mostly_zeros(design)][n_levels >= LONG_PATH]
        n_rows = rows_of_a_sample(problem)
        if n_rows and n_levels >= LONG_PATH and nearly_all_curve(problem):
            passes = _PASSES_IF_ALL_CURVE
        elif n_rows and n_levels < LONG_PATH:
            # the more rows it has for each column, the nearer a sample comes
            share, columns_per_row = n_rows / design.n_samples, design.n_columns / n_rows
            passes = _ONCE_NEAR + _ON_THE_SAMPLE * share + _TO_COME_NEAR * columns_per_row
        return passes * (_WITH_INTERCEPT if problem.fit_intercept else 1.0)

    def region(self, level: Level) -> Region | None:
        if level.screening.region is not None:
            return level.screening.region
        if not level.problem.pieces:
            return None  # nothing to decide
        return Balls() if level.problem.fit_intercept else GapEnergy()

    @property
    def sharpens(self) -> bool:
        return self._quick

    def goes_on(self, level: Level) -> bool:
        # a quick step more, and a good part of the rows in doubt is decided
        return self.sharpens and bool(level.problem.pieces) and level.gap > _POLISH * level.target

    def steps(self, level: Level) -> Steps:
        if not self._begun:
            yield from self._begin(level)
        yield from self.arrive(level)
        yield from self._quick_steps(level)
        self._quick = False
        problem, gained = level.problem, True
        while gained:
            at = level.at
            system = NewtonSystem(problem, at)
            # what is left of the gradient costs about ‖residual‖²/(2κ) of the gap
            enough = 2.0 * _INNER * level.target * problem.strong_convexity
            step = yield from self._preconditioner.solve(system, at.subgradient, enough)
            gained = yield Proposal(point=at.point - step, searches=True)

    def _begin(self, level: Level) -> Steps:
        """Solve the problem of some rows, where there are many."""
        self._begun = True
        if level.begun or self._start is not None or level.problem.design.n_columns > LARGEST:
            return
        sampled = yield OnASample(level.problem, self.settings)
        if sampled is None:
            return
        yield Proposal(point=sampled.at.point, steps=0.0, promised=math.inf)
        gained = level.problem.reference - sampled.at.value
        if level.at.value - sampled.at.value > _LOST * gained:
            # the sample was learnt by heart: all rows are better off without it
            yield Proposal(point=level.problem.constant_point, steps=0.0)
            return
        whole = NewtonSystem(level.problem, level.at)
        yield from self._preconditioner.adopt(NewtonSystem(*sampled), whole)

    def _quick_steps(self, level: Level) -> Steps:
        """Steps of a pass each, while what they promise falls fast."""
        problem, memory = level.problem, Memory()
        inverse = self._preconditioner.inverse(_ridge(problem))
        if inverse is None:
            return
        step = memory.solve(level.at.subgradient, inverse)
        promised = _decrement(level.at, step)
        last = but_one = math.inf
        self._quick = True
        while promised <= _FAST * but_one:
            at, last, but_one = level.at, promised, last
            reached = yield Evaluate(problem, at.point - step)
            memory.add(reached.point - at.point, reached.subgradient - at.subgradient)
            step = memory.solve(reached.subgradient, inverse)
            promised = _decrement(reached, step)
            if not (yield Proposal(at=reached, promised=promised, searches=True)):
                return


class NewtonSystem:
    """The matrix κI + Q + Aᵀ diag(s f''/W) A at a point, by its products; flat rows are not read.

    Attributes
    ----------
    ridge : array
        κ for each coordinate, 0 for an intercept.
    n_products : int
        How many were computed.
    """

    def __init__(self, problem: Problem, at: Evaluation) -> None:
        self._rows, self._Q = rows_of(problem.design), problem.Q
        self._weights = problem.shares * problem.loss.curvature(at.pred, problem.y)
        self.ridge = _ridge(problem)
        self.n_products = 0

    def product(self, v: Array) -> Computation[Array]:
        self.n_products += 1
        out = yield CurvatureProduct(self._rows, v, self._weights)
        out = out + self.ridge * v
        return out if self._Q is None else out + self._Q @ v

    def diagonal(self) -> Computation[Array]:
        """Positive: 1 where the matrix has 0."""
        diagonal = (yield ColumnsSq(self._rows, self._weights)) + self.ridge
        if self._Q is not None:
            diagonal = diagonal + np.diag(self._Q)
        return np.where(diagonal > 0, diagonal, 1.0)

    def scaling(self) -> Computation[Callable[[Array], Array]]:
        """v ↦ about H⁻¹v, by the diagonal; with an intercept, by that of rows around their mean.

        With m the mean of the rows, weighted, x' = x and c' = c + mᵀx separate the intercept from
        the coefficients, whose matrix becomes Σ weights_i (a_i − m)(a_i − m)ᵀ.
        """
        diagonal, p = (yield from self.diagonal()), self._rows.n_features
        if not self._rows.intercept or self._Q is not None:
            return lambda v: v / diagonal
        mean = (yield Transposed(self._rows, self._weights))[:p] / diagonal[p]
        around = diagonal[:p] - diagonal[p] * mean**2
        around = np.maximum(around, np.maximum(self.ridge[:p], _SINGULAR * diagonal[:p]))

        def scaled(v: Array) -> Array:
            coef = (v[:p] - mean * v[p]) / around
            return np.append(coef, v[p] / diagonal[p] - mean @ coef)

        return scaled

    def gram(self) -> Array:
        """The matrix without the ridge."""
        gram = self._rows.gram(self._weights)
        return gram if self._Q is None else gram + self._Q


class Preconditioner:
    """The diagonal of a system, or the matrix of one that came before it.

    Parameters
    ----------
    patience : int
        So many products take the time of a matrix.
    """

    def __init__(self, patience: int) -> None:
        self._patience, self._spent = patience, 0
        self._gram: Array | None = None
        self._ridge: Array | None = None
        self._apply: Callable[[Array], Array] | None = None

    def solve(self, system: NewtonSystem, right: Array, enough: float) -> Computation[Array]:
        """About H⁻¹ right: see `conjugate_gradients`."""
        if self._spent >= self._patience and len(system.ridge) <= LARGEST:
            self._gram, self._ridge, self._spent = system.gram(), None, 0
        outcome, inverse = None, self.inverse(system.ridge)
        if inverse is not None:
            outcome = yield from conjugate_gradients(system.product, right, inverse, enough)
            if not outcome.solved:
                # where the system curves now, that matrix does not
                self._give_up()
        if outcome is None or not outcome.solved:
            scaling = yield from system.scaling()
            outcome = yield from conjugate_gradients(system.product, right, scaling, enough)
        self._spent += system.n_products
        return outcome.solution

    def adopt(self, sample: NewtonSystem, whole: NewtonSystem) -> Computation[None]:
        """Use the matrix of some rows for that of all of them.

        Columns in which the others have more are as curved as those make them: of rare ones, a
        sample may have nothing at all.
        """
        self._gram, self._ridge = sample.gram(), None
        missing = (yield from whole.diagonal()) - (yield from sample.diagonal())
        self._gram[np.diag_indices_from(self._gram)] += np.maximum(missing, 0.0)

    def inverse(self, ridge: Array) -> Callable[[Array], Array] | None:
        """v ↦ (matrix + ridge)⁻¹v; None where there is no matrix, or no use in it."""
        if self._gram is None:
            return None
        if self._ridge is None or not np.array_equal(self._ridge, ridge):
            self._ridge, self._apply = ridge, _inverse(self._gram, ridge)
            if self._apply is None:
                self._give_up()
        return self._apply

    def _give_up(self) -> None:
        self._gram = self._apply = None
        self._patience *= _MORE_PATIENCE


def _decrement(at: Evaluation, step: Array) -> float:
    """By how much the objective falls with a Newton step."""
    return 0.5 * float(at.subgradient @ step)


def _ridge(problem: Problem) -> Array:
    """κ for each coordinate, 0 for an intercept."""
    design = problem.design
    ridge = np.full(design.n_columns, problem.strong_convexity)
    ridge[design.n_features :] = 0.0
    return ridge


def _inverse(gram: Array, ridge: Array) -> Callable[[Array], Array] | None:
    """v ↦ (gram + ridge)⁻¹v; None where that is singular to rounding."""
    matrix = gram.copy()
    matrix[np.diag_indices_from(matrix)] += ridge
    try:
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    pivots = np.diag(factor[0]) ** 2
    if not pivots.min() > _SINGULAR * pivots.max():
        return None
    return lambda v: cho_solve(factor, v, check_finite=False)
