"""On which piece of its loss a row is, and how far it is from leaving it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.losses import Loss
from safesift.numerics import target_size
from safesift.tracking.sums import Terms

Array = NDArray[np.float64]

_LABELS = np.array([-1.0, 1.0])


class Pieces(NamedTuple):
    """The pieces of the losses of some rows, each field of shape (n_pieces, n_rows)."""

    lower: Array
    upper: Array
    quadratic: Array
    linear: Array
    constant: Array

    def locate(self, pred: Array) -> tuple[NDArray[np.intp], Array]:
        """The piece that each prediction is on, and its distance from the ends of the piece."""
        room = np.minimum(pred - self.lower, self.upper - pred)
        return room.argmax(axis=0), room.max(axis=0)

    def terms(self, which: NDArray[np.intp], weights: Array) -> Terms:
        """What rows contribute on the given pieces."""
        rows = np.arange(len(which))
        return Terms(
            weights * self.quadratic[which, rows],
            weights * self.linear[which, rows],
            weights * self.constant[which, rows],
        )


@dataclass(frozen=True, eq=False)
class Targets:
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

    @cached_property
    def _of_labels(self) -> Array:
        return _stacked(self.loss, _LABELS)

    def pieces(self, y: NDArray) -> Pieces:
        """Of rows with these targets."""
        if self.classification:
            return Pieces(*self._of_labels[:, :, (y == self.label).astype(np.intp)])
        return Pieces(*_stacked(self.loss, y))

    def sizes(self, y: NDArray) -> Array | float:
        """The sizes of the numbers that predictions are compared with."""
        return 1.0 if self.classification else target_size(self.loss, y)


def made_of_pieces(loss: Loss) -> bool:
    """Whether the loss is smooth, and linear or quadratic everywhere."""
    if math.isinf(loss.smoothness):
        return False
    y = _LABELS[:1] if loss.task == "classification" else np.zeros(1)
    pieces = sorted((float(piece.lower[0]), float(piece.upper[0])) for piece in loss.pieces(y))
    if not pieces or pieces[0][0] != -math.inf or pieces[-1][1] != math.inf:
        return False
    return all(
        before[1] == after[0] for before, after in zip(pieces[:-1], pieces[1:], strict=True)
    )


def _stacked(loss: Loss, y: Array) -> Array:
    """The fields of `Pieces`, in one array."""
    return np.array(
        [
            [np.broadcast_to(getattr(piece, name), y.shape) for piece in loss.pieces(y)]
            for name in Pieces._fields
        ]
    )
