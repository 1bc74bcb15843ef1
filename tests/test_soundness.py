"""Corners in which a bound was once too tight: each stays closed."""

import math
from fractions import Fraction

import numpy as np
import pytest

import safesift as ss
from safesift.arithmetic.numerics import total
from safesift.losses import EpsilonInsensitive
from safesift.penalties import L1Ball, L2Ball
from safesift.problem.inputs import make_problems
from safesift.regions import AlphaBall, Auto, Curvature, Edit, EditBall, HalfSpaceCut, NormBall
from tests.laws.reference import optimum


def test_dual_of_a_linearly_folded_problem_with_intercept_stays_below_the_optimum():
    """Slopes that cannot be balanced by shrinking must not count as feasible."""
    offset = -1000.0
    X = np.array([[0.1], [-0.1]] * 5)
    y = offset + np.array([-9, -9.5, -8, -8.5, 0, 0.1, 0.2, 0.3, 0.4, 0.5])
    result = ss.screen(X, y, loss=EpsilonInsensitive(0.01), alpha=1.0, fit_intercept=True)
    reduced = result.problem.reduce(result.decisions.without(np.arange(10) >= 4))
    best = optimum(result.problem).value
    for shift in np.linspace(-0.5, 1.0, 31):
        at = reduced.evaluate(np.array([0.0, offset + shift]))
        assert reduced.certify(at).dual.value <= best + 1e-9


@pytest.mark.parametrize("n", [1000, 10**6])
def test_sums_over_samples_have_the_promised_error(n):
    rng = np.random.default_rng(0)
    shares, values = np.full(n, 1.0 / n), rng.uniform(1, 2, n)
    exact = math.fsum((shares * values).tolist())
    assert abs(total(shares, values) - exact) <= (32 + math.log2(n)) * 2.3e-16 * exact


@pytest.mark.parametrize("region", ["auto", "ellipsoid", HalfSpaceCut(ss.regions.GradientBall())])
def test_rows_whose_squares_underflow_are_not_decided(region):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    y = X @ [1.0, -1.0, 0.5] + 0.1 * rng.normal(size=20)
    X[0], y[0] = (1e-170, 0.0, 0.0), 1e-170
    loss = EpsilonInsensitive(np.where(np.arange(20) == 0, 0.0, 0.05))
    result = ss.screen(X, y, loss=loss, alpha=0.01, screening=region, fit_intercept=False)
    assert result.undecided[0]
    assert result.lower[0] < 0 < result.upper[0]


@pytest.mark.parametrize("region", [HalfSpaceCut(NormBall()), Auto()], ids=repr)
@pytest.mark.parametrize("beyond", [0.0, 9e-13, 1e-3])
def test_centres_on_the_boundary_of_a_constraint(region, beyond):
    """x* = (1, 0) exactly, and row 2 exactly on its kink."""
    X, y = np.array([[1.0, 0], [0, 0.5], [0.2, -0.4]]), np.array([1.5, 1.0, 0.2])
    loss = EpsilonInsensitive(np.array([0.25, 0.25, 0.0]))
    result = ss.screen(
        X, y, loss=loss, penalty=L1Ball(1.0), sample_weight=[1, 1, 1e-3], coef=[1 + beyond, 0.0],
        screening=region, fold="always", fit_intercept=False,
    )  # fmt: skip
    assert result.lower[2] <= 0.2 <= result.upper[2] and result.undecided[2]


@pytest.mark.parametrize("penalty", [L1Ball(1.0), L2Ball(1.0)], ids=repr)
def test_constraints_far_smaller_than_the_coefficients(penalty):
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
    assert np.isfinite(ss.screen(X, y, penalty=penalty, coef=[1e20, 0, 0], fit_intercept=False).gap)
    ss.screen(X * 1e-20, y, penalty=penalty, fit_intercept=False)


def test_alpha_ball_measures_float32_coefficients_in_float64():
    problem = make_problems(
        np.eye(50),
        np.arange(50) % 2,
        loss="squared_hinge",
        penalty="l2",
        alpha=1.0,
        fit_intercept=False,
    ).problem
    at = problem.evaluate(np.zeros(50))
    coef = np.random.default_rng(0).normal(size=50).astype(np.float32)
    single = AlphaBall(coef, 0.0, 2.0).ball(problem.certify(at))
    double = AlphaBall(coef.astype(np.float64), 0.0, 2.0).ball(problem.certify(at))
    assert single.radius == double.radius


def test_edit_ball_accounts_for_the_rounding_of_residuals():
    """ε = 2²⁰ swallows the digits of the prediction: the exact optimum must stay inside."""
    tiny, epsilon = 2.0**-17, 2.0**20
    old = np.array([tiny])
    loss = ss.losses.SquaredEpsilonInsensitive(epsilon)
    region = EditBall(
        old, 1e-20,
        removed=Edit(np.array([[1.0]]), np.array([2 * tiny + epsilon])),
        added=Edit(np.array([[tiny]]), np.array([epsilon + 0.5])),
    )  # fmt: skip
    problem = make_problems(
        [[tiny]], [epsilon + 0.5], loss=loss, penalty="l2", alpha=1.0, fit_intercept=False
    ).problem
    ball = region.ball(problem.certify(problem.evaluate(old)))
    exact = 0.5 * tiny / (1.0 + tiny**2)
    assert abs(exact - ball.center[0]) <= ball.radius


def test_edits_must_fit_the_problem():
    problem = make_problems(
        np.eye(3),
        [0, 1, 1],
        loss="squared_hinge",
        penalty="l2",
        alpha=1.0,
        fit_intercept=False,
    ).problem
    for edit, message in (
        (Edit(np.eye(3), np.array([0, 1, 1])), "must hold -1 and 1"),
        (Edit(np.eye(4), np.ones(4)), "4 features"),
        (Edit(np.eye(3), np.ones(2)), "3 entries"),
    ):
        with pytest.raises(ValueError, match=message):
            EditBall(np.zeros(3), 0.0, added=edit).validate(problem)


