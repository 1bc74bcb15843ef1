"""Decisions at a solution for little more than the gap: see `regions.energy`."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, norm
from safesift.design.columns import some_columns
from safesift.problem.decisions import Bounds, Decisions, decide
from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.regions.base import bounds_of_rows
from safesift.regions.center import Center
from safesift.regions.ellipsoidal import EllipsoidalSet, KnownPredictions
from safesift.regions.energy import distance_bound, gap_ellipsoid, proved_curvature
from safesift.regions.features import zero_features
from safesift.regions.shape import Shape
from safesift.solvers.working_gram import WorkingGram

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# a weight of the Gram matrix at hand serves where it is within this factor of what is proved
_DISCOUNT = 0.9
_ROUNDING = 1e-12
# features that may be left beside twice those of the solution, for an ellipsoid to be worth it
_FEW = 20
# features that may be left for an ellipsoid to be worth it, at all
_MOST = 2000
# what is added to a matrix that is singular to rounding, relative to its diagonal
_RIDGES = (0.0, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7)


class Found(NamedTuple):
    """Decisions, the features proved to be zero, and whether a smaller gap would not help much."""

    decisions: Decisions
    zero: Mask
    complete: bool


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
        Moved to all features that may be non-zero, unless they are too many, and to what is proved.
    columns_sq : array
        (1/W) Σ s_i a_ij².
    """
    proved = proved_curvature(problem, at, gap)
    coef, _ = problem.split(at.point)
    center = Center(problem, at, (problem.alpha,))
    zero = zero_features(center, 2.0 * gap, columns_sq) & (coef == 0)
    bounds = proved.bounds
    ellipsoid = None
    missing = ~zero & ~gram.features
    left = int((~zero).sum())
    if left <= min(_FEW + 2 * np.count_nonzero(coef), _MOST) and proved.weights.any():
        if missing.any():
            gram.select(gram.features | missing)
        ellipsoid = _ellipsoid(problem, at, gap, gram, proved.weights, ~zero)
    if ellipsoid is not None:
        bounds = _sharpened(problem, at, bounds, ellipsoid, ~zero)
    complete = ellipsoid is not None or left > _MOST
    return Found(decide(problem, bounds, "always"), zero, complete)


def _ellipsoid(
    problem: Problem, at: Evaluation, gap: float, gram: WorkingGram, floors: Array, left: Mask
) -> EllipsoidalSet | None:
    """In the columns of the features that are left."""
    share = 1.0 - _ROUNDING if problem.loss.quadratic_rays else _DISCOUNT
    floors = problem.shares * floors
    serves = (share * gram.weights <= floors) & (gram.weights >= _DISCOUNT * floors)
    gram.move(np.where(serves, gram.weights, floors))
    columns = np.append(left, [True] * problem.fit_intercept).astype(bool)
    inside, penalised = columns[gram.columns], np.arange(int(left.sum()))
    H, spread_sq = share * gram.matrix[np.ix_(inside, inside)], gram.spread[inside] ** 2
    if problem.Q is not None:
        H = H + problem.Q[np.ix_(columns, columns)]
        spread_sq = spread_sq + np.diag(problem.Q)[columns]
    scale, distance = float(np.trace(H)) / max(len(H), 1), distance_bound(problem, at, gap)
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
    bounds = bounds.intersect(_ball(problem, at, ellipsoid.shape.stretch, ellipsoid.slack))
    doubtful = decide(problem, bounds, "always").undecided
    if not (doubtful.any() and len(ellipsoid.center)):
        return bounds
    sharper = bounds_of_rows(ellipsoid, some_columns(design, left), doubtful)
    lower, upper = bounds.lower.copy(), bounds.upper.copy()
    lower[doubtful] = np.maximum(lower[doubtful], sharper.lower)
    upper[doubtful] = np.minimum(upper[doubtful], sharper.upper)
    return Bounds(lower, upper)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def decide_by_ball(problem: Problem, at: Evaluation, gap: float) -> Found:
    """Decide rows by what the gap proves of slopes and coefficients: no pass over the data.

    The ball ½κ‖x* − x₀‖² ≤ gap bounds predictions where there is strong convexity in all
    coordinates; the slopes of curving rows are bounded without it.
    """
    bounds = proved_curvature(problem, at, gap).bounds
    if problem.strong_convexity > 0 and not problem.fit_intercept:
        radius = math.sqrt(2.0 * gap / problem.strong_convexity) * (1.0 + 8 * EPS)
        bounds = bounds.intersect(_ball(problem, at, radius, 4 * EPS * norm(at.point)))
    nothing = np.zeros(problem.design.n_features, dtype=bool)
    return Found(decide(problem, bounds, "always"), nothing, True)


def _ball(problem: Problem, at: Evaluation, radius: float, slack: float) -> Bounds:
    shape = Shape.ball(problem.design.n_columns, radius, dense=False)
    known = KnownPredictions(problem.design, at.pred)
    return EllipsoidalSet(at.point, shape, slack, known=known).bounds(problem.design)
