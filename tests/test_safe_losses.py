"""Making losses safe: what is refused and why, the paper's lemmas, bounds, the choice of μ."""

import math

import numpy as np
import pytest

import safesift as ss
from safesift import losses
from safesift.losses.numeric import numeric_version
from safesift.losses.omegas import CustomOmega, Entropy
from safesift.losses.safe import flat_interval
from safesift.problem.inputs import make_problems
from safesift.problem.problem import Problem
from tests.laws import safe_losses
from tests.laws.reference import optimum
from tests.laws.safe_losses import LOG_COSH, PSEUDO_HUBER

RNG = np.random.default_rng(7)
X = RNG.normal(size=(40, 4))
TRUTH = np.array([1.0, -2.0, 0.0, 0.5])
Y = X @ TRUTH + 0.3 * RNG.normal(size=40)
LABELS = np.where(Y > 0, 1.0, -1.0)


def problem(loss, y=Y, penalty="l2", alpha=0.05, **more) -> Problem:
    usual = {"fit_intercept": False}
    return make_problems(X, y, loss=loss, penalty=penalty, alpha=alpha, **usual | more).problem


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [-0.1, math.nan, math.inf, "much", None])
@pytest.mark.parametrize("make", [ss.make_safe, ss.infimum_convolution])
def test_bad_mu(make, mu):
    with pytest.raises((ValueError, TypeError), match="mu"):
        make("squared", "l1", mu)


def test_mu_zero_is_the_loss_itself():
    loss = losses.Hinge(0.3)
    assert ss.infimum_convolution(loss, "l1", 0.0) is loss
    assert ss.make_safe(loss, "l1", 0) is loss
    with pytest.raises(ValueError, match="positive mu"):
        ss.make_safe("squared", "l1", 0.0)


LOGISTIC = losses.from_function(lambda m: np.logaddexp(0.0, -m), task="classification")


# its derivative is lost in rounding for margins beyond 37, which is no minimum
ROUGH_LOGISTIC = losses.from_function(
    lambda m: np.log(1 + np.exp(-m)), lambda m: 1 / (1 + np.exp(-m)) - 1, task="classification"
)


@pytest.mark.parametrize(
    "loss", ["logistic", LOGISTIC, ROUGH_LOGISTIC], ids=["closed", "numeric", "rough"]
)
@pytest.mark.parametrize("mu", [0.5, 36.0, 1e3, 1e12])
def test_logistic_with_l1_is_refused_with_the_reason(loss, mu):
    with pytest.raises(ValueError, match="gradient of its conjugate is unbounded"):
        ss.make_safe(loss, "l1", mu)


def test_logistic_with_entropy_is_safe_without_a_name_too():
    assert ss.make_safe("logistic", "entropy", 0.5) == losses.SafeLogistic(0.5)
    assert ss.make_safe("logistic", "entropy", 0.0) == losses.SafeLogistic(0.0)
    assert ss.make_safe(LOGISTIC, "entropy", 0.5).flat == pytest.approx((0.5, math.inf))


def test_no_kink_no_flat_region():
    with pytest.raises(ValueError, match="no kink at 0"):
        ss.make_safe("squared", "quadratic", 0.5)


@pytest.mark.parametrize(
    ("loss", "omega"),
    [
        ("squared", "entropy"),
        ("squared_hinge", "entropy"),
        ("squared", lambda u: np.abs(u) - u**2),
        ("hinge", lambda u: np.abs(u) - 0.5 * u**2),
    ],
)
def test_sum_that_is_not_convex(loss, omega):
    with pytest.raises(ValueError, match="not convex"):
        ss.infimum_convolution(loss, omega, 0.9)


