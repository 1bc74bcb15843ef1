"""A pass: a function mapped over the parts of a source, and a sum that depends on them only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from safesift.arithmetic.threads import each, n_threads

Task = TypeVar("Task")
Result = TypeVar("Result")

# tasks per thread whose results may be waiting at a time
_AHEAD = 2


class Engine(Protocol):
    """Whoever carries a pass out.

    Tasks have no side effects, so that one may be run twice and any result of it be taken.
    """

    def map(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        """The results, in the order of the tasks."""


class Threads:
    """The threads of this process."""

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """A few tasks at a time, so that no more results are held than that."""
        few = _AHEAD * n_threads()
        for first in range(0, len(tasks), few):
            yield from each(function, tasks[first : first + few])


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

    def total(self) -> Any:
        """The sum of them all."""
        _, result = self._waiting.pop()
        while self._waiting:
            result = self._plus(self._waiting.pop()[1], result)
        return result
