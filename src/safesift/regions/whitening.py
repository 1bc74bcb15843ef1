"""Inverses of Gram matrices that can be trusted."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from safesift.arithmetic.numerics import EPS

Array = NDArray[np.float64]

# columns of an inverse that are solved for at a time: so many, or that share of them
_BLOCK, _BLOCKS = 256, 8
# what part of a ridge is tried as a margin, one after the other
_MARGINS = (0.5, 0.25, 0.0)


@dataclass(frozen=True, eq=False)
class Whitening:
    """A basis T with (1 − looseness)·I ⪯ TᵀHT ⪯ (1 + looseness)·I for the exact matrix H.

    So TTᵀ/(1 − looseness) ⪰ H⁻¹: what the theorem of curvature regions needs, checked after the
    fact, however T was computed.
    """

    basis: Array
    looseness: float


def whiten(H: Array, spread: Array, error: float) -> Whitening | None:
    """A whitening of every matrix within error·spread·spreadᵀ of H; None if H is too ill-posed."""
    diagonal = np.diag(H)
    if not (diagonal > 0).all() or not np.isfinite(H).all():
        return None
    # equilibrated, so that features of very different sizes do no harm
    scale = 1.0 / np.sqrt(diagonal)
    factor, failed = lapack.dpotrf(H * np.outer(scale, scale), lower=True, clean=True)
    if failed:
        return None
    inverse, failed = lapack.dtrtri(factor, lower=True)
    if failed:
        return None
    basis = scale[:, None] * inverse.T
    looseness = _defect(basis, H) + rounding_of_form(basis, spread, error)
    return Whitening(basis, looseness) if looseness < 0.5 else None


def _defect(basis: Array, H: Array) -> float:
    """‖TᵀHT − I‖_F."""
    form = basis.T @ H @ basis
    form[np.diag_indices_from(form)] -= 1.0
    return float(np.linalg.norm(form))


def rounding_of_form(basis: Array, spread: Array, error: float) -> float:
    """A bound on ‖computed TᵀMT − exact‖ for M known to error·spread·spreadᵀ, |M| ≤ spread²."""
    d = len(basis)
    touched = np.abs(basis).T @ spread
    return float((error + (2 * d + 8) * EPS) * (touched @ touched))


@dataclass(frozen=True, eq=False)
class Cover:
    """A basis T with TTᵀ/(1 − looseness) ⪰ H⁻¹ for the exact matrix H.

    That is the half of a `Whitening` which ellipsoids need.
    """

    basis: Array
    looseness: float


@np.errstate(over="ignore", invalid="ignore")
def cover(H: Array, spread: Array, error: float, ridge: float = 0.0) -> Cover | None:
    """A cover for every matrix within error·spread·spreadᵀ of H; None if H is too ill-posed.

    `ridge` is a share of its diagonal that was added to H. Half of it serves as a margin, or less
    where that is too much: coordinates without a penalty, to which nothing was added, may have a
    good part in what is singular, as an intercept has half of the sum of one-hot columns.

    A third of the work of `whiten`, since no product with H checks the basis. Write A for H with a
    diagonal of ones, A* for the exact matrix, so scaled, ‖A* − A‖ ≤ η. Cholesky's method finds
    LLᵀ = A − cI + E with |E| ≤ γ|L||Lᵀ|, in whatever order sums are taken, so that

        A* ⪰ LLᵀ + δI,    δ = c − η − γ‖L‖_F² > 0.

    Solving LX = I column by column leaves |LX − I| ≤ γ|L||X|. For every a, with z = Xa,

        aᵀA*⁻¹a ≤ min over u of ‖u‖² + ‖a − Lu‖²/δ ≤ ‖z‖² + ρ²‖a‖²/δ,    ρ = γ‖L‖_F‖X‖_F,

    and ‖a‖ ≤ ‖Lz‖ + ρ‖a‖ makes that at most ‖z‖²(1 + ρ²‖L‖_F²/(δ(1 − ρ)²)).
    """
    diagonal, d = np.diag(H), len(H)
    if not (diagonal > 0).all() or not np.isfinite(H).all():
        return None
    off = _off(H, spread, error)
    least = 2.0 * (off + _substitution_error(d) * d)
    margins = [part * ridge / (1.0 + ridge) for part in _MARGINS] if ridge else [0.0]
    tried = (_covered(H, max(least, margin), off) for margin in margins)
    return next((found for found in tried if found is not None), None)


def _covered(H: Array, shift: float, off: float) -> Cover | None:
    """The cover with c = shift and η = off, where there is one; A and L in an order of our own."""
    d, diagonal = len(H), np.diag(H)
    gamma = _substitution_error(d)
    # columns with many entries last, by their diagonal: rows of the basis, which is triangular,
    # are short where they are read most
    order = np.argsort(diagonal, kind="stable")
    scale = 1.0 / np.sqrt(diagonal[order])
    # in LAPACK's order, of a symmetric matrix
    A = H[np.ix_(order, order)].T
    A *= scale
    A *= scale[:, None]
    A[np.diag_indices(d)] -= shift
    factor, failed = lapack.dpotrf(A, lower=True, clean=True, overwrite_a=True)
    if failed:
        return None
    size = _frobenius(factor) * (1.0 + gamma)
    margin = shift * (1.0 - 8 * EPS) - off - gamma * size * size
    inverse = _inverse(factor)
    residual = gamma * size * _frobenius(inverse) * (1.0 + gamma)
    if not (margin > 0 and residual < 0.5):
        return None
    looseness = 1.01 * (residual * size / (1.0 - residual)) ** 2 / margin
    if not looseness < 0.5:
        return None
    inverse *= scale
    # in the place of the factor: there may be thousands of columns
    basis = factor.T
    basis[order] = inverse.T
    return Cover(basis, looseness)


def singular_share(H: Array, spread: Array, error: float) -> float:
    """What share of its diagonal makes a matrix that is singular large enough for a `cover`."""
    return 16.0 * (_off(H, spread, error) + _substitution_error(len(H)) * len(H))


def _substitution_error(d: int) -> float:
    """γ: of sums of up to d products, and of the divisions and roots in between."""
    return (2 * d + 16) * EPS


def _off(H: Array, spread: Array, error: float) -> float:
    """η: how far H with a diagonal of ones is from the exact matrix."""
    size_sq = float((np.square(spread) / np.diag(H)).sum())
    return (error + 8 * EPS) * size_sq * (1.0 + _substitution_error(len(H)))


def _frobenius(A: Array) -> float:
    """‖A‖_F of a matrix in LAPACK's order, whose entries are of moderate size."""
    entries = A.T.reshape(-1)
    return math.sqrt(float(entries @ entries))


def _inverse(factor: Array) -> Array:
    """X with LX = I by substitution, some columns at a time: above them are zeros."""
    d = len(factor)
    inverse, block = np.zeros((d, d), order="F"), max(_BLOCK, d // _BLOCKS)
    for start in range(0, d, block):
        stop = min(start + block, d)
        ones = np.zeros((d - start, stop - start), order="F")
        np.fill_diagonal(ones, 1.0)
        rest = factor[start:, start:]
        inverse[start:, start:stop] = blas.dtrsm(1.0, rest, ones, lower=True, overwrite_b=True)
    return inverse
