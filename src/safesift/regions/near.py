"""A ball around a point that is all but optimal, for the price of a Cholesky factor.

The theorem of curvature regions (`regions.self_consistent`) with a ball in place of its ellipsoid:
u = x* − x₀ has ‖u‖²_H ≤ −gᵀu, so ‖u‖₂ ≤ ‖g‖₂/θ for any θ > 0 with H ⪰ θI, where H is the
curvature of the penalty and of all samples that keep their curvature within that distance. At the
end of a Newton method the gradient is of the size of rounding errors, H is at hand, and hardly any
sample is that close to an end of its piece: nearly all are decided at the cost of one look at each
prediction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import (
    EPS,
    add_to_diagonal,
    cho_solve,
    cholesky,
    length_bound,
    norm,
    root_over,
    set_diagonal,
)
from safesift.design.base import Design
from safesift.problem.certificate import Certificate
from safesift.problem.decisions import Bounds, RowBounds
from safesift.problem.gram import WeightedGram
from safesift.problem.problem import Problem
from safesift.regions.base import Everything, Region, TestSet, clean
from safesift.regions.center import Center
from safesift.regions.ellipsoidal import EllipsoidalSet, KnownPredictions
from safesift.regions.features import zero_features
from safesift.regions.shape import Shape

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_MAX_ROUNDS = 3
# where a larger share of the rows may lose its curvature, and not only a few, the point is not near
# enough yet
_MANY, _FEW_ROWS = 0.02, 1000
# inverse iterations for the least eigenvalue, and the share of it that is then proved
_ITERATIONS, _SHARE = 3, 0.5
# where it cannot be proved, this share of it is tried
_SMALLER = 0.25


@dataclass(frozen=True, eq=False)
class NearOptimum(Region):
    """The ball around a point in which every optimum lies, from the curvature at the point.

    The whole space where no ball can be proved, as for losses with kinks.

    Parameters
    ----------
    gram : WeightedGram, optional
        Of the samples' curvature at the point; None where only the penalty's is to be used. It is
        moved where curvature cannot be proved.
    """

    gram: WeightedGram | None = None

    @np.errstate(over="ignore", invalid="ignore")
    def build(self, certificate: Certificate) -> TestSet:
        center, problem = Center.of(certificate), certificate.problem
        if math.isinf(problem.loss.smoothness) or not center.can_be_bounded:
            return Everything("the loss has no curvature")
        steepness = norm(certificate.at.subgradient) + center.gradient_error
        if problem.strong_convexity > 0 and not problem.fit_intercept:
            radius = ball_radius(steepness, center.slack, problem.strong_convexity)
            return _ball(certificate, radius)
        if self.gram is None:
            return Everything("the penalty has no curvature")
        return self._confirmed(center, self.gram, steepness)

    @staticmethod
    def _confirmed(center: Center, gram: WeightedGram, steepness: float) -> TestSet:
        """Curvature is taken away from the samples that may lose it, until none may."""
        problem, columns = center.problem, _columns(center)
        weights, kept = center.curvature(), np.ones_like(center.carrying)
        for _ in range(_MAX_ROUNDS):
            gram.move(problem.shares * weights)
            radius = ball_radius(steepness, center.slack, _least_curvature(problem, gram, columns))
            failing = _failing(center, weights, radius)
            if not failing.any():
                return _ball(center.certificate, radius)
            if np.count_nonzero(failing) > max(_MANY * len(failing), _FEW_ROWS):
                break
            kept &= ~failing
            weights = np.where(kept, weights, 0.0)
        return Everything("no curvature can be proved")


def ball_radius(steepness: float, slack: float, curvature: float) -> float:
    """The largest r with curvature·r² ≤ steepness·r + slack."""
    if not curvature > 0:
        return math.inf
    half = 0.5 * steepness / curvature
    # no square that may underflow
    return (half + math.hypot(half, root_over(slack, curvature))) * (1.0 + 16 * EPS)


def _ball(certificate: Certificate, radius: float) -> TestSet:
    problem, at = certificate.problem, certificate.at
    if not math.isfinite(radius):
        return Everything("no curvature can be proved")
    known = KnownPredictions(at.pred, at.size)
    ball = EllipsoidalSet(
        at.point,
        Shape.ball(len(at.point), radius, dense=False),
        name=f"ball near the optimum (radius {radius:.3g})",
        certified=problem.certified,
        known=known,
    )
    return NearBall(ball, radius, known)


@dataclass(frozen=True, eq=False, repr=False)
class NearBall(TestSet):
    """A ball whose bounds are made a block of rows at a time.

    Attributes
    ----------
    ball : EllipsoidalSet
    radius : float
    known : KnownPredictions
        At the centre of the ball.
    """

    ball: EllipsoidalSet
    radius: float
    known: KnownPredictions

    @property
    def certified(self) -> bool:
        return self.ball.certified

    def bounds(self, design: Design) -> Bounds:
        return self.ball.bounds(design)

    def own_bounds(self, problem: Problem) -> Bounds:
        return self.ball.own_bounds(problem)

    def own_row_bounds(self, problem: Problem) -> RowBounds:
        return _BallBounds(self, problem.design)

    def describe(self) -> str:
        return self.ball.describe()


@dataclass(frozen=True, eq=False)
class _BallBounds:
    """|a_iᵀx − prediction| ≤ radius·‖a_i‖ and what rounding adds."""

    near: NearBall
    design: Design

    def take(self, rows: slice) -> Bounds:
        known, design = self.near.known, self.design
        pred, widths = known.pred[rows], self.near.radius * design.row_norms[rows]
        reach = widths + self.near.ball.error(design, known, widths, rows)
        return clean(Bounds(pred - reach, pred + reach))


def _columns(center: Center) -> Mask:
    """Coordinates in which an optimum may differ from the point."""
    coef = center.coef
    moving = (coef != 0) | ~zero_features(center, 2.0 * center.certificate.gap)
    return np.append(moving, True) if center.problem.fit_intercept else moving


def _least_curvature(problem: Problem, gram: WeightedGram, columns: Mask) -> float:
    """A θ with H ⪰ θI on the columns, from a Cholesky factor of H − θI; 0 where there is none.

    H itself is known to error·ccᵀ, whose norm is error·‖c‖² (`Problem.hessian_error`).
    """
    rows = np.flatnonzero(columns)
    if rows.size == 0:
        return 0.0
    H = gram.matrix[np.ix_(rows, rows)]
    spread_sq = gram.spread[rows] ** 2
    if problem.Q is not None:
        H = H + problem.Q[np.ix_(rows, rows)]
        spread_sq = spread_sq + np.diag(problem.Q)[rows]
    penalised = np.flatnonzero(rows < problem.design.n_features)
    add_to_diagonal(H, problem.strong_convexity, len(penalised))
    return proved_curvature_floor(H, problem.hessian_error(gram.error) * float(spread_sq.sum()))


def proved_curvature_floor(H: Array, error: float) -> float:
    """A θ with H ⪰ θI for every matrix within `error` of H, about half of what is true.

    A computed factor of H − θI is the exact one of a matrix no further away than
    (d + 2)·EPS·trace. 0 where nothing can be proved. H is overwritten.
    """
    error += (len(H) + 8) * EPS * float(np.trace(H))
    diagonal = np.diag(H).copy()
    try:
        theta = _SHARE * _least_eigenvalue(H)
    except (np.linalg.LinAlgError, ValueError):
        return 0.0
    # a few inverse iterations may have found another eigenvalue than the least
    while theta > error:
        set_diagonal(H, diagonal - theta)
        try:
            cholesky(H)
        except (np.linalg.LinAlgError, ValueError):
            theta *= _SMALLER
        else:
            return theta - error
    return 0.0


def _least_eigenvalue(H: Array) -> float:
    """Roughly, by inverse iteration: what comes of it is proved elsewhere."""
    factor = cholesky(H)
    u = np.ones(len(H)) / math.sqrt(len(H))
    for _ in range(_ITERATIONS):
        image = cho_solve(factor, u)
        length = length_bound(image)
        u = image / length
    return 1.0 / length


def _failing(center: Center, weights: Array, radius: float) -> Mask:
    """Rows whose loss need not keep its curvature within the radius."""
    problem = center.problem
    reach = radius * problem.design.row_norms * (1.0 + 8 * EPS) + center.pred_error
    pred = center.at.pred
    floor = problem.loss.curvature_floor(pred - reach, pred + reach, problem.y)
    return (weights > floor) & center.carrying
