"""Passes on a cluster: tasks of `distributed`, sums added up where they are.

A source is sent once, a pass once (without its source), a task is the number of a part and two
bits for each of its rows. All are tasks of the scheduler, none is data that was scattered: whatever
a worker took with it is made again by another one, from the same bytes, so that it is the same.
Every pass has keys of its own: no result of an earlier one can be taken for it.
"""

from __future__ import annotations

import io
import pickle
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple
from uuid import uuid4

import cloudpickle
from dask.delayed import delayed
from distributed import Future

from safesift.arithmetic.threads import using
from safesift.design.block_source import BlockSource
from safesift.workflows.scale.engine import Task, Tree, Work

# parts per thread of the cluster that are sent at a time, and the fewest; two batches are under way
_AHEAD, _FEWEST = 4, 16
_CLOSED = ("closed", "closing")


class Dask:
    """The workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        if client.asynchronous:
            raise ValueError(
                "client is asynchronous, and passes wait for their results: make it with "
                "asynchronous=False."
            )
        if client.status in _CLOSED:
            raise ValueError("client is closed: make another one.")
        self._client, self._run, self._n_passes = client, uuid4().hex[:12], 0
        self._sent: tuple[BlockSource, Any] | None = None

    def carry_out(self, work: Work, tasks: Sequence[Task], take: Callable[[Any], None]) -> Any:
        try:
            return self._carried_out(work, tasks, take)
        except BaseException as error:
            # what is cancelled with a client is no Exception
            if self._client.status in _CLOSED and not isinstance(error, KeyboardInterrupt):
                raise RuntimeError(
                    "the client was closed in the middle of a pass: make another one, and begin "
                    "again."
                ) from error
            raise

    def _carried_out(self, work: Work, tasks: Sequence[Task], take: Callable[[Any], None]) -> Any:
        self._n_passes += 1
        source, parcel = self._source(work.source), self._put("work", _parcel(work))
        sums = count()
        tree = Tree(lambda *two: self._call("plus", next(sums), _added, parcel, source, *two))
        few = max(_AHEAD * sum(self._client.nthreads().values()), _FEWEST)
        waiting: deque[list[Any]] = deque()
        try:
            for first in range(0, len(tasks), few):
                told = []
                for task in tasks[first : first + few]:
                    pieces = list(work.source.pieces(task.part))
                    found = self._call("part", task.part, _done, parcel, source, task, pieces)
                    tree.add(found)
                    told.append(self._call("rest", task.part, _rest, found))
                waiting.append(self._begun(tree, told))
                if len(waiting) > 1:
                    self._hand_over(waiting, take)
            while waiting:
                self._hand_over(waiting, take)
            return _summed(self._client.compute(tree.total()).result())
        except BaseException:
            # for what was refused, or interrupted, nobody waits any more
            futures = [*(one for batch in waiting for one in batch), *tree.nodes]
            if self._client.status not in _CLOSED:
                self._client.cancel([one for one in futures if isinstance(one, Future)])
            raise

    def _begun(self, tree: Tree, told: list[Any]) -> list[Any]:
        """Let workers begin with all that is told, and with the sums that the tree waits for."""
        wanted = [*told, *tree.nodes]
        begun = self._client.compute(wanted, optimize_graph=False)
        tree.nodes = begun[len(told) :]
        return begun[: len(told)]

    def _hand_over(self, waiting: deque[list[Any]], take: Callable[[Any], None]) -> None:
        """What is told of the parts of the first batch."""
        for rest in self._client.gather(waiting[0]):
            take(rest)
        waiting.popleft()

    def _source(self, source: BlockSource) -> Any:
        """It is sent once."""
        if self._sent is None or self._sent[0] is not source:
            self._sent = source, self._put("source", source)
        return self._sent[1]

    def _put(self, name: str, value: Any) -> Any:
        return self._client.submit(_itself, value, key=self._key(name, self._n_passes))

    def _call(self, what: str, number: int, function: Callable[..., Any], *arguments: Any) -> Any:
        """A task for later."""
        return delayed(function, pure=False)(*arguments, dask_key_name=self._key(what, number))

    def _key(self, what: str, number: int) -> str:
        """Of a part in a pass."""
        return f"safesift-{what}-{self._run}-{self._n_passes}-{number}"


# --- what workers do --------------------------------------------------------------------------


def _itself(value: Any) -> Any:
    return value


class _Found(NamedTuple):
    """What is added up, and what is told of a part."""

    summed: Any
    rest: Any


def _done(parcel: bytes, source: BlockSource, task: Task, pieces: list[Any]) -> _Found:
    """A task, by one thread."""
    work = _opened(parcel, source.holding(task.part, pieces))
    with using(1):
        return _Found(*work.parted(work(task)))


def _rest(found: _Found) -> Any:
    return found.rest


def _summed(found: Any) -> Any:
    return found.summed if isinstance(found, _Found) else found


def _added(parcel: bytes, source: BlockSource, one: Any, other: Any) -> Any:
    return _opened(parcel, source).plus(_summed(one), _summed(other))


# --- work without its source ------------------------------------------------------------------


class _Without(cloudpickle.Pickler):
    """Leaves a mark where a source is."""

    def persistent_id(self, thing: Any) -> str | None:
        return "source" if isinstance(thing, BlockSource) else None


class _With(pickle.Unpickler):
    """Puts a source where the mark is."""

    def __init__(self, stream: Any, source: BlockSource) -> None:
        super().__init__(stream)
        self._source = source

    def persistent_load(self, mark: str) -> BlockSource:
        return self._source


def _parcel(work: Work) -> bytes:
    stream = io.BytesIO()
    _Without(stream, protocol=pickle.HIGHEST_PROTOCOL).dump(work)
    return stream.getvalue()


def _opened(parcel: bytes, source: BlockSource) -> Work:
    return _With(io.BytesIO(parcel), source).load()
