"""Rows in blocks: the model, the gap and the verdicts are those of all rows in memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safesift.losses import LOSSES
from tests.laws import scale_laws as laws
from tests.laws.definitions import written
from tests.laws.problems import Recipe, recipes
from tests.laws.strategies import examples
from tests.laws.test_regions import decided

shares = st.one_of(st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.floats(0.0, 1.0))
cuts = st.builds(
    laws.Cut,
    recipe=recipes(loss=tuple(written(LOSSES))),
    cuts=st.lists(shares, max_size=8).map(tuple),
    sampled=st.integers(2, 6),
    levels=st.sampled_from([(1.0,), (10.0, 1.0, 0.5)]),
    memory=st.sampled_from([10**9, 9000]),
    whole=st.sampled_from([False, False, False, True]),
)
raw = st.builds(
    laws.Cut,
    recipe=recipes(
        loss=("squared_hinge", "huber"), penalty=("l2",), family="random", intercept=True
    ),
    cuts=st.lists(shares, max_size=4).map(tuple),
    raw=st.just(True),
    whole=st.booleans(),
)


@pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.__name__.removeprefix("law_"))
@examples(0.2)
@given(case=cuts)
def test_rows_in_blocks(law, case):
    decided(law, case)


@pytest.mark.parametrize(
    "law",
    [laws.law_gap_bounds_suboptimality, laws.law_converges, laws.law_verdicts_are_right],
    ids=lambda law: law.__name__.removeprefix("law_"),
)
@examples(0.2)
@given(case=raw)
def test_columns_as_they_come(law, case):
    """Of very different sizes, far from 0: no pass is the same as the one before."""
    decided(law, case)


@pytest.mark.parametrize(
    ("family", "seed", "sampled"), [("collinear", 163, 2), ("kink", 134, 4), ("offset", 179, 6)]
)
def test_curvature_is_not_given_up_where_little_is_gained(family, seed, sampled):
    """Of a loss that curves until it is flat, whose curvature jumps there."""
    recipe = Recipe("safe_logistic", "elastic_net", family, True, seed != 179, seed=seed)
    laws.law_converges(laws.Cut(recipe, sampled=sampled, memory=9000))


@examples(0.1)
@given(case=cuts)
def test_folds_are_problems_of_their_own(case):
    decided(laws.law_folds_are_problems_of_their_own, case)
