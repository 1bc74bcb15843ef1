"""Progress of long work, for whoever wants to listen; silent by default."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, int, int], None]

_listener: ContextVar[Listener | None] = ContextVar("safesift_progress", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call `listener(stage, done, total)` after every pass over the data made inside the block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report(stage: str, done: int, total: int) -> None:
    """Tell the listener, if any, that `done` of at most `total` passes of a stage are made."""
    listener = _listener.get()
    if listener is not None:
        listener(stage, done, total)
