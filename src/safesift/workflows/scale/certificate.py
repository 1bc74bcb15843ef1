"""What sums over all rows prove at a point: the duality gap, and a ball around every optimum.

*Gap.* For a smooth loss and an l2 penalty it is `Dual.own_gap`, from the gradient. For any other
penalty the slopes of either sign are scaled by factors of 1 or less so that they cancel, where an
intercept demands it, and are feasible for the penalty. With f*(0) = 0 the conjugates then are at
most the same multiple of what they were, by convexity, and exactly known where c ↦ f*(cν) is a
quadratic polynomial.

*Ball.* All rows that are folded stay on their piece within the clearance of the pass, so that
H = Q + κI is the curvature that every step of a length below that clearance meets: if
‖g‖/θ is below the clearance, for an H ⪰ θI, every optimum is within that distance (`regions.near`),
and every folded row is decided.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, UNDERFLOW, norm
from safesift.design.base import Design
from safesift.losses import Loss
from safesift.problem.duality import Dual
from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.problem.risk import Constant, Risk, Targets, WeightedRows
from safesift.regions.near import ball_radius, proved_curvature_floor
from safesift.workflows.scale.found import Balance, Found, RaySums
from safesift.workflows.scale.passes import Query

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class SummedRows(Design):
    """Rows of which nothing is at hand but sums over them."""

    n_samples: int
    n_features: int
    intercept: bool
    row_length: int
    error: float

    @property
    def dot_error(self) -> float:
        return (self.row_length + 8) * EPS

    @property
    def sum_error(self) -> float:
        return self.error

    def matvec(self, x: Array) -> Array:
        raise TypeError("only sums over the rows are at hand.")

    def rmatvec(self, u: Array) -> Array:
        raise TypeError("only sums over the rows are at hand.")

    def pass_through(self, x: Array, dual: object) -> tuple[Array, Array]:
        raise TypeError("only sums over the rows are at hand.")


@dataclass(frozen=True, eq=False, repr=False)
class SummedWeights(WeightedRows):
    """The weights of such rows."""

    norms: float = 0.0

    @cached_property
    def underflow(self) -> float:
        design = self.design
        spread = math.sqrt(design.n_columns)
        return UNDERFLOW * (self.norms + (design.n_samples + 8) * spread)


@dataclass(frozen=True, eq=False, repr=False)
class SummedRisk(Risk):
    """The loss of such rows; what is known of constant models is told."""

    constant: Constant
    size: float

    @property
    def best_constant(self) -> Constant:
        return self.constant

    @property
    def unit(self) -> float:
        return self.size


@dataclass(frozen=True)
class Extent:
    """What is known of all rows together.

    Attributes
    ----------
    n_rows, n_features, row_length : int
    intercept : bool
    divisor, norms : float
        W, and the sum of the norms of the rows.
    depth : int
        How many sums of blocks are added up, one after the other, at most.
    """

    n_rows: int
    n_features: int
    row_length: int
    intercept: bool
    divisor: float
    norms: float
    depth: int

    def problem(self, query: Query, found: Found, unit: float, constant: float) -> Problem:
        """The problem of all rows, as far as sums over them tell."""
        rows = SummedRows(
            self.n_rows, self.n_features, self.intercept, self.row_length,
            found.sum_error + (self.depth + 4) * EPS,
        )  # fmt: skip
        weights = SummedWeights(rows, np.empty(0), self.divisor, self.norms)
        targets = Targets(query.loss, np.empty(0))
        risk = SummedRisk(weights, targets, Constant(query.constant, constant), unit)
        return Problem(risk, query.penalty, query.alpha)


@dataclass(frozen=True, eq=False)
class Proof:
    """What is proved at a point.

    Attributes
    ----------
    problem : Problem
        Of all rows.
    at : Evaluation
        Without predictions and slopes.
    gap, reference : float
    radius : float
        Every optimum is within that distance, if that is below the clearance.
    clearance : float
        As of the pass.
    """

    problem: Problem
    at: Evaluation
    gap: float
    reference: float
    radius: float
    clearance: float

    @property
    def relative_gap(self) -> float:
        return self.gap / self.reference

    @property
    def decides(self) -> bool:
        """Whether every optimum is within the radius, and every folded row on its piece there."""
        return self.radius < self.clearance * (1.0 - 16 * EPS)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def proof(problem: Problem, query: Query, found: Found, balance: Balance) -> Proof:
    """The gap at the point of a query, and the ball, from what a pass found there."""
    nothing = np.empty(0)
    at = problem._evaluation(
        query.point, norm(query.point), nothing, nothing, found.gradient, found.sums
    )
    # losses are 0 or more, so that 0 bounds the optimal value from below: the dual point 0
    most = at.value + problem.rounding(at).value
    gap = min(Dual(problem).own_gap(at), most)
    if found.rays is not None:
        gap = min(gap, most - _dual_value(problem, at, found.rays))
    gap = math.inf if math.isnan(gap) else max(gap, 0.0)
    radius = _radius(problem, at, balance)
    return Proof(problem, at, gap, problem.reference, radius, found.clearance)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def proof_nearby(
    reduced: Problem,
    at: Evaluation,
    before: Proof,
    balance: Balance,
    clearance: float,
    gap: float | None = None,
) -> Proof:
    """What is proved some steps away from where rows were read, shorter than their clearances.

    Every folded row is on its piece there, so that value and gradient of the reduced problem are
    those of the problem of all rows, and so is `Dual.own_gap`: the dual point is made of the slopes
    of all rows, of which those that are held are shrunk where an intercept demands it. For any
    other penalty than l2 nothing is known that way.

    Where all pieces are linear, so is every gap of the reduced problem: the slopes of folded rows
    are constants, and conjugates there what the pieces have in common with the loss.

    Parameters
    ----------
    reduced : Problem
        Of the held rows, with all the others folded, and bounds on their rounding.
    at : Evaluation
        Of that problem.
    before : Proof
    balance : Balance
    clearance : float
        How far from this point every folded row stays on its piece.
    gap : float, optional
        That of the reduced problem, for a loss whose pieces are all linear.
    """
    if gap is None:
        gap, radius = Dual(reduced).own_gap(at), _radius(reduced, at, balance)
    else:
        radius = _gap_radius(reduced, gap)
    gap = math.inf if math.isnan(gap) else max(gap, 0.0)
    return Proof(before.problem, at, gap, before.reference, radius, clearance)


def _dual_value(problem: Problem, at: Evaluation, rays: RaySums) -> float:
    """A lower bound on the optimal value, from the slopes of either sign scaled."""
    design, p = problem.design, problem.design.n_features
    error_of_sums = design.sum_error + 8 * EPS
    factors, shrink = np.ones(2), 0.0
    if problem.fit_intercept:
        mass = np.abs(rays.gradients[:, -1])
        if mass.min() > 0:
            factors = np.minimum(mass[::-1] / mass, 1.0)
            # they cancel up to the rounding of these sums: what is left costs so much more
            shrink = min(4.0 * error_of_sums * float(mass.sum() / mass.min()), 1.0)
        else:
            factors = np.zeros(2)  # slopes of one sign cancel nowhere but at 0
    error = (error_of_sums + shrink) * at.sums.load * (1.0 + 1e-6) + problem.risk.rows.underflow
    v = (factors @ rays.gradients)[:p]
    low, high = problem.penalty.feasible_multiples(v, np.zeros(p), problem.alpha, error)
    multiple = min(1.0, high)
    if not low <= multiple:
        multiple = 0.0
    scales = multiple * factors
    conjugates = float(_conjugates(problem.loss, rays, scales).sum())
    sizes = float(rays.sizes.sum())
    lost = (design.sum_error + 16 * EPS + problem.loss.precision + shrink) * sizes
    lost += (design.n_samples + 8) * UNDERFLOW
    support = problem.penalty.support(multiple * v, problem.alpha, error)
    rounding = (design.n_columns + 16) * EPS * (abs(conjugates) + support)
    value = -conjugates - lost - support - rounding
    return -math.inf if math.isnan(value) else value


def _conjugates(loss: Loss, rays: RaySums, scales: Array) -> Array:
    """(1/W) Σ s_i f*(scale·ν_i) of either sign, or more, for scales from 0 to 1."""
    if not loss.quadratic_rays:
        return scales * rays.ones
    quadratic, linear = 2.0 * rays.ones - 4.0 * rays.halves, 4.0 * rays.halves - rays.ones
    return np.where(scales == 1.0, rays.ones, scales * (quadratic * scales + linear))


def _gap_radius(problem: Problem, gap: float) -> float:
    """How far every optimum is, by strong convexity; an intercept is not bounded that way."""
    if not problem.strong_convexity > 0 or problem.fit_intercept:
        return math.inf
    return math.sqrt(2.0 * gap / problem.strong_convexity) * (1.0 + 16 * EPS)


def _radius(problem: Problem, at: Evaluation, balance: Balance) -> float:
    """How far every optimum is from the point, if no folded row leaves its piece on the way."""
    if math.isinf(problem.loss.proved_smoothness):
        return math.inf
    kappa, d, p = problem.strong_convexity, problem.design.n_columns, problem.design.n_features
    steepness = norm(at.subgradient) + problem.rounding(at).gradient
    if kappa > 0 and not problem.fit_intercept:
        return ball_radius(steepness, at.subgradient_slack, kappa)
    Q = balance.folded(d).Q
    if Q is None:
        return math.inf
    H = Q.copy()
    H[range(p), range(p)] += kappa
    floor = proved_curvature_floor(H, balance.error + 4 * EPS * kappa * d)
    return ball_radius(steepness, at.subgradient_slack, floor)
