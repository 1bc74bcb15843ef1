"""Bounds on the predictions at every optimum from a duality gap, in a kernel space.

½·alpha·‖h* − h‖² ≤ gap, whatever the intercept: h*(x_i) is within √(2·gap/alpha)·√K_ii of h(x_i).
An unpenalised intercept c* has Σ s_i ν*_i = 0 with ν*_i a slope of the loss at h*(x_i) + c*. Slopes
grow: where Σ s_i f'(least h*(x_i) + c) > 0 already, c* ≤ c, and likewise from below. That takes a
look at each sample and no kernel entry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, total
from safesift.design.kernel import KernelDesign
from safesift.problem.decisions import Bounds
from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.regions.base import TestSet, clean

Array = NDArray[np.float64]

# shifts of an intercept that are tried, in units of the predictions, and how well the best is found
_LEAST, _MOST, _BISECTIONS = 1e-14, 1e8, 12


@dataclass(frozen=True, eq=False)
class KernelSet(TestSet):
    """A set of functions that contains every optimum, by its bounds on the predictions."""

    found: Bounds
    name: str
    certified: bool = True

    def bounds(self, design: KernelDesign) -> Bounds:
        return self.found

    def describe(self) -> str:
        return self.name


@np.errstate(over="ignore", invalid="ignore")
def gap_ball(problem: Problem, at: Evaluation, gap: float) -> KernelSet:
    """The ball of a certified gap, and the interval of the intercept if there is one."""
    radius = math.sqrt(2.0 * gap / problem.alpha) * (1.0 + 8 * EPS)
    reach = radius * problem.design.gram.roots + problem.prediction_error(at)
    bounds = Bounds(at.pred - reach, at.pred + reach)
    if problem.fit_intercept:
        bounds = shifted(problem, bounds)
    return KernelSet(clean(bounds), f"gap ball (radius {radius:.3g})")


def shifted(problem: Problem, bounds: Bounds) -> Bounds:
    """Bounds on h*(x_i) + c*, from those on h*(x_i) + c for some known c."""
    down, up = _farthest(problem, bounds.upper, -1.0), _farthest(problem, bounds.lower, 1.0)
    return Bounds(bounds.lower - down, bounds.upper + up)


def _farthest(problem: Problem, ends: Array, sign: float) -> float:
    """How far the intercept may be beyond c, on the side of `sign`: infinite if nothing tells."""

    def settled(shift: float) -> bool:
        nu = problem.loss.slope(ends + sign * shift, problem.y)
        noise = (problem.design.sum_error + 16 * EPS + problem.loss.precision) * total(
            problem.shares, np.abs(nu)
        )
        return sign * total(problem.shares, nu) > noise

    shift = _LEAST * problem.unit
    while not settled(shift):
        shift *= 8.0
        if shift > _MOST * problem.unit:
            return math.inf
    low, high = shift / 8.0, shift
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if settled(middle) else (middle, high)
    return high * (1.0 + 8 * EPS)
