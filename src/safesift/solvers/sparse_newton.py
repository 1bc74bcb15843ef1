"""Proximal Newton steps on a working set of features, for l1 and elastic net.

Few coefficients are not zero. Steps see only the columns of a *working set* of features, and one by
one only the rows that may change piece; all others are in a matrix of the size of that set
(`solvers.local_model`). After every step one pass over the data measures the gap on all rows and
all features, and tells which features and which rows were missing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from safesift import progress
from safesift.design.tally import Tally, counting
from safesift.duality import DualPoint
from safesift.numerics import EPS, total
from safesift.problem import Evaluation, Problem
from safesift.regions import Region
from safesift.screening import decide
from safesift.solvers.deciding import Found, decide_by_gap
from safesift.solvers.local_model import local_model
from safesift.solvers.newton import reference_value
from safesift.solvers.records import Check, Fit, Settings, Solution
from safesift.solvers.working_gram import WorkingGram

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# features whose gradient is above this share of the threshold enter a new working set
_NEAR = 0.7
# rows may change piece that are nearer to its end than they moved at the last level, or than this
# share of what they moved in the last step: Newton steps shrink fast
_LAST_STEP = 0.2
# the model is solved to this share of the gap aimed at
_INNER = 1e-4


def sparse_newton(
    levels: Sequence[Sequence[Problem]],
    settings: Settings,
    starts: Sequence[Array | None] | None = None,
) -> list[list[Fit]]:
    """Solve problems with an l1 or elastic-net penalty and a smooth loss along a path.

    Parameters
    ----------
    levels : sequence of sequences of Problem
        `levels[i][k]` is problem k at the i-th alpha; problem k has the same design, y, loss and
        weights at every level.
    settings : Settings
    starts : sequence of arrays, optional
        A point for each problem of the first level.

    Returns
    -------
    list of lists of Fit
        `[i][k]` belongs to `levels[i][k]`.
    """
    starts = [None] * len(levels[0]) if starts is None else starts
    tracks = [
        _Track(problem, settings, start)
        for problem, start in zip(levels[0], starts, strict=True)
    ]
    return [
        [track.solve(problem) for track, problem in zip(tracks, problems, strict=True)]
        for problems in levels
    ]


class _Track:
    """One problem, followed from level to level: where it stands, and what its rows did."""

    def __init__(self, problem: Problem, settings: Settings, start: Array | None) -> None:
        self._settings = settings
        self._gram = WorkingGram(problem.design)
        self._columns_sq = problem.design.columns_sq(problem.shares)
        self._start = problem.constant_point if start is None else start
        self._at: Evaluation | None = None
        self._moved = np.zeros(problem.design.n_samples)

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def solve(self, problem: Problem) -> Fit:
        with counting() as tally:
            level = _Level(problem, self._settings, tally, self._arrive(problem))
            while not level.ended and self._advance(level):
                level.check(None)
            found = self._decide(level)
            if not found.by_ellipsoid and level.n_iter and self._advance(level):
                # a step more, and the gap is small enough to decide by
                found = self._decide(level)
            level.check(found)
        self._moved = level.at.pred - level.first.pred
        self._at = level.at
        return level.fit(found)

    def _arrive(self, problem: Problem) -> Evaluation:
        return problem.evaluate(self._start) if self._at is None else problem.reevaluate(self._at)

    def _advance(self, level: _Level) -> bool:
        """One model, one pass; False where it does not go down any more."""
        problem, at = level.problem, level.at
        features, exact = self._working_set(level), self._exact_rows(problem, at)
        model = local_model(problem, at, self._gram, features, exact)
        point = at.point.copy()
        point[self._gram.columns] = model.minimiser(_INNER * level.target)
        reached = problem.evaluate(point)
        if not reached.value <= at.value:
            reached = problem.evaluate(_best_between(problem, at, reached))
        if not reached.value <= at.value + 8 * EPS * abs(at.value):
            return False
        self._moved = _LAST_STEP * (reached.pred - at.pred)
        return level.move(reached)

    def _working_set(self, level: _Level) -> Mask:
        """The features that are not zero or may not stay it; within a level it grows."""
        problem, p = level.problem, level.problem.design.n_features
        threshold = problem.penalty.sparse_threshold(problem.alpha)
        slopes = np.abs(problem.smooth_gradient(level.at)[:p])
        nonzero = level.at.point[:p] != 0
        if level.n_iter == 0:
            return nonzero | (slopes >= _NEAR * threshold)
        return nonzero | (slopes > threshold) | self._gram.features

    def _exact_rows(self, problem: Problem, at: Evaluation) -> Mask:
        """The rows that a Taylor expansion does not serve: those that may change piece."""
        screening = self._settings.screening
        if screening is None:
            return np.zeros(problem.design.n_samples, dtype=bool)
        if isinstance(screening, Region):
            return _decided_by(screening, problem, at).decisions.undecided
        return (_distance_to_kinks(problem, at) < np.abs(self._moved)) & (problem.shares > 0)

    def _decide(self, level: _Level) -> Found:
        screening = self._settings.screening
        if isinstance(screening, Region):
            return _decided_by(screening, level.problem, level.at)
        return decide_by_gap(level.problem, level.at, level.gap, self._gram, self._columns_sq)


class _Level:
    """One problem at one level: the point, the best dual point, the gap, and its history."""

    def __init__(
        self, problem: Problem, settings: Settings, tally: Tally, first: Evaluation
    ) -> None:
        self.problem, self.first, self.at = problem, first, first
        self.reference = reference_value(problem)
        self.target, self.n_iter = settings.tol * self.reference, 0
        self._max_iter, self._tally = settings.max_iter, tally
        self._began = time.perf_counter()
        self._history: list[Check] = []
        self._measure(None)

    @property
    def ended(self) -> bool:
        return self.gap <= self.target or self.n_iter >= self._max_iter

    def _measure(self, known: DualPoint | None) -> None:
        self.dual = self.problem.best_dual(self.at, known)
        self.gap = self.problem.gap(self.at, self.dual)

    def move(self, at: Evaluation) -> bool:
        self.at, self.n_iter = at, self.n_iter + 1
        progress.report("solver", self.n_iter, self._max_iter)
        self._measure(self.dual)
        return True

    def check(self, found: Found | None) -> None:
        """Write down how things stand; without decisions, nothing is decided."""
        n, p = self.problem.design.n_samples, self.problem.design.n_features
        self._history.append(
            Check(
                passes=self._tally.rows / max(n, 1),
                seconds=time.perf_counter() - self._began,
                gap=self.gap,
                relative_gap=self.gap / self.reference,
                n_kept=n if found is None else int((~found.decisions.dropped).sum()),
                n_undecided=n if found is None else int(found.decisions.undecided.sum()),
                n_features=p if found is None else p - int(found.zero.sum()),
            )
        )

    def fit(self, found: Found) -> Fit:
        solution = Solution(
            at=self.at,
            dual=self.dual,
            gap=self.gap,
            reference=self.reference,
            n_iter=self.n_iter,
            converged=self.gap <= self.target,
        )
        return Fit(self.problem, solution, found.decisions, tuple(self._history))


def _decided_by(region: Region, problem: Problem, at: Evaluation) -> Found:
    test_set = region.build(problem, at)
    zero = test_set.zero_features(problem.design.n_features)
    return Found(decide(problem, test_set.bounds(problem.design), "always"), zero, True)


def _distance_to_kinks(problem: Problem, at: Evaluation) -> Array:
    """How far the predictions are from the next end of a piece of their loss."""
    distance = np.full(problem.design.n_samples, math.inf)
    for piece in problem.loss.pieces(problem.y):
        for end in (piece.lower, piece.upper):
            np.fmin(distance, np.abs(at.pred - end), out=distance)
    return distance


def _best_between(problem: Problem, at: Evaluation, reached: Evaluation) -> Array:
    """The best point between two evaluations, found without a pass over the data."""
    change, moved = reached.point - at.point, reached.pred - at.pred

    def objective(share: float) -> float:
        point = at.point + share * change
        losses = problem.loss.value(at.pred + share * moved, problem.y)
        folded = 0.0 if problem.folded is None else problem.folded.value(point)
        penalty = problem.alpha * problem.penalty.value(problem.split(point)[0])
        return total(problem.shares, losses) + folded + penalty

    found = minimize_scalar(objective, bounds=(0.0, 1.0), method="bounded")
    return at.point + float(found.x) * change
