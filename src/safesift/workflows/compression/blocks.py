"""Rows that come in blocks, for the methods: some numbers of every row, found in one pass.

The model is solved as rows in blocks are (`workflows.scale`). Then one pass makes a Gram matrix,
one notes the numbers of every row, in memory or in a nameless file, and one takes the kept rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift import progress
from safesift.design.block_source import BlockSource
from safesift.design.factory import as_design
from safesift.design.pool import in_words
from safesift.design.rows import RowDesign, rows_of
from safesift.parameters import check_positive
from safesift.problem.decisions import Bounds
from safesift.problem.problem import Problem
from safesift.problem.training import Training
from safesift.workflows.compression.examined import codes_of, excess, of_own_class
from safesift.workflows.compression.metric import LeverageMetric, noise_of
from safesift.workflows.compression.samples import Samples
from safesift.workflows.scale import budget
from safesift.workflows.scale.engine import Engine, Task, Tasks, engine_for
from safesift.workflows.scale.passes import Query, problems_on
from safesift.workflows.scale.reading import Reading, Ready
from safesift.workflows.scale.results import block_model, complain
from safesift.workflows.scale.scratch import RowTable
from safesift.workflows.scale.solve import Solution, solve_blocks
from safesift.workflows.scale.whole import GrowingMatrix

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

# the relative gap of the model, as for rows in memory
_TOLERANCE = 1e-7
# rows whose numbers are looked at a time
_AT_ONCE = 2**16
# values from which quantiles are told, and the share of the budget that each is worth, in bytes
_MOST_VALUES, _PER_VALUE = 2**20, 400
# what a ranking holds of a row while it is made
_PER_RANKED = 120


# --- what is known of every row ---------------------------------------------------------------


class NotedRows(NamedTuple):
    """Some rows: see `samples.Rows`."""

    start: int
    numbers: Array  # a row of `_noted` each

    @property
    def weights(self) -> Array:
        return self.numbers[:, 0]

    @property
    def counted(self) -> Mask:
        return self.weights > 0

    @property
    def class_codes(self) -> Indices:
        return self.numbers[:, 1].astype(np.intp)

    @property
    def centers(self) -> Array:
        return self.numbers[:, 2]

    @property
    def own_predictions(self) -> Array:
        return self.numbers[:, 3]

    @property
    def margins(self) -> Array:
        return self.numbers[:, 4]

    @property
    def slope_sizes(self) -> Array:
        return self.numbers[:, 5]

    @property
    def leverage(self) -> Array:
        return self.numbers[:, 6]

    @property
    def active(self) -> Mask:
        return self.numbers[:, 7] > 0

    @property
    def test_values(self) -> Array:
        """How far predictions are out of the flat piece: negative exactly where that is proved."""
        nearly = -np.finfo(float).tiny
        return np.where(
            self.active, np.maximum(self.margins, 0.0), np.minimum(self.margins, nearly)
        )


_N_NUMBERS = 8


def _noted(rows: RowDesign, problems: list[Problem], asked: Asked, ready: Ready) -> Array:
    """Everything but whether rows are active, which is known elsewhere."""
    samples = ready.samples
    predictions, slopes = asked.predictions(rows), asked.slopes(problems, rows)
    codes = codes_of(samples.y, asked.reading.classes, samples.weights > 0)
    return np.column_stack([
        samples.weights, codes, problems[0].risk.targets.centers, of_own_class(predictions, codes),
        excess(problems, [Bounds(pred, pred) for pred in predictions.T]),
        np.linalg.norm(slopes, axis=1), asked.metric.leverage(rows), np.zeros(len(codes)),
    ])  # fmt: skip


@dataclass(frozen=True, eq=False)
class Asked:
    """The problems at their solutions, and the norm that rows are measured in."""

    reading: Reading
    queries: tuple[Query, ...]
    metric: LeverageMetric

    def problems(self, ready: Ready) -> list[Problem]:
        return problems_on(self.queries, ready.rows, ready.samples, self.reading.divisor)

    def predictions(self, rows: RowDesign) -> Array:
        return rows.matvec(np.stack([query.point for query in self.queries], axis=1))

    def slopes(self, problems: list[Problem], rows: RowDesign) -> Array:
        """ν, (n_rows, n_problems), 0 for rows without weight."""
        pairs = zip(problems, self.predictions(rows).T, strict=True)
        found = [one.loss.slope(pred, one.y) * (one.weights > 0) for one, pred in pairs]
        return np.stack(found, axis=1)


# --- passes -----------------------------------------------------------------------------------


class Noted(NamedTuple):
    """What is found in a part: its number, the numbers of its rows, and Σ s_i ν_i a_i."""

    part: int
    numbers: Array
    pull: Array


@dataclass(frozen=True, eq=False)
class Noting:
    """The task of the pass that notes the numbers of every row."""

    asked: Asked

    @property
    def source(self) -> BlockSource:
        return self.asked.reading.source

    def __call__(self, task: Task) -> Noted:
        asked, numbers, pull = self.asked, [np.zeros((0, _N_NUMBERS))], np.zeros(())
        for ready in asked.reading.blocks(task.part):
            problems = asked.problems(ready)
            numbers.append(_noted(ready.rows, problems, asked, ready))
            loads = ready.samples.weights[:, None] * asked.slopes(problems, ready.rows)
            pull = pull + ready.rows.rmatvec(loads)
        return Noted(task.part, np.concatenate(numbers), pull)

    def parted(self, found: Noted) -> tuple[Array, Noted]:
        return found.pull, found._replace(pull=np.zeros(()))

    def plus(self, one: Array, other: Array) -> Array:
        return one + other


@dataclass(frozen=True, eq=False)
class Taking:
    """The task of a pass that takes some rows: the codes of a task tell which."""

    asked: Asked

    @property
    def source(self) -> BlockSource:
        return self.asked.reading.source

    def __call__(self, task: Task) -> list[tuple[Any, Array]]:
        (chosen,) = task.codes
        found = []
        for ready in self.asked.reading.blocks(task.part):
            mine = np.flatnonzero(chosen[ready.block.start :][: ready.block.n_rows])
            if len(mine):
                slopes = self.asked.slopes(self.asked.problems(ready), ready.rows)
                found.append((ready.rows.take(mine).data, slopes[mine]))
        return found

    def parted(self, found: list[tuple[Any, Array]]) -> tuple[None, list[tuple[Any, Array]]]:
        """Nothing is added up."""
        return None, found

    def plus(self, one: None, other: None) -> None:
        return None


@dataclass(frozen=True, eq=False)
class Summing:
    """The task of a pass that adds up one number, vector or matrix.

    Attributes
    ----------
    reading : Reading
    of : callable
        The rows of a block, their shares, and its part and first row ↦ its share of the sum.
    """

    reading: Reading
    of: Callable[[RowDesign, Array, tuple[int, int]], Array]

    @property
    def source(self) -> BlockSource:
        return self.reading.source

    def __call__(self, task: Task) -> Array:
        total = np.zeros(())
        for ready in self.reading.blocks(task.part):
            shares = ready.samples.weights / self.reading.divisor
            total = total + self.of(ready.rows, shares, (ready.block.part, ready.block.start))
        return total

    def parted(self, found: Array) -> tuple[Array, None]:
        return found, None

    def plus(self, one: Array, other: Array) -> Array:
        return one + other


@dataclass(frozen=True, eq=False)
class SumsInPasses:
    """See `metric.WeightedSums`: a pass each."""

    reading: Reading
    engine: Engine
    n_features: int
    ridge: float | None

    @property
    def n_columns(self) -> int:
        return self.n_features + self.reading.intercept

    def _summed(self, of: Callable[[RowDesign, Array, tuple[int, int]], Array]) -> Array:
        tasks = [Task(part) for part in sorted(self.reading.seals)]
        return self.engine.carry_out(Summing(self.reading, of), tasks, lambda told: None)

    def gram(self) -> Array:
        return self._summed(lambda rows, shares, _: rows.gram(shares))

    def diagonal(self) -> Array:
        return self._summed(lambda rows, shares, _: rows.columns_sq(shares))

    def product(self, directions: Array) -> Array:
        return self._summed(lambda rows, shares, _: rows.gram_product(directions, shares))

    def noise(self, seed: int) -> Array:
        return self._summed(
            lambda rows, shares, place: noise_of(
                rows, shares, np.random.default_rng([seed, *place])
            )
        )


# --- all of them ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ExaminedBlocks(Samples):
    """Rows that are read in passes, as samples.

    Attributes
    ----------
    solution : Solution
        Certified on all rows.
    training : Training
    asked : Asked
    engine : Engine
    """

    solution: Solution
    training: Training
    asked: Asked
    engine: Engine

    @property
    def classes(self) -> NDArray | None:  # type: ignore[override]
        return self.solution.classes

    @property
    def reading(self) -> Reading:
        return self.solution.reading

    @cached_property
    def weighted(self) -> bool:
        """Whether some weight is not 1."""
        return self.count(lambda rows: rows.weights != 1.0) > 0

    @property
    def most_values(self) -> int:
        return min(_MOST_VALUES, self.reading.source.memory // _PER_VALUE)

    def parts(self) -> Iterator[NotedRows]:
        return (NotedRows(*piece) for piece in self._noted[0].pieces(_AT_ONCE))

    @property
    def n_rows(self) -> int:
        return len(self.solution.kept)

    @property
    def alpha(self) -> float:
        return self.asked.queries[0].alpha

    @property
    def divisor(self) -> float:
        return self.reading.divisor

    @property
    def certified(self) -> bool:
        return True

    @property
    def metric(self) -> LeverageMetric:
        return self.asked.metric

    @property
    def pull(self) -> Array:
        return self._noted[1]

    @cached_property
    def _noted(self) -> tuple[RowTable, Array]:
        """The numbers of every row, and Σ s_i ν_i a_i."""
        starts, memory = self.reading.starts, self.reading.source.memory
        table = RowTable(self.n_rows, _N_NUMBERS, budget.held(memory))

        def take(found: Noted) -> None:
            found.numbers[:, -1] = self.solution.kept.part(found.part)
            table.put(int(starts[found.part]), found.numbers)
            progress.report_within(
                "what is known of rows", int(starts[found.part + 1]), self.n_rows
            )

        tasks = [Task(part) for part in sorted(self.reading.seals)]
        return table, self.engine.carry_out(Noting(self.asked), tasks, take)

    def taken(self, kept: Indices) -> tuple[RowDesign, Array]:
        matrix = GrowingMatrix(len(kept), budget.held(self.reading.source.memory))
        slopes: list[Array] = []

        def take(found: list[tuple[Any, Array]]) -> None:
            for X, own in found:
                matrix.add(X)
                slopes.append(own)

        self.engine.carry_out(Taking(self.asked), _tasks(self.reading, kept), take)
        rows = rows_of(as_design(matrix.whole(), self.reading.intercept)).as_held()
        return rows, np.concatenate(slopes)


def _tasks(reading: Reading, kept: Indices) -> Tasks:
    """For every part that has kept rows which they are."""
    starts = reading.starts
    ends = np.searchsorted(kept, starts)

    def task(part: int) -> Task:
        chosen = np.zeros(starts[part + 1] - starts[part], dtype=np.uint8)
        chosen[kept[ends[part] : ends[part + 1]] - starts[part]] = 1
        return Task(part, [chosen])

    return Tasks([part for part in sorted(reading.seals) if ends[part] < ends[part + 1]], task)


def examine_blocks(source: BlockSource, training: Training, seed: int) -> ExaminedBlocks:
    """Solve the model, and find the norm that rows are measured in."""
    if source.scale is not None:
        raise ValueError(
            f"scale={source.scale!r} has no meaning for rows that are kept as they are: scale the "
            "columns before."
        )
    check_positive("alpha", training.alpha)
    model = block_model(training, [training.alpha], _TOLERANCE, seed)
    solution = solve_blocks(source, model)
    fits = [fits[0] for fits in solution.fits]
    complain("the model of all rows", fits, _TOLERANCE)
    reading, classes = solution.reading, solution.classes
    labels = [None] if classes is None else list(classes[1:] if len(classes) == 2 else classes)
    points = [np.append(fit.coef, fit.intercept) if reading.intercept else fit.coef for fit in fits]
    queries = [Query(model.loss, model.penalty, training.alpha, label, point)
               for label, point in zip(labels, points, strict=True)]  # fmt: skip
    engine, n_features = engine_for(source), len(fits[0].coef)
    ridge = None if model.penalty.is_constraint else training.alpha
    sums = SumsInPasses(reading, engine, n_features, ridge)
    asked = Asked(reading, tuple(queries), LeverageMetric.of(sums, seed))
    return ExaminedBlocks(solution, training, asked, engine)


def check_ranking(samples: ExaminedBlocks) -> None:
    """Refuse more rows than can be ranked: a ranking has numbers of every one."""
    memory, needed = samples.reading.source.memory, samples.n_rows * _PER_RANKED
    if needed > memory:
        raise MemoryError(
            f"memory is {in_words(memory)}, and a ranking of {samples.n_rows} rows takes "
            f"{in_words(needed)}: increase memory, or screen or compress the rows."
        )
