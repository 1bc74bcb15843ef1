"""Norm-ball constraints by their multiplier, where columns are many.

The optimum over ‖x‖ ≤ radius is that of a penalty τ‖x‖₁ or ½τ‖x‖₂² with the τ ≥ 0 for which its
norm is the radius. The penalised problems are solved by the solvers made for them, warm from one τ
to the next, and 1/‖x(τ)‖, which is nearly a line, tells the next one. What is certified is the gap
of the constrained problem at the point, pulled inside the ball.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS
from safesift.penalties import L1, L2, L1Ball
from safesift.problem.problem import Problem
from safesift.solvers.deciding import Found, decide_by_ball
from safesift.solvers.newton_cg import CGTrack
from safesift.solvers.records import Fit, Settings
from safesift.solvers.sparse_newton import SparseTrack
from safesift.solvers.track import Level, Track, follow

Array = NDArray[np.float64]

# penalised problems are solved to this share of the tolerance: norms must be known better than gaps
_INNER = 1e-4
# the multiplier changes by at most this factor while it is not enclosed
_FACTOR = 20.0


def multiplier_path(
    levels: Sequence[Sequence[Problem]],
    settings: Settings,
    starts: Sequence[Array | None] | None = None,
) -> Iterator[list[Fit]]:
    """Solve problems with a smooth loss and a norm-ball constraint, along a path of radii.

    Parameters and result are those of `sparse_newton`. A step of `Settings.max_iter` is one
    penalised problem.
    """
    return follow(_MultiplierTrack, levels, settings, starts)


class _MultiplierTrack(Track):
    """Keeps the track of the penalised problems, and what their norms said."""

    def __init__(self, problem: Problem, settings: Settings, start: Array | None) -> None:
        super().__init__(problem, settings, start)
        sparse = isinstance(problem.penalty, L1Ball)
        self._penalty = L1() if sparse else L2()
        track = SparseTrack if sparse else CGTrack
        inner = replace(settings, tol=_INNER * settings.tol)
        self._inner = track(self._penalised(problem, 1.0), inner, start)
        self._search = _Search(1.0)

    def _penalised(self, problem: Problem, multiplier: float) -> Problem:
        return problem.at_level(multiplier, self._penalty)

    def advance(self, level: Level) -> bool:
        """A point may be worse than the last and still tell the next multiplier."""
        level.move(level.problem.evaluate(self.propose(level)))
        return self._search.goes_on

    def propose(self, level: Level) -> Array:
        problem, radius = level.problem, level.problem.penalty.radius
        if level.n_iter == 0:
            self._search = _Search(radius)
            self._search.multiplier = self._first(level)
        found = self._inner.solve(self._penalised(problem, self._search.multiplier))
        point = found.solution.at.point
        self._search.learn(_norm(problem, found.coef))
        return problem.feasible(point)

    def _first(self, level: Level) -> float:
        """From the gradient: at an optimum on the sphere it gives the multiplier itself."""
        gradient = level.problem.smooth_gradient(level.at)[: level.problem.design.n_features]
        if isinstance(self._penalty, L1):
            # at most what lets nothing in
            return float(np.abs(gradient).max(initial=0.0)) * 0.5 or 1.0
        return float(np.linalg.norm(gradient)) / level.problem.penalty.radius or 1.0

    def decide(self, level: Level) -> Found:
        return decide_by_ball(level.problem, level.at, level.gap)


class _Trial(NamedTuple):
    multiplier: float
    size: float


class _Search:
    """The multiplier for which the norm is the radius: a secant on 1/norm, kept in a bracket."""

    def __init__(self, radius: float) -> None:
        self._radius, self.multiplier = radius, 1.0
        self._low, self._high = 0.0, math.inf
        self._last: _Trial | None = None

    @property
    def goes_on(self) -> bool:
        return self._high > self._low * (1.0 + 4 * EPS)

    def learn(self, size: float) -> None:
        """Tell the norm that belongs to the present multiplier, and find the next one."""
        here, last = _Trial(self.multiplier, size), self._last
        if size > self._radius:
            self._low = max(self._low, here.multiplier)
        else:
            self._high = min(self._high, here.multiplier)
        self._last = here
        guess = self._secant(here, last) if last is not None else math.nan
        if not math.isfinite(guess):
            guess = here.multiplier * max(size / self._radius, 1.0 / _FACTOR)
        low = max(self._low, here.multiplier / _FACTOR)
        high = min(self._high, here.multiplier * _FACTOR)
        self.multiplier = guess if low < guess < high else math.sqrt(low * high)

    def _secant(self, here: _Trial, last: _Trial) -> float:
        if min(here.size, last.size) <= 0 or here.size == last.size:
            return math.nan
        slope = (here.multiplier - last.multiplier) / (1.0 / here.size - 1.0 / last.size)
        return here.multiplier + slope * (1.0 / self._radius - 1.0 / here.size)


def _norm(problem: Problem, coef: Array) -> float:
    if isinstance(problem.penalty, L1Ball):
        return float(np.abs(coef).sum())
    return float(np.linalg.norm(coef))
