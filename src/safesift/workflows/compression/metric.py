"""The norm ‖·‖ in which H = (1/W) Σ s_i a_i a_iᵀ + alpha·I is the identity, and leverage scores.

The ridge leverage of a row is a_iᵀH⁻¹a_i: how far it sticks out of what the others span. Their
weighted mean is the effective dimension, the number of directions that the data, and not the
penalty, determine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from safesift.arithmetic.numerics import EPS, cholesky
from safesift.design.rows import RowDesign, rows_of
from safesift.problem.problem import Problem

Array = NDArray[np.float64]

# beyond this many columns no Gram matrix is factorised
_LARGEST_GRAM = 2000
# random directions of an estimate: its relative error is about √(2/64), a sixth
N_DIRECTIONS = 64
_CG_STEPS, _CG_TOLERANCE = 60, 0.03
# of a constraint there is no alpha: this share of the mean eigenvalue instead
_RIDGE_SHARE = 1e-4


class WeightedSums(Protocol):
    """Sums over all rows, each with the share s_i/W.

    Attributes
    ----------
    n_features, n_columns : int
        Without and with the column of ones.
    ridge : float or None
        alpha; None for a constraint.
    """

    @property
    def n_features(self) -> int: ...
    @property
    def n_columns(self) -> int: ...
    @property
    def ridge(self) -> float | None: ...

    def gram(self) -> Array:
        """(1/W) Σ s_i a_i a_iᵀ."""

    def diagonal(self) -> Array:
        """That of the Gram matrix."""

    def product(self, directions: Array) -> Array:
        """The Gram matrix times columns."""

    def noise(self, seed: int) -> Array:
        """Σ √(s_i/W) a_i u_iᵀ for independent standard normal u_i of `N_DIRECTIONS` entries."""


@dataclass(frozen=True, eq=False)
class SumsInMemory:
    """Those of a problem."""

    problem: Problem

    @property
    def _rows(self) -> RowDesign:
        return rows_of(self.problem.design)

    @property
    def n_features(self) -> int:
        return self.problem.design.n_features

    @property
    def n_columns(self) -> int:
        return self.problem.design.n_columns

    @property
    def ridge(self) -> float | None:
        return None if self.problem.penalty.is_constraint else self.problem.alpha

    def gram(self) -> Array:
        return self._rows.gram(self.problem.shares)

    def diagonal(self) -> Array:
        return self._rows.columns_sq(self.problem.shares)

    def product(self, directions: Array) -> Array:
        return self._rows.gram_product(directions, self.problem.shares)

    def noise(self, seed: int) -> Array:
        return noise_of(self._rows, self.problem.shares, np.random.default_rng(seed))


def noise_of(rows: RowDesign, shares: Array, rng: np.random.Generator) -> Array:
    """As `WeightedSums.noise`, of some rows."""
    u = rng.standard_normal((rows.n_samples, N_DIRECTIONS))
    return rows.rmatvec(np.sqrt(shares)[:, None] * u)


class LeverageMetric(ABC):
    """Measures rows and gradients."""

    @classmethod
    def of(cls, sums: WeightedSums, seed: int) -> LeverageMetric:
        """Exact where the Gram matrix is small, else by its diagonal and random projections."""
        small = sums.n_columns <= _LARGEST_GRAM
        return (WholeMetric if small else DiagonalMetric).made(sums, seed)

    @classmethod
    @abstractmethod
    def made(cls, sums: WeightedSums, seed: int) -> LeverageMetric: ...

    @abstractmethod
    def leverage(self, rows: RowDesign) -> Array:
        """a_iᵀH⁻¹a_i."""

    @abstractmethod
    def whiten(self, gradients: Array) -> Array:
        """H^(-½) times columns, up to a rotation."""

    @abstractmethod
    def whiten_transpose(self, columns: Array) -> Array:
        """The transpose of `whiten`."""


@dataclass(frozen=True, eq=False)
class WholeMetric(LeverageMetric):
    """By a Cholesky factor of H."""

    factor: Array

    @classmethod
    def made(cls, sums: WeightedSums, seed: int) -> WholeMetric:
        H = sums.gram()
        H[np.diag_indices_from(H)] += _ridges(sums, np.diag(H))
        return cls(cholesky(H)[0])

    @cached_property
    def _inverse(self) -> Array:
        return solve_triangular(self.factor, np.eye(len(self.factor)), lower=True)

    def leverage(self, rows: RowDesign) -> Array:
        return rows.projected_sq(self._inverse.T, np.ones(len(self.factor)))

    def whiten(self, gradients: Array) -> Array:
        return solve_triangular(self.factor, gradients, lower=True)

    def whiten_transpose(self, columns: Array) -> Array:
        return solve_triangular(self.factor, columns, lower=True, trans="T")


@dataclass(frozen=True, eq=False)
class DiagonalMetric(LeverageMetric):
    """By the diagonal of H; leverage by random projections.

    For independent standard normal u and v the vector z = Aᵀ√(s/W)u + √alpha·v has covariance H, so
    that (a_iᵀH⁻¹z)² has the leverage as its mean. H⁻¹z is found by a few conjugate gradients.
    """

    roots: Array
    solved: Array

    @classmethod
    def made(cls, sums: WeightedSums, seed: int) -> DiagonalMetric:
        diagonal = sums.diagonal()
        ridges = _ridges(sums, diagonal)
        v = np.random.default_rng([seed, 1]).standard_normal((sums.n_columns, N_DIRECTIONS))
        z = sums.noise(seed) + np.sqrt(ridges)[:, None] * v
        solved = _conjugate_gradients(sums, ridges, diagonal + ridges, z)
        return cls(np.sqrt(diagonal + ridges), solved)

    def leverage(self, rows: RowDesign) -> Array:
        return rows.projected_sq(self.solved, np.full(N_DIRECTIONS, 1.0 / N_DIRECTIONS))

    def whiten(self, gradients: Array) -> Array:
        return gradients / self.roots[:, None]

    def whiten_transpose(self, columns: Array) -> Array:
        return columns / self.roots[:, None]


def _ridges(sums: WeightedSums, diagonal: Array) -> Array:
    """What is added to the diagonal: alpha, and next to nothing for an intercept."""
    p = sums.n_features
    ridge = _RIDGE_SHARE * float(diagonal[:p].mean()) if sums.ridge is None else sums.ridge
    # so that the factors exist for any alpha
    least = 64 * sums.n_columns * EPS * max(float(diagonal.max()), ridge)
    ridges = np.full(sums.n_columns, least)
    ridges[:p] += ridge
    return ridges


def _conjugate_gradients(sums: WeightedSums, ridges: Array, diagonal: Array, right: Array) -> Array:
    """H⁻¹ times columns, roughly, preconditioned by the diagonal."""
    solved, residual = np.zeros_like(right), right.copy()
    scaled = residual / diagonal[:, None]
    direction, energy = scaled.copy(), np.sum(residual * scaled, axis=0)
    wanted = _CG_TOLERANCE**2 * energy
    for _ in range(_CG_STEPS):
        if (energy <= wanted).all():
            break
        image = sums.product(direction) + ridges[:, None] * direction
        step = energy / np.sum(direction * image, axis=0)
        solved += step * direction
        residual -= step * image
        scaled = residual / diagonal[:, None]
        before, energy = energy, np.sum(residual * scaled, axis=0)
        direction = scaled + (energy / before) * direction
    return solved
