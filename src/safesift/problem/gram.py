"""Weighted Gram matrices that follow their weights."""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS
from safesift.design.base import Design

Array = NDArray[np.float64]

# beyond this share of changed rows, or after so many updates, a fresh sum costs less or rounds less
_MANY_CHANGES, _MANY_SUMS = 0.5, 1000


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
        self._rest = 0.0
        self._reset()

    def _reset(self) -> None:
        d = self._design.n_columns
        self.matrix, self._spread_sq, self._n_sums = np.zeros((d, d)), np.zeros(d), 1
        self._worst_sum = 0.0

    @property
    def spread(self) -> Array:
        return np.sqrt(self._spread_sq)

    @property
    def error(self) -> float:
        return self._worst_sum + (8 + 4 * self._n_sums) * EPS

    def move(self, weights: Array) -> None:
        """Change the weights, reading the rows of changed weight only."""
        changed = np.flatnonzero(weights != self._weights)
        often = len(changed) > _MANY_CHANGES * np.count_nonzero(weights)
        if (often or self._n_sums > _MANY_SUMS) and self._rest == 0:
            self._reset()
            self._weights[:] = 0.0
            changed = np.flatnonzero(weights)
        change = weights[changed] - self._weights[changed]
        for sign in (1.0, -1.0):
            part = sign * change > 0
            if part.any():
                added = self._design.gram_of(changed[part], sign * change[part])
                self._count_sum()
                self.matrix += sign * added
                self._spread_sq += np.diag(added)
        self._weights[changed] = weights[changed]

    def _count_sum(self) -> None:
        """Sums of other rows, or other columns, may have been made in longer blocks."""
        self._n_sums += 1
        self._worst_sum = max(self._worst_sum, self._design.gram_error)

    def among(self, design: Design, rows: NDArray) -> WeightedGram:
        """The same matrix, of which only some rows can change their weight.

        Parameters
        ----------
        design : Design
            Those rows.
        rows : array of indices
        """
        child = copy(self)
        child._design, child._weights = design, self._weights[rows]
        child.matrix, child._spread_sq = self.matrix.copy(), self._spread_sq.copy()
        child._rest = float(np.count_nonzero(self._weights)) - np.count_nonzero(child._weights)
        return child

    def adopt(self, child: WeightedGram, rows: NDArray) -> None:
        """Take over what became of the rows of a matrix made by `among`."""
        self.matrix, self._spread_sq, self._n_sums = child.matrix, child._spread_sq, child._n_sums
        self._worst_sum = child._worst_sum
        self._weights[rows] = child._weights
