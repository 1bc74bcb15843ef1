"""Where a path begins, and how it goes on."""

from __future__ import annotations

import numpy as np
import pytest

from safesift.grids import Edge, Grid, Walk, alpha_grid, alpha_max, check_levels, radius_min
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
    alphas, radii = (Grid.given(asked, problem_of(penalty=name)) for name in ("l2", "l1_ball"))
    assert alphas.levels.tolist() == [3, 2, 1] and radii.levels.tolist() == [1, 2, 3]
    for grid in (alphas, radii):
        np.testing.assert_array_equal(grid.levels[grid.as_asked(3)], asked)


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
    with pytest.raises(ValueError, match="eps must be below 1"):
        alpha_grid(problem_of(), 3, 1.0)


# --- how far --------------------------------------------------------------------------------------


def scaled(problem, factors):
    return make_problems(
        problem.design.data * factors, problem.y, loss=problem.loss, penalty=problem.penalty,
        alpha=1.0, fit_intercept=problem.fit_intercept,
    ).problem  # fmt: skip


@pytest.mark.parametrize(("penalty", "power"), [("l2", 2), ("l1", 1), ("l2_ball", -1)])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "squared", "huber"])
def test_a_grid_moves_with_the_units(loss, penalty, power):
    problem = problem_of(loss, penalty)
    grid, other = Grid.of([problem]), Grid.of([scaled(problem, 1000.0)])
    np.testing.assert_allclose(other.levels, 1000.0**power * grid.levels, rtol=1e-6)
    assert (other.n_needed, other.n_least) == (grid.n_needed, grid.n_least)


@pytest.mark.parametrize(("penalty", "decades"), [("l2", 8), ("l1", 4), ("l2_ball", 4)])
def test_a_small_column_makes_a_grid_longer(penalty, decades):
    problem = problem_of("squared", penalty)
    small = scaled(problem, np.array([1.0, 1e-4, 1.0, 1.0]))
    before, after = (Grid.of([one], 40).n_needed / 10 for one in (problem, small))
    # two decades there are in any case
    assert before < 5 and after > decades and decades - 2 < after - before < decades + 1


def test_small_columns_of_noise_do_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=5000)
    how = {"loss": "squared", "penalty": "l2", "alpha": 1.0}
    X[:, 2] -= X[:, 2] @ y / (y @ y) * y
    even = Grid.of([make_problems(X, y, **how).problem]).n_needed
    X[:, 2] *= 1e-6
    assert Grid.of([make_problems(X, y, **how).problem]).n_needed == even


def test_levels_of_a_grid():
    problem = problem_of("squared_hinge", "l2")
    grid = Grid.of([problem], 8)
    assert grid.levels[0] == pytest.approx(10 * alpha_max(problem))
    np.testing.assert_allclose(np.diff(np.log10(grid.levels)), -0.5)
    assert grid.levels[-1] == pytest.approx(1e-20 * grid.levels[0])
    # with exact zeros the model is constant at alpha_max already
    assert Grid.of([problem_of()], 8).levels[0] == pytest.approx(alpha_max(problem_of()))
    fixed = Grid.of([problem], 8, 1e-3)
    np.testing.assert_array_equal(fixed.levels, alpha_grid(problem, 8, 1e-3))
    assert fixed.n_needed == 8
    # of several classes, the strongest regularisation that one of them needs
    classes = [problem, problem.with_targets(np.where(np.arange(80) < 5, 1.0, -1.0))]
    assert Grid.of(classes, 8).levels[0] == max(Grid.of([one], 8).levels[0] for one in classes)


def walked(scores=None, falls=0.1, n_needed=3, n_levels=21, unsolved=()):
    """How many levels a way has, one decade each, and the edge at which it was best."""
    problem = problem_of("squared_hinge", "l2")
    levels = 10.0 * alpha_max(problem) * 10.0 ** -np.arange(n_levels)
    walk = Walk(Grid(levels, n_needed=n_needed, n_least=2), [problem])
    value = problem.constant_value
    for i in range(n_levels):
        if not walk.enters(i not in unsolved):
            break
        value -= falls * problem.reference * (i < 10)
        walk.note([value], None if scores is None else scores[min(i, len(scores) - 1)])
        if walk.ended:
            break
    return walk.n_seen, walk.edge


@pytest.mark.parametrize(
    ("how", "n_seen"),
    [
        # the objective stands still from the tenth level on
        ({"falls": 0.01}, 11),
        ({"falls": 0.9e-3}, 3),
        ({"falls": 0.0, "n_needed": 5}, 5),
        # the best score is at the second, and at the fifth: two decades more
        ({"scores": [0.5, 0.6, 0.5]}, 4),
        ({"scores": [0.5, 0.6, 0.5, 0.5, 0.7, 0.7], "n_needed": 5}, 7),
        ({"scores": [-np.inf]}, 3),
        # as long as it gets better, and something moves
        ({"scores": np.arange(30.0)}, 11),
        # what cannot be solved, unless it is among the first two
        ({"unsolved": [7]}, 7),
        ({"unsolved": [2], "n_needed": 9}, 2),
        ({"unsolved": [0, 1], "falls": 0.01}, 11),
    ],
)
def test_where_a_way_ends(how, n_seen):
    assert walked(**how)[0] == n_seen


def test_edges():
    assert walked(np.arange(30.0))[1] is None  # nothing moves any more
    assert walked(np.arange(30.0), n_levels=5)[1] == Edge("smallest", "smaller")
    assert walked(np.arange(30.0), unsolved=[6])[1] == Edge("smallest", "smaller")
    assert walked(-np.arange(30.0))[1] is None  # it begins with a constant model
    assert walked([0.0], n_levels=1)[1] is None


@pytest.mark.parametrize("penalty", ["l2", "elastic_net"])
def test_units_may_be_further_apart_than_numbers_reach(penalty):
    """The quotient of two alphas underflows where each of them is a number."""
    X = np.random.default_rng(0).normal(size=(20, 3)) * [1e-100, 1.0, 1e100]
    made = make_problems(
        X, np.arange(20) % 2, loss="squared_hinge", penalty=penalty, alpha=1.0, fit_intercept=True
    )
    grid = Grid.of(made.problems)
    assert np.isfinite(grid.levels).all() and (grid.levels > 0).all()
    assert grid.n_needed == len(grid.levels)
