"""Covers of inverses hold for every matrix so near, and boxes lie around their ellipsoids."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import safesift as ss
from safesift.design import as_design
from safesift.problem.gram import WorkingGram
from safesift.problem.inputs import make_problems
from safesift.regions import curvature, energy, self_consistent, whitening
from safesift.regions.ellipsoidal import EllipsoidalSet
from safesift.regions.shape import Shape
from safesift.solvers import sparse_newton
from safesift.solvers.driver import solve
from tests.laws import exact
from tests.laws.strategies import examples, fails

seeds = st.integers(0, 2**32 - 1)


# --- covers -------------------------------------------------------------------------------------


def solved(M: list[list[Fraction]], a: list[Fraction]) -> list[Fraction] | None:
    """M⁻¹a by elimination without any rounding; None where M is not positive definite."""
    rows = [[*row, value] for row, value in zip(M, a, strict=True)]
    d = len(a)
    for k in range(d):
        if rows[k][k] <= 0:
            return None
        for i in range(k + 1, d):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    x: list[Fraction] = [Fraction(0)] * d
    for k in reversed(range(d)):
        x[k] = (rows[k][d] - exact.dot(rows[k][k + 1 : d], x[k + 1 :])) / rows[k][k]
    return x


def law_cover(seed: int) -> None:
    """aᵀM⁻¹a ≤ ‖Tᵀa‖²/(1 − looseness), for the worst matrix that is near enough, exactly."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    rows = rng.normal(size=(d + int(rng.integers(3)), d)) * 10.0 ** rng.uniform(-4, 4, d)
    if d > 1 and rng.random() < 0.5:
        rows[:, 1] = rows[:, 0] * 3.0 + 10.0 ** rng.uniform(-8, 0) * rows[:, 1]
    H = rows.T @ rows
    spread, error = np.sqrt(np.diag(H)), float(10.0 ** rng.uniform(-16, -2))
    ridge = float(rng.choice([0.0, 10.0 ** rng.uniform(-12, -2)]))
    H[np.diag_indices(d)] *= 1.0 + ridge
    spread = np.sqrt(np.diag(H))
    found = whitening.cover(H, spread, error, ridge)
    if found is None:
        return
    scaled = H / np.outer(spread, spread)
    least = np.linalg.eigh(scaled)[1][:, 0]
    # the entries that curve least are the ones that are missing
    missing = 0.999 * error * np.outer(spread * np.sign(least), spread * np.sign(least))
    M = [exact.fractions(row) for row in H]
    for row, lost in zip(M, missing, strict=True):
        row[:] = [x - y for x, y in zip(row, exact.fractions(lost), strict=True)]
    for a in (least * spread, rng.normal(size=d) * spread):
        image = [exact.dot(exact.fractions(column), exact.fractions(a)) for column in found.basis.T]
        inverse = solved(M, exact.fractions(a))
        assert inverse is not None, "a matrix so near is not positive definite"
        most = exact.dot(image, image) / (1 - Fraction(found.looseness))
        # whoever multiplies by T counts the rounding of its entries
        room = 1 + Fraction(64 * 2.0**-52) * Fraction(1 + np.linalg.cond(scaled))
        assert exact.dot(exact.fractions(a), inverse) <= most * room


@given(seed=seeds)
def test_covers(seed):
    law_cover(seed)


def test_a_cover_is_hardly_larger_than_the_inverse():
    rows = np.random.default_rng(0).normal(size=(900, 600))
    H = rows.T @ rows
    found = whitening.cover(H, np.sqrt(np.diag(H)), 1e-13)
    assert found is not None and found.looseness < 1e-6
    np.testing.assert_allclose(found.basis.T @ H @ found.basis, np.eye(600), atol=1e-6)


