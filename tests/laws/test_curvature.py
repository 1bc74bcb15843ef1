"""Curvature regions contain every optimum: on problems whose optimum was planted, exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safesift import regions
from safesift.regions.base import Region
from tests.laws import planted, planted_laws
from tests.laws.strategies import examples

Curvature = regions.Curvature

seeds = st.integers(0, 2**32 - 1)
settings_drawn = st.tuples(
    seeds,
    st.sampled_from(planted.CURVED),
    st.sampled_from(planted.PENALTIES),
    st.sampled_from(planted.FAMILIES),
    st.booleans(),
)
REGIONS = [
    Curvature(rank=1),
    Curvature(rank=3, max_rounds=4),
    regions.HalfSpaceCut(Curvature(), "deep"),
    regions.Ellipsoid(n_steps=5, start="curvature"),
]


@examples(3)
@given(setting=settings_drawn)
@pytest.mark.parametrize("region", REGIONS, ids=repr)
def test_regions_contain_the_planted_optimum(region: Region, setting):
    planted_laws.law_planted_optimum(*setting, region=region)


@examples(3)
@given(setting=settings_drawn)
@pytest.mark.parametrize("name", sorted(regions.REGIONS))
def test_registered_regions_contain_the_planted_optimum(name, setting):
    planted_laws.law_planted_optimum(*setting, region=regions.REGIONS[name]())


@examples(3)
@given(setting=settings_drawn, below=st.floats(0, 1), above=st.floats(0, 1))
def test_ranges_of_alpha_contain_the_planted_optimum(setting, below, above):
    planted_laws.law_planted_optimum_in_a_range(*setting, below=below, above=above)


@examples(3)
@given(setting=settings_drawn)
def test_secants_are_between_their_bounds(setting):
    planted_laws.law_secant_bounds(*setting)


@examples(2)
@given(
    seed=seeds, loss=st.sampled_from(planted.CURVED), penalty=st.sampled_from(["l1", "elastic_net"])
)
def test_features_of_an_optimum_are_never_certified_zero(seed, loss, penalty):
    planted_laws.law_zero_features(seed, loss, penalty)


@pytest.mark.parametrize("loss", ["squared_hinge", "safe_logistic", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("penalty", ["l2", "l1", "elastic_net"])
@pytest.mark.parametrize("intercept", [False, True])
def test_decides_where_the_gap_ball_sees_nothing(loss, penalty, intercept):
    """Not only sound: from a rough centre most samples are decided."""
    decided = np.mean([
        planted_laws.planted_share_decided(seed, loss, penalty, intercept, Curvature())
        for seed in range(30)
    ])  # fmt: skip
    assert decided > 0.35, decided


def test_kinked_losses_get_the_plain_ball_and_are_told():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.choice([-1.0, 1.0], 50)
    import safesift as ss

    result = ss.screen(X, y, loss="hinge", alpha=1.0, screening="curvature", fit_intercept=False)
    assert result.certified
    assert "Hinge has no curvature" in result.region.describe()


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="rank must be a positive integer"):
        Curvature(rank=0)
    with pytest.raises(ValueError, match="max_rounds must be an integer"):
        Curvature(max_rounds=1)
