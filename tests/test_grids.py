"""Where a path begins, and how it goes on."""

from __future__ import annotations

import numpy as np
import pytest

from safesift.grids import PathOrder, alpha_grid, alpha_max, check_levels, radius_min
from safesift.penalties import ElasticNet
from safesift.problem.inputs import make_problems
from tests.solving import newton


def problem_of(loss="squared_hinge", penalty="l1", fit_intercept=True, weights=None, n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) + 1.0
    y = X @ [1.0, -0.5, 0.0, 0.2] + 0.5 * rng.normal(size=n)
    if "hinge" in loss or "logistic" in loss:
        y = y > 0.3
    return make_problems(
        X, y, loss=loss, penalty=penalty, alpha=1.0, fit_intercept=fit_intercept,
        sample_weight=weights,
    ).problem  # fmt: skip


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("penalty", ["l1", ElasticNet(0.3)], ids=str)
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "squared", "huber"])
def test_l1_begins_at_the_smallest_alpha_without_coefficients(loss, penalty, fit_intercept):
    weights = np.random.default_rng(1).choice([0.0, 1.0, 2.5], 80)
    problem = problem_of(loss, penalty, fit_intercept, weights)
    largest = alpha_max(problem)
    above = newton(problem.at_level(1.001 * largest), tol=1e-12).at.point
    below = newton(problem.at_level(0.98 * largest), tol=1e-12).at.point
    assert np.abs(above[:4]).max() < 1e-6
    assert np.abs(below[:4]).max() > 1e-4


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_at_kinks_the_alpha_leaves_no_coefficient_either(loss, fit_intercept):
    problem = problem_of(loss, "l1", fit_intercept)
    beyond = problem.at_level(1.001 * alpha_max(problem))
    at = beyond.evaluate(beyond.constant_point)
    assert newton(beyond, tol=1e-7).at.value >= at.value * (1 - 1e-6)


@pytest.mark.parametrize("penalty", ["l2", ElasticNet(0.0), "l2_ball", "l1_ball"], ids=str)
@pytest.mark.parametrize("loss", ["squared_hinge", "squared", "safe_logistic"])
def test_l2_and_balls_begin_where_little_is_explained(loss, penalty):
    problem = problem_of(loss, penalty)
    levels = alpha_grid(problem, 5)
    values = [newton(problem.at_level(level), tol=1e-8).at.value for level in levels]
    assert values[0] >= 0.9 * problem.constant_value
    assert values[-1] < 0.8 * problem.constant_value
    assert (np.diff(values) < 1e-9).all()


def test_grids_fall_and_radii_grow():
    alphas = alpha_grid(problem_of(), 7, 1e-3)
    assert len(alphas) == 7 and (np.diff(alphas) < 0).all()
    np.testing.assert_allclose(alphas[[0, -1]], alpha_max(problem_of()) * np.array([1, 1e-3]))
    ball = problem_of(penalty="l1_ball")
    radii = alpha_grid(ball, 7, 1e-3)
    np.testing.assert_allclose(radii[[0, -1]], radius_min(ball) * np.array([1, 1e3]))


def test_a_path_goes_from_strong_to_weak_regularisation_whatever_the_order():
    asked = check_levels([1, 3, 2, 3])
    assert asked.tolist() == [1, 3, 2, 3]
    alphas, radii = (
        PathOrder.of(asked, problem_of(penalty=penalty)) for penalty in ("l2", "l1_ball")
    )
    assert alphas.levels.tolist() == [3, 2, 1] and radii.levels.tolist() == [1, 2, 3]
    for order in (alphas, radii):
        np.testing.assert_array_equal(order.levels[order.places], asked)


def test_weights_are_repetitions():
    rng = np.random.default_rng(3)
    weights = rng.integers(0, 3, 80)
    problem = problem_of(weights=weights, penalty="l2")
    rows = np.repeat(np.arange(80), weights)
    y = problem.y[rows] > 0
    repeated = make_problems(
        problem.design.data[rows], y, loss="squared_hinge", penalty="l2", alpha=1.0,
        fit_intercept=True,
    ).problem  # fmt: skip
    assert alpha_max(problem) == pytest.approx(alpha_max(repeated), rel=1e-9)


def test_nothing_to_explain():
    constant = make_problems(
        np.ones((4, 1)), [1.0, 1.0, 1.0, 1.0], loss="squared", penalty="l2", alpha=1.0,
        fit_intercept=True,
    ).problem  # fmt: skip
    assert alpha_max(constant) == 1.0


@pytest.mark.parametrize("alphas", [[], [1.0, -1.0], [np.nan], "many", 0.5, [[1.0]]], ids=str)
def test_what_is_no_grid(alphas):
    with pytest.raises(ValueError, match="alphas must be"):
        check_levels(alphas)


def test_what_is_no_number_of_alphas():
    with pytest.raises(ValueError, match="n_alphas must be a positive integer"):
        alpha_grid(problem_of(), 0)
    with pytest.raises(ValueError, match="ratio must be below 1"):
        alpha_grid(problem_of(), 3, 1.0)
