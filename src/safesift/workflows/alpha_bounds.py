"""Bounds on every prediction for all alphas between two, from models at both; smooth, l2.

Let x_a and x_b be two points, nearly optimal at alpha_a and alpha_b, and x(τ) and alpha(τ) lie on
the straight lines between them. At x(τ) the gradient of the problem at alpha(τ) is

    g(τ) = (1 − τ)g_a + τg_b − τ(1 − τ)(alpha_b − alpha_a)(x_b − x_a) + Σ shareᵢ·κᵢ(τ)·aᵢ,

the third term without the intercept, and |κᵢ(τ)| ≤ τ(1 − τ)(cᵢ − fᵢ)|tᵢ(b) − tᵢ(a)|: predictions t
are linear in τ, and a slope whose derivative lies between f and c is that far from its chord at
most. For a loss of pieces only samples that change theirs between a and b have c > f. So sup‖Tᵀg‖
is known for all alphas between both, T a basis that whitens the matrix of some alpha near them
(`leaving_out.base`). Where the curvature in these coordinates is at least μ within a radius R of
the line, every optimum is within sup‖Tᵀg‖/μ of it, provided that this is less than R.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from safesift.arithmetic.numerics import EPS, SMALLEST
from safesift.penalties.norms import is_ridge
from safesift.problem.decisions import Bounds
from safesift.problem.problem import Problem
from safesift.workflows.leaving_out.base import (
    LARGEST,
    Array,
    Base,
    Pieces,
    Rows,
    centered_base_at,
    smooth_pieces,
)
from safesift.workflows.leaving_out.gradients import Gradients, gradients_at
from safesift.workflows.leaving_out.smooth import largest_eigenvalue

# Newton's steps to every model, by the matrix of the base; and what is small beside the rest
_STEPS, _SMALL = 6, 0.5
# of each of these to the solution of its system
_INNER_STEPS = 4
# a bound on an eigenvalue by the trace is good enough where it takes no more of the curvature
_LITTLE = 0.25
# radii that are tried: longer than what is found if no curvature is lost, and than that again
_RADII, _LONGER = 4, 1.4


def covers(problem: Problem) -> bool:
    """Whether these bounds are for a problem."""
    smooth = math.isfinite(problem.loss.smoothness) and problem.design.n_columns <= LARGEST
    return smooth and is_ridge(problem.penalty)


class Found(NamedTuple):
    """Models at some alphas, and what is proved between them.

    alphas : array of shape (n_models,)
        Rising.
    pred : array of shape (n_samples, n_models)
    bounds : list of Bounds or None
        Of every stretch: on all predictions for all of its alphas; None where nothing is proved.
    """

    alphas: Array
    pred: Array
    bounds: list[Bounds | None]


class _Stretch(NamedTuple):
    """From one model to another one: the alphas, the predictions between them, and sup‖Tᵀg‖."""

    low: float
    high: float
    between: Bounds
    gradient: float


@dataclass(frozen=True, eq=False)
class Nearby:
    """The base at one alpha, for the alphas near it."""

    base: Base
    pieces: Pieces | None

    @classmethod
    def of(cls, problem: Problem, point: Array) -> Nearby | None:
        """None where the matrix is too ill-posed. The base need not be an optimum."""
        base = centered_base_at(problem, point, steps=1)
        return None if base is None else cls(base, smooth_pieces(base.problem))

    def between(self, stretches: Sequence[tuple[float, float]]) -> Found:
        """Bounds for all alphas from one end of a stretch to the other, for each of them."""
        alphas, places = np.unique(np.array(stretches, dtype=float), return_inverse=True)
        places = places.reshape(-1, 2)
        models, ridges = self._models(alphas, places)
        made = list(self._stretches(alphas, places, models, ridges))
        bounds: list[Bounds | None] = [None] * len(made)
        below = [k for k, one in enumerate(made) if one.low < self.base.problem.alpha]
        for side in (below, [k for k in range(len(made)) if k not in set(below)]):
            nearest = sorted(side, key=lambda k: self._distance(made[k]))
            while nearest:
                kept = self._kept([made[k] for k in nearest])
                if kept is not None:
                    for k in nearest:
                        bounds[k] = self._bounds(made[k], kept)
                    break
                nearest = nearest[: len(nearest) // 2]
        return Found(alphas, models.pred, bounds)

    def _distance(self, one: _Stretch) -> float:
        return max(abs(one.low - self.base.problem.alpha), abs(one.high - self.base.problem.alpha))

    # --- models -----------------------------------------------------------------------------

    def _models(self, alphas: Array, places: Rows) -> tuple[Gradients, Array]:
        """Models at some alphas, and of every stretch ¼(alpha_b − alpha_a)‖Tᵀ(x_b − x_a)‖.

        By Newton's steps with the matrix of the base, moved to each alpha, until gradients are
        small beside what the stretches next to them cost anyway.
        """
        base = self.base
        shifts = alphas - base.problem.alpha
        moves = -self._solved(shifts, base.image + shifts[:, None] * base.pull_of_alpha)
        found, ridges = gradients_at(base, moves, shifts), self._ridges(alphas, places, moves)
        tried = [[pair] for pair in zip(moves.copy(), found.whitened.copy(), strict=True)]
        for _ in range(_STEPS):
            least = np.full(len(alphas), math.inf)
            for end in places.T:
                np.minimum.at(least, end, ridges)
            enough = np.maximum(_SMALL * least, 2.0 * found.errors)
            sizes = np.linalg.norm(found.whitened, axis=1)
            some = np.flatnonzero(sizes > enough)
            if not len(some):
                break
            trial, residuals = map(np.array, zip(*(_mixed(tried[k]) for k in some), strict=True))
            trial = trial - self._solved(shifts[some], residuals)
            new = gradients_at(base, trial, shifts[some])
            for k, move, residual in zip(some, trial, new.whitened, strict=True):
                tried[k].append((move, residual))
            better = np.linalg.norm(new.whitened, axis=1) < sizes[some]
            moves[some[better]] = trial[better]
            found.replace(some[better], new.take(better))
            ridges = self._ridges(alphas, places, moves)
        return found, ridges

    def _solved(self, shifts: Array, right: Array) -> Array:
        """About (I + δK)⁻¹ of some rows, K = TᵀT on the penalised coordinates.

        By Richardson's steps of the best length: the eigenvalues lie between 1 and 1 + δ/alpha.
        """
        delta = shifts[:, None]
        length = 2.0 / (2.0 + delta / self.base.problem.alpha)
        found = length * right
        for _ in range(_INNER_STEPS):
            found += length * (right - found - delta * self._through_penalty(found))
        return found

    def _through_penalty(self, moves: Array) -> Array:
        """K of some rows."""
        return (moves @ self._penalised.T) @ self._penalised

    @property
    def _penalised(self) -> Array:
        return self.base.basis[: self.base.design.n_features]

    def _ridges(self, alphas: Array, places: Rows, moves: Array) -> Array:
        """‖third term of g‖ of every stretch, rounding included."""
        base = self.base
        low, high = places.T
        steps = moves[high] - moves[low]
        rounding = 8 * (base.n_columns + 8) * EPS * base.n_columns * base.growth
        sizes = np.linalg.norm(self._through_penalty(steps), axis=1)
        sizes += rounding * np.linalg.norm(steps, axis=1)
        return 0.25 * (alphas[high] - alphas[low]) * sizes * (1.0 + 1e-9)

    # --- gradients between two models -----------------------------------------------------------

    def _stretches(
        self, alphas: Array, places: Rows, models: Gradients, ridges: Array
    ) -> Iterator[_Stretch]:
        """What is known of every stretch."""
        base, shares = self.base, self.base.problem.shares
        gradients = np.linalg.norm(models.whitened, axis=1) * (1.0 + 1e-12) + models.errors
        lowest, highest = models.pred - models.doubt, models.pred + models.doubt
        ranges = [
            Bounds(
                np.minimum(lowest[:, low], lowest[:, high]),
                np.maximum(highest[:, low], highest[:, high]),
            )
            for low, high in places
        ]
        spreads = [self._spread(between) for between in ranges]
        plain = gradients[places].max(axis=1) + ridges
        kinks, across = np.empty(len(places)), np.empty(len(places))
        for k, (rows, spread, length) in enumerate(spreads):
            load = shares[rows] * spread * length
            kinks[k], across[k] = load @ base.z_norms[rows], load @ length
        if (0.25 * kinks > _SMALL * plain).any():
            most = np.zeros(len(shares))
            for rows, spread, _ in spreads:
                most[rows] = np.maximum(most[rows], spread)
            kinks = np.minimum(kinks, np.sqrt(self._largest(most) * across))
        sups = (plain + 0.25 * kinks) * (1.0 + 1e-9) + SMALLEST
        for k, (low, high) in enumerate(places):
            yield _Stretch(float(alphas[low]), float(alphas[high]), ranges[k], float(sups[k]))

    def _spread(self, between: Bounds) -> tuple[Rows, Array, Array]:
        """Samples whose curvature may vary between two predictions, by how much, over what."""
        rows = self._on_several_pieces(between)
        problem = self.base.problem
        lower, upper = between.take(rows)
        middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower) * (1.0 + 1e-12)
        floor, ceiling = problem.loss.take(rows).secant_bounds(
            middle, half, lower, upper, problem.y[rows]
        )
        return rows, np.maximum(ceiling - floor, 0.0), upper - lower

    @cached_property
    def _trained(self) -> Rows:
        """The samples that weigh something."""
        return np.flatnonzero(self.base.problem.shares)

    @cached_property
    def _breaks(self) -> Array | None:
        return None if self.pieces is None else self.pieces.breaks[self._trained]

    def _on_several_pieces(self, between: Bounds) -> Rows:
        """Those that are not on one piece for certain; all where curvature varies everywhere."""
        if self._breaks is None:
            return self._trained
        lower, upper = between.take(self._trained)
        same = (lower[:, None] > self._breaks) == (upper[:, None] >= self._breaks)
        return self._trained[~same.all(axis=1)]

    # --- curvature around them --------------------------------------------------------------

    def _kept(self, stretches: Sequence[_Stretch]) -> float | None:
        """The curvature around all of some stretches in every direction, None if it is unknown."""
        base = self.base
        longest = float(np.max([one.gradient for one in stretches]))
        lower = np.min([one.between.lower for one in stretches], axis=0)
        upper = np.max([one.between.upper for one in stretches], axis=0)
        shrunk = max(base.problem.alpha - min(one.low for one in stretches), 0.0) * base.growth
        whole = 1.0 - base.looseness - shrunk * (1.0 + 1e-9)
        if not whole > 0:
            return None
        radius = _LONGER * longest / whole
        for _ in range(_RADII):
            room = base.z_norms * radius
            kept = whole - self._largest(self._lost(Bounds(lower - room, upper + room)))
            if not kept > 0:
                return None
            if longest / kept * (1.0 + 1e-9) < radius:
                return kept
            radius = _LONGER * longest / kept
        return None

    def _lost(self, between: Bounds) -> Array:
        """How much less than at the base the samples may curve, wherever they are in between."""
        base, problem = self.base, self.base.problem
        lost = np.zeros(len(base.curvature))
        around = Bounds(
            np.minimum(between.lower, base.at.pred), np.maximum(between.upper, base.at.pred)
        )
        rows = self._on_several_pieces(around)
        rows = rows[base.curvature[rows] > 0]
        floor = problem.loss.take(rows).curvature_floor(*between.take(rows), problem.y[rows])
        lost[rows] = np.maximum(base.curvature[rows] - floor, 0.0)
        return lost

    def _largest(self, curvature: Array) -> float:
        """Of Σ share·curvature·z zᵀ the largest eigenvalue, or its trace where that is small."""
        base = self.base
        trace = float((base.problem.shares * curvature) @ base.z_norms**2) * (1.0 + 1e-9)
        return trace if not trace > _LITTLE else min(trace, largest_eigenvalue(base, curvature))

    def _bounds(self, one: _Stretch, kept: float) -> Bounds:
        room = self.base.z_norms * (one.gradient / kept * (1.0 + 1e-9))
        return Bounds(one.between.lower - room, one.between.upper + room)


def _mixed(tried: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Of the points that were tried, with their gradients, the mixture of least gradient.

    As if that were affine in between (Anderson's acceleration): a few directions in which the
    matrix of the base is far off would take many steps each.
    """
    moves, residuals = (np.array(one) for one in zip(*tried, strict=True))
    best = int(np.linalg.norm(residuals, axis=1).argmin())
    steps, changes = moves - moves[best], residuals - residuals[best]
    if not np.isfinite(changes).all():
        return moves[best], residuals[best]
    shares = np.linalg.lstsq(changes.T, -residuals[best], rcond=1e-10)[0]
    return moves[best] + shares @ steps, residuals[best] + shares @ changes
