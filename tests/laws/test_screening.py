"""Nothing is ever decided wrongly, and the reduced problem has the optima of the full one."""

import numpy as np
import pytest
from hypothesis import given

import safesift as ss
from tests.laws import laws
from tests.laws.problems import recipes
from tests.laws.test_regions import decided


@given(recipe=recipes())
def test_decided_rows_are_on_their_piece(recipe):
    decided(laws.law_decided_rows_are_on_their_piece, recipe)


@given(recipe=recipes())
def test_reduced_solution_is_optimal(recipe):
    decided(laws.law_reduced_solution_is_optimal, recipe)


@given(recipe=recipes(penalty=("l1", "l1_ball"), family="duplicates", intercept=False))
def test_every_reduced_solution_is_optimal(recipe):
    decided(laws.law_every_reduced_solution_is_optimal, recipe)


@given(recipe=recipes())
def test_weights_are_repetitions(recipe):
    decided(laws.law_weights_are_repetitions, recipe)


@given(recipe=recipes())
def test_permutation_and_storage(recipe):
    decided(laws.law_permutation_and_storage, recipe)


def test_set_with_several_optima_drops_nothing_that_matters():
    """The example against "a set containing *the* optimum": (1, 0) and (0, 1) are both optimal.

    P = ½[1 − x₁ − x₂]₊ + ½[1 − 3x₁]₊ + 0.1‖x‖₁. A set around (1, 0) alone would drop row 2, and
    (0, 1) solves what is left but not the full problem.
    """
    X, y = np.array([[1.0, 1.0], [3.0, 0.0], [0.0, 0.0]]), np.array([1, 1, -1])
    weights = np.array([1.0, 1.0, 1e-9])  # a second class, of next to no weight
    result = ss.screen(
        X, y, loss="hinge", penalty="l1", alpha=0.1, sample_weight=weights, coef=[1.0, 0.0],
        screening=ss.regions.Ellipsoid(n_steps=200), fit_intercept=False,
    )  # fmt: skip
    assert result.certified
    assert result.kept[1]


@pytest.mark.parametrize("steps", [20])
def test_toy_interval_regression(steps):
    """The paper's toy: 20 intervals, 2 features of which 1 informative, l1, 20 ellipsoid steps."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(20, 2))
    center = 2.0 * X[:, 0] + 0.1 * rng.normal(size=20)
    loss = ss.losses.SquaredEpsilonInsensitive(epsilon=0.6)
    arguments = {"loss": loss, "penalty": "l1", "alpha": 0.02, "fit_intercept": False}
    result = ss.screen(X, center, **arguments, screening=ss.regions.Ellipsoid(n_steps=steps))
    assert result.certified
    assert result.kept.sum() < 10
    full = laws.optimum(result.problem)
    kept = laws.optimum(result.problem.restrict(result.kept))
    np.testing.assert_allclose(kept.point, full.point, atol=1e-6)
    np.testing.assert_allclose(laws.optimum(result.reduced).point, full.point, atol=1e-6)