def test_concave_omega_is_fine_where_the_sum_is_convex():
    """½u² + |u| − ¼u² is convex: the squared loss gets twice as steep beyond its flat region."""
    safe = ss.make_safe("squared", lambda u: np.abs(u) - 0.25 * u**2, 1.0)
    np.testing.assert_allclose(safe.value([0.5, -0.9, 2.0], 0.0), [0.0, 0.0, 1.0], rtol=1e-10)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (np.abs, "derivative="),
        (lambda z: -(z**2), "must be convex"),
        (lambda z: z**3, "must be convex"),
        (lambda z: 2.0 * z, "not bounded below"),
        (lambda z: 1.0 / z**2, "finite|convex|derivative="),
    ],
)
def test_functions_that_are_no_losses(function, message):
    with pytest.raises(ValueError, match=message):
        losses.from_function(function, task="regression")


def test_derivatives_of_another_function():
    with pytest.raises(ValueError, match="do not belong together"):
        losses.from_function(np.square, lambda r: r, task="regression")
    with pytest.raises(ValueError, match="do not belong together"):
        losses.from_function(np.abs, lambda r: np.sign(r - 0.1), task="regression")
    with pytest.raises(ValueError, match="derivative of function"):
        CustomOmega(np.abs, lambda u: 2 * np.sign(u))


def test_arguments_of_from_function():
    with pytest.raises(TypeError, match="function must be callable"):
        losses.from_function("square", task="regression")
    with pytest.raises(TypeError, match="vectorise"):
        losses.from_function(lambda z: 0.0, task="regression")
    with pytest.raises(TypeError, match="vectorise"):
        losses.from_function(lambda z: math.exp(z), task="regression")
    with pytest.raises(ValueError, match="task"):
        losses.from_function(np.square, task="ranking")
    with pytest.raises(TypeError, match="from_function"):
        ss.make_safe(np.square, "l1", 0.5)


def test_a_given_smoothness_is_one():
    for wrong, error in (("1", TypeError), (0.0, ValueError), (math.inf, ValueError)):
        with pytest.raises(error, match="smoothness must be"):
            losses.from_function(np.square, task="regression", smoothness=wrong)
    with pytest.raises(ValueError, match=r"smoothness=1\.9 is too small: .* at the rate 2"):
        losses.from_function(np.square, task="regression", smoothness=1.9)
    with pytest.raises(ValueError, match="jumps at z=0: leave smoothness out"):
        losses.from_function(np.abs, np.sign, task="regression", smoothness=1e6)


def test_what_is_proved_of_the_smoothness():
    derivatives = {"derivative": lambda r: 2 * r, "task": "regression"}
    measured = losses.from_function(np.square, **derivatives)
    given = losses.from_function(np.square, **derivatives, smoothness=3.0)
    assert (
        measured.smoothness == pytest.approx(2.0, rel=1e-5)
        and measured.proved_smoothness == math.inf
    )
    assert given.smoothness == pytest.approx(
        2.0, rel=1e-5
    ) and given.proved_smoothness == pytest.approx(3.0)
    for loss, l1, quadratic in ((measured, math.inf, 4.0), (given, 3.0, 12 / 7)):
        assert ss.make_safe(loss, "l1", 0.25).proved_smoothness == pytest.approx(l1)
        convolved = ss.infimum_convolution(loss, "quadratic", 0.25)
        assert convolved.proved_smoothness == pytest.approx(quadratic)
        half = losses.Scaled(convolved, 0.5)
        assert half.proved_smoothness == pytest.approx(0.5 * quadratic)
    # what the library knows of its own losses is proved, a concave omega proves nothing
    custom = ss.make_safe("huber", lambda u: np.abs(u) + u**2, 0.25)
    assert custom.proved_smoothness == pytest.approx(losses.Huber().smoothness)
    for omega in (Entropy(), CustomOmega(lambda u: np.abs(u) - 0.1 * np.log1p(u**2))):
        loss = numeric_version(losses.Squared() if omega.domain[0] < -1 else losses.Logistic())
        loss = loss.convolved(omega, 0.5)
        assert loss.proved_smoothness == math.inf > loss.smoothness


