"""A problem near a point: most rows as their Taylor expansion, the others as they are.

    m(u) = ½uᵀQu + qᵀu + (1/W) Σ_exact s_i (f − f̃)(a_iᵀu; b_i) + alpha·R(u)

over some of the coordinates, with Q and q from the second-order expansion f̃ of all rows at the
point, where their predictions and slopes are known from the last pass. On a linear or quadratic
piece of a loss f̃ is f itself. The exact rows are those for which it may not be; only their
difference from the expansion is computed, and it curves only where a row changes piece.

The model is convex and has the gradient of the problem at the point, so that the way from there to
its minimiser goes downhill.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, total
from safesift.design.base import Design
from safesift.losses import Loss
from safesift.problem.evaluation import Evaluation
from safesift.problem.gram import WeightedGram
from safesift.problem.problem import Problem
from safesift.solvers.quadratic import Model, minimise
from safesift.solvers.working_gram import WorkingGram

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# damping of a step, relative to the mean curvature
_LEAST_DAMPING, _MOST_DAMPING = 1e-13, 1e-2
_MOST_STEPS = 50


def local_model(
    problem: Problem, at: Evaluation, gram: WorkingGram, features: Mask, exact: Mask, stale: float
) -> LocalModel:
    """The model around an evaluation in some features, with the rows of a mask as they are.

    The Gram matrix is moved to the features and to the curvature at the point, except for rows
    whose curvature is off by no more than the share `stale`: steps then converge linearly, fast.
    """
    weights = problem.shares * problem.loss.curvature(at.pred, problem.y)
    close = np.abs(weights - gram.weights) <= stale * weights
    weights = np.where(close, gram.weights, weights)
    gram.select(features)
    gram.move(weights)
    Q, columns = gram.matrix, gram.columns
    point = at.point[columns]
    if problem.Q is not None:
        Q = Q + problem.Q[np.ix_(columns, columns)]
    q = problem.smooth_gradient(at)[columns] - Q @ point
    rows = _ExactRows.of(problem, gram, at, exact)
    return LocalModel(problem, Q, q, rows, point)


@dataclass(frozen=True, eq=False)
class _ExactRows:
    """Σ_exact s_i (f − f̃)(a_iᵀu; b_i)/W, its slopes and its curvature."""

    design: Design
    loss: Loss
    y: Array
    shares: Array
    pred: Array
    slopes: Array
    weights: Array

    @classmethod
    def of(cls, problem: Problem, gram: WorkingGram, at: Evaluation, exact: Mask) -> _ExactRows:
        shares = problem.shares[exact]
        return cls(
            gram.design.take(exact), problem.loss.take(exact), problem.y[exact], shares,
            at.pred[exact], shares * at.nu[exact], gram.weights[exact],
        )  # fmt: skip

    def value(self, pred: Array) -> float:
        """Up to a constant."""
        change = pred - self.pred
        expanded = change * (self.slopes + 0.5 * self.weights * change)
        return total(self.shares, self.loss.value(pred, self.y)) - float(expanded.sum())

    def gradient(self, pred: Array) -> Array:
        slopes = self.shares * self.loss.slope(pred, self.y)
        return self.design.rmatvec(slopes - self.slopes - self.weights * (pred - self.pred))

    def curvature(self, pred: Array) -> Array:
        return self.shares * self.loss.curvature(pred, self.y) - self.weights


@dataclass(frozen=True, eq=False)
class _Place:
    """A point of a model, with its value and the gradient of all but the penalty."""

    u: Array
    pred: Array
    value: float
    gradient: Array


class LocalModel:
    """The model m: see the module."""

    def __init__(
        self, problem: Problem, Q: Array, q: Array, rows: _ExactRows, point: Array
    ) -> None:
        self._penalty, self._alpha = problem.penalty, problem.alpha
        self._p = len(point) - problem.fit_intercept
        self._Q, self._q, self._rows, self._point = Q, q, rows, point
        self._scale = float(np.trace(Q)) / max(len(Q), 1) or 1.0
        self._gram = WeightedGram(rows.design)

    def minimiser(self, promise: float) -> Array:
        """A point from which no more than `promise` is to be gained, by Newton steps."""
        here, damping = self._place(self._point), _LEAST_DAMPING
        for _ in range(_MOST_STEPS):
            found, promised = self._step(here, damping)
            reached = self._downhill(here, found, promised) if promised > 0 else here
            if reached is here:
                # nearly dependent columns: a step that is too long for the arithmetic
                damping *= 1e3
                if damping > _MOST_DAMPING:
                    break
                continue
            here = reached
            if promised <= promise or (len(here.pred) == 0 and damping == _LEAST_DAMPING):
                break
            damping = max(1e-3 * damping, _LEAST_DAMPING)
        return here.u

    def _place(self, u: Array) -> _Place:
        pred, curved = self._rows.design.matvec(u), self._Q @ u
        value = 0.5 * float(u @ curved) + float(self._q @ u) + self._rows.value(pred)
        gradient = curved + self._q + self._rows.gradient(pred)
        return _Place(u, pred, value + self._penalised(u), gradient)

    def _penalised(self, u: Array) -> float:
        return self._alpha * self._penalty.value(u[: self._p])

    def _step(self, here: _Place, damping: float) -> tuple[Array, float]:
        """The minimiser of the quadratic model at a point, and what it promises to first order."""
        self._gram.move(self._rows.curvature(here.pred))
        H = self._Q + self._gram.matrix
        H[np.diag_indices(len(H))] += damping * self._scale
        model = Model(H, here.gradient - H @ here.u, self._p)
        found = minimise(self._penalty, model, self._alpha, here.u)
        gain = self._penalised(here.u) - self._penalised(found)
        return found, float(here.gradient @ (here.u - found)) + gain

    def _downhill(self, here: _Place, found: Array, promised: float) -> _Place:
        """The first of ever shorter steps that goes down enough; the start if none does."""
        share, room = 1.0, 8 * EPS * abs(here.value)
        while share > EPS:
            reached = self._place(here.u + share * (found - here.u))
            if reached.value <= here.value - 0.1 * share * promised + room:
                return reached
            share *= 0.25
        return here
