"""Decisions at a solution for little more than the gap: see `regions.energy`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.design.columns import some_columns
from safesift.problem import Evaluation, Problem
from safesift.regions.base import Bounds, bounds_of_rows
from safesift.regions.center import Center
from safesift.regions.ellipsoidal import EllipsoidalSet, KnownPredictions
from safesift.regions.energy import distance_bound, gap_ellipsoid, proved_curvature
from safesift.regions.features import zero_features
from safesift.regions.shape import Shape
from safesift.screening import Decisions, decide
from safesift.solvers.working_gram import WorkingGram

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# a Gram matrix at hand serves where its weights, times this, are proved
_DISCOUNT = 0.7
_ROUNDING = 1e-12
# what is added to a matrix that is singular to rounding, relative to its diagonal
_RIDGES = (0.0, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7)


class Found(NamedTuple):
    """Decisions, the features that are zero at every optimum, and whether an ellipsoid was used."""

    decisions: Decisions
    zero: Mask
    by_ellipsoid: bool


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def decide_by_gap(
    problem: Problem, at: Evaluation, gap: float, gram: WorkingGram, columns_sq: Array
) -> Found:
    """Decide rows by what the gap proves of slopes, then by the ellipsoid of that curvature.

    Parameters
    ----------
    gap : float
        Certified, of the problem at the evaluation.
    gram : WorkingGram
        Whose columns contain those of all features that may be non-zero, else the ellipsoid is
        left out; its weights are moved to what is proved.
    columns_sq : array
        (1/W) Σ s_i a_ij².
    """
    proved = proved_curvature(problem, at, gap)
    coef, _ = problem.split(at.point)
    center = Center(problem, at, (problem.alpha,))
    zero = zero_features(center, 2.0 * gap, columns_sq) & (coef == 0)
    bounds = proved.bounds
    ellipsoid = None
    if not (~zero & ~gram.features).any() and proved.weights.any():
        ellipsoid = _ellipsoid(problem, at, gap, gram, proved.weights, ~zero)
    if ellipsoid is not None:
        bounds = _sharpened(problem, at, bounds, ellipsoid, ~zero)
    return Found(decide(problem, bounds, "always"), zero, ellipsoid is not None)


def _ellipsoid(
    problem: Problem, at: Evaluation, gap: float, gram: WorkingGram, floors: Array, left: Mask
) -> EllipsoidalSet | None:
    """In the columns of the features that are left."""
    share = 1.0 - _ROUNDING if problem.loss.quadratic_rays else _DISCOUNT
    floors = problem.shares * floors
    gram.move(np.where(share * gram.weights <= floors, gram.weights, floors))
    columns = np.append(left, [True] * problem.fit_intercept).astype(bool)
    inside, penalised = columns[gram.columns], np.arange(int(left.sum()))
    H, spread_sq = share * gram.matrix[np.ix_(inside, inside)], gram.spread[inside] ** 2
    if problem.Q is not None:
        H = H + problem.Q[np.ix_(columns, columns)]
        spread_sq = spread_sq + np.diag(problem.Q)[columns]
    scale, distance = float(np.trace(H)) / len(H), distance_bound(problem, at, gap)
    for ridge in _RIDGES:
        # ‖x* − x₀‖ ≤ distance: with ε on the diagonal and ½ε·distance² on the other side
        epsilon = ridge * scale
        curved = H.copy()
        curved[penalised, penalised] += problem.strong_convexity + epsilon
        spread = np.sqrt(spread_sq + np.diag(curved))
        room = gap + 0.5 * epsilon * distance * distance
        found = gap_ellipsoid(at.point[columns], room, curved, spread, gram.error)
        if found is not None:
            return found
    return None


def _sharpened(
    problem: Problem, at: Evaluation, bounds: Bounds, ellipsoid: EllipsoidalSet, left: Mask
) -> Bounds:
    """The ball around the ellipsoid decides most rows; the ellipsoid itself those in doubt."""
    design = problem.design
    shape = Shape.ball(design.n_columns, ellipsoid.shape.stretch, dense=False)
    known = KnownPredictions(design, at.pred)
    ball = EllipsoidalSet(at.point, shape, ellipsoid.slack, known=known)
    bounds = bounds.intersect(ball.bounds(design))
    doubtful = decide(problem, bounds, "always").undecided
    if not doubtful.any():
        return bounds
    sharper = bounds_of_rows(ellipsoid, some_columns(design, left), doubtful)
    lower, upper = bounds.lower.copy(), bounds.upper.copy()
    lower[doubtful] = np.maximum(lower[doubtful], sharper.lower)
    upper[doubtful] = np.minimum(upper[doubtful], sharper.upper)
    return Bounds(lower, upper)
