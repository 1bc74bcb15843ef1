"""Paths by Newton's method on the Gram matrix: what one level leaves behind, the next one uses."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.tally import Tally, counting
from safesift.problem.decisions import Decisions, decide
from safesift.problem.problem import Problem
from safesift.regions import Region
from safesift.regions.base import TestSet
from safesift.solvers.certify import quick_region, thorough_region, worth_more
from safesift.solvers.doubt import Doubt, EveryRow, Guess, Undecided
from safesift.solvers.lockstep import Run, alone, together
from safesift.solvers.newton import Memory, NewtonRun, check_columns, reference_value
from safesift.solvers.records import Check, Fit, Settings

Array = NDArray[np.float64]

# a start is found on this share of the rows, at least so many per column, if that is few of them
_SAMPLED, _PER_COLUMN, _WORTH = 16, 8, 4
# relative gap of that start
_ROUGH = 1e-3


def newton_path(
    levels: Sequence[Sequence[Problem]],
    settings: Settings,
    starts: Sequence[Array | None] | None = None,
) -> Iterator[list[Fit]]:
    """`solve_path` for problems with few features: see there."""
    check_columns(levels[0][0])
    tracks = [_Track(problem, settings, settings.decides(k)) for k, problem in enumerate(levels[0])]
    for track, start in zip(tracks, starts or [], strict=False):
        track.start = start
    for problems in levels:
        yield _one_level(tracks, problems)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _one_level(tracks: Sequence[_Track], problems: Sequence[Problem]) -> list[Fit]:
    with counting() as tally:
        pairs = zip(tracks, problems, strict=True)
        return together([track.level(problem, tally) for track, problem in pairs])


class _Track:
    """One problem along the levels of a path."""

    start: Array | Memory | None = None

    def __init__(self, problem: Problem, settings: Settings, decides: bool) -> None:
        self._settings, self._decides = settings, decides
        self._reference = reference_value(problem)
        self._doubt = _doubt(problem, settings)

    def level(self, problem: Problem, tally: Tally) -> Run[Fit]:
        settings = self._settings
        if self.start is None:
            self.start = rough_start(problem, self._reference, settings)
        run = _Run(problem, self._reference, settings.tol, settings.max_iter, self._doubt)
        run.begin(tally, settings, self._decides)
        solution = yield from run.solve(self.start)
        self.start = run.memory or solution.at.point
        decisions = run.conclude()
        return Fit(problem, solution, decisions, tuple(run.history))


def rough_start(problem: Problem, reference: float, settings: Settings) -> Array | None:
    """A solution for some of the rows, drawn at random; None where there are not many.

    It is a fraction of a pass away from where all rows lead, and it spares the steps, and the Gram
    matrices of rows that are far from their piece, of a start at zero.
    """
    design = problem.design
    n_rows = max(design.n_samples // _SAMPLED, _PER_COLUMN * design.n_columns)
    carrying = np.flatnonzero(problem.weights)
    if n_rows * _WORTH > len(carrying) or math.isinf(problem.loss.smoothness):
        return None
    rng = np.random.default_rng(settings.seed)
    rows = np.sort(rng.choice(carrying, n_rows, replace=False))
    sample = problem.restrict(rows)
    sample = replace(sample, divisor=float(sample.weights.sum()))
    doubt = EveryRow() if settings.screening is None else Guess(sample)
    run = NewtonRun(sample, reference, _ROUGH, settings.max_iter, doubt)
    return alone(run.solve()).at.point


def _doubt(problem: Problem, settings: Settings) -> Doubt:
    if settings.screening is None:
        return EveryRow()
    if isinstance(settings.screening, Region):
        return Undecided(settings.screening)
    return Guess(problem)


class _Run(NewtonRun):
    """A run that keeps a history."""

    def begin(self, tally: Tally, settings: Settings, decides: bool) -> None:
        self.history: list[Check] = []
        self._decides = decides
        self._tally, self._settings, self._began = tally, settings, time.perf_counter()

    def check(self) -> None:
        if not self._decides:
            self._note(Decisions.nothing(self.problem), self.problem.design.n_features)
            return
        self._decide_by(quick_region(self.problem, self.at, self.gap, self.gram, self._settings))

    def conclude(self) -> Decisions:
        """What became of every row, at the solution."""
        if self._decides and worth_more(self.problem, self._decisions, self._settings):
            self.history.pop()
            self._decide_by(thorough_region(self.problem, self.at, self._settings))
        return self._decisions

    def _decide_by(self, region: TestSet) -> None:
        problem, p = self.problem, self.problem.design.n_features
        decisions = decide(problem, region.row_bounds(problem.design), "always")
        self._note(decisions, p - int(region.zero_features(p).sum()))

    def _note(self, decisions: Decisions, n_features: int) -> None:
        """Remember the decisions, and how things stand in the history."""
        self._decisions = decisions
        self.history.append(
            Check.of(
                decisions,
                gap=self.gap,
                reference=self.reference,
                passes=self._tally.rows / max(self.problem.design.n_samples, 1),
                began=self._began,
                n_features=n_features,
            )
        )