def test_weights_that_overflow_are_refused():
    with pytest.raises(ValueError, match="sample_weight is too large"):
        ss.screen(np.eye(4), [0, 1, 0, 1], sample_weight=np.full(4, 1e308), fit_intercept=False)


def test_gradient_ball_with_an_enormous_alpha():
    X, y = np.array([[1.0], [0.5]]), np.array([1.0, 1.0])
    result = ss.screen(
        X,
        y,
        loss="squared",
        alpha=1e170,
        coef=[0.0],
        screening="gradient_ball",
        fit_intercept=False,
    )
    assert (result.lower <= [7.5e-171, 3.75e-171]).all()
    assert (result.upper >= [7.5e-171, 3.75e-171]).all()


def test_a_guess_stays_a_guess_after_reduction():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    result = ss.screen(
        X, X[:, 0] > 0, loss="hinge", screening=ss.regions.GuessedBall(0.1), fit_intercept=False
    )
    reduced = result.reduced
    test_set = Auto().build(reduced.certify(reduced.evaluate(result.coef)))
    assert not result.certified and not reduced.certified and not test_set.certified


def test_the_result_does_not_alias_the_given_coef():
    coef = np.zeros(3)
    result = ss.screen(np.eye(3), [0, 1, 1], coef=coef, fit_intercept=False)
    coef[:] = 99.0
    assert (result.coef == 0).all()


def test_cut_of_a_ball_with_intercept():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) + 2.0
    region = HalfSpaceCut(ss.regions.GapBall())
    result = ss.screen(X, X[:, 0] > 2, alpha=0.1, fit_intercept=True, screening=region)
    best = optimum(result.problem)
    pred = X @ best.point[:-1] + best.point[-1]
    assert result.certified
    assert ((result.lower <= pred) & (pred <= result.upper)).all()


@pytest.mark.parametrize("region", ["auto", Auto(), 3])
def test_what_cannot_be_cut_is_refused_at_once(region):
    with pytest.raises(ValueError, match="needs a ball or an ellipsoid to cut"):
        ss.screen(np.eye(3), [0, 1, 1], screening=HalfSpaceCut(region), fit_intercept=False)


# --- curvature regions --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "y", "low", "high", "x"),
    [
        (1.015270079653625, 1.3332875585984139, 7.720202335483737e-08, 0.7720202335483737,
         0.7508607694778863),
        (1.0011724865456115, -1.3343632636621376, 7.079480330966599e-17, 0.7079480330966599,
         -0.7811098517158047),
    ],
)  # fmt: skip
def test_gradients_at_the_ends_of_a_wide_range_are_exact(a, y, low, high, x):
    """The pull of the penalty grows with alpha, and so would its rounding error."""
    found = ss.screen_range(
        [[a]], [y], loss="squared", alpha_range=(low, high), coef=[x], fit_intercept=False
    )
    exact = Fraction(a) ** 2 * Fraction(y) / (Fraction(a) ** 2 + Fraction(high))
    assert Fraction(float(found.lower[0])) <= exact <= Fraction(float(found.upper[0]))


@pytest.mark.parametrize(
    ("X", "y", "arguments"),
    [
        # every sample saturated: curvatures of e^-700
        ([[100.0, 50.0], [120.0, -30.0], [-90.0, 20.0], [80.0, 10.0]], [-1, -1, 1, -1],
         {"loss": "logistic", "penalty": "l1", "alpha": 0.1, "coef": [8.75, 0.0]}),
        # a bound on the norm whose square overflows
        ([[1.0, 0.5], [-1.0, 0.3], [0.2, -1.0]], [1, -1, 1],
         {"penalty": "l1", "alpha": 1e-155, "coef": [0.1, 0.2]}),
        ([[1e-150, 0.0], [0.0, 1e-170]], [1.0, 2.0],
         {"loss": "squared", "alpha": 1e16, "coef": [0.0, 0.0], "screening": Curvature(rank=1)}),
        ([[1.0, 2.0], [3.0, -1.0]], [1e160, -1e160],
         {"loss": "squared", "penalty": "l1", "alpha": 1.0, "coef": [0.0, 0.0]}),
        # all rows that carry curvature are zero
        ([[0.0, 0.0], [0.0, 0.0]], [1.0, 2.0],
         {"loss": "squared", "alpha": 1.0, "coef": [1.0, 0.0], "screening": Curvature(rank=1)}),
    ],
)  # fmt: skip
def test_overflow_ends_in_wide_bounds(X, y, arguments):
    result = ss.screen(X, y, **arguments)
    assert result.certified
    assert (result.lower <= result.upper).all()


def test_tiny_rows_keep_their_width():
    """Squares of a row of norm 1e-165 underflow before they are scaled."""
    result = ss.screen(
        [[1.0, 0.0], [0.0, 1e-165]], [1.0, 0.0], loss="squared", alpha=1.0, coef=[0.1, -1e10],
        screening=Curvature(rank=1), fit_intercept=False,
    )  # fmt: skip
    assert result.lower[1] <= 0.0 <= result.upper[1]


@pytest.mark.parametrize("region", [Curvature(), Auto()], ids=repr)
def test_nothing_left_to_screen(region):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    reduced = ss.screen(X, y, loss="squared", alpha=0.1, fold="always", fit_intercept=False).reduced
    assert reduced.design.n_samples == 0
    bounds = region.build(reduced.certify(reduced.evaluate(np.zeros(3)))).own_bounds(reduced)
    assert len(bounds.lower) == 0
