"""The first pass: what there is, whether it can be computed with, and a sample of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift.arithmetic.numerics import exact_sum
from safesift.design.block_source import Block, BlockSource
from safesift.design.factory import as_design
from safesift.design.pool import stacked
from safesift.design.rows import rows_of
from safesift.problem.inputs import as_intervals, check_labels
from safesift.workflows.scale.engine import Task
from safesift.workflows.scale.remembering import Remembered

Array = NDArray[np.float64]

# of a part this share of the rows is drawn, at least so many; and so many of every label
_SHARE, _LEAST, _OF_A_LABEL = 1 / 16, 2048, 256
# the sample's share of the budget, and the most rows of it
_BUDGET, _MOST = 1 / 10, 400_000
# labels of a block that are looked at for what they are
_LOOKED_AT = 20


class Moments(NamedTuple):
    """Weight, mean and squared distances from it, by columns; sums of two as Chan et al. have them.

    No difference of large numbers, so that a mean far from 0 costs no digits.
    """

    weight: float
    mean: Array
    squares: Array

    def plus(self, other: Moments) -> Moments:
        weight = self.weight + other.weight
        if weight == 0:
            return self
        step, share = other.mean - self.mean, other.weight / weight
        squares = self.squares + other.squares + step**2 * (self.weight * share)
        return Moments(weight, self.mean + share * step, squares)


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows drawn by a hash of their place, whoever reads them."""

    keys: NDArray[np.uint64]
    X: Any
    y: NDArray
    weights: Array

    def __len__(self) -> int:
        return len(self.keys)

    def plus(self, other: Sample, most: int, labelled: bool) -> Sample:
        both = Sample(
            np.concatenate([self.keys, other.keys]),
            stacked([self.X, other.X]),
            np.concatenate([self.y, other.y]),
            np.concatenate([self.weights, other.weights]),
        )
        return both.cut(most, labelled)

    def first(self) -> Sample:
        """One row of it."""
        return Sample(self.keys[:1], self.X[:1].copy(), self.y[:1].copy(), self.weights[:1].copy())

    def cut(self, most: int, labelled: bool) -> Sample:
        """The first rows in the order of their keys, and the first ones of every label."""
        if len(self) <= most:
            return self
        rows = _drawn_rows(self.keys, self.y, most, labelled)
        return Sample(self.keys[rows], self.X[rows], self.y[rows], self.weights[rows])


def _drawn_rows(
    keys: NDArray[np.uint64], y: NDArray, most: int, labelled: bool
) -> NDArray[np.intp]:
    """Which rows are drawn, as `Sample.cut` has them."""
    if len(keys) <= most:
        return np.arange(len(keys))
    chosen = keys <= np.partition(keys, most - 1)[most - 1]
    if labelled:
        for label in np.unique(y):
            mine = np.flatnonzero(y == label)
            few = min(_OF_A_LABEL, len(mine))
            chosen[mine[keys[mine] <= np.partition(keys[mine], few - 1)[few - 1]]] = True
    return np.flatnonzero(chosen)


@dataclass(frozen=True, eq=False)
class Surveyed:
    """What was found in some parts.

    Attributes
    ----------
    place : str
        Of the first part that has rows.
    n_features : int or None
    seals : dict of int to list of (int, bytes)
        For every part the lengths of its blocks, and their seals.
    n_rows : int
    weights : list of float
        The total weight of every block; their exact sum is W.
    least_weight : float
        The smallest that is not 0.
    labels : array
        That rows of positive weight have.
    label_weights : array
    counts : dict of (int, int) to dict
        How many rows of positive weight the labels of every block have: see `folds.Counts`.
    row_length : int
        The largest number of entries in a row.
    norms : float
        The sum of the row norms, with a one at the end of each, at most.
    moments : Moments or None
        Of the columns, where they are to be scaled.
    sample : Sample or None
    """

    place: str = ""
    n_features: int | None = None
    seals: dict[int, list[tuple[int, bytes]]] = field(default_factory=dict)
    n_rows: int = 0
    weights: list[float] = field(default_factory=list)
    least_weight: float = np.inf
    labels: NDArray | None = None
    label_weights: Array | None = None
    counts: dict[tuple[int, int], dict[Any, int]] = field(default_factory=dict)
    row_length: int = 0
    norms: float = 0.0
    moments: Moments | None = None
    sample: Sample | None = None

    @property
    def weight(self) -> float:
        return exact_sum(self.weights)

    def thinned(self) -> Surveyed:
        """With one row in place of the sample: what rows are like."""
        return replace(self, sample=None if self.sample is None else self.sample.first())

    def length(self, part: int) -> int:
        """How many rows a part has."""
        return sum(n for n, _ in self.seals[part])


