"""The folds of a cross-validation by the numbers of the rows, as scikit-learn cuts them.

Numbers are cut into consecutive runs; of labels every fold has its share of each, the first rows
of a label being those of the first fold. Rows without weight do not count, and are in no fold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.design.block_source import Block

# of every block, by its part and the number of its first row there: how many rows of positive
# weight every label has, in the order in which labels come; None stands for any target
Counts = Mapping[tuple[int, int], Mapping[Any, int]]


@dataclass(frozen=True, eq=False)
class Folds:
    """In which fold every row is left out.

    Attributes
    ----------
    n_folds : int
    ends : dict of object to array of shape (n_folds,)
        For every label (or None) how many of its rows are in this fold and the ones before.
    before : dict of (int, int) to dict
        For every block how many rows of a label come before it.
    """

    n_folds: int
    ends: dict[Any, NDArray[np.intp]]
    before: dict[tuple[int, int], dict[Any, int]]

    @classmethod
    def cut(cls, n_folds: int, counts: Counts) -> Folds:
        """Folds of rows that are counted."""
        totals: dict[Any, int] = {}
        before: dict[tuple[int, int], dict[Any, int]] = {}
        for place in sorted(counts):
            before[place] = dict(totals)
            for label, n in counts[place].items():
                totals[label] = totals.get(label, 0) + n
        most = max(totals.values(), default=0)
        if n_folds > most:
            of_a_class = "" if None in totals else " of any class"
            raise ValueError(
                f"cv={n_folds} is greater than the number of rows{of_a_class}, {most}: use fewer "
                "folds."
            )
        sizes = _sizes(n_folds, totals)
        return cls(n_folds, {label: np.cumsum(one) for label, one in sizes.items()}, before)

    def of(self, block: Block) -> NDArray[np.intp]:
        """The fold of every row of a block, -1 for those without weight."""
        found = np.full(block.n_rows, -1)
        before, carrying = self.before[block.part, block.start], block.weights > 0
        for label, ends in self.ends.items():
            mine = carrying if label is None else carrying & (block.y == label)
            rows = np.flatnonzero(mine)
            ranks = before.get(label, 0) + np.arange(len(rows))
            found[rows] = np.searchsorted(ends, ranks, side="right")
        return found


def _sizes(n_folds: int, totals: Mapping[Any, int]) -> dict[Any, NDArray[np.intp]]:
    """How many rows of every label are in every fold: sorted by label, every n-th row is."""
    k, first = np.arange(n_folds), 0
    sizes: dict[Any, NDArray[np.intp]] = {}
    for label, n in totals.items():
        if label is None:
            sizes[label] = n // n_folds + (k < n % n_folds)
        else:
            upto, done = (-((k - end) // n_folds) for end in (first + n, first))
            sizes[label] = upto - done
        first += n
    return sizes
