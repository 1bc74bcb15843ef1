"""Truncated Newton steps for l2 penalties and smooth losses, where columns are many.

The Newton system (κI + Aᵀ diag(s f''/W) A)d = −g is solved by conjugate gradients on the rows that
curve, preconditioned by its diagonal, only as far as the gap aimed at needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from safesift.problem import Problem
from safesift.solvers.deciding import Found, decide_by_ball
from safesift.solvers.records import Fit, Settings
from safesift.solvers.track import Level, Track, follow

Array = NDArray[np.float64]

# a step is solved to this share of the gradient, or to this share of the gap aimed at
_FORCING, _INNER = 0.1, 0.1
_MOST_PRODUCTS = 500


def newton_cg(
    levels: Sequence[Sequence[Problem]],
    settings: Settings,
    starts: Sequence[Array | None] | None = None,
) -> list[list[Fit]]:
    """Solve problems with an l2 penalty and a smooth loss along a path, however many columns.

    Parameters and result are those of `sparse_newton`. Rows on flat pieces are left out of every
    product; as the next step looks at all rows again, none of that needs a proof.
    """
    return follow(_CGTrack, levels, settings, starts)


class _CGTrack(Track):
    def propose(self, level: Level) -> Array:
        problem, at = level.problem, level.at
        weights = problem.shares * problem.loss.curvature(at.pred, problem.y)
        curved = weights > 0
        rows, weights = problem.design.take(curved), weights[curved]
        ridge = np.full(problem.design.n_columns, problem.strong_convexity)
        ridge[problem.design.n_features :] = 0.0

        def product(v: Array) -> Array:
            _, out = rows.pass_through(v, lambda pred, part: weights[part] * pred)
            out += ridge * v
            return out if problem.Q is None else out + problem.Q @ v

        diagonal = rows.columns_sq(weights) + ridge
        if problem.Q is not None:
            diagonal = diagonal + np.diag(problem.Q)
        diagonal[diagonal <= 0] = 1.0
        gradient = at.subgradient
        # what is left of the gradient costs about ‖residual‖²/(2κ) of the gap
        enough = 2.0 * _INNER * level.target * problem.strong_convexity
        return at.point - conjugate_gradients(product, gradient, diagonal, enough)

    def decide(self, level: Level) -> Found:
        return decide_by_ball(level.problem, level.at, level.gap)


def conjugate_gradients(
    product: Callable[[Array], Array], right: Array, diagonal: Array, enough: float
) -> Array:
    """H⁻¹ right, until ‖residual‖² is `enough` or the residual a tenth of what it was.

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
    limit = max(enough, _FORCING**2 * float(right @ right))
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
