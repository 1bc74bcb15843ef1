"""Everything public that computes has `n_jobs`, keeps to it, and gives the same bits for any."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import safesift as ss
from safesift.arithmetic import threads
from safesift.design import blocks, dense
from safesift.design import sparse as csr
from safesift.problem.inputs import make_problems
from tests.cli_files import run as command
from tests.cli_files import write_all

# what data go by
DATA = {"X", "y", "X_pool", "K", "result", "problem"}
SENTENCE = "Threads, as joblib counts them; by default as many as the process may use."
# public functions that are given data and compute next to nothing with them, or nothing at all
ELEMENTWISE = {"pointwise_bound"}
# the solver of the user runs in between (`test_threads` has a test of its own)
IN_PARTS = {"solve_and_repair"}
# work that is not cut into tasks: a matrix of eigenvectors, a look at the targets
UNCUT = {"kernel_rows", "mu_max"}

WRAPPER = threads.computes(lambda: None).__code__  # type: ignore[attr-defined]


def is_marked(function: Any) -> bool:
    """Whether `threads.computes` is among its decorators."""
    while function is not None:
        if getattr(function, "__code__", None) is WRAPPER:
            return True
        function = getattr(function, "__wrapped__", None)
    return False


def functions() -> Iterator[tuple[str, Callable]]:
    """Public functions that are given data."""
    own = {name: getattr(ss, name) for name in ss.__all__}
    for name, thing in (own | vars(ss.grids)).items():
        if name.startswith("_") or name in ELEMENTWISE or not inspect.isfunction(thing):
            continue
        if DATA & inspect.signature(thing).parameters.keys():
            yield name, thing


def estimators() -> Iterator[tuple[str, type]]:
    for name in ss.__all__:
        thing = getattr(ss, name)
        if inspect.isclass(thing) and hasattr(thing, "get_params"):
            yield name, thing


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods of a class that the library itself has written and that are given data."""
    for name in dir(kind):
        method = inspect.getattr_static(kind, name)
        method = getattr(method, "_method", method)  # of one that is there under conditions
        if name.startswith("_") or not inspect.isfunction(method):
            continue
        asks = {"X", "y", "add", "coef", "alpha"} & inspect.signature(method).parameters.keys()
        if asks and method.__module__.startswith("safesift"):
            yield name, method


FUNCTIONS, ESTIMATORS = dict(functions()), dict(estimators())


def test_the_walk_meets_what_is_public():
    assert {"screen", "safe_path", "kernel_rows", "mine_hard", "alpha_max"} <= FUNCTIONS.keys()
    assert {"SafeTracker", "SampleCompressor", "SafeKernelRegressor"} <= ESTIMATORS.keys()
    assert {"fit", "update", "predict", "decision_function", "predict_proba", "score"} == {
        name for name, _ in methods(ss.SafeTracker)
    }
    assert ("coverage", ss.IntervalRegressor.coverage) in methods(ss.IntervalRegressor)
    assert {name for name, _ in methods(ss.RangeResult)} == {"result"}


@pytest.mark.parametrize("name", [*FUNCTIONS, *ESTIMATORS])
def test_everything_public_has_n_jobs(name):
    thing = FUNCTIONS.get(name) or ESTIMATORS[name]
    parameter = inspect.signature(thing).parameters["n_jobs"]
    assert parameter.kind is parameter.KEYWORD_ONLY and parameter.default is None
    text = " ".join((thing.__doc__ or "").split())
    assert f"n_jobs : int, optional {SENTENCE}" in text or "n_jobs, random_state, verbose" in text


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_say_that_they_compute(name):
    assert is_marked(FUNCTIONS[name]) is (name not in IN_PARTS)


@pytest.mark.parametrize("name", [*ESTIMATORS, "ScreeningResult", "RangeResult"])
def test_methods_say_that_they_compute(name):
    found = dict(methods(getattr(ss, name)))
    assert found and [one for one, method in found.items() if not is_marked(method)] == []


# --- what is computed, is computed inside ---------------------------------------------------------


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 4))
    return X, np.where(X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=160) > 0, 1, -1)


