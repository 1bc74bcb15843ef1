"""Which samples are left out together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Groups:
    """Samples that are left out together; every sample belongs to one group.

    Attributes
    ----------
    owner : array of shape (n_samples,)
        The number of the group of every sample.
    order : array of shape (n_samples,)
        The samples, group by group.
    starts : array of shape (n_groups + 1,)
        Where the groups begin among them.
    """

    owner: Rows
    order: Rows
    starts: Rows

    @classmethod
    def single(cls, n: int) -> Groups:
        """Every sample alone."""
        return cls(np.arange(n), np.arange(n), np.arange(n + 1))

    @classmethod
    def of(cls, labels: NDArray) -> Groups:
        """Samples with the same label, groups in the order of the labels."""
        _, owner = np.unique(labels, return_inverse=True)
        counts = np.bincount(owner)
        return cls(owner, np.argsort(owner, kind="stable"), np.append(0, np.cumsum(counts)))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def largest(self) -> int:
        """The size of the largest one."""
        return int(np.diff(self.starts).max(initial=0))

    def rows(self, group: int) -> Rows:
        """The members of a group."""
        return self.order[self.starts[group] : self.starts[group + 1]]

    def members_of(self, some: Rows) -> tuple[Rows, Rows]:
        """The members of some groups, one after the other, and where each begins."""
        sizes = np.diff(self.starts)[some]
        starts = np.append(0, np.cumsum(sizes))
        shift = np.repeat(self.starts[some] - starts[:-1], sizes)
        return self.order[np.arange(starts[-1]) + shift], starts

    def any(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which groups have a member in a mask."""
        return np.bincount(self.owner[mask], minlength=len(self)) > 0

    def sums(self, values: Array) -> Array:
        """Of every group."""
        found: Array = np.bincount(self.owner, weights=values, minlength=len(self)).astype(float)
        return found
