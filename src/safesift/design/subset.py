"""Some rows of another matrix, read where they lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from safesift.design.base import Array, Design


@dataclass(frozen=True, eq=False)
class RowSubset(Design):
    """The rows of a design at increasing indices, without a copy of them all.

    Regions test a shrinking set of rows again and again; a block of it is gathered at a time.
    """

    base: Design
    rows: NDArray[np.intp]

    @property
    def intercept(self) -> bool:
        return self.base.intercept

    @property
    def n_samples(self) -> int:
        return len(self.rows)

    @property
    def n_features(self) -> int:
        return self.base.n_features

    @property
    def row_length(self) -> int:
        return self.base.row_length

    @property
    def block_rows(self) -> int:
        return self.base.block_rows

    @property
    def gram_rows(self) -> int:
        return self.base.gram_rows

    @property
    def data(self) -> NDArray:
        return self.base.take(self.rows).data

    @cached_property
    def row_norms(self) -> Array:
        return self.base.row_norms[self.rows]

    def blocks(self, n_rows: int) -> Iterator[tuple[slice, NDArray]]:
        for start in range(0, self.n_samples, n_rows):
            part = slice(start, min(start + n_rows, self.n_samples))
            yield part, self.gathered(np.arange(part.start, part.stop))

    def _rows_at(self, indices: NDArray[np.intp]) -> Design:
        return RowSubset(self.base, self.rows[indices])

    def gathered(self, rows: NDArray) -> NDArray:
        return self.base.gathered(self.rows[rows])

    def take(self, rows: NDArray) -> Design:
        return self.base.take(self.rows[rows])

    def columns(self, features: NDArray) -> RowSubset:
        return RowSubset(self.base.columns(features), self.rows)

    def _block_norms_sq(self, block: NDArray) -> Array:
        return self.base._block_norms_sq(block)

    def _block_gram(self, block: NDArray, weights: Array) -> Array:
        return self.base._block_gram(block, weights)

    def _block_columns_sq(self, block: NDArray, weights: Array) -> Array:
        return self.base._block_columns_sq(block, weights)

    def _largest_of(self, data: NDArray) -> Array:
        return self.base._largest_of(data)
