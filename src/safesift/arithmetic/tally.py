"""How many rows were read, for whoever wants to know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock


class Tally:
    """Rows read since it began, each product with a row counted once however many columns it has.

    Rows of which somebody holds a copy of their own are counted when they are copied.

    Attributes
    ----------
    rows : int
    """

    def __init__(self) -> None:
        self.rows = 0
        self._lock = Lock()

    def add(self, n_rows: int) -> None:
        """Count rows, on whatever thread they were read."""
        with self._lock:
            self.rows += n_rows


_tally: ContextVar[Tally | None] = ContextVar("safesift_tally", default=None)


@contextmanager
def counting() -> Iterator[Tally]:
    """Count the rows that designs read inside the block; blocks inside it count for both."""
    outer, tally = _tally.get(), Tally()
    token = _tally.set(tally)
    try:
        yield tally
    finally:
        _tally.reset(token)
        if outer is not None:
            outer.add(tally.rows)


def count(n_rows: int) -> None:
    """Tell whoever counts that rows were read."""
    tally = _tally.get()
    if tally is not None:
        tally.add(n_rows)
