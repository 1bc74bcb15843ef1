"""Laws of every penalty: prox, conjugate and support, least-norm subgradients, constants, cuts."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from safesift.penalties import L1, L2, PENALTIES, ElasticNet, L1Ball, L2Ball
from tests.laws import exact
from tests.laws.definitions import penalty_definition
from tests.laws.strategies import PENALTY_NAMES, eighths, examples, numbers, penalties

EPS = float(np.finfo(float).eps)
BALLS = [name for name in PENALTY_NAMES if PENALTIES[name].is_constraint]
every_penalty = pytest.mark.parametrize("name", PENALTY_NAMES)
every_ball = pytest.mark.parametrize("name", BALLS)
alphas = st.one_of(st.sampled_from([0.125, 1.0]), st.floats(1e-3, 100))
sizes = st.integers(1, 5)
# arguments of a conjugate: many of them where its domain may end
duals = st.one_of(numbers, st.floats(-2, 2))


def vectors(size, elements=numbers):
    return hnp.arrays(np.float64, size, elements=st.one_of(st.just(0.0), elements))


def feasible(penalty, coef):
    """The point, pulled inside a ball with room to spare for rounding."""
    if not penalty.is_constraint or penalty.value(coef) == 0:
        return coef
    norm = np.abs(coef).sum() if isinstance(penalty, L1Ball) else np.linalg.norm(coef)
    return coef * (penalty.radius / norm)


def weighted(alpha, value):
    """alpha·R, with 0·inf = 0."""
    return alpha * value if alpha and value else 0.0


# --- value --------------------------------------------------------------------------------------


@every_penalty
@given(data=st.data())
def test_value_is_convex_even_and_zero_at_zero(name, data):
    penalty, size = data.draw(penalties(name)), data.draw(sizes)
    x, u = (data.draw(vectors(size)) for _ in range(2))
    assert penalty.value(np.zeros(size)) == 0
    signs = np.where(data.draw(hnp.arrays(bool, size)), 1.0, -1.0)
    assert penalty.value(x * signs) == penalty.value(x)
    share = data.draw(st.floats(0, 1))
    chord = weighted(share, penalty.value(x)) + weighted(1 - share, penalty.value(u))
    assert penalty.value(share * x + (1 - share) * u) <= chord * (1 + 1e-13) + 1e-300


@every_penalty
def test_value_is_never_nan_and_overflows_quietly(name):
    for entry in (1e200, 1e-200, 5e-324):
        value = PENALTIES[name]().value(np.array([entry, -entry]))
        assert value >= 0


@pytest.mark.parametrize(
    ("penalty", "coef", "value"),
    [
        (L2(), [3.0, -4.0], 12.5),
        (L1(), [3.0, -4.0], 7.0),
        (ElasticNet(l1_ratio=0.25), [3.0, -4.0], 11.125),
        (L2Ball(radius=5.0), [3.0, -4.0], 0.0),
        (L2Ball(radius=4.875), [3.0, -4.0], math.inf),
        (L1Ball(radius=7.0), [3.0, -4.0], 0.0),
        (L1Ball(radius=6.875), [3.0, -4.0], math.inf),
    ],
)
def test_known_values(penalty, coef, value):
    assert penalty.value(np.array(coef)) == value


# --- conjugate and prox -------------------------------------------------------------------------


@every_penalty
@given(data=st.data())
def test_fenchel_young(name, data):
    penalty, size = data.draw(penalties(name)), data.draw(sizes)
    x, z = feasible(penalty, data.draw(vectors(size))), data.draw(vectors(size, duals))
    room = 1e-13 * (np.abs(x) @ np.abs(z))
    assert penalty.value(x) + penalty.conjugate(z) >= x @ z - room


@every_penalty
@given(data=st.data())
def test_conjugate_is_attained_or_infinite(name, data):
    """With Fenchel–Young this makes it the supremum.

    prox(s·z, s) maximises zᵀx − R(x) − ‖x‖²/(2s): for a large s it nearly attains a supremum, or
    shows that there is none.
    """
    penalty, z = data.draw(penalties(name)), data.draw(vectors(data.draw(sizes), duals))
    conjugate, step = penalty.conjugate(z), 1e9
    x = penalty.prox(step * z, step)
    attained = z @ x - penalty.value(feasible(penalty, x))
    if math.isinf(penalty.conjugate(z * (1 - 1e-12))):
        # the excess of z over the domain of R* is what is left of it after a step
        excess = np.abs(x).max() / step
        assert attained >= 0.5 * step * excess**2 > 0
    elif math.isfinite(conjugate):
        size = 1.0 + np.abs(z) @ np.abs(x)
        assert attained >= conjugate - 1e-6 * size - x @ x / step
        assert attained <= conjugate + 1e-6 * size


@every_penalty
@given(data=st.data())
def test_prox_is_optimal(name, data):
    """u = prox(x) if and only if R(u) + R*(z) = uᵀz for z = (x − u)/step."""
    penalty, x = data.draw(penalties(name)), data.draw(vectors(data.draw(sizes)))
    step = data.draw(st.floats(0.01, 100))
    u = penalty.prox(x, step)
    z = (x - u) / step
    # a hair inside the domain: x − u rounds
    conjugate = penalty.conjugate(z * (1 - 1e-12 - 8 * EPS * np.abs(x).sum() / step))
    assert math.isfinite(conjugate) and math.isfinite(penalty.value(u))
    size = penalty.value(u) + conjugate + np.abs(u) @ np.abs(z)
    # the rounding of x − u, divided by the step
    room = 1e-11 * size + 8 * EPS * np.abs(x).sum() * (np.abs(u).sum() + np.abs(z).sum()) / step
    room += 8 * EPS * getattr(penalty, "radius", 0.0) * np.abs(x).sum() / step
    assert abs(penalty.value(u) + conjugate - u @ z) <= room


@every_penalty
@given(data=st.data())
def test_prox_beats_every_other_point(name, data):
    penalty, size = data.draw(penalties(name)), data.draw(sizes)
    x, other = data.draw(vectors(size)), data.draw(vectors(size))
    step = data.draw(st.floats(0.01, 100))

    def objective(u):
        return 0.5 * (u - x) @ (u - x) + weighted(step, penalty.value(u))

    u = penalty.prox(x, step)
    best = objective(u)
    for far in (1.0, 1e-3):
        rival = feasible(penalty, u + far * (other - u))
        assert best <= objective(rival) * (1 + 1e-12) + 1e-12 * (x @ x)


@every_ball
@examples(3)
@given(data=st.data())
def test_projection_is_feasible_however_far_the_point(name, data):
    penalty, direction = data.draw(penalties(name)), data.draw(vectors(data.draw(sizes)))
    scale = 10.0 ** data.draw(st.integers(-5, 200))
    projected = penalty.prox(scale * direction, 1.0)
    assert penalty.value(projected) == 0
    if penalty.value(scale * direction) == 0:
        np.testing.assert_array_equal(projected, scale * direction)


# --- support ------------------------------------------------------------------------------------


@every_penalty
@given(data=st.data(), alpha=alphas)
def test_support_without_error_is_the_scaled_conjugate(name, data, alpha):
    """alpha·R*(u/alpha); an indicator does not change when it is multiplied."""
    penalty, u = data.draw(penalties(name)), data.draw(vectors(data.draw(sizes)))
    support = penalty.support(u, alpha)
    if penalty.is_constraint:
        assert support == pytest.approx(penalty.conjugate(u), rel=1e-14)
        return
    # a hair to either side: u/alpha rounds, and the conjugate of l1 jumps
    below, above = (alpha * penalty.conjugate(u * (1 + h) / alpha) for h in (-1e-14, 1e-14))
    assert below * (1 - 1e-13) <= support <= above * (1 + 1e-13)


@every_penalty
@given(data=st.data(), alpha=alphas, error=st.one_of(st.just(0.0), st.floats(0, 2)))
def test_support_covers_the_error_ball(name, data, alpha, error):
    penalty, size = data.draw(penalties(name)), data.draw(sizes)
    u, direction = data.draw(vectors(size)), data.draw(vectors(size))
    support = penalty.support(u, alpha, error)
    candidates = [direction, u, np.sign(u), np.eye(size)[np.abs(u).argmax()] * np.sign(u)]
    for v in candidates:
        length = np.linalg.norm(v)
        moved = u + (error / length if length > 0 else 0.0) * v
        # the moved point rounds too, and the support of l1 jumps at its boundary
        assert support * (1 + 1e-13) + 1e-300 >= penalty.support(moved * (1 - 1e-14), alpha)


@every_penalty
@given(data=st.data(), alpha=alphas)
def test_support_grows_with_the_error(name, data, alpha):
    penalty, u = data.draw(penalties(name)), data.draw(vectors(data.draw(sizes)))
    values = [penalty.support(u, alpha, error) for error in (0.0, 1e-10, 1e-3, 1.0)]
    assert values == sorted(values)


# --- least-norm subgradients --------------------------------------------------------------------


def random_subgradient(draw, penalty, coef, alpha):
    """An element of alpha·∂R(coef)."""
    size = len(coef)
    shares = draw(hnp.arrays(np.float64, size, elements=st.floats(-1, 1)))
    l1 = np.where(coef != 0, np.sign(coef), shares)
    match penalty:
        case L2():
            return alpha * coef
        case L1():
            return alpha * l1
        case ElasticNet():
            return alpha * (penalty.l1_ratio * l1 + (1 - penalty.l1_ratio) * coef)
        case L2Ball():
            length = np.linalg.norm(coef)
            outward = coef / length if length > 0 else np.zeros(size)
            on_boundary = abs(length - penalty.radius) <= 1e-13 * penalty.radius
        case L1Ball():
            outward, on_boundary = l1, abs(np.abs(coef).sum() - penalty.radius) <= 1e-13
        case _:
            return alpha * penalty_definition(penalty).subgradient(penalty, coef, shares)
    return draw(st.floats(0, 50)) * outward if on_boundary else np.zeros(size)


@st.composite
def subgradients(draw, name, elements=numbers):
    """A penalty, a feasible point (often on the boundary of a ball), a gradient, an alpha."""
    penalty, size = draw(penalties(name)), draw(sizes)
    coef = feasible(penalty, draw(vectors(size, elements)))
    return penalty, coef, draw(vectors(size, elements)), draw(alphas)


@every_penalty
@examples(1.5)
@given(data=st.data())
def test_least_norm_is_a_subgradient(name, data):
    """P(u) + slack ≥ P(x) + vᵀ(u − x) for the function gradientᵀx + alpha·R(x)."""
    penalty, coef, gradient, alpha = data.draw(subgradients(name))
    vector, slack = penalty.least_norm(coef, gradient, alpha)
    assert slack >= 0
    u = feasible(penalty, data.draw(vectors(len(coef))))
    there = gradient @ u + weighted(alpha, penalty.value(u))
    here = gradient @ coef + weighted(alpha, penalty.value(coef))
    size = (np.abs(gradient) + np.abs(vector)) @ (np.abs(u) + np.abs(coef))
    room = 1e-13 * (size + weighted(alpha, penalty.value(u) + penalty.value(coef)))
    assert there + slack >= here + vector @ (u - coef) - room


@every_penalty
@examples(1.5)
@given(data=st.data())
def test_no_subgradient_is_shorter(name, data):
    penalty, coef, gradient, alpha = data.draw(subgradients(name))
    vector, _ = penalty.least_norm(coef, gradient, alpha)
    other = gradient + random_subgradient(data.draw, penalty, coef, alpha)
    size = np.linalg.norm(gradient) + alpha * (1 + np.linalg.norm(coef))
    assert np.linalg.norm(vector) <= np.linalg.norm(other) + 1e-12 * size
    # the variational inequality that characterises the least norm
    assert vector @ (other - vector) >= -1e-11 * size * (size + np.linalg.norm(other))


@every_penalty
@given(data=st.data())
def test_slack_is_zero_inside(name, data):
    """A true subgradient needs no slack: everywhere but on the boundary of a ball."""
    penalty, coef, gradient, alpha = data.draw(subgradients(name))
    inside = 0.5 * coef
    assert penalty.least_norm(inside, gradient, alpha).slack == 0
    if penalty.is_constraint:
        np.testing.assert_array_equal(penalty.least_norm(inside, gradient, alpha).vector, gradient)


@every_ball
@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-160, 1e-100, 1e100, 1e300])
@examples(0.3)
@given(data=st.data())
def test_least_norm_scales_with_the_gradient(name, scale, data):
    """On a ball alpha does not matter, and neither does the unit of the gradient."""
    penalty, coef, gradient, alpha = data.draw(subgradients(name, eighths))
    vector, slack = penalty.least_norm(coef, gradient, alpha)
    scaled, scaled_slack = penalty.least_norm(coef, scale * gradient, alpha)
    room = 1e-12 * np.abs(gradient).max()
    np.testing.assert_allclose(scaled / scale, vector, rtol=1e-9, atol=room)
    assert scaled_slack / scale == pytest.approx(slack, rel=1e-9, abs=1e-12 * room)


@every_ball
@given(data=st.data())
def test_least_norm_vanishes_at_a_constrained_optimum(name, data):
    """Where the gradient points straight out of the ball, 0 is a subgradient."""
    penalty, coef, _, alpha = data.draw(subgradients(name))
    if not coef.any():
        return
    coef = feasible(penalty, 1e3 * coef / np.abs(coef).max())
    outward = np.sign(coef) if name == "l1_ball" else coef / np.linalg.norm(coef)
    vector, slack = penalty.least_norm(coef, -3.0 * outward, alpha)
    assert np.linalg.norm(vector) <= 1e-12
    assert slack <= 1e-10 * (1 + penalty.radius)


@pytest.mark.parametrize(
    ("penalty", "coef", "gradient", "vector"),
    [
        (L1(), [0.0, 0.0, 2.0], [0.5, -3.0, 1.0], [0.0, -2.0, 2.0]),
        (L1(), [0.0, -1.0], [1.0, 1.0], [0.0, 0.0]),
        (ElasticNet(l1_ratio=0.5), [0.0, 2.0], [2.0, 1.0], [1.5, 2.5]),
        (L2Ball(radius=5.0), [3.0, 4.0], [-3.0, -4.0], [0.0, 0.0]),
        (L2Ball(radius=5.0), [3.0, 4.0], [3.0, 4.0], [3.0, 4.0]),
        (L2Ball(radius=6.0), [3.0, 4.0], [-3.0, -4.0], [-3.0, -4.0]),
        (L1Ball(radius=1.0), [1.0, 0.0], [-1.0, 0.5], [0.0, 0.0]),
        (L1Ball(radius=1.0), [1.0, 0.0], [-1.0, -3.0], [1.0, -1.0]),
        (L1Ball(radius=1.0), [0.5, -0.5], [-2.0, 1.0], [-0.5, -0.5]),
    ],
)
def test_known_least_norms(penalty, coef, gradient, vector):
    found = penalty.least_norm(np.array(coef), np.array(gradient), 1.0).vector
    np.testing.assert_allclose(found, vector, atol=1e-14)


# --- constants ----------------------------------------------------------------------------------


@every_penalty
@given(data=st.data())
def test_strong_convexity_holds(name, data):
    penalty, size = data.draw(penalties(name)), data.draw(sizes)
    x, u = (feasible(penalty, data.draw(vectors(size))) for _ in range(2))
    kappa = penalty.strong_convexity
    middle = penalty.value(0.5 * (x + u)) + 0.125 * kappa * (x - u) @ (x - u)
    ends = 0.5 * (penalty.value(x) + penalty.value(u))
    assert middle <= ends * (1 + 1e-12) + 1e-13


@every_penalty
@given(data=st.data())
def test_strong_convexity_is_the_largest(name, data):
    """Along a ray from 0 the penalty curves by κ and no more."""
    penalty = data.draw(penalties(name))
    x = feasible(penalty, data.draw(vectors(3, st.floats(1, 8))))
    values = [penalty.value(share * x) for share in (0.5, 0.75, 1.0)]
    second_difference = (values[0] - 2 * values[1] + values[2]) * 16
    kappa = penalty.strong_convexity
    assert second_difference == pytest.approx(kappa * (x @ x), rel=1e-9, abs=1e-9)


@every_penalty
@given(data=st.data(), alpha=alphas)
def test_norm_bound_holds(name, data, alpha):
    penalty, size = data.draw(penalties(name)), data.draw(sizes)
    x = feasible(penalty, data.draw(vectors(size)))
    objective = weighted(alpha, penalty.value(x))
    assert np.linalg.norm(x) <= penalty.norm_bound(objective, alpha) * (1 + 1e-14) + 1e-150


@every_penalty
@given(data=st.data(), alpha=alphas, reach=st.floats(1e-3, 100))
def test_norm_bound_is_sharp_or_one_of_the_two_parts_is(name, data, alpha, reach):
    """On an axis ‖x‖₁ = ‖x‖₂: only the elastic net is looser, by less than the smaller part."""
    penalty = data.draw(penalties(name))
    objective = alpha * reach
    bound = penalty.norm_bound(objective, alpha)
    at_bound = penalty.value(np.array([bound]))
    if penalty.is_constraint:
        assert bound == penalty.radius
    else:
        assert reach * (1 - 1e-12) <= at_bound <= 2 * reach * (1 + 1e-12)


@pytest.mark.parametrize("alpha", [5e-324, 1e-310, 1e-200, 1e200, 1e308])
@every_penalty
@examples(0.3)
@given(data=st.data())
def test_every_positive_alpha_works(name, alpha, data):
    """Results may be infinite, but they are numbers, and nothing raises."""
    penalty, coef, gradient, _ = data.draw(subgradients(name))
    with np.errstate(over="ignore"):
        low, high = penalty.feasible_multiples(gradient, coef, alpha)
        results = [
            penalty.support(gradient, alpha),
            penalty.support(gradient, alpha, 1e-9),
            penalty.norm_bound(1.0, alpha),
            penalty.norm_bound(0.0, alpha),
            penalty.least_norm(coef, gradient, alpha).slack,
        ]
    assert not any(map(math.isnan, [*results, low, high]))
    assert min(results) >= 0


# --- dual feasibility ---------------------------------------------------------------------------


@every_penalty
@examples(1.5)
@given(data=st.data(), alpha=alphas, error=st.sampled_from([0.0, 1e-9]))
def test_multiples_at_the_ends_are_feasible(name, data, alpha, error):
    penalty, size = data.draw(penalties(name)), data.draw(sizes)
    u, offset = data.draw(vectors(size)), data.draw(vectors(size, eighths))
    error += EPS * np.abs(offset).max()  # what the caller's error covers at least
    with np.errstate(over="ignore"):
        low, high = penalty.feasible_multiples(u, offset, alpha, error)
    if low > high:
        return
    assert low >= 0 and high <= 4
    for c in (low, high, 0.5 * (low + high)):
        assert math.isfinite(penalty.support(c * u + offset, alpha, error * max(c, 1.0)))


@examples(3)
@given(data=st.data(), alpha=alphas)
def test_multiples_of_l1_end_where_feasibility_does(data, alpha):
    """Just outside nothing is feasible, up to the hair that is left for rounding."""
    size = data.draw(sizes)
    u, offset = data.draw(vectors(size)), data.draw(vectors(size, eighths))
    with np.errstate(over="ignore"):
        low, high = L1().feasible_multiples(u, offset, alpha)
    hair = 1e-13 * alpha + 4 * EPS * np.abs(offset).max()
    widest, narrowest = (exact_multiples(u, offset, alpha + h) for h in (hair, -hair))
    if low <= high:
        assert widest[0] <= Fraction(low) and Fraction(high) <= widest[1]
    if narrowest[0] <= narrowest[1]:
        assert Fraction(low) <= narrowest[0] and narrowest[1] <= Fraction(high)


def exact_multiples(u, offset, alpha):
    """The ends of the c in [0, 4] with |c·u + offset| ≤ alpha, in exact arithmetic."""
    low, high, limit = Fraction(0), Fraction(4), Fraction(alpha)
    for a, b in zip(exact.fractions(u), exact.fractions(offset), strict=True):
        if a:
            ends = sorted([(-limit - b) / a, (limit - b) / a])
            low, high = max(low, ends[0]), min(high, ends[1])
        elif abs(b) > limit:
            return Fraction(1), Fraction(0)
    return low, high


def test_multiples_without_offset_include_zero():
    low, high = L1().feasible_multiples(np.array([3.0, -8.0]), np.zeros(2), 2.0)
    assert low == 0 and high == pytest.approx(0.25)


# --- cuts ---------------------------------------------------------------------------------------


@every_penalty
@examples(1.5)
@given(data=st.data())
def test_feasibility_cut_separates(name, data):
    penalty, size = data.draw(penalties(name)), data.draw(sizes)
    x, other = data.draw(vectors(size)), data.draw(vectors(size))
    cut = penalty.feasibility_cut(x)
    assert (cut is None) == math.isfinite(penalty.value(x))
    if cut is None:
        return
    assert cut.depth > 0
    room = 1e-14 * np.abs(cut.normal) @ (np.abs(x) + penalty.radius)
    for u in (feasible(penalty, other), penalty.prox(x, 1.0), feasible(penalty, x)):
        assert cut.normal @ (u - x) <= -cut.depth + room


@pytest.mark.parametrize("penalty", [L2(), L1(), ElasticNet()])
def test_no_cut_without_a_constraint(penalty):
    assert penalty.feasibility_cut(np.array([1e6, -1e6])) is None


# --- parameters ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "parameter"),
    [
        (lambda: ElasticNet(l1_ratio=1.0), "l1_ratio"),
        (lambda: ElasticNet(l1_ratio=-0.1), "l1_ratio"),
        (lambda: ElasticNet(l1_ratio=math.nan), "l1_ratio"),
        (lambda: ElasticNet(l1_ratio="half"), "l1_ratio"),
        (lambda: ElasticNet(l1_ratio=None), "l1_ratio"),
        *(
            (lambda ball=ball, radius=radius: ball(radius=radius), "radius")
            for ball in (L1Ball, L2Ball)
            for radius in (0.0, -1.0, math.nan, math.inf, "wide", None, np.array([1.0, 2.0]))
        ),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(make, parameter):
    with pytest.raises((ValueError, TypeError)) as caught:
        make()
    message = str(caught.value)
    assert parameter in message
    assert "\n" not in message and message.endswith(".") and len(message) < 250


@given(data=st.data())
def test_multiples_without_an_offset_are_those_with_one_that_does_not_matter(data):
    """The shortcut and the general way, bit by bit."""
    u = data.draw(vectors(data.draw(sizes)))
    alpha, error = data.draw(alphas), data.draw(st.sampled_from([0.0, 1e-9, 1.0]))
    nowhere = np.append(np.zeros(len(u)), 1e-300)
    with np.errstate(over="ignore"):
        general = L1().feasible_multiples(np.append(u, 0.0), nowhere, alpha, error)
    assert L1().feasible_multiples(u, np.zeros(len(u)), alpha, error) == general
