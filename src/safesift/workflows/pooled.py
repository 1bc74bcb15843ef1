"""Training rows and a pool: the full problem P, P_K on some of its rows, and what that proves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from safesift.design import Design, as_design
from safesift.design.pool import HeldRows, stacked
from safesift.design.rows import RowDesign, rows_of
from safesift.problem.decisions import Decisions, decide
from safesift.problem.duality import DualPoint
from safesift.problem.gram import WeightedGram
from safesift.problem.problem import Problem
from safesift.problem.risk import Risk, Targets, WeightedRows
from safesift.regions import EllipsoidalSet, Intersection, Region, TestSet
from safesift.regions.ball import Balls
from safesift.regions.base import Everything
from safesift.regions.near import NearBall, NearOptimum
from safesift.regions.shape import Shape
from safesift.solvers import Fit, Settings, choose, solve_path
from safesift.solvers.costs import LARGEST

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
# from the weight of the pool to those of the classes -1 and 1
ClassFactors = Callable[[float], tuple[float, float]]

# levels of the path as which solutions are counted that follow each other
_LEVELS = 8


@dataclass(frozen=True, eq=False)
class PooledProblem:
    """The full problem P: training rows, and the rows of a pool, all of one class.

    Attributes
    ----------
    training : Problem
        Of the training rows alone; their weights are without those of the classes.
    label : float
        -1 or 1, that of every row of the pool.
    pool_weight : float or array
        Of every row of the pool, without that of its class.
    class_factors : callable
        What the weights of both classes are multiplied by, given the weight of the whole pool.
    """

    training: Problem
    label: float
    pool_weight: float | Array
    class_factors: ClassFactors

    @property
    def n_training(self) -> int:
        return self.training.design.n_samples

    @property
    def training_rows(self) -> RowDesign:
        return rows_of(self.training.design)

    def check_weights(self, n_pool: int, is_all: bool = False) -> None:
        """Refuse weights of other rows than the pool has, or has so far."""
        if not isinstance(self.pool_weight, np.ndarray):
            return
        n_weights = len(self.pool_weight)
        if n_weights < n_pool or (is_all and n_weights > n_pool):
            count = n_pool if is_all else f"at least {n_pool}"
            raise ValueError(
                f"pool_weight has {n_weights} entries but X_pool has {count} rows: pass one per "
                "row, or one number."
            )

    def on(self, held: HeldRows, n_pool: int) -> Problem:
        """P_K: training rows and held rows, divided by the weight of all rows."""
        training, pool_weight = self.training, self._total_weight(n_pool)
        factors = self.class_factors(pool_weight)
        ours = training.weights * np.where(training.y > 0, factors[1], factors[0])
        factor = factors[1] if self.label > 0 else factors[0]
        design = training.design
        if len(held):
            rows = stacked([self.training_rows.data, held.rows])
            design = as_design(rows, design.intercept)
        return self._problem(
            design,
            np.append(training.y, self._targets(len(held))),
            np.append(ours, self._weights(held.indices) * factor),
            float(ours.sum()) + pool_weight * factor,
        )

    def of_block(self, start: int, block: RowDesign) -> Problem:
        """Rows of the pool by themselves, to ask on which piece of their loss they are."""
        weights = self._weights(np.arange(start, start + block.n_samples))
        return self._problem(block, self._targets(block.n_samples), weights, 1.0)

    def _problem(self, design: Design, y: Array, weights: Array, divisor: float) -> Problem:
        risk = Risk(WeightedRows(design, weights, divisor), Targets(self.training.loss, y))
        return replace(self.training, risk=risk)

    def _targets(self, n_rows: int) -> Array:
        return np.full(n_rows, self.label)

    def _weights(self, indices: NDArray[np.intp]) -> Array:
        if isinstance(self.pool_weight, np.ndarray):
            return self.pool_weight[indices]
        return np.full(len(indices), self.pool_weight)

    def _total_weight(self, n_pool: int) -> float:
        if isinstance(self.pool_weight, np.ndarray):
            return float(self.pool_weight[:n_pool].sum())
        return n_pool * self.pool_weight


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model, the rows K it was fitted to, and a set that decides about the other rows.

    Attributes
    ----------
    full : PooledProblem
    settings : Settings
    point : array
        The model.
    indices : array
        The rows of the pool that are held, rising.
    n_pool : int
        How many rows the pool has, or had so far.
    fit : Fit or None
        The solution of P_K that the point is; None for the model one begins with.
    """

    full: PooledProblem
    settings: Settings
    point: Array
    indices: NDArray[np.intp]
    n_pool: int
    fit: Fit | None = None

    @property
    def n_at_hand(self) -> int:
        """How many rows K has."""
        return self.full.n_training + len(self.indices)

    def held(self, start: int, stop: int) -> HeldRows:
        """Those rows of the pool that are held, between two numbers."""
        low, high = np.searchsorted(self.indices, (start, stop))
        n = self.full.n_training
        problem = self.full.training if self.fit is None else self.fit.problem
        rows = rows_of(problem.design).data[n + low : n + high]
        return HeldRows(self.indices[low:high], rows)

    @cached_property
    def at_point(self) -> TestSet:
        """The point alone: proves nothing, but tells which rows have a loss here."""
        shape = Shape.ball(len(self.point), 0.0, dense=False)
        return EllipsoidalSet(self.point, shape, name="the model itself", certified=False)

    @cached_property
    def region(self) -> TestSet:
        """A set that contains every optimum of P_K: the point alone where none was solved for."""
        return self.at_point if self.fit is None else region_around(self.fit, self.settings)

    def solved(self, held: HeldRows, n_pool: int, tol: float = 0.0) -> Candidate:
        """The solution with other rows held, from the one at hand."""
        problem = self.full.on(held, n_pool)
        # one solution follows another, as on a long path
        name = choose(problem, _LEVELS, self.settings.solver).name
        settings = replace(self.settings, solver=name, tol=max(tol, self.settings.tol))
        ((fit,),) = solve_path([[problem]], settings, [self.point])
        return replace(self, point=fit.at.point, indices=held.indices, n_pool=n_pool, fit=fit)

    def in_doubt(self, start: int, block: RowDesign, test_set: TestSet) -> Mask:
        """Rows of the pool that are not proved to be flat over a set, or have a loss at the point.

        Without a loss at the point, a gap of P_K is one of P there.
        """
        problem = self.full.of_block(start, block)
        flat = decide(problem, test_set.bounds(block), "never").dropped
        if not _is_around(test_set, self.point):
            flat &= decide(problem, self.at_point.bounds(block), "never").dropped
        return ~flat

    def unproved(self, held: HeldRows, n_pool: int, same_pool: bool) -> Fit:
        """The point as a fit to other rows, of which none is decided.

        Of the same pool and with more rows, the dual point of the solution serves there too, with
        0 for the rows that are new.
        """
        problem, known, before = self.full.on(held, n_pool), None, self.fit
        if before is not None and same_pool:
            nu, same = np.zeros(problem.design.n_samples), np.isin(held.indices, self.indices)
            nu[np.append(np.ones(self.full.n_training, dtype=bool), same)] = before.dual.nu
            known = DualPoint(nu, before.dual.value)
        certificate = problem.certify(problem.evaluate(self.point), known)
        return Fit(
            certificate=certificate,
            decisions=Decisions.nothing(problem),
            history=() if before is None else before.history,
            n_iter=0 if before is None else before.n_iter,
            converged=certificate.relative_gap <= self.settings.tol,
        )


