"""The models of one problem without each of its groups, level by level, by the fastest proof."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from safesift.penalties import L1, ElasticNet
from safesift.penalties.norms import is_ridge
from safesift.problem.problem import Problem
from safesift.solvers import Fit, Settings, solve_path
from safesift.workflows.leaving_out.base import (
    LARGEST,
    Array,
    Rows,
    centered_base_at,
    smooth_pieces,
)
from safesift.workflows.leaving_out.groups import Groups
from safesift.workflows.leaving_out.models import Models
from safesift.workflows.leaving_out.pieces import PiecewiseSpace
from safesift.workflows.leaving_out.refits import Refits
from safesift.workflows.leaving_out.smooth import SmoothSpace
from safesift.workflows.leaving_out.support import SupportSpace

# the relative gap of the models that others are found from
_TOL = 1e-10
# with more weights than that, several share a level, and bounds hold for all alphas between
_MOST_LEVELS = 64

# groups with more than this share of all weights
_HEAVY = 0.05
# what part of the spread of all predictions counts
_SPREAD = 0.8

Space = PiecewiseSpace | SmoothSpace | SupportSpace


@dataclass(frozen=True, eq=False)
class Level:
    """Groups whose models are found from that of all samples at one alpha.

    Attributes
    ----------
    alpha : float
    todo : array of integers
        The groups.
    shifts : array
        By how much the alpha of each of them is above this one.
    """

    alpha: float
    todo: Rows
    shifts: Array


def levels_of(problem: Problem, groups: Groups) -> list[Level]:
    """The alphas at which samples are left out: alpha·(W − s)/W for groups of weight s."""
    weights, whole = _weights_of(groups, problem.weights), problem.divisor
    alphas = problem.alpha * ((whole - weights) / whole)
    for group in np.flatnonzero(weights > _HEAVY * whole):
        # a difference of nearly equal numbers would be hardly known
        rest = math.fsum(problem.weights[groups.owner != group])
        alphas[group] = problem.alpha * (rest / whole)
    distinct, which = np.unique(alphas, return_inverse=True)
    if len(distinct) > _MOST_LEVELS:
        edges = np.quantile(alphas, np.linspace(0.0, 1.0, _MOST_LEVELS + 1)[1:-1])
        _, which = np.unique(np.searchsorted(edges, alphas), return_inverse=True)
    found = []
    for k in range(int(which.max()) + 1):
        todo = np.flatnonzero(which == k)
        own = alphas[todo]
        alpha = float(own[0]) if (own == own[0]).all() else float(0.5 * (own.min() + own.max()))
        found.append(Level(alpha, todo, own - alpha))
    return found


def _weights_of(groups: Groups, weights: Array) -> Array:
    """Of every group, rounded once: what alpha is multiplied by is known to a few digits of 1."""
    if groups.largest <= 1:
        return weights[groups.order]
    return np.array([math.fsum(weights[groups.rows(k)]) for k in range(len(groups))])


@dataclass(frozen=True, eq=False)
class Part:
    """One problem, of one class against the rest or the only one.

    Parameters
    ----------
    problem : Problem
    groups : Groups
    width : float
        How long intervals may be, relative to the spread of the predictions.
    max_iter : int
    start : array, optional
        A point near the model of all samples.
    """

    problem: Problem
    groups: Groups
    width: float
    max_iter: int
    start: Array | None = None

    def found(self) -> tuple[Fit, Models, int]:
        """The model of all samples, those without each group, and how many were solved for."""
        models, refitted, full = Models.empty(self.groups), 0, None
        for fit, level, space in self._levels():
            full = fit if full is None else full
            if level is None:
                continue
            refitted += self._find(fit, level, space, self._width(full), models)
        assert full is not None  # the first level is that of the problem itself
        return full, models, refitted

    def points(self, size: int) -> Iterator[tuple[Rows, Array]]:
        """Blocks of groups, and the models without them as columns."""
        full = None
        for fit, level, space in self._levels():
            full = fit if full is None else full
            if level is None:
                continue
            for start in range(0, len(level.todo), size):
                block = slice(start, start + size)
                some = Level(level.alpha, level.todo[block], level.shifts[block])
                yield some.todo, self._points(fit, some, space, self._width(full))

    def _width(self, full: Fit) -> float:
        # predictions of samples that were left out may spread less than those of all
        spread = _SPREAD * float(np.std(full.at.pred))
        return self.width * (spread if spread > 0 else self.problem.unit)

    def _levels(self) -> Iterator[tuple[Fit, Level | None, Space | None]]:
        """The fit at the problem's own alpha, then those at the alphas of its groups."""
        levels = levels_of(self.problem, self.groups)
        problems = [self.problem, *(self.problem.at_level(level.alpha) for level in levels)]
        settings = Settings(_TOL, self.max_iter)
        fits = solve_path([[one] for one in problems], settings, [self.start])
        for (fit,), level in zip(fits, [None, *levels], strict=True):
            yield fit, level, None if level is None else space_of(fit, self._width(fit))

    def _find(
        self, fit: Fit, level: Level, space: Space | None, width: float, models: Models
    ) -> int:
        """The models of a level; how many had to be solved for."""
        groups, todo = self.groups, level.todo
        left = np.ones(len(todo), dtype=bool)
        if space is not None:
            found = space.models(groups, todo, level.shifts)
            members, _ = groups.members_of(todo)
            models.take(found, todo, members)
            left = ~found.settled[todo] | groups.any(2.0 * found.half > width)[todo]
        refits = Refits(self.problem, fit, width, self.max_iter)
        refits.put(groups, todo[left], level.shifts[left], models)
        return int(left.sum())

    def _points(self, fit: Fit, level: Level, space: Space | None, width: float) -> Array:
        found = np.zeros((len(self.groups), self.problem.design.n_columns))
        left = np.ones(len(level.todo), dtype=bool)
        if space is not None:
            models = space.models(self.groups, level.todo, level.shifts, keep=True)
            left = ~models.settled[level.todo]
            found[level.todo] = space.points(models.moves[level.todo])
        if left.any():
            refits, nothing = (
                Refits(self.problem, fit, width, self.max_iter),
                Models.empty(self.groups),
            )
            refits.put(self.groups, level.todo[left], level.shifts[left], nothing, found)
        return found[level.todo].T


def space_of(fit: Fit, width: float) -> Space | None:
    """Where models are found from a fit without solving for each, None where they are not."""
    problem = fit.problem
    if not np.isfinite(problem.loss.smoothness) or problem.design.n_columns > LARGEST:
        return None
    if not is_ridge(problem.penalty):
        # of a penalty from elsewhere nothing is known beside what `Penalty` says
        sparse = isinstance(problem.penalty, L1 | ElasticNet)
        return SupportSpace.of(fit) if sparse else None
    base = centered_base_at(problem, fit.at.point)
    if base is None:
        return None
    pieces = smooth_pieces(problem)
    return SmoothSpace(base, width) if pieces is None else PiecewiseSpace(base, pieces)
