"""Curvature regions: against the slow oracle, on real data, and their parts one by one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg, sparse

import safesift as ss
from safesift.design import DenseDesign, SparseDesign, as_design
from safesift.problem.decisions import decide
from safesift.problem.gram import WeightedGram
from safesift.problem.inputs import make_problems
from safesift.regions import Curvature, GapBall
from safesift.regions.center import Center
from safesift.regions.curvature_models import ExactModel, NystromModel
from safesift.regions.self_consistent import ellipsoids
from safesift.regions.whitening import whiten
from safesift.solvers.first_order import short_run
from tests.solving import newton as newton_solver


def oracle(B, x, alpha):
    """The region with f'' in place of secants, dense: squared hinge + l2, margins B @ x."""
    n, p = B.shape
    t = B @ x
    g = alpha * x - B.T @ np.maximum(1 - t, 0) / n
    carrying = t < 1
    while True:
        L = linalg.cholesky(B[carrying].T @ B[carrying] / n + alpha * np.eye(p), lower=True)
        W = linalg.solve_triangular(L, B.T, lower=True)
        h = linalg.solve_triangular(L, g, lower=True)
        center = t - 0.5 * (h @ W)
        half = 0.5 * np.linalg.norm(h) * np.sqrt((W**2).sum(axis=0))
        still = carrying & (center + half < 1)
        if still.sum() == carrying.sum():
            return center - half, center + half, carrying
        carrying = still


def newton(B, x, alpha, steps):
    n, p = B.shape
    for _ in range(steps):
        t = B @ x
        active = B[t < 1]
        g = alpha * x - active.T @ (1 - t[t < 1]) / n
        x = x - np.linalg.solve(active.T @ active / n + alpha * np.eye(p), g)
    return x


@pytest.fixture(scope="module")
def pixels(data_folder):
    """2 000 rows of MNIST of norm 1, as margins of digit 9 against the rest."""
    with np.load(data_folder / "mnist.npz") as file:
        X = file["X_train"][:2000].reshape(2000, -1).astype(float)
        y = np.where(file["y_train"][:2000] == 9, 1.0, -1.0)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


@pytest.fixture(scope="module")
def warm(pixels):
    """A problem of a path, and the optimum of the previous one plus one Newton step."""
    X, y = pixels
    B, alpha = y[:, None] * X, 2e-4
    x = newton(B, newton(B, np.zeros(X.shape[1]), 3e-4, 15), alpha, 1)
    return (
        make_problems(
            X, y, loss="squared_hinge", penalty="l2", alpha=alpha, fit_intercept=False
        ).problem,
        x,
        B,
    )


def test_agrees_with_the_oracle(warm):
    """Same weights, same bounds, to 1e-8."""
    problem, x, B = warm
    lower, upper, carrying = oracle(B, x, problem.alpha)
    assert carrying.sum() > 50
    center = Center.of(problem.certify(problem.evaluate(x)))
    model = ExactModel(problem)
    model.move(carrying.astype(float))
    found = ellipsoids(center, model, np.full(len(x), problem.alpha), 0.0, np.inf)
    bounds = found.hull.bounds(problem.design)
    flip = problem.y < 0
    np.testing.assert_allclose(np.where(flip, -bounds.upper, bounds.lower), lower, atol=1e-8)
    np.testing.assert_allclose(np.where(flip, -bounds.lower, bounds.upper), upper, atol=1e-8)


def test_decides_more_than_the_oracle(warm):
    problem, x, B = warm
    lower, upper, _ = oracle(B, x, problem.alpha)
    by_oracle = np.mean((lower > 1) | (upper < 1))
    at = problem.evaluate(x)

    def decided(region):
        bounds = region.build(problem.certify(at)).own_bounds(problem)
        return 1.0 - decide(problem, bounds, "always").undecided.mean()

    assert decided(GapBall()) < 0.1
    assert decided(Curvature(rank=784)) >= by_oracle
    assert decided(Curvature()) > 0.98
    assert decided(Curvature(rank=100)) > 0.8


def test_l1_on_real_data_without_a_guess(pixels):
    """Safe logistic + l1: samples and features are decided, and the optimum agrees."""
    X, y = pixels
    arguments = {"loss": "safe_logistic", "penalty": "l1", "alpha": 3e-4, "fit_intercept": False}
    problem = make_problems(X, y, **arguments).problem
    rough, exact = (newton_solver(problem, tol=tol).at for tol in (1e-4, 1e-10))
    result = ss.screen(X, y, **arguments, coef=rough.point, screening="curvature")
    assert result.certified
    assert np.mean(~result.kept) > 0.5 * np.mean(problem.y * exact.pred > 1)
    assert result.zero_coef.sum() > 400
    assert np.abs(exact.point[result.zero_coef]).max() == 0
    assert (problem.y * exact.pred)[~result.kept].min() > 1.0


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_sparse_and_wide(fit_intercept):
    """50 000 sparse features, few samples: the Gram form."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((120, 50_000), density=0.002, rng=rng, format="csr")
    y = np.where(np.arange(120) % 2, 1, -1)
    problem = make_problems(
        X, y, loss="squared_hinge", penalty="l2", alpha=1e-1, fit_intercept=fit_intercept
    ).problem
    at = short_run(problem)
    bounds = Curvature(rank=150).build(problem.certify(at)).own_bounds(problem)
    assert (bounds.lower <= at.pred + 1e-6).all() and (at.pred - 1e-6 <= bounds.upper).all()
    assert np.median(bounds.upper - bounds.lower) < 1e-2


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("make", [DenseDesign, lambda X, i: SparseDesign(sparse.csr_array(X), i)])
def test_gram_follows_its_weights(make, fit_intercept):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 5))
    design = make(X, fit_intercept)
    rows = np.column_stack([X, np.ones(80)]) if fit_intercept else X
    gram = WeightedGram(design)
    for _ in range(20):
        weights = rng.random(80) * (rng.random(80) < 0.7)
        gram.move(weights)
        exact = (rows * weights[:, None]).T @ rows
        error = np.abs(gram.matrix - exact)
        assert (error <= gram.error * np.outer(gram.spread, gram.spread) + 1e-13).all()


