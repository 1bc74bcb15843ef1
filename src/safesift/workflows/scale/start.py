"""Where to begin: the solution of a sample, and how far the solution of all rows may be from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import solve_positive
from safesift.design.factory import as_design
from safesift.design.rows import rows_of
from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.problem.risk import Risk
from safesift.solvers import Screening, Settings, solve_path
from safesift.workflows.scale.passes import Query, kinked
from safesift.workflows.scale.reading import Reading
from safesift.workflows.scale.survey import Surveyed

Array = NDArray[np.float64]

# of all rows this share is solved first, at least so many and so many per column
_SHARE, _FEWEST, _PER_COLUMN = 1 / 16, 2000, 20
# the relative gap of that solution, and the groups whose gradients tell how it scatters
_TOL, _GROUPS = 1e-6, 8


@dataclass(frozen=True, eq=False)
class Start:
    """A point for every problem.

    Attributes
    ----------
    points : list of arrays
    spreads : list of arrays or None
        See `Query.spread`; None where the sample has all rows.
    constant, unit : lists of float
        The best constant of every problem, and the scale of its predictions.
    """

    points: list[Array]
    spreads: list[Array | None]
    constants: list[float]
    units: list[float]


def start(
    surveyed: Surveyed, reading: Reading, queries: Sequence[Query], n_levels: int, seed: int
) -> Start:
    """Solve the sample for all problems: classes one after the other, levels within a class."""
    problems, whole = sample_problems(surveyed, reading, queries)
    found = Start([], [], [], [])
    settings = Settings(_TOL, 1000, Screening(), seed=seed, decided=())
    for first in range(0, len(problems), n_levels):
        own = problems[first : first + n_levels]
        ends = [fit.at for (fit,) in solve_path([[one] for one in own], settings)]
        spread = None if whole else _spread(own[-1], ends[-1])
        found.points.extend(at.point for at in ends)
        found.spreads.extend([spread] * len(own))
        found.constants.extend(own[0].split(own[0].constant_point)[1] for _ in own)
        found.units.extend(own[0].unit for _ in own)
    return found


def sample_problems(
    surveyed: Surveyed, reading: Reading, queries: Sequence[Query]
) -> tuple[list[Problem], bool]:
    """Those of the sample, and whether that has all rows that count."""
    assert surveyed.sample is not None and surveyed.n_features is not None
    n_rows = max(int(_SHARE * surveyed.n_rows), _FEWEST, _PER_COLUMN * surveyed.n_features)
    labelled = reading.classes is not None
    sample = surveyed.sample.cut(n_rows, labelled)
    X = sample.X if reading.scaling is None else reading.scaling.applied(sample.X)
    weights = reading.weights_of(sample.y, sample.weights)
    drawn = float(sample.weights.sum()) / surveyed.weight
    if labelled:
        weights = _by_class(weights, sample.y, surveyed, reading)
    design = rows_of(as_design(X, reading.intercept)).as_held()
    risks = [Risk.of(design, query.loss, query.targets(sample.y), weights) for query in queries]
    problems = [Problem(risk, q.penalty, q.alpha) for risk, q in zip(risks, queries, strict=True)]
    # levels of one class are levels of one problem
    shared = [problems[0]]
    for query, problem in zip(queries[1:], problems[1:], strict=True):
        same = query.label == queries[len(shared) - 1].label
        shared.append(replace(problem, risk=shared[-1].risk) if same else problem)
    return shared, drawn > 1.0 - 1e-12


def _by_class(weights: Array, y: NDArray, surveyed: Surveyed, reading: Reading) -> Array:
    """Every class as heavy as it is among all rows, however many of it were drawn."""
    assert reading.classes is not None and surveyed.label_weights is not None
    factors = np.ones(len(reading.classes)) if reading.factors is None else reading.factors
    codes = np.searchsorted(reading.classes, y)
    drawn = np.bincount(codes, weights, minlength=len(factors))
    return weights * (factors * surveyed.label_weights / drawn)[codes]


def _spread(problem: Problem, at: Evaluation) -> Array:
    """H⁻¹ times the gradients of some groups of the sample: how its solution scatters.

    A sum over independent groups varies by the sum of their squares, and the solution of a sample
    by H⁻¹ times its gradient. A loss with kinks has the curvature of one that is rounded off.
    """
    rows, n = rows_of(problem.design), problem.design.n_samples
    loss = problem.loss.smoothed(problem.unit) if kinked(problem.loss) else problem.loss
    curvature = problem.shares * loss.curvature(at.pred, problem.y)
    H = rows.gram(curvature)
    p = rows.n_features
    H[range(p), range(p)] += max(problem.strong_convexity, 1e-10 * float(np.trace(H)))
    loads = np.zeros((n, _GROUPS))
    loads[np.arange(n), np.arange(n) % _GROUPS] = problem.shares * at.nu
    gradients = rows.rmatvec(loads)
    gradients -= gradients.mean(axis=1, keepdims=True)
    return solve_positive(H, gradients)
