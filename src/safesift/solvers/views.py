"""The objective around a point, seen through all rows or through those that may change piece.

Both views hold the point a Newton method is at and the curvature of the loss there, kept up to
date by the rows that change. `AllRows` needs a pass over the data for every new point; `SomeRows`
reads only its own rows and replaces the others by what they were at the point it was made at:

    F(x₀ + d) ≈ F(x₀) + gᵀd + ½dᵀHd + (1/W) Σ_{its rows} s_i·(f − its expansion to second order)

which is exact as long as every other row stays on the linear or quadratic piece it was on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import total
from safesift.problem.evaluation import Evaluation
from safesift.problem.gram import WeightedGram
from safesift.problem.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Local:
    """Value (up to a constant), gradient without the penalty, and predictions of the rows.

    `source` is the evaluation it was made of, where all rows were read.
    """

    point: Array
    value: float
    gradient: Array
    pred: Array
    source: Evaluation | None = None


class View(ABC):
    """Where a Newton method is, and how the objective looks from there.

    Attributes
    ----------
    problem : Problem
        Whose penalty, alpha and folded part count.
    rows : Problem
        The rows that are read; the problem itself if all are.
    here : Local
    gram : WeightedGram
        Of the loss's curvature at `here`.
    """

    problem: Problem
    rows: Problem
    here: Local
    gram: WeightedGram

    def weights(self, local: Local) -> Array:
        """s_i f''/W of the rows."""
        return self.rows.shares * self.rows.loss.curvature(local.pred, self.rows.y)

    def curvature(self) -> Array:
        """The matrix of second derivatives of loss and folded part, here."""
        self.gram.move(self.weights(self.here))
        Q = self.problem.Q
        return self.gram.matrix if Q is None else self.gram.matrix + Q

    def penalty(self, point: Array) -> float:
        value = self.problem.penalty.value(self.problem.split(point)[0])
        return self.problem.alpha * value if value else 0.0

    @abstractmethod
    def smooth_along(self, reached: Local) -> Callable[[float], float]:
        """Share ↦ loss and folded part at here + share·(reached − here); no pass over the data."""

    def along(self, reached: Local) -> Callable[[float], float]:
        """Share ↦ objective at here + share·(reached − here)."""
        smooth, start = self.smooth_along(reached), self.here.point
        change = reached.point - start
        return lambda share: smooth(share) + self.penalty(start + share * change)


class AllRows(View):
    """The objective itself."""

    def __init__(self, problem: Problem, at: Evaluation, gram: WeightedGram) -> None:
        self.problem = self.rows = problem
        self.gram = gram
        self.here = self.local(at)

    def local(self, at: Evaluation) -> Local:
        return Local(at.point, at.value, self.problem.smooth_gradient(at), at.pred, at)

    def smooth_along(self, reached: Local) -> Callable[[float], float]:
        problem, here = self.problem, self.here
        moved, change = reached.pred - here.pred, reached.point - here.point

        def value(share: float) -> float:
            losses = problem.loss.value(here.pred + share * moved, problem.y)
            folded = problem.folded
            rest = 0.0 if folded is None else folded.value(here.point + share * change)
            return total(problem.shares, losses) + rest

        return value


class SomeRows(View):
    """The objective, as long as the other rows stay on their pieces."""

    def __init__(
        self, problem: Problem, at: Evaluation, gram: WeightedGram, rows: NDArray[np.intp]
    ) -> None:
        self.problem, self.rows = problem, problem.restrict(rows)
        self._origin, self._gradient = at.point, problem.smooth_gradient(at)
        self._curvature = gram.matrix if problem.Q is None else gram.matrix + problem.Q
        self._pred, self._nu = at.pred[rows], at.nu[rows]
        self._losses = self.rows.loss.value(self._pred, self.rows.y)
        self._bend = self.rows.loss.curvature(self._pred, self.rows.y)
        self.gram = gram.among(self.rows.design, rows)
        self.here = Local(at.point, self.penalty(at.point), self._gradient, self._pred)

    def evaluate(self, point: Array) -> Local:
        """A pass over the rows of the view."""
        loss, y, shares = self.rows.loss, self.rows.y, self.rows.shares

        def excess(pred: Array, part: slice) -> Array:
            moved = pred - self._pred[part]
            slope = loss.take(part).slope(pred, y[part])
            return shares[part] * (slope - self._nu[part] - self._bend[part] * moved)

        pred, correction = self.rows.design.pass_through(point, excess)
        pull = self._curvature @ (point - self._origin)
        value = self._smooth(point, pull, pred) + self.penalty(point)
        return Local(point, value, self._gradient + pull + correction, pred)

    def _smooth(self, point: Array, pull: Array, pred: Array) -> float:
        rows, moved = self.rows, pred - self._pred
        losses = rows.loss.value(pred, rows.y) - self._losses
        expected = moved * (self._nu + 0.5 * self._bend * moved)
        shift = point - self._origin
        return float(shift @ (self._gradient + 0.5 * pull)) + total(rows.shares, losses - expected)

    def smooth_along(self, reached: Local) -> Callable[[float], float]:
        here = self.here
        change, moved = reached.point - here.point, reached.pred - here.pred

        def value(share: float) -> float:
            point = here.point + share * change
            pull = self._curvature @ (point - self._origin)
            return self._smooth(point, pull, here.pred + share * moved)

        return value
