"""Dual coordinate descent against conic optima, over every loss with dual steps."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from scipy import sparse
from scipy.special import expit

from safesift import regions
from safesift.arithmetic import threads
from safesift.arithmetic.compiled import dual
from safesift.design import as_design
from safesift.losses import LOSSES
from safesift.problem.duality import Dual
from safesift.problem.inputs import make_problems
from safesift.problem.passes import alone
from safesift.problem.problem import Problem
from safesift.solvers import (
    Fit,
    Screening,
    Settings,
    choose,
    dual_loop,
    entropy_loop,
    parabola_loop,
    solve,
    solve_path,
)
from safesift.solvers import dual_descent as dual_descent_module
from safesift.solvers.line_search import root_of_rising
from tests.laws.problems import build, recipes
from tests.laws.reference import NotSolvedError, objective, optimum
from tests.laws.strategies import examples
from tests.solving import dual_descent, newton

NAMES = sorted(name for name in LOSSES if name != "safe_logistic")


def fitted(problem: Problem, tol: float = 1e-8, **settings) -> Fit:
    ((fit,),) = dual_descent([[problem]], Settings(tol, **{"max_iter": 20000, **settings}))
    return fit


def problem_of(loss="hinge", n=300, p=20, alpha=1e-3, intercept=False, storage="csr", **more):
    """A problem with noise, sparse rows and weights, some of them 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.5)
    center = X @ rng.normal(size=p) + 0.5 * rng.normal(size=n) + 0.3
    y = np.sign(center) if LOSSES[loss].task == "classification" else center
    if LOSSES[loss].task == "interval":
        y = np.column_stack([center - 0.5, np.where(rng.random(n) < 0.3, np.inf, center + 0.5)])
    if storage != "dense":
        X = sparse.csr_array(X)
    weights = rng.choice([0.0, 1.0, 2.5], n)
    return make_problems(
        X.astype(more.pop("dtype", np.float64)), y, loss=loss, penalty="l2", alpha=alpha,
        fit_intercept=intercept, sample_weight=weights, **more,
    ).problem  # fmt: skip


# --- optimality ---------------------------------------------------------------------------------


@examples(1)
@given(recipe=recipes(loss=NAMES, penalty=("l2",)))
def test_optimum_and_certificate(recipe):
    problem = build(recipe)
    try:
        best = optimum(problem)
    except NotSolvedError:
        assume(False)
    fit = fitted(problem, 1e-6)
    assert_certified(fit, best.value)
    assert fit.converged or fit.relative_gap < 1e-4
    assert_decisions_hold(fit, best.point)


def assert_certified(fit: Fit, best_value: float) -> None:
    """The value is what it says, and within the certified gap of the optimum."""
    solution, size = fit, 1.0 + abs(best_value)
    value = objective(fit.problem, solution.at.point)
    assert value == pytest.approx(solution.at.value, rel=1e-9, abs=1e-12)
    assert best_value >= value - solution.gap - 1e-9 * size
    assert value <= best_value + solution.gap + 1e-7 * size
    assert fit.history[-1].gap == solution.gap


def assert_decisions_hold(fit: Fit, point: np.ndarray) -> None:
    """Every decided row lies on its piece at the optimum."""
    pred = fit.problem.design.matvec(point)
    decided, room = ~fit.undecided & (fit.problem.weights > 0), 1e-4 * (1 + np.abs(pred))
    assert (pred > fit.decisions.lower - room)[decided].all()
    assert (pred < fit.decisions.upper + room)[decided].all()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", ["csr", "dense"])
