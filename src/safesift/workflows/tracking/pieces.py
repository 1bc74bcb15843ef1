"""What targets mean: on which piece of its loss a row is, and which classes there are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, target_size
from safesift.losses import Loss
from safesift.problem.running import Terms
from safesift.workflows.tracking.data import Change, Data

Array = NDArray[np.float64]

_LABELS = np.array([-1.0, 1.0])
# the fields of a piece that are asked for together
_FIELDS = {"ends": ("lower", "upper"), "terms": ("quadratic", "linear", "constant")}


@dataclass(frozen=True, eq=False)
class PieceTable:
    """From the labels or numbers that users see to pieces of the loss.

    Parameters
    ----------
    loss : Loss
        Smooth, and made of linear and quadratic pieces.
    label : optional
        The class that is 1, against the rest; None for regression.
    """

    loss: Loss
    label: Any = None

    @property
    def classification(self) -> bool:
        return self.loss.task == "classification"

    def locate(self, y: NDArray, pred: Array) -> tuple[NDArray[np.intp], Array]:
        """The piece that each prediction is on, and its distance from the ends of the piece."""
        lower, upper = self._table("ends", y).take(self._kinds(y), axis=2)
        room = np.minimum(pred - lower, upper - pred)
        return room.argmax(axis=0), room.max(axis=0)

    def terms(self, y: NDArray, which: NDArray[np.integer], weights: Array) -> Terms:
        """What rows contribute on the given pieces."""
        return Terms(*(weights * self._table("terms", y)[:, which, self._kinds(y)]))

    def sizes(self, y: NDArray) -> Array | float:
        """The sizes of the numbers that predictions are compared with."""
        return 1.0 if self.classification else target_size(self.loss, y)

    def numbers(self, y: NDArray) -> Array:
        """What the loss takes: numbers as they are, labels as -1 and 1."""
        return _LABELS[self._kinds(y)] if self.classification else y

    def _table(self, which: str, y: NDArray) -> Array:
        """Fields of the pieces, of shape (n_fields, n_pieces, n_kinds of rows)."""
        if self.classification:
            return self._of_labels[which]
        return _stacked(self.loss, _FIELDS[which], y)

    def _kinds(self, y: NDArray) -> NDArray[np.intp]:
        """Labels are of two kinds, whatever the number of rows; every number is its own."""
        return (y == self.label).astype(np.intp) if self.classification else np.arange(len(y))

    @cached_property
    def _of_labels(self) -> dict[str, Array]:
        return {which: _stacked(self.loss, names, _LABELS) for which, names in _FIELDS.items()}


def made_of_pieces(loss: Loss) -> bool:
    """Whether the loss is smooth, and linear or quadratic everywhere."""
    if math.isinf(loss.smoothness):
        return False
    y = _LABELS[:1] if loss.task == "classification" else np.zeros(1)
    pieces = sorted((float(piece.lower[0]), float(piece.upper[0])) for piece in loss.pieces(y))
    if not pieces or pieces[0][0] != -math.inf or pieces[-1][1] != math.inf:
        return False
    # an end that is a rounded sum is rounded into its piece, on either side
    return all(
        after[0] - before[1] <= 4 * EPS * abs(after[0]) for before, after in pairwise(pieces)
    )


def _stacked(loss: Loss, names: tuple[str, ...], y: Array) -> Array:
    pieces = loss.pieces(y)
    fields = [
        [np.broadcast_to(getattr(piece, name), y.shape) for piece in pieces] for name in names
    ]
    return np.array(fields)


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes, and how many samples of positive weight each of them has."""

    labels: NDArray
    counts: NDArray[np.intp]

    @classmethod
    def of(cls, y: NDArray, sample_weight: NDArray) -> Classes:
        return cls(*np.unique(y[sample_weight > 0], return_counts=True))

    @property
    def positive(self) -> NDArray:
        """The class that is 1 in each of the problems: of two, the second."""
        return self.labels[1:] if len(self.labels) == 2 else self.labels

    def edited(self, data: Data, change: Change) -> Classes | None:
        """After an edit of the data; None where a class would appear or disappear."""
        out = change.leaving
        y = np.concatenate([data.y[out], change.labels, change.y])
        relabelled = data.sample_weight[change.relabelled]
        weights = np.concatenate([data.sample_weight[out], relabelled, change.sample_weight])
        signs = (weights > 0).astype(np.float64)
        signs[: len(out)] *= -1.0
        codes = np.minimum(np.searchsorted(self.labels, y), len(self.labels) - 1)
        # a sample without weight may have any label
        if not ((self.labels[codes] == y) | (signs == 0)).all():
            return None
        counts = self.counts + np.bincount(codes, signs, len(self.labels)).astype(np.intp)
        return Classes(self.labels, counts) if counts.min() > 0 else None
