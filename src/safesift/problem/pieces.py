"""The pieces of every sample's loss, made when they are read: nothing of them is stored.

They are five numbers for each sample and piece, which follow from the loss and one target. Loops
over the samples read them a block at a time, by which they never leave the cache. Where there are
two targets only, as of a classification, a table of two columns says them all, and where the loss
is one of the residual they are the same pieces, shifted by the target.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import row_blocks
from safesift.arithmetic.printing import Brief
from safesift.losses.base import Loss, Piece, ResidualLoss

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Numbers = NDArray[np.int8]

# so many pieces can be numbered, with a number to spare
_MOST = 126


@dataclass(frozen=True, eq=False, repr=False)
class SamplePieces(Brief):
    """The pieces of the loss of every sample; as many for each.

    To iterate over them, or to ask for `of` a slice of all samples, makes them for all.

    Parameters
    ----------
    loss : Loss
    y : array of shape (n_samples,) or (n_samples, 2)
    """

    loss: Loss
    y: Array

    @classmethod
    def made(cls, loss: Loss, y: Array) -> SamplePieces:
        """Those of a loss, in the form that is read fastest."""
        # a class of its own pieces, of whatever kind, need not shift them by the target
        shifts = type(loss).pieces is ResidualLoss.pieces
        alike = (shifts or loss.task == "classification") and loss.n_parameters is None
        return (TablePieces if alike and isinstance(y, np.ndarray) else cls)(loss, y)

    def __len__(self) -> int:
        return self._number

    def __iter__(self) -> Iterator[Piece]:
        return iter(self.of(slice(None)))

    @cached_property
    def _number(self) -> int:
        return len(self.of(slice(0, 1)))

    def of(self, rows: slice) -> list[Piece]:
        """The pieces of some of the samples, whose fields are arrays of as many numbers.

        The first ones, where there are more than can be numbered: on others nothing is decided.
        """
        y = self.y[rows]
        pieces = self.loss.take(rows).pieces(y)[:_MOST]
        if not isinstance(y, np.ndarray):
            return pieces
        return [
            Piece(*(one_each(field, len(y)) for field in vars(piece).values())) for piece in pieces
        ]

    def take(self, rows: slice) -> SamplePieces:
        """The same of fewer samples."""
        return type(self)(self.loss.take(rows), self.y[rows])

    def mark(self, lower: Array, upper: Array, rows: slice, which: Numbers, flat: Mask) -> None:
        """Number samples whose interval is strictly inside of a piece, from 1; the first of them.

        Samples that have a number keep it. `flat` says of those marked whether their piece is.

        Parameters
        ----------
        lower, upper : arrays
            The intervals of some samples.
        rows : slice
            Which these are.
        which, flat : arrays of as many numbers
            Written to; `which` is negative where there is no number yet.
        """
        for number, piece in enumerate(self.of(rows), start=1):
            _mark(lower, upper, piece, number, which, flat)

    def room(self, pred: Array, rows: slice) -> Array:
        """How far the predictions of some samples are from the ends of their pieces.

        0 where they are strictly inside of none.
        """
        room = np.zeros_like(pred)
        for piece in self.of(rows):
            np.maximum(room, np.minimum(pred - piece.lower, piece.upper - pred), out=room)
        return room

    def distance(self, pred: Array, rows: slice) -> Array:
        """How far the predictions of some samples are from the nearest end of any piece."""
        distance = np.full_like(pred, np.inf)
        for piece in self.of(rows):
            for end in (piece.lower, piece.upper):
                np.fmin(distance, np.abs(pred - end), out=distance)
        return distance

    def field(self, name: str, which: Numbers, other: float = 0.0) -> Array:
        """One of the numbers of the piece that every sample is said to be on, by `mark`.

        `other` where that is 0, and 0 where it is negative.
        """
        found = np.zeros_like(which, dtype=np.float64)
        found[which == 0] = other
        for rows in row_blocks(len(which)):
            for number, piece in enumerate(self.of(rows), start=1):
                np.copyto(found[rows], getattr(piece, name), where=which[rows] == number)
        return found


class TablePieces(SamplePieces):
    """The same where the pieces of one sample tell those of all others."""

    @property
    def _labels(self) -> bool:
        return self.loss.task == "classification"

    @cached_property
    def _table(self) -> dict[str, Array]:
        """The fields of every piece, a column for negative labels and one for positive ones.

        Or twice those of the target 0, to which others are added. They are asked for once more than
        that, so that parameters of two or three samples are not taken for those of all.
        """
        y = np.array([-1.0, 1.0, 1.0] if self._labels else [0.0, 0.0, 0.0])
        pieces = [
            [one_each(field, len(y)) for field in vars(piece).values()]
            for piece in self.loss.pieces(y)[:_MOST]
        ]
        fields = np.array(pieces).reshape(-1, len(Piece.__dataclass_fields__), len(y))
        same = fields[..., 1:] if self._labels else fields
        if not (same == same[..., :1]).all():
            raise ValueError(
                f"{self.loss!r} has parameters of single samples, but n_parameters is None: let it "
                "say for how many samples there are parameters, and let `take` select them."
            )
        return {name: fields[:, k, :2].copy() for k, name in enumerate(Piece.__dataclass_fields__)}

    @cached_property
    def _flat(self) -> NDArray[np.bool_]:
        return (self._table["quadratic"] == 0) & (self._table["linear"] == 0)

    @cached_property
    def _number(self) -> int:
        return len(self._table["lower"])

    def mark(self, lower: Array, upper: Array, rows: slice, which: Numbers, flat: Mask) -> None:
        from safesift.arithmetic.compiled import verdicts

        ends = self._table["lower"], self._table["upper"]
        verdicts.mark_by_table(
            lower, upper, self.y[rows], self._labels, *ends, self._flat, which, flat
        )

    def room(self, pred: Array, rows: slice) -> Array:
        from safesift.arithmetic.compiled import verdicts

        room, ends = np.zeros_like(pred), (self._table["lower"], self._table["upper"])
        verdicts.room_by_table(pred, self.y[rows], self._labels, *ends, room)
        return room

    def distance(self, pred: Array, rows: slice) -> Array:
        from safesift.arithmetic.compiled import verdicts

        distance = np.full_like(pred, np.inf)
        ends = np.concatenate([self._table["lower"], self._table["upper"]])
        verdicts.distance_by_table(pred, self.y[rows], self._labels, ends, distance)
        return distance

    def field(self, name: str, which: Numbers, other: float = 0.0) -> Array:
        if not self._labels:
            return super().field(name, which, other)
        # numbers -1, 0, 1, … find their row from the end, or from the beginning
        table = np.vstack([[[other, other]], self._table[name], [[0.0, 0.0]]])
        return table[np.maximum(which, np.int8(-1)), (self.y > 0).astype(np.int8)]


def _mark(
    lower: Array, upper: Array, piece: Piece, number: int, which: Numbers, flat: Mask
) -> None:
    """In one loop, or where samples are on a device by its operations."""
    if isinstance(which, np.ndarray):
        from safesift.arithmetic.compiled import verdicts

        ends = piece.lower, piece.upper, piece.quadratic, piece.linear
        verdicts.mark(lower, upper, *ends, number, which, flat)
        return
    inside = (lower > piece.lower) & (upper < piece.upper) & (which < 0)
    np.copyto(which, np.int8(number), where=inside)
    flat |= inside & (piece.quadratic == 0) & (piece.linear == 0)


def one_each(values: Array | float, n_samples: int) -> Array:
    """A number for every sample, as a loop that trusts their length wants them.

    Regions and losses may be somebody else's: what does not fit raises ValueError. Rounding to
    double precision keeps the order of numbers, so that nothing gets strictly inside by it.
    """
    shape = (n_samples,)
    if isinstance(values, np.ndarray) and values.shape == shape and values.dtype == np.float64:
        return values
    return np.array(np.broadcast_to(values, shape), dtype=np.float64)
