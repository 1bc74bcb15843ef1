"""The laws of screening on losses made by infimum convolution, closed-form and numeric."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safesift import regions
from tests.laws import laws
from tests.laws.problems import recipes
from tests.laws.safe_losses import SAFE_LOSSES
from tests.laws.strategies import examples
from tests.laws.test_regions import decided

BALLS = [regions.GapBall(), regions.GradientBall(), regions.HalfSpaceCut(regions.GapBall(), "deep")]
GENERAL = [regions.NormBall(), regions.Ellipsoid(n_steps=15), regions.Auto()]
every_loss = pytest.mark.parametrize("name", sorted(SAFE_LOSSES))


@every_loss
@examples(0.1)
@given(data=st.data())
def test_decided_rows_are_on_their_piece(name, data):
    decided(laws.law_decided_rows_are_on_their_piece, data.draw(recipes(loss=[name])))


@every_loss
@examples(0.1)
@given(data=st.data())
def test_reduced_solution_is_optimal(name, data):
    decided(laws.law_reduced_solution_is_optimal, data.draw(recipes(loss=[name])))


@every_loss
@examples(0.1)
@given(data=st.data())
def test_gap_bounds_suboptimality(name, data):
    decided(laws.law_gap_bounds_suboptimality, data.draw(recipes(loss=[name])))


@pytest.mark.parametrize("region", BALLS, ids=repr)
@examples(0.3)
@given(recipe=recipes(loss=SAFE_LOSSES, penalty=laws.STRONG, intercept=False))
def test_balls_contain_the_optimum(region, recipe):
    decided(laws.law_region_contains_optimum, recipe, region)


@pytest.mark.parametrize("region", GENERAL, ids=repr)
@examples(0.3)
@given(recipe=recipes(loss=SAFE_LOSSES))
def test_general_regions_contain_the_optimum(region, recipe):
    decided(laws.law_region_contains_optimum, recipe, region)


@examples(0.3)
@given(recipe=recipes(loss=SAFE_LOSSES, penalty=("l2",), intercept=False), ratio=st.floats(0.3, 3))
def test_solution_for_another_alpha(recipe, ratio):
    decided(laws.law_previous_alpha, recipe, ratio)


@examples(0.3)
@given(recipe=recipes(loss=SAFE_LOSSES, penalty=("l2",), intercept=False))
def test_solution_for_edited_data(recipe):
    decided(laws.law_edited_data, recipe)


@examples(0.3)
@given(recipe=recipes(loss=SAFE_LOSSES))
def test_weights_are_repetitions(recipe):
    decided(laws.law_weights_are_repetitions, recipe)


@examples(0.3)
@given(recipe=recipes(loss=SAFE_LOSSES))
def test_permutation_and_storage(recipe):
    decided(laws.law_permutation_and_storage, recipe)
