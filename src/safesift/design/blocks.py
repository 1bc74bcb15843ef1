"""Rows in blocks, blocks in tasks, tasks on threads."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic import tally
from safesift.arithmetic.numerics import EPS
from safesift.arithmetic.threads import each, run
from safesift.design.base import Array, Design

# entries of a task: enough for a thread to be worth its start, few enough for all to have some
_TASK_ENTRIES = 2**19

# adds what a block of rows amounts to, to some sums
Adds = Callable[[list[Array], slice, NDArray], None]


def slices(stop: int, length: int, start: int = 0) -> list[slice]:
    """Consecutive ones of that length, the last one shorter."""
    length = max(length, 1)
    return [slice(first, min(first + length, stop)) for first in range(start, stop, length)]


class BlockedRows(Design):
    """Rows that are read a block at a time, several blocks by several threads.

    Sums over the samples are sums over the rows of a block, over the blocks of a task, and over
    the tasks, in their order: their rounding error is small, and the same for any number of
    threads. Subclasses give the blocks.

    Attributes
    ----------
    gram_error : float
        |computed Σ wᵢaᵢaᵢᵀ − exact| ≤ gram_error·ccᵀ, entry by entry, for c_j² = Σ wᵢaᵢⱼ², w ≥ 0.
    held : bool
        Whether the rows are somebody's own copy: products with them are no passes over the data.
    """

    if TYPE_CHECKING:
        # a field of some designs, that of another design in others
        @property
        def held(self) -> bool: ...

    else:
        held: bool = False

    @abstractmethod
    def block(self, rows: slice) -> NDArray:
        """Consecutive rows as float64 (dense or CSR), without ones."""

    @property
    @abstractmethod
    def block_rows(self) -> int:
        """The largest number of rows in a block of a product with vectors."""

    @property
    def _rows_read_once(self) -> int:
        """Of blocks that nobody reads a second time: they need not stay in a cache."""
        return 4 * self.block_rows

    @property
    def gram_rows(self) -> int:
        """The largest number of rows in a block of a Gram matrix."""
        return self.block_rows

    @property
    @abstractmethod
    def row_length(self) -> int:
        """The largest number of non-zeros in a row, the ones not counted."""

    @property
    def n_entries(self) -> int:
        """About how many numbers a pass visits: by this the cost of a pass is estimated."""
        return self.n_samples * self.row_length

    # --- rounding ---------------------------------------------------------------------------

    @property
    def dot_error(self) -> float:
        return (self.row_length + 8) * EPS

    @property
    def sum_error(self) -> float:
        return self._error_of_sums(self._rows_read_once)

    @property
    def gram_error(self) -> float:
        return self._error_of_sums(self.gram_rows)

    def _error_of_sums(self, n_rows: int) -> float:
        """Of sums over blocks of so many rows, added up."""
        n_blocks = -(-self.n_samples // max(n_rows, 1))
        return (min(n_rows, self.n_samples) + n_blocks + 8) * EPS

    # --- blocks, and tasks made of them ------------------------------------------------------

    def read(self, n_rows: int | None = None) -> Iterator[tuple[slice, NDArray]]:
        """Blocks of `block_rows` or of so many rows, counted as they are read."""
        return self._read(slice(0, self.n_samples), n_rows or self.block_rows)

    def _read(self, task: slice, n_rows: int) -> Iterator[tuple[slice, NDArray]]:
        for rows in slices(task.stop, n_rows, task.start):
            if not self.held:
                tally.count(rows.stop - rows.start)
            yield rows, self.block(rows)

    def _tasks(self, n_rows: int, most: int | None = None) -> list[slice]:
        """Rows in runs of blocks: some, so that a thread is worth its start, or `most` runs."""
        if most is None:
            entries = self.n_entries * n_rows / max(self.n_samples, 1)
            n_blocks = int(_TASK_ENTRIES // max(entries, 1.0))
        else:
            n_blocks = -(-self.n_samples // (n_rows * most))
        return slices(self.n_samples, max(n_blocks, 1) * n_rows)

    def _visit(self, visit: Callable[[slice, NDArray], None], n_rows: int) -> None:
        """Call something with every block of so many rows, on several threads."""

        def work(task: slice) -> None:
            for rows, block in self._read(task, n_rows):
                visit(rows, block)

        run(work, self._tasks(n_rows))

    def _sum(
        self, shapes: Sequence[tuple[int, ...]], add: Adds, n_rows: int, most: int | None = None
    ) -> list[Array]:
        """What is added up over the blocks of a task, and then over the tasks in their order."""

        def part(task: slice) -> list[Array]:
            sums = [np.zeros(shape) for shape in shapes]
            for rows, block in self._read(task, n_rows):
                add(sums, rows, block)
            return sums

        parts = each(part, self._tasks(n_rows, most))
        totals = next(parts, None) or [np.zeros(shape) for shape in shapes]
        for sums in parts:
            for total, more in zip(totals, sums, strict=True):
                total += more
        return totals
