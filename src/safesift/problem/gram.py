"""Weighted Gram matrices that follow their weights."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS
from safesift.design.dense import some_columns
from safesift.design.rows import GramPart, RowDesign
from safesift.problem.passes import Computation, Request, alone, by_group

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


# beyond this share of changed rows, or after so many updates, a fresh sum costs less or rounds less
_MANY_CHANGES, _MANY_SUMS = 0.5, 1000


@dataclass(frozen=True, eq=False)
class Grams(Request):
    """Gram matrices of some rows of a design each."""

    turn = 1
    design: RowDesign
    parts: Sequence[GramPart]

    @classmethod
    def answered(cls, requests: Sequence[Grams]) -> Sequence[list[Array]]:
        # some columns of a matrix are read with the others
        return by_group(requests, [request.design.source for request in requests], cls._of_one)

    @classmethod
    def _of_one(cls, requests: Sequence[Grams]) -> Sequence[list[Array]]:
        parts = [part for request in requests for part in request.parts]
        found = iter(requests[0].design.source.grams(parts))
        return [[next(found) for _ in request.parts] for request in requests]


class WeightedGram:
    """M = Σ weights_i a_i a_iᵀ, kept up to date by the rows whose weight moves.

    Attributes
    ----------
    design : RowDesign
    weights : array of shape (n_samples,)
    matrix : array of shape (n_columns, n_columns)
    spread : array of shape (n_columns,)
        |computed M − exact M| ≤ error · spread·spreadᵀ, entry by entry.
    """

    def __init__(self, design: RowDesign) -> None:
        self._design = design
        self._weights = design.zeros(design.n_samples)
        self._rest = 0
        self._reset()

    def _reset(self) -> None:
        d = self._design.n_columns
        self.matrix, self._spread_sq, self._n_sums = self._design.zeros(d, d), np.zeros(d), 1
        self._worst_sum, self._n_used = 0.0, 0

    @property
    def design(self) -> RowDesign:
        return self._design

    @property
    def weights(self) -> Array:
        return self._weights

    @property
    def columns(self) -> Any:
        """Selects the columns of this matrix among those of a problem: all of them."""
        return slice(None)

    @property
    def spread(self) -> Array:
        return np.sqrt(self._spread_sq)

    @property
    def error(self) -> float:
        return self._worst_sum + (8 + 4 * self._n_sums) * EPS

    def move(self, weights: Array) -> None:
        """Change the weights, reading the rows of changed weight only."""
        alone(self.moving(weights))

    def moving(self, weights: Array) -> Computation[None]:
        """`move`, with passes that can be shared."""
        changed = np.flatnonzero(weights != self._weights)
        n_used = self._n_used_with(weights, changed)
        often = len(changed) > _MANY_CHANGES * n_used
        if (often or self._n_sums > _MANY_SUMS) and self._rest == 0:
            self._reset()
            self._weights[:] = 0.0
            changed = np.flatnonzero(weights)
        change = weights[changed] - self._weights[changed]
        signs = [sign for sign in (1.0, -1.0) if (sign * change > 0).any()]
        if signs:
            parts = [self._part(changed, change if sign > 0 else -change) for sign in signs]
            added = yield Grams(self._design, parts)
            for sign, gram in zip(signs, added, strict=True):
                self._count_sum()
                self.matrix += sign * gram
                self._spread_sq += np.diag(gram)
        self._weights[changed], self._n_used = weights[changed], n_used

    def _n_used_with(self, weights: Array, changed: NDArray[np.intp]) -> int:
        """How many rows have other weights than 0 once these have changed."""
        new, old = np.count_nonzero(weights[changed]), np.count_nonzero(self._weights[changed])
        return self._n_used + int(new) - int(old)

    def _part(self, rows: NDArray[np.intp], change: Array) -> GramPart:
        grows = change > 0
        if grows.all():
            return GramPart(rows, change, self._design.selected)
        return GramPart(rows[grows], change[grows], self._design.selected)

    def _count_sum(self) -> None:
        """Sums of other rows, or other columns, may have been made in longer blocks."""
        self._n_sums += 1
        self._worst_sum = max(self._worst_sum, self._design.gram_error)

    def among(self, design: RowDesign, rows: NDArray) -> WeightedGram:
        """The same matrix, of which only some rows can change their weight.

        Parameters
        ----------
        design : RowDesign
            Those rows.
        rows : array of indices
        """
        child = copy(self)
        child._design, child._weights = design, self._weights[rows]
        child.matrix, child._spread_sq = self.matrix.copy(), self._spread_sq.copy()
        child._n_used = int(np.count_nonzero(child._weights))
        child._rest = self._n_used - child._n_used
        return child

    def adopt(self, child: WeightedGram, rows: NDArray) -> None:
        """Take over what became of the rows of a matrix made by `among`."""
        self.matrix, self._spread_sq, self._n_sums = child.matrix, child._spread_sq, child._n_sums
        self._worst_sum = child._worst_sum
        self._weights[rows], self._n_used = child._weights, child._rest + child._n_used


# --- the Gram matrix of a changing set of columns, under changing weights -----------------


# after so many updates a fresh sum rounds less
_SUMS_OF_COLUMNS = 40


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

    def rows_in(self, features: Mask) -> RowDesign:
        """All rows in the columns of a mask, without a copy where it is the one at hand."""
        at_hand = np.array_equal(features, self.features)
        return self._design if at_hand else some_columns(self._whole, features)

    def select(self, features: Mask) -> None:
        """Change the columns."""
        alone(self.selecting(features))

    def selecting(self, features: Mask) -> Computation[None]:
        """`select`, with passes that can be shared."""
        if (features == self.features).all():
            return
        before, weights = (self.matrix, self._spread_sq, self._n_sums), self.weights
        worst_sum, n_used = self._worst_sum, self._n_used
        columns = self._with_ones(features)
        stays, kept = self.columns[columns], columns[self.columns]
        self._choose(features)
        if 2 * np.count_nonzero(stays) < len(stays) or before[2] > _SUMS_OF_COLUMNS:
            return
        matrix, spread_sq, self._n_sums = before
        self._weights, self._worst_sum, self._n_used = weights, worst_sum, n_used
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
