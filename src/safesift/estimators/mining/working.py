"""The problem of the training rows and of those that are held, and what its solution proves."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.design import as_design
from safesift.design.base import Design
from safesift.estimators.mining.held import Held
from safesift.estimators.mining.pool import stacked
from safesift.losses import Loss
from safesift.penalties import Penalty
from safesift.problem.decisions import Bounds, decide
from safesift.problem.duality import DualPoint
from safesift.problem.gram import WeightedGram
from safesift.problem.problem import Problem
from safesift.problem.risk import Risk, Targets, WeightedRows
from safesift.regions import Region
from safesift.regions.ball import Balls
from safesift.regions.base import Everything, Intersection, TestSet
from safesift.regions.ellipsoidal import EllipsoidalSet
from safesift.regions.near import NearBall, NearOptimum
from safesift.regions.shape import Shape
from safesift.solvers import Fit, Settings, choose, solve_path
from safesift.solvers.costs import LARGEST

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_LEVELS = 8


@dataclass(frozen=True, eq=False)
class Task:
    """What is the same in every pass.

    Attributes
    ----------
    model : SafeClassifier
        Not fitted; its parameters count, and it weighs the classes.
    X : array or CSR matrix
        The training rows.
    labels : array
        Of the training rows, as the user gave them.
    weights : array
        Of the training rows, without those of the classes.
    classes : array of shape (2,)
        Stand for -1 and 1.
    label : Any
        That of the pool, one of the classes.
    pool_weight : float or array
        Of every row of the pool.
    loss, penalty, settings
        Those of the model, checked.
    """

    model: Any
    X: Any
    labels: NDArray
    weights: Array
    classes: NDArray
    label: Any
    pool_weight: float | Array
    loss: Loss
    penalty: Penalty
    settings: Settings

    @property
    def sign(self) -> float:
        """-1 or 1, what the label of the pool stands for."""
        return 1.0 if self.label == self.classes[1] else -1.0

    def weights_of(self, indices: NDArray) -> Array:
        """Weights of rows of the pool, without those of the classes."""
        if np.ndim(self.pool_weight):
            return self.pool_weight[indices]
        return np.full(len(indices), float(self.pool_weight))

    def total_weight(self, n_pool: int) -> float:
        """Of the first rows of the pool."""
        if np.ndim(self.pool_weight):
            return float(self.pool_weight[:n_pool].sum())
        return n_pool * float(self.pool_weight)

    def factors(self, n_pool: int) -> tuple[Array, float]:
        """The class weights of the training rows and of the pool, all rows counted."""
        if self.model.class_weight is None:
            return np.ones(len(self.labels)), 1.0
        # to count labels, the pool is as good as one row of its weight
        labels = np.append(self.labels, np.asarray([self.label], dtype=self.labels.dtype))
        weights = np.append(self.weights, self.total_weight(n_pool))
        found = self.model._class_weights(labels, weights, self.classes)
        return found[:-1], float(found[-1])

    def problem(self, held: Held, n_pool: int) -> Problem:
        """P_K: training rows and held rows, divided by the weight of all rows."""
        factors, factor = self.factors(n_pool)
        ours, theirs = self.weights * factors, self.weights_of(held.indices) * factor
        targets = np.where(self.labels == self.classes[1], 1.0, -1.0)
        rows = stacked([self.X, held.rows]) if len(held) else self.X
        return self._problem(
            as_design(rows, bool(self.model.fit_intercept)),
            np.append(targets, np.full(len(held), self.sign)),
            np.append(ours, theirs),
            float(ours.sum()) + self.total_weight(n_pool) * factor,
        )

    def part(self, design: Design, start: int) -> Problem:
        """Rows of the pool by themselves, to ask on which piece of their loss they are."""
        weights = self.weights_of(np.arange(start, start + design.n_samples))
        return self._problem(design, np.full(design.n_samples, self.sign), weights, 1.0)

    def _problem(self, design: Design, y: Array, weights: Array, divisor: float) -> Problem:
        risk = Risk(WeightedRows(design, weights, divisor), Targets(self.loss, y))
        return Problem(risk, self.penalty, float(self.model.alpha))


@dataclass(frozen=True, eq=False)
class Working:
    """Where things stand: rows that are held, a point, and a set that decides about the others.

    Attributes
    ----------
    task : Task
    held : Held
    n_pool : int
        How many rows the pool has, or had so far.
    point : array
        The model at hand.
    fit : Fit or None
        The solution of P_K that the point is; None for the model one begins with.
    """

    task: Task
    held: Held
    n_pool: int
    point: Array
    fit: Fit | None = None

    @cached_property
    def at_point(self) -> TestSet:
        """The point alone: proves nothing, but tells which rows have a loss here."""
        shape = Shape.ball(len(self.point), 0.0, dense=False)
        return EllipsoidalSet(self.point, shape, name="the model itself", certified=False)

    @cached_property
    def region(self) -> TestSet:
        """A set that contains every optimum of P_K: the point alone where none was solved for."""
        return self.at_point if self.fit is None else region_around(self.fit, self.task.settings)

    def solved(self, held: Held, n_pool: int, tol: float | None = None) -> Working:
        """The solution with other rows held, from the one at hand; to the task's tol by default."""
        problem, settings = self.task.problem(held, n_pool), self.task.settings
        if tol is not None:
            settings = replace(settings, tol=max(tol, settings.tol))
        # one solution follows another, as on a long path
        name = choose(problem, _LEVELS, settings.solver).name
        ((fit,),) = solve_path([[problem]], replace(settings, solver=name), [self.point])
        return Working(self.task, held, n_pool, fit.at.point, fit)

    def in_doubt(self, start: int, design: Design, test_set: TestSet) -> Mask:
        """Rows of the pool that are not proved to be flat over a set, or have a loss at the point.

        Without a loss at the point, a gap of P_K is one of P there.
        """
        part = self.task.part(design, start)
        flat = _flat(part, test_set.bounds(design))
        if not _is_around(test_set, self.point):
            flat &= _flat(part, self.at_point.bounds(design))
        return ~flat

    def gap_on(self, held: Held, n_pool: int, same_pool: bool) -> float:
        """The gap at the point on the problem of other rows.

        Of the same pool and with more rows, the dual point of the solution serves there too, with
        0 for the rows that are new.
        """
        problem = self.task.problem(held, n_pool)
        at, known = problem.evaluate(self.point), None
        if self.fit is not None and same_pool and n_pool == self.n_pool:
            same = np.isin(held.indices, self.held.indices)
            n_training, before = len(self.task.labels), self.fit.dual
            nu = np.zeros(problem.design.n_samples)
            nu[:n_training] = before.nu[:n_training]
            nu[n_training:][same] = before.nu[n_training:]
            known = DualPoint(nu, before.value)
        return problem.certify(at, known).gap


def _flat(part: Problem, bounds: Bounds) -> Mask:
    return decide(part, bounds, "never").dropped


def _is_around(test_set: TestSet, point: Array) -> bool:
    """Whether a point is the centre of a set, so that bounds over the set hold at the point."""
    inner = test_set.ball if isinstance(test_set, NearBall) else test_set
    return isinstance(inner, EllipsoidalSet) and inner.center is point and inner.cut is None


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
        decisions = decide(problem, region.bounds(problem.design), "always")
        if not screening.worth_more(problem, decisions):
            return region
    return Intersection(tuple(sets))


def _gram(problem: Problem) -> WeightedGram | None:
    return WeightedGram(problem.design) if problem.design.n_columns <= LARGEST else None