def test_features_need_a_smoothness_that_is_proved():
    """The same problem, certified either way: what is measured proves no feature to be zero."""
    found = []
    for smoothness in (None, 1.0):
        loss = losses.from_function(
            safe_losses.pseudo_huber, safe_losses.pseudo_huber_slope, task="regression",
            smoothness=smoothness,
        )  # fmt: skip
        arguments = {"penalty": "l1", "alpha": 0.5, "fit_intercept": False}
        found.append(ss.screen(X, Y, loss=ss.make_safe(loss, "l1", 0.1), **arguments))
    assert found[0].certified and not found[0].zero_coef.any()
    assert found[1].certified and found[1].zero_coef.any()


def test_arguments_of_omega():
    with pytest.raises(ValueError, match="omega='l3' is not known"):
        ss.make_safe("squared", "l3", 0.5)
    with pytest.raises(ValueError, match="omega must be convex"):
        CustomOmega(lambda u: -np.abs(u))
    with pytest.raises(TypeError, match="callable"):
        CustomOmega("l1")
    with pytest.raises(ValueError, match="smooth away from 0"):
        ss.make_safe("squared", lambda u: np.abs(u) + np.abs(u - 1), 0.5).value(3.0, 0.0)


def test_a_second_convolution_of_a_numeric_loss_is_refused():
    with pytest.raises(ValueError, match="already"):
        ss.make_safe(ss.make_safe(LOG_COSH, "l1", 0.5), "l1", 0.5)


def test_one_epsilon_per_sample():
    loss = losses.EpsilonInsensitive(np.array([0.1, 0.2]))
    safe = ss.make_safe(loss, "l1", 0.5)
    np.testing.assert_allclose(safe.epsilon, [0.6, 0.7])
    with pytest.raises(ValueError, match="one epsilon per sample"):
        ss.infimum_convolution(loss, lambda u: np.abs(u) + u**2, 0.5)


# --- numeric losses -------------------------------------------------------------------------------


def test_infimum_is_subtracted():
    loss = losses.from_function(np.cosh, np.sinh, task="regression")
    assert loss.value(0.0, 0.0) == 0
    assert float(loss.value(1.0, 0.0)) == pytest.approx(math.cosh(1) - 1, rel=1e-14)


def test_flat_functions_keep_their_flat_region():
    def dead_zone(r):
        return 0.5 * np.maximum(np.abs(r - 3) - 0.25, 0) ** 2

    def derivative(r):
        return np.sign(r - 3) * np.maximum(np.abs(r - 3) - 0.25, 0)

    loss = losses.from_function(dead_zone, derivative, task="regression")
    assert loss.flat == pytest.approx((2.75, 3.25), abs=1e-14)
    assert ss.make_safe(loss, "l1", 0.5).flat == pytest.approx((2.25, 3.75), abs=1e-14)


def test_flat_minimum_without_derivative_is_not_trusted():
    """r⁴ is so flat at 0 that interpolated slopes do not show where its minimum is."""
    bare = ss.make_safe(losses.from_function(lambda r: r**4, task="regression"), "l1", 0.5)
    (piece,) = bare.pieces(np.zeros(1))
    assert 0.49 < piece.upper[0] < 0.5 - 1e-5
    assert -0.5 + 1e-5 < piece.lower[0] < -0.49
    given = losses.from_function(lambda r: r**4, lambda r: 4 * r**3, task="regression")
    (piece,) = ss.make_safe(given, "l1", 0.5).pieces(np.zeros(1))
    assert piece.upper[0] == pytest.approx(0.5, abs=1e-12)


def test_per_sample_parameters_inside_a_scaled_loss_are_counted():
    loss = losses.Scaled(losses.EpsilonInsensitive(np.full(3, 0.1)), 2.0)
    with pytest.raises(ValueError, match="epsilon has 3 entries"):
        ss.screen(X, Y, loss=loss, fit_intercept=False)


