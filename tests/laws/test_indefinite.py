"""Given kernel matrices are what rounding left of them: all that is certified is so of K + δI."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

import safesift as ss
from safesift.design import kernels
from safesift.design.kernels import KernelChoice, NotPositiveError, PrecomputedKernel
from safesift.problem.inputs import make_problems, on_kernel
from safesift.problem.problem import Problem
from tests.laws import exact
from tests.laws.strategies import examples

seeds = st.integers(0, 2**32 - 1)
LOSSES = ("hinge", "squared_hinge", "huber", "squared_epsilon_insensitive")


def rounded_kernel(rng) -> np.ndarray:
    """A kernel matrix of low rank, or with equal rows, as rounding leaves it; sometimes worse."""
    n, rank = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    rows = rng.normal(size=(n, rank)) * 10.0 ** rng.uniform(-3, 3)
    rows[rng.integers(n)] = rows[rng.integers(n)]
    K = rows @ rows.T if rng.random() < 0.5 else rbf_kernel(rows)
    match rng.integers(4):
        case 0:
            K = K.astype(np.float32)
        case 1:
            K = K.astype(np.float32).astype(np.float64)
        case 2:
            K = K * (1.0 + 4e-16 * rng.normal(size=(n, n)))  # not quite symmetric
    return K


def kernel_of(K) -> PrecomputedKernel:
    return KernelChoice("precomputed").of(K, None)


def exact_entries(kernel: PrecomputedKernel) -> list[list[Fraction]]:
    block = kernel.block(np.arange(kernel.n_samples), slice(None))
    return [exact.fractions(row) for row in block]


def is_positive(matrix: list[list[Fraction]]) -> bool:
    """Whether a symmetric matrix is positive semidefinite, by elimination."""
    rows = [list(row) for row in matrix]
    for j in range(len(rows)):
        pivot = rows[j][j]
        if pivot < 0 or (pivot == 0 and any(rows[j][j:])):
            return False
        for i in range(j + 1, len(rows)):
            if pivot:
                factor = rows[i][j] / pivot
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[j], strict=True)]
    return True


def law_what_is_added_is_enough(seed: int) -> None:
    """K + δI is positive semidefinite and symmetric, exactly, and δ is no more than rounding."""
    K = rounded_kernel(np.random.default_rng(seed))
    kernel = kernel_of(K)
    entries, n = exact_entries(kernel), len(K)
    assert all(entries[i][j] == entries[j][i] for i in range(n) for j in range(n))
    assert is_positive(entries)
    given_matrix = K.astype(np.float64)
    off = np.array(entries, dtype=np.float64) - 0.5 * (given_matrix + given_matrix.T)
    scale = float(np.abs(given_matrix).max())
    np.testing.assert_allclose(off, kernel.shift * np.eye(n), atol=1e-15 * scale)
    assert kernel.shift <= 1e-5 * scale


def law_dual_values_are_below(seed: int) -> None:
    """D ≤ P(β) for every β, also far out where K itself has a direction of negative curvature."""
    rng = np.random.default_rng(seed)
    K = rounded_kernel(rng)
    problem = problem_on(kernel_of(K), str(rng.choice(LOSSES)), rng)
    beta = rng.normal(size=len(K)) * 10.0 ** rng.uniform(-3, 1)
    dual = problem.certify(problem.evaluate(beta)).dual.value
    mean = 0.5 * (K.astype(np.float64) + K.astype(np.float64).T)
    least = np.linalg.eigh(mean)[1][:, 0]
    for size in (0.0, 1.0, 1e8, 1e16, 1e24):
        assert Fraction(dual) <= exact_objective(problem, beta + size * least)


def problem_on(kernel, loss: str, rng) -> Problem:
    n = kernel.n_samples
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    linear = make_problems(
        np.ones((n, 1)), y, loss=loss, penalty="l2", alpha=float(10.0 ** rng.uniform(-4, 0)),
        fit_intercept=False,
    ).problem  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return on_kernel([linear], kernel, memory=10**6)[0]


def exact_objective(problem: Problem, beta) -> Fraction:
    """P(β) without rounding."""
    entries, coordinates = exact_entries(problem.design.gram.kernel), exact.fractions(beta)
    values = [exact.dot(row, coordinates) for row in entries]
    targets = [exact.target(y) for y in problem.y]
    losses = [
        exact.value(problem.loss, i, t, y)
        for i, (t, y) in enumerate(zip(values, targets, strict=True))
    ]
    norm_sq = exact.dot(coordinates, values)
    return sum(losses, Fraction(0)) / len(losses) + Fraction(problem.alpha) * norm_sq / 2


@pytest.mark.parametrize("law", [law_what_is_added_is_enough, law_dual_values_are_below])
@examples(0.5)
@given(seed=seeds)
def test_kernels_that_rounding_has_touched(law, seed):
    law(seed)


@pytest.mark.parametrize("law", [law_what_is_added_is_enough, law_dual_values_are_below])
@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("_proved_shift", lambda K, allowed: 0.0),
        ("_lost_by_factors", lambda K: 1e-300),
    ],
)
def test_kernels_taken_as_they_are(monkeypatch, law, name, mistake):
    for seed in range(20):
        law(seed)
    monkeypatch.setattr(kernels, name, mistake)
    with pytest.raises(AssertionError):
        for seed in range(2000):
            law(seed)


# --- and it is said ---------------------------------------------------------------------------


def fitted(K, **parameters):
    model = ss.SafeKernelClassifier(kernel="precomputed", alpha=1e-2, **parameters)
    return model.fit(K, np.arange(len(K)) % 2)


def test_what_was_added_is_said():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    # well away from singular: nothing is added
    assert fitted(rbf_kernel(X) + np.eye(40)).kernel_shift_ == 0.0
    singular = fitted(X @ X.T)
    assert 0.0 < singular.kernel_shift_ < 1e-10
    path = ss.safe_kernel_path(X @ X.T, y, alphas=[1e-2], kernel="precomputed")
    assert path.kernel_shift == singular.kernel_shift_
    assert ss.SafeKernelClassifier().fit(X, y).kernel_shift_ == 0.0
    assert ss.SafeKernelClassifier(kernel=rbf_kernel).fit(X, y).kernel_shift_ is None
    # the model is that of the matrix that it is certified for
    shifted = fitted(X @ X.T + singular.kernel_shift_ * np.eye(40))
    np.testing.assert_allclose(shifted.dual_coef_, singular.dual_coef_, rtol=1e-4, atol=1e-9)


def test_matrices_that_are_no_kernels_by_more_than_rounding():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    K = (X @ X.T).astype(np.float32)
    with pytest.warns(UserWarning, match=r"negative eigenvalues.*that of X \+ .*·I; compute X in"):
        model = fitted(K)
    least = -np.linalg.eigvalsh(K.astype(np.float64))[0]
    assert least <= model.kernel_shift_ <= 20 * least
    with pytest.raises(NotPositiveError, match="least eigenvalue"):
        fitted(X @ X.T - 1e-3 * np.eye(60))


def test_many_samples_are_taken_on_the_users_word(monkeypatch):
    monkeypatch.setattr(kernels, "_CHECKED", 20)
    X = np.random.default_rng(0).normal(size=(40, 2))
    assert fitted(rbf_kernel(X)).kernel_shift_ is None
