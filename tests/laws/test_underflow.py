"""Numbers next to the smallest there are: what underflows is never taken for 0."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safesift.arithmetic import numerics
from safesift.design.kernel import KernelDesign
from safesift.design.kernels import PrecomputedKernel
from safesift.penalties import ElasticNet, norms
from safesift.problem.duality import stationary_gap
from safesift.problem.inputs import make_problems, on_kernel
from safesift.regions import (
    Curvature,
    GapBall,
    GradientBall,
    NormBall,
    ObjectiveBall,
    near,
    self_consistent,
)
from safesift.regions.near import NearOptimum
from tests.laws import exact
from tests.laws.strategies import TINY, examples, fails

seeds = st.integers(0, 2**32 - 1)


def problem_of(X, y, weights, alpha, penalty="l2"):
    return make_problems(
        X, y, loss="squared", penalty=penalty, alpha=alpha, sample_weight=weights,
        fit_intercept=False,
    ).problem  # fmt: skip


def tiny_problem(rng, penalty="l2"):
    """Rows, targets and alpha of sizes whose products and squares underflow, or nearly."""
    n = int(rng.integers(1, 4))
    alpha = 10.0 ** rng.uniform(-299, -280)
    # so that the slopes times the rows, v, are about as large as the root of alpha, or smaller
    size = 10.0 ** rng.uniform(-20, 0)
    X = rng.normal(size=(n, 2)) * size
    y = rng.normal(size=n) * math.sqrt(alpha) / size * 10.0 ** rng.uniform(-25, -8)
    weights = rng.choice([1.0, 0.3, 1e-3], n)
    return problem_of(X, y, weights, alpha, penalty)


def law_gap_holds(seed: int) -> None:
    """P(x) − min P ≤ gap, and D ≤ min P, in exact arithmetic."""
    rng = np.random.default_rng(seed)
    problem = tiny_problem(rng)
    oracle = exact.ExactProblem(problem)
    best = oracle.minimiser()
    least = oracle.objective(best)
    for share in (0.0, 0.5, 1.0 - 1e-6):
        point = share * np.array([float(coordinate) for coordinate in best])
        certificate = problem.certify(problem.evaluate(point))
        above = oracle.objective(exact.fractions(point)) - least
        assert Fraction(certificate.dual.value) <= least
        assert above <= Fraction(certificate.gap)


def law_support_is_no_less(seed: int) -> None:
    """½‖v‖²/alpha of penalties and of the tracker's gap, for v of any size."""
    rng = np.random.default_rng(seed)
    v = rng.normal(size=int(rng.integers(1, 5))) * 10.0 ** rng.uniform(-170, -130)
    alpha = 10.0 ** rng.uniform(-300, -250)
    room = Fraction(1 - 1e-14)  # of the norm, which whoever asks for a support adds
    for ratio in (0.0, 0.25, 0.9):
        beyond = [abs(u) - Fraction(alpha) * Fraction(ratio) for u in exact.fractions(v)]
        true = exact.dot(beyond, beyond) / (2 * Fraction(alpha) * (1 - Fraction(ratio)))
        assert Fraction(ElasticNet(ratio).support(v, alpha)) >= true * room
    true = exact.dot(exact.fractions(v), exact.fractions(v)) / (2 * Fraction(alpha))
    assert Fraction(norms.L2().support(v, alpha)) >= true * room
    assert Fraction(stationary_gap(v, 0.0, alpha)) >= true


def law_norm_bound_is_no_less(seed: int) -> None:
    """alpha·½‖x‖² ≤ objective allows ‖x‖ ≤ √(2·objective/alpha), however small that is."""
    rng = np.random.default_rng(seed)
    objective, alpha = 10.0 ** rng.uniform(-200, 0), 10.0 ** rng.uniform(100, 300)
    for penalty, modulus in ((norms.L2(), Fraction(1)), (ElasticNet(0.25), Fraction(3, 4))):
        allowed = 2 * Fraction(objective) / (Fraction(alpha) * modulus)
        found = Fraction(penalty.norm_bound(objective, alpha) * (1 + 1e-15))  # as its users do
        assert found**2 >= allowed or found >= 4 * Fraction(objective) / Fraction(alpha)