@dataclass(frozen=True, eq=False)
class Survey:
    """The task of the first pass.

    Parameters
    ----------
    source : BlockSource
    task : str
        Of the loss: what targets are.
    remembered : Remembered or None
        What keeps blocks that are decoded, for later passes.
    """

    source: BlockSource
    task: str
    remembered: Remembered | None = None

    @property
    def labelled(self) -> bool:
        """Whether targets are labels."""
        return self.task == "classification"

    def __call__(self, task: Task) -> Surveyed:
        found = Surveyed(seals={task.part: []})
        for block in (self.remembered or self.source).blocks(task.part, checked=True):
            found = self.plus(found, self._of(block))
        return found

    def parted(self, found: Surveyed) -> tuple[Surveyed, int]:
        """All of it is added up; how many rows a part has is told."""
        return found, found.n_rows

    def _of(self, block: Block) -> Surveyed:
        rows = rows_of(as_design(block.X, intercept=True)).as_held()
        carrying = block.weights > 0
        labels = label_weights = None
        counts: dict[Any, int] = {None: int(np.count_nonzero(carrying))}
        if self.labelled:
            labels, label_weights, counts = self._labels(block, carrying)
        else:
            self._check_numbers(block)
        weights = block.weights
        return Surveyed(
            place=self.source.place(block.part),
            n_features=rows.n_features,
            seals={block.part: [(block.n_rows, block.seal())]},
            n_rows=block.n_rows,
            weights=[float(weights.sum())],
            least_weight=float(weights[carrying].min(initial=np.inf)),
            labels=labels,
            label_weights=label_weights,
            counts={(block.part, block.start): counts},
            row_length=rows.row_length,
            norms=block.n_rows * (block.largest * math.sqrt(rows.row_length) + 1.0),
            moments=None if self.source.scale is None else _moments(block),
            sample=self._drawn(block),
        )

    def _labels(
        self, block: Block, carrying: NDArray[np.bool_]
    ) -> tuple[NDArray, Array, dict[Any, int]]:
        """The labels, what they weigh, and how many rows they have in the order they come in."""
        y, place = block.y, self.source.place(block.part)
        if y.ndim != 1:
            raise ValueError(f"{place}: y must have one label per row, got shape {y.shape}.")
        if y.dtype.kind == "f" and (fractional := (y != np.rint(y)) | np.isinf(y)).any():
            row = int(np.argmax(fractional))
            raise ValueError(
                f"{place}: y is continuous (such as {y[row]:.6g} in row {block.start + row}), and "
                "a classification loss needs labels: use a regression loss, or whole numbers or "
                "strings for labels."
            )
        try:
            if y.dtype.kind not in "biufSU":
                check_labels(y[:_LOOKED_AT])
            labels, firsts, counts = np.unique(y[carrying], return_index=True, return_counts=True)
        except TypeError:
            raise ValueError(
                f"{place}: y mixes labels of different types: make all of them strings, or all of "
                "them whole numbers."
            ) from None
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
        # pairwise sums, as W itself is one
        weights = [float(block.weights[carrying & (y == label)].sum()) for label in labels]
        order, names = np.argsort(firsts), labels.tolist()
        return labels, np.array(weights), {names[k]: int(counts[k]) for k in order}

    def _check_numbers(self, block: Block) -> None:
        """Refuse targets that are no numbers, or no intervals."""
        y = block.y
        try:
            if y.dtype.kind not in "fiub":
                raise ValueError(f"y must hold numbers for such a loss, got {y.dtype}.")
            if self.task == "interval":
                as_intervals(y)
            elif y.ndim != 1 or not np.isfinite(y).all():
                raise ValueError("y must be one finite number per row.")
        except ValueError as error:
            place = self.source.place(block.part)
            raise ValueError(f"{place}, from row {block.start} on: {error}") from None

    def _drawn(self, block: Block) -> Sample:
        rows = np.flatnonzero(block.weights > 0)
        keys = _hash(block.part, block.start + rows)
        most = min(max(int(_SHARE * block.n_rows), _LEAST), self.most(block))
        drawn = _drawn_rows(keys, block.y[rows], most, self.labelled)
        rows = rows[drawn]
        return Sample(keys[drawn], block.X[rows], block.y[rows], block.weights[rows])

    def most(self, block: Block) -> int:
        """How many rows of the sample the budget allows."""
        X = block.X
        n_bytes = X.data.nbytes * 2 if sparse.issparse(X) else X.nbytes
        per_row = n_bytes / max(block.n_rows, 1) + 128
        return int(min(_BUDGET * self.source.memory / per_row, _MOST)) + 1

    def plus(self, one: Surveyed, other: Surveyed) -> Surveyed:
        """What was found in both."""
        if one.n_features is None or other.n_features is None:
            known = one if other.n_features is None else other
            return replace(known, seals=_joined(one.seals, other.seals))
        if one.n_features != other.n_features:
            raise ValueError(
                f"{other.place} has {other.n_features} columns, but {one.place} has "
                f"{one.n_features}: give all blocks the same columns."
            )
        labels, label_weights = _joined_labels(one, other)
        assert one.sample is not None and other.sample is not None
        most = int(_BUDGET * self.source.memory / (8 * one.n_features + 128)) + 1
        if sparse.issparse(one.sample.X):
            most = _MOST
        moments = one.moments
        if moments is not None and other.moments is not None:
            moments = moments.plus(other.moments)
        return Surveyed(
            one.place, one.n_features, _joined(one.seals, other.seals), one.n_rows + other.n_rows,
            one.weights + other.weights, min(one.least_weight, other.least_weight), labels,
            label_weights, one.counts | other.counts, max(one.row_length, other.row_length),
            one.norms + other.norms, moments,
            one.sample.plus(other.sample, min(most, _MOST), self.labelled),
        )  # fmt: skip


