"""The laws of rows in blocks, as plain functions: Hypothesis calls them, and the mutation tests do.

Samples that starts are found on are made tiny, so that passes have something left to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from safesift.arithmetic.threads import using
from safesift.design.block_sources import calls
from safesift.problem.inputs import make_problems
from safesift.problem.problem import Problem
from safesift.workflows.scale import budget, start, survey
from safesift.workflows.scale.passes import decoded, kinked
from safesift.workflows.scale.solve import BlockFit, BlockModel, Solution, solve_blocks
from tests.laws.problems import Recipe, arrays
from tests.laws.reference import dense_rows, objective, optimum

TOL = 1e-6


@dataclass(frozen=True)
class Cut:
    """A problem, a way to cut its rows into blocks, and how it is solved.

    `levels` are the alphas (or radii) in flight, as multiples of that of the problem; `memory` may
    be so little that not all rows are held that should be, and is what all rows do not fit into
    unless they are solved as a `whole`. With `raw` columns are of very different sizes, far from 0.
    """

    recipe: Recipe
    cuts: tuple[float, ...] = (0.5,)
    sampled: int = 3
    levels: tuple[float, ...] = (1.0,)
    memory: int = 10**9
    whole: bool = False
    raw: bool = False
    n_folds: int | None = None


@contextmanager
def small_samples(n_rows: int, whole: bool):
    """Starts from so many rows, and no memory for all of them unless they are a whole."""
    with pytest.MonkeyPatch.context() as patch:
        if not whole:
            patch.setattr(budget, "_WHOLE_SHARE", 0.0)
        patch.setattr(start, "_FEWEST", n_rows)
        patch.setattr(start, "_PER_COLUMN", 0)
        patch.setattr(start, "_SHARE", 0.0)
        patch.setattr(survey, "_OF_A_LABEL", 1)
        yield


def made(case: Cut) -> tuple[Any, np.ndarray, np.ndarray, dict[str, Any]]:
    """Rows, targets, weights, and the rest of a problem, one epsilon for all samples."""
    X, y, arguments = arrays(case.recipe)
    if case.raw:
        rng = case.recipe.rng()
        units = 10.0 ** rng.integers(-2, 4, X.shape[1])
        X = X.toarray() if case.recipe.sparse else X
        X = (X + rng.normal(0, 3, len(units))) * units
        X = X.astype(np.float32) if case.recipe.single else X
    loss, weights = arguments["loss"], arguments["sample_weight"]
    if loss.n_parameters is not None:
        arguments["loss"] = replace(loss, epsilon=float(np.ravel(loss.epsilon)[0]))
    return X, y, np.ones(len(y)) if weights is None else weights, arguments


def blocks_of(X: Any, y: np.ndarray, weights: np.ndarray, cuts: tuple[float, ...]) -> list[tuple]:
    """The rows between the cuts, which are shares of them: equal ones leave a block empty."""
    places = [0, *sorted(round(cut * len(y)) for cut in cuts), len(y)]
    parts = [slice(*ends) for ends in pairwise(places)]
    return [(X[part], y[part], weights[part]) for part in parts]


def solved(case: Cut, n_threads: int = 1) -> tuple[list[Problem], Solution]:
    """The problems in memory, and their solution by blocks."""
    X, y, weights, arguments = made(case)
    problem = make_problems(X, y, **arguments).problem
    parts = blocks_of(X, y, weights, case.cuts)
    source = calls(lambda k: parts[k], len(parts), memory=case.memory)
    penalty = arguments["penalty"]
    level = penalty.radius if penalty.is_constraint else arguments["alpha"]
    levels = [level * multiple for multiple in case.levels]
    model = BlockModel(arguments["loss"], penalty, levels, arguments["fit_intercept"], TOL, 0)
    model = replace(model, n_folds=case.n_folds)
    with small_samples(case.sampled, case.whole), using(n_threads):
        solution = solve_blocks(source, model)
    return [problem.at_level(level) for level in levels], solution


def each_level(case: Cut) -> Iterator[tuple[int, Problem, BlockFit, Solution]]:
    """The levels, with their problems and fits."""
    problems, solution = solved(case)
    (fits,) = solution.fits
    for number, (problem, fit) in enumerate(zip(problems, fits, strict=True)):
        yield number, problem, fit, solution


def law_gap_bounds_suboptimality(case: Cut) -> None:
    """P(x) − P* ≤ gap, with P of all rows in memory."""
    for _, problem, fit, _ in each_level(case):
        best = optimum(problem)
        value = objective(problem, problem.join(fit.coef, fit.intercept))
        room = (1e-7 if best.accuracy > 1e-7 else 1e-12) * (1.0 + abs(best.value))
        assert fit.gap >= value - best.value - room, (fit.gap, value - best.value)


def law_same_value(case: Cut) -> None:
    """The objective that is told is that of all rows."""
    for _, problem, fit, _ in each_level(case):
        value = objective(problem, problem.join(fit.coef, fit.intercept))
        np.testing.assert_allclose(fit.value, value, rtol=1e-9, atol=1e-12)


def law_converges(case: Cut) -> None:
    """The tolerance is reached, as it is in memory, in some passes.

    Of losses with kinks it need not be, where too few rows can be held: then that is told.
    """
    for _, problem, fit, _ in each_level(case):
        if kinked(problem.loss) and not fit.converged:
            continue
        assert fit.converged, fit
        assert fit.relative_gap <= TOL * (1 + 1e-9)
        kappa, best = problem.strong_convexity, optimum(problem)
        if kappa > 0:
            away = np.linalg.norm(fit.coef - problem.split(best.point)[0])
            assert away <= np.sqrt(2.0 * fit.gap / kappa) + 2 * best.accuracy * (1.0 + away)


def law_verdicts_are_right(case: Cut) -> None:
    """Every decided row is on its piece at the optimum."""
    for number, problem, fit, solution in each_level(case):
        best, store = optimum(problem), solution.kept._codes
        codes = np.concatenate([store.get(part, number) for part in store.lengths])
        decisions = decoded(problem, codes)
        pred = dense_rows(problem) @ best.point
        size = 1.0 + np.linalg.norm(best.point)
        room = best.accuracy * size * problem.design.row_norms + 1e-12 * (size + np.abs(pred))
        decided = ~decisions.undecided & (problem.weights > 0)
        inside = (pred > decisions.lower - room) & (pred < decisions.upper + room)
        assert inside[decided].all()
        kept = np.asarray(fit.kept)
        assert (kept == ~decisions.dropped).all()
        assert not kept[problem.weights == 0].any()


def law_same_bits_for_any_threads(case: Cut) -> None:
    """One, two and three threads find the same, to the last bit."""
    (first, *others) = [solved(case, n_threads)[1].fits[0] for n_threads in (1, 2, 3)]
    for fits in others:
        for fit, known in zip(fits, first, strict=True):
            assert fit.coef.tobytes() == known.coef.tobytes()
            assert (fit.intercept, fit.gap) == (known.intercept, known.gap)
            assert (np.asarray(fit.kept) == np.asarray(known.kept)).all()


def law_cuts_do_not_matter(case: Cut) -> None:
    """Models of two ways to cut the rows are as near to each other as their gaps imply."""
    problems, one = solved(case)
    _, other = solved(replace(case, cuts=()))
    for problem, *fits in zip(problems, one.fits[0], other.fits[0], strict=True):
        kappa = problem.strong_convexity
        if kappa > 0:
            apart = float(np.linalg.norm(fits[0].coef - fits[1].coef))
            room = 1e-12 * (1.0 + float(np.linalg.norm(fits[0].coef)))
            assert apart <= sum(np.sqrt(2.0 * fit.gap / kappa) for fit in fits) + room


def law_folds_are_problems_of_their_own(case: Cut) -> None:
    """The models without a fold are those of the other rows alone, divided by their weight.

    With next to no memory a fold, which has no sample of its own, may take too long.
    """
    try:
        problems, solution = solved(replace(case, n_folds=2, memory=10**9))
    except ValueError as error:
        assert "is greater than the number of rows" in str(error)
        return
    reading = solution.reading
    blocks = [ready for part in sorted(reading.seals) for ready in reading.blocks(part)]
    folds = np.concatenate([ready.samples.folds for ready in blocks])
    for fold, (fits,) in enumerate(solution.without):
        for problem, fit in zip(problems, fits, strict=True):
            alone = problem.reweighted(np.where(folds == fold, 0.0, problem.weights))
            best, value = optimum(alone), objective(alone, alone.join(fit.coef, fit.intercept))
            np.testing.assert_allclose(fit.value, value, rtol=1e-9, atol=1e-12)
            room = (1e-7 if best.accuracy > 1e-7 else 1e-12) * (1.0 + abs(best.value))
            assert fit.gap >= value - best.value - room, (fit.gap, value - best.value)
            assert fit.converged or kinked(problem.loss), fit


LAWS = [
    law_gap_bounds_suboptimality,
    law_same_value,
    law_converges,
    law_verdicts_are_right,
    law_same_bits_for_any_threads,
    law_cuts_do_not_matter,
]
