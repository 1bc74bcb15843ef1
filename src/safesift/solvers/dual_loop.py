"""The state of dual coordinate descent on one problem: dual variables, and the rows in the loop.

Proximal points of the dual by semismooth Newton steps on the primal, for few columns.

Coordinate steps find out quickly which dual variables are at a bound, and slowly what the others
are where the loss has kinks. The proximal point

    argmax_v D(v) − ½·width·Σ shares_i (v_i − ν_i)²

is the dual solution of a smooth problem: each loss is replaced by its envelope around ν_i, whose
slope is v_i(t), and Newton's method solves that in a few steps (Li, Sun and Toh, *A highly
efficient semismooth Newton augmented Lagrangian method*, SIAM J. Optim. 2018). As widths shrink a
few proximal points lead to the solution, also of an unpenalised intercept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic import tally
from safesift.arithmetic.numerics import norm, solve_positive, total
from safesift.design.rows import RowDesign, rows_of
from safesift.design.sparse import SparseDesign
from safesift.losses.dual_form import DualForm
from safesift.problem.decisions import Decisions
from safesift.problem.duality import Ray
from safesift.problem.problem import Problem
from safesift.solvers.costs import PRODUCTS_PER_ENTRY, mean_row_length
from safesift.solvers.line_search import backtrack

Array = NDArray[np.float64]


_SHRINK, _MOST_POINTS, _MOST_STEPS = 0.2, 12, 12


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
        part = replace(part, nu=steps.slopes)
        if part.gap(steps.pred) <= target:
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
            share = self._search(point, step, gradient)
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

    def _search(self, point: Array, step: Array, gradient: Array) -> float:
        """The share of the step at which the objective has fallen enough; 0 for none."""
        self._moved = self._part.design.matvec(step)

        def along(share: float) -> float:
            return self._value(point + share * step, self.pred + share * self._moved)

        here, slope = self._value(point, self.pred), float(gradient @ step)
        return backtrack(along, here, slope=0.1 * slope).share

    def _value(self, point: Array, pred: Array) -> float:
        part, v = self._part, self._part.pulled(pred, self._width)
        near = 0.5 * self._width * (v - part.nu) ** 2
        envelopes = total(part.shares, pred * v - part.form.value(v) - near)
        return envelopes + float(part.rest @ point + 0.5 * (self._ridge * point) @ point)


# an intercept is so many times as heavy as slopes would respond to it, were rows by themselves: of
# losses that curve, and of those with kinks
_HEAVY, _HEAVY_WITH_KINKS = 128.0, 4.0
# rows are taken to be at least that share of the typical squared norm away from their mean
_LEAST_RESPONSE = 1e-2


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

    # what changes with alpha: `move_to` comes before any epoch
    _left: NDArray[np.intp]
    _active: NDArray[np.intp]
    _n_active: int
    _worst: float
    # how far the intercept may still move before rows that left the loop may have to come back
    _room: float

    def __init__(self, problem: Problem, seed: int) -> None:
        from safesift.arithmetic.compiled import dual

        self._compiled = dual
        form, design = problem.loss.dual_form(problem.y), rows_of(problem.design)
        assert form is not None, "others are refused"
        self._form, self._matrix = form, _arrays(design)
        self._row_length = mean_row_length(design)
        self._group = int(np.clip(_ENTRIES / self._row_length, 1, _MOST_NEIGHBOURS))
        self._entries_visited, self._patience = 0.0, 1.0
        self._norms_sq = design.feature_norms_sq
        # the next random numbers; 0 is a fixed point of the sequence
        self._random = np.array([2 * seed + 1], dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        self._problem = problem
        self._first_worst, self._is_first = math.inf, True
        self._last: tuple[float, Array] | None = None
        self._table = self._new_table()
        self._intercept = problem.split(problem.constant_point)[1]
        self._z, self._spread, self._shift = np.zeros(problem.design.n_features), 0.0, 0.0
        self._middle, self._middle_sq = np.zeros(problem.design.n_features), 0.0
        self._bias = self._typical_sq = 0.0
        if problem.fit_intercept:
            self._centre()

    def _new_table(self) -> Array:
        columns, form = self._compiled, self._form
        table = np.zeros((self._problem.design.n_samples, columns.COLUMNS))
        table[:, columns.LOW], table[:, columns.HIGH] = form.low, form.high
        table[:, columns.LEAST], table[:, columns.MOST] = form.least, form.most
        return table

    def _centre(self) -> None:
        """Measure rows from their mean: an intercept is then nobody else's work.

        It is as heavy as the other features together.
        """
        problem, shares = self._problem, self._problem.shares
        weight = float(shares.sum()) or 1.0
        self._middle = problem.design.rmatvec(shares / weight)[:-1]
        along, middle_sq = (
            problem.design.matvec(problem.join(self._middle)),
            norm(self._middle) ** 2,
        )
        self._table[:, self._compiled.ALONG] = along
        norms_sq = self._norms_sq
        self._norms_sq = np.maximum(norms_sq - 2.0 * along + middle_sq, 0.0)
        self._middle_sq = middle_sq
        self._typical_sq = total(shares, norms_sq) / weight or 1.0

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
        self._set_steps()
        if problem.fit_intercept:
            self._weigh_intercept()
        self._left = np.flatnonzero(problem.shares > 0)
        self.ray()
        self._unshrink()
        # as far as predictions were off after the last change of alpha, they will be again
        self._worst = self._first_worst
        self._is_first = True

    def _set_steps(self) -> None:
        """How far a step on each row moves its prediction."""
        columns = self._compiled
        self._table[:, columns.Q] = self._table[:, columns.STEP] * (self._norms_sq + self._bias)

    def _weigh_intercept(self) -> None:
        """How heavy the intercept is, next to its centre: about as heavy as is needed.

        With h = Σ s_i/(curvature + s_i‖a_i‖²/alpha) over the rows that respond to it, the slopes
        are off by about h times what the intercept is: a weight of alpha/h, or a few times that,
        finds it in a few rounds, and more would make every row wait for all others.
        """
        problem, nu, form = self._problem, self.nu, self._form
        free = (nu > form.least) & (nu < form.most) & (nu != 0) & (problem.shares > 0)
        if not free.any():
            free = problem.shares > 0
        # a row at the mean of all does not respond for ever
        norms_sq = np.maximum(self._norms_sq[free], _LEAST_RESPONSE * self._typical_sq)
        own = self._table[free, self._compiled.STEP] * norms_sq
        h = total(problem.shares[free], 1.0 / (form.curvature + own))
        times = _HEAVY if form.curvature > 0 else _HEAVY_WITH_KINKS
        # and no heavier than the other features together
        bias = min(times * problem.alpha / h, self._typical_sq)
        if not 0.5 * bias < self._bias < 2.0 * bias:
            self._bias = bias
            self._set_steps()

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
        return self._problem.join(self._z - self._spread * self._middle, self._intercept)

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
        self._z = -gradient[: problem.design.n_features] / problem.alpha
        self._spread = -float(gradient[-1]) / problem.alpha if problem.fit_intercept else 0.0
        return Ray(self.nu.copy(), gradient, self.point)

    def epoch(self, shrinks: bool) -> float:
        """A step on every row in the loop; about the gap of those rows before their steps."""
        problem = self._problem
        tally.count(self._n_active)
        self.share_visited = self._n_active / max(problem.design.n_samples, 1)
        self._entries_visited += self._n_active * self._row_length
        margin = self._worst if shrinks and self._worst > 0 else math.inf
        self._room = min(self._room, margin)
        (
            self._n_active, self._intercept, self._spread, self._worst, gap,
        ) = self._compiled.epoch(
            self._matrix, self._active, self._n_active, self._group, self._table,
            self._form.curvature, self._bias + self._middle_sq, self._z, self._intercept,
            self._spread, margin, self._random,
        )  # fmt: skip
        if self._is_first:
            self._first_worst, self._is_first = self._worst, False
        gap *= problem.alpha
        unbalanced = self._unbalanced()
        # where the loss has kinks, one epoch says too little about what the intercept is missing
        self._shift = 0.0
        if problem.fit_intercept and (self._form.curvature > 0 or gap <= unbalanced):
            self._shift = self._bias / problem.alpha * total(problem.shares, self.nu)
            self._intercept -= self._shift
            self._weigh_intercept()
            self._room -= abs(self._shift)
            if self._room < 0 and not self.complete:
                # rows that left were not that far inside
                self._unshrink()
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
            design=rows_of(problem.design).take(rows),
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
        self._n_active, self._worst, self._room = len(self._active), math.inf, math.inf

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


def _arrays(design: RowDesign) -> tuple[Any, ...]:
    """What the compiled loops know a matrix by."""
    if isinstance(design, SparseDesign):
        matrix = design.matrix
        return matrix.data, matrix.indices, matrix.indptr
    array = design.data
    # half precision is not compiled for; float32 holds it exactly
    return (array.astype(np.float32) if array.dtype == np.float16 else array,)
