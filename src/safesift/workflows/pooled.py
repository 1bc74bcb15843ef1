"""Training rows and a pool: the full problem P, P_K on some of its rows, and what that proves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.design import Design, as_design
from safesift.design.pool import Block, HeldRows, stacked
from safesift.design.rows import RowDesign, rows_of
from safesift.problem.decisions import Decisions, decide
from safesift.problem.duality import DualPoint
from safesift.problem.gram import WeightedGram
from safesift.problem.problem import Problem
from safesift.problem.risk import Risk, Targets, WeightedRows, check_shares
from safesift.regions import EllipsoidalSet, Intersection, Region, TestSet
from safesift.regions.ball import Balls
from safesift.regions.base import Everything
from safesift.regions.near import NearBall, NearOptimum
from safesift.regions.shape import Shape
from safesift.solvers import Fit, Settings, choose, solve_path
from safesift.solvers.costs import LARGEST

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
# levels of the path as which solutions are counted that follow each other
_LEVELS = 8


class PoolRead(NamedTuple):
    """How many rows of a pool were read, and what those of the classes -1 and 1 weigh."""

    n_rows: int = 0
    negative: float = 0.0
    positive: float = 0.0

    def plus(self, other: PoolRead) -> PoolRead:
        """Both together."""
        return PoolRead(
            self.n_rows + other.n_rows,
            self.negative + other.negative,
            self.positive + other.positive,
        )

    @property
    def weights(self) -> Array:
        return np.array([self.negative, self.positive])


# from what the pool's rows of both classes weigh to what the weights of these are multiplied by
ClassFactors = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class PooledProblem:
    """The full problem P: training rows, and the rows of a pool, each of either class.

    Attributes
    ----------
    training : Problem
        Of the training rows alone; their weights are without those of the classes.
    pool_weight : float or array
        Of every row of the pool, without that of its class.
    class_factors : callable
        What the weights of both classes are multiplied by, given what the pool weighs.
    """

    training: Problem
    pool_weight: float | Array
    class_factors: ClassFactors

    @property
    def n_training(self) -> int:
        return self.training.design.n_samples

    @property
    def training_rows(self) -> RowDesign:
        return rows_of(self.training.design)

    def weighed(self, block: Block) -> PoolRead:
        """What the rows of a block count for."""
        weights, positive = self._weights(np.arange(block.start, block.stop)), block.signs > 0
        return PoolRead(
            len(weights), float(weights[~positive].sum()), float(weights[positive].sum())
        )

    def on(
        self, rows: RowDesign, indices: NDArray[np.intp], signs: Array, read: PoolRead
    ) -> Problem:
        """P_K, divided by the weight of all rows that were read.

        Parameters
        ----------
        rows : RowDesign
            The training rows and, below, those of the pool that are held.
        indices, signs : arrays
            The numbers and the classes of those that are held.
        """
        training, factors = self.training, self.class_factors(read.weights)
        y = np.append(training.y, signs)
        weights = np.append(training.weights, self._weights(indices)) * _per_sign(factors, y)
        divisor = float(weights[: self.n_training].sum() + factors @ read.weights)
        return self._problem(rows, y, weights, divisor)

    def of_block(self, block: Block) -> Problem:
        """Rows of the pool by themselves, to ask on which piece of their loss they are."""
        weights = self._weights(np.arange(block.start, block.stop))
        return self._problem(block.rows, block.signs, weights, 1.0)

    def _problem(self, design: Design, y: Array, weights: Array, divisor: float) -> Problem:
        check_shares(weights, divisor)
        risk = Risk(WeightedRows(design, weights, divisor), Targets(self.training.loss, y))
        return replace(self.training, risk=risk)

    def _weights(self, indices: NDArray[np.intp]) -> Array:
        if isinstance(self.pool_weight, np.ndarray):
            return self.pool_weight[indices]
        return np.full(len(indices), self.pool_weight)


def _per_sign(factors: Array, signs: Array) -> Array:
    return np.where(signs > 0, factors[1], factors[0])


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model, the rows K it was fitted to, and a set that decides about the other rows.

    Attributes
    ----------
    full : PooledProblem
    settings : Settings
    point : array
        The model.
    rows : RowDesign
        The rows of K: the training rows and, below, those of the pool that are held.
    indices, signs : arrays
        The numbers and the classes of those that are held, as they were found.
    read : PoolRead
        What the pool is, or was so far.
    n_bytes : int
        What those that are held take.
    fit : Fit or None
        The solution of P_K that the point is; None where it was not solved.
    dual : DualPoint or None
        A dual point of P_K, which is 0 for the last rows where it has fewer entries.
    """

    full: PooledProblem
    settings: Settings
    point: Array
    rows: RowDesign
    indices: NDArray[np.intp]
    signs: Array
    read: PoolRead
    n_bytes: int = 0
    fit: Fit | None = None
    dual: DualPoint | None = None

    @classmethod
    def begun(cls, full: PooledProblem, settings: Settings, point: Array) -> Candidate:
        """A model to begin with; nothing of the pool is held."""
        nothing = np.empty(0, dtype=np.intp)
        return cls(full, settings, point, full.training_rows, nothing, np.empty(0), PoolRead())

    @property
    def n_at_hand(self) -> int:
        """How many rows K has."""
        return self.rows.n_samples

    # --- the rows of K ----------------------------------------------------------------------

    def grown(self, found: Sequence[HeldRows], read: PoolRead) -> Candidate:
        """The same model with more rows, and with the pool as it was read."""
        rows = self.rows
        if found:
            matrix = stacked([rows.data, *(part.rows for part in found)])
            rows = rows_of(as_design(matrix, rows.intercept))
        return replace(
            self,
            rows=rows,
            indices=np.concatenate([self.indices, *(part.indices for part in found)]),
            signs=np.concatenate([self.signs, *(part.signs for part in found)]),
            read=read,
            n_bytes=self.n_bytes + sum(part.n_bytes for part in found),
            fit=None,
            # a dual point depends on the divisor
            dual=self.dual if read == self.read else None,
        )

    def without(self, stale: Mask) -> Candidate:
        """The same model without some of the held rows, which are no longer what they were."""
        kept = ~stale
        rows = self.rows.take(np.append(np.ones(self.full.n_training, dtype=bool), kept))
        return replace(
            self,
            rows=rows,
            indices=self.indices[kept],
            signs=self.signs[kept],
            n_bytes=round(self.n_bytes * kept.mean()) if len(kept) else 0,
            fit=None,
            dual=None,
        )

    def held_in(self, block: Block) -> NDArray[np.intp]:
        """Which of the held rows are among those of a block, by their numbers."""
        first, last = np.searchsorted(self.indices, (block.start, block.stop), sorter=self._order)
        return self._order[first:last]

    def held(self, which: NDArray[np.intp]) -> HeldRows:
        """A copy of some of the held rows."""
        rows = self.rows.take(self.full.n_training + which).data
        return HeldRows(self.indices[which], self.signs[which], rows)

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        return np.argsort(self.indices)

    # --- the model --------------------------------------------------------------------------

    @cached_property
    def problem(self) -> Problem:
        """P_K."""
        return self.full.on(self.rows, self.indices, self.signs, self.read)

    def fitted(self, tol: float = 0.0) -> Candidate:
        """The solution of P_K, from the model at hand."""
        # one solution follows another, as on a long path
        name = choose(self.problem, _LEVELS, self.settings.solver).name
        settings = replace(self.settings, solver=name, tol=max(tol, self.settings.tol))
        ((fit,),) = solve_path([[self.problem]], settings, [self.point])
        return replace(self, point=fit.at.point, fit=fit, dual=fit.dual)

    def unproved(self, before: Fit | None) -> Fit:
        """The model as a fit to K, of which no row is decided, after a solution for fewer rows."""
        problem, known = self.problem, None
        if self.dual is not None:
            nu = np.zeros(self.n_at_hand)
            nu[: len(self.dual.nu)] = self.dual.nu
            known = DualPoint(nu, self.dual.value)
        certificate = problem.certify(problem.evaluate(self.point), known)
        return Fit(
            certificate=certificate,
            decisions=Decisions.nothing(problem),
            history=() if before is None else before.history,
            n_iter=0 if before is None else before.n_iter,
            converged=certificate.relative_gap <= self.settings.tol,
        )

    # --- the rows of the pool ---------------------------------------------------------------

    @cached_property
    def at_point(self) -> TestSet:
        """The point alone: proves nothing, but tells which rows have a loss here."""
        shape = Shape.ball(len(self.point), 0.0, dense=False)
        return EllipsoidalSet(self.point, shape, name="the model itself", certified=False)

    @cached_property
    def region(self) -> TestSet:
        """A set that contains every optimum of P_K: the point alone where none was solved for."""
        return self.at_point if self.fit is None else region_around(self.fit, self.settings)

    def in_doubt(self, block: Block, test_set: TestSet) -> Mask:
        """Rows of the pool that are not proved to be flat over a set, or have a loss at the point.

        Without a loss at the point, a gap of P_K is one of P there.
        """
        problem = self.full.of_block(block)
        flat = decide(problem, test_set.bounds(block.rows), "never").dropped
        if not _is_around(test_set, self.point):
            flat &= decide(problem, self.at_point.bounds(block.rows), "never").dropped
        return ~flat


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
        if not screening.worth_more(problem, certificate.at, decisions):
            return region
    return Intersection(tuple(sets))


def _gram(problem: Problem) -> WeightedGram | None:
    return WeightedGram(rows_of(problem.design)) if problem.design.n_columns <= LARGEST else None
