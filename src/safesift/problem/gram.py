"""Weighted Gram matrices that follow their weights."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS
from safesift.design.rows import GramPart, RowDesign
from safesift.problem.passes import Computation, Request, alone

Array = NDArray[np.float64]

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
        sources: dict[RowDesign, list[GramPart]] = {}
        for request in requests:
            sources.setdefault(request.design.source, []).extend(request.parts)
        found = {source: iter(source.grams(parts)) for source, parts in sources.items()}
        return [[next(found[request.design.source]) for _ in request.parts] for request in requests]


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
        self._weights = np.zeros(design.n_samples)
        self._rest = 0.0
        self._reset()

    def _reset(self) -> None:
        d = self._design.n_columns
        self.matrix, self._spread_sq, self._n_sums = np.zeros((d, d)), np.zeros(d), 1
        self._worst_sum = 0.0

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
        often = len(changed) > _MANY_CHANGES * np.count_nonzero(weights)
        if (often or self._n_sums > _MANY_SUMS) and self._rest == 0:
            self._reset()
            self._weights[:] = 0.0
            changed = np.flatnonzero(weights)
        change = weights[changed] - self._weights[changed]
        signs = [sign for sign in (1.0, -1.0) if (sign * change > 0).any()]
        if signs:
            parts = [self._part(changed, sign * change) for sign in signs]
            added = yield Grams(self._design, parts)
            for sign, gram in zip(signs, added, strict=True):
                self._count_sum()
                self.matrix += sign * gram
                self._spread_sq += np.diag(gram)
        self._weights[changed] = weights[changed]

    def _part(self, rows: NDArray[np.intp], change: Array) -> GramPart:
        grows = change > 0
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
        child._rest = float(np.count_nonzero(self._weights)) - np.count_nonzero(child._weights)
        return child

    def adopt(self, child: WeightedGram, rows: NDArray) -> None:
        """Take over what became of the rows of a matrix made by `among`."""
        self.matrix, self._spread_sq, self._n_sums = child.matrix, child._spread_sq, child._n_sums
        self._worst_sum = child._worst_sum
        self._weights[rows] = child._weights
