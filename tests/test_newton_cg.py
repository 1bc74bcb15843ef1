"""Truncated Newton steps against references, and the Newton solver on the Gram matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from scipy import sparse

from safesift.problem import Problem
from safesift.regions import REGIONS
from safesift.solvers.newton import newton
from safesift.solvers.newton_cg import conjugate_gradients, newton_cg
from safesift.solvers.records import Fit, Settings
from safesift.validation import make_problem
from tests.laws.problems import build, recipes
from tests.laws.reference import NotSolvedError, objective, optimum
from tests.laws.strategies import SMOOTH_NAMES
from tests.test_sparse_newton import KINDS, assert_decisions_hold, wide_problem


def fit(problem: Problem, **settings) -> Fit:
    ((fit,),) = newton_cg([[problem]], Settings(**settings))
    return fit


@given(recipe=recipes(loss=SMOOTH_NAMES, penalty=["l2"]))
def test_against_references(recipe):
    problem = build(recipe)
    try:
        best = optimum(problem)
    except NotSolvedError:
        assume(False)
    found = fit(problem, tol=1e-7)
    size = 1.0 + abs(best.value)
    assert found.solution.converged, (found.solution.relative_gap, found.solution.n_iter)
    value = objective(problem, found.solution.at.point)
    assert value <= best.value + found.solution.gap + 1e-9 * size
    assert best.value >= value - found.solution.gap - 1e-12 * size
    assert_decisions_hold(found, best.point, 1e-7 * (1 + np.abs(best.point).max()))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_storage_and_intercept(kind, intercept):
    problem = wide_problem(penalty="l2", kind=KINDS[kind], intercept=intercept, weighted=True)
    found, other = fit(problem, tol=1e-10), newton(problem, tol=1e-12)
    assert found.solution.converged
    np.testing.assert_allclose(found.solution.at.point, other.at.point, atol=1e-4)
    assert found.solution.at.value == pytest.approx(other.at.value, rel=1e-9)
    assert_decisions_hold(found, other.at.point, 1e-9)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "safe_logistic", "huber"])
def test_a_path_with_far_more_columns_than_a_gram_matrix_allows(loss):
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 8000), density=0.01, rng=rng, format="csr")
    y = np.sign(X[:, :400] @ rng.normal(size=400) + 1e-3)
    problem = make_problem(X, y, loss=loss, penalty="l2", alpha=1.0).problem
    alphas = np.geomspace(1e-2, 1e-4, 5)
    path = list(newton_cg([[problem.at_level(a)] for a in alphas], Settings(tol=1e-8)))
    for (found,), alpha in zip(path, alphas, strict=True):
        assert found.solution.converged and found.solution.relative_gap <= 1e-8
        # x = −Aᵀ(s∘ν)/(alpha·W) at the optimum
        dual_point = -X.T @ (found.problem.shares * found.solution.at.nu) / alpha
        np.testing.assert_allclose(found.coef, dual_point, atol=1e-2 * np.abs(found.coef).max())
    if loss == "squared_hinge":
        assert path[-1][0].undecided.mean() < 0.3


def test_screening_does_not_change_the_model():
    problem = wide_problem(penalty="l2", n=400, p=60)
    fits = [fit(problem, tol=1e-12, screening=how) for how in ("auto", None, REGIONS["auto"]())]
    for other in fits[1:]:
        np.testing.assert_allclose(other.coef, fits[0].coef, atol=1e-6)
    assert not (fits[0].decisions.dropped & (fits[1].solution.at.nu != 0)).any()


def test_max_iter_is_respected_and_the_gap_still_certified():
    problem = wide_problem(penalty="l2")
    best = newton(problem, tol=1e-12).at.value
    for max_iter in (0, 1, 2):
        rough = fit(problem, tol=1e-12, max_iter=max_iter)
        assert rough.solution.n_iter <= max_iter and not rough.solution.converged
        assert rough.solution.at.value - best <= rough.solution.gap


def test_conjugate_gradients_stop_where_asked():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 20))
    H, right = A.T @ A + np.eye(20), rng.normal(size=20)
    rough = conjugate_gradients(H.dot, right, np.diag(H), enough=0.5 * float(right @ right))
    assert np.linalg.norm(H @ rough - right) <= 0.71 * np.linalg.norm(right)
    found = conjugate_gradients(H.dot, right, np.diag(H), enough=0.0)
    assert np.linalg.norm(H @ found - right) <= 0.05 * np.linalg.norm(right)
    flat = conjugate_gradients(np.zeros_like, right, np.ones(20), enough=0.0)
    assert np.isfinite(flat).all()
