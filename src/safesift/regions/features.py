"""Features certified to be zero under an l1 penalty, and regions in the features that are left."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS
from safesift.design.base import Design
from safesift.design.rows import rows_of
from safesift.problem.decisions import Bounds
from safesift.problem.problem import Problem
from safesift.regions.base import TestSet
from safesift.regions.center import Center

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@np.errstate(over="ignore", invalid="ignore")
def zero_features(center: Center, energy: float) -> Mask:
    """Features that are 0 at every optimum.

    Where the penalty has the term τ|x_j|, x_j = 0 as soon as the j-th partial derivative of the
    rest is below τ at every optimum. The slopes of an L-smooth loss move by at most

        (1/W) Σ s_i (ν_i − ν*_i)² ≤ L·energy,     energy = 2(P(x₀) − P*)

    from the centre to an optimum (co-coercivity), or what a region allows for −gᵀ(x* − x₀), so
    the derivative by at most √(energy·(L Σ s_i a_ij²/W + Q_jj)).

    Parameters
    ----------
    energy : float
        Twice a duality gap, or `SelfConsistent.energy`.
    """
    problem = center.problem
    p = problem.design.n_features
    threshold = min(problem.penalty.sparse_threshold(alpha) for alpha in center.alphas)
    if threshold == 0 or not math.isfinite(energy) or math.isinf(problem.loss.proved_smoothness):
        return np.zeros(p, dtype=bool)
    columns_sq = problem.loss.proved_smoothness * problem.risk.rows.columns_sq[:p]
    if problem.Q is not None:
        columns_sq += np.diag(problem.Q)[:p]
    columns_sq *= 1.0 + problem.hessian_error(problem.design.sum_error) + 8 * EPS
    slope = np.abs(problem.smooth_gradient(center.at)[:p])
    most = slope + np.sqrt(columns_sq * energy) * (1.0 + 8 * EPS)
    return most + center.gradient_error < threshold * (1.0 - 8 * EPS)


@dataclass(frozen=True, eq=False, repr=False)
class FeatureSubspace(TestSet):
    """A set in some of the features: the others are 0 at every optimum.

    Attributes
    ----------
    inner : TestSet
        The set, in the features that are left.
    features : mask
        The features that are left.
    inner_problem : Problem
        In the features that are left.
    """

    inner: TestSet
    features: Mask
    inner_problem: Problem

    @property
    def certified(self) -> bool:
        return self.inner.certified

    def bounds(self, design: Design) -> Bounds:
        # a design may have the intercept's column among its features
        more = np.ones(design.n_features - len(self.features), dtype=bool)
        return self.inner.bounds(rows_of(design).columns(np.append(self.features, more)))

    def own_bounds(self, problem: Problem) -> Bounds:
        return self.inner.own_bounds(self.inner_problem)

    def zero_features(self, n_features: int) -> Mask:
        zero = ~self.features
        zero[self.features] = self.inner.zero_features(int(self.features.sum()))
        return zero

    def describe(self) -> str:
        return f"{self.inner.describe()} in {int(self.features.sum())} features"
