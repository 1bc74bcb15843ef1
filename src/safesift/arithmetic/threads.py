"""Threads that do not wait for each other, over tasks that do not depend on how many there are.

How many there may be is what the process may use: OMP_NUM_THREADS where it is set (joblib sets it
in its worker processes), and never more than its processors (affinity, a container's share,
LOKY_MAX_CPU_COUNT: see `joblib.cpu_count`). `computes` takes `n_jobs` into account.

BLAS has one thread inside the library: its threads spin at barriers while their partners are not
scheduled, so that beside other busy processes a product takes ten times as long. Work is cut into
tasks instead, and whoever asks for them works on them, too: a thread that is not scheduled leaves
its share to the others, and at most one task per thread is waited for.

Tasks are cut by their size alone and results are put together in their order, so that they are the
same, to the last bit, for every number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import cache, wraps
from inspect import signature
from threading import Condition, Lock
from typing import Any, Generic, ParamSpec, TypeVar

import threadpoolctl
from joblib import cpu_count, effective_n_jobs

from safesift.parameters import check_jobs

Task = TypeVar("Task")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

_limit: ContextVar[int | None] = ContextVar("safesift_threads", default=None)


# --- how many -------------------------------------------------------------------------------


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
    return cpu_count()


@contextmanager
def limited(most: int) -> Iterator[None]:
    """Use at most so many threads inside the block."""
    token = _limit.set(max(int(most), 1))
    try:
        yield
    finally:
        _limit.reset(token)


@contextmanager
def using(n_jobs: int | None) -> Iterator[None]:
    """As many threads as `n_jobs` says inside the block, and BLAS with one.

    None is what there may be already: inside another such block as many as that one has, otherwise
    what the process may use. That departs from joblib, for which None is 1.
    """
    n_jobs = check_jobs(n_jobs)
    with _blas:
        if n_jobs is None:
            yield
        else:
            with limited(effective_n_jobs(n_jobs)):
                yield


def computes(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """For public calls: their threads are those of their `n_jobs`, or of that of their object."""
    # X may be a frame with a column of that name
    told = "n_jobs" in signature(function).parameters

    @wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        owner = args[0] if args and not told else None
        n_jobs: Any = kwargs.get("n_jobs", getattr(owner, "n_jobs", None))
        with using(n_jobs):
            return function(*args, **kwargs)

    return call


class _OneBlasThread:
    """BLAS with one thread while anybody computes, and as it was when the last one is done.

    The number of threads of a BLAS belongs to the process: were it set and put back by every user
    thread for itself, one could put back what another has set.
    """

    def __init__(self) -> None:
        self._lock, self._n_users = Lock(), 0
        self._limits: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._n_users == 0:
                _claim_nothing()
                self._limits = _libraries().limit(limits=1, user_api="blas")
                _claim_nothing()
            self._n_users += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._n_users -= 1
            if self._n_users == 0:
                _claim_nothing()
                self._limits.restore_original_limits()
                _claim_nothing()


def _claim_nothing() -> None:
    """Let any thread set the limits of BLAS, which belong to the process.

    Newer versions of threadpoolctl let the first thread that sets any do so, and ignore all others
    without a word: whoever is the first one here need not be the last.
    """
    controller = getattr(threadpoolctl, "OpenBLASController", None)
    if controller is not None and hasattr(controller, "clear_controlling_thread"):
        controller.clear_controlling_thread(force=True)


@cache
def _libraries() -> threadpoolctl.ThreadpoolController:
    """Those of NumPy and SciPy, looked for once: it takes milliseconds."""
    import scipy.linalg  # noqa: F401  brings a BLAS of its own

    return threadpoolctl.ThreadpoolController().select(user_api="blas")


_blas = _OneBlasThread()


# --- tasks ----------------------------------------------------------------------------------


class _Batch(Generic[Task, Result]):
    """Tasks that several threads take one after the other, and their results.

    Of every task it is known whether somebody has taken it, and what came of it.
    """

    def __init__(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> None:
        self._function, self._tasks = function, tasks
        self._n_taken, self._changed = 0, Condition()
        self._outcomes: dict[int, tuple[Result | None, BaseException | None]] = {}

    def help(self) -> None:
        """Work on tasks until none is left."""
        while self._work():
            pass

    def _work(self) -> bool:
        """Work on the next task that nobody has taken; False where there is none."""
        with self._changed:
            place = self._n_taken
            if place >= len(self._tasks):
                return False
            self._n_taken += 1
        outcome: tuple[Result | None, BaseException | None]
        try:
            outcome = self._function(self._tasks[place]), None
        except BaseException as error:
            outcome = None, error
        with self._changed:
            self._outcomes[place] = outcome
            self._changed.notify_all()
        return True

    def result(self, place: int) -> Any:
        """Of a task, once: work on others as long as somebody else is working on that one."""
        while place not in self._outcomes and self._work():
            pass
        with self._changed:
            self._changed.wait_for(lambda: place in self._outcomes)
            found, error = self._outcomes.pop(place)
        if error is not None:
            raise error
        return found

    def close(self) -> None:
        """Nobody takes another task."""
        with self._changed:
            self._n_taken = len(self._tasks)


def each(function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
    """The results in the order of the tasks, computed by several threads where there are several.

    The threads see the context (NumPy's error state among it) of the caller. What a task itself
    cuts into tasks is done by its own thread.
    """
    tasks = list(tasks)
    n = min(n_threads(), len(tasks))
    if n <= 1:
        yield from map(function, tasks)
        return
    with limited(1):
        alone = copy_context()
    batch = _Batch(lambda task: alone.copy().run(function, task), tasks)
    helpers = _helpers(batch, n - 1)
    try:
        for place in range(len(tasks)):
            yield batch.result(place)
    finally:
        batch.close()
        # those that have not begun need not; the others are at their last task
        wait([helper for helper in helpers if not helper.cancel()])


def _helpers(batch: _Batch, most: int) -> list[Future]:
    """Those who help with tasks; none once the interpreter ends, which takes in no more work."""
    helpers: list[Future] = []
    with suppress(RuntimeError):
        for _ in range(most):
            helpers.append(_pool().submit(batch.help))
    return helpers


def run(function: Callable[[Task], None], tasks: Iterable[Task]) -> None:
    """Call the function on every task."""
    for _ in each(function, tasks):
        pass


@cache
def _pool() -> ThreadPoolExecutor:
    """One for the whole process: to start threads takes longer than a small task."""
    return ThreadPoolExecutor(_n_processors(), thread_name_prefix="safesift")


def _after_fork() -> None:
    """Threads, and locks that they held, do not come along into a process that is forked."""
    global _blas
    _pool.cache_clear()
    _blas = _OneBlasThread()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
