"""Which solver a problem goes to, by itself and by name."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification

import safesift as ss
from safesift.problem.inputs import make_problems
from safesift.solvers import SOLVERS, choose

X, Y = make_classification(200, 8, random_state=0)
TEXTS = 0.1 * sparse.random_array((200, 6000), density=0.02, rng=0, format="csr")


def problem(loss="squared_hinge", penalty="l2", p=8, rows=None, **how):
    if rows is None:
        rows = X if p == 8 else np.zeros((200, p))
    return make_problems(
        rows, Y, loss=loss, penalty=penalty, alpha=1e-2, **{"fit_intercept": False} | how
    ).problem


@pytest.mark.parametrize(
    ("expected", "how"),
    [
        ("newton", {}),
        ("newton", {"fit_intercept": True}),
        ("newton", {"penalty": "l2_ball"}),
        ("newton", {"penalty": "l1", "loss": "hinge"}),
        ("relay", {"loss": "hinge"}),
        ("dual_descent", {"loss": "hinge", "p": 6000}),
        ("newton_cg", {"p": 600}),
        ("newton_cg", {"p": 600, "fit_intercept": True}),
        ("sparse_newton", {"penalty": "l1"}),
        ("sparse_newton", {"penalty": "elastic_net", "loss": "logistic", "p": 3000}),
        ("newton_cg", {"loss": "logistic", "p": 300}),
        ("newton_cg", {"loss": "safe_logistic", "p": 6000}),
        ("dual_descent", {"loss": "logistic", "rows": TEXTS}),
        ("newton_cg", {"loss": "logistic", "rows": 1e3 * TEXTS}),
        ("multiplier", {"penalty": "l1_ball", "p": 6000}),
    ],
)
def test_the_least_cost_among_those_that_suit(expected, how):
    assert choose(problem(**how), 1).name == expected


def test_every_name_that_suits_gives_the_same_model():
    models = {
        name: ss.SafeClassifier(alpha=1e-2, fit_intercept=False, tol=1e-9, solver=name).fit(X, Y)
        for name, solver in SOLVERS.items()
        if not solver.refusal(problem())
    }
    assert {"newton", "newton_cg", "dual_descent", "relay"} <= set(models)
    for model in models.values():
        np.testing.assert_allclose(model.coef_, models["newton"].coef_, atol=1e-4)


def test_names_are_refused_with_the_reason():
    with pytest.raises(ValueError, match=r"solver='dual_decent' is not known.*'dual_descent'"):
        ss.SafeClassifier(solver="dual_decent").fit(X, Y)
    with pytest.raises(ValueError, match=r"solver='dual_descent' does not suit.*not l2"):
        ss.SafeClassifier(solver="dual_descent", penalty="l1").fit(X, Y)
    with pytest.raises(ValueError, match=r"solver='newton_cg' does not suit.*kinks"):
        ss.safe_path(X, Y, loss="hinge", solver="newton_cg", fit_intercept=False)


def test_a_problem_that_nothing_suits_says_why():
    with pytest.raises(ValueError, match=r"no solver suits.*newton: X has 5001 features"):
        choose(problem(loss="hinge", penalty="l1", p=5001), 1)
