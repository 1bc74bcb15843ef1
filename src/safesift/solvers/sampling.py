"""A start from a sample of the rows: a fraction of a pass away from where all rows lead."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.solvers.driver import solve_path
from safesift.solvers.records import Settings
from safesift.solvers.screening import Screening

# a start is found on this share of the rows, at least so many of them and so many per column, where
# there are so many times as many
_SAMPLED, _FEWEST, _PER_COLUMN, _WORTH = 16, 250, 2, 12
# relative gap of that start
_ROUGH = 1e-3


class Sampled(NamedTuple):
    """The problem of some of the rows, and about its solution."""

    problem: Problem
    at: Evaluation


def rows_of_a_sample(problem: Problem) -> int:
    """How many rows are worth solving for first; 0 where that is not clearly less than all."""
    design = problem.design
    n_rows = max(design.n_samples // _SAMPLED, _FEWEST, _PER_COLUMN * design.n_columns)
    return n_rows if n_rows * _WORTH <= np.count_nonzero(problem.weights) else 0


def solved_on_a_sample(
    problem: Problem, settings: Settings, solver: str = "auto"
) -> Sampled | None:
    """The problem of some rows, drawn at random, solved; None where there are not many.

    It spares the steps, and the Gram matrices of rows that are far from their piece, of a start at
    zero. The gap is relative to the sample's own reference, which is near enough to that of all.
    """
    n_rows = rows_of_a_sample(problem)
    if not n_rows:
        return None
    rng = np.random.default_rng(settings.seed)
    carrying = np.flatnonzero(problem.weights)
    rows = carrying[np.sort(rng.choice(len(carrying), n_rows, replace=False))]
    risk = problem.risk.restrict(rows)
    sample = replace(problem, risk=risk.with_divisor(float(risk.rows.weights.sum())))
    guesses = settings.screening != Screening.of(None)
    roughly = Settings(_ROUGH, settings.max_iter, Screening(guesses=guesses), decided=())
    roughly = replace(roughly, solver=solver)
    ((fit,),) = solve_path([[sample]], roughly, [sample.constant_point])
    return Sampled(sample, fit.at)
