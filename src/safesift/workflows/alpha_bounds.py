"""Bounds on every prediction for all alphas near one, from the model at that one; smooth, l2.

In the coordinates of T (`leaving_out.base`), at alpha + δ the model has moved by v with

    (I + δK + E)v = −(e + δf),     K = TᵀT,  f = Tᵀx  on the penalised coordinates,

E what secants of the samples differ from their curvature at the base, and the looseness of T. So
v = v₀ + error, v₀ = −δf + δ²Kf, and ‖error‖ ≤ (|δ|³‖K²f‖ + ‖Ev₀‖ + ‖e‖)/(1 − ‖E‖ − |δ|‖K‖). Only
samples that may change the piece of their loss are in E, and ‖Ev₀‖ knows how far each of them moves
along v₀: bounds so found leave fewer of them, and are found again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from safesift.arithmetic.numerics import EPS, norm
from safesift.problem.decisions import Bounds
from safesift.problem.problem import Problem
from safesift.solvers import Fit
from safesift.workflows.leaving_out.base import LARGEST, Array, Base, centered_base_at
from safesift.workflows.leaving_out.smooth import largest_eigenvalue

# rounds, and by how much each must shorten the error to be worth the next
_ROUNDS, _WORTHWHILE = 3, 0.7
# the first ball of models is so many times as long as the first step
_LONGER = 1.5


def covers(problem: Problem) -> bool:
    """Whether these bounds are for a problem."""
    smooth = math.isfinite(problem.loss.smoothness) and problem.design.n_columns <= LARGEST
    return smooth and problem.penalty.sparse_threshold(1.0) == 0 and problem.strong_convexity > 0


@dataclass(frozen=True, eq=False)
class Nearby:
    """The base at one alpha, for the alphas near it."""

    base: Base

    @classmethod
    def of(cls, fit: Fit) -> Nearby | None:
        """None where the matrix is too ill-posed."""
        base = centered_base_at(fit.problem, fit.at.point)
        return None if base is None else cls(base)

    @cached_property
    def _steps(self) -> tuple[Array, Array, float]:
        """How far every prediction moves with δ and with δ², and ‖K²f‖."""
        base = self.base
        penalised = base.basis[: base.design.n_features]
        first = base.pull_of_alpha
        second = penalised.T @ (penalised @ first)
        third = penalised.T @ (penalised @ second)
        moved = base.design.matvec(base.basis @ np.stack([-first, second], axis=1))
        return moved[:, 0], moved[:, 1], norm(third) * (1.0 + 1e-9)

    def bounds(self, low: float, high: float) -> Bounds | None:
        """Of every prediction at every optimum, for all alphas from low to high."""
        base, alpha = self.base, self.base.problem.alpha
        far = max(high - alpha, alpha - low, 0.0)
        most = self._self_consistent(far)
        if most is None:
            return None
        shortest, bounds = math.inf, most
        for _ in range(_ROUNDS):
            error = self._error(far, bounds)
            if not error < _WORTHWHILE * shortest:
                break
            shortest = error
            middle = self._along(low - alpha, high - alpha)
            room = base.z_norms * error + base.pred_error + 64 * EPS * np.abs(base.at.pred)
            room += self._rounding(far)
            bounds = bounds.intersect(Bounds(middle.lower - room, middle.upper + room))
        return bounds

    def _self_consistent(self, far: float) -> Bounds | None:
        """The bounds of a ball that contains every optimum, by its own curvature."""
        base = self.base
        step = far * norm(base.pull_of_alpha) + norm(base.image) + base.image_error
        radius = _LONGER * step
        for _ in range(6):
            room = base.pred_error + base.z_norms * radius
            bounds = Bounds(base.at.pred - room, base.at.pred + room)
            lost = self._deviations(bounds)[0]
            kept = 1.0 - base.looseness - self._largest(lost) - far * base.growth
            if kept > 0 and step / kept * (1.0 + 1e-9) < radius:
                return bounds
            radius *= 1.6
        return None

    def _deviations(self, bounds: Bounds) -> tuple[Array, Array]:
        """How far secants may be below the curvature at the base, and how far from it at all."""
        base, problem = self.base, self.base.problem
        floor, ceiling = problem.loss.secant_bounds(
            base.at.pred, base.pred_error, bounds.lower, bounds.upper, problem.y
        )
        lost = np.maximum(base.curvature - floor, 0.0)
        return lost, np.maximum(lost, ceiling - base.curvature)

    def _largest(self, deviation: Array) -> float:
        """Of Σ share·deviation·z zᵀ the largest eigenvalue, or its trace where that is small."""
        base = self.base
        trace = float((base.problem.shares * deviation) @ base.z_norms**2) * (1.0 + 1e-9)
        return trace if not trace > 0.02 else min(trace, largest_eigenvalue(base, deviation))

    def _error(self, far: float, bounds: Bounds) -> float:
        """How far the model may be from the base plus Tv₀."""
        base, (first, second, third) = self.base, self._steps
        lost, deviation = self._deviations(bounds)
        least, whole = self._largest(lost), self._largest(deviation)
        kept = 1.0 - base.looseness - least - far * base.growth
        if not kept > 0:
            return math.inf
        moved = far * (np.abs(first) + far * np.abs(second)) + self._rounding(far)
        across = float((base.problem.shares * deviation) @ moved**2)
        length = far * norm(base.pull_of_alpha) * (1.0 + far * base.growth)
        # that of K, twice, costs no more than the looseness of T
        rest = far**3 * third + 3.0 * base.looseness * length + norm(base.image) + base.image_error
        return (rest + math.sqrt(whole * across)) / kept * (1.0 + 1e-9)

    def _rounding(self, far: float) -> Array:
        """Of how far predictions move along v₀."""
        base = self.base
        length = far * norm(base.pull_of_alpha) * (1.0 + far * base.growth)
        # v₀ is made a point first: a product with T, which may be longer than a sparse row
        product = base.design.dot_error + (base.n_columns + 8) * EPS
        return product * base.scaled_size * base.scaled_norms * 4.0 * length

    def _along(self, below: float, above: float) -> Bounds:
        """The least and the largest prediction along v₀, for all δ between two: parabolas."""
        first, second, _ = self._steps
        pred = self.base.at.pred
        with np.errstate(divide="ignore", invalid="ignore"):
            top = np.clip(np.nan_to_num(-0.5 * first / second), below, above)
        values = [first * one + second * one * one for one in (below, above, top)]
        return Bounds(pred + np.min(values, axis=0), pred + np.max(values, axis=0))
