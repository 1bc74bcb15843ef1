"""Who carries a pass out: work on every part of a source, and a sum that depends on them only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.threads import each, n_threads
from safesift.design.block_source import BlockSource
from safesift.registry import naming_extra
from safesift.workflows.scale.codes import Packed

Argument = TypeVar("Argument")
Result = TypeVar("Result")

# tasks per thread whose results may be waiting at a time
_AHEAD = 2


@dataclass(frozen=True, eq=False)
class Task:
    """A part, and for every problem the piece of each of its rows, as far as it is known."""

    part: int
    codes: Sequence[NDArray[np.uint8]] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """It travels with two bits or four for a row."""
        return _task, (self.part, [Packed.of(one) for one in self.codes])


def _task(part: int, codes: Sequence[Packed]) -> Task:
    return Task(part, [one.unpacked() for one in codes])


@dataclass(frozen=True)
class Tasks(Sequence):
    """Tasks that are made when they are asked for."""

    parts: Sequence[int]
    make: Callable[[int], Task]

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self.make(part) for part in self.parts[place]]
        return self.make(self.parts[place])


class Work(Protocol):
    """What a pass does.

    It has no side effects, so that a task may be done twice and either result be taken.
    """

    @property
    def source(self) -> BlockSource:
        """Where the parts are."""

    def __call__(self, task: Task) -> Any:
        """What is found in a part."""

    def parted(self, found: Any) -> tuple[Any, Any]:
        """Of that, what is added up over the parts, and what is told of each."""

    def plus(self, one: Any, other: Any) -> Any:
        """The sum of two."""


class Engine(Protocol):
    """Whoever carries passes out."""

    def carry_out(self, work: Work, tasks: Sequence[Task], take: Callable[[Any], None]) -> Any:
        """The sum over all tasks, by a `Tree`; `take` is told of each, in their order."""


class Tree:
    """A sum of results that come in their order, two of the same height at a time.

    It holds as many partial sums as the number of results has bits, and which are added to which
    depends on nothing but that number.
    """

    def __init__(self, plus: Callable[[Any, Any], Any]) -> None:
        self._plus = plus
        self._waiting: list[tuple[int, Any]] = []

    def add(self, result: Any) -> None:
        """One more, the next one."""
        height = 0
        while self._waiting and self._waiting[-1][0] == height:
            _, before = self._waiting.pop()
            result, height = self._plus(before, result), height + 1
        self._waiting.append((height, result))

    @property
    def nodes(self) -> list[Any]:
        """The partial sums that are waiting."""
        return [node for _, node in self._waiting]

    @nodes.setter
    def nodes(self, nodes: Sequence[Any]) -> None:
        """The same in another form."""
        heights = [height for height, _ in self._waiting]
        self._waiting = list(zip(heights, nodes, strict=True))

    def total(self) -> Any:
        """The sum of them all."""
        _, result = self._waiting.pop()
        while self._waiting:
            result = self._plus(self._waiting.pop()[1], result)
        return result


class Threads:
    """The threads of this process."""

    def carry_out(self, work: Work, tasks: Sequence[Task], take: Callable[[Any], None]) -> Any:
        tree = Tree(work.plus)
        for found in self.map(work, tasks):
            summed, rest = work.parted(found)
            take(rest)
            tree.add(summed)
        return tree.total()

    def map(
        self, function: Callable[[Argument], Result], tasks: Sequence[Argument]
    ) -> Iterator[Result]:
        """A few tasks at a time, so that no more results are held than that."""
        few = _AHEAD * n_threads()
        for first in range(0, len(tasks), few):
            yield from each(function, tasks[first : first + few])


# --- which one --------------------------------------------------------------------------------

_chosen: ContextVar[Engine | None] = ContextVar("safesift_engine", default=None)


@contextmanager
def engine(client: Any) -> Iterator[None]:
    """Let a cluster carry out the passes over rows in blocks that are made inside the block.

    Work goes where the rows are: a worker reads a part, or has it in memory where the rows are
    those of a dask array or frame, and sums are added up on the workers, in a tree that depends on
    the parts only. So any number of workers, and the threads of this process, find the same, to
    the last bit, on processors of one kind. What comes back here is the sum, the rows that are
    held, and two bits for every row. Scheduling, what happens when a worker is lost, and spilling
    are Dask's.

    Parameters
    ----------
    client : distributed.Client
        Workers need safesift, and have to see the files of the source under the same names.

    Yields
    ------
    None
        A block of `with`, in which the cluster is used.

    Examples
    --------
    >>> import safesift as ss
    >>> def fitted(client, rows):
    ...     with ss.engine(client):
    ...         return ss.SafeClassifier(alpha=1e-4).fit(rows)
    """
    token = _chosen.set(_engine_of(client))
    try:
        yield
    finally:
        _chosen.reset(token)


def engine_for(source: BlockSource) -> Engine:
    """The one that was chosen; else that of the rows, if they are on a cluster; else threads."""
    chosen = _chosen.get()
    if chosen is not None:
        return chosen
    client = source.client
    return Threads() if client is None else _engine_of(client)


def _engine_of(client: Any) -> Engine:
    if hasattr(client, "carry_out"):
        return client
    if not hasattr(client, "submit") or not hasattr(client, "scheduler_info"):
        raise TypeError(
            f"client must be a distributed.Client, got {type(client).__name__}: make one by "
            "distributed.Client(address of the scheduler), or by Client() for processes of this "
            "machine."
        )
    try:
        return import_module("safesift.workflows.scale.dask_engine").Dask(client)
    except ImportError as error:
        raise naming_extra(error) from None
