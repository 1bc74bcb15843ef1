"""What goes into a solver and what comes out of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from safesift.problem.decisions import Decisions
from safesift.problem.duality import DualPoint
from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.regions import REGIONS, Region
from safesift.registry import resolve

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """When to stop, and how to screen on the way.

    Attributes
    ----------
    tol : float
        Stop as soon as the duality gap is at most tol times P of the best constant model.
    max_iter : int
        The largest number of steps per problem; what a step is depends on the solver.
    screening : "auto", Region or None
        "auto": whatever is fastest, verified on all rows; a region: rows are left out only where
        it decides them; None: every step reads every row.
    seed : int
        For the solvers that draw random numbers.
    decided : tuple of int, optional
        The problems of a level for which it is to be told what became of their rows, all by
        default. A fold of a cross-validation needs no more than its solution.
    """

    tol: float = 1e-6
    max_iter: int = 1000
    screening: Literal["auto"] | Region | None = "auto"
    seed: int = 0
    decided: tuple[int, ...] | None = None

    def decides(self, k: int) -> bool:
        """Whether rows are decided for the k-th problem of a level."""
        return self.decided is None or k in self.decided


def check_screening(screening: Any) -> Any:
    """The string "auto", None, or a region by its name."""
    if screening is None or screening == "auto":
        return screening
    return resolve("screening", screening, REGIONS, Region)


@dataclass(frozen=True, eq=False)
class Solution:
    """Where a solver ended.

    Attributes
    ----------
    at : Evaluation
        Of the problem at the last point.
    dual : DualPoint
        The best dual point seen.
    gap : float
        Certified: P(point) − min P is at most that.
    reference : float
        What the tolerance is relative to: P of the best constant model, unless that is 0.
    n_iter : int
        Steps.
    converged : bool
        Whether gap ≤ tol·reference.
    """

    at: Evaluation
    dual: DualPoint
    gap: float
    reference: float
    n_iter: int
    converged: bool

    @property
    def relative_gap(self) -> float:
        return self.gap / self.reference


@dataclass(frozen=True)
class Check:
    """How things stood when the gap was measured on all rows.

    Attributes
    ----------
    passes : float
        Over the data, so far: products with as many rows as there are.
    seconds : float
        So far.
    gap, relative_gap : float
        Certified, on all rows.
    n_kept, n_undecided : int
        How many rows are not proved to be of no influence, and on how many it is not proved
        on which piece of their loss they lie.
    n_features : int
        How many features are not proved to be zero.
    """

    passes: float
    seconds: float
    gap: float
    relative_gap: float
    n_kept: int
    n_undecided: int
    n_features: int

    @classmethod
    def of(
        cls,
        decisions: Decisions,
        *,
        gap: float,
        reference: float,
        passes: float,
        began: float,
        n_features: int,
    ) -> Check:
        """How things stand now; `began` is the time of `time.perf_counter` at the start."""
        return cls(
            passes=passes,
            seconds=time.perf_counter() - began,
            gap=gap,
            relative_gap=gap / reference,
            n_kept=int((~decisions.dropped).sum()),
            n_undecided=int(decisions.undecided.sum()),
            n_features=n_features,
        )


@dataclass(frozen=True, eq=False)
class Fit:
    """A solution certified on all rows, and what became of every row there.

    Attributes
    ----------
    problem : Problem
    solution : Solution
        Of the full problem.
    decisions : Decisions
        At the solution.
    history : tuple of Check
        The last one is of the solution.
    """

    problem: Problem
    solution: Solution
    decisions: Decisions
    history: tuple[Check, ...]

    @property
    def coef(self) -> Array:
        return self.problem.split(self.solution.at.point)[0]

    @property
    def intercept(self) -> float:
        return self.problem.split(self.solution.at.point)[1]

    @property
    def kept(self) -> NDArray[np.bool_]:
        """False where the row is proved to have no influence."""
        return ~self.decisions.dropped

    @property
    def undecided(self) -> NDArray[np.bool_]:
        """True where it is not proved on which piece of its loss the row lies."""
        return self.decisions.undecided
