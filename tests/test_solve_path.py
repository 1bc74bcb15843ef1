"""Paths of problems that share their rows: optimal, certified, the same with and without screening.

Over every loss and penalty, weights, intercept, dense and CSR, float32 and float64, against optima
that were computed independently of the library.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from safesift.arithmetic.tally import Tally
from safesift.losses import LOSSES
from safesift.penalties import PENALTIES
from safesift.problem.inputs import make_problems
from safesift.problem.passes import alone
from safesift.problem.problem import Problem
from safesift.regions import REGIONS
from safesift.solvers import (
    SOLVERS,
    Fit,
    Level,
    Proposal,
    Run,
    Screening,
    Settings,
    Solver,
    WorkingSets,
    solve_path,
)
from tests.laws.problems import Recipe, build, recipes
from tests.laws.reference import NotSolvedError, Optimum, objective, optimum
from tests.laws.strategies import KINKED_NAMES, SMOOTH_NAMES, examples

SCREENINGS = ("auto", None, "region")
TOL = dict.fromkeys(SMOOTH_NAMES, 1e-8) | dict.fromkeys(KINKED_NAMES, 1e-6)


def settings_for(recipe: Recipe, screening: str | None) -> Settings:
    region = REGIONS["auto"]() if screening == "region" else screening
    return Settings(tol=TOL[recipe.loss], max_iter=5000, screening=Screening.of(region))


def level(problem: Problem, factor: float) -> Problem:
    """The problem with less regularisation: alpha divided, or the radius multiplied."""
    if not problem.penalty.is_constraint:
        return problem.at_level(problem.alpha / factor)
    return problem.at_level(factor * problem.penalty.radius)


def reference(problem: Problem) -> Optimum:
    try:
        return optimum(problem)
    except NotSolvedError:
        assume(False)


def assert_certified(fit: Fit, settings: Settings) -> None:
    """What a fit says of itself: converged, a gap that fits, a history that ends there."""
    solution, last = fit, fit.history[-1]
    assert solution.converged, (solution.relative_gap, solution.n_iter)
    assert solution.gap <= settings.tol * fit.problem.reference
    assert last.gap == pytest.approx(solution.gap, rel=1e-6, abs=1e-300)
    assert last.n_kept == fit.kept.sum() and last.n_undecided == fit.undecided.sum()
    assert [c.passes for c in fit.history] == sorted(c.passes for c in fit.history)


def assert_optimal(fit: Fit, best: Optimum) -> None:
    """No worse than the reference by more than the gap, which the reference does not refute."""
    problem, solution = fit.problem, fit
    size = 1.0 + abs(best.value)
    value = objective(problem, solution.at.point)
    assert value == pytest.approx(solution.at.value, rel=1e-9, abs=1e-12)
    assert value <= best.value + solution.gap + 1e-8 * size
    assert best.value >= value - solution.gap - 1e-12 * size


def assert_same_model(first: Fit, second: Fit) -> None:
    """As near to each other as their gaps imply: the values, and the coefficients if strong."""
    gaps = (first.gap, second.gap)
    values = (first.at.value, second.at.value)
    assert abs(values[0] - values[1]) <= max(gaps) + 1e-12 * (1.0 + abs(values[0]))
    kappa = first.problem.strong_convexity
    if kappa > 0:
        apart = np.linalg.norm(first.coef - second.coef)
        assert apart <= sum(math.sqrt(2.0 * gap / kappa) for gap in gaps) + 1e-12


@pytest.mark.parametrize("penalty", sorted(PENALTIES))
@examples(0.2)
@given(recipe=recipes(), screening=st.sampled_from(SCREENINGS))
def test_every_point_of_a_path_is_optimal(penalty, recipe, screening):
    problem = build(replace(recipe, penalty=penalty))
    settings = settings_for(recipe, screening)
    levels = [[level(problem, factor)] for factor in (1.0, 4.0)]
    optima = [reference(member) for (member,) in levels]
    for (fit,), best in zip(solve_path(levels, settings), optima, strict=True):
        assert_certified(fit, settings)
        assert_optimal(fit, best)


@pytest.mark.parametrize("name", sorted({*SOLVERS} - {WorkingSets.name}))
@examples(0.3)
@given(recipe=recipes())
def test_no_solver_claims_a_smaller_gap_than_there_is(name, recipe):
    """Wherever it ends, converged or not."""
    problem = build(recipe)
    assume(not SOLVERS[name].refusal(problem))
    settings = replace(settings_for(recipe, "auto"), solver=name, max_iter=30)
    ((fit,),) = solve_path([[problem]], settings)
    assert_optimal(fit, reference(problem))


@examples(0.4)
@given(recipe=recipes(), screening=st.sampled_from(["auto", "region"]))
def test_screening_changes_nothing(recipe, screening):
    levels = [[level(build(recipe), factor)] for factor in (1.0, 3.0)]
    screened = solve_path(levels, settings_for(recipe, screening))
    plain = solve_path(levels, settings_for(recipe, None))
    for (first,), (second,) in zip(screened, plain, strict=True):
        assert_same_model(first, second)


@examples(0.5)
@given(recipe=recipes(loss=["squared_hinge", "hinge", "squared_interval", "epsilon_insensitive",
                            "safe_logistic"]))  # fmt: skip
def test_dropped_rows_are_of_no_influence(recipe):
    """The optimal value without them, W as before, is the optimal value."""
    problem = build(recipe)
    ((fit,),) = solve_path([[problem]], settings_for(recipe, "auto"))
    assume(not fit.kept.all() and fit.kept.any())
    best, without = reference(problem), reference(problem.restrict(fit.kept))
    assert without.value == pytest.approx(best.value, rel=1e-6, abs=1e-7)


@examples(0.15)
@given(
    recipe=recipes(loss=[name for name in LOSSES if LOSSES[name].task == "classification"]),
    screening=st.sampled_from(SCREENINGS),
)
def test_problems_that_share_rows_do_not_disturb_each_other(recipe, screening):
    """Other labels, other weights (a fold), solved together: each as if it were alone."""
    problem = build(recipe)
    rng = recipe.rng()
    folds = problem.weights * (rng.random(len(problem.weights)) < 0.7)
    if not (folds > 0).any():
        folds = problem.weights
    together = [
        problem,
        problem.with_targets(rng.permutation(problem.y)),
        problem.reweighted(folds),
    ]
    levels = [[level(member, factor) for member in together] for factor in (1.0, 4.0)]
    settings = settings_for(recipe, screening)
    found = list(solve_path(levels, settings))
    for k in range(len(together)):
        alone = solve_path([[members[k]] for members in levels], settings)
        for fits, (single,) in zip(found, alone, strict=True):
            assert fits[k].problem is levels[0][k] or fits[k].problem is levels[1][k]
            assert fits[k].converged
            assert_same_model(fits[k], single)


@given(recipe=recipes(penalty=["l2", "l1"], loss=["squared_hinge", "squared"]))
@examples(0.5)
def test_any_start_leads_to_the_same_model(recipe):
    problem = build(recipe)
    far = 3.0 * recipe.rng().normal(size=problem.design.n_columns)
    settings = settings_for(recipe, "auto")
    ((cold,),), ((warm,),) = (solve_path([[problem]], settings, starts) for starts in (None, [far]))
    assert_certified(warm, settings)
    assert_same_model(cold, warm)


@pytest.mark.parametrize("penalty", ["l2", "l1_ball"])
@pytest.mark.parametrize("loss", ["smoothed_epsilon_insensitive", "smoothed_hinge"])
def test_flat_models_do_not_stop_a_solver(loss, penalty):
    """Where nearly all rows are on linear pieces, the minimiser of a step's model is far away."""
    settings = Settings(tol=1e-6, max_iter=500)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.integers(-2, 3, (12, 2)) if seed % 5 else rng.normal(size=(12, 2))
        X = X * rng.choice([1.0, 1.0, 1.0, 30.0], size=(12, 1))
        y = np.where(rng.random(12) < 0.5, 1.0, -1.0)
        y[:2] = [-1.0, 1.0]
        problem = make_problems(
            X, y, loss=loss, penalty=penalty, alpha=(0.01, 0.3)[seed % 2],
            fit_intercept=seed % 3 > 0,
        ).problem  # fmt: skip
        ((fit,),) = solve_path([[problem]], settings)
        assert fit.converged, seed


