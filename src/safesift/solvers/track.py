"""One problem after another along a path: measure, advance, decide. Solvers say how to advance."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from safesift import progress
from safesift.arithmetic.numerics import EPS, total
from safesift.arithmetic.tally import Tally, counting
from safesift.problem.decisions import Decisions, decide
from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.regions import Region
from safesift.solvers.deciding import Found
from safesift.solvers.line_search import best_share
from safesift.solvers.newton import reference_value
from safesift.solvers.records import Check, Fit, Settings, Solution

Array = NDArray[np.float64]


class Track(ABC):
    """One problem, followed from level to level, with what a solver keeps on the way.

    Attributes
    ----------
    settings : Settings
    """

    def __init__(self, problem: Problem, settings: Settings, start: Array | None) -> None:
        self.settings = settings
        self._start = problem.constant_point if start is None else problem.feasible(start)
        self._at: Evaluation | None = None

    @abstractmethod
    def propose(self, level: Level) -> Array | None:
        """A point to go to from `level.at`; None where there is none."""

    @abstractmethod
    def decide(self, level: Level) -> Found:
        """What is proved of the rows at `level.at`."""

    def moved(self, before: Evaluation, at: Evaluation) -> None:
        """Told of every step, and of the whole way at the end of a level."""
        return

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def solve(self, problem: Problem) -> Fit:
        """Solve the problem of the next level."""
        with counting() as tally:
            first = self._arrive(problem)
            level = Level(problem, self.settings, tally, first)
            while not level.ended and self.advance(level):
                level.check(None)
            found = self._decided(level)
            if not found.complete and level.converged and self.advance(level):
                # one step more, and the gap is small enough to decide by
                found = self._decided(level)
            level.check(found)
        self.moved(first, level.at)
        self._at = level.at
        return level.fit(found)

    def _arrive(self, problem: Problem) -> Evaluation:
        if self._at is None:
            return problem.evaluate(self._start)
        if problem.penalty.contains(problem.split(self._at.point)[0]):
            return problem.reevaluate(self._at)
        return problem.evaluate(problem.feasible(self._at.point))

    def _decided(self, level: Level) -> Found:
        if isinstance(self.settings.screening, Region):
            return decided_by(self.settings.screening, level.problem, level.at)
        return self.decide(level)

    def advance(self, level: Level) -> bool:
        """One proposal, one pass; False where it does not get any better."""
        problem, at = level.problem, level.at
        point = self.propose(level)
        if point is None:
            return False
        reached = problem.evaluate(point)
        if not reached.value <= at.value:
            reached = problem.evaluate(_best_between(problem, at, reached))
        room, gap = 8 * EPS * abs(at.value), level.gap
        if not reached.value <= at.value + room:
            return False
        level.move(reached)
        self.moved(at, reached)
        # at the end of the arithmetic the value stands still; the gap may still fall
        return reached.value < at.value - room or level.gap < 0.9 * gap


def follow(
    track: type[Track],
    levels: Sequence[Sequence[Problem]],
    settings: Settings,
    starts: Sequence[Array | None] | None,
) -> Iterator[list[Fit]]:
    """Solve `levels[i][k]` for every i and k, each problem k on a track of its own."""
    starts = [None] * len(levels[0]) if starts is None else starts
    tracks = [
        track(problem, settings, start) for problem, start in zip(levels[0], starts, strict=True)
    ]
    for problems in levels:
        yield [track.solve(problem) for track, problem in zip(tracks, problems, strict=True)]


class Level:
    """One problem at one level: the point, the best dual point, the gap, and its history."""

    def __init__(
        self, problem: Problem, settings: Settings, tally: Tally, first: Evaluation
    ) -> None:
        self.problem, self.at = problem, first
        self.reference = reference_value(problem)
        self.target, self.n_iter = settings.tol * self.reference, 0
        self._max_iter, self._tally = settings.max_iter, tally
        self._began = time.perf_counter()
        self._history: list[Check] = []
        self.dual = problem.best_dual(first)
        self.gap = problem.gap(first, self.dual)

    @property
    def converged(self) -> bool:
        return self.gap <= self.target

    @property
    def ended(self) -> bool:
        return self.converged or self.n_iter >= self._max_iter

    def move(self, at: Evaluation) -> None:
        """Count a step: take the point unless it is worse, and its dual point if that is better."""
        self.n_iter += 1
        progress.report("solver", self.n_iter, self._max_iter)
        self.dual = self.problem.best_dual(at, self.dual)
        if at.value <= self.at.value + 8 * EPS * abs(self.at.value):
            self.at = at
        self.gap = self.problem.gap(self.at, self.dual)

    def check(self, found: Found | None) -> None:
        """Write down how things stand; without decisions, nothing is decided."""
        n, p = self.problem.design.n_samples, self.problem.design.n_features
        decisions = Decisions.nothing(self.problem) if found is None else found.decisions
        self._history.append(
            Check.of(
                decisions,
                gap=self.gap,
                reference=self.reference,
                passes=self._tally.rows / max(n, 1),
                began=self._began,
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
            converged=self.converged,
        )
        return Fit(self.problem, solution, found.decisions, tuple(self._history))


def decided_by(region: Region, problem: Problem, at: Evaluation) -> Found:
    """What a region proves of the rows."""
    test_set = region.build(problem, at)
    zero = test_set.zero_features(problem.design.n_features)
    return Found(decide(problem, test_set.row_bounds(problem.design), "always"), zero, True)


def _best_between(problem: Problem, at: Evaluation, reached: Evaluation) -> Array:
    """The best point between two evaluations, found without a pass over the data."""
    change, moved = reached.point - at.point, reached.pred - at.pred

    def objective(share: float) -> float:
        point = at.point + share * change
        losses = problem.loss.value(at.pred + share * moved, problem.y)
        folded = 0.0 if problem.folded is None else problem.folded.value(point)
        penalty = problem.alpha * problem.penalty.value(problem.split(point)[0])
        return total(problem.shares, losses) + folded + penalty

    return at.point + best_share(objective) * change