def test_corners_of_the_derivative():
    """A squared hinge, with its derivative but without the second one, which jumps."""
    loss = losses.from_function(
        lambda m: 0.5 * np.maximum(1 - m, 0) ** 2, lambda m: -np.maximum(1 - m, 0),
        task="classification",
    )  # fmt: skip
    t = np.linspace(-3, 3, 60)
    for method in ("value", "slope", "curvature", "conjugate"):
        expected = getattr(losses.SquaredHinge(), method)(t, 1.0)
        np.testing.assert_allclose(getattr(loss, method)(t, 1.0), expected, rtol=1e-8, atol=1e-14)
    assert 1 <= loss.smoothness < 1.01
    numeric = ss.screen(X, LABELS, loss=loss, alpha=0.05, fit_intercept=False)
    closed = ss.screen(X, LABELS, loss="squared_hinge", alpha=0.05, fit_intercept=False)
    np.testing.assert_array_equal(numeric.kept, closed.kept)


def test_smoothness_between_the_nodes_and_without_bound():
    def steep(z):
        return z + np.tanh(1e4 * (z - 5.0003))

    def function(z):
        return 0.5 * z**2 + safe_losses.log_cosh(1e4 * (z - 5.0003)) / 1e4

    assert losses.from_function(function, steep, task="regression").smoothness > 5e3
    for power in (1.5, 4.0):
        bend = losses.from_function(
            lambda r, k=power: np.abs(r) ** k,
            lambda r, k=power: k * np.sign(r) * np.abs(r) ** (k - 1),
            task="regression",
        )
        assert bend.smoothness == math.inf
        assert math.isfinite(bend.smoothed(0.1).smoothness)
        assert ss.screen(
            X, Y, loss=ss.make_safe(bend, "l1", 0.5), alpha=0.05, fit_intercept=False
        ).certified
    assert losses.from_function(np.cosh, np.sinh, task="regression").smoothness == math.inf


def test_several_kinks():
    def function(z):
        return np.maximum.reduce([-2 * z - 3, -z, 0.25 * z])

    def derivative(z):
        return np.select([z < -3, z < 0], [-2.0, -1.0], 0.25)

    loss = losses.from_function(function, derivative, task="regression")
    safe = ss.infimum_convolution(loss, "quadratic", 0.5)
    t = np.linspace(-6, 3, 91)
    z = np.append(np.linspace(-8, 5, 130_001), [-3.0, 0.0])
    brute = [np.min(function(z) + (s - z) ** 2) for s in t]
    np.testing.assert_allclose(safe.value(t, 0.0), brute, atol=1e-8)


def test_repr_names_the_function():
    safe = ss.make_safe(PSEUDO_HUBER, "l1", 0.25)
    assert repr(safe) == "NumericResidual(pseudo_huber, omega=L1, mu=0.25)"


@pytest.mark.parametrize("region", sorted(ss.regions.REGIONS))
@pytest.mark.parametrize("base", [LOG_COSH, PSEUDO_HUBER], ids=repr)
def test_every_region_takes_a_numeric_loss(base, region):
    loss = ss.make_safe(base, omega="l1", mu=0.5)
    result = ss.screen(X, Y, loss=loss, alpha=0.05, screening=region, fit_intercept=False)
    best = optimum(result.problem)
    pred = X @ best.point
    assert result.certified
    assert (result.lower <= pred + 1e-12).all() and (pred - 1e-12 <= result.upper).all()
    if region in ("auto", "gap_ball", "gradient_ball"):
        assert 0 < result.kept.sum() < len(Y)
    kept = optimum(result.problem.restrict(result.kept))
    np.testing.assert_allclose(kept.point, best.point, atol=1e-9)


