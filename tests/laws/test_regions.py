"""Every region contains every optimum, and its bounds are the true extrema over it."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from safesift import regions
from safesift.design import DenseDesign
from safesift.regions.ball import Balls
from tests.laws import laws
from tests.laws.planted_laws import suits
from tests.laws.problems import build, recipes
from tests.laws.reference import NotSolvedError

Ellipsoid, Cut = regions.Ellipsoid, regions.HalfSpaceCut

# regions that need strong convexity in all coordinates
BALLS = [
    Cut(regions.GapBall(), "central"),
    Cut(regions.GapBall(), "deep"),
    Cut(regions.GradientBall(), "deep"),
]
# regions for every problem
GENERAL = [
    Cut(regions.NormBall(), "deep"),
    Ellipsoid(n_steps=1),
    Ellipsoid(n_steps=7, depth="central", form="dense"),
    Ellipsoid(n_steps=30, form="low_rank"),
    Ellipsoid(n_steps=30, start="norm_ball"),
    Cut(Ellipsoid(n_steps=12), "central"),
    regions.Curvature(rank=2),
    Balls(),
]


def decided(law, *arguments):
    """Run a law; where the reference solver gave up there is no verdict."""
    try:
        law(*arguments)
    except NotSolvedError:
        assume(False)


@pytest.mark.parametrize("name", sorted(regions.REGIONS))
@given(recipe=recipes())
def test_registered_regions_contain_the_optimum(name, recipe):
    region = regions.REGIONS[name]()
    assume(suits(region, build(recipe)))
    decided(laws.law_region_contains_optimum, recipe, region)


@pytest.mark.parametrize("region", BALLS, ids=repr)
@given(recipe=recipes(penalty=laws.STRONG, intercept=False))
def test_balls_contain_the_optimum(region, recipe):
    decided(laws.law_region_contains_optimum, recipe, region)


@pytest.mark.parametrize("region", GENERAL, ids=repr)
@given(recipe=recipes())
def test_general_regions_contain_the_optimum(region, recipe):
    decided(laws.law_region_contains_optimum, recipe, region)


@pytest.mark.parametrize(
    "region", [regions.NormBall(), Ellipsoid(n_steps=25), regions.Curvature()], ids=repr
)
@given(recipe=recipes(penalty=("l1", "l1_ball", "l2_ball"), family="duplicates", intercept=False))
def test_regions_contain_all_optima(region, recipe):
    decided(laws.law_region_contains_all_optima, recipe, region)


@given(recipe=recipes())
def test_gap_bounds_suboptimality(recipe):
    decided(laws.law_gap_bounds_suboptimality, recipe)


@given(recipe=recipes(penalty=("l2",), intercept=False), ratio=st.floats(0.3, 3))
def test_solution_for_another_alpha(recipe, ratio):
    decided(laws.law_previous_alpha, recipe, ratio)


@given(
    recipe=recipes(
        loss=(
            "squared_hinge",
            "hinge",
            "logistic",
            "safe_logistic",
            "squared",
            "huber",
            "squared_interval",
            "absolute_interval",
            "smoothed_interval",
        ),
        penalty=("l2",),
        intercept=False,
    )
)
def test_solution_for_edited_data(recipe):
    decided(laws.law_edited_data, recipe)


@given(seed=st.integers(0, 2**32 - 1), depth=st.sampled_from([None, -0.5, 0.0, 0.3, 0.9, 0.99]))
def test_bounds_are_the_extrema_over_the_set(seed, depth):
    decided(laws.law_bounds_are_extrema, seed, depth)


@given(seed=st.integers(0, 2**32 - 1))
def test_cut_of_depth_one_leaves_a_point(seed):
    rng = np.random.default_rng(seed)
    test_set = laws.random_set(rng, int(rng.integers(1, 6)), 1.0)
    image = test_set.shape.transpose_product(test_set.cut.normal)
    point = test_set.center - test_set.shape.product(image / np.linalg.norm(image))
    rows = rng.normal(size=(4, len(point)))
    lower, upper = test_set.bounds(DenseDesign(rows))
    np.testing.assert_allclose(lower, rows @ point, atol=1e-5)
    np.testing.assert_allclose(upper, rows @ point, atol=1e-5)
    assert (lower <= rows @ point).all() and (rows @ point <= upper).all()
