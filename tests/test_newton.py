"""The Newton solver against conic optima, over every loss, penalty, storage and folded part."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given

from safesift import penalties
from safesift.design import DenseDesign
from safesift.losses import LOSSES
from safesift.problem.inputs import make_problems
from safesift.problem.problem import Problem
from safesift.solvers import quadratic, solve
from safesift.solvers.quadratic import Model, lasso, minimise
from tests.laws import laws
from tests.laws.problems import build, recipes
from tests.laws.reference import NotSolvedError, objective, optimum
from tests.laws.strategies import KINKED_NAMES, SMOOTH_NAMES
from tests.solving import newton


def solved(problem: Problem):
    try:
        return optimum(problem)
    except NotSolvedError:
        assume(False)


def assert_solves(problem: Problem, tol: float) -> None:
    """Converged, feasible, and no worse than the reference by more than the certified gap."""
    best = solved(problem)
    solution = newton(problem, tol=tol, max_iter=500)
    size = 1.0 + abs(best.value)
    assert solution.converged, (solution.relative_gap, solution.n_iter)
    assert solution.gap <= tol * problem.reference
    value = objective(problem, solution.at.point)
    assert value == pytest.approx(solution.at.value, rel=1e-9, abs=1e-12)
    assert value <= best.value + solution.gap + 1e-8 * size
    # the gap is certified: a better point would refute it
    assert best.value >= value - solution.gap - 1e-12 * size


@pytest.mark.parametrize("penalty", sorted(penalties.PENALTIES))
@given(recipe=recipes(loss=SMOOTH_NAMES))
def test_smooth_losses(penalty, recipe):
    assert_solves(build(replace(recipe, penalty=penalty)), 1e-8)


@pytest.mark.parametrize("penalty", sorted(penalties.PENALTIES))
@given(recipe=recipes(loss=KINKED_NAMES))
def test_losses_with_kinks(penalty, recipe):
    assert_solves(build(replace(recipe, penalty=penalty)), 1e-6)


@given(recipe=recipes(loss=["squared_interval", "squared_hinge", "huber"]))
def test_reduced_problems(recipe):
    """A folded quadratic part: the solution solves the full problem too."""
    problem = build(recipe)
    best = solved(problem)
    reduced = laws.screened(recipe, best).reduced
    reference = max(problem.constant_value, 1e-3)
    solution = newton(reduced, tol=1e-8 * reference / reduced.reference, max_iter=500)
    room = 1e-7 * (1 + abs(best.value))
    assert problem.primal(solution.at.point) <= best.value + room
    # an l1 penalty, a linear part and a singular Q leave too little freedom for a dual point
    if reduced.Q is not None and np.linalg.cond(reduced.Q) < 1e8:
        assert solution.converged, (solution.relative_gap, solution.n_iter)


# --- starts, ends, refusals -----------------------------------------------------------------------


def problem_of(n=200, p=5, loss="squared_interval", penalty="l1", alpha=0.01, intercept=True):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    center = X @ rng.normal(size=p) + rng.normal(size=n)
    y = np.sign(center) if LOSSES[loss].task == "classification" else center
    if LOSSES[loss].task == "interval":
        y = np.column_stack([center - 0.5, np.where(rng.random(n) < 0.3, np.inf, center + 0.5)])
    return make_problems(
        X, y, loss=loss, penalty=penalty, alpha=alpha, fit_intercept=intercept
    ).problem  # fmt: skip


def test_a_solution_as_start_needs_no_step():
    problem = problem_of()
    first = newton(problem, tol=1e-9)
    again = newton(problem, tol=1e-8, start=first.at.point)
    assert first.n_iter > 0 and again.n_iter == 0
    assert again.converged


def test_max_iter_is_respected_and_the_gap_still_certified():
    problem = problem_of()
    best = newton(problem, tol=1e-10)
    for max_iter in range(4):
        rough = newton(problem, tol=1e-10, max_iter=max_iter)
        assert rough.n_iter <= max_iter
        assert rough.at.value - best.at.value <= rough.gap
    assert not newton(problem, tol=1e-10, max_iter=1).converged


def test_no_better_than_the_constant_model():
    """An alpha beyond which nothing enters: the start is the solution."""
    solution = newton(problem_of(alpha=100.0), tol=1e-8)
    assert solution.n_iter == 0 and solution.converged
    assert not solution.at.point[:-1].any()


@pytest.mark.parametrize("loss", ["squared_interval", "absolute_interval"])
def test_constant_value_zero(loss):
    """All intervals open above: a constant is optimal, and the gap is relative to the unit."""
    X = np.arange(6.0).reshape(3, 2)
    Y = np.column_stack([[1.0, 3.0, 2.0], np.full(3, np.inf)])
    problem = make_problems(
        X, Y, loss=loss, penalty="l2", alpha=0.1, fit_intercept=True
    ).problem  # fmt: skip
    solution = newton(problem, tol=1e-8)
    assert solution.converged and solution.at.value == 0


def test_wide_data_are_refused_before_any_work():
    design = DenseDesign(np.broadcast_to(np.float64(0.0), (2, 5001)))
    problem = replace(problem_of(), risk=problem_of().risk.on(design))
    with pytest.raises(ValueError, match=r"5001 features.*at most 5000"):
        newton(problem, tol=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_units_do_not_matter(scale, penalty):
    """Features in other units, with the penalty scaled along, give the same objective."""
    problem = problem_of(penalty=penalty, intercept=False)
    power = 1 if penalty == "l1" else 2
    other = make_problems(
        scale * problem.design.data, problem.y, loss=problem.loss, penalty=penalty,
        alpha=problem.alpha * scale**power, fit_intercept=False,
    ).problem  # fmt: skip
    first, second = newton(problem, tol=1e-10), newton(other, tol=1e-10)
    assert first.converged and second.converged
    assert second.at.value == pytest.approx(first.at.value, rel=1e-9)


def test_gram_matrices_are_updated_by_the_rows_that_changed(monkeypatch):
    problem = problem_of(n=2000, alpha=1e-4)
    counts, grams = [], DenseDesign.grams

    def counted(self, parts):
        counts.extend(len(part.rows) for part in parts)
        return grams(self, parts)

    monkeypatch.setattr(DenseDesign, "grams", counted)
    solution = newton(problem, tol=1e-10)
    assert solution.converged
    assert len(counts) > solution.n_iter
    assert min(counts) < 0.1 * max(counts)


# --- the quadratic model --------------------------------------------------------------------------


def random_model(seed: int, p: int, intercept: bool) -> Model:
    rng = np.random.default_rng(seed)
    d = p + intercept
    A = rng.normal(size=(2 * d, d))
    return Model(A.T @ A / d + 1e-6 * np.eye(d), 3 * rng.normal(size=d), p)


@pytest.mark.parametrize("exchanges", [0, 3])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_lasso_is_optimal(seed, intercept, exchanges, monkeypatch):
    """The optimality conditions, from a start that has nothing to do with the solution.

    Whether signs change all at once first, or one after the other only.
    """
    monkeypatch.setattr(quadratic, "_PATIENCE", exchanges)
    model = random_model(seed, 12, intercept)
    start = np.random.default_rng(seed + 100).normal(size=12 + intercept)
    u = lasso(model, 1.0, start)
    gradient = model.H @ u + model.b
    support = u[:12] != 0
    np.testing.assert_allclose(gradient[:12][support], -np.sign(u[:12][support]), atol=1e-9)
    assert (np.abs(gradient[:12][~support]) <= 1 + 1e-9).all()
    np.testing.assert_allclose(gradient[12:], 0, atol=1e-9)


def test_signs_that_change_all_at_once_take_few_systems(monkeypatch):
    solved, solve = [], quadratic.solve_positive

    def counted(*args):
        solved.append(args)
        return solve(*args)

    monkeypatch.setattr(quadratic, "solve_positive", counted)
    model = random_model(0, 200, False)
    start = np.random.default_rng(1).normal(size=200)
    u = lasso(model, 1.0, start)
    assert np.count_nonzero(np.sign(u) != np.sign(start)) > 80
    assert len(solved) < 15


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", [penalties.L2Ball(0.3), penalties.L1Ball(0.7)], ids=repr)
@pytest.mark.parametrize("seed", range(5))
def test_balls_against_accelerated_steps(seed, penalty, intercept):
    model = random_model(seed, 6, intercept)
    general = minimise.dispatch(object)

    def value(u):
        return 0.5 * u @ model.H @ u + model.b @ u

    start = np.zeros(6 + intercept)
    found = minimise(penalty, model, 1.0, start)
    other = start
    for _ in range(20):
        other = general(penalty, model, 1.0, other)
    assert penalty.value(found[:6]) == 0
    assert value(found) <= value(other) + 1e-10 * abs(value(other))
    assert math.isclose(value(found), value(other), rel_tol=1e-6)


@pytest.mark.parametrize("size", [(1e-160, 1.0), (1e150, 1.0), (1.0, 1e300), (1e30, 1e150)])
@pytest.mark.parametrize("penalty", sorted(penalties.PENALTIES))
@pytest.mark.parametrize("loss", ["squared_interval", "absolute_interval"])
def test_extreme_data_end_without_noise(loss, penalty, size):
    """Where squares overflow no step is made, and the gap says so: never NaN, never a warning."""
    problem = problem_of(n=30, loss=loss, penalty=penalty)
    features, targets = size
    extreme = make_problems(
        features * problem.design.data, targets * problem.y, loss=loss, penalty=penalty,
        alpha=0.01, fit_intercept=True,
    ).problem  # fmt: skip
    solution = newton(extreme, tol=1e-6)
    assert solution.gap >= 0


@pytest.mark.parametrize("solver", ["newton", "sparse_newton"])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "smoothed_hinge"])
def test_one_column_in_other_units_takes_no_more_steps(solver, loss):
    """Damping is by columns; what is left of the gap is what rounding in that column allows."""
    problem = problem_of(loss=loss, penalty="l2" if solver == "newton" else "l1")
    X = problem.design.data.copy()
    X[:, 1] *= 1e8
    penalty = problem.penalty
    scaled = make_problems(X, problem.y, loss=loss, penalty=penalty, alpha=0.01).problem
    fit = solve(scaled, tol=1e-2, start=scaled.constant_point, solver=solver)
    assert fit.converged and fit.n_iter <= 30
