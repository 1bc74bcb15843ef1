"""Which classes there are, as labels come and go."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.estimators.tracking.data import Data, Edit


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
        y = np.concatenate([data.y[out], edit.labels, edit.y])
        relabelled = data.sample_weight[edit.relabelled]
        weights = np.concatenate([data.sample_weight[out], relabelled, edit.sample_weight])
        signs = np.where(weights > 0, 1, 0)
        signs[: len(out)] *= -1
        codes = np.minimum(np.searchsorted(self.labels, y), len(self.labels) - 1)
        # a sample without weight may have any label
        if not ((self.labels[codes] == y) | (signs == 0)).all():
            return None
        counts = self.counts.copy()
        np.add.at(counts, codes, signs)
        return Classes(self.labels, counts) if counts.min() > 0 else None
