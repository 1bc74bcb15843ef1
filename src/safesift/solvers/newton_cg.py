"""Truncated Newton steps for l2 penalties and smooth losses, where columns are many or rows curve.

The Newton system (κI + Aᵀ diag(s f''/W) A)d = −g is solved by conjugate gradients on the rows that
curve, only as far as the gap aimed at needs. They are preconditioned by its diagonal; once products
have cost as much as a Gram matrix, by the matrix as it was then, which later steps and levels use,
too, until it has been outlived as long again. Where curvature changes with every step, as that of
the logistic loss does on every row, that spares most of the Gram matrices of a plain Newton method.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from safesift.design.base import Design
from safesift.problem.problem import Problem
from safesift.solvers.conjugate_gradients import Product, conjugate_gradients
from safesift.solvers.costs import passes_of_a_gram
from safesift.solvers.deciding import Found, decide_by_ball
from safesift.solvers.newton import LARGEST
from safesift.solvers.records import Fit, Settings
from safesift.solvers.track import Level, Track, follow

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# a step is solved to this share of the gap aimed at, if not to a share of the gradient
_INNER = 0.1
# pivots of a factor below this share of the largest are rounding
_SINGULAR = 1e-13
# a matrix that was of no use makes the next one worth so many times as many products
_MORE_PATIENCE = 4
# copied rows may be so many times as many as curve
_TOO_MANY = 1.2


def newton_cg(
    levels: Sequence[Sequence[Problem]],
    settings: Settings,
    starts: Sequence[Array | None] | None = None,
) -> Iterator[list[Fit]]:
    """Solve problems with an l2 penalty and a smooth loss along a path, however many columns.

    Parameters and result are those of `sparse_newton`. Rows on flat pieces are left out of every
    product; as the next step looks at all rows again, none of that needs a proof.
    """
    return follow(CGTrack, levels, settings, starts)


class CGTrack(Track):
    """Keeps a copy of the rows that curve, as long as not too many others are among them."""

    def __init__(self, problem: Problem, settings: Settings, start: Array | None) -> None:
        super().__init__(problem, settings, start)
        self._copied = np.zeros(problem.design.n_samples, dtype=bool)
        self._rows = problem.design.take(self._copied)
        self._preconditioner = Preconditioner(passes_of_a_gram(problem.design))

    def propose(self, level: Level) -> Array:
        problem, at = level.problem, level.at
        weights = problem.shares * problem.loss.curvature(at.pred, problem.y)
        self._copy(problem.design, weights > 0)
        system = NewtonSystem(problem, self._rows, weights[self._copied])
        # what is left of the gradient costs about ‖residual‖²/(2κ) of the gap
        enough = 2.0 * _INNER * level.target * problem.strong_convexity
        return at.point - self._preconditioner.solve(system, at.subgradient, enough)

    def _copy(self, design: Design, curved: Mask) -> None:
        missing = (curved & ~self._copied).any()
        if missing or self._copied.sum() > _TOO_MANY * curved.sum():
            self._copied, self._rows = curved, design.take(curved)

    def decide(self, level: Level) -> Found:
        return decide_by_ball(level.problem, level.at, level.gap)


class NewtonSystem:
    """The matrix κI + Q + Aᵀ diag(weights) A, by its products.

    Attributes
    ----------
    ridge : array
        κ for each coordinate, 0 for an intercept.
    n_products : int
        How many were computed.
    """

    def __init__(self, problem: Problem, rows: Design, weights: Array) -> None:
        self._rows, self._weights, self._Q = rows, weights, problem.Q
        self.ridge = np.full(rows.n_columns, problem.strong_convexity)
        self.ridge[rows.n_features :] = 0.0
        self.n_products = 0

    def product(self, v: Array) -> Array:
        self.n_products += 1
        _, out = self._rows.pass_through(v, lambda pred, part: self._weights[part] * pred)
        out += self.ridge * v
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
        self._apply: Product | None = None

    def solve(self, system: NewtonSystem, right: Array, enough: float) -> Array:
        """About H⁻¹ right: see `conjugate_gradients`."""
        if self._spent >= self._patience and len(system.ridge) <= LARGEST:
            self._gram, self._ridge, self._spent = system.gram(), None, 0
        if self._gram is not None and not np.array_equal(self._ridge, system.ridge):
            self._ridge, self._apply = system.ridge, _inverse(self._gram, system.ridge)
            if self._apply is None:
                self._give_up()
        outcome = None
        if self._apply is not None:
            outcome = conjugate_gradients(system.product, right, self._apply, enough)
            if not outcome.solved:
                # where the system curves now, that matrix does not
                self._give_up()
        if outcome is None or not outcome.solved:
            diagonal = system.diagonal()
            outcome = conjugate_gradients(system.product, right, lambda v: v / diagonal, enough)
        self._spent += system.n_products
        return outcome.solution

    def _give_up(self) -> None:
        self._gram = self._apply = None
        self._patience *= _MORE_PATIENCE


def _inverse(gram: Array, ridge: Array) -> Product | None:
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