# --- the paper's lemmas ---------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.0, 0.4])
@pytest.mark.parametrize("name", ["squared", "huber", "epsilon_insensitive"])
def test_regularised_dual_for_regression(name, mu):
    """−⟨b, ν⟩ − f*(ν) − λR*(−Aᵀν/λ) − μΩ(ν) with f the mean of φ, written out."""
    loss, n, alpha = losses.LOSSES[name](), len(Y), 0.05
    nu = RNG.uniform(-0.1, 0.1, n) / n
    conjugate = np.mean(loss.conjugate(n * nu, np.zeros(n)))
    support = np.sum((X.T @ nu / alpha) ** 2) / 2
    literal = -Y @ nu - conjugate - alpha * support - mu * np.abs(nu).sum()
    safe = problem(ss.infimum_convolution(loss, "l1", mu), alpha=alpha)
    assert safe.dual(n * nu) == pytest.approx(literal, rel=1e-12)


@pytest.mark.parametrize("mu", [0.0, 0.4])
@pytest.mark.parametrize("name", ["hinge", "squared_hinge", "safe_logistic"])
@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_regularised_dual_for_classification(name, mu, penalty):
    """−f*(−ν) − λR*(Aᵀdiag(b)ν/λ) − μΩ(−ν), written out."""
    loss, n, alpha = losses.LOSSES[name](), len(Y), 0.5
    nu = RNG.uniform(0, 0.1, n) / n
    conjugate = np.mean(loss.conjugate(-n * nu, np.ones(n)))
    v = X.T @ (LABELS * nu) / alpha
    assert np.abs(v).max() < 1  # else R* of the l1 norm is infinite
    support = np.sum(v**2) / 2 if penalty == "l2" else 0.0
    literal = -conjugate - alpha * support - mu * np.abs(nu).sum()
    safe = ss.infimum_convolution(loss, "l1", mu)
    found = problem(safe, LABELS, penalty, alpha).dual(-n * LABELS * nu)
    assert found == pytest.approx(literal, rel=1e-12)


def test_regularised_dual_with_mu_inside_omega():
    """The safe logistic: −f*(−ν) − λR* − Ω_μ(−ν), Ω_μ(u) = u·log(−u) + μ|u|."""
    n, alpha, mu = len(Y), 0.5, 0.4
    u = -RNG.uniform(0.01, 0.9, n)
    conjugate = np.mean(losses.Logistic().conjugate(u, np.ones(n)))
    omega = np.mean(u * np.log(-u) + mu * np.abs(u))
    support = np.sum((X.T @ (LABELS * u) / (n * alpha)) ** 2) / 2
    safe = problem(ss.make_safe("logistic", "entropy", mu), LABELS, alpha=alpha)
    assert safe.dual(LABELS * u) == pytest.approx(-conjugate - omega - alpha * support, rel=1e-12)


# --- bounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("omega", ["quadratic", "nonpositive_l1", "entropy", lambda u: u**2])
def test_bounds_refuse_what_is_not_a_norm(omega):
    with pytest.raises(ValueError, match="not a norm"):
        ss.pointwise_bound("squared", [1.0], [0.0], omega, 0.5)
    with pytest.raises(ValueError, match="not a norm"):
        ss.objective_bounds(X, Y, loss="squared", omega=omega, mu=0.5, fit_intercept=False)


def test_multiples_of_the_absolute_value_are_norms():
    lower, upper = ss.pointwise_bound("squared", [1.0], [0.0], lambda u: 3 * np.abs(u), 0.1)
    assert lower == pytest.approx(0.2) and upper == 0.5
    assert not CustomOmega(lambda u: np.maximum(u, 0.5 * -u)).is_norm


