"""Signs of a quadratic model with an l1 penalty: found one by one, then confirmed afresh."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safesift.solvers import quadratic
from safesift.solvers.quadratic import Model, _SignSearch, lasso


def drawn_model(seed: int, decades: float) -> tuple[Model, float]:
    """Rows of very different weights, columns that are nearly the same, perhaps an intercept."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 40))
    rows = rng.normal(size=(d + 3, d)) * 10.0 ** -rng.uniform(0, decades / 2, (d + 3, 1))
    if d > 2:
        rows[:, 1] = rows[:, 0] + 1e-3 * rows[:, 1]
    H = rows.T @ rows
    H[np.diag_indices(d)] *= 1.0 + 1e-11
    b = rows.T @ rng.normal(size=d + 3)
    return Model(H, b, d - int(rng.integers(2))), float(
        np.abs(b).max() * 10.0 ** -rng.uniform(0, 4)
    )


def assert_optimal(model: Model, weight: float, u: np.ndarray) -> None:
    slopes, p = model.H @ u + model.b, model.p
    room = 1e-9 * (np.abs(model.H) @ np.abs(u) + np.abs(model.b)) + 1e-12 * weight
    assert (np.abs(slopes[:p]) <= weight + room[:p]).all()
    pulls = slopes[:p] + weight * np.sign(u[:p])
    assert (np.abs(pulls)[u[:p] != 0] <= room[:p][u[:p] != 0]).all()
    assert (np.abs(slopes[p:]) <= room[p:]).all()


@given(seed=st.integers(0, 2**32 - 1), decades=st.sampled_from([0.0, 6.0, 12.0]))
def test_the_model_is_minimised_from_anywhere(seed, decades):
    model, weight = drawn_model(seed, decades)
    rng = np.random.default_rng(seed)
    start = rng.normal(size=len(model.b)) * (rng.random(len(model.b)) < 0.5)
    assert_optimal(model, weight, lasso(model, weight, start))


@pytest.mark.parametrize("decades", [0.0, 12.0])
def test_signs_that_are_followed_are_right(decades):
    """From no coordinate at all, and from all of them, with the wrong signs."""
    for seed in range(40):
        model, weight = drawn_model(seed, decades)
        for start in (np.zeros(len(model.b)), np.sign(model.b)):
            search = _SignSearch(model, weight, start)
            assert search.follow()
            assert (search.active[: model.p] == (search.u[: model.p] != 0)).all()
            followed = search.signs.copy()
            assert search.exchange()
            np.testing.assert_array_equal(followed, search.signs)
            assert_optimal(model, weight, search.u)


def test_columns_that_are_the_same_are_not_both_taken():
    rows = np.random.default_rng(0).normal(size=(20, 4))
    twice = np.hstack([rows, rows])
    model = Model(twice.T @ twice, twice.T @ np.ones(20), 8)
    search = _SignSearch(model, 1e-3, np.ones(8))
    assert search.follow()
    assert np.isfinite(search.u).all() and search.active.sum() <= 4
    assert_optimal(model, 1e-3, search.u)


def test_too_many_coordinates_are_not_followed(monkeypatch):
    monkeypatch.setattr(quadratic, "_MOST_FOLLOWED", 3)
    model = Model(np.eye(4), np.ones(4), 4)
    search = _SignSearch(model, 0.1, np.zeros(4))
    assert not search.follow() and not search.u.any()
    np.testing.assert_allclose(lasso(model, 0.1, np.zeros(4)), -0.9)


def test_what_cannot_be_factored_is_left_as_it_was():
    model = Model(np.full((3, 3), np.nan), np.ones(3), 3)
    search = _SignSearch(model, 0.1, np.ones(3))
    search.follow()
    assert np.isfinite(search.u).all()
