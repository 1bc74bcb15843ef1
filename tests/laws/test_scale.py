"""Rows in blocks: the model, the gap and the verdicts are those of all rows in memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safesift.losses import LOSSES
from tests.laws import scale_laws as laws
from tests.laws.definitions import written
from tests.laws.problems import recipes
from tests.laws.strategies import SMOOTH_NAMES, examples
from tests.laws.test_regions import decided

SMOOTH = tuple(name for name in written(LOSSES) if name in SMOOTH_NAMES)

shares = st.one_of(st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.floats(0.0, 1.0))
cuts = st.builds(
    laws.Cut,
    recipe=recipes(loss=SMOOTH),
    cuts=st.lists(shares, max_size=8).map(tuple),
    sampled=st.integers(2, 6),
    levels=st.sampled_from([(1.0,), (10.0, 1.0, 0.5)]),
    memory=st.sampled_from([10**9, 9000]),
)


@pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.__name__.removeprefix("law_"))
@examples(0.4)
@given(case=cuts)
def test_rows_in_blocks(law, case):
    decided(law, case)
