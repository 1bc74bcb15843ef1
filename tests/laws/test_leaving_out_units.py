"""Intervals hold the exact optimum's prediction, without any tolerance, whatever the units.

The reference is exact: Newton steps in fractions that end where the gradient is 0.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import safesift as ss
from safesift.design import DenseDesign
from safesift.design.centered import CenteredDesign, centered
from safesift.losses import SmoothedEpsilonInsensitive, SquaredEpsilonInsensitive
from safesift.problem.inputs import make_problems
from tests.laws import exact
from tests.laws.leaving_out_laws import Case, prediction_without
from tests.laws.test_leaving_out import PIECEWISE, some, targets
from tests.laws.test_leaving_out_mutations import mistaken

UNITS = ["columns", "entry", "subnormal", "offset", "float32", "sparse", "weights", "epsilon"]


def made(loss: str, seed: int, intercept: bool, units: str, alpha: float) -> Case:
    """Few samples in units that are far apart, of a column, of an entry, or of weights."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(10, 20)), int(rng.integers(1, 4))
    X, spec, weights = rng.normal(size=(n, p)), loss, None
    y = targets(loss, X, rng)
    if units == "columns":
        X = X * 10.0 ** rng.uniform(-12, 12, p)
    elif units == "entry":
        X[:, 0] = 0.0
        X[rng.integers(n), 0] = 10.0 ** rng.integers(3, 13)
    elif units == "subnormal":
        X[:, 0] *= 10.0 ** -rng.integers(305, 322)
    elif units == "offset":
        X = X + 10.0 ** rng.integers(3, 8)
    elif units == "float32":
        X = (X * 10.0 ** rng.integers(-8, 8, p)).astype(np.float32)
    elif units == "sparse":
        X = X * (rng.random((n, p)) < 0.5) * 10.0 ** rng.integers(-6, 6, p)
    elif units == "weights":
        weights = 10.0 ** rng.uniform(-6, 6, n)
    elif "epsilon" in loss:
        kind = SquaredEpsilonInsensitive if loss.startswith("sq") else SmoothedEpsilonInsensitive
        spec = kind(rng.uniform(0.0, 0.5, n))
    return Case(X, y, spec, alpha, "l2", intercept, weights)


def exact_prediction(case: Case, i: int) -> Fraction | None:
    """By the exact model without sample i; None where plain Newton steps do not end."""
    options = {"loss": case.loss, "penalty": "l2", "alpha": case.alpha}
    problem = make_problems(case.X, case.y, fit_intercept=case.fit_intercept, **options).problem
    weights = np.where(case.left_out_with(i), 0.0, case.weights)
    found = exact.ExactProblem(problem.reweighted(weights))
    point = found.minimiser(12)
    return None if point is None else exact.dot(found.rows[i], point)


def check_exactly(case: Case, X: object = None, rows: int = 2) -> ss.LeaveOneOut:
    loo = case.leave_one_out(X)
    for i in np.random.default_rng(0).choice(len(case.X), rows, replace=False):
        value = exact_prediction(case, i)
        if value is not None:
            assert not np.isnan([loo.lower[i], loo.upper[i]]).any()
            assert loo.lower[i] == -np.inf or Fraction(float(loo.lower[i])) <= value, i
            assert loo.upper[i] == np.inf or value <= Fraction(float(loo.upper[i])), i
    return loo


@pytest.mark.parametrize("loss", PIECEWISE)
@some(200)
@given(
    seed=st.integers(0, 10**6),
    intercept=st.booleans(),
    units=st.sampled_from(UNITS),
    alpha=st.sampled_from([1e-6, 1e-3, 0.1]),
)
def test_intervals_hold_the_exact_prediction(loss, seed, intercept, units, alpha):
    case = made(loss, seed, intercept, units, alpha)
    check_exactly(case, sparse.csr_array(case.X) if units == "sparse" else None)


# --- columns far from zero ----------------------------------------------------------------------


