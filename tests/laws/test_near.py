"""What solvers decide at their end holds: on problems whose optimum was planted, exactly."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safesift.problem.decisions import Bounds, decide
from safesift.problem.gram import WeightedGram, WorkingGram
from safesift.problem.inputs import make_problems
from safesift.regions import energy, near
from safesift.regions.base import Region
from tests.laws import planted, planted_laws
from tests.laws.strategies import examples

seeds = st.integers(0, 2**32 - 1)
settings_drawn = st.tuples(
    seeds,
    st.sampled_from(planted.CURVED),
    st.sampled_from(planted.PENALTIES),
    st.sampled_from(planted.FAMILIES),
    st.booleans(),
)


@dataclass(frozen=True)
class NearOptimum(Region):
    """`regions.near.NearOptimum` with a Gram matrix of its own."""

    def build(self, certificate):
        gram = WeightedGram(certificate.problem.design)
        return near.NearOptimum(gram).build(certificate)


@dataclass(frozen=True)
class WithAMatrixFromNearby(Region):
    """The same, with the Gram matrix of a point that is a step away."""

    seed: int

    def build(self, certificate):
        problem, at = certificate.problem, certificate.at
        step = np.random.default_rng(self.seed).normal(size=len(at.point))
        step *= 10.0 ** -(self.seed % 4) / np.linalg.norm(step)
        pred = at.pred + problem.design.matvec(step)
        gram = WeightedGram(problem.design)
        gram.move(problem.shares * problem.loss.curvature(pred, problem.y))
        return near.NearOptimum(gram).build(certificate)


def law_with_a_matrix_from_nearby(seed: int, *setting) -> None:
    """A ball that rests on the curvature of another point contains a planted optimum."""
    region = WithAMatrixFromNearby(seed)
    planted_laws.law_planted_optimum(seed, *setting, region=region)


def law_decided_by_gap(
    seed: int, loss: str, penalty: str, family: str, intercept: bool, by_ball: bool
) -> None:
    """Decisions from the gap alone, and features it leaves out, agree with a planted optimum."""
    found_at = planted.plant(seed, loss, penalty, family, intercept)
    problem = found_at.problem
    at = problem.evaluate(planted.rough_center(found_at, seed))
    region = energy.GapEnergy(None if by_ball else WorkingGram(problem.design))
    found = region.build(problem.certify(at))
    decisions = decide(problem, found.own_bounds(problem), "always")
    t, room = found_at.predictions, found_at.room * (1.0 + np.abs(found_at.predictions))
    decided = ~decisions.undecided
    assert (t + room > decisions.lower)[decided].all()
    assert (t - room < decisions.upper)[decided].all()
    coef, _ = problem.split(found_at.optimum)
    assert not (found.zero_features(len(coef)) & (coef != 0)).any()


@examples(10)
@given(setting=settings_drawn)
def test_the_ball_near_an_optimum_contains_it(setting):
    planted_laws.law_planted_optimum(*setting, region=NearOptimum())


@examples(10)
@given(setting=settings_drawn)
def test_the_ball_with_a_matrix_from_nearby_contains_it(setting):
    law_with_a_matrix_from_nearby(*setting)


@pytest.mark.parametrize("penalty", ["l2", "elastic_net", "l1"])
def test_curvature_that_varies_makes_a_ball(penalty):
    """With an intercept only the samples bound it: a share of their curvature stays."""
    made = 0
    for seed in range(20):
        found_at = planted.plant(seed, "safe_logistic", penalty, "plain", True)
        problem = found_at.problem
        at = problem.evaluate(found_at.optimum)
        for region in (NearOptimum(), WithAMatrixFromNearby(4 * seed + 3)):
            made += isinstance(region.build(problem.certify(at)), near.NearBall)
    assert made > 20, made


def test_rows_without_weight_carry_nothing():
    """Whatever a matrix has of them: nothing is known of their curvature."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.sign(rng.normal(size=40))
    weights = np.repeat([1.0, 0.0], 20)
    problem = make_problems(
        X, y, loss="safe_logistic", penalty="l2", alpha=1e-2, sample_weight=weights
    ).problem
    certificate = problem.certify(problem.evaluate(np.array([0.3, -0.2, 0.1, 0.0])))
    gram, clean = WeightedGram(problem.design), WeightedGram(problem.design)
    clean.move(problem.shares * problem.loss.curvature(certificate.at.pred, y))
    gram.move(clean.weights + np.where(weights > 0, 0.0, 1e3))
    found, right = (near.NearOptimum(one).build(certificate) for one in (gram, clean))
    assert found.describe() == right.describe()
    np.testing.assert_allclose(gram.matrix, clean.matrix, atol=1e-9)


