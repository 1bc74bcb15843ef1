"""The rows of a source as a matrix: every product is one pass over its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS
from safesift.arithmetic.threads import each, run
from safesift.design.base import Array
from safesift.design.blocks import Adds
from safesift.design.factory import as_design
from safesift.design.pool import stacked
from safesift.design.rows import RowDesign, rows_of


@dataclass(frozen=True, eq=False, repr=False)
class SourceRows(RowDesign):
    """Rows that are read part by part whenever somebody needs them; none of them is held.

    Attributes
    ----------
    rows_of_part : callable
        The number of a part ↦ its rows, in blocks.
    lengths : sequence of int
        How many rows every part has.
    n_features : int
    longest : int
        The largest number of non-zeros in a row.
    intercept : bool
    """

    rows_of_part: Callable[[int], Iterator[RowDesign]]
    lengths: Sequence[int]
    n_features: int
    longest: int
    intercept: bool = False
    held: bool = True  # whoever reads a source counts its rows

    @cached_property
    def _starts(self) -> NDArray[np.intp]:
        """The number of the first row of every part, and after the last one that of all rows."""
        return np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.intp)

    @property
    def n_samples(self) -> int:
        return int(self._starts[-1])

    @property
    def row_length(self) -> int:
        return self.longest

    @property
    def block_rows(self) -> int:
        # some rows in the order of a pass are gathered a part at a time
        return max(max(self.lengths, default=1), 1)

    def _error_of_sums(self, n_rows: int) -> float:
        return super()._error_of_sums(n_rows) + len(self.lengths) * EPS

    # --- a pass ---------------------------------------------------------------------------------

    def _blocks(self, part: int, n_rows: int) -> Iterator[tuple[slice, NDArray]]:
        """The blocks of a part, by the numbers that their rows have among all."""
        first = int(self._starts[part])
        for rows in self.rows_of_part(part):
            for mine, block in rows.read(n_rows):
                yield slice(first + mine.start, first + mine.stop), block
            first += rows.n_samples

    def _visit(self, visit: Callable[[slice, NDArray], None], n_rows: int) -> None:
        def work(part: int) -> None:
            for rows, block in self._blocks(part, min(n_rows, _ROWS)):
                visit(rows, block)

        run(work, range(len(self.lengths)))

    def _sum(
        self, shapes: Sequence[tuple[int, ...]], add: Adds, n_rows: int, most: int | None = None
    ) -> list[Array]:
        def part_sums(part: int) -> list[Array]:
            sums = [np.zeros(shape) for shape in shapes]
            for rows, block in self._blocks(part, min(n_rows, _ROWS)):
                add(sums, rows, block)
            return sums

        totals = [np.zeros(shape) for shape in shapes]
        for sums in each(part_sums, range(len(self.lengths))):
            for total, more in zip(totals, sums, strict=True):
                total += more
        return totals

    # --- some rows ------------------------------------------------------------------------------

    def take(self, rows: NDArray) -> RowDesign:
        """Some rows, held: by a mask, or by numbers that rise."""
        indices = np.flatnonzero(rows) if rows.dtype == bool else rows
        parts = np.unique(np.searchsorted(self._starts, indices, side="right") - 1)
        found = [one for some in each(lambda part: self._rows_of(part, indices), parts.tolist())
                 for one in some]  # fmt: skip
        if not found:
            raise ValueError("there are no such rows.")
        return rows_of(as_design(stacked(found), self.intercept)).as_held()

    def _rows_of(self, part: int, indices: NDArray[np.intp]) -> list[NDArray]:
        first, found = int(self._starts[part]), []
        for rows in self.rows_of_part(part):
            ends = np.searchsorted(indices, (first, first + rows.n_samples))
            mine = indices[slice(*ends)] - first
            if len(mine):
                found.append(rows.take(mine).data)
            first += rows.n_samples
        return found

    def gathered(self, rows: NDArray) -> NDArray:
        taken = self.take(rows)
        return taken.block(slice(0, taken.n_samples))

    def block(self, rows: slice) -> NDArray:
        return self.gathered(np.arange(rows.start, rows.stop))

    @property
    def data(self) -> NDArray:
        return self.take(np.arange(self.n_samples)).data

    def columns(self, features: NDArray) -> RowDesign:
        raise TypeError("columns of rows that come in blocks are chosen where they are read.")


# rows of a block that are converted to float64 at a time
_ROWS = 2**15