@pytest.mark.parametrize(
    ("loss", "y"),
    [("squared", Y), ("huber", Y), ("squared_hinge", LABELS), (PSEUDO_HUBER, Y), ("hinge", LABELS)],
)
@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize("weighted", [False, True])
def test_objective_bounds_hold_and_close(loss, y, penalty, weighted):
    weight = np.linspace(0, 3, len(y)) if weighted else None
    if penalty == "l1" and loss is PSEUDO_HUBER:
        pytest.skip("not written for the reference solver")
    arguments = {
        "penalty": penalty, "alpha": 0.05, "sample_weight": weight, "fit_intercept": False,
    }  # fmt: skip
    original = optimum(make_problems(X, y, loss=loss, **arguments).problem).value
    deltas = []
    for mu in (0.5, 1e-2, 1e-4):
        bounds = ss.objective_bounds(X, y, loss=loss, mu=mu, **arguments)
        room = 1e-8
        assert bounds.original[0] - room <= original <= bounds.original[1] + room
        low, high = bounds.regularised
        assert low <= high
        assert original - bounds.delta <= high + room
        assert low <= original + room
        deltas.append(bounds.delta)
    assert deltas[0] > deltas[1] > deltas[2]
    if math.isfinite(make_problems(X, y, loss=loss, **arguments).problem.loss.smoothness):
        assert deltas[2] < 1e-3


def test_objective_bounds_at_a_given_point_include_its_gap():
    good = ss.objective_bounds(X, Y, loss="squared", mu=0.1, alpha=0.05, fit_intercept=False)
    poor = ss.objective_bounds(
        X, Y, loss="squared", mu=0.1, alpha=0.05, coef=np.zeros(4), fit_intercept=False
    )
    assert poor.delta > good.delta + 0.1
    assert poor.original[1] > good.original[1]


# --- the choice of μ ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "y", "expected"),
    [
        ("squared", Y, np.abs(Y).max()),
        ("huber", Y, np.abs(Y).max()),
        (losses.EpsilonInsensitive(0.25), Y, np.abs(Y).max() - 0.25),
        (PSEUDO_HUBER, Y, np.abs(Y).max()),
        ("hinge", LABELS, 1.0),
        (losses.SquaredHinge(0.25), LABELS, 0.75),
    ],
    ids=repr,
)
def test_mu_max_without_intercept(loss, y, expected):
    mu = ss.mu_max(X, y, loss=loss, fit_intercept=False)
    assert mu == pytest.approx(expected, rel=1e-10)
    above = ss.screen(
        X, y, loss=ss.make_safe(loss, "l1", 1.001 * mu), alpha=0.05, fit_intercept=False
    )
    assert not above.kept.any()
    below = ss.screen(
        X, y, loss=ss.make_safe(loss, "l1", 0.99 * mu), alpha=0.05, fit_intercept=False
    )
    assert below.kept.any()


def test_mu_max_with_intercept_and_weights():
    weight = np.where(np.abs(Y) > 2, 0.0, 1.0)
    counted = Y[weight > 0]
    assert ss.mu_max(X, Y, loss="squared", fit_intercept=True) == pytest.approx(np.ptp(Y) / 2)
    assert ss.mu_max(
        X, Y, loss="squared", sample_weight=weight, fit_intercept=False
    ) == pytest.approx(abs(counted).max())
    mu = ss.mu_max(X, Y, loss="squared", fit_intercept=True, sample_weight=weight)
    assert mu == pytest.approx(np.ptp(counted) / 2)
    for factor, vanishes in ((1.001, True), (0.99, False)):
        safe = problem(
            ss.make_safe("squared", "l1", factor * mu), fit_intercept=True, sample_weight=weight
        )
        # ν = 0 is optimal exactly if the optimal value is that of the dual point 0, which is 0
        assert (optimum(safe).value <= 1e-12) == vanishes


def test_mu_max_inside_omega_and_where_there_is_none():
    assert ss.mu_max(
        X, LABELS, loss="logistic", omega="entropy", fit_intercept=False
    ) == pytest.approx(1.0)
    assert ss.mu_max(X, LABELS, loss=losses.Hinge(1.5), fit_intercept=False) == 0.0
    with pytest.raises(ValueError, match="mu_max does not exist"):
        ss.mu_max(X, LABELS, loss="logistic", fit_intercept=False)