@pytest.mark.parametrize("name", ["hinge", "squared_hinge", "epsilon_insensitive", "logistic"])
def test_real_sizes(name, storage, intercept):
    fit = fitted(problem_of(name, intercept=intercept, storage=storage), 1e-9)
    assert fit.converged, fit.relative_gap
    assert_certified(fit, optimum(fit.problem).value)
    # the logistic loss has no pieces; nobody asks what becomes of rows without weight
    decided = ~fit.undecided & (fit.problem.weights > 0)
    assert decided.any() == (name != "logistic")


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("alpha", [10.0, 1e-3, 1e-7])
def test_log_odds_are_followed_to_the_end_of_the_arithmetic(alpha, intercept):
    problem = problem_of("logistic", n=60, p=80, alpha=alpha, intercept=intercept)
    fit = fitted(problem, 1e-15)
    other = newton(problem, tol=1e-15)
    assert fit.gap <= 1e-12 * problem.reference
    apart = math.sqrt(2 * fit.gap / alpha) + math.sqrt(2 * other.gap / alpha)
    assert np.linalg.norm(fit.coef - other.coef) <= apart


def test_a_step_for_the_logistic_loss_is_exact_where_it_is_far():
    """The margin that a row has after its own step is the one its dual variable belongs to."""
    from safesift.arithmetic.compiled import entropy

    for q in (1e-3, 1.0, 1e3, 1e9):
        for odds, margin in ((0.0, 5.0), (30.0, -40.0), (-700.0, 3.0), (800.0, -800.0)):
            u = float(expit(-odds))
            settled = entropy._settled(odds, margin - q * u, q, 1e-12)
            after = margin + q * (expit(-settled) - u)
            assert settled == pytest.approx(after, rel=1e-9, abs=1e-9 * (1 + abs(margin) + q))


@pytest.mark.parametrize("storage", ["csr", "dense"])
def test_single_precision_is_the_same_problem(storage):
    single = problem_of("hinge", storage=storage, dtype=np.float32)
    double = problem_of("hinge", storage=storage, dtype=np.float32)
    data = single.design.data.astype(np.float64)
    field = "matrix" if storage == "csr" else "array"
    design = replace(double.design, **{field: data})
    double = replace(double, risk=double.risk.on(design))
    # compiled sums may be in another order for another type
    np.testing.assert_allclose(fitted(single).coef, fitted(double).coef, rtol=1e-10, atol=1e-11)


def test_weights_are_repetitions():
    problem = problem_of("hinge", n=60)
    rows = np.repeat(np.arange(60), np.round(2 * problem.weights).astype(int))
    repeated = make_problems(
        problem.design.matrix[rows], problem.y[rows], loss="hinge", penalty="l2", alpha=1e-3,
        fit_intercept=False,
    ).problem  # fmt: skip
    one, other = fitted(problem, 1e-11), fitted(repeated, 1e-11)
    room = one.gap + other.gap
    assert abs(one.at.value - other.at.value) <= room + 1e-14
    np.testing.assert_allclose(one.coef, other.coef, atol=1e-3 * np.abs(other.coef).max())


# --- screening, paths, threads ------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", ["hinge", "squared_hinge"])
def test_same_model_whatever_leaves_the_loop(name, intercept):
    problem = problem_of(name, intercept=intercept)
    region = regions.Auto()
    fits = [fitted(problem, 1e-10, screening=Screening.of(how)) for how in ("auto", None, region)]
    # strong convexity: ½·alpha·‖x − x*‖² ≤ gap
    room = 2 * math.sqrt(2 * max(fit.gap for fit in fits) / problem.alpha)
    for fit in fits:
        assert fit.converged
        assert np.linalg.norm(fit.coef - fits[0].coef) <= room


