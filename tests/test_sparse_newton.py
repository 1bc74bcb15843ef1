"""The working-set Newton solver against conic optima and the Newton solver on all columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from scipy import sparse

from safesift import penalties
from safesift.design import DenseDesign, as_design
from safesift.design import sparse as sparse_module
from safesift.design.dense import ColumnSubset, some_columns
from safesift.losses import LOSSES
from safesift.problem.gram import WorkingGram
from safesift.problem.inputs import make_problems
from safesift.problem.problem import Problem
from safesift.regions import REGIONS
from safesift.regions.energy import distance_bound, proved_curvature
from safesift.solvers import Fit, Screening, Settings, driver, sampling
from safesift.solvers import sparse_newton as module
from safesift.solvers.sparse_newton import SparseNewton
from tests.laws.problems import Recipe, build, recipes
from tests.laws.reference import NotSolvedError, objective, optimum
from tests.laws.strategies import SMOOTH_NAMES
from tests.solving import newton, sparse_newton


def fit(problem: Problem, **settings_) -> Fit:
    ((fit,),) = sparse_newton([[problem]], Settings(**settings_))
    return fit


def assert_decisions_hold(found: Fit, point: np.ndarray, room: float) -> None:
    """Every decided row is on its piece at another solution."""
    pred, decisions = found.problem.design.matvec(point), found.decisions
    decided = ~decisions.undecided & (found.problem.weights > 0)
    assert (pred[decided] >= decisions.lower[decided] - room).all()
    assert (pred[decided] <= decisions.upper[decided] + room).all()


def assert_solves(solve, recipe, tol: float, room: float, point_room: float) -> None:
    """The optimum of a reference within a certified gap, and decisions that hold there.

    The rooms are for the accuracy of the reference: of its value, and of its point.
    """
    problem = build(recipe)
    try:
        best = optimum(problem)
    except NotSolvedError:
        assume(False)
    found = solve(problem, tol=tol)
    size = 1.0 + abs(best.value)
    assert found.converged, (found.relative_gap, found.n_iter)
    value = objective(problem, found.at.point)
    assert value <= best.value + found.gap + room * size
    assert best.value >= value - found.gap - 1e-12 * size
    assert_decisions_hold(found, best.point, point_room * (1 + np.abs(best.point).max()))


@settings(max_examples=120)
@given(recipe=recipes(loss=SMOOTH_NAMES, penalty=["l1", "elastic_net"]))
def test_against_conic_optima(recipe):
    assert_solves(fit, recipe, tol=1e-8, room=1e-8, point_room=1e-4)


# --- larger problems ------------------------------------------------------------------------------


def wide_problem(
    loss="squared_hinge", penalty="l1", alpha=0.02, n=200, p=400, intercept=False, weighted=False,
    kind=np.asarray,
) -> Problem:  # fmt: skip
    """More features than rows, five of which matter."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.3)
    center = X[:, :5] @ [2.0, -2.0, 1.5, 1.0, -1.0] + 0.3 + 0.3 * rng.normal(size=n)
    y = np.sign(center) if LOSSES[loss].task == "classification" else center
    if LOSSES[loss].task == "interval":
        y = np.column_stack([center - 0.2, np.where(rng.random(n) < 0.3, np.inf, center + 0.2)])
    weights = rng.integers(0, 4, n).astype(float) if weighted else None
    return make_problems(
        kind(X), y, loss=loss, penalty=penalty, alpha=alpha, fit_intercept=intercept,
        sample_weight=weights,
    ).problem  # fmt: skip


KINDS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_array,
    "csr32": lambda X: sparse.csr_array(X.astype(np.float32)),
}


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_storage_and_intercept(kind, intercept):
    problem = wide_problem(kind=KINDS[kind], intercept=intercept, weighted=True)
    found, other = fit(problem, tol=1e-9), newton(problem, tol=1e-10)
    assert found.converged
    np.testing.assert_allclose(found.at.point, other.at.point, atol=1e-6)
    np.testing.assert_array_equal(found.coef != 0, np.abs(other.at.point[:400]) > 1e-7)
    assert found.undecided.mean() < 0.05
    assert_decisions_hold(found, other.at.point, 1e-7)


