"""Laws of every loss: convexity, slopes, curvature, conjugates, pieces, constants, extremes."""

from __future__ import annotations

import math
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from safesift.losses import (
    LOSSES,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    SafeLogistic,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from tests.laws import exact
from tests.laws.strategies import (
    KINKED_NAMES,
    LOSS_NAMES,
    TINY,
    as_targets,
    eighths,
    examples,
    extremes,
    kinks,
    numbers,
    predictions,
    samples,
    targets,
)

EPS = float(np.finfo(float).eps)
every_loss = pytest.mark.parametrize("name", LOSS_NAMES)
every_kinked_loss = pytest.mark.parametrize("name", KINKED_NAMES)
# arguments of a conjugate: many of them inside the domain [-1, 0] or [-1, 1]
duals = st.one_of(st.sampled_from([0.0, -1.0, 1.0]), st.floats(-1, 1), eighths)


def magnitude(loss, y):
    """How large the numbers are that a loss subtracts from each other."""
    scale = np.abs(loss.anchors(y)).max(axis=0) + 1.0
    for field in fields(loss):
        scale = scale + np.abs(getattr(loss, field.name))
    return scale


def arrays(length, elements):
    return hnp.arrays(np.float64, length, elements=elements)


# --- value, slope, curvature ----------------------------------------------------------------------


@every_loss
@examples(0.5)
@given(data=st.data())
def test_value_is_never_negative(name, data):
    loss, pred, y = data.draw(samples(name, st.one_of(numbers, extremes)))
    assert (loss.value(pred, y) >= 0).all()


@every_loss
@examples(0.5)
@given(data=st.data())
def test_value_is_convex(name, data):
    loss, pred, y = data.draw(samples(name))
    other = data.draw(predictions(loss, y))
    share = data.draw(st.floats(0, 1))
    between = loss.value(share * pred + (1 - share) * other, y)
    chord = share * loss.value(pred, y) + (1 - share) * loss.value(other, y)
    room = 1e-13 * (magnitude(loss, y) + np.abs(pred) + np.abs(other)) ** 2
    assert (between <= chord + room).all()


@every_loss
@examples(0.5)
@given(data=st.data())
def test_slope_is_a_subgradient(name, data):
    loss, pred, y = data.draw(samples(name, st.one_of(numbers, extremes)))
    other = data.draw(predictions(loss, y, st.one_of(numbers, extremes)))
    here, there, slope = loss.value(pred, y), loss.value(other, y), loss.slope(pred, y)
    assert not np.isnan(slope).any()
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.abs(pred) + np.abs(other) + magnitude(loss, y)
        tangent = here + slope * (other - pred)
        room = 1e-14 * (here + np.abs(slope) * size)
        # where the tangent itself overflows it says nothing
        known = np.isfinite(tangent) & np.isfinite(room)
        assert (there >= tangent - room)[known].all()


@every_loss
@examples(0.5)
@given(data=st.data())
def test_slope_is_the_derivative_away_from_kinks(name, data):
    loss, pred, y = data.draw(samples(name))
    step = 1e-5
    smooth = far_from_kinks(loss, pred, y, 2 * step)
    difference = (loss.value(pred + step, y) - loss.value(pred - step, y)) / (2 * step)
    room = 1e-9 * (magnitude(loss, y) + np.abs(pred)) ** 2
    assert (np.abs(difference - loss.slope(pred, y)) <= room)[smooth].all()


@every_loss
@examples(0.5)
@given(data=st.data())
def test_curvature_is_the_derivative_of_the_slope(name, data):
    loss, pred, y = data.draw(samples(name))
    step = 1e-5
    smooth = far_from_kinks(loss, pred, y, 2 * step)
    difference = (loss.slope(pred + step, y) - loss.slope(pred - step, y)) / (2 * step)
    room = 1e-9 * (magnitude(loss, y) + np.abs(pred))
    assert (np.abs(difference - loss.curvature(pred, y)) <= room)[smooth].all()


def far_from_kinks(loss, pred, y, distance):
    places = kinks(loss, y)
    return ~(np.abs(places - pred) <= distance).any(axis=0)


def clear_of_kinks(loss, pred, y):
    """Where a rounded margin or residual does not touch a kink that the prediction does not."""
    return far_from_kinks(loss, pred, y, 4 * EPS * (np.abs(pred) + magnitude(loss, y)))


@every_loss
@examples(0.5)
@given(data=st.data())
def test_slopes_grow_by_the_curvature_floor_at_least(name, data):
    loss, y, lower, upper, floor = data.draw(floors(name))
    assert (floor >= 0).all()
    share = data.draw(st.floats(0, 1))
    middle = np.clip(lower + share * (upper - lower), lower, upper)
    for left, right in ((lower, middle), (middle, upper), (lower, upper)):
        growth = loss.slope(right, y) - loss.slope(left, y)
        room = 1e-14 * (np.abs(left) + np.abs(right) + magnitude(loss, y))
        assert (growth >= floor * (right - left) - room).all()
    clear = clear_of_kinks(loss, middle, y)
    assert (floor <= loss.curvature(middle, y) * (1 + 8 * EPS))[clear].all()


@every_loss
@examples(0.5)
@given(data=st.data())
def test_curvature_floor_is_zero_around_a_kink(name, data):
    loss, y, lower, upper, floor = data.draw(floors(name))
    places = kinks(loss, y)
    # strictly: the ends of the pieces are rounded, the floor is exact
    around = ((lower < places) & (places < upper)).any(axis=0)
    assert (floor[around] == 0).all()


@every_loss
@examples(0.5)
@given(data=st.data())
def test_curvature_floor_is_zero_where_a_kink_is_touched(name, data):
    loss = LOSSES[name](
        **{key: 0.5 for key in ("mu", "delta", "epsilon", "width") if key in params(name)}
    )
    y = data.draw(targets(loss, 3, eighths))
    for place in kinks(loss, y):
        place = np.where(np.isnan(place), loss.anchors(y)[0], place)
        for lower, upper in ((place - 1, place), (place, place + 1), (place, place)):
            touches = np.isfinite(kinks(loss, y)) & (place == kinks(loss, y))
            assert (loss.curvature_floor(lower, upper, y)[touches.any(axis=0)] == 0).all()


def params(name):
    return [field.name for field in fields(LOSSES[name])]


@every_loss
@examples(0.5)
@given(data=st.data())
def test_curvature_floor_is_sharp_at_a_point(name, data):
    """On an interval of one point away from kinks the floor is the curvature."""
    loss, pred, y = data.draw(samples(name))
    smooth = clear_of_kinks(loss, pred, y)
    floor = loss.curvature_floor(pred, pred, y)
    np.testing.assert_allclose(floor[smooth], loss.curvature(pred, y)[smooth], rtol=8 * EPS)


@every_loss
def test_curvature_floor_of_the_whole_line(name):
    loss = LOSSES[name]()
    y = as_targets(loss, [1.0])
    # of a piece that ends nowhere, and of no other
    endless = [piece for piece in loss.pieces(y) if piece.lower == -math.inf == -piece.upper]
    floor = loss.curvature_floor([-math.inf], [math.inf], y)
    assert floor == sum(piece.quadratic for piece in endless)


@st.composite
def floors(draw, name):
    """A loss, targets, intervals, and the curvature floors on them."""
    loss, lower, y = draw(samples(name))
    width = draw(arrays(len(y), st.one_of(st.just(0.0), st.floats(0, 5), st.floats(0, 200))))
    upper = lower + width
    return loss, y, lower, upper, loss.curvature_floor(lower, upper, y)


# --- accuracy: against exact arithmetic -----------------------------------------------------------


@every_loss
@examples(0.5)
@given(data=st.data())
def test_value_and_slope_are_accurate(name, data):
    """To a few units in the last place, of the result or of what rounding the input changes."""
    loss, pred, y = data.draw(samples(name, st.one_of(numbers, extremes), max_size=3))
    value, slope = loss.value(pred, y), loss.slope(pred, y)
    for i in range(len(y)):
        t, target = Fraction(float(pred[i])), exact.target(y[i])
        true_value = exact.value(loss, i, t, target)
        true_slope = exact.slope(loss, i, t, target)
        size = abs(t) + exact.Fraction(float(np.broadcast_to(magnitude(loss, y), len(y))[i]))
        input_error = 4 * Fraction(EPS) * size
        assert_close(value[i], true_value, 8, abs(true_slope) * input_error + input_error**2)
        if name not in KINKED_NAMES:
            assert_close(slope[i], true_slope, 8, input_error)


@every_loss
@examples(0.5)
@given(data=st.data())
def test_conjugate_is_accurate(name, data):
    loss, _, y = data.draw(samples(name, st.one_of(numbers, extremes), max_size=3))
    nu = data.draw(arrays(len(y), st.one_of(duals, extremes)))
    result = loss.conjugate(nu, y)
    for i in range(len(y)):
        u, target = Fraction(float(nu[i])), exact.target(y[i])
        true = exact.conjugate(loss, i, u, target)
        if true is None:
            assert result[i] == math.inf
        else:
            size = exact.Fraction(float(np.broadcast_to(magnitude(loss, y), len(y))[i]))
            assert_close(result[i], true, 8, 4 * Fraction(EPS) * abs(u) * (size + abs(u)))


def assert_close(computed, true, ulps, room):
    """Within a few units in the last place plus `room`; overflow only where it is due."""
    assert not math.isnan(computed)
    if math.isinf(computed):
        # a square may overflow before it is halved
        assert (true if computed > 0 else -true) + room >= Fraction(np.finfo(float).max) / 2
        return
    allowed = ulps * Fraction(EPS) * abs(true) + room + 8 * Fraction(TINY)
    assert abs(Fraction(float(computed)) - true) <= allowed


# --- conjugate ------------------------------------------------------------------------------------


def least_value(function, low, high, steps=120):
    """Golden section for the least value of a convex function, one per sample."""
    ratio = (math.sqrt(5) - 1) / 2
    low, high = low.copy(), high.copy()
    for _ in range(steps):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        go_left = function(left) <= function(right)
        high, low = np.where(go_left, right, high), np.where(go_left, low, left)
    return np.minimum(function(low), function(high))


@every_loss
@examples(0.5)
@given(data=st.data())
def test_conjugate_is_the_supremum(name, data):
    loss, _, y = data.draw(samples(name, eighths))
    nu = data.draw(arrays(len(y), duals))
    conjugate = loss.conjugate(nu, y)
    inside = np.isfinite(conjugate)
    reach = 1e4 * np.ones(len(y))
    center = loss.anchors(y)[0]
    with np.errstate(over="ignore"):
        supremum = -least_value(lambda t: loss.value(t, y) - t * nu, center - reach, center + reach)
    # a supremum that is only approached at infinity is still missing e^-10000 or 1/reach of it
    room = 1e-9 * (1.0 + np.abs(conjugate[inside]) + magnitude(loss, y).max())
    assert (np.abs(supremum - conjugate)[inside] <= room).all()
    # outside the domain the supremum grows with the reach, without end
    outside = ~inside & (distance_to_domain(loss, nu, y) > 1e-3)
    assert (supremum[outside] > 1e-3 * (reach[outside] - 100)).all()


def distance_to_domain(loss, nu, y):
    lower, upper = loss.dual_interval(y)
    return np.maximum(np.maximum(lower - nu, nu - upper), 0.0)


@every_loss
@examples(0.5)
@given(data=st.data())
def test_dual_interval_is_the_domain_of_the_conjugate(name, data):
    loss, _, y = data.draw(samples(name))
    lower, upper = loss.dual_interval(y)
    nu = data.draw(arrays(len(y), duals))
    inside = (nu >= lower) & (nu <= upper)
    np.testing.assert_array_equal(np.isfinite(loss.conjugate(nu, y)), inside)
    for end, outwards in ((lower, -math.inf), (upper, math.inf)):
        finite = np.isfinite(end)
        at_end = np.where(finite, end, 0.0)
        assert np.isfinite(loss.conjugate(at_end, y)).all()
        beyond = loss.conjugate(np.nextafter(at_end, outwards), y)
        assert np.isposinf(beyond[finite]).all()


@every_loss
@examples(0.5)
@given(data=st.data())
def test_slopes_lie_in_the_dual_interval(name, data):
    loss, pred, y = data.draw(samples(name, st.one_of(numbers, extremes)))
    lower, upper = loss.dual_interval(y)
    slope = loss.slope(pred, y)
    assert (lower <= slope).all() and (slope <= upper).all()


@every_loss
@examples(0.5)
@given(data=st.data())
def test_fenchel_young(name, data):
    """f(t) + f*(ν) ≥ tν everywhere, however extreme, and equality at the slope."""
    loss, pred, y = data.draw(samples(name, st.one_of(numbers, extremes)))
    nu = data.draw(arrays(len(y), st.one_of(duals, extremes)))
    assert_fenchel_young(loss, pred, nu, y)
    slope = loss.slope(pred, y)
    finite = np.isfinite(loss.value(pred, y)) & np.isfinite(loss.conjugate(slope, y))
    below, room = fenchel_young(loss, pred, np.where(finite, slope, 0.0), y)
    assert all(abs(below[i]) <= room[i] for i in np.flatnonzero(finite))


def assert_fenchel_young(loss, pred, nu, y):
    finite = np.isfinite(loss.value(pred, y)) & np.isfinite(loss.conjugate(nu, y))
    below, room = fenchel_young(loss, np.where(finite, pred, 0.0), np.where(finite, nu, 0.0), y)
    assert all(below[i] >= -room[i] for i in np.flatnonzero(finite))


def fenchel_young(loss, pred, nu, y):
    """f(t) + f*(ν) − tν, summed exactly, and the rounding that its terms may have."""
    value, conjugate = loss.value(pred, y), loss.conjugate(nu, y)
    scale = np.broadcast_to(magnitude(loss, y), len(y))
    below, room = [], []
    for v, c, t, u, m in zip(value, conjugate, pred, nu, scale, strict=True):
        if not (math.isfinite(v) and math.isfinite(c)):
            below.append(Fraction(0))
            room.append(Fraction(0))
            continue
        v, c, t, u, m = exact.fractions([v, c, t, u, m])
        below.append(v + c - t * u)
        size = abs(v) + abs(c) + (abs(t) + m) * abs(u) + u * u
        room.append(16 * Fraction(EPS) * size + 16 * Fraction(TINY) * (1 + abs(t) + abs(u)))
    return below, room


@every_loss
@examples(0.5)
@given(data=st.data())
def test_conjugate_of_zero_is_zero(name, data):
    loss, _, y = data.draw(samples(name, st.one_of(numbers, extremes)))
    assert (loss.conjugate(np.zeros(len(y)), y) == 0).all()
    assert (loss.conjugate(-np.zeros(len(y)), y) == 0).all()


@every_loss
@examples(0.5)
@given(data=st.data())
def test_quadratic_rays(name, data):
    """Where claimed, c ↦ f*(cν) is the quadratic polynomial through three of its points."""
    if not LOSSES[name].quadratic_rays:
        pytest.skip("not claimed")
    loss, _, y = data.draw(samples(name))
    lower, upper = loss.dual_interval(y)
    nu = np.clip(data.draw(arrays(len(y), numbers)), lower, upper)
    share = data.draw(st.floats(0, 1))
    one, half = loss.conjugate(nu, y), loss.conjugate(0.5 * nu, y)
    predicted = share * ((2 * one - 4 * half) * share + (4 * half - one))
    room = 1e-14 * np.abs(nu) * (np.abs(nu) + magnitude(loss, y)) + 16 * TINY
    assert (np.abs(loss.conjugate(share * nu, y) - predicted) <= room).all()


def test_quadratic_rays_are_not_claimed_for_logarithms():
    assert not Logistic.quadratic_rays and not SafeLogistic.quadratic_rays


# --- extremes -------------------------------------------------------------------------------------


@every_loss
@examples(0.5)
@given(data=st.data())
def test_nothing_is_ever_nan(name, data):
    loss, pred, y = data.draw(samples(name, extremes))
    nu = data.draw(arrays(len(y), extremes))
    other = data.draw(arrays(len(y), extremes))
    results = [
        loss.value(pred, y),
        loss.slope(pred, y),
        loss.curvature(pred, y),
        loss.curvature_floor(np.minimum(pred, other), np.maximum(pred, other), y),
        loss.conjugate(nu, y),
        *loss.dual_interval(y),
    ]
    assert not any(np.isnan(result).any() for result in results)


@every_loss
@pytest.mark.parametrize("pred", [1e300, -1e300])
def test_far_away(name, pred):
    """Far out a loss is its asymptote: linear, quadratic or flat."""
    loss = LOSSES[name]()
    y = as_targets(loss, [1.0])
    value, slope = loss.value([pred], y), loss.slope([pred], y)
    quadratic, linear = asymptote(loss, pred, y)
    assert slope == pytest.approx(quadratic * pred + linear, rel=1e-15)
    assert value == (math.inf if quadratic else pytest.approx(linear * pred, rel=1e-15))


def asymptote(loss, pred, y):
    """The coefficients of the piece that a far prediction is on, or of the line it is next to."""
    for piece in loss.pieces(y):
        if piece.lower < pred < piece.upper:
            return float(np.ravel(piece.quadratic)[0]), float(np.ravel(piece.linear)[0])
    lower, upper = loss.dual_interval(y)
    return 0.0, float(upper[0] if pred > 0 else lower[0])


# --- pieces ---------------------------------------------------------------------------------------


@every_loss
@examples(0.5)
@given(data=st.data())
def test_pieces_are_the_loss(name, data):
    """On a piece the polynomial is the loss, its derivative the slope."""
    loss, pred, y = data.draw(samples(name))
    for piece in loss.pieces(y):
        inside = (piece.lower < pred) & (pred < piece.upper) & clear_of_kinks(loss, pred, y)
        terms = [0.5 * piece.quadratic * pred**2, piece.linear * pred, piece.constant]
        room = 1e-15 * sum(map(np.abs, terms)) + 1e-15 * np.abs(loss.slope(pred, y)) * (
            np.abs(pred) + magnitude(loss, y)
        )
        assert (np.abs(sum(terms) - loss.value(pred, y)) <= 4 * room)[inside].all()
        slope = piece.quadratic * pred + piece.linear
        room = 1e-15 * (np.abs(piece.quadratic * pred) + np.abs(piece.linear) + magnitude(loss, y))
        assert (np.abs(slope - loss.slope(pred, y)) <= room)[inside].all()
        flat = inside & (piece.quadratic == 0) & (piece.linear == 0)
        assert (loss.value(pred, y)[flat] == 0).all() and (loss.slope(pred, y)[flat] == 0).all()


@every_loss
@examples(0.5)
@given(data=st.data())
def test_interiors_of_pieces_are_disjoint(name, data):
    loss, _, y = data.draw(samples(name, st.one_of(numbers, extremes)))
    pieces = loss.pieces(y)
    for i, piece in enumerate(pieces):
        for other in pieces[:i]:
            lower = np.maximum(piece.lower, other.lower)
            upper = np.minimum(piece.upper, other.upper)
            assert (lower >= upper).all()


@every_loss
@examples(0.5)
@given(data=st.data())
def test_loss_is_not_flat_outside_its_pieces(name, data):
    loss, pred, y = data.draw(samples(name))
    covered = np.zeros(len(y), dtype=bool)
    for piece in loss.pieces(y):
        covered |= (piece.lower <= pred) & (pred <= piece.upper)
    assert (loss.slope(pred, y) != 0)[~covered].all()


@every_loss
@examples(0.5)
@given(data=st.data())
def test_ends_of_pieces_are_exact(name, data):
    """A float strictly inside a piece is strictly inside the true one, ends not rounded.

    Rounding is monotone, so comparing with a rounded end decides as the exact end would.
    """
    loss, pred, y = data.draw(samples(name, st.one_of(numbers, extremes), max_size=3))
    for piece in loss.pieces(y):
        inside = (piece.lower < pred) & (pred < piece.upper)
        for i in np.flatnonzero(inside):
            t, target = Fraction(float(pred[i])), exact.target(y[i])
            curvature = exact.curvature(loss, i, t, target)
            slope = exact.slope(loss, i, t, target)
            if piece.is_flat:
                assert slope == 0 and exact.value(loss, i, t, target) == 0
            elif np.ravel(piece.quadratic)[i] != 0:
                assert curvature != 0
                assert np.ravel(piece.quadratic)[i] == pytest.approx(float(curvature), rel=EPS)
            else:
                assert curvature == 0 and slope == Fraction(float(np.ravel(piece.linear)[i]))


def test_an_end_that_is_a_rounded_sum():
    """ε + width is no float here, and a target is added to it: rounded twice."""
    loss = LOSSES["smoothed_epsilon_insensitive"](epsilon=1.0349022884990855, width=1.0)
    end = Fraction(-0.125) + Fraction(1.0349022884990855) + 1
    for piece in loss.pieces(np.array([-0.125]))[3:]:
        for pred in [*np.nextafter(float(end), [-np.inf, np.inf]).tolist(), float(end)]:
            if piece.lower < pred < piece.upper:
                assert (Fraction(pred) < end) == (np.ravel(piece.quadratic)[0] != 0)


@every_loss
def test_pieces_of_one_scalar_target(name):
    loss = LOSSES[name]()
    y = np.array([1.0, 2.0]) if loss.task == "interval" else 1.0
    for piece in loss.pieces(y):
        assert piece.lower < piece.upper
        assert isinstance(piece.is_flat, bool)


# --- constants ------------------------------------------------------------------------------------


@every_loss
@examples(0.5)
@given(data=st.data())
def test_smoothness_and_lipschitz_hold(name, data):
    loss, pred, y = data.draw(samples(name))
    other = data.draw(predictions(loss, y))
    slope, slope_there = loss.slope(pred, y), loss.slope(other, y)
    assert (np.abs(slope) <= loss.lipschitz).all()
    if math.isfinite(loss.smoothness):
        room = 1e-14 * (np.abs(pred) + np.abs(other) + magnitude(loss, y))
        bound = loss.smoothness * np.abs(pred - other) + room
        assert (np.abs(slope - slope_there) <= bound).all()
        assert (loss.curvature(pred, y) <= loss.smoothness * (1 + 2 * EPS)).all()


@every_loss
@examples(0.5)
@given(data=st.data())
def test_smoothness_and_lipschitz_are_attained(name, data):
    loss, _, y = data.draw(samples(name, max_size=1))
    places = np.ravel(kinks(loss, y))
    places = places[np.isfinite(places)]
    middle = loss.anchors(y)[0]
    grid = np.concatenate(
        [middle + np.linspace(-20, 20, 4001), places, places - 3e-3, places + 3e-3]
    )
    left, right = grid - 1e-9, grid + 1e-9
    steepest = np.max((loss.slope(right, y) - loss.slope(left, y)) / (right - left))
    if math.isfinite(loss.smoothness):
        assert steepest >= 0.98 * loss.smoothness
    else:
        assert steepest > 1e6
    largest = np.abs(loss.slope(np.array([-1e9, 1e9]), y)).max()
    assert largest >= min(0.99 * loss.lipschitz, 1e8)


# --- smooth stand-ins -----------------------------------------------------------------------------

widths = st.one_of(st.sampled_from([0.5, 1.0, 0.003]), st.floats(1e-3, 2))


@every_loss
@examples(0.5)
@given(data=st.data(), width=widths)
def test_smoothed_is_close_and_smooth(name, data, width):
    loss, pred, y = data.draw(samples(name))
    other = data.draw(predictions(loss, y))
    smooth = loss.smoothed(width)
    assert math.isfinite(smooth.smoothness)
    assert smooth.task == loss.task
    room = 1e-13 * (np.abs(pred) + np.abs(other) + magnitude(loss, y))
    assert (np.abs(smooth.value(pred, y) - loss.value(pred, y)) <= width + room).all()
    slope, slope_there = smooth.slope(pred, y), smooth.slope(other, y)
    bound = smooth.smoothness * (np.abs(pred - other) + room)
    assert (np.abs(slope - slope_there) <= bound).all()
    tangent = smooth.value(pred, y) + slope * (other - pred)
    assert (smooth.value(other, y) >= tangent - room * (1 + np.abs(slope))).all()


@every_loss
@examples(0.5)
@given(data=st.data(), width=widths)
def test_smoothed_slopes_stay_in_the_domain(name, data, width):
    """The slopes serve as dual points of the loss itself."""
    loss, pred, y = data.draw(samples(name, st.one_of(numbers, extremes)))
    lower, upper = loss.dual_interval(y)
    slope = loss.smoothed(width).slope(pred, y)
    assert (lower <= slope).all() and (slope <= upper).all()


@every_loss
@examples(0.5)
@given(data=st.data(), width=widths)
def test_smoothed_is_a_loss_of_its_own(name, data, width):
    """Conjugate, curvature and floor belong to the smoothed loss, not to the one it stands for."""
    loss, pred, y = data.draw(samples(name))
    smooth = loss.smoothed(width)
    nu = smooth.slope(pred, y)
    tight = smooth.value(pred, y) + smooth.conjugate(nu, y) - nu * pred
    room = 1e-12 * (magnitude(loss, y) + np.abs(pred)) ** 2 / min(width, 1.0)
    assert (np.abs(tight) <= room).all()
    step = 1e-3 * width
    left, right = smooth.slope(pred - step, y), smooth.slope(pred + step, y)
    steepness = (right - left) / (2 * step)
    flat = smooth.curvature_floor(pred - step, pred + step, y)
    assert (flat <= steepness * (1 + 1e-6) + 1e-9).all()
    inside = far_from_kinks(smooth, pred, y, 2 * step)
    assert (np.abs(smooth.curvature(pred, y) - steepness) <= 1e-4 * smooth.smoothness)[inside].all()


@every_loss
@examples(0.5)
@given(data=st.data(), width=widths)
def test_pieces_of_the_smoothed_loss(name, data, width):
    loss, pred, y = data.draw(samples(name))
    smooth = loss.smoothed(width)
    for piece in smooth.pieces(y):
        inside = (piece.lower < pred) & (pred < piece.upper)
        value = 0.5 * piece.quadratic * pred**2 + piece.linear * pred + piece.constant
        room = 1e-12 * (magnitude(loss, y) + np.abs(pred)) ** 2 / min(width, 1.0)
        assert (np.abs(value - smooth.value(pred, y)) <= room)[inside].all()


# --- inputs ---------------------------------------------------------------------------------------


@every_loss
@examples(0.5)
@given(data=st.data())
def test_take_selects_samples(name, data):
    loss, pred, y = data.draw(samples(name))
    mask = data.draw(hnp.arrays(bool, len(y)))
    order = data.draw(st.permutations(range(len(y))))
    stop = data.draw(st.integers(0, len(y)))
    for rows in (mask, np.array(order), slice(0, stop), slice(stop, None)):
        part = loss.take(rows)
        assert type(part) is type(loss)
        for method in (loss.value, loss.slope, loss.curvature, loss.conjugate):
            taken = getattr(part, method.__name__)(pred[rows], y[rows])
            np.testing.assert_array_equal(taken, method(pred, y)[rows])
        floor = part.curvature_floor(pred[rows], pred[rows], y[rows])
        np.testing.assert_array_equal(floor, loss.curvature_floor(pred, pred, y)[rows])
        for piece, whole in zip(part.pieces(y[rows]), loss.pieces(y), strict=True):
            np.testing.assert_array_equal(piece.lower, whole.lower[rows])
            np.testing.assert_array_equal(piece.constant, whole.constant[rows])


@every_loss
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float32, np.uint8, list, float])
def test_scalars_lists_and_integers(name, dtype):
    """Whatever holds the numbers, the result is that of float64, in float64."""
    loss = LOSSES[name]()
    pred, y = np.array([0.0, 1.0, 3.0]), as_targets(loss, np.array([1.0, 1.0, 1.0]))
    if dtype is list:
        given_pred, given_y = [0, 1, 3], as_targets(loss, [1, 1, 1]).tolist()
    elif dtype is float:
        pred, y = pred[:1], y[:1]
        given_pred, given_y = 0.0, as_targets(loss, 1.0).tolist()
    else:
        given_pred, given_y = pred.astype(dtype), y.astype(dtype)
    calls = {
        "value": ((pred, y), (given_pred, given_y)),
        "slope": ((pred, y), (given_pred, given_y)),
        "curvature": ((pred, y), (given_pred, given_y)),
        "conjugate": ((pred, y), (given_pred, given_y)),
        "curvature_floor": ((pred, pred, y), (given_pred, given_pred, given_y)),
    }
    for method, (plain, other) in calls.items():
        expected, result = getattr(loss, method)(*plain), getattr(loss, method)(*other)
        np.testing.assert_array_equal(np.ravel(result), expected, err_msg=method)
        assert np.asarray(result).dtype == np.float64, method