@pytest.mark.parametrize(("loss", "y"), [("squared", Y), ("hinge", LABELS), (LOG_COSH, Y)])
def test_mu_for_fraction(loss, y):
    choice = ss.mu_for_fraction(
        X, y, loss=loss, alpha=0.05, fraction=0.6, fraction_tol=0.03, fit_intercept=False
    )
    assert abs(choice.fraction - 0.6) <= 0.03
    assert choice.certified <= choice.fraction
    result = ss.screen(X, y, loss=choice.loss, alpha=0.05, fit_intercept=False)
    assert (~result.kept).mean() == pytest.approx(choice.certified, abs=0.03)
    assert choice.objective.delta > 0
    assert choice.score <= 1 and choice.original_score <= 1
    mus = [trial.mu for trial in choice.trials]
    assert mus == sorted(mus) and choice.mu in mus
    assert choice.trials[-1].fraction == 1.0


def test_the_share_of_the_squared_hinge_does_not_depend_on_mu():
    """With l2 the solution is (1 − μ) times that of μ = 0, and so are the margins' distances."""
    choice = ss.mu_for_fraction(
        X, LABELS, loss="squared_hinge", alpha=0.05, fraction=0.9, fit_intercept=False
    )
    assert len({trial.fraction for trial in choice.trials if trial.mu < 1}) == 1


def test_mu_for_fraction_where_omega_is_not_a_norm():
    choice = ss.mu_for_fraction(
        X, LABELS, loss="logistic", alpha=0.05, fraction=0.5, omega="entropy", fit_intercept=False
    )
    assert choice.objective is None
    assert abs(choice.fraction - 0.5) < 0.1


def test_mu_for_fraction_with_intercept():
    choice = ss.mu_for_fraction(X, Y, loss="squared", alpha=0.05, fraction=0.5, fit_intercept=True)
    assert abs(choice.fraction - 0.5) < 0.05


@pytest.mark.parametrize("fraction", [-0.1, 1.5, "half", math.nan])
def test_bad_fraction(fraction):
    with pytest.raises(ValueError, match="fraction"):
        ss.mu_for_fraction(X, Y, loss="squared", fraction=fraction, fit_intercept=False)


# --- the distance to a set ------------------------------------------------------------------------


def ball(t):
    return t / np.maximum(np.linalg.norm(t, axis=-1, keepdims=True), 1.0)


BALL = ss.SetDistance(ball, lambda u: np.linalg.norm(u, axis=-1), mu=0.5)


def test_set_distance_is_the_envelope_of_the_indicator():
    points = RNG.normal(size=(50, 3)) * 2
    inside = ball(RNG.normal(size=(4000, 3)) * 2)
    brute = ((points[:, None] - inside) ** 2).sum(axis=-1).min(axis=1) / (2 * 0.5)
    assert (BALL.value(points) <= brute + 1e-12).all()
    np.testing.assert_allclose(BALL.value(points), BALL.distance(points) ** 2, rtol=1e-12)
    step = 1e-6
    for axis in np.eye(3):
        difference = (BALL.value(points + step * axis) - BALL.value(points - step * axis)) / (
            2 * step
        )
        np.testing.assert_allclose(BALL.gradient(points) @ axis, difference, atol=1e-6)


def test_set_distance_and_its_conjugate():
    points, duals = RNG.normal(size=(200, 3)) * 2, RNG.normal(size=(200, 3))
    inner = (points * duals).sum(axis=1)
    assert (BALL.value(points) + BALL.conjugate(duals) >= inner - 1e-12).all()
    slopes = BALL.gradient(points)
    tight = BALL.value(points) + BALL.conjugate(slopes) - (points * slopes).sum(axis=1)
    np.testing.assert_allclose(tight, 0.0, atol=1e-12)
    assert BALL.smoothness == 2.0
    with pytest.raises(ValueError, match="support"):
        ss.SetDistance(ball).conjugate([1.0, 0.0])