@pytest.mark.parametrize("penalty", ["l1", penalties.ElasticNet(0.7)], ids=str)
@pytest.mark.parametrize("loss", ["safe_logistic", "logistic", "squared", "huber",
                                  "squared_epsilon_insensitive", "squared_interval"])  # fmt: skip
def test_losses(loss, penalty):
    problem = wide_problem(loss=loss, penalty=penalty, intercept=True)
    found, other = fit(problem, tol=1e-9), newton(problem, tol=1e-10)
    assert found.converged
    assert found.at.value == pytest.approx(other.at.value, rel=1e-9)
    assert_decisions_hold(found, other.at.point, 1e-6)


@pytest.mark.parametrize("loss", ["squared_hinge", "safe_logistic"])
def test_screening_does_not_change_the_model(loss):
    problem = wide_problem(loss=loss, n=400, p=60, alpha=0.005)
    fits = [
        fit(problem, tol=1e-10, screening=Screening.of(how))
        for how in ("auto", None, REGIONS["auto"]())
    ]
    for other in fits[1:]:
        np.testing.assert_allclose(other.coef, fits[0].coef, atol=1e-7)
    # what one finds droppable the others never need
    assert not (fits[0].decisions.dropped & (fits[1].at.nu != 0)).any()
    assert fits[0].kept.sum() <= 1.02 * fits[2].kept.sum()


def test_a_path_is_what_single_fits_are():
    problem = wide_problem(intercept=True)
    alphas = np.geomspace(0.2, 0.002, 8)
    path = list(sparse_newton([[problem.at_level(a)] for a in alphas], Settings(tol=1e-9)))
    for alpha, (found,) in zip(alphas, path, strict=True):
        alone = fit(problem.at_level(alpha), tol=1e-9)
        assert found.converged and found.problem.alpha == alpha
        np.testing.assert_allclose(found.coef, alone.coef, atol=1e-6)
        assert found.history[-1].gap == found.gap
        assert found.history[-1].n_kept == found.kept.sum()


def test_several_problems_and_starts():
    first, second = wide_problem(), wide_problem(weighted=True)
    solutions = [fit(problem, tol=1e-10).at.point for problem in (first, second)]
    (again,) = sparse_newton([[first, second]], Settings(tol=1e-8), solutions)
    assert [found.n_iter for found in again] == [0, 0]
    assert all(found.converged for found in again)


def test_nothing_enters_beyond_the_largest_alpha():
    problem = wide_problem()
    largest = np.abs(problem.evaluate(np.zeros(400)).loss_gradient).max()
    found = fit(problem.at_level(1.01 * largest))
    assert not found.coef.any() and found.converged
    assert found.history[-1].n_features == 0 and not found.undecided.any()


def test_max_iter_is_respected_and_the_gap_still_certified():
    problem = wide_problem()
    best = fit(problem, tol=1e-12).at.value
    rough = fit(problem, tol=1e-12, max_iter=1)
    assert rough.n_iter <= 2 and rough.at.value - best <= rough.gap


def test_only_the_working_set_is_gathered(monkeypatch):
    """No Gram matrix of all columns is ever made."""
    sizes, grams = [], DenseDesign._grams

    def counted(self, parts):
        sizes.extend(part.features.size for part in parts)
        return grams(self, parts)

    monkeypatch.setattr(DenseDesign, "_grams", counted)
    found = fit(wide_problem(alpha=0.1))
    assert found.converged and 0 < max(sizes) < 100


