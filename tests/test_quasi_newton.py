"""Starts from a sample, quick steps from there, and the products that they spare."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from safesift.design import as_design, blocks
from safesift.losses import LOSSES
from safesift.penalties import L2
from safesift.problem.inputs import make_problems
from safesift.problem.passes import ColumnsSq, CurvatureProduct
from safesift.problem.problem import Problem
from safesift.problem.risk import Risk
from safesift.solvers import Settings, newton_cg
from safesift.solvers.quasi_newton import Memory
from safesift.solvers.sampling import OnASample, Sampled, rows_of_a_sample
from tests.solving import newton
from tests.solving import newton_cg as path_by_newton_cg

STORAGES = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "CSR": sparse.csr_matrix,
    "integers": lambda X: np.round(X).astype(np.int64),
}


def made(n=4000, p=12, loss="logistic", alpha=1e-3, seed=0, **how):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * np.geomspace(1.0, 0.05, p)
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0.2, 1.0, -1.0)
    how = {"fit_intercept": True, "penalty": "l2"} | how
    return make_problems(X, y, loss=loss, alpha=alpha, **how).problem


# --- products with the curvature ----------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", STORAGES)
def test_products_are_those_of_the_matrix(storage, intercept, monkeypatch):
    """Over several blocks and tasks, with rows that have no weight."""
    monkeypatch.setattr(blocks, "_TASK_ENTRIES", 500)
    rng = np.random.default_rng(1)
    X = STORAGES[storage](3.0 * rng.normal(size=(301, 7)))
    dense = X.toarray() if sparse.issparse(X) else X.astype(float)
    A = np.column_stack([dense, np.ones(301)]) if intercept else dense
    weights = rng.exponential(size=301) * (rng.random(301) < 0.6)
    v, w = rng.normal(size=(2, A.shape[1]))
    design = as_design(X, intercept)
    one = CurvatureProduct(design, v, weights)
    (alone,) = CurvatureProduct.answered([one])
    np.testing.assert_allclose(alone, A.T @ (weights * (A @ v)), rtol=1e-12, atol=1e-12)
    two = [ColumnsSq(design, weights), ColumnsSq(design, weights[::-1].copy())]
    for asked in (two[:1], two[1:], two):
        for request, squares in zip(asked, ColumnsSq.answered(asked), strict=True):
            np.testing.assert_allclose(squares, request.weights @ A**2, rtol=1e-12, atol=1e-12)
    both = CurvatureProduct.answered([one, replace(one, v=w, weights=weights[::-1].copy())])
    np.testing.assert_allclose(both[0], alone, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(both[1], A.T @ (weights[::-1] * (A @ w)), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", STORAGES)
def test_some_rows_are_read_where_they_lie(storage, intercept, monkeypatch):
    """Products and evaluations of a choice of rows, of some of those, and of a copy of them."""
    monkeypatch.setattr(blocks, "_TASK_ENTRIES", 500)
    rng = np.random.default_rng(6)
    X = STORAGES[storage](3.0 * rng.normal(size=(301, 7)))
    whole, rows = as_design(X, intercept), np.flatnonzero(rng.random(301) < 0.7)
    x = rng.normal(size=whole.n_columns)
    weights, y = rng.exponential(size=len(rows)), np.where(rng.random(len(rows)) < 0.5, 1.0, -1.0)
    expected = _seen(whole.take(rows), x, weights, y)
    for some in (whole.only(rows), whole.hold(rows), whole.only(np.arange(301)).only(rows)):
        for one, other in zip(_seen(some, x, weights, y), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def _seen(design, x, weights, y):
    (product,) = CurvatureProduct.answered([CurvatureProduct(design, x, weights)])
    problem = Problem(Risk.of(design, LOSSES["squared_hinge"](), y, weights), L2(), 1e-2)
    at = problem.evaluate(x)
    return product, at.pred, at.nu, at.subgradient, at.value, design.gram(weights)


# --- the memory of steps ------------------------------------------------------------------------


def test_what_is_remembered_is_exact_along_the_last_step():
    """The secant equation, whatever the preconditioner is."""
    rng = np.random.default_rng(2)
    root = rng.normal(size=(6, 6))
    H = root @ root.T + np.eye(6)
    memory = Memory()
    for change in rng.normal(size=(4, 6)):
        memory.add(change, H @ change)
        found = memory.solve(H @ change, lambda v: 0.3 * v)
        np.testing.assert_allclose(found, change, atol=1e-9)


def test_steps_along_which_nothing_bends_are_forgotten():
    memory, change = Memory(), np.array([1.0, -2.0])
    memory.add(change, np.zeros(2))
    memory.add(change, -change)
    np.testing.assert_array_equal(memory.solve(change, lambda v: 2.0 * v), 2.0 * change)


# --- samples ------------------------------------------------------------------------------------


def sampled(*problems: Problem) -> list[Sampled | None]:
    return OnASample.answered([OnASample(one, Settings(1e-6)) for one in problems])


def test_few_rows_are_not_sampled():
    assert rows_of_a_sample(made(n=4000)) == 250
    assert rows_of_a_sample(made(n=2900)) == 0
    assert rows_of_a_sample(made(n=4000, p=200)) == 0
    assert sampled(made(n=2900), made(n=2900)) == [None, None]


def test_rows_without_weight_are_not_in_a_sample():
    weights = (np.arange(4000) < 3100).astype(float)
    problem = made(sample_weight=weights)
    (found,) = sampled(problem)
    assert found is not None
    assert (found.problem.weights > 0).all()
    assert rows_of_a_sample(made(sample_weight=weights * (np.arange(4000) < 2900))) == 0


def test_the_penalty_of_a_sample_weighs_as_much_as_a_few_rows():
    """Not more than that of all rows does, and where it weighs more already its alpha stays."""
    for alpha in (1e-1, 1e-3, 1e-6):
        problem = made(alpha=alpha)
        (found,) = sampled(problem)
        rows = found.problem.risk.rows
        a_row = float(rows.columns_sq.sum()) * problem.loss.smoothness / len(rows.weights)
        share = len(rows.weights) / problem.design.n_samples
        assert found.problem.alpha == pytest.approx(max(alpha, min(2.0 * a_row, alpha / share)))
    assert found.problem.alpha > problem.alpha
    (found,) = sampled(made(alpha=1e-6, penalty="l1"))
    assert found.problem.alpha == 1e-6


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_classes_share_a_sample_and_folds_do_not(loss):
    """Each is about the solution of its own targets on those rows, whoever else is asked for."""
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(4000, 6)), rng.integers(0, 3, 4000)
    y[X[:, 0] > 0.5] = 0
    inputs = make_problems(X, y, loss=loss, penalty="l2", alpha=1e-3, fit_intercept=True)
    classes = list(inputs.problems)
    weights = (np.arange(4000) % 5 != 0).astype(float)
    fold = replace(classes[0], risk=classes[0].risk.reweighted(weights))
    found = sampled(classes[0], fold, *classes[1:])
    rows = [one.problem.risk.rows for one in found]
    assert len(classes) == 3 and rows[0] is rows[2] is rows[3] is not rows[1]
    for one, (alone,) in zip(found, map(sampled, [classes[0], fold, *classes[1:]]), strict=True):
        np.testing.assert_array_equal(one.problem.y, alone.problem.y)
        best = newton(one.problem, tol=1e-10).at.value
        for at in (one.at, alone.at):
            assert at.value - best <= 2e-3 * one.problem.reference


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "safe_logistic"])
@pytest.mark.parametrize("alpha", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("intercept", [False, True])
def test_quick_steps_end_where_newton_steps_do(loss, alpha, intercept):
    problem = made(loss=loss, alpha=alpha, fit_intercept=intercept)
    ((fit,),) = path_by_newton_cg([[problem]], Settings(tol=1e-8))
    assert fit.converged
    exact = newton(problem, tol=1e-12)
    assert fit.at.value - exact.at.value <= fit.gap
    assert (exact.at.nu[fit.decisions.dropped] == 0).all()


def test_a_sample_that_is_learnt_by_heart_is_left_alone(monkeypatch):
    """Labels that nothing predicts: its solution is worse for all rows than a constant."""
    used = []
    monkeypatch.setattr(newton_cg.Preconditioner, "adopt", lambda *args: used.append(args) or ())
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(4000, 120)), np.where(rng.random(4000) < 0.5, 1.0, -1.0)
    problem = make_problems(X, y, loss="squared_hinge", penalty="l2", alpha=1e-6).problem
    assert rows_of_a_sample(problem) == 250
    ((fit,),) = path_by_newton_cg([[problem]], Settings(tol=1e-8))
    assert fit.converged
    assert not used


def test_columns_that_a_sample_knows_nothing_of():
    """A column with three entries: none of them is among the rows that are drawn."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(5000, 5))
    rare = np.zeros(5000)
    rare[[17, 1234, 4444]] = 1.0
    y = np.where(X[:, 0] + rng.normal(size=5000) > 0, 1.0, -1.0)
    X = np.column_stack([X, rare, np.zeros(5000)])
    problem = make_problems(X, y, loss="logistic", penalty="l2", alpha=1e-9).problem
    ((fit,),) = path_by_newton_cg([[problem]], Settings(tol=1e-8))
    assert fit.converged
    assert fit.at.value - newton(problem, tol=1e-12).at.value <= fit.gap


def test_a_preconditioner_that_misleads_costs_steps_only(monkeypatch):
    """Quick steps give up, and conjugate gradients find their own way."""
    upside_down = np.diag(np.geomspace(1.0, 1e6, 13))
    monkeypatch.setattr(newton_cg, "_inverse", lambda gram, ridge: upside_down.dot)
    problem = made()
    ((fit,),) = path_by_newton_cg([[problem]], Settings(tol=1e-8))
    assert fit.converged
    assert fit.at.value - newton(problem, tol=1e-12).at.value <= fit.gap
