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
        removed = data.order[~edit.stays]
        counts = self.counts.copy()
        for y, weights, sign in (
            (data.y[removed], data.sample_weight[removed], -1),
            (data.y[edit.relabelled], data.sample_weight[edit.relabelled], -1),
            (edit.labels, data.sample_weight[edit.relabelled], 1),
            (edit.y, edit.sample_weight, 1),
        ):
            counted = y[weights > 0]
            codes = np.minimum(np.searchsorted(self.labels, counted), len(counts) - 1)
            if not (self.labels[codes] == counted).all():
                return None
            counts += sign * np.bincount(codes, minlength=len(counts))
        return Classes(self.labels, counts) if counts.min() > 0 else None