@pytest.mark.parametrize("intercept", [False, True])
def test_rows_that_are_nearly_the_same_do_not_make_all_others_wait(monkeypatch, intercept):
    rng, n, p = np.random.default_rng(0), 2000, 1500
    X = sparse.random_array((n, p), density=0.02, rng=rng).toarray()
    y = np.sign(X @ rng.normal(size=p) + 0.3 * rng.normal(size=n))
    X[100:, 0] = 3.0 * y[100:]  # easy: they leave the loop
    X[50:53], y[50:53] = X[:3] * (1 + 1e-2 * rng.normal(size=(3, p))), y[:3]
    problem = make_problems(
        sparse.csr_array(X), y, loss="hinge", penalty="l2", alpha=1e-3, fit_intercept=intercept
    ).problem
    followed = fitted(problem, 1e-7)
    monkeypatch.setattr(parabola_loop, "_FEW", 0.0)
    waited_for = fitted(problem, 1e-7)
    assert followed.converged and waited_for.converged
    assert followed.at.value == pytest.approx(waited_for.at.value, abs=1e-7 * problem.reference)
    assert 1.5 * followed.n_iter < waited_for.n_iter


def test_a_region_takes_rows_out_of_the_loop():
    problem = problem_of("hinge", n=2000, p=10, alpha=1e-2)
    fit = fitted(problem, 1e-9, screening=Screening.of(regions.GapBall()))
    assert fit.history[-1].n_undecided < 0.5 * problem.design.n_samples
    assert len(fit.history) > 2


@pytest.mark.parametrize("name", ["hinge", "squared_hinge", "epsilon_insensitive"])
def test_path_is_warm_and_certified(name):
    problem = problem_of(name, intercept=True)
    alphas = np.geomspace(1e-1, 1e-3, 6)
    path = list(dual_descent([[problem.at_level(a)] for a in alphas], Settings(1e-7, 20000)))
    for alpha, (fit,) in zip(alphas, path, strict=True):
        assert fit.converged and fit.problem.alpha == alpha
        assert_certified(fit, optimum(fit.problem).value)


def test_a_start_helps():
    problem = problem_of("squared_hinge", intercept=True)
    first = fitted(problem, 1e-9)
    ((again,),) = dual_descent([[problem]], Settings(1e-8), [first.at.point])
    assert again.converged and again.n_iter < first.n_iter


def test_results_do_not_depend_on_the_number_of_threads():
    """Several problems on one design, as many threads: to the last bit."""
    problem = problem_of("hinge", intercept=True)
    others = [problem.with_targets(y) for y in (problem.y, -problem.y, np.roll(problem.y, 7))]
    levels = [[other.at_level(alpha) for other in others] for alpha in (1e-2, 1e-3)]

    def coefs(n: int):
        with threads.limited(n):
            return [[f.at.point for f in fits] for fits in dual_descent(levels, Settings())]

    np.testing.assert_array_equal(coefs(1), coefs(3))


# --- the order of the rows ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "group"), [(0, 4), (1, 16), (37, 1), (1000, 7), (5000, 16), (40, 99)]
)
def test_every_row_is_visited_once(n, group):
    order = dual.visits(n, group, np.array([12345], dtype=np.uint64))
    np.testing.assert_array_equal(np.sort(order), np.arange(n))


def test_neighbours_stay_near_but_not_together():
    """Near, for the cache; in turn they would converge like coordinates in a fixed order."""
    n, group = 100_000, 16
    order = dual.visits(n, group, np.array([12345], dtype=np.uint64))
    place = np.empty(n, dtype=np.intp)
    place[order] = np.arange(n)
    apart = np.abs(np.diff(place))[np.arange(1, n) % group != 0]
    assert apart.max() < 64 * group
    assert np.median(apart) > 8 * group