def test_no_cover_of_what_is_singular_and_one_with_a_ridge():
    rows = np.random.default_rng(0).normal(size=(30, 6))
    H = np.hstack([rows, rows]).T @ np.hstack([rows, rows])
    spread = np.sqrt(np.diag(H))
    assert whitening.cover(H, spread, 1e-14) is None
    share = whitening.singular_share(H, spread, 1e-14)
    H[np.diag_indices(12)] *= 1.0 + share
    assert whitening.cover(H, spread, 1e-14, share) is not None
    assert whitening.cover(np.full((2, 2), np.nan), np.ones(2), 0.0) is None
    assert whitening.cover(np.zeros((2, 2)), np.ones(2), 0.0) is None


def test_mutation_errors_of_the_matrix_forgotten(monkeypatch):
    assert not fails(law_cover, 60)
    monkeypatch.setattr(whitening, "_off", lambda H, spread, error: 0.0)
    assert fails(law_cover, 60)


def test_mutation_an_inverse_in_single_precision(monkeypatch):
    right = whitening._inverse
    assert not fails(law_cover, 60)
    monkeypatch.setattr(
        whitening, "_inverse", lambda L: np.asfortranarray(right(L).astype(np.float32), dtype=float)
    )
    assert fails(law_cover, 60)


# --- boxes --------------------------------------------------------------------------------------


def law_box(seed: int) -> None:
    """The farthest point of an ellipsoid, along every row, is within its box."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(8, 40))
    factor = rng.normal(size=(d, d)) * 10.0 ** rng.uniform(-3, 3, (d, 1))
    center = rng.normal(size=d) * 10.0 ** rng.uniform(-3, 3)
    ellipsoid = EllipsoidalSet(center, Shape(d, 1.0, None, factor))
    intercept = bool(rng.integers(2))
    X = sparse.random_array((20, d - intercept), density=1.5 / d, rng=rng, format="csr")
    design = as_design(X, intercept)
    bounds = energy._box_bounds(ellipsoid, design)
    known = bool(np.isfinite(bounds.upper).any())
    assert known == (design.row_length <= 0.25 * d)
    if not known:
        return
    dense = np.hstack([X.toarray(), np.ones((20, 1))]) if intercept else X.toarray()
    reach = np.linalg.norm(dense @ factor, axis=1)
    room = 1e-14 * (np.abs(dense) @ np.abs(center) + reach)
    assert (dense @ center + reach <= bounds.upper + room).all()
    assert (dense @ center - reach >= bounds.lower - room).all()


@examples(0.5)
@given(seed=seeds)
def test_boxes(seed):
    law_box(seed)


def test_mutation_half_the_widths(monkeypatch):
    right = Shape.coordinate_widths
    assert not fails(law_box, 40)
    monkeypatch.setattr(Shape, "coordinate_widths", lambda self: 0.5 * right(self))
    assert fails(law_box, 40)


# --- verdicts on wide data ----------------------------------------------------------------------


def wide_problem(seed: int, alpha: float = 2e-3):
    """Sparse, with columns that are there twice: the matrix of curvature is singular."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((300, 60), density=0.08, rng=rng, format="csr")
    X = sparse.hstack([X, X[:, :20]], format="csr")
    y = np.where(X @ rng.normal(size=80) + 0.3 * rng.normal(size=300) > 0, 1.0, -1.0)
    return make_problems(
        X, y, loss="squared_hinge", penalty="l1", alpha=alpha, fit_intercept=False
    ).problem


def by_gap(problem):
    """What the gap proves."""
    return energy.GapEnergy(WorkingGram(problem.design))


def by_curvature(problem):
    """What the gradient proves, with as little added to a singular matrix as it takes."""
    return curvature.Curvature(rank=problem.design.n_columns)


def law_wide_verdicts(seed: int, region=by_gap) -> None:
    """From any point near the optimum, intervals contain its predictions."""
    rng, problem = np.random.default_rng(seed), wide_problem(seed % 10)
    best = solve(problem, tol=1e-13).at
    point = best.point.copy()
    nonzero = point != 0
    point[nonzero] += 10.0 ** rng.uniform(-5, -2) * rng.normal(size=int(nonzero.sum()))
    # a twin takes over: predictions stay where they are, coefficients do not
    moved = rng.random(20) < 0.5
    point[60:][moved] += point[:20][moved]
    point[:20][moved] = 0.0
    certificate = problem.certify(problem.evaluate(point))
    bounds = region(problem).build(certificate).own_bounds(problem)
    room = 1e-6
    assert (bounds.lower <= best.pred + room).all() and (bounds.upper >= best.pred - room).all()


