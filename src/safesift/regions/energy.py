"""What a small duality gap proves by itself, for losses with a Lipschitz slope.

With x* an optimum, t* its predictions, ν* their slopes, 0 ∈ ∂P(x*) and convexity give

    gap ≥ P(x₀) − P* ≥ (1/W) Σ s_i B_i + ½κ‖x₀ − x*‖² + ½‖x₀ − x*‖²_Q,
    B_i = f_i(t_i) − f_i(t*_i) − ν*_i(t_i − t*_i) ≥ (ν_i − ν*_i)² / (2L),

every term ≥ 0. So every slope is known to √(2L·W·gap/s_i), which encloses the predictions of the
rows where the loss curves. On those, B_i ≥ ½w_i(t_i − t*_i)² with w_i the curvature floor of the
enclosure, and x* lies in the ellipsoid ½‖x − x₀‖²_H ≤ gap, H = κI + Q + (1/W) Σ s_i w_i a_i a_iᵀ.
No rounds of lowering weights, and no pass over the data but for the Gram matrix. Under an l1
penalty the ellipsoid lives in the features that the gap does not prove to be zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, ROOT_UNDERFLOW, norm, row_blocks, total
from safesift.design.base import Design
from safesift.design.rows import RowDesign
from safesift.problem.certificate import Certificate
from safesift.problem.decisions import Bounds, in_doubt
from safesift.problem.gram import WorkingGram
from safesift.problem.problem import Problem
from safesift.problem.risk import SHARE_ERROR
from safesift.regions.ball import GapBall
from safesift.regions.base import Region, TestSet, clean
from safesift.regions.center import Center
from safesift.regions.ellipsoidal import EllipsoidalSet, KnownPredictions
from safesift.regions.features import zero_features
from safesift.regions.shape import Shape
from safesift.regions.whitening import Cover, cover, singular_share

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# a weight of the Gram matrix at hand serves where it is within this factor of what is proved
_DISCOUNT = 0.9
_ROUNDING = 1e-12
# features that may be left beside twice those of the solution, for an ellipsoid to be worth it
_FEW = 20
# features that may be left for an ellipsoid to be worth it, at all; and where a rough solution was
# enough, of which it decides little: a relative gap of that or more
_MOST, _MOST_ROUGHLY, _ROUGH = 8000, 400, 1e-6
# of its diagonal, what is added at most to a matrix that is singular to rounding
_MOST_RIDGE = 1e-6
# and by what factor more is added where it does not do
_MORE_RIDGE = 8.0
# entries of a row, relative to the columns, with which one product is cheap next to many
_SHORT = 0.25


@dataclass(frozen=True, eq=False)
class GapEnergy(Region):
    """What the gap proves of slopes and coefficients, and the ellipsoid of proved curvature.

    Without a matrix at hand: the slopes of curving rows, and the ball ½κ‖x* − x₀‖² ≤ gap where
    there is strong convexity in all coordinates. No pass over the data. For smooth losses.

    Parameters
    ----------
    gram : WorkingGram, optional
        Of the samples' curvature. It is moved to the features that may be non-zero, unless they
        are too many, and to what curvature is proved.
    """

    gram: WorkingGram | None = None

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def build(self, certificate: Certificate) -> TestSet:
        proved = proved_curvature(certificate)
        if self.gram is None:
            return self._by_ball(certificate, proved.bounds)
        problem, gram = certificate.problem, self.gram
        coef, _ = problem.split(certificate.at.point)
        zero = zero_features(Center.of(certificate), 2.0 * certificate.gap) & (coef == 0)
        bounds, ellipsoid, left = proved.bounds, None, int((~zero).sum())
        if not problem.pieces:
            # no interval of predictions decides a row, however short it is
            return EnergySet(bounds, zero, problem.certified, True)
        nonzero = int(np.count_nonzero(coef))
        most = _MOST_ROUGHLY if certificate.relative_gap > _ROUGH else _MOST
        if left <= min(_FEW + 2 * nonzero, most) and proved.weights.any():
            if (~zero & ~gram.features).any():
                gram.select(gram.features | ~zero)
            ellipsoid = _ellipsoid(certificate, gram, proved.weights, ~zero)
        if ellipsoid is not None:
            bounds = _sharpened(certificate, bounds, ellipsoid, gram.rows_in(~zero))
        complete = ellipsoid is not None or nonzero > most
        return EnergySet(bounds, zero, problem.certified, complete)

    def _by_ball(self, certificate: Certificate, bounds: Bounds) -> TestSet:
        problem = certificate.problem
        if problem.strong_convexity > 0 and not problem.fit_intercept:
            bounds = bounds.intersect(GapBall().build(certificate).own_bounds(problem))
        zero = np.zeros(problem.design.n_features, dtype=bool)
        return EnergySet(bounds, zero, problem.certified, True)


@dataclass(frozen=True, eq=False, repr=False)
class EnergySet(TestSet):
    """Points near which a small gap leaves the optima, by its bounds on the rows of its problem.

    Attributes
    ----------
    known : Bounds
    zero : mask
        Features that are 0 at every optimum.
    certified, complete : bool
    """

    known: Bounds
    zero: Mask
    certified: bool = True
    complete: bool = True

    def bounds(self, design: Design) -> Bounds:
        return Bounds.none_for(design)

    def own_bounds(self, problem: Problem) -> Bounds:
        return self.known

    def zero_features(self, n_features: int) -> Mask:
        return self.zero

    def describe(self) -> str:
        return "what the gap proves of slopes and coefficients"


def _ellipsoid(
    certificate: Certificate, gram: WorkingGram, floors: Array, left: Mask
) -> EllipsoidalSet | None:
    """In the columns of the features that are left."""
    problem, at = certificate.problem, certificate.at
    least = 1.0 - _ROUNDING if problem.loss.quadratic_rays else _DISCOUNT
    floors = problem.shares * floors
    serves = (least * gram.weights <= floors) & (gram.weights >= _DISCOUNT * floors)
    gram.move(np.where(serves, gram.weights, floors))
    columns = np.append(left, [True] * problem.fit_intercept).astype(bool)
    inside, penalised = columns[gram.columns], np.arange(int(left.sum()))
    H, spread_sq = least * gram.matrix[np.ix_(inside, inside)], gram.spread[inside] ** 2
    if problem.Q is not None:
        H = H + problem.Q[np.ix_(columns, columns)]
        spread_sq = spread_sq + np.diag(problem.Q)[columns]
    H[penalised, penalised] += problem.strong_convexity
    point, error = at.point[columns], problem.hessian_error(gram.error)
    spread = np.sqrt(spread_sq + np.diag(H))
    found = gap_ellipsoid(point, certificate.gap, H, spread, error)
    if found is not None or not (np.diag(H) > 0).all():
        return found
    # some columns depend on others. ‖x* − x₀‖ ≤ distance: with a share of its diagonal beside H,
    # and with ½·share·largest·distance² on the other side
    share, diagonal = singular_share(H, spread, error), np.diag(H)[penalised]
    distance = distance_bound(certificate)
    while found is None and share <= _MOST_RIDGE:
        ridge = share * diagonal
        H[penalised, penalised] = diagonal + ridge
        more = 0.5 * float(ridge.max(initial=0.0)) * distance * distance
        room = (certificate.gap + more) * (1.0 + 8 * EPS)
        found = gap_ellipsoid(point, room, H, np.sqrt(spread_sq + np.diag(H)), error, share)
        # an intercept that many columns together make up for gets little of it
        share *= _MORE_RIDGE
    return found


def _sharpened(
    certificate: Certificate, bounds: Bounds, ellipsoid: EllipsoidalSet, rows: RowDesign
) -> Bounds:
    """The ball around the ellipsoid decides most rows; the ellipsoid itself those in doubt.

    `rows` are all of them, in the columns that the ellipsoid lives in.
    """
    problem, at = certificate.problem, certificate.at
    design, shape = problem.design, ellipsoid.shape
    ball = Shape.ball(design.n_columns, shape.stretch, dense=False)
    known = KnownPredictions(at.pred, at.size)
    around = EllipsoidalSet(at.point, ball, ellipsoid.slack, known=known)
    bounds = bounds.intersect(around.own_bounds(problem))
    for test in (_box_bounds, EllipsoidalSet.bounds):
        doubtful = in_doubt(problem, bounds)
        if not (doubtful.any() and len(ellipsoid.center)):
            break
        bounds = _narrowed(bounds, doubtful, test(ellipsoid, rows.only(doubtful)))
    return bounds


def _box_bounds(ellipsoid: EllipsoidalSet, rows: RowDesign) -> Bounds:
    """By how far each coordinate may be off: of a row with few entries that is one product.

    No more than the rows of other designs would cost by the ellipsoid itself is spent on it.
    """
    if rows.row_length > _SHORT * rows.n_columns:
        return Bounds.none_for(rows)
    widths = ellipsoid.shape.coordinate_widths()
    reach = np.concatenate(
        [abs(rows.block(part)) @ widths[: rows.n_features] for part in row_blocks(rows.n_samples)]
    )
    reach += widths[rows.n_features :].sum()
    reach *= 1.0 + (rows.n_columns + 8) * EPS
    known = KnownPredictions(rows.matvec(ellipsoid.center), rows.size(ellipsoid.center))
    reach += ellipsoid.error(rows, known, reach, slice(None))
    return clean(Bounds(known.pred - reach, known.pred + reach))


def _narrowed(bounds: Bounds, rows: Mask, sharper: Bounds) -> Bounds:
    lower, upper = bounds.lower.copy(), bounds.upper.copy()
    lower[rows] = np.maximum(lower[rows], sharper.lower)
    upper[rows] = np.minimum(upper[rows], sharper.upper)
    return Bounds(lower, upper)


class ProvedCurvature(NamedTuple):
    """Curvature floors w_i between x₀ and every optimum, and the bounds they hold on."""

    weights: Array
    bounds: Bounds


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def proved_curvature(certificate: Certificate) -> ProvedCurvature:
    """The rows that the gap proves to be where their loss curves, at every optimum.

    The slope f' grows: where f'(t_i ± ρ_i) is beyond what ν*_i can be, |t*_i − t_i| < ρ_i.
    """
    problem, at, gap = certificate.problem, certificate.at, certificate.gap
    loss, y, error = problem.loss, problem.y, problem.prediction_error(at)
    curvature = loss.curvature(at.pred, y)
    smoothness = loss.proved_smoothness
    noise = smoothness * error + (16 * EPS + loss.precision) * (1.0 + np.abs(at.nu))
    reach = np.sqrt(2.0 * smoothness * gap / problem.shares) * (1.0 + 8 * EPS) + 2.0 * noise
    rho = 1.01 * reach / curvature + 2.0 * error
    lower, upper = at.pred - rho, at.pred + rho
    enclosed = (problem.shares > 0) & (curvature > 0) & np.isfinite(rho)
    enclosed &= loss.slope(upper, y) - at.nu > reach
    enclosed &= at.nu - loss.slope(lower, y) > reach
    bounds = Bounds(np.where(enclosed, lower, -math.inf), np.where(enclosed, upper, math.inf))
    floor = loss.curvature_floor(
        np.where(enclosed, lower - error, at.pred), np.where(enclosed, upper + error, at.pred), y
    )
    return ProvedCurvature(np.where(enclosed, floor * (1.0 - 16 * EPS), 0.0), bounds)


def distance_bound(certificate: Certificate) -> float:
    """A bound on ‖x* − x₀‖ for every optimum, the intercept left aside.

    A loss that is ≥ 0 and L-smooth is at least ν²/(2L), so that the slopes bound the mean loss at
    an optimum from below, and what is left of P(x₀) bounds the penalty there.
    """
    problem, at = certificate.problem, certificate.at
    coef, _ = problem.split(at.point)
    # less than 0 only where a wrong guess was folded, of which nothing is claimed
    most = max(certificate.value, 0.0)
    L, precision = problem.loss.proved_smoothness, 16 * EPS + problem.loss.precision
    if problem.folded is None and math.isfinite(L):
        noise = L * problem.prediction_error(at) + precision * np.abs(at.nu)
        # sums in place of norms: samples may be on a device. A square that underflows makes the
        # slopes smaller, and is given to the noise; one that overflows says nothing
        slopes, lost = (
            math.sqrt(total(problem.shares, values * values)) for values in (at.nu, noise)
        )
        # of the sum, and of the shares in it
        error = problem.design.sum_error + SHARE_ERROR + 8 * EPS
        lost = lost * (1.0 + error) + ROOT_UNDERFLOW
        room = math.sqrt(2.0 * L * certificate.gap) * (1.0 + 8 * EPS)
        least = max(slopes * (1.0 - error) - lost - room, 0.0) * (1.0 - 8 * EPS)
        if math.isfinite(least):
            most = max(most - 0.5 * least * least / L, 0.0)
    return (problem.penalty.norm_bound(most, problem.alpha) + norm(coef)) * (1.0 + 16 * EPS)


def gap_ellipsoid(
    point: Array, gap: float, H: Array, spread: Array, error: float, ridge: float = 0.0
) -> EllipsoidalSet | None:
    """{ x : ½‖x − point‖²_H ≤ gap }, None where H is too close to singular for the arithmetic.

    Parameters
    ----------
    H, spread, error
        A matrix below κI + Q + Σ share_i w_i a_i a_iᵀ, known to error·spread·spreadᵀ.
    ridge : float
        A share of its diagonal that was added to it.
    """
    found = cover(H, spread, error, ridge) if len(H) else Cover(H, 0.0)
    if found is None:
        return None
    radius = math.sqrt(2.0 * gap / (1.0 - found.looseness)) * (1.0 + 8 * EPS)
    # in place: there may be thousands of columns
    shape = Shape(len(point), 1.0, None, np.multiply(found.basis, radius, out=found.basis))
    slack = 4 * EPS * norm(point)
    return EllipsoidalSet(point, shape, slack, name="gap ellipsoid")