def test_a_problem_without_rows_has_a_ball():
    """All of them folded: what is left is a quadratic form."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    problem = make_problems(X, y, loss="squared", penalty="l2", alpha=1e-1).problem
    everywhere = Bounds(np.full(30, -1.0), np.full(30, 1.0))
    reduced = problem.reduce(decide(problem, everywhere, "always"))
    assert reduced.design.n_samples == 0
    certificate = reduced.certify(reduced.evaluate(np.zeros(4)))
    assert isinstance(
        near.NearOptimum(WeightedGram(reduced.design)).build(certificate), near.NearBall
    )


@examples(10)
@given(setting=settings_drawn, by_ball=st.booleans())
def test_what_the_gap_decides_holds(setting, by_ball):
    law_decided_by_gap(*setting, by_ball=by_ball)


@examples(5)
@given(setting=settings_drawn)
def test_bounds_by_blocks_are_the_bounds(setting):
    found_at = planted.plant(*setting)
    problem = found_at.problem
    at = problem.evaluate(found_at.optimum)
    region = NearOptimum().build(problem.certify(at))
    whole, part = region.own_bounds(problem), region.own_row_bounds(problem)
    rows = slice(0, problem.design.n_samples)
    np.testing.assert_allclose(part.take(rows).lower, whole.lower, rtol=1e-12)
    np.testing.assert_array_equal(
        decide(problem, part, "always").which, decide(problem, whole, "always").which
    )


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", ["l2", "elastic_net", "l1"])
def test_decides_at_an_optimum(penalty, intercept):
    shares = []
    for seed in range(20):
        found_at = planted.plant(seed, "squared_hinge", penalty, "plain", intercept)
        problem = found_at.problem
        at = problem.evaluate(found_at.optimum)
        bounds = NearOptimum().build(problem.certify(at)).own_bounds(problem)
        shares.append(float((~decide(problem, bounds, "always").undecided).mean()))
    assert np.mean(shares) > 0.5, np.mean(shares)


# --- the laws can fail ------------------------------------------------------------------------


def drawn(n, penalties=("l2", "l1", "elastic_net"), intercepts=(False, True)):
    for seed in range(n):
        yield (
            seed,
            ("squared_hinge", "safe_logistic", "huber")[seed % 3],
            penalties[seed % len(penalties)],
            planted.FAMILIES[seed % len(planted.FAMILIES)],
            intercepts[seed % len(intercepts)],
        )


def broken(law, settings, **arguments) -> bool:
    for setting in settings:
        try:
            law(*setting, **arguments)
        except AssertionError:
            return True
    return False


def check_mutation(law, settings, mutate, **arguments) -> None:
    settings = list(settings)
    assert not broken(law, settings, **arguments)
    mutate()
    assert broken(law, settings, **arguments)


def test_mutation_curvature_taken_for_granted(monkeypatch):
    """Rows that may leave their piece carry curvature all the same."""
    check_mutation(
        planted_laws.law_planted_optimum,
        # few centres are far enough from the optimum for it to matter, and near enough to decide
        [(seed, "squared_hinge", "l1", "plain", False) for seed in range(1500, 1520)],
        lambda: monkeypatch.setattr(
            near, "_failing", lambda center, weights, radius: np.zeros(len(weights), dtype=bool)
        ),
        region=NearOptimum(),
    )


def test_mutation_curvature_that_varies_taken_for_granted(monkeypatch):
    """Samples are counted on for half of what they had a step away."""
    check_mutation(
        law_with_a_matrix_from_nearby,
        [(seed, "safe_logistic", "l2", "plain", True) for seed in (840, 992, 1532, 2156, 2341)],
        lambda: monkeypatch.setattr(
            near, "_failing", lambda center, loads, radius: np.zeros(len(loads), dtype=bool)
        ),
    )


def test_mutation_more_curvature_than_there_is(monkeypatch):
    right = near._least_curvature
    check_mutation(
        planted_laws.law_planted_optimum,
        drawn(400),
        lambda: monkeypatch.setattr(near, "_least_curvature", lambda *a: 50.0 * right(*a)),
        region=NearOptimum(),
    )


def test_mutation_half_the_gap(monkeypatch):
    """Slopes known better than the gap allows."""
    right = energy.proved_curvature
    check_mutation(
        law_decided_by_gap,
        drawn(600),
        lambda: monkeypatch.setattr(
            energy, "proved_curvature", lambda c: right(replace(c, gap=0.02 * c.gap))
        ),
        by_ball=True,
    )
