"""First-order solvers for a decent centre: L-BFGS for l2, accelerated proximal steps otherwise."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from safesift import progress
from safesift.penalties import L2
from safesift.problem.duality import WIDTHS
from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.solvers.driver import solve
from safesift.solvers.newton import Newton

Array = NDArray[np.float64]

_STAGE = "solver"
# beyond this many columns a Newton step costs more than many passes over the data
_FEW_COLUMNS = 1000
# a rough solution by Newton steps: relative gap, and how many of them
_ROUGH, _ROUGH_STEPS = 1e-5, 30


def rough_solution(problem: Problem) -> Evaluation:
    """A decent centre for a region, at little cost; nothing is claimed about it.

    First-order steps do well on smooth problems with l2 and with many columns. Without strong
    convexity they are slow, and a few Newton steps cost less than they save.
    """
    curved = math.isfinite(problem.loss.smoothness) and not isinstance(problem.penalty, L2)
    if curved and problem.design.n_columns <= _FEW_COLUMNS:
        return solve(problem, tol=_ROUGH, max_iter=_ROUGH_STEPS, solver=Newton.name).at
    return short_run(problem)


def short_run(problem: Problem, max_passes: int = 120) -> Evaluation:
    """An approximate solution by at most about `max_passes` passes over the data.

    Losses with kinks are rounded off over a shrinking width. The point is only a centre for
    regions: nothing is claimed about it, its gap is measured afterwards.
    """
    smooth = math.isfinite(problem.loss.smoothness)
    widths = (0.0,) if smooth else WIDTHS
    best = problem.evaluate(np.zeros(problem.design.n_columns))
    passes = _Passes(max_passes)
    advance = _lbfgs if isinstance(problem.penalty, L2) else _accelerated
    point = best.point
    for stage, width in enumerate(widths, start=1):
        rounded = problem.with_loss(problem.loss.smoothed(width * problem.unit))
        point = advance(rounded, point, passes, max_passes * stage // len(widths))
        reached = problem.evaluate(problem.feasible(point))
        if reached.value < best.value:
            best = reached
    return best


class _Passes:
    """Counts the passes of one run and tells the listener."""

    def __init__(self, total: int) -> None:
        self.done, self._total = 0, total

    def count(self) -> None:
        self.done += 1
        progress.report(_STAGE, min(self.done, self._total), self._total)


def _lbfgs(problem: Problem, point: Array, passes: _Passes, until: int) -> Array:
    # the data's own units: with features of size 1e±150 the plain problem is out of L-BFGS's reach
    norms = problem.design.row_norms
    unit = float(np.sqrt(problem.shares @ np.minimum(norms, 1e150) ** 2)) or 1.0

    def objective(scaled: Array) -> tuple[float, Array]:
        passes.count()
        at = problem.evaluate(scaled / unit)
        return at.value, at.subgradient / unit

    found = minimize(
        objective,
        point * unit,
        jac=True,
        method="L-BFGS-B",
        options={"maxfun": max(until - passes.done, 1), "maxcor": 20, "ftol": 1e-15, "gtol": 1e-12},
    )
    return found.x / unit


def _accelerated(problem: Problem, point: Array, passes: _Passes, until: int) -> Array:
    """FISTA with backtracking, restarted whenever the objective grows."""
    p = problem.design.n_features
    at = problem.evaluate(point)
    ahead, momentum, step = at, 1.0, _first_step(problem)
    while passes.done < until:
        gradient = problem.smooth_gradient(ahead)
        moved = ahead.point - step * gradient
        moved[:p] = problem.penalty.prox(moved[:p], step * problem.alpha)
        passes.count()
        reached = problem.evaluate(moved)
        change = moved - ahead.point
        model = _smooth_value(problem, ahead) + gradient @ change + 0.5 * (change @ change) / step
        if _smooth_value(problem, reached) > model * (1 + 1e-12) + 1e-300:
            step *= 0.5
            continue
        if not np.any(moved - at.point):
            break
        if reached.value > at.value:
            ahead, momentum = at, 1.0
            step *= 0.9
            continue
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum**2))
        extrapolated = moved + (momentum - 1.0) / following * (moved - at.point)
        at, momentum = reached, following
        passes.count()
        ahead = problem.evaluate(extrapolated)
        step *= 1.1
    return at.point


def _first_step(problem: Problem) -> float:
    norms = problem.design.row_norms
    bound = problem.loss.smoothness * float(problem.shares @ norms**2)
    if problem.folded is not None and problem.folded.Q is not None:
        bound += float(np.trace(problem.folded.Q))
    return 4.0 / bound if bound > 0 and math.isfinite(bound) else 1.0


def _smooth_value(problem: Problem, at: Evaluation) -> float:
    value = float(problem.shares @ problem.loss.value(at.pred, problem.y))
    return value if problem.folded is None else value + problem.folded.value(at.point)
