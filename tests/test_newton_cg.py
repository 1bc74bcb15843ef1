"""Truncated Newton steps against references, and the Newton solver on the Gram matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse

from safesift.problem.inputs import make_problems
from safesift.problem.passes import alone
from safesift.problem.problem import Problem
from safesift.regions import REGIONS
from safesift.solvers import Fit, Screening, Settings, choose
from safesift.solvers import newton_cg as module
from safesift.solvers.conjugate_gradients import conjugate_gradients
from tests.laws.problems import recipes
from tests.laws.strategies import SMOOTH_NAMES
from tests.solving import newton, newton_cg
from tests.test_sparse_newton import KINDS, assert_decisions_hold, assert_solves, wide_problem


def fit(problem: Problem, **settings) -> Fit:
    ((fit,),) = newton_cg([[problem]], Settings(**settings))
    return fit


@given(recipe=recipes(loss=SMOOTH_NAMES, penalty=["l2"]))
def test_against_references(recipe):
    assert_solves(fit, recipe, tol=1e-7, room=1e-9, point_room=1e-7)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_storage_and_intercept(kind, intercept):
    problem = wide_problem(penalty="l2", kind=KINDS[kind], intercept=intercept, weighted=True)
    found, other = fit(problem, tol=1e-10), newton(problem, tol=1e-12)
    assert found.converged
    np.testing.assert_allclose(found.at.point, other.at.point, atol=1e-4)
    assert found.at.value == pytest.approx(other.at.value, rel=1e-9)
    assert_decisions_hold(found, other.at.point, 1e-9)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "safe_logistic", "huber"])
def test_a_path_with_far_more_columns_than_a_gram_matrix_allows(loss):
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 8000), density=0.01, rng=rng, format="csr")
    y = np.sign(X[:, :400] @ rng.normal(size=400) + 1e-3)
    problem = make_problems(X, y, loss=loss, penalty="l2", alpha=1.0, fit_intercept=False).problem
    alphas = np.geomspace(1e-2, 1e-4, 5)
    path = list(newton_cg([[problem.at_level(a)] for a in alphas], Settings(tol=1e-8)))
    for (found,), alpha in zip(path, alphas, strict=True):
        assert found.converged and found.relative_gap <= 1e-8
        # x = −Aᵀ(s∘ν)/(alpha·W) at the optimum
        dual_point = -X.T @ (found.problem.shares * found.at.nu) / alpha
        np.testing.assert_allclose(found.coef, dual_point, atol=1e-2 * np.abs(found.coef).max())
    if loss == "squared_hinge":
        assert path[-1][0].undecided.mean() < 0.3


def test_screening_does_not_change_the_model():
    problem = wide_problem(penalty="l2", n=400, p=60)
    fits = [
        fit(problem, tol=1e-12, screening=Screening.of(how))
        for how in ("auto", None, REGIONS["auto"]())
    ]
    for other in fits[1:]:
        np.testing.assert_allclose(other.coef, fits[0].coef, atol=1e-6)
    assert not (fits[0].decisions.dropped & (fits[1].at.nu != 0)).any()


def test_max_iter_is_respected_and_the_gap_still_certified():
    problem = wide_problem(penalty="l2")
    best = newton(problem, tol=1e-12).at.value
    for max_iter in (0, 1, 2):
        rough = fit(problem, tol=1e-12, max_iter=max_iter)
        assert rough.n_iter <= max_iter and not rough.converged
        assert rough.at.value - best <= rough.gap


def test_conjugate_gradients_stop_where_asked():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 20))
    H, right = A.T @ A + np.eye(20), rng.normal(size=20)

    def scaled(v):
        return v / np.diag(H)

    def image(v):
        yield from ()
        return H @ v

    def nothing(v):
        yield from ()
        return np.zeros_like(v)

    enough = 0.5 * float(right @ right)
    rough = alone(conjugate_gradients(image, right, scaled, enough=enough)).solution
    assert np.linalg.norm(H @ rough - right) <= 0.71 * np.linalg.norm(right)
    found, solved = alone(conjugate_gradients(image, right, scaled, enough=0.0))
    assert solved
    assert np.linalg.norm(H @ found - right) <= 0.05 * np.linalg.norm(right)
    flat, solved = alone(conjugate_gradients(nothing, right, np.copy, enough=0.0))
    assert np.isfinite(flat).all() and not solved


def curved_problem(times=1, **options):
    """Columns of very different lengths, at a small alpha: many products by the diagonal."""
    rng, p = np.random.default_rng(5), 120 * times
    X = rng.normal(size=(300, p)) @ (np.eye(p) + 0.5 * rng.normal(size=(p, p)))
    y = np.sign(X[:, 0] + 5.0 * rng.normal(size=300))
    options = {
        "loss": "logistic",
        "penalty": "l2",
        "alpha": 1e-6,
        "fit_intercept": False,
        **options,
    }
    return make_problems(X, y, **options).problem


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "safe_logistic"])
def test_a_gram_matrix_spares_products(monkeypatch, loss, intercept):
    problem = curved_problem(loss=loss, fit_intercept=intercept)
    levels = [[problem.at_level(alpha)] for alpha in (1e-3, 1e-5, 1e-6)]
    best = [newton(level[0], tol=1e-12).at.value for level in levels]
    counts, product = {}, module.NewtonSystem.product

    def counted(system, v):
        counts[patience] += 1
        return product(system, v)

    monkeypatch.setattr(module.NewtonSystem, "product", counted)
    for patience in (10, 10**9):
        counts[patience] = 0
        monkeypatch.setattr(module, "passes_of_a_gram", lambda design, k=patience: k)
        fits = [one for (one,) in newton_cg(levels, Settings(1e-8))]
        assert all(one.converged for one in fits)
        for one, value in zip(fits, best, strict=True):
            assert one.at.value - value <= one.gap + 1e-13
    assert counts[10] < 0.5 * counts[10**9]


def test_a_matrix_that_cannot_be_factored_is_not_used(monkeypatch):
    monkeypatch.setattr(module, "passes_of_a_gram", lambda design: 1)
    monkeypatch.setattr(module, "_inverse", lambda gram, ridge: None)
    assert fit(curved_problem(alpha=1e-3), tol=1e-6).converged


def test_a_matrix_that_leads_nowhere_is_given_up(monkeypatch):
    """One that is far from the system: as for the diagonal, but for what trying it cost."""
    monkeypatch.setattr(module, "passes_of_a_gram", lambda design: 1)
    broken = np.diag(np.where(np.arange(120) % 2, 1.0, -1.0))
    monkeypatch.setattr(module, "_inverse", lambda gram, ridge: broken.dot)
    problem = curved_problem(alpha=1e-3)
    found = fit(problem, tol=1e-6)
    assert found.converged
    assert found.at.value - newton(problem, tol=1e-12).at.value <= found.gap


def test_losses_that_curve_go_here():
    assert choose(curved_problem(times=4), 1).name == "newton_cg"
    assert choose(curved_problem(times=4, fit_intercept=True), 1).name == "newton_cg"
    assert choose(curved_problem(times=4, loss="safe_logistic"), 1).name == "newton_cg"
    # a matrix that hardly changes from step to step is worth its price, and decides more rows
    assert choose(curved_problem(loss="squared_hinge"), 1).name == "newton"
