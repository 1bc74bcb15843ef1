"""Rows that all fit into the budget: read once more, held, and solved as rows in memory are."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift import progress
from safesift.design.block_source import BlockSource
from safesift.design.factory import as_design
from safesift.design.pool import stacked
from safesift.design.rows import rows_of
from safesift.problem.problem import Problem
from safesift.solvers import Fit, Settings, solve_path
from safesift.workflows.scale.codes import CodeStore
from safesift.workflows.scale.engine import Engine, Task
from safesift.workflows.scale.outcomes import Outcome, PassRecord
from safesift.workflows.scale.passes import Query, coded, problems_on
from safesift.workflows.scale.reading import Reading, Weighted
from safesift.workflows.scale.scratch import nameless_file

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Gathering:
    """The task of the pass that holds all rows: those of a part, in its blocks."""

    reading: Reading

    @property
    def source(self) -> BlockSource:
        return self.reading.source

    def __call__(self, task: Task) -> list[tuple[Any, Weighted]]:
        found = [(ready.rows.data, ready.samples) for ready in self.reading.blocks(task.part)]
        if self.reading.remembered is not None:
            # nobody reads it again
            self.reading.remembered.forget(task.part)
        return found

    def parted(self, found: list[tuple[Any, Weighted]]) -> tuple[None, list[tuple[Any, Weighted]]]:
        """Nothing is added up."""
        return None, found

    def plus(self, one: None, other: None) -> None:
        return None


def gathered(reading: Reading, engine: Engine, n_rows: int) -> tuple[Any, Weighted]:
    """All rows of a source, each held once."""
    matrix, samples = GrowingMatrix(n_rows), list[Weighted]()

    def take(blocks: list[tuple[Any, Weighted]]) -> None:
        for X, own in blocks:
            matrix.add(X)
            samples.append(own)

    engine.carry_out(Gathering(reading), [Task(part) for part in sorted(reading.seals)], take)
    y, weights = (np.concatenate([getattr(one, name) for one in samples])
                  for name in ("y", "weights"))  # fmt: skip
    folds = None
    if reading.cv_folds is not None:
        folds = np.concatenate([one.folds for one in samples if one.folds is not None])
    return matrix.whole(), Weighted(y, weights, folds)


class GrowingMatrix:
    """A matrix that grows block by block; the rows of a dense one are copied into their place.

    Parameters
    ----------
    n_rows : int
    budget : float, optional
        What may be held in memory, in bytes: beyond that it is a map of a nameless file.
    """

    def __init__(self, n_rows: int, budget: float = math.inf) -> None:
        self._n_rows, self._done, self._budget = n_rows, 0, budget
        self._sparse: list[Any] = []
        self._dense: NDArray | None = None

    def add(self, X: Any) -> None:
        if sparse.issparse(X):
            self._sparse.append(X)
            return
        kind = X.dtype if self._dense is None else np.result_type(self._dense, X)
        if self._dense is None or kind != self._dense.dtype:
            wider = self._empty((self._n_rows, X.shape[1]), kind)
            if self._dense is not None:
                wider[: self._done] = self._dense[: self._done]
            self._dense = wider
        self._dense[self._done : self._done + len(X)] = X
        self._done += len(X)

    def _empty(self, shape: tuple[int, int], kind: Any) -> NDArray:
        n_bytes = math.prod(shape) * kind.itemsize
        if n_bytes <= self._budget:
            return np.empty(shape, kind)
        with nameless_file(n_bytes) as file:  # the map keeps it
            return np.memmap(file, kind, "r+", shape=shape)

    def whole(self) -> Any:
        if self._dense is None:
            return stacked(self._sparse)
        if self._sparse:
            raise TypeError("some blocks are sparse and some are not: make all of them the same.")
        return self._dense


def solve_whole(
    reading: Reading,
    queries: Sequence[Query],
    n_levels: int,
    settings: Settings,
    *,
    engine: Engine,
    codes: CodeStore,
) -> list[Outcome]:
    """Solve all problems by the library's own driver: classes and folds in step, levels in turn.

    Parameters
    ----------
    reading : Reading
    queries : sequence of Query
        Levels of one class and fold follow each other.
    n_levels : int
    settings : Settings
    engine : Engine
    codes : CodeStore
        Gets what became of the rows.
    """
    began = time.perf_counter()
    X, samples = gathered(reading, engine, sum(codes.lengths.values()))
    progress.report("pass 2: all rows are held", 2, 2)
    rows = rows_of(as_design(X, reading.intercept)).as_held()
    queries = [_weighed(query, samples, reading.divisor) for query in queries]
    problems = problems_on(queries, rows, samples, reading.divisor)
    starts = range(0, len(queries), n_levels)
    levels: list[list[Problem]] = [[problems[k + i] for k in starts] for i in range(n_levels)]
    outcomes: dict[int, Outcome] = {}
    for i, fits in enumerate(solve_path(levels, settings)):
        for k, fit in zip(starts, fits, strict=True):
            query = queries[k + i]
            outcomes[k + i] = _outcome(fit, query.share or 1.0, time.perf_counter() - began)
            if query.fold is None:
                _put(codes, k + i, coded(fit.decisions))
    return [outcomes[k] for k in range(len(queries))]


def _weighed(query: Query, samples: Weighted, divisor: float) -> Query:
    if query.fold is None:
        return query.of_weight(1.0)
    return query.of_weight(float(samples.without(query.fold).sum()) / divisor)


def _put(codes: CodeStore, number: int, found: NDArray[np.uint8]) -> None:
    first = 0
    for part, n_rows in codes.lengths.items():
        codes.put(part, number, found[first : first + n_rows])
        first += n_rows


def _outcome(fit: Fit, share: float, seconds: float) -> Outcome:
    n_rows = fit.problem.design.n_samples
    record = PassRecord(
        2, seconds, fit.gap / share, fit.relative_gap, int(fit.kept.sum()),
        int(fit.undecided.sum()), n_rows, 0,
    )  # fmt: skip
    return Outcome(
        fit.coef, fit.intercept, fit.gap / share, fit.relative_gap, fit.at.value / share, True,
        (record,),
    )  # fmt: skip
