"""Interval targets: validation, screening, and what they share with other losses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import DataConversionWarning

import safesift as ss
from safesift.losses import (
    AbsoluteInterval,
    EpsilonInsensitive,
    SmoothedEpsilonInsensitive,
    SmoothedInterval,
    SquaredEpsilonInsensitive,
    SquaredInterval,
)
from safesift.problem.inputs import as_intervals, distance, make_problems
from tests.laws.reference import optimum
from tests.laws.strategies import eighths

INF = np.inf
PAIRS = [
    (SquaredInterval(), lambda e: SquaredEpsilonInsensitive(epsilon=e)),
    (AbsoluteInterval(), lambda e: EpsilonInsensitive(epsilon=e)),
    (SmoothedInterval(width=0.25), lambda e: SmoothedEpsilonInsensitive(epsilon=e, width=0.25)),
]


# --- equal widths are ε-insensitive ---------------------------------------------------------------


@pytest.mark.parametrize(("interval", "tube"), PAIRS, ids=lambda case: type(case).__name__)
@given(
    pred=eighths, center=eighths, epsilon=st.sampled_from([0.0, 0.125, 1.0]),
    nu=st.integers(-8, 8).map(lambda k: k / 8),
)  # fmt: skip
def test_equal_widths_are_the_insensitive_loss(interval, tube, pred, center, epsilon, nu):
    """Exactly, bit by bit: eighths and their sums are floats."""
    tube = tube(epsilon)
    ends = np.array([[center - epsilon, center + epsilon]])
    pred, center, nu = np.array([pred]), np.array([center]), np.array([nu])
    assert interval.value(pred, ends) == tube.value(pred, center)
    assert interval.slope(pred, ends) == tube.slope(pred, center)
    assert interval.curvature(pred, ends) == tube.curvature(pred, center)
    floors = [
        loss.curvature_floor(pred - 0.5, pred + 0.5, y)
        for loss, y in ((interval, ends), (tube, center))
    ]
    assert floors[0] == floors[1]
    assert interval.conjugate(nu, ends) == tube.conjugate(nu, center)
    found, wanted = (
        sorted((float(p.lower[0]), float(p.upper[0])) for p in loss.pieces(y))
        for loss, y in ((interval, ends), (tube, center))
    )
    assert found == wanted


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_equal_widths_screen_as_the_insensitive_loss(penalty):
    rng = np.random.default_rng(0)
    X = np.round(8 * rng.normal(size=(60, 3))) / 8
    center = np.round(8 * (X @ [1.0, -0.5, 0.0] + 0.3 * rng.normal(size=60))) / 8
    coef = optimum(
        make_problems(
            X, center, loss=PAIRS[0][1](0.5), penalty=penalty, alpha=0.05, fit_intercept=False
        ).problem
    ).point
    arguments = {"penalty": penalty, "alpha": 0.05, "coef": coef}
    ends = np.column_stack([center - 0.5, center + 0.5])
    interval = ss.screen(X, ends, loss="squared_interval", **arguments)
    tube = ss.screen(X, center, loss=SquaredEpsilonInsensitive(epsilon=0.5), **arguments)
    np.testing.assert_array_equal(interval.kept, tube.kept)
    np.testing.assert_array_equal(interval.undecided, tube.undecided)
    assert interval.gap == pytest.approx(tube.gap, rel=1e-6, abs=1e-14)


# --- screening ------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared_interval", "absolute_interval", "smoothed_interval"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_screen_drops_intervals_and_keeps_the_optimum(loss, fit_intercept):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(80, 2))
    center = 2.0 * X[:, 0] + 0.1 * rng.normal(size=80)
    Y = np.column_stack([center - rng.uniform(0.2, 1.2, 80), center + rng.uniform(0.2, 1.2, 80)])
    Y[::4, 0] = -INF
    Y[1::4, 1] = INF
    result = ss.screen(
        X, Y, loss=loss, alpha=0.02, fit_intercept=fit_intercept,
        sample_weight=rng.choice([0.0, 1.0, 2.0], 80), fold="always",
    )  # fmt: skip
    assert result.certified
    assert not result.kept.all()
    assert not np.isnan(result.score).any()
    full, reduced = optimum(result.problem), optimum(result.reduced)
    assert reduced.value == pytest.approx(full.value, rel=1e-6)
    np.testing.assert_allclose(reduced.point, full.point, atol=1e-4)


@pytest.mark.parametrize("loss", ["squared_interval", "absolute_interval"])
@pytest.mark.parametrize("side", [0, 1])
def test_all_intervals_open_on_one_side(loss, side):
    """A large enough constant has loss 0: the intercept is not bounded, nothing is claimed."""
    X = np.arange(6.0).reshape(3, 2)
    Y = np.array([[1.0, 1.0], [3.0, 3.0], [2.0, 2.0]])
    Y[:, side] = INF if side else -INF
    result = ss.screen(X, Y, loss=loss, alpha=0.1, fit_intercept=True)
    assert result.problem.constant_value == 0
    assert result.kept.all()
    assert result.gap == pytest.approx(0, abs=1e-10)
    assert not np.isnan(result.score).any()


def test_constant_value_lies_among_the_finite_ends():
    Y = np.array([[-INF, 2.0], [5.0, INF], [3.0, 4.0]])
    problem = make_problems(
        np.ones((3, 1)), Y, loss="squared_interval", penalty="l2", alpha=1.0, fit_intercept=True
    ).problem
    # ½((c − 2)² + (5 − c)²)/3 is least at 3.5, inside the third interval
    assert problem.constant_value == pytest.approx(0.75, rel=1e-9)


def test_rounding_is_relative_to_the_larger_finite_end():
    Y = np.array([[0.0, 1e12], [-1e12, 0.0], [0.0, INF]])
    problem = make_problems(
        np.ones((3, 1)),
        Y,
        loss="squared_interval",
        penalty="l2",
        alpha=1.0,
        fit_intercept=False,
    ).problem
    error = problem.prediction_error(problem.evaluate(np.zeros(1)))
    eps = np.finfo(float).eps
    assert (error[:2] >= 1e12 * eps).all()
    assert error[2] < 1e-12


# --- validation -----------------------------------------------------------------------------------


def test_one_column_means_width_zero():
    np.testing.assert_array_equal(as_intervals([1, 2]), [[1, 1], [2, 2]])
    with pytest.warns(DataConversionWarning, match="ravel"):
        np.testing.assert_array_equal(as_intervals([[1.0], [2.0]]), [[1, 1], [2, 2]])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(frame):
    Y = frame({"low": [0.0, -INF], "high": [INF, 3.0]})
    np.testing.assert_array_equal(as_intervals(Y), [[0, INF], [-INF, 3]])
    result = ss.screen(np.eye(2), Y, loss="squared_interval", fit_intercept=False)
    assert result.kept.shape == (2,)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([[0, 1], [2, 1], [3, 1]], ["lower end exceeds", "2 rows", "(1, 2)"]),
        ([[0, 1], [-INF, INF]], ["without a finite end", "1 row ", "(1)"]),
        ([[INF, INF], [0, 1]], ["without a finite end", "(0)"]),
        ([[0, -INF], [0, 1]], ["lower end exceeds", "(0)"]),
        ([[np.nan, 1], [0, 1]], ["NaN", "(0)", "-inf"]),
        ([1.0, np.nan], ["NaN", "(1)"]),
        ([1.0, INF], ["infinity", "(1)"]),
        ([[2, 1]] * 9, ["9 rows", "(0, 1, 2, 3, 4, …)"]),
        ([[1, 2, 3], [1, 2, 3]], ["(2, 3)", "two columns"]),
        ([["a", "b"], ["c", "d"]], ["numbers"]),
        ([[1j, 2], [0, 1]], ["numbers"]),
        ([[0, 1]], ["1 entries", "2 rows"]),
    ],
    ids=str,
)
def test_bad_intervals_are_named(y, words):
    with pytest.raises(ValueError) as caught:
        ss.screen(
            np.ones((9 if len(y) == 9 else 2, 1)), y, loss="squared_interval", fit_intercept=False
        )
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert "\n" not in message and message.endswith(".")


def test_two_columns_are_refused_by_other_losses():
    with pytest.raises(ValueError, match="one entry per sample"):
        ss.screen(np.ones((2, 1)), [[0, 1], [1, 2]], loss="squared", fit_intercept=False)


def test_distance():
    Y = np.array([[0.0, 1.0], [-INF, 1.0], [2.0, INF]])
    np.testing.assert_array_equal(distance(np.array([0.5, 3.0, 0.0]), Y), [0.0, 2.0, 2.0])


def test_edits_need_intervals_too():
    region = ss.regions.EditBall(np.zeros(1), 0.1, added=ss.regions.Edit(np.ones((1, 1)), [1.0]))
    with pytest.raises(ValueError, match="Edit: y has shape"):
        ss.screen(
            np.ones((2, 1)),
            [[0, 1], [1, 2]],
            loss="squared_interval",
            screening=region,
            fit_intercept=False,
        )
