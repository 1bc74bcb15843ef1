"""Solve on what was kept, check on everything, bring back what was dropped wrongly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.problem.problem import Problem
from safesift.workflows.screening import Check, ScreeningResult

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Repaired:
    """A solution that every dropped sample confirms.

    Attributes
    ----------
    coef, intercept
        The solution.
    result : ScreeningResult
        The decisions that held.
    check : Check
        The last check; `check.gap` is the duality gap on all rows.
    n_rounds : int
        How often the kept rows were solved.
    """

    coef: Array
    intercept: float
    result: ScreeningResult
    check: Check
    n_rounds: int


def solve_and_repair(
    result: ScreeningResult,
    solve: Callable[[Problem], tuple[Array, float]],
    max_rounds: int = 20,
) -> Repaired:
    """Solve the reduced problem until no decided sample contradicts the solution.

    Ends in the right answer even where the region was a guess: each round brings back the samples
    that are not on their piece, and a round in which there is none proves the solution optimal
    for the full problem, as far as `solve` is exact.

    Parameters
    ----------
    result : ScreeningResult
    solve : callable
        Takes a reduced `Problem`, returns coefficients and intercept.
    max_rounds : int, default=20
        After so many, everything is kept.

    Returns
    -------
    Repaired
    """
    for n_rounds in range(1, max_rounds + 1):
        coef, intercept = solve(result.reduced)
        check = result.check(coef, intercept)
        if check.passed:
            return Repaired(np.asarray(coef), float(intercept), result, check, n_rounds)
        result = result.repaired(check)
    everything = Check(np.ones(len(result.keep), dtype=bool), np.inf)
    result = result.repaired(everything)
    coef, intercept = solve(result.reduced)
    check = result.check(coef, intercept)
    return Repaired(np.asarray(coef), float(intercept), result, check, max_rounds + 1)
