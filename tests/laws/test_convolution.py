"""Laws of infimum convolutions: closed forms against the numeric route, numeric losses alone."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import safesift as ss
from safesift import losses
from safesift.losses.numeric import numeric_version
from safesift.losses.omegas import L1, OMEGAS, CustomOmega, Entropy, NonpositiveL1, Quadratic
from tests.laws import safe_losses
from tests.laws.safe_losses import NUMERIC, SAFE_LOSSES
from tests.laws.strategies import examples, extremes, numbers

MUS = (1e-3, 0.3, 1.0, 7.5)
GRID = np.concatenate([np.linspace(-12, 12, 2401) + 1.2345e-4, [-1e6, -300.0, 300.0, 1e6]])
every_loss = pytest.mark.parametrize("name", sorted(SAFE_LOSSES))
every_numeric_loss = pytest.mark.parametrize("name", NUMERIC)
seeds = st.integers(0, 2**32 - 1)

CLOSED_FORMS = [
    (losses.Squared(), L1()),
    (losses.Huber(0.7), L1()),
    (losses.Huber(1.0), L1()),
    (losses.EpsilonInsensitive(0.2), L1()),
    (losses.SquaredEpsilonInsensitive(0.2), L1()),
    (losses.SmoothedEpsilonInsensitive(0.2, 0.3), L1()),
    (losses.Hinge(0.1), L1()),
    (losses.SquaredHinge(-0.3), L1()),
    (losses.SmoothedHinge(0.1, 0.4), L1()),
    (losses.SafeLogistic(0.2), L1()),
    (losses.Scaled(losses.Squared(), 3.0), L1()),
    (losses.Squared(), Quadratic()),
    (losses.Huber(0.7), Quadratic()),
    (losses.EpsilonInsensitive(0.0), Quadratic()),
    (losses.EpsilonInsensitive(0.2), Quadratic()),
    (losses.SquaredEpsilonInsensitive(0.2), Quadratic()),
    (losses.SmoothedEpsilonInsensitive(0.2, 0.3), Quadratic()),
    (losses.Hinge(0.1), Quadratic()),
    (losses.SquaredHinge(0.1), Quadratic()),
    (losses.SmoothedHinge(0.1, 0.4), Quadratic()),
    (losses.SquaredMargin(), Quadratic()),
    (losses.Scaled(losses.Hinge(0.1), 3.0), Quadratic()),
    (losses.AbsoluteMargin(), NonpositiveL1()),
    (losses.SquaredMargin(), NonpositiveL1()),
    (losses.SafeLogistic(0.2), NonpositiveL1()),
    (losses.Logistic(), Entropy()),
]


def target(loss):
    """The y for which a prediction is a margin or a residual."""
    return 1.0 if loss.task == "classification" else 0.0


def draw(name, seed):
    loss = SAFE_LOSSES[name].make(np.random.default_rng(seed))
    return loss, target(loss)


# --- closed forms against the numeric route -------------------------------------------------------


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize(("loss", "omega"), CLOSED_FORMS, ids=repr)
def test_closed_form_is_the_numeric_one(loss, omega, mu):
    """To 1e-10 relative; near the flat region relative to what rounding the input changes."""
    closed = ss.infimum_convolution(loss, omega, mu)
    numeric = numeric_version(loss).convolved(omega, mu)
    assert not isinstance(closed, losses.NumericMargin | losses.NumericResidual)
    y, t = target(loss), GRID
    size = 1.0 + np.abs(t) + mu
    slope = closed.slope(t, y)
    room = 4e-14 * size * np.abs(slope) + 1e-26 * size**2
    assert_near(numeric.value(t, y), closed.value(t, y), room)
    clear = away_from_kinks(closed, t, y)
    assert_near(numeric.slope(t, y)[clear], slope[clear], 4e-14 * (closed.curvature(t, y) * size))
    assert_near(numeric.curvature(t, y)[clear], closed.curvature(t, y)[clear], 1e-12)
    low, high = closed.dual_interval(y)
    u = np.linspace(max(float(low), -9.0), min(float(high), 9.0), 999)[1:-1]
    room = 1e-13 * np.abs(u) * (1.0 + mu + np.abs(u))
    assert_near(numeric.conjugate(u, y), closed.conjugate(u, y), room)
    if flat(closed, y) is None:
        assert numeric.phi.flat[0] == numeric.phi.flat[1] or numeric.flat is None
    else:
        assert_near(np.array(numeric.phi.flat), np.array(flat(closed, y)), 1e-13 * (1 + mu))


def assert_near(computed, expected, room):
    both = (computed == expected) | np.isnan(expected)
    with np.errstate(invalid="ignore"):
        near = (
            np.abs(computed - expected)
            <= 1e-10 * np.abs(expected)
            + np.broadcast_to(
                room, np.shape(expected)[:1] if np.ndim(room) == 0 else np.shape(room)
            )[: len(expected)]
        )
    assert (both | near).all(), np.max(np.abs(computed - expected)[~(both | near)])


def away_from_kinks(loss, t, y):
    ends = [e for piece in loss.pieces(np.full(1, y)) for e in (*piece.lower, *piece.upper)]
    finite = np.array([end for end in ends if math.isfinite(end)])
    return (np.abs(t[:, None] - finite) > 1e-9 * (1 + np.abs(t[:, None]))).all(axis=1)


def flat(loss, y):
    """The flat interval, if there is one."""
    for piece in loss.pieces(np.full(1, y)):
        if piece.is_flat:
            low, high = float(piece.lower[0]), float(piece.upper[0])
            return (low, high) if low < high else None
    return None


def test_closed_forms_cover_every_omega():
    assert {type(omega) for _, omega in CLOSED_FORMS} == set(OMEGAS.values())


# --- against mpmath -------------------------------------------------------------------------------


def exact_convolution(slope, value, omega_slope, omega_value, t):
    """z, value and slope of f_μ at t, to 40 digits: z + Ω'(f'(z)) = t."""
    with mpmath.workdps(40):
        z = mpmath.findroot(
            lambda z: z + omega_slope(slope(z)) - t, (mpmath.mpf(0), mpmath.mpf(t)),
            solver="anderson", tol=1e-60, verify=False, maxsteps=500,
        )  # fmt: skip
        y = slope(z)
        return value(z) + y * omega_slope(y) - omega_value(y), y


@pytest.mark.parametrize("given_derivative", [True, False])
@pytest.mark.parametrize("t", [0.5001, 0.7, 1.3, 3.0, 11.0])
def test_log_cosh_with_a_curved_omega(t, given_derivative):
    """mu·(|u| + u²), which has no closed form with log cosh."""
    mu = 0.5
    omega = CustomOmega(lambda u: np.abs(u) + u**2)
    derivative = np.tanh if given_derivative else None
    base = losses.from_function(safe_losses.log_cosh, derivative, task="regression")
    loss = ss.make_safe(base, omega=omega, mu=mu)
    value, slope = exact_convolution(
        mpmath.tanh, lambda z: mpmath.log(mpmath.cosh(z)),
        lambda u: mu * (1 + 2 * u), lambda u: mu * (u + u**2), mpmath.mpf(t),
    )  # fmt: skip
    for sign in (-1.0, 1.0):
        assert float(loss.value(sign * t, 0.0)) == pytest.approx(float(value), rel=1e-10)
        assert float(loss.slope(sign * t, 0.0)) == pytest.approx(sign * float(slope), rel=1e-10)


@pytest.mark.parametrize("given_derivative", [True, False])
@pytest.mark.parametrize("r", [0.01, 0.3, 2.0, 40.0])
def test_pseudo_huber_made_safe(r, given_derivative):
    derivative = safe_losses.pseudo_huber_slope if given_derivative else None
    base = losses.from_function(safe_losses.pseudo_huber, derivative, task="regression")
    loss = ss.make_safe(base, omega="l1", mu=0.25)
    with mpmath.workdps(40):
        z = mpmath.mpf(r)
        root = mpmath.sqrt(1 + z**2)
        value, slope, curvature = root - 1, z / root, 1 / root**3
    t = 0.25 + r
    assert float(loss.value(t, 0.0)) == pytest.approx(float(value), rel=1e-10)
    assert float(loss.slope(t, 0.0)) == pytest.approx(float(slope), rel=1e-10)
    assert float(loss.curvature(t, 0.0)) == pytest.approx(float(curvature), rel=1e-9, abs=1e-10)
    u = float(slope)
    conjugate = 1 - mpmath.sqrt(1 - mpmath.mpf(u) ** 2) + mpmath.mpf(0.25) * u
    assert float(loss.conjugate(u, 0.0)) == pytest.approx(float(conjugate), rel=1e-10, abs=1e-13)


# --- laws of a loss -------------------------------------------------------------------------------


@every_loss
@examples(0.3)
@given(seed=seeds, pred=st.lists(st.one_of(numbers, extremes), min_size=1, max_size=8))
def test_nothing_is_nan_or_negative(name, seed, pred):
    loss, y = draw(name, seed)
    pred = np.array(pred)
    results = (loss.value, loss.slope, loss.curvature, loss.conjugate, loss.value_size)
    for result in (method(pred, y) for method in results):
        assert not np.isnan(result).any()
    assert (loss.value(pred, y) >= 0).all()
    assert (loss.curvature(pred, y) >= 0).all()


@every_loss
@examples(0.5)
@given(seed=seeds, t=numbers, other=numbers)
def test_slope_is_a_subgradient(name, seed, t, other):
    loss, y = draw(name, seed)
    value, slope = loss.value([t, other], y), loss.slope([t], y)[0]
    size = 1.0 + abs(t) + abs(other)
    room = (1e-14 + 8 * loss.precision) * (1 + abs(slope)) * size**2
    assert value[1] >= value[0] + slope * (other - t) - room


@every_loss
@examples(0.5)
@given(seed=seeds, t=numbers)
def test_slope_and_curvature_are_derivatives(name, seed, t):
    loss, y = draw(name, seed)
    places = away_from_edges(loss, y, t)
    if not places:
        return
    step = 1e-5
    difference = np.diff(loss.value([t - step, t + step], y))[0] / (2 * step)
    assert abs(difference - loss.slope([t], y)[0]) <= 1e-8 * (1 + abs(t)) ** 2
    difference = np.diff(loss.slope([t - step, t + step], y))[0] / (2 * step)
    assert abs(difference - loss.curvature([t], y)[0]) <= 2e-6 * (1 + abs(t))


def away_from_edges(loss, y, t):
    """Whether t is not next to a point where curvature may jump."""
    ends = [e for piece in loss.pieces(np.full(1, y)) for e in (*piece.lower, *piece.upper)]
    if hasattr(loss, "phi"):
        ends += [e for branch in loss.phi._branches for e in branch.t[:-1][branch.vertical]]
        ends += [e for branch in loss.phi._branches for e in branch.t[1:][branch.vertical]]
        ends += [*loss.phi.flat]
    return all(abs(t - end) > 1e-4 for end in ends)


@every_loss
@examples(0.5)
@given(seed=seeds, t=numbers, share=st.floats(0, 1))
def test_fenchel_young(name, seed, t, share):
    """f(t) + f*(u) ≥ tu up to the precision the loss claims, with equality at the slope."""
    loss, y = draw(name, seed)
    low, high = (float(end) for end in loss.dual_interval(y))
    slope = float(loss.slope([t], y)[0])
    assert low <= slope <= high
    u = max(low, -20.0) + share * (min(high, 20.0) - max(low, -20.0))
    for nu, tight in ((u, False), (slope, True)):
        rest = loss.value([t], y)[0] + loss.conjugate([nu], y)[0] - t * nu
        claimed = loss.precision + 32 * np.finfo(float).eps
        room = claimed * (
            loss.conjugate_size([nu], y)[0] + loss.value_size([t], y)[0] + (1 + abs(t)) * abs(nu)
        )
        assert rest >= -room
        if tight:
            assert rest <= 8 * room


@every_loss
@examples(0.3)
@given(seed=seeds)
def test_conjugate_of_zero_is_zero_and_infinite_outside(name, seed):
    loss, y = draw(name, seed)
    assert loss.conjugate([0.0, -0.0], y).tolist() == [0.0, 0.0]
    for end, outwards in zip(loss.dual_interval(y), (-1.0, 1.0), strict=True):
        if math.isfinite(end):
            assert np.isfinite(loss.conjugate([float(end)], y)).all()
            assert np.isposinf(loss.conjugate([float(end) + outwards * 1e-9], y)).all()


@every_loss
@examples(0.5)
@given(seed=seeds, t=numbers)
def test_pieces_are_the_loss(name, seed, t):
    loss, y = draw(name, seed)
    for piece in loss.pieces(np.full(1, y)):
        if not piece.lower[0] < t < piece.upper[0]:
            continue
        value = 0.5 * piece.quadratic[0] * t**2 + piece.linear[0] * t + piece.constant[0]
        assert value == pytest.approx(float(loss.value([t], y)[0]), rel=1e-12, abs=1e-12)
        if piece.is_flat:
            assert loss.value([t], y)[0] == 0 and loss.slope([t], y)[0] == 0


@every_numeric_loss
@examples(0.3)
@given(seed=seeds)
def test_flat_piece_is_shrunk_by_the_precision(name, seed):
    """A decision must not hang on digits that are not there."""
    loss, y = draw(name, seed)
    if loss.flat is None:
        assert loss.pieces(np.full(1, y)) == []
        return
    (piece,) = loss.pieces(np.full(1, y))
    assert piece.lower[0] > loss.flat[0] + 0.5 * loss.precision
    assert math.isinf(loss.flat[1]) or piece.upper[0] < loss.flat[1] - 0.5 * loss.precision


@every_loss
@examples(0.5)
@given(seed=seeds, t=numbers, other=numbers)
def test_smoothness_and_lipschitz_hold(name, seed, t, other):
    loss, y = draw(name, seed)
    slopes = loss.slope([t, other], y)
    assert (np.abs(slopes) <= loss.lipschitz).all()
    room = (1e-13 + 4 * loss.precision) * (1 + np.abs(slopes).max()) * (1 + abs(t) + abs(other))
    smooth = loss if math.isfinite(loss.smoothness) else loss.smoothed(0.1)
    assert math.isfinite(smooth.smoothness)
    slopes = smooth.slope([t, other], y)
    assert abs(slopes[1] - slopes[0]) <= smooth.smoothness * (abs(other - t) + room)


@every_loss
@examples(0.5)
@given(seed=seeds, t=numbers, width=st.floats(0, 5))
def test_curvature_floor_holds(name, seed, t, width):
    loss, y = draw(name, seed)
    floor = loss.curvature_floor([t], [t + width], y)[0]
    assert floor >= 0
    growth = np.diff(loss.slope([t, t + width], y))[0]
    room = (1e-13 + 4 * loss.precision) * (1 + abs(t) + width)
    assert growth >= floor * width - room
    for piece in loss.pieces(np.full(1, y)):
        for end in (piece.lower[0], piece.upper[0]):
            if t < end < t + width and piece.is_flat:
                assert floor == 0


def test_curvature_floor_is_useful():
    """Outside the flat region the floor of the function comes through."""
    loss = numeric_version(losses.Squared()).convolved(L1(), 0.5)
    assert loss.curvature_floor([1.0, 0.2], [2.0, 2.0], 0.0).tolist() == [1.0, 0.0]
    loss = numeric_version(losses.Squared()).convolved(Quadratic(), 0.5)
    assert loss.curvature_floor([1.0], [2.0], 0.0)[0] == pytest.approx(1 / 1.5, rel=1e-12)


@every_loss
def test_scalars_lists_integers_and_selections(name):
    loss, y = draw(name, 0)
    expected = loss.value(np.array([0.0, 1.0, 3.0]), y)
    for given_pred in ([0, 1, 3], np.array([0, 1, 3], dtype=np.int8)):
        np.testing.assert_array_equal(loss.value(given_pred, y), expected)
    assert float(loss.value(3, y)) == expected[-1]
    assert loss.n_parameters is None and repr(loss.take(slice(0, 1))) == repr(loss)


def test_scaled_loss_of_a_selection():
    loss = losses.Scaled(losses.EpsilonInsensitive(np.array([0.1, 0.5])), 2.0)
    assert loss.take(np.array([1])).value([1.0], 0.0).tolist() == [1.0]


# --- what it does to a loss -----------------------------------------------------------------------


@examples(2)
@given(mu=st.floats(0.01, 3), t=numbers, name=st.sampled_from(["squared", "huber", "hinge"]))
def test_pointwise_bound_holds_and_closes(mu, t, name):
    loss = losses.LOSSES[name]()
    y = target(loss)
    for share in (1.0, 1e-3, 1e-6):
        lower, upper = ss.pointwise_bound(name, [t], y, "l1", share * mu)
        value = ss.infimum_convolution(name, "l1", share * mu).value([t], y)
        room = 1e-14 * (1 + t * t)
        assert (lower - room <= value).all() and (value <= upper + room).all()
        assert (upper - lower <= share * mu * (1 + abs(t)) + room).all()


@examples(0.5)
@given(mu=st.floats(0.05, 3), t=numbers, other=numbers)
def test_strongly_convex_omega_makes_smooth(mu, t, other):
    """The paper's lemma, with the constant: f* + μΩ σ-strongly convex makes f_μ 1/σ-smooth."""
    for base in (losses.Hinge(), losses.EpsilonInsensitive(0.1), losses.AbsoluteMargin()):
        loss = numeric_version(base).convolved(Quadratic(), mu)
        assert loss.smoothness <= (1 + 1e-14) / mu
        slopes = loss.slope([t, other], target(base))
        assert abs(slopes[1] - slopes[0]) <= abs(t - other) / mu * (1 + 1e-9) + 1e-12
