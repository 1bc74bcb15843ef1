"""Truncated Newton steps for l2 penalties and smooth losses, where columns are many.

The Newton system (κI + Aᵀ diag(s f''/W) A)d = −g is solved by conjugate gradients on the rows that
curve, preconditioned by its diagonal, only as far as the gap aimed at needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from safesift.design.base import Design
from safesift.problem import Problem
from safesift.solvers.deciding import Found, decide_by_ball
from safesift.solvers.records import Fit, Settings
from safesift.solvers.track import Level, Track, follow

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# a step is solved to this share of the gradient, or to this share of the gap aimed at
_FORCING, _INNER = 0.05, 0.1
_MOST_PRODUCTS = 500
# copied rows may be so many times as many as curve
_TOO_MANY = 1.2


def newton_cg(
    levels: Sequence[Sequence[Problem]],
    settings: Settings,
    starts: Sequence[Array | None] | None = None,
) -> Iterator[list[Fit]]:
    """Solve problems with an l2 penalty and a smooth loss along a path, however many columns.

    Parameters and result are those of `sparse_newton`. Rows on flat pieces are left out of every
    product; as the next step looks at all rows again, none of that needs a proof.
    """
    return follow(CGTrack, levels, settings, starts)


class CGTrack(Track):
    """Keeps a copy of the rows that curve, as long as not too many others are among them."""

    def __init__(self, problem: Problem, settings: Settings, start: Array | None) -> None:
        super().__init__(problem, settings, start)
        self._copied = np.zeros(problem.design.n_samples, dtype=bool)
        self._rows = problem.design.take(self._copied)

    def propose(self, level: Level) -> Array:
        problem, at = level.problem, level.at
        weights = problem.shares * problem.loss.curvature(at.pred, problem.y)
        self._copy(problem.design, weights > 0)
        system = _NewtonSystem(problem, self._rows, weights[self._copied])
        # what is left of the gradient costs about ‖residual‖²/(2κ) of the gap
        enough = 2.0 * _INNER * level.target * problem.strong_convexity
        step = conjugate_gradients(system.product, at.subgradient, system.diagonal(), enough)
        return at.point - step

    def _copy(self, design: Design, curved: Mask) -> None:
        missing = (curved & ~self._copied).any()
        if missing or self._copied.sum() > _TOO_MANY * curved.sum():
            self._copied, self._rows = curved, design.take(curved)

    def decide(self, level: Level) -> Found:
        return decide_by_ball(level.problem, level.at, level.gap)


class _NewtonSystem:
    """The matrix κI + Q + Aᵀ diag(weights) A, by its products."""

    def __init__(self, problem: Problem, rows: Design, weights: Array) -> None:
        self._rows, self._weights, self._Q = rows, weights, problem.Q
        self._ridge = np.full(rows.n_columns, problem.strong_convexity)
        self._ridge[rows.n_features :] = 0.0

    def product(self, v: Array) -> Array:
        _, out = self._rows.pass_through(v, lambda pred, part: self._weights[part] * pred)
        out += self._ridge * v
        return out if self._Q is None else out + self._Q @ v

    def diagonal(self) -> Array:
        """Positive: 1 where the matrix has 0."""
        diagonal = self._rows.columns_sq(self._weights) + self._ridge
        if self._Q is not None:
            diagonal = diagonal + np.diag(self._Q)
        return np.where(diagonal > 0, diagonal, 1.0)


def conjugate_gradients(
    product: Callable[[Array], Array], right: Array, diagonal: Array, enough: float
) -> Array:
    """H⁻¹ right, until ‖residual‖² is `enough` or the residual small beside `right`.

    Parameters
    ----------
    product : callable
        v ↦ Hv, for a positive semidefinite H.
    diagonal : array
        The preconditioner.
    """
    solution, residual = np.zeros_like(right), right.copy()
    scaled = residual / diagonal
    direction, energy = scaled, float(residual @ scaled)
    size = float(right @ right)
    # where the whole right side would be enough and yet was not, less is
    limit = enough if _FORCING**2 * size < enough < size else _FORCING**2 * size
    for _ in range(_MOST_PRODUCTS):
        if float(residual @ residual) <= limit:
            break
        image = product(direction)
        curvature = float(direction @ image)
        if not curvature > 0:
            break
        length = energy / curvature
        solution += length * direction
        residual = residual - length * image
        scaled = residual / diagonal
        energy, before = float(residual @ scaled), energy
        direction = scaled + (energy / before) * direction
    return solution
