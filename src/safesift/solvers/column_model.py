"""The quadratic model of a sparse problem in many features, minimised one coefficient at a time.

    m(d) = gᵀd + ½Σ w_i (a_iᵀd)² + penalty(x + d)

with g and w the gradient and the curvatures of the loss at x. A step on a coefficient reads the
entries of its column only, where the Gram matrix of a thousand features has a million entries, and
its factors cost a thousand times that. Epochs of such steps find out which coefficients are not
zero, and then creep along the valleys that similar columns make. Between them conjugate gradients,
which go through valleys, settle how large those are: as long as signs stay as they are (`Face`) the
model is quadratic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic import tally
from safesift.design import SparseDesign
from safesift.design.rows import RowDesign
from safesift.problem.evaluation import Evaluation
from safesift.problem.passes import Computation, alone
from safesift.problem.problem import Problem
from safesift.solvers.conjugate_gradients import conjugate_gradients
from safesift.solvers.quadratic import orthant_step

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


# a direction need not be better than the signs are, which change with every step
_MOST_PRODUCTS = 20


class Slide(NamedTuple):
    """A change of the coefficients, and how many products it took."""

    change: Array
    n_products: int


@dataclass(frozen=True)
class Face:
    """m(d) = slopesᵀd + ½Σ weights_i (a_iᵀd)² + ½Σ ridge_j d_j² + Σ threshold_j |coef_j + d_j|.

    Attributes
    ----------
    rows : RowDesign with n_columns columns
        The a_i that have a weight.
    weights : array of shape (n_samples,)
    slopes, bends, ridge, threshold, coef : arrays of shape (n_columns,)
        `bends` are about the second derivatives. A coefficient whose threshold is 0 may change its
        sign, others are stopped at zero.
    """

    rows: RowDesign
    weights: Array
    slopes: Array
    bends: Array
    ridge: Array
    threshold: Array
    coef: Array

    def slide(self) -> Slide:
        """From `coef` to the minimiser, or as much of the way as makes the model smaller."""
        direction, n_products = self._direction()
        signs = np.where(self.threshold > 0.0, np.sign(self.coef), 0.0)
        return Slide(orthant_step(self.coef, direction, signs, self._rise).change, n_products)

    def _direction(self) -> tuple[Array, int]:
        """To the minimiser if signs were free, and how many products it took to find."""
        n_products = 0

        def product(v: Array) -> Computation[Array]:
            nonlocal n_products
            n_products += 1
            # rows that nobody else reads
            yield from ()
            _, pulled = self.rows.pass_through(v, lambda pred, rows: self.weights[rows] * pred)
            return pulled + self.ridge * v

        bends = np.where(self.bends > 0.0, self.bends, 1.0)
        uphill = self.slopes + self.threshold * np.sign(self.coef)
        found = alone(
            conjugate_gradients(product, -uphill, lambda v: v / bends, 0.0, _MOST_PRODUCTS)
        )
        return found.solution, n_products

    def _rise(self, change: Array) -> float:
        """By how much the model is larger after a change."""
        moved = self.rows.matvec(change)
        curved = float(self.weights @ moved**2) + float(self.ridge @ change**2)
        longer = np.abs(self.coef + change) - np.abs(self.coef)
        return float(self.slopes @ change) + 0.5 * curved + float(self.threshold @ longer)


# of epochs over all features, and of those in between that see the ones that are not zero: as
# long as slopes are not off by a share only of what they were
_MOST_EPOCHS, _BETWEEN, _SETTLED = 50, 4, 0.1


# what is added to the curvature of columns, relative to the largest: some have none
_RIDGE = 1e-12


@dataclass(frozen=True)
class Accuracy:
    """Where slopes are off by no more than `enough`, or than a share of what they were at first."""

    enough: float
    share: float

    def reached(self, worst: float, first: float) -> bool:
        return worst <= max(self.enough, self.share * first)


class ColumnModel:
    """Models of problems on one sparse design.

    Parameters
    ----------
    design : SparseDesign
        Its copy by columns is read.
    """

    def __init__(self, design: SparseDesign) -> None:
        self._design = design

    def minimiser(
        self, problem: Problem, at: Evaluation, features: Mask, accuracy: Accuracy
    ) -> Array:
        """A point that is as near to the minimiser as is asked for.

        Parameters
        ----------
        problem : Problem
            With an l1 penalty or an elastic net, a smooth loss without linear pieces, and nothing
            folded away. (A column of rows that pull and do not curve would go to infinity.)
        at : Evaluation
            Where the model touches it.
        features : mask of shape (n_features,)
            Those that may change.
        """
        return _Descent(self._design, problem, at, features).run(accuracy)


class _Descent:
    """The way to the minimiser of one model."""

    def __init__(
        self, design: SparseDesign, problem: Problem, at: Evaluation, features: Mask
    ) -> None:
        from safesift.arithmetic.compiled import lasso as kernel

        self._kernel, self._problem, self._at = kernel, problem, at
        self._design, columns = design, design.by_columns
        self._arrays = columns.data, columns.indices, columns.indptr
        self._weights = problem.shares * problem.loss.curvature(at.pred, problem.y)
        self._chosen = np.flatnonzero(features)
        self._coef, self._intercept = at.point[self._chosen], problem.split(at.point)[1]
        self._gradient = problem.smooth_gradient(at)[self._chosen]
        self._threshold = problem.penalty.sparse_threshold(problem.alpha)
        self._bends = np.empty(len(self._chosen))
        kernel.curvatures(*self._arrays, self._chosen, self._weights, self._bends)
        self._bends += _RIDGE * float(self._bends.max(initial=0.0)) + problem.strong_convexity
        self._moved = np.zeros(problem.design.n_samples)

    def run(self, accuracy: Accuracy) -> Array:
        everything, first = np.arange(len(self._chosen)), None
        for _ in range(_MOST_EPOCHS):
            worst = self._epoch(everything)
            first = worst if first is None else first
            if accuracy.reached(worst, first):
                break
            if not self._settles(_SETTLED * worst):
                self._slide(np.flatnonzero(self._coef))
        coef = self._problem.split(self._at.point)[0].copy()
        coef[self._chosen] = self._coef
        return self._problem.join(coef, self._intercept)

    def _settles(self, enough: float) -> bool:
        """Whether a few epochs over what is not zero do, each of which is a tenth of a slide."""
        return any(self._epoch(np.flatnonzero(self._coef)) <= enough for _ in range(_BETWEEN))

    def _epoch(self, which: NDArray[np.intp]) -> float:
        """A step on some features and on the intercept; by how much the worst slope was off."""
        problem = self._problem
        self._count(which, 1)
        worst = self._kernel.lasso_epoch(
            *self._arrays, self._chosen, which, self._weights, self._bends, self._gradient,
            self._threshold, problem.strong_convexity, self._coef, self._moved,
        )  # fmt: skip
        return max(worst, self._shift()) if problem.fit_intercept else worst

    def _slide(self, which: NDArray[np.intp]) -> None:
        """A step on some features, which are not zero, and on the intercept, all at once."""
        problem, n = self._problem, len(which)
        features = np.zeros(self._design.n_features, dtype=bool)
        features[self._chosen[which]] = True
        design = self._design.columns(features).as_held()
        curving = np.flatnonzero(self._weights)
        slopes = design.rmatvec(self._weights * self._moved)
        slopes[:n] += self._gradient[which] + problem.strong_convexity * self._coef[which]
        bends, coef, penalised = self._bends[which], self._coef[which], np.ones(n)
        if problem.fit_intercept:
            slopes[n] += self._at.loss_gradient[-1]
            bends = np.append(bends, self._weights.sum())
            coef, penalised = np.append(coef, self._intercept), np.append(penalised, 0.0)
        face = Face(
            design.only(curving), self._weights[curving], slopes, bends,
            problem.strong_convexity * penalised, self._threshold * penalised, coef,
        )  # fmt: skip
        found = face.slide()
        self._coef[which] += found.change[:n]
        self._intercept += float(found.change[n:].sum())
        self._moved += design.matvec(found.change)
        self._count(which, found.n_products + 1)

    def _count(self, which: NDArray[np.intp], times: int) -> None:
        """So many times two products with the entries of some columns, as a number of rows."""
        _, indices, indptr = self._arrays
        chosen = self._chosen[which]
        share = float((indptr[chosen + 1] - indptr[chosen]).sum()) / max(len(indices), 1)
        tally.count(round(2.0 * times * share * self._problem.design.n_samples))

    def _shift(self) -> float:
        """A step on the intercept, which is not penalised."""
        bend = float(self._weights.sum())
        slope = float(self._at.loss_gradient[-1]) + float(self._weights @ self._moved)
        if not bend > 0:
            return 0.0
        self._intercept -= slope / bend
        self._moved -= slope / bend
        return abs(slope)