def _is_around(test_set: TestSet, point: Array) -> bool:
    """Whether a point is the centre of a set, so that bounds over the set hold at the point."""
    inner = test_set.ball if isinstance(test_set, NearBall) else test_set
    return (
        isinstance(inner, EllipsoidalSet)
        and inner.cut is None
        and np.array_equal(inner.center, point)
    )


def region_around(fit: Fit, settings: Settings) -> TestSet:
    """A set that contains every optimum, and that rows which were not solved for can be tested by.

    Where the solver ended next to an optimum a small ball says it all, for one product with the
    rows. Where it did not, the ball of the gap helps, and if many rows are still undecided the best
    region there is.
    """
    certificate, problem, screening = fit.certificate, fit.problem, settings.screening
    if screening.region is not None:
        return screening.region.build(certificate)
    is_smooth = math.isfinite(problem.loss.smoothness)
    recipes: list[Region] = [NearOptimum(_gram(problem))] if is_smooth else []
    recipes += [Balls()] if problem.strong_convexity > 0 else []
    recipes += [screening.thorough] if is_smooth else []
    sets: list[TestSet] = []
    for recipe in recipes:
        found = recipe.build(certificate)
        if isinstance(found, Everything):
            continue
        sets.append(found)
        region = found if len(sets) == 1 else Intersection(tuple(sets))
        decisions = decide(problem, region.own_bounds(problem), "always")
        if not screening.worth_more(problem, decisions):
            return region
    return Intersection(tuple(sets))


def _gram(problem: Problem) -> WeightedGram | None:
    return WeightedGram(rows_of(problem.design)) if problem.design.n_columns <= LARGEST else None
