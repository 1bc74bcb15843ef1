"""The state of dual coordinate descent on one problem: dual variables, and the rows in the loop."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic import tally
from safesift.arithmetic.numerics import total
from safesift.design.base import Design
from safesift.design.sparse import SparseDesign
from safesift.problem.decisions import Decisions
from safesift.problem.duality import Ray
from safesift.problem.problem import Problem
from safesift.solvers.costs import PRODUCTS_PER_ENTRY, mean_row_length
from safesift.solvers.dual_newton import Part, proximal_points

Array = NDArray[np.float64]

# so many entries of a matrix that reading them from somewhere else in memory costs little
_ENTRIES, _MOST_NEIGHBOURS = 1024, 16
# Newton's method costs about so many steps, and beyond so many columns always too much
_NEWTON_STEPS, _LARGEST_GRAM = 50, 1000


class Loop:
    """Epochs over the rows that are in the loop.

    Attributes
    ----------
    point : array
        x(ν) and the intercept.
    share_visited : float
        Of all rows, by the last epoch.
    """

    def __init__(self, problem: Problem, seed: int) -> None:
        from safesift.arithmetic.compiled import dual

        self._compiled = dual
        self._form = problem.loss.dual_form(problem.y)
        self._matrix = _arrays(problem.design)
        self._row_length = mean_row_length(problem.design)
        self._group = int(np.clip(_ENTRIES / self._row_length, 1, _MOST_NEIGHBOURS))
        self._entries_visited, self._patience = 0.0, 1.0
        self._norms_sq = norms_sq = problem.design.feature_norms_sq
        # the next random numbers; 0 is a fixed point of the sequence
        self._random = np.array([2 * seed + 1], dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        # an intercept is as heavy as the other features together
        mean_sq = total(problem.shares, norms_sq) / (float(problem.shares.sum()) or 1.0)
        self._bias = (mean_sq or 1.0) if problem.fit_intercept else 0.0
        self._problem = problem
        self._first_worst, self._is_first = math.inf, True
        self._last: tuple[float, Array] | None = None
        self._table = self._new_table()
        self._intercept = problem.split(problem.constant_point)[1]
        self._coef, self._shift = np.zeros(problem.design.n_features), 0.0

    def _new_table(self) -> Array:
        columns, form = self._compiled, self._form
        table = np.zeros((self._problem.design.n_samples, columns.COLUMNS))
        table[:, columns.LOW], table[:, columns.HIGH] = form.low, form.high
        table[:, columns.LEAST], table[:, columns.MOST] = form.least, form.most
        return table

    # --- where to begin ---------------------------------------------------------------------

    def start_at(self, point: Array) -> None:
        """Begin with the slopes at a point."""
        at = self._problem.evaluate(point)
        usable = np.isfinite(at.nu) & (self._problem.shares > 0)
        self._table[:, self._compiled.NU] = np.where(usable, at.nu, 0.0)
        self._intercept = self._problem.split(point)[1]

    def move_to(self, problem: Problem) -> None:
        """Go on with another alpha, from the dual variables as they are."""
        columns = self._compiled
        self._predict(problem.alpha)
        self._problem = problem
        step = problem.shares / problem.alpha
        self._table[:, columns.STEP] = step
        self._table[:, columns.Q] = step * (self._norms_sq + self._bias)
        self._left = np.flatnonzero(problem.shares > 0)
        self.ray()
        self._unshrink()
        # as far as predictions were off after the last change of alpha, they will be again
        self._worst = self._first_worst
        self._is_first = True

    def _predict(self, alpha: float) -> None:
        """Dual variables for another alpha, on the line through the last two solutions."""
        form, here = self._form, self.nu.copy()
        if self._last is not None and alpha != self._problem.alpha != self._last[0]:
            before, nu = self._last
            rate = math.log(alpha / self._problem.alpha) / math.log(self._problem.alpha / before)
            self.nu[:] = np.clip(here + min(rate, 1.0) * (here - nu), form.least, form.most)
        self._last = (self._problem.alpha, here)

    # --- epochs -----------------------------------------------------------------------------

    @property
    def nu(self) -> Array:
        return self._table[:, self._compiled.NU]

    @property
    def point(self) -> Array:
        return self._problem.join(self._coef, self._intercept)

    @property
    def complete(self) -> bool:
        """Whether no row left the loop but those that were decided."""
        return self._n_active == len(self._left)

    @property
    def stuck(self) -> bool:
        """Whether the last epoch moved nothing, with all rows in the loop, nor the intercept."""
        return self.complete and self._worst == 0.0 and self._shift == 0.0

    def ray(self) -> Ray:
        """The dual point; the coefficients are computed afresh from it."""
        problem = self._problem
        gradient = problem.design.rmatvec(problem.shares * self.nu)
        self._coef = -gradient[: problem.design.n_features] / problem.alpha
        return Ray(self.nu.copy(), gradient, self.point)

    def epoch(self, shrinks: bool) -> float:
        """A step on every row in the loop; about the gap of those rows before their steps."""
        problem = self._problem
        tally.count(self._n_active)
        self.share_visited = self._n_active / max(problem.design.n_samples, 1)
        self._entries_visited += self._n_active * self._row_length
        margin = self._worst if shrinks and self._worst > 0 else math.inf
        self._n_active, self._intercept, self._worst, gap = self._compiled.epoch(
            self._matrix, self._active, self._n_active, self._group, self._table,
            self._form.curvature, self._bias, self._coef, self._intercept, margin, self._random,
        )  # fmt: skip
        if self._is_first:
            self._first_worst, self._is_first = self._worst, False
        gap *= problem.alpha
        unbalanced = self._unbalanced()
        # where the loss has kinks, one epoch says too little about what the intercept is missing
        self._shift = 0.0
        if self._form.curvature > 0 or gap <= unbalanced:
            self._shift = self._bias / problem.alpha * total(problem.shares, self.nu)
            self._intercept -= self._shift
        return gap + unbalanced

    # --- all variables in the loop at once --------------------------------------------------

    def accelerate(self, target: float, estimate: float) -> None:
        """Proximal points in the variables that are in the loop, once epochs have cost as much.

        They are taken if they make the gap smaller than it was estimated to be.
        """
        problem, p = self._problem, self._problem.design.n_columns
        cost = _NEWTON_STEPS * p * (p * p / 3 + self._n_active * self._row_length)
        costly = self._entries_visited < self._patience * cost / PRODUCTS_PER_ENTRY
        if p > _LARGEST_GRAM or costly or not 0 < self._worst < math.inf:
            return
        self._entries_visited = 0.0
        here, before = np.sort(self._active[: self._n_active]), (self.nu.copy(), self._intercept)
        part = self._part(here)
        self.nu[here], point = proximal_points(part, self.point, self._worst, target)
        self._intercept = problem.split(point)[1]
        self.ray()
        part = replace(part, nu=self.nu[here])
        if not part.gap(part.design.matvec(self.point)) + self._unbalanced() <= estimate:
            self.nu[:], self._intercept = before
            self.ray()
            self._patience *= 4.0

    def _part(self, rows: NDArray) -> Part:
        problem = self._problem
        others = problem.shares * self.nu
        others[rows] = 0.0
        return Part(
            design=problem.design.take(rows),
            form=self._form.take(rows),
            shares=problem.shares[rows],
            nu=self.nu[rows],
            rest=problem.design.rmatvec(others),
            alpha=problem.alpha,
        )

    def _unbalanced(self) -> float:
        """About what it costs to make Σ shares_i ν_i vanish, with an intercept."""
        problem = self._problem
        if not problem.fit_intercept:
            return 0.0
        return abs(total(problem.shares, self.nu)) * (abs(self._intercept) + problem.unit)

    def _unshrink(self) -> None:
        self._active = self._left.copy()
        self._n_active, self._worst = len(self._active), math.inf

    def resume(self, decisions: Decisions | None) -> None:
        """All rows are in the loop again, but those whose dual variable is known."""
        if decisions is not None:
            left = self._left
            known = (decisions.dropped | decisions.folded)[left]
            known &= decisions.quadratic[left] == 0
            self._table[left[known], self._compiled.NU] = decisions.linear[left[known]]
            self._left = left[~known]
            self.ray()
        self._unshrink()


def _arrays(design: Design) -> tuple[Any, ...]:
    """What the compiled loops know a matrix by."""
    if isinstance(design, SparseDesign):
        matrix = design.matrix
        return matrix.data, matrix.indices, matrix.indptr
    return (design.data,)
