"""How good models are on the rows that they were fitted without: one more pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.design.block_source import Block, BlockSource
from safesift.design.factory import as_design
from safesift.design.rows import rows_of
from safesift.workflows.scale.engine import Task, engine_for
from safesift.workflows.scale.reading import Reading
from safesift.workflows.scale.solve import BlockFit, Solution

Array = NDArray[np.float64]


class Seen(NamedTuple):
    """Of the rows of every fold, by the models without it.

    Attributes
    ----------
    weight : array of shape (n_folds,)
    points : array of shape (n_folds, n_levels)
        The weight of the rows whose class was told rightly, or Σ s_i (y_i − prediction)².
    mean, squares : arrays of shape (n_folds,)
        Of the targets, and their squared distances from it: see `Moments`.
    """

    weight: Array
    points: Array
    mean: Array
    squares: Array

    def plus(self, other: Seen) -> Seen:
        weight = self.weight + other.weight
        share = np.divide(other.weight, weight, out=np.zeros_like(weight), where=weight > 0)
        step = other.mean - self.mean
        return Seen(
            weight,
            self.points + other.points,
            self.mean + share * step,
            self.squares + other.squares + step**2 * (self.weight * share),
        )


@dataclass(frozen=True, eq=False)
class Validation:
    """The task of that pass.

    Attributes
    ----------
    reading : Reading
    models : array of shape (n_folds, n_features + 1, n_classes, n_levels)
        Coefficients and intercepts.
    """

    reading: Reading
    models: Array

    @property
    def source(self) -> BlockSource:
        return self.reading.source

    def parted(self, found: Seen) -> tuple[Seen, None]:
        """All of it is added up."""
        return found, None

    def plus(self, one: Seen, other: Seen) -> Seen:
        return one.plus(other)

    def __call__(self, task: Task) -> Seen:
        n_folds, n_levels = self.models.shape[0], self.models.shape[-1]
        none = np.zeros(n_folds)
        seen = Seen(none, np.zeros((n_folds, n_levels)), none, none)
        for ready in self.reading.blocks(task.part):
            assert ready.samples.folds is not None
            seen = seen.plus(self._of(ready.block, ready.samples.folds))
        return seen

    def _of(self, block: Block, folds: NDArray[np.intp]) -> Seen:
        rows = rows_of(as_design(block.X, intercept=True)).as_held()
        weight, points, mean, squares = [], [], [], []
        for fold, model in enumerate(self.models):
            mine = np.flatnonzero(folds == fold)
            s, y = block.weights[mine], block.y[mine]
            weight.append(float(s.sum()))
            pred = np.zeros((0, *model.shape[1:]))
            if len(mine):
                pred = rows.take(mine).matvec(model.reshape(len(model), -1))
                pred = pred.reshape(len(mine), *model.shape[1:])
            if self.reading.classes is not None:
                points.append(s @ self._right(pred, y))
                mean.append(0.0)
                squares.append(0.0)
            else:
                points.append(s @ (y[:, None] - pred[:, 0]) ** 2)
                mean.append(float(np.average(y, weights=s)) if len(mine) else 0.0)
                squares.append(float(s @ (y - mean[-1]) ** 2))
        return Seen(*map(np.array, (weight, points, mean, squares)))

    def _right(self, pred: Array, y: NDArray) -> NDArray[np.bool_]:
        """For every row and level whether the class is told rightly."""
        assert self.reading.classes is not None
        told = (pred[:, 0] > 0).astype(np.intp) if pred.shape[1] == 1 else pred.argmax(axis=1)
        return told == np.searchsorted(self.reading.classes, y)[:, None]


def fold_scores(solution: Solution) -> tuple[Array, Array]:
    """Accuracy or R² of every fold and level, (n_folds, n_levels), and the weights of the folds."""
    reading = solution.reading
    models = np.stack([_models(of_fold) for of_fold in solution.without])
    tasks = [Task(part) for part in sorted(reading.seals)]
    work = Validation(reading, models)
    total: Seen = engine_for(reading.source).carry_out(work, tasks, lambda told: None)
    if reading.classes is not None:
        return total.points / total.weight[:, None], total.weight
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = 1.0 - total.points / total.squares[:, None]
    # of a constant y scikit-learn's convention
    constant = total.squares[:, None] == 0
    return np.where(constant, (total.points == 0).astype(float), scores), total.weight


def _models(fits: Sequence[Sequence[BlockFit]]) -> Array:
    """Coefficients and intercepts, (n_features + 1, n_classes, n_levels)."""
    columns = [[np.append(fit.coef, fit.intercept) for fit in levels] for levels in fits]
    return np.moveaxis(np.array(columns), 2, 0)
