"""Systems in changing sets of coordinates: by a border around the last factor, or by a new one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safesift.solvers import systems
from safesift.solvers.systems import Systems


def drawn_matrix(rng: np.random.Generator, d: int) -> np.ndarray:
    rows = rng.normal(size=(d + 5, d))
    return rows.T @ rows + 0.1 * np.eye(d)


def solved(H: np.ndarray, active: np.ndarray, right: np.ndarray) -> np.ndarray:
    u, rows = np.zeros(len(right)), np.flatnonzero(active)
    u[rows] = np.linalg.solve(H[np.ix_(rows, rows)], right[rows])
    return u


@given(seed=st.integers(0, 2**32 - 1))
def test_sets_that_follow_each_other(seed):
    """Whatever enters and leaves, one at a time or many at once."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 60))
    H, active = drawn_matrix(rng, d), rng.random(d) < 0.7
    found = Systems(H)
    for _ in range(6):
        right = rng.normal(size=d)
        np.testing.assert_allclose(
            found.solve(active, right), solved(H, active, right), rtol=1e-8, atol=1e-10
        )
        changed = rng.choice(d, size=min(d, int(rng.integers(0, 5))), replace=False)
        active = active.copy()
        active[changed] = ~active[changed]


def test_few_changes_need_no_factor(monkeypatch):
    made, cholesky = [], systems.cholesky

    def counted(H):
        made.append(len(H))
        return cholesky(H)

    monkeypatch.setattr(systems, "cholesky", counted)
    rng = np.random.default_rng(0)
    H, active = drawn_matrix(rng, 100), np.ones(100, dtype=bool)
    found = Systems(H)
    for n_left in (0, 1, 5, 10):
        active[:n_left] = False
        found.solve(active, rng.normal(size=100))
        assert found.exact == (n_left == 0)
    assert made == [100]
    active[:20] = False
    found.solve(active, rng.normal(size=100))
    assert found.exact and made == [100, 80]
    found.forget()
    found.solve(active, rng.normal(size=100))
    assert found.exact and made == [100, 80, 80]


def test_a_singular_block_is_solved_and_not_kept():
    rows = np.random.default_rng(0).normal(size=(4, 6))
    found, active = Systems(rows.T @ rows), np.ones(6, dtype=bool)
    right = rows.T @ np.ones(4)
    np.testing.assert_allclose(rows @ found.solve(active, right), np.ones(4), atol=1e-5)
    out, order = np.zeros((6, 6)), np.zeros(6, dtype=np.int64)
    known = found.factor_into(out, order, active)
    assert known == 0 or np.isfinite(out).all()


def test_an_entering_coordinate_that_depends_on_the_others_takes_a_new_factor():
    """A border that is singular says nothing; LAPACK need not notice, so that both are right."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(40, 20))
    rows = np.hstack([rows, rows[:, :1]])
    H, active = rows.T @ rows, np.ones(21, dtype=bool)
    active[20] = False
    found = Systems(H)
    found.solve(active, np.ones(21))
    active[20] = True
    u = found.solve(active, rows.T @ np.ones(40))
    np.testing.assert_allclose(H @ u, rows.T @ np.ones(40), atol=1e-4)


@pytest.mark.parametrize("n_active", [0, 1, 7])
def test_a_factor_is_handed_over(n_active):
    rng = np.random.default_rng(n_active)
    H, active = drawn_matrix(rng, 9), np.zeros(9, dtype=bool)
    active[rng.choice(9, size=n_active, replace=False)] = True
    found, out, order = Systems(H), np.zeros((9, 9)), np.zeros(9, dtype=np.int64)
    assert found.factor_into(out, order, active) == n_active
    rows, factor = np.flatnonzero(active), np.tril(out[:n_active, :n_active])
    np.testing.assert_array_equal(order[:n_active], rows)
    np.testing.assert_allclose(factor @ factor.T, H[np.ix_(rows, rows)], atol=1e-10)


def test_what_depends_on_the_others_gets_a_factor_of_its_own():
    """A border would solve for what is left of it after rounding, which has no sign."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 40))
    rows[:, -1] = rows[:, :3].sum(axis=1) + 1e-7 * rng.normal(size=400)
    H, active = rows.T @ rows, np.arange(40) < 39
    found = Systems(H)
    found.solve(active, rng.normal(size=40))
    found.solve(np.ones(40, dtype=bool), rng.normal(size=40))
    assert found.exact


def test_a_border_without_numbers_is_none():
    """Where arithmetic overflowed, what is near to it tells nothing, and nobody is stopped."""
    H = np.eye(21)
    H[20, 20] = np.nan
    systems, active = Systems(H), np.arange(21) < 20
    np.testing.assert_array_equal(systems.solve(active, np.ones(21)), active)
    assert np.isnan(systems.solve(np.ones(21, dtype=bool), np.ones(21))).any()
