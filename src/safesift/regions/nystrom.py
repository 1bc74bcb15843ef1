"""The curvature of many samples in few directions: a certified Nyström approximation.

For any X, M ⪰ M V Xᵀ + X VᵀM − X VᵀMV Xᵀ, since the difference is (I − XVᵀ) M (I − VXᵀ). With
Y = MV, C = VᵀMV, any R and X = YRRᵀ this is M ⪰ YR(2I − RᵀCR)RᵀYᵀ, which is (1 − η)·YRRᵀYᵀ or
more where RᵀCR ⪯ (1 + η)I. Computed Y, C with errors E_Y, E_C take away at most

    (2‖E_Y‖‖X‖ + ‖E_C‖‖X‖²)·I

whatever V is: orthonormal or not, fresh or reused after rows have left, and however R ≈ C^(-½) was
computed. (V(VᵀMV)Vᵀ is *not* below M unless V spans an invariant subspace.)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from safesift.arithmetic.numerics import EPS, norm
from safesift.design.rows import RowDesign
from safesift.regions.shape import Shape

Array = NDArray[np.float64]

# rows from which the first directions are taken, per direction
_OVERSAMPLING = 4
# C + this·trace(C)·I is what is inverted, so that directions of no curvature do no harm
_SHIFT = 1e-10
# t, the share of the intercept's curvature that pays for the error of the mean
_SHARE = 1e-6


def directions(design: RowDesign, weights: Array, rank: int, seed: int = 0) -> Array:
    """`rank` directions, of length 1, in which many carrying rows point: from a sample of them.

    All of the space that the carrying rows span, where those are few (the Gram form of Woodbury).
    """
    carrying = np.flatnonzero(weights)
    n_sampled = min(len(carrying), _OVERSAMPLING * rank)
    if n_sampled < len(carrying):
        rng = np.random.default_rng(seed)
        carrying = carrying[np.sort(rng.choice(len(carrying), n_sampled, replace=False))]
    sample = design.numbers_of(carrying)
    # eigenvectors of the small Gram matrix: the sample has fewer rows than columns, usually
    values, vectors = np.linalg.eigh(sample @ sample.T)
    large = values > 1e-12 * max(values[-1], 0.0)
    chosen = np.flatnonzero(large)[-rank:]
    basis = sample.T @ (vectors[:, chosen] / np.sqrt(values[chosen]))
    return basis / np.linalg.norm(basis, axis=0)


class NystromCurvature:
    """M = Σ weights_i a_i a_iᵀ seen through k directions, following its weights.

    With an intercept the rows are taken from their weighted mean, which makes the intercept's
    coordinate independent of the others (a Schur complement).
    """

    def __init__(self, design: RowDesign, basis: Array) -> None:
        self._design, self._basis = design, basis
        self._weights = design.zeros(design.n_samples)
        k = basis.shape[1]
        self._product = np.zeros((design.n_columns, k))  # Aᵀ diag(weights) A V, ones included
        self._ones = np.zeros(design.n_columns)  # Aᵀ weights
        self._load, self._n_sums = np.zeros(3), 1  # Σ|changes| times 1, ‖a‖ and ‖a‖²

    def move(self, weights: Array) -> None:
        """Change the weights, reading the rows of changed weight only."""
        change = weights - self._weights
        moved = self._design.only(change != 0)
        change = change[change != 0]
        padded = np.pad(self._basis, ((0, int(self._design.intercept)), (0, 0)))
        self._product += moved.gram_product(padded, change)
        if self._design.intercept:
            self._ones += moved.rmatvec(change)
        norms, sizes = moved.row_norms, np.abs(change)
        self._load += np.array([sizes.sum(), sizes @ norms, sizes @ norms**2])
        self._weights = weights.copy()
        self._n_sums += 1

    def shape(self, ridge: float) -> Shape | None:
        """B with BBᵀ ⪰ (ridge·I + M)⁻¹, None where rounding leaves nothing of the ridge."""
        p, k = self._basis.shape
        if k == 0:
            return None
        mean = self._mean() if self._design.intercept else None
        if self._design.intercept and mean is None:
            return None
        product = self._product[:p]
        if mean is not None:
            product = product - np.outer(mean.vector, self._product[p])
        core = self._basis.T @ product
        core = 0.5 * (core + core.T)
        root = _inverse_root(core)
        if root is None:
            return None
        left = product @ root  # left·leftᵀ = YRRᵀYᵀ
        basis, eigenvalues = _principal(left)
        eigenvalues = np.maximum(1.0 - _excess(root, core), 0.0) * eigenvalues
        ridge -= self._lost(left @ root.T, eigenvalues, mean)
        if mean is not None:
            basis, missed = _spanning(basis, mean.vector)
            ridge -= mean.weight * (mean.error + missed) ** 2 / _SHARE
        if not ridge > 0:
            return None
        shrink = np.ones(basis.shape[1])
        shrink[: len(eigenvalues)] = np.sqrt(ridge / (ridge + eigenvalues))
        if mean is None:
            return Shape(p, 1.0 / math.sqrt(ridge), basis, np.diag(shrink))
        return _with_intercept(basis, shrink, ridge, mean)

    def _mean(self) -> _Mean | None:
        """The weighted mean of the rows, by which they are centred."""
        weight, (count, length, _) = float(self._weights.sum()), self._load
        error = self._relative_error
        weight -= error * count
        if not weight > 0:
            return None
        vector = self._ones[:-1] / weight
        return _Mean(vector, weight, 4.0 * error * (length + norm(vector) * count) / weight)

    @property
    def _relative_error(self) -> float:
        return self._design.sum_error + self._design.dot_error + (8 + 4 * self._n_sums) * EPS

    def _lost(self, solved: Array, eigenvalues: Array, mean: _Mean | None) -> float:
        """How far the approximation may stick out of M: errors of Y and C, and of its factors."""
        p, k = self._basis.shape
        error = 4.0 * (self._relative_error + p * EPS) * self._load[2] * math.sqrt(k)
        if mean is not None:
            error += mean.error * norm(self._product[-1])
        length = float(np.linalg.norm(solved))
        factored = 64 * (p + k) * EPS * float(eigenvalues.max())
        return error * (2.0 * length + length**2) + factored


class _Mean(NamedTuple):
    """The weighted mean of the rows: within `error` of `vector`; a bound below their weight."""

    vector: Array
    weight: float
    error: float


def _spanning(basis: Array, mean: Array) -> tuple[Array, float]:
    """The basis, with the mean's direction added, and how much of the mean is still outside."""
    rest = mean - basis @ (basis.T @ mean)
    rest -= basis @ (basis.T @ rest)
    left = norm(rest)
    if left <= 1e-12 * norm(mean):
        return basis, left + 8 * len(mean) * EPS * norm(mean)
    return np.column_stack([basis, rest / left]), 8 * len(mean) * EPS * norm(mean)


