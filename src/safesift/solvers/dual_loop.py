"""The state of dual coordinate descent on one problem: dual variables, and the rows in the loop.

What a step on one row is, the loss says: `parabola_loop` and `entropy_loop` have the two kinds of
conjugates that there are steps for.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic import tally
from safesift.arithmetic.numerics import total
from safesift.design.rows import RowDesign, rows_of
from safesift.design.sparse import SparseDesign
from safesift.problem.decisions import Decisions
from safesift.problem.duality import Ray
from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.solvers.costs import mean_row_length

Array = NDArray[np.float64]
Rows = NDArray[np.intp] | slice

# an intercept is so many times as heavy as slopes would respond to it, were rows by themselves: of
# losses that curve, and of those with kinks
_HEAVY, _HEAVY_WITH_KINKS = 128.0, 4.0
# with kinks its centre creeps, as rows respond together and not by themselves: it is moved ahead,
# at most so many times as far
_FARTHEST = 2.0
# with kinks, in so many epochs of a cold start, it has this share of the weight of all features
_FIRST_EPOCHS, _AT_FIRST = 2, 0.1
# what it costs to make slopes cancel: so many times bias/alpha times the square of what is left
_BENT = 2.0
# an epoch makes the gap fall by as much as the one before, but by so much less since rows that come
# late are met when others have moved already, and by no more than to that share
_LATE, _MOST_FALL = 1.5, 0.25
# rows are taken to be at least that share of the typical squared norm away from their mean
_LEAST_RESPONSE = 1e-2


# with kinks, points of so many epochs are put together whose gap seemed to be at most so many times
# that of the last one
_MOST_RECENT, _ABOUT_AS_GOOD = 8, 1.5

# so many entries of a matrix that reading them from somewhere else in memory costs little
_ENTRIES, _MOST_NEIGHBOURS = 1024, 16


class Swept(NamedTuple):
    """What an epoch leaves behind: see `arithmetic.compiled.dual.epoch`."""

    n_active: int
    intercept: float
    spread: float
    worst: float
    gap: float


class Loop(ABC):
    """Epochs over the rows that are in the loop.

    Parameters
    ----------
    problem : Problem
    seed : int
    compiled : module
        The compiled epochs, and what the columns of their table are.
    curves : bool
        Whether the loss has no kinks.

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
    # the gap that rows were met with in the last epoch, infinite before there is one; whether that
    # tells the next one, which it does not where a look came too early
    _met: float
    _foresees: bool
    # the last move of the centre, and what the intercept weighed then
    _shifted: tuple[float, float]
    # how far the intercept may still move before rows that left the loop may have to come back
    _room: float

    def __init__(self, problem: Problem, seed: int, compiled: ModuleType, curves: bool) -> None:
        self._compiled, self._curves = compiled, curves
        design = rows_of(problem.design)
        self._matrix = _arrays(design)
        self._row_length = mean_row_length(design)
        self._group = int(np.clip(_ENTRIES / self._row_length, 1, _MOST_NEIGHBOURS))
        self._norms_sq = design.feature_norms_sq
        # the next random numbers; 0 is a fixed point of the sequence
        self._random = np.array([2 * seed + 1], dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        self._problem = problem
        self._first_worst, self._is_first = math.inf, True
        self._last: tuple[float, Array] | None = None
        self._intercept = problem.split(problem.constant_point)[1]
        self._table = np.zeros((problem.design.n_samples, compiled.COLUMNS))
        self._fill_table()
        self._z, self._spread, self._shift = np.zeros(problem.design.n_features), 0.0, 0.0
        self._middle, self._middle_sq = np.zeros(problem.design.n_features), 0.0
        self._bias = self._typical_sq = 0.0
        # before that many epochs nothing is known of the rows that will respond to an intercept
        self._unknown = 0 if self._curves else _FIRST_EPOCHS
        self._recent: deque[tuple[float, Array]] = deque(maxlen=_MOST_RECENT)
        if problem.fit_intercept:
            self._centre()

    # --- what the loss says -----------------------------------------------------------------

    @abstractmethod
    def _fill_table(self) -> None:
        """What the compiled steps need to know of the samples, and where they begin."""

    @abstractmethod
    def _begin_at(self, at: Evaluation) -> None:
        """Take the slopes at a point for dual variables."""

    @abstractmethod
    def _go_on(self, further: float, last: Array) -> None:
        """Go further on the line through the last state and the present one."""

    @abstractmethod
    def _take_up(self, nu: Array) -> None:
        """Go on with other dual variables."""

    @abstractmethod
    def _balanced(self) -> Array:
        """Dual variables near to those there are, that cancel as an intercept demands.

        Those that respond give way; where they have no room they are left as they are.
        """

    @property
    @abstractmethod
    def _state(self) -> Array:
        """What tells the dual variables, and may be extrapolated."""

    @abstractmethod
    def _softness(self, rows: Rows) -> tuple[Rows, Array | float]:
        """Those of some rows that respond to predictions, and how curved their conjugate is."""

    @abstractmethod
    def _sweep(self, margin: float) -> Swept:
        """An epoch."""

    def accelerate(self, target: float, estimate: float) -> None:
        """Something better than epochs, where there is something, and it is worth it."""
        return

    def _centre(self) -> None:
        """Measure rows from their mean: an intercept is then nobody else's work.

        It is as heavy as the other features together.
        """
        rows, norms_sq = self._problem.risk.rows, self._norms_sq
        middle, weight = rows.middle, float(rows.shares.sum()) or 1.0
        self._middle, self._middle_sq = middle.row, middle.row_sq
        self._table[:, self._compiled.ALONG] = middle.along
        self._norms_sq = np.maximum(norms_sq - 2.0 * middle.along + middle.row_sq, 0.0)
        self._typical_sq = total(rows.shares, norms_sq) / weight or 1.0

    # --- where to begin ---------------------------------------------------------------------

    def start_at(self, point: Array) -> None:
        """Begin with the slopes at a point."""
        at = self._problem.evaluate(point)
        self._begin_at(at)
        self._z, self._intercept = self._problem.split(point)
        self._unknown = 0

    def move_to(self, problem: Problem) -> None:
        """Go on with another alpha, from the dual variables as they are."""
        columns = self._compiled
        self._predict(problem.alpha)
        self._problem = problem
        self._recent.clear()
        # as coefficients grow, the prediction for the mean of the rows stays, not the intercept
        level = self._intercept + self._lifted
        step = problem.shares / problem.alpha
        self._table[:, columns.STEP] = step
        self._set_steps()
        self._left = np.flatnonzero(problem.shares > 0)
        self._unshrink()
        if problem.fit_intercept:
            self._weigh_intercept()
        self._shift, self._shifted = 0.0, (0.0, 0.0)
        self._refresh()
        if problem.fit_intercept:
            self._intercept = level - self._lifted
        # as far as predictions were off after the last change of alpha, they will be again
        self._worst = self._first_worst
        self._is_first = True
        self._met, self._foresees = math.inf, True

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
        problem = self._problem
        free, curvature = self._softness(self._in_loop)
        times = _HEAVY if self._curves else _HEAVY_WITH_KINKS
        # a row at the mean of all does not respond for ever
        norms_sq = np.maximum(self._norms_sq[free], _LEAST_RESPONSE * self._typical_sq)
        own = self._table[free, self._compiled.STEP] * norms_sq
        h = total(problem.shares[free], 1.0 / (curvature + own))
        # and no heavier than the other features together
        bias = min(times * problem.alpha / h, self._typical_sq) if h > 0 else self._typical_sq
        if self._unknown:
            bias = _AT_FIRST * self._typical_sq
        if not 0.5 * bias < self._bias < 2.0 * bias:
            self._bias = bias
            self._set_steps()

    @property
    def _in_loop(self) -> Rows:
        """The rows that are in the loop, as are all that respond to predictions."""
        some = self._active[: self._n_active]
        return slice(None) if len(some) == len(self._table) else some

    def _predict(self, alpha: float) -> None:
        """Dual variables for another alpha, on the line through the last two solutions."""
        here = self._state.copy()
        if self._last is not None and alpha != self._problem.alpha != self._last[0]:
            before, last = self._last
            # a quotient of alphas may be 0 or infinite
            new, old, oldest = (math.log(one) for one in (alpha, self._problem.alpha, before))
            self._go_on(min((new - old) / (old - oldest), 1.0) if old != oldest else 0.0, last)
            if self._problem.fit_intercept:
                # it would take what is left of slopes that do not cancel for its own work
                self._take_up(self._balanced())
        self._last = (self._problem.alpha, here)

    # --- epochs -----------------------------------------------------------------------------

    @property
    def nu(self) -> Array:
        return self._table[:, self._compiled.NU]

    @property
    def point(self) -> Array:
        return self._problem.join(self._z - self._spread * self._middle, self._intercept)

    @property
    def mean_point(self) -> Array:
        """The mean of the points of the last epochs, with kinks, where those settle slowly.

        Every epoch ends to another side of the solution then, and the objective is convex.
        """
        if len(self._recent) < 2:
            return self.point
        last = self._recent[-1][0]
        most = max(_ABOUT_AS_GOOD * last, last)
        # where a gap is no number, neither is what it is compared with
        return np.mean([point for gap, point in self._recent if not gap > most], axis=0)

    @property
    def _lifted(self) -> float:
        """What the coefficients add to the prediction for the mean of the rows."""
        return float(self._middle @ self._z) - self._spread * self._middle_sq

    @property
    def complete(self) -> bool:
        """Whether no row left the loop but those that were decided."""
        return self._n_active == len(self._left)

    @property
    def stuck(self) -> bool:
        """Whether the last epoch moved nothing, with all rows in the loop, nor the intercept."""
        return self.complete and self._worst == 0.0 and self._shift == 0.0

    def ray(self) -> Ray:
        """A dual point next to the present one that an intercept allows."""
        nu = self._balanced() if self._problem.fit_intercept else self.nu.copy()
        return Ray(nu, self._problem.design.rmatvec(self._problem.shares * nu), self.point)

    def _refresh(self) -> None:
        """Compute the coefficients afresh from the dual variables."""
        problem = self._problem
        gradient = problem.design.rmatvec(problem.shares * self.nu)
        self._z = -gradient[: problem.design.n_features] / problem.alpha
        self._spread = -float(gradient[-1]) / problem.alpha if problem.fit_intercept else 0.0

    def epoch(self, shrinks: bool) -> float:
        """A step on every row in the loop; about the gap of those rows afterwards."""
        problem = self._problem
        self._move_centre()
        tally.count(self._n_active)
        self.share_visited = self._n_active / max(problem.design.n_samples, 1)
        many = 2 * self._n_active > len(self._left)
        margin = self._worst if shrinks and self._worst > 0 else math.inf
        self._room = min(self._room, margin)
        swept = self._sweep(margin)
        self._n_active, self._intercept, self._spread, self._worst, gap = swept
        if self._is_first:
            self._first_worst, self._is_first = self._worst, False
        gap *= problem.alpha
        if problem.fit_intercept and (self._curves or gap <= self._missing()):
            self._shift = -self._bias * self._spread
        gap += self._unbalanced()
        if not self._curves:
            self._recent.append((gap, self.point))
        return self._afterwards(gap, many)

    def _afterwards(self, gap: float, many: bool) -> float:
        """About the gap behind an epoch, of that which rows were met with in it and the last one.

        Where the loss has kinks that is so for many of the rows, and not for an intercept: what is
        left settles slowly, and not from epoch to epoch.
        """
        before, self._met = self._met, gap
        steady = self._curves or (many and not self._problem.fit_intercept)
        if not (steady and self._foresees and 0.0 < before < math.inf):
            return gap
        return gap * min(max(_LATE * gap / before, _MOST_FALL), 1.0)

    def _move_centre(self) -> None:
        """The centre of the intercept becomes what it is, before an epoch that it has waited for.

        Not after one: with the slopes as they are it moves on by as much again, and predictions are
        what they should be only when those have followed.
        """
        shift, self._shift = self._shift, 0.0
        if self._unknown:
            self._unknown -= 1
            if self._problem.fit_intercept and not self._unknown:
                self._weigh_intercept()
        if shift == 0.0:
            return
        shift = self._ahead(shift)
        self._intercept -= shift
        self._weigh_intercept()
        self._went(abs(shift))

    def _ahead(self, shift: float) -> float:
        """How far the centre is to go, where each move became smaller by the same share."""
        (before, bias), self._shifted = self._shifted, (shift, self._bias)
        if self._curves or bias != self._bias or not before * shift > 0:
            return shift
        return shift / max(1.0 - shift / before, 1.0 / _FARTHEST)

    def _missing(self) -> float:
        """About what the intercept is missing, where every slope gives way.

        Where the loss has kinks, one epoch says too little about it before rows have settled.
        """
        rest = self._problem.alpha * abs(self._spread)
        return rest * (abs(self._intercept) + self._problem.unit)

    def _unbalanced(self) -> float:
        """About what it costs to make Σ shares_i ν_i = −alpha·spread vanish, with an intercept."""
        problem = self._problem
        if not problem.fit_intercept:
            return 0.0
        # slopes that respond give way together, as an intercept that is off makes them do; a power
        # of a float would raise where a product is infinite
        rest = problem.alpha * self._spread
        return _BENT * self._bias * (rest * self._spread)

    def _unshrink(self) -> None:
        self._active = self._left.copy()
        self._n_active, self._worst, self._room = len(self._active), math.inf, math.inf

    def _went(self, distance: float) -> None:
        """Of the intercept: rows that left may not be that far inside, and come back.

        Most of them leave again at once.
        """
        self._room -= distance
        if self._room < 0 and not self.complete:
            worst = self._worst
            self._unshrink()
            self._worst = worst

    def resume(self, decisions: Decisions | None) -> None:
        """All rows are in the loop again, but those whose dual variable is known."""
        if decisions is not None:
            left = self._left
            known = (decisions.dropped | decisions.folded)[left]
            known &= decisions.quadratic[left] == 0
            self._table[left[known], self._compiled.NU] = decisions.linear[left[known]]
            self._left = left[~known]
        self._refresh()
        self._unshrink()
        self._foresees = False


def _arrays(design: RowDesign) -> tuple[Any, ...]:
    """What the compiled loops know a matrix by."""
    if isinstance(design, SparseDesign):
        matrix = design.matrix
        return matrix.data, matrix.indices, matrix.indptr
    # half precision is not compiled for; float32 holds it exactly
    kind = np.float32 if design.data.dtype == np.float16 else design.data.dtype
    # of contiguous columns a copy: a row of them is as many places in memory, eight times as slow
    return (np.ascontiguousarray(design.data, dtype=kind),)