@examples(0.2)
@given(seed=seeds, region=st.sampled_from([by_gap, by_curvature]))
def test_wide_verdicts(seed, region):
    law_wide_verdicts(seed, region)


def test_curvature_of_twin_columns_leaves_short_intervals():
    """A ridge of 1e-10, and a norm from all of the objective, left several times that."""
    problem = wide_problem(0)
    found = solve(problem, tol=1e-14)
    bounds = by_curvature(problem).build(found.certificate).own_bounds(problem)
    assert np.median(bounds.upper - bounds.lower) < 1e-3 * np.std(found.at.pred)


def test_mutation_a_ridge_of_curvature_that_costs_nothing(monkeypatch):
    monkeypatch.setattr(self_consistent, "_RIDGES", (1e3,))
    assert not fails(partial(law_wide_verdicts, region=by_curvature), 30)
    monkeypatch.setattr(curvature, "distance_bound", lambda certificate: 0.0)
    assert fails(partial(law_wide_verdicts, region=by_curvature), 30)


def test_twin_columns_do_not_keep_rows_from_being_decided():
    problem = wide_problem(0)
    found = solve(problem, tol=1e-10)
    test_set = energy.GapEnergy(WorkingGram(problem.design)).build(found.certificate)
    assert np.isfinite(test_set.own_bounds(problem).upper).all()


def test_mutation_a_ridge_that_costs_nothing(monkeypatch):
    """Any ridge is right that is paid for; one that is large and is not leaves optima outside."""
    monkeypatch.setattr(energy, "singular_share", lambda H, spread, error: 1e10)
    monkeypatch.setattr(energy, "_MOST_RIDGE", np.inf)
    assert not fails(law_wide_verdicts, 30)
    monkeypatch.setattr(energy, "distance_bound", lambda certificate: 0.0)
    assert fails(law_wide_verdicts, 30)


@pytest.mark.parametrize("tol, made", [(0.5, False), (1e-9, True)])
def test_a_rough_solution_gets_no_ellipsoid_of_many_features(monkeypatch, tol, made):
    monkeypatch.setattr(energy, "_MOST_ROUGHLY", 5)
    monkeypatch.setattr(energy, "_ROUGH", 1e-6)
    calls, right = [], energy.gap_ellipsoid
    monkeypatch.setattr(energy, "gap_ellipsoid", lambda *a: (calls.append(1), right(*a))[1])
    problem = wide_problem(1)
    # steps that would go on to a small gap by themselves, or get there at once
    monkeypatch.setattr(sparse_newton, "_SHARP", np.inf)
    monkeypatch.setattr(sparse_newton, "_ALL_ROWS", 0)
    certificate = solve(problem, tol=tol).certificate
    assert (certificate.relative_gap <= 1e-6) == made
    calls.clear()
    test_set = energy.GapEnergy(WorkingGram(problem.design)).build(certificate)
    assert bool(calls) == made and test_set.complete


@pytest.mark.parametrize("n_groups", [3, 8, 14])
def test_one_hot_columns_and_an_intercept_are_decided(n_groups: int) -> None:
    """Each group of columns sums to what the intercept has: singular, with little of a ridge."""
    rng = np.random.default_rng(n_groups)
    X = np.concatenate([np.eye(4)[rng.integers(0, 4, 2000)] for _ in range(n_groups)], axis=1)
    y = np.where(X @ rng.normal(size=X.shape[1]) + 0.5 * rng.normal(size=2000) > 0, 1, -1)
    model = ss.SafeClassifier(alpha=1e-3, penalty="l1").fit(X, y)
    flat = y * model.decision_function(X) > 1.0
    assert flat.mean() > 0.3
    assert (~model.kept_).sum() > 0.97 * flat.sum()
    assert flat[~model.kept_].all()