def test_neighbours_do_not_make_epochs_more(monkeypatch):
    """Short rows, many of which fit next to each other: in turn they took 90 epochs for 49."""
    rng = np.random.default_rng(0)
    n, n_columns, often = 16_000, 14, np.arange(1.0, 10.0) ** -1.5
    columns = rng.choice(9, p=often / often.sum(), size=(n, n_columns)) + 9 * np.arange(n_columns)
    entries = np.ones(columns.size), (np.repeat(np.arange(n), n_columns), columns.ravel())
    X = sparse.csr_array(entries, shape=(n, 9 * n_columns))
    signal = X @ rng.normal(size=X.shape[1]) / n_columns**0.5
    y = np.where(signal + 0.5 * rng.normal(size=n) > 0.5, 1.0, -1.0)
    model = {"loss": "squared_hinge", "penalty": "l2", "alpha": 1e-4, "fit_intercept": False}
    problem = make_problems(X, y, **model).problem
    together = fitted(problem, 1e-6).n_iter
    monkeypatch.setattr(dual_loop, "_MOST_NEIGHBOURS", 1)
    assert together <= 1.25 * fitted(problem, 1e-6).n_iter


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.uint8])
def test_rows_of_every_storage_may_be_asked_for(order, dtype):
    """Before they are read: in either order, in steps through memory, of any type."""
    rng = np.random.default_rng(0)
    X = np.asarray(rng.integers(1, 5, size=(50, 3)), dtype=dtype, order=order)
    y = np.where(X.sum(axis=1) > 8, 1.0, -1.0)
    settings = {"loss": "squared_hinge", "penalty": "l2", "alpha": 1e-2, "fit_intercept": True}
    same = fitted(make_problems(X.astype(np.float64), y, **settings).problem)
    for matrix in (X, sparse.csr_array(X.astype(np.float32)), np.repeat(X, 2, axis=1)[:, ::2]):
        found = fitted(make_problems(matrix, y, **settings).problem)
        np.testing.assert_allclose(found.at.point, same.at.point, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_are_copied_into_rows_once_and_rows_never(dtype):
    X = np.asarray(np.random.default_rng(0).normal(size=(40, 3)), dtype=dtype)
    by_rows, by_columns = (
        dual_loop._arrays(as_design(np.asarray(X, order=order)))[0] for order in "CF"
    )
    assert np.shares_memory(by_rows, X)
    assert by_columns.flags.c_contiguous and by_columns.dtype == dtype
    np.testing.assert_array_equal(by_columns, X)


def test_seed_changes_the_order_only():
    problem = problem_of("squared_hinge")
    one, same, other = (fitted(problem, 1e-12, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.coef, same.coef)
    assert (one.coef != other.coef).any()
    np.testing.assert_allclose(one.coef, other.coef, atol=1e-5)


def test_max_iter_is_respected_and_the_gap_still_certified():
    problem = problem_of("hinge", alpha=1e-4)
    best = optimum(problem)
    for max_iter in (1, 3, 10):
        fit = fitted(problem, 1e-10, max_iter=max_iter)
        assert fit.n_iter <= max_iter and not fit.converged
        assert_certified(fit, best.value)


def test_zero_rows_and_all_weight_on_one_side():
    X = sparse.csr_array(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 2.0]]))
    for name in ("hinge", "squared_hinge"):
        for intercept in (False, True):
            problem = make_problems(
                X, [1, -1, -1, 1], loss=name, penalty="l2", alpha=0.1, fit_intercept=intercept
            ).problem  # fmt: skip
            assert_certified(fitted(problem, 1e-6), optimum(problem).value)


# --- choice -------------------------------------------------------------------------------------


def test_choice_of_the_solver():
    def prefers_dual_descent(problem):
        return choose(problem, 1).name in ("dual_descent", "relay")

    assert prefers_dual_descent(problem_of("hinge"))
    assert prefers_dual_descent(problem_of("absolute_interval", storage="dense"))
    assert not prefers_dual_descent(problem_of("squared_hinge"))
    assert not prefers_dual_descent(problem_of("squared_hinge", n=20, p=3000))
    assert prefers_dual_descent(problem_of("hinge", n=20, p=3000))
    assert not prefers_dual_descent(problem_of("logistic", n=20, p=3000))
    assert not prefers_dual_descent(replace(problem_of("hinge"), penalty=build_l1()))


def build_l1():
    from safesift.penalties import L1

    return L1()


