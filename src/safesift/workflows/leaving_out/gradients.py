"""Gradients of many models near a base in one pass over the samples, with bounds on rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS
from safesift.workflows.leaving_out.base import Array, Base, Rows


class Gradients(NamedTuple):
    """Of models x + Tv, of each its own.

    pred, doubt : arrays of shape (n_samples, n_models)
        Predictions, and how far each may be from the exact one.
    whitened : array of shape (n_models, n_columns)
        Tᵀ of the gradients.
    errors : array of shape (n_models,)
        How far each of these may be from the exact one.
    """

    pred: Array
    doubt: Array
    whitened: Array
    errors: Array

    def take(self, some: NDArray) -> Gradients:
        """Those of some models."""
        columns = self.pred[:, some], self.doubt[:, some]
        return Gradients(*columns, self.whitened[some], self.errors[some])

    def replace(self, some: Rows, others: Gradients) -> None:
        """Write others over those of some models."""
        self.pred[:, some], self.doubt[:, some] = others.pred, others.doubt
        self.whitened[some], self.errors[some] = others.whitened, others.errors


def gradients_at(
    base: Base, moves: Array, shifts: Array, without: Sequence[Rows] | None = None
) -> Gradients:
    """At the alpha of the base plus a shift each, all but some rows each; smooth, l2."""
    problem, design, scales = base.problem, base.design, base.scales[:, None]
    points = (base.at.point[:, None] + base.basis @ moves.T).copy()
    pred = design.matvec(points)
    slopes = np.stack([problem.loss.slope(one, problem.y) for one in pred.T], axis=1)
    loads = problem.shares[:, None] * slopes
    for k, rows in enumerate(without or ()):
        loads[rows, k] = 0.0
    gradient = design.rmatvec(loads)
    p, ridge = design.n_features, problem.strong_convexity + shifts
    gradient[:p] += ridge * points[:p]
    # everything in scaled columns, as of the base
    doubt = _doubt(base, moves, points, pred)
    error = _loss_errors(base, loads, doubt)
    ridge_size = problem.strong_convexity + np.abs(shifts)
    error += 64 * EPS * ridge_size * np.linalg.norm(points[:p] / scales[:p], axis=0)
    # a point is x + Tv only up to the rounding of Tv, however much of it cancels
    spread = np.linalg.norm(base.basis[:p] / scales[:p])
    error += (base.n_columns + 2) * EPS * spread * ridge_size * np.linalg.norm(moves, axis=1)
    error += (base.n_columns + 8) * EPS * np.linalg.norm(gradient / scales, axis=0)
    error += problem.risk.rows.underflow / float(base.scales.min())
    return Gradients(pred, doubt, gradient.T @ base.basis, base.scaled_size * error)


def _doubt(base: Base, moves: Array, points: Array, pred: Array) -> Array:
    """Bounds on the rounding of predictions: a point is x + Tv only up to rounding, too."""
    problem, design = base.problem, base.design
    sizes = np.linalg.norm(base.scales[:, None] * points, axis=0)
    sizes += base.scaled_size * np.linalg.norm(moves, axis=1)
    targets = np.abs(problem.loss.anchors(problem.y)).max(axis=0)[:, None]
    doubt = (design.dot_error + base.n_columns * EPS) * np.outer(base.scaled_norms, sizes)
    doubt += (4 * EPS + problem.loss.precision) * (np.abs(pred) + targets + 1.0)
    return doubt


def _loss_errors(base: Base, loads: Array, doubt: Array) -> Array:
    """Bounds on the rounding of the losses' gradients in scaled columns, one each."""
    problem, loss, norms = base.problem, base.problem.loss, base.scaled_norms
    terms = base.design.sum_error + loss.precision + base.share_error + 8 * EPS
    return terms * (norms @ np.abs(loads)) + loss.proved_smoothness * (
        (problem.shares * norms) @ doubt
    )
