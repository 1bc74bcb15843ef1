"""Norm-ball constraints by their multiplier, where columns are many.

The optimum over ‖x‖ ≤ radius is that of a penalty τ‖x‖₁ or ½τ‖x‖₂² with the τ ≥ 0 for which its
norm is the radius. The penalised problems are solved by the solvers made for them, warm from one τ
to the next, and 1/‖x(τ)‖, which is nearly a line, tells the next one. What is certified is the gap
of the constrained problem at the point, pulled inside the ball.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS
from safesift.arithmetic.tally import Tally
from safesift.penalties import L1, L2, L1Ball, L2Ball
from safesift.problem.passes import Computation
from safesift.problem.problem import Problem
from safesift.regions import Region
from safesift.regions.energy import GapEnergy
from safesift.solvers.base import Proposal, Solver, Steps, register
from safesift.solvers.driver import Level, Past, Run
from safesift.solvers.newton_cg import NewtonCG
from safesift.solvers.records import Fit, Settings
from safesift.solvers.sparse_newton import SparseNewton

Array = NDArray[np.float64]

# penalised problems are solved to this share of the tolerance: norms must be known better than gaps
_INNER = 1e-4
# the multiplier changes by at most this factor while it is not enclosed
_FACTOR = 20.0
# what a level costs: a dozen penalised problems
_PASSES = 500.0


@register
class Multiplier(Solver):
    """Keeps the solver of the penalised problems, and what their norms said."""

    name = "multiplier"
    looks = False

    def __init__(self, problem: Problem, settings: Settings, start: Array | None = None) -> None:
        super().__init__(problem, settings, start)
        sparse = isinstance(problem.penalty, L1Ball)
        self._penalty = L1() if sparse else L2()
        self._kind = SparseNewton if sparse else NewtonCG
        self._inner_settings = replace(settings, tol=_INNER * settings.tol, decided=())
        first = self._penalised(problem, 1.0)
        self._inner = self._kind(first, self._inner_settings, start)
        self._past: Past | None = None

    @classmethod
    def refusal(cls, problem: Problem) -> str:
        if not problem.penalty.is_constraint:
            return f"the penalty {problem.penalty!r} is no constraint"
        if math.isinf(problem.loss.smoothness):
            return f"the loss {problem.loss!r} has kinks"
        return "" if problem.design.has_rows else "it works with rows, not with a kernel"

    @classmethod
    def cost(cls, problem: Problem, n_levels: int) -> float:
        return _PASSES

    def region(self, level: Level) -> Region | None:
        return level.screening.region or GapEnergy()

    def _penalised(self, problem: Problem, multiplier: float) -> Problem:
        return replace(problem, penalty=self._penalty, alpha=multiplier)

    def steps(self, level: Level) -> Steps:
        problem = level.problem
        yield from self.arrive(level)
        search = _Search(_radius(problem))
        search.multiplier = self._first(level)
        while search.goes_on:
            found = yield from self._solved(self._penalised(problem, search.multiplier))
            search.learn(_norm(problem, found.coef))
            # a point may be worse than the last and still tell the next multiplier
            yield Proposal(point=problem.feasible(found.at.point))

    def _solved(self, penalised: Problem) -> Computation[Fit]:
        """A penalised problem, from where the last one ended; its passes are shared, too."""
        level = Level(penalised, self._inner_settings, self._past)
        fit = yield from Run(self._inner, level, False, Tally()).solve()
        self._past = level.over()
        return fit

    def _first(self, level: Level) -> float:
        """From the gradient: at an optimum on the sphere it gives the multiplier itself."""
        gradient = level.problem.smooth_gradient(level.at)[: level.problem.design.n_features]
        if isinstance(self._penalty, L1):
            # at most what lets nothing in
            return float(np.abs(gradient).max(initial=0.0)) * 0.5 or 1.0
        return float(np.linalg.norm(gradient)) / _radius(level.problem) or 1.0


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
        if min(here.size, last.size) <= 0 or 1.0 / here.size == 1.0 / last.size:
            return math.nan
        slope = (here.multiplier - last.multiplier) / (1.0 / here.size - 1.0 / last.size)
        return here.multiplier + slope * (1.0 / self._radius - 1.0 / here.size)


def _radius(problem: Problem) -> float:
    """Of the ball to which the coefficients are constrained."""
    penalty = problem.penalty
    assert isinstance(penalty, L1Ball | L2Ball), "what `is_constraint` says"
    return penalty.radius


def _norm(problem: Problem, coef: Array) -> float:
    if isinstance(problem.penalty, L1Ball):
        return float(np.abs(coef).sum())
    return float(np.linalg.norm(coef))
