"""Which rows a Newton method goes on reading, and which it takes to stay on their piece.

Nothing is claimed about the rows that are left out: the gap is measured on all rows afterwards,
and a row that did leave its piece comes back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import row_blocks
from safesift.losses.base import Piece
from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.regions import Region

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

# rows move at most so many times as far as they moved last time, or so many times the mean
_FURTHER, _MEAN_SHARE = 2.0, 0.25


class Doubt(ABC):
    """A way to choose the rows that may change their piece."""

    @abstractmethod
    def rows(self, problem: Problem, at: Evaluation, movement: Array | None) -> Rows | None:
        """Their indices, None for all rows.

        Parameters
        ----------
        movement : array of shape (n_samples,), optional
            By how much predictions are expected to move, if that is known.
        """


class EveryRow(Doubt):
    def rows(self, problem: Problem, at: Evaluation, movement: Array | None) -> Rows | None:
        return None


class Guess(Doubt):
    """Rows that are close to an end of their piece, next to how far they are expected to move."""

    def __init__(self, problem: Problem) -> None:
        self._pieces = problem.pieces
        self._carrying = problem.shares > 0

    def rows(self, problem: Problem, at: Evaluation, movement: Array | None) -> Rows | None:
        if movement is None or not self._pieces:
            return None
        typical = _MEAN_SHARE * float(problem.shares @ movement)
        found = []
        for rows in row_blocks(len(movement)):
            reach = _FURTHER * movement[rows] + typical
            near = _room(self._pieces, at.pred[rows], rows) <= reach
            found.append(np.flatnonzero(near & self._carrying[rows]) + rows.start)
        return np.concatenate(found)


class Undecided(Doubt):
    """Rows that a region does not decide; the others are proved to end up on their piece."""

    def __init__(self, region: Region) -> None:
        self._region = region

    def rows(self, problem: Problem, at: Evaluation, movement: Array | None) -> Rows | None:
        from safesift.problem.decisions import decide

        bounds = self._region.build(problem, at).bounds(problem.design)
        decisions = decide(problem, bounds, "always")
        there = (decisions.lower < at.pred) & (at.pred < decisions.upper)
        return np.flatnonzero(decisions.undecided | ~there)


def _room(pieces: Sequence[Piece], pred: Array, rows: slice) -> Array:
    """How far each prediction is from the ends of its piece; 0 where it is on none."""
    room = np.zeros_like(pred)
    for piece in pieces:
        # negative on the other pieces
        ends = np.minimum(pred - piece.lower[rows], piece.upper[rows] - pred)
        np.maximum(room, ends, out=room)
    return room
