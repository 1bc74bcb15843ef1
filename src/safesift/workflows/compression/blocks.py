"""What the methods know of rows that come in blocks: numbers of every row, each from a pass.

The model is solved as rows in blocks are (`workflows.scale`). Predictions, leverage and weights are
held for all rows, some ten numbers of each, and no rows but the kept ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from safesift.design.block_source import BlockSource
from safesift.design.pool import in_words
from safesift.design.rows import RowDesign
from safesift.design.source_rows import SourceRows
from safesift.parameters import check_positive
from safesift.problem.training import Training
from safesift.regions import Auto
from safesift.workflows.compression.examined import Examined
from safesift.workflows.scale.engine import Threads
from safesift.workflows.scale.passes import Query, problems_on
from safesift.workflows.scale.reading import Reading, Weighted
from safesift.workflows.scale.results import block_model, complain
from safesift.workflows.scale.solve import Solution, solve_blocks

Array = NDArray[np.float64]

# the relative gap of the model, as for rows in memory
_TOLERANCE = 1e-7
# what is held of a row: for itself, and for every problem
_PER_ROW, _PER_PROBLEM = 120, 64


@dataclass(frozen=True, eq=False)
class ExaminedBlocks(Examined):
    """The same as `Examined`, of rows that are read in passes.

    Attributes
    ----------
    solution : Solution
        Certified on all rows.
    weighted : bool
        Whether some weight is not 1.
    """

    solution: Solution
    weighted: bool

    @property
    def certified(self) -> bool:
        return True

    @cached_property
    def predictions(self) -> Array:
        fits = [fits[0] for fits in self.solution.fits]
        points = [problem.join(fit.coef, fit.intercept)
                  for problem, fit in zip(self.problems, fits, strict=True)]  # fmt: skip
        return self.design.matvec(np.stack(points, axis=1))

    @cached_property
    def slopes(self) -> Array:
        pairs = zip(self.problems, self.predictions.T, strict=True)
        return np.stack([one.loss.slope(pred, one.y) for one, pred in pairs], axis=1)

    @cached_property
    def active(self) -> NDArray[np.bool_]:
        return np.asarray(self.solution.kept) & self.counted

    @cached_property
    def test_values(self) -> Array:
        """How far predictions are out of the flat piece: negative exactly where that is proved."""
        nearly = -np.finfo(float).tiny
        return np.where(
            self.active, np.maximum(self.margins, 0.0), np.minimum(self.margins, nearly)
        )


def examine_blocks(source: BlockSource, training: Training, seed: int) -> ExaminedBlocks:
    """Solve the model, and make the problems of all rows; nothing else is computed yet."""
    if source.scale is not None:
        raise ValueError(
            f"scale={source.scale!r} has no meaning for rows that are kept as they are: scale the "
            "columns before."
        )
    check_positive("alpha", training.alpha)
    model = block_model(training, [training.alpha], _TOLERANCE, seed)
    solution = solve_blocks(source, model)
    complain("the model of all rows", [fits[0] for fits in solution.fits], _TOLERANCE)
    reading, n_rows = solution.reading, len(solution.kept)
    needed = n_rows * (_PER_ROW + _PER_PROBLEM * len(solution.fits))
    if needed > source.memory:
        raise MemoryError(
            f"memory is {in_words(source.memory)}, and what is computed of {n_rows} rows takes "
            f"{in_words(needed)}: increase memory, or screen the rows first."
        )
    rows, samples = _rows(solution), _samples(reading)
    classes = reading.classes
    labels = [None] if classes is None else list(classes[1:] if len(classes) == 2 else classes)
    penalty, nothing = model.penalty, np.zeros(0)
    queries = [Query(model.loss, penalty, training.alpha, label, nothing) for label in labels]
    problems = problems_on(queries, rows, samples, reading.divisor)
    return ExaminedBlocks(
        tuple(problems), None if classes is None else samples.y, classes, training, Auto(), seed,
        solution, bool((samples.weights != 1.0).any()),
    )  # fmt: skip


def _rows(solution: Solution) -> SourceRows:
    """All rows as a matrix that is read in passes."""
    reading, surveyed = solution.reading, solution.surveyed
    assert surveyed.n_features is not None

    def read(part: int) -> Iterator[RowDesign]:
        return (ready.rows for ready in reading.blocks(part))

    lengths = np.diff(reading.starts).tolist()
    return SourceRows(read, lengths, surveyed.n_features, surveyed.row_length, reading.intercept)


def _samples(reading: Reading) -> Weighted:
    """Targets and weights of all rows."""

    def of(part: int) -> list[Weighted]:
        return [ready.samples for ready in reading.blocks(part)]

    found = [one for some in Threads().map(of, sorted(reading.seals)) for one in some]
    y, weights = (np.concatenate([getattr(one, name) for one in found])
                  for name in ("y", "weights"))  # fmt: skip
    return Weighted(y, weights, None)