def test_solve_path_takes_it_and_agrees_with_newton():
    problem = problem_of("hinge", intercept=True)
    ((fit,),) = solve_path([[problem]], Settings(1e-8, 20000))
    other = newton(problem, tol=1e-8, max_iter=500)
    assert fit.at.value <= other.at.value + 1e-8 * other.problem.reference


# --- a wrong step is caught ---------------------------------------------------------------------


def test_wrong_row_norms_are_caught(monkeypatch):
    """Steps that are too long never reach the tolerance: nothing but the gap says it is solved."""
    problem = problem_of("squared_hinge")
    assert fitted(problem, 1e-6, max_iter=200).converged
    design = problem.design
    monkeypatch.setitem(vars(design), "feature_norms_sq", 0.05 * design.feature_norms_sq)
    fit = fitted(problem, 1e-6, max_iter=200)
    assert not fit.converged
    assert_certified(fit, optimum(problem).value)


@pytest.mark.parametrize("solver", ["dual_descent", "relay"])
def test_weights_of_an_intercept_that_underflow(solver):
    """Rows so long that no slope responds to an intercept, as far as can be computed."""
    rng = np.random.default_rng(1)
    X, y = 1e60 * rng.normal(size=(200, 3)), rng.normal(size=200)
    problem = make_problems(X, y, loss="squared", penalty="l2", alpha=1e-260).problem
    fit = solve(problem, tol=1e-6, max_iter=20, solver=solver)
    assert fit.certificate.gap >= 0


@pytest.mark.parametrize("alphas", [(1e200, 1e150, 1e-250), (1e300, 1e-100, 1e-299)])
def test_alphas_whose_quotients_underflow(alphas):
    X = np.random.default_rng(1).normal(size=(200, 3))
    problem = make_problems(X, np.sign(X[:, 0]), loss="squared_hinge", penalty="l2", alpha=1.0)
    levels = [[problem.problem.at_level(alpha)] for alpha in alphas]
    fits = [fit for (fit,) in dual_descent(levels, Settings(1e-6, max_iter=50))]
    assert len(fits) == 3 and all(fit.certificate.gap >= 0 for fit in fits)


@pytest.mark.parametrize("kink", [1e-6, 0.03, 0.5, 0.97])
def test_slopes_vanish_where_a_line_search_ends(kink):
    """A slope that hardly rises, and then by far more, as at the kink of an envelope."""

    def slope(share):
        return -1.0 + (share if share < kink else kink + 1e3 * (share - kink))

    share = root_of_rising(slope, -1.0)
    assert abs(slope(share)) <= 0.05
    assert root_of_rising(lambda share: -1.0, -1.0) == 1.0
    assert root_of_rising(lambda share: 1.0, 0.0) == 0.0


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge"])
def test_rows_whose_squares_overflow_leave_a_model(loss, intercept):
    """Not one that is no number: the best constant model, with the gap it has."""
    X = np.random.default_rng(0).normal(size=(30, 4)) * 1e160
    model = {"loss": loss, "penalty": "l2", "alpha": 0.01, "fit_intercept": intercept}
    problem = make_problems(X, np.where(np.arange(30) % 2, 1.0, -1.0), **model).problem
    assert np.isfinite(fitted(problem, 1e-6, max_iter=20).at.point).all()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge", "epsilon_insensitive"])
def test_an_epoch_tells_the_gap_behind_it(loss, intercept):
    """Rows of the second logistic epoch meet a gap that is nine times that."""
    problem = problem_of(loss, n=2000, p=50, intercept=intercept)
    kind = entropy_loop.EntropyLoop if loss == "logistic" else parabola_loop.ParabolaLoop
    loop = kind(problem, 0)
    loop.move_to(problem)
    loop.epoch(shrinks=False)
    for _ in range(6):
        told = loop.epoch(shrinks=False)
        dual = alone(Dual(problem).feasible(loop.ray()))
        gap = problem.evaluate(loop.mean_point).value - dual.value
        assert 0.25 * gap < told < 3.0 * gap


