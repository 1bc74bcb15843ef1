"""Solve on what was kept, check on everything, bring back what was dropped wrongly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.printing import Brief
from safesift.problem.problem import Problem
from safesift.workflows.verdicts import Check, ScreeningResult

Array = NDArray[np.float64]
# from a reduced problem to coefficients and intercept
Solve = Callable[[Problem], tuple[Array, float]]


@dataclass(frozen=True, eq=False, repr=False)
class Repaired(Brief):
    """A solution that every dropped sample confirms.

    Attributes
    ----------
    coef, intercept
        The solution; with several classes a row for each.
    result : ScreeningResult
        The decisions that held.
    check : Check
        The last check; `check.gap` is the duality gap on all rows.
    n_rounds : int
        How often the kept rows were solved.
    """

    coef: Array
    intercept: Any
    result: ScreeningResult
    check: Check
    n_rounds: int

    def summary(self) -> str:
        """What was repaired, for which model, and what is proved."""
        proof = "every dropped sample confirms it" if self.check.passed else "NOT confirmed"
        return "\n".join([
            f"a solution after {self.n_rounds} rounds on {int(self.result.kept.sum())} of "
            f"{len(self.result.kept)} samples: {proof}",
            f"  model: {self.result.training}",
            f"  duality gap on all samples: {self.check.gap:.2g}",
        ])  # fmt: skip


def solve_and_repair(
    result: ScreeningResult, solve: Solve, max_rounds: int = 20, *, n_jobs: int | None = None
) -> Repaired:
    """Solve the reduced problem until no decided sample contradicts the solution.

    Ends in the right answer even where the region was a guess: each round brings back the samples
    that are not on their piece, and a round in which there is none proves the solution optimal
    for the full problem, as far as `solve` is exact.

    Parameters
    ----------
    result : ScreeningResult
    solve : callable
        Takes a reduced `Problem`, returns coefficients and intercept. With several classes it is
        called for each of them. Its threads are its own affair.
    max_rounds : int, default=20
        After so many, everything is kept.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.

    Returns
    -------
    Repaired
    """
    if n_jobs is not None:
        result = replace(result, n_jobs=n_jobs)
    for n_rounds in range(1, max_rounds + 1):
        found = _solved(result, solve, n_rounds)
        if found.check.passed:
            return found
        result = result.repaired(found.check)
    everything = Check(np.ones(len(result.kept), dtype=bool), np.inf)
    return _solved(result.repaired(everything), solve, max_rounds + 1)


def _solved(result: ScreeningResult, solve: Solve, n_rounds: int) -> Repaired:
    several = len(result.parts) > 1
    # between what is computed here: the solver has the threads that the process has
    found = [solve(problem) for problem in (result.reduced if several else (result.reduced,))]
    coefs, intercepts = [np.asarray(coef) for coef, _ in found], [float(c) for _, c in found]
    coef = np.stack(coefs) if several else coefs[0]
    intercept = np.array(intercepts) if several else intercepts[0]
    return Repaired(coef, intercept, result, result.check(coef, intercept), n_rounds)