@every_loss
def test_negative_labels_and_targets_in_integers(name):
    loss = LOSSES[name]()
    pred, y = np.array([-2, 0, 2]), as_targets(loss, np.array([-1, -1, -1]))
    for method in ("value", "slope", "curvature", "conjugate"):
        expected = getattr(loss, method)(pred.astype(float), y.astype(float))
        np.testing.assert_array_equal(getattr(loss, method)(pred, y), expected)
    expected = loss.curvature_floor(pred - 1.0, pred + 1.0, y)
    np.testing.assert_array_equal(loss.curvature_floor(pred - 1, pred + 1, y), expected)


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, "wide", None, [[1.0]]], ids=repr)
@pytest.mark.parametrize(
    ("cls", "parameter"),
    [
        (SafeLogistic, "mu"),
        (Huber, "delta"),
        (EpsilonInsensitive, "epsilon"),
        (SquaredEpsilonInsensitive, "epsilon"),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(cls, parameter, bad):
    assert_refused(lambda: cls(**{parameter: bad}), parameter)


@pytest.mark.parametrize(("cls", "parameter"), [(SafeLogistic, "mu"), (Huber, "delta")])
def test_one_value_per_sample_is_refused_where_it_is_not_supported(cls, parameter):
    assert_refused(lambda: cls(**{parameter: np.array([0.5, 1.0])}), parameter)


def test_huber_without_a_quadratic_part_is_refused():
    assert_refused(lambda: Huber(delta=0.0), "delta")


@pytest.mark.parametrize("cls", [EpsilonInsensitive, SquaredEpsilonInsensitive])
def test_message_about_a_long_parameter_stays_short(cls):
    epsilon = np.linspace(0, 1, 2000)
    epsilon[7] = -1.0
    assert_refused(lambda: cls(epsilon=epsilon), "epsilon")


def assert_refused(make, parameter):
    with pytest.raises((ValueError, TypeError)) as caught:
        make()
    message = str(caught.value)
    assert parameter in message
    assert "\n" not in message and message.endswith(".") and len(message) < 250


# --- values known by heart ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "pred", "y", "value", "slope"),
    [
        (Hinge(), 0.25, 1, 0.75, -1.0),
        (Hinge(), 0.25, -1, 1.25, 1.0),
        (Hinge(), 1.0, 1, 0.0, 0.0),
        (SquaredHinge(), -1.0, 1, 2.0, -2.0),
        (SquaredHinge(), 0.5, -1, 1.125, 1.5),
        (Logistic(), 0.0, 1, 0.6931471805599453, -0.5),
        (Logistic(), 2.0, -1, 2.1269280110429727, 0.8807970779778824),
        (Logistic(), 40.0, 1, 4.248354255291589e-18, -4.248354255291589e-18),
        (SafeLogistic(), 0.0, 1, 0.36787944117144233, -0.6321205588285577),
        (SafeLogistic(mu=0.5), -1.0, 1, 0.7231301601484298, -0.7768698398515702),
        (SafeLogistic(mu=0.5), 0.5, 1, 0.0, 0.0),
        (SafeLogistic(), 1.0 - 2.0**-20, 1, 4.547472063262089e-13, -9.536738616590436e-07),
        (Squared(), 3.0, 1.0, 2.0, 2.0),
        (Huber(delta=0.5), 2.0, 1.0, 0.375, 0.5),
        (Huber(delta=0.5), 0.75, 1.0, 0.03125, -0.25),
        (EpsilonInsensitive(epsilon=0.25), 0.5, 1.0, 0.25, -1.0),
        (EpsilonInsensitive(epsilon=0.25), 0.75, 1.0, 0.0, 0.0),
        (SquaredEpsilonInsensitive(epsilon=0.25), 2.0, 1.0, 0.28125, 0.75),
    ],
)
def test_known_values(loss, pred, y, value, slope):
    assert loss.value(pred, y) == pytest.approx(value, rel=2e-15, abs=0)
    assert loss.slope(pred, y) == pytest.approx(slope, rel=2e-15, abs=0)


@pytest.mark.parametrize(
    ("loss", "nu", "y", "conjugate"),
    [
        (Hinge(), -0.25, 1, -0.25),
        (Hinge(), 0.25, 1, math.inf),
        (SquaredHinge(), -3.0, 1, 1.5),
        (SquaredHinge(), 3.0, -1, 1.5),
        (Logistic(), -0.5, 1, -0.6931471805599453),
        (Logistic(), -1.0, 1, 0.0),
        (SafeLogistic(mu=0.5), -0.5, 1, -0.09657359027997264),
        (SafeLogistic(mu=0.5), -1.0, 1, 0.5),
        (Squared(), -2.0, 3.0, -4.0),
        (Huber(delta=0.5), 0.5, 3.0, 1.625),
        (Huber(delta=0.5), 0.75, 3.0, math.inf),
        (EpsilonInsensitive(epsilon=0.25), -0.5, 3.0, -1.375),
        (SquaredEpsilonInsensitive(epsilon=0.25), -2.0, 3.0, -3.5),
    ],
)
def test_known_conjugates(loss, nu, y, conjugate):
    assert loss.conjugate(nu, y) == pytest.approx(conjugate, rel=2e-15, abs=0)


@examples(2)
@given(z=st.floats(-0.01, 0))
def test_safe_logistic_does_not_cancel(z):
    """Near its flat region the value is of second order and keeps all its digits."""
    margin = 1.0 + z
    true = exact.value(SafeLogistic(), 0, Fraction(margin), Fraction(1))
    value = float(SafeLogistic().value(margin, 1.0))
    assert value == pytest.approx(float(true), rel=2e-15, abs=TINY)
