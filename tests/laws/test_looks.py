"""The compiled loops over samples and over rows keep their laws, for every loss and storage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safesift.design import as_design
from safesift.losses import LOSSES, Squared
from safesift.losses.numeric import numeric_version
from safesift.problem import looks
from tests.laws import look_cases as made
from tests.laws import look_laws as laws
from tests.laws.strategies import examples

every_loss = pytest.mark.parametrize("name", made.NAMES)
every_storage = pytest.mark.parametrize("storage", made.STORAGES)


@pytest.fixture(scope="module", autouse=True)
def several_blocks():
    with made.small_blocks():
        yield


def test_every_loss_of_the_library_has_a_loop():
    y = {"classification": np.ones(2), "regression": np.ones(2), "interval": np.ones((2, 2))}
    without = [name for name in made.NAMES if LOSSES[name]().loops(y[LOSSES[name].task]) is None]
    assert without == []


def test_a_loss_without_a_loop_is_looked_at_in_numpy():
    design, y, pred = as_design(np.ones((5, 1)), False), np.arange(5.0), np.linspace(-1, 1, 5)
    problem = made.problem_of(design, numeric_version(Squared()), y, np.ones(5))
    look = looks.Look(problem, 1.0)
    assert look.fused is None
    loads = look.of_all(pred)
    nu, expected, sums = looks._in_numpy(problem, 1.0, pred, slice(0, 5))
    np.testing.assert_array_equal(look.nu, nu)
    np.testing.assert_array_equal(loads, expected)
    np.testing.assert_allclose(look.sums, sums, rtol=made.FEW)


def test_nothing_looked_at_is_nothing():
    problem = made.problem_of(as_design(np.ones((1, 1)), False), Squared(), np.ones(1), np.ones(1))
    assert not any(looks.Look(problem, 1.0).sums)


@every_loss
@pytest.mark.parametrize(
    "law",
    [
        laws.law_of_slopes_and_values,
        laws.law_of_terms,
        laws.law_of_changes,
        laws.law_of_shrinking,
        laws.law_of_sums,
        laws.law_of_the_numpy_form,
    ],
)
@examples(1.0)
@given(st.data())
def test_samples(law, name, data):
    case = data.draw(made.cases(name))
    with np.errstate(all="ignore"):
        law(case)


@every_loss
@examples(1.0)
@given(st.data())
def test_what_is_no_number(name, data):
    case = data.draw(made.cases(name, wild=True))
    with np.errstate(all="ignore"):
        laws.law_of_what_is_no_number(case)


@pytest.mark.parametrize("name", made.PIECEWISE)
@examples(1.0)
@given(st.data())
def test_exact_numbers(name, data):
    laws.law_of_exact_numbers(data.draw(made.dyadic_cases(name)))


@every_storage
@examples(1.0)
@given(st.data())
def test_rows(storage, data):
    laws.law_of_rows(data.draw(made.some_rows(storage)))


@every_loss
@every_storage
@examples(0.2)
@given(st.data())
def test_a_pass(name, storage, data):
    passed = data.draw(made.passes(name, storage))
    with np.errstate(all="ignore"):
        laws.law_of_a_pass(passed)


@pytest.mark.parametrize("name", made.SATURATED)
@examples(3.0)
@given(st.data())
def test_own_gaps_of_slopes_that_cancel(name, data):
    """Where rounding hides the sign of what the intercept's coordinate is."""
    laws.law_of_own_gaps(data.draw(made.balanced(name)))
