"""A semismooth proximal Newton method on the Gram matrix, for every problem with few features.

Smooth losses: the quadratic model of loss and folded part at a point, with the penalty as it is, is
minimised exactly (`solvers.quadratic`), and a line search on the objective follows. Losses with
kinks: the same on the loss rounded off over a shrinking width, until the gap of the problem itself
is small.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from safesift import progress
from safesift.duality import WIDTHS
from safesift.gram import WeightedGram
from safesift.numerics import EPS, total
from safesift.problem import Evaluation, Problem
from safesift.solvers.quadratic import Model, minimise
from safesift.solvers.records import Solution

Array = NDArray[np.float64]

# beyond this many columns the Gram matrix costs too much
LARGEST = 5000
# the least damping of a step, relative to the largest curvature of the loss, and the most
_LEAST_DAMPING, _TRUSTED_DAMPING, _MOST_DAMPING = 1e-13, 1e-11, 1e3
# the rounding of kinks shrinks by this factor, after at most so many steps
_SHRINK, _MOST_STEPS = 0.2, 25
# products of two numbers below that are finite
_OVERFLOW = 1e150


# data so large that squares overflow end in an infinite gap, not in a warning
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def newton(
    problem: Problem,
    *,
    tol: float,
    max_iter: int = 100,
    start: Array | None = None,
    reference: float | None = None,
) -> Solution:
    """Minimise a problem to a certified relative duality gap.

    Parameters
    ----------
    problem : Problem
        With at most 5 000 columns; any loss, penalty, weights, folded part.
    tol : float
        Stop as soon as the duality gap is at most tol times `reference`.
    max_iter : int, default=100
        The largest number of Newton steps.
    start : array, optional
        A point; the best constant model by default.
    reference : float, optional
        By default P of the best constant model. Of a reduced problem, give that of the full one.

    Returns
    -------
    Solution
    """
    if problem.design.n_columns > LARGEST:
        raise ValueError(
            f"X has {problem.design.n_features} features, and the Newton solver works with at most "
            f"{LARGEST} columns: select or project features first."
        )
    reference = reference_value(problem) if reference is None else reference
    start = problem.constant_point if start is None else problem.feasible(start)
    run = _Run(problem, tol * reference, max_iter, start)
    run.solve()
    return Solution(
        at=run.at,
        dual=run.dual,
        gap=run.gap,
        reference=reference,
        n_iter=run.n_iter,
        converged=run.gap <= run.target,
    )


def reference_value(problem: Problem) -> float:
    """P of the best constant model; where that is 0, a value of the size of the loss's unit."""
    return problem.constant_value or min(problem.unit, problem.unit**2)


class _Run:
    """The state of one run: the point, the best dual point, the gap."""

    def __init__(self, problem: Problem, target: float, max_iter: int, start: Array) -> None:
        self.problem, self.target, self.max_iter = problem, target, max_iter
        self.n_iter = 0
        self.at = problem.evaluate(start)
        self.dual = problem.best_dual(self.at)
        self.gap = problem.gap(self.at, self.dual)

    @property
    def ended(self) -> bool:
        return self.gap <= self.target or self.n_iter >= self.max_iter

    def solve(self) -> None:
        if math.isfinite(self.problem.loss.smoothness):
            steps = _Steps(self.problem, self.at)
            # where the model still promises more than the target, the gap is larger still
            while not self.ended and self._advance(steps, 0.5 * self.target):
                self._measure(steps.at)
            return
        for width in self._widths():
            if self.ended:
                return
            rounded = replace(self.problem, loss=self.problem.loss.smoothed(width))
            steps = _Steps(rounded, rounded.evaluate(self.at.point))
            self._advance(steps, 1e-3 * min(width, self.target))
            self._measure(steps.at)

    def _widths(self) -> Iterator[float]:
        width = WIDTHS[0] * self.problem.unit
        while width > 1e-14 * self.problem.unit:
            yield width
            width *= _SHRINK

    def _advance(self, steps: _Steps, promise: float) -> bool:
        """Newton steps until the model promises no more than that; False where none was made.

        After many steps the gap is worth a look, or a smaller width a try, whatever is promised.
        """
        first = self.n_iter
        while self.n_iter < min(self.max_iter, first + _MOST_STEPS) and steps.step():
            self.n_iter += 1
            progress.report("solver", self.n_iter, self.max_iter)
            if steps.promised <= promise:
                break
        return self.n_iter > first

    def _measure(self, found: Evaluation) -> None:
        """Take the point if it is better, and the dual point of its slopes if that is."""
        kinked = math.isinf(self.problem.loss.smoothness)
        self.dual = self.problem.best_dual(found, self.dual)
        at = self.problem.evaluate(found.point) if kinked else found
        if at.value <= self.at.value:
            self.at = at
        self.gap = self.problem.gap(self.at, self.dual)