@pytest.fixture
def small_tasks(monkeypatch):
    """So small that few rows make several tasks."""
    monkeypatch.setattr(blocks, "_TASK_ENTRIES", 1)
    monkeypatch.setattr(dense, "_BLOCK", 64)
    monkeypatch.setattr(csr, "_BLOCK_ENTRIES", 64)
    monkeypatch.setattr(csr, "_ENTRIES_PER_COLUMN", 1)
    monkeypatch.setattr("safesift.design.kernel._TASK", 1)
    monkeypatch.setattr("safesift.design.kernel._ROWS", 16)
    monkeypatch.setattr("safesift.estimators.kernel._BLOCK", 1)


class Seen:
    """Where tasks were made: how many threads there were, and whether it was inside a call."""

    def __init__(self) -> None:
        self.limits: set[int] = set()
        self.outside = 0


@pytest.fixture
def seen(monkeypatch):
    found, n_threads = Seen(), threads.n_threads

    def looked_at() -> int:
        found.limits.add(n_threads())
        found.outside += threads._blas._n_users == 0
        return n_threads()

    monkeypatch.setattr(threads, "n_threads", looked_at)
    return found


@pytest.fixture
def own_pool(monkeypatch):
    """Threads of this test alone; called, it counts them."""
    name = f"counted {threading.get_ident()} {id(monkeypatch)}"
    pool = ThreadPoolExecutor(4, thread_name_prefix=name)
    monkeypatch.setattr(threads, "_pool", lambda: pool)
    yield lambda: sum(one.name.startswith(name) for one in threading.enumerate())
    pool.shutdown()


def solved(problem):
    from safesift.solvers import solve

    return problem.split(solve(problem).at.point)


def problem_of(X, y, penalty="l2"):
    return make_problems(
        X, y, loss="squared_hinge", penalty=penalty, alpha=0.1, fit_intercept=True
    ).problem


def fitted(X, y):
    return ss.SafeClassifier(alpha=0.1, n_jobs=1).fit(X, y)


# of everything public: a call that takes a few passes over the samples
CALLS: dict[str, Callable[..., Any]] = {
    "certify_alpha": lambda X, y, j: ss.certify_alpha(
        X, y, alphas=(0.05, 0.1), cv=2, epsilon=0.1, n_jobs=j
    ),
    "compress": lambda X, y, j: ss.compress(X, y, n_keep=0.2, n_jobs=j),
    "compression_curve": lambda X, y, j: ss.compression_curve(
        X, y, fractions=[0.5], n_repeats=2, n_jobs=j
    ),
    "jackknife_plus": lambda X, y, j: ss.jackknife_plus(
        ss.leave_one_out(X, y, alpha=0.1, n_jobs=1), X, n_jobs=j
    ),
    "kernel_rows": lambda X, y, j: ss.kernel_rows(X[:30] @ X[:30].T, n_jobs=j),
    "leave_one_out": lambda X, y, j: ss.leave_one_out(X, y, alpha=0.1, n_jobs=j),
    "mine_hard": lambda X, y, j: ss.mine_hard(
        X[80:], fitted(X[:80], y[:80]), X[:80], y[:80], y_pool=y[80:], n_jobs=j
    ),
    "mu_for_fraction": lambda X, y, j: ss.mu_for_fraction(
        X, X[:, 0], loss="squared", alpha=0.1, fraction_tol=0.5, n_jobs=j
    ),
    "mu_max": lambda X, y, j: ss.mu_max(X, X[:, 0], loss="squared", n_jobs=j),
    "objective_bounds": lambda X, y, j: ss.objective_bounds(X, y, loss="hinge", n_jobs=j),
    "rank_samples": lambda X, y, j: ss.rank_samples(X, y, alpha=0.1, n_jobs=j),
    "safe_kernel_path": lambda X, y, j: ss.safe_kernel_path(X, y, alphas=[0.1], n_jobs=j),
    "safe_path": lambda X, y, j: ss.safe_path(X, y, alphas=[0.1], n_jobs=j),
    "screen": lambda X, y, j: ss.screen(X, y, alpha=0.1, n_jobs=j),
    "screen_range": lambda X, y, j: ss.screen_range(X, y, alpha_range=(0.1, 0.11), n_jobs=j),
    "solve_and_repair": lambda X, y, j: ss.solve_and_repair(
        ss.screen(X, y, alpha=0.1, n_jobs=1), lambda problem: (np.zeros(4), 0.0), 1, n_jobs=j
    ),
    "alpha_grid": lambda X, y, j: ss.grids.alpha_grid(problem_of(X, y), n_jobs=j),
    "alpha_max": lambda X, y, j: ss.grids.alpha_max(problem_of(X, y), n_jobs=j),
    "radius_min": lambda X, y, j: ss.grids.radius_min(problem_of(X, y, "l2_ball"), n_jobs=j),
    "IntervalRegressor": lambda X, y, j: used(ss.IntervalRegressor(n_jobs=j), X, X[:, 0]),
    "SafeClassifier": lambda X, y, j: used(ss.SafeClassifier("logistic", n_jobs=j), X, y),
    "SafeClassifierCV": lambda X, y, j: used(
        ss.SafeClassifierCV([0.1, 0.01], cv=2, scoring="f1", n_jobs=j), X, y
    ),
    "SafeKernelClassifier": lambda X, y, j: used(ss.SafeKernelClassifier(n_jobs=j), X, y),
    "SafeKernelRegressor": lambda X, y, j: used(ss.SafeKernelRegressor(n_jobs=j), X, X[:, 0]),
    "SafeRegressor": lambda X, y, j: used(ss.SafeRegressor(n_jobs=j), X, X[:, 0] + X[:, 1] ** 2),
    "SafeRegressorCV": lambda X, y, j: used(
        ss.SafeRegressorCV([0.1, 0.01], cv=2, n_jobs=j), X, X[:, 0] + X[:, 1] ** 2
    ),
    "SafeTracker": lambda X, y, j: used(
        ss.SafeTracker(ss.SafeClassifier("safe_logistic"), n_jobs=j), X, y
    ).update(add=(X[:40], -y[:40])),
    "SampleCompressor": lambda X, y, j: ss.SampleCompressor(n_jobs=j).fit_resample(X, y),
    "SampleScreener": lambda X, y, j: ss.SampleScreener(n_jobs=j).fit_resample(X, y),
}


