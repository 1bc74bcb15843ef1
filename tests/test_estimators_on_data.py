"""The estimators on real data, dense and sparse: optimal, certified, the same without screening."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_svmlight_file
from sklearn.preprocessing import scale

import safesift as ss
from safesift.problem.inputs import make_problems
from tests.laws.reference import objective, optimum

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def a9a(data_folder):
    X, y = load_svmlight_file(str(data_folder / "a9a.svmlight.bz2"), n_features=123)
    return sparse.csr_array(X[:1500]), y[:1500]


@pytest.fixture(scope="module")
def covtype(data_folder):
    with np.load(data_folder / "covtype.npz") as file:
        X, y = file["X"][::50].astype(np.float64), file["y"][::50]
    X = X[:, X.std(axis=0) > 0]
    return scale(X) / np.sqrt(X.shape[1]), y


@pytest.fixture(scope="module")
def mnist(data_folder):
    with np.load(data_folder / "mnist.npz") as file:
        X, y = file["X_train"][:2000].reshape(2000, -1), file["y_train"][:2000]
    X = X.astype(np.float32)[:, 200:400]
    return X / np.linalg.norm(X, axis=1, keepdims=True).clip(1e-3), y


def check(model, X, y):
    """Against an independent solver, and against the same model without screening."""
    model.fit(X, y)
    problem = make_problems(
        X, y, loss=model.loss, penalty="l2", alpha=model.alpha, fit_intercept=model.fit_intercept
    ).problem
    best = optimum(problem)
    point = problem.join(np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]))
    assert model.dual_gap_ <= model.tol * problem.constant_value
    assert objective(problem, point) <= best.value + model.dual_gap_ + 1e-12
    reach = np.sqrt(2.0 * (model.dual_gap_ + 1e-12) / model.alpha)
    assert np.linalg.norm(point[: X.shape[1]] - best.point[: X.shape[1]]) <= reach
    slopes = problem.loss.slope(problem.evaluate(best.point).pred, problem.y)
    assert (slopes[~model.kept_] == 0).all()
    plain = clone(model).set_params(screening=None).fit(X, y)
    reach += np.sqrt(2.0 * (plain.dual_gap_ + 1e-12) / model.alpha)
    assert np.linalg.norm(plain.coef_ - model.coef_) <= reach


@pytest.mark.parametrize(
    ("loss", "alpha"), [("squared_hinge", 1e-3), ("squared_hinge", 1e-5), ("safe_logistic", 1e-4)]
)
@pytest.mark.parametrize("dense", [False, True])
def test_a9a(a9a, loss, alpha, dense):
    X, y = a9a
    model = ss.SafeClassifier(loss, alpha=alpha, screening="curvature")
    check(model, X.toarray() if dense else X, y)


@pytest.mark.parametrize("alpha", [1e-3, 1e-5])
def test_covtype(covtype, alpha):
    X, y = covtype
    check(ss.SafeClassifier(alpha=alpha), X, y == 2)


def test_regression_on_diabetes():
    X, y = load_diabetes(return_X_y=True)
    y = y / y.std()
    check(ss.SafeRegressor("squared_epsilon_insensitive", alpha=1e-4), X, y)
    check(ss.SafeRegressor("huber", alpha=1e-4), X, y)


def test_ten_digits_in_float32(mnist):
    X, y = mnist
    model = ss.SafeClassifier(alpha=1e-3, tol=1e-8, screening="curvature").fit(X, y)
    assert model.coef_.shape == (10, 200) and model.score(X, y) > 0.7
    nine = make_problems(
        X, y == 9, loss="squared_hinge", penalty="l2", alpha=1e-3, fit_intercept=True
    ).problem
    point = nine.join(model.coef_[9], model.intercept_[9])
    assert objective(nine, point) <= optimum(nine).value + model.dual_gap_[9] + 1e-12
    assert not model.kept_per_class_.all(axis=0).any()