class _Steps:
    """Newton steps on a problem with a smooth loss."""

    def __init__(self, problem: Problem, at: Evaluation) -> None:
        self.problem, self.at = problem, at
        self.promised = math.inf
        self._gram = WeightedGram(problem.design)
        self._damping = _LEAST_DAMPING
        self._scales = self._curvature_scales()

    def _curvature_scales(self) -> Array:
        """The largest curvature of the loss along each coordinate, for the damping."""
        problem = self.problem
        norms_sq = problem.design.row_norms**2
        mean = problem.loss.smoothness * float(problem.shares @ norms_sq) / problem.design.n_columns
        folded = 0.0 if problem.Q is None else np.diag(problem.Q)
        return np.full(problem.design.n_columns, mean or 1.0) + folded

    def _curvature(self) -> Array:
        """Aᵀ diag(s f''/W) A + Q at the point, updated by the rows whose f'' changed."""
        problem = self.problem
        self._gram.move(problem.shares * problem.loss.curvature(self.at.pred, problem.y))
        return self._gram.matrix if problem.Q is None else self._gram.matrix + problem.Q

    def step(self) -> bool:
        """One step; False where no step lowers the objective any more."""
        problem, at = self.problem, self.at
        H, gradient = self._curvature(), problem.smooth_gradient(at)
        while self._damping <= _MOST_DAMPING:
            damped = H + np.diag(self._damping * self._scales)
            model = Model(damped, gradient - damped @ at.point, problem.design.n_features)
            if not (np.abs(model.H) < _OVERFLOW).all() & (np.abs(model.b) < _OVERFLOW).all():
                return False
            found = minimise(problem.penalty, model, problem.alpha, at.point)
            if self._search(problem.feasible(found), gradient):
                return True
            self._damping *= 1e3
        return False

    def _search(self, found: Array, gradient: Array) -> bool:
        """Take the full step if it does what the model promises, else the best share of it."""
        problem, at = self.problem, self.at
        change = found - at.point
        promised = -float(gradient @ change) - self._penalty(found) + self._penalty(at.point)
        if not promised > 0:
            return False
        reached = problem.evaluate(found)
        if not reached.value <= at.value - 0.1 * promised + 8 * EPS * abs(at.value):
            reached = problem.evaluate(at.point + self._best_share(change) * change)
            if not reached.value < at.value:
                return False
        # a step that damping made short says little about what is left
        self.promised = promised if self._damping <= _TRUSTED_DAMPING else math.inf
        self._damping = max(0.1 * self._damping, _LEAST_DAMPING)
        self.at = reached
        return True

    def _best_share(self, change: Array) -> float:
        """The t in [0, 1] for which P(point + t·change) is least; one pass over the data."""
        problem, at = self.problem, self.at
        moved = problem.design.matvec(change)

        def objective(share: float) -> float:
            losses = problem.loss.value(at.pred + share * moved, problem.y)
            point = at.point + share * change
            folded = 0.0 if problem.folded is None else problem.folded.value(point)
            return total(problem.shares, losses) + folded + self._penalty(point)

        share, here = 1.0, objective(0.0)
        while share > EPS and objective(share) >= here:
            share *= 0.25
        reach = min(4.0 * share, 1.0)
        found = minimize_scalar(
            objective, bounds=(0.0, reach), method="bounded", options={"xatol": 1e-3 * reach}
        )
        return float(found.x)

    def _penalty(self, point: Array) -> float:
        penalty = self.problem.penalty.value(self.problem.split(point)[0])
        return self.problem.alpha * penalty if penalty else 0.0
