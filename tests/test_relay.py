"""Epochs that are not enough, and the Newton method that takes over."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer

from safesift import safe_path
from safesift.problem.inputs import make_problems
from safesift.problem.problem import Problem
from safesift.solvers import choose
from safesift.solvers import dual_descent as module
from safesift.solvers.base import Proposal
from safesift.solvers.costs import passes_of_a_gram
from safesift.solvers.newton import Newton
from safesift.solvers.records import Settings
from tests.laws.reference import optimum
from tests.solving import dual_descent, relay


def problem_of(n=120, p=30, alpha=1e-6, **more) -> Problem:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, p)) @ np.diag(np.geomspace(1, 0.02, p))
    y = np.sign(X @ rng.normal(size=p) + 0.05 * rng.normal(size=n))
    return make_problems(
        X,
        y,
        loss=more.pop("loss", "squared_hinge"),
        penalty="l2",
        alpha=alpha,
        **{"fit_intercept": False} | more,
    ).problem


@pytest.fixture
def impatient(monkeypatch):
    """Epochs get next to no time, as if Gram matrices were cheap."""
    monkeypatch.setattr(module, "passes_of_a_gram", lambda design, n_factors: 3)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_one_that_takes_over_ends_at_the_optimum(impatient, intercept):
    problem = problem_of(fit_intercept=intercept)
    ((short,),) = dual_descent([[problem]], Settings(1e-9, max_iter=3))
    assert not short.converged
    ((fit,),) = relay([[problem]], Settings(1e-9))
    assert fit.converged
    assert fit.at.value - optimum(problem).value <= fit.gap + 1e-12
    # what was done before it took over is counted
    assert fit.n_iter > short.n_iter == 3
    assert fit.history[-1].passes > fit.history[0].passes > 3
    seconds = [check.seconds for check in fit.history]
    assert seconds == sorted(seconds)


def test_it_goes_on_alone(impatient):
    """From the level where epochs are not enough on, several problems at a time."""
    problem = problem_of()
    others = problem_of(n=120, loss="squared_hinge", sample_weight=np.linspace(0.1, 1, 120))
    others = replace(others, risk=others.risk.on(problem.design))
    alphas = [1.0, 1e-5, 1e-6, 1e-7]
    levels = [[one.at_level(alpha) for one in (problem, others)] for alpha in alphas]
    path = list(relay(levels, Settings(1e-8)))
    assert [len(fits) for fits in path] == [2] * 4
    for level, fits in zip(levels, path, strict=True):
        for expected, fit in zip(level, fits, strict=True):
            assert fit.problem is expected
            assert fit.converged
            assert fit.at.value - optimum(expected).value <= fit.gap + 1e-12
    # no epochs at the last levels: Newton steps are few
    assert all(fit.n_iter <= 25 for fit in path[-1])


def test_steps_are_at_most_those_allowed(impatient):
    for most in (1, 2, 5):
        ((fit,),) = relay([[problem_of()]], Settings(1e-12, max_iter=most))
        assert fit.n_iter == most
        assert fit.history[-1].gap == fit.gap
        assert not fit.converged


def test_epochs_get_the_time_of_a_gram_matrix():
    """More columns make the matrix dearer."""
    few, many = (passes_of_a_gram(problem_of(n=300, p=p).design) for p in (20, 600))
    assert 1 <= few < many


def test_kinks_and_rows_of_mostly_zeros_are_relayed():
    assert choose(problem_of(n=20, p=2000, loss="hinge"), 1).name == "relay"
    assert choose(problem_of(n=20, p=6000, loss="hinge"), 1).name == "dual_descent"
    assert choose(few_entries(p=2000), 10).name == "relay"
    assert choose(few_entries(p=6000), 10).name == "dual_descent"
    assert choose(problem_of(n=20, p=2000), 10).name == "newton_cg"


def few_entries(p):
    X = sparse.random(400, p, density=0.01, format="csr", random_state=0)
    y = np.where(np.arange(400) % 2, 1.0, -1.0)
    how = {"loss": "squared_hinge", "penalty": "l2", "fit_intercept": False}
    return make_problems(X, y, alpha=1e-3, **how).problem


def test_a_path_of_small_alphas_converges():
    """Where a thousand epochs would not do."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1600)) / 40 + 2.0 * rng.normal(size=(400, 1))
    y = np.sign(rng.normal(size=400))
    path = safe_path(X, y, alphas=[1e-3, 1e-6, 1e-9], tol=1e-7, fit_intercept=False)
    assert (path.relative_gaps <= 1e-7).all()


def test_kinks_and_raw_columns_converge():
    """Along a path where a thousand epochs end nowhere near: columns of very different scale."""
    X, y = load_breast_cancer(return_X_y=True)
    X = np.hstack([X, X**2])
    problem = make_problems(X, y, loss="hinge", penalty="l2", alpha=1.0).problem
    levels = [[problem.at_level(alpha)] for alpha in np.geomspace(1e4, 1e-5, 8)]
    epochs = [fit for (fit,) in dual_descent(levels, Settings(1e-6))]
    both = [fit for (fit,) in relay(levels, Settings(1e-6))]
    assert not all(fit.converged for fit in epochs)
    assert all(fit.converged for fit in both)
    # half of the steps are for epochs, once; from then on there are none
    (handed_over,) = [k for k, fit in enumerate(both) if fit.n_iter > 500]
    assert all(fit.n_iter < 250 for fit in both[handed_over + 1 :])


def test_newton_begins_where_the_level_did_if_epochs_ended_further_away(monkeypatch):
    """As epochs do on columns of very different scale, one alpha after another."""
    began: list[float] = []
    steps = Newton.steps

    def noted(self, level):
        began.append(level.at.value)
        return steps(self, level)

    def astray(self, level, most=None):
        yield Proposal(point=np.full(level.problem.design.n_columns, 1e6))

    monkeypatch.setattr(Newton, "steps", noted)
    monkeypatch.setattr(module.DualDescent, "steps", astray)
    problem = problem_of(loss="hinge", alpha=1e-3)
    ((fit,),) = relay([[problem]], Settings(1e-6))
    assert fit.converged
    assert len(began) == 1 and began[0] <= problem.reference * (1 + 1e-9)