@pytest.mark.parametrize(
    ("gap", "target", "share"),
    [(2e-3, 1e-3, 0.35), (1.0, 1e-3, 0.3), (math.inf, 1e-3, 0.3), (0.0, 0.0, 0.3), (0.0, 1.0, 0.3)],
)
def test_after_a_look_in_vain_the_next_one_waits_for_what_was_missing(gap, target, share):
    assert dual_descent_module._stricter(gap, target) == pytest.approx(share)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_points_of_epochs_with_kinks_are_averaged(loss):
    """By convexity their mean is no worse than they are on average; each alpha begins anew."""
    problem = problem_of(loss, n=400, p=30, alpha=1e-4)
    loop = parabola_loop.ParabolaLoop(problem, 0)
    loop.move_to(problem)
    points = []
    for _ in range(12):
        loop.epoch(shrinks=False)
        points.append(loop.point)
    mean = loop.mean_point
    if loss == "squared_hinge":
        np.testing.assert_array_equal(mean, loop.point)
        return
    recent = points[-len(loop._recent) :]
    assert any(not np.array_equal(mean, one) for one in recent)
    worst = max(problem.evaluate(one).value for one in recent)
    assert problem.evaluate(mean).value <= worst
    loop._recent.append((math.nan, loop.point))
    assert np.isfinite(loop.mean_point).all()
    loop.move_to(problem.at_level(1e-5))
    np.testing.assert_array_equal(loop.mean_point, loop.point)


def loop_with_an_intercept(loss: str) -> parabola_loop.ParabolaLoop:
    problem = problem_of(loss, n=400, p=30, intercept=True)
    loop = parabola_loop.ParabolaLoop(problem, 0)
    loop.move_to(problem)
    return loop


@pytest.mark.parametrize(
    ("loss", "moves", "made"),
    [
        ("hinge", [1.0, 0.25], [1.0, 1.0 / 3.0]),  # 1/4 + 1/16 + …
        ("hinge", [-1.0, -0.9, -0.9], [-1.0, -1.8, -1.8]),
        ("hinge", [1.0, 1.2, -0.6], [1.0, 2.4, -0.6]),
        ("squared_hinge", [1.0, 0.25], [1.0, 0.25]),
    ],
)
def test_a_center_that_creeps_is_moved_ahead(loss, moves, made):
    """To where moves that become smaller by the same share lead, and at most twice as far."""
    loop = loop_with_an_intercept(loss)
    assert [loop._ahead(move) for move in moves] == pytest.approx(made)
    loop._bias *= 2.0  # moves of another weight tell nothing of the next one
    assert loop._ahead(0.5 * moves[-1]) == 0.5 * moves[-1]


def test_rows_that_come_back_for_an_intercept_leave_again_in_the_same_epoch():
    loop = loop_with_an_intercept("hinge")
    while loop.complete:
        loop.epoch(shrinks=True)
    many = loop._n_active
    loop._shift = 2.0 * loop._room
    loop.epoch(shrinks=True)
    assert loop.share_visited == len(loop._left) / 400
    assert loop._n_active < len(loop._left) and many < len(loop._left)


@pytest.mark.parametrize("seed", [24, 86, 109])
def test_few_rows_do_not_carry_the_intercept_away(seed):
    """Newton's method on the few that are left in the loop knows nothing of all others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 2))
    score = X @ np.ones(2) + rng.normal(size=200)
    y = np.where(score > np.quantile(score, 0.8), 1.0, -1.0)
    model = {"loss": "hinge", "penalty": "l2", "alpha": 30.0, "fit_intercept": True}
    fit = fitted(make_problems(X, y, sample_weight=None, **model).problem, 1e-6, max_iter=300)
    assert fit.converged and abs(fit.at.point[-1]) < 10.0
