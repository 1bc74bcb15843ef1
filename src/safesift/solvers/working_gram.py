"""The Gram matrix of a changing set of columns, under changing weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift.design.base import Design
from safesift.design.columns import some_columns
from safesift.numerics import EPS

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# beyond this share of changed rows, or after so many updates, a fresh sum costs less or rounds less
_MANY_CHANGES, _MANY_SUMS = 0.5, 40


class WorkingGram:
    """Σ weights_i a_i a_iᵀ in the columns of a mask, the intercept's always among them.

    Columns that leave cost nothing, columns that come cost one product with the others, and
    changed weights cost the rows they belong to.

    Attributes
    ----------
    design : Design
        All rows, in the columns of the mask.
    features, columns : masks
        Which features, and which columns of the whole design (the ones included), these are.
    weights : array of shape (n_samples,)
    matrix : array of shape (k, k)
    spread : array of shape (k,)
        |computed − exact| ≤ error · spread·spreadᵀ, entry by entry.
    """

    def __init__(self, design: Design) -> None:
        self._whole = design
        self._choose(np.zeros(design.n_features, dtype=bool))

    def _choose(self, features: Mask) -> None:
        self.features, self.columns = features, self._with_ones(features)
        self.design = some_columns(self._whole, features)
        self._reset()

    def _reset(self) -> None:
        d = self.design.n_columns
        self.matrix, self._spread_sq, self._n_sums = np.zeros((d, d)), np.zeros(d), 0
        self.weights = np.zeros(self.design.n_samples)

    def _with_ones(self, features: Mask) -> Mask:
        return np.append(features, [True] * self._whole.intercept).astype(bool)

    @property
    def spread(self) -> Array:
        return np.sqrt(self._spread_sq)

    @property
    def error(self) -> float:
        return self.design.sum_error + (16 + 4 * self._n_sums) * EPS

    def select(self, features: Mask) -> None:
        """Change the columns."""
        if (features == self.features).all():
            return
        before, weights = (self.matrix, self._spread_sq, self._n_sums), self.weights
        columns = self._with_ones(features)
        stays, kept = self.columns[columns], columns[self.columns]
        self._choose(features)
        if 2 * np.count_nonzero(stays) < len(stays) or before[2] > _MANY_SUMS:
            return
        matrix, spread_sq, n_sums = before
        self.weights = weights
        self.matrix[np.ix_(stays, stays)] = matrix[np.ix_(kept, kept)]
        self._spread_sq[stays] = spread_sq[kept]
        if not stays.all():
            new = np.flatnonzero(~stays)
            self.matrix[new] = across = self._products(new)
            self.matrix[:, new] = across.T
            # the old columns may have been summed with weights that are gone since
            self._spread_sq[new] = np.diag(self.matrix)[new]
            n_sums += 1
        self._n_sums = n_sums

    def _products(self, new: NDArray[np.intp]) -> Array:
        """Σ weights_i a_ij a_iᵀ for the given columns j."""
        used, p = self.weights != 0, self.design.n_features
        weights, out = self.weights[used], np.zeros((len(new), self.design.n_columns))
        for rows, block in self.design.only(used)._read():
            part = _scaled(block[:, new], weights[rows])
            out[:, :p] += _dense(part.T @ block)
            if self.design.intercept:
                out[:, p] += np.asarray(part.sum(axis=0)).ravel()
        return out

    def move(self, weights: Array) -> None:
        """Change the weights, reading the rows of changed weight only."""
        change = weights - self.weights
        n_changed, n_carrying = np.count_nonzero(change), np.count_nonzero(weights)
        if n_changed > _MANY_CHANGES * n_carrying or self._n_sums > _MANY_SUMS:
            self._reset()
            change = weights
        for sign in (1.0, -1.0):
            part = np.maximum(sign * change, 0.0)
            if part.any():
                added = self.design.gram(part)
                self.matrix += sign * added
                self._spread_sq += np.diag(added)
                self._n_sums += 1
        self.weights = weights.copy()


def _scaled(block: Any, weights: Array) -> Any:
    if sparse.issparse(block):
        return sparse.diags_array(weights) @ block
    return weights[:, None] * block


def _dense(product: Any) -> Array:
    return product.toarray() if sparse.issparse(product) else product
