"""The rows of the pool that are held in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift.design.base import Design
from safesift.estimators.mining.pool import stacked

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Held:
    """Some rows of the pool.

    Attributes
    ----------
    indices : array of shape (n_held,)
        Their numbers in the pool, rising.
    rows : array or CSR matrix of shape (n_held, n_features)
    """

    indices: Indices
    rows: Any

    @classmethod
    def nothing(cls, like: Any) -> Held:
        """No rows, of the kind of a matrix."""
        return cls(np.empty(0, dtype=np.intp), like[:0])

    def __len__(self) -> int:
        return len(self.indices)

    def joined(self, others: list[Held]) -> Held:
        """These rows and others, in the order of the pool."""
        parts = [self, *others]
        indices = np.concatenate([part.indices for part in parts])
        order = np.argsort(indices, kind="stable")
        return Held(indices[order], stacked([part.rows for part in parts])[order])

    def take(self, which: NDArray) -> Held:
        """Those of a mask, or at some positions."""
        return Held(self.indices[which], self.rows[which])

    def before(self, n_rows: int) -> Held:
        """Those that a pool of so many rows has."""
        return self.take(self.indices < n_rows)

    def differing(self, start: int, block: Design) -> tuple[Indices, NDArray[np.bool_]]:
        """The rows of a block that are held, by their place in it, and which are not as held."""
        low, high = np.searchsorted(self.indices, [start, start + block.n_samples])
        here = self.indices[low:high] - start
        ours, theirs = self.rows[low:high], block.take(here).data
        if sparse.issparse(ours) or sparse.issparse(theirs):
            unequal = sparse.csr_array(ours) != sparse.csr_array(theirs)
            return here, np.diff(unequal.tocsr().indptr) > 0
        return here, (ours != theirs).any(axis=1)

    def replaced(self, others: list[Held]) -> Held:
        """The same rows, some as they are now."""
        if not others:
            return self
        changed = np.concatenate([part.indices for part in others])
        return self.take(~np.isin(self.indices, changed)).joined(others)
