"""Steps from column to column, for sparse rows and many features."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse

from safesift import penalties, safe_path
from safesift.arithmetic.tally import counting
from safesift.problem.inputs import make_problems
from safesift.solvers import column_model
from safesift.solvers import sparse_newton as module
from safesift.solvers.column_model import Accuracy, ColumnModel, Face, Reached, _Descent
from safesift.solvers.records import Settings
from tests.laws.problems import recipes
from tests.laws.strategies import SMOOTH_NAMES
from tests.solving import newton, sparse_newton
from tests.test_sparse_newton import assert_solves, fit, wide_problem


@pytest.fixture(autouse=True)
def by_columns(monkeypatch):
    """However few features there are."""
    monkeypatch.setattr(module, "_WIDE", 0)
    monkeypatch.setattr(module, "_MANY", 0)
    monkeypatch.setattr(module, "_ENTRIES", dict.fromkeys((False, True), np.inf))


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


@pytest.mark.parametrize("intercept", [False, True])
def test_the_problem_in_some_features_is_minimised(intercept):
    """No slope is off by more than asked for, of the features that may change."""
    problem = wide_problem(alpha=0.01, kind=sparse.csr_array, intercept=intercept)
    at = problem.evaluate(problem.constant_point)
    may = np.arange(400) % 3 == 0
    found = ColumnModel(problem.design).minimiser(problem, at, may, Accuracy(0.0, 1e-6))
    coef, _ = problem.split(found.point)
    assert not coef[~may].any() and np.count_nonzero(coef) > 5
    reached = problem.evaluate(found.point)
    assert found.settled
    assert found.gain == pytest.approx(at.value - reached.value, rel=1e-9) and found.gain > 0
    slopes, first = reached.loss_gradient[:400], np.abs(at.loss_gradient[:400][may]).max() - 0.01
    moved, still = may & (coef != 0), may & (coef == 0)
    np.testing.assert_allclose(slopes[moved], -0.01 * np.sign(coef[moved]), atol=1e-5 * first)
    assert (np.abs(slopes[still]) <= 0.01 + 1e-5 * first).all()
    assert np.abs(reached.loss_gradient[400:]).max(initial=0.0) <= 1e-5 * first


def test_models_that_lead_uphill_are_followed_as_far_as_they_lead_down(monkeypatch):
    """Far out the logistic loss hardly curves, and its model knows nothing of where it does."""
    shortened, right = [], _Descent._between
    monkeypatch.setattr(
        _Descent, "_between", lambda self, *ends: (shortened.append(1), right(self, *ends))[1]
    )
    problem = wide_problem("logistic", alpha=0.003, kind=sparse.csr_array)
    everything = np.ones(400, dtype=bool)
    for far in (1.0, 3.0):
        at = problem.evaluate(np.full(400, far))
        found = ColumnModel(problem.design).minimiser(problem, at, everything, Accuracy(0.0, 1e-3))
        assert found.gain > 0.5 * at.value
        assert found.gain == pytest.approx(at.value - problem.primal(found.point), rel=1e-9)
    assert shortened


def test_steps_that_creep_are_made_by_the_matrix(monkeypatch):
    """A gain each time, and never there: not for hundreds of steps."""
    monkeypatch.setattr(column_model, "_MOST_EPOCHS", 1)
    problem = wide_problem(kind=sparse.csr_array)
    by_matrix, right = [], module.SparseNewton._step_by_gram
    monkeypatch.setattr(
        module.SparseNewton,
        "_step_by_gram",
        lambda self, *a: (by_matrix.append(1), right(self, *a))[1],
    )
    found = fit(problem, tol=1e-8)
    assert found.converged and by_matrix and found.n_iter < 10


@pytest.mark.parametrize("seed", [1, 3, 8])
def test_steps_that_creep_end_once_the_gap_is_small_enough(seed):
    """Columns that are nearly the same: what the matrix would gain was not asked for."""
    rng = np.random.default_rng(seed)
    X = 1.0 + 10.0 ** rng.uniform(-7, -4) * rng.normal(size=(30, 50))
    problem = make_problems(
        sparse.csr_array(X), rng.normal(size=30), loss="squared_epsilon_insensitive",
        penalty="l1", alpha=1.0, fit_intercept=False, sample_weight=None,
    ).problem  # fmt: skip
    steepest = np.abs(problem.smooth_gradient(problem.evaluate(problem.constant_point))).max()
    found = fit(problem.at_level(0.3 * steepest), tol=4e-6)
    assert found.converged and found.n_iter < 10


def test_no_pass_is_needed_from_model_to_model():
    """Columns outside of the chosen features are not read again."""
    problem = wide_problem("safe_logistic", alpha=0.003, kind=sparse.csr_array)
    at, few = problem.evaluate(problem.constant_point), np.arange(400) < 4
    ColumnModel(problem.design)._design.by_columns  # noqa: B018  # made once
    with counting() as tally:
        ColumnModel(problem.design).minimiser(problem, at, few, Accuracy(0.0, 1e-8))
    assert 0 < tally.rows / problem.design.n_samples < 4


def descent(intercept=False, penalty="l1"):
    """In the middle of a model."""
    problem = wide_problem(penalty=penalty, alpha=0.01, kind=sparse.csr_array, intercept=intercept)
    at = problem.evaluate(fit(problem, tol=1e-2).at.point)
    return _Descent(problem.design, problem, at, np.ones(400, dtype=bool))


@pytest.mark.parametrize("penalty", ["l1", penalties.ElasticNet(0.7)], ids=str)
def test_the_intercept_is_at_its_best_all_the_way(penalty):
    """A step on a coefficient takes it along, and is as long as that allows."""
    one = descent(True, penalty)
    one._shift()
    for k in (3, 7, 100):
        before = one._model_value(one._state)
        one._epoch(np.array([k]))
        slope = one._pull + one._weights @ one._moved
        assert abs(slope) <= 1e-12 * one._bend
        assert one._model_value(one._state) <= before + 1e-15
        # a second step on the same coefficient finds nothing left to do
        assert one._epoch(np.array([k])) <= 1e-12


def test_predictions_are_those_of_the_coefficients():
    one = descent(True)
    started = one._problem.join(one._coef.copy(), one._intercept)
    for _ in range(3):
        one._epoch(np.arange(400))
    one._slide(np.flatnonzero(one._coef))
    reached = one._problem.join(one._coef, one._intercept)
    np.testing.assert_allclose(
        one._moved, one._design.matvec(reached - started), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("intercept", [False, True])
def test_extrapolation_goes_down_and_keeps_predictions(intercept):
    one = descent(intercept)
    started, which, ahead = one._point, np.flatnonzero(one._coef), 0
    for _ in range(4):
        states = [one._state]
        for _ in range(3):
            one._epoch(which)
            states.append(one._state)
        plain = one._model_value(one._state)
        one._extrapolate(states)
        ahead += one._model_value(one._state) < plain
        assert one._model_value(one._state) <= plain
    assert ahead
    np.testing.assert_allclose(
        one._moved, one._design.matvec(one._point - started), rtol=1e-9, atol=1e-12
    )
    # where nothing moves there is nowhere to go
    here = one._state
    one._extrapolate([here, here])
    assert one._model_value(one._state) == one._model_value(here)


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
        ColumnModel,
        "minimiser",
        lambda self, problem, at, features, accuracy: Reached(at.point, 0.0, True),
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
        paths[many] = safe_path(X, y, alphas=alphas, penalty="l1", tol=1e-9, fit_intercept=False)
        assert (paths[many].relative_gaps <= 1e-9).all()
    np.testing.assert_allclose(paths[0].coefs, paths[10**6].coefs, atol=2e-3)


def test_rows_that_pull_and_do_not_curve_are_left_to_the_matrix(monkeypatch):
    """A column of outliers of Huber's loss has no curvature: a model would send it to infinity."""
    monkeypatch.setattr(ColumnModel, "minimiser", None)
    problem = wide_problem("huber", kind=sparse.csr_array)
    assert fit(problem, tol=1e-8).converged
