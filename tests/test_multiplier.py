"""Norm-ball constraints by their multiplier, against the Newton solver and conic optima."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from scipy import sparse

from safesift import penalties
from safesift.problem.inputs import make_problems
from safesift.solvers.records import Settings
from tests.laws.problems import build, recipes
from tests.laws.reference import NotSolvedError, optimum
from tests.laws.strategies import SMOOTH_NAMES
from tests.solving import multiplier_path, newton
from tests.test_sparse_newton import assert_decisions_hold, wide_problem

BALLS = [penalties.L1Ball, penalties.L2Ball]


@settings(max_examples=30)
@given(recipe=recipes(loss=SMOOTH_NAMES, penalty=["l1_ball", "l2_ball"]))
def test_gaps_are_certified_whether_converged_or_not(recipe):
    problem = build(recipe)
    try:
        best = optimum(problem)
    except NotSolvedError:
        assume(False)
    ((found,),) = multiplier_path([[problem]], Settings(tol=1e-6, max_iter=40))
    assert problem.penalty.contains(found.coef)
    assert found.at.value - best.value <= found.gap + 1e-9 * (1 + best.value)
    assert_decisions_hold(found, best.point, 1e-4 * (1 + np.abs(best.point).max()))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("ball", BALLS)
def test_a_path_over_the_radius(ball, intercept):
    problem = wide_problem(penalty=ball(), n=200, p=30, intercept=intercept)
    levels = [[problem.at_level(radius)] for radius in (0.5, 1.0, 2.0)]
    for (found,), (level,) in zip(multiplier_path(levels, Settings(tol=1e-6)), levels, strict=True):
        other = newton(level, tol=1e-9)
        assert found.converged
        assert found.at.value <= other.at.value + found.gap
        assert_decisions_hold(found, other.at.point, 1e-6)


@pytest.mark.parametrize("ball", BALLS)
def test_more_columns_than_a_gram_matrix_allows(ball):
    rng = np.random.default_rng(0)
    X = sparse.random_array((200, 6000), density=0.01, rng=rng, format="csr")
    y = np.sign(X[:, :400] @ rng.normal(size=400) + 1e-3)
    problem = make_problems(
        X, y, loss="squared_hinge", penalty=ball(2.0), alpha=1.0, fit_intercept=False
    ).problem
    ((found,),) = multiplier_path([[problem]], Settings(tol=1e-6))
    assert found.converged and found.relative_gap <= 1e-6


def test_norms_that_differ_by_a_rounding_end_the_search():
    """Their reciprocals may be equal."""
    rng = np.random.default_rng(304)
    X = rng.normal(size=(8, 1))
    y = 3 * X[:, 0] + rng.normal(size=8)
    ball = penalties.L2Ball(radius=2.313553220)
    problem = make_problems(
        X, y, loss="squared", penalty=ball, alpha=1.0, fit_intercept=False
    ).problem
    ((fit,),) = multiplier_path([[problem]], Settings(tol=1e-14, max_iter=50))
    assert fit.gap < 1e-10
