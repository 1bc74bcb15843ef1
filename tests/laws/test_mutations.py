"""The laws can fail: each known mistake, patched in, makes one of them break.

Every case names a mistake, patches it into the library, and runs a law over fixed recipes until it
fails. A mistake that no recipe reveals fails the test.
"""

from dataclasses import replace
from functools import cached_property

import numpy as np
import pytest

from safesift import regions
from safesift.losses.base import Piece
from safesift.losses.convolved import Convolved
from safesift.losses.numeric import _Numeric
from safesift.losses.omegas import DualTerm
from safesift.problem import duality
from safesift.problem.problem import Problem
from safesift.problem.risk import WeightedRows
from safesift.regions import ball, ellipsoid, ellipsoidal
from safesift.regions import ellipsoid as cuts
from tests.laws import laws
from tests.laws.problems import FAMILIES, Recipe
from tests.laws.reference import NotSolvedError

pytestmark = pytest.mark.slow


def fails(law, recipes, *arguments) -> bool:
    """Whether the law fails for one of the recipes."""
    for recipe in recipes:
        try:
            law(recipe, *arguments)
        except NotSolvedError:
            continue
        except (AssertionError, regions.RegionError):
            return True
    return False


def some(n=60, **fields):
    fields = {"loss": "squared_hinge", "penalty": "l2"} | fields
    return [Recipe(family=FAMILIES[seed % len(FAMILIES)], seed=seed, **fields) for seed in range(n)]


TIGHT = [Recipe("hinge", "l2", family="tight", seed=seed) for seed in range(10)]


def shrunk(whole, factor):
    return whole._replace(radius=factor * whole.radius)


def shrunken_balls(monkeypatch):
    for region in (ball.GapBall, ball.GradientBall):
        whole = region.ball
        monkeypatch.setattr(region, "ball", lambda self, *a, f=whole: shrunk(f(self, *a), 0.9))


@pytest.mark.parametrize("region", [regions.GapBall(), regions.GradientBall()], ids=repr)
def test_radius_times_nine_tenths(monkeypatch, region):
    assert not fails(laws.law_region_contains_optimum, TIGHT, region)
    shrunken_balls(monkeypatch)
    assert fails(laws.law_region_contains_optimum, TIGHT, region)


def test_printed_gap_radius(monkeypatch):
    """The paper's 2Δ/λ in place of √(2Δ/λ)."""
    recipes = [Recipe("hinge", "l2", family="tight", seed=seed, single=True) for seed in range(20)]
    whole = ball.GapBall.ball

    def printed(self, *arguments):
        right = whole(self, *arguments)
        return shrunk(right, right.radius)

    monkeypatch.setattr(ball.GapBall, "ball", printed)
    assert fails(laws.law_region_contains_optimum, recipes, regions.GapBall())


def test_intercepts_that_stay_where_they_are(monkeypatch):
    """The predictions at the centre are with one intercept, those of an optimum with another."""
    recipes = some(n=100, loss="hinge", intercept=True)
    assert not fails(laws.law_region_contains_optimum, recipes, ball.Balls())
    whole = ellipsoidal.BallTimesInterval.own_bounds

    def stays(self, problem):
        here = replace(self, interval=(self.known_at, self.known_at))
        return whole(here if self.known is not None else self, problem)

    monkeypatch.setattr(ellipsoidal.BallTimesInterval, "own_bounds", stays)
    assert fails(laws.law_region_contains_optimum, recipes, ball.Balls())


def test_printed_gamma(monkeypatch):
    """The paper's closed form, with its factor ½ under the root: a feasible point beats it."""

    def printed(widths, along, depth):
        along = np.clip(along, -widths, widths)
        q_width = np.sqrt((widths - along) * (widths + along))
        return np.where(along <= 0, widths, q_width / np.sqrt(2.0))

    assert not fails(laws.law_bounds_are_extrema, range(10), 0.0)
    monkeypatch.setattr(ellipsoidal, "cap_height", printed)
    assert fails(laws.law_bounds_are_extrema, range(10), 0.0)


@pytest.mark.parametrize(
    "region",
    [regions.HalfSpaceCut(regions.GapBall()), regions.Ellipsoid(n_steps=5)],
    ids=["half-space", "ellipsoid"],
)
def test_sign_flipped_in_the_cut(monkeypatch, region):
    whole = cuts.CutMaker.__call__

    def flipped(self, test_set):
        cut = whole(self, test_set)
        return replace(cut, normal=-cut.normal)

    recipes = some()
    assert not fails(laws.law_region_contains_optimum, recipes, region)
    monkeypatch.setattr(cuts.CutMaker, "__call__", flipped)
    assert fails(laws.law_region_contains_optimum, recipes, region)


