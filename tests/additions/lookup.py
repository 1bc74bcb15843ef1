"""A matrix from outside the library: its rows are looked up in a table, block by block."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from safesift.design import RowDesign

# entries that are looked up at a time
_BLOCK = 2**15


@dataclass(frozen=True, eq=False)
class Lookup(RowDesign):
    """Row i is `table[codes[i]]`: categories and their features. The rows are never all in memory.

    Parameters
    ----------
    table : array of shape (n_codes, n_features)
    codes : integer array of shape (n_samples,)
    intercept : bool
    """

    table: NDArray
    codes: NDArray[np.integer]
    intercept: bool = False

    @property
    def n_samples(self) -> int:
        return len(self.codes)

    @property
    def n_features(self) -> int:
        return self.table.shape[1]

    @property
    def row_length(self) -> int:
        return self.n_features

    @property
    def block_rows(self) -> int:
        return max(_BLOCK // max(self.n_features, 1), 16)

    @property
    def data(self) -> NDArray:
        return self.table[self.codes]

    def block(self, rows: slice) -> NDArray:
        return self.table[self.codes[rows]].astype(np.float64, copy=False)

    def gathered(self, rows: NDArray) -> NDArray:
        return self.table[self.codes[rows]].astype(np.float64, copy=False)

    def take(self, rows: NDArray) -> Lookup:
        return replace(self, codes=self.codes[rows])

    def columns(self, features: NDArray) -> Lookup:
        return replace(self, table=self.table[:, features])
