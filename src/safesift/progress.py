"""Progress of long work, for whoever wants to listen; silent by default."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, int, int], None]

_listener: ContextVar[Listener | None] = ContextVar("safesift_progress", default=None)
_within: ContextVar[Listener | None] = ContextVar("safesift_progress_within", default=None)


@contextmanager
def listening(listener: Listener, within: Listener | None = None) -> Iterator[None]:
    """Call `listener(stage, done, total)` after every pass over the data made inside the block.

    `within(pass, rows, all rows)` is called on the way, where passes are long.
    """
    tokens = _listener.set(listener), _within.set(within)
    try:
        yield
    finally:
        _listener.reset(tokens[0])
        _within.reset(tokens[1])


def report(stage: str, done: int, total: int) -> None:
    """Tell the listener, if any, that `done` of at most `total` passes of a stage are made."""
    listener = _listener.get()
    if listener is not None:
        listener(stage, done, total)


def report_within(stage: str, done: int, total: int) -> None:
    """Tell whoever listens that a pass has seen so many of all rows; 0 where nobody knows."""
    within = _within.get()
    if within is not None:
        within(stage, done, total)
