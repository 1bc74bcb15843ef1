"""A start from a sample of the rows: a fraction of a pass away from where all rows lead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.penalties import L2
from safesift.problem.evaluation import Evaluation
from safesift.problem.passes import Computation, Request, by_group
from safesift.problem.problem import Problem
from safesift.problem.risk import Risk, WeightedRows
from safesift.solvers.driver import solve_path
from safesift.solvers.records import Settings
from safesift.solvers.screening import Screening

Array = NDArray[np.float64]

# a start is found on this share of the rows, at least so many of them and so many per column, where
# there are so many times as many
_SAMPLED, _FEWEST, _PER_COLUMN, _WORTH = 16, 250, 2, 12
# relative gap of that start, and how many rows its penalty weighs as much as
_ROUGH, _LEAST_ROWS = 1e-3, 2.0


class Sampled(NamedTuple):
    """The problem of some of the rows, and about its solution."""

    problem: Problem
    at: Evaluation


def _prior(problem: Problem, rows: WeightedRows, share: float) -> float:
    """The alpha of a sample of m from n rows: more than that of all, where it would hardly count.

    Next to the sum of all losses the penalty has the weight alpha·n, and next to the sample's
    alpha·m: if that is less than the curvature of some rows, what they have of rare columns is
    learnt by heart. So alpha·m is made as much as that, or alpha·n where that is less.
    """
    if not isinstance(problem.penalty, L2):
        return problem.alpha
    a_row = problem.loss.smoothness * float(rows.columns_sq.sum()) / np.count_nonzero(rows.weights)
    return max(problem.alpha, min(_LEAST_ROWS * a_row, problem.alpha / share))


def rows_of_a_sample(problem: Problem) -> int:
    """How many rows are worth solving for first; 0 where that is not clearly less than all."""
    design = problem.design
    n_rows = max(design.n_samples // _SAMPLED, _FEWEST, _PER_COLUMN * design.n_columns)
    return n_rows if n_rows * _WORTH <= np.count_nonzero(problem.weights) else 0


@dataclass(frozen=True, eq=False)
class OnASample(Request):
    """The problem of some rows, drawn at random, solved roughly; None where there are not many.

    It spares the steps, and the Gram matrices of rows that are far from their piece, of a start at
    zero. The gap is relative to the sample's own reference, which is near enough to that of all.
    Problems of the same weighted rows, such as one class after another against the rest, are solved
    together on the same sample.

    Parameters
    ----------
    problem : Problem
    settings : Settings
        Of the solver that asks.
    solver : str, default="auto"
        By which one the sample is solved.
    """

    turn = 4
    problem: Problem
    settings: Settings
    solver: str = "auto"

    @classmethod
    def answered(cls, requests: Sequence[OnASample]) -> list[Sampled | None]:
        return by_group(requests, [request.problem.risk.rows for request in requests], _solved)


def start_on_a_sample(
    problem: Problem, settings: Settings, solver: str
) -> Computation[Array | None]:
    """The solution of a sample; its rows go with this computation, and not with who asked."""
    sampled = yield OnASample(problem, settings, solver)
    return None if sampled is None else sampled.at.point


def _solved(requests: Sequence[OnASample]) -> Sequence[Sampled | None]:
    """Samples of the same rows; as the problems are of one level, the same solver suits them."""
    first, settings = requests[0].problem, requests[0].settings
    n_rows = rows_of_a_sample(first)
    if not n_rows:
        return [None] * len(requests)
    rng = np.random.default_rng(settings.seed)
    carrying = np.flatnonzero(first.weights)
    chosen = carrying[np.sort(rng.choice(len(carrying), n_rows, replace=False))]
    rows = first.risk.rows.take(chosen)
    share = float(rows.weights.sum()) / float(first.weights.sum())
    rows = replace(rows, divisor=first.divisor * share)
    problems = [request.problem for request in requests]
    samples = [
        replace(one, risk=Risk(rows, one.risk.targets.take(chosen)), alpha=_prior(one, rows, share))
        for one in problems
    ]
    guesses = settings.screening != Screening.of(None)
    roughly = Settings(
        _ROUGH, settings.max_iter, Screening(guesses=guesses), solver=requests[0].solver, decided=()
    )
    (fits,) = solve_path([samples], roughly, [sample.constant_point for sample in samples])
    return [Sampled(sample, fit.at) for sample, fit in zip(samples, fits, strict=True)]
