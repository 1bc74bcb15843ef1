"""SciPy CSR matrices, with 32 or 64 bit indices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift.design.csr import CsrProducts
from safesift.design.rows import RowDesign, RowSubset

# entries of a block: so many that a thread is worth its start, and for every column so many that
# adding up the sums of blocks costs little
_BLOCK_ENTRIES, _ENTRIES_PER_COLUMN = 2**20, 8


def rows_per_block(n_entries: int, n_samples: int, n_features: int) -> int:
    """How many rows of a sparse matrix make a block."""
    mean_length = n_entries / max(n_samples, 1)
    entries = max(_BLOCK_ENTRIES, _ENTRIES_PER_COLUMN * n_features)
    return int(max(entries // max(mean_length, 1), 16))


@dataclass(frozen=True, eq=False)
class SparseDesign(CsrProducts):
    """A CSR matrix without duplicate entries, referenced and not copied."""

    matrix: Any
    intercept: bool = False
    held: bool = False

    @property
    def data(self) -> Any:
        return self.matrix

    @property
    def n_samples(self) -> int:
        return self.matrix.shape[0]

    @property
    def n_features(self) -> int:
        return self.matrix.shape[1]

    @property
    def row_length(self) -> int:
        return int(np.diff(self.matrix.indptr).max(initial=0))

    @property
    def n_entries(self) -> int:
        return self.matrix.nnz

    @property
    def block_rows(self) -> int:
        return rows_per_block(self.matrix.nnz, self.n_samples, self.n_features)

    @property
    def csr(self) -> Any:
        return self.matrix

    @cached_property
    def csr_rows(self) -> NDArray[np.intp]:
        return np.arange(self.n_samples)

    def blocks(self, n_rows: int) -> Iterator[tuple[slice, Any]]:
        data, indices, indptr = self.matrix.data, self.matrix.indices, self.matrix.indptr
        for start in range(0, self.n_samples, n_rows):
            stop = min(start + n_rows, self.n_samples)
            entries = slice(indptr[start], indptr[stop])
            block = sparse.csr_array(
                (
                    data[entries].astype(np.float64, copy=False),
                    indices[entries],
                    indptr[start : stop + 1] - indptr[start],
                ),
                shape=(stop - start, self.n_features),
            )
            yield slice(start, stop), block

    def gathered(self, rows: NDArray) -> Any:
        return self.matrix[rows].astype(np.float64, copy=False)

    def take(self, rows: NDArray) -> SparseDesign:
        return SparseDesign(self.matrix[rows], self.intercept)

    def _rows_at(self, indices: NDArray[np.intp]) -> RowDesign:
        return SparseRows(self, indices)

    def columns(self, features: NDArray) -> SparseDesign:
        return SparseDesign(self.matrix[:, np.flatnonzero(features)], self.intercept)


@dataclass(frozen=True, eq=False)
class SparseRows(CsrProducts, RowSubset):
    """Some rows of a CSR matrix, at increasing indices, read where they lie."""

    base: SparseDesign

    @property
    def csr(self) -> Any:
        return self.base.matrix

    @property
    def csr_rows(self) -> NDArray[np.intp]:
        return self.rows

    def _rows_at(self, indices: NDArray[np.intp]) -> RowDesign:
        return SparseRows(self.base, self.rows[indices])

    def columns(self, features: NDArray) -> SparseRows:
        return SparseRows(self.base.columns(features), self.rows)
