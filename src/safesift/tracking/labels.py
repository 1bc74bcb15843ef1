"""Which classes there are, as labels come and go."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.tracking.data import Data, Edit


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes, and how many samples of positive weight each of them has."""

    labels: NDArray
    counts: NDArray[np.intp]

    @classmethod
    def of(cls, y: NDArray, sample_weight: NDArray) -> Classes:
        return cls(*np.unique(y[sample_weight > 0], return_counts=True))

    def edited(self, data: Data, edit: Edit) -> Classes | None:
        """After an edit; None where a class would appear or disappear."""
        out = np.concatenate([edit.removed, edit.relabelled])
        relabelled = data.sample_weight[edit.relabelled]
        going = self._count(data.y[out], data.sample_weight[out])
        coming = self._count(
            np.concatenate([edit.labels, edit.y]), np.concatenate([relabelled, edit.sample_weight])
        )
        if going is None or coming is None:
            return None
        counts = self.counts - going + coming
        return Classes(self.labels, counts) if counts.min() > 0 else None

    def _count(self, y: NDArray, weights: NDArray) -> NDArray[np.intp] | None:
        """Samples of positive weight in each class; None where there is another class."""
        y = y[weights > 0]
        codes = np.minimum(np.searchsorted(self.labels, y), len(self.labels) - 1)
        if not (self.labels[codes] == y).all():
            return None
        return np.bincount(codes, minlength=len(self.labels))