def test_whitening_is_checked_after_the_fact():
    rng = np.random.default_rng(2)
    Q, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    good = whiten((Q * np.logspace(0, -6, 6)) @ Q.T, np.ones(6), 1e-15)
    assert good is not None and good.looseness < 1e-6
    assert whiten((Q * np.logspace(0, -18, 6)) @ Q.T, np.ones(6), 1e-15) is None
    assert whiten(np.diag([1.0, 0.0]), np.ones(2), 1e-15) is None


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_few_directions_are_never_narrower_than_all(fit_intercept):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(200, 12)), rng.normal(size=200)
    problem = make_problems(
        X, y, loss="squared", penalty="l2", alpha=0.1, fit_intercept=fit_intercept
    ).problem
    weights, diagonal = rng.random(200), np.full(12, 0.1)
    exact = ExactModel(problem)
    exact.move(weights)
    all_widths = exact.metric(diagonal).shape.half_widths(problem.design)
    previous = np.inf
    for rank in (2, 6, 11, 12):
        few = NystromModel(problem, rank)
        few.move(weights)
        widths = few.metric(diagonal).shape.half_widths(problem.design)
        assert (widths >= all_widths * (1 - 1e-10)).all()
        assert widths.mean() < previous
        previous = widths.mean()
    assert previous < all_widths.mean() * (1 + 1e-3)


def test_row_subsets_are_the_rows():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(5000, 7)).astype(np.float32)
    mask = rng.random(5000) < 0.3
    for matrix in (X, sparse.csr_array(X)):
        design = as_design(matrix, True)
        part, copy = design.only(mask), design.take(np.flatnonzero(mask))
        v, u = rng.normal(size=8), rng.normal(size=int(mask.sum()))
        np.testing.assert_allclose(part.matvec(v), copy.matvec(v), rtol=1e-12)
        np.testing.assert_allclose(part.rmatvec(u), copy.rmatvec(u), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(part.gram(u**2), copy.gram(u**2), rtol=1e-10)
        wide = rng.normal(size=(8, 3))
        np.testing.assert_allclose(
            part.gram_product(wide, u), copy.rmatvec(u[:, None] * copy.matvec(wide)), rtol=1e-9,
            atol=1e-9,
        )  # fmt: skip
        np.testing.assert_allclose(part.columns_sq(u**2), np.diag(copy.gram(u**2)), rtol=1e-10)
        np.testing.assert_array_equal(part.row_norms, copy.row_norms)
        assert design.only(np.ones(5000, dtype=bool)) is design


def test_a_range_of_alphas(pixels):
    X, y = pixels
    found = ss.screen_range(X, y, alpha_range=(1e-3, 1.1e-3), fit_intercept=False)
    assert found.certified
    assert found.undecided.mean() < 0.2
    for alpha in (1e-3, 1.04e-3, 1.1e-3):
        best = newton(y[:, None] * X, np.zeros(X.shape[1]), alpha, 20)
        pred = X @ best
        assert (found.lower <= pred).all() and (pred <= found.upper).all()
        assert found.result(alpha).check(best).passed
    ends = [newton(y[:, None] * X, np.zeros(X.shape[1]), a, 20) for a in found.alpha_range]
    two = ss.screen_range(
        X, y, alpha_range=(1e-3, 1.1e-3), coef=np.stack(ends), fit_intercept=False
    )
    assert two.undecided.mean() < 0.2
    with pytest.raises(ValueError, match="outside the interval"):
        found.result(1.0)


@pytest.mark.parametrize(
    ("alpha", "error", "words"),
    [
        ((2.0, 1.0), ValueError, "low <= high"),
        (1.0, TypeError, "must be a pair"),
        ((0.0, 1.0), ValueError, r"alpha_range\[0\] must be positive"),
    ],
)
def test_ranges_are_checked(alpha, error, words):
    with pytest.raises(error, match=words):
        ss.screen_range(np.eye(2), [0, 1], alpha_range=alpha, fit_intercept=False)


def test_a_hinge_has_ranges_too():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(100, 3)), rng.choice([0, 1], 100)
    found = ss.screen_range(X, y, loss="hinge", alpha_range=(50.0, 51.0), fit_intercept=False)
    assert found.certified
    assert (~found.undecided).mean() > 0.5
