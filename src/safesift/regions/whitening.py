"""Inverses of Gram matrices that can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from safesift.arithmetic.numerics import EPS

Array = NDArray[np.float64]


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
