"""The laws of curvature regions on planted problems: no solver, no room for error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from safesift import regions
from safesift.arithmetic.numerics import target_size
from safesift.problem.decisions import Bounds, Decisions, decide
from safesift.problem.problem import Problem
from safesift.problem.training import Training
from safesift.regions.base import Region
from safesift.regions.center import Center
from safesift.regions.intercept import UnboundedInterceptError
from safesift.solvers import Fit, spending
from safesift.workflows.verdicts import Screened, ScreeningResult
from tests.laws.planted import Planted, plant, rough_center


def suits(region: Region, problem: Problem) -> bool:
    """Whether a region serves a problem, by its own account."""
    try:
        region.validate(problem)
    except ValueError:
        return False
    return True


def planted_screening(planted: Planted, seed: int, region: Region) -> ScreeningResult:
    problem = planted.problem
    at = problem.evaluate(rough_center(planted, seed))
    certificate = problem.certify(at)
    test_set = region.build(certificate)
    bounds = test_set.own_bounds(problem)
    with spending() as spent:
        decisions = decide(problem, bounds, "always")
    fit = Fit.at_centre(certificate, decisions, 1e-6, spent)
    return ScreeningResult((Screened(fit, test_set, bounds),), Training())


def assert_planted(planted: Planted, bounds: Bounds, decisions: Decisions) -> None:
    """Bounds contain the planted predictions, and decided samples are strictly on their piece."""
    t, room = planted.predictions, planted.room * (1.0 + np.abs(planted.predictions))
    assert (bounds.lower <= t + room).all() and (bounds.upper >= t - room).all(), float(
        np.max(np.maximum(bounds.lower - t, t - bounds.upper))
    )
    decided = ~decisions.undecided
    assert (t + room > decisions.lower)[decided].all()
    assert (t - room < decisions.upper)[decided].all()


def law_planted_optimum(
    seed: int, loss: str, penalty: str, family: str, intercept: bool, region: Region
) -> None:
    """A region contains a planted optimum, with no room for error."""
    planted = plant(seed, loss, penalty, family, intercept)
    if not suits(region, planted.problem):
        return
    try:
        result = planted_screening(planted, seed, region)
    except UnboundedInterceptError:
        return  # there is no region at all, and a user is told so
    assert_planted(planted, result.only.bounds, result.decisions)


def law_planted_optimum_in_a_range(
    seed: int, loss: str, penalty: str, family: str, intercept: bool, below: float, above: float
) -> None:
    """The region of a range of alphas contains the optimum for each of them."""
    planted = plant(seed, loss, penalty, family, intercept)
    ends = planted.problem.alpha * 2.0**-below, planted.problem.alpha * 2.0**above
    middle = replace(planted.problem, alpha=float(np.sqrt(ends[0] * ends[1])))
    at = middle.evaluate(rough_center(planted, seed))
    test_set = regions.Curvature().build_for(Center(middle.certify(at), ends))
    bounds = test_set.own_bounds(middle)
    assert_planted(planted, bounds, decide(middle, bounds, "always"))


def law_secant_bounds(seed: int, loss: str, penalty: str, family: str, intercept: bool) -> None:
    """Every secant from near the prediction into the interval lies between its bounds."""
    planted = plant(seed, loss, penalty, family, intercept)
    problem, pred = planted.problem, planted.predictions
    rng = np.random.default_rng([seed, 79])
    n = len(pred)
    error = rng.choice([0.0, 2.0**-20], n)
    middle = pred + rng.choice([0.0, 0.125, 1.0], n) * rng.normal(size=n)
    width = rng.choice([0.0, 2.0**-30, 0.5, 3.0], n)
    lower, upper = middle - width, middle + width
    floor, ceiling = problem.loss.secant_bounds(pred, error, lower, upper, problem.y)
    assert (floor <= ceiling * (1 + 1e-12) + 1e-300).all()
    for _ in range(20):
        s = pred + error * rng.uniform(-1, 1, n)
        t = rng.uniform(lower, upper)
        rise = np.abs(problem.loss.slope(t, problem.y) - problem.loss.slope(s, problem.y))
        run = np.abs(t - s)
        sizes = 1.0 + target_size(problem.loss, problem.y) + np.abs(t) + np.abs(s)
        noise = 1e-14 * problem.loss.smoothness * sizes
        assert (rise >= floor * run - noise).all()
        assert (rise <= ceiling * run + noise).all()


def law_zero_features(seed: int, loss: str, penalty: str) -> None:
    """A feature that an optimum uses is never certified to be zero."""
    planted = plant(seed, loss, penalty, "plain", False)
    result = planted_screening(planted, seed, regions.Curvature())
    assert not (result.zero_coef & (planted.optimum != 0)).any()


def planted_share_decided(
    seed: int, loss: str, penalty: str, intercept: bool, region: Region
) -> float:
    planted = plant(seed, loss, penalty, "plain", intercept)
    result = planted_screening(planted, seed, region)
    counted = planted.problem.weights > 0
    # without a quadratic piece only the flat one decides
    decidable = (
        counted
        if planted.problem.loss.quadratic_rays
        else counted & (planted.problem.loss.slope(planted.predictions, planted.problem.y) == 0)
    )
    return float((~result.undecided)[decidable].mean()) if decidable.any() else 1.0
