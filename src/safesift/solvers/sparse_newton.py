"""Proximal Newton steps on a working set of features, for l1 and elastic net.

Few coefficients are not zero. Steps see only the columns of a *working set* of features, and one by
one only the rows that may change piece; all others are in a matrix of the size of that set
(`solvers.views`). After every step one pass over the data measures the gap on all rows and all
features, and tells which features and which rows were missing. Where the set is large and rows are
sparse, its columns are gone through one by one instead (`solvers.column_model`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from safesift.design import SparseDesign
from safesift.design.rows import rows_of
from safesift.penalties import L1, ElasticNet
from safesift.problem.gram import WorkingGram
from safesift.problem.passes import Computation
from safesift.problem.problem import Problem
from safesift.regions import Region
from safesift.regions.energy import GapEnergy
from safesift.solvers.base import Proposal, Solver, Steps, register
from safesift.solvers.column_model import Accuracy, ColumnModel, Reached
from safesift.solvers.costs import LARGEST, mean_row_length
from safesift.solvers.driver import Level
from safesift.solvers.records import Settings
from safesift.solvers.sampling import start_on_a_sample
from safesift.solvers.screening import near_kinks
from safesift.solvers.steps import NewtonSteps
from safesift.solvers.views import SomeRows

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# features whose gradient is above this share of the threshold enter a new working set, and those
# that are zero with one below this share leave it
_NEAR, _FAR = 0.9, 0.8
# as many features may enter a working set as are not zero, or this many; where steps begin far
# from the solution and go from column to column, ever more would enter one step after the other
_FEW, _FEW_FROM_AFAR = 100, 1000
# up to so many columns of sparse rows all features are in the working set: their matrix costs what
# the rows have entries, and to pick columns out of such rows takes longer than it saves
_FEW_COLUMNS = 400
# of rows of so many features, a step on so many goes from column to column: at once where steps
# begin far from the solution, since a matrix of some of many features, which come and go, is not
# worth it; later if the columns have at most so many entries for every entry of a matrix. Without
# an intercept, which makes columns less alike, epochs need more
_WIDE, _MANY, _ENTRIES = 600, 50, {False: 10.0, True: 100.0}
# so many steps by columns that creep, one after the other, and the matrix takes over
_OFTEN = 2
# rows may change piece that are nearer to its end than they moved at the last level, or than this
# share of what they moved in the last step: Newton steps shrink fast
_LAST_STEP = 0.2
# up to so many rows per column of the working set, a step sees all of them: that costs no more than
# to factor the matrix, and long steps take rows across pieces that nobody thought of
_ALL_ROWS = 10
# far from the end, curvature that is off by this share serves, or slopes that are
_ROUGH = 0.1
# the model is solved to this share of the gap aimed at, or of the slopes that belong to it
_INNER, _SLOPES, _MOST_STEPS = 1e-4, 0.3, 50
# relative gap at which few rows are in doubt, and where a working set is large, so that it takes
# long to decide those, one at which hardly any are; a step leads there from a small one
_SHARP, _SHARPER, _SMALL = 1e-6, 1e-8, 1e-5
# entries of a matrix from which on a start from a sample of the rows is worth its steps
_LARGE = 2e6
# what a level costs at least
_PASSES = 10.0


@register
class SparseNewton(Solver):
    """Keeps a Gram matrix of the working set, and how far the rows moved."""

    name = "sparse_newton"
    looks = False

    def __init__(self, problem: Problem, settings: Settings, start: Array | None = None) -> None:
        super().__init__(problem, settings, start)
        self._gram = WorkingGram(rows_of(problem.design))
        self._moved = np.zeros(problem.design.n_samples)
        self._inside = np.zeros(problem.design.n_features, dtype=bool)
        # by how much the objective was to fall in the last step
        self._promised = math.inf
        self._columns: ColumnModel | None = None
        pulls = any(
            ((piece.quadratic == 0) & (piece.linear != 0)).any() for piece in problem.pieces
        )
        design, by_columns = problem.design, problem.folded is None and not pulls
        self._sparse = design if by_columns and isinstance(design, SparseDesign) else None

    @classmethod
    def refusal(cls, problem: Problem) -> str:
        penalty = problem.penalty
        if not isinstance(penalty, L1 | ElasticNet) or not penalty.sparse_threshold(1.0) > 0:
            return f"the penalty {penalty!r} leaves no coefficient at zero"
        if math.isinf(problem.loss.smoothness):
            return f"the loss {problem.loss!r} has kinks"
        return "" if problem.design.has_rows else "it works with rows, not with a kernel"

    @classmethod
    def cost(cls, problem: Problem, n_levels: int) -> float:
        # never more than a matrix of all columns would be
        return min(_PASSES, 0.5 * problem.design.n_columns / 20.0)

    @property
    def sharpens(self) -> bool:
        return self._columns is None

    def goes_on(self, level: Level) -> bool:
        return level.gap > self._aim(level)

    def _aim(self, level: Level) -> float:
        """The gap to reach: that asked for, or a smaller one where steps soon are exact.

        Of a loss of quadratic pieces one step more then costs less than to decide the rows that a
        larger gap leaves in doubt.
        """
        problem, sharp = level.problem, math.inf
        if problem.loss.quadratic_rays:
            small = max(level.gap, level.asked) <= _SMALL * problem.reference
            by_columns = _SHARPER if small else math.inf
            sharp = _SHARP if self.sharpens else by_columns
        return min(level.target, sharp * problem.reference)

    def region(self, level: Level) -> Region | None:
        return level.screening.region or GapEnergy(self._gram)

    def steps(self, level: Level) -> Steps:
        past = level.past
        if past is not None:
            self._moved = past.movement
        elif not level.begun and self._start is None and _is_large(level.problem):
            self._start = yield from start_on_a_sample(level.problem, self.settings, self.name)
        yield from self.arrive(level, 0.0 if past is None else math.inf)
        if past is not None:
            # from one alpha to the next the objective falls by about what it was off before
            self._promised = abs(past.at.value - level.at.value)
        is_first, in_vain, unsettled = True, False, 0
        while True:
            self._inside = self._working_set(level, is_first)
            by_columns = self._column_model(level)
            before = level.at
            if by_columns is not None and not in_vain:
                point, self._promised, settled = self._step_by_columns(level, by_columns)
                unsettled = 0 if settled else unsettled + 1
            else:
                point = yield from self._step_by_gram(level, is_first)
            gained = yield Proposal(point=point, searches=True, promised=self._promised)
            if level.at is not before:
                self._moved, is_first = np.abs(level.at.pred - before.pred), False
            creeps = unsettled >= _OFTEN
            if gained and not (creeps and level.converged):
                in_vain = in_vain or (creeps and self._fits)
                continue
            # rows that change piece may send steps by columns to and fro: others know of them
            if in_vain or by_columns is None or not self._fits or level.converged:
                return
            in_vain = True

    @property
    def _fits(self) -> bool:
        """Whether there may be a matrix of the working set."""
        return int(self._inside.sum()) <= LARGEST

    def _column_model(self, level: Level) -> ColumnModel | None:
        """For steps from column to column, where the working set is large; None for others."""
        k = int(self._inside.sum())
        if self._sparse is None or self._sparse.n_features <= _WIDE or k <= _MANY:
            return None
        most = math.inf if level.past is None else _ENTRIES[level.problem.fit_intercept] * k * k
        if self._sparse.column_lengths[self._inside].sum() > most:
            return None
        if self._columns is None:
            self._columns = ColumnModel(self._sparse)
        return self._columns

    def _step_by_columns(self, level: Level, columns: ColumnModel) -> Reached:
        problem, at, aim = level.problem, level.at, self._aim(level)
        # slopes that exceed alpha by a share cost about that share of the objective
        threshold = problem.penalty.sparse_threshold(problem.alpha)
        enough = _SLOPES * threshold * aim / max(at.value, aim)
        return columns.minimiser(problem, at, self._inside, Accuracy(enough, self._rough(level)))

    def _step_by_gram(self, level: Level, is_first: bool) -> Computation[Array]:
        """The minimiser of the model in the working set, with some rows as they are.

        The Gram matrix is moved to the features and to the curvature at the point, except for rows
        whose curvature is off by a small share: steps then converge linearly, fast.
        """
        problem, at, gram = level.problem, level.at, self._gram
        rows = self._exact_rows(level, is_first)
        weights = problem.shares * problem.loss.curvature(at.pred, problem.y)
        close = np.abs(weights - gram.weights) <= self._rough(level) * weights
        weights = np.where(close, gram.weights, weights)
        yield from gram.selecting(self._inside)
        yield from gram.moving(weights)
        view = SomeRows(problem, at, gram, rows)
        began = view.here.value
        curvature = np.diag(gram.matrix)
        steps = NewtonSteps(np.where(curvature > 0, curvature, 1.0))
        yield from steps.settle(view, _INNER * self._aim(level), _MOST_STEPS, level.report)
        gram.adopt(view.gram, rows)
        self._promised = began - view.here.value
        point = at.point.copy()
        point[gram.columns] = view.here.point
        return point

    def _rough(self, level: Level) -> float:
        """How rough a step may be: the closer to the end, the more exact it is."""
        left = level.gap if level.measured else self._promised
        return _ROUGH * math.sqrt(min(left / level.problem.reference, 1.0))

    def _working_set(self, level: Level, is_first: bool) -> Mask:
        """The features that are not zero or may not stay it."""
        problem, p = level.problem, level.problem.design.n_features
        if isinstance(problem.design, SparseDesign) and p <= _FEW_COLUMNS:
            return np.ones(p, dtype=bool)
        threshold = problem.penalty.sparse_threshold(problem.alpha)
        slopes = np.abs(problem.smooth_gradient(level.at)[:p])
        nonzero = level.at.point[:p] != 0
        afar = level.past is None and self._sparse is not None
        most = max(_FEW_FROM_AFAR if afar else _FEW, int(nonzero.sum()))
        if is_first:
            return nonzero | _steepest(slopes, ~nonzero, _NEAR * threshold, most)
        inside = nonzero | (self._inside & (slopes >= _FAR * threshold))
        return inside | _steepest(slopes, ~inside, threshold, most)

    def _exact_rows(self, level: Level, is_first: bool) -> NDArray[np.intp]:
        """The rows that an expansion does not serve: those that may change piece."""
        screening, problem, n = level.screening, level.problem, level.problem.design.n_samples
        if n <= _ALL_ROWS * self._inside.sum() and problem.pieces:
            return np.arange(n)
        if screening.region is not None:
            return np.flatnonzero(screening.undecided(level.certificate))
        if not screening.guesses or not problem.pieces:
            return np.empty(0, dtype=np.intp)
        return near_kinks(problem, level.at, (1.0 if is_first else _LAST_STEP) * self._moved)


def _is_large(problem: Problem) -> bool:
    """Whether passes over the data take long next to all that is done between them."""
    design = rows_of(problem.design)
    return design.n_samples * mean_row_length(design) >= _LARGE


def _steepest(slopes: Array, outside: Mask, threshold: float, most: int) -> Mask:
    """The features outside a working set whose slope is above a threshold, not too many of them.

    Far from the solution, which a cold start at a small alpha is, nearly all would enter, and
    nearly all in vain.
    """
    found = np.flatnonzero((slopes >= threshold) & outside)
    if len(found) > most:
        found = found[np.argpartition(-slopes[found], most)[:most]]
    steepest = np.zeros(len(slopes), dtype=bool)
    steepest[found] = True
    return steepest
