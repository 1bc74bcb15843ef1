"""Models without a sample are those of refits, for generated problems of every kind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import safesift as ss
from tests.laws.leaving_out_laws import Case, check_exact, prediction_without

PIECEWISE = [
    "squared_hinge", "smoothed_hinge", "squared", "huber", "squared_epsilon_insensitive",
    "smoothed_epsilon_insensitive", "squared_interval", "smoothed_interval",
]  # fmt: skip
CLASSIFICATION = ("squared_hinge", "smoothed_hinge", "logistic", "safe_logistic", "hinge")


def targets(loss: str, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Of every kind, two samples of each class at least."""
    t = X[:, 0] + rng.normal(size=len(X))
    if loss in CLASSIFICATION:
        labels = np.where(t > np.median(t), 1, -1)
        labels[:4] = [1, -1, 1, -1]
        return labels
    if "interval" in loss:
        low = np.where(rng.random(len(t)) < 0.2, -np.inf, t - rng.random(len(t)))
        open_above = (rng.random(len(t)) < 0.2) & np.isfinite(low)
        return np.column_stack([low, np.where(open_above, np.inf, t)])
    return t


def made(loss: str, seed: int, intercept: bool, kind: str, alpha: float) -> Case:
    """Samples of one of the kinds below."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(12, 45)), int(rng.integers(1, 7))
    if kind == "wide":
        n, p = 14, 25
    X = rng.normal(size=(n, p))
    weights = groups = None
    if kind == "duplicated":
        X[n // 2 :] = X[: n - n // 2]
    elif kind == "collinear":
        X = np.hstack([X, X[:, :1], 2.0 * X[:, -1:]])
    elif kind == "leverage":
        X[5] *= 1e3
    y = targets(loss, X, rng)
    if kind == "duplicated":
        y[n // 2 :] = y[: n - n // 2]
    elif kind == "weighted":
        weights = rng.choice([0.0, 0.5, 1.0, 3.0], size=n, p=[0.1, 0.2, 0.5, 0.2])
        weights[:4] = 1.0
    elif kind == "groups":
        groups = np.arange(n) % 5
    return Case(X, y, loss, alpha, "l2", intercept, weights, groups)


def some(most: int) -> settings:
    """Examples of problems that each need several references, a third of the profile's."""
    return settings(max_examples=max(min(settings().max_examples // 3, most), 2))


KINDS = ["plain", "weighted", "duplicated", "collinear", "wide", "leverage", "groups"]


@pytest.mark.parametrize("loss", PIECEWISE)
@some(1000)
@given(
    seed=st.integers(0, 10**6),
    intercept=st.booleans(),
    kind=st.sampled_from(KINDS),
    alpha=st.sampled_from([1e-3, 1e-2, 0.1, 1.0]),
)
def test_piecewise_quadratic_models_are_exact(loss, seed, intercept, kind, alpha):
    case = made(loss, seed, intercept, kind, alpha)
    check_exact(case, rows=range(0, len(case.X), 6), tol=1e-7 if kind == "leverage" else 1e-8)


@pytest.mark.parametrize("loss", ["logistic", "safe_logistic"])
@some(1000)
@given(
    seed=st.integers(0, 10**6),
    intercept=st.booleans(),
    kind=st.sampled_from(["plain", "weighted", "duplicated", "collinear", "groups"]),
    alpha=st.sampled_from([1e-3, 1e-2, 0.1]),
)
def test_smooth_models_are_in_their_intervals(loss, seed, intercept, kind, alpha):
    case = made(loss, seed, intercept, kind, alpha)
    loo = case.leave_one_out()
    assert np.median(loo.upper - loo.lower) <= 1e-3 * np.std(loo.decision)
    for i in range(0, len(case.X), 5):
        exact = prediction_without(case, i)
        room = 1e-12 * (1.0 + abs(exact))
        assert loo.lower[i] - room <= exact <= loo.upper[i] + room


def test_samples_on_kinks():
    # margins of exactly 1 with and without most samples
    X = np.array([[1.0], [1.0], [2.0], [-1.0], [-1.0], [-2.0], [0.5], [-0.5]])
    y = np.array([1, 1, 1, -1, -1, -1, 1, -1])
    for alpha in (1e-12, 1e-3, 0.25):
        check_exact(Case(X, y, "squared_hinge", alpha, fit_intercept=False))
        check_exact(Case(X, y, "squared_hinge", alpha, fit_intercept=True))


def test_one_of_two_equal_samples():
    rng = np.random.default_rng(3)
    half = rng.normal(size=(15, 3))
    X, y = np.vstack([half, half]), np.tile(np.where(half[:, 0] > 0, 1, -1), 2)
    loo = ss.leave_one_out(X, y, alpha=1e-2)
    assert np.allclose(loo.decision[:15], loo.decision[15:], atol=1e-12)
    check_exact(Case(X, y, "squared_hinge", 1e-2))


@pytest.mark.parametrize("storage", ["csr", "float32", "fortran"])
def test_storages(storage):
    from scipy import sparse

    rng = np.random.default_rng(5)
    X = (rng.normal(size=(60, 5)) * (rng.random((60, 5)) < 0.5)).astype(np.float32).astype(float)
    case = Case(X, np.where(X[:, 0] + rng.normal(size=60) > 0, 1, -1), "squared_hinge", 1e-2)
    stored = {
        "csr": sparse.csr_matrix(X),
        "float32": X.astype(np.float32),
        "fortran": np.asfortranarray(X),
    }[storage]
    check_exact(case, X=stored, rows=range(0, 60, 3))


def test_many_weights_share_levels():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(300, 3))
    weights = rng.uniform(0.1, 3.0, size=300)
    case = Case(X, X[:, 0] + rng.normal(size=300), "huber", 1e-2, sample_weight=weights)
    loo = case.leave_one_out()
    assert (loo.upper - loo.lower).max() <= 1e-4 * np.std(loo.decision)
    for i in range(0, 300, 20):
        assert loo.lower[i] <= prediction_without(case, i) <= loo.upper[i]


@pytest.mark.parametrize(
    ("loss", "penalty"),
    [
        ("squared", "l1"), ("squared_hinge", "l1"), ("squared_hinge", "elastic_net"),
        ("huber", "elastic_net"), ("logistic", "l1"), ("safe_logistic", "elastic_net"),
        ("hinge", "l2"), ("epsilon_insensitive", "l2"), ("absolute_interval", "l2"),
        ("hinge", "elastic_net"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("intercept", [False, True])
def test_other_models_are_in_their_intervals(loss, penalty, intercept):
    """Against fits of the samples that are left, whose own region says how far they may be off."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(30, 5))
    case = Case(X, targets(loss, X, rng), loss, 2e-2, penalty, intercept)
    loo = case.leave_one_out()
    assert np.median(loo.upper - loo.lower) <= 1e-3 * np.std(loo.decision)
    for i in range(0, 30, 7):
        kept = np.arange(30) != i
        fitted = ss.screen(
            X[kept], case.y[kept], loss=loss, penalty=penalty, alpha=2e-2, fit_intercept=intercept,
            tol=1e-13,
        )  # fmt: skip
        part = fitted.parts[0]
        pred = float(X[i] @ part.fit.coef + part.fit.intercept)
        room = 1e-4 * np.std(loo.decision)
        assert loo.lower[i] - room <= pred <= loo.upper[i] + room