# --- parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_working_gram_follows_columns_and_weights(kind, intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 12)) * (rng.random((60, 12)) < 0.6)
    design = as_design(KINDS[kind](X), intercept)
    whole = as_design(np.asarray(design.data.todense() if "csr" in kind else design.data,
                                 dtype=float), intercept)  # fmt: skip
    gram, weights = WorkingGram(design), rng.random(60)
    for _ in range(30):
        features = rng.random(12) < rng.choice([0.3, 0.9])
        weights = np.where(rng.random(60) < 0.2, rng.random(60) * (rng.random(60) < 0.7), weights)
        gram.select(features)
        gram.move(weights)
        expected = whole.columns(features).gram(weights)
        off = np.abs(gram.matrix - expected)
        np.testing.assert_allclose(gram.matrix, expected, atol=1e-12)
        assert (off <= 2 * gram.error * np.outer(gram.spread, gram.spread) + 1e-300).all()


@pytest.mark.parametrize("sparsely, first", [(False, 100), (True, 1000)])
def test_a_cold_start_does_not_take_in_every_feature(monkeypatch, sparsely, first):
    """At a small alpha nearly all slopes at zero are steep; few features are in the solution."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((150, 8000), density=0.02, rng=rng, format="csr")
    y = np.where(X[:, :5].sum(axis=1) > 0.2, 1.0, -1.0)
    problem = make_problems(
        X if sparsely else X.toarray(), y,
        loss="squared_hinge", penalty="l1", alpha=1e-3, fit_intercept=False,
    ).problem  # fmt: skip
    sizes, chosen = [], SparseNewton._working_set

    def counted(solver, level, is_first):
        features = chosen(solver, level, is_first)
        sizes.append(int(features.sum()))
        return features

    monkeypatch.setattr(SparseNewton, "_working_set", counted)
    found = fit(problem)
    assert found.converged
    steep = np.abs(problem.evaluate(problem.constant_point).loss_gradient) > problem.alpha
    assert sizes[0] == first and max(sizes) < 0.5 * steep.sum()


@pytest.mark.parametrize("intercept", [False, True])
def test_a_view_of_columns_is_like_a_copy(intercept):
    rng = np.random.default_rng(1)
    design = as_design(rng.normal(size=(50, 8)).astype(np.float32), intercept)
    features = rng.random(8) < 0.5
    view, copy = some_columns(design, features), design.columns(features)
    assert isinstance(view, ColumnSubset) and some_columns(design, np.ones(8, bool)) is design
    x, u, rows = rng.normal(size=view.n_columns), rng.normal(size=50), rng.random(50) < 0.4
    np.testing.assert_allclose(view.matvec(x), copy.matvec(x), rtol=1e-12)
    np.testing.assert_allclose(view.rmatvec(u), copy.rmatvec(u), rtol=1e-12)
    np.testing.assert_allclose(view.gram(rows * 1.0), copy.gram(rows * 1.0), rtol=1e-12)
    np.testing.assert_array_equal(view.take(rows).data, copy.take(rows).data)
    np.testing.assert_array_equal(view.data, copy.data)
    assert (view.row_norms >= copy.row_norms).all()


@given(recipe=recipes(loss=SMOOTH_NAMES, penalty=["l1", "elastic_net", "l2"]))
def test_what_a_gap_proves(recipe):
    """Curvature floors, bounds and distances hold for the optimum, from any point."""
    problem = build(recipe)
    try:
        best = optimum(problem)
    except NotSolvedError:
        assume(False)
    rng, p = recipe.rng(), problem.design.n_features
    scale = 10.0 ** rng.uniform(-8, 0)
    at = problem.evaluate(best.point + scale * rng.normal(size=len(best.point)))
    certificate = problem.certify(at)
    proved, pred = proved_curvature(certificate), problem.design.matvec(best.point)
    room = 1e-5 * (1 + np.abs(pred).max())
    assert (pred >= proved.bounds.lower - room).all() and (pred <= proved.bounds.upper + room).all()
    energy = 0.5 * float(problem.shares * proved.weights @ (at.pred - pred) ** 2)
    assert energy <= certificate.gap * (1 + 1e-6) + 1e-7 * (1 + abs(best.value))
    reached = np.linalg.norm((at.point - best.point)[:p])
    assert reached <= distance_bound(certificate) + room


def test_sums_in_longer_blocks_are_remembered():
    """Few columns of a sparse matrix are summed in longer blocks, which round more."""
    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.normal(size=(30_000, 40)))
    gram = WorkingGram(as_design(X))
    errors = []
    for k in (4, 8, 16, 32, 40):
        gram.select(np.arange(40) < k)
        gram.move(np.ones(30_000))
        errors.append(gram.error)
    assert errors == sorted(errors) and errors[0] >= gram.design.gram_error


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("intercept", [False, True])
def test_columns_of_a_sparse_matrix_are_read_by_columns(dtype, intercept):
    X = sparse.random_array((30, 9), density=0.3, rng=np.random.default_rng(0), format="csr")
    X = (10 * X).astype(dtype)
    design = as_design(X, intercept)
    for features in (np.arange(9) % 2 == 0, np.zeros(9, bool), np.ones(9, bool)):
        part = design.columns(features)
        assert part.intercept == intercept and part.matrix.dtype == design.matrix.dtype
        expected = design.matrix[:, np.flatnonzero(features)]
        np.testing.assert_array_equal(part.matrix.toarray(), expected.toarray())
        np.testing.assert_array_equal(part.matrix.indices, expected.indices)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("n", [0, 1, 70])
def test_blocks_are_sorted_by_columns(dtype, index, n, monkeypatch):
    """Each into its own place, behind the blocks before: the copy is SciPy's, bit by bit."""
    monkeypatch.setattr(sparse_module, "_BLOCK_ENTRIES", 60)
    monkeypatch.setattr(sparse_module, "_ENTRIES_PER_COLUMN", 0)
    X = sparse.random_array((n, 12), density=0.4, rng=np.random.default_rng(n), format="csr")
    X = sparse.csr_array((100 * X).astype(dtype))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    design = as_design(X)
    assert n < 70 or design.block_rows < 20
    found, expected = design.by_columns, X.tocsc()
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found.dtype == dtype and found.shape == X.shape
    np.testing.assert_array_equal(design.column_lengths, np.diff(expected.indptr))


