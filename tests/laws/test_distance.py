"""How far optima are, where a penalty is not strongly convex: planted, exactly, nothing folded.

Planted problems that carry a linear term (`tests.laws.planted`) have a folded part, of which less
is known. Here targets and a row for every column make a point optimal: all numbers are dyadic.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safesift import losses, penalties
from safesift.design import as_design
from safesift.problem.certificate import Certificate
from safesift.problem.evaluation import Folded
from safesift.problem.problem import Problem
from safesift.problem.risk import Risk
from safesift.regions import Curvature, energy
from safesift.regions.energy import distance_bound
from tests.laws.strategies import examples, fails

seeds = st.integers(0, 2**32 - 1)


class Lasso(NamedTuple):
    """A problem with twin columns, and two of its optima: a twin may take over."""

    problem: Problem
    optima: tuple[np.ndarray, np.ndarray]


def lasso(seed: int) -> Lasso:
    rng = np.random.default_rng([seed, 31])
    n, p = int(rng.integers(1, 9)), int(rng.integers(1, 4))
    rows, x = rng.integers(-16, 17, (n, p)) / 8.0, rng.integers(-16, 17, p) / 8.0
    x *= rng.random(p) < 0.7
    slopes, weights = rng.integers(-8, 9, n) / 8.0, 2.0 ** rng.integers(-3, 4, n)
    whole = 2.0 ** np.ceil(np.log2(weights.sum() + p + 2))
    alpha, factor = float(2.0 ** rng.integers(-8, 2)), float(2.0 ** rng.integers(-4, 5))
    signs = np.where(x != 0, np.sign(x), rng.integers(-8, 9, p) / 8.0)
    # a row for every column, whose slope makes up for what is missing; the last row is fitted
    lacking = -alpha * signs * whole - rows.T @ (weights * slopes)
    rows = np.vstack([rows, np.eye(p), np.zeros((1, p))])
    slopes = np.concatenate([slopes, lacking, [0.0]])
    weights = np.append(np.append(weights, np.ones(p)), 0.0)
    weights[-1] = whole - weights.sum()
    y, twins = rows @ x - slopes / factor, np.hstack([rows, rows])
    loss = losses.Scaled(losses.Squared(), factor)
    problem = Problem(Risk.of(as_design(twins), loss, y, weights), penalties.L1(), alpha)
    nothing = np.zeros(p)
    return Lasso(problem, (np.append(x, nothing), np.append(nothing, x)))


def from_anywhere(seed: int, planted: Lasso) -> Certificate:
    """Between an optimum and its opposite, at 0 now and then."""
    rng = np.random.default_rng([seed, 32])
    at = rng.choice([-1.0, 0.0, 0.0, 0.5, 1.0]) * planted.optima[0]
    at = at + rng.choice([0.0, 10.0 ** rng.uniform(-9, 0)]) * rng.normal(size=len(at))
    return planted.problem.certify(planted.problem.evaluate(at))


def law_distance(seed: int, forged=lambda certificate: certificate) -> None:
    planted = lasso(seed)
    certificate = forged(from_anywhere(seed, planted))
    bound = distance_bound(certificate)
    for optimum in planted.optima:
        away = np.linalg.norm(optimum - certificate.at.point)
        assert away * (1.0 - 1e-14) <= bound


@given(seed=seeds)
def test_distances_hold_for_every_optimum(seed):
    law_distance(seed)


@examples(0.3)
@given(seed=seeds)
def test_curvature_holds_for_every_optimum_with_nothing_folded(seed):
    planted = lasso(seed)
    problem = planted.problem
    bounds = Curvature(rank=2).build(from_anywhere(seed, planted)).own_bounds(problem)
    exact = Curvature().build(from_anywhere(seed, planted)).own_bounds(problem)
    for optimum in planted.optima:
        pred = np.asarray(problem.design.data) @ optimum
        for lower, upper in (bounds, exact):
            assert (lower <= pred).all() and (pred <= upper).all()


def test_mutation_slopes_at_an_optimum_are_those_at_the_point():
    assert fails(lambda seed: law_distance(seed, lambda one: replace(one, gap=0.0)), 60)


def test_mutation_a_loss_that_is_counted_twice(monkeypatch):
    right = energy.total
    monkeypatch.setattr(energy, "total", lambda *sums: 2.0 * right(*sums))
    assert fails(law_distance, 60)


@pytest.mark.parametrize("penalty", [penalties.L1(), penalties.L2(), penalties.ElasticNet()])
def test_a_wrong_guess_that_was_folded_makes_no_distance_negative(penalty):
    """Nor does it end in the root of a negative number."""
    problem = replace(lasso(0).problem, penalty=penalty)
    folded = Folded(q=np.zeros(problem.design.n_columns), r=-1e9)
    guessed = replace(problem, folded=folded, certified=False)
    point = np.ones(problem.design.n_columns)
    bound = distance_bound(guessed.certify(guessed.evaluate(point)))
    assert bound >= np.linalg.norm(point)