@pytest.mark.parametrize("region", [regions.GapBall(), regions.GradientBall()], ids=repr)
def test_n_in_place_of_total_weight(monkeypatch, region):
    tight = [replace(recipe, weighted=True) for recipe in TIGHT]
    recipes = tight + some(weighted=True)
    assert not fails(laws.law_region_contains_optimum, recipes, region)
    wrong = cached_property(lambda self: self.weights / len(self.weights))
    wrong.__set_name__(WeightedRows, "shares")
    monkeypatch.setattr(WeightedRows, "shares", wrong)
    assert fails(laws.law_region_contains_optimum, recipes, region)


def as_it_is(dual, ray):
    """In place of `Dual._cancel`."""
    yield from ()
    return ray


def test_missing_intercept_constraint(monkeypatch):
    """Ignoring Σ s_i ν_i = 0 gives gaps that are too small, even negative."""
    recipes = some(intercept=True)
    assert not fails(laws.law_gap_bounds_suboptimality, recipes)
    monkeypatch.setattr(duality.Dual, "_cancel", as_it_is)
    monkeypatch.setattr(duality.Dual, "_rest", lambda self, *arguments: (0.0, 0.0))
    whole = duality.Dual._v
    monkeypatch.setattr(
        duality.Dual, "_v", lambda self, *arguments: np.append(whole(self, *arguments)[:-1], 0.0)
    )
    assert fails(laws.law_gap_bounds_suboptimality, recipes)


def test_subset_cut_passed_off_as_certified(monkeypatch):
    region = regions.Ellipsoid(n_steps=20, start="norm_ball", subset=0.3)
    recipes = some(120)
    assert not fails(laws.law_region_contains_optimum, recipes, region)
    whole = ellipsoid.Ellipsoid.build
    monkeypatch.setattr(
        ellipsoid.Ellipsoid, "build", lambda self, *a: replace(whole(self, *a), certified=True)
    )
    assert fails(laws.law_region_contains_optimum, recipes, region)


def test_guess_passed_off_as_certified(monkeypatch):
    region = regions.GuessedBall(radius=1e-3)
    recipes = some(loss="hinge")  # for a smooth loss such a radius is refuted at once
    assert not fails(laws.law_region_contains_optimum, recipes, region)
    whole = ball.GuessedBall.start
    monkeypatch.setattr(
        ball.GuessedBall,
        "start",
        lambda self, *a, **k: replace(whole(self, *a, **k), certified=True),
    )
    assert fails(laws.law_region_contains_optimum, recipes, region)


def test_reduced_problem_with_its_own_divisor(monkeypatch):
    """Dropping rows must not change the divisor W."""
    recipes = some()
    assert not fails(laws.law_reduced_solution_is_optimal, recipes)
    whole = Problem.restrict

    def renormalised(self, rows):
        part = whole(self, rows)
        divisor = max(float(part.weights.sum()), 1e-9)
        return replace(part, risk=part.risk.with_divisor(divisor))

    monkeypatch.setattr(Problem, "restrict", renormalised)
    assert fails(laws.law_reduced_solution_is_optimal, recipes)


# --- numeric losses -----------------------------------------------------------------------------


def test_mu_doubled_in_the_flat_interval(monkeypatch):
    recipes = some(20, loss="numeric_squared")
    assert not fails(laws.law_decided_rows_are_on_their_piece, recipes)
    monkeypatch.setattr(
        _Numeric,
        "_pieces",
        lambda self: [Piece(*(2 * end for end in self.phi.flat))],
    )
    assert fails(laws.law_reduced_solution_is_optimal, recipes)


def test_conjugate_without_omega(monkeypatch):
    """f* in place of f* + μΩ: dual values are too large."""
    recipes = some(10, loss="numeric_pseudo_huber")
    assert not fails(laws.law_gap_bounds_suboptimality, recipes)
    monkeypatch.setattr(DualTerm, "value", lambda self, u: 0.0 * u)
    assert fails(laws.law_gap_bounds_suboptimality, recipes)


@pytest.mark.parametrize("region", [regions.GapBall(), regions.GradientBall()], ids=repr)
def test_numeric_error_not_added(monkeypatch, region):
    """A loss with errors as large as it claims is safe; one that claims none is not."""
    size = 1e-3
    value, slope, conjugate = Convolved.value, Convolved.slope, Convolved.conjugate
    monkeypatch.setattr(
        Convolved, "value", lambda self, t: value(self, t) * (1 - 0.9 * size * np.sin(1e4 * t) ** 2)
    )
    monkeypatch.setattr(
        Convolved, "slope", lambda self, t: slope(self, t) * (1 + 0.9 * size * np.sin(1e4 * t))
    )
    monkeypatch.setattr(
        Convolved,
        "conjugate",
        lambda self, u: conjugate(self, u) - 0.9 * size * self.conjugate_size(u),
    )
    recipes = some(30, loss="numeric_squared", penalty="elastic_net")
    monkeypatch.setattr(_Numeric, "precision", size)
    assert not fails(laws.law_region_contains_optimum, recipes, region)
    monkeypatch.setattr(_Numeric, "precision", 0.0)
    assert fails(laws.law_region_contains_optimum, recipes, region)
