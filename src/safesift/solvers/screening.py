"""What `screening=` stands for: which rows steps read, and by which region rows are decided.

Nothing is claimed about rows that a guess leaves out: the gap is measured on all rows afterwards,
and a row that did leave its piece comes back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.problem.certificate import Certificate
from safesift.problem.decisions import Decisions, decide
from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.regions import REGIONS, Auto, Region
from safesift.registry import resolve

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]

# up to this share of undecided rows, a region that costs many passes is not built for them
_FEW = 0.05


@dataclass(frozen=True)
class Screening:
    """How rows are left out on the way, and decided.

    Attributes
    ----------
    region : Region or None
        The region that was asked for: rows are left out only where it decides them.
    guesses : bool
        Whether steps may leave rows out on a guess, verified on all rows.
    """

    region: Region | None = None
    guesses: bool = True

    @classmethod
    def of(cls, screening: Any, table: dict[str, type[Region]] = REGIONS) -> Screening:
        """ "auto": whatever is fastest; a region or its name; None: every step reads every row."""
        if screening is None:
            return cls(guesses=False)
        if isinstance(screening, str) and screening == "auto":
            return cls()
        return cls(resolve("screening", screening, table, Region), guesses=False)

    def validate(self, problem: Problem) -> None:
        """Raise ValueError, before any heavy work, if the region cannot serve a problem."""
        if self.region is not None:
            self.region.validate(problem)

    def worth_more(self, problem: Problem, at: Evaluation, decisions: Decisions) -> bool:
        """Whether what is left undecided is worth a thorough region.

        Rows on no piece, as where a loss curves at a varying rate, are never decided.
        """
        if self.region is not None or not self.guesses or not problem.pieces:
            return False
        undecided = decisions.undecided
        few = _FEW * len(undecided)
        if np.count_nonzero(undecided) <= few:
            return False
        for rows in problem.design.sample_blocks:
            undecided[rows] &= problem.pieces.room(at.pred[rows], rows) > 0.0
        return bool(np.count_nonzero(undecided) > few)

    @property
    def thorough(self) -> Region:
        """The region that was asked for, or the best there is."""
        return Auto() if self.region is None else self.region

    def undecided(self, certificate: Certificate) -> NDArray[np.bool_]:
        """Rows that the region does not decide, or that are not yet where they will be."""
        problem, pred = certificate.problem, certificate.at.pred
        bounds = self.thorough.build(certificate).own_bounds(problem)
        decisions = decide(problem, bounds, "always")
        there = (decisions.lower < pred) & (pred < decisions.upper)
        return decisions.undecided | ~there


def may_leave_piece(problem: Problem, at: Evaluation, reach: Array) -> Rows:
    """Rows of weight that are on no piece, or within reach of an end of theirs."""

    def near(pred: Array, rows: slice) -> Mask:
        return problem.pieces.room(pred, rows) <= reach[rows]

    return _carrying(problem, at, near)


def near_kinks(problem: Problem, at: Evaluation, reach: Array) -> Rows:
    """Rows of weight that are within reach of an end of a piece."""

    def near(pred: Array, rows: slice) -> Mask:
        return problem.pieces.distance(pred, rows) < reach[rows]

    return _carrying(problem, at, near)


def _carrying(problem: Problem, at: Evaluation, near: Callable[[Array, slice], Mask]) -> Rows:
    """The rows of weight for which a test holds, a block at a time."""
    found = [
        np.flatnonzero(near(at.pred[rows], rows) & (problem.shares[rows] > 0)) + rows.start
        for rows in problem.design.sample_blocks
    ]
    return np.concatenate(found)
