"""Steps from column to column, for sparse rows and many features."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse

from safesift import penalties, safe_path
from safesift.solvers import sparse_newton as module
from safesift.solvers.column_model import Accuracy, ColumnModel, Face, _Descent
from safesift.solvers.records import Settings
from tests.laws.problems import recipes
from tests.laws.strategies import SMOOTH_NAMES
from tests.solving import newton, sparse_newton
from tests.test_sparse_newton import assert_solves, fit, wide_problem


@pytest.fixture(autouse=True)
def by_columns(monkeypatch):
    """However few features there are."""
    monkeypatch.setattr(module, "_MANY", 0)


@settings(max_examples=120)
@given(recipe=recipes(loss=SMOOTH_NAMES, penalty=["l1", "elastic_net"], sparse=True))
def test_against_conic_optima(recipe):
    assert_solves(fit, recipe, tol=1e-7, room=1e-8, point_room=1e-4)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
@pytest.mark.parametrize("penalty", ["l1", penalties.ElasticNet(0.7)], ids=str)
@pytest.mark.parametrize("loss", ["squared_hinge", "safe_logistic", "logistic", "squared"])
def test_the_same_model(loss, penalty, dtype, intercept):
    def kind(X):
        return sparse.csr_array((3 * X).astype(dtype))

    problem = wide_problem(loss, penalty, 0.03, intercept=intercept, weighted=True, kind=kind)
    found = fit(problem, tol=1e-9)
    expected = newton(problem, tol=1e-11)
    assert found.converged
    np.testing.assert_allclose(found.at.point, expected.at.point, atol=2e-4)
    assert found.at.value - expected.at.value <= found.gap


def test_a_model_is_minimised():
    """No slope is off by more than asked for, of the features that may change."""
    problem = wide_problem(alpha=0.01, kind=sparse.csr_array)
    at = problem.evaluate(np.zeros(400))
    may = np.arange(400) % 3 == 0
    point = ColumnModel(problem.design).minimiser(problem, at, may, Accuracy(0.0, 1e-6))
    assert not point[~may].any() and np.count_nonzero(point) > 5
    weights = problem.shares * problem.loss.curvature(at.pred, problem.y)
    slopes = at.loss_gradient + problem.design.rmatvec(weights * problem.design.matvec(point))
    first = np.abs(at.loss_gradient[may]).max() - 0.01
    moved, still = may & (point != 0), may & (point == 0)
    np.testing.assert_allclose(slopes[moved], -0.01 * np.sign(point[moved]), atol=1e-5 * first)
    assert (np.abs(slopes[still]) <= 0.01 + 1e-5 * first).all()


@pytest.mark.parametrize("intercept", [False, True])
def test_a_slide_sees_the_curvature_of_all_rows(intercept, monkeypatch):
    """It reads those that curve, and moves the predictions of the others as well."""
    faces, slide = [], Face.slide
    monkeypatch.setattr(Face, "slide", lambda self: (faces.append(self), slide(self))[1])
    problem = wide_problem(alpha=0.01, kind=sparse.csr_array, intercept=intercept)
    design = problem.design
    at = problem.evaluate(fit(problem, tol=1e-2).at.point)
    weights = problem.shares * problem.loss.curvature(at.pred, problem.y)
    assert 0 < np.count_nonzero(weights) < len(weights)
    descent = _Descent(design, problem, at, np.ones(400, dtype=bool))
    which = np.flatnonzero(descent._coef)
    descent._slide(which)
    face = faces[-1]
    columns = np.append(which, 400)[: len(face.coef)]
    change = np.random.default_rng(0).normal(size=len(columns))
    whole = np.zeros(design.n_columns)
    whole[columns] = change
    curved = weights @ design.matvec(whole) ** 2
    assert face.weights @ face.rows.matvec(change) ** 2 == pytest.approx(curved, rel=1e-12)
    reached = problem.join(descent._coef, descent._intercept)
    assert (reached != at.point).any()
    np.testing.assert_allclose(
        descent._moved, design.matvec(reached - at.point), rtol=1e-9, atol=1e-12
    )


def test_passes_are_counted():
    problem = wide_problem(kind=sparse.csr_array)
    found = fit(problem, tol=1e-8)
    # besides the passes of the solver there are those of the epochs
    assert found.history[-1].passes > 2 * found.n_iter


def test_steps_that_lead_nowhere_are_made_by_the_matrix(monkeypatch):
    problem = wide_problem(kind=sparse.csr_array)
    monkeypatch.setattr(
        ColumnModel, "minimiser", lambda self, problem, at, features, accuracy: at.point
    )
    found = fit(problem, tol=1e-8)
    assert found.converged
    # and every level tries again
    levels = [[problem.at_level(alpha)] for alpha in (0.1, 0.05)]
    assert all(one.converged for (one,) in sparse_newton(levels, Settings(1e-8)))


def test_a_path_with_many_features(monkeypatch):
    """By columns and by the matrix: the same models."""
    rng = np.random.default_rng(1)
    X = sparse.random_array((400, 900), density=0.05, rng=rng, format="csr")
    y = np.sign(X @ rng.normal(size=900) + 0.1 * rng.normal(size=400))
    alphas = [1e-3, 1e-4]
    paths = {}
    for many in (0, 10**6):
        monkeypatch.setattr(module, "_MANY", many)
        monkeypatch.setattr(module, "_MANY_FROM_AFAR", many)
        paths[many] = safe_path(X, y, alphas=alphas, penalty="l1", tol=1e-9, fit_intercept=False)
        assert (paths[many].relative_gaps <= 1e-9).all()
    np.testing.assert_allclose(paths[0].coefs, paths[10**6].coefs, atol=2e-3)


def test_rows_that_pull_and_do_not_curve_are_left_to_the_matrix(monkeypatch):
    """A column of outliers of Huber's loss has no curvature: a model would send it to infinity."""
    monkeypatch.setattr(ColumnModel, "minimiser", None)
    problem = wide_problem("huber", kind=sparse.csr_array)
    assert fit(problem, tol=1e-8).converged