def law_norms_of_functions(seed: int) -> None:
    """½‖h‖² of a kernel's space and its support, for coordinates of any size."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 4))
    rows = rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-5, 5)
    K = rows @ rows.T + 1e-3 * np.trace(rows @ rows.T) * np.eye(n)
    (problem,) = on_kernel(
        [problem_of(np.ones((n, 1)), np.ones(n), np.ones(n), 1.0)], PrecomputedKernel(K), 10**6
    )
    penalty, design = problem.penalty, problem.design
    assert isinstance(design, KernelDesign)
    beta = rng.normal(size=n) * 10.0 ** rng.uniform(-175, -140)
    alpha = 10.0 ** rng.uniform(-300, -250)
    coordinates = exact.fractions(beta)
    images = [exact.dot(exact.fractions(row), coordinates) for row in K]
    norm_sq = exact.dot(coordinates, images)
    value, error = penalty.value(beta), penalty.value_error(beta)
    assert abs(Fraction(value) - norm_sq / 2) <= Fraction(error)
    true = norm_sq / (2 * Fraction(alpha))
    assert Fraction(penalty.support(beta, alpha)) >= true * Fraction(1 - 1e-14)


def law_balls_contain_the_optimum(seed: int) -> None:
    """Rows may be as long as 1e150: lengths from 1e-162 on, whose squares are 0, matter to them."""
    rng = np.random.default_rng(seed)
    X = np.array([[rng.uniform(1, 2) * 10.0 ** rng.choice([0.0, rng.uniform(0, 150)])]])
    y = np.array([rng.uniform(1, 2) * 10.0 ** rng.uniform(-15, 0)])
    problem = problem_of(X, y, np.ones(1), 10.0 ** rng.uniform(200, 300))
    (best,) = exact.ExactProblem(problem).minimiser()
    point = np.array([float(best) * rng.choice([0.0, 0.5, 2.0])])
    certificate = problem.certify(problem.evaluate(point))
    for region in (GapBall(), ObjectiveBall(), GradientBall(), NormBall()):
        center, radius = region.ball(certificate)
        assert abs(best - Fraction(float(center[0]))) <= Fraction(radius), region
    near_ball = NearOptimum().build(certificate)
    assert abs(best - Fraction(float(point[0]))) <= Fraction(near_ball.radius)
    ellipsoid = Curvature(sharpen=False).build(certificate).hull.members[0]
    # a width below the smallest number is 0, which predictions of any row allow for
    reach = Fraction(ellipsoid.shape.size) + Fraction(ellipsoid.slack) + Fraction(TINY)
    assert abs(best - Fraction(float(ellipsoid.center[0]))) <= reach


LAWS = {
    law.__name__: law
    for law in (
        law_gap_holds,
        law_support_is_no_less,
        law_norm_bound_is_no_less,
        law_norms_of_functions,
        law_balls_contain_the_optimum,
    )
}


@pytest.mark.parametrize("law", LAWS)
@examples(0.5)
@given(seed=seeds)
def test_nothing_that_underflows_is_nothing(law, seed):
    LAWS[law](seed)


# --- the laws can fail ------------------------------------------------------------------------


@pytest.mark.parametrize("law", [law_gap_holds, law_support_is_no_less])
def test_squares_that_underflow(monkeypatch, law):
    """½·length²/divisor as one would write it."""
    assert not fails(law, 20)
    monkeypatch.setattr(
        norms, "half_square_over", lambda length, divisor: 0.5 * (length * length) / divisor
    )
    assert fails(law, 200)


def test_products_of_coordinates_that_underflow(monkeypatch):
    right = KernelDesign.norm_sq
    assert not fails(law_norms_of_functions, 20)
    monkeypatch.setattr(KernelDesign, "norm_sq", lambda self, beta: (right(self, beta)[0], 0.0))
    assert fails(law_norms_of_functions, 200)


def test_quotients_that_underflow(monkeypatch):
    assert not fails(law_norm_bound_is_no_less, 20)
    monkeypatch.setattr(norms, "root_over", lambda value, divisor: math.sqrt(value / divisor))
    assert fails(law_norm_bound_is_no_less, 200)


@pytest.mark.parametrize("module", [near, self_consistent])
def test_legs_whose_squares_underflow(monkeypatch, module):
    assert not fails(law_balls_contain_the_optimum, 20)
    plain = SimpleNamespace(**{**vars(math), "hypot": lambda a, b: math.sqrt(a * a + b * b)})
    monkeypatch.setattr(module, "math", plain)
    assert fails(law_balls_contain_the_optimum, 400)


# --- lengths ------------------------------------------------------------------------------------


def law_norm_is_the_length(seed: int) -> None:
    """To n roundings, whatever over- or underflows on the way; of vectors and of matrices."""
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(1, 40)), *([3] if rng.random() < 0.3 else []))
    # of one size, or of all sizes at once; half of them where squares leave the numbers
    middle, spread = rng.uniform(-320, 305), rng.choice([0.0, 3.0, 100.0])
    if rng.random() < 0.5:
        middle = rng.choice([-159.0, 154.0]) + rng.uniform(-5, 5)
    exponents = np.clip(middle + spread * rng.normal(size=shape), -323, 305)
    u = rng.normal(size=shape) * 10.0**exponents
    square = sum((Fraction(value) ** 2 for value in u.ravel().tolist()), Fraction(0))
    error = Fraction((u.size + 8) * float(np.finfo(float).eps))
    found = Fraction(numerics.norm(u))
    lost = Fraction(4 * TINY)
    assert (found + lost) ** 2 >= square * (1 - error) ** 2
    assert max(found - lost, Fraction(0)) ** 2 <= square * (1 + error) ** 2


@given(seeds)
def test_norm_is_the_length(seed):
    law_norm_is_the_length(seed)


def test_squares_that_underflow_would_be_noticed(monkeypatch):
    """Were a sum of squares trusted at any size."""
    assert not fails(law_norm_is_the_length, 100)
    monkeypatch.setattr(numerics, "_SAFE_SQUARE", np.float64(0.0))
    with np.errstate(divide="ignore"):
        assert fails(law_norm_is_the_length, 300)


@pytest.mark.parametrize(
    ("u", "length"),
    [
        ([], 0.0),
        ([0.0, -0.0], 0.0),
        ([np.inf, 1.0], np.inf),
        ([3e200, 4e200], 5e200),
        ([TINY], TINY),
    ],
)
def test_norms_at_the_ends(u, length):
    assert numerics.norm(u) == pytest.approx(length, rel=1e-15, abs=0)


def test_a_norm_of_nothing_known_is_not_known():
    assert math.isnan(numerics.norm([1.0, math.nan]))
