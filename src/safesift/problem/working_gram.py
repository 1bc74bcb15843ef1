"""The Gram matrix of a changing set of columns, under changing weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from safesift.design.columns import some_columns
from safesift.design.rows import GramPart, RowDesign
from safesift.problem.gram import Grams, WeightedGram
from safesift.problem.passes import Computation, alone

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# after so many updates a fresh sum rounds less
_MANY_SUMS = 40


class WorkingGram(WeightedGram):
    """Σ weights_i a_i a_iᵀ in the columns of a mask, the intercept's always among them.

    Columns that leave cost nothing, columns that come cost one product with the others, and
    changed weights cost the rows they belong to.

    Attributes
    ----------
    design : RowDesign
        All rows, in the columns of the mask.
    features, columns : masks
        Which features, and which columns of the whole design (the ones included), these are.
    weights : array of shape (n_samples,)
    matrix : array of shape (k, k)
    spread : array of shape (k,)
        |computed − exact| ≤ error · spread·spreadᵀ, entry by entry.
    """

    def __init__(self, design: RowDesign) -> None:
        self._whole = design
        nothing = np.zeros(design.n_features, dtype=bool)
        super().__init__(some_columns(design, nothing))
        self._choose(nothing)

    def _choose(self, features: Mask) -> None:
        self.features, self._columns = features, self._with_ones(features)
        self._design = some_columns(self._whole, features)
        self._weights = np.zeros(self._whole.n_samples)
        self._reset()

    @property
    def columns(self) -> Mask:
        return self._columns

    def _with_ones(self, features: Mask) -> Mask:
        return np.append(features, [True] * self._whole.intercept).astype(bool)

    def select(self, features: Mask) -> None:
        """Change the columns."""
        alone(self.selecting(features))

    def selecting(self, features: Mask) -> Computation[None]:
        """`select`, with passes that can be shared."""
        if (features == self.features).all():
            return
        before, weights = (self.matrix, self._spread_sq, self._n_sums), self.weights
        worst_sum = self._worst_sum
        columns = self._with_ones(features)
        stays, kept = self.columns[columns], columns[self.columns]
        self._choose(features)
        if 2 * np.count_nonzero(stays) < len(stays) or before[2] > _MANY_SUMS:
            return
        matrix, spread_sq, self._n_sums = before
        self._weights, self._worst_sum = weights, worst_sum
        self.matrix[np.ix_(stays, stays)] = matrix[np.ix_(kept, kept)]
        self._spread_sq[stays] = spread_sq[kept]
        if not stays.all():
            new = np.flatnonzero(~stays)
            self.matrix[new] = across = yield from self._products(new)
            self.matrix[:, new] = across.T
            # the old columns may have been summed with weights that are gone since
            self._spread_sq[new] = np.diag(self.matrix)[new]
            self._count_sum()

    def _products(self, new: NDArray[np.intp]) -> Computation[Array]:
        """Σ weights_i a_ij a_iᵀ for the given columns j."""
        used, design = np.flatnonzero(self.weights), self.design
        part = GramPart(used, self.weights[used], design.selected, new)
        if not used.size:
            return np.zeros((len(new), design.n_columns))
        (found,) = yield Grams(design, [part])
        return found
