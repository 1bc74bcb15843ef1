"""Weighted Gram matrices that follow their weights, and inverses of them that can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from safesift.design.base import Design
from safesift.numerics import EPS

Array = NDArray[np.float64]

# beyond this share of changed rows a fresh sum costs less than an update, and rounds less
_MANY_CHANGES = 0.5


class WeightedGram:
    """M = Σ weights_i a_i a_iᵀ, kept up to date by the rows whose weight moves.

    Attributes
    ----------
    matrix : array of shape (n_columns, n_columns)
    spread : array of shape (n_columns,)
        |computed M − exact M| ≤ error · spread·spreadᵀ, entry by entry.
    """

    def __init__(self, design: Design) -> None:
        self._design = design
        self._weights = np.zeros(design.n_samples)
        self._reset()

    def _reset(self) -> None:
        d = self._design.n_columns
        self.matrix, self._spread_sq, self._n_sums = np.zeros((d, d)), np.zeros(d), 1

    @property
    def spread(self) -> Array:
        return np.sqrt(self._spread_sq)

    @property
    def error(self) -> float:
        return self._design.sum_error + (8 + 4 * self._n_sums) * EPS

    def move(self, weights: Array) -> None:
        """Change the weights, reading the rows of changed weight only."""
        change = weights - self._weights
        n_changed, n_carrying = np.count_nonzero(change), np.count_nonzero(weights)
        if n_changed > _MANY_CHANGES * n_carrying:
            self._reset()
            change = weights
        for sign in (1.0, -1.0):
            part = np.maximum(sign * change, 0.0)
            if part.any():
                added = self._design.gram(part)
                self.matrix += sign * added
                self._spread_sq += np.diag(added)
                self._n_sums += 1
        self._weights = weights.copy()


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
