"""Some columns of another matrix, read where they lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from safesift.design.base import Array
from safesift.design.dense import DenseDesign
from safesift.design.rows import RowDesign, RowSubset


def some_columns(design: RowDesign, features: NDArray[np.bool_]) -> RowDesign:
    """The features of a mask, and the ones: a copy of sparse columns, a view of dense ones.

    Finding the entries of a few columns in sparse rows costs a pass each time, and the copy is
    small; dense columns are gathered block by block, so that no n × k matrix is held.
    """
    if features.all():
        return design
    if isinstance(design, DenseDesign):
        return ColumnSubset(design, np.flatnonzero(features))
    return design.columns(features)


@dataclass(frozen=True, eq=False)
class ColumnSubset(RowDesign):
    """The columns of a design at increasing indices, without a copy of them all."""

    base: DenseDesign | RowSubset
    features: NDArray[np.intp]

    @property
    def intercept(self) -> bool:
        return self.base.intercept

    @property
    def held(self) -> bool:
        return self.base.held

    @property
    def n_samples(self) -> int:
        return self.base.n_samples

    @property
    def n_features(self) -> int:
        return len(self.features)

    @property
    def row_length(self) -> int:
        return min(self.base.row_length, self.n_features)

    @property
    def block_rows(self) -> int:
        return self.base.block_rows

    @property
    def gram_rows(self) -> int:
        return self.base.gram_rows

    @property
    def data(self) -> NDArray:
        return self.base.data[:, self.features]

    @cached_property
    def row_norms(self) -> Array:
        # those of the whole rows bound those of a part, and are at hand
        return self.base.row_norms

    def blocks(self, n_rows: int) -> Iterator[tuple[slice, NDArray]]:
        for rows, block in self.base.blocks(n_rows):
            yield rows, block.take(self.features, axis=1)

    def gathered(self, rows: NDArray) -> NDArray:
        return self.base.gathered(rows).take(self.features, axis=1)

    @property
    def source(self) -> RowDesign:
        return self.base

    @property
    def selected(self) -> NDArray[np.intp]:
        return self.features

    def take(self, rows: NDArray) -> RowDesign:
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        return DenseDesign(self.base.data[np.ix_(rows, self.features)], self.intercept)

    def only(self, rows: NDArray) -> RowDesign:
        # rows first: where they are few, so is what is gathered
        return ColumnSubset(self.base.only(rows), self.features)

    def columns(self, features: NDArray) -> ColumnSubset:
        return ColumnSubset(self.base, self.features[features])
