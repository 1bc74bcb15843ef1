"""Laws of the problem: duality, gaps, weights, reduction, rounding.

Inequalities that are claimed with their rounding included are checked in exact arithmetic, without
any tolerance.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from safesift.losses import LOSSES
from safesift.penalties import PENALTIES
from safesift.problem.decisions import Bounds, Decisions, decide
from safesift.problem.inputs import make_problems
from safesift.problem.problem import Problem
from tests.laws import exact
from tests.laws.dual_reference import dual_optimum
from tests.laws.reference import NotSolvedError, Program, dense_rows
from tests.laws.storages import held, storages
from tests.laws.strategies import (
    KINKED_NAMES,
    LOSS_NAMES,
    PENALTY_NAMES,
    SMOOTH_NAMES,
    TINY,
    eighths,
    entries,
    examples,
    numbers,
    points,
    problems,
)
from tests.laws.test_penalties import random_subgradient

EPS = float(np.finfo(float).eps)
# piecewise quadratic and without kinks: there the optimum can be found exactly
EXACT_NAMES = [name for name in SMOOTH_NAMES if LOSSES[name].quadratic_rays]

every_loss = pytest.mark.parametrize("loss", LOSS_NAMES)
every_penalty = pytest.mark.parametrize("penalty", PENALTY_NAMES)


def balanced(problem: Problem, nu: np.ndarray) -> np.ndarray:
    """Slopes in the domain of f*, scaled by sign so that Σ s_i ν_i = 0 if there is an intercept."""
    lower, upper = problem.loss.dual_interval(problem.y)
    nu = np.clip(nu, lower, upper)
    if not problem.fit_intercept:
        return nu
    mass = problem.weights * nu
    up, down = mass[mass > 0].sum(), -mass[mass < 0].sum()
    if up == 0 or down == 0:
        return np.zeros_like(nu)
    with np.errstate(over="ignore"):  # of next to nothing, more is wanted than there is
        return nu * np.where(nu > 0, min(down / up, 1.0), min(up / down, 1.0))


def decisions_at(problem: Problem, pred: np.ndarray, wanted: np.ndarray) -> Decisions:
    """The wanted rows that lie on a piece at these predictions, decided for that piece."""
    on_wanted = np.where(wanted, pred, np.nan)
    return decide(problem, Bounds(on_wanted, on_wanted), "always")


@st.composite
def folded_problems(draw, **arguments):
    """A problem with some rows folded away, the decisions, and the reduced problem."""
    problem = draw(problems(**arguments))
    at = problem.evaluate(draw(points(problem, eighths)))
    wanted = draw(hnp.arrays(bool, problem.design.n_samples))
    decisions = decisions_at(problem, at.pred, wanted)
    return problem, decisions, problem.reduce(decisions)


def exact_point(point: np.ndarray) -> list[Fraction]:
    return exact.fractions(point)


def bound(value: float) -> Fraction:
    """A bound, up to the smallest number; where it is infinite there is nothing to check."""
    assume(math.isfinite(value))
    return Fraction(float(value)) + Fraction(TINY)


# --- weak duality -------------------------------------------------------------------------------


@every_loss
@examples(0.4)
@given(data=st.data())
def test_weak_duality(loss, data):
    """D(ν) ≤ P(x), in exact arithmetic: the computed dual value has its rounding subtracted."""
    problem = data.draw(problems(loss))
    nu = balanced(problem, data.draw(hnp.arrays(np.float64, problem.design.n_samples,
                                                elements=numbers)))  # fmt: skip
    point = data.draw(points(problem))
    dual = problem.dual(nu)
    assert not math.isnan(dual)
    assume(math.isfinite(dual))
    assert Fraction(dual) <= exact.ExactProblem(problem).objective(exact_point(point))


@examples(3)
@given(data=st.data())
def test_weak_duality_of_reduced_problems(data):
    _, _, reduced = data.draw(folded_problems())
    at, other = (reduced.evaluate(data.draw(points(reduced))) for _ in range(2))
    value = exact.ExactProblem(reduced).objective(exact_point(other.point))
    for dual in (reduced.certify(at).dual.value, reduced.dual(at.nu, at.point)):
        assert not math.isnan(dual)
        if math.isfinite(dual):
            # Q is positive semidefinite only up to rounding
            size = np.abs(at.point).sum() + np.abs(other.point).sum()
            room = 0.0 if reduced.Q is None else 8 * EPS * np.trace(reduced.Q) * size**2
            assert Fraction(dual) <= value + Fraction(room)


@given(data=st.data())
def test_dual_points_outside_the_domain_are_refused(data):
    problem = data.draw(problems())
    _, upper = problem.loss.dual_interval(problem.y)
    assume(np.isfinite(upper[0]) and problem.weights[0] > 0)
    nu = np.zeros(problem.design.n_samples)
    nu[0] = upper[0] + 0.5
    assert problem.dual(nu) == -math.inf


def test_dual_points_that_do_not_cancel_are_worth_nothing():
    """With an intercept Σ s_i ν_i = 0 is needed, whatever the scale of the features.

    Here the optimum is 0, at x = 0 and c = 1e6; the features are orthogonal to ν.
    """
    X = np.array([[1e8], [1e8 * (1 + 1e-6)]])
    problem = make_problems(
        X, [1e6, 1e6], loss="squared", penalty="l2", alpha=1.0, fit_intercept=True
    ).problem
    nu = -0.5 * np.array([X[1, 0], -X[0, 0]]) / 1e8
    assert problem.evaluate(np.array([0.0, 1e6])).value == 0
    assert problem.dual(nu) <= 0


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
@given(data=st.data())
def test_dual_value_is_rounded_downwards(scale, data):
    """Without an intercept: computed D(ν) ≤ exact D(ν)."""
    problem = data.draw(problems(intercept=False, penalty="l2", max_samples=5))
    nu = scale * data.draw(hnp.arrays(np.float64, problem.design.n_samples, elements=numbers))
    nu = balanced(problem, nu)
    dual = problem.dual(nu)
    true = exact_dual(problem, nu)
    assert Fraction(dual) <= true + Fraction(TINY)
    size = abs(true) + Fraction(float(np.abs(nu).max() * (1 + largest_target(problem))))
    lost = 100 * Fraction(TINY)  # what may underflow
    assert Fraction(dual) >= true - Fraction(1, 10**9) * (size + size**2) - lost


def largest_target(problem):
    return np.abs(problem.loss.anchors(problem.y)).max()


def exact_dual(problem, nu):
    """D(ν) for an l2 penalty."""
    oracle = exact.ExactProblem(problem)
    load = [share * u for share, u in zip(oracle.shares, exact.fractions(nu), strict=True)]
    v = oracle.transpose(load)
    conjugates = (
        share * exact.conjugate(problem.loss, i, u, oracle.y[i])
        for i, (share, u) in enumerate(zip(oracle.shares, exact.fractions(nu), strict=True))
        if share
    )
    return -sum(conjugates, Fraction(0)) - exact.dot(v, v) / (2 * oracle.alpha)


# --- the optimum --------------------------------------------------------------------------------


def reference_optimum(problem: Problem) -> np.ndarray:
    """An optimum by the reference solver, a hair inside where the penalty is a constraint."""
    try:
        program = Program(problem)
        point = program.minimise(program.value).point
    except NotSolvedError:
        assume(False)
    if problem.penalty.is_constraint:
        point[: problem.design.n_features] *= 1 - 1e-12
    return point


def scale_of(problem: Problem) -> float:
    """The size of objective values, for tolerances."""
    zero = np.zeros(problem.design.n_columns)
    return 1.0 + problem.evaluate(zero).value + problem.constant_value


@every_penalty
@pytest.mark.parametrize("loss", SMOOTH_NAMES)
@examples(0.06)
@given(data=st.data())
def test_gap_closes_at_the_optimum(loss, penalty, data):
    problem = data.draw(problems(loss, penalty))
    at = problem.evaluate(reference_optimum(problem))
    assert problem.certify(at).gap <= 1e-4 * scale_of(problem)


@every_penalty
@every_loss
@examples(0.06)
@given(data=st.data())
def test_strong_duality_and_dual_sparsity(loss, penalty, data):
    """max D = min P, and at the two optima every ν*_i is a slope of its loss at a_iᵀx*."""
    problem = data.draw(problems(loss, penalty))
    at = problem.evaluate(reference_optimum(problem))
    try:
        best = dual_optimum(problem)
    except NotSolvedError:
        assume(False)
    scale = scale_of(problem)
    assert best.value == pytest.approx(at.value, abs=1e-6 * scale)
    # the library's dual at that point, moved a little into the domain
    nu = balanced(problem, best.nu) * (1 - 1e-7)
    assert problem.dual(nu) == pytest.approx(at.value, abs=1e-4 * scale)
    used = problem.weights > 0
    near = 1e-3 * (1 + np.abs(at.pred))
    low = problem.loss.slope(at.pred - near, problem.y) - 1e-3
    high = problem.loss.slope(at.pred + near, problem.y) + 1e-3
    assert ((low <= best.nu) & (best.nu <= high))[used].all()


@every_penalty
@every_loss
@examples(0.06)
@given(data=st.data())
def test_gap_bounds_the_distance_to_the_optimum(loss, penalty, data):
    """gap ≥ P(x) − P(u) for every u, in exact arithmetic, and so for the best u there is."""
    problem = data.draw(problems(loss, penalty))
    best = reference_optimum(problem)
    oracle = exact.ExactProblem(problem)
    least = oracle.objective(exact_point(best))
    away = data.draw(hnp.arrays(np.float64, len(best), elements=eighths))
    for size in (0.0, 1e-6, 1.0):
        at = problem.evaluate(problem.feasible(best + size * away))
        assert bound(problem.certify(at).gap) >= oracle.objective(exact_point(at.point)) - least


@pytest.mark.parametrize("loss", EXACT_NAMES)
@pytest.mark.parametrize("intercept", [False, True])
@examples(0.5)
@given(data=st.data())
def test_gap_bounds_the_distance_to_the_exact_optimum(loss, intercept, data):
    """With P* exact, next to the optimum, where the gap is nothing but rounding."""
    problem = data.draw(problems(loss, "l2", intercept=intercept, max_samples=4, max_features=2))
    shift = data.draw(st.sampled_from([0.0, 1024.0, 2.0**40]))
    if problem.loss.task != "classification" and intercept:
        problem = problem.with_targets(problem.y + shift)
    oracle = exact.ExactProblem(problem)
    best = oracle.minimiser()
    assume(best is not None)
    least = oracle.objective(best)
    at = problem.evaluate(np.array([float(coordinate) for coordinate in best]))
    assert bound(problem.certify(at).gap) >= oracle.objective(exact_point(at.point)) - least
    dual = problem.certify(at).dual.value
    assert Fraction(dual) <= least


@pytest.mark.parametrize("loss", EXACT_NAMES)
@examples(0.7)
@given(data=st.data())
def test_gap_of_reduced_problems_bounds_the_distance_to_their_optimum(loss, data):
    _, _, reduced = data.draw(
        folded_problems(loss=loss, penalty="l2", max_samples=4, max_features=2)
    )
    oracle = exact.ExactProblem(reduced)
    best = oracle.minimiser()
    assume(best is not None)
    least = oracle.objective(best)
    at = reduced.evaluate(np.array([float(coordinate) for coordinate in best]))
    assert bound(reduced.certify(at).gap) >= oracle.objective(exact_point(at.point)) - least


@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1e8, 1e100])
@pytest.mark.parametrize("loss", EXACT_NAMES)
@examples(0.15)
@given(data=st.data())
def test_gap_holds_at_every_scale_of_the_features(loss, scale, data):
    problem = data.draw(problems(loss, "l2", intercept=False, max_samples=4, max_features=2))
    X = scale * dense_rows(problem)
    problem = make_problems(
        X, problem.y, loss=problem.loss, penalty="l2", alpha=problem.alpha,
        sample_weight=problem.weights, fit_intercept=False,
    ).problem  # fmt: skip
    oracle = exact.ExactProblem(problem)
    best = oracle.minimiser()
    assume(best is not None)
    at = problem.evaluate(np.array([float(coordinate) for coordinate in best]))
    gap = problem.certify(at).gap
    assert not math.isnan(gap)
    assert bound(gap) >= oracle.objective(exact_point(at.point)) - oracle.objective(best)


# --- the best dual point ------------------------------------------------------------------------


@every_penalty
@every_loss
@examples(0.12)
@given(data=st.data())
def test_best_dual_is_feasible_and_better_than_the_slopes(loss, penalty, data):
    problem = data.draw(problems(loss, penalty))
    at = problem.evaluate(data.draw(points(problem)))
    best = problem.certify(at).dual
    room = 1e-12 * (abs(best.value) + at.value + scale_of(problem))
    assert best.value >= -room  # ν = 0 is always feasible
    assert problem.dual(best.nu) >= best.value - room
    assert best.value >= problem.dual(at.nu) - room
    assert best.value <= at.value + room
    assert problem.certify(at, known=replace(best, value=best.value + 1.0)).dual.value > best.value
    assert problem.certify(at, best).gap == problem.certify(at).gap


@pytest.mark.parametrize(
    "loss", [n for n in EXACT_NAMES if not math.isfinite(LOSSES[n]().lipschitz)]
)
@given(data=st.data())
def test_best_multiple_has_a_closed_form(loss, data):
    """For squared losses and l2, D(cν) is a parabola in c."""
    problem = data.draw(problems(loss, "l2", intercept=False))
    at = problem.evaluate(data.draw(points(problem)))
    one, half = (
        float(problem.shares @ problem.loss.conjugate(c * at.nu, problem.y)) for c in (1.0, 0.5)
    )
    quadratic = (
        2 * one - 4 * half + 0.5 * float(at.loss_gradient @ at.loss_gradient) / problem.alpha
    )
    linear = 4 * half - one
    assume(quadratic > 1e-6)
    multiple = np.clip(-linear / (2 * quadratic), 0.0, 4.0)
    expected = -multiple * (quadratic * multiple + linear)
    size = abs(one) + 4 * abs(half) + quadratic
    assert problem.certify(at).dual.value == pytest.approx(expected, abs=1e-11 * size)


# --- subgradients -------------------------------------------------------------------------------


@every_loss
@examples(0.4)
@given(data=st.data())
def test_subgradient_cuts_off_no_better_point(loss, data):
    """gᵀ(u − x) ≤ cut + slack + error·‖u − x‖ wherever P(u) ≤ P(x), in exact arithmetic."""
    problem = data.draw(problems(loss))
    at = problem.evaluate(data.draw(points(problem)))
    rounding = problem.rounding(at)
    oracle = exact.ExactProblem(problem)
    x, g = exact_point(at.point), exact_point(at.subgradient)
    here = oracle.objective(x)
    for elements in (eighths, numbers):
        u = exact_point(data.draw(points(problem, elements)))
        step = [a - b for a, b in zip(u, x, strict=True)]
        allowed = bound(rounding.cut) + Fraction(at.subgradient_slack)
        allowed += bound(rounding.gradient) * exact.norm(step)
        allowed += Fraction(1, 10**60) * here  # logarithms have 80 digits
        assert here + exact.dot(g, step) <= oracle.objective(u) + allowed


@every_penalty
@examples(0.5)
@given(data=st.data())
def test_subgradient_has_the_least_norm(penalty, data):
    folded = folded_problems(penalty=penalty).map(lambda found: found[2])
    problem = data.draw(st.one_of(problems(penalty=penalty), folded))
    at = problem.evaluate(data.draw(points(problem, eighths)))
    p = problem.design.n_features
    smooth = dense_rows(problem).T @ (problem.shares * at.nu) + problem.q
    if problem.Q is not None:
        smooth = smooth + problem.Q @ at.point
    other = smooth.copy()
    other[:p] += random_subgradient(data.draw, problem.penalty, at.point[:p], problem.alpha)
    size = np.linalg.norm(smooth) + problem.alpha * (1 + np.linalg.norm(at.point))
    assert np.linalg.norm(at.subgradient) <= np.linalg.norm(other) + 1e-11 * size
    np.testing.assert_allclose(at.subgradient[p:], smooth[p:], atol=1e-12 * (size + 1))


@pytest.mark.parametrize("loss", SMOOTH_NAMES)
@examples(0.5)
@given(data=st.data())
def test_subgradient_is_the_gradient(loss, data):
    """By central differences of the objective, for l2."""
    problem = data.draw(problems(loss, "l2"))
    point = data.draw(points(problem, eighths))
    at, step = problem.evaluate(point), 1e-5
    for j, direction in enumerate(np.eye(len(point))):
        ahead, behind = (problem.primal(point + sign * step * direction) for sign in (1, -1))
        room = 1e-3 * step * (1 + problem.design.row_norms.max()) ** 2 + 1e-9 * scale_of(problem)
        room += 1e-9 * at.value
        # a kink of the slope inside the step bends the difference by at most L·‖a‖²·step
        bend = max(problem.loss.smoothness, 1.0) * step
        room += bend * float(problem.shares @ problem.design.row_norms**2)
        assert (ahead - behind) / (2 * step) == pytest.approx(at.subgradient[j], abs=room)


# --- weights ------------------------------------------------------------------------------------


def with_rows(problem: Problem, rows: np.ndarray, weights: np.ndarray) -> Problem:
    """The problem of a selection of rows, from scratch."""
    return make_problems(
        dense_rows(problem)[rows, : problem.design.n_features], problem.y[rows],
        loss=problem.loss.take(rows), penalty=problem.penalty, alpha=problem.alpha,
        fit_intercept=problem.fit_intercept, sample_weight=weights,
    ).problem  # fmt: skip


def assert_same(problem: Problem, other: Problem, point: np.ndarray) -> None:
    """The same objective, subgradient, gap and constant model."""
    at, there = problem.evaluate(point), other.evaluate(point)
    scale = scale_of(other) + there.value
    assert at.value == pytest.approx(there.value, rel=1e-12)
    room = 1e-12 * (1 + np.abs(there.subgradient).max())
    np.testing.assert_allclose(at.subgradient, there.subgradient, atol=room)
    assert problem.certify(at).gap == pytest.approx(other.certify(there).gap, abs=1e-9 * scale)
    assert problem.constant_value == pytest.approx(other.constant_value, rel=1e-8, abs=1e-12)


@every_loss
@examples(0.4)
@given(data=st.data())
def test_weight_zero_is_removal(loss, data):
    problem = data.draw(problems(loss, weighted=True))
    used = problem.weights > 0
    removed = with_rows(problem, used, problem.weights[used])
    assert_same(problem, removed, data.draw(points(problem)))


@pytest.mark.parametrize("extreme", [1e100, 1e160, 1e300])
@every_loss
def test_weight_zero_is_removal_of_the_wildest_rows(loss, extreme):
    """However large the features and the target of a row without weight, they do not matter."""
    X = np.array([[1.0, 2.0], [-1.0, 0.5], [extreme, -extreme]])
    y = np.array([1.0, -1.0, 1.0 if LOSSES[loss].task == "classification" else extreme])
    arguments = {"loss": loss, "penalty": "l2", "alpha": 0.5, "fit_intercept": True}
    problem = make_problems(X, y, sample_weight=[1.0, 2.0, 0.0], **arguments).problem
    removed = make_problems(X[:2], y[:2], sample_weight=[1.0, 2.0], **arguments).problem
    assert_same(problem, removed, np.array([0.25, -0.5, 0.125]))


@every_loss
@examples(0.4)
@given(data=st.data())
def test_weight_two_is_repetition(loss, data):
    problem = data.draw(problems(loss, weighted=False))
    n = problem.design.n_samples
    counts = np.array(data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)))
    rows = np.repeat(np.arange(n), counts)
    weighted = with_rows(problem, np.arange(n), counts.astype(float))
    repeated = with_rows(problem, rows, np.ones(len(rows)))
    assert_same(weighted, repeated, data.draw(points(problem)))


@given(data=st.data(), factor=st.sampled_from([3.0, 1e-3, 2.0**-1000, 2.0**1000, 1e306]))
def test_only_the_proportions_of_weights_matter(data, factor):
    problem = data.draw(problems(weighted=True))
    everything = np.arange(problem.design.n_samples)
    scaled = with_rows(problem, everything, problem.weights * factor)
    assert_same(scaled, problem, data.draw(points(problem)))


@given(data=st.data())
def test_losses_are_averaged(data):
    """P = (1/W) Σ s_i f(a_iᵀx; y_i) + alpha·R(x), term by term."""
    problem = data.draw(problems())
    at = problem.evaluate(data.draw(points(problem)))
    losses = problem.loss.value(dense_rows(problem) @ at.point, problem.y)
    penalty = problem.penalty.value(problem.split(at.point)[0])
    expected = problem.weights @ losses / problem.weights.sum()
    expected += problem.alpha * penalty if penalty else 0.0
    assert at.value == pytest.approx(expected, rel=1e-10, abs=1e-12)
    assert problem.primal(at.point) == at.value


# --- restriction and reduction ------------------------------------------------------------------


@given(data=st.data())
def test_restriction_keeps_the_divisor(data):
    problem = data.draw(problems())
    rows = data.draw(hnp.arrays(bool, problem.design.n_samples))
    point = data.draw(points(problem))
    parts = [problem.restrict(chosen) for chosen in (rows, ~rows)]
    assert all(part.divisor == problem.divisor for part in parts)
    penalty = problem.penalty.value(problem.split(point)[0])
    penalty = problem.alpha * penalty if penalty else 0.0
    whole = problem.evaluate(point)
    values = [part.evaluate(point) for part in parts]
    assert sum(at.value for at in values) - penalty == pytest.approx(whole.value, rel=1e-12)
    gradient = sum(at.loss_gradient for at in values)
    room = 1e-12 * (1 + np.abs(gradient).max())
    np.testing.assert_allclose(gradient, whole.loss_gradient, atol=room)


@every_loss
@examples(0.4)
@given(data=st.data())
def test_reduction_is_exact_where_rows_are_on_their_pieces(loss, data):
    problem = data.draw(problems(loss))
    at = problem.evaluate(data.draw(points(problem, eighths)))
    wanted = data.draw(hnp.arrays(bool, problem.design.n_samples))
    decisions = decisions_at(problem, at.pred, wanted)
    reduced = problem.reduce(decisions)
    there = reduced.evaluate(at.point)
    assert reduced.divisor == problem.divisor
    assert reduced.design.n_samples == int(decisions.undecided.sum())
    room = 1e-12 * folded_size(problem, decisions, at)
    assert there.value == pytest.approx(at.value, abs=room)
    distance = np.abs(there.subgradient - at.subgradient)
    # rows next to a kink may have another slope once their prediction is rounded
    slopes = problem.loss.slope(at.pred, problem.y)
    polynomial = decisions.quadratic * at.pred + decisions.linear
    clear = np.abs(slopes - polynomial) <= 1e-9 * (1 + np.abs(slopes))
    assume((clear | decisions.undecided).all())
    assert (distance <= room * (1 + problem.design.row_norms.max())).all()


def folded_size(problem, decisions, at):
    """The size of the terms that cancel in a folded objective."""
    terms = 0.5 * np.abs(decisions.quadratic) * at.pred**2 + np.abs(decisions.linear * at.pred)
    terms += np.abs(decisions.constant)
    norms = problem.design.row_norms * (1 + np.linalg.norm(at.point))
    terms += np.abs(decisions.quadratic) * norms**2 + np.abs(decisions.linear) * norms
    return 1.0 + abs(at.value) + float(problem.shares @ terms)


@every_loss
@examples(0.4)
@given(data=st.data())
def test_reduction_changes_the_objective_by_what_the_pieces_do(loss, data):
    """Elsewhere it differs by polynomial − loss of the decided rows: below for lines."""
    problem, decisions, reduced = data.draw(folded_problems(loss=loss))
    at = problem.evaluate(data.draw(points(problem, eighths)))
    polynomial = 0.5 * decisions.quadratic * at.pred**2 + decisions.linear * at.pred
    excess = polynomial + decisions.constant - problem.loss.value(at.pred, problem.y)
    change = float(problem.shares @ np.where(decisions.undecided, 0.0, excess))
    room = 1e-12 * folded_size(problem, decisions, at)
    assert reduced.evaluate(at.point).value - at.value == pytest.approx(change, abs=room)
    if not decisions.quadratic[~decisions.undecided].any():
        assert reduced.evaluate(at.point).value <= at.value + room


@given(data=st.data())
def test_reduction_in_two_steps_is_one(data):
    problem = data.draw(problems())
    at = problem.evaluate(data.draw(points(problem, eighths)))
    n = problem.design.n_samples
    first = decisions_at(problem, at.pred, np.arange(n) % 2 == 0)
    once = problem.reduce(decisions_at(problem, at.pred, np.ones(n, dtype=bool)))
    half = problem.reduce(first)
    rest = half.evaluate(at.point)
    twice = half.reduce(decisions_at(half, rest.pred, np.ones(len(rest.pred), dtype=bool)))
    room = 1e-11 * folded_size(problem, first, at)
    assert twice.r == pytest.approx(once.r, abs=room)
    np.testing.assert_allclose(twice.q, once.q, atol=room * (1 + problem.design.row_norms.max()))
    assert (twice.Q is None) == (once.Q is None)
    if once.Q is not None:
        np.testing.assert_allclose(twice.Q, once.Q, atol=1e-12 * (1 + np.abs(once.Q).max()))


@every_loss
def test_problems_without_any_row_left(loss):
    """Everything may be decided: what is left is small and works like any other problem."""
    X = np.array([[1.0, 0.5], [-2.0, 1.0], [0.5, 3.0]])
    y = np.array([1.0, -1.0, 1.0])
    for penalty, intercept in product(PENALTY_NAMES, (False, True)):
        problem = make_problems(
            X, y, loss=loss, penalty=penalty, alpha=0.5, fit_intercept=intercept
        ).problem
        point = problem.feasible(np.array([0.25, -0.125, 0.0625])[: 2 + intercept])
        at = problem.evaluate(point)
        reduced = problem.reduce(decisions_at(problem, at.pred, np.ones(3, dtype=bool)))
        if reduced.design.n_samples:
            pytest.skip("a loss without pieces keeps its rows")
        there = reduced.evaluate(point)
        assert there.value == pytest.approx(at.value, rel=1e-12)
        assert reduced.certify(there).gap >= 0
        assert math.isfinite(reduced.constant_value)
        assert reduced.rounding(there).value < 1e-10


# --- the constant model -------------------------------------------------------------------------


@every_loss
@examples(0.25)
@given(data=st.data())
def test_constant_value_is_the_least_over_constants(loss, data):
    problem = data.draw(problems(loss))
    zero = np.zeros(problem.design.n_features)
    if not problem.fit_intercept:
        assert problem.constant_value == pytest.approx(problem.primal(zero), rel=1e-12)
        return
    least = least_constant(problem)
    room = 1e-7 * (1 + largest_target(problem))
    assert problem.constant_value == pytest.approx(least, rel=1e-7, abs=room)


def least_constant(problem):
    """Ternary search over the intercept, between all places where a slope could vanish."""
    if problem.loss.task == "classification":
        low, high = -60.0, 60.0
    else:
        used = problem.loss.anchors(problem.y)[:, problem.weights > 0]
        low, high = used.min(), used.max()
    zero = np.zeros(problem.design.n_features)
    for _ in range(120):
        left, right = (2 * low + high) / 3, (low + 2 * high) / 3
        if problem.primal(np.append(zero, left)) < problem.primal(np.append(zero, right)):
            high = right
        else:
            low = left
    return min(problem.primal(np.append(zero, c)) for c in (low, high))


NUMERIC = [name for name in LOSS_NAMES if LOSSES[name].task != "classification"]


@pytest.mark.parametrize("shift", [64.0, -(2.0**20), 2.0**40])
@pytest.mark.parametrize("loss", NUMERIC)
@examples(0.2)
@given(data=st.data())
def test_shifting_the_targets_changes_no_relative_gap(loss, shift, data):
    """With an intercept: gap / constant value stays, up to the rounding of the larger numbers."""
    problem = data.draw(problems(loss, "l2", intercept=True, weighted=False))
    eighth_targets = np.round(problem.y * 8) / 8
    problem = problem.with_targets(eighth_targets)
    assume(np.ptp(problem.loss.anchors(problem.y)) >= 1)
    # next to a large target, a prediction may be rounded onto a kink
    entries = np.abs(sparse.csr_array(problem.design.data).data)
    assume(not ((entries > 0) & (entries < 1e-6)).any())
    shifted = problem.with_targets(problem.y + shift)
    point = data.draw(points(problem, eighths))
    moved = point + np.append(np.zeros(len(point) - 1), shift)
    assert shifted.constant_value == pytest.approx(problem.constant_value, rel=1e-6, abs=1e-9)
    gap = problem.certify(problem.evaluate(point)).gap
    assume(problem.constant_value > 0.01)
    relative = gap / problem.constant_value
    shifted_gap = shifted.certify(shifted.evaluate(moved)).gap
    room = 1e4 * EPS * abs(shift) * (1 + np.abs(point).sum()) * (1 + problem.design.row_norms.max())
    assert shifted_gap / shifted.constant_value == pytest.approx(relative, rel=1e-5, abs=room)


def test_constant_value_ignores_targets_of_weight_zero():
    problem = make_problems(
        np.ones((3, 1)), [0.0, 1.0, 1e12], loss="squared", penalty="l2", alpha=1.0,
        fit_intercept=True, sample_weight=[1.0, 1.0, 0.0],
    ).problem  # fmt: skip
    assert problem.constant_value == pytest.approx(0.125, rel=1e-6)


def test_constant_value_of_very_rare_labels():
    """Log-odds beyond every fixed reach."""
    problem = make_problems(
        np.ones((2, 1)), [-1, 1], loss="logistic", penalty="l2", alpha=1.0,
        fit_intercept=True, sample_weight=[1.0, 1e-40],
    ).problem  # fmt: skip
    assert problem.constant_value == pytest.approx(1e-40 * (1 + 40 * math.log(10)), rel=1e-3)


# --- rounding -----------------------------------------------------------------------------------

rough = st.one_of(entries, st.floats(-1e6, 1e6).map(lambda v: v if abs(v) > 1e-100 else 0.0))


@every_loss
@examples(1)
@given(data=st.data())
def test_rounding_of_the_value_is_bounded(loss, data):
    """|computed P − exact P| ≤ rounding.value."""
    problem = data.draw(problems(loss, max_samples=6, max_features=3, elements=rough))
    at = problem.evaluate(data.draw(points(problem)))
    assume(math.isfinite(at.value))
    true = exact.ExactProblem(problem).objective(exact_point(at.point))
    assert abs(Fraction(at.value) - true) <= bound(problem.rounding(at).value)


@examples(3)
@given(data=st.data())
def test_rounding_of_the_value_of_reduced_problems_is_bounded(data):
    _, _, reduced = data.draw(folded_problems(max_samples=6, max_features=3, elements=rough))
    at = reduced.evaluate(data.draw(points(reduced)))
    assume(math.isfinite(at.value))
    true = exact.ExactProblem(reduced).objective(exact_point(at.point))
    assert abs(Fraction(at.value) - true) <= bound(reduced.rounding(at).value)


@pytest.mark.parametrize("penalty", ["l2", "l1", "elastic_net"])
@pytest.mark.parametrize("loss", SMOOTH_NAMES)
@examples(0.3)
@given(data=st.data())
def test_rounding_of_the_gradient_is_bounded(loss, penalty, data):
    """‖computed subgradient − exact one‖ ≤ rounding.gradient."""
    problem = data.draw(problems(loss, penalty, max_samples=6, max_features=3, elements=rough))
    at = problem.evaluate(data.draw(points(problem)))
    oracle, x = exact.ExactProblem(problem), exact_point(at.point)
    true = least_norm(problem, x, oracle.smooth_gradient(x))
    error = [Fraction(float(g)) - t for g, t in zip(at.subgradient, true, strict=True)]
    assert exact.norm(error) <= bound(problem.rounding(at).gradient)


def least_norm(problem, x, gradient):
    """The least-norm element of gradient + alpha·∂R(x), exactly."""
    alpha = Fraction(problem.alpha)
    share = Fraction(float(getattr(problem.penalty, "l1_ratio", isinstance(
        problem.penalty, PENALTIES["l1"]))))  # fmt: skip
    result = list(gradient)
    for j in range(problem.design.n_features):
        result[j] += alpha * (1 - share) * x[j]
        if x[j] != 0:
            result[j] += alpha * share * (1 if x[j] > 0 else -1)
        else:
            size = max(abs(result[j]) - alpha * share, Fraction(0))
            result[j] = size if result[j] > 0 else -size
    return result


@every_loss
@examples(0.4)
@given(data=st.data())
def test_prediction_error_holds(loss, data):
    problem = data.draw(problems(loss, max_samples=6, elements=rough))
    at = problem.evaluate(data.draw(points(problem)))
    error = problem.prediction_error(at)
    true = exact.ExactProblem(problem).predictions(exact_point(at.point))
    for i, t in enumerate(true):
        assert abs(Fraction(at.pred[i]) - t) <= Fraction(error[i])


@pytest.mark.parametrize("loss", KINKED_NAMES)
@examples(2)
@given(data=st.data())
def test_cut_covers_slopes_from_the_wrong_side_of_a_kink(loss, data):
    """Rows whose prediction is at a kink up to rounding may get either slope."""
    problem = data.draw(problems(loss, intercept=False, max_samples=5, max_features=3))
    point = data.draw(points(problem))
    pred = dense_rows(problem) @ point
    if problem.loss.task == "regression":
        # targets a rounding error away from the prediction, plus or minus the tube
        side = data.draw(hnp.arrays(np.float64, len(pred), elements=st.sampled_from([-1.0, 1.0])))
        problem = problem.with_targets(pred + side * problem.loss.epsilon)
    at = problem.evaluate(point)
    rounding, oracle = problem.rounding(at), exact.ExactProblem(problem)
    x, u = exact_point(point), exact_point(data.draw(points(problem)))
    step = [a - b for a, b in zip(u, x, strict=True)]
    allowed = bound(rounding.cut) + Fraction(at.subgradient_slack)
    allowed += bound(rounding.gradient) * exact.norm(step)
    drop = oracle.objective(x) + exact.dot(exact_point(at.subgradient), step)
    assert drop <= oracle.objective(u) + allowed


# --- extremes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [5e-324, 1e-150, 1e100, 1e160, 1e300])
@every_loss
def test_nothing_is_nan_at_any_scale(loss, scale):
    """Features, targets or coefficients of any size: values and gaps are numbers or infinite."""
    X = np.array([[1.0, -2.0], [0.5, 1.0], [-1.0, 0.25]])
    y = np.array([1.0, -1.0, 1.0])
    cases = [(X * scale, y, 1.0), (X, y, scale), (X * scale, y, 0.0)]
    if LOSSES[loss].task != "classification":
        cases += [(X, y * scale, 1.0), (X, y * scale, 0.0)]
    for penalty, intercept, (features, targets, size) in product(
        PENALTY_NAMES, (False, True), cases
    ):
        problem = make_problems(
            features, targets, loss=loss, penalty=penalty, alpha=0.5, fit_intercept=intercept
        ).problem
        point = size * np.array([0.5, -0.25, 0.125])[: 2 + intercept]
        at = problem.evaluate(problem.feasible(point))
        rounding = problem.rounding(at)
        results = {
            "value": at.value,
            "gap": problem.certify(at).gap,
            "dual": problem.certify(at).dual.value,
            "constant": problem.constant_value,
            "rounding": rounding.value,
            "cut": rounding.cut,
            "gradient": rounding.gradient,
            "slack": at.subgradient_slack,
        }
        assert not any(map(math.isnan, results.values())), (penalty, intercept, results)
        assert results["gap"] >= 0


@every_loss
def test_gap_is_infinite_where_arithmetic_overflows(loss):
    """inf − inf in a prediction: nothing is known, and nothing is claimed."""
    problem = make_problems(
        [[1e200, -1e200], [1.0, 1.0]],
        [1, -1],
        loss=loss,
        penalty="l2",
        alpha=1.0,
        fit_intercept=False,
    ).problem
    assert problem.certify(problem.evaluate(np.array([1e200, 1e200]))).gap == math.inf


@pytest.mark.parametrize("alpha", [1e-300, 1.3e-300])
def test_tiny_features_do_not_make_infeasible_points_feasible(alpha):
    """P(x) = [1 − a·x]₊ + alpha·|x| with a = 2·alpha: the optimum is ½."""
    X = np.array([[2 * alpha], [-2 * alpha]])
    problem = make_problems(
        X, [1, -1], loss="hinge", penalty="l1", alpha=alpha, fit_intercept=False
    ).problem
    assert problem.dual(np.array([-0.7, 0.7])) <= 0.5
    assert problem.primal(np.array([1.0 / (2 * alpha)])) == pytest.approx(0.5)


# --- storage ------------------------------------------------------------------------------------


@storages("Fortran", "csr array", "csc")
@given(data=st.data())
def test_storage_does_not_matter(storage, data):
    problem = data.draw(problems())
    X = dense_rows(problem)[:, : problem.design.n_features]
    other = make_problems(
        held(storage, X, problem.fit_intercept), problem.y, loss=problem.loss,
        penalty=problem.penalty, alpha=problem.alpha, fit_intercept=problem.fit_intercept,
        sample_weight=problem.weights,
    ).problem  # fmt: skip
    assert_same(other, problem, data.draw(points(problem)))
