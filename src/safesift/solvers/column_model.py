"""A sparse problem in some of many features, minimised one coefficient at a time.

By one quadratic model after another,

    m(d) = gᵀd + ½Σ w_i (a_iᵀd)² + penalty(x + d)

with g and w the gradient and the curvatures of the loss at x. A step on a coefficient reads the
entries of its column only, where the Gram matrix of a thousand features has a million entries, and
its factors cost a thousand times that. Epochs of such steps find out which coefficients are not
zero, and then creep along the valleys that similar columns make. They are extrapolated, and where
that does not help, conjugate gradients, which go through valleys, settle how large those are: as
long as signs stay as they are (`Face`) the model is quadratic. An intercept, which is in the way of
every column, is eliminated: it moves with each coefficient to where it is best.

The predictions are known all the way, so that the next model needs the columns of these features,
and no pass over the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic import tally
from safesift.arithmetic.numerics import EPS, solve_positive, total
from safesift.design import SparseDesign
from safesift.design.rows import RowDesign
from safesift.problem.evaluation import Evaluation
from safesift.problem.passes import Computation, alone
from safesift.problem.problem import Problem
from safesift.solvers.conjugate_gradients import conjugate_gradients
from safesift.solvers.line_search import best_share
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


# so many epochs over all features, whatever the model; after each, others over those that are not
# zero, until slopes are off by a share only of what they were; after so many of these they are
# extrapolated, as long as those many make slopes smaller by that factor
_MOST_EPOCHS, _SETTLED, _DEPTH, _PROGRESS = 50, 0.1, 3, 0.5
# what is added to the products of moves, which may depend on each other
_BARELY = 1e-12
# a model is minimised until slopes are off by this share of what they were, where the next one
# will be another
_MODEL = 0.1


# what is added to the curvature of columns, relative to the largest: some have none
_RIDGE = 1e-12


@dataclass(frozen=True)
class Accuracy:
    """Where slopes are off by no more than `enough`, or than a share of what they were at first."""

    enough: float
    share: float

    def reached(self, worst: float, first: float) -> bool:
        return worst <= max(self.enough, self.share * first)


class Reached(NamedTuple):
    """A point, and what is known of it.

    Attributes
    ----------
    point : array
    gain : float
        By how much the objective is less than where the way there began.
    settled : bool
        Whether it is as near to the minimiser as was asked for: epochs may creep.
    """

    point: Array
    gain: float
    settled: bool


class ColumnModel:
    """Problems in some features of one sparse design.

    Parameters
    ----------
    design : SparseDesign
        Its copy by columns is read.
    """

    def __init__(self, design: SparseDesign) -> None:
        self._design = design

    def minimiser(
        self, problem: Problem, at: Evaluation, features: Mask, accuracy: Accuracy
    ) -> Reached:
        """A point that is as near to the minimiser in these features as is asked for.

        Parameters
        ----------
        problem : Problem
            With an l1 penalty or an elastic net, a smooth loss without linear pieces, and nothing
            folded away. (A column of rows that pull and do not curve would go to infinity.)
        at : Evaluation
            Where to begin.
        features : mask of shape (n_features,)
            Those that may change.
        """
        return _Descent(self._design, problem, at, features).run(accuracy)


class State(NamedTuple):
    """Coefficients of the chosen features, the intercept, and how far these moved predictions."""

    coef: Array
    intercept: float
    moved: Array


def mean(states: Sequence[State], weights: Sequence[float] | Array) -> State:
    """Σ weights_k states_k."""
    coef, intercept, moved = (
        sum(weight * part for weight, part in zip(weights, parts, strict=True))
        for parts in zip(*states, strict=True)
    )
    return State(coef, float(intercept), moved)


class _Descent:
    """The way to the minimiser of one model after another."""

    def __init__(
        self, design: SparseDesign, problem: Problem, at: Evaluation, features: Mask
    ) -> None:
        columns = design.by_columns
        self._problem, self._at, self._design = problem, at, design
        self._columns = columns.data, columns.indices, columns.indptr
        self._chosen = np.flatnonzero(features)
        self._coef, self._intercept = at.point[self._chosen], problem.split(at.point)[1]
        self._threshold = problem.penalty.sparse_threshold(problem.alpha)
        self._left = _MOST_EPOCHS
        self._expand(at.pred)

    def _expand(self, pred: Array) -> None:
        """The model where predictions are these."""
        from safesift.arithmetic.compiled import lasso as kernel

        problem, k = self._problem, len(self._chosen)
        self._pred, self._moved = pred, np.zeros_like(pred)
        self._weights = problem.shares * problem.loss.curvature(pred, problem.y)
        loads = problem.shares * problem.loss.slope(pred, problem.y)
        self._gradient, self._bends, sums = np.empty((3, k))
        kernel.expand(
            self._columns, self._chosen, loads, self._weights, self._gradient, self._bends, sums
        )
        self._count(np.arange(k), 1)
        self._pull, self._bend = float(loads.sum()), float(self._weights.sum())
        self._follows = sums / self._bend if self._has_shift else np.zeros(k)
        self._bends -= self._follows * sums
        self._bends += _RIDGE * float(self._bends.max(initial=0.0)) + problem.strong_convexity

    def run(self, accuracy: Accuracy) -> Reached:
        roughly, first = replace(accuracy, share=max(_MODEL, accuracy.share)), None
        began = value = self._value(self._state)
        while True:
            here = self._state
            worst = self._minimise(roughly)
            first = worst if first is None else first
            settled = accuracy.reached(worst, first)
            if not self._value(self._state) <= value + 8 * EPS * abs(value):
                self._state, settled = self._between(here, self._state), False
            reached = self._value(self._state)
            if not reached <= value + 8 * EPS * abs(value):
                self._state = here
                return Reached(self._point, max(began - value, 0.0), False)
            value = reached
            if settled or not self._left:
                return Reached(self._point, max(began - value, 0.0), settled)
            self._expand(self._pred + self._moved)

    @property
    def _point(self) -> Array:
        coef = self._problem.split(self._at.point)[0].copy()
        coef[self._chosen] = self._coef
        return self._problem.join(coef, self._intercept)

    def _value(self, state: State) -> float:
        """The objective."""
        problem = self._problem
        losses = problem.loss.value(self._pred + state.moved, problem.y)
        return total(problem.shares, losses) + problem.alpha * problem.penalty.value(state.coef)

    def _between(self, here: State, there: State) -> State:
        """The best state on the way to another."""

        def at(share: float) -> State:
            return mean((here, there), (1.0 - share, share))

        return at(best_share(lambda share: self._value(at(share))))

    def _minimise(self, accuracy: Accuracy) -> float:
        """Minimise the model; by how much the worst slope was off at first."""
        everything, first = np.arange(len(self._chosen)), None
        while self._left:
            self._left -= 1
            worst = self._epoch(everything)
            first = worst if first is None else first
            if accuracy.reached(worst, first):
                break
            if not self._settles(worst):
                self._slide(np.flatnonzero(self._coef))
        return first or 0.0

    def _settles(self, worst: float) -> bool:
        """Whether epochs over what is not zero do, each of which is a tenth of a slide."""
        which, enough = np.flatnonzero(self._coef), _SETTLED * worst
        while True:
            before, states = worst, [self._state]
            for _ in range(_DEPTH):
                worst = self._epoch(which)
                if worst <= enough:
                    return True
                states.append(self._state)
            self._extrapolate(states)
            if not worst <= _PROGRESS * before:
                return False

    @property
    def _state(self) -> State:
        return State(self._coef.copy(), self._intercept, self._moved.copy())

    @_state.setter
    def _state(self, state: State) -> None:
        self._coef, self._intercept, self._moved = state

    def _extrapolate(self, states: Sequence[State]) -> None:
        """Go to the mean of the states after which they would move least, if the model is less.

        Epochs move like a linear iteration while signs stay (Bertrand and Massias, *Anderson
        acceleration of coordinate descent*, AISTATS 2021); weights of the mean may be negative.
        """
        moves = np.diff([state.coef for state in states], axis=0)
        among = moves @ moves.T
        among += _BARELY * np.trace(among) * np.eye(len(among))
        if not among.any():
            return
        weights = solve_positive(among, np.ones(len(among)))
        weights /= weights.sum()
        ahead = mean(states[1:], weights)
        if self._model_value(ahead) < self._model_value(states[-1]):
            self._state = ahead

    def _model_value(self, state: State) -> float:
        """m, but for a constant."""
        coef, intercept, moved = state
        bent = float(self._weights @ moved**2)
        bent += self._problem.strong_convexity * float(coef @ coef)
        pull = float(self._gradient @ coef) + self._pull * intercept
        return pull + 0.5 * bent + self._threshold * float(np.abs(coef).sum())

    def _epoch(self, which: NDArray[np.intp]) -> float:
        """A step on the intercept and on some features; by how much the worst slope was off."""
        from safesift.arithmetic.compiled import lasso as kernel

        problem = self._problem
        self._count(which, 1)
        off = self._shift() if self._has_shift else 0.0
        worst, shift = kernel.lasso_epoch(
            self._columns, self._chosen, which, self._weights, self._gradient, self._bends,
            self._follows, self._threshold, problem.strong_convexity, self._coef, self._moved,
        )  # fmt: skip
        self._moved += shift
        self._intercept += shift
        return max(worst, off)

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
            slopes[n] += self._pull
            bends = np.append(bends, self._bend)
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
        _, indices, indptr = self._columns
        chosen = self._chosen[which]
        share = float((indptr[chosen + 1] - indptr[chosen]).sum()) / max(len(indices), 1)
        tally.count(round(2.0 * times * share * self._problem.design.n_samples))

    @property
    def _has_shift(self) -> bool:
        """Whether there is an intercept, and rows curve that it is fitted to."""
        return self._problem.fit_intercept and self._bend > 0

    def _shift(self) -> float:
        """A step on the intercept, which is not penalised; by how much its slope was off."""
        slope = self._pull + float(self._weights @ self._moved)
        self._intercept -= slope / self._bend
        self._moved -= slope / self._bend
        return abs(slope)