def used(model, X, y):
    """Fitted, and everything asked of it."""
    model.fit(X, y)
    model.predict(X)
    model.score(X, y)
    for name in ("decision_function", "predict_proba", "predict_log_proba"):
        if hasattr(model, name):
            getattr(model, name)(X)
    if hasattr(model, "coverage"):
        model.coverage(X, y)
    return model


def test_there_is_a_call_of_everything():
    assert CALLS.keys() == FUNCTIONS.keys() | ESTIMATORS.keys()


@pytest.mark.filterwarnings("ignore")  # of alphas at an end, or steps used up
@pytest.mark.parametrize("name", CALLS)
def test_n_jobs_is_kept_to(samples, small_tasks, seen, own_pool, name):
    CALLS[name](*samples, 1)
    assert own_pool() == 0
    assert seen.limits <= {1}
    CALLS[name](*samples, 3)
    # a task itself has one thread
    assert seen.limits <= {1, 3}
    assert seen.outside == 0
    assert name in UNCUT or (3 in seen.limits and own_pool() > 0)


@pytest.mark.parametrize("labels", [2, 3])
def test_results_compute_inside_a_call_of_their_own(samples, small_tasks, seen, own_pool, labels):
    """Whatever is asked of them: every attribute, and every method."""
    X, y = samples
    y = y + (labels == 3) * 2 * (X[:, 2] > 1)
    for n_jobs in (1, 3):
        found = ss.screen_range(X, y, alpha_range=(0.1, 0.1001), n_jobs=n_jobs)
        results = [found, found.result(0.1), ss.screen(X, y, alpha=1e-4, n_jobs=n_jobs)]
        before = own_pool()
        seen.limits.clear()
        for result in results:
            read_all(result)
        for result in results[1:]:
            result.repaired(result.check(result.coef, result.intercept)).summary()
            assert result.to_estimator().n_jobs == n_jobs
        assert seen.outside == 0 and seen.limits <= {1, n_jobs}
        assert n_jobs in seen.limits and own_pool() >= before
        for part in found.parts:
            _ = part.zero_coef, part.reduced, part.score, part.check(part.at.point)
        assert seen.outside == 0
    assert own_pool() > 0


def read_all(result):
    for name in dir(type(result)):
        attribute = inspect.getattr_static(type(result), name)
        if isinstance(attribute, property | cached_property) and not name.startswith("_"):
            try:
                getattr(result, name)
            except AttributeError:
                assert len(result.parts) > 1  # those of one problem


