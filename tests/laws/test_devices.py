"""Rows on a device keep the laws of rows here, on array-api-strict and wherever there is one."""

from __future__ import annotations

import importlib.util

import array_api_strict  # noqa: F401  whoever has imported it has its device
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safesift.arithmetic.devices.places import place_named
from safesift.design import device
from tests.laws import device_laws as laws
from tests.laws.strategies import examples

DEVICES = ["strict"] + (["cpu"] if importlib.util.find_spec("torch") else [])

twins = st.builds(
    laws.Twin,
    loss=st.sampled_from(sorted(laws.LOSSES)),
    penalty=st.sampled_from(sorted(laws.PENALTIES)),
    intercept=st.booleans(),
    weighted=st.booleans(),
    single=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)


@pytest.fixture(params=[2, 1000], ids=["small blocks", "one block"])
def blocks(request, monkeypatch):
    """Sums of few rows at a time, or of all."""
    monkeypatch.setattr(device, "_LONGEST", request.param)
    monkeypatch.setattr(device, "_LONGEST_GRAM", request.param)


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.__name__.removeprefix("law_"))
@examples(0.25)
@given(twin=twins)
def test_rows_on_a_device(law, name, twin):
    with np.errstate(all="ignore"):
        law(twin, place_named(name))


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize(
    "law",
    [laws.law_products_are_within_their_bounds, laws.law_operations_are_those_of_rows_here],
    ids=lambda law: law.__name__.removeprefix("law_"),
)
def test_products_in_blocks(law, name, blocks):
    for twin in laws.twins(20):
        law(twin, place_named(name))


def test_products_with_room_to_spare(monkeypatch):
    """Rows are converted once, as a whole."""
    monkeypatch.setattr(device, "free_bytes", lambda place: 10**12)
    for twin in laws.twins(20, single=True):
        laws.law_operations_are_those_of_rows_here(twin, place_named("strict"))
        laws.law_products_are_within_their_bounds(twin, place_named("strict"))
