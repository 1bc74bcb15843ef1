"""Laws of the interval of an intercept: slopes alone bound that of every optimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safesift.problem.certificate import Certificate
from safesift.problem.decisions import decide
from safesift.problem.inputs import make_problems
from safesift.regions.ball import Balls, GapBall, may_decide
from safesift.regions.intercept import UnboundedInterceptError, _Slopes
from safesift.solvers import solve
from tests.laws.planted import FAMILIES, Planted, plant
from tests.laws.strategies import LOSS_NAMES, examples


def near(planted: Planted, seed: int) -> Certificate:
    """What is proved next to the optimum, nearer or further."""
    rng = np.random.default_rng([seed, 5])
    point = planted.optimum * (1.0 + 10.0 ** rng.uniform(-12, 0) * rng.normal())
    return planted.problem.certify(planted.problem.evaluate(point))


def law_slopes_bound_the_intercept(seed: int, loss: str, family: str) -> int:
    """How many of the four bounds there are."""
    planted = plant(seed, loss, "l2", family, True)
    certificate = near(planted, seed)
    slopes = _Slopes.around(certificate, GapBall().ball(certificate))
    if slopes is None:
        return 0
    down, up = slopes.near()
    room = planted.room + 1e-12 * (1.0 + abs(slopes.intercept))
    assert slopes.intercept - down - room <= planted.optimum[-1] <= slopes.intercept + up + room
    found = int(np.isfinite([down, up]).sum())
    for sign, bound in ((-1.0, down), (1.0, up)):
        try:
            farthest = slopes.farthest(sign)
        except UnboundedInterceptError:
            continue
        assert sign * (planted.optimum[-1] - slopes.intercept) <= farthest + room
        # bisection finds the end to one in a thousand
        assert farthest <= 1.002 * bound + 1e-13 * slopes.problem.unit + room
        found += 1
    return found


@pytest.mark.parametrize("loss", LOSS_NAMES)
@examples(1)
@given(seed=st.integers(0, 10**6), family=st.sampled_from(FAMILIES))
def test_slopes_bound_the_intercept(loss, seed, family):
    law_slopes_bound_the_intercept(seed, loss, family)


def law_nothing_is_lost(seed: int, loss: str, family: str) -> bool:
    """Where no interval of the intercept could help, the balls decide nothing; whether it is so."""
    certificate = near(plant(seed, loss, "l2", family, True), seed)
    problem = certificate.problem
    if may_decide(certificate):
        return False
    found = decide(problem, Balls().build(certificate).own_row_bounds(problem), "always")
    assert found.undecided[problem.weights > 0].all()
    return True


def test_short_rows_may_be_decided_next_to_an_intercept():
    """A row is as far from the centre as its features are long: the one of the intercept is not."""
    rng = np.random.default_rng(13)
    X = 1e-3 * rng.normal(size=(188, 5))
    y = np.where(X[:, 0] + 1e-3 * rng.normal(size=188) > 0.0, 1.0, -1.0)
    problem = make_problems(
        X, y, loss="squared_hinge", penalty="l2", alpha=1e-7, fit_intercept=True
    ).problem
    certificate = solve(problem, tol=1e-2, solver="dual_descent").certificate
    found = decide(problem, Balls().build(certificate).own_row_bounds(problem), "always")
    assert not found.undecided.all() and may_decide(certificate)


@pytest.mark.parametrize("loss", LOSS_NAMES)
@examples(0.5)
@given(seed=st.integers(0, 10**6), family=st.sampled_from(FAMILIES))
def test_nothing_is_lost_where_the_intercept_is_not_bounded(loss, seed, family):
    law_nothing_is_lost(seed, loss, family)


SETTINGS = [
    (seed, loss, FAMILIES[seed % len(FAMILIES)])
    for loss in ("squared_hinge", "hinge", "squared", "huber")
    for seed in range(40)
]


def broken() -> bool:
    for setting in SETTINGS:
        try:
            law_slopes_bound_the_intercept(*setting)
        except AssertionError:
            return True
    return False


def test_most_are_bounded():
    assert sum(law_slopes_bound_the_intercept(*setting) for setting in SETTINGS) > len(SETTINGS)


def test_some_gaps_decide_and_some_do_not():
    assert 0 < sum(law_nothing_is_lost(*setting) for setting in SETTINGS) < len(SETTINGS)


def _without_reach(slopes: _Slopes) -> _Slopes:
    return replace(slopes, reach=1e-9 * slopes.reach)


def _from_the_other_end(slopes: _Slopes) -> _Slopes:
    return replace(slopes, reach=-slopes.reach)


def _without_linear_term(slopes: _Slopes) -> _Slopes:
    return replace(slopes, problem=replace(slopes.problem, folded=None))


@pytest.mark.parametrize("mistake", [_without_reach, _from_the_other_end, _without_linear_term])
def test_a_mistake_is_noticed(monkeypatch, mistake):
    assert not broken()
    settled = _Slopes.settled
    monkeypatch.setattr(
        _Slopes, "settled", lambda self, sign, shift: settled(mistake(self), sign, shift)
    )
    assert broken()