def test_set_distance_of_an_interval_is_the_squared_insensitive_loss():
    interval = ss.SetDistance(lambda t: np.clip(t, -0.3, 0.3))
    t = np.linspace(-2, 2, 41)
    expected = losses.SquaredEpsilonInsensitive(0.3).value(t, 0.0)
    np.testing.assert_allclose(interval.value(t[:, None]), expected, atol=1e-15)


# --- pictures -------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _agg(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")


def test_plot_losses():
    from matplotlib import pyplot

    safe = ss.make_safe("squared", "l1", 0.5)
    axes = ss.plot_losses([losses.Squared(), safe])
    curves = [line for line in axes.lines if not line.get_label().startswith("_")]
    assert [line.get_label() for line in curves] == [repr(losses.Squared()), repr(safe)]
    t, values = curves[1].get_data()
    np.testing.assert_allclose(values, safe.value(t, 0.0))
    assert axes.get_xlabel().startswith("residual")
    assert ss.plot_losses({"a": losses.Hinge()}, axes) is axes
    with pytest.raises(ValueError, match="all for classification or all for regression"):
        ss.plot_losses([losses.Squared(), losses.Hinge()])
    with pytest.raises(ValueError, match="at least one loss"):
        ss.plot_losses([])
    pyplot.close("all")


def test_plot_of_a_choice():
    from matplotlib import pyplot

    choice = ss.mu_for_fraction(
        X, Y, loss="squared", alpha=0.05, fraction=0.5, fraction_tol=0.1, fit_intercept=False
    )
    assert "droppable" in choice.plot().get_title(loc="left")
    pyplot.close("all")


def test_flat_interval():
    assert flat_interval(losses.Hinge(0.25)) == (0.75, math.inf)
    assert flat_interval(losses.Squared()) is None
    assert flat_interval(losses.EpsilonInsensitive(np.array([0.5, 1.0]))) == (-0.5, 0.5)


def test_numeric_error_widens_what_is_claimed():
    """The same problem with a less precise loss: a larger gap, a larger rounding error."""
    exact, numeric = losses.SquaredEpsilonInsensitive(0.5), ss.make_safe(LOG_COSH, "l1", 0.5)
    plain = problem(numeric)
    at = plain.evaluate(np.zeros(4))
    rounding = plain.rounding(at)
    other = plain.with_loss(exact)
    assert rounding.value > 100 * other.rounding(other.evaluate(np.zeros(4))).value
    assert rounding.gradient > 100 * other.rounding(other.evaluate(np.zeros(4))).gradient


# --- intervals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["squared_interval", "absolute_interval", "smoothed_interval"])
def test_interval_losses_are_smoothed_in_closed_form(name):
    """Against the infimum itself, on a fine grid of z."""
    loss, mu = ss.losses.LOSSES[name](), 0.4
    safe = ss.make_safe(loss, "quadratic", mu)
    y = np.array([-0.5, 1.0])
    z = np.linspace(-6, 6, 240_001)
    values = loss.value(z, np.broadcast_to(y, (len(z), 2)))
    for t in (-3.0, -0.7, 0.2, 1.05, 2.5):
        infimum = np.min(values + (t - z) ** 2 / (2 * mu))
        np.testing.assert_allclose(safe.value([t], y[None])[0], infimum, atol=1e-8)


def test_interval_losses_refuse_what_they_cannot_be():
    with pytest.raises(ValueError, match="widen the intervals by mu"):
        ss.make_safe("squared_interval", "l1", 0.1)


def test_scaled_interval_losses_screen():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    Y = (X @ [1.0, 0.0, -1.0])[:, None] + rng.normal(size=(60, 1)) + [-0.5, 0.5]
    safe = ss.make_safe("squared_interval", "quadratic", 0.3)
    result = ss.screen(X, Y, loss=safe, alpha=0.1, fit_intercept=True)
    assert result.certified
    assert (~result.kept).mean() > 0.1
