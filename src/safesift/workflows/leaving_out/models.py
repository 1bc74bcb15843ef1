"""What is known of the models without each of some groups of samples."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.compiled.leave_out import SETTLED, UNSETTLED
from safesift.workflows.leaving_out.groups import Array, Groups, Rows


@dataclass(frozen=True, eq=False)
class Models:
    """The models without each of some groups.

    Attributes
    ----------
    pred, half : arrays of shape (n_samples,)
        Of every sample, the prediction by the model without its group, and how far at most an
        exact one is from it.
    status, looked, changed : arrays of shape (n_groups,)
        What came of the search, how many samples were looked at, how many changed piece.
    length, radius : arrays of shape (n_groups,)
        How far the model moves in whitened coordinates, and how far an exact one may be from it.
    moves : array of shape (n_groups, d), or without columns
        v: the model is that of the base plus Tv.
    moved, betas : arrays of shape (n_groups, most), or without columns
        Samples whose slopes change other than along their piece, and by how much.
    """

    pred: Array
    half: Array
    status: NDArray[np.int64]
    looked: NDArray[np.int64]
    changed: NDArray[np.int64]
    length: Array
    radius: Array
    moves: Array
    moved: NDArray[np.int64]
    betas: Array

    @classmethod
    def empty(cls, groups: Groups, n_columns: int = 0, n_moved: int = 0) -> Models:
        """Nothing is known yet."""
        n, k = len(groups.owner), len(groups)
        return cls._of(n, k, n_columns, n_moved)

    @classmethod
    def _of(cls, n: int, k: int, n_columns: int, n_moved: int) -> Models:
        return cls(
            pred=np.zeros(n),
            half=np.full(n, math.inf),
            status=np.full(k, UNSETTLED, dtype=np.int64),
            looked=np.zeros(k, dtype=np.int64),
            changed=np.zeros(k, dtype=np.int64),
            length=np.zeros(k),
            radius=np.full(k, math.inf),
            moves=np.zeros((k if n_columns else 0, n_columns)),
            moved=np.full((k, n_moved), -1, dtype=np.int64),
            betas=np.zeros((k, n_moved)),
        )

    @property
    def settled(self) -> NDArray[np.bool_]:
        """Of which models it is proved what they predict."""
        return self.status == SETTLED

    def part(self, some: Rows, n_members: int) -> Models:
        """Room for some of the groups."""
        return Models._of(n_members, len(some), self.moves.shape[1], self.moved.shape[1])

    @property
    def arrays(self) -> tuple:
        """As `leave_out` fills them."""
        return (
            self.pred, self.half, self.status, self.looked, self.changed, self.length,
            self.radius, self.moves, self.moved, self.betas,
        )  # fmt: skip

    def take(self, other: Models, some: Rows, members: Rows) -> None:
        """Take over what another way has found of some groups, proved or not."""
        self.pred[members], self.half[members] = other.pred[members], other.half[members]
        for name in ("status", "looked", "changed", "length", "radius"):
            getattr(self, name)[some] = getattr(other, name)[some]

    def put(self, some: Rows, members: Rows, part: Models) -> None:
        """Take over what was found of some groups."""
        self.pred[members], self.half[members] = part.pred, part.half
        for name in ("status", "looked", "changed", "length", "radius", "moved", "betas"):
            getattr(self, name)[some] = getattr(part, name)
        if len(self.moves):
            self.moves[some] = part.moves