@pytest.mark.parametrize("loss", ["squared_hinge", "safe_logistic", "logistic", "squared"])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_start_from_a_sample_changes_nothing_but_the_way(loss, intercept, monkeypatch):
    """Of many rows a sixteenth is solved for first; gaps and decisions are of all rows."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(6000, 12))
    y = np.sign(X[:, 0] - X[:, 1] + rng.normal(size=6000))
    problem = make_problems(
        X, y, loss=loss, penalty="l1", alpha=1e-2, fit_intercept=intercept
    ).problem
    sampled: list[int] = []

    class Counted(sampling.OnASample):
        @classmethod
        def answered(cls, requests):
            found = super().answered(requests)
            sampled.extend(one.problem.design.n_samples for one in found)
            return found

    monkeypatch.setattr(sampling, "OnASample", Counted)
    plain = fit(problem, tol=1e-9)
    assert not sampled
    monkeypatch.setattr(module, "_LARGE", 0.0)
    found = fit(problem, tol=1e-9)
    assert len(sampled) == 1 and sampled[0] <= 6000 / 12
    assert found.converged and plain.converged
    assert abs(found.certificate.value - plain.certificate.value) <= found.gap + plain.gap
    assert_decisions_hold(found, plain.at.point, 1e-4)


@pytest.mark.parametrize(("loss", "sharp"), [("squared_hinge", True), ("safe_logistic", False)])
def test_rough_solutions_of_quadratic_pieces_are_sharp(loss, sharp):
    """Where a step more costs less than the rows that a larger gap leaves in doubt."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(800, 6))
    y = np.sign(X[:, 0] - X[:, 1] + rng.normal(size=800))
    problem = make_problems(X, y, loss=loss, penalty="l1", alpha=1e-2).problem
    found = fit(problem, tol=1.0)
    assert (found.relative_gap <= 1e-6) == sharp


