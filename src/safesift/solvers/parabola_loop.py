"""Dual coordinate descent where the conjugate is a parabola with one kink, as with the hinges.

Coordinate steps find out quickly which dual variables are at a bound, and slowly what the others
are where the loss has kinks. With few columns, the proximal point

    argmax_v D(v) − ½·width·Σ shares_i (v_i − ν_i)²

is the dual solution of a smooth problem: each loss is replaced by its envelope around ν_i, whose
slope is v_i(t), and Newton's method solves that in a few steps (Li, Sun and Toh, *A highly
efficient semismooth Newton augmented Lagrangian method*, SIAM J. Optim. 2018). As widths shrink a
few proximal points lead to the solution, also of an unpenalised intercept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic import tally
from safesift.arithmetic.numerics import norm, solve_positive, total
from safesift.design.rows import RowDesign, rows_of
from safesift.losses.dual_form import DualForm
from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.solvers.costs import PRODUCTS_PER_ENTRY
from safesift.solvers.dual_loop import Loop, Rows, Swept
from safesift.solvers.line_search import root_of_rising

Array = NDArray[np.float64]


_SHRINK, _MOST_POINTS, _MOST_STEPS = 0.4, 20, 30


# how much smaller than at the start the gradient is where Newton's method ends
_ACCURACY = 1e-9


@dataclass(frozen=True, eq=False)
class Part:
    """The dual problem in some of its variables.

    Attributes
    ----------
    design : RowDesign
        The rows that belong to them.
    form : DualForm
    shares, nu : arrays of shape (n_rows,)
    rest : array of shape (n_columns,)
        Σ shares_i ν_i a_i over all other rows.
    alpha : float
    """

    design: RowDesign
    form: DualForm
    shares: Array
    nu: Array
    rest: Array
    alpha: float

    def pulled(self, pred: Array, width: float) -> Array:
        """The slopes of the envelopes at the predictions."""
        form, pull = self.form, pred + width * self.nu
        beyond = pull - np.clip(pull, form.low, form.high)
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes = np.where(beyond == 0, 0.0, beyond / (form.curvature + width))
        return np.clip(slopes, form.least, form.most)

    def gap(self, pred: Array) -> float:
        """Σ shares_i (f(t_i) + f*(ν_i) − t_i ν_i)."""
        slope = self.pulled(pred, 0.0)
        lost = pred * (slope - self.nu) - self.form.value(slope) + self.form.value(self.nu)
        return total(self.shares, lost)


def proximal_points(part: Part, point: Array, width: float, target: float) -> tuple[Array, Array]:
    """Dual variables of a gap of about `target`, or some way there, with their primal point."""
    for _ in range(_MOST_POINTS):
        steps = _Envelope(part, width)
        point = steps.minimise(point)
        part, before = replace(part, nu=steps.slopes), part.nu
        if part.gap(steps.pred) <= target or np.array_equal(part.nu, before):
            break
        width *= _SHRINK
    return part.nu, point


class _Envelope:
    """½·alpha·‖x‖² + restᵀ(x, c) + Σ shares_i·(envelope of f_i around ν_i)."""

    # at the point that was reached
    pred: Array
    slopes: Array

    def __init__(self, part: Part, width: float) -> None:
        self._part, self._width = part, width
        self._ridge = np.full(part.design.n_columns, part.alpha)
        self._ridge[part.design.n_features :] = 0.0

    def minimise(self, point: Array) -> Array:
        part = self._part
        self.pred = part.design.matvec(point)
        largest = None
        for _ in range(_MOST_STEPS):
            self.slopes = part.pulled(self.pred, self._width)
            gradient = part.design.rmatvec(part.shares * self.slopes)
            gradient += self._ridge * point + part.rest
            size = norm(gradient)
            largest = size if largest is None else max(largest, size)
            if size <= _ACCURACY * largest:
                break
            step = -self._solve(gradient)
            share = self._search(step, gradient)
            if share == 0.0:
                break
            point = point + share * step
            self.pred = self.pred + share * self._moved
        self.slopes = part.pulled(self.pred, self._width)
        return point

    def _solve(self, gradient: Array) -> Array:
        part, form = self._part, self._part.form
        inner = (self.slopes > form.least) & (self.slopes < form.most) & (self.slopes != 0)
        weights = np.where(inner, part.shares / (form.curvature + self._width), 0.0)
        return solve_positive(part.design.gram(weights) + np.diag(self._ridge), gradient)

    def _search(self, step: Array, gradient: Array) -> float:
        """The share of the step at which the objective is least; 0 where it does not fall."""
        part, width = self._part, self._width
        self._moved = moved = part.design.matvec(step)
        weights = part.shares * moved
        bend, before = float((self._ridge * step) @ step), total(weights, self.slopes)
        here = float(gradient @ step)

        def slope(share: float) -> float:
            slopes = part.pulled(self.pred + share * moved, width)
            return here + share * bend + total(weights, slopes) - before

        return root_of_rising(slope, here)


# Newton's method costs about so many steps, and beyond so many columns always too much
_NEWTON_STEPS, _LARGEST_GRAM = 30, 1000
# where half of the rows have left the loop, those are followed that moved by this share of what the
# fastest did, where they are at most that share of those in the loop; until the gap they make has
# fallen to that share of what it was, and for at most that share of an epoch's time
_HALF, _FAST, _FEW, _FALLEN, _TIME = 0.5, 0.2, 0.1, 0.1, 0.5


class ParabolaLoop(Loop):
    """Epochs where f* is a parabola with one kink (`losses.dual_form`)."""

    def __init__(self, problem: Problem, seed: int) -> None:
        from safesift.arithmetic.compiled import dual

        form = problem.loss.dual_form(problem.y)
        assert form is not None, "others are refused"
        self._form = form
        self._entries_visited, self._patience = 0.0, 1.0
        super().__init__(problem, seed, dual, curves=form.curvature > 0)

    def move_to(self, problem: Problem) -> None:
        super().move_to(problem)
        # at each alpha epochs are given their chance
        self._entries_visited = 0.0

    def _fill_table(self) -> None:
        columns, form, table = self._compiled, self._form, self._table
        table[:, columns.LOW], table[:, columns.HIGH] = form.low, form.high
        table[:, columns.LEAST], table[:, columns.MOST] = form.least, form.most

    def _begin_at(self, at: Evaluation) -> None:
        usable = np.isfinite(at.nu) & (self._problem.shares > 0)
        self.nu[:] = np.where(usable, at.nu, 0.0)

    @property
    def _state(self) -> Array:
        return self.nu

    def _go_on(self, further: float, last: Array) -> None:
        moved = self.nu + further * (self.nu - last)
        self.nu[:] = np.clip(moved, self._form.least, self._form.most)

    def _take_up(self, nu: Array) -> None:
        self.nu[:] = nu

    def _balanced(self) -> Array:
        # a copy: numbers of a column of the table are far apart in memory
        nu, form, shares = self.nu.copy(), self._form, self._problem.shares
        rest = total(shares, nu)
        if rest == 0:
            return nu
        # each of those between their ends by the same share of its way: to the kink at 0, or to
        # the end that is further; where there is none, as far again
        excess, end = (nu, -form.least) if rest > 0 else (-nu, form.most)
        way = np.where(excess > 0, excess, np.minimum(end + excess, -excess))
        way[(nu <= form.least) | (nu >= form.most)] = 0.0
        room = total(shares, way) / abs(rest)
        return nu - math.copysign(1.0 / room, rest) * way if room >= 1.0 else nu

    def _softness(self, rows: Rows) -> tuple[Rows, float]:
        nu, form = self.nu[rows], self._form
        free = np.flatnonzero((nu > form.least[rows]) & (nu < form.most[rows]) & (nu != 0))
        if not len(free):
            return rows, form.curvature
        return (free if isinstance(rows, slice) else rows[free]), form.curvature

    def _sweep(self, margin: float) -> Swept:
        self._entries_visited += self._n_active * self._row_length
        if self._curves or self._narrow or self._n_active > _HALF * len(self._left):
            return self._swept(margin)
        rows = self._active[: self._n_active].copy()
        before = self.nu[rows]
        swept = self._swept(margin)
        moved = np.abs(self.nu[rows] - before)
        fast = rows[moved >= _FAST * moved.max(initial=0.0)]
        return self._followed(fast, swept) if 1 < len(fast) <= _FEW * len(rows) else swept

    def _swept(self, margin: float) -> Swept:
        return Swept(
            *self._compiled.epoch(
                self._matrix, self._active, self._n_active, self._group, self._table,
                self._form.curvature, self._bias + self._middle_sq, self._z, self._intercept,
                self._spread, margin, self._random,
            )
        )  # fmt: skip

    def _followed(self, rows: NDArray[np.intp], swept: Swept) -> Swept:
        """Go on with the few rows that move the most.

        Two rows that are nearly the same move against each other by a little in every epoch, for
        hundreds of them, while all others wait.
        """
        most = max(int(_TIME * self._n_active / len(rows)), 1)
        n_epochs, intercept, spread = self._compiled.epochs(
            self._matrix, rows, most, _FALLEN, self._table, self._form.curvature,
            self._bias + self._middle_sq, self._z, swept.intercept, swept.spread, self._random,
        )  # fmt: skip
        tally.count(n_epochs * len(rows))
        self.share_visited += n_epochs * len(rows) / self._problem.design.n_samples
        return swept._replace(intercept=intercept, spread=spread)

    @property
    def _narrow(self) -> bool:
        """Whether Newton's method is there for what epochs are slow at."""
        return self._problem.design.n_columns <= _LARGEST_GRAM

    def accelerate(self, target: float, estimate: float) -> None:
        """Proximal points in the variables that are in the loop, once epochs have cost as much.

        They are taken if they make the gap smaller than it was estimated to be: that of all rows,
        where the intercept went further than those that left the loop are known to be inside.
        """
        problem, p = self._problem, self._problem.design.n_columns
        cost = _NEWTON_STEPS * p * (p * p / 3 + self._n_active * self._row_length)
        costly = self._entries_visited < self._patience * cost / PRODUCTS_PER_ENTRY
        if not self._narrow or costly or not 0 < self._worst < math.inf:
            return
        self._entries_visited = 0.0
        here, before = np.sort(self._active[: self._n_active]), (self.nu.copy(), self._intercept)
        part = self._part(here)
        self.nu[here], point = proximal_points(part, self.point, self._worst, target)
        self._intercept = problem.split(point)[1]
        self._refresh()
        distance = abs(self._intercept - before[1])
        part = replace(part, nu=self.nu[here]) if distance <= self._room else self._whole
        if not part.gap(part.design.matvec(self.point)) + self._unbalanced() <= estimate:
            self.nu[:], self._intercept = before
            self._refresh()
            self._patience *= 4.0
        else:
            self._went(distance)

    @property
    def _whole(self) -> Part:
        """All variables, of which none is left."""
        problem = self._problem
        design, nothing = rows_of(problem.design), np.zeros(problem.design.n_columns)
        return Part(design, self._form, problem.shares, self.nu, nothing, problem.alpha)

    def _part(self, rows: NDArray) -> Part:
        problem = self._problem
        others = problem.shares * self.nu
        others[rows] = 0.0
        return Part(
            design=rows_of(problem.design).take(rows),
            form=self._form.take(rows),
            shares=problem.shares[rows],
            nu=self.nu[rows],
            rest=problem.design.rmatvec(others),
            alpha=problem.alpha,
        )
