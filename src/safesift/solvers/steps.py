"""Newton steps: the model of a view, minimised exactly, and a line search."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.devices.arrays import on_host
from safesift.arithmetic.numerics import EPS, add_to_diagonal
from safesift.penalties import L2
from safesift.problem.passes import Computation
from safesift.solvers.line_search import best_share
from safesift.solvers.quadratic import Model, minimise
from safesift.solvers.views import Local, View

Array = NDArray[np.float64]

# the least damping of a step, relative to the largest curvature of the loss, and the most
_LEAST_DAMPING, _TRUSTED_DAMPING, _MOST_DAMPING = 1e-13, 1e-11, 1e4
# a step that gains less than this share of what the model promised says that the model is too flat
_POOR = 0.01
# products of two numbers below that are finite
_OVERFLOW = 1e150


class NewtonSteps:
    """Newton steps on a problem with a smooth loss, through any of its views.

    Parameters
    ----------
    scales : array of shape (n_columns,)
        The curvature of the loss along each coordinate, to which damping is relative.

    Attributes
    ----------
    n_iter : int
        Steps made.
    promised : float
        How far the model of the last step expected the objective to fall.
    """

    def __init__(self, scales: Array) -> None:
        self.n_iter, self.promised, self._whole = 0, math.inf, False
        self._damping, self._scales = _LEAST_DAMPING, scales
        self._work: Array | None = None

    def step(self, view: View) -> Computation[bool]:
        """One step, which moves the view; False where nothing lowers the objective."""
        problem, here = view.problem, view.here
        H = yield from view.curvature()
        while self._damping <= _MOST_DAMPING:
            damped = self._damped(H)
            model = Model(damped, here.gradient - damped @ here.point, view.n_penalised)
            # no entry of a positive semidefinite matrix is larger than those of its diagonal
            if not (np.diag(damped) < _OVERFLOW).all() & (np.abs(model.b) < _OVERFLOW).all():
                return False
            if not isinstance(problem.penalty, L2):
                model = replace(model, H=on_host(damped))  # active sets are small, and many
            found = minimise(problem.penalty, model, problem.alpha, here.point)
            if (yield from self._search(view, view.feasible(found))):
                self.n_iter += 1
                return True
            self._damping *= 1e3
        self._damping = _LEAST_DAMPING
        return False

    def _damped(self, H: Array) -> Array:
        """H with the damping on its diagonal, always in the same place in memory."""
        if self._work is None:
            self._work = np.empty_like(H)
        np.copyto(self._work, H)
        add_to_diagonal(self._work, self._damping * self._scales)
        return self._work

    def _search(self, view: View, found: Array) -> Computation[bool]:
        """Take the full step if it does what the model promises, else the best share of it."""
        here = view.here
        promised = (
            -float(here.gradient @ (found - here.point))
            - view.penalty(found)
            + view.penalty(here.point)
        )
        # at the end of the arithmetic a step promises no more than rounding, and slopes still gain
        rounding = 8 * EPS * abs(here.value)
        if not promised > -rounding or np.array_equal(found, here.point):
            return False
        reached = yield from view.evaluate(found)
        full = reached.value <= here.value - 0.1 * promised + rounding
        if not full:
            share = best_share(view.along(reached))
            reached = yield from view.evaluate(here.point + share * (found - here.point))
            if not reached.value < here.value:
                return False
        trusted = self._damping <= _TRUSTED_DAMPING
        # a step that damping made short says little about what is left
        self.promised = promised if trusted else math.inf
        self._whole = full and trusted
        poor = here.value - reached.value < _POOR * promised and not full
        self._damping = max((100.0 if poor else 0.1) * self._damping, _LEAST_DAMPING)
        view.here = reached
        return True

    def settle(
        self, view: View, promise: float, most: int, report: Callable[[float], None]
    ) -> Computation[None]:
        """Steps until the model promises no more than that, so many at most; each is reported."""
        first = self.n_iter
        while self.n_iter < first + most:
            here = view.here
            moved = yield from self.step(view)
            if not moved or self._exact(view, here) or self.promised <= promise:
                return
            report(self.n_iter - first)

    def _exact(self, view: View, before: Local) -> bool:
        """Whether the last step went all the way, and no row changed its curvature.

        Where losses are piecewise quadratic, it then ended at the minimiser of the view.
        """
        return self._whole and np.array_equal(view.weights(view.here), view.weights(before))
