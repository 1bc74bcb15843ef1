"""The laws of rows on a device can fail: each mistake, patched in, makes one of them break."""

from __future__ import annotations

import array_api_strict as xp
import numpy as np
import pytest

from safesift.arithmetic.devices import arrays
from safesift.arithmetic.devices.arrays import DeviceArray
from safesift.arithmetic.devices.places import Place, brought_here, place_named
from safesift.design import device
from safesift.design.device import DeviceDesign
from safesift.losses import classification
from safesift.problem import decisions
from tests.laws import device_laws as laws

pytestmark = pytest.mark.slow


def fails(law, n: int = 40, **fields) -> bool:
    """Whether the law fails for one of some problems."""
    place = place_named("strict")
    with np.errstate(all="ignore"):
        for twin in laws.twins(n, **fields):
            try:
                law(twin, place)
            except (AssertionError, ValueError):
                return True
    return False


def test_without_a_mistake_no_law_fails():
    for law in laws.LAWS:
        assert not fails(law, 3), law.__name__


@pytest.mark.parametrize("bound", ["dot_error", "sum_error", "gram_error"])
def test_a_bound_below_the_rounding_of_a_sum(bound, monkeypatch):
    monkeypatch.setattr(DeviceDesign, bound, 2.0**-60)
    assert fails(laws.law_products_are_within_their_bounds)


def test_products_in_float32_with_the_bounds_of_float64(monkeypatch):
    monkeypatch.setattr(device, "_EPS_SINGLE", 2.0**-60)
    assert fails(laws.law_products_are_within_their_bounds, shortened=True)


def test_products_in_float32(monkeypatch):
    whole = DeviceDesign.matvec
    monkeypatch.setattr(
        DeviceDesign,
        "matvec",
        lambda self, x: whole(self, x).astype(np.float32).astype(np.float64),
    )
    assert fails(laws.law_products_are_within_their_bounds)
    assert fails(laws.law_evaluations_agree)


def test_sums_that_forget_their_rest(monkeypatch):
    def short(array, xp):
        return xp.sum(array[: max(array.shape[0] - 1, 1), ...], axis=0)

    monkeypatch.setattr(arrays, "split_sum", short)
    assert fails(laws.law_looks_are_those_of_the_numpy_form)


def test_blocks_that_forget_their_rest(monkeypatch):
    whole = device.products
    monkeypatch.setattr(device, "_LONGEST", 4)
    monkeypatch.setattr(device, "products", lambda *a: whole(*a)[:1])
    assert fails(laws.law_operations_are_those_of_rows_here)


def test_rows_scattered_to_their_neighbours(monkeypatch):
    whole = DeviceArray._scatter

    def moved(self, key, values):
        if key.dtype == bool:
            key = DeviceArray(xp.roll(key.array, 1), key.place)
        whole(self, key, values)

    monkeypatch.setattr(DeviceArray, "_scatter", moved)
    assert fails(laws.law_regions_contain_the_optimum)


def test_an_expit_without_digits(monkeypatch):
    whole = classification.expit

    def cancelled(x):
        return 1.0 - 1.0 / (1.0 + np.exp(x)) if isinstance(x, DeviceArray) else whole(x)

    monkeypatch.setattr(classification, "expit", cancelled)
    assert fails(laws.law_looks_are_those_of_the_numpy_form, loss="logistic")


def test_rows_on_the_edge_of_a_piece(monkeypatch):
    """Decided by predictions alone, without the bounds around them."""
    whole = decisions.Bounds.take

    def narrowed(self, rows):
        lower, upper = whole(self, rows)
        middle = 0.5 * (lower + upper)
        return decisions.Bounds(middle, middle)

    monkeypatch.setattr(decisions.Bounds, "take", narrowed)
    assert fails(laws.law_regions_contain_the_optimum)


def test_a_vector_that_leaves_the_device(monkeypatch):
    whole = DeviceDesign.rmatvec

    def here(self, u):
        brought_here(self.vector(u).array)
        return whole(self, u)

    monkeypatch.setattr(DeviceDesign, "rmatvec", here)
    assert fails(laws.law_nothing_that_grows_leaves_the_device, 3)


def test_the_wrong_device_is_noticed():
    other = Place(xp, xp.Device("device2"))
    one = DeviceArray(xp.asarray([1.0], device=other.device), other)
    with pytest.raises((ValueError, RuntimeError)):
        one + DeviceArray(xp.asarray([1.0], device=xp.Device("device1")))