@pytest.mark.parametrize("named", [True, False])
def test_a_number_of_the_inner_model_counts_where_there_is_no_other(
    samples, small_tasks, seen, named
):
    X, y = samples
    model, outer = ss.SafeClassifier(alpha=0.1, n_jobs=5), 3 if named else None
    tracker = ss.SafeTracker(model, n_jobs=outer).fit(X[:80], y[:80])
    tracker.update(add=(X[80:], y[80:])).predict(X)
    assert seen.limits <= {1, outer or 5} and (outer or 5) in seen.limits
    fitted = ss.SafeClassifier(alpha=0.1, n_jobs=5).fit(X[:80], y[:80])
    seen.limits.clear()
    ss.mine_hard(X[80:], fitted, X[:80], y[:80], y_pool=y[80:], n_jobs=outer)
    # labels and rows are looked at before anything is known of the model
    assert (outer or 5) in seen.limits and not (named and 5 in seen.limits)


def test_the_command_has_it(tmp_path, small_tasks, own_pool):
    write_all(tmp_path)
    used = []
    for more in (["-j", "1"], ["--n-jobs", "3"]):
        for call in (["screen"], ["compress", "--keep", "10"]):
            name, *options = call
            found = command(
                name, tmp_path / "data.csv", "--target", "label", "--ignore", "note,weight",
                "--json", *options, *more,
            )  # fmt: skip
            assert found.exit_code == 0, found.stderr
        used.append(own_pool() > 0)
    assert used == [False, True]


# --- the same bits --------------------------------------------------------------------------------

STORAGES: dict[str, Callable[[np.ndarray], Any]] = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_array,
    "csr, float32": lambda X: sparse.csr_array(X.astype(np.float32)),
}


@pytest.fixture(scope="module")
def larger():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 30)) * (rng.random((600, 30)) < 0.4)
    scores = X[:, :3] + rng.normal(size=(600, 3))
    return X, scores


def bits(found: Any) -> list[bytes]:
    return [np.ascontiguousarray(one).tobytes() for one in found]


def facts_of_path(X, y, n_jobs, **model):
    path = ss.safe_path(X, y, alphas=[0.1, 0.01], random_state=0, n_jobs=n_jobs, **model)
    return path.coefs, path.intercepts, path.dual_gaps, path.n_kept, path.n_undecided


def facts_of_fit(X, y, n_jobs, **model):
    fit = ss.SafeClassifier(alpha=0.01, random_state=0, n_jobs=n_jobs, **model).fit(X, y)
    return fit.coef_, fit.intercept_, fit.dual_gap_, fit.kept_, fit.decision_function(X)


def facts_of_screening(X, y, n_jobs, **model):
    result = ss.screen(X, y, alpha=0.01, random_state=0, n_jobs=n_jobs, **model)
    return result.coef, result.gap, result.kept, result.lower, result.upper, result.score


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("facts", [facts_of_path, facts_of_fit, facts_of_screening])
@pytest.mark.parametrize(
    "model",
    [
        {"loss": "squared_hinge"},
        {"loss": "hinge"},
        {"loss": "squared_hinge", "penalty": "l1"},
        {"loss": "logistic", "fit_intercept": False},
    ],
    ids=lambda model: "-".join(map(str, model.values())),
)
def test_the_same_bits_for_any_number_of_threads(
    larger, small_tasks, own_pool, storage, facts, model
):
    X, scores = larger
    several = facts is facts_of_fit and model["loss"] != "logistic"
    for y in (scores[:, 0] > 0, scores.argmax(axis=1)) if several else (scores[:, 0] > 0,):
        one, two, three = (
            bits(facts(STORAGES[storage](X), y, n_jobs, **model)) for n_jobs in (1, 2, 3)
        )
        assert one == two == three
    assert own_pool() > 0


def test_sums_in_the_order_in_which_they_are_done_would_be_noticed(
    larger, small_tasks, own_pool, monkeypatch
):
    """The mistake: whatever is ready comes first."""

    def as_they_come(function, tasks):
        tasks = list(tasks)
        if threads.n_threads() == 1:
            yield from map(function, tasks)
            return
        yield from map(function, reversed(tasks))

    monkeypatch.setattr("safesift.design.rows.each", as_they_come)
    X, scores = larger
    one, two = (bits(facts_of_path(X, scores[:, 0] > 0, n_jobs)) for n_jobs in (1, 2))
    assert one != two