def _joined(one: dict, other: dict) -> dict:
    joined = {part: list(seals) for part, seals in one.items()}
    for part, seals in other.items():
        joined[part] = joined.get(part, []) + seals
    return joined


def _joined_labels(one: Surveyed, other: Surveyed) -> tuple[NDArray | None, Array | None]:
    if one.labels is None or other.labels is None:
        return None, None
    assert one.label_weights is not None and other.label_weights is not None
    if len(one.labels) and len(other.labels) and _kind(one.labels) != _kind(other.labels):
        raise ValueError(
            f"{other.place} has labels such as {other.labels.tolist()[0]!r}, but {one.place} such "
            f"as {one.labels.tolist()[0]!r}: make all of them strings, or all of them numbers."
        )
    labels = np.concatenate([one.labels, other.labels])
    found, codes = np.unique(labels, return_inverse=True)
    weights = np.concatenate([one.label_weights, other.label_weights])
    return found, np.bincount(codes, weights, minlength=len(found)).astype(np.float64)


def _kind(labels: NDArray) -> bool:
    """Whether labels are numbers."""
    return labels.dtype.kind in "fiub"


def _moments(block: Block) -> Moments:
    rows, s = rows_of(as_design(block.X)).as_held(), block.weights
    weight = float(s.sum())
    if weight == 0:
        return Moments(0.0, np.zeros(rows.n_features), np.zeros(rows.n_features))
    mean = rows.rmatvec(s) / weight
    if sparse.issparse(block.X):
        return Moments(weight, mean, np.maximum(rows.columns_sq(s) - weight * mean**2, 0.0))
    centred = rows_of(as_design(block.X.astype(np.float64) - mean)).as_held()
    return Moments(weight, mean, centred.columns_sq(s))


def _hash(part: int, rows: NDArray) -> NDArray[np.uint64]:
    """SplitMix64 of the place of a row: the same for whoever reads it."""
    with np.errstate(over="ignore"):
        z = rows.astype(np.uint64) + (np.uint64(part) << np.uint64(36)) + np.uint64(1)
        z *= np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))
