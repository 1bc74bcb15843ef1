"""Steps that keep signs go downhill, and stop several coefficients at once where that does."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from safesift.solvers.quadratic import orthant_step


@given(seed=st.integers(0, 10**6), p=st.integers(1, 8), zeros=st.booleans())
def test_downhill_within_the_orthant(seed, p, zeros):
    """On the way to the minimiser of a quadratic function, wherever that is."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(p + 1, p))
    H, b = A.T @ A, rng.normal(size=p)
    start, signs = rng.normal(size=p), rng.choice([-1.0, 0.0, 1.0], size=p)
    start = np.where(signs == 0, start, signs * np.abs(start))
    start[zeros & (rng.random(p) < 0.3)] = 0.0
    slopes = H @ start + b

    def rise(change):
        return change @ (slopes + 0.5 * H @ change)

    change, stopped = orthant_step(start, -np.linalg.solve(H, slopes), signs, rise)
    reached = start + change
    assert (signs * reached >= 0).all()
    assert not reached[stopped].any() and (signs[stopped] != 0).all()
    assert rise(change) <= 1e-12 * abs(rise(-np.linalg.solve(H, slopes)))
    # where nobody can move, somebody leaves: an active-set method gets on
    assert change.any() or stopped.any()


def test_several_are_stopped_at_once():
    start, target = np.array([1.0, 2.0, -1.0, 1.0]), np.array([-3.0, -1.0, -2.0, 5.0])
    found = orthant_step(
        start, target - start, np.sign(start), lambda d: ((start + d - target) ** 2).sum() - 40.0
    )
    np.testing.assert_array_equal(found.stopped, [True, True, False, False])
    np.testing.assert_array_equal(start + found.change, [0.0, 0.0, -2.0, 5.0])


def test_one_that_is_stopped_first_where_no_longer_step_helps():
    start, direction = np.array([1.0, 1.0]), np.array([-4.0, -1000.0])
    found = orthant_step(start, direction, np.ones(2), lambda d: 1.0)
    np.testing.assert_array_equal(found.stopped, [False, True])
    np.testing.assert_allclose(start + found.change, [0.996, 0.0])


def test_free_signs_are_not_stopped():
    found = orthant_step(np.ones(2), -2.0 * np.ones(2), np.array([0.0, 1.0]), lambda d: -1.0)
    np.testing.assert_array_equal(found.stopped, [False, True])
    np.testing.assert_array_equal(found.change, [-2.0, -1.0])


def test_it_ends_where_overflow_left_no_numbers():
    start = np.array([np.nan, 1.0])
    found = orthant_step(start, -np.ones(2), np.ones(2), lambda d: np.nan)
    assert len(found.change) == 2
