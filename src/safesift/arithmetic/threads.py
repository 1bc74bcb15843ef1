"""As many threads as the user allows, over tasks that do not depend on how many there are.

The limit is that of the environment: OMP_NUM_THREADS where it is set (joblib sets it in its worker
processes), and never more than the processors that this process may use (affinity, containers,
LOKY_MAX_CPU_COUNT: see `joblib.cpu_count`). `limited` lowers it for a block of code.

Work is cut into tasks by its size alone and results are put together in the order of the tasks, so
that they are the same, to the last bit, for every number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

_limit: ContextVar[int | None] = ContextVar("safesift_threads", default=None)


def n_threads() -> int:
    """How many threads may be used now."""
    chosen = _limit.get()
    return _environment_limit() if chosen is None else chosen


def _environment_limit() -> int:
    # OpenMP allows a list, one number per level of nesting
    named = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    allowed = _n_processors()
    return min(int(named), allowed) if named.isdigit() and int(named) > 0 else allowed


@cache
def _n_processors() -> int:
    """Found once: it takes reading a dozen files."""
    from joblib import cpu_count

    return cpu_count()


@contextmanager
def limited(most: int) -> Iterator[None]:
    """Use at most so many threads inside the block."""
    token = _limit.set(max(int(most), 1))
    try:
        yield
    finally:
        _limit.reset(token)


def each(function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
    """The results in the order of the tasks, computed by several threads where there are several.

    The threads see the context (NumPy's error state among it) of the caller.
    """
    tasks = list(tasks)
    n = min(n_threads(), len(tasks)) if len(tasks) > 1 else 1
    if n <= 1:
        yield from map(function, tasks)
        return
    with ThreadPoolExecutor(n) as pool:
        futures = [pool.submit(copy_context().run, function, task) for task in tasks]
        # a result that was handed out is not kept
        futures.reverse()
        while futures:
            yield futures.pop().result()


def run(function: Callable[[Task], None], tasks: Iterable[Task]) -> None:
    """Call the function on every task."""
    for _ in each(function, tasks):
        pass
