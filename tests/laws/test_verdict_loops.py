"""Compiled verdicts are those of NumPy's formulas, bit by bit, infinities and NaN among them."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import safesift as ss
from safesift.arithmetic.compiled import verdicts
from safesift.arithmetic.numerics import EPS
from safesift.losses import (
    AbsoluteMargin,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Piece,
    SafeLogistic,
    Scaled,
    SmoothedEpsilonInsensitive,
    SmoothedHinge,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from safesift.problem.decisions import Bounds, decide
from safesift.problem.inputs import make_problems
from safesift.problem.pieces import SamplePieces, TablePieces
from safesift.regions.base import clean
from tests.laws.plain_python import interpreted

NUMBERS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324]),
    st.floats(-3.0, 3.0),
)
SIZES = st.one_of(st.sampled_from([0.0, 1.0, 1e300, np.inf]), st.floats(0.0, 3.0))


def columns(data, numbers, *, n, k):
    return data.draw(hnp.arrays(np.float64, (k, n), elements=numbers))


@given(data=st.data(), n=st.integers(0, 9))
def test_enclosures_are_those_of_the_formula(data, n):
    pred, norms = columns(data, NUMBERS, n=n, k=1)[0], columns(data, SIZES, n=n, k=1)[0]
    radius, relative, absolute = (data.draw(SIZES) for _ in range(3))
    found = Bounds(np.empty(n), np.empty(n))
    verdicts.enclose(pred, norms, radius, relative, absolute, *found)
    with np.errstate(all="ignore"):
        widths = radius * norms
        error = relative * norms + 4 * EPS * (np.abs(pred) + widths) + absolute
        reach = widths + error
        expected = clean(Bounds(pred - reach, pred + reach))
    np.testing.assert_array_equal(found.lower, expected.lower)
    np.testing.assert_array_equal(found.upper, expected.upper)


@given(data=st.data(), n=st.integers(0, 9))
def test_pieces_are_those_of_the_formula(data, n):
    """Strictly inside, of the first of them; and what is known already stays."""
    lower, upper, least, most = columns(data, NUMBERS, n=n, k=4)
    quadratic, linear = columns(data, st.sampled_from([0.0, 1.0, -1.0]), n=n, k=2)
    which = data.draw(hnp.arrays(np.int8, n, elements=st.integers(-1, 1)))
    flat = which == 0
    inside = (lower > least) & (upper < most) & (which < 0)
    expected = np.where(inside, np.int8(2), which)
    level = np.where(inside, (quadratic == 0) & (linear == 0), flat)
    verdicts.mark(lower, upper, least, most, quadratic, linear, 2, which, flat)
    np.testing.assert_array_equal(which, expected)
    np.testing.assert_array_equal(flat, level)


OF_MARGINS = [
    Hinge(), SquaredHinge(), AbsoluteMargin(), SafeLogistic(0.5), Logistic(), SmoothedHinge(),
    Scaled(SquaredHinge(), 3.0),
]  # fmt: skip
OF_RESIDUALS = [
    Squared(), Huber(0.5), EpsilonInsensitive(0.1), SquaredEpsilonInsensitive(0.3),
    SmoothedEpsilonInsensitive(0.2, 0.5),
]  # fmt: skip


def law_of_tables(loss, y, lower, upper, pred, given):
    """Numbers, flatness, room, distances and fields, with numbers there already."""
    tabled, plain = SamplePieces.made(loss, y), SamplePieces(loss, y)
    assert type(tabled) is TablePieces
    assert len(tabled) == len(plain)
    found, rows = [], slice(0, len(y))
    for pieces in (tabled, plain):
        which, flat = given.copy(), given == 0
        pieces.mark(lower, upper, rows, which, flat)
        some = np.minimum(which, np.int8(len(plain)))
        with np.errstate(all="ignore"):
            numbers = [pieces.room(pred, rows), pieces.distance(pred, rows)]
        fields = [pieces.field(field, some, 7.0) for field in Piece.__dataclass_fields__]
        found.append([which, flat, *numbers, *fields])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("loss", [*OF_MARGINS, *OF_RESIDUALS], ids=repr)
@given(data=st.data(), n=st.integers(1, 40))
def test_pieces_of_a_table_are_those_of_every_sample(loss, data, n):
    labels = loss.task == "classification"
    targets = st.sampled_from([-1.0, 1.0]) if labels else st.floats(-1e3, 1e3)
    y = data.draw(hnp.arrays(np.float64, n, elements=targets))
    lower, upper = columns(data, NUMBERS, n=n, k=2)
    near = data.draw(hnp.arrays(np.bool_, n))
    lower[near], upper[near] = (y + lower)[near], (y + upper)[near]
    pred = y + columns(data, st.floats(-3.0, 3.0), n=n, k=1)[0]
    given = data.draw(hnp.arrays(np.int8, n, elements=st.integers(-1, 3)))
    law_of_tables(loss, y, lower, upper, pred, given)


def drawn(loss, seed):
    """Ends of intervals among the kinks, as the law wants them, without looking for them."""
    rng, n = np.random.default_rng(seed), 200
    y = rng.choice([-1.0, 1.0], n) if loss.task == "classification" else rng.normal(size=n)
    kinks = rng.choice([-1.0, -0.5, 0.0, 0.1, 0.5, 1.0], (3, n))
    if loss.task == "classification":
        lower, upper, pred = y * kinks
    else:
        lower, upper, pred = y + kinks
    return y, np.minimum(lower, upper), np.maximum(lower, upper), pred, rng.integers(-1, 2, n)


NONE = ("def _end", "def _end")


@contextmanager
def written(old, new):
    """The loops over tables as plain Python, with a mistake."""
    source = Path(verdicts.__file__).read_text()
    assert old in source, old
    names = interpreted(source.replace(old, new), {"EPS": EPS})
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        for name in ("mark_by_table", "room_by_table", "distance_by_table"):
            patch.setattr(verdicts, name, names[name])
        yield


@pytest.mark.parametrize(
    ("old", "new"),
    [
        NONE,
        ("lower[i] > _end", "lower[i] >= _end"),
        ("(upper[i] < _end", "(upper[i] <= _end"),
        ("(up if y > 0.0 else down) if labels", "up if labels"),
        ("else y + up", "else up"),
        ("inside[i] &= which[i] < 0", "pass"),
        ("flat[i] = flat_up if y[i] > 0.0 else flat_down", "flat[i] = True"),
        ("np.int8(piece + 1) if", "np.int8(piece) if"),
        ("ends = below if below < above else above", "ends = above"),
        ("room[i] = room[i] if ends <= room[i] else ends", "room[i] = ends"),
        ("away = abs(pred[i] -", "away = (pred[i] -"),
    ],
)
def test_mistakes_in_loops_over_tables(old, new):
    broken = 0
    with written(old, new):
        for seed, loss in enumerate([*OF_MARGINS, *OF_RESIDUALS]):
            *numbers, given = drawn(loss, seed)
            try:
                law_of_tables(loss, *numbers, given.astype(np.int8))
            except AssertionError:
                broken += 1
    assert bool(broken) == ((old, new) != NONE)


def test_samples_with_their_own_parameters_have_their_own_pieces():
    y, loss = np.array([0.5, -2.0]), EpsilonInsensitive(np.array([0.1, 0.2]))
    pieces = SamplePieces.made(loss, y)
    assert type(pieces) is SamplePieces
    first, second = (next(iter(pieces.take(rows))) for rows in (slice(0, 1), slice(1, 2)))
    assert (first.upper - first.lower, second.upper - second.lower) == pytest.approx((0.2, 0.4))


@dataclass(frozen=True, eq=False)
class WideAfar(EpsilonInsensitive):
    """A tube that is wider where targets are large: of the residual, and not by it alone."""

    def _width(self, y):
        return self.epsilon * (1.0 + np.abs(y))

    def value(self, pred, y):
        return np.maximum(np.abs(np.subtract(pred, y)) - self._width(y), 0.0)

    def slope(self, pred, y):
        residual = np.subtract(pred, y)
        return np.where(np.abs(residual) > self._width(y), np.sign(residual), 0.0)

    def conjugate(self, nu, y):
        return np.where(np.abs(nu) <= 1, nu * y + np.abs(nu) * self._width(y), np.inf)

    def _dual_kink(self, y):
        return y - self._width(y), y + self._width(y)

    def pieces(self, y):
        width = self._width(y)
        return [
            Piece(y - width, y + width),
            Piece(y + width, np.inf, linear=1.0, constant=-y - width),
            Piece(-np.inf, y - width, linear=-1.0, constant=y - width),
        ]


def test_pieces_that_targets_do_not_shift_are_read_as_they_are():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    y, loss = X @ [3.0, 2.0, 1.0] + rng.normal(size=60), WideAfar(0.3)
    assert type(SamplePieces.made(loss, y)) is SamplePieces
    found = ss.screen(X, y, loss=loss, alpha=1e-2, fold="always", tol=1e-10)
    inside = np.abs(X @ found.coef + found.intercept - y) < loss._width(y) - 1e-9
    assert found.decisions.folded.any() and not (found.decisions.folded & inside).any()


class DearPositives(SquaredHinge):
    """Five times as large for positive labels, and its conjugate with it."""

    smoothness = 5.0

    def _times(self, y):
        return np.where(np.greater(y, 0), 5.0, 1.0)

    def value(self, pred, y):
        return self._times(y) * super().value(pred, y)

    def slope(self, pred, y):
        return self._times(y) * super().slope(pred, y)

    def curvature(self, pred, y):
        return self._times(y) * super().curvature(pred, y)

    def curvature_floor(self, lower, upper, y):
        return self._times(y) * super().curvature_floor(lower, upper, y)

    def conjugate(self, nu, y):
        return self._times(y) * super().conjugate(nu / self._times(y), y)

    def dual_form(self, y):
        return None

    def pieces(self, y):
        times = self._times(y)
        return [
            Piece(one.lower, one.upper, times * one.quadratic, times * one.linear, times)
            for one in super().pieces(y)
        ]


def test_labels_that_count_by_more_than_the_margin_are_heard():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=80) > 0, 1.0, -1.0)
    loss, weights = DearPositives(), np.where(y > 0, 5.0, 1.0)
    assert loss.loops(y) is None and type(SamplePieces.made(loss, y)) is TablePieces
    model = {"fit_intercept": False, "tol": 1e-10, "fold": "always"}
    dear = ss.screen(X, y, loss=loss, alpha=0.1, **model)
    plain = ss.screen(X, y, alpha=0.1 / weights.mean(), sample_weight=weights, **model)
    np.testing.assert_allclose(dear.coef, plain.coef, rtol=1e-4)
    assert (y * (X @ dear.coef))[dear.decisions.dropped].min() > 1.0


@dataclass(frozen=True, eq=False)
class Forgetful(EpsilonInsensitive):
    """With parameters of its samples, and no word of that."""

    n_parameters = None


@pytest.mark.parametrize("n", [2, 3])
def test_parameters_of_few_samples_are_not_those_of_all(n):
    loss = Forgetful(np.array([5.0, 0.1, 3.0])[:n])
    pieces = SamplePieces.made(loss, np.zeros(n))
    with pytest.raises(ValueError, match=r"n_parameters|broadcast"):
        pieces.mark(*np.zeros((2, n)), slice(0, n), np.full(n, -1, np.int8), np.zeros(n, bool))


@dataclass(frozen=True)
class Steps(Squared):
    """As many linear pieces as there may be numbers for, twice over."""

    def _pieces(self):
        return [Piece(float(k), k + 1.0, linear=1.0 + k) for k in range(300)]


@pytest.mark.parametrize("kind", [SamplePieces, TablePieces])
def test_pieces_beyond_the_last_number_decide_nothing(kind):
    pieces, pred = kind(Steps(), np.zeros(300)), np.arange(300) + 0.5
    which, flat = np.full(300, -1, np.int8), np.zeros(300, bool)
    pieces.mark(pred - 0.1, pred + 0.1, slice(0, 300), which, flat)
    n = len(pieces)
    assert 100 < n < 128 and not flat.any()
    np.testing.assert_array_equal(which, np.r_[1 : n + 1, np.full(300 - n, -1)])
    np.testing.assert_array_equal(pieces.field("linear", which)[:n], np.arange(n) + 1.0)


def hinges(n):
    rng = np.random.default_rng(0)
    return make_problems(
        rng.normal(size=(n, 3)), np.arange(n) % 2, loss="squared_hinge", penalty="l2", alpha=0.1,
        fit_intercept=False, sample_weight=None,
    ).problem  # fmt: skip


@pytest.mark.parametrize("n", [0, 1, 150])
def test_bounds_from_elsewhere_have_a_number_for_every_sample(n):
    """Or one for all; what else there is would be read beyond its end."""
    nothing = Bounds(np.full(n, -np.inf), np.full(n, np.inf))
    if n == 1:
        assert decide(hinges(200), nothing, "always").undecided.all()
        return
    with pytest.raises(ValueError, match="broadcast"):
        decide(hinges(200), nothing, "always")


def test_bounds_of_any_kind_of_numbers_are_compared():
    problem = hinges(9)
    far = Bounds(np.full(9, 5, dtype=np.int16), np.full(9, 6.0, dtype=np.float16))
    np.testing.assert_array_equal(decide(problem, far, "always").dropped, problem.y > 0)
