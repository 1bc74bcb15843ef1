"""Bounds × pieces → decisions: which samples can be dropped, folded, or must stay."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.printing import Brief, record_in_brief
from safesift.losses.base import Piece

if TYPE_CHECKING:
    from safesift.design.base import Design
    from safesift.problem.problem import Problem

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Fold = Literal["auto", "always", "never"]

# a Gram matrix beyond this many columns (200 MB) is not made unless asked for
_LARGEST_GRAM = 5000


class Bounds(NamedTuple):
    """lower ≤ aᵢᵀx* (+ intercept) ≤ upper for every row and every optimum.

    Attributes
    ----------
    lower, upper : array of shape (n_samples,)
    """

    lower: Array
    upper: Array

    def __repr__(self) -> str:
        return record_in_brief(self)

    @classmethod
    def unknown(cls, n_samples: int) -> Bounds:
        """Nothing is known of any row."""
        return cls(np.full(n_samples, -np.inf), np.full(n_samples, np.inf))

    @classmethod
    def none_for(cls, design: Design) -> Bounds:
        """The same, where the rows are."""
        nothing = design.zeros(design.n_samples)
        return cls(nothing - np.inf, nothing + np.inf)

    def take(self, rows: slice | NDArray) -> Bounds:
        """Those of some rows."""
        return Bounds(self.lower[rows], self.upper[rows])

    def intersect(self, other: Bounds) -> Bounds:
        """The better of two bounds, per row."""
        return Bounds(np.maximum(self.lower, other.lower), np.minimum(self.upper, other.upper))

    def widened(self, factor: float) -> Bounds:
        """Intervals `factor` times as long, around the same middles."""
        with np.errstate(invalid="ignore"):
            more = 0.5 * (factor - 1.0) * (self.upper - self.lower)
            return Bounds(self.lower - more, self.upper + more)


class RowBounds(Protocol):
    """Bounds that are made when they are asked for: `Bounds` are, of course, of that kind."""

    def take(self, rows: slice) -> Bounds:
        """The bounds of some rows."""


@dataclass(frozen=True, eq=False, repr=False)
class Decisions(Brief):
    """What became of every sample.

    Attributes
    ----------
    dropped : mask
        On a flat piece at every optimum (or of weight 0): of no influence.
    folded : mask
        On a linear or quadratic piece at every optimum: replaced by ½·quadratic·t² + linear·t +
        constant in the prediction t.
    pieces : tuple of Piece
    which : array of integers
        The piece a sample was found on, -1 where it was found on none.
    quadratic, linear, constant : arrays
        The coefficients of that piece, 0 where there is none.
    lower, upper : arrays
        The ends of that piece.
    """

    dropped: Mask
    folded: Mask
    pieces: tuple[Piece, ...]
    which: NDArray[np.int8]

    @classmethod
    def nothing(cls, problem: Problem) -> Decisions:
        """No sample is decided but those without weight."""
        dropped = problem.weights == 0
        which = dropped.astype(np.int8) - np.int8(1)
        return cls(dropped, np.zeros_like(dropped), (Piece(-np.inf, np.inf),), which)

    @property
    def undecided(self) -> Mask:
        """Rows still needed one by one."""
        return ~(self.dropped | self.folded)

    def joined(self, later: Decisions) -> Decisions:
        """What either of two looks at the same problem has proved."""
        if not (self.which >= 1).any():
            return later
        earlier = (self.which >= 1) & (later.which < 0)
        return replace(
            later,
            dropped=later.dropped | self.dropped,
            folded=(later.folded | self.folded) & ~self.dropped,
            which=np.where(earlier, self.which, later.which),
        )

    def folding(self, problem: Problem, fold: Fold) -> Decisions:
        """The same, with rows on quadratic pieces folded only where that is sensible."""
        curved = self.folded & (self.quadratic != 0)
        if _fold_quadratic(problem, int(curved.sum()), fold):
            return self
        return replace(self, folded=self.folded & ~curved)

    def take(self, rows: slice) -> Decisions:
        """Those about some of the samples."""
        pieces = tuple(_piece_of(piece, rows) for piece in self.pieces)
        return Decisions(self.dropped[rows], self.folded[rows], pieces, self.which[rows])

    def without(self, rows: Mask) -> Decisions:
        """The same, with some rows undecided again."""
        return replace(self, dropped=self.dropped & ~rows, folded=self.folded & ~rows)

    @cached_property
    def quadratic(self) -> Array:
        return self._of_pieces("quadratic")

    @cached_property
    def linear(self) -> Array:
        return self._of_pieces("linear")

    @cached_property
    def constant(self) -> Array:
        return self._of_pieces("constant")

    @cached_property
    def lower(self) -> Array:
        return self._of_pieces("lower")

    @cached_property
    def upper(self) -> Array:
        return self._of_pieces("upper")

    def _of_pieces(self, name: str) -> Array:
        found = np.zeros_like(self.which, dtype=np.float64)
        for k, piece in enumerate(self.pieces):
            np.copyto(found, getattr(piece, name), where=self.which == k)
        return found


def _piece_of(piece: Piece, rows: slice) -> Piece:
    fields = vars(piece).values()
    return Piece(*(field[rows] if np.ndim(field) else field for field in fields))


def check_fold(fold: str) -> None:
    """Refuse what is not a way of folding."""
    if fold not in ("auto", "always", "never"):
        raise ValueError(f"fold must be 'auto', 'always' or 'never', got {fold!r}.")


def decide(problem: Problem, bounds: RowBounds, fold: Fold = "auto") -> Decisions:
    """A sample is decided when its interval of predictions lies strictly inside a piece.

    Strictly, because at a kink the slope is not determined: a hinge exactly at margin 1 may pull
    with any slope in [−1, 0].

    Samples on a quadratic piece are folded into an n_columns × n_columns matrix Q where that is
    sensible: with `fold="auto"`, when Q is no larger than the rows it replaces and has at most
    5 000 columns. Otherwise they stay among the undecided.
    """
    # a sample without weight is on any piece
    pieces = (Piece(-np.inf, np.inf), *problem.pieces)
    which, flat = (np.empty_like(problem.weights, dtype=kind) for kind in (np.int8, bool))
    for rows in problem.design.sample_blocks:
        part = bounds.take(rows)
        level = problem.weights[rows] == 0
        found = level.astype(np.int8) - np.int8(1)
        for k, piece in enumerate(problem.pieces, start=1):
            _mark(part, _piece_of(piece, rows), k, found, level)
        which[rows], flat[rows] = found, level
    decisions = Decisions(flat, (which >= 0) & ~flat, pieces, which)
    return decisions if fold == "always" else decisions.folding(problem, fold)


def _mark(bounds: Bounds, piece: Piece, number: int, which: NDArray[np.int8], flat: Mask) -> None:
    """Note the samples that are strictly inside of a piece and of none before, and if it is flat.

    In one loop, or where samples are on a device by its operations.
    """
    if isinstance(which, np.ndarray):
        from safesift.arithmetic.compiled import verdicts

        ends = piece.lower, piece.upper, piece.quadratic, piece.linear
        own = [_of_samples(values, which.shape) for values in (*bounds, *ends)]
        verdicts.mark(*own, number, which, flat)
        return
    inside = (bounds.lower > piece.lower) & (bounds.upper < piece.upper) & (which < 0)
    np.copyto(which, np.int8(number), where=inside)
    flat |= inside & (piece.quadratic == 0) & (piece.linear == 0)


def _of_samples(values: Array | float, shape: tuple[int, ...]) -> Array:
    """A number for every sample, as a loop that trusts their length wants them.

    Regions and losses may be somebody else's: what does not fit raises ValueError. Rounding to
    double precision keeps the order of numbers, so that nothing gets strictly inside by it.
    """
    if isinstance(values, np.ndarray) and values.shape == shape and values.dtype == np.float64:
        return values
    return np.array(np.broadcast_to(values, shape), dtype=np.float64)


def in_doubt(problem: Problem, bounds: Bounds) -> Mask:
    """Samples that are not decided, and that shorter intervals may decide.

    An interval that meets no piece, as where a loss curves at a varying rate, never will be inside
    of one.
    """
    meets = np.zeros_like(problem.weights, dtype=bool)
    for piece in problem.pieces:
        meets |= (bounds.lower < piece.upper) & (bounds.upper > piece.lower)
    return meets & decide(problem, bounds, "always").undecided


def _fold_quadratic(problem: Problem, n_rows: int, fold: Fold) -> bool:
    if fold == "auto":
        return problem.design.n_columns <= min(n_rows, _LARGEST_GRAM)
    return fold == "always"
