"""Several runs at once that share their passes over the data.

A run is a generator: it yields a `Query`, a problem and a point, is sent the `Evaluation`, and
returns its result. Runs on the same rows wait for each other at every query, and one product of
the matrix with as many columns as there are runs answers them all.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem, evaluate_together

Result = TypeVar("Result")


class Query(NamedTuple):
    """The question for the value and subgradient of a problem at a point."""

    problem: Problem
    point: NDArray[np.float64]


Run = Generator[Query, Evaluation, Result]


def together(runs: Sequence[Run[Result]]) -> list[Result]:
    """The results of runs on problems that share one design."""
    results: list[Any] = [None] * len(runs)
    waiting: dict[int, Query] = {}
    answers: dict[int, Evaluation | None] = dict.fromkeys(range(len(runs)))
    while answers:
        for k, answer in answers.items():
            try:
                waiting[k] = runs[k].send(answer)
            except StopIteration as ended:
                results[k] = ended.value
        found = evaluate_together([(query.problem, query.point) for query in waiting.values()])
        answers = dict(zip(waiting, found, strict=True))
        waiting = {}
    return results


def alone(run: Run[Result]) -> Result:
    """The result of one run."""
    return together([run])[0]