def far_from_zero(seed: int, offset: float, loss: str) -> tuple[Case, Case]:
    """The same samples next to zero, and far from it: what is added is taken off exactly."""
    rng = np.random.default_rng(seed)
    far = np.hstack([rng.normal(size=(40, 2)) + offset, rng.normal(size=(40, 1))])
    near = far - np.array([offset, offset, 0.0])
    y = targets(loss, near, rng)
    return Case(near, y, loss, 1e-3), Case(far, y, loss, 1e-3)


@pytest.mark.parametrize("loss", ["squared_hinge", "huber", "logistic", "smoothed_interval"])
@pytest.mark.parametrize("offset", [-300.0, 1e4, 1e6, 1e9])
def test_columns_far_from_zero_have_the_same_models(loss, offset):
    near, far = far_from_zero(1, offset, loss)
    loo = far.leave_one_out()
    width = 1e-6 if loss != "logistic" else 1e-3
    assert np.median(loo.upper - loo.lower) <= width * np.std(loo.decision)
    for i in range(0, 40, 7):
        value = prediction_without(near, i)
        assert loo.lower[i] - 1e-12 <= value <= loo.upper[i] + 1e-12


def check_influence_far_from_zero() -> None:
    near, far = far_from_zero(2, 1e5, "squared_hinge")
    for one, other in zip(
        near.leave_one_out().influence(near.X[:3], top=4),
        far.leave_one_out().influence(far.X[:3], top=4),
        strict=True,
    ):
        assert np.allclose(one, other, atol=1e-6)


def test_influence_is_of_columns_as_they_came():
    check_influence_far_from_zero()


@pytest.mark.slow
def test_an_intercept_that_is_not_moved_back_is_noticed():
    from safesift.workflows.leaving_out import base

    wrong = "found[:, -1] -= 0.0 * (found[:, :-1] @ self.means)"
    with (
        mistaken(base, "found[:, -1] -= found[:, :-1] @ self.means", wrong),
        pytest.raises(AssertionError),
    ):
        check_influence_far_from_zero()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_centred_rows_are_differences_up_to_their_errors(dtype):
    rng = np.random.default_rng(0)
    for offset in (0.0, 7.0, 1e3, 1e8):
        X = (offset + rng.normal(size=(30, 3)) * 10.0 ** rng.integers(-3, 3, 3)).astype(dtype)
        means = X.astype(np.float64).mean(axis=0) + rng.normal(size=3)
        design = CenteredDesign(DenseDesign(X, True), means)
        x, u = rng.normal(size=4), rng.normal(size=30)
        rows = [
            [Fraction(float(a)) - Fraction(float(m)) for a, m in zip(row, means, strict=True)]
            + [Fraction(1)]
            for row in X
        ]
        sizes = [float(exact.norm(row)) for row in rows]
        for value, row, size in zip(design.matvec(x), rows, sizes, strict=True):
            off = abs(Fraction(float(value)) - exact.dot(row, exact.fractions(x)))
            assert off <= design.dot_error * size * np.linalg.norm(x)
        pulled = design.rmatvec(u)
        load = sum(abs(one) * size for one, size in zip(u, sizes, strict=True))
        for j in range(4):
            true = sum(row[j] * Fraction(float(one)) for row, one in zip(rows, u, strict=True))
            assert abs(Fraction(float(pulled[j])) - true) <= design.sum_error * load
        assert (design.row_norms >= sizes).all()
        some_rows = np.array([3, 5, 20])
        assert (design.take(some_rows).data == design.gathered(some_rows)).all()
        assert (design.columns(np.array([True, False, True])).data == design.data[:, [0, 2]]).all()


def test_only_what_needs_it_is_centred():
    X = np.random.default_rng(0).normal(size=(50, 3))
    assert centered(DenseDesign(X + 10.0, True)) is None
    assert centered(DenseDesign(X + 1e4, False)) is None
    # standardised, and the same number in nearly all rows
    rare = np.zeros((2000, 1))
    rare[1] = 1.0
    assert centered(DenseDesign((rare - rare.mean()) / rare.std(), True)) is None
    found = centered(DenseDesign(X + np.array([0.0, 1e4, 0.0]), True))
    assert found is not None and (found.means != 0).tolist() == [False, True, False]