def test_few_columns_of_sparse_rows_are_all_in_the_working_set(monkeypatch):
    """To pick some of them out would copy the rows."""
    chosen, select = [], WorkingGram.selecting

    def selecting(self, features):
        chosen.append(bool(features.all()))
        return select(self, features)

    monkeypatch.setattr(WorkingGram, "selecting", selecting)
    problem = wide_problem(kind=sparse.csr_array)
    few = fit(problem, tol=1e-9)
    assert chosen and all(chosen)
    monkeypatch.setattr(module, "_FEW_COLUMNS", 0)
    some = fit(problem, tol=1e-9)
    assert not all(chosen)
    np.testing.assert_allclose(few.at.point, some.at.point, atol=1e-6)


def test_the_gap_is_measured_where_little_is_promised():
    """Far from the solution, a dual point would cost more than the step."""
    found = fit(wide_problem(loss="logistic", alpha=1e-3, intercept=True), tol=1e-9)
    assert found.converged
    assert len(found.history) < found.n_iter


def test_gap_closes_where_an_intercept_takes_feasibility_away():
    """Slopes that are made to cancel exactly move v, which an l1 penalty bounds."""
    recipe = Recipe("smoothed_hinge", "l1", "collinear", intercept=True, seed=6348)
    found = fit(build(recipe), tol=1e-8)
    assert found.problem.certify(found.at).gap <= 1e-10 * found.problem.reference


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_from_where_no_row_curves(kind):
    """Targets beyond the bend of Huber's loss: a first step is as long as numbers allow."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(107, 457)) * (rng.random((107, 457)) < 0.05)
    y = 5.0 * np.sign(X[:, :20] @ rng.normal(size=20) + 0.1) + rng.normal(size=107)
    problem = make_problems(
        kind(X), y, loss="huber", penalty="l1", alpha=1e-3, fit_intercept=False
    ).problem
    assert not problem.loss.curvature(np.zeros(107), y).any()
    assert fit(problem, tol=1e-6).converged


def test_all_rows_are_seen_where_they_are_few(monkeypatch):
    """Long steps across many narrow pieces, on a path: no row is thought to stay on its own."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 5)) @ rng.normal(size=(5, 100)) + 0.3 * rng.normal(size=(150, 100))
    y = X @ rng.normal(size=100) * 0.05 + 3.0 * rng.normal(size=150)
    loss = "smoothed_epsilon_insensitive"
    problem = make_problems(X, y, loss=loss, penalty="l1", alpha=1.0).problem
    levels = [[problem.at_level(alpha)] for alpha in np.geomspace(1.0, 1e-3, 10)]

    def steps() -> int:
        found = [fit for (fit,) in sparse_newton(levels, Settings(tol=1e-6))]
        assert all(fit.converged for fit in found)
        return sum(fit.n_iter for fit in found)

    few = steps()
    monkeypatch.setattr(module, "_ALL_ROWS", 0)
    assert few < 0.5 * steps()


def test_one_step_more_where_it_decides_rows(monkeypatch):
    problem = wide_problem(loss="safe_logistic", alpha=1e-4, n=400, p=60, kind=sparse.csr_array)
    monkeypatch.setattr(module, "_ALL_ROWS", 0)  # else the last step is exact
    found = fit(problem, tol=1e-6)
    monkeypatch.setattr(driver, "_SMALL", 0.0)
    without = fit(problem, tol=1e-6)
    assert without.converged and found.n_iter == without.n_iter + 1
    assert found.undecided.sum() < without.undecided.sum()
