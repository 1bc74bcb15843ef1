"""Bounds × pieces → decisions: which samples can be dropped, folded, or must stay."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.printing import Brief, record_in_brief
from safesift.problem.pieces import SamplePieces, one_each

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
    pieces : SamplePieces
    which : array of integers
        The number of the piece a sample was found on, from 1; 0 for samples without weight, which
        are on any, and -1 where it was found on none.
    quadratic, linear, constant : arrays
        The coefficients of that piece, 0 where there is none.
    lower, upper : arrays
        The ends of that piece.
    """

    dropped: Mask
    folded: Mask
    pieces: SamplePieces
    which: NDArray[np.int8]

    @classmethod
    def nothing(cls, problem: Problem) -> Decisions:
        """No sample is decided but those without weight."""
        dropped = problem.weights == 0
        which = dropped.astype(np.int8) - np.int8(1)
        return cls(dropped, np.zeros_like(dropped), problem.pieces, which)

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
        pieces, which = self.pieces.take(rows), self.which[rows]
        return Decisions(self.dropped[rows], self.folded[rows], pieces, which)

    def without(self, rows: Mask) -> Decisions:
        """The same, with some rows undecided again."""
        return replace(self, dropped=self.dropped & ~rows, folded=self.folded & ~rows)

    @cached_property
    def quadratic(self) -> Array:
        return self.pieces.field("quadratic", self.which)

    @cached_property
    def linear(self) -> Array:
        return self.pieces.field("linear", self.which)

    @cached_property
    def constant(self) -> Array:
        return self.pieces.field("constant", self.which)

    @cached_property
    def lower(self) -> Array:
        return self.pieces.field("lower", self.which, -np.inf)

    @cached_property
    def upper(self) -> Array:
        return self.pieces.field("upper", self.which, np.inf)


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
    which, flat = (np.empty_like(problem.weights, dtype=kind) for kind in (np.int8, bool))
    for rows in problem.design.sample_blocks:
        level = problem.weights[rows] == 0
        found = level.astype(np.int8) - np.int8(1)
        part = bounds.take(rows)
        if isinstance(found, np.ndarray):
            part = Bounds(*(one_each(values, len(found)) for values in part))
        problem.pieces.mark(*part, rows, found, level)
        which[rows], flat[rows] = found, level
    decisions = Decisions(flat, (which >= 0) & ~flat, problem.pieces, which)
    return decisions if fold == "always" else decisions.folding(problem, fold)


def in_doubt(problem: Problem, bounds: Bounds) -> Mask:
    """Samples that are not decided, and that shorter intervals may decide.

    An interval that meets no piece, as where a loss curves at a varying rate, never will be inside
    of one.
    """
    meets = np.zeros_like(problem.weights, dtype=bool)
    for rows in problem.design.sample_blocks:
        part = bounds.take(rows)
        for piece in problem.pieces.of(rows):
            meets[rows] |= (part.lower < piece.upper) & (part.upper > piece.lower)
    return meets & decide(problem, bounds, "always").undecided


def _fold_quadratic(problem: Problem, n_rows: int, fold: Fold) -> bool:
    if fold == "auto":
        return problem.design.n_columns <= min(n_rows, _LARGEST_GRAM)
    return fold == "always"
