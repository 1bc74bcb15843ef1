"""Blocks that were decoded once and are kept, as many as a budget allows."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import Any

from safesift.design.block_source import Block, BlockSource


class Remembered:
    """The blocks of a source, of which some parts are decoded only once.

    Whole parts are kept, the first ones that come, as long as they fit. What is computed does not
    depend on which: a block that is kept is the one that was read, and whoever reads it looks at
    its checksum all the same. A copy for another process keeps nothing.

    Parameters
    ----------
    source : BlockSource
    budget : float
        What may be kept, in bytes.
    """

    def __init__(self, source: BlockSource, budget: float = 0.0) -> None:
        self._source, self._budget = source, budget
        self._kept: dict[int, list[Block]] = {}
        self._n_bytes, self._lock = 0, Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"_source": self._source}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_source"])  # type: ignore[misc]

    def blocks(self, part: int, checked: bool = False) -> Iterator[Block]:
        """The blocks of a part, as `BlockSource.blocks` has them."""
        known = self._kept.get(part)
        if known is not None:
            yield from known
            return
        mine: list[Block] | None = []
        n_bytes = 0
        for block in self._source.blocks(part, checked):
            if mine is not None:
                steady = self._source.to_keep(block)
                n_bytes += block.n_bytes
                if steady is None or n_bytes + self._n_bytes > self._budget:
                    mine = None
                else:
                    mine.append(steady)
            yield block
        if mine is not None:
            self._keep(part, mine, n_bytes)

    def _keep(self, part: int, blocks: list[Block], n_bytes: int) -> None:
        with self._lock:
            if part not in self._kept and n_bytes + self._n_bytes <= self._budget:
                self._kept[part] = blocks
                self._n_bytes += n_bytes

    def forget(self, part: int) -> None:
        """Keep a part no longer, where it was kept."""
        with self._lock:
            for block in self._kept.pop(part, []):
                self._n_bytes -= block.n_bytes

    def shrink(self, budget: float) -> None:
        """Keep no more than that: the last parts go first."""
        self._budget = budget
        for part in sorted(self._kept, reverse=True):
            if self._n_bytes <= budget:
                break
            self.forget(part)
