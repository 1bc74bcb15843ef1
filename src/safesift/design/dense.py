"""NumPy arrays of any real type, in C or Fortran order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic import tally
from safesift.arithmetic.fingerprints import fingerprint
from safesift.design.base import Array
from safesift.design.rows import COMPILED_TYPES, DerivedRows, RowDesign, RowSubset

# entries of a block: it is read twice, and should stay in the cache of one processor; those of a
# Gram matrix may be more
_BLOCK, _GRAM_BLOCK = 2**16, 2**20
# so many entries of a contiguous column are read in turn: memory is slow to find the next column
_LONG_COLUMN = 512


@dataclass(frozen=True, eq=False, repr=False)
class DenseDesign(RowDesign):
    """A dense matrix, referenced and not copied."""

    array: NDArray
    intercept: bool = False
    held: bool = False

    @property
    def data(self) -> NDArray:
        return self.array

    @property
    def n_samples(self) -> int:
        return self.array.shape[0]

    @property
    def n_features(self) -> int:
        return self.array.shape[1]

    @property
    def row_length(self) -> int:
        return self.n_features

    @property
    def compiled(self) -> tuple[NDArray] | None:
        flags, known = self.array.flags, self.array.dtype in COMPILED_TYPES
        if not known or not (flags.c_contiguous or flags.f_contiguous):
            return None
        # a memory map is an array, too
        return (self.array.view(np.ndarray),)

    @property
    def block_rows(self) -> int:
        return max(_BLOCK // max(self.n_features, 1), 16)

    @property
    def _fused_rows(self) -> int:
        return max(self.block_rows, 0 if self.array.flags.c_contiguous else _LONG_COLUMN)

    @property
    def gram_rows(self) -> int:
        # adding up p × p matrices of few rows each would cost more than their products
        p = max(self.n_features, 1)
        return max(2 * self.block_rows, min(4 * p, _GRAM_BLOCK // p))

    def block(self, rows: slice) -> Array:
        return self.array[rows].astype(np.float64, copy=False)

    def gathered(self, rows: NDArray) -> Array:
        return _rows(self.array, rows).astype(np.float64, copy=False)

    def fingerprint(self) -> bytes:
        return fingerprint(self.intercept, self.array)

    def as_held(self) -> DenseDesign:
        return replace(self, held=True)

    def hold(self, rows: NDArray) -> RowDesign:
        if self.compiled is None or not self.array.flags.c_contiguous:
            return super().hold(rows)
        # compiled loops read rows where they lie as fast as they would a copy
        indices = np.flatnonzero(rows) if rows.dtype == bool else rows
        tally.count(len(indices))
        return DenseRows(self, indices, held=True)

    def _rows_at(self, indices: NDArray[np.intp]) -> RowDesign:
        return DenseRows(self, indices, self.held)

    def take(self, rows: NDArray) -> DenseDesign:
        indices = np.flatnonzero(rows) if rows.dtype == bool else rows
        return DenseDesign(_rows(self.array, indices), self.intercept)

    def columns(self, features: NDArray) -> DenseDesign:
        return DenseDesign(self.array[:, features], self.intercept)


@dataclass(frozen=True, eq=False, repr=False)
class DenseRows(RowSubset):
    """Some rows of a dense matrix, at increasing indices, read where they lie."""

    base: DenseDesign
    held: bool = False

    @property
    def compiled(self) -> tuple[NDArray, ...] | None:
        if self.base.compiled is None or not self.base.array.flags.c_contiguous:
            return None
        return (*self.base.compiled, self.rows)

    def _rows_at(self, indices: NDArray[np.intp]) -> RowDesign:
        return replace(self, rows=self.rows[indices])

    def columns(self, features: NDArray) -> DenseRows:
        return replace(self, base=self.base.columns(features))


def _rows(array: NDArray, indices: NDArray) -> NDArray:
    """array[indices], by the fastest way there is for its order."""
    if array.flags.c_contiguous:
        return array.take(indices, axis=0)
    if array.flags.f_contiguous:
        return array.T.take(indices, axis=1).T
    return array[indices]


# --- some columns of another matrix, read where they lie ----------------------------------


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


@dataclass(frozen=True, eq=False, repr=False)
class ColumnSubset(DerivedRows):
    """The columns of a design at increasing indices, without a copy of them all."""

    features: NDArray[np.intp]

    @property
    def n_features(self) -> int:
        return len(self.features)

    @property
    def row_length(self) -> int:
        return min(self.base.row_length, self.n_features)

    @property
    def data(self) -> NDArray:
        return self.base.data[:, self.features]

    @cached_property
    def row_norms(self) -> Array:
        # those of the whole rows bound those of a part, and are at hand
        return self.base.row_norms

    def block(self, rows: slice) -> NDArray:
        return self.base.block(rows).take(self.features, axis=1)

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
