"""A ball around a point that is all but optimal, for the price of a Cholesky factor.

The theorem of curvature regions (`regions.self_consistent`) with a ball in place of its ellipsoid:
u = x* − x₀ has ‖u‖²_H ≤ −gᵀu, so ‖u‖₂ ≤ ‖g‖₂/θ for any θ > 0 with H ⪰ θI, where H is the
curvature of the penalty and of all samples that keep their curvature within that distance. At the
end of a Newton method the gradient is of the size of rounding errors, H is at hand, and hardly any
sample is that close to an end of its piece: nearly all are decided at the cost of one look at each
prediction. Where curvature varies along a piece, as that of the safe logistic loss does, half of
what the matrix has is asked to stay, κI + ½M ⪰ ½(κI + M) ⪰ ½θI, so that a matrix made a step
before serves as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
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
from safesift.problem.looks import prediction_error
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
# of curvature that varies, this share is asked to stay: an interval has less of it than its middle
_KEPT = 0.5
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
        Of the samples' curvature at the point or, where that varies, near it; None where only the
        penalty's is to be used. It is moved where curvature cannot be proved.
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
        columns, share = _columns(center), _share_kept(center.problem)
        for loads in _loads(center, gram):
            kept = np.ones_like(center.carrying)
            for _ in range(_MAX_ROUNDS):
                gram.move(np.where(kept, loads, 0.0))
                floor = share * _least_curvature(center.problem, gram, columns)
                radius = ball_radius(steepness, center.slack, floor)
                failing = _failing(center, share * gram.weights, radius)
                if not failing.any():
                    return _ball(center.certificate, radius)
                if np.count_nonzero(failing) > max(_MANY * len(failing), _FEW_ROWS):
                    break
                kept &= ~failing
        return Everything("no curvature can be proved")


def _share_kept(problem: Problem) -> float:
    """Of the curvature that is there, what is asked to stay: all where it does not vary."""
    return 1.0 if problem.loss.quadratic_rays else _KEPT


def _loads(center: Center, gram: WeightedGram) -> Iterator[Array]:
    """What samples may add to the curvature: what the matrix has, where that varies, then all.

    With a share of it to spare, that of a point nearby serves, and the matrix need not be moved.
    """
    if gram.weights.any() and not center.problem.loss.quadratic_rays:
        yield np.where(center.carrying, gram.weights, 0.0)
    yield center.problem.shares * center.curvature()


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
        known, design, ball = self.near.known, self.design, self.near.ball
        pred, norms = known.pred[rows], design.row_norms[rows]
        if not isinstance(pred, np.ndarray):
            widths = self.near.radius * norms
            reach = widths + ball.error(design, known, widths, rows)
            return clean(Bounds(pred - reach, pred + reach))
        from safesift.arithmetic.compiled.verdicts import enclose

        bounds = Bounds(np.empty_like(pred), np.empty_like(pred))
        enclose(pred, norms, self.near.radius, *ball.error_terms(design, known), *bounds)
        return bounds


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


def _failing(center: Center, loads: Array, radius: float) -> Mask:
    """Rows whose loss need not curve that much within the radius, a block at a time."""
    problem, at = center.problem, center.at

    def failing(rows: slice) -> Mask:
        pred, norms = at.pred[rows], problem.design.row_norms[rows]
        error = prediction_error(problem, at.size, pred, rows)
        reach = radius * norms * (1.0 + 8 * EPS) + error
        loss, y = problem.loss.take(rows), problem.y[rows]
        floor = loss.curvature_floor(pred - reach, pred + reach, y)
        return ~(loads[rows] <= problem.shares[rows] * floor) & center.carrying[rows]

    return np.concatenate([failing(rows) for rows in problem.design.sample_blocks or [slice(0, 0)]])
