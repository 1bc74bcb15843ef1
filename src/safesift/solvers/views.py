"""The objective around a point, seen through all rows or through those that may change piece.

Both views hold the point a Newton method is at and the curvature of the loss there, kept up to
date by the rows that change. `AllRows` needs a pass over the data for every new point; `SomeRows`
reads only its own rows, in some or all columns, and replaces the others by their expansion at the
point it was made at:

    F(x₀ + d) ≈ F(x₀) + gᵀd + ½dᵀHd + (1/W) Σ_{its rows} s_i·(f − its expansion to second order)

which is exact as long as every other row stays on the linear or quadratic piece it was on. It is
convex and has the gradient of the problem at the point, so that the way from there to its
minimiser goes downhill.
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
from safesift.problem.passes import Computation, Loads
from safesift.problem.problem import Evaluate, Problem

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
        Whose penalty and alpha count.
    here : Local
    gram : WeightedGram
        Of the loss's curvature at `here`.
    n_penalised : int
        How many coordinates are penalised, the first ones.
    """

    problem: Problem
    here: Local
    gram: WeightedGram

    def __init__(self, problem: Problem, gram: WeightedGram) -> None:
        self.problem, self.gram = problem, gram
        self.n_penalised = gram.design.n_features
        self._Q = problem.Q
        if self._Q is not None and gram.design.n_columns < problem.design.n_columns:
            self._Q = self._Q[np.ix_(gram.columns, gram.columns)]

    @abstractmethod
    def weights(self, local: Local) -> Array:
        """s_i f''/W of the rows."""

    @abstractmethod
    def evaluate(self, point: Array) -> Computation[Local]:
        """The objective at another point."""

    @abstractmethod
    def smooth_along(self, reached: Local) -> Callable[[float], float]:
        """Share ↦ loss and folded part at here + share·(reached − here); no pass over the data."""

    def curvature(self) -> Computation[Array]:
        """The matrix of second derivatives of loss and folded part, here."""
        yield from self.gram.moving(self.weights(self.here))
        return self.gram.matrix if self._Q is None else self.gram.matrix + self._Q

    def penalty(self, point: Array) -> float:
        value = self.problem.penalty.value(point[: self.n_penalised])
        return self.problem.alpha * value if value else 0.0

    def feasible(self, point: Array) -> Array:
        """The point, moved inside the constraint if the penalty is one."""
        return self.problem.feasible(point) if self.problem.penalty.is_constraint else point

    def along(self, reached: Local) -> Callable[[float], float]:
        """Share ↦ objective at here + share·(reached − here)."""
        smooth, start = self.smooth_along(reached), self.here.point
        change = reached.point - start
        return lambda share: smooth(share) + self.penalty(start + share * change)


class AllRows(View):
    """The objective itself."""

    def __init__(self, problem: Problem, at: Evaluation, gram: WeightedGram) -> None:
        super().__init__(problem, gram)
        self.here = self._local(at)

    def _local(self, at: Evaluation) -> Local:
        return Local(at.point, at.value, self.problem.smooth_gradient(at), at.pred, at)

    def weights(self, local: Local) -> Array:
        return self.problem.shares * self.problem.loss.curvature(local.pred, self.problem.y)

    def evaluate(self, point: Array) -> Computation[Local]:
        return self._local((yield Evaluate(self.problem, point)))

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
    """The objective, as long as the other rows stay on their pieces.

    Parameters
    ----------
    problem : Problem
    at : Evaluation
        Where the others are expanded.
    gram : WeightedGram
        Of the curvature there, or of something close to it: what it has is what they are
        expanded with. Points have its columns.
    rows : array of indices
    """

    def __init__(
        self, problem: Problem, at: Evaluation, gram: WeightedGram, rows: NDArray[np.intp]
    ) -> None:
        super().__init__(problem, gram)
        columns = gram.columns
        self._design, self._targets = gram.design.hold(rows), problem.risk.targets.take(rows)
        self._shares = problem.shares[rows]
        self._origin, self._gradient = at.point[columns], problem.smooth_gradient(at)[columns]
        self._curvature = gram.matrix if self._Q is None else gram.matrix + self._Q
        self._pred, self._slopes = at.pred[rows], self._shares * at.nu[rows]
        self._bends = gram.weights[rows]
        loss, y = self._targets.loss, self._targets.y
        self._losses = loss.value(self._pred, y)
        loops = self._targets.loops
        what = (loops, self._shares, self._slopes, self._bends, self._pred)
        self._compiled_excess = None if loops is None else what
        self.gram = gram.among(self._design, rows)
        self.here = Local(self._origin, self.penalty(self._origin), self._gradient, self._pred)

    def weights(self, local: Local) -> Array:
        return self._shares * self._targets.loss.curvature(local.pred, self._targets.y)

    def evaluate(self, point: Array) -> Computation[Local]:
        """A look at the rows of the view, which are its own."""
        # made here: a view that held it would hold itself, and its rows, for the collector to find
        excess = Loads(self._excess, self._compiled_excess)
        pred, correction = self._design.pass_through(point, excess)
        pull = self._curvature @ (point - self._origin)
        value = self._smooth(point, pull, pred) + self.penalty(point)
        # nobody else reads these rows: there is nothing to ask for
        yield from ()
        return Local(point, value, self._gradient + pull + correction, pred)

    def _excess(self, pred: Array, part: slice) -> Array:
        """Slopes at predictions, beyond what the expansion has."""
        loss, y = self._targets.loss, self._targets.y
        slopes = self._shares[part] * loss.take(part).slope(pred, y[part])
        return slopes - self._slopes[part] - self._bends[part] * (pred - self._pred[part])

    def _smooth(self, point: Array, pull: Array, pred: Array) -> float:
        moved, shift = pred - self._pred, point - self._origin
        losses = self._targets.loss.value(pred, self._targets.y) - self._losses
        expected = moved * (self._slopes + 0.5 * self._bends * moved)
        rows = total(self._shares, losses) - float(expected.sum())
        return float(shift @ (self._gradient + 0.5 * pull)) + rows

    def smooth_along(self, reached: Local) -> Callable[[float], float]:
        here = self.here
        change, moved = reached.point - here.point, reached.pred - here.pred

        def value(share: float) -> float:
            point = here.point + share * change
            pull = self._curvature @ (point - self._origin)
            return self._smooth(point, pull, here.pred + share * moved)

        return value
