"""The ellipsoid method: its two forms, the textbook's update, and soundness over many steps."""

from dataclasses import replace
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest

import safesift as ss
from safesift.problem.inputs import make_problems
from safesift.regions import Ellipsoid, EllipsoidalSet, GuessedBall, RegionError
from safesift.regions.ellipsoid import CutMaker, ellipsoid_step
from safesift.regions.ellipsoidal import HalfSpace
from safesift.regions.shape import Shape
from tests.laws.laws import assert_contains
from tests.laws.reference import optimum


def problem_of(n, p, loss="squared_hinge", penalty="l2", alpha=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    signal = X @ rng.normal(size=p) + 0.5 * rng.normal(size=n)
    y = np.sign(signal) if ss.losses.LOSSES[loss].task == "classification" else signal
    return make_problems(X, y, loss=loss, penalty=penalty, alpha=alpha, fit_intercept=False).problem


def run(problem, n_steps, form, depth="deep", radius=None):
    """The sets after every step, from a guessed ball around 0 or from the norm ball."""
    at = problem.evaluate(np.zeros(problem.design.n_columns))
    start = GuessedBall(radius) if radius else ss.regions.NormBall()
    current = start.start(problem.certify(at), dense=form == "dense")
    cut_maker, history = CutMaker(problem.certify(at), depth), [current]
    for _ in range(n_steps):
        following = ellipsoid_step(current, cut_maker(current))
        if following is None:
            break
        current = following
        history.append(current)
    return history


@pytest.mark.parametrize("depth", ["central", "deep"])
def test_low_rank_and_dense_agree_over_200_steps(depth):
    problem = problem_of(200, 50)
    dense = run(problem, 200, "dense", depth)
    low = run(problem, 200, "low_rank", depth)
    assert len(dense) == len(low) == 201
    for a, b in zip(dense, low, strict=True):
        E, F = a.shape.matrix(), b.shape.matrix()
        assert np.linalg.norm(E - F) <= 1e-8 * np.linalg.norm(E)
        assert np.linalg.norm(a.center - b.center) <= 1e-8 * (1 + np.linalg.norm(a.center))


def test_low_rank_form_is_the_papers():
    """E = σI − L D Lᵀ with at most one column per step, far fewer than the dimension."""
    last = run(problem_of(100, 300), 12, "low_rank")[-1]
    form = last.shape.low_rank()
    p, k = form.L.shape
    assert p == 300 and 1 < k <= 12
    np.testing.assert_allclose(form.dense(), last.shape.matrix())
    np.testing.assert_allclose(form.L.T @ form.L, np.eye(k), atol=1e-12)


@pytest.mark.parametrize("form", ["dense", "low_rank"])
def test_central_step_is_algorithm_1(form):
    """x − Eg̃/(p + 1) and p²/(p² − 1)·(E − 2/(p + 1)·Eg̃g̃ᵀE), g̃ = g/√(gᵀEg)."""
    p = 6
    history = run(problem_of(40, p), 8, form, depth="central", radius=5.0)
    problem = problem_of(40, p)
    for before, after in pairwise(history):
        E, x = before.shape.matrix(), before.center
        g = problem.evaluate(x).subgradient
        g = g / np.sqrt(g @ E @ g)
        np.testing.assert_allclose(after.center, x - E @ g / (p + 1), rtol=1e-9, atol=1e-9)
        expected = p**2 / (p**2 - 1) * (E - 2 / (p + 1) * np.outer(E @ g, E @ g))
        np.testing.assert_allclose(after.shape.matrix(), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("theta", [-0.15, 0.0, 0.4, 0.95])
def test_step_encloses_what_the_cut_leaves(theta):
    rng = np.random.default_rng(1)
    d = 5
    factor = rng.normal(size=(d, d))
    current = EllipsoidalSet(rng.normal(size=d), Shape(d, 1.0, None, factor))
    normal = rng.normal(size=d)
    cut = HalfSpace(normal, theta * np.linalg.norm(factor.T @ normal))
    after = ellipsoid_step(current, cut)
    u = rng.normal(size=(20000, d))
    u /= np.maximum(np.linalg.norm(u, axis=1), 1)[:, None] / rng.random((20000, 1)) ** (1 / d)
    u /= np.maximum(np.linalg.norm(u, axis=1), 1)[:, None]
    kept = u[u @ (factor.T @ normal) <= -cut.depth]
    inside = np.linalg.solve(
        after.shape.factor, (current.center + kept @ factor.T - after.center).T
    )
    assert len(kept) and np.linalg.norm(inside, axis=0).max() <= 1 + 1e-9
    shrinks = np.linalg.slogdet(after.shape.factor)[1] < np.linalg.slogdet(factor)[1]
    assert shrinks == (theta > -1 / d)


def test_shallow_cuts_are_not_made():
    current = EllipsoidalSet(np.zeros(3), Shape.ball(3, 1.0, dense=True))
    assert ellipsoid_step(current, HalfSpace(np.array([1.0, 0, 0]), -0.34)) is None
    assert ellipsoid_step(current, HalfSpace(np.zeros(3), 0.0)) is None


@pytest.mark.parametrize("form", ["dense", "low_rank"])
def test_one_dimension_is_bisection(form):
    history = run(problem_of(30, 1), 20, form, depth="central", radius=8.0)
    widths = [float(np.sqrt(current.shape.matrix()[0, 0])) for current in history]
    np.testing.assert_allclose(widths, 8.0 / 2.0 ** np.arange(len(widths)), rtol=1e-6)


@pytest.mark.parametrize("form", ["dense", "low_rank"])
@pytest.mark.parametrize("loss, penalty", [("hinge", "l1"), ("squared_hinge", "l2"),
                                           ("squared_epsilon_insensitive", "l1_ball")])  # fmt: skip
@pytest.mark.parametrize("p", [1, 2, 5])
def test_sound_over_5000_steps(p, loss, penalty, form):
    problem = problem_of(30, p, loss, penalty)
    best = optimum(problem)
    history = run(problem, 5000, form)
    assert len(history) > 25 * p
    for current in history[:: max(1, len(history) // 50)]:
        assert np.isfinite(current.shape.matrix()).all()
        assert_contains(current, best.point, best.accuracy)


def test_sound_over_5000_steps_in_fifty_dimensions():
    """Here nothing stops the method early: 5 000 steps are made."""
    problem = problem_of(60, 50, "hinge", "l1", alpha=0.02)
    best = optimum(problem)
    history = run(problem, 5000, "low_rank")
    assert len(history) == 5001
    volumes = [np.linalg.slogdet(current.shape.matrix())[1] for current in history[::500]]
    assert (np.diff(volumes) < 0).all()
    for current in history[::500]:
        assert current.shape.basis.shape[1] <= 50
        assert_contains(current, best.point, best.accuracy)


def exactly(values):
    """Floats, digit by digit."""
    return mp.matrix(np.atleast_1d(values).astype(float).tolist())


def factor_of(shape):
    """B of a shape as it is stored."""
    if shape.is_dense:
        return exactly(shape.factor)
    V, C = exactly(shape.basis), exactly(shape.factor)
    return mp.mpf(shape.scale) * (mp.eye(shape.dimension) + V * (C - mp.eye(C.rows)) * V.T)


def unit(vector):
    return vector / mp.norm(vector)


def outermost(current, normal, row):
    """The point furthest along a row that a central cut leaves of an ellipsoid, without error.

    What the set holds for rounding is used along the cut, where it takes nothing out of reach.
    """
    B, g, a = factor_of(current.shape), exactly(normal), exactly(row)
    across, along = unit(B.T * g), B.T * a
    tilt = (across.T * along)[0]
    u = unit(along if tilt <= 0 else along - tilt * across)
    beside = a - (g.T * a)[0] / (g.T * g)[0] * g
    return exactly(current.center) + B * u + mp.mpf(current.slack) * unit(beside)


def reach(current, row):
    """How far a set goes along a row, without error."""
    a, slack = exactly(row), mp.mpf(current.slack)
    inside = mp.norm(factor_of(current.shape).T * a) + slack * mp.norm(a)
    return (a.T * exactly(current.center))[0] + inside


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("p", [2, 3])
@pytest.mark.parametrize("form", ["dense", "low_rank"])
def test_no_step_loses_what_its_cut_leaves(p, form, seed):
    """In 60-digit arithmetic, down to where the paper's form has lost six digits."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(12, p))
    current = EllipsoidalSet(np.zeros(p), Shape.ball(p, 3.0, dense=form == "dense"))
    mp.mp.dps = 60
    target = rng.normal(size=p)
    for step in range(300):
        away = current.center - target
        normal = away + 0.3 * rng.normal(size=p) * np.abs(away)
        following = ellipsoid_step(current, HalfSpace(normal, 0.0))
        if following is None:
            break
        if step % 10 == 0:
            for row in (*directions, *-directions):
                found = outermost(current, normal, row)
                assert (exactly(row).T * found)[0] <= reach(following, row)
        current = following
    assert step > 50


@pytest.mark.parametrize(
    "region", [GuessedBall(1e-3), Ellipsoid(start=GuessedBall(1e-3))], ids=repr
)
def test_radius_that_cannot_contain_the_optimum(region):
    problem = problem_of(50, 3)
    coef = optimum(problem).point + 1.0
    with pytest.raises(RegionError, match=r"radius=0.001 cannot contain .* larger radius"):
        ss.screen(
            problem.design.data,
            problem.y,
            alpha=0.1,
            coef=coef,
            screening=region,
            fit_intercept=False,
        )


def test_radius_beyond_what_the_constraint_allows():
    problem = problem_of(50, 3, penalty=ss.penalties.L1Ball(1.0))
    at = problem.evaluate(np.full(3, 9.0))
    with pytest.raises(RegionError, match="cannot contain"):
        GuessedBall(2.0).build(problem.certify(at))


def test_cut_that_misses_the_set():
    problem = problem_of(50, 3)
    better = problem.evaluate(optimum(problem).point)
    whole = ss.regions.GuessedBall(1e-6)
    far = problem.evaluate(better.point + 1.0)
    tiny = EllipsoidalSet(far.point, Shape.ball(3, whole.radius, dense=True))
    cut = CutMaker(problem.certify(better), "deep")(tiny)
    with pytest.raises(RegionError, match="does not contain the optimum"):
        replace(tiny, cut=cut).cut_depth()
    with pytest.raises(RegionError, match="does not contain the optimum"):
        ellipsoid_step(tiny, cut)
