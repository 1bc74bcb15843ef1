"""Newton steps: the model of a view, minimised exactly, and a line search."""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS
from safesift.problem.problem import Problem
from safesift.solvers.line_search import best_share
from safesift.solvers.quadratic import Model, minimise
from safesift.solvers.views import Local, SomeRows, View

Array = NDArray[np.float64]

# the least damping of a step, relative to the largest curvature of the loss, and the most
_LEAST_DAMPING, _TRUSTED_DAMPING, _MOST_DAMPING = 1e-13, 1e-11, 1e4
# a step that gains less than this share of what the model promised says that the model is too flat
_POOR = 0.01
# products of two numbers below that are finite
_OVERFLOW = 1e150


class Steps:
    """Newton steps on a problem with a smooth loss, through any of its views.

    Attributes
    ----------
    n_iter : int
        Steps made.
    promised : float
        How far the model of the last step expected the objective to fall.
    exact : bool
        Whether the last step went all the way and no row changed its curvature: where losses are
        piecewise quadratic, it ended at the minimiser of the view.
    """

    def __init__(self, problem: Problem) -> None:
        self.n_iter, self.promised, self.exact = 0, math.inf, False
        self._damping = _LEAST_DAMPING
        self._scales = _curvature_scales(problem)
        d = problem.design.n_columns
        self._work = np.empty((d, d))

    def step(self, view: View) -> Generator[Array, Local, bool]:
        """One step: asks for points, moves the view; False where nothing lowers the objective."""
        problem, here = view.problem, view.here
        H = view.curvature()
        while self._damping <= _MOST_DAMPING:
            damped = self._damped(H)
            model = Model(damped, here.gradient - damped @ here.point, problem.design.n_features)
            # no entry of a positive semidefinite matrix is larger than those of its diagonal
            if not (np.diag(damped) < _OVERFLOW).all() & (np.abs(model.b) < _OVERFLOW).all():
                return False
            found = minimise(problem.penalty, model, problem.alpha, here.point)
            if (yield from self._search(view, problem.feasible(found))):
                self.n_iter += 1
                return True
            self._damping *= 1e3
        self._damping = _LEAST_DAMPING
        return False

    def _damped(self, H: Array) -> Array:
        """H with the damping on its diagonal, always in the same place in memory."""
        np.copyto(self._work, H)
        self._work[np.diag_indices_from(H)] += self._damping * self._scales
        return self._work

    def _search(self, view: View, found: Array) -> Generator[Array, Local, bool]:
        """Take the full step if it does what the model promises, else the best share of it."""
        here = view.here
        promised = (
            -float(here.gradient @ (found - here.point))
            - view.penalty(found)
            + view.penalty(here.point)
        )
        if not promised > 0:
            return False
        reached = yield found
        full = reached.value <= here.value - 0.1 * promised + 8 * EPS * abs(here.value)
        if not full:
            share = best_share(view.along(reached))
            reached = yield here.point + share * (found - here.point)
            if not reached.value < here.value:
                return False
        trusted = self._damping <= _TRUSTED_DAMPING
        # a step that damping made short says little about what is left
        self.promised = promised if trusted else math.inf
        self.exact = full and trusted and np.array_equal(view.weights(reached), view.weights(here))
        poor = here.value - reached.value < _POOR * promised and not full
        self._damping = max((100.0 if poor else 0.1) * self._damping, _LEAST_DAMPING)
        view.here = reached
        return True

    def settle(self, view: SomeRows, promise: float, most: int) -> None:
        """Steps through a view of some rows until the model promises no more than that."""
        last = self.n_iter + most
        while self.n_iter < last:
            asking = self.step(view)
            try:
                point = next(asking)
                while True:
                    point = asking.send(view.evaluate(point))
            except StopIteration as ended:
                if not ended.value or self.exact or self.promised <= promise:
                    return


def _curvature_scales(problem: Problem) -> Array:
    """The largest curvature of the loss along each coordinate, for the damping."""
    norms_sq = problem.design.row_norms**2
    mean = problem.loss.smoothness * float(problem.shares @ norms_sq) / problem.design.n_columns
    folded = 0.0 if problem.Q is None else np.diag(problem.Q)
    return np.full(problem.design.n_columns, mean or 1.0) + folded