def _inverse_root(core: Array) -> Array | None:
    """R with RᵀCR ≈ I, a little less where C is nearly singular."""
    shifted = core + _SHIFT * np.trace(core) * np.eye(len(core))
    factor, failed = linalg.lapack.dpotrf(shifted, lower=True, clean=True)
    if failed:
        return None
    inverse, failed = linalg.lapack.dtrtri(factor, lower=True)
    return None if failed else inverse.T


def _principal(left: Array) -> tuple[Array, Array]:
    """Orthonormal eigenvectors of left·leftᵀ and their eigenvalues."""
    orthonormal, triangle = np.linalg.qr(left)
    eigenvalues, vectors = np.linalg.eigh(triangle @ triangle.T)
    return orthonormal @ vectors, np.maximum(eigenvalues, 0.0)


def _excess(root: Array, core: Array) -> float:
    """η with RᵀCR ⪯ (1 + η)I, the rounding of this very product included."""
    form = root.T @ core @ root
    k = len(core)
    spread = np.abs(root).T @ np.sqrt(np.maximum(np.diag(core), 0.0))
    rounding = (2 * k + 8) * EPS * float(spread @ spread)
    return max(float(np.linalg.eigvalsh(form)[-1]) - 1.0, 0.0) + 2.0 * rounding


def _with_intercept(basis: Array, shrink: Array, ridge: float, mean: _Mean) -> Shape:
    """In the coordinates (x, c + meanᵀx) the form is block diagonal; back in (x, c) it is this.

    With a mean off by δ, weight·(c' + δᵀx)² ≥ (1 − t)·weight·c'² − weight·(δᵀx)²/t for any t: the
    second part was taken off the ridge.
    """
    p, k = basis.shape
    joint = np.zeros((p + 1, k + 1))
    joint[:p, :k], joint[p, k] = basis, 1.0
    factor = np.zeros((k + 1, k + 1))
    factor[:k, :k] = np.diag(shrink)
    factor[k, :k] = -(basis.T @ mean.vector) * shrink
    factor[k, k] = math.sqrt(ridge / ((1.0 - _SHARE) * mean.weight))
    return Shape(p + 1, 1.0 / math.sqrt(ridge), joint, factor)
