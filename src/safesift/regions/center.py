"""What a curvature region knows about the point it is built around."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, norm
from safesift.problem.certificate import Certificate
from safesift.problem.decisions import Bounds
from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Center:
    """An evaluation, its gradients for one alpha or for both ends of a range, and their errors.

    For a fixed subgradient of R the gradient of P is affine in alpha. The bounds of a region with
    one shape are then convex in alpha, so that its two ends speak for the whole range.

    Attributes
    ----------
    certificate : Certificate
    alphas : tuple of float
        One alpha, or the ends of a range.
    """

    certificate: Certificate
    alphas: tuple[float, ...]

    @classmethod
    def of(cls, certificate: Certificate) -> Center:
        """The centre for the alpha of the problem."""
        return cls(certificate, (certificate.problem.alpha,))

    @property
    def problem(self) -> Problem:
        return self.certificate.problem

    @property
    def at(self) -> Evaluation:
        return self.certificate.at

    @property
    def coef(self) -> Array:
        return self.problem.split(self.at.point)[0]

    @cached_property
    def pulls(self) -> list[Array]:
        """Elements of alpha·∂R at the centre: one for each alpha, proportional to it."""
        p = self.problem.design.n_features
        smooth = self.problem.smooth_gradient(self.at)[:p]
        if self.problem.penalty.is_constraint:
            return [self.at.subgradient[:p] - smooth for _ in self.alphas]
        unit = self.problem.penalty.subgradient(self.coef, -smooth / self.problem.alpha)
        return [alpha * unit for alpha in self.alphas]

    @cached_property
    def gradients(self) -> list[Array]:
        """A subgradient of the objective for each alpha."""
        if len(self.alphas) == 1:
            return [self.at.subgradient]
        smooth = self.problem.smooth_gradient(self.at)
        padding = smooth[len(self.coef) :] * 0.0
        return [smooth + np.concatenate([pull, padding]) for pull in self.pulls]

    @cached_property
    def gradient_error(self) -> float:
        """Bounds the rounding of each gradient, in the 2-norm."""
        error = self.certificate.rounding.gradient
        if len(self.alphas) == 1:
            return error
        sizes = max(norm(gradient) + norm(pull) for gradient, pull in self._pairs)
        smooth = norm(self.problem.smooth_gradient(self.at))
        return error + 16 * EPS * (sizes + smooth)

    @property
    def _pairs(self) -> list[tuple[Array, Array]]:
        return list(zip(self.gradients, self.pulls, strict=True))

    @cached_property
    def slack(self) -> float:
        """gᵀ(x* − x₀) ≤ slack instead of 0, for losses with kinks or points on a constraint."""
        return self.certificate.rounding.cut + self.at.subgradient_slack

    @cached_property
    def pred_error(self) -> Array:
        return self.problem.prediction_error(self.at)

    @cached_property
    def norm_bound(self) -> float:
        """A bound on ‖x*‖₂, for every alpha: what the penalty may cost at an optimum."""
        problem, penalty = self.problem, self.problem.penalty
        cost = 0.0 if penalty.is_constraint else penalty.value(self.coef)
        rest = self.certificate.value - problem.alpha * cost * (1.0 - 8 * EPS)
        bounds = [
            penalty.norm_bound(max(rest + alpha * cost * (1.0 + 8 * EPS), 0.0), alpha)
            for alpha in self.alphas
        ]
        return max(bounds) * (1.0 + 1e-12)

    def diagonal(self, reach: Array) -> Array:
        """The curvature of the penalty in each coordinate, for |x*_j| ≤ reach_j."""
        floors = [
            self.problem.penalty.secant_floor(self.coef, pull, reach, alpha)
            for pull, alpha in zip(self.pulls, self.alphas, strict=True)
        ]
        return np.min(floors, axis=0) * (1.0 - 8 * EPS)

    def diagonal_ceiling(self, lower: Array, upper: Array) -> Array:
        """The most curvature the penalty can have in each coordinate."""
        ceilings = [
            self.problem.penalty.secant_ceiling(self.coef, lower, upper, alpha)
            for alpha in self.alphas
        ]
        return np.max(ceilings, axis=0) * (1.0 + 8 * EPS)

    @cached_property
    def carrying(self) -> NDArray[np.bool_]:
        """Rows that may carry curvature."""
        return self.problem.shares > 0

    def curvature(self) -> Array:
        """f'' at the centre: the most that the weights of a region can be.

        As it is computed, from rounded predictions and with a rounded 1/width. A weight counts
        where a floor of the secants confirms it, which is rounded as well: no more than
        `Loss.curvature_error` above a true one. Times a share that is off by SHARE_ERROR, it is
        within `Problem.curvature_error` of a load that the theorem allows. Regions make no
        difference between the two: H is known to that, beside the rounding of its sums
        (`Problem.hessian_error`), and whatever is proved holds for every matrix so near.
        """
        curvature = self.problem.loss.curvature(self.at.pred, self.problem.y)
        return np.where(self.carrying & np.isfinite(curvature), curvature, 0.0)

    def secant_bounds(self, bounds: Bounds, rows: NDArray) -> tuple[Array, Array]:
        """Least and greatest secants of f' from the centre to where `rows` may be."""
        problem = self.problem
        return problem.loss.take(rows).secant_bounds(
            self.at.pred[rows], self.pred_error[rows], bounds.lower, bounds.upper, problem.y[rows]
        )

    @property
    def can_be_bounded(self) -> bool:
        return math.isfinite(self.gradient_error) and bool(np.isfinite(self.at.subgradient).all())
