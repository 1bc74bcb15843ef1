"""The norm ‖·‖ in which H = (1/W) Σ s_i a_i a_iᵀ + alpha·I is the identity, and leverage scores.

The ridge leverage of a row is a_iᵀH⁻¹a_i: how far it sticks out of what the others span. Their
weighted mean is the effective dimension, the number of directions that the data, and not the
penalty, determine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from safesift.arithmetic.numerics import EPS, cholesky
from safesift.design import Design
from safesift.problem.problem import Problem

Array = NDArray[np.float64]

# beyond this many columns no Gram matrix is factorised
_LARGEST_GRAM = 2000
# random directions of an estimate: its relative error is about √(2/64), a sixth
_N_DIRECTIONS = 64
_CG_STEPS, _CG_TOLERANCE = 60, 0.03
# of a constraint there is no alpha: this share of the mean eigenvalue instead
_RIDGE_SHARE = 1e-4


@dataclass(frozen=True, eq=False)
class Metric(ABC):
    """Measures rows and gradients.

    Attributes
    ----------
    leverage : array of shape (n_samples,)
        a_iᵀH⁻¹a_i.
    dimension : float
        The effective dimension, trace(H⁻¹(H − alpha·I)).
    """

    leverage: Array
    dimension: float

    @classmethod
    def of(cls, problem: Problem, seed: int) -> Metric:
        """Exact where the Gram matrix is small, else by its diagonal and random projections."""
        small = problem.design.n_columns <= _LARGEST_GRAM
        return (WholeMetric if small else DiagonalMetric)._of(problem, seed)

    @classmethod
    @abstractmethod
    def _of(cls, problem: Problem, seed: int) -> Metric: ...

    @abstractmethod
    def whiten(self, gradients: Array) -> Array:
        """H^(-½) times columns, up to a rotation."""

    @abstractmethod
    def whiten_transpose(self, columns: Array) -> Array:
        """The transpose of `whiten`."""


@dataclass(frozen=True, eq=False)
class WholeMetric(Metric):
    """By a Cholesky factor of H."""

    factor: Array

    @classmethod
    def _of(cls, problem: Problem, seed: int) -> WholeMetric:
        design, shares = problem.design, problem.shares
        H = design.gram(shares)
        H[np.diag_indices_from(H)] += _ridges(problem, np.diag(H))
        factor = cholesky(H)[0]
        inverse = solve_triangular(factor, np.eye(len(H)), lower=True)
        leverage = design.projected_sq(inverse.T, np.ones(len(H)))
        return cls(leverage, float(shares @ leverage), factor)

    def whiten(self, gradients: Array) -> Array:
        return solve_triangular(self.factor, gradients, lower=True)

    def whiten_transpose(self, columns: Array) -> Array:
        return solve_triangular(self.factor, columns, lower=True, trans="T")


@dataclass(frozen=True, eq=False)
class DiagonalMetric(Metric):
    """By the diagonal of H; leverage by random projections.

    For independent standard normal u and v the vector z = Aᵀ√(s/W)u + √alpha·v has covariance H, so
    that (a_iᵀH⁻¹z)² has the leverage as its mean. H⁻¹z is found by a few conjugate gradients.
    """

    roots: Array

    @classmethod
    def _of(cls, problem: Problem, seed: int) -> DiagonalMetric:
        design, shares = problem.design, problem.shares
        diagonal = design.columns_sq(shares)
        ridges = _ridges(problem, diagonal)
        rng = np.random.default_rng(seed)
        u = rng.standard_normal((design.n_samples, _N_DIRECTIONS))
        v = rng.standard_normal((design.n_columns, _N_DIRECTIONS))
        z = design.rmatvec(np.sqrt(shares)[:, None] * u) + np.sqrt(ridges)[:, None] * v
        solved = _conjugate_gradients(design, shares, ridges, diagonal + ridges, z)
        leverage = np.square(design.matvec(solved)).mean(axis=1)
        return cls(leverage, float(shares @ leverage), np.sqrt(diagonal + ridges))

    def whiten(self, gradients: Array) -> Array:
        return gradients / self.roots[:, None]

    def whiten_transpose(self, columns: Array) -> Array:
        return columns / self.roots[:, None]


def _ridges(problem: Problem, diagonal: Array) -> Array:
    """What is added to the diagonal: alpha, and next to nothing for an intercept."""
    p = problem.design.n_features
    mean = float(diagonal[:p].mean())
    ridge = _RIDGE_SHARE * mean if problem.penalty.is_constraint else problem.alpha
    # so that the factors exist for any alpha
    least = 64 * problem.design.n_columns * EPS * max(float(diagonal.max()), ridge)
    ridges = np.full(problem.design.n_columns, least)
    ridges[:p] += ridge
    return ridges


def _conjugate_gradients(
    design: Design, shares: Array, ridges: Array, diagonal: Array, right: Array
) -> Array:
    """H⁻¹ times columns, roughly, preconditioned by the diagonal."""
    solved, residual = np.zeros_like(right), right.copy()
    scaled = residual / diagonal[:, None]
    direction, energy = scaled.copy(), np.sum(residual * scaled, axis=0)
    wanted = _CG_TOLERANCE**2 * energy
    for _ in range(_CG_STEPS):
        if (energy <= wanted).all():
            break
        image = design.gram_product(direction, shares) + ridges[:, None] * direction
        step = energy / np.sum(direction * image, axis=0)
        solved += step * direction
        residual -= step * image
        scaled = residual / diagonal[:, None]
        before, energy = energy, np.sum(residual * scaled, axis=0)
        direction = scaled + (energy / before) * direction
    return solved
