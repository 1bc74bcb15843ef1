"""Blocks as the passes after the first one see them: unchanged, scaled, with weights of classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift.design.block_source import Block, BlockSource
from safesift.design.factory import as_design
from safesift.design.rows import RowDesign, rows_of
from safesift.problem.risk import ChangedDataError
from safesift.workflows.scale.folds import Folds
from safesift.workflows.scale.remembering import Remembered
from safesift.workflows.scale.survey import Moments

Array = NDArray[np.float64]


class ChangedBlockError(ChangedDataError):
    """A block is not what it was in an earlier pass."""

    def __init__(self, place: str, first: int, n_rows: int) -> None:
        self._told = place, first, n_rows
        RuntimeError.__init__(
            self,
            f"{place} changed between two passes over it (somewhere in the {n_rows} rows from row "
            f"{first} of it on), and what was computed so far is of no use: begin again with data "
            "that stay as they are.",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """It may be raised by somebody else."""
        return type(self), self._told


def unchanged(
    blocks: Iterator[Block], known: Sequence[tuple[int, bytes]], place: str
) -> Iterator[Block]:
    """The same blocks, or an error that names the first one that is not what is known of it."""
    n_seen, first = 0, 0
    for block in blocks:
        same = n_seen < len(known) and known[n_seen] == (block.n_rows, block.seal())
        if not same:
            raise ChangedBlockError(place, block.start, block.n_rows)
        yield block
        n_seen, first = n_seen + 1, block.start + block.n_rows
    if n_seen < len(known):
        raise ChangedBlockError(place, first, known[n_seen][0])


@dataclass(frozen=True, eq=False)
class Scaling:
    """Columns in units of their deviation, from their mean; sparse ones are not centred.

    With an intercept that is the same model: the intercept is not penalised, and takes the mean up.
    """

    mean: Array
    deviation: Array
    centred: bool

    @classmethod
    def of(cls, moments: Moments, centred: bool) -> Scaling:
        """Columns that do not vary are left in their own units."""
        deviation = np.sqrt(moments.squares / moments.weight)
        varies = deviation > 1e-14 * np.abs(moments.mean)
        deviation = np.where(varies & (deviation > 0), deviation, 1.0)
        return cls(moments.mean if centred else np.zeros_like(deviation), deviation, centred)

    def applied(self, X: Any) -> Any:
        """The scaled rows, in float64: centred explicitly, since Σaaᵀ − Wμμᵀ loses (μ/σ)²ε."""
        if not sparse.issparse(X):
            scaled = X.astype(np.float64)
            scaled -= self.mean
            scaled /= self.deviation
            return scaled
        data = X.data / self.deviation[X.indices]
        return sparse.csr_array((data, X.indices, X.indptr), shape=X.shape)

    def in_units(self, coef: Array, intercept: float) -> tuple[Array, float]:
        """Coefficients for rows that are not scaled."""
        coef = coef / self.deviation
        return coef, float(intercept - coef @ self.mean)


class Weighted(NamedTuple):
    """Targets and weights of some rows, and the fold in which each of them is left out, if any."""

    y: NDArray
    weights: Array
    folds: NDArray[np.intp] | None

    def without(self, fold: int | None) -> Array:
        """The weights, 0 for rows of a fold."""
        if fold is None or self.folds is None:
            return self.weights
        return np.where(self.folds == fold, 0.0, self.weights)


class Ready(NamedTuple):
    """A block to compute with: its rows have the column of ones, if there is an intercept."""

    block: Block
    rows: RowDesign
    samples: Weighted


@dataclass(frozen=True, eq=False)
class Reading:
    """How the blocks of a source are read after the first pass.

    Attributes
    ----------
    source : BlockSource
    seals : dict
        As `Surveyed` has them.
    intercept : bool
    divisor : float
        W.
    classes, factors : arrays or None
        Labels, and what the weights of their rows are multiplied by.
    scaling : Scaling or None
    cv_folds : Folds or None
        Of a cross-validation.
    remembered : Remembered or None
        Where blocks come from that need not be decoded again.
    """

    source: BlockSource
    seals: dict[int, list[tuple[int, bytes]]]
    intercept: bool
    divisor: float
    classes: NDArray | None = None
    factors: Array | None = None
    scaling: Scaling | None = None
    cv_folds: Folds | None = None
    remembered: Remembered | None = None

    @property
    def starts(self) -> NDArray[np.intp]:
        """The number of the first row of every part, and after the last one that of all rows."""
        lengths = [sum(n for n, _ in self.seals[part]) for part in sorted(self.seals)]
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)

    def blocks(self, part: int) -> Iterator[Ready]:
        """The blocks of a part.

        Raises
        ------
        ChangedBlockError
            Where one is not what it was in the first pass.
        """
        source = self.remembered or self.source
        for block in self.unchanged(part, source.blocks(part)):
            yield self.ready(block)

    def unchanged(self, part: int, blocks: Iterator[Block]) -> Iterator[Block]:
        """The same blocks, or an error that names the first one that has changed."""
        return unchanged(blocks, self.seals[part], self.source.place(part))

    def ready(self, block: Block) -> Ready:
        """A block to compute with."""
        X = block.X if self.scaling is None else self.scaling.applied(block.X)
        # it was counted as read by whoever read it
        rows = rows_of(as_design(X, self.intercept)).as_held()
        folds = None if self.cv_folds is None else self.cv_folds.of(block)
        return Ready(block, rows, Weighted(block.y, self.weighted(block), folds))

    def weighted(self, block: Block) -> Array:
        """The weights of the rows, those of their classes included."""
        return self.weights_of(block.y, block.weights)

    def weights_of(self, y: NDArray, weights: Array) -> Array:
        """The same for rows that are held."""
        if self.factors is None or self.classes is None:
            return weights
        places = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
        return weights * self.factors[places]
