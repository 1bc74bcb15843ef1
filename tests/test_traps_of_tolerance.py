"""A tolerance beyond rounding is recognised at once, met as far as possible, and said."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

import safesift as ss
from safesift.problem.certificate import Certificate
from safesift.problem.inputs import make_problems
from safesift.solvers import Fit, Screening, Settings, solve_path

CANCER, TUMOUR = load_breast_cancer(return_X_y=True)
CANCER = scale(CANCER)
BEYOND = 1e-16


def fitted(loss: str, penalty: str, solver: str = "auto", tol: float = BEYOND) -> Fit:
    problem = make_problems(CANCER, TUMOUR, loss=loss, penalty=penalty, alpha=1e-3).problem
    settings = Settings(tol, 1000, Screening.of("auto"), solver=solver)
    ((fit,),) = solve_path([[problem]], settings)
    return fit


@pytest.mark.parametrize(
    ("loss", "penalty", "solver"),
    [
        ("hinge", "l2", "dual_descent"),
        ("squared_hinge", "l1", "sparse_newton"),
        ("logistic", "l1", "sparse_newton"),
        ("hinge", "l1", "newton"),
    ],
)
def test_no_step_is_made_that_rounding_makes_worthless(loss, penalty, solver, monkeypatch):
    fit = fitted(loss, penalty, solver)
    assert fit.limited and not fit.converged
    # as small as whoever does not know of rounding gets it, in no more steps
    monkeypatch.setattr(Certificate, "attainable", 0.0)
    stubborn = fitted(loss, penalty, solver)
    assert fit.gap <= 1.3 * stubborn.gap
    assert fit.n_iter <= stubborn.n_iter


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("solver", ["dual_descent", "newton", "newton_cg"])
def test_smooth_losses_with_l2_know_no_such_tolerance(loss, solver):
    """Their gap is that of the gradient alone: nothing of the size of the objective cancels."""
    if (loss, solver) == ("logistic", "dual_descent"):
        pytest.skip("no dual steps in closed form")
    fit = fitted(loss, "l2", solver)
    assert fit.converged and fit.relative_gap <= BEYOND


def test_dual_steps_do_not_go_on_to_the_last(monkeypatch):
    assert fitted("hinge", "l2").n_iter < 100
    monkeypatch.setattr(Certificate, "attainable", 0.0)
    assert fitted("hinge", "l2").n_iter > 500


def test_a_tolerance_within_rounding_is_met():
    for tol in (1e-6, 1e-9, 1e-11):
        fit = fitted("hinge", "l2", tol=tol)
        assert fit.converged and fit.relative_gap <= tol


def test_it_is_said():
    said = "above tol=1e-16; rounding allows no less, so scale the features or the targets, or"
    with pytest.warns(ConvergenceWarning, match=f"SafeClassifier did not converge: .* {said}"):
        model = ss.SafeClassifier("hinge", alpha=1e-3, tol=BEYOND).fit(CANCER, TUMOUR)
    assert model.n_iter_ < 100
    with pytest.warns(ConvergenceWarning, match=f"safe_path did not converge for 2 of 2 .* {said}"):
        ss.safe_path(CANCER, TUMOUR, alphas=[1e-2, 1e-3], loss="hinge", tol=BEYOND)
    with pytest.warns(ConvergenceWarning, match=f"Kernel.* {said}"):
        ss.SafeKernelClassifier("hinge", alpha=1e-3, tol=BEYOND).fit(CANCER, TUMOUR)


def test_steps_that_are_used_up_are_no_rounding():
    with pytest.warns(ConvergenceWarning, match="increase max_iter"):
        ss.SafeClassifier("hinge", alpha=1e-3, max_iter=2).fit(CANCER, TUMOUR)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize("unit", [1e-14, 1e-20, 1e-60])
def test_where_nothing_can_be_proved_the_model_is_found_all_the_same(unit, penalty):
    """Targets so small that predictions are rounded by more than they are."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * rng.normal(size=300)
    how = {"loss": "squared", "penalty": penalty}
    plain = ss.SafeRegressor(alpha=1e-6, **how).fit(X, y)
    alpha = 1e-6 if penalty == "l2" else 1e-6 * unit
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tiny = ss.SafeRegressor(alpha=alpha, **how).fit(X, unit * y)
    np.testing.assert_allclose(tiny.coef_ / unit, plain.coef_, atol=1e-3)
