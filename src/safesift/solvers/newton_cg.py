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

from safesift.design.rows import RowDesign, rows_of
from safesift.penalties import L2
from safesift.problem.evaluation import Evaluation
from safesift.problem.passes import Computation, CurvatureProduct
from safesift.problem.problem import Evaluate, Problem
from safesift.regions import Region
from safesift.regions.energy import GapEnergy
from safesift.solvers.base import Proposal, Solver, Steps, register
from safesift.solvers.conjugate_gradients import conjugate_gradients
from safesift.solvers.costs import LARGEST, passes_of_a_gram
from safesift.solvers.driver import Level
from safesift.solvers.quasi_newton import Memory
from safesift.solvers.records import Settings
from safesift.solvers.sampling import rows_of_a_sample, solved_on_a_sample

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# a step is solved to this share of the gap aimed at, if not to a share of the gradient
_INNER = 0.1
# pivots of a factor below this share of the largest are rounding
_SINGULAR = 1e-13
# a matrix that was of no use makes the next one worth so many times as many products
_MORE_PATIENCE = 4
# rows that are used may be so many times as many as curve, and are copied up to this share of all
_TOO_MANY, _WORTH_COPYING = 1.2, 0.5
# quasi-Newton steps are made as long as two of them make what they promise fall to this share
_FAST = 0.5
# what a level costs, for losses that curve everywhere and for those with pieces: measured on 20 000
# to 580 000 rows with 54, 267, 784 and 2304 columns
_PASSES, _PASSES_WITH_PIECES, _PASSES_FROM_A_SAMPLE = 50.0, 300.0, 15.0


@register
class NewtonCG(Solver):
    """Keeps a copy of the rows that curve, where they are few, and a preconditioner."""

    name = "newton_cg"
    looks = False

    def __init__(self, problem: Problem, settings: Settings, start: Array | None = None) -> None:
        super().__init__(problem, settings, start)
        self._used = np.zeros(problem.design.n_samples, dtype=bool)
        design = rows_of(problem.design)
        self._rows = design.hold(self._used)
        self._preconditioner = Preconditioner(passes_of_a_gram(design))
        self._begun = False

    @classmethod
    def refusal(cls, problem: Problem) -> str:
        if not isinstance(problem.penalty, L2):
            return f"the penalty {problem.penalty!r} is not l2"
        if math.isinf(problem.loss.smoothness):
            return f"the loss {problem.loss!r} has kinks"
        return "" if problem.design.has_rows else "it works with rows, not with a kernel"

    @classmethod
    def cost(cls, problem: Problem, n_levels: int) -> float:
        if problem.pieces:
            # Gram matrices tell more about the rows
            return _PASSES_WITH_PIECES
        return _PASSES_FROM_A_SAMPLE if rows_of_a_sample(problem) else _PASSES

    def region(self, level: Level) -> Region | None:
        return level.screening.region or GapEnergy()

    def steps(self, level: Level) -> Steps:
        if not self._begun:
            yield from self._begin(level)
        yield from self.arrive(level)
        yield from self._quick_steps(level)
        problem, gained = level.problem, True
        while gained:
            at = level.at
            weights = _bends(problem, at)
            self._use(rows_of(problem.design), weights > 0)
            system = NewtonSystem(problem, self._rows, weights[self._used])
            # what is left of the gradient costs about ‖residual‖²/(2κ) of the gap
            enough = 2.0 * _INNER * level.target * problem.strong_convexity
            step = yield from self._preconditioner.solve(system, at.subgradient, enough)
            gained = yield Proposal(point=at.point - step, searches=True)

    def _begin(self, level: Level) -> Steps:
        """Solve the problem of some rows, where there are many."""
        self._begun = True
        if level.begun or self._start is not None or level.problem.design.n_columns > LARGEST:
            return
        sampled = solved_on_a_sample(level.problem, self.settings)
        if sampled is None:
            return
        self._start = sampled.at.point
        yield from self.arrive(level, promised=math.inf)
        self._preconditioner.adopt(_system(*sampled), _system(level.problem, level.at))

    def _quick_steps(self, level: Level) -> Steps:
        """Steps of a pass each, while what they promise falls fast."""
        problem, memory = level.problem, Memory()
        inverse = self._preconditioner.inverse(_ridge(problem))
        if inverse is None:
            return
        step = memory.solve(level.at.subgradient, inverse)
        promised = _decrement(level.at, step)
        last = but_one = math.inf
        while promised <= _FAST * but_one:
            at, last, but_one = level.at, promised, last
            reached = yield Evaluate(problem, at.point - step)
            memory.add(reached.point - at.point, reached.subgradient - at.subgradient)
            step = memory.solve(reached.subgradient, inverse)
            promised = _decrement(reached, step)
            if not (yield Proposal(at=reached, promised=promised, searches=True)):
                return

    def _use(self, design: RowDesign, curved: Mask) -> None:
        """Rows on flat pieces are left out; the next step looks at all rows again."""
        missing = (curved & ~self._used).any()
        if not missing and self._used.sum() <= _TOO_MANY * curved.sum():
            return
        if curved.mean() > _WORTH_COPYING:
            # in products with all rows, other problems can share
            self._used, self._rows = np.ones_like(curved), design
        else:
            self._used, self._rows = curved, design.hold(curved)


class NewtonSystem:
    """The matrix κI + Q + Aᵀ diag(weights) A, by its products.

    Attributes
    ----------
    ridge : array
        κ for each coordinate, 0 for an intercept.
    n_products : int
        How many were computed.
    """

    def __init__(self, problem: Problem, rows: RowDesign, weights: Array) -> None:
        self._rows, self._weights, self._Q = rows, weights, problem.Q
        self.ridge = _ridge(problem)
        self.n_products = 0

    def product(self, v: Array) -> Computation[Array]:
        self.n_products += 1
        out = yield CurvatureProduct(self._rows, v, self._weights)
        out = out + self.ridge * v
        return out if self._Q is None else out + self._Q @ v

    def diagonal(self) -> Array:
        """Positive: 1 where the matrix has 0."""
        diagonal = self._rows.columns_sq(self._weights) + self.ridge
        if self._Q is not None:
            diagonal = diagonal + np.diag(self._Q)
        return np.where(diagonal > 0, diagonal, 1.0)

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
            diagonal = system.diagonal()
            outcome = yield from conjugate_gradients(
                system.product, right, lambda v: v / diagonal, enough
            )
        self._spent += system.n_products
        return outcome.solution

    def adopt(self, sample: NewtonSystem, whole: NewtonSystem) -> None:
        """Use the matrix of some rows for that of all of them.

        Columns in which the others have more are as curved as those make them: of rare ones, a
        sample may have nothing at all.
        """
        self._gram, self._ridge = sample.gram(), None
        missing = whole.diagonal() - sample.diagonal()
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


def _system(problem: Problem, at: Evaluation) -> NewtonSystem:
    """That of a Newton step which reads every row."""
    return NewtonSystem(problem, rows_of(problem.design), _bends(problem, at))


def _bends(problem: Problem, at: Evaluation) -> Array:
    """s_i f''/W of the rows."""
    return problem.shares * problem.loss.curvature(at.pred, problem.y)


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
