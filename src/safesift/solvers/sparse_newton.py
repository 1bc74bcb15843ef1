"""Proximal Newton steps on a working set of features, for l1 and elastic net.

Few coefficients are not zero. Steps see only the columns of a *working set* of features, and one by
one only the rows that may change piece; all others are in a matrix of the size of that set
(`solvers.local_model`). After every step one pass over the data measures the gap on all rows and
all features, and tells which features and which rows were missing. Where the set is large and rows
are sparse, its columns are gone through one by one instead (`solvers.column_model`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from safesift.design import SparseDesign
from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.regions import Region
from safesift.solvers.column_model import Accuracy, ColumnModel
from safesift.solvers.deciding import Found, decide_by_gap
from safesift.solvers.local_model import local_model
from safesift.solvers.newton import LARGEST
from safesift.solvers.records import Fit, Settings
from safesift.solvers.track import Level, Track, decided_by, follow
from safesift.solvers.working_gram import WorkingGram

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# features whose gradient is above this share of the threshold enter a new working set, and those
# that are zero with one below this share leave it
_NEAR, _FAR = 0.9, 0.8
# as many features may enter a working set as are not zero, or this many
_FEW = 100
# beyond so many features of sparse rows, a step goes from column to column
_MANY = 600
# rows may change piece that are nearer to its end than they moved at the last level, or than this
# share of what they moved in the last step: Newton steps shrink fast
_LAST_STEP = 0.2
# far from the end, curvature that is off by this share serves, or slopes that are
_ROUGH = 0.1
# the model is solved to this share of the gap aimed at, or of the slopes that belong to it
_INNER, _SLOPES = 1e-4, 0.1


def sparse_newton(
    levels: Sequence[Sequence[Problem]],
    settings: Settings,
    starts: Sequence[Array | None] | None = None,
) -> Iterator[list[Fit]]:
    """Solve problems with an l1 or elastic-net penalty and a smooth loss along a path.

    Parameters
    ----------
    levels : sequence of sequences of Problem
        `levels[i][k]` is problem k at the i-th alpha; problem k has the same design, y, loss and
        weights at every level.
    settings : Settings
    starts : sequence of arrays, optional
        A point for each problem of the first level.

    Yields
    ------
    list of Fit
        Of one level after another, a fit for each problem.
    """
    return follow(SparseTrack, levels, settings, starts)


class SparseTrack(Track):
    """Keeps a Gram matrix of the working set, and how far the rows moved."""

    def __init__(self, problem: Problem, settings: Settings, start: Array | None) -> None:
        super().__init__(problem, settings, start)
        self._gram = WorkingGram(problem.design)
        self._columns_sq = problem.design.columns_sq(problem.shares)
        self._moved = np.zeros(problem.design.n_samples)
        self._inside = np.zeros(problem.design.n_features, dtype=bool)
        self._columns: ColumnModel | None = None
        self._by_columns = False
        self._in_vain: Level | None = None
        pulls = any(
            ((piece.quadratic == 0) & (piece.linear != 0)).any() for piece in problem.pieces
        )
        self._may_go_by_columns = (
            isinstance(problem.design, SparseDesign) and problem.folded is None and not pulls
        )

    def advance(self, level: Level) -> bool:
        if super().advance(level):
            return True
        if level.ended or not self._by_columns or self._inside.sum() > LARGEST:
            return False
        # rows that change piece may send such steps to and fro: others know of them
        self._in_vain = level
        return super().advance(level)

    def propose(self, level: Level) -> Array:
        self._inside = self._working_set(level)
        many = int(self._inside.sum()) > _MANY
        self._by_columns = many and self._may_go_by_columns and self._in_vain is not level
        if self._by_columns:
            return self._step_by_columns(level)
        return self._step_by_gram(level)

    def _step_by_columns(self, level: Level) -> Array:
        problem, at = level.problem, level.at
        if self._columns is None:
            self._columns = ColumnModel(problem.design)
        # slopes that exceed alpha by a share cost about that share of the objective
        threshold = problem.penalty.sparse_threshold(problem.alpha)
        enough = _SLOPES * threshold * level.target / max(at.value, level.target)
        accuracy = Accuracy(enough, _rough(level))
        return self._columns.minimiser(problem, at, self._inside, accuracy)

    def _step_by_gram(self, level: Level) -> Array:
        at, exact = level.at, self._exact_rows(level)
        model = local_model(level.problem, at, self._gram, self._inside, exact, _rough(level))
        point = at.point.copy()
        point[self._gram.columns] = model.minimiser(_INNER * level.target)
        return point

    def moved(self, before: Evaluation, at: Evaluation) -> None:
        self._moved = np.abs(at.pred - before.pred)

    def decide(self, level: Level) -> Found:
        return decide_by_gap(level.problem, level.at, level.gap, self._gram, self._columns_sq)

    def _working_set(self, level: Level) -> Mask:
        """The features that are not zero or may not stay it."""
        problem, p = level.problem, level.problem.design.n_features
        threshold = problem.penalty.sparse_threshold(problem.alpha)
        slopes = np.abs(problem.smooth_gradient(level.at)[:p])
        nonzero = level.at.point[:p] != 0
        most = max(_FEW, int(nonzero.sum()))
        if level.n_iter == 0:
            return nonzero | _steepest(slopes, ~nonzero, _NEAR * threshold, most)
        inside = nonzero | (self._inside & (slopes >= _FAR * threshold))
        return inside | _steepest(slopes, ~inside, threshold, most)

    def _exact_rows(self, level: Level) -> Mask:
        """The rows that a Taylor expansion does not serve: those that may change piece."""
        problem, screening = level.problem, self.settings.screening
        if screening is None:
            return np.zeros(problem.design.n_samples, dtype=bool)
        if isinstance(screening, Region):
            return decided_by(screening, problem, level.at).decisions.undecided
        reach = self._moved if level.n_iter == 0 else _LAST_STEP * self._moved
        return (_distance_to_kinks(problem, level.at) < reach) & (problem.shares > 0)


def _rough(level: Level) -> float:
    """How rough a step may be: the closer to the end, the more exact it is."""
    return _ROUGH * math.sqrt(min(level.gap / level.reference, 1.0))


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


def _distance_to_kinks(problem: Problem, at: Evaluation) -> Array:
    """How far the predictions are from the next end of a piece of their loss."""
    distance = np.full(problem.design.n_samples, math.inf)
    for piece in problem.pieces:
        for end in (piece.lower, piece.upper):
            np.fmin(distance, np.abs(at.pred - end), out=distance)
    return distance