class Astray(Solver):
    """Begins where the objective is not a number, and then goes to a decent point."""

    name = "astray"

    @classmethod
    def refusal(cls, problem):
        return ""

    @classmethod
    def cost(cls, problem, n_levels):
        return math.inf

    def steps(self, level):
        yield Proposal(point=np.full(level.problem.design.n_columns, np.nan))
        yield Proposal(point=level.problem.constant_point)


def test_a_point_that_is_no_number_is_left():
    X = np.array([[1.0, 2.0], [-1.0, 0.5], [0.3, -2.0]])
    problem = make_problems(
        X,
        [1.0, -1.0, 1.0],
        loss="squared_hinge",
        penalty="l2",
        alpha=0.1,
        fit_intercept=False,
    ).problem
    settings = Settings()
    level = Level(problem, settings, None)
    fit = alone(Run(Astray(problem, settings), level, False, Tally()).solve())
    np.testing.assert_array_equal(fit.at.point, problem.constant_point)
    assert np.isfinite(fit.gap)


@pytest.mark.parametrize("solver", ["newton", "sparse_newton"])
def test_no_step_is_made_to_decide_rows_that_nobody_asks_for(solver, monkeypatch):
    """As in the folds of a cross-validation, and for a start from a sample."""
    asked = []
    monkeypatch.setattr(Screening, "worth_more", lambda *arguments: bool(asked.append(1)))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    penalty = {"newton": "l2", "sparse_newton": "l1"}[solver]
    problem = make_problems(
        X, np.sign(X[:, 0] + 0.1), loss="squared_hinge", penalty=penalty, alpha=1e-3,
        fit_intercept=False,
    ).problem  # fmt: skip
    for decided, is_asked in (((), False), (None, True)):
        asked.clear()
        settings = Settings(1e-8, 500, Screening(), solver=solver, decided=decided)
        ((_,),) = solve_path([[problem]], settings)
        assert bool(asked) == is_asked
