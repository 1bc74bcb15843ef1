"""Laws of dual forms: each is the conjugate, and a loss declares one wherever there is one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import xlog1py, xlogy

from safesift.losses import (
    LOSSES,
    IntervalLoss,
    Logistic,
    Loss,
    MarginLoss,
    ResidualLoss,
    Scaled,
    Squared,
)
from tests.laws.safe_losses import SAFE_LOSSES
from tests.laws.strategies import LOSS_NAMES, TINY, examples, numbers, samples

EPS = float(np.finfo(float).eps)
every_loss = pytest.mark.parametrize("name", LOSS_NAMES)
every_loss_with_a_form = pytest.mark.parametrize(
    "name", [name for name in LOSS_NAMES if not name.endswith("logistic")]
)
factors = st.one_of(st.sampled_from([0.5, 3.0]), st.floats(0.05, 20))


class Case(NamedTuple):
    """A loss with targets, and dual variables that are clipped to their domain."""

    loss: Loss
    y: np.ndarray
    nu: np.ndarray


# --- the laws -----------------------------------------------------------------------------------


def law_form_is_the_conjugate(case: Case) -> None:
    """At any ν in the domain, which is the one declared; a side beyond it is not needed."""
    loss, y, nu = case
    form = loss.dual_form(y)
    if form is None:
        return
    least, most = loss.dual_interval(y)
    np.testing.assert_array_equal(form.least, least)
    np.testing.assert_array_equal(form.most, most)
    np.testing.assert_array_equal(np.isneginf(form.low), least == 0)
    np.testing.assert_array_equal(np.isposinf(form.high), most == 0)
    assert (form.low <= form.high).all()
    nu = np.clip(nu, least, most)
    # ν over a factor may underflow
    room = 32 * EPS * loss.conjugate_size(nu, y) + 1e4 * TINY
    assert (np.abs(form.value(nu) - loss.conjugate(nu, y)) <= room).all()


def law_form_is_declared_where_there_is_one(case: Case) -> None:
    """By losses that are known to the last digit, and by no others."""
    loss, y, _ = case
    exists = loss.quadratic_rays and loss.precision == 0 and has_the_shape(loss, y)
    assert (loss.dual_form(y) is not None) == exists


def law_entropy_is_the_conjugate(case: Case) -> None:
    """Where signs are declared; u = −sign·ν."""
    loss, y, nu = case
    signs = loss.entropy_signs(y)
    if signs is None:
        return
    u = np.clip(-signs * nu, 0.0, 1.0)
    room = 32 * EPS * loss.conjugate_size(-signs * u, y) + 1e4 * TINY
    entropy = xlogy(u, u) + xlog1py(1.0 - u, -u)
    assert (np.abs(entropy - loss.conjugate(-signs * u, y)) <= room).all()


def has_the_shape(loss: Loss, y: np.ndarray) -> bool:
    """Whether (f*(v) − ½v²/smoothness)/v is one number along either side of 0."""
    size = 1.0 + np.abs(loss.anchors(y)).max(axis=0)
    for end in loss.dual_interval(y):
        known = end != 0
        shares = np.array([[0.5], [0.25], [0.1]])
        v = shares * np.where(known, np.clip(end, -1.0, 1.0), 1.0)
        slopes = loss.conjugate(v, y) / v - 0.5 * v / loss.smoothness
        if (np.ptp(slopes[:, known], axis=0) > 1e-9 * size[known]).any():
            return False
    return True


# --- they hold ----------------------------------------------------------------------------------


@st.composite
def cases(draw, name):
    loss, _, y = draw(samples(name))
    if draw(st.booleans()):
        loss = Scaled(loss, draw(factors))
    return Case(loss, y, draw(hnp.arrays(np.float64, len(y), elements=numbers)))


@every_loss
@examples(1)
@given(data=st.data())
def test_form_is_the_conjugate(name, data):
    law_form_is_the_conjugate(data.draw(cases(name)))


@every_loss
@examples(0.5)
@given(data=st.data())
def test_entropy_is_the_conjugate(name, data):
    case = data.draw(cases(name))
    law_entropy_is_the_conjugate(case)
    assert (case.loss.entropy_signs(case.y) is not None) == isinstance(case.loss, Logistic)


def test_wrong_signs_are_noticed(monkeypatch):
    some = fixed("logistic")[:1]
    assert not fails(law_entropy_is_the_conjugate, some)
    monkeypatch.setattr(Logistic, "entropy_signs", lambda self, y: -np.asarray(y))
    assert fails(law_entropy_is_the_conjugate, some)


@every_loss
@examples(0.5)
@given(data=st.data())
def test_form_is_declared_where_there_is_one(name, data):
    law_form_is_declared_where_there_is_one(data.draw(cases(name)))


@every_loss
@examples(0.5)
@given(data=st.data())
def test_form_of_some_of_the_samples(name, data):
    loss, y, _ = data.draw(cases(name))
    rows = data.draw(hnp.arrays(bool, len(y)))
    whole, part = loss.dual_form(y), loss.take(rows).dual_form(y[rows])
    if whole is None:
        assert part is None
        return
    taken = whole.take(rows)
    assert part.curvature == taken.curvature
    for end in ("low", "high", "least", "most"):
        np.testing.assert_array_equal(getattr(part, end), getattr(taken, end))


@pytest.mark.parametrize("name", sorted(SAFE_LOSSES))
def test_losses_beyond_the_registry(name):
    rng = np.random.default_rng(0)
    for _ in range(5):
        case = some_case(SAFE_LOSSES[name].make(rng), rng)
        assert (case.loss.dual_form(case.y) is None) == name.startswith("numeric")
        law_form_is_declared_where_there_is_one(case)
        law_form_is_the_conjugate(case)


def some_case(loss: Loss, rng: np.random.Generator, n: int = 40) -> Case:
    """Labels, targets, or intervals of which some are open on one side or on both."""
    y, nu = rng.normal(size=n), rng.normal(size=n)
    if loss.task == "classification":
        y = np.where(y < 0, -1.0, 1.0)
    if loss.task == "interval":
        low, high = (np.where(rng.random(n) < 0.3, math.inf, rng.random(n)) for _ in range(2))
        y = np.column_stack([y - low, y + high])
    return Case(loss, y, nu)


# --- they can fail ------------------------------------------------------------------------------


def fails(law: Callable[[Case], None], some: list[Case]) -> bool:
    """Whether the law fails for one of the cases."""
    for case in some:
        try:
            law(case)
        except AssertionError:
            return True
    return False


def fixed(name: str) -> list[Case]:
    rng, loss = np.random.default_rng(0), LOSSES[name]()
    return [some_case(each, rng) for each in (loss, Scaled(loss, 2.5))]


MISTAKES = {
    "curvature": lambda form: {"curvature": form.curvature + 1e-9},
    "low": lambda form: {"low": form.low - 1e-9},
    "high": lambda form: {"high": form.high + 1e-9},
    "least": lambda form: {"least": np.maximum(form.least, -0.5)},
    "most": lambda form: {"most": np.minimum(form.most, 0.5)},
    "sides": lambda form: {"low": -form.high, "high": -form.low},
}


@every_loss_with_a_form
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_number_is_noticed(monkeypatch, name, mistake):
    assert not fails(law_form_is_the_conjugate, fixed(name))
    whole = Loss.dual_form

    def wrong(self, y):
        form = whole(self, y)
        return replace(form, **MISTAKES[mistake](form))

    monkeypatch.setattr(Loss, "dual_form", wrong)
    assert fails(law_form_is_the_conjugate, fixed(name))


@every_loss_with_a_form
def test_a_forgotten_declaration_is_noticed(monkeypatch, name):
    assert not fails(law_form_is_declared_where_there_is_one, fixed(name))
    for family in (MarginLoss, ResidualLoss, IntervalLoss):
        monkeypatch.setattr(family, "_dual_kink", Loss._dual_kink)
    assert fails(law_form_is_declared_where_there_is_one, fixed(name))


@pytest.mark.parametrize("name", ["logistic", "safe_logistic"])
def test_a_form_for_logarithms_is_noticed(monkeypatch, name):
    monkeypatch.setattr(LOSSES[name], "quadratic_rays", True)
    assert not fails(law_form_is_declared_where_there_is_one, fixed(name))
    monkeypatch.setattr(LOSSES[name], "_minimisers", (0.0, math.inf))
    assert fails(law_form_is_declared_where_there_is_one, fixed(name))
    assert fails(law_form_is_the_conjugate, fixed(name))


@dataclass(frozen=True)
class Expectile(Squared):
    """½r² below 0 and r² above: rays are quadratic, of one curvature on either side."""

    smoothness = 2.0
    _minimisers = None

    def _conjugate_ratio(self, u):
        return np.where(u > 0, 0.25, 0.5) * u


def test_one_form_for_two_curvatures_is_noticed(monkeypatch):
    some = [some_case(Expectile(), np.random.default_rng(0))]
    assert not fails(law_form_is_declared_where_there_is_one, some)
    monkeypatch.setattr(Expectile, "_minimisers", (0.0, 0.0))
    assert fails(law_form_is_declared_where_there_is_one, some)
    assert fails(law_form_is_the_conjugate, some)
